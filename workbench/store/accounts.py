"""Accounts of a server: the people, the keys of their programs, and the audit of what they did."""

import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Literal, get_args

from workbench.errors import InputError
from workbench.reading import valid_text
from workbench.store.database import Tables, tables
from workbench.store.database_errors import retried
from workbench.store.events import SOURCE, now


class People(Tables):
    """Those who were seen, by the key that the log-in knows them by."""

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
            query = select(c.key, c.name, c.address)
            rows = self._rows(query.where(or_(c.key == key, c.name == candidate)))
            for row in rows:
                if row.key == key:
                    if row.address != address:
                        self._change(t.people.update().where(c.key == key).values(address=address))
                    return str(row.name)
            if not rows:
                with suppress(IntegrityError):
                    self._change(
                        t.people.insert().values(key=key, name=candidate, address=address, seen=now())
                    )
                    return candidate
                return self.known_as(key, name, also, address)  # somebody was faster
        raise AssertionError("unreachable")

    def names(self) -> dict[str, str]:
        """Names of everybody who logged in once, by key."""
        from sqlalchemy import select

        c = tables().people.c
        return {str(row.key): str(row.name) for row in self._rows(select(c.key, c.name))}

    def names_by_address(self) -> dict[str, str]:
        """Names of everybody who logged in once, by the address that the log-in vouched for."""
        from sqlalchemy import select

        c = tables().people.c
        return {
            str(row.address): str(row.name) for row in self._rows(select(c.address, c.name)) if row.address
        }

    def address_of(self, key: str) -> str:
        """The address that the log-in last vouched for; "" where there is none.

        Args:
            key: what the log-in knows the person by.
        """
        from sqlalchemy import select

        c = tables().people.c
        rows = self._rows(select(c.address).where(c.key == key))
        return str(rows[0].address) if rows else ""


MOST_KEYS = 50  # of a project
PREFIX = "wb_"
_SEEN_EVERY = timedelta(minutes=1)


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
            connection.execute(t.program_keys.insert().values(**asdict(api_key), digest=_digest(secret)))
        return api_key, secret

    def of(self, project: str) -> list[ApiKey]:
        """The keys of a project, newest first."""
        c = tables().program_keys.c
        query = _fields_of(ApiKey, c).where(c.project == project).order_by(c.created.desc(), c.id)
        return [ApiKey(*row) for row in self._rows(query)]

    def holder(self, secret: str) -> ApiKey | None:
        """Whom a key stands for; None for one that is none, or was revoked. That it was used is noted."""
        c = (t := tables()).program_keys.c
        rows = self._rows(_fields_of(ApiKey, c).where(c.digest == _digest(secret)))
        if not rows:
            return None
        api_key = ApiKey(*rows[0])
        if (api_key.used or "") < (datetime.now(UTC) - _SEEN_EVERY).isoformat():
            self._change(t.program_keys.update().where(c.id == api_key.id).values(used=now()))
        return api_key

    def revoke(self, project: str, key_id: str) -> ApiKey:
        """A key that opens nothing any more.

        Raises:
            InputError: the project has none of this id.
        """
        api_key = next((key for key in self.of(project) if key.id == key_id), None)
        if api_key is None:
            raise InputError(f"The project has no key {key_id!r}.")
        c = (t := tables()).program_keys.c
        self._change(t.program_keys.delete().where(c.project == project, c.id == key_id))
        return api_key


def _fields_of(record: type, columns: Any) -> Any:
    """The query of the columns that are called as the fields of a record."""
    from sqlalchemy import select

    return select(*(columns[field.name] for field in fields(record)))


def _digest(secret: str) -> str:
    # thirty random bytes need no slow hash
    return sha256(secret.encode("utf-8", "replace")).hexdigest()


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

    def record(self, entry: AuditEntry) -> None:
        """Record that somebody did something, now."""
        values = asdict(entry) | {"id": secrets.token_hex(8), "time": now()}
        self._change(tables().audit.insert().values(**values))

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
        c = tables().audit.c
        conditions = ((c.project, project), (c.person, person), (c.what, what))
        chosen = (column == value for column, value in conditions if value is not None)
        query = _fields_of(AuditEntry, c).where(*chosen).order_by(c.time.desc(), c.id).limit(most)
        return [AuditEntry(*row) for row in self._rows(query)]
