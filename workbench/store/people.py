"""The people of a server: names, keys of their programs, and the audit of what they did."""

import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Literal, get_args

from workbench.errors import InputError
from workbench.reading import valid_text
from workbench.store.database import Tables, tables
from workbench.store.database_errors import retried
from workbench.store.events import SOURCE, now


class People(Tables):
    """Those who were seen, by the key that the log-in knows them by."""

    @retried
    def known_as(self, key: str, name: str, also: str = "", address: str = "") -> str:
        """The name that a person's events carry; the one they had when they were first seen.

        Args:
            key: what the log-in knows the person by.
            name: what the log-in calls them.
            also: added to the name where somebody else has it already; the key unless given.
            address: that the log-in vouches for now; kept in the place of an earlier one.
        """
        from sqlalchemy import or_, select
        from sqlalchemy.exc import IntegrityError

        t = tables()
        c = t.people.c
        name = " ".join(valid_text(name).split())[:60] or key[:60]
        if name == SOURCE:  # what a pool brings is called so
            name = f"{name} ({also or key})"[:120]
        for candidate in (name, f"{name} ({also or key})"[:120], f"{name} {secrets.token_hex(4)}"):
            with self._read() as connection:
                rows = connection.execute(
                    select(c.key, c.name, c.address).where(or_(c.key == key, c.name == candidate))
                ).all()
            for row in rows:
                if row.key == key:
                    if row.address != address:
                        with self._write() as connection:
                            connection.execute(t.people.update().where(c.key == key).values(address=address))
                    return str(row.name)
            if not rows:
                with suppress(IntegrityError), self._write() as connection:
                    connection.execute(
                        t.people.insert().values(key=key, name=candidate, address=address, seen=now())
                    )
                    return candidate
                return self.known_as(key, name, also, address)  # somebody was faster
        raise AssertionError("unreachable")

    @retried
    def names(self) -> dict[str, str]:
        """Names of everybody who logged in once, by key."""
        from sqlalchemy import select

        c = tables().people.c
        with self._read() as connection:
            return {str(row.key): str(row.name) for row in connection.execute(select(c.key, c.name))}

    @retried
    def address_of(self, key: str) -> str:
        """The address that the log-in last vouched for; "" where there is none.

        Args:
            key: what the log-in knows the person by.
        """
        from sqlalchemy import select

        c = tables().people.c
        with self._read() as connection:
            return str(connection.execute(select(c.address).where(c.key == key)).scalar_one_or_none() or "")


MOST_KEYS = 50  # of a project
PREFIX = "wb_"
_SEEN_EVERY = 60.0  # seconds


@dataclass(frozen=True)
class ApiKey:
    """A key without what is secret of it.

    Attributes:
        id: to revoke it by.
        project: id of the project that it opens.
        person: key of the person it stands for; "" without a log-in.
        name: whose answers its answers are.
        purpose: what it was made for, in its maker's words.
        created: UTC, ISO 8601.
        used: the last time, to the minute; None for never.
    """

    id: str
    project: str
    person: str
    name: str
    purpose: str
    created: str
    used: str | None = None


class ProgramKeys(Tables):
    """Keys of programs; what is secret of a key is hashed before it is stored."""

    @retried
    def make(self, project: str, name: str, *, person: str = "", purpose: str = "") -> tuple[ApiKey, str]:
        """A new key for one person in one project.

        Args:
            project: its id.
            name: whose answers its answers will be.
            person: key of that person, with a log-in.
            purpose: a few words.

        Returns:
            What is kept of it, and the key itself, which is told here and never again.

        Raises:
            InputError: no name, or too many keys.
        """
        from sqlalchemy import func, select

        name, purpose = name.strip()[:120], purpose.strip()[:200]
        if not name:
            raise InputError("A key stands for somebody: give a name.")
        secret = PREFIX + secrets.token_urlsafe(30)
        t = tables()
        api_key = ApiKey(secrets.token_hex(4), project, person, name, purpose, now())
        with self._write() as connection:
            count = select(func.count()).where(t.program_keys.c.project == project)
            if connection.execute(count).scalar_one() >= MOST_KEYS:
                raise InputError(f"A project has {MOST_KEYS} keys at most: revoke one that is not used.")
            values = {
                name: getattr(api_key, name)
                for name in ("id", "project", "person", "name", "purpose", "created")
            }
            connection.execute(t.program_keys.insert().values(**values, digest=_digest(secret)))
        return api_key, secret

    @retried
    def of(self, project: str) -> list[ApiKey]:
        """The keys of a project, newest first."""
        from sqlalchemy import select

        c = tables().program_keys.c
        query = select(c.id, c.project, c.person, c.name, c.purpose, c.created, c.used)
        with self._read() as connection:
            rows = connection.execute(
                query.where(c.project == project).order_by(c.created.desc(), c.id)
            ).all()
        return [ApiKey(*row) for row in rows]

    @retried
    def holder(self, secret: str) -> ApiKey | None:
        """Whom a key stands for; None for one that is none, or was revoked. That it was used is noted."""
        from sqlalchemy import select

        c = tables().program_keys.c
        query = select(c.id, c.project, c.person, c.name, c.purpose, c.created, c.used)
        with self._read() as connection:
            row = connection.execute(query.where(c.digest == _digest(secret))).one_or_none()
        if row is None:
            return None
        api_key = ApiKey(*row)
        if _older(api_key.used):
            with self._write() as connection:
                connection.execute(
                    tables().program_keys.update().where(c.id == api_key.id).values(used=now())
                )
        return api_key

    @retried
    def revoke(self, project: str, key_id: str) -> ApiKey:
        """A key that opens nothing any more.

        Raises:
            InputError: the project has none of this id.
        """
        api_key = next((key for key in self.of(project) if key.id == key_id), None)
        if api_key is None:
            raise InputError(f"The project has no key {key_id!r}.")
        c = tables().program_keys.c
        with self._write() as connection:
            connection.execute(tables().program_keys.delete().where(c.project == project, c.id == key_id))
        return api_key


def _digest(secret: str) -> str:
    # thirty random bytes need no slow hash
    return sha256(secret.encode("utf-8", "replace")).hexdigest()


def _older(moment: str | None) -> bool:
    if moment is None:
        return True
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds() > _SEEN_EVERY
    except ValueError:
        return True


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
