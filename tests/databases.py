"""Databases for tests: an SQLite file, and a schema of its own on the PostgreSQL server of
WORKBENCH_TEST_POSTGRESQL (postgresql://user@host:port/database)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from workbench.store import Store

SERVER = os.environ.get("WORKBENCH_TEST_POSTGRESQL", "")
KINDS = ("sqlite", "postgresql")


def needs_server() -> None:
    """Skip the test where there is no server; in continuous integration there must be one."""
    if SERVER and find_spec("psycopg") is not None:
        return
    why = "needs psycopg and a PostgreSQL server's URL in WORKBENCH_TEST_POSTGRESQL"
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


@contextmanager
def address(kind: str, folder: Path) -> Iterator[str]:
    """The URL of an empty database, which is gone afterwards."""
    if kind == "sqlite":
        yield f"sqlite:///{(folder / 'deep' / 'w.sqlite').resolve()}"
        return
    needs_server()
    import psycopg

    name = f"t{secrets.token_hex(6)}"
    with psycopg.connect(SERVER, autocommit=True) as server:
        server.execute(f"CREATE SCHEMA {name}")
    try:
        yield f"{SERVER}{'&' if '?' in SERVER else '?'}options=-csearch_path%3D{name}"
    finally:
        with psycopg.connect(SERVER, autocommit=True) as server:
            server.execute("SET lock_timeout = '30s'")
            server.execute(f"DROP SCHEMA {name} CASCADE")


@contextmanager
def database(kind: str, folder: Path) -> Iterator[Store]:
    """An empty database, open; it is gone afterwards."""
    with address(kind, folder) as url:
        store = Store.open(url)
        yield store
        store.close()
