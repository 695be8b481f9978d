"""Runs and studies, and the rounds of runs and of people's projects."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.formats.npy_files import arrays_to_bytes, bytes_to_arrays
from workbench.store.database import Database, Tables, tables
from workbench.store.database_errors import retried
from workbench.store.events import now
from workbench.store.pool_files import found_here
from workbench.store.processes import Lease, is_alive, this_process
from workbench.store.records import RUN_STATES, RoundRecord, RunRecord, StudyRecord

if TYPE_CHECKING:
    from sqlalchemy import Connection


class Runs(Tables):
    """Runs, each owned by the process that computes it, and studies."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._beginning = threading.Lock()
        self._at_work: set[str] = set()
        self._lease: Lease | None = None

    def start(
        self,
        spec: Mapping[str, Any],
        fingerprint: str,
        *,
        project: str | None = None,
        study: str | None = None,
    ) -> RunRecord:
        """Store a new run, owned by this process."""
        moment = now()
        run_id = secrets.token_hex(6)
        record = RunRecord(run_id, dict(spec), fingerprint, "running", "", project, study, 0, moment, moment)
        values = {name: value for name, value in asdict(record).items() if name != "n_rounds"}
        self._change(tables().runs.insert().values(**values, owner=this_process()))
        self._begin(run_id)
        return record

    @retried
    def claim(self, run_id: str) -> bool:
        """Make this process the owner of a run that is not running; False if another has it."""
        from sqlalchemy import select

        c = (t := tables()).runs.c
        with self._write() as connection:
            query = select(c.status, c.owner, c.updated).where(c.id == run_id).with_for_update()
            row = connection.execute(query).one_or_none()
            if row is None:
                raise InputError(f"There is no run {run_id!r} in {self._database._shown}.")
            if row.status == "running" and _is_at_work(row):
                return False
            connection.execute(
                t.runs.update()
                .where(c.id == run_id)
                .values(status="running", message="", owner=this_process(), updated=now())
            )
        self._begin(run_id)
        return True

    def end(self, run_id: str, status: str, message: str = "") -> None:
        """Say how a run ended: one of "finished", "interrupted", "cancelled", "failed"."""
        if status not in RUN_STATES:
            raise ValueError(f"A run cannot end as {status!r}; known: {', '.join(RUN_STATES)}.")
        runs = tables().runs
        values = {"status": status, "message": message, "updated": now()}
        self._change(runs.update().where(runs.c.id == run_id).values(**values))
        with self._beginning:
            self._at_work.discard(run_id)
            if not self._at_work and self._lease is not None:
                self._lease.end()
                self._lease = None

    def _begin(self, run_id: str) -> None:
        with self._beginning:
            self._at_work.add(run_id)
            if self._lease is None:
                self._lease = Lease(self.renew)

    def renew(self) -> None:
        """Say that this process is still at work on the runs that it began or took over."""
        c = (t := tables()).runs.c
        with self._beginning:
            run_ids = sorted(self._at_work)
        if run_ids:
            conditions = (c.id.in_(run_ids), c.owner == this_process(), c.status == "running")
            self._change(t.runs.update().where(*conditions).values(updated=now()))

    def get(self, run_id: str) -> RunRecord:
        """One run.

        Raises:
            InputError: there is none with this id.
        """
        records = self._runs(tables().runs.c.id == run_id)
        if not records:
            raise InputError(f"There is no run {run_id!r} in {self._database._shown}.")
        return records[0]

    def all(self, *, study: str | None = None) -> list[RunRecord]:
        """All runs (of a study), newest first; those whose program died are "interrupted"."""
        return self._runs(*([] if study is None else [tables().runs.c.study == study]))

    def _runs(self, *conditions: Any) -> list[RunRecord]:
        from sqlalchemy import func, select

        t = tables()
        count = select(func.count()).select_from(t.rounds).where(t.rounds.c.owner == t.runs.c.id)
        query = select(t.runs, count.scalar_subquery().label("n_rounds")).where(*conditions)
        return [_run(row) for row in self._rows(query.order_by(t.runs.c.created.desc(), t.runs.c.id))]

    @retried
    def save_study(
        self,
        study_id: str,
        spec: Mapping[str, Any],
        *,
        workers: int = 1,
        project: str | None = None,
        owner: str | None = None,
    ) -> StudyRecord:
        """Store what a study is, unless it is stored already; its runs name it by its id.

        Args:
            study_id: of the study.
            spec: a StudySpec as JSON.
            workers: processes it was started with.
            project: the project it belongs to.
            owner: key of the person who starts it.

        Returns:
            The study as it is stored now.
        """
        from sqlalchemy.exc import IntegrityError

        t = tables()
        fixed = {"id": study_id, "workers": workers, "project": project, "owner": owner}
        row = fixed | {"spec": dict(spec), "created": now()}
        with suppress(IntegrityError), self._write() as connection:  # somebody else may store it meanwhile
            if connection.execute(t.studies.select().where(t.studies.c.id == study_id)).one_or_none() is None:
                connection.execute(t.studies.insert().values(row))
        return self.study(study_id)

    def study(self, study_id: str) -> StudyRecord:
        """One study.

        Raises:
            InputError: there is none with this id.
        """
        record = next((study for study in self.studies() if study.id == study_id), None)
        if record is None:
            raise InputError(f"There is no study {study_id!r} in {self._database._shown}.")
        return record

    def studies(self) -> list[StudyRecord]:
        """All studies stored, newest first."""
        t = tables()
        query = t.studies.select().order_by(t.studies.c.created.desc(), t.studies.c.id)
        return [StudyRecord(row[0], found_here(row[1]), *row[2:]) for row in self._rows(query)]


def _is_at_work(row: Any) -> bool:
    return is_alive(row.owner, datetime.fromisoformat(row.updated).timestamp())


def _run(row: Any) -> RunRecord:
    """A run; that its program died is seen when it is read, and nothing is written for that."""
    status, message = row.status, row.message
    if status == "running" and not _is_at_work(row):
        status, message = "interrupted", "The program that ran it ended before the run did."
    fixed = (row.project, row.study, int(row.n_rounds), row.created, row.updated)
    return RunRecord(row.id, row.spec, row.fingerprint, status, message, *fixed)


class Rounds(Tables):
    """Rounds by their owner, a run or a project."""

    @retried
    def save(
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

        t = tables()
        blob = None if state is None else arrays_to_bytes(state)
        with self._write() as connection:
            connection.execute(select(t.runs.c.id).where(t.runs.c.id == owner).with_for_update())
            connection.execute(
                t.rounds.delete().where(t.rounds.c.owner == owner, t.rounds.c.number == number)
            )
            insert_round(connection, owner, number, record, blob)
            connection.execute(t.runs.update().where(t.runs.c.id == owner).values(updated=now()))

    def get(self, owner: str, number: int) -> Mapping[str, Any] | None:
        """The record of one round of a run or a project; None where there is none."""
        rounds = self.all(owner, number - 1, until=number)
        return rounds[0].record if rounds else None

    @retried
    def all(self, owner: str, after: int = -1, *, until: int | None = None) -> list[RoundRecord]:
        """The rounds of a run or a project with numbers above `after` and up to `until`, in order."""
        with self._read() as connection:
            return rounds_of(connection, owner, after, until)

    @retried
    def state(self, owner: str, number: int | None = None) -> tuple[int, dict[str, Array]] | None:
        """The stored posterior of a round.

        Args:
            owner: id of the run or project.
            number: of the round; None means the last one that has a state.

        Returns:
            (number, arrays), or None where no such state is stored.
        """
        with self._read() as connection:
            return round_state_of(connection, owner, number)


def rounds_of(
    connection: Connection, owner: str, after: int = -1, until: int | None = None
) -> list[RoundRecord]:
    """See `Rounds.all`."""
    from sqlalchemy import select

    c = tables().rounds.c
    query = select(c.number, c.record).where(c.owner == owner, c.number > after)
    if until is not None:
        query = query.where(c.number <= until)
    return [RoundRecord(int(row.number), row.record) for row in connection.execute(query.order_by(c.number))]


def round_state_of(
    connection: Connection, owner: str, number: int | None = None
) -> tuple[int, dict[str, Array]] | None:
    """See `Rounds.state`."""
    from sqlalchemy import select

    c = tables().rounds.c
    query = select(c.number, c.state).where(c.owner == owner, c.state.is_not(None))
    if number is not None:
        query = query.where(c.number == number)
    row = connection.execute(query.order_by(c.number.desc()).limit(1)).one_or_none()
    return None if row is None else (int(row.number), bytes_to_arrays(row.state))


def insert_round(
    connection: Connection, owner: str, number: int, record: Mapping[str, Any], state: bytes | None
) -> None:
    """Store a round inside a transaction; the states of its owner's earlier ones are dropped."""
    t = tables()
    c = t.rounds.c
    if state is not None:
        earlier = (c.owner == owner, c.number < number, c.state.is_not(None))
        connection.execute(t.rounds.update().where(*earlier).values(state=None))
    connection.execute(
        t.rounds.insert().values(owner=owner, number=number, record=dict(record), state=state, time=now())
    )
