"""The server is killed (SIGKILL) under a browser whose keys are being pressed; every press is stored once."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.driving import Server, chromium
from benchmarks.trials import Row
from benchmarks.trials._browsers import Tab, compared, sessions_of

PRESSES = 12


def run(count: int = 10, seed: int = 0) -> Row:
    """Kill a server `count` times while somebody labels; half of the times the page is opened anew after.

    Args:
        count: kills.
        seed: of the moments.
    """
    rng = np.random.default_rng(seed)
    failures: list[str] = []
    waited = 0
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        server = Server(Path(folder) / "home").start()
        try:
            tab = Tab(browser, server.url)
            project = tab.start()
            for number in range(count):
                tab.press(PRESSES, 60, 80)
                # Playwright's own wait: the browser goes on meanwhile
                tab.page.wait_for_timeout(float(rng.uniform(0, 1500)))
                server.kill()
                tab.page.wait_for_timeout(float(rng.uniform(0, 1500)))
                waited += int(
                    tab.page.evaluate("Object.keys(localStorage).filter(k => k.startsWith('desk/')).length")
                    > 0
                )
                if number % 2:
                    # what is left to press is pressed later: a page that is opened anew ends its script
                    tab.page.evaluate("window.trialStop = true")
                    server.start()
                    tab.rest()
                else:
                    tab.page.evaluate("window.trialStop = true")
                    tab.rest()
                    server.start()
                    tab.open(project)
                tab.saved()
                failures += [f"{number}: {line}" for line in tab.errors()]
            tab.open(project)
            tab.saved()
            with sessions_of(server.home, project) as session:
                failures += compared(session, [tab])
            acknowledged = len(set(tab.heard()[1]))
            counts = {
                "keys pressed": len(tab.struck),
                "operations acknowledged": acknowledged,
                "times answers waited in the browser": waited,
            }
            tab.close()
        finally:
            server.stop()
    return Row.of("the server is killed under a browser", count, failures, counts=counts)
