"""Several programs refit, merge, rename and undo on one project at once."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.trials import Row
from benchmarks.trials._sessions import CONSTANT, Child
from workbench.errors import InputError
from workbench.pools import load_pool
from workbench.registry import trust
from workbench.sessions import Session
from workbench.store import Store

PEOPLE = ("ann", "bob", "eve")
REPLAYED = 60


def run(count: int = 60, seed: int = 0) -> Row:
    """Let three programs work on one project for `count` seconds.

    Args:
        count: seconds.
        seed: of what they do.
    """
    trust(CONSTANT)
    pool = load_pool("three-gaussians", n_items=20_000, seed=seed)
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "programs.sqlite"
        store = Store.open(path)
        project = Session.create(pool, classifier=CONSTANT, policy="margin", store=store).id
        store.close()
        end = time.monotonic() + count

        def work(say: Callable[[str], None], who: int) -> None:
            session = Session.open(project, pool=pool, store=Store.open(path), annotator=PEOPLE[who])
            _disturb(session, say, np.random.default_rng([seed, who]), lambda: time.monotonic() < end)

        children = [Child(lambda say, who=who: work(say, who)) for who in range(len(PEOPLE))]  # type: ignore[misc]
        acknowledged: dict[int, int] = {}
        labels: list[str] = []
        for child in children:
            lines, status = child.end()
            if status:
                failures.append(f"a program ended with status {status}")
            for what, key, more in (line.split() for line in lines):
                if what == "label":
                    labels.append(key)
                elif int(key) in acknowledged:
                    failures.append(f"two programs were told that they stored round {key}")
                else:
                    acknowledged[int(key)] = int(more)
        store = Store.open(path)
        session = Session.open(project, pool=pool, store=store)
        rounds = {r.number: r.n_labelled for r in session.rounds}
        if rounds != acknowledged:
            failures.append(f"{len(acknowledged)} fits acknowledged, {len(rounds)} stored")
        answered = {str(e.payload.get("ask")) for e in session.log.events if e.kind == "label"}
        failures += [f"the answer to {ask} is lost" for ask in labels if ask not in answered]
        order = sorted(rounds)
        for number in order[:: max(1, len(order) // REPLAYED)]:
            try:
                if session.fits.model_at(number).n_labelled != rounds[number]:
                    failures.append(f"round {number} is replayed on other labels")
            except InputError as error:
                failures.append(str(error))
        session.refit()
        if session.stale:
            failures.append("after a refit the project is stale")
        counts = {"fits acknowledged": len(acknowledged), "answers acknowledged": len(labels)}
        store.close()
    return Row.of(
        f"refit, merge, rename, undo at once, {len(PEOPLE)} programs, {count} s",
        len(order),
        failures,
        counts=counts,
    )


def _disturb(
    session: Session, say: Callable[[str], None], rng: np.random.Generator, going: Callable[[], bool]
) -> None:
    """Answer, change the classes, undo and refit, in any order."""
    step = 0
    while going():
        step += 1
        for ask in session.ask(2):
            classes = session.classes
            try:
                if session.tell(ask.id, classes[int(rng.integers(len(classes)))]):
                    say(f"label {ask.id} -")
            except InputError:
                pass  # the class was renamed or merged away in between
        what = int(rng.integers(6))
        try:
            if what == 0:
                session.undo()
            elif what == 1 and len(session.classes) > 3:
                session.classes.merge(session.classes[-1], session.classes[0])
            elif what == 2:
                session.classes.add(f"{session.annotator}{step}")
            elif what == 3:
                session.classes.rename(session.classes[-1], f"{session.annotator}-{step}")
        except InputError:
            pass  # somebody was faster
        done = session.refit()
        if done is not None:
            say(f"round {done.number} {done.n_labelled}")
