"""A key made on the Data page opens the real server to a program, until it is revoked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driving import Server, settled, visit
from tests.browser.homes import answered
from workbench.client import Client, RefusedError


@pytest.mark.slow  # a key made by mouse; app/programs has the rest
def test_a_key_of_the_page_opens_the_project_to_a_program(page: Any, server: Server) -> None:
    project = answered(server, "iris", 9, classifier="logistic-regression", policy="margin")
    visit(page, server.url)
    page.click(f".st-key-more-{project} button")
    page.click(f".st-key-programs-{project} button")
    dialog = page.locator("[data-testid=stDialog]")
    dialog.get_by_label("Whose answers").fill("robot")
    dialog.get_by_label("What for").fill("a test")
    dialog.get_by_role("button", name="Make a key").click()
    shown = dialog.locator("code", has_text="wb_")
    shown.wait_for()
    secret = shown.inner_text().strip()
    settled(page)
    if "SHOTS" in os.environ:
        page.screenshot(path=str(Path(os.environ["SHOTS"]) / "programs.png"))
    program = Client(server.url, project, secret)
    [question] = program.questions()
    assert "row" in question and program.label(question, "setosa") == "saved"
    assert program.progress()["labelled"] == 10
    assert [row["person"] for row in program.labels()].count("robot") == 1
    dialog.get_by_role("button", name="Revoke").click()
    dialog.get_by_role("button", name="Revoke").wait_for(state="detached")
    with pytest.raises(RefusedError, match="revoked"):
        program.progress()
