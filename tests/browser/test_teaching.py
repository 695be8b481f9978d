"""Lessons and the map as a class uses them: links, sliders, a click and a lasso that label."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from benchmarks.driving import PATIENCE, Server, settled, visit
from tests.browser.homes import answered
from tests.browser.test_labelling import start_digits, wait_for_labelled
from workbench.app.lessons.lessons import LESSONS

CIRCLE = "[data-testid=stMain] .js-plotly-plot"


def query(page: Any) -> dict[str, str]:
    return {k: v[0] for k, v in parse_qs(urlparse(page.url).query).items()}


def computed(page: Any) -> None:
    """Past the guess, with a picture."""
    skip = page.locator(".st-key-guess-skip button")
    skip.or_(page.get_by_text("Measured here.")).first.wait_for(timeout=3 * PATIENCE)
    settled(page)
    if skip.count():
        skip.click()
    page.get_by_text("Measured here.").wait_for(timeout=3 * PATIENCE)
    settled(page)


@pytest.fixture(scope="module")
def labelled(server: Server) -> str:
    """The id of a project of points with a model."""
    return answered(server, "three-gaussians", 12)


def count(page: Any) -> int:
    text = page.locator("[data-testid=stSidebar]").inner_text()
    return int(text.split(" of ")[0].split()[-1].replace(",", ""))


def mapped(page: Any, server: Server, project: str) -> None:
    visit(page, f"{server.url}/uncertainty?project={project}")
    page.wait_for_selector(f"{CIRCLE} .nsewdrag")
    # a fit that another test left behind draws the page anew when it ends, under a lasso, too
    page.locator("[data-testid=stSidebar]", has_text="Fitting").wait_for(state="hidden")
    settled(page)


@pytest.mark.slow  # alone: a lesson's way from its card and back; test_stories.py moves a control
def test_a_lesson_opens_in_one_click_moves_and_goes_back(page: Any, server: Server) -> None:
    visit(page, f"{server.url}/lessons")
    cards = page.locator("[class*=st-key-card-]")
    cards.nth(len(LESSONS)).wait_for()  # and the shared lesson
    assert cards.count() == len(LESSONS) + 1
    page.click(".st-key-open-inducing button")
    computed(page)
    page.wait_for_function("location.search.includes('points=8')")
    assert query(page)["lesson"] == "inducing"
    measured = page.locator("p", has_text="Measured here.")
    before = measured.inner_text()
    thumb = page.locator(".st-key-lesson-read-text input[name=points]")
    thumb.focus()
    thumb.press("ArrowRight")
    page.wait_for_function("location.search.includes('points=16')")
    page.wait_for_function(
        "before => { const all = [...document.querySelectorAll('p')].filter(e => "
        "e.innerText.includes('Measured here.')); return all.length && all[0].innerText !== before; }",
        arg=before,
    )
    page.click(".st-key-lesson-reset button")
    page.wait_for_function("location.search.includes('points=8')")


@pytest.mark.slow  # alone: an address holds a lesson's state, class mode and its code
def test_a_link_carries_the_state_and_class_mode_hides_the_menu(
    page: Any, context: Any, server: Server
) -> None:
    visit(page, f"{server.url}/lessons?lesson=argmax&labels=50&noise=0.5&class=1")
    computed(page)
    assert query(page)["labels"] == "50" and query(page)["noise"] == "0.5"
    assert not page.locator("[data-testid=stSidebar]").is_visible()
    # the code leads to this state at an address that other machines know
    page.click(".st-key-lesson-share button")
    written = page.locator("[data-testid=stPopoverBody] [data-testid=stCode]")
    written.wait_for()
    address = written.inner_text().strip()
    if find_spec("segno") is None:
        page.get_by_text("The QR code needs the package segno").wait_for()
    else:
        code = page.locator("[data-testid=stPopoverBody] img[alt^='QR code of']")
        code.wait_for()
        assert code.get_attribute("alt") == f"QR code of {address}"
    assert parse_qs(urlparse(address).query) | {"class": ["1"]} == parse_qs(urlparse(page.url).query)
    assert urlparse(address).port == server.port and urlparse(address).path == "/lessons"
    assert "--share" in page.locator("[data-testid=stPopoverBody]").inner_text(), "this server is not shared"
    page.keyboard.press("Escape")
    # another student has a state of their own
    other = context.new_page()
    visit(other, f"{server.url}/lessons?lesson=argmax&labels=9&noise=0.5&class=1")
    computed(other)
    assert query(page)["labels"] == "50" and query(other)["labels"] == "9"
    other.close()


@pytest.mark.slow  # alone: values of an address that no lesson has
def test_an_address_with_nonsense_gives_the_preset_and_says_so(page: Any, server: Server) -> None:
    visit(page, f"{server.url}/lessons?lesson=inducing&points=9999")
    assert "this is the preset" in page.locator("[data-testid=stMain]").inner_text()
    computed(page)
    visit(page, f"{server.url}/lessons?lesson=nothing")
    assert "There is no lesson" in page.locator("[data-testid=stAlert]").inner_text()
    assert page.locator("[class*=st-key-card-]").count() == len(LESSONS) + 1  # and the shared lesson


@pytest.mark.slow  # alone: guesses of two browsers, and their tally
def test_a_class_guesses_first_and_sees_its_tally(page: Any, context: Any, server: Server) -> None:
    address = f"{server.url}/lessons?lesson=useless&class=1"
    student = context.new_page()
    for one, text in ((page, "12"), (student, "no idea")):
        visit(one, address)
        one.locator(".st-key-guess input").fill(text)
        one.locator(".st-key-guess input").press("Tab")
        one.locator(".st-key-guess-show button").click()
    student.get_by_text("A guess is a number").wait_for()
    assert not student.locator("[data-testid=stMain] .js-plotly-plot").count(), "hidden until the guess"
    page.get_by_text("You guessed 12; it is").wait_for()
    page.get_by_text("1 guess of this class").wait_for()
    student.locator(".st-key-guess input").fill("40,5")
    student.locator(".st-key-guess input").press("Tab")
    student.locator(".st-key-guess-show button").click()
    student.get_by_text("You guessed 40.5; it is").wait_for()
    page.get_by_text("2 guesses of this class").wait_for()
    student.close()


@pytest.mark.slow  # alone: a click on the figure chooses that item and no other
def test_a_click_on_the_map_labels_that_item(page: Any, server: Server, labelled: str) -> None:
    mapped(page, server, labelled)
    # the place of an open item on the screen, from the figure itself
    x, y, name = page.evaluate(
        """() => { const g = document.querySelector('[data-testid=stMain] .js-plotly-plot');
        const t = g._fullData.findIndex(d => d.name === 'not labelled'), d = g._fullData[t];
        const l = g._fullLayout, box = g.getBoundingClientRect();
        const at = i => [box.left + l.xaxis._offset + l.xaxis.d2p(d.x[i]),
                         box.top + l.yaxis._offset + l.yaxis.d2p(d.y[i])];
        // the one farthest from the middle has no neighbour to be hit instead
        let best = 0, far = -1;
        for (let i = 0; i < d.x.length; i++) {
          const r = Math.hypot(d.x[i] - 0.7, d.y[i] - 0.4); if (r > far) { far = r; best = i; } }
        return [...at(best), d.customdata[best][1]]; }"""
    )
    page.mouse.move(x, y)
    # a click is of the item that the figure has found below the pointer
    page.wait_for_function(f"document.querySelector('{CIRCLE}')?._hoverdata?.length")
    page.mouse.click(x, y)
    heading = page.locator(".st-key-inspected-item h2")
    page.wait_for_function(
        "name => (document.querySelector('.st-key-inspected-item h2') || {innerText: ''})"
        ".innerText.includes(name)",
        arg=str(name),
    )
    assert heading.inner_text().strip() == f"Item {name}"
    before = count(page)
    page.locator(".gallery .answer").first.click()
    # the map and what stands around it follow
    wait_for_labelled(page, before + 1)
    page.locator(".st-key-inspected-item", has_text="labelled A").wait_for()
    # a page that was loaded again takes it back, though nobody has chosen what stands there now
    page.reload()
    mapped(page, server, labelled)
    page.locator(".gallery .tile").wait_for()
    page.keyboard.press("z")
    wait_for_labelled(page, before)


@pytest.mark.slow  # alone: the map without a mouse
def test_keys_walk_over_the_map_choose_and_label_once(page: Any, server: Server, labelled: str) -> None:
    mapped(page, server, labelled)
    before = count(page)
    walk = page.locator(".walk")
    walk.focus()
    # to the left edge: whatever lies there is open or labelled, and is read out
    for _ in range(3):
        walk.press("ArrowLeft")
    page.wait_for_function("document.querySelector('.workbench-cursor').style.display === 'block'")
    name = walk.inner_text().partition("clears.")[2].partition("·")[0].strip()
    assert "predicted" in walk.inner_text() and name
    walk.press("Enter")
    page.wait_for_function(
        "name => (document.querySelector('.st-key-inspected-item h2') || {innerText: ''})"
        ".innerText.trim() === 'Item ' + name",
        arg=name,
    )
    settled(page)
    was_open = "not labelled" in page.locator(".st-key-inspected-item").inner_text()
    item = walk.get_attribute("data-item")
    page.locator(f".gallery .tile[data-item='{item}']").wait_for()
    page.keyboard.press("b")
    page.locator(".gallery .message", has_text="1 item labelled B.").wait_for()
    wait_for_labelled(page, before + was_open)
    page.keyboard.press("z")
    wait_for_labelled(page, before)


@pytest.mark.slow  # alone: a picture beside the pointer, drawn
def test_pointing_at_an_image_shows_it(page: Any, server: Server) -> None:
    start_digits(page, server)
    page.wait_for_selector(".st-key-oracle")
    settled(page)
    page.click(".st-key-oracle-10 button")
    page.locator("[data-testid=stSidebar]", has_text="10 of ").wait_for(timeout=4 * PATIENCE)
    mapped(page, server, query(page)["project"])
    place = """() => { const g = document.querySelector('[data-testid=stMain] .js-plotly-plot');
        const d = g._fullData.find(t => t.name === 'not labelled'), l = g._fullLayout;
        const box = g.getBoundingClientRect();
        return [box.left + l.xaxis._offset + l.xaxis.d2p(d.x[0]),
                box.top + l.yaxis._offset + l.yaxis.d2p(d.y[0])]; }"""
    x, y = page.evaluate(place)
    page.mouse.move(x - 20, y)
    page.mouse.move(x, y, steps=4)
    page.wait_for_function(
        "(() => { const c = document.querySelector('.workbench-hover');"
        " return c && c.style.display === 'block' && c.firstChild.naturalWidth === 8; })()"
    )
    page.set_viewport_size({"width": 390, "height": 800})
    item, tools = (page.locator(f".st-key-{key}").bounding_box() for key in ("inspected-item", "map-tools"))
    assert item["y"] < tools["y"], "the item follows its map, and the map's controls come last"


@pytest.mark.slow  # alone: many items at once, and their one undo
def test_a_lasso_labels_many(page: Any, server: Server, labelled: str) -> None:
    mapped(page, server, labelled)
    page.locator(CIRCLE).first.hover()
    page.locator(f"{CIRCLE} [data-val=lasso]").first.click()
    box = page.locator(f"{CIRCLE} .nsewdrag").first.bounding_box()
    left, top = box["x"] + 0.02 * box["width"], box["y"] + 0.02 * box["height"]
    wide, tall = 0.25 * box["width"], 0.96 * box["height"]
    page.mouse.move(left, top)
    page.mouse.down()
    for dx, dy in ((1, 0), (1, 1), (0, 1), (0, 0.02)):
        page.mouse.move(left + dx * wide, top + dy * tall, steps=6)
    page.mouse.up()
    page.wait_for_selector(".st-key-inspected-items h2")
    many = int(page.locator(".st-key-inspected-items h2").inner_text().split()[0])
    assert many > 1
    before = count(page)
    page.locator(".gallery .tile[aria-selected=true]").nth(many - 1).wait_for()
    page.keyboard.press("b")
    page.locator(".gallery .message", has_text="items labelled B.").wait_for()
    page.wait_for_function(
        "n => /([0-9]+) of /.exec(document.querySelector('[data-testid=stSidebar]')?.innerText)[1] > n",
        arg=before,
    )
    assert count(page) <= before + many


@pytest.mark.slow  # three draws are computed here: what one draw gives is stored
def test_an_experiment_streams_its_curves_and_the_figure_is_taken_away(page: Any, server: Server) -> None:
    visit(page, f"{server.url}/calibration?experiment=likelihoods&noise=0.5&draws=3")
    page.locator(".st-key-start-experiment button").first.click()
    page.wait_for_function(
        "document.querySelector('[data-testid=stMain]').textContent.includes('of 8 curves so far')",
        timeout=3 * PATIENCE,
    )
    # a part of it can be looked at while the rest is fitted, and a reload finds it again
    page.reload()
    page.wait_for_selector("[class*=st-key-save-lesson-likelihoods]", timeout=6 * PATIENCE)
    settled(page)
    assert query(page) == {"experiment": "likelihoods", "noise": "0.5", "draws": "3"}
    page.locator("[class*=st-key-save-lesson-likelihoods] button").first.click()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Interactive page (HTML)").click()
    saved = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert waiting.value.suggested_filename == "workbench-likelihoods.html" and "Exact Bayes" in saved
    # another part leaves this one's values out of the address
    page.get_by_text("With fewer points", exact=True).click()
    page.wait_for_function("location.search.includes('trade-offs')")
    page.wait_for_function("!location.search.includes('draws')")


@pytest.mark.slow  # alone: two maps that move together
def test_rounds_and_models_side_by_side(page: Any, server: Server, labelled: str) -> None:
    mapped(page, server, labelled)
    page.get_by_text("Side by side", exact=True).click()
    page.wait_for_selector(".st-key-against")
    page.wait_for_function(
        "(() => { const g = document.querySelector('[data-testid=stMain] .js-plotly-plot');"
        " return g && g._fullLayout && g._fullLayout.xaxis2; })()",
        timeout=3 * PATIENCE,
    )
    settled(page)
    assert page.evaluate(
        "(() => { const l = document.querySelector('[data-testid=stMain] .js-plotly-plot')._fullLayout;"
        " return (l.xaxis2.matches || l.xaxis.matches) && (l.yaxis2.matches || l.yaxis.matches); })()"
    )


@pytest.mark.slow  # alone: themes of two browsers on one server at once
def test_two_teachers_each_keep_their_theme(browser: Any, server: Server) -> None:
    grounds = {}
    contexts = [browser.new_context(color_scheme=scheme) for scheme in ("light", "dark")]
    pages = [context.new_page() for context in contexts]
    # both at once, then once more
    for one in (*pages, *pages):
        one.set_default_timeout(PATIENCE)
        visit(one, f"{server.url}/lessons?lesson=inducing&points=16&class=1")
        computed(one)
        grounds[one] = one.evaluate(
            "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
        )
    light, dark = (sum(map(int, re.findall(r"\d+", grounds[one])[:3])) for one in pages)
    assert light > 600 and dark < 150
    for context in contexts:
        context.close()
