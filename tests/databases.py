"""Databases for tests, and what several do with one: an SQLite file, and a schema of its own on the
PostgreSQL server of WORKBENCH_TEST_POSTGRESQL (postgresql://user@host:port/database)."""

from __future__ import annotations

import os
import secrets
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.sessions.fakes import FAKE
from workbench.pools.pool import Pool
from workbench.sessions import Session
from workbench.store import Event, Store
from workbench.writing import private_file

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
        yield f"sqlite:///{_file(folder)}"
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


def _file(folder: Path) -> Path:
    return (folder / "deep" / "w.sqlite").resolve()


@cache
def newest_tables() -> bytes:
    """An SQLite file with all tables and no rows, from which most tests of a process start."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "w.sqlite"
        Store.open(file).close()
        return file.read_bytes()


@contextmanager
def database(kind: str, folder: Path) -> Iterator[Store]:
    """An empty database, open; it is gone afterwards."""
    with address(kind, folder) as url:
        if kind == "sqlite":
            private_file(_file(folder))
            _file(folder).write_bytes(newest_tables())
        store = Store.open(url)
        yield store
        store.close()


def new_project(store: Store, pool: Pool | str = "iris", **more: object) -> Session:
    """A project with the fake classifier, which ann labels."""
    settings: dict[str, object] = {"classifier": FAKE, "policy": "margin", "annotator": "ann", "store": store}
    return Session.create(pool, **(settings | more))  # type: ignore[arg-type]


@contextmanager
def written_meanwhile(store: Store, project: str) -> Iterator[None]:
    """Somebody else writes transactions of two notes to a project, one after the other."""
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            with store.recording(project) as recorder:
                recorder.add(Event.note(1, "a"))
                recorder.add(Event.note(1, "b"))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()
