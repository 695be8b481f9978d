"""A program that labels is killed (SIGKILL) at arbitrary moments; what it was told is saved must be there.

Every second program labels a project of two questions: a row of answers is there with both, or with neither.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.trials import Row
from benchmarks.trials._sessions import CONSTANT, Child
from workbench.pools import load_pool
from workbench.registry import trust
from workbench.sessions import Operation, Session
from workbench.sessions.operations import SKIPPED
from workbench.store import Store

QUESTIONS: tuple[tuple[str, ...], ...] = (("class",), ("class", "urgent"))
"""Of each of the two projects."""


@dataclass
class Told:
    """Answers of a project's programs before they were killed.

    Attributes:
        tried: operations -> names of the questions that they are about.
        saved: operation and name of a question -> kind, and class of a label, that were acknowledged.
        fits: number of a fit that was acknowledged -> labels it saw.
    """

    tried: dict[str, tuple[str, ...]] = field(default_factory=dict)
    saved: dict[tuple[str, str], str] = field(default_factory=dict)
    fits: dict[int, int] = field(default_factory=dict)

    def take(self, line: str) -> None:
        """Take in a line of a program."""
        what, key, more = line.split()
        if what == "fit":
            self.fits[int(key)] = int(more)
        elif what == "try":
            self.tried[key] = tuple(more.split(","))
        else:
            for part in more.split(","):
                name, _, kind = part.partition("=")
                self.saved[key, name] = kind


def run(count: int = 100, seed: int = 0) -> Row:
    """Kill `count` programs one after the other, in turn on a project of one question and of two.

    Args:
        count: how many.
        seed: of what they do and when they are killed.
    """
    trust(CONSTANT)
    rng = np.random.default_rng(seed)
    pool = load_pool("three-gaussians", n_items=400 + 40 * count, seed=seed)
    failures: list[str] = []
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crash.sqlite"
        store = Store.open(path)
        given: dict[str, Any] = {"classifier": CONSTANT, "policy": "margin", "store": store}
        classes = ("class", list(pool.classes))
        projects = [
            Session.create(
                pool, questions=[classes, *names[1:]], name=str(len(names)), annotator="ann", **given
            ).id
            for names in QUESTIONS
        ]
        store.close()
        told = [Told() for _ in projects]
        for number in range(count):

            def work(say: Callable[[str], None], number: int = number) -> None:
                store = Store.open(path)
                session = Session.open(projects[number % 2], pool=pool, store=store, annotator="ann")
                _label(session, say, number, np.random.default_rng([seed, number]))

            child = Child(work)
            said = [child.lines.readline() for _ in range(int(rng.integers(1, 40)))]
            os.kill(child.pid, signal.SIGKILL)
            left, _ = child.end()
            # The last line may be half a line: nobody was told.
            for line in (line for line in [*said, *(f"{text}\n" for text in left)] if line.endswith("\n")):
                told[number % 2].take(line)
        store = Store.open(path)
        for project, one in zip(projects, told, strict=True):
            session = Session.open(project, pool=pool, store=store, annotator="ann")
            failures += _compared(session, one, counts)
        store.close()
    return Row.of("the program is killed while a person labels", count, failures, counts=dict(counts))


def _compared(session: Session, told: Told, counts: Counter[str]) -> list[str]:
    """Compare what a project's programs told with what is stored."""
    failures: list[str] = []
    stored: dict[str, dict[str, Any]] = {}
    for name in session.questions:
        events = [event for event in session.question(name).log.events if event.operation]
        stored[name] = {str(event.operation): event for event in events}
        if len(stored[name]) != len(events):
            failures.append(f"{len(events) - len(stored[name])} operations are stored twice in {name!r}")
    for (key, name), kind in told.saved.items():
        event, (what, _, label) = stored[name].get(key), kind.partition(":")
        if event is None:
            failures.append(f"operation {key} ({kind}) was acknowledged and is lost in {name!r}")
        elif event.kind != what:
            failures.append(f"operation {key} was a {what} and is a {event.kind} in {name!r}")
        elif what == "label" and event.payload["class"] != label:
            failures.append(f"operation {key} was {label} and is {event.payload['class']} in {name!r}")
    failures += [
        f"operation {key} is stored in part"
        for key, names in told.tried.items()
        if len({key in stored[name] for name in names}) > 1
    ]
    rounds = {made.number: made.n_labelled for made in session.rounds}
    failures += [f"fit {n} was acknowledged and is lost" for n in told.fits if rounds.get(n) != told.fits[n]]
    session.refit()
    if session.stale:
        failures.append("after a refit the project is stale")
    counts["operations acknowledged"] += len({key for key, _ in told.saved})
    counts["fits acknowledged"] += len(told.fits)
    return failures


def _label(session: Session, say: Callable[[str], None], number: int, rng: np.random.Generator) -> None:
    """Acts of a person, one after the other, each printed when it was acknowledged."""
    several = len(session.questions) > 1
    for step in range(10_000):
        key, what = f"k{number}-{step}", int(rng.integers(6))
        batch = _batch(session, key, what, rng) if not several else _rows(session, key, what, rng)
        if not batch:
            return
        for operation, names in batch:
            if operation.kind == "answers":
                say(f"try {operation.id} {','.join(names)}")
        told = session.apply([operation for operation, _ in batch])
        for (operation, names), done in zip(batch, told, strict=True):
            if done.status == "saved":
                # a step back is of the questions that what it took back is of
                about = names if done.about is None else _questions_of(session, done.about.act)
                said = (f"{name}={_said(operation, name)}" for name in about)
                say(f"saved {operation.id} {','.join(said)}")
        if step % 5 == 4:
            finished = session.refit()
            if finished is not None:
                say(f"fit {finished.number} {finished.n_labelled}")


def _questions_of(session: Session, act: str | None) -> list[str]:
    return [
        name for name in session.questions if any(e.act == act for e in session.question(name).log.events)
    ]


def _said(operation: Operation, name: str) -> str:
    """Kind of the event that an operation is in a question, with the class of a label."""
    if operation.kind == "answers":
        return f"label:{operation.answers[name]}" if operation.answers else "skip"
    return f"label:{operation.label}" if operation.kind == "label" else operation.kind


Batch = list[tuple[Operation, list[str]]]
"""Operations, each with the names of the questions that it is about."""


def _batch(session: Session, key: str, what: int, rng: np.random.Generator) -> Batch:
    """Send changes of one question: an answer, a skip, an undo, or three answers at once."""
    asks, names = session.ask(3), [session.questions[0]]
    if len(asks) < 3:
        return []
    name = str(rng.choice(session.classes))
    if what == 3:
        return [(Operation(key, "skip", ask=asks[0].id), names)]
    if what == 4:
        return [(Operation(key, "undo"), names)]
    return [
        (Operation(f"{key}-{i}", "label", ask=ask.id, label=name), names)
        for i, ask in enumerate(asks if what == 5 else asks[:1])
    ]


def _rows(session: Session, key: str, what: int, rng: np.random.Generator) -> Batch:
    """Send changes of several questions: rows that are answered or skipped, or an undo.

    An item of the first question's test split is open in the second one alone.
    """
    if what == 4:
        return [(Operation(key, "undo"), [])]
    asks = session.queue.items(3)
    if len(asks) < 3:
        return []
    choices = {name: session.question(name).classes for name in session.questions}
    made = []
    for i, ask in enumerate(asks if what == 5 else asks[:1]):
        row: dict[str, Any] = {"answers": {name: str(rng.choice(choices[name])) for name in ask.asks}}
        if what == 3:
            row = {"text": SKIPPED}
        made.append((Operation(f"{key}-{i}", "answers", item=ask.item, **row), list(ask.asks)))
    return made
