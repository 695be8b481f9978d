"""The main job as a person does it: keys, undo, reload, a second tab, a crash, the export."""

from __future__ import annotations

import io
import re
from typing import Any

import pandas as pd
import pytest

from benchmarks.driving import Server, settled, visit


def start_digits(page: Any, server: Server) -> str:
    visit(page, server.url)
    page.click(".st-key-start-digits button")
    page.wait_for_selector(".st-key-answers")
    settled(page)
    project = re.search(r"project=(\w+)", page.url)
    assert project is not None
    return project.group(1)


def item_of(page: Any) -> str:
    return str(page.locator(".st-key-item-head").inner_text()).split()[1]


def press_and_wait(page: Any, key: str) -> None:
    """Press a key and wait until another item stands."""
    before = item_of(page)
    page.keyboard.press(key)
    page.wait_for_function(
        "before => { const e = document.querySelector('.st-key-item-head');"
        " return e && e.innerText.split(/\\s+/)[1] !== before }",
        arg=before,
    )
    settled(page)


def labelled(page: Any) -> int:
    """How many the sidebar says are labelled."""
    words = page.locator("[data-testid=stSidebar]").inner_text()
    found = re.search(r"([\d,]+) of [\d,]+ items? labelled", words)
    assert found is not None, words
    return int(found.group(1).replace(",", ""))


def wait_for_labelled(page: Any, n: int) -> None:
    page.wait_for_function(
        "n => document.querySelector('[data-testid=stSidebar]').innerText.includes(n + ' of ')", arg=f"{n:,}"
    )


def exported(page: Any) -> pd.DataFrame:
    page.get_by_role("link", name="History").click()
    page.wait_for_selector(".st-key-downloads")
    settled(page)
    with page.expect_download() as download:
        page.click(".st-key-download-labels button")
    with open(download.value.path(), "rb") as file:  # noqa: PTH123
        return pd.read_csv(io.BytesIO(file.read()), dtype=str)


def test_ten_items_by_keys_undo_reload_second_tab_and_export(page: Any, context: Any, server: Server) -> None:
    project = start_digits(page, server)
    given: dict[str, str] = {}
    for key in "0123456789":
        given[item_of(page)] = key
        press_and_wait(page, key)
    assert len(given) == 10
    wait_for_labelled(page, 10)

    # undo brings the last item back, and a new answer replaces the old one
    last = list(given)[-1]
    page.keyboard.press("z")
    page.wait_for_function(
        "item => document.querySelector('.st-key-item-head')?.innerText.includes(item)", arg=last
    )
    settled(page)
    wait_for_labelled(page, 9)
    given[last] = "7"
    press_and_wait(page, "7")
    wait_for_labelled(page, 10)

    # a reload and a second tab show the same item and the same numbers
    shown = item_of(page)
    page.reload()
    page.wait_for_selector(".st-key-item-head")
    settled(page)
    assert item_of(page) == shown
    second = context.new_page()
    visit(second, f"{server.url}/label?project={project}")
    assert item_of(second) == shown
    assert labelled(second) == labelled(page) == 10

    # the answer of one tab is not taken again in the other
    press_and_wait(second, "4")
    given[shown] = "4"
    page.keyboard.press("5")
    page.wait_for_selector("text=answered already")
    wait_for_labelled(page, 11)
    second.close()

    table = exported(page)
    assert dict(zip(table["id"], table["label"], strict=True)) == given


def test_ten_fast_keys_on_one_item_store_one_answer(page: Any, server: Server) -> None:
    start_digits(page, server)
    first = item_of(page)
    # without waiting for anything: what a stuck or impatient finger does
    page.evaluate(
        "for (let i = 0; i < 10; i++) document.body.dispatchEvent("
        "new KeyboardEvent('keydown', {key: '3', code: 'Digit3', keyCode: 51, bubbles: true}))"
    )
    page.wait_for_function(
        "item => !document.querySelector('.st-key-item-head')?.innerText.includes(item)", arg=first
    )
    page.wait_for_timeout(1500)
    settled(page)
    assert labelled(page) == 1
    table = exported(page)
    assert table[["id", "label"]].to_numpy().tolist() == [[first, "3"]]


def test_an_acknowledged_answer_survives_a_killed_server(page: Any, own_server: Server) -> None:
    project = start_digits(page, own_server)
    first = item_of(page)
    press_and_wait(page, "6")
    own_server.kill()
    own_server.start()
    visit(page, f"{own_server.url}/label?project={project}")
    assert labelled(page) == 1
    assert item_of(page) != first
    table = exported(page)
    assert table[["id", "label"]].to_numpy().tolist() == [[first, "6"]]
    # and the Data page offers to go on
    visit(page, own_server.url)
    assert page.locator(f".st-key-open-{project} button").inner_text().strip() == "Go on"


def test_the_model_learns_in_the_background_and_says_why(page: Any, server: Server) -> None:
    start_digits(page, server)
    for key in "01":
        press_and_wait(page, key)
    # nobody waits for the fit: the item is there at once, the guess comes later
    page.wait_for_selector(".st-key-why >> text=Nearest labelled items", timeout=180_000)
    page.wait_for_selector("[data-testid=stSidebar] >> text=Error on 359 items")
    page.click(".st-key-hide-guess label")
    page.wait_for_selector("text=Nearest labelled items", state="detached")
    assert page.locator("[data-testid=stException]").count() == 0


@pytest.mark.parametrize("path", ["label", "compare", "uncertainty", "history"])
def test_a_deep_link_on_a_fresh_page_has_its_menu_and_title(page: Any, server: Server, path: str) -> None:
    visit(page, f"{server.url}/{path}")
    assert page.title() == "Workbench" or page.title().lower().startswith(path)
    assert page.locator("h1").first.inner_text().lower() == path
    assert page.locator("[data-testid=stSidebarNav] a").count() >= 5
