"""The database: projects and their events, runs and their rounds.

SQLite in WAL mode with full sync by default, PostgreSQL by URL. Every write is one transaction;
when a call returns, what it wrote survives a power cut. Writes to one project are serialised by a
lock on its row, so that event ids of a project grow in the order of commits also on PostgreSQL.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from sys import intern
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.reading import cut, reason
from workbench.store.events import UNDOABLE, Event, now
from workbench.store.fold import fold
from workbench.store.processes import is_alive, this_process
from workbench.store.retry import retried, was_cut_off
from workbench.store.state import arrays_to_bytes, bytes_to_arrays

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

ACCESS = ("private", "shared", "open")
_MANY = 1000
_RECURRING = frozenset(("class", "classifier", "policy", "role"))  # of events, whose values are few
RUN_STATES = ("running", "finished", "interrupted", "cancelled", "failed")


def workbench_home() -> Path:
    """The folder of projects and database: WORKBENCH_HOME, else the user's data folder."""
    given = os.environ.get("WORKBENCH_HOME")
    if given:
        return Path(given).expanduser()
    from platformdirs import user_data_path

    return Path(user_data_path("workbench", appauthor=False))


@dataclass(frozen=True)
class ProjectSummary:
    """What a list of projects shows.

    Attributes:
        id: what URLs and commands name it by.
        name: what people call it.
        pool: how to load the pool again: {"name", "options"}.
        settings: classifier, policy, seed, ...; JSON.
        created: UTC, ISO 8601.
        n_labelled: items with a label; None where it is not known without folding the events.
        changed: when something was last recorded, UTC, ISO 8601; "" for never.
        owner: key of the person it belongs to; "" for nobody.
        access: who may open it: "private" (the owner), "shared" (the owner and `members`), "open".
        members: keys of people, for "shared".
        n_items: of its pool when it was last accepted.
    """

    id: str
    name: str
    pool: Mapping[str, Any]
    settings: Mapping[str, Any]
    created: str
    n_labelled: int | None = None
    changed: str = ""
    owner: str = ""
    access: str = "open"
    members: tuple[str, ...] = ()
    n_items: int = 0

    @property
    def archived(self) -> bool:
        """Whether it was put aside; nothing of it is lost."""
        return bool(self.settings.get("archived"))

    def lets_in(self, key: str) -> bool:
        """Whether the person with this key may open it."""
        return (
            self.access == "open"
            or key == self.owner != ""
            or (self.access == "shared" and key in self.members and key != "")
        )


@dataclass(frozen=True, eq=False)
class ProjectRecord(ProjectSummary):
    """A project as stored.

    Attributes:
        fingerprints: [N] uint64 of the pool's items when it was last accepted.
        feature_map: JSON document of the pool's feature map.
        has_item_ids: whether the source's ids are stored (`Store.item_ids`).
    """

    fingerprints: Array = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    feature_map: Mapping[str, Any] = field(default_factory=dict)
    has_item_ids: bool = False


@dataclass(frozen=True)
class RunRecord:
    """A run as stored.

    Attributes:
        id: of the run.
        spec: the RunSpec as JSON.
        fingerprint: of the pool it ran on.
        status: "running", "finished", "interrupted", "cancelled" or "failed".
        message: why, where it did not finish.
        project: id of the project it belongs to, if any.
        study: id of the study it belongs to, if any.
        n_rounds: how many rounds are stored.
        created: UTC, ISO 8601.
        updated: UTC, ISO 8601.
    """

    id: str
    spec: Mapping[str, Any]
    fingerprint: str
    status: str
    message: str
    project: str | None
    study: str | None
    n_rounds: int
    created: str
    updated: str


@dataclass(frozen=True)
class StudyRecord:
    """A study as stored; its runs name it.

    Attributes:
        id: of the study.
        spec: the StudySpec as JSON.
        workers: processes it was started with.
        project: id of the project it belongs to, if any.
        created: UTC, ISO 8601.
    """

    id: str
    spec: Mapping[str, Any]
    workers: int
    project: str | None
    created: str


@dataclass(frozen=True)
class RoundRecord:
    """A round as stored: its number and its JSON record."""

    number: int
    record: Mapping[str, Any]


class Store:
    """The database. Build with `Store.open`; safe to share between threads and processes."""

    def __init__(self, engine: Engine, url: str) -> None:
        self._engine = engine
        self.url = url

    @classmethod
    def open(cls, url: str | Path | None = None) -> Store:
        """Open (and create or migrate) a database.

        Args:
            url: an SQLAlchemy URL, or a path of an SQLite file; None means WORKBENCH_DATABASE_URL,
                else `workbench.sqlite` under `workbench_home()`. The same URL gives the same Store
                within a process.

        Raises:
            InputError: the URL cannot be read or the database cannot be opened.
        """
        address = _address(url)
        with _OPEN_LOCK:
            if address not in _OPEN:
                _OPEN[address] = cls(_connect(address), address)
            return _OPEN[address]

    def close(self) -> None:
        """Let go of the connections; the Store must not be used afterwards."""
        with _OPEN_LOCK:
            _OPEN.pop(self.url, None)
        self._engine.dispose()

    # --- copies -------------------------------------------------------------------------------

    def backup(self, path: str | Path) -> None:
        """Write a consistent copy of the whole database, also while others write to it.

        Args:
            path: of an SQLite file that is not there yet, whatever this database is.

        Raises:
            InputError: there is such a file, or it cannot be written.
        """
        place = Path(path).expanduser()
        if place.exists():
            raise InputError(f"{place} is there already; choose another file.")
        partial = place.with_name(f".{place.name}.partial")
        try:
            partial.unlink(missing_ok=True)
            private_file(partial)
            if self._is_file:
                with self._raw() as source:
                    _copy(source, partial)
            else:
                self._copy_tables_to(partial)
            partial.replace(place)
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{place} cannot be written: {error}.") from error
        finally:
            partial.unlink(missing_ok=True)

    def restore(self, path: str | Path, *, replace: bool = False) -> Path | None:
        """Put a copy that `backup` wrote in the place of this database.

        The copy may come from a database of the other sort: so projects move from a file to a server.

        Args:
            path: of the copy.
            replace: also where this database holds projects; it is copied first, beside its file or, from
                a server, into the home folder.

        Returns:
            Where the database as it was before lies; None where it held no projects.

        Raises:
            InputError: no such copy, one of a newer version, or projects that would be lost.
        """
        place = Path(path).expanduser()
        if not place.is_file():
            raise InputError(f"There is no file {place}.")
        n = len(self.projects())
        if n and not replace:
            raise InputError(
                f"{self._shown} holds {n} project(s). With --replace they are put aside and the copy takes "
                "their place; or point WORKBENCH_HOME at an empty folder."
            )
        with TemporaryDirectory() as folder:
            # Brought up to this version beside the database, so that a copy of another sort changes nothing.
            copy = Path(folder) / "copy.sqlite"
            try:
                with closing(sqlite3.connect(f"file:{place.resolve()}?mode=ro", uri=True)) as source:
                    _copy(source, copy)
            except sqlite3.Error as error:
                raise InputError(f"{place} is no copy of a database: {error}.") from error
            Store.open(copy).close()
            aside = None
            if n:
                moment = now().replace(":", "").replace("-", "")[:15]
                home = workbench_home() / "workbench"
                database = Path(str(self._engine.url.database)) if self._is_file else home
                aside = database.with_name(f"{database.stem}-before-{moment}.sqlite")
                self.backup(aside)
            if self._is_file:
                with closing(sqlite3.connect(copy)) as source, self._raw() as target:
                    source.backup(target)
            else:
                self._take_tables_from(copy)
        return aside

    @property
    def _is_file(self) -> bool:
        return bool(self._engine.dialect.name == "sqlite")

    @retried
    def _copy_tables_to(self, path: Path) -> None:
        """All rows as of one moment, into an SQLite file."""
        path.unlink(missing_ok=True)
        private_file(path)
        copy = Store.open(path)
        try:
            with self._engine.connect() as plain, copy._write() as target:
                source = plain.execution_options(isolation_level="REPEATABLE READ", yield_per=_ROWS)
                with source.begin():
                    _copy_rows(source, target)
        finally:
            copy.close()
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode = DELETE")

    @retried
    def _take_tables_from(self, path: Path) -> None:
        """All rows of an SQLite file in the place of those here, in one transaction."""
        copy = Store.open(path)
        try:
            with copy._read() as plain, self._write() as target:
                tables = _tables().metadata.sorted_tables
                names = ", ".join(table.name for table in tables)
                target.exec_driver_sql(f"LOCK TABLE {names} IN EXCLUSIVE MODE")
                for table in reversed(tables):
                    target.execute(table.delete())
                _copy_rows(plain.execution_options(yield_per=_ROWS), target)
                target.exec_driver_sql(
                    "SELECT setval(pg_get_serial_sequence('events', 'id'), "
                    "(SELECT COALESCE(MAX(id), 0) + 1 FROM events), false)"
                )
        finally:
            copy.close()

    @contextmanager
    def _raw(self) -> Iterator[sqlite3.Connection]:
        """The driver's own connection to an SQLite file."""
        connection = self._engine.raw_connection()
        try:
            driver = connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            yield driver
        finally:
            connection.close()

    # --- projects -----------------------------------------------------------------------------

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
            for event in events:
                _insert(connection, record.id, event)
        return record

    @retried
    def project(self, project_id: str) -> ProjectRecord:
        """One project.

        Raises:
            InputError: there is none with this id.
        """
        from sqlalchemy import select

        t = _tables()
        with self._read() as connection:
            row = connection.execute(select(t.projects).where(t.projects.c.id == project_id)).one_or_none()
        if row is None:
            raise InputError(f"There is no project {project_id!r} in {self._shown}.")
        return _project(row)

    @retried
    def projects(self) -> list[ProjectSummary]:
        """All projects, newest first, without what grows with their pools."""
        return self._summaries()

    @retried
    def summary(self, project_id: str) -> ProjectSummary | None:
        """One project without what grows with its pool; None where there is none with this id."""
        found = self._summaries(_tables().projects.c.id == project_id)
        return found[0] if found else None

    def _summaries(self, *conditions: Any) -> list[ProjectSummary]:
        from sqlalchemy import func, select

        c = _tables().projects.c
        columns = (c.id, c.name, c.pool, c.settings, c.created, c.n_labelled, c.changed)
        octets = func.length(c.fingerprints).label("octets")
        query = select(*columns, c.owner, c.access, c.members, octets).where(*conditions)
        with self._read() as connection:
            rows = connection.execute(query.order_by(c.created.desc(), c.id)).all()
        return [ProjectSummary(*row[:6], **_shown_to(row), n_items=int(row.octets) // 8) for row in rows]

    @retried
    def count_labelled(self, project_id: str, n_labelled: int) -> None:
        """Say how many items have a label, where nobody has said it since an older version."""
        c = (t := _tables()).projects.c
        where = (c.id == project_id, c.n_labelled.is_(None))
        with self._write() as connection:
            connection.execute(t.projects.update().where(*where).values(n_labelled=n_labelled))

    def n_labelled(self, project: ProjectSummary) -> int:
        """Items with a label: as the list says, else (nothing recorded since an older version) counted."""
        return fold(self.events(project.id)).n_labelled if project.n_labelled is None else project.n_labelled

    @retried
    def item_ids(self, project_id: str) -> list[str] | None:
        """[N] the source's ids of a project's items; None for an older project not opened since."""
        from sqlalchemy import select

        c = _tables().projects.c
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
        t = _tables()
        values: dict[str, Any] = {}
        if name is not None:
            values["name"] = name
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

        t = _tables()
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
        t = _tables()
        values = {"owner": owner or None, "access": access, "members": sorted(set(members) - {owner})}
        with self._write() as connection:
            changed = connection.execute(
                t.projects.update().where(t.projects.c.id == project_id).values(values)
            )
        if not changed.rowcount:
            raise InputError(f"There is no project {project_id!r} in {self._shown}.")

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

        t = _tables()
        c = t.people.c
        name = " ".join(name.split())[:60] or key[:60]
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

        c = _tables().people.c
        with self._read() as connection:
            return {str(row.key): str(row.name) for row in connection.execute(select(c.key, c.name))}

    @retried
    def restore_project(
        self,
        record: ProjectRecord,
        events: Sequence[Event],
        rounds: Sequence[tuple[int, Mapping[str, Any], Mapping[str, Array] | None]] = (),
        item_ids: Sequence[str] | None = None,
        owner: str = "",
    ) -> ProjectRecord:
        """Store a project with a history that was recorded elsewhere, or under another id.

        Args:
            record: the project; it gets a new id.
            events: all of them, oldest first; each keeps its time and who did it, and gets a new id.
            rounds: (number, record, posterior or None) of the finished fits.
            item_ids: [N] the source's ids.
            owner: key of the person it belongs to; it is private then, and open without one.

        Returns:
            The project with its new id.
        """
        new = replace(
            record,
            id=secrets.token_hex(6),
            owner=owner,
            access="private" if owner else "open",
            members=(),
            n_labelled=fold(events).n_labelled,
            changed=events[-1].time if events else record.created,
            has_item_ids=item_ids is not None,
        )
        ids: dict[int, int] = {}
        with self._write() as connection:
            _insert_project(connection, new, item_ids)
            for event in events:
                payload = dict(event.payload)
                if event.kind == "undo" and "of" in payload:
                    payload["of"] = ids.get(int(payload["of"]), 0)
                ids[event.id] = _insert(connection, new.id, replace(event, payload=payload)).id
            for number, document, state in rounds:
                blob = None if state is None else arrays_to_bytes(state)
                _insert_round(connection, new.id, number, document, blob)
        return new

    def duplicate_project(self, project_id: str, name: str, owner: str = "") -> ProjectRecord:
        """A second project with the same history, which goes its own way from here on.

        Raises:
            InputError: there is none with this id.
        """
        record = self.project(project_id)
        kept = self.round_state(project_id)
        rounds = [
            (r.number, r.record, kept[1] if kept is not None and kept[0] == r.number else None)
            for r in self.rounds(project_id)
        ]
        copy = replace(record, name=name, created=now())
        return self.restore_project(copy, self.events(project_id), rounds, self.item_ids(project_id), owner)

    def archive_project(self, project_id: str, on: bool = True) -> None:
        """Put a project aside, or take it back into the list."""
        settings = {k: v for k, v in self.project(project_id).settings.items() if k != "archived"}
        self.update_project(project_id, settings=settings | ({"archived": True} if on else {}))

    @retried
    def contributors(self) -> dict[str, list[str]]:
        """Project id -> who decided something in it, in the order of their names."""
        from sqlalchemy import select

        c = _tables().events.c
        found: dict[str, list[str]] = {}
        query = select(c.project, c.annotator).where(c.kind.in_(UNDOABLE)).distinct()
        with self._read() as connection:
            for row in connection.execute(query.order_by(c.project, c.annotator)):
                if row.annotator != "source":
                    found.setdefault(row.project, []).append(row.annotator)
        return found

    # --- events -------------------------------------------------------------------------------

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

        t = _tables()
        with self._write() as connection:
            lock = select(t.projects.c.id).where(t.projects.c.id == project_id).with_for_update()
            if connection.execute(lock).one_or_none() is None:
                raise InputError(f"There is no project {project_id!r} in {self._shown}.")
            recorder = Recorder(connection, project_id, _events(connection, project_id, after))
            yield recorder
            if recorder.added:
                values = {"n_labelled": recorder.n_labelled, "changed": recorder.added[-1].time}
                connection.execute(t.projects.update().where(t.projects.c.id == project_id).values(values))

    # --- runs and rounds ----------------------------------------------------------------------

    @retried
    def start_run(
        self,
        spec: Mapping[str, Any],
        fingerprint: str,
        *,
        project: str | None = None,
        study: str | None = None,
    ) -> RunRecord:
        """Store a new run, owned by this process."""
        t = _tables()
        moment = now()
        run_id = secrets.token_hex(6)
        with self._write() as connection:
            connection.execute(
                t.runs.insert().values(
                    id=run_id,
                    spec=dict(spec),
                    fingerprint=fingerprint,
                    status="running",
                    message="",
                    project=project,
                    study=study,
                    owner=this_process(),
                    created=moment,
                    updated=moment,
                )
            )
        return RunRecord(run_id, dict(spec), fingerprint, "running", "", project, study, 0, moment, moment)

    @retried
    def claim_run(self, run_id: str) -> bool:
        """Make this process the owner of a run that is not running; False if another has it."""
        from sqlalchemy import select

        c = (t := _tables()).runs.c
        with self._write() as connection:
            query = select(c.status, c.owner).where(c.id == run_id).with_for_update()
            row = connection.execute(query).one_or_none()
            if row is None:
                raise InputError(f"There is no run {run_id!r} in {self._shown}.")
            if row.status == "running" and is_alive(row.owner):
                return False
            connection.execute(
                t.runs.update()
                .where(c.id == run_id)
                .values(status="running", message="", owner=this_process(), updated=now())
            )
        return True

    @retried
    def end_run(self, run_id: str, status: str, message: str = "") -> None:
        """Say how a run ended: one of "finished", "interrupted", "cancelled", "failed"."""
        if status not in RUN_STATES:
            raise ValueError(f"A run cannot end as {status!r}; known: {', '.join(RUN_STATES)}.")
        t = _tables()
        with self._write() as connection:
            connection.execute(
                t.runs.update()
                .where(t.runs.c.id == run_id)
                .values(status=status, message=message, updated=now())
            )

    def run(self, run_id: str) -> RunRecord:
        """One run.

        Raises:
            InputError: there is none with this id.
        """
        found = self._runs(_tables().runs.c.id == run_id)
        if not found:
            raise InputError(f"There is no run {run_id!r} in {self._shown}.")
        return found[0]

    def runs(self, *, project: str | None = None, study: str | None = None) -> list[RunRecord]:
        """All runs (of a project, of a study), newest first; those whose program died are "interrupted"."""
        c = _tables().runs.c
        given = ((c.project, project), (c.study, study))
        return self._runs(*(column == value for column, value in given if value is not None))

    @retried
    def _runs(self, *conditions: Any) -> list[RunRecord]:
        from sqlalchemy import func, select

        t = _tables()
        count = (
            select(func.count())
            .select_from(t.rounds)
            .where(t.rounds.c.owner == t.runs.c.id)
            .scalar_subquery()
            .label("n_rounds")
        )
        query = select(t.runs, count).where(*conditions).order_by(t.runs.c.created.desc(), t.runs.c.id)
        with self._read() as connection:
            return [_run(row) for row in connection.execute(query)]

    @retried
    def save_study(
        self, study_id: str, spec: Mapping[str, Any], *, workers: int = 1, project: str | None = None
    ) -> StudyRecord:
        """Store what a study is, unless it is stored already; its runs name it by its id.

        Args:
            study_id: of the study.
            spec: a StudySpec as JSON.
            workers: processes it was started with.
            project: the project it belongs to.

        Returns:
            The study as it is stored now.
        """
        from sqlalchemy.exc import IntegrityError

        t = _tables()
        row = {"id": study_id, "spec": dict(spec), "workers": workers, "project": project, "created": now()}
        with suppress(IntegrityError), self._write() as connection:  # somebody else may store it meanwhile
            if connection.execute(t.studies.select().where(t.studies.c.id == study_id)).one_or_none() is None:
                connection.execute(t.studies.insert().values(row))
        return self.study(study_id)

    def study(self, study_id: str) -> StudyRecord:
        """One study.

        Raises:
            InputError: there is none with this id.
        """
        found = next((study for study in self.studies() if study.id == study_id), None)
        if found is None:
            raise InputError(f"There is no study {study_id!r} in {self._shown}.")
        return found

    @retried
    def studies(self) -> list[StudyRecord]:
        """All studies stored, newest first."""
        t = _tables()
        query = t.studies.select().order_by(t.studies.c.created.desc(), t.studies.c.id)
        with self._read() as connection:
            return [StudyRecord(*row) for row in connection.execute(query)]

    @retried
    def save_round(
        self,
        owner: str,
        number: int,
        record: Mapping[str, Any],
        state: Mapping[str, Array] | None = None,
    ) -> None:
        """Store a finished round of a run; those of a project go through `Recorder.add_round`.

        The states of earlier rounds, which resuming does not need, are dropped.

        Args:
            owner: id of the run.
            number: of the round; storing a number again replaces it.
            record: JSON.
            state: the posterior as plain arrays.
        """
        from sqlalchemy import select

        t = _tables()
        blob = None if state is None else arrays_to_bytes(state)
        with self._write() as connection:
            connection.execute(select(t.runs.c.id).where(t.runs.c.id == owner).with_for_update())
            connection.execute(
                t.rounds.delete().where(t.rounds.c.owner == owner, t.rounds.c.number == number)
            )
            _insert_round(connection, owner, number, record, blob)
            connection.execute(t.runs.update().where(t.runs.c.id == owner).values(updated=now()))

    def round(self, owner: str, number: int) -> Mapping[str, Any] | None:
        """The record of one round of a run or a project; None where there is none."""
        found = self.rounds(owner, number - 1, until=number)
        return found[0].record if found else None

    @retried
    def rounds(self, owner: str, after: int = -1, *, until: int | None = None) -> list[RoundRecord]:
        """The rounds of a run or a project with numbers above `after` and up to `until`, in order."""
        from sqlalchemy import select

        t = _tables()
        query = select(t.rounds.c.number, t.rounds.c.record).where(
            t.rounds.c.owner == owner, t.rounds.c.number > after
        )
        if until is not None:
            query = query.where(t.rounds.c.number <= until)
        with self._read() as connection:
            rows = connection.execute(query.order_by(t.rounds.c.number)).all()
        return [RoundRecord(int(row.number), row.record) for row in rows]

    @retried
    def round_state(self, owner: str, number: int | None = None) -> tuple[int, dict[str, Array]] | None:
        """The stored posterior of a round.

        Args:
            owner: id of the run or project.
            number: of the round; None means the last one that has a state.

        Returns:
            (number, arrays), or None where no such state is stored.
        """
        from sqlalchemy import select

        t = _tables()
        query = select(t.rounds.c.number, t.rounds.c.state).where(
            t.rounds.c.owner == owner, t.rounds.c.state.is_not(None)
        )
        if number is not None:
            query = query.where(t.rounds.c.number == number)
        with self._read() as connection:
            row = connection.execute(query.order_by(t.rounds.c.number.desc()).limit(1)).one_or_none()
        return None if row is None else (int(row.number), bytes_to_arrays(row.state))

    # --- inside -------------------------------------------------------------------------------

    @cached_property
    def _shown(self) -> str:
        return str(self._engine.url.render_as_string(hide_password=True))

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        """A transaction; whatever is raised, nothing of it is stored."""
        with self._engine.connect() as plain:
            connection = plain.execution_options(workbench_write=True)
            transaction = connection.begin()
            try:
                yield connection
                number = self._number(connection)
            except BaseException:
                transaction.rollback()
                raise
            try:
                transaction.commit()
            except Exception as error:
                # cut off between the question and its answer: only the server knows
                if number is None or not was_cut_off(error) or not self._committed(number):
                    raise

    def _number(self, connection: Connection) -> int | None:
        """The server's number of a transaction; None for SQLite, whose commits fail or do not."""
        if connection.dialect.name != "postgresql":
            return None
        return int(connection.exec_driver_sql("SELECT txid_current()").scalar_one())

    @retried
    def _committed(self, number: int) -> bool:
        """What became of a transaction; waits for the end of one that is still being worked on."""
        deadline = time.monotonic() + 30.0
        while True:
            with self._read() as connection:
                ask = f"SELECT txid_status({number})"
                status = connection.exec_driver_sql(ask).scalar_one()
            if status != "in progress":
                return bool(status == "committed")
            if time.monotonic() > deadline:
                raise InputError(
                    "The database server does not say whether it saved the last change. "
                    "Look before you repeat it."
                )
            time.sleep(0.02)


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
        recorded = _insert(self._connection, self._project_id, event)
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

        c = _tables().rounds.c
        newest = select(func.max(c.number)).where(c.owner == self._project_id)
        last = self._connection.execute(newest).scalar_one_or_none()
        number = 0 if last is None else int(last) + 1
        numbered = dict(record) | {"number": number}
        _insert_round(self._connection, self._project_id, number, numbered, arrays_to_bytes(state))
        return number


_OPEN: dict[str, Store] = {}
_OPEN_LOCK = Lock()


def _tables() -> Any:
    from workbench.store import schema

    return schema


def _address(url: str | Path | None) -> str:
    if url is None:
        url = os.environ.get("WORKBENCH_DATABASE_URL") or workbench_home() / "workbench.sqlite"
    if isinstance(url, str) and "://" in url:
        return url
    if isinstance(url, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", url):
        raise InputError(
            f"{cut(url)} is no address of a database: write sqlite:////folder/file.sqlite or "
            "postgresql://user@host/database (WORKBENCH_DATABASE_URL)."
        )
    path = Path(url).expanduser().resolve()
    return f"sqlite:///{path}"


def _connect(address: str) -> Engine:
    from sqlalchemy import create_engine, event
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

    from workbench.store.migrations import upgrade

    try:
        url = make_url(address)
        if url.get_backend_name() not in ("sqlite", "postgresql"):
            meant = " Write postgresql:// in full." if url.drivername == "postgres" else ""
            raise InputError(
                f"The database must be SQLite or PostgreSQL; WORKBENCH_DATABASE_URL names "
                f"{url.drivername!r}.{meant}"
            )
        if url.get_backend_name() == "sqlite":
            if not url.database or url.database == ":memory:":
                raise InputError(
                    "Give the SQLite database a file: one in memory would not outlive the program."
                )
            private_file(Path(url.database))  # SQLite gives its log the same permissions
        elif url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        engine = create_engine(url, pool_pre_ping=url.get_backend_name() != "sqlite")
    except InputError:
        raise
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise InputError(
            f"The database URL (WORKBENCH_DATABASE_URL) cannot be read: {reason(error)}. "
            "Write postgresql://user@host:5432/database."
        ) from error
    except ImportError as error:
        raise InputError(
            f"PostgreSQL needs psycopg: install workbench-labels[postgresql]. ({error})"
        ) from error
    except OSError as error:
        raise InputError(f"The database {url.database} cannot be made: {error}") from error
    if url.get_backend_name() == "sqlite":
        event.listen(engine, "connect", _sqlite_settings)
        event.listen(engine, "begin", _sqlite_begin)
    try:
        upgrade(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        said = str(getattr(error, "orig", None) or error)
        raise InputError(f"The database {url.render_as_string()} cannot be opened: {said}") from error
    return engine


_ROWS = 500  # copied at once: a row may hold a posterior


def _copy_rows(source: Connection, target: Connection) -> None:
    for table in _tables().metadata.sorted_tables:
        for part in source.execute(table.select()).partitions(_ROWS):
            target.execute(table.insert(), [dict(row._mapping) for row in part])


def _copy(source: sqlite3.Connection, path: Path) -> None:
    with closing(sqlite3.connect(path)) as target:
        source.backup(target)
        # A copy is one file: what waits in a log of its own would be left behind.
        target.execute("PRAGMA journal_mode = DELETE")


def private_folder(path: Path) -> None:
    """Make a folder, with those above it, that only its owner may look into."""
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)


def private_file(path: Path) -> None:
    """Make an empty file that only its owner may read; one that is there stays as it is."""
    private_folder(path.parent)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _sqlite_settings(connection: Any, _record: Any) -> None:
    # The driver must not begin transactions by itself: _sqlite_begin decides which kind.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout = 30000")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA fullfsync = ON")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _sqlite_begin(connection: Any) -> None:
    # A writer takes the lock before it reads: a deferred transaction that turns into a writing one
    # fails at once, whatever the time-out, when another process wrote in between.
    write = connection.get_execution_options().get("workbench_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _insert_project(connection: Connection, record: ProjectRecord, item_ids: Sequence[str] | None) -> None:
    connection.execute(
        _tables()
        .projects.insert()
        .values(
            id=record.id,
            name=record.name,
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


def _insert(connection: Connection, project_id: str, event: Event) -> Event:
    t = _tables()
    recorded = replace(event, time=event.time or now())
    payload = _parsed(json.dumps(dict(event.payload), allow_nan=False))
    answered = payload.get("ask") if event.kind in ("label", "skip", "unsure") else None
    result = connection.execute(
        t.events.insert().values(
            project=project_id,
            kind=event.kind,
            payload=payload,
            annotator=event.annotator,
            time=recorded.time,
            answers=answered,
            operation=event.operation,
        )
    )
    key = result.inserted_primary_key
    assert key is not None
    return replace(recorded, id=int(key[0]), payload=payload)


def _insert_round(
    connection: Connection, owner: str, number: int, record: Mapping[str, Any], state: bytes | None
) -> None:
    t = _tables()
    c = t.rounds.c
    if state is not None:
        earlier = (c.owner == owner, c.number < number, c.state.is_not(None))
        connection.execute(t.rounds.update().where(*earlier).values(state=None))
    connection.execute(
        t.rounds.insert().values(owner=owner, number=number, record=dict(record), state=state, time=now())
    )


def _events(connection: Connection, project_id: str, after: int) -> list[Event]:
    from sqlalchemy import Text, cast, select

    c = _tables().events.c
    # The payloads as texts, parsed all at once: half the time of one by one.
    query = select(c.id, c.kind, cast(c.payload, Text), c.annotator, c.time)
    query = query.where(c.project == project_id, c.id > after).order_by(c.id)
    rows = connection.execute(query).all()
    text = f"[{','.join([row[2] for row in rows])}]"
    # A document's equal keys are one text; those of many small documents are not unless made so.
    payloads = json.loads(text) if len(rows) > _MANY else _parsed(text)
    return [
        Event(intern(kind), payload, intern(annotator), time, int(number))
        for (number, kind, _, annotator, time), payload in zip(rows, payloads, strict=True)
    ]


def _parsed(text: str) -> Any:
    """What a JSON text holds, for keeping: every key, and every text that recurs, is there once."""
    return json.loads(text, object_pairs_hook=_with_one_text_each)


def _with_one_text_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {
        intern(key): intern(value) if key in _RECURRING and isinstance(value, str) else value
        for key, value in pairs
    }


def _pack_ids(ids: Sequence[str]) -> bytes:
    """Ids as compressed JSON; plain row numbers as their count."""
    listed = [str(i) for i in ids]
    numbers = all(text == str(i) for i, text in enumerate(listed))
    document = {"rows": len(listed)} if numbers else listed
    return zlib.compress(json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _unpack_ids(packed: bytes) -> list[str]:
    document = json.loads(zlib.decompress(packed).decode("utf-8", "surrogatepass"))
    return [str(i) for i in range(document["rows"])] if isinstance(document, dict) else document


def _run(row: Any) -> RunRecord:
    """A run; that its program died is seen when it is read, and nothing is written for that."""
    status, message = row.status, row.message
    if status == "running" and not is_alive(row.owner):
        status, message = "interrupted", "The program that ran it ended before the run did."
    fixed = (row.project, row.study, int(row.n_rounds), row.created, row.updated)
    return RunRecord(row.id, row.spec, row.fingerprint, status, message, *fixed)


def _project(row: Any) -> ProjectRecord:
    fingerprints = np.frombuffer(row.fingerprints, dtype="<u8").astype(np.uint64)
    return ProjectRecord(
        row.id,
        row.name,
        row.pool,
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
