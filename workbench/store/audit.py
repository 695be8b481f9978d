"""The audit: who opened, exported, shared, deleted and uploaded what, and when."""

import secrets
from dataclasses import dataclass
from typing import Literal, get_args

from workbench.store.database import Tables, tables
from workbench.store.events import now
from workbench.store.retry import retried

Deed = Literal["made", "opened", "exported", "copied", "shared", "deleted", "uploaded", "opened to programs"]
DEEDS: tuple[Deed, ...] = get_args(Deed)


@dataclass(frozen=True)
class AuditEntry:
    """Something that somebody did to a project, or brought.

    Attributes:
        what: one of `DEEDS`.
        name: who, as their events carry it.
        person: key of the person; "" without a log-in, and on the command line.
        project: id of the project; None for an upload.
        called: name of the project at that time.
        detail: which file, whom it was shared with.
        octets: bytes of an upload.
        time: UTC, ISO 8601; set when recorded.
    """

    what: Deed
    name: str
    person: str = ""
    project: str | None = None
    called: str = ""
    detail: str = ""
    octets: int | None = None
    time: str = ""


class Audit(Tables):
    """Audit for owners and administrators; nothing of it is ever changed."""

    @retried
    def record(self, entry: AuditEntry) -> None:
        """Record that somebody did something, now."""
        t = tables()
        with self._write() as connection:
            connection.execute(
                t.audit.insert().values(
                    id=secrets.token_hex(8),
                    time=now(),
                    person=entry.person,
                    name=entry.name,
                    what=entry.what,
                    project=entry.project,
                    called=entry.called,
                    detail=entry.detail,
                    octets=entry.octets,
                )
            )

    @retried
    def entries(
        self,
        *,
        project: str | None = None,
        person: str | None = None,
        what: Deed | None = None,
        most: int | None = None,
    ) -> list[AuditEntry]:
        """Entries of the audit, newest first.

        Args:
            project: id of a project, also of one that was deleted.
            person: key of a person.
            what: one of `DEEDS`.
            most: so many entries; all of them unless given.
        """
        from sqlalchemy import select

        c = tables().audit.c
        conditions = ((c.project, project), (c.person, person), (c.what, what))
        query = select(c.what, c.name, c.person, c.project, c.called, c.detail, c.octets, c.time)
        query = query.where(*(column == value for column, value in conditions if value is not None))
        with self._read() as connection:
            rows = connection.execute(query.order_by(c.time.desc(), c.id).limit(most)).all()
        return [AuditEntry(*row) for row in rows]
