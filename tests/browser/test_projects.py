"""Projects on the Data page."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.driving import Server, visit
from tests.browser.homes import answered, store_of
from tests.browser.test_labelling import at_the_desk


@pytest.mark.slow  # alone: what is asked before a second project on the same data, and before a deletion
def test_a_project_is_found_again_and_deleted_only_after_a_question(page: Any, server: Server) -> None:
    visit(page, server.url)
    page.click(".st-key-start-wine button")
    at_the_desk(page)
    visit(page, server.url)
    page.click(".st-key-start-wine button")
    page.wait_for_selector("text=There is a project on this data")
    page.click(".st-key-go-on-with-it button")
    at_the_desk(page)
    project = page.url.split("project=")[1].split("&")[0]
    visit(page, server.url)
    page.locator(f".st-key-more-{project} button").first.click()
    page.locator(f".st-key-delete-{project} button").first.click()
    page.wait_for_selector(".st-key-keep-it")
    assert page.locator(".st-key-delete-for-good [data-testid=stBaseButton-primary]").count() == 0
    page.click(".st-key-delete-for-good button")
    page.locator(f".st-key-project-actions-{project}").wait_for(state="detached")
    # who deleted it, and what it had, can be asked afterwards
    with store_of(server) as store:
        deleted = store.audit.entries(what="deleted", most=1)[0]
        assert (
            deleted.project == project
            and deleted.detail.endswith("labels")
            and store.summary(str(deleted.project)) is None
        )
        assert store.audit.entries(project=deleted.project, what="made")


@pytest.mark.slow  # alone: a dialog that is written in while a fit ends
def test_a_dialog_outlives_the_end_of_a_fit(page: Any, server: Server) -> None:
    project = answered(server, "iris", 12, fit=False)
    visit(page, f"{server.url}/label?project={project}")
    at_the_desk(page)
    page.get_by_role("link", name="Data").click()
    page.click(f".st-key-more-{project} button")
    page.click(f".st-key-questions-{project} button")
    dialog = page.locator("[data-testid=stDialog]")
    dialog.get_by_label("One more question").fill("tone")
    page.locator("[data-testid=stSidebar]", has_text="Error on 30 measured items").wait_for()
    dialog.get_by_role("textbox", name="Classes, with commas between").fill("angry, calm")
    dialog.get_by_role("button", name="Add", exact=True).click()
    dialog.locator("[class*=st-key-question-row-]").nth(1).wait_for()
