"""A program that labels is killed (SIGKILL) at arbitrary moments; what it was told is saved must be there."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.trials import Row
from benchmarks.trials._sessions import CONSTANT, Child
from workbench.pools import load_pool
from workbench.registry import trust
from workbench.sessions import Operation, Session
from workbench.store import Store


def run(count: int = 100, seed: int = 0) -> Row:
    """Kill `count` programs one after the other, on one project.

    Args:
        count: how many.
        seed: of what they do and when they are killed.
    """
    trust(CONSTANT)
    pool = load_pool("three-gaussians", n_items=400 + 40 * count, seed=seed)
    rng = np.random.default_rng(seed)
    failures: list[str] = []
    acknowledged: dict[str, str] = {}
    fits: dict[int, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crash.sqlite"
        store = Store.open(path)
        project = Session.create(pool, classifier=CONSTANT, policy="margin", store=store, annotator="ann").id
        store.close()

        def work(say: Callable[[str], None], number: int) -> None:
            session = Session.open(project, pool=pool, store=Store.open(path), annotator="ann")
            _label(session, say, number, np.random.default_rng([seed, number]))

        for number in range(count):
            child = Child(lambda say, number=number: work(say, number))  # type: ignore[misc]
            said = [child.lines.readline() for _ in range(int(rng.integers(1, 25)))]
            os.kill(child.pid, signal.SIGKILL)
            left, _ = child.end()
            # The last line may be half a line: nobody was told.
            for line in (line for line in [*said, *(f"{text}\n" for text in left)] if line.endswith("\n")):
                what, key, more = line.split()
                if what == "fit":
                    fits[int(key)] = int(more)
                else:
                    acknowledged[key] = more
        store = Store.open(path)
        session = Session.open(project, pool=pool, store=store, annotator="ann")
        events = [e for e in session.events if e.operation]
        stored = {str(e.operation): e for e in events}
        if len(stored) != len(events):
            failures.append(f"{len(events) - len(stored)} operations are stored twice")
        for key, kind in acknowledged.items():
            if key not in stored:
                failures.append(f"operation {key} ({kind}) was acknowledged and is lost")
            elif stored[key].kind != kind.partition(":")[0]:
                failures.append(f"operation {key} was a {kind} and is a {stored[key].kind}")
            elif kind.startswith("label:") and stored[key].payload["class"] != kind.partition(":")[2]:
                failures.append(f"operation {key} was {kind} and is {stored[key].payload['class']}")
        rounds = {r.number: r.n_labelled for r in session.rounds}
        failures += [f"fit {n} was acknowledged and is lost" for n in fits if rounds.get(n) != fits[n]]
        session.refit()
        if session.stale:
            failures.append("after a refit the project is stale")
        counts = {"operations acknowledged": len(acknowledged), "fits acknowledged": len(fits)}
        store.close()
    return Row.of("the program is killed while a person labels", count, failures, counts=counts)


def _label(session: Session, say: Callable[[str], None], number: int, rng: np.random.Generator) -> None:
    """What a person does, one thing after the other, each said when it was acknowledged."""
    for step in range(10_000):
        asks = session.ask(3)
        if len(asks) < 3:
            return
        name = session.classes[int(rng.integers(len(session.classes)))]
        key = f"k{number}-{step}"
        what = int(rng.integers(6))
        if what < 3:
            batch = [Operation(key, "label", ask=asks[0].id, label=name)]
        elif what == 3:
            batch = [Operation(key, "skip", ask=asks[0].id)]
        elif what == 4:
            batch = [Operation(key, "undo")]
        else:
            batch = [Operation(f"{key}-{i}", "label", ask=ask.id, label=name) for i, ask in enumerate(asks)]
        for operation, done in zip(batch, session.tell_many(batch), strict=True):
            if done.status == "saved":
                kind = f"label:{name}" if operation.kind == "label" else operation.kind
                say(f"saved {operation.id} {kind}")
        if step % 5 == 4:
            finished = session.refit()
            if finished is not None:
                say(f"fit {finished.number} {finished.n_labelled}")
