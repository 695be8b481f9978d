"""Copies of a project: its state does not depend on where it lies or when it was looked at.

Random histories of two people, checks of frozen labels among them, go whole, piecewise, reopened, duplicated,
through a bundle, through a backup, and, where WORKBENCH_TEST_POSTGRESQL names a server's empty database,
through that. Every second history is of a project of two questions, with rows of answers, second opinions and
second looks. Compared are, of each question, the training set as a sequence, every export, the model of every
round, and what the checks say.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.driving import own_home
from benchmarks.trials import Row
from workbench.errors import InputError
from workbench.exchange.imports import import_labels
from workbench.exchange.labels import export_labels
from workbench.exchange.projects import open_bundle, write_project_bundle
from workbench.sessions import Event, Operation, Session
from workbench.store import Store, fold

EVENTS = 30
EXPORTS = ("csv", "jsonl", "npz", "label-studio")
CLASSIFIER = "logistic-regression"
POOL, OPTIONS = "three-gaussians", {"n_items": 60}


def _said(rng: np.random.Generator, name: str) -> str | None:
    return None if rng.random() < 0.1 else name


def _row(session: Session, rng: np.random.Generator) -> None:
    """Answers to all questions about an item that is asked, and to one question about any item."""
    classes = {name: session.question(name).classes for name in session.questions}
    for ask in session.queue.items(2):
        session.tell(ask, {name: _said(rng, str(rng.choice(classes[name]))) for name in ask.asks})
    row = {name: _said(rng, str(rng.choice(names))) for name, names in classes.items()}
    kind, item = str(rng.choice(["answers", "amend"])), int(rng.choice(session.pool.trainable[:12]))
    session.apply([Operation(f"row-{len(session.log.events)}-{item}", kind, item=item, answers=row)])


def _skipped(session: Session) -> None:
    """An item that is asked about is set aside, in every question where it is open."""
    for ask in session.queue.items(1):
        session.tell(ask, Event.skip())


def checks_of(session: Session) -> Any:
    """State of the checks of frozen labels, and the next one in the order."""
    now = session.checks.state()
    if now is None:
        return None
    frozen = now.frozen
    return (
        now.phase,
        now.why,
        now.size,
        now.certified,
        np.round(now.curve, 12).tolist(),
        now.to_go,
        now.second_looks,
        now.evidence.places.tolist(),
        now.evidence.wrong.tolist(),
        now.evidence.later,
        now.labelled_since,
        frozen.seed,
        frozen.order(20).tolist(),
        frozen.codes.tolist(),
        frozen.promise,
        None if now.certificate is None else now.certificate["id"],
    )


def step(session: Session, rng: np.random.Generator) -> None:
    """One of the things that people do."""
    items = session.pool.trainable
    some = [int(i) for i in rng.choice(items[:12], int(rng.integers(1, 4)), replace=False)]
    names = session.classes
    name, other = (names[int(i)] for i in rng.integers(0, len(names), 2))
    doing: list[Callable[[], Any]] = [
        lambda: session.items.label(some, name),
        lambda: session.items.label(some[0], name),
        lambda: session.items.relabel(some, name),
        lambda: session.items.import_labels([(i, name) for i in some], "file"),
        session.undo,
        session.undo,
        session.redo,
        lambda: session.items.clear(some[:1]),
        lambda: session.items.note(some[0], "a note"),
        lambda: session.items.flag(some[0], reason="odd"),
        lambda: [session.tell(ask.id, name) for ask in session.ask(2)],
        lambda: session.classes.merge(name, other),
        lambda: session.classes.rename(name, f"{name}+"),
        lambda: session.classes.add(f"new {int(rng.integers(3))}"),
        lambda: session.classes.remove(name),
        session.refit,
        session.refit,
        lambda: session.checks.start(0.2, 0.8, per_class=bool(rng.integers(2))),
        lambda: [session.checks.answer(ask.id, _said(rng, name)) for ask in session.checks.ask(6)],
        lambda: [session.checks.answer(ask.id, _said(rng, name)) for ask in session.checks.ask(6)],
        session.checks.certificate,
    ]
    if len(session.questions) > 1:
        doing += 8 * [lambda: _row(session, rng)]
        doing += [lambda: session.items.look_again(2), lambda: _skipped(session)]
    with contextlib.suppress(InputError):
        doing[int(rng.integers(len(doing)))]()


def history(store: Store, seed: int) -> Session:
    """A project of a random history, looked at now and then while it was made."""
    rng = np.random.default_rng(seed)
    given: dict[str, Any] = {"pool_options": OPTIONS, "classifier": CLASSIFIER, "policy": "margin"}
    if seed % 2:
        given |= {"questions": [("class", ["A", "B", "C"]), "urgent"], "overlap": 0.3}
    session = Session.create(POOL, store=store, annotator="ann", **given)
    people = (session, session.as_annotator("bob"))
    for _ in range(EVENTS):
        person = people[int(rng.integers(2))]
        step(person.question(str(rng.choice(person.questions))), rng)
        if rng.random() < 0.5:
            _ = person.state
    return session


def told(session: Session) -> dict[str, Any]:
    """All that a project says, in comparable form."""
    state = session.state
    rounds = []
    for record in session.rounds:
        model = session.fits.model_at(record.number)
        rounds.append((model.items.tolist(), model.codes.tolist(), np.round(model.probabilities, 9).tolist()))
    return {
        "training": list(state.training.items()),
        "labels": list(state.labels.items()),
        "votes": [(i, list(votes.items())) for i, votes in state.votes.items()],
        "classes": list(state.class_names.items()),
        "rounds": rounds,
        "evaluation": str(session.predictions.evaluation),
        "stale": session.stale,
        "checks": checks_of(session),
        **{form: export_labels(session, form) for form in EXPORTS if state.labels},
    }


def differences(session: Session, ways: dict[str, Session]) -> list[str]:
    """Differences of the project's state in another place."""
    here = told(session)
    found = []
    state = fold(session.log.events)
    if list(state.training.items()) != here["training"] or list(state.votes) != list(session.state.votes):
        found.append("folded in one go: another order")
    for way, other in ways.items():
        try:
            there = told(other)
        except Exception as error:  # a round that is refused is what this looks for
            found.append(f"{way}: {type(error).__name__}: {error}")
            continue
        found += [f"{way}: another {what}" for what in here if here[what] != there[what]]
    if here["labels"]:
        n, form = len(session.log.events), EXPORTS[0]
        again = import_labels(export_labels(session, form), session.pool, form, session.classes)
        session.as_annotator("eve").items.import_labels(again, "own")
        if len(session.log.events) != n:
            found.append("its own export taken in again changes it")
    return found


def run(count: int = 2000, seed: int = 0) -> Row:
    """Tries `count` histories."""
    failures: list[str] = []
    n_rounds = 0
    with tempfile.TemporaryDirectory() as folder, own_home(Path(folder) / "home"):
        server = os.environ.get("WORKBENCH_TEST_POSTGRESQL")
        used = Store.open(Path(folder) / "used.sqlite")
        server_store = None if server is None else Store.open(server)
        history(used, seed)  # its ids are not those of the histories below
        for number in range(count):
            here = Store.open(Path(folder) / f"{number}.sqlite")
            history(here, seed + 10_000_000 + number % 3)
            session = history(here, seed * 1_000_003 + number)
            n_rounds += len(session.rounds)
            whole = here.whole_project(session.id)
            places = {
                "reopened": (here, session.id),
                "duplicated": (here, here.duplicate_project(session.id, "copy").id),
            }
            if server_store is not None:
                places["on a server"] = (server_store, server_store.restore_project(whole).id)
            place = Path(folder) / f"bundle-{number}"
            write_project_bundle(place, session)
            places["through a bundle"] = (used, open_bundle(place, store=used, name="bundle").id)
            here.backup(Path(folder) / f"{number}.copy")
            restored = Store.open(Path(folder) / f"{number}-restored.sqlite")
            restored.restore(Path(folder) / f"{number}.copy")
            places["restored"] = (restored, session.id)
            ways = {
                way: Session.open(id_, store=store, annotator="ann") for way, (store, id_) in places.items()
            }
            for name in session.questions:
                there = {way: one.question(name) for way, one in ways.items()}
                found = differences(session.question(name), there)
                failures += [f"history {number}, {name!r}: {line}" for line in found]
            for store in (here, restored):
                store.close()
        for store in (used, server_store):
            if store is not None:
                store.close()
    return Row.of(
        "random histories, looked at, copied, bundled, restored" + (" and on a server" if server else ""),
        count,
        failures,
        counts={"rounds compared": n_rounds},
    )
