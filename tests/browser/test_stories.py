"""Lessons with a story: words that light the figure, sliders in sentences; a wall, a projector, a phone."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.driving import PATIENCE, Server, settled, visit
from tests.browser.test_labelling import DESK
from tests.browser.test_teaching import computed, query

FIGURE = ".st-key-lesson-figure .js-plotly-plot"
LOWEST = (
    "() => Math.max(...[...document.querySelectorAll('.st-key-lesson-figure .cartesianlayer [class*=tick], "
    ".st-key-lesson-figure .infolayer [class*=title]')].map(e => e.getBoundingClientRect().bottom))"
)
# whether the only marks that are not dimmed are those of this panel
ALONE = (
    "panel => { const marks = [...document.querySelectorAll('.st-key-lesson-figure .mlayer > g')]"
    ".filter(e => e.__data__?.[0]?.trace); const lit = marks.filter(e => e.style.opacity !== '0.12');"
    " return lit.length > 0 && lit.length < marks.length &&"
    " lit.every(e => (e.__data__[0].trace.xaxis || 'x') === panel); }"
)
DIMMED = "document.querySelectorAll('.st-key-lesson-figure .mlayer > g[style*=\"opacity: 0.12\"]').length"


def sized(page: Any, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})


def test_words_light_the_figure_and_a_slider_stands_in_a_sentence(page: Any, server: Server) -> None:
    sized(page, 1024, 768)
    visit(page, f"{server.url}/lessons?lesson=over-confident")
    story = page.locator(".st-key-lesson-story-text .prose")
    # robust-max is explained before it is asked about
    story.get_by_text("the highest function wins").first.wait_for()
    assert page.locator(".st-key-sketch-over-confident svg[role=img]").is_visible()
    computed(page)
    page.wait_for_selector(f"{FIGURE} .main-svg:visible")
    text, figure = (page.locator(f".st-key-lesson-{one}").bounding_box() for one in ("read", "figure"))
    assert text["x"] + text["width"] <= figure["x"], "side by side"
    word = page.get_by_role("button", name="its last bar")
    word.hover()
    page.wait_for_function(ALONE, arg="x")
    page.mouse.move(5, 5)
    page.wait_for_function(f"{DIMMED} === 0")
    # by keyboard, and it stays
    word.focus()
    page.keyboard.press("Enter")
    page.wait_for_function(ALONE, arg="x")
    assert word.get_attribute("aria-pressed") == "true"
    page.keyboard.press("Enter")
    page.wait_for_function(f"{DIMMED} === 0")
    slider = page.get_by_role("slider", name="Noise σ²")
    assert slider.get_attribute("aria-valuetext") == "0.5"
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("location.search.includes('noise=0.75')")
    assert slider.get_attribute("aria-valuetext") == "0.75"
    page.get_by_role("combobox", name="Compared with").select_option(label="Softmax")
    page.wait_for_function("location.search.includes('likelihood=softmax')", timeout=3 * PATIENCE)
    assert query(page)["noise"] == "0.75"


@pytest.mark.slow  # alone: a lesson on a wall and on a projector: nothing below the edge
@pytest.mark.parametrize("lesson", ["argmax", "outvoted"])
def test_a_wall_is_filled_and_a_projector_shows_the_lower_axis(
    page: Any, server: Server, lesson: str
) -> None:
    sizes = {}
    for width, height in ((1024, 768), (1920, 1080)):
        sized(page, width, height)
        visit(page, f"{server.url}/lessons?lesson={lesson}&class=1")
        computed(page)
        page.wait_for_selector(f"{FIGURE} .main-svg:visible")
        # once the window has said how large it is
        page.wait_for_function(f"({LOWEST})() > {0.8 * height} && ({LOWEST})() <= {height}")
        code = page.locator(".st-key-lesson-wall-code")
        box = code.bounding_box()
        assert box["y"] + box["height"] <= height + 1, "the code stands on the wall"
        sizes[width] = page.evaluate(
            "[...document.querySelectorAll('.st-key-lesson-figure .xtick text')]"
            ".map(e => parseFloat(getComputedStyle(e).fontSize))[0]"
        )
        across = page.evaluate(
            f"[...document.querySelectorAll('{FIGURE}')].map(e => e.getBoundingClientRect().width)[0]"
        )
        assert across > 0.55 * width
    assert sizes[1920] > 1.4 * sizes[1024], "type grows with the wall"


@pytest.mark.slow  # alone: a lesson and a shared lesson on a phone
def test_on_a_phone_the_figure_stays_and_all_keys_of_a_class_are_above_the_fold(
    page: Any, server: Server
) -> None:
    sized(page, 390, 844)
    visit(page, f"{server.url}/lessons?lesson=argmax&class=1")
    computed(page)
    page.wait_for_function(f"({LOWEST})() > 0 && document.querySelectorAll('{FIGURE}').length")
    page.locator(".st-key-lesson-look-text").scroll_into_view_if_needed()
    page.wait_for_function(f"({LOWEST})() > 0 && ({LOWEST})() < 844 * 0.65")
    # a figure that is drawn anew has no box for a moment
    page.wait_for_function(f"(document.querySelector('{FIGURE}')?.getBoundingClientRect().top ?? 0) > 0")
    visit(page, f"{server.url}/lessons?lesson=together")
    page.click(".st-key-begin-room button")
    page.wait_for_function("location.search.includes('room=')")
    page.locator(".st-key-room-code [data-testid=stCode]").wait_for()
    settled(page)
    visit(page, f"{page.url}&class=1")
    # measured in one look, and again where the keys were drawn anew in between
    page.wait_for_function(
        f"""() => {{ const boxes = [...({DESK}?.querySelectorAll('.answer') ?? [])].map(
          one => one.getBoundingClientRect());
        return boxes.length >= 10 && boxes.every(box => box.height > 0 && box.bottom <= 844); }}"""
    )
