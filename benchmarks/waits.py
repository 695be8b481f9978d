"""Waits of people: each with its goal, a line each.

A start is measured in turns with what it cannot do without: `run` with `import tensorflow, gpflow`, a first
visit with that of a bare Streamlit page. Ratios are medians of the turns' ratios.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.desk import _BARE, _project, bare_server
from benchmarks.driving import HOST, Server, chromium, own_home, settled
from benchmarks.hall import cold, hundred
from benchmarks.million import million
from benchmarks.two_hosts import tables_that_differ

ENGINE = ("-c", "import tensorflow, gpflow")
RUN = ("-m", "workbench", "run", "--pool", "iris", "--budget", "3")
DOCTOR = ("-m", "workbench", "doctor")
POOLS = ("-m", "workbench", "pools")
HELP = ("-m", "workbench", "run", "--help")
# the moments when what a page is for stands: its title, and the first item of the desk or the bare page
_MOMENTS = """
(() => {
    window.moments = {};
    const note = (name, there) => {
        if (window.moments[name] || !there) return;
        window.moments[name] = -1;
        requestAnimationFrame(() => setTimeout(() => { window.moments[name] = performance.now(); }, 0));
    };
    const look = () => {
        note("title", document.querySelector("h1"));
        const desk = HOST?.shadowRoot.querySelector(".title:not(:empty)");
        note("item", desk || document.querySelector(".shown"));
        requestAnimationFrame(look);
    };
    look();
})()
""".replace("HOST", HOST)


class Wait(NamedTuple):
    """A wait of people.

    Attributes:
        title: as it is printed.
        goal: the largest figure that is well.
        unit: of both.
        measure: turns -> the figures of the turns.
    """

    title: str
    goal: float
    unit: str
    measure: Callable[[int], Sequence[float]]


def started(words: Sequence[str]) -> tuple[float, float]:
    """Processor seconds and wall seconds of a process of Python, its children included.

    Raises:
        RuntimeError: it failed.
    """
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-500:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, seconds


@cache
def starts(turns: int) -> dict[tuple[str, ...], np.ndarray]:
    """[turns, 2] processor and wall seconds of each start, in turns and in a home of their own."""
    sides = (ENGINE, RUN, DOCTOR)
    with tempfile.TemporaryDirectory() as home, own_home(home):
        for words in sides:
            started(words)
        rows = [
            {words: started(words) for words in (sides if turn % 2 == 0 else sides[::-1])}
            for turn in range(turns)
        ]
    return {words: np.array([row[words] for row in rows]) for words in sides}


def beside_the_engine(words: tuple[str, ...], clock: int) -> Callable[[int], Sequence[float]]:
    """Measurement of a start in those of TensorFlow and GPflow; clock 0 is the processor's, 1 the wall's."""

    def measure(turns: int) -> Sequence[float]:
        seconds = starts(turns)
        return list(seconds[words][:, clock] / seconds[ENGINE][:, clock])

    return measure


def alone(words: tuple[str, ...]) -> Callable[[int], Sequence[float]]:
    """Measurement of the processor seconds of a start."""

    def measure(turns: int) -> Sequence[float]:
        started(words)
        return [started(words)[0] for _ in range(2 * turns)]

    return measure


MOMENTS = ("paint", "title", "item")


@cache
def visits(turns: int) -> dict[str, np.ndarray]:
    """[turns, 3] milliseconds of first visits in turns to the first paint, the title and the first item.

    Ours are the first page, and Label of a project of digits for the item.
    """
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        ours = Server(Path(folder) / "ours").start()
        bare = bare_server(Path(folder) / "bare", _BARE).start()
        times: dict[str, list[tuple[float, ...]]] = {"ours": [], "bare": []}
        try:
            label = f"/label?project={_project(ours, 'digits', 1)}"
            for turn in range(turns + 2):
                for name in ("ours", "bare") if turn % 2 == 0 else ("bare", "ours"):
                    if name == "bare":
                        moments = _visit(browser, bare.url, MOMENTS)
                    else:
                        moments = (
                            *_visit(browser, ours.url, MOMENTS[:2]),
                            *_visit(browser, ours.url + label, MOMENTS[2:]),
                        )
                    if turn > 1:  # the first ones pay for what a server does once
                        times[name].append(moments)
        finally:
            ours.stop()
            bare.stop()
    for name, rows in times.items():
        print(name, np.median(rows, axis=0).round().tolist(), file=sys.stderr)
    return {name: np.array(moments) for name, moments in times.items()}


def _visit(browser: Any, address: str, names: Sequence[str]) -> tuple[float, ...]:
    """Moments of a visit by somebody whose browser has kept nothing."""
    context = browser.new_context()
    try:
        context.add_init_script(_MOMENTS)
        page = context.new_page()
        page.goto(address)
        page.wait_for_function(f"() => window.moments.{'item' if 'item' in names else 'title'} > 0")
        settled(page)
        page.evaluate(
            "() => { moments.paint = performance.getEntriesByName('first-contentful-paint')[0].startTime }"
        )
        return tuple(page.evaluate("names => names.map(name => window.moments[name])", list(names)))
    finally:
        context.close()


def beside_a_bare_page(moment: str) -> Callable[[int], Sequence[float]]:
    """Measurement of a first visit in those of a bare page of a picture and a button."""

    def measure(turns: int) -> Sequence[float]:
        times = visits(5 * turns)
        return list((times["ours"] / times["bare"])[:, MOMENTS.index(moment)])

    return measure


def hosts(_: int) -> Sequence[float]:
    """Tables that differ after one of two hosts was lost."""
    return [tables_that_differ()]


WAITS = {
    "run": Wait(
        "`run --pool iris --budget 3`, processor", 1.15, "of the engine's import", beside_the_engine(RUN, 0)
    ),
    "run-wall": Wait("the same, by the clock", 1.15, "of the engine's import", beside_the_engine(RUN, 1)),
    "doctor": Wait("`doctor`, processor", 1.15, "of the engine's import", beside_the_engine(DOCTOR, 0)),
    "doctor-wall": Wait(
        "the same, by the clock", 1.15, "of the engine's import", beside_the_engine(DOCTOR, 1)
    ),
    "pools": Wait("`pools`, processor", 0.3, "s", alone(POOLS)),
    "help": Wait("`run --help`, processor", 0.3, "s", alone(HELP)),
    "paint": Wait("first paint", 1.15, "of a bare page", beside_a_bare_page("paint")),
    "title": Wait("the page's title", 1.15, "of a bare page", beside_a_bare_page("title")),
    "item": Wait("the first item on Label", 1.15, "of a bare page", beside_a_bare_page("item")),
    "hosts": Wait("tables that differ, one of two hosts lost", 0, "", hosts),
}
"""Name -> wait, in the order of the table."""
ROWS: dict[str, Callable[[], list[tuple[str, float, float]]]] = {
    "cold": cold,
    "hundred": hundred,
    "million": million,
}
"""Name -> (title, measured, goal) of all rows of one measurement, below those of `WAITS`."""


def main(arguments: list[str]) -> int:
    """Print a row a wait; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks waits", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[*WAITS, *ROWS], default=[*WAITS, *ROWS], metavar="NAME")
    parser.add_argument("--turns", type=int, default=5, help="of each start; visits are five times as many")
    given = parser.parse_args(arguments)
    print("| wait | measured, median (quartiles) | goal | |", "|---|---|---|---|", sep="\n")
    missed = False
    for name in given.only:
        for title, figure, value, goal in _rows(name, given.turns):
            verdict = "met" if value <= goal else "missed"
            missed |= verdict == "missed"
            print(f"| {title} | {figure} | {goal:g} | {verdict} |", flush=True)
    return int(missed)


def _rows(name: str, turns: int) -> Iterator[tuple[str, str, float, float]]:
    """(title, figure as printed, measured, goal) of the rows of a name."""
    if name in ROWS:
        yield from ((title, f"{value:.4g}", value, goal) for title, value, goal in ROWS[name]())
        return
    wait = WAITS[name]
    low, value, high = np.quantile(wait.measure(turns), [0.25, 0.5, 0.75])
    spread = f" ({low:.2f} to {high:.2f})" if high > low else ""
    yield wait.title, f"{value:.2f}{spread} {wait.unit}", value, wait.goal
