"""Projects: what they are, whom they belong to, and the people."""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.reading import cut, valid_text
from workbench.store.database import tables
from workbench.store.events import SOURCE, Event, now
from workbench.store.fold import fold
from workbench.store.log import Log, events_of, insert_events
from workbench.store.pool_files import found_here
from workbench.store.records import ACCESS, ProjectRecord, ProjectSummary, WholeProject
from workbench.store.retry import retried
from workbench.store.rounds import Rounds, insert_round, round_state_of, rounds_of
from workbench.store.state import arrays_to_bytes

if TYPE_CHECKING:
    from sqlalchemy import Connection


class Projects(Log, Rounds):
    """Projects with their events and rounds."""

    @retried
    def create_project(
        self,
        name: str,
        pool: Mapping[str, Any],
        settings: Mapping[str, Any],
        fingerprints: Array,
        feature_map: Mapping[str, Any],
        events: Sequence[Event] = (),
        item_ids: Sequence[str] | None = None,
        owner: str = "",
    ) -> ProjectRecord:
        """Store a new project with its first events.

        Args:
            name: what people call it.
            pool: how to load the pool again.
            settings: JSON.
            fingerprints: [N] uint64 of the items.
            feature_map: JSON document.
            events: recorded in the same transaction.
            item_ids: [N] the source's ids, so that labels can be exported without the pool.
            owner: key of the person it belongs to; it is private then, and open without one.

        Returns:
            The project with its new id.
        """
        moment = now()
        record = ProjectRecord(
            secrets.token_hex(6),
            name,
            dict(pool),
            dict(settings),
            moment,
            n_labelled=fold(events).n_labelled,
            changed=moment,
            owner=owner,
            access="private" if owner else "open",
            fingerprints=np.asarray(fingerprints, dtype=np.uint64),
            feature_map=dict(feature_map),
            has_item_ids=item_ids is not None,
        )
        with self._write() as connection:
            _insert_project(connection, record, item_ids)
            insert_events(connection, record.id, events)
        return record

    @retried
    def project(self, project_id: str) -> ProjectRecord:
        """One project.

        Raises:
            InputError: there is none with this id.
        """
        from sqlalchemy import select

        t = tables()
        with self._read() as connection:
            row = connection.execute(select(t.projects).where(t.projects.c.id == project_id)).one_or_none()
        if row is None:
            raise InputError(f"There is no project {project_id!r} in {self._shown}.")
        return _project(row)

    @retried
    def named(self, project: str) -> ProjectSummary:
        """The project with this id, or the only one with this name.

        Raises:
            InputError: there is none, or several are called so; says which there are.
        """
        one = self.summary(project)
        if one is not None:
            return one
        every = self._summaries()
        found = [p for p in every if p.name == project]
        if not found:
            known = ", ".join(f"{p.name} ({p.id})" for p in every[:8]) or "none yet"
            raise InputError(f"There is no project {project!r}. There are: {known}.")
        if len(found) > 1:
            ids = ", ".join(p.id for p in found)
            raise InputError(f"{len(found)} projects are called {project!r}; give the id: {ids}.")
        return found[0]

    @retried
    def projects(self) -> list[ProjectSummary]:
        """All projects, newest first, without what grows with their pools."""
        return self._summaries()

    @retried
    def summary(self, project_id: str) -> ProjectSummary | None:
        """One project without what grows with its pool; None where there is none with this id."""
        found = self._summaries(tables().projects.c.id == project_id)
        return found[0] if found else None

    def _summaries(self, *conditions: Any) -> list[ProjectSummary]:
        from sqlalchemy import func, select

        c = tables().projects.c
        columns = (c.id, c.name, c.pool, c.settings, c.created, c.n_labelled, c.changed)
        octets = func.length(c.fingerprints).label("octets")
        query = select(*columns, c.owner, c.access, c.members, octets).where(*conditions)
        with self._read() as connection:
            rows = connection.execute(query.order_by(c.created.desc(), c.id)).all()
        return [
            ProjectSummary(
                *row[:2], found_here(row.pool), *row[3:6], **_shown_to(row), n_items=int(row.octets) // 8
            )
            for row in rows
        ]

    @retried
    def count_labelled(self, project_id: str, n_labelled: int) -> None:
        """Say how many items have a label, where nobody has said it since something was recorded."""
        c = (t := tables()).projects.c
        where = (c.id == project_id, c.n_labelled.is_(None))
        with self._write() as connection:
            connection.execute(t.projects.update().where(*where).values(n_labelled=n_labelled))

    def n_labelled(self, project: ProjectSummary) -> int:
        """Items with a label: as the list says, else counted."""
        return fold(self.events(project.id)).n_labelled if project.n_labelled is None else project.n_labelled

    @retried
    def item_ids(self, project_id: str) -> list[str] | None:
        """[N] the source's ids of a project's items; None for a project that was stored without them."""
        from sqlalchemy import select

        c = tables().projects.c
        with self._read() as connection:
            packed = connection.execute(select(c.item_ids).where(c.id == project_id)).scalar_one_or_none()
        return None if packed is None else _unpack_ids(packed)

    @retried
    def update_project(
        self,
        project_id: str,
        *,
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
        fingerprints: Array | None = None,
        pool: Mapping[str, Any] | None = None,
        item_ids: Sequence[str] | None = None,
    ) -> None:
        """Change what is given, leave the rest."""
        t = tables()
        values: dict[str, Any] = {}
        if name is not None:
            values["name"] = valid_text(name)
        if settings is not None:
            values["settings"] = dict(settings)
        if pool is not None:
            values["pool"] = dict(pool)
        if fingerprints is not None:
            values["fingerprints"] = np.asarray(fingerprints, dtype="<u8").tobytes()
        if item_ids is not None:
            values["item_ids"] = _pack_ids(item_ids)
        if values:
            with self._write() as connection:
                connection.execute(t.projects.update().where(t.projects.c.id == project_id).values(**values))

    @retried
    def delete_project(self, project_id: str) -> None:
        """Remove a project with its events and rounds."""
        from sqlalchemy import select

        t = tables()
        with self._write() as connection:
            # first the lock of `recording`: an event that is being added is waited for, and goes too
            connection.execute(select(t.projects.c.id).where(t.projects.c.id == project_id).with_for_update())
            connection.execute(t.events.delete().where(t.events.c.project == project_id))
            connection.execute(t.rounds.delete().where(t.rounds.c.owner == project_id))
            connection.execute(t.projects.delete().where(t.projects.c.id == project_id))

    @retried
    def share_project(self, project_id: str, owner: str, access: str, members: Sequence[str] = ()) -> None:
        """Say whom a project belongs to and who may open it.

        Args:
            project_id: the project.
            owner: key of a person; "" only for an open project.
            access: one of `ACCESS`.
            members: keys of the people a shared project is shared with.

        Raises:
            InputError: no such project, no such access, or one that would let nobody in.
        """
        if access not in ACCESS:
            raise InputError(f"A project is {', '.join(ACCESS[:-1])} or {ACCESS[-1]}; got {cut(access)}.")
        if not owner and access != "open":
            raise InputError("A project that belongs to nobody can only be open.")
        t = tables()
        values = {"owner": owner or None, "access": access, "members": sorted(set(members) - {owner})}
        with self._write() as connection:
            changed = connection.execute(
                t.projects.update().where(t.projects.c.id == project_id).values(values)
            )
        if not changed.rowcount:
            raise InputError(f"There is no project {project_id!r} in {self._shown}.")

    @retried
    def whole_project(self, project_id: str) -> WholeProject:
        """All that is stored of a project, as of one moment.

        Raises:
            InputError: there is none with this id.
        """
        from sqlalchemy import select

        t = tables()
        with self._snapshot() as connection:
            row = connection.execute(select(t.projects).where(t.projects.c.id == project_id)).one_or_none()
            if row is None:
                raise InputError(f"There is no project {project_id!r} in {self._shown}.")
            events = events_of(connection, project_id)
            rounds = rounds_of(connection, project_id)
            state = round_state_of(connection, project_id)
        ids = None if row.item_ids is None else tuple(_unpack_ids(row.item_ids))
        return WholeProject(_project(row), tuple(events), tuple(rounds), state, ids)

    @retried
    def restore_project(self, whole: WholeProject, owner: str = "") -> ProjectRecord:
        """Store a project that was recorded elsewhere, or under another id: all of it, in one transaction.

        Args:
            whole: the project; its record gets a new id, and its events keep number, time and person.
            owner: key of the person it belongs to; it is private then, and open without one.

        Returns:
            The project with its new id.

        Raises:
            InputError: its events are not numbered from 1 without a gap.
        """
        events = whole.events
        if [event.id for event in events] != list(range(1, len(events) + 1)):
            raise InputError("The events of a project are numbered from 1 without a gap; these are not.")
        new = replace(
            whole.record,
            id=secrets.token_hex(6),
            owner=owner,
            access="private" if owner else "open",
            members=(),
            n_labelled=fold(events).n_labelled,
            changed=events[-1].time if events else whole.record.created,
            has_item_ids=whole.item_ids is not None,
        )
        state_of, state = whole.state or (-1, {})
        with self._write() as connection:
            _insert_project(connection, new, whole.item_ids)
            insert_events(connection, new.id, events)
            for stored in whole.rounds:
                blob = arrays_to_bytes(state) if stored.number == state_of else None
                insert_round(connection, new.id, stored.number, stored.record, blob)
        return new

    def duplicate_project(self, project_id: str, name: str, owner: str = "") -> ProjectRecord:
        """A second project with the same history, which goes its own way from here on.

        Raises:
            InputError: there is none with this id.
        """
        whole = self.whole_project(project_id)
        settings = {key: value for key, value in whole.record.settings.items() if key != "archived"}
        copy = replace(whole.record, name=name, created=now(), settings=settings)
        return self.restore_project(replace(whole, record=copy), owner)

    def archive_project(self, project_id: str, on: bool = True) -> None:
        """Put a project aside, or take it back into the list."""
        settings = {k: v for k, v in self.project(project_id).settings.items() if k != "archived"}
        self.update_project(project_id, settings=settings | ({"archived": True} if on else {}))

    # --- people -------------------------------------------------------------------------------

    @retried
    def known_as(self, key: str, name: str, also: str = "") -> str:
        """The name that a person's events carry; the one they had when they were first seen.

        Args:
            key: what the log-in knows the person by.
            name: what the log-in calls them.
            also: added to the name where somebody else has it already; the key unless given.
        """
        from sqlalchemy import or_, select
        from sqlalchemy.exc import IntegrityError

        t = tables()
        c = t.people.c
        name = " ".join(valid_text(name).split())[:60] or key[:60]
        if name == SOURCE:  # what a pool brings is called so
            name = f"{name} ({also or key})"[:120]
        for shown in (name, f"{name} ({also or key})"[:120], f"{name} {secrets.token_hex(4)}"):
            with self._read() as connection:
                rows = connection.execute(
                    select(c.key, c.name).where(or_(c.key == key, c.name == shown))
                ).all()
            for row in rows:
                if row.key == key:
                    return str(row.name)
            if not rows:
                with suppress(IntegrityError), self._write() as connection:
                    connection.execute(t.people.insert().values(key=key, name=shown, seen=now()))
                    return shown
                return self.known_as(key, name, also)  # somebody was faster
        raise AssertionError("unreachable")

    @retried
    def people(self) -> dict[str, str]:
        """Names of everybody who logged in once, by key."""
        from sqlalchemy import select

        c = tables().people.c
        with self._read() as connection:
            return {str(row.key): str(row.name) for row in connection.execute(select(c.key, c.name))}


def _insert_project(connection: Connection, record: ProjectRecord, item_ids: Sequence[str] | None) -> None:
    connection.execute(
        tables()
        .projects.insert()
        .values(
            id=record.id,
            name=valid_text(record.name),
            pool=dict(record.pool),
            settings=dict(record.settings),
            fingerprints=np.asarray(record.fingerprints, dtype="<u8").tobytes(),
            feature_map=dict(record.feature_map),
            created=record.created,
            n_labelled=record.n_labelled,
            changed=record.changed,
            owner=record.owner or None,
            access=record.access,
            item_ids=None if item_ids is None else _pack_ids(item_ids),
        )
    )


def _pack_ids(ids: Sequence[str]) -> bytes:
    """Ids as compressed JSON; plain row numbers as their count."""
    listed = [str(i) for i in ids]
    numbers = all(text == str(i) for i, text in enumerate(listed))
    document = {"rows": len(listed)} if numbers else listed
    return zlib.compress(json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _unpack_ids(packed: bytes) -> list[str]:
    document = json.loads(zlib.decompress(packed).decode("utf-8", "surrogatepass"))
    return [str(i) for i in range(document["rows"])] if isinstance(document, dict) else document


def _project(row: Any) -> ProjectRecord:
    fingerprints = np.frombuffer(row.fingerprints, dtype="<u8").astype(np.uint64)
    return ProjectRecord(
        row.id,
        row.name,
        found_here(row.pool),
        row.settings,
        row.created,
        row.n_labelled,
        **_shown_to(row),
        fingerprints=fingerprints,
        feature_map=row.feature_map,
        has_item_ids=row.item_ids is not None,
    )


def _shown_to(row: Any) -> dict[str, Any]:
    members = tuple(str(key) for key in row.members or ())
    return {
        "changed": row.changed or "",
        "owner": row.owner or "",
        # what a newer version may have written opens nothing
        "access": row.access if row.access in ACCESS else "private",
        "members": members,
    }
