"""Keys of programs outside: each stands for one person in one project."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from workbench.errors import InputError
from workbench.store.database import Tables, tables
from workbench.store.events import now
from workbench.store.retry import retried

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
