"""A pool whose known classes are what people answered to one question: for runs with nobody at the desk."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.pools.pool import Pool
from workbench.sessions.reopening import open_pool
from workbench.store import Store, fold

PREFIX = "question:"
"""Of the name that such a pool has in a run's specification; the id of a question follows."""
FEWEST = 20
"""Answers without which nothing can be asked and measured again."""


def is_answered(name: str) -> bool:
    """True if a pool's name means the answers to a question."""
    return name.startswith(PREFIX)


def answered_source(question_id: str, store: Store | None = None) -> tuple[str, dict[str, Any]]:
    """The name and options by which runs find the answers that there are now, whatever is added later.

    Args:
        question_id: of a question of a project.
        store: the default database unless given.
    """
    events = (store or Store.open()).events(question_id)
    return PREFIX + question_id, {"events": events[-1].id if events else 0}


def answered_title(name: str) -> str:
    """Name of it for people: the project and the question, or that it was deleted."""
    question_id = name.removeprefix(PREFIX)
    for record in Store.open().questions(question_id):
        if record.id == question_id:
            return f"{record.name}: {record.question}"
    return "a question of a deleted project"


def answered_pool(name: str, options: Mapping[str, Any] | None = None, store: Store | None = None) -> Pool:
    """The pool of a question's project, its classes known where people agree on an answer.

    Args:
        name: "question:" and the id of the question.
        options: "events" is the number of the last event that counts; all of them unless given.
        store: the default database unless given.

    Returns:
        The pool without a test split; -1 in its truth where nobody answered.

    Raises:
        InputError: no such question, another option, or too few answers.
    """
    arguments = dict(options or {})
    last = arguments.pop("events", None)
    if arguments or not (last is None or (isinstance(last, int) and not isinstance(last, bool))):
        raise InputError(
            f"The answers to a question are read with the option events, a number; got {dict(options or {})}."
        )
    store = store or Store.open()
    record = store.project(name.removeprefix(PREFIX))
    state = fold(event for event in store.events(record.id) if last is None or event.id <= last)
    codes = {item: code for item, code in state.codes.items() if item not in state.undecided}
    answers = np.bincount(np.fromiter(codes.values(), np.int64, len(codes)), minlength=2)
    if len(codes) < FEWEST or (answers > 1).sum() < 2:
        raise InputError(
            f"Only {len(codes)} items of the question {record.question!r} are answered: a comparison needs "
            f"{FEWEST}, and two of each of two classes. Answer more of them first."
        )
    pool = open_pool(store, record.family)[1]
    truth = np.full(len(pool), -1, dtype=np.int64)
    truth[list(codes)] = list(codes.values())
    title = f"{record.name}: {record.question}"
    return replace(pool, name=title, classes=state.classes, truth=truth, test=None)
