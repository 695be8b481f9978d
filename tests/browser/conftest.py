"""A server and a page of a real browser, for every test that needs to see what a person sees.

`server` is one server for all that a process runs of them, with a home of its own; `own_server` is one
that the test may kill. `page` is a page of a browser without cookies and stored values; it fails the
test when its script broke.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from getpass import getuser
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driving import PATIENCE, Server, chromium, find_chromium, tell_runs
from tests.browser.homes import answered


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(item.path).is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed shows its page and the last lines of its server."""
    report = yield
    arguments = getattr(item, "funcargs", {})
    if report.when == "call" and report.failed:
        if "page" in arguments:
            report.sections.append(("the page", _text_of(arguments["page"])))
        for name in ("server", "own_server"):
            if name in arguments:
                report.sections.append((f"the last lines of {name}", arguments[name].log[-3000:]))
    return report


def _text_of(page: Any) -> str:
    from playwright.sync_api import Error

    try:
        return f"{page.url}\n{page.locator('body').inner_text(timeout=10_000)}"[:6000]
    except Error as error:  # it is closed, or does not answer
        return str(error)


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    if find_chromium() is None:
        message = "no Chromium or Chrome on the PATH: browser tests need one"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with chromium() as browser:
        new_context = browser.new_context
        browser.new_context = lambda **given: tell_runs(new_context(**given))
        yield browser


@pytest.fixture(scope="package")
def server(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("home")).start()
    yield server
    server.stop()


@pytest.fixture
def own_server(browser: Any, tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "home").start()
    yield server
    server.stop()


@pytest.fixture(scope="package")
def profile(browser: Any) -> Iterator[Any]:
    """One browser context for all tests, so that Streamlit's scripts are fetched once."""
    profile = browser.new_context(
        viewport={"width": 1400, "height": 1000}, accept_downloads=True, reduced_motion="reduce"
    )
    profile.set_default_timeout(PATIENCE)
    yield profile
    profile.close()


@pytest.fixture
def context(profile: Any) -> Iterator[Any]:
    """The profile; what a test leaves in it goes: its pages, cookies and what pages store."""
    before = list(profile.pages)
    # a browser that has labelled before: who it is, is asked of others (test_names.py)
    profile.add_cookies([{"name": "workbench-person", "value": getuser(), "url": "http://127.0.0.1"}])
    yield profile
    opened = [page for page in profile.pages if page not in before]
    origins = {"/".join(page.url.split("/")[:3]) for page in opened if page.url.startswith("http")}
    blank = profile.new_page()
    for page in opened:
        page.close()
    profile.set_offline(False)
    profile.clear_cookies()
    devtools = profile.new_cdp_session(blank)
    for origin in origins:
        kinds = "cookies,local_storage,indexeddb,service_workers,cache_storage"
        devtools.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": kinds})
    blank.close()


@pytest.fixture
def page(context: Any) -> Iterator[Any]:
    page = context.new_page()
    broken: list[str] = []
    page.on("pageerror", lambda error: broken.append(str(error)))
    yield page
    assert broken == []


@pytest.fixture(scope="module")
def learnt(server: Server) -> str:
    """A project whose model has a guess for every item."""
    return answered(server, "digits", 20, name="Learnt digits")
