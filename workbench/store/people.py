"""The people of a server: who logged in once, and the name that their events carry."""

import secrets
from contextlib import suppress

from workbench.reading import valid_text
from workbench.store.database import Tables, tables
from workbench.store.events import SOURCE, now
from workbench.store.retry import retried


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
