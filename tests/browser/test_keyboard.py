"""The focus keeps its keys on every page; what a person did goes out as theirs and no other's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driving import PATIENCE, Server, settled, visit
from tests.browser.homes import answered, store_of
from tests.browser.test_labelling import DESK, SAVED, at_the_desk, item_of, press, press_and_wait
from workbench.app.desk import component
from workbench.app.desk.keys import keys_for
from workbench.sessions import Session

# clicks are noted and go no further, so that a walk presses everything and changes nothing
WATCH = """() => {
    const seen = window.seen = { clicks: [], keys: [], sent: [] };
    window.addEventListener('click', event => {
        seen.clicks.push(event.composedPath()[0]);
        event.preventDefault();
        event.stopImmediatePropagation();
    }, true);
    // whoever takes a key for themselves does so before it comes here
    document.addEventListener('keydown', event => seen.keys.push(event.key), true);
    const plain = window.fetch;
    window.fetch = (where, how) => {
        const body = how && typeof how.body === 'string' ? JSON.parse(how.body) : {};
        seen.sent.push(...(body.ops || []));
        return plain(where, how);
    };
    window.focused = () => {
        let found = document.activeElement;
        while (found?.shadowRoot?.activeElement) found = found.shadowRoot.activeElement;
        return found;
    };
}"""
# the element with the focus, once each; null for one that does not press, "" at the end of the walk
NEXT = """() => {
    const found = window.focused();
    if (!found || found === document.body || found.walked) return "";
    found.walked = true;
    // the gallery's tiles are what its keys act on: Space is Large there
    const pressed = 'button, a[href], summary, [role=button], [role=link]';
    if (!found.matches(pressed) || found.matches('[role=option]')) return null;
    return found.tagName + ' ' + (found.innerText || found.ariaLabel || found.title || '?').slice(0, 40);
}"""
CLICKED = """() => {
    const found = window.focused(), { clicks, keys } = window.seen;
    const done = [keys.splice(0), clicks.splice(0).some(one => found === one || found.contains(one))];
    return done;
}"""


def walked(page: Any) -> list[str]:
    """Tab through a page and press Enter and Space on all that can be pressed; what was lost, in words."""
    page.evaluate(WATCH)
    lost, found = [], 0
    for _ in range(200):
        page.keyboard.press("Tab")
        name = page.evaluate(NEXT)
        if name == "":
            break
        if name is None:
            continue
        found += 1
        for key in ("Enter", " "):
            # a line that is drawn anew between the press and the look has another button there: once more
            for _ in range(3):
                page.keyboard.press(key)
                reached, clicked = page.evaluate(CLICKED)
                if clicked or key not in reached:
                    break
            if key not in reached:
                lost.append(f"{name}: {key!r} was taken from it")
            elif not clicked and not (key == " " and name.startswith("A ")):
                lost.append(f"{name}: {key!r} did not press it")
    assert found > 5, "the walk ended at its beginning"
    sent = page.evaluate("() => window.seen.sent")
    return [*lost, *(f"sent: {one}" for one in sent)]


@pytest.fixture(scope="module")
def learnt(server: Server) -> str:
    """A project whose model has a guess for every item."""
    return answered(server, "digits", 20, name="Learnt digits")


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


@pytest.mark.slow  # alone: the keyboard inside the gallery
def test_enter_and_space_are_those_of_what_has_the_focus_in_the_gallery(
    page: Any, server: Server, learnt: str
) -> None:
    visit(page, f"{server.url}/history?project={learnt}")
    page.wait_for_selector(".gallery .tile")
    settled(page)
    assert [one for one in walked(page) if "was taken" in one or "sent" in one] == []


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
    page.wait_for_function(SAVED)
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
        bob.label_items(items, bob.classes[0])
    for route in held:
        route.continue_()
    page.unroute("**/sync")
    page.locator(".desk .message", has_text="confirmed as").wait_for(timeout=PATIENCE)
    told = page.locator(".desk .message").inner_text()
    assert told.startswith(f"{n - 3:,} item") and "2 were answered" in told


def script(*names: str) -> str:
    """Scripts of a component as a page takes them, its entrance as `window.component`."""
    folder = Path(component.__file__).parent
    whole = "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
    return f"(() => {{ {whole.replace('export default function', 'window.component = function')} }})()"


# a gallery of two decisions over a stand-in for the server: what is sent is kept
GALLERY = """([commands, classes]) => {
    window.sent = [];
    window.fetch = async (where, how) => {
        const { ops } = JSON.parse(how.body);
        window.sent.push(...ops.map(one => [one.kind, one.items || one.item || null]));
        const acks = ops.map(one => ({ op: one.op, status: 'saved', why: '' }));
        for (const one of ops) window.last = one.kind === 'undo' ? null : one.op;
        const numbers = { undoable: Boolean(window.last), last: window.last || null };
        window.replies = (window.replies || 0) + 1;
        return new Response(JSON.stringify({ acks, numbers }));
    };
    const face = { kind: 'text', text: 'a text' };
    const given = { kind: 'label', class: classes[0].name };
    const cards = [0, 1].map(item => ({ item, id: String(item), face, ...given }));
    const who = { project: 'p', person: 'Ann', account: '', token: 't', base: '/b' };
    const data = { ...who, stamp: '', most_buttons: 31, cards, classes, commands };
    window.component({ data, parentElement: document.body, setTriggerValue() {} });
}"""


def test_keys_of_classes_come_before_the_gallerys(page: Any, server: Server) -> None:
    names = ["cat", "ox"]
    found = keys_for(names, {"ox": "x"})
    classes = [{"name": name, "key": key} for name, key in zip(names, found.classes, strict=True)]
    page.goto(f"{server.url}/_stcore/health")  # an empty page of the same origin
    page.evaluate(script("keyboard.js", "parts.js", "review.js"))
    page.evaluate(GALLERY, [found.commands, classes])
    page.locator("[data-command=undo][disabled]").wait_for()
    page.wait_for_function("window.replies >= 1")
    page.keyboard.press("z")  # nothing was done yet, so nothing is taken back
    page.locator(".message", has_text="Nothing to undo.").wait_for()
    page.keyboard.press("x")  # the class's key: the first is an ox, and the next one stands
    page.wait_for_function("window.sent.length === 1")
    page.keyboard.press("Shift+X")  # chosen, not labelled
    assert page.locator("[aria-selected=true]").count() == 1
    page.keyboard.press("Backspace")
    page.wait_for_function("window.sent.length === 2")
    page.keyboard.press("z")
    page.wait_for_function("window.sent.length === 3")
    assert page.evaluate("window.sent") == [["relabel", [0]], ["clear", [1]], ["undo", None]]


# a gallery of two questions whose server is played by hand: `play(statuses)` answers what was sent since
TWO = """() => {
    const face = { kind: 'text', text: 'a text' };
    const card = (item, question, of, says, said = []) =>
        ({ item, id: `i${item}`, question, class: of, kind: 'label', says, said, verdict: 'wrong', face });
    const names = (...of) => of.map((name, place) => ({ name, key: `${place + 1}` }));
    const cards = [card(1, 'topic', 'cat', 'dog'), card(2, 'fraud', 'no', 'yes'),
        card(3, 'topic', 'dog', 'dog', ['a: dog', 'b: cat'])];
    const asks = { fraud: names('no', 'yes'), topic: names('cat', 'dog') };
    const gallery = new Gallery({ project: 'p', person: 'Ann', account: '', token: 't', base: '/b', stamp: '',
        most_buttons: 31, commands: { undo: 'z' }, classes: [], asked: asks, cards });
    gallery.pump = () => {};
    window.choose = (...places) => places.forEach(place => { gallery.go(place); gallery.pick(); });
    window.play = (status, about) => {
        const asked = gallery.sends();
        const acks = asked.map(({ op }) => ({ op, status, why: status === 'saved' ? '' : 'No.', about }));
        const last = gallery.history.flat().at(-1)?.op || null;
        gallery.take_in({ acks, numbers: { undoable: true, last } }, { ops: asked });
        return asked.map(({ kind }) => kind);
    };
    window.gallery = gallery;
    window.shown = () => gallery.tiles.map(tile => tile.querySelector('.given').textContent).join(' ');
    window.marked = () => gallery.tiles.filter(tile => tile.getAttribute('aria-selected') === 'true').length;
}"""


def test_a_tile_of_the_gallery_shows_what_is_stored_and_one_step_back_is_one_press(
    page: Any, server: Server
) -> None:
    whole = script("keyboard.js", "parts.js", "review.js")
    cases = {
        # an act of another question is taken back as the last one, wherever it was done
        """gallery.relabel('dog'); play('saved'); const { op } = gallery.history[0][0];
        gallery.numbers.last = ''; gallery.undo(); play('saved', { op, words: '', items: [{ item: 1 }] });
        return [shown(), gallery.cards[0].changed]""": ["cat no dog", False],
        # an undo that the server refuses
        """gallery.relabel('dog'); play('saved'); gallery.undo(); const before = shown(); play('conflict');
        return [before, shown(), gallery.history.length]""": ["cat no dog", "dog no dog", 1],
        # a key about what is chosen in another question, and about more than one question
        """choose(0); gallery.go(1); gallery.relabel('yes'); const kinds = play('saved');
        return [kinds, marked(), gallery.message.textContent.includes('another question')]""": [[], 1, True],
        """choose(0, 1); gallery.relabel('yes'); play('saved');
        return [shown(), marked(), gallery.message.textContent]""": [
            "cat yes dog",
            0,
            "1 item labelled yes. 1 chosen item of another question left as it is. Z takes it back.",
        ],
        # two classes in two questions are one step
        """choose(0, 1); gallery.agree(); play('saved'); const now = shown(); gallery.undo();
        return [now, play('saved'), shown(), gallery.history.length]""": [
            "dog yes dog",
            ["undo", "undo"],
            "cat no dog",
            0,
        ],
        """choose(0, 1); gallery.agree(); play('saved'); gallery.undo(); play('conflict');
        return [shown(), gallery.history.length]""": ["dog yes dog", 1],
        # labels that are right are kept, and one press takes that back, too
        """choose(0, 1); gallery.keep(); const kinds = play('saved');
        const kept = gallery.cards.map(card => card.kept);
        gallery.undo(); return [kinds, shown(), kept, play('saved'), gallery.cards[0].kept]""": [
            ["relabel", "relabel"],
            "cat no dog",
            [True, True, None],
            ["undo", "undo"],
            False,
        ],
        # the model sides with some of those who differ
        "gallery.go(2); gallery.agree(); return play('saved')": ["relabel"],
    }
    page.goto(f"{server.url}/_stcore/health")
    page.evaluate(
        whole.replace("window.component = function", "window.Gallery = Gallery; window.component = function")
    )
    for case, expected in cases.items():
        page.evaluate(TWO)
        assert page.evaluate(f"() => {{ {case} }}") == expected, case


# a gallery of two flowers beside a map; `press` is a key, `sent` gives what it had it send
BESIDE = """offered => {
    localStorage.clear();
    window.time = 1000;
    Date.now = () => window.time;
    window.timers = [];
    window.setTimeout = act => window.timers.push(act);
    const face = { kind: 'text', text: 'a text' };
    const given = { kind: 'label', people: ['Ann'], face };
    const card = (item, of, says) => ({ item, id: `i${item}`, class: of, says, ...given });
    const who = { project: 'p', person: 'Ann', account: '', token: 't', base: '/b' };
    const of = { ...who, most_buttons: 31, beside: true };
    const commands = { undo: 'z', keep: 'k', clear: 'Backspace', choose: 'x', like: 'm' };
    const classes = [{ name: 'cat', key: '1' }, { name: 'dog', key: '2' }];
    const shown = { ...of, stamp: '', offered, commands, classes,
        cards: [card(1, 'cat', 'dog'), card(2, 'dog', 'cat')].slice(0, offered ? 1 : 2) };
    window.gallery = new Gallery(shown);
    window.renewed = 0;
    gallery.pump = () => {};
    gallery.mount(document.body);
    window.other = more => gallery.update(
        { ...shown, stamp: String(Math.random()), ...more }, () => renewed++);
    window.press = (key, target = document.body) => gallery.key(Object.assign(
        new KeyboardEvent('keydown', { key, code: key }), { composedPath: () => [target] }));
    window.sent = () => gallery.sends().map(one => [one.kind, one.items]);
}"""


def test_beside_the_map_a_key_is_of_what_somebody_chose_and_saw(page: Any, server: Server) -> None:
    """Of a selection that nobody looked at a class is one key; to keep or to remove is not."""
    one, both = ["choose", [1]], ["choose", [1, 2]]
    cases = {
        "for (const key of ['1', 'k', 'm', 'Backspace']) press(key); return sent()": (True, []),
        "press('1'); gallery.tiles[0].click(); press('2'); return sent()": (True, [one]),
        "press('x'); press('2'); return sent()": (True, [one]),
        # nor is a class that is typed
        "other({ most_buttons: 0 }); time += 400; gallery.box.value = 'dog'; gallery.drawAnswers();"
        " const typed = Object.assign("
        " new KeyboardEvent('keydown', { key: 'Enter' }), { composedPath: () => [gallery.box] });"
        " const enter = () => gallery.searchKey(typed);"
        " enter(); const none = sent().length; gallery.tiles[0].click(); enter(); return [none, ...sent()]": (
            True,
            [0, one],
        ),
        "press('k'); press('Backspace'); return [...sent(), gallery.message.textContent.slice(0, 30)]": (
            False,
            ["This key is not of 2 items at "],
        ),
        # their buttons act, and show no key before it is one
        "const hints = () => gallery.commands.querySelectorAll('kbd').length; const before = hints();"
        " gallery.tiles[0].click(); return hints() - before": (False, 2),
        "gallery.commands.querySelector('[data-command=clear]').click(); return sent()": (
            False,
            [["clear", [1, 2]]],
        ),
        "press('2'); return sent()": (False, [one]),
        "gallery.tiles[0].click(); press('2'); press('k'); return sent()": (False, [one, ["relabel", [2]]]),
        "press('x'); press('Backspace'); return sent()": (False, [["clear", [2]]]),
        # what was chosen on the map is awaited, and seen before a key is of it; undo is always taken
        "dispatchEvent(new Event('workbench-chosen')); press('2'); return sent()": (False, []),
        "other(); press('2'); const early = sent().length; time += 400; press('2');"
        " return [early, ...sent()]": (
            False,
            [0, one],
        ),
        "other(); time += 400; other(); press('2'); return sent()": (False, []),
        "dispatchEvent(new Event('workbench-chosen')); other(); press('2'); return sent()": (False, [one]),
        # of two clicks the first one's item may come in between
        "dispatchEvent(new CustomEvent('workbench-chosen', { detail: [7] })); other(); press('2');"
        " const none = sent().length; other({ cards: [{ ...gallery.cards[0], item: 7 }] }); press('2');"
        " return [none, ...sent()]": (False, [0, ["choose", [7]]]),
        # on a slow machine, too, and a key that is not taken says why
        "dispatchEvent(new Event('workbench-chosen')); time += 5000; press('2'); const none = sent().length;"
        " other(); press('2'); return [none, ...sent()]": (False, [0, one]),
        "other(); press('2'); return gallery.message.textContent": (
            False,
            "This item came a moment ago: look at it, and press the key again.",
        ),
        # one item stands above its answers, so that it is in sight; of several the answers are
        "return [...gallery.node.children].map(one => one.classList[0])": (True, ["grid", "tools"]),
        "other(); return [...gallery.node.children].map(one => one.classList[0])": (False, ["tools", "grid"]),
        # a page that was loaded again takes back what was done before
        "press('z'); return sent().map(([kind]) => kind)": (True, ["undo"]),
        # over the map a key is of the item in the ring alone
        "const at = document.createElement('p'); at.className = 'walk'; at.dataset.item = '7';"
        " press('2', at); const none = sent().length; at.dataset.item = '1'; press('2', at);"
        " return [none, ...sent()]": (
            False,
            [0, one],
        ),
        # what others said is said by one self, too
        "other({ person: 'Bob' }); time += 400; press('1'); return sent()": (False, [both]),
        # several classes are one step back, also when something else stands there
        "press('m'); other(); press('z'); return sent().map(([kind]) => kind)": (
            False,
            ["choose", "choose", "undo", "undo"],
        ),
        # the map is not drawn anew under a lasso
        "press('2'); other(); dispatchEvent(new Event('pointerdown')); const ops = gallery.sends();"
        " const acks = ops.map(({ op }) => ({ op, status: 'saved', why: '' }));"
        " gallery.take_in({ acks, numbers: {} }, { ops }); timers.pop()();"
        " const under = renewed; dispatchEvent(new Event('pointerup'));"
        " timers.pop()();"
        " return [under, renewed]": (False, [0, 1]),
    }
    whole = script("keyboard.js", "parts.js", "review.js")
    page.goto(f"{server.url}/_stcore/health")
    page.evaluate(
        whole.replace("window.component = function", "window.Gallery = Gallery; window.component = function")
    )
    for case, (offered, expected) in cases.items():
        page.evaluate(BESIDE, offered)
        assert page.evaluate(f"() => {{ {case} }}") == expected, case


def test_who_is_shut_out_of_the_gallery_saves_what_waits_as_a_file(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/_stcore/health")
    page.evaluate(script("keyboard.js", "parts.js", "review.js"))
    page.evaluate(GALLERY, [keys_for(["cat"]).commands, [{"name": "cat", "key": "1"}]])
    page.wait_for_function("window.replies >= 1")
    why = "{ why: 'Ann has closed it to you.', shut: true }"
    page.evaluate(f"window.fetch = async () => new Response(JSON.stringify({why}), {{ status: 403 }})")
    page.keyboard.press("f")
    page.locator(".status", has_text="closed to you; 1 kept in this browser").wait_for()
    with page.expect_download() as saved:
        page.locator("[data-command=kept]", has_text="Save the 1 kept answer as a file").click()
    (operation,) = json.loads(Path(saved.value.path()).read_text(encoding="utf-8"))
    assert (operation["kind"], operation["item"], operation["person"]) == ("flag", 0, "Ann")


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
    page.wait_for_function("window.sent.length >= 1")
    assert page.evaluate("[window.sent, window.desk.sends().length]") == [["label"], 0]
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
    page.wait_for_function("window.sent.length >= 1")
    assert page.evaluate("[window.sent, window.desk.sends().length, window.desk.view]") == [
        ["answers"],
        0,
        None,
    ]


def test_what_is_written_from_right_to_left_stands_so(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/_stcore/health")
    page.evaluate(script("keyboard.js", "parts.js", "review.js"))
    page.evaluate(
        GALLERY, [keys_for(["قط", "ox"]).commands, [{"name": "قط", "key": "1"}, {"name": "ox", "key": "2"}]]
    )
    shown = "one => getComputedStyle(one).direction"
    assert page.locator(".given").first.evaluate(shown) == "rtl"
    assert [one.evaluate(shown) for one in page.locator(".name bdi").all()] == ["rtl", "ltr"]
    assert page.locator(".text").first.get_attribute("dir") == "auto"


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


def test_of_a_selection_beside_the_map_one_key_labels_all_and_is_held_for_one(
    page: Any, server: Server
) -> None:
    page.goto(f"{server.url}/_stcore/health")
    page.evaluate(script("keyboard.js", "parts.js", "review.js"))
    beside = GALLERY.replace("stamp: ''", "stamp: '', beside: true").replace(
        "...given }", "kind: '', class: '' }"
    )
    page.evaluate(beside, [keys_for(["cat"]).commands, [{"name": "cat", "key": "1"}]])
    page.wait_for_function("window.replies >= 1")
    assert page.locator("[aria-selected=true]").count() == 2
    # a note is of all that are chosen, too
    page.keyboard.press("n")
    page.locator("textarea").fill("odd")
    page.keyboard.press("Control+Enter")
    page.wait_for_function("window.sent.length === 2")
    # the line over the map keeps arrows and Enter; a class counts there, too, and a key that is held once
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('p'), { className: 'walk', tabIndex: 0 }))"
    )
    page.locator(".walk").focus()
    for key in ("ArrowRight", "Enter"):
        page.keyboard.press(key)
    page.keyboard.down("1")
    page.keyboard.down("1")
    page.keyboard.up("1")
    page.keyboard.press("z")
    page.wait_for_function("window.sent.length === 4")
    assert page.evaluate("window.sent") == [["note", None], ["note", 1], ["choose", [0, 1]], ["undo", None]]
