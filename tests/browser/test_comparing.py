"""A comparison outlives a reload and can be cancelled after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.driving import Server, settled, visit


@pytest.mark.slow  # alone: cancel after a reload, and figures saved as files that open offline
def test_a_comparison_survives_a_reload_and_is_cancelled(page: Any, server: Server, tmp_path: Path) -> None:
    visit(page, f"{server.url}/compare")
    page.locator(".st-key-compare-budget input").fill("400")
    page.locator(".st-key-compare-budget input").press("Enter")
    settled(page)
    page.click(".st-key-start-comparison button")
    page.wait_for_selector(".st-key-comparison-bar")
    page.wait_for_function("location.search.includes('comparison=')")
    # until the first rounds are drawn
    page.wait_for_function(
        "/^[1-9]\\d?\\s%/.test(document.querySelector('.st-key-comparison-bar')?.innerText ?? '')",
    )
    page.reload()
    page.wait_for_selector(".st-key-comparison-bar")
    words = page.locator(".st-key-comparison-bar").inner_text()
    assert not words.startswith("0\u00a0%"), words
    page.wait_for_selector(".js-plotly-plot")
    page.click(".st-key-comparison-cancel button")
    page.locator(".st-key-comparison-rest", has_text="What was finished is kept").wait_for()
    page.wait_for_selector(".js-plotly-plot")
    assert page.locator("[data-testid=stException]").count() == 0
    files = saved(page, "save-comparison", tmp_path)
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    assert files["svg"].read_text().startswith("<svg")
    # nothing of the saved page comes from a network
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.context.set_offline(True)
    page.goto(files["html"].as_uri())
    page.wait_for_selector(".js-plotly-plot .main-svg")
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.slow
def test_a_comparison_in_processes_of_its_own(page: Any, server: Server) -> None:
    """Workers run no page, and what they find is drawn."""
    visit(page, f"{server.url}/compare")
    for key, value in (("compare-seeds", "2"), ("compare-budget", "4"), ("compare-workers", "2")):
        if key == "compare-workers":
            page.click(".st-key-compare-more button")
        page.locator(f".st-key-{key} input").fill(value)
        page.locator(f".st-key-{key} input").press("Enter")
        settled(page)
    page.click(".st-key-start-comparison button")
    page.wait_for_selector(".st-key-comparison-table")
    page.wait_for_selector(".st-key-comparison-curve .js-plotly-plot")
    assert page.locator(".st-key-comparison-rest").count() == 0, "some runs were not finished"
    assert page.locator("[data-testid=stException], [data-testid=stAlert]").count() == 0
    assert "Traceback" not in server.log and "ScriptRunContext" not in server.log


def saved(page: Any, key: str, folder: Path) -> dict[str, Path]:
    """The files a figure's menu gives, by ending."""
    page.click(f".st-key-{key} button")
    files = {}
    for ending in ("html", "png", "svg"):
        with page.expect_download() as coming:
            page.click(f".st-key-{key}-{ending} a")
        files[ending] = folder / f"figure.{ending}"
        coming.value.save_as(files[ending])
    return files
