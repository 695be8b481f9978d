"""Shared parts of the trials in a browser: they press keys and record what is acknowledged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.driving import HOST, PATIENCE, own_home, visit
from workbench.app.access.current import PERSON_COOKIE
from workbench.sessions import Session
from workbench.store import Store

DESK = f"{HOST}?.shadowRoot"
SAVED = f"() => {DESK}?.querySelector('.status')?.innerText.startsWith('all saved')"
_STANDS = f"() => {DESK}?.querySelector('.title')?.innerText && ({SAVED})()"
_ANOTHER = ".st-key-start-a-new-one button"
_STANDS_OR_ASKS = f"() => document.querySelector('{_ANOTHER}') || ({_STANDS})()"
# What a tab sent and what it was told is saved; kept where a reload does not lose it.
_EARS = """
(() => {
    const plain = window.fetch;
    const heard = JSON.parse(localStorage.getItem('trial') || '{"sent": {}, "saved": [], "turned": {}}');
    window.fetch = async (where, how) => {
        const answer = await plain(where, how);
        try {
            if (String(where).endsWith('/sync') && answer.ok) {
                for (const one of JSON.parse(how.body).ops) heard.sent[one.op] = one;
                const told = await answer.clone().json();
                for (const ack of told.acks || [])
                    if (ack.status === 'saved') heard.saved.push(ack.op);
                    else heard.turned[ack.op] = ack.why;
                localStorage.setItem('trial', JSON.stringify(heard));
            }
        } catch (error) {
            // the desk gives up on an answer that takes too long, and sends the same again
            if (error.name !== 'AbortError') heard.broken = String(error);
        }
        return answer;
    };
    window.trialHeard = () => heard;
})()
"""
# Press what the pause allows until the moment or the number is reached; [item, key, ms to the next item].
_HANDS = """
([keys, most, seconds, pause]) => {
    const struck = window.trialStruck = [];
    const root = () => HOST?.shadowRoot;
    const title = () => root()?.querySelector('.title')?.innerText || '';
    const sleep = (ms) => new Promise(next => setTimeout(next, ms));
    const end = performance.now() + 1000 * seconds;
    window.trialBusy = true; window.trialStop = false;
    (async () => {
        while (!window.trialStop && struck.length < most && performance.now() < end) {
            const before = title();
            if (!before) { await sleep(50); continue; }
            const key = keys[Math.floor(Math.random() * keys.length)];
            const began = performance.now();
            window.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
            while (title() === before && performance.now() - began < 2000) await sleep(1);
            if (title() !== before) {
                struck.push([before, key, performance.now() - began]);
                while (!title() && !window.trialStop && performance.now() < end) await sleep(1);
                struck[struck.length - 1].push(performance.now() - began);
            }
            await sleep(pause * (0.5 + Math.random()));
        }
        window.trialBusy = false;
    })();
}
""".replace("HOST", HOST)


class Struck(NamedTuple):
    """A key that was pressed.

    Attributes:
        id: of the item on screen.
        key: pressed.
        left: milliseconds until the item had left.
        next: milliseconds until the next one stood; more than `left` where the desk had run out.
    """

    id: str
    key: str
    left: float
    next: float


class Tab:
    """A page of its own browser profile, whose acknowledgements are written down.

    Args:
        browser: of Playwright.
        url: of the server.
    """

    def __init__(self, browser: Any, url: str) -> None:
        self.url = url
        self.project = ""
        self.context = browser.new_context(viewport={"width": 1400, "height": 1000})
        self.context.set_default_timeout(2 * PATIENCE)
        self.context.add_init_script(_EARS)
        self.page = self.context.new_page()
        self.struck: list[Struck] = []

    def start(self, card: str = "digits") -> str:
        """Make a project of a bundled pool, a further one where there is one already; its id."""
        visit(self.page, self.url)
        self.page.click(f".st-key-start-{card} button")
        self.page.wait_for_function(_STANDS_OR_ASKS)
        if self.page.locator(_ANOTHER).count():
            self.page.click(_ANOTHER)
        self.ready()
        found = re.search(r"project=(\w+)", self.page.url)
        assert found is not None
        self.project = found.group(1)
        return self.project

    def open(self, project: str, name: str = "") -> None:
        """Label in a project, under a name."""
        self.project = project
        if name:
            # as the desk keeps it for whoever gave a name in this browser
            self.context.add_cookies([{"name": PERSON_COOKIE, "value": name, "url": self.url}])
        visit(self.page, f"{self.url}/label?project={project}")
        self.ready()
        if name:
            self.page.locator("[data-testid=stPopover] button", has_text=name).wait_for()

    def ready(self) -> None:
        """Wait until an item stands and nothing waits to be stored."""
        self.page.wait_for_function(_STANDS)

    def press(self, most: int, seconds: float, pause: float, keys: str = "0123456789") -> None:
        """Begin to press keys; returns at once."""
        self.page.evaluate(_HANDS, [keys, most, seconds, pause])

    def rest(self) -> None:
        """Wait until the pressing has ended, and take down what was pressed."""
        self.page.wait_for_function("() => !window.trialBusy", timeout=20 * PATIENCE)
        self.struck += [
            Struck(*(one if len(one) == 4 else [*one, one[2]]))
            for one in self.page.evaluate("window.trialStruck")
        ]

    def saved(self) -> None:
        """Wait until everything is acknowledged.

        Raises:
            AssertionError: it was not within the patience of a trial; with what the page says.
        """
        from playwright.sync_api import TimeoutError as LateError

        try:
            self.page.wait_for_function(SAVED)
        except LateError as late:
            raise AssertionError(f"not everything is acknowledged: {self.words()}") from late

    def words(self) -> str:
        """Words of the desk about saving, and other words of the page where there is no desk."""
        said = self.page.evaluate(
            f"() => {DESK}?.querySelector('.status')?.innerText || 'no desk: ' + document.body.innerText"
        )
        return " ".join(str(said).split())[:400]

    def heard(self) -> tuple[dict[str, Any], list[str], dict[str, str]]:
        """Operations sent, by id, the ids of those acknowledged as saved, and why others were turned down."""
        found = self.page.evaluate("window.trialHeard()")
        assert "broken" not in found, found["broken"]
        return found["sent"], found["saved"], found["turned"]

    def errors(self) -> list[str]:
        """Exceptions and other errors that the page shows."""
        shown = self.page.locator("[data-testid=stException]")
        return [str(text)[:200] for text in shown.all_inner_texts()]

    def close(self) -> None:
        """End the profile."""
        self.context.close()


@contextmanager
def sessions_of(home: Path, project: str) -> Iterator[Session]:
    """A server's project, read past the server."""
    with own_home(home):
        store = Store.open(home / "workbench.sqlite")
        try:
            yield Session.open(project, store=store)
        finally:
            store.close()


def compared(session: Session, tabs: list[Tab]) -> list[str]:
    """Presses and acknowledgements in tabs of one project against what is stored: a line a fault."""
    ids = session.pool.items.ids
    labels = [e for e in session.log.events if e.kind == "label"]
    stored = {str(e.operation): e for e in labels if e.operation}
    lines = [] if len(stored) == len(labels) else [f"{len(labels) - len(stored)} operations are stored twice"]
    turned: dict[tuple[str, str], str] = {}
    for tab in tabs:
        sent, saved, why = tab.heard()
        for key, words in why.items():
            about = sent[key]
            item = about.get("item", 0)
            turned[str(item if ids is None else ids[item]), str(about.get("class"))] = words
        for key in dict.fromkeys(saved):
            operation = sent[key]
            if operation.get("kind") != "label":
                continue
            event = stored.get(key)
            if event is None:
                lines.append(f"operation {key} was acknowledged and is lost")
            elif session.state.resolve(str(event.payload["class"])) != operation.get("class"):
                lines.append(f"operation {key} was {operation.get('class')} and is {event.payload['class']}")
    given = Counter(
        (str(event.item if ids is None else ids[event.item or 0]), event.payload["class"]) for event in labels
    )
    struck = Counter((one.id, one.key) for tab in tabs for one in tab.struck)
    lines += [
        f"{key} on {item} was pressed and is not stored"
        + (f"; the desk said: {turned[item, key]}" if (item, key) in turned else "")
        for (item, key), n in (struck - given).items()
        for _ in range(n)
    ]
    lines += [
        f"{key} on {item} is stored and was not pressed"
        for (item, key), n in (given - struck).items()
        for _ in range(n)
    ]
    return lines
