"""Growth of a project: a round, an undo and opening it, at the hundredth round and at the count-th.

Run with `python -m benchmarks.trials growth --count 10000`.
"""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.trials import Row
from benchmarks.trials._sessions import CONSTANT
from workbench.pools import load_pool
from workbench.pools.pool import Pool
from workbench.registry import trust
from workbench.sessions import Session
from workbench.sessions.fitting import _digest
from workbench.store import Event, Store

ROUND_LIMIT = 1.5
UNDO_LIMIT = 0.020
OPEN_LIMIT = 3.0
MEASURED = 40
EVENTS = 100_000


def grown(store: Store, pool: Pool, n: int) -> Session:
    """A project of n rounds of a question, an answer and a fit, written as they would have been."""
    session = Session.create(pool, classifier=CONSTANT, policy="margin", store=store, annotator="ann")
    items = session.pool.trainable[: n + 2].tolist()
    names = session.classes
    codes: dict[int, int] = {}
    for first in range(0, len(items), 500):
        with store.recording(session.id) as recorder:
            for number, item in enumerate(items[first : first + 500], start=first):
                code = number % len(names)
                ask = {"id": f"{number:016x}", "item": item, "role": "policy", "utility": 0.5, "round": 1}
                recorder.add(_by_ann(Event.asked([ask], 0.0)))
                more = {"ask": ask["id"], "role": "policy", "round": 1, "policy": "margin", "utility": 0.5}
                told = recorder.add(_by_ann(Event.label(names[code], item, **more)))
                codes[item] = code
                if number < 2:
                    continue
                arrays = {"classes": np.arange(len(names)), "session.format": np.asarray(1)}
                arrays["session.items"] = np.fromiter(codes, dtype=np.int64)
                arrays["session.codes"] = np.fromiter(codes.values(), dtype=np.int64)
                record = _record(number, item, code, session, told.id)
                last = number == len(items) - 1
                record["training"] = _digest(arrays["session.items"], arrays["session.codes"]) if last else ""
                state = arrays if last else {"none": np.zeros(1)}
                done = recorder.add_round(record, state, session.id)
                recorder.add(_by_ann(Event.round({"number": done, "n_labelled": len(codes), "n_test": 0})))
            recorder.n_labelled = {session.id: len(codes)}
    return Session.open(session.id, pool=pool, store=store, annotator="ann")


def _by_ann(event: Event) -> Event:
    return replace(event, annotator="ann")


def _record(number: int, item: int, code: int, session: Session, last: int) -> dict[str, Any]:
    figures = dict.fromkeys(("error", "nll", "brier", "ece", "balanced_error", "macro_f1"), 0.25)
    return {
        "n_labelled": number + 1,
        "n_test": 10,
        **figures,
        "queried": [item],
        "labels": [code],
        "utilities": [None],
        "initial": [],
        "initial_labels": [],
        "seconds": {"fit": 0.001, "score": 0.001, "query": 0.001},
        "classes": list(session.classes),
        "keys": list(session.classes),
        **{name: session.settings[name] for name in ("classifier", "options", "policy")},
        "stream": number,
        "events": last,
        "queue": list(range(10)),
        "queue_utilities": [0.5] * 10,
    }


def run(count: int = 1_000, seed: int = 0) -> Row:
    """Compare a project of 100 rounds with one of `count`; then open one of 100,000 events."""
    import pandas as pd

    trust(CONSTANT)
    pool = load_pool("three-gaussians", n_items=count + 12_000, seed=seed)
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "growth.sqlite")
        small, big = (grown(store, pool, n) for n in (100, count))
        rounds = {"100": _per_round(small), str(count): _per_round(big)}
        ratio = rounds[str(count)] / rounds["100"]
        undo = statistics.median(_undo(big) for _ in range(MEASURED))
        long = grown(store, pool, min(count, EVENTS // 3))
        _fill(store, long, EVENTS)
        engine = store._engine
        opened = _best(lambda: _opened(store, long.id, pool))
        query = f"SELECT * FROM events WHERE project = '{long.id}'"
        read = _best(lambda: pd.read_sql_query(query, engine))
        store.close()
    for what, value, limit in (
        ("a round", ratio, ROUND_LIMIT),
        ("an undo, seconds", undo, UNDO_LIMIT),
        ("opening beside pandas", opened / read, OPEN_LIMIT),
    ):
        if value > limit:
            failures.append(f"{what}: {value:.3f}, above {limit}")
    notes = (
        f"round {1000 * rounds['100']:.1f} ms at 100, {1000 * rounds[str(count)]:.1f} ms at {count:,} "
        f"({ratio:.2f}x); undo {1000 * undo:.1f} ms; opening {EVENTS:,} events {opened:.2f} s, pandas reads "
        f"their table in {read:.2f} s ({opened / read:.1f}x)"
    )
    return Row.of("a project grows", 3, failures, notes)


def _per_round(session: Session) -> float:
    """Median CPU seconds of a question, its answer and a refit."""
    session.refit()
    spent = []
    for _ in range(MEASURED):
        began = time.process_time()
        (ask,) = session.ask()
        session.tell(ask.id, session.classes[0])
        session.refit()
        spent.append(time.process_time() - began)
    return statistics.median(spent)


def _undo(session: Session) -> float:
    (ask,) = session.ask()
    session.tell(ask.id, session.classes[0])
    began = time.perf_counter()
    session.undo()
    assert ask.item not in session.state.labels
    return time.perf_counter() - began


def _fill(store: Store, session: Session, n: int) -> None:
    """Further questions and answers, until the project has n events."""
    left = n - len(store.events(session.id))
    items = session.pool.trainable.tolist()
    with store.recording(session.id) as recorder:
        for number in range(left // 2):
            item = items[number % len(items)]
            id_ = f"f{number:015x}"
            recorder.add(_by_ann(Event.asked([{"id": id_, "item": item, "role": "policy"}], 0.0)))
            recorder.add(_by_ann(Event.label(session.classes[number % 3], item, ask=id_, role="policy")))


def _opened(store: Store, project: str, pool: Pool) -> None:
    assert Session.open(project, pool=pool, store=store).state.n_labelled


def _best(what: Callable[[], object], n: int = 3) -> float:
    spent = []
    for _ in range(n):
        gc.collect()
        began = time.perf_counter()
        what()
        spent.append(time.perf_counter() - began)
    return min(spent)
