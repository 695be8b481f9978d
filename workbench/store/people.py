"""The people of a server: who logged in once, and the name that their events carry."""

from __future__ import annotations

import secrets
from contextlib import suppress

from workbench.reading import valid_text
from workbench.store.database import Database, tables
from workbench.store.events import SOURCE, now
from workbench.store.retry import retried


class People(Database):
    """Those who were seen, by the key that the log-in knows them by."""

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
