"""A person presses keys over a slow network and reloads at any moment: the item on screen stays."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from benchmarks.driving import Server, chromium
from benchmarks.trials import Row
from benchmarks.trials._browsers import DESK, Tab

# One way of a request, in milliseconds, at most: keys meet answers that are still on their way.
LAG = 900
KEYS = "0123456789zzzsy"
# A request that a closing page sends is on its way at once, as it is not the script that waits for it.
_SLOW = f"""
(() => {{
    const plain = window.fetch;
    const way = () => new Promise(next => setTimeout(next, {LAG} * Math.random()));
    window.fetch = async (where, how) => {{
        if (!String(where).endsWith('/sync') || how.keepalive) return plain(where, how);
        await way();
        const answer = await plain(where, how);
        await way();
        return answer;
    }};
}})()
"""


def run(count: int = 60, seed: int = 0) -> Row:
    """Reload `count` times, each after up to six keys (classes, undo, redo, skip), and compare the items.

    Args:
        count: reloads.
        seed: of the keys and pauses; what the network does differs from run to run.
    """
    rng = random.Random(seed)
    failures: list[str] = []
    pressed = 0
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        server = Server(Path(folder) / "home").start()
        tab = Tab(browser, server.url)
        tab.context.add_init_script(_SLOW)
        try:
            tab.start()
            for _ in range(count):
                for _ in range(rng.randint(1, 6)):
                    tab.page.keyboard.press(rng.choice(KEYS))
                    tab.page.wait_for_timeout(rng.choice([0, 5, 30, 100, 300, 700]))
                    pressed += 1
                tab.ready()
                before = _item(tab)
                tab.page.reload()
                tab.ready()
                if (after := _item(tab)) != before:
                    failures.append(f"item {before} was on screen, and after a reload {after}")
                failures += tab.errors()
        finally:
            tab.close()
            server.stop()
    return Row.of("reloads after keys over a slow network", count, failures, counts={"keys pressed": pressed})


def _item(tab: Tab) -> str:
    return str(tab.page.evaluate(f"() => {DESK}.querySelector('.title').innerText"))
