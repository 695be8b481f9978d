"""Rounds: finished fits of runs and of people's projects, the last one with its posterior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.arrays import Array
from workbench.pools.formats.npy_files import arrays_to_bytes, bytes_to_arrays
from workbench.store.database import Tables, tables
from workbench.store.database_errors import retried
from workbench.store.events import now
from workbench.store.records import RoundRecord

if TYPE_CHECKING:
    from sqlalchemy import Connection


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
