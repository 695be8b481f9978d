"""The focus keeps its keys on every page; at the desk what a person did goes out as theirs and no other's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driving import PATIENCE, Server, settled, visit
from tests.browser.homes import store_of
from tests.browser.scripts import script, walked
from tests.browser.test_labelling import DESK, SAVED, at_the_desk, item_of, press, press_and_wait
from workbench.app.desk import component
from workbench.app.desk.keys import keys_for
from workbench.sessions import Session


def test_enter_and_space_are_those_of_what_has_the_focus_at_the_desk(
    page: Any, server: Server, learnt: str
) -> None:
    visit(page, f"{server.url}/label?project={learnt}")
    at_the_desk(page)
    page.wait_for_selector(".desk .guess .bar")
    shown = item_of(page)
    # a line of commands that is drawn anew, as with every fit, takes the focus from none of them
    page.evaluate(f"""() => {{
        const flag = {DESK}?.querySelector('[data-command=flag]');
        flag.focus();
        flag.click();
    }}""")
    page.wait_for_function(f"() => {DESK}?.activeElement?.dataset?.command === 'flag'")
    page.keyboard.press("z")
    page.wait_for_function(SAVED)
    assert walked(page) == []
    assert item_of(page) == shown


@pytest.mark.slow  # the pages without keys of their own, and the map: none of them takes one either
@pytest.mark.parametrize("path", ["", "compare", "uncertainty", "calibration", "adversarial", "lessons"])
def test_enter_and_space_are_those_of_what_has_the_focus(
    page: Any, server: Server, learnt: str, path: str
) -> None:
    visit(page, f"{server.url}/{path}?project={learnt}")
    assert [one for one in walked(page) if "was taken" in one or "sent" in one] == []


@pytest.mark.slow  # alone: what waits in a browser keeps its person
def test_what_ann_did_is_never_sent_as_bobs(page: Any, server: Server) -> None:
    with store_of(server) as store:
        project = Session.create("digits", annotator="root", store=store).id
    visit(page, f"{server.url}/label?project={project}")
    at_the_desk(page)
    sit_down(page, "Ann")
    at_the_desk(page)
    sent: list[Any] = []
    away = True

    def answer(route: Any) -> None:
        sent.extend(json.loads(route.request.post_data)["ops"])
        if away:
            route.abort()
        else:
            route.continue_()

    page.route("**/sync", answer)
    given = {item_of(page): "1"}
    press(page, "1")
    given[item_of(page)] = "2"
    press(page, "2")
    page.locator(".desk .status", has_text="2 kept in this browser").wait_for()
    sit_down(page, "Bob")
    sent.clear()
    away = False
    at_the_desk(page)
    page.locator(".desk .status", has_text="2 of Ann kept here").wait_for()
    press_and_wait(page, "5")
    assert {one["person"] for one in sent} == {"Bob"}
    sit_down(page, "Ann")
    page.wait_for_function(f"() => {DESK}?.querySelector('.status')?.innerText === 'all saved'")
    with store_of(server) as store:
        labels = [event for event in store.events(project) if event.kind == "label"]
    said = sorted((event.annotator, str(event.payload["class"])) for event in labels)
    assert said == [("Ann", "1"), ("Ann", "2"), ("Bob", "5")]


LAG = """(() => {
  const own = Object.getOwnPropertyDescriptor(WebSocket.prototype, 'onmessage');
  const listen = WebSocket.prototype.addEventListener;
  const late = (socket, heard) => (event) => setTimeout(() => heard.call(socket, event), window.lag || 0);
  Object.defineProperty(WebSocket.prototype, 'onmessage', {
    get() { return own.get.call(this); },
    set(heard) { own.set.call(this, late(this, heard)); },
  });
  WebSocket.prototype.addEventListener = function (kind, heard, ...rest) {
    return listen.call(this, kind, kind === 'message' ? late(this, heard) : heard, ...rest);
  };
})()"""
"""What the server sends reaches the page `window.lag` milliseconds later."""


@pytest.mark.slow  # alone: what is asked for before what was sent is there
def test_over_a_slow_connection_people_change_places(page: Any, server: Server) -> None:
    with store_of(server) as store:
        project = Session.create("digits", annotator="root", store=store).id
    page.add_init_script(LAG)
    visit(page, f"{server.url}/label?project={project}")
    at_the_desk(page)
    sit_down(page, "Ann")
    sit_down(page, "Bob")
    # two runs without the desk that was Ann's, and the browser lets go of it
    page.evaluate("window.lag = 700")
    for name in ("Ann", "Bob", "Ann"):
        sit_down(page, name)
    assert page.get_by_text("Connection error").count() == 0


def sit_down(page: Any, name: str) -> None:
    """Take a place under a name: the desk is theirs when this ends, its card may still be on its way."""
    field = page.get_by_label("Your name")
    page.locator("[data-testid=stPopover] button").first.click()
    # the field of the one before stays in the page until the script has run
    page.wait_for_function(
        "() => document.querySelectorAll('[data-testid=stPopoverBody] input[type=text]').length === 1"
    )
    field.fill(name)
    page.get_by_role("button", name="Use this name").click()
    page.locator("[data-testid=stPopover] button", has_text=name).wait_for()
    page.wait_for_function("() => !document.querySelector('[data-testid=stPopoverBody]')")
    page.wait_for_function(f"name => {DESK}?.querySelector('.desk')?.dataset.person === name", arg=name)


def waiting(project: str, person: str, operations: list[dict[str, Any]], raw: str = "") -> str:
    """A script that leaves operations in the browser, as a page that was closed has."""
    whose = {"person": person, "project": project, "time": ""}
    entries = {
        f"desk/{project}/{number:014}/old/0": json.dumps(one | whose) for number, one in enumerate(operations)
    }
    if raw:
        entries[f"desk/{project}/00000000000000/broken/0"] = raw
    return (
        f"for (const [key, value] of Object.entries({json.dumps(entries)})) localStorage.setItem(key, value);"
    )


def test_what_waits_is_sent_in_pieces_and_what_can_never_be_taken_is_set_aside(
    page: Any, server: Server
) -> None:
    with store_of(server) as store:
        project = Session.create("iris", annotator="root", store=store).id
    visit(page, server.url)
    page.context.add_cookies([{"name": "workbench-person", "value": "Ann", "url": server.url}])
    long = "\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 2000
    notes = [
        {"op": f"note-{n}", "kind": "note", "item": n, "text": long if n != 20 else "x" * 300_000}
        for n in range(45)
    ]
    notes[7]["item"] = "7"
    # what is left behind is adopted; one entry of it cannot be read, one is too much for any request
    page.evaluate(waiting(project, "Ann", notes, raw='{"op": '))
    visit(page, f"{server.url}/label?project={project}")
    at_the_desk(page)
    page.wait_for_function(SAVED)
    with store_of(server) as store:
        noted = {event.item for event in store.events(project) if event.kind == "note"}
    assert noted == {*range(45)} - {7, 20}
    page.get_by_role("button", name="3 set aside").click()
    kept = page.locator(".desk textarea").input_value()
    assert "The field item must be" in kept and "x" * 300_000 in kept and '{"op": ' in kept
    # it outlives a reload, until the person has thrown it away
    page.reload()
    at_the_desk(page)
    page.get_by_role("button", name="3 set aside").click()
    page.get_by_role("button", name="Throw away").click()
    page.locator(".desk button", has_text="set aside").wait_for(state="hidden")
    assert page.evaluate("Object.keys(localStorage).filter(key => key.includes('aside')).length") == 0
    press_and_wait(page, "1")


def test_a_server_that_asks_for_a_moment_gets_it(page: Any, server: Server) -> None:
    with store_of(server) as store:
        project = Session.create("digits", annotator="root", store=store).id
    visit(page, f"{server.url}/label?project={project}")
    at_the_desk(page)
    settled(page)  # a key that is pressed while the page is drawn anew is not taken
    sent: list[Any] = []

    def refuse(route: Any) -> None:
        sent.append(route)
        route.fulfill(status=429, json={"why": "the server takes 60 operations a second", "wait": 600})

    page.route("**/sync", refuse)
    page.keyboard.press("1")
    words = "the server takes 60 operations a second; 1 kept in this browser, sent again in 600 s"
    page.locator(".desk .status", has_text=words).wait_for(timeout=PATIENCE)
    asked = len(sent)
    page.keyboard.press("1")
    page.locator(".desk .status", has_text="2 kept in this browser").wait_for(timeout=PATIENCE)
    assert len(sent) == asked
    page.unroute("**/sync")
    page.reload()
    at_the_desk(page)
    page.wait_for_function(SAVED)
    with store_of(server) as store:
        assert sum(event.kind == "label" for event in store.events(project)) == 2


def test_a_grid_is_confirmed_when_the_server_has_said_so(page: Any, server: Server, learnt: str) -> None:
    visit(page, f"{server.url}/label?project={learnt}")
    at_the_desk(page)
    held: list[Any] = []
    page.locator(".desk [data-command=grid]:not([disabled])").wait_for()
    page.keyboard.press("g")
    page.wait_for_selector(".panel .tile")
    n = page.locator(".panel .tile").count()
    page.route(
        "**/sync",
        lambda route: held.append(route) if "grid" in route.request.post_data else route.continue_(),
    )
    # with every tile taken out there is nothing to confirm
    for place in range(n):
        page.keyboard.press("abcdefghijklmnopqrstuvwx"[place])
    assert page.locator(".panel .command.strong").is_disabled()
    page.keyboard.press("Enter")
    assert page.locator(".panel .tile").count() == n
    for place in range(1, n):
        page.keyboard.press("abcdefghijklmnopqrstuvwx"[place])
    page.keyboard.press("Enter")
    page.wait_for_function(f"() => {DESK}?.querySelector('.status')?.innerText.startsWith('saving')")
    assert "confirmed" not in page.locator(".desk .message").inner_text()
    page.wait_for_timeout(0)
    while not held:
        page.wait_for_timeout(10)
    asks = json.loads(held[0].request.post_data)["ops"][0]["asks"]
    # meanwhile somebody else answers two of them
    with store_of(server):
        bob = Session.open(learnt, annotator="bob")
        items = [bob.state.asks[ask].item for ask in asks[:2]]
        bob.items.label(items, bob.classes[0])
    for route in held:
        route.continue_()
    page.unroute("**/sync")
    page.locator(".desk .message", has_text="confirmed as").wait_for(timeout=PATIENCE)
    told = page.locator(".desk .message").inner_text()
    assert told.startswith(f"{n - 3:,} item") and "2 were answered" in told


def test_who_may_not_open_a_project_any_more_saves_what_waits_as_a_file(page: Any, server: Server) -> None:
    """Of this account's answers alone; nothing is shown where none wait."""
    page.goto(f"{server.url}/_stcore/health")
    page.evaluate(script("parts.js", "../shell/kept.js"))
    page.evaluate(
        """() => {
            const flag = (op, person) => JSON.stringify({ op, kind: 'flag', item: 0, person });
            localStorage.setItem('desk-k1/p/1', flag('a', 'Ann'));
            localStorage.setItem('desk-k2/p/1', flag('b', 'Bob'));
            document.body.innerHTML = '<div class="desk-place"></div>';
            window.mount = (project, person, account) =>
                window.component({ data: { project, person, account }, parentElement: document.body });
            window.mount('p', 'Ann', 'k1');
        }"""
    )
    page.locator(".message", has_text="1 answer of yours waits in this browser").wait_for()
    with page.expect_download() as saved:
        page.locator("[data-command=kept]", has_text="Save the 1 kept answer as a file").click()
    (operation,) = json.loads(Path(saved.value.path()).read_text(encoding="utf-8"))
    assert (operation["op"], operation["person"]) == ("a", "Ann")
    page.evaluate("window.mount('q', 'Ann', 'k1')")
    assert page.locator(".desk-place").inner_text() == ""


# a desk over a stand-in for the server, which answers a sync by window.answer(its operations)
STAND_IN = """commands => {
    const face = { kind: 'text', text: 'a text' };
    const numbers = { labelled: 0, total: 9, left: 9, model: null, undoable: false, told: 0, read: 0 };
    const card = item => ({ ask: `a${item}`, item, id: String(item), face, role: 'policy', why: '' });
    const classes = [{ name: 'cat', key: '1' }];
    const asked = [{ name: 'animal', classes }];
    window.replied = more => (
        { acks: [], queue: [card(1), card(2)], first: 'a1', numbers, asked, commands, ...more });
    window.answer = ops => window.replied({ acks: ops.map(({ op }) => ({ op, status: 'saved', why: '' })) });
    window.fetch = async (where, how) => {
        const made = window.answer(JSON.parse(how.body).ops || []);
        return made instanceof Response ? made : new Response(JSON.stringify(made));
    };
    const of = { project: 'p', account: '', token: 't', base: '/b', cookie: 'c', question: '?', below: '' };
    const shown = { ...of, ahead: 4, most_buttons: 31, commands, classes, asked, mode: '' };
    window.sit = person => window.component(
        { data: { ...shown, person }, parentElement: document.body, setTriggerValue() {} });
    window.sit('Ann');
    window.wants = () => {
        const desk = [...window.desks.values()][0];
        desk.fetches = desk.send({ kind: 'want', items: [5], text: 'x' }).op;
        desk.awaited.add(desk.fetches);
        desk.draw();
        return desk;
    };
}"""


@pytest.mark.parametrize(
    "case",
    [
        # the server cannot take it now: people go on with what is there
        "window.answer = () => new Response('{}', { status: 503 }); window.desk = window.wants()",
        # somebody else sits down while it waits
        "window.answer = () => new Promise(() => {}); window.desk = window.wants();"
        " window.answer = () => window.replied({}); desk.sending = false; window.sit('Bob')",
        # it can never be taken
        "window.answer = ops => ops.length ? new Response(JSON.stringify({ never: true, why: 'No.' }),"
        " { status: 400 }) : window.replied({}); window.desk = window.wants()",
        # what was done before it is told of while it still waits
        "window.desk = window.wants(); desk.awaited.add('u'); const acks = [{ op: 'u', status: 'saved' }];"
        " desk.take_in(window.replied({ acks, first: 'a2' }), { ops: [{ op: 'u' }], model: null });",
    ],
)
def test_the_desk_is_never_left_without_an_item_after_find(page: Any, server: Server, case: str) -> None:
    page.goto(f"{server.url}/_stcore/health")
    whole = script("keyboard.js", "parts.js", "told.js", "checks.js", "desk.js")
    page.evaluate(
        whole.replace("window.component = function", "window.desks = desks; window.component = function")
    )
    page.evaluate(STAND_IN, keys_for(["cat"]).commands)
    page.locator(".desk .title", has_text="1").wait_for()
    page.evaluate(f"() => {{ {case} }}")
    page.wait_for_function("window.desk.card !== null && !window.desk.fetches", timeout=20_000)
    assert not page.evaluate("window.desk.away")
    page.locator(".desk .title", has_text="1").or_(page.locator(".desk .title", has_text="2")).wait_for()


def test_an_undo_before_the_desk_has_looked_again_is_of_whatever_was_last(page: Any, server: Server) -> None:
    """A desk that comes back has old numbers: they do not say which decision is meant."""
    page.goto(f"{server.url}/_stcore/health")
    whole = script("keyboard.js", "parts.js", "told.js", "checks.js", "desk.js")
    page.evaluate(
        whole.replace("window.component = function", "window.desks = desks; window.component = function")
    )
    page.evaluate(STAND_IN, keys_for(["cat"]).commands)
    page.wait_for_function("[...window.desks.values()].at(-1).looked")
    targets = page.evaluate(
        """() => {
            const desk = [...window.desks.values()].at(-1);
            window.answer = () => new Promise(() => {});
            return [true, false].map(looked => {
                Object.assign(desk, { looked, numbers: { ...desk.numbers, undoable: true, last: 'old' } });
                desk.undo();
                return desk.outbox.of('Ann').at(-1).operation.target;
            });
        }"""
    )
    assert targets == ["old", None]


def test_a_key_that_means_nothing_says_so(page: Any, server: Server) -> None:
    """A letter of no class stores nothing; a key that is a view's own, such as an arrow, says nothing."""
    page.goto(f"{server.url}/_stcore/health")
    whole = script("keyboard.js", "parts.js", "told.js", "checks.js", "desk.js")
    page.evaluate(
        whole.replace("window.component = function", "window.desks = desks; window.component = function")
    )
    classes = "[{ name: 'cat', key: '1' }, { name: 'dog', key: '2' }]"
    page.evaluate(STAND_IN.replace("[{ name: 'cat', key: '1' }]", classes), keys_for(["cat", "dog"]).commands)
    page.locator(".desk .title", has_text="1").wait_for()
    page.evaluate("window.desk = [...window.desks.values()].at(-1)")
    shown = "desk.message.hidden ? '' : desk.message.textContent"
    for key, words in (("ArrowDown", ""), ("j", "J means nothing here. ? shows the keys.")):
        page.keyboard.press(key)
        assert page.evaluate(shown) == words
    assert page.evaluate("desk.sends().length") == 0 and page.evaluate("desk.card.item") == 1
    # what was said is not talked over, and a key that means something takes its place
    page.keyboard.press("1")
    page.locator(".desk .title", has_text="2").wait_for()
    assert "means nothing" not in page.evaluate(shown)


def test_a_held_key_a_lost_item_and_a_look_back_store_nothing_unread(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/_stcore/health")
    whole = script("keyboard.js", "parts.js", "told.js", "checks.js", "desk.js")
    page.evaluate(
        whole.replace("window.component = function", "window.desks = desks; window.component = function")
    )
    keep = """() => { window.desk = [...window.desks.values()].at(-1); const answer = window.answer;
        window.sent = []; window.answer = ops => {
            sent.push(...ops.map(one => one.kind));
            return answer(ops);
        }; }"""

    def sit(project: str, *changes: tuple[str, str]) -> None:
        text = STAND_IN.replace("project: 'p'", f"project: '{project}'")
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        page.evaluate(text, keys_for(["cat"]).commands)
        page.wait_for_function("[...window.desks.values()].at(-1).card !== null")
        page.evaluate(keep)

    # a key that is held in the field of very many classes counts once, whatever cards come
    two = ("[{ name: 'cat', key: '1' }]", "[{ name: 'cat', key: '1' }, { name: 'dog', key: '2' }]")
    sit("many", two, ("most_buttons: 31", "most_buttons: 0"), ("why: ''", "why: '', guess: [['cat', 0.9]]"))
    page.evaluate("window.desk.box.focus()")
    for _ in range(3):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    page.wait_for_function("window.sent.length >= 1 && !window.desk.sends().length")
    assert page.evaluate("window.sent") == ["label"]
    # a class that is typed is of the item below its window, also when somebody else has answered that
    sit("window")
    page.evaluate("window.desk.another()")
    page.keyboard.type("cat")
    page.evaluate(
        "desk.take_in(replied({ gone: [desk.card.ask], queue: [] }), { ops: [], model: null, have: [] })"
    )
    page.keyboard.press("Enter")
    assert page.evaluate("[window.sent, window.desk.sends().length]") == [[], 0]
    assert "Another item" in page.evaluate("window.desk.message.textContent")
    # a row that was skipped is looked at again: Enter alone answers none of its questions
    sit(
        "back",
        ("[{ name: 'animal', classes }]", "[{ name: 'animal', classes }, { name: 'odd', key: '2' }]"),
        ("why: ''", "why: '', questions: [{ name: 'animal', guess: [['cat', 0.9]] }, { name: 'odd' }]"),
    )
    page.evaluate("async () => { desk.skip(); await desk.back(); desk.confirm(); }")
    page.wait_for_function("window.sent.length >= 1 && !window.desk.sends().length")
    assert page.evaluate("[window.sent, window.desk.view]") == [["answers"], None]


def test_a_press_counts_by_its_letter_and_in_another_script_by_its_place(page: Any, server: Server) -> None:
    keys = ["1", "2", "s", "z", "m", "Shift+s", "+", "?"]
    presses = [
        ("s", "KeyS", False, "s"),
        ("S", "KeyS", True, "Shift+s"),
        ("z", "KeyY", False, "z"),  # QWERTZ
        ("&", "Digit1", False, "1"),  # AZERTY, whose digits are signs without Shift
        ("é", "Digit2", False, "2"),
        ("2", "Digit2", True, "2"),
        (",", "KeyM", False, ","),  # a sign there is not the letter of its place
        ("+", "Digit1", False, "+"),  # Czech: what means something goes first
        ("!", "Digit1", True, "!"),
        ("ы", "KeyS", False, "s"),
        ("Ы", "KeyS", True, "Shift+s"),
        ("σ", "KeyS", False, "s"),
        ("ד", "KeyS", False, "s"),
        ("س", "KeyS", False, "s"),
        ("١", "Digit1", False, "1"),
        ("Process", "KeyS", False, "s"),  # an input method's
        ("o", "KeyS", False, "o"),  # Dvorak: another letter's place is not its key
        ("ş", "KeyS", False, "ş"),
        ("ж", "Semicolon", False, "ж"),
        ("?", "Digit7", True, "?"),  # Russian
    ]
    page.goto(f"{server.url}/_stcore/health")
    script = Path(component.__file__).with_name("keyboard.js").read_text(encoding="utf-8")
    found = page.evaluate(
        f"""([keys, given]) => {{ {script}
            return given.map(([key, code, shiftKey]) =>
                pressed(new KeyboardEvent("keydown", {{ key, code, shiftKey }}), keys)); }}""",
        [keys, presses],
    )
    assert found == [wanted for *_, wanted in presses]
