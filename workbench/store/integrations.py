"""Programs outside: keys that stand for a person in one project, and the address that a project tells."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from workbench.errors import InputError
from workbench.store.database import Database, tables
from workbench.store.events import now
from workbench.store.retry import retried

MOST_KEYS = 50  # of a project
PREFIX = "wb_"
_TRIES = 20  # that are kept
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


@dataclass(frozen=True)
class Webhook:
    """Where a project tells what happens.

    Attributes:
        project: its id.
        url: that is posted to.
        secret: what the signature is made with.
        created: UTC, ISO 8601.
        tries: the last ones, newest first: {"time", "event", "said"}.
    """

    project: str
    url: str
    secret: str
    created: str
    tries: tuple[dict[str, Any], ...] = ()


class Integrations(Database):
    """Keys and addresses; what is secret of a key is hashed before it is stored."""

    @retried
    def make_key(self, project: str, name: str, *, person: str = "", purpose: str = "") -> tuple[ApiKey, str]:
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
        made = ApiKey(secrets.token_hex(4), project, person, name, purpose, now())
        with self._write() as connection:
            count = select(func.count()).where(t.program_keys.c.project == project)
            if connection.execute(count).scalar_one() >= MOST_KEYS:
                raise InputError(f"A project has {MOST_KEYS} keys at most: revoke one that is not used.")
            values = {
                name: getattr(made, name)
                for name in ("id", "project", "person", "name", "purpose", "created")
            }
            connection.execute(t.program_keys.insert().values(**values, digest=_digest(secret)))
        return made, secret

    @retried
    def keys_of(self, project: str) -> list[ApiKey]:
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
    def holder_of(self, secret: str) -> ApiKey | None:
        """Whom a key stands for; None for one that is none, or was revoked. That it was used is noted."""
        from sqlalchemy import select

        c = tables().program_keys.c
        query = select(c.id, c.project, c.person, c.name, c.purpose, c.created, c.used)
        with self._read() as connection:
            row = connection.execute(query.where(c.digest == _digest(secret))).one_or_none()
        if row is None:
            return None
        found = ApiKey(*row)
        if _older(found.used):
            with self._write() as connection:
                connection.execute(tables().program_keys.update().where(c.id == found.id).values(used=now()))
        return found

    @retried
    def revoke_key(self, project: str, key_id: str) -> ApiKey:
        """A key that opens nothing any more.

        Raises:
            InputError: the project has none of this id.
        """
        found = next((key for key in self.keys_of(project) if key.id == key_id), None)
        if found is None:
            raise InputError(f"The project has no key {key_id!r}.")
        c = tables().program_keys.c
        with self._write() as connection:
            connection.execute(tables().program_keys.delete().where(c.project == project, c.id == key_id))
        return found

    @retried
    def webhook(self, project: str) -> Webhook | None:
        """Where a project tells what happens; None for nowhere."""
        from sqlalchemy import select

        c = tables().webhooks.c
        with self._read() as connection:
            row = connection.execute(
                select(c.project, c.url, c.secret, c.created, c.tries).where(c.project == project)
            ).one_or_none()
        return None if row is None else Webhook(*row[:4], tuple(row.tries))

    @retried
    def set_webhook(self, project: str, url: str) -> Webhook | None:
        """Tell another address, with another secret; "" for none."""
        t = tables()
        made = Webhook(project, url, secrets.token_urlsafe(24), now()) if url else None
        with self._write() as connection:
            connection.execute(t.webhooks.delete().where(t.webhooks.c.project == project))
            if made is not None:
                values = {"project": project, "url": url, "secret": made.secret, "created": made.created}
                connection.execute(t.webhooks.insert().values(**values, tries=[]))
        return made

    @retried
    def note_try(self, project: str, event: str, said: str) -> None:
        """How telling went; the last twenty are kept."""
        from sqlalchemy import select

        t = tables()
        c = t.webhooks.c
        with self._write() as connection:
            tries = connection.execute(select(c.tries).where(c.project == project)).scalar_one_or_none()
            if tries is not None:
                kept = [{"time": now(), "event": event, "said": said[:300]}, *tries][:_TRIES]
                connection.execute(t.webhooks.update().where(c.project == project).values(tries=kept))


def _digest(secret: str) -> str:
    # thirty random bytes need no slow hash
    return sha256(secret.encode("utf-8", "replace")).hexdigest()


def _older(used: str | None) -> bool:
    if used is None:
        return True
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(used)).total_seconds() > _SEEN_EVERY
    except ValueError:
        return True
