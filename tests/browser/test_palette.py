"""Ctrl+K on every page."""

from __future__ import annotations

import re
from typing import Any

import pytest

from benchmarks.driving import Server, settled, visit
from tests.browser.homes import answered
from workbench.app.serving.frontend import backend_of

CHOSEN = """name => { const box = document.querySelector('[class*=st-key-review-class]');
  const typed = [...(box?.querySelectorAll('input') || [])].map(one => one.value);
  return box && (box.innerText + typed).includes(name); }"""


@pytest.fixture(scope="module")
def iris(server: Server) -> str:
    return answered(server, "iris", 6, fit=False, name="Flowers to go to")


def opened(page: Any) -> Any:
    page.locator("dialog").wait_for(state="attached")
    page.keyboard.press("Control+k")
    box = page.locator("dialog[open] input")
    box.wait_for()
    return box


def test_a_project_and_a_class_are_gone_to_by_their_words(page: Any, server: Server, iris: str) -> None:
    visit(page, f"{server.url}/lessons")
    settled(page)
    opened(page).fill("project flowers to go")
    page.keyboard.press("Enter")
    page.wait_for_url("**/label?project=*")
    page.wait_for_selector(".desk .title:not(:empty)")
    first = page.locator(".desk .title").inner_text()
    # letters are no keys of the desk meanwhile
    opened(page).press_sequentially("class versi")
    assert page.locator(".desk .title").inner_text() == first
    assert page.locator("dialog[open] li").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_url("**/history?project=*")
    page.wait_for_function(CHOSEN, arg="versicolor")
    opened(page)
    page.keyboard.press("Escape")
    page.locator("dialog[open]").wait_for(state="detached")


# at the first moment at which a page can be typed on: the palette comes with the first run of the script
PRESSED = """document.addEventListener('DOMContentLoaded', () => {
  const press = new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true, cancelable: true });
  window.pressed = [Boolean(window.workbenchPalette), document.body.dispatchEvent(press)]; })"""


def test_a_press_before_the_script_has_come_opens_it_when_it_comes(page: Any, server: Server) -> None:
    page.add_init_script(PRESSED)
    page.goto(f"{server.url}/lessons")
    page.locator("dialog[open] input").wait_for()
    assert page.evaluate("window.pressed") == [False, False], "no palette yet, and none of the browser's own"


def test_a_page_asks_for_nothing_that_is_not_there(page: Any, server: Server) -> None:
    missing: list[str] = []
    page.on("response", lambda one: missing.append(one.url) if one.status >= 400 else None)
    visit(page, f"{server.url}/lessons")
    assert missing == [] and page.evaluate("window.__streamlit.BACKEND_BASE_URL") == server.url


def test_where_the_server_is_behind_a_proxy_with_a_path_of_its_own(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/_stcore/health")

    def told(path: str, address: str) -> Any:
        """Words of a page's script that a browser sees at an address."""
        code = re.sub("</?script>", "", backend_of(path))
        return page.evaluate(
            "([code, at]) => { const window = {}, location = { origin: 'https://a.org', pathname: at };"
            " eval(code); return window.__streamlit?.BACKEND_BASE_URL ?? null; }",
            [code, address],
        )

    assert told("/label", "/label") == told("/", "/") == "https://a.org"
    assert {told("/label", "/outer/label"), told("/", "/outer/"), told("/", "/outer")} == {
        "https://a.org/outer"
    }
    assert told("/label", "/elsewhere") is None
    assert backend_of("/a'b") == backend_of("/a/b") == "", "no page of ours: Streamlit looks for itself"


def test_a_link_of_help_stays_in_its_tab(page: Any, server: Server) -> None:
    visit(page, f"{server.url}/help?page=recipes/my-csv")
    page.locator("dialog").wait_for(state="attached")
    title = page.locator(".st-key-help-text h2").first.inner_text()
    link = page.locator(".st-key-help-text a[href*='help?page=']").first
    link.click()
    page.wait_for_function(
        "title => document.querySelector('.st-key-help-text h2').innerText !== title", arg=title
    )
    assert len(page.context.pages) == len([one for one in page.context.pages if one.url == "about:blank"]) + 1
    page.go_back()
    page.wait_for_function(
        "title => document.querySelector('.st-key-help-text h2').innerText === title", arg=title
    )


def test_on_a_phone_help_is_searched_above_its_text(page: Any, server: Server) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, f"{server.url}/help")
    text, find = page.locator(".st-key-help-text"), page.locator(".st-key-help-words input")
    text.locator("h2").first.wait_for()

    def above(upper: Any, lower: Any) -> bool:
        boxes = upper.bounding_box(), lower.bounding_box()
        return boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]

    assert above(find, text)
    assert above(text, page.locator(".st-key-help-contents a").first), "what was asked for comes first"
    find.fill("uncertainty")
    find.press("Enter")
    hits = page.locator(".st-key-help-hits")
    hits.locator("a").first.wait_for()
    assert above(find, hits) and above(hits, text), "and what was found before that"
