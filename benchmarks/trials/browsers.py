"""Several people label at once, in real browsers: on one project, and each on their own."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.driving import Server, chromium
from benchmarks.trials import Row
from benchmarks.trials._browsers import Tab, compared, sessions_of

PEOPLE = 8
# Milliseconds between an item and its answer, on average: eight people do not come to the end of 1,797
# digits in five minutes.
PAUSE = 1200.0


def run(count: int = 60, seed: int = 0) -> Row:
    """Let eight browsers label for `count` seconds on one project, then as long on eight.

    Args:
        count: seconds each time.
        seed: unused; people press as they like.
    """
    failures: list[str] = []
    notes: list[str] = []
    labelled = 0
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for together in (True, False):
            server = Server(Path(folder) / ("one" if together else "many")).start()
            tabs = [Tab(browser, server.url) for _ in range(PEOPLE)]
            try:
                for number, tab in enumerate(tabs):
                    if together and number:
                        tab.open(tabs[0].project, f"P{number}")
                    else:
                        tab.start()
                for tab in tabs:
                    tab.press(100_000, count, PAUSE)
                tabs[0].page.wait_for_timeout(1000 * count)
                for tab in tabs:
                    tab.rest()
                for tab in tabs:
                    tab.saved()
                    failures += tab.errors()
                for group in [tabs] if together else [[tab] for tab in tabs]:
                    with sessions_of(server.home, group[0].project) as session:
                        failures += compared(session, group)
                pressed = sum(len(tab.struck) for tab in tabs)
                labelled += pressed
                where = "one project" if together else f"{PEOPLE} projects"
                notes.append(f"on {where} {pressed:,} items, {_times(tabs)}")
            finally:
                for tab in tabs:
                    tab.close()
                server.stop()
    return Row.of(f"{PEOPLE} browsers label for {count} s, twice", labelled, failures, "; ".join(notes))


def _times(tabs: Sequence[Tab]) -> str:
    """From the key to the next item, of all presses."""
    spent = sorted(one.next for tab in tabs for one in tab.struck)
    if not spent:
        return "nothing pressed"
    late = spent[int(0.95 * (len(spent) - 1))]
    return f"median {statistics.median(spent):.0f} ms and 95th {late:.0f} ms to the next"
