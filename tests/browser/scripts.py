"""Scripts of the components on a page of their own, over a stand-in for the server; a walk by Tab."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.app.desk import component

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
