"""The main job as a person does it: keys, undo, reload, a second tab, a crash, the export."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.driving import HOST, PATIENCE, Server, settled, visit
from tests.browser.homes import store_of

DESK = f"{HOST}?.shadowRoot"
TITLE = f"({DESK}?.querySelector('.title')?.innerText || '')"
SAVED = f"() => {DESK}?.querySelector('.status')?.innerText.startsWith('all saved')"
# what stands about an item is drawn in a task behind its frame; a page that nobody sees has no frames
DRAWN = """() => document.hidden ||
  new Promise(next => requestAnimationFrame(() => setTimeout(() => next(true), 0)))"""


def at_the_desk(page: Any) -> None:
    """Wait until an item is on screen."""
    page.wait_for_selector(".desk .title:not(:empty)")
    page.wait_for_function(SAVED)


def start_digits(page: Any, server: Server) -> str:
    visit(page, server.url)
    page.click(".st-key-start-digits button")
    # an earlier test's project is on the same data: the page asks which is meant
    page.wait_for_selector(".desk .title:not(:empty), .st-key-start-a-new-one button")
    if page.locator(".st-key-start-a-new-one button").count():
        page.click(".st-key-start-a-new-one button")
    at_the_desk(page)
    project = re.search(r"project=(\w+)", page.url)
    assert project is not None
    return project.group(1)


def item_of(page: Any) -> str:
    page.wait_for_selector(".desk .title:not(:empty)")
    return str(page.locator(".desk .title").inner_text())


def another_than(page: Any, item: str) -> None:
    """Wait until another item stands, and all that belongs to it."""
    page.wait_for_function(f"item => !['', item].includes({TITLE})", arg=item)
    page.evaluate(DRAWN)


def press(page: Any, key: str) -> None:
    """Press a key and wait until another item stands; its answer may still be on its way."""
    before = item_of(page)
    page.keyboard.press(key)
    another_than(page, before)


def press_and_wait(page: Any, key: str) -> None:
    """Press a key and wait until another item stands and the answer is stored."""
    press(page, key)
    page.wait_for_function(SAVED)


def labelled(page: Any) -> int:
    """Number of labels that the sidebar shows."""
    words = page.locator("[data-testid=stSidebar]").inner_text()
    found = re.search(r"([\d,]+) of [\d,]+ items? labelled", words)
    assert found is not None, words
    return int(found.group(1).replace(",", ""))


def wait_for_labelled(page: Any, n: int) -> None:
    page.wait_for_function(
        "n => document.querySelector('[data-testid=stSidebar]')?.innerText.includes(n + ' of ')", arg=f"{n:,}"
    )


def exported(page: Any, what: str = "") -> pd.DataFrame:
    page.get_by_role("link", name="History").click()
    page.click(".st-key-export button")
    if what:
        page.locator(".st-key-export-what").get_by_role("combobox").click()
        page.get_by_role("option", name=what).click()
        settled(page)  # the link takes what the page last drew
    page.wait_for_selector(".st-key-download-labels a")
    with page.expect_download() as download:
        page.click(".st-key-download-labels a")
    with open(download.value.path(), "rb") as file:  # noqa: PTH123
        return pd.read_csv(io.BytesIO(file.read()), dtype=str)


def test_ten_items_by_keys_undo_reload_second_tab_and_export(page: Any, context: Any, server: Server) -> None:
    project = start_digits(page, server)
    given: dict[str, str] = {}
    for key in "0123456789":
        given[item_of(page)] = key
        press(page, key)
    assert len(given) == 10
    wait_for_labelled(page, 10)

    # undo brings the last item back, and a new answer replaces the old one
    last = list(given)[-1]
    press_and_wait(page, "z")
    assert item_of(page) == last
    wait_for_labelled(page, 9)
    given[last] = "7"
    press_and_wait(page, "7")
    wait_for_labelled(page, 10)

    # a reload and a second tab show the same item and the same numbers
    shown = item_of(page)
    page.reload()
    at_the_desk(page)
    assert item_of(page) == shown
    second = context.new_page()
    visit(second, f"{server.url}/label?project={project}")
    at_the_desk(second)
    assert item_of(second) == shown
    wait_for_labelled(second, 10)
    wait_for_labelled(page, 10)

    # the answer of one tab closes the question in the other
    press_and_wait(second, "4")
    given[shown] = "4"
    page.bring_to_front()
    another_than(page, shown)
    wait_for_labelled(page, 11)
    second.close()

    table = exported(page)
    assert dict(zip(table["id"], table["label"], strict=True)) == given


def test_every_fast_key_is_stored_once_on_the_item_that_was_on_screen(page: Any, server: Server) -> None:
    start_digits(page, server)
    # without waiting for anything: what an impatient finger does
    struck = page.evaluate(
        f"""async () => {{
            const struck = [], desk = {DESK};
            for (let i = 0; i < 40; i++) {{
                const shown = desk.querySelector('.title')?.innerText, key = String(i % 10);
                window.dispatchEvent(new KeyboardEvent('keydown', {{key, bubbles: true}}));
                if (shown) struck.push([shown, key]);
                await new Promise(next => setTimeout(next, 20));
            }}
            return struck;
        }}"""
    )
    page.wait_for_function(SAVED)
    assert struck
    table = exported(page)
    assert sorted(table[["id", "label"]].to_numpy().tolist()) == sorted(struck)


@pytest.mark.slow  # alone: what a press costs before the next frame
def test_the_keys_own_task_draws_the_item_and_nothing_else(page: Any, server: Server) -> None:
    start_digits(page, server)
    before, now, after = page.evaluate(
        f"""async () => {{
            const desk = {DESK};
            const parts = ['.answers', '.commands', '.aside'].map(name => desk.querySelector(name));
            const title = desk.querySelector('.title');
            const seen = () => [title.innerText, ...parts.map(part => part.firstChild)];
            const start = seen();
            const same = now => now.map((part, i) => part === start[i]);
            window.dispatchEvent(new KeyboardEvent('keydown', {{key: '1', bubbles: true}}));
            const now = same(seen());
            // the rest follows the frame; what draws it then is in a task behind this one's
            for (let i = 0; i < 3; i++)
                await new Promise(next => requestAnimationFrame(() => setTimeout(next, 0)));
            return [start[0], now, same(seen())];
        }}"""
    )
    assert before and now == [False, True, True, True], "only the item has changed"
    assert after == [False, False, False, False]
    page.wait_for_function(SAVED)


@pytest.mark.slow  # alone: answers outlive a server that is gone, in a real browser
def test_answers_wait_in_the_browser_while_the_server_is_gone(page: Any, own_server: Server) -> None:
    project = start_digits(page, own_server)
    given = {item_of(page): "6"}
    press_and_wait(page, "6")
    own_server.kill()
    # what is on the desk can still be answered
    for key in "12":
        given[item_of(page)] = key
        press(page, key)
    page.wait_for_function(
        f"() => {DESK}?.querySelector('.status')?.innerText.includes('2 kept in this browser')"
    )
    # and a reload without a server, then a new page, lose nothing: the next page delivers
    own_server.start()
    visit(page, f"{own_server.url}/label?project={project}")
    at_the_desk(page)
    wait_for_labelled(page, 3)
    table = exported(page)
    assert dict(zip(table["id"], table["label"], strict=True)) == given
    # and the Data page offers to go on
    visit(page, own_server.url)
    assert page.locator(f".st-key-open-{project} button").inner_text().strip() == "Go on"


DIALOGS = """new MutationObserver(() => {
    window.overlaid ||= Boolean(document.querySelector('[data-testid=stDialog]'));
}).observe(document, { childList: true, subtree: true })"""


@pytest.mark.slow  # alone: the server goes away under an open desk, and comes back
def test_the_desk_goes_on_while_the_server_is_gone_and_says_so_itself(page: Any, own_server: Server) -> None:
    page.add_init_script(DIALOGS)
    project = start_digits(page, own_server)
    own_server.kill()
    # a dialog of the page about its connection would lie over the item and take every key
    page.wait_for_function("window.overlaid && !document.querySelector('[data-testid=stDialog]')")
    given = {}
    while name := page.locator(".desk .title").inner_text():
        given[name] = "3"
        page.keyboard.press("3")
    assert len(given) >= 4
    words = f"{len(given)} answers are kept in this browser; more items come when the server is back."
    page.locator(".desk .empty", has_text=words).wait_for()
    own_server.start()
    at_the_desk(page)
    wait_for_labelled(page, len(given))
    with store_of(own_server) as store:
        assert sum(event.kind == "label" for event in store.events(project)) == len(given)


def test_the_model_learns_in_the_background_and_says_why(page: Any, server: Server) -> None:
    start_digits(page, server)
    for key in "01":
        press_and_wait(page, key)
    # nobody waits for the fit: the item is there at once, the guess comes with a later card
    page.wait_for_selector("[data-testid=stSidebar] >> text=Error on 359 measured items")
    while not page.locator(".desk .near figure").count():
        press_and_wait(page, "2")
    assert page.locator(".desk .guess .bar").count() >= 2
    page.get_by_role("button", name="Hide the model's guess").click()
    assert page.locator(".desk .near").count() == 0
    press_and_wait(page, "3")
    assert page.locator(".desk .guess").count() == 0
    assert page.locator("[data-testid=stException]").count() == 0


def test_commands_by_key_skip_flag_note_zoom_and_the_card_of_keys(page: Any, server: Server) -> None:
    start_digits(page, server)
    first = item_of(page)
    press_and_wait(page, "s")
    page.keyboard.press("f")
    page.locator(".desk [data-command=flag]", has_text="Flagged").wait_for()
    page.keyboard.press("n")
    page.locator(".desk textarea").fill("sssuuu 123")  # letters are no commands while writing
    page.keyboard.press("Control+Enter")
    page.keyboard.press(" ")
    page.wait_for_selector(".desk .zoomed img")
    # while an item is large, 1 is its own size and F the whole screen: neither answers, neither flags
    page.keyboard.press("1")
    page.wait_for_selector(".desk .zoomed.real img")
    page.keyboard.press("1")
    page.wait_for_selector(".desk .zoomed:not(.real) img")
    page.keyboard.press("f")
    page.wait_for_function("document.fullscreenElement !== null")
    page.keyboard.press("f")
    page.wait_for_function("document.fullscreenElement === null")
    page.keyboard.press(" ")
    page.wait_for_selector(".desk .zoomed img", state="detached")
    page.keyboard.press(" ")
    page.wait_for_selector(".desk .zoomed img")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.wait_for_selector(".desk .keys")
    page.keyboard.press("3")  # nothing is answered behind the card
    page.keyboard.press("Escape")
    page.wait_for_function(SAVED)
    second = item_of(page)
    assert second != first and labelled(page) == 0
    assert page.locator(".desk [data-command=flag]").inner_text().startswith("Flagged")
    page.keyboard.press("Control+z")  # the note
    page.wait_for_function(SAVED)


@pytest.mark.slow  # alone: the desk with more classes than keys
def test_seventy_seven_classes_are_searched_by_their_words(page: Any, server: Server, tmp_path: Path) -> None:
    from workbench.sessions import Session

    names = [f"{a}_{b}_{c}" for a in ("pending", "lost", "new") for b in ("cash", "card") for c in range(12)]
    long = [f"balance_not_updated_after_{what}" for what in ("bank_transfer", "cheque_or_cash_deposit")]
    names += [*long, "pending_cash_withdrawal", "supply", *(f"other {i}" for i in range(3))]
    path = tmp_path / "own.csv"
    path.write_text("a\n" + "".join(f"{i}.5\n" for i in range(40)))
    with store_of(server) as store:
        session = Session.create(str(path), classes=names, store=store)
    visit(page, f"{server.url}/label?project={session.id}")
    at_the_desk(page)
    # Enter takes what was typed or shown as a guess, and there is neither
    page.keyboard.press("Enter")
    page.locator(".desk", has_text="Type a word of the class").wait_for()
    assert page.locator(".desk [data-command=accept]").is_disabled()
    given = {}
    for typed, meant in (
        ("withdrawal cash", "pending_cash_withdrawal"),
        ("sup", "supply"),
        ("other 2", "other 2"),
    ):
        given[item_of(page)] = meant
        page.keyboard.type(typed)
        page.wait_for_function(
            f"name => {DESK}?.querySelector('.answer .name')?.innerText === name", arg=meant
        )
        press_and_wait(page, "Enter")
        # the box keeps the focus, and what is typed next is no command
        assert page.evaluate(f"() => {DESK}?.activeElement?.className") == "search"
    # a digit is the key of a class that was found, where no class has it at that place ("other 2" has)
    given[item_of(page)] = "lost_cash_1"
    page.keyboard.type("lost cash")
    page.wait_for_function(f"() => {DESK}?.querySelector('.answer kbd')?.innerText === 'Alt+1'")
    page.keyboard.type(" 1")
    page.wait_for_function(f"() => {DESK}?.querySelectorAll('.answer').length === 3")
    assert page.locator(".desk .answer kbd").all_inner_texts() == ["Alt+1", "2", "3"]
    press_and_wait(page, "Alt+1")
    given[item_of(page)] = "lost_card_11"
    page.keyboard.type("lost card 1")
    page.wait_for_function(f"() => {DESK}?.querySelectorAll('.answer').length === 3")
    press_and_wait(page, "3")
    # two names that differ at their ends can be told apart on a small screen
    page.set_viewport_size({"width": 1024, "height": 768})
    page.keyboard.type("balance")
    page.wait_for_function(f"() => {DESK}?.querySelectorAll('.answer').length === 2")
    cut = page.locator(".desk .answer .name").evaluate_all(
        "all => all.filter(e => e.scrollHeight > e.clientHeight + 1).map(e => e.innerText)"
    )
    assert cut == []
    page.keyboard.press("Escape")
    table = exported(page)
    assert dict(zip(table["id"], table["label"], strict=True)) == given


@pytest.mark.slow  # alone: a small window
def test_at_200_per_cent_an_item_and_its_answers_stand_on_one_screen(page: Any, server: Server) -> None:
    from workbench.sessions import Session

    start_digits(page, server)
    page.set_viewport_size({"width": 700, "height": 500})
    answers_on_screen = (
        f"() => [...{DESK}.querySelectorAll('.answer')]"
        ".every(e => e.getBoundingClientRect().bottom <= innerHeight)"
    )
    page.wait_for_function(answers_on_screen)
    # a short text has a frame of its own height
    path = server.home / "comments.csv"
    path.write_text("comment,age\n" + "".join(f"The office is cold on day {i},{i}\n" for i in range(30)))
    with store_of(server) as store:
        session = Session.create(
            str(path),
            pool_options={"columns": {"comment": "text", "age": "shown"}},
            classes=["Pay", "Office", "Leadership", "Workload", "Harassment"],
            store=store,
        )
    visit(page, f"{server.url}/label?project={session.id}")
    at_the_desk(page)
    page.wait_for_function(answers_on_screen)


@pytest.mark.slow  # alone: a phone
@pytest.mark.parametrize("lines", [1, 40])
def test_on_a_phone_an_item_and_its_answers_stand_on_one_screen(
    page: Any, server: Server, lines: int
) -> None:
    from workbench.sessions import Session

    path = server.home / f"letters-{lines}.csv"
    letters = ["\n".join(f"Line {k} of letter {i}" for k in range(lines)) for i in range(40)]
    path.write_text("text\n" + "".join(f'"{letter}"\n' for letter in letters))
    page.set_viewport_size({"width": 390, "height": 844})
    for n_classes, least in ((3, 250), (77, 150)):
        with store_of(server) as store:
            session = Session.create(
                str(path),
                pool_options={"columns": {"text": "text"}},
                classes=[f"change_exchange_rate_{i}" for i in range(n_classes)],
                store=store,
            )
        visit(page, f"{server.url}/label?project={session.id}")
        at_the_desk(page)
        page.wait_for_function(
            f"""least => {{
                const ends = name => {DESK}.querySelector(name).getBoundingClientRect();
                return ends('[data-command=accept]').bottom <= innerHeight && ends('.stage').height >= least;
            }}""",
            arg=least,
        )


@pytest.mark.slow  # alone: two browsers at one project at the same time
def test_two_named_people_get_different_items(browser: Any, server: Server) -> None:
    pages = []
    for name in ("Ann", "Bob"):
        context = browser.new_context(viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        if not pages:
            project = start_digits(page, server)
        else:
            visit(page, f"{server.url}/label?project={project}")
            at_the_desk(page)
        page.locator("[data-testid=stPopover] button").first.click()
        page.get_by_label("Your name").fill(name)
        page.get_by_role("button", name="Use this name").click()
        page.locator("[data-testid=stPopover] button", has_text=name).wait_for()
        # it makes way for the item by itself, and keys count at once
        page.get_by_label("Your name").wait_for(state="hidden")
        at_the_desk(page)
        pages.append((context, page))
    (_, ann), (_, bob) = pages
    assert item_of(ann) != item_of(bob)
    press_and_wait(ann, "1")
    press_and_wait(bob, "2")
    press_and_wait(ann, "z")  # her own, not his
    wait_for_labelled(bob, 1)
    bob.reload()
    bob.locator("[data-testid=stPopover] button", has_text="Bob").wait_for()
    for context, _ in pages:
        context.close()


@pytest.mark.parametrize(
    "path",
    ["label", *(pytest.param(p, marks=pytest.mark.slow) for p in ("compare", "uncertainty", "history"))],
)
def test_a_deep_link_on_a_fresh_page_has_its_menu_and_title(page: Any, server: Server, path: str) -> None:
    visit(page, f"{server.url}/{path}")
    assert page.title() == "Workbench" or page.title().lower().startswith(path)
    assert page.locator("h1").first.inner_text().lower() == path
    assert page.locator("[data-testid=stSidebarNav] a").count() >= 5
