"""A file is made when it is asked for, at an address that outlives every redraw of its page."""

import gc
import re

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from workbench.app.shell import downloads
from workbench.figures import export


def page() -> None:
    import plotly.graph_objects as go

    from workbench.app.shell.downloads import figure_downloads

    figure_downloads(go.Figure(go.Scatter(x=[1], y=[2])), "curve", "save")


def offered(shown: AppTest) -> str:
    return "".join(element.proto.body for element in shown.get("html"))


@pytest.fixture
def never_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("drawn although nobody asked")

    monkeypatch.setattr(export, "html", refuse)
    monkeypatch.setattr(export, "image", refuse)


@pytest.mark.usefixtures("never_drawn")
def test_four_files_where_a_browser_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "why_no_images", lambda: "")
    shown = AppTest.from_function(page).run()
    assert not shown.exception
    assert re.findall(r"\((\w+)\)</a>", offered(shown)) == ["HTML", "CSV", "PNG", "SVG"]


@pytest.mark.usefixtures("never_drawn")
def test_html_and_a_reason_where_none_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "why_no_images", lambda: "No browser here.")
    shown = AppTest.from_function(page).run()
    assert re.findall(r">([^<>]+)</a>", offered(shown)) == ["Interactive page (HTML)", "Numbers (CSV)"]
    assert "No browser here." in [c.value for c in shown.caption]


def counting() -> None:
    import errno

    import streamlit as st

    from workbench.app.shell.downloads import button
    from workbench.errors import InputError

    def refused() -> bytes:
        raise InputError("Nothing to write.")

    def broken() -> bytes:
        raise RuntimeError("a fault of ours")

    def full() -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    n = st.session_state["n"] = st.session_state.get("n", 0) + 1
    button("Save", lambda: f"drawing {n}".encode(), f"größe {n}.csv", "save")
    button("None", lambda: b"never", "none.csv", "none", disabled=n > 1)
    button("Refused", refused, "refused.csv", "refused")
    button("Broken", broken, "broken.csv", "broken")
    button("Full", full, "full.csv", "full")


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=downloads.routes()), raise_server_exceptions=False)


def addresses(shown: AppTest) -> list[str]:
    return re.findall(r'href="([^"]*)"', offered(shown))


def not_made(client: TestClient, address: str, name: str) -> str:
    """Text in the place of a file that cannot be made, under another name."""
    answer = client.get(address)
    # a status that says "failed" would have the browser throw the words away
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain")
    named = f"attachment; filename*=UTF-8''{name}%20was%20not%20made.txt"
    assert answer.headers["content-disposition"] == named
    return answer.text


def test_a_press_while_the_page_redraws_finds_its_file(client: TestClient) -> None:
    shown = AppTest.from_function(counting).run()
    first = addresses(shown)
    answer = client.get(first[0])
    assert (answer.status_code, answer.text) == (200, "drawing 1")
    shown.run()
    # what the browser showed before the redraw is still an address, of the newest file
    assert addresses(shown) == [first[0], *first[2:]]
    answer = client.get(first[0])
    assert answer.text == "drawing 2"
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''gr%C3%B6%C3%9Fe%202.csv"
    # a disabled button leaves nothing behind
    assert "offered no more" in not_made(client, first[1], "file")


def test_two_tabs_have_addresses_of_their_own_which_end_with_them(client: TestClient) -> None:
    one, other = AppTest.from_function(counting).run(), AppTest.from_function(counting).run()
    assert not set(addresses(one)) & set(addresses(other))
    left = addresses(one)[0]
    del one
    gc.collect()
    assert "open the page anew" in not_made(client, left, "file")
    assert client.get(addresses(other)[0]).text == "drawing 1"


def test_a_file_that_cannot_be_made_says_why(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    shown = AppTest.from_function(counting).run()
    *_, refused, broken, full = addresses(shown)
    assert "No space left on device; it is made in" in not_made(client, full, "full.csv")
    assert not_made(client, refused, "refused.csv") == "Nothing to write.\n"
    assert "log says why" in not_made(client, broken, "broken.csv")
    assert "a fault of ours" in caplog.text
