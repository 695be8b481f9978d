"""A million items: seconds and memory of the server's process at each step that a person waits for.

A table of numbers is made on the spot, and a project with a few hundred labels and a model. A process then
does what a server does, one step after another; fits and exports have processes of their own, as they have
there. The graph of neighbours is made in a further process.
"""

from __future__ import annotations

import argparse
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.driving import ROOT
from benchmarks.hall import CLASSES, FEATURES

T = TypeVar("T")
LABELS = 300
SECONDS = {
    "load": 5.0,
    "first question": 1.0,
    "answer and next question": 0.15,
    "finish page, again": 0.5,
    "labels as a file": 4.0,
}
"""Wanted at a million."""
MEGABYTES = 1000.0
"""Wanted of the server's process at its most."""


def _table(path: Path, n: int) -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    codes = rng.integers(0, len(CLASSES), n)
    rows = rng.normal(size=(n, FEATURES)) + 1.5 * rng.normal(size=(len(CLASSES), FEATURES))[codes]
    table = pd.DataFrame(rows.round(3), columns=[f"x{i}" for i in range(FEATURES)])
    table["class"] = [CLASSES[code] if i < LABELS else "" for i, code in enumerate(codes)]
    table.to_csv(path, index=False)


def _made(folder: str, n: int) -> str:
    """A project of n items, the first of which have a class, with a fit; its id."""
    from workbench.sessions import Session

    os.environ["WORKBENCH_HOME"] = folder
    place = Path(folder) / "table.csv"
    _table(place, n)
    session = Session.create(
        str(place), pool_options={"target": "class"}, classifier="logistic-regression", annotator="host"
    )
    session.refit()
    return session.id


def _memory(name: str) -> float:
    """Megabytes of this process: VmRSS now, VmHWM at its most."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    return float("nan")


@contextmanager
def _step(rows: list[tuple[str, float, float, float]], name: str) -> Iterator[None]:
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the most is of this step alone
    begin = time.perf_counter()
    yield
    rows.append((name, time.perf_counter() - begin, _memory("VmRSS"), _memory("VmHWM")))


def _served(folder: str, project: str) -> list[tuple[str, float, float, float]]:
    """Steps of a server: name, seconds, megabytes after it and at its most."""
    os.environ["WORKBENCH_HOME"] = folder
    rows: list[tuple[str, float, float, float]] = []
    from streamlit.testing.v1 import AppTest

    from workbench.app.access import current
    from workbench.app.desk.routes import sync
    from workbench.app.serving import fit_process, jobs
    from workbench.app.uncertainty import mapping
    from workbench.sessions import insight

    with _step(rows, "load"):
        session = current.opened(project)
    with _step(rows, "first question"):
        reply = sync(project, "ann", {"want": 4, "have": []}, "")
    card = reply["queue"][0]
    operation = {
        "op": secrets.token_hex(8),
        "kind": "label",
        "ask": card["ask"],
        "item": card["item"],
        "class": CLASSES[0],
        "person": "ann",
        "project": project,
    }
    have = [later["ask"] for later in reply["queue"][1:]]
    number = reply["numbers"]["model"]
    with _step(rows, "answer and next question"):
        sync(project, "ann", {"ops": [operation], "want": 1, "have": have, "model": number}, "")
    with _step(rows, "fit, beside the server"):
        fit_process.refit(session)
    model = session.model
    assert model is not None
    with _step(rows, "map"):
        insight.pool_map(model, "margin")
        mapping.layout(session.pool)
    place = str(Path(folder) / "labels.csv")
    with _step(rows, "labels as a file"):
        jobs.file_work().call(
            "workbench.studies.tasks:called",
            {},
            "labels_written",
            (place, session.store.url, project, "csv", "everything"),
        )
    page = AppTest.from_file(str(ROOT / "workbench" / "main.py"), default_timeout=600).run()
    page.switch_page(str(ROOT / "pages" / "finish.py"))
    page.query_params["project"] = project
    with _step(rows, "finish page"):
        page.run()
    with _step(rows, "finish page, again"):
        page.run()
    with _step(rows, "certificate: labels frozen"):
        session.checks.start(0.1, 0.9)
    with _step(rows, "certificate: first check"):
        sync(project, "ann", {"want": 4, "have": [], "mode": "check"}, "")
    with _step(rows, "finish page, checking"):
        page.run()
    if page.exception:
        raise RuntimeError(page.exception)
    for process in (fit_process.fitter, jobs.file_work, jobs.short_work):
        process().end()
    return rows


def _graph(folder: str, project: str) -> list[tuple[str, float, float, float]]:
    os.environ["WORKBENCH_HOME"] = folder
    from workbench.pools.neighbours.graph import Neighbourhood
    from workbench.sessions import Session

    session, rows = Session.open(project), list[tuple[str, float, float, float]]()
    with _step(rows, "graph of neighbours, in its own process"):
        neighbourhood = Neighbourhood(session.pool)
        if why := neighbourhood.too_few:
            raise RuntimeError(why)
        _ = neighbourhood.graph
    return rows


def _apart(work: Callable[..., T], *given: Any) -> T:
    """Result of a function in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(work, *given).result()


def steps(n: int, *, graph: bool = True) -> list[tuple[str, float, float, float]]:
    """Steps at n items: name, seconds, megabytes of their process after each, and at its most.

    Args:
        n: items.
        graph: make the graph of neighbours, too.
    """
    with tempfile.TemporaryDirectory() as folder:
        project = _apart(_made, folder, n)
        rows = _apart(_served, folder, project)
        return rows + (_apart(_graph, folder, project) if graph else [])


def million() -> list[tuple[str, float, float]]:
    """(title, measured, goal) of a million items, in seconds and megabytes, for lists of waits."""
    rows = steps(1_000_000, graph=False)
    named = [(name, seconds) for name, seconds, _, _ in rows if name in SECONDS]
    measured = [(f"a million items: {name}, s", seconds, SECONDS[name]) for name, seconds in named]
    return [*measured, ("a million items: the server, MB", max(most for *_, most in rows), MEGABYTES)]


def main(arguments: list[str]) -> int:
    """Print a row for each step; 1 where a goal was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks million", description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--no-graph", action="store_true", help="without the graph of neighbours")
    options = parser.parse_args(arguments)
    print("| step | seconds | goal | MB after it | MB at its most |", "|---|---|---|---|---|", sep="\n")
    missed = False
    rows = steps(options.items, graph=not options.no_graph)
    for name, seconds, after, most in rows:
        goal = f"{SECONDS[name]:g}" if name in SECONDS else ""
        print(f"| {name} | {seconds:.2f} | {goal} | {after:,.0f} | {most:,.0f} |", flush=True)
        missed |= seconds > SECONDS.get(name, np.inf)
    return int(missed or max(most for name, *_, most in rows if "own process" not in name) > MEGABYTES)
