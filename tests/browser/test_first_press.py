"""The first press of a button counts: it stands where it will stay, and is there for who has just typed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driving import PATIENCE, Server, visit
from tests.browser.homes import answered
from tests.browser.test_labelling import wait_for_labelled

WATCH = """selector => {
  window.seen = [];
  const look = () => {
    const node = document.querySelector(selector);
    if (node) {
      const box = node.getBoundingClientRect();
      const place = [Math.round(box.left + box.width / 2), Math.round(box.top + box.height / 2)];
      if (String(window.seen.at(-1)) !== String(place)) window.seen.push(place);
    }
    requestAnimationFrame(look);
  };
  look();
}"""
TABLE = "size,class,count\n" + "".join(f"{i / 7},{('good', 'bad')[i % 2]},{i % 3}\n" for i in range(60))
TEXTS = "text,class\n" + "".join(
    f"a {('good', 'bad')[i % 2]} word {i},{('good', 'bad')[i % 2]}\n" for i in range(60)
)


@pytest.fixture
def newcomer(browser: Any) -> Iterator[Any]:
    """A page of a browser that was never here: every script of the front end is still to come."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


@pytest.mark.slow  # alone: the button does not move under a finger that is already down
@pytest.mark.parametrize("rows", [TABLE, TEXTS], ids=["table", "texts"])
def test_start_is_pressed_the_moment_it_appears(newcomer: Any, own_server: Server, rows: str) -> None:
    page = newcomer
    page.goto(own_server.url)
    page.wait_for_selector("[data-testid=stFileUploader]")
    page.evaluate(WATCH, ".st-key-start-own button")
    page.set_input_files(
        "[data-testid=stFileUploader] input",
        {"name": "own.csv", "mimeType": "text/csv", "buffer": rows.encode()},
    )
    first = page.wait_for_function("window.seen[0]").json_value()
    page.mouse.move(*first)
    page.mouse.down()
    # held while the rest of the page comes: it stays below the pointer
    page.wait_for_selector(".st-key-columns canvas")
    assert page.evaluate("window.seen") == [first]
    page.mouse.up()
    page.wait_for_selector(".desk .title:not(:empty)")


def test_a_press_right_after_typing_counts(page: Any, server: Server) -> None:
    folder = server.home / "typed"
    folder.mkdir(exist_ok=True)
    (folder / "own.csv").write_text(TABLE, encoding="utf-8")
    visit(page, server.url)
    page.click(".st-key-folder button")
    box = page.locator(".st-key-folder-path input")
    # the popover has come to its place
    page.locator(".st-key-open-folder button").element_handle().wait_for_element_state("stable")
    box.fill(str(folder / "own.csv"))
    # the mouse as a hand moves it: no waiting until the page knows of the text
    place = page.locator(".st-key-open-folder button").bounding_box()
    page.mouse.click(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.wait_for_selector(".st-key-columns")


@pytest.mark.slow  # alone: whole pages of a Streamlit of which nothing is replaced
def test_a_key_labels_on_a_streamlit_that_is_not_known(page: Any, browser: Any, tmp_path: Path) -> None:
    other = "import streamlit\nstreamlit.__version__ = '1.99.0'\n"
    (tmp_path / "sitecustomize.py").write_text(other, encoding="utf-8")
    server = Server(tmp_path / "home", environment={"PYTHONPATH": str(tmp_path)}).start()
    try:
        project = answered(server, "three-gaussians", 12)
        visit(page, f"{server.url}/label?project={project}")
        page.wait_for_selector(".desk .title:not(:empty)")
        assert page.locator("script[src*='/little.']").count() == 0
        page.keyboard.press("a")
        wait_for_labelled(page, 13)
    finally:
        server.stop()
