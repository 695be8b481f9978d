"""The grid, the keys that other tests leave out, the table of classes, and a cell of the table of columns."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from benchmarks.driving import Server, settled, visit
from tests.browser.homes import answered, store_of
from tests.browser.test_bad_input import upload
from tests.browser.test_labelling import DESK, SAVED, another_than, at_the_desk, item_of, press_and_wait
from workbench.sessions import Session


def project(server: Server, n: int) -> str:
    """Iris with labels of every class, so that the server fits when the desk is opened."""
    return answered(server, "iris", n, fit=False)


def events(server: Server, project_id: str) -> Any:
    with store_of(server) as store:
        found = Session.open(project_id, store=store)
        return found.log.events, found.state


def saved(page: Any) -> None:
    page.wait_for_function(SAVED)


@pytest.mark.slow  # alone: grid, accept, unsure and redo as keys, and what each stores
def test_a_grid_is_one_event_and_the_other_keys_do_what_they_say(page: Any, server: Server) -> None:
    id_ = project(server, 12)
    visit(page, f"{server.url}/label?project={id_}")
    at_the_desk(page)
    page.locator(".desk [data-command=grid]:not([disabled])").wait_for()

    # letters and clicks take out the wrong ones, one key confirms the rest
    page.keyboard.press("g")
    tiles = page.locator(".overlay .tile")
    tiles.first.wait_for()
    n = tiles.count()
    assert n >= 4
    for key in "acc":  # the second c takes it back
        page.keyboard.press(key)
    tiles.nth(1).click()
    assert [tiles.nth(i).get_attribute("aria-pressed") for i in range(3)] == ["true", "true", "false"]
    title = str(page.locator(".overlay h2").inner_text())
    name = title.removeprefix("Which of these are not “").removesuffix("”?")
    page.locator(".overlay", has_text=f"Confirm {n - 2} items as {name}").wait_for()
    page.keyboard.press("Enter")
    saved(page)
    log, state = events(server, id_)
    (confirmed,) = [event for event in log if event.kind == "confirmed"]
    assert len(confirmed.payload["items"]) == n - 2 and len(confirmed.payload["rejected"]) == 2
    assert confirmed.payload["class"] == name and confirmed.payload["role"] == "confirmed"
    assert {state.labels[item] for item in confirmed.payload["items"]} == {name}
    page.keyboard.press("Backspace")  # one undo takes all of them back
    saved(page)
    assert events(server, id_)[1].n_labelled == 12

    # Enter accepts the guess, U is unsure; undo and redo with Control and without
    at_the_desk(page)
    while not page.locator(".desk .guess .bar").count():
        press_and_wait(page, "s")
    first = item_of(page)
    press_and_wait(page, "Enter")
    second = item_of(page)
    press_and_wait(page, "u")
    for undo, redo in (("z", "y"), ("Control+z", "Control+Shift+z")):
        page.keyboard.press(undo)
        page.wait_for_function(f"id => {DESK}?.querySelector('.title')?.innerText === id", arg=second)
        saved(page)
        page.locator(".desk [data-command=redo]:not([disabled])").wait_for()
        page.keyboard.press(redo)
        another_than(page, second)
        saved(page)
    # a flag and a note are taken back too, in their order
    page.keyboard.press("f")
    page.locator(".desk [data-command=flag]", has_text="Flagged").wait_for()
    page.keyboard.press("n")
    page.locator(".desk textarea").fill("odd")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    page.locator(".desk [data-command=flag]", has_text="Flagged").wait_for(state="detached")
    saved(page)
    assert not page.locator(".desk .message.bad").is_visible()
    log, state = events(server, id_)
    assert not state.flagged and not state.notes
    accepted = next(e for e in log if e.kind == "label" and e.payload.get("source") == "desk")
    assert str(accepted.item) == first
    assert state.votes[accepted.item]["root"].key == accepted.payload["class"]
    assert len(state.unsure) == 1 and [e.kind for e in log].count("undo") == 5


def cell(page: Any, table: str, x: int, right: int, row: int = 0) -> None:
    """Press on a row at x, then so many cells to the right, of a table that nothing draws anew."""
    page.locator(f"{table} canvas[data-testid=data-grid-canvas]").first.wait_for()
    settled(page)
    # what scrolls lies over the canvas; a click waits until it stands still
    page.locator(f"{table} .dvn-scroller").first.click(position={"x": x, "y": 52 + 35 * row})
    for _ in range(right):
        page.keyboard.press("ArrowRight")


def _late() -> type[Exception]:
    from playwright.sync_api import TimeoutError as LateError

    return LateError


def select(page: Any, table: str, column: int, row: int, x: int) -> None:
    """Select a cell: its row by the mouse at x, then along it by keys, until the table says that it is.

    A press while the page's script draws the table anew is lost, and made again.
    """
    page.locator(f"{table} canvas[data-testid=data-grid-canvas]").first.wait_for()
    settled(page)
    chosen = page.locator(f"{table} canvas [role=gridcell][aria-selected=true]")
    wanted = page.locator(f"{table} canvas #glide-cell-{column}-{row}[aria-selected=true]")
    for _ in range(20):
        # what scrolls lies over the canvas; a click waits until it stands still
        page.locator(f"{table} .dvn-scroller").first.click(position={"x": x, "y": 52 + 35 * row})
        with suppress(_late()):
            chosen.first.wait_for(state="attached", timeout=5_000)
            found = int(str(chosen.first.get_attribute("id")).split("-")[2])
            for _ in range(column - found):
                page.keyboard.press("ArrowRight")
            wanted.wait_for(state="attached", timeout=5_000)
            return
    raise AssertionError(f"cell {column} of row {row} was not selected")


def opened_cell(page: Any, table: str, column: int, row: int, x: int) -> Any:
    """Select a cell and open it for writing; the field it is written into."""
    box = page.locator("#portal textarea, #portal input").first
    for _ in range(5):
        select(page, table, column, row, x)
        page.keyboard.press("Enter")
        with suppress(_late()):
            box.wait_for(timeout=10_000)
            return box
    raise AssertionError(f"cell {column} of row {row} did not open")


def write(page: Any, text: str, go: str) -> None:
    """Write into the selected cell, and leave it."""
    page.keyboard.press("Enter")
    box = page.locator("#portal textarea, #portal input").first
    box.wait_for()
    box.fill(text)
    page.keyboard.press(go)
    box.wait_for(state="detached")


@pytest.mark.slow  # alone: a project that begins without classes
def test_a_class_is_typed_where_there_is_none_and_by_a_key_later(page: Any, server: Server) -> None:
    with store_of(server) as store:
        path = server.home / "letters.txt"
        path.write_text("".join(f"letter {i} of many\n" for i in range(20)), encoding="utf-8")
        id_ = Session.create(str(path), annotator="root", store=store).id
    visit(page, f"{server.url}/label?project={id_}")
    at_the_desk(page)
    page.locator(".desk .answers", has_text="no classes yet").wait_for()
    field = f"{DESK}?.activeElement?.matches('.naming input')"
    page.wait_for_function(field)
    # over all of the desk's width, not in a fifth of it
    widths = "['.naming .line', '.answers'].map((one) => " + DESK + "?.querySelector(one)?.offsetWidth)"
    line, answers = page.evaluate(widths)
    assert line > 0.6 * min(answers, 650)
    for n, name in enumerate(("alpha", "alpha", "beta 2")):
        before = item_of(page)
        page.keyboard.type(name)
        page.keyboard.press("Enter")
        another_than(page, before)
        saved(page)
        assert n == 2 or page.evaluate(field)
    page.wait_for_function(f"() => {DESK}?.querySelectorAll('.answer').length === 2")
    press_and_wait(page, "2")
    # a key opens the field later; those there are are offered, and what is called so is taken
    page.keyboard.press("+")
    page.keyboard.type("al")
    page.locator(".overlay .naming .answer", has_text="alpha").wait_for()
    page.keyboard.press("ArrowDown")
    press_and_wait(page, "Enter")
    page.keyboard.press("+")
    page.keyboard.type("gamma")
    press_and_wait(page, "Enter")
    page.locator(".desk .answer[data-class=gamma]").wait_for()
    state = events(server, id_)[1]
    assert state.classes == ("alpha", "beta 2", "gamma")
    assert sorted(state.labels.values()) == ["alpha", "alpha", "alpha", "beta 2", "beta 2", "gamma"]
    page.keyboard.press("z")  # the label and the class it brought
    page.locator(".desk .answer[data-class=gamma]").wait_for(state="detached")
    saved(page)
    assert events(server, id_)[1].classes == ("alpha", "beta 2")


@pytest.mark.slow  # alone: classes named in a table before the start
def test_classes_are_named_in_their_table_where_there_is_none(page: Any, server: Server) -> None:
    with store_of(server) as store:
        path = server.home / "words.txt"
        path.write_text("".join(f"word {i} of many\n" for i in range(20)), encoding="utf-8")
        id_ = Session.create(str(path), annotator="root", store=store).id
    visit(page, f"{server.url}/label?project={id_}")
    at_the_desk(page)
    page.click(".st-key-classes button")
    # the empty row below the names of the columns: a press begins a class
    page.locator("[role=dialog] canvas[data-testid=data-grid-canvas]").first.wait_for()
    settled(page)
    box = page.locator("#portal textarea, #portal input").first
    for _ in range(20):
        page.locator("[role=dialog] .dvn-scroller").first.click(position={"x": 90, "y": 52})
        with suppress(_late()):
            box.wait_for(timeout=10_000)
            break
    box.fill("good")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=dialog] >> text=1 change not saved yet")
    page.click(".st-key-classes-save button")
    page.locator(".desk .answers", has_text="One class so far: good").wait_for()
    assert events(server, id_)[1].classes == ("good",)


@pytest.mark.slow  # alone: a class gets a name, key, colour and help in its table; a merge
def test_classes_are_changed_in_their_table(page: Any, server: Server) -> None:
    id_ = project(server, 3)
    visit(page, f"{server.url}/label?project={id_}")
    at_the_desk(page)
    page.click(".st-key-classes button")
    select(page, "[role=dialog]", 2, 0, 90)
    for typed, go in (("a class", "Tab"), ("q", "Tab"), ("#2a9d5c", "Tab"), ("petals are short", "Enter")):
        write(page, typed, go)
    page.wait_for_selector("[role=dialog] >> text=4 changes not saved yet")
    page.click(".st-key-classes-save button")
    # its name comes first, then what was written about it
    button = page.locator(".desk .answer[data-class='a class'][title='a class: petals are short']")
    button.wait_for()
    assert button.locator("kbd").inner_text() == "Q" and "#2a9d5c" in str(button.get_attribute("style"))
    press_and_wait(page, "q")

    # the first of two merged classes is gone, its labels count as the other
    page.click(".st-key-classes button")
    # it names no classes by itself: a press merges nothing
    page.locator("[role=dialog] button", has_text="Merge").click()
    settled(page)
    assert not any(event.kind == "class-merged" for event in events(server, id_)[0])
    for key, name in (("class-to-merge", "a class"), ("class-merged-into", "versicolor")):
        page.locator(f".st-key-{key} input").click()
        page.locator("[role=option]", has_text=name).click()
        settled(page)
    page.locator("[role=dialog] button", has_text="Merge").click()
    page.wait_for_function(f"() => {DESK}?.querySelectorAll('.answer').length === 2")
    log, state = events(server, id_)
    assert state.classes == ("versicolor", "virginica")
    assert any(event.kind == "label" and event.payload["class"] == "setosa" for event in log)
    assert {event.kind for event in log} >= {"class-renamed", "class-described", "class-merged"}


def test_a_cell_of_the_table_of_columns_changes_its_own_column(page: Any, server: Server) -> None:
    rows = "".join(f"{i / 7},{('good', 'bad')[i % 2]},{i % 3}\n" for i in range(30))
    upload(page, server, ("size,verdict,count\n" + rows).encode())
    page.wait_for_selector(".st-key-columns")
    settled(page)
    assert not page.get_by_text("bad 15").count()
    opened_cell(page, ".st-key-columns", 1, 1, 60)
    page.keyboard.type("class")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=bad 15")
    settled(page)
    page.click(".st-key-start-own button")
    at_the_desk(page)
    assert page.locator(".desk .answer .name").all_inner_texts() == ["bad", "good"]
    page.wait_for_selector(".desk .stage >> text=count")


def test_the_label_of_an_alike_item_stands_below_its_text(page: Any, server: Server) -> None:
    path = server.home / "letters.csv"
    # more lines than a tile has
    texts = [f"The {word * 7} is long, {word * 9} " + f"and {word * 8} says so; " * 8 for word in "abcdef"]
    path.write_text("text,kind\n" + "".join(f'"{text}, four times",{text[4]}\n' for text in texts * 4))
    with store_of(server) as store:
        session = Session.create(
            str(path),
            pool_options={"target": "kind", "columns": {"text": "text"}},
            store=store,
            classifier="logistic-regression",
            annotator="root",
        )
    visit(page, f"{server.url}/label?project={session.id}")
    at_the_desk(page)
    page.keyboard.press("m")
    page.locator(".overlay .tile .given").first.wait_for()
    gaps = page.locator(".overlay .tile:has(.given)").evaluate_all(
        """tiles => tiles.map(tile => tile.querySelector('.given').getBoundingClientRect().top
            - tile.querySelector('.text').getBoundingClientRect().bottom)"""
    )
    assert gaps and min(gaps) >= 0
