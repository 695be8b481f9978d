"""The helper by which every other browser test waits does wait."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.driving import settled


def test_a_page_whose_script_runs_has_not_settled(page: Any) -> None:
    from playwright.sync_api import TimeoutError as Late

    page.set_content("<div data-testid=stApp data-test-script-state=running></div>")
    page.set_default_timeout(200)  # it would wait for ever
    with pytest.raises(Late):
        settled(page)
    page.set_default_timeout(0)
    page.evaluate("() => { document.querySelector('div').dataset.testScriptState = 'notRunning' }")
    settled(page)
    page.evaluate("() => { document.body.innerHTML += '<p data-testid=stSkeleton></p>' }")
    page.set_default_timeout(200)
    with pytest.raises(Late):
        settled(page)
