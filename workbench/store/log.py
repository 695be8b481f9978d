"""The log: events of a project, added in one transaction and never changed.

Writes to one project are serialised by a lock on its row. Events are numbered within their project, from
1 without a gap, in the order of commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from sys import intern
from typing import TYPE_CHECKING, Any

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.reading import checked_texts, valid_text
from workbench.store.database import NUMBER, Database, tables
from workbench.store.events import ANSWERS, SOURCE, UNDOABLE, Event, now
from workbench.store.retry import retried
from workbench.store.rounds import insert_round
from workbench.store.state import arrays_to_bytes

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
    def events(self, project_id: str, after: int = 0) -> list[Event]:
        """The project's events with an id above `after`, oldest first."""
        with self._read() as connection:
            return events_of(connection, project_id, after)

    @retried
    def news(self, project_id: str, known: Event | None = None) -> News:
        """The project's events after the last one that the caller knows."""
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
        with self.recording_in({project_id: known}) as recorders:
            yield recorders[project_id]

    @contextmanager
    def recording_in(self, known: Mapping[str, Event | None]) -> Iterator[dict[str, Recorder]]:
        """A transaction that alone may add events to several projects; all of it is stored, or nothing.

        Args:
            known: project -> the last event of it that the caller knows.

        Yields:
            A recorder for each, as `recording`.
        """
        t = tables()
        with self._write() as connection:
            recorders = {}
            for project_id in sorted(known):  # in one order, so that two who come for the same do not cross
                row = self._locked(connection, project_id)
                before = known[project_id]
                # the row is read as it is once its lock is held: who knows its last event knows all of them
                if before is not None and (row.last_event, row.changed) == (before.id, before.time):
                    missed = News([])
                else:
                    missed = _news(connection, project_id, before)
                last = before.id if before and not missed.afresh else 0
                last = missed.events[-1].id if missed.events else last
                recorders[project_id] = Recorder(connection, project_id, missed, last)
            yield recorders
            for project_id, recorder in recorders.items():
                recorder.flush()
                if recorder.added:
                    last_added = recorder.added[-1]
                    values = {
                        "n_labelled": recorder.n_labelled,
                        "changed": last_added.time,
                        "last_event": last_added.id,
                    }
                    row = t.projects.update().where(t.projects.c.id == project_id)
                    connection.execute(row.values(values))

    def _locked(self, connection: Connection, project_id: str) -> Any:
        """The project's `last_event` and `changed`, once nobody else adds to it.

        Raises:
            InputError: there is no such project.
        """
        from sqlalchemy import func, select

        c = tables().projects.c
        columns = [c.last_event, c.changed]
        if not self._is_file:
            columns.append(func.txid_current())
        row = connection.execute(select(*columns).where(c.id == project_id).with_for_update()).one_or_none()
        if row is None:
            raise InputError(f"There is no project {project_id!r} in {self._shown}.")
        if not self._is_file:
            connection.info[NUMBER] = int(row[2])
        return row

    @retried
    def contributors(self) -> dict[str, list[str]]:
        """Project id -> who decided something in any of its questions, in the order of their names."""
        from sqlalchemy import select

        t = tables()
        c, p = t.events.c, t.projects.c
        found: dict[str, list[str]] = {}
        query = select(p.family, c.annotator).join_from(t.events, t.projects, c.project == p.id)
        query = query.where(c.kind.in_(UNDOABLE)).distinct().order_by(p.family, c.annotator)
        with self._read() as connection:
            for row in connection.execute(query):
                if row.annotator != SOURCE:
                    found.setdefault(row.family, []).append(row.annotator)
        return found


class Recorder:
    """Adds events to one project inside one transaction; made by `Store.recording`.

    They reach the database together when the transaction ends, in one statement.

    Attributes:
        missed: what others recorded since the caller's last look.
        added: events recorded through this object, with id and time.
        n_labelled: items with a label after them, for the list of projects; None where nobody counted.
        failed: whether the database refused a statement, after which nothing of the transaction counts.
    """

    def __init__(self, connection: Connection, project_id: str, missed: News, last: int) -> None:
        self._connection = connection
        self._last = last
        self._project_id = project_id
        self._rounds: list[tuple[int, Mapping[str, Any], bytes]] = []
        self.missed = missed
        self.added: list[Event] = []
        self.n_labelled: int | None = None
        self.failed = False

    def add(self, event: Event) -> Event:
        """Record an event (durable once the transaction ends); returns it with id and time."""
        recorded = _as_recorded(event, self._last + 1)
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
        rows = [_row(self._project_id, event) for event in self.added]
        if rows:
            self._connection.execute(tables().events.insert(), rows)
        for number, record, state in self._rounds:
            insert_round(self._connection, self._project_id, number, record, state)

    def add_round(self, record: Mapping[str, Any], state: Mapping[str, Array]) -> int:
        """Store a finished round of the project; the states of earlier ones are dropped.

        Args:
            record: JSON; its "number" is set to the one the round gets.
            state: the posterior as plain arrays.

        Returns:
            The number: the next one at the moment of writing, whatever was read before the fit.
        """
        from sqlalchemy import func, select

        c = tables().rounds.c
        newest = select(func.max(c.number)).where(c.owner == self._project_id)
        if self._rounds:
            number = self._rounds[-1][0] + 1
        else:
            try:
                last = self._connection.execute(newest).scalar_one_or_none()
            except BaseException:
                self.failed = True
                raise
            number = 0 if last is None else int(last) + 1
        self._rounds.append((number, dict(record) | {"number": number}, arrays_to_bytes(state)))
        return number


def insert_events(
    connection: Connection, project_id: str, events: Iterable[Event], after: int = 0
) -> list[Event]:
    """Record events of a project inside a transaction that alone may.

    Args:
        connection: of the transaction.
        project_id: the project.
        events: in order.
        after: number of the project's last event.

    Returns:
        The same with number, and with time where they had none.
    """
    recorded = [_as_recorded(event, number) for number, event in enumerate(events, start=after + 1)]
    if recorded:
        rows = [_row(project_id, event) for event in recorded]
        connection.execute(tables().events.insert(), rows)
    return recorded


def _as_recorded(event: Event, number: int) -> Event:
    """An event with its number, as whoever reads the log gets it."""
    return replace(
        event,
        id=number,
        payload=_parsed(json.dumps(dict(event.payload), allow_nan=False)),
        time=event.time or now(),
        annotator=valid_text(event.annotator),
    )


def _row(project_id: str, event: Event) -> dict[str, Any]:
    return {
        "project": project_id,
        "id": event.id,
        "kind": event.kind,
        "payload": event.payload,
        "annotator": event.annotator,
        "time": event.time,
        "answers": event.payload.get("ask") if event.kind in ANSWERS else None,
        "operation": event.operation,
    }


def events_of(connection: Connection, project_id: str, after: int = 0) -> list[Event]:
    """The project's events with an id above `after`, oldest first."""
    return events_since(connection, project_id, after, None)


def events_since(connection: Connection, project_id: str, after: int, known: Event | None) -> list[Event]:
    """The project's events from `after` on, oldest first; of `known` its payload is not read again."""
    from sqlalchemy import Text, case, cast, select

    c = tables().events.c
    # The payloads as texts, parsed all at once: half the time of one by one.
    payload: Any = cast(c.payload, Text)
    if known is not None:
        payload = case((c.id == known.id, "{}"), else_=payload)
    query = select(c.id, c.kind, payload, c.annotator, c.time)
    query = query.where(c.project == project_id, c.id > after).order_by(c.id)
    rows = connection.execute(query).all()
    text = f"[{','.join([row[2] for row in rows])}]"
    # A document's equal keys are one text; those of many small documents are not unless made so.
    payloads = checked_texts(text, json.loads(text)) if len(rows) > _MANY else _parsed(text)
    return [
        Event(intern(kind), payload, intern(annotator), time, int(number))
        for (number, kind, _, annotator, time), payload in zip(rows, payloads, strict=True)
    ]


def _news(connection: Connection, project_id: str, known: Event | None) -> News:
    if known is not None:
        found = events_since(connection, project_id, known.id - 1, known)
        if found and replace(found[0], payload=known.payload) == known:
            return News(found[1:])
        # The last event that is known is not there: a copy of the database was put in its place.
    return News(events_of(connection, project_id), afresh=True)


def _parsed(text: str) -> Any:
    """Content of a JSON text, for keeping: every key, and every text that recurs, is there once."""
    return checked_texts(text, json.loads(text, object_pairs_hook=_with_one_text_each))


def _with_one_text_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {
        intern(key): intern(value) if key in _RECURRING and isinstance(value, str) else value
        for key, value in pairs
    }
