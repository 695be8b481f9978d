"""The log: events of a project, added in one transaction and never changed.

Writes to one project are serialised by a lock on its row. Events are numbered within their project, from
1 without a gap, in the order of commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from sys import intern
from typing import TYPE_CHECKING, Any

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.formats.npy_files import arrays_to_bytes
from workbench.reading import checked_texts, valid_text
from workbench.store.database import NUMBER, Database, tables
from workbench.store.database_errors import retried
from workbench.store.events import ANSWERS, SOURCE, STAGES, UNDOABLE, Event, now
from workbench.store.runs import insert_round

if TYPE_CHECKING:
    from sqlalchemy import Connection

_MANY = 1000
_RECURRING = frozenset(("class", "classifier", "policy", "role"))  # of events, whose values are few


@dataclass(frozen=True)
class News:
    """Events that somebody does not know yet.

    Attributes:
        events: oldest first.
        afresh: these are all there are, and whatever was known before does not count: nothing was known, or
            the log is another one.
    """

    events: list[Event]
    afresh: bool = False


class Log(Database):
    """Events of projects."""

    @retried
    def events(self, question_id: str) -> list[Event]:
        """Events that count in a question (the first one has the project's id), oldest first."""
        from sqlalchemy import func, or_, select

        q, c = (t := tables()).questions.c, t.events.c
        with self._read() as connection:
            project = connection.execute(select(q.project).where(q.id == question_id)).scalar_one_or_none()
            own = c.project == project, c.question == question_id
            query = select(func.min(c.id)).where(*own)
            first = 0 if project == question_id else connection.execute(query).scalar()
            events = all_events(connection, (own[0], or_(own[1], c.question.is_(None))))
        return [event for event in events if event.question is not None or event.counts_in(first or 0)]

    @retried
    def news(self, project_id: str, known: Event | None = None) -> News:
        """Events of all questions of a project after the last one that the caller knows."""
        with self._read() as connection:
            return _news(connection, project_id, known)

    @contextmanager
    def recording(self, project_id: str, known: Event | None = None) -> Iterator[Recorder]:
        """A transaction that alone may add events to the project; committed when the block ends.

        Args:
            project_id: the project.
            known: the last event that the caller knows; the recorder's `missed` has what came after.

        Yields:
            The recorder. An exception in the block rolls everything back; so does a server that ends the
            connection, and whoever called begins again (`retry.retried`).
        """
        with self._write() as connection:
            row = self._locked(connection, project_id)
            # the row is read as it is once its lock is held: who knows its last event knows all of them
            if known is not None and (row.last_event, row.changed) == (known.id, known.time):
                missed = News([])
            else:
                missed = _news(connection, project_id, known)
            recorder = Recorder(connection, project_id, missed, row.last_event, row.n_labelled)
            yield recorder
            recorder.flush()

    def _locked(self, connection: Connection, project_id: str) -> Any:
        """The project's `last_event`, `changed` and `n_labelled`, once nobody else adds to it.

        Raises:
            InputError: there is no such project.
        """
        from sqlalchemy import func, select

        c = tables().projects.c
        columns = [c.last_event, c.changed, c.n_labelled]
        if not self._is_file:
            columns.append(func.txid_current())
        row = connection.execute(select(*columns).where(c.id == project_id).with_for_update()).one_or_none()
        if row is None:
            raise InputError(f"There is no project {project_id!r} in {self._shown}.")
        if not self._is_file:
            connection.info[NUMBER] = int(row[3])
        return row

    def contributors(self) -> dict[str, list[str]]:
        """Project id -> who decided something in any of its questions, in the order of their names."""
        from sqlalchemy import select

        c = tables().events.c
        people: dict[str, list[str]] = {}
        query = select(c.project, c.annotator).where(c.kind.in_(UNDOABLE), c.annotator != SOURCE)
        for row in self._rows(query.distinct().order_by(c.project, c.annotator)):
            people.setdefault(row.project, []).append(row.annotator)
        return people

    def stages(self) -> dict[str, dict[str, Any]]:
        """Project id -> its last fit, start of checks and certificate, by kind of event, the oldest first.

        A fit has its figures; the others, which may be large, are None.
        """
        from sqlalchemy import case, func, select

        c = tables().events.c
        ids = select(c.project, func.max(c.id).label("id")).where(c.kind.in_(STAGES))
        last = ids.group_by(c.project, c.kind).subquery()
        query = select(c.project, c.kind, case((c.kind == "round", c.payload)).label("figures"))
        query = query.join(last, (c.project == last.c.project) & (c.id == last.c.id)).order_by(c.id)
        stages: dict[str, dict[str, Any]] = {}
        for row in self._rows(query):
            stages.setdefault(row.project, {})[row.kind] = row.figures
        return stages


class Recorder:
    """Adds events to one project inside one transaction; made by `Store.recording`.

    They reach the database together when the transaction ends, in one statement.

    Attributes:
        missed: what others recorded since the caller's last look.
        added: events recorded through this object, with id and time.
        n_labelled: question -> items with a label after them, for the list of projects, where it was counted.
        failed: whether the database refused a statement, after which nothing of the transaction counts.
    """

    def __init__(
        self, connection: Connection, project_id: str, missed: News, last: int, counted: Mapping[str, int]
    ) -> None:
        self._connection = connection
        self._last = last
        self._project_id = project_id
        self._rounds: list[tuple[str, int, Mapping[str, Any], bytes]] = []
        self._counted = counted
        self.missed = missed
        self.added: list[Event] = []
        self.n_labelled: dict[str, int] = {}
        self.failed = False

    def add(self, event: Event) -> Event:
        """Record an event of a question, the first one unless it says which, or of none.

        Returns:
            It with id and time; durable once the transaction ends.
        """
        question = None if event.question is None else event.question or self._project_id
        recorded = _as_recorded(event, self._last + 1, question)
        self._last = recorded.id
        self.added.append(recorded)
        return recorded

    @property
    def mark(self) -> tuple[int, int]:
        """Number of entries added so far."""
        return len(self.added), len(self._rounds)

    def back_to(self, mark: tuple[int, int]) -> None:
        """Forget what was added after a mark."""
        n_events, n_rounds = mark
        self._last -= len(self.added) - n_events
        del self.added[n_events:], self._rounds[n_rounds:]

    def flush(self) -> None:
        """Hand the database all that was added; for `Store.recording`."""
        for question, number, record, state in self._rounds:
            insert_round(self._connection, question, number, record, state)
        if self.added:
            touched = {event.question for event in self.added}
            counts = {id_: n for id_, n in self._counted.items() if id_ not in touched}
            _insert(self._connection, self._project_id, self.added, counts | self.n_labelled)

    def add_round(self, record: Mapping[str, Any], state: Mapping[str, Array], question: str) -> int:
        """Store a finished round of a question; the states of earlier ones are dropped.

        Args:
            record: JSON; its "number" is set to the one the round gets.
            state: the posterior as plain arrays.
            question: its id.

        Returns:
            The number: the next one at the moment of writing, whatever was read before the fit.
        """
        from sqlalchemy import func, select

        c = tables().rounds.c
        newest = select(func.max(c.number)).where(c.owner == question)
        added = [number for of, number, _, _ in self._rounds if of == question]
        if added:
            number = added[-1] + 1
        else:
            try:
                last = self._connection.execute(newest).scalar_one_or_none()
            except BaseException:
                self.failed = True
                raise
            number = 0 if last is None else int(last) + 1
        self._rounds.append((question, number, dict(record) | {"number": number}, arrays_to_bytes(state)))
        return number


def insert_events(
    connection: Connection, project_id: str, question: str, events: Iterable[Event], n_labelled: int
) -> None:
    """Record the first events of a question inside a transaction that alone may add to the project.

    Args:
        connection: of the transaction.
        project_id: the project.
        question: id of the question.
        events: in order; those without a number come after all that there are.
        n_labelled: items with a label after them.
    """
    from sqlalchemy import select

    c = tables().projects.c
    row = connection.execute(select(c.last_event, c.n_labelled).where(c.id == project_id)).one()
    recorded = [
        _as_recorded(event, event.id or number, None if event.question is None else question)
        for number, event in enumerate(events, start=row.last_event + 1)
    ]
    counted = {**row.n_labelled, question: n_labelled}
    _insert(connection, project_id, recorded, counted, row.last_event)


def _insert(
    connection: Connection,
    project_id: str,
    events: Sequence[Event],
    n_labelled: Mapping[str, int],
    last: int = 0,
) -> None:
    """The rows of events, and in that of the project which is the last one, and how far it is."""
    p = (t := tables()).projects
    values: dict[str, Any] = {"n_labelled": dict(n_labelled)}
    if events:
        connection.execute(t.events.insert(), [_row(project_id, event) for event in events])
    if events and events[-1].id > last:
        values |= {"changed": events[-1].time, "last_event": events[-1].id}
    connection.execute(p.update().where(p.c.id == project_id).values(values))


def _as_recorded(event: Event, number: int, question: str | None) -> Event:
    """An event with its number, as whoever reads the log gets it."""
    return replace(
        event,
        id=number,
        payload=_parsed(json.dumps(dict(event.payload), allow_nan=False)),
        time=event.time or now(),
        annotator=valid_text(event.annotator),
        question=question,
    )


def _row(project_id: str, event: Event) -> dict[str, Any]:
    return {
        "project": project_id,
        "id": event.id,
        "question": event.question,
        "kind": event.kind,
        "payload": event.payload,
        "annotator": event.annotator,
        "time": event.time,
        "answers": event.payload.get("ask") if event.kind in ANSWERS else None,
        "operation": event.operation,
    }


def all_events(connection: Connection, where: Sequence[Any], last_event: Event | None = None) -> list[Event]:
    """Events, oldest first; of `last_event` its payload is not read again."""
    from sqlalchemy import Text, case, cast, select

    c = tables().events.c
    # The payloads as texts, parsed all at once: half the time of one by one.
    payload: Any = cast(c.payload, Text)
    if last_event is not None:
        payload = case((c.id == last_event.id, "{}"), else_=payload)
    query = select(c.id, c.kind, payload, c.annotator, c.time, c.question).where(*where).order_by(c.id)
    rows = connection.execute(query).all()
    text = f"[{','.join([row[2] for row in rows])}]"
    # A document's equal keys are one text; those of many small documents are not unless made so.
    payloads = checked_texts(text, json.loads(text)) if len(rows) > _MANY else _parsed(text)
    return [
        Event(intern(kind), payload, intern(annotator), time, int(number), question and intern(question))
        for (number, kind, _, annotator, time, question), payload in zip(rows, payloads, strict=True)
    ]


def _news(connection: Connection, project_id: str, last_event: Event | None) -> News:
    c = tables().events.c
    if last_event is not None:
        events = all_events(connection, (c.project == project_id, c.id >= last_event.id), last_event)
        if events and replace(events[0], payload=last_event.payload) == last_event:
            return News(events[1:])
        # The last event that is known is not there: a copy of the database was put in its place.
    return News(all_events(connection, (c.project == project_id,)), afresh=True)


def _parsed(text: str) -> Any:
    """Content of a JSON text, for keeping: every key, and every text that recurs, is there once."""
    return checked_texts(text, json.loads(text, object_pairs_hook=_with_one_text_each))


def _with_one_text_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {
        intern(key): intern(value) if key in _RECURRING and isinstance(value, str) else value
        for key, value in pairs
    }
