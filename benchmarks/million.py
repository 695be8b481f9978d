"""A million items: seconds and memory of the server's process at each step that a person waits for.

A table of numbers is made on the spot, and a project with a few hundred labels and a model. A process then
does what a server does, one step after another; fits and exports have processes of their own, as they have
there. The graph of neighbours is made in a further process. A row is printed as soon as its step is done.
"""

from __future__ import annotations

import argparse
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.driving import ROOT
from benchmarks.hall import CLASSES, FEATURES

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


class Step(NamedTuple):
    """A step that was done.

    Attributes:
        name: as it is printed.
        seconds: it took.
        after: megabytes of its process after it.
        most: the same at its most.
        moves: how often a bar moved meanwhile.
    """

    name: str
    seconds: float
    after: float
    most: float
    moves: int

    @property
    def is_server(self) -> bool:
        """False for a step in a process of its own."""
        return "own process" not in self.name


def _table(path: Path, n: int) -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    codes = rng.integers(0, len(CLASSES), n)
    rows = rng.normal(size=(n, FEATURES)) + 1.5 * rng.normal(size=(len(CLASSES), FEATURES))[codes]
    table = pd.DataFrame(rows.round(3), columns=[f"x{i}" for i in range(FEATURES)])
    table["class"] = [CLASSES[code] if i < LABELS else "" for i, code in enumerate(codes)]
    table.to_csv(path, index=False)


def _made(out: Connection, folder: str, n: int) -> None:
    """A project of n items, the first of which have a class, with a fit; its id is sent behind the step."""
    from workbench.sessions import Session

    os.environ["WORKBENCH_HOME"] = folder
    place = Path(folder) / "table.csv"
    _table(place, n)
    with _step(out, "project made and fitted, in its own process"):
        session = Session.create(
            str(place), pool_options={"target": "class"}, classifier="logistic-regression", annotator="host"
        )
        session.refit()
    out.send(session.id)


def _memory(name: str) -> float:
    """Megabytes of this process: VmRSS now, VmHWM at its most."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    return float("nan")


@contextmanager
def _step(out: Connection, name: str, bar: set[float] | None = None) -> Iterator[None]:
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the most is of this step alone
    begin = time.perf_counter()
    yield
    seconds = time.perf_counter() - begin
    out.send(Step(name, seconds, _memory("VmRSS"), _memory("VmHWM"), 0 if bar is None else len(bar)))


def _written(out: Connection, session: Any, name: str, what: str, rows: int) -> None:
    """An export as a page's button has it made, and how often its bar moves: never, where none is shown."""
    from workbench.app.shell import background_files

    fractions = set[float]()
    making = background_files.of_project("labels_written", session, name, "csv", what, rows=rows)
    with _step(out, name, fractions if making.is_long else None):
        job = making.begin(session.id, what)
        while job.active:
            job.wait(0.1)
            fractions.add(job.fraction)
        if job.status != "done":
            raise RuntimeError(job.details or job.error)
    job.result.close()


def _served(out: Connection, folder: str, project: str, every_item: bool) -> None:
    """Steps of a server, each sent as soon as it is done."""
    os.environ["WORKBENCH_HOME"] = folder
    from streamlit.testing.v1 import AppTest

    from workbench.app.access import current
    from workbench.app.desk.routes import sync
    from workbench.app.serving import fit_process, jobs
    from workbench.app.uncertainty import mapping
    from workbench.sessions import insight

    with _step(out, "load"):
        session = current.opened(project)
    with _step(out, "first question"):
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
    with _step(out, "answer and next question"):
        sync(project, "ann", {"ops": [operation], "want": 1, "have": have, "model": number}, "")
    bar = set[float]()
    with _step(out, "fit, beside the server", bar):
        fit_process.refit(session, lambda fraction, _: bar.add(fraction))
    model = session.model
    assert model is not None
    with _step(out, "map"):
        insight.pool_map(model, "margin")
        mapping.layout(session.pool)
    # the first waits until the process of files has opened the project
    for name in ("labels as a file, first", "labels as a file"):
        _written(out, session, name, "labels", len(session.state.codes))
    if every_item:
        _written(out, session, "every item as a file", "everything", len(session.pool))
    page = AppTest.from_file(str(ROOT / "workbench" / "main.py"), default_timeout=600).run()
    page.switch_page(str(ROOT / "pages" / "finish.py"))
    page.query_params["project"] = project
    with _step(out, "finish page"):
        page.run()
    with _step(out, "finish page, again"):
        page.run()
    with _step(out, "certificate: labels frozen"):
        session.checks.start(0.1, 0.9)
    with _step(out, "certificate: first check"):
        sync(project, "ann", {"want": 4, "have": [], "mode": "check"}, "")
    with _step(out, "finish page, checking"):
        page.run()
    if page.exception:
        raise RuntimeError(page.exception)
    for process in (fit_process.fitter, jobs.file_work, jobs.short_work):
        process().end()


def _graph(out: Connection, folder: str, project: str) -> None:
    os.environ["WORKBENCH_HOME"] = folder
    from workbench.pools.neighbours.graph import Neighbourhood
    from workbench.sessions import Session

    session = Session.open(project)
    with _step(out, "graph of neighbours, in its own process"):
        neighbourhood = Neighbourhood(session.pool)
        if why := neighbourhood.too_few:
            raise RuntimeError(why)
        _ = neighbourhood.graph


def _apart(work: Callable[..., None], *given: Any) -> Iterator[Any]:
    """Whatever a function sends from a process of its own, as soon as it does.

    Raises:
        RuntimeError: the process failed.
    """
    context = get_context("spawn")
    hear, send = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(send, *given))
    process.start()
    send.close()
    with suppress(EOFError):
        while True:
            yield hear.recv()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"{work.__name__} ended with {process.exitcode}.")


def steps(n: int, *, graph: bool = True, every_item: bool = False) -> Iterator[Step]:
    """Steps at n items, each as soon as it is done.

    Args:
        n: items.
        graph: make the graph of neighbours, too.
        every_item: write every item as a file, too: minutes.
    """
    with tempfile.TemporaryDirectory() as folder:
        made, project = _apart(_made, folder, n)
        yield made
        yield from _apart(_served, folder, project, every_item)
        if graph:
            yield from _apart(_graph, folder, project)


def million() -> list[tuple[str, float, float]]:
    """(title, measured, goal) of a million items, in seconds and megabytes, for lists of waits."""
    rows = list(steps(1_000_000, graph=False))
    named = [step for step in rows if step.name in SECONDS]
    measured = [(f"a million items: {step.name}, s", step.seconds, SECONDS[step.name]) for step in named]
    most = max(step.most for step in rows if step.is_server)
    return [*measured, ("a million items: the server, MB", most, MEGABYTES)]


def main(arguments: list[str]) -> int:
    """Print a row for each step; 1 where a goal was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks million", description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--no-graph", action="store_true", help="without the graph of neighbours")
    parser.add_argument("--every-item", action="store_true", help="write every item as a file, too: minutes")
    options = parser.parse_args(arguments)
    print(
        "| step | seconds | goal | MB after it | MB at its most | bar moves |", "|---|" + 5 * "---|", sep="\n"
    )
    missed, most = False, 0.0
    for step in steps(options.items, graph=not options.no_graph, every_item=options.every_item):
        goal = f"{SECONDS[step.name]:g}" if step.name in SECONDS else ""
        memory = f"{step.after:,.0f} | {step.most:,.0f}"
        print(f"| {step.name} | {step.seconds:.2f} | {goal} | {memory} | {step.moves or ''} |", flush=True)
        missed |= step.seconds > SECONDS.get(step.name, np.inf)
        most = max(most, step.most) if step.is_server else most
    return int(missed or most > MEGABYTES)
