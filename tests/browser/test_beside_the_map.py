"""Keys of the gallery beside a map: of what somebody chose there and saw."""

from __future__ import annotations

from typing import Any

from benchmarks.driving import Server
from tests.browser.scripts import GALLERY, script
from workbench.app.desk.keys import keys_for

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
