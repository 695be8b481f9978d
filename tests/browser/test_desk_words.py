"""The desk besides the item: the question, notes and flags, names of classes, and their places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.driving import HOST, Server, visit
from tests.browser.homes import store_of
from tests.browser.test_labelling import at_the_desk, press
from workbench.sessions import Session

CLASSES = ("payment_not_recognised", "exchange", "cancellation", "compensation_request")
# a word that stands in two lines has two boxes
BROKEN = """() => [...HOST.shadowRoot
  .querySelectorAll('.answer .name')].flatMap(name => {
    const texts = [...name.childNodes].filter(node => node.nodeType === 3);
    return texts.filter(node => { const range = document.createRange(); range.selectNodeContents(node);
      return range.getClientRects().length > 1; }).map(node => node.data);
  })""".replace("HOST", HOST)


@pytest.fixture(scope="module")
def letters(server: Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("letters")
    long = "and I would like to know what you mean to do about it. " * 30
    lines = [f"order {i} {'came late' if i % 2 else long}" for i in range(20)]
    path = folder / "letters.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with store_of(server) as store:
        return str(Session.create(str(path), classes=CLASSES, store=store).id)


def open_desk(page: Any, server: Server, project: str) -> None:
    visit(page, f"{server.url}/label?project={project}")
    at_the_desk(page)


@pytest.mark.slow  # alone: notes at the desk
def test_a_note_leaves_a_badge_and_escape_a_draft(page: Any, server: Server, letters: str) -> None:
    open_desk(page, server, letters)
    assert page.locator(".desk .question").inner_text() == "Which class does this text belong to?"
    page.keyboard.press("n")
    page.locator(".desk textarea").fill("half a thought")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    assert page.locator(".desk textarea").input_value() == "half a thought"
    page.locator(".desk textarea").fill("a whole thought")
    page.keyboard.press("Control+Enter")
    page.locator(".desk .marks", has_text="note").wait_for()
    page.keyboard.press("f")
    page.locator(".desk .marks", has_text="flagged").wait_for()
    page.keyboard.press("n")
    assert "a whole thought" in page.locator(".desk .panel").inner_text()
    assert page.locator(".desk textarea").input_value() == "", "what was kept is no draft any more"
    page.keyboard.press("Escape")
    page.reload()
    at_the_desk(page)
    page.locator(".desk .marks", has_text="note").wait_for()


@pytest.mark.slow  # alone: long names at the desk
@pytest.mark.parametrize("width", [1024, 1280])
def test_class_names_are_whole_and_what_stands_below_keeps_its_place(
    page: Any, server: Server, letters: str, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    open_desk(page, server, letters)
    assert page.evaluate(BROKEN) == []
    places = []
    for _ in range(4):
        box = page.locator(".desk .commands").bounding_box()
        places.append((round(box["y"]), round(box["height"])))
        press(page, "2")
    assert len(set(places)) == 1, places
