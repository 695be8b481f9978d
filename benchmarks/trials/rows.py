"""Answers to two questions at once, of two programs, while transactions fail: a row is there as it was told.

Over SQLite, and over PostgreSQL where WORKBENCH_TEST_POSTGRESQL names a server (postgresql://user@host/database).
"""

from __future__ import annotations

import multiprocessing
import os
import random
import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from queue import Empty
from typing import Any

import numpy as np

from benchmarks.trials import Row
from benchmarks.trials._sessions import CONSTANT, database
from workbench.errors import InputError, StorageError
from workbench.registry import trust
from workbench.sessions import Operation, Session
from workbench.sessions.answering import Answers
from workbench.sessions.operations import SKIPPED
from workbench.store import Store, fold
from workbench.store.log import Recorder

FAIL = (0.0, 0.3)
PROGRAMS, PEOPLE = 2, 4
SECONDS = 600.0
"""After which a person who is not done hangs."""
_SHARED = 40  # items about which everybody answers; each person has others
_CLASSES = ("a", "b", "c")
_LATE = "late"  # a question that is added meanwhile
_HALF = 0.1
"""Share of the answers of a row that are refused when they were recorded."""
_ON_PURPOSE = "This answer is refused on purpose."


@dataclass
class Told:
    """Replies that the people of a program got.

    Attributes:
        saved: operation -> name of a question in which it must be stored -> item and class that stand there
            as well where somebody else said so; None for an operation that must be there itself.
        steps: undo and redo that must be in the log of some question.
        refused: operations that must not be there.
        problems: whatever else should not have happened.
    """

    saved: dict[str, dict[str, tuple[int, str] | None]] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def run(count: int = 4000, seed: int = 0) -> Row:
    """Try `count` changes over each database, half of them where three transactions of ten fail.

    Args:
        count: changes a database.
        seed: of what is done, and of what fails.
    """
    failures: list[str] = []
    counts: Counter[str] = Counter()
    kinds = ["sqlite"] + (["postgresql"] if os.environ.get("WORKBENCH_TEST_POSTGRESQL") else [])
    for kind in kinds:
        for share in FAIL:
            with tempfile.TemporaryDirectory() as folder, database(kind, folder) as url:
                found = _tried(url, count // len(FAIL), seed, share, counts)
            failures += [f"{kind}, {share:.0%} fail: {line}" for line in found]
    title = "rows of two questions, 0 and 30 % of the transactions fail"
    return Row.of(title, count * len(kinds), failures, " and ".join(kinds), counts=dict(counts))


def _tried(url: str, count: int, seed: int, share: float, counts: Counter[str]) -> list[str]:
    trust(CONSTANT)
    store = Store.open(url)
    each = count // (PROGRAMS * PEOPLE)
    points = np.random.default_rng(seed).normal(size=(_SHARED + PROGRAMS * PEOPLE * each, 2))
    given: dict[str, Any] = {
        "classifier": CONSTANT,
        "policy": "random",
        "twins": False,
        "evaluation_share": 0.0,
    }
    questions = [("topic", list(_CLASSES)), "fraud"]
    made = Session.create(points, name="rows", questions=questions, store=store, annotator="ann", **given).id
    store.close()
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    programs = [
        context.Process(target=_program, args=(url, made, number, each, seed, share, queue))
        for number in range(PROGRAMS)
    ]
    for program in programs:
        program.start()
    told: list[Told] = []
    failures: list[str] = []
    for _ in programs:
        try:
            told.append(queue.get(timeout=2 * SECONDS))
        except Empty:
            failures.append("a program hangs")
    for program in programs:
        program.join(30)
        program.kill()
    store = Store.open(url)
    logs = {one.question: store.events(one.id) for one in store.questions(made)}
    store.close()
    return failures + _compared(logs, told, counts)


def _compared(logs: Mapping[str, list[Any]], told: list[Told], counts: Counter[str]) -> list[str]:
    """Compare the replies with what is stored."""
    stored = {name: Counter(e.operation for e in events if e.operation) for name, events in logs.items()}
    failures = [line for one in told for line in one.problems]
    for name, numbers in stored.items():
        failures += [f"{key} is {n} times in {name!r}" for key, n in numbers.items() if n > 1]
    # what is about items is in the log of each question in which it counts
    ids = sorted({event.id for events in logs.values() for event in events})
    if ids != list(range(1, len(ids) + 1)):
        failures.append("the log has gaps")
    if _LATE not in logs:
        failures.append("the question that was added is not there")
    labels = {
        name: {(e.item, e.payload["class"]) for e in events if e.kind == "label"}
        for name, events in logs.items()
    }
    for one in told:
        for key, names in one.saved.items():
            failures += [
                f"{key} was acknowledged, and is not in {name!r}"
                for name, said in names.items()
                if key not in stored[name] and said not in labels[name]
            ]
        failures += [
            f"{key} was refused, and is there"
            for key in one.refused
            if any(key in n for n in stored.values())
        ]
        failures += [
            f"{key} was acknowledged, and is nowhere"
            for key in one.steps
            if not any(key in n for n in stored.values())
        ]
        counts["changes acknowledged"] += len(one.saved) + len(one.steps)
        counts["refused or failed"] += len(one.refused)
    counts["events"] += len(ids)
    return failures


# --------------------------------------------------------------------------- a program


def _program(url: str, project: str, number: int, each: int, seed: int, share: float, queue: Any) -> None:
    trust(CONSTANT)
    _fail(random.Random(seed * 100 + number), share, url.startswith("sqlite"))
    store = Store.open(url)
    session = Session.open(project, store=store, annotator=f"first{number}")
    told = Told()
    people = [
        threading.Thread(target=_person, args=(session, number, k, each, seed, told), daemon=True)
        for k in range(PEOPLE)
    ]
    for person in people:
        person.start()
    for person in people:
        person.join(SECONDS)
    told.problems += [f"person {k} of program {number} hangs" for k in range(PEOPLE) if people[k].is_alive()]
    if not told.problems:
        for one in map(session.question, session.questions):
            view = one._project.view()  # of one moment: the other program may still write
            if fold(view.events) != view.state:
                told.problems.append(f"the state of {one.question_name!r} is not that of its log")
    queue.put(told)


def _fail(rng: random.Random, share: float, is_file: bool) -> None:
    """Have a share of the transactions refused by the database, before or after a part of it was written.

    And some answers of a row refused, after they or another one of it were recorded.
    """
    from sqlalchemy.exc import OperationalError

    flush = Recorder.flush

    def flush_or_fail(self: Recorder) -> None:
        fails = bool(self.added) and rng.random() < share
        after = rng.random() < 0.5
        if not fails or after:
            flush(self)
        if not fails:
            return
        if is_file:
            error: Exception = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorname = "SQLITE_IOERR"  # type: ignore[attr-defined]
        else:
            import psycopg

            error = psycopg.errors.DiskFull("no space left on the device")
        raise OperationalError("flush", None, error)

    Recorder.flush = flush_or_fail  # type: ignore[method-assign]
    answer = Answers.answer

    def answer_or_fail(self: Answers, *given: Any, **more: Any) -> bool:
        # one question of a row cannot be answered when another one's answer is recorded, or its own
        recorded = answer(self, *given, **more)
        if rng.random() < _HALF:
            raise InputError(_ON_PURPOSE)
        return recorded

    Answers.answer = answer_or_fail  # type: ignore[method-assign]


def _person(session: Session, number: int, k: int, each: int, seed: int, told: Told) -> None:
    rng = random.Random(f"{seed} {number} {k}")
    mine = session.as_annotator(f"w{number}.{k}")
    first = _SHARED + (number * PEOPLE + k) * each
    for step in range(each):
        key = f"{number}-{k}-{step}"
        if (number, k, step) == (0, 0, each // 2):
            _until_done(lambda: session.questions.add(_LATE))
        do = rng.choices(DOING, WEIGHTS)[0]
        try:
            do(mine, key, first + step, rng, told)
        except Exception as error:
            told.refused.append(key)
            if not (_of_storage(error) or str(error) == _ON_PURPOSE):
                told.problems.append(f"{do.__name__} {key}: {type(error).__name__}: {str(error)[:150]}")


def _of_storage(error: BaseException) -> bool:
    """Tell whether an error is that of `_fail`, or the sentence about it."""
    from sqlalchemy.exc import OperationalError

    return isinstance(error, StorageError | OperationalError)


def _until_done(do: Callable[[], Any]) -> None:
    for _ in range(100):
        try:
            do()
            return
        except Exception as error:
            if not _of_storage(error):
                raise


def _said(rng: random.Random) -> dict[str, Any]:
    return {"topic": rng.choice(_CLASSES), "fraud": rng.choice(("yes", "no"))}


def _row(mine: Session, key: str, item: int, rng: random.Random, told: Told) -> None:
    """A row, about an item of one's own or one that others answer, too; beside it one that cannot be done."""
    said = _said(rng)
    about = item if rng.random() < 0.5 else rng.randrange(_SHARED)
    row = Operation(key, "answers", item=about, answers=said)
    half = Operation(f"{key}-half", "answers", item=item, answers={"topic": "a", "fraud": "neither"})
    done, refused = mine.apply([row, half])
    if done.status == "saved":
        told.saved[key] = {n: (about, c) for n, c in said.items() if repr(n) not in done.why}
    else:
        told.refused.append(key)
    told.refused.append(half.id)
    expected = done.status != "refused" or done.why == _ON_PURPOSE
    if refused.status != "refused" or not expected:
        told.problems.append(f"{key} is {done.status} ({done.why}), {half.id} is {refused.status}")


def _asked(mine: Session, key: str, item: int, rng: random.Random, told: Told) -> None:
    """An answer to what is asked."""
    for ask in mine.queue.items(1):
        said = {name: value for name, value in _said(rng).items() if name in ask.asks}
        if said and mine.tell(ask, said, operation=key):
            told.saved[key] = {name: (ask.item, value) for name, value in said.items()}


def _noted(mine: Session, key: str, item: int, rng: random.Random, told: Told) -> None:
    """A flag or a note, in all questions; or the item is set aside where it is open."""
    kind = rng.choice(("flag", "note", "answers"))
    [done] = mine.apply([Operation(key, kind, item=item, text=SKIPPED)])
    told.saved[key] = {} if kind == "answers" else {"topic": None, "fraud": None}
    if done.status != "saved":
        told.problems.append(f"{kind} {key} is {done.status}: {done.why}")


def _undone(mine: Session, key: str, item: int, rng: random.Random, told: Told) -> None:
    """One's last change is taken back, and put there again or not."""
    given = [Operation(f"{key}-{kind}", kind) for kind in ("undo", "redo")[: rng.randint(1, 2)]]
    for operation, done in zip(given, mine.apply(given), strict=True):
        if done.status == "saved":
            told.steps.append(operation.id)
        else:
            told.refused.append(operation.id)


def _block(mine: Session, key: str, item: int, rng: random.Random, told: Told) -> None:
    """A block over both that raises now and then: what ended within it counts."""
    raises = rng.random() < 0.5

    def work() -> None:
        mine.apply([Operation(key, "flag", item=item)])
        if raises:
            raise KeyError(key)

    try:
        mine.log.together(work)
    except KeyError:
        if not raises:
            raise
    told.saved[key] = {"topic": None, "fraud": None}


DOING = (_row, _asked, _noted, _undone, _block)
WEIGHTS = (6, 3, 3, 2, 2)
