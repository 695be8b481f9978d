"""The log: events of a project, added in one transaction and never changed.

Writes to one project are serialised by a lock on its row, so that event ids of a project grow in the
order of commits also on PostgreSQL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from sys import intern
from typing import TYPE_CHECKING, Any

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.reading import checked_texts, valid_text
from workbench.store.database import Database, tables
from workbench.store.events import UNDOABLE, Event, now
from workbench.store.retry import retried
from workbench.store.rounds import insert_round
from workbench.store.state import arrays_to_bytes

if TYPE_CHECKING:
    from sqlalchemy import Connection

_MANY = 1000
_RECURRING = frozenset(("class", "classifier", "policy", "role"))  # of events, whose values are few


class Log(Database):
    """Events of projects."""

    @retried
    def events(self, project_id: str, after: int = 0) -> list[Event]:
        """The project's events with an id above `after`, oldest first."""
        with self._read() as connection:
            return _events(connection, project_id, after)

    @contextmanager
    def recording(self, project_id: str, after: int = 0) -> Iterator[Recorder]:
        """A transaction that alone may add events to the project; committed when the block ends.

        Args:
            project_id: the project.
            after: the recorder's `missed` holds events with ids above this one.

        Yields:
            The recorder. An exception in the block rolls everything back; so does a server that ends the
            connection, and whoever called begins again (`retry.retried`).
        """
        from sqlalchemy import select

        t = tables()
        with self._write() as connection:
            lock = select(t.projects.c.id).where(t.projects.c.id == project_id).with_for_update()
            if connection.execute(lock).one_or_none() is None:
                raise InputError(f"There is no project {project_id!r} in {self._shown}.")
            recorder = Recorder(connection, project_id, _events(connection, project_id, after))
            yield recorder
            if recorder.added:
                values = {"n_labelled": recorder.n_labelled, "changed": recorder.added[-1].time}
                connection.execute(t.projects.update().where(t.projects.c.id == project_id).values(values))

    @retried
    def contributors(self) -> dict[str, list[str]]:
        """Project id -> who decided something in it, in the order of their names."""
        from sqlalchemy import select

        c = tables().events.c
        found: dict[str, list[str]] = {}
        query = select(c.project, c.annotator).where(c.kind.in_(UNDOABLE)).distinct()
        with self._read() as connection:
            for row in connection.execute(query.order_by(c.project, c.annotator)):
                if row.annotator != "source":
                    found.setdefault(row.project, []).append(row.annotator)
        return found


class Recorder:
    """Adds events to one project inside one transaction; made by `Store.recording`.

    Attributes:
        missed: events others recorded since the caller's last look, oldest first.
        added: events recorded through this object, with id and time.
        n_labelled: items with a label after them, for the list of projects; None where nobody counted.
    """

    def __init__(self, connection: Connection, project_id: str, missed: list[Event]) -> None:
        self._connection = connection
        self._project_id = project_id
        self.missed = missed
        self.added: list[Event] = []
        self.n_labelled: int | None = None

    def add(self, event: Event) -> Event:
        """Record an event (durable once the transaction ends); returns it with id and time."""
        recorded = insert_event(self._connection, self._project_id, event)
        self.added.append(recorded)
        return recorded

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
        last = self._connection.execute(newest).scalar_one_or_none()
        number = 0 if last is None else int(last) + 1
        numbered = dict(record) | {"number": number}
        insert_round(self._connection, self._project_id, number, numbered, arrays_to_bytes(state))
        return number


def insert_event(connection: Connection, project_id: str, event: Event) -> Event:
    """Record an event of a project inside a transaction; returns it with id and time."""
    t = tables()
    recorded = replace(event, time=event.time or now(), annotator=valid_text(event.annotator))
    payload = _parsed(json.dumps(dict(event.payload), allow_nan=False))
    answered = payload.get("ask") if event.kind in ("label", "skip", "unsure") else None
    result = connection.execute(
        t.events.insert().values(
            project=project_id,
            kind=event.kind,
            payload=payload,
            annotator=recorded.annotator,
            time=recorded.time,
            answers=answered,
            operation=replace(recorded, payload=payload).operation,
        )
    )
    key = result.inserted_primary_key
    assert key is not None
    return replace(recorded, id=int(key[0]), payload=payload)


def _events(connection: Connection, project_id: str, after: int) -> list[Event]:
    from sqlalchemy import Text, cast, select

    c = tables().events.c
    # The payloads as texts, parsed all at once: half the time of one by one.
    query = select(c.id, c.kind, cast(c.payload, Text), c.annotator, c.time)
    query = query.where(c.project == project_id, c.id > after).order_by(c.id)
    rows = connection.execute(query).all()
    text = f"[{','.join([row[2] for row in rows])}]"
    # A document's equal keys are one text; those of many small documents are not unless made so.
    payloads = checked_texts(text, json.loads(text)) if len(rows) > _MANY else _parsed(text)
    return [
        Event(intern(kind), payload, intern(annotator), time, int(number))
        for (number, kind, _, annotator, time), payload in zip(rows, payloads, strict=True)
    ]


def _parsed(text: str) -> Any:
    """What a JSON text holds, for keeping: every key, and every text that recurs, is there once."""
    return checked_texts(text, json.loads(text, object_pairs_hook=_with_one_text_each))


def _with_one_text_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {
        intern(key): intern(value) if key in _RECURRING and isinstance(value, str) else value
        for key, value in pairs
    }
