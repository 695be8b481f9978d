"""One database behind a URL: connections, and transactions of which all or nothing is stored.

SQLite in WAL mode with full sync by default, PostgreSQL by URL.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import InputError, StorageError, install_command
from workbench.reading import checked_texts, cut, reason
from workbench.store.database_errors import retried, said_plainly, was_cut_off
from workbench.store.pool_files import FOLDER
from workbench.writing import private_file, workbench_home

# How long a write waits for another program's.
LOCKED_SECONDS = 30.0
WRITERS = 8
"""Threads of a process that write to a server at once; of its 15 connections the others are for reading."""

IDLE_SECONDS = 1.0
"""After so long a server's connection is tried before it is used; what is cut off sooner is done again."""
NUMBER = "workbench-transaction"
"""Where a connection keeps the number of its transaction."""

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


class Database:
    """Connections and transactions."""

    def __init__(self, address: str) -> None:
        self._engine = _connect(address)
        self.url = address
        # whoever waits to write holds no connection: reads need them
        self._turns = FairSemaphore(1 if self._is_file else WRITERS, 2 * LOCKED_SECONDS)

    def close(self) -> None:
        """Let go of the connections; the object must not be used afterwards."""
        self._engine.dispose()

    @property
    def _is_file(self) -> bool:
        return bool(self._engine.dialect.name == "sqlite")

    @cached_property
    def _shown(self) -> str:
        return str(self._engine.url.render_as_string(hide_password=True))

    @cached_property
    def _file(self) -> Path | None:
        return Path(str(self._engine.url.database)) if self._is_file else None

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with said_plainly(self._file), self._readers.connect() as connection:
            yield connection

    @cached_property
    def _readers(self) -> Engine:
        # each statement of a server's shows its own moment anyway: no transaction to begin and to end for it
        return self._engine if self._is_file else self._engine.execution_options(isolation_level="AUTOCOMMIT")

    @retried
    def _rows(self, query: Any) -> Sequence[Any]:
        """All rows of a query."""
        with self._read() as connection:
            return connection.execute(query).all()

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        """A connection whose reads all show the database as of one moment."""
        with said_plainly(self._file), self._engine.connect() as plain:
            # SQLite's transactions show one moment as they are
            level = {} if self._is_file else {"isolation_level": "REPEATABLE READ"}
            connection = plain.execution_options(**level)
            with connection.begin():
                yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        """A transaction; whatever is raised, nothing of it is stored."""
        with self._turns.taken(), said_plainly(self._file), self._engine.connect() as plain:
            connection = plain.execution_options(workbench_write=True)
            transaction = connection.begin()
            connection.info.pop(NUMBER, None)
            try:
                yield connection
                number = self._number(connection)
            except BaseException:
                transaction.rollback()
                raise
            try:
                transaction.commit()
            except Exception as error:
                # cut off between the question and its answer: only the server knows
                if number is None or not was_cut_off(error) or not self._committed(number):
                    raise

    @retried
    def _change(self, statement: Any) -> None:
        """Execute one statement, as a transaction."""
        with self._write() as connection:
            connection.execute(statement)

    def _number(self, connection: Connection) -> int | None:
        """The server's number of a transaction; None for SQLite, whose commits fail or do not."""
        if connection.dialect.name != "postgresql":
            return None
        if NUMBER in connection.info:  # asked together with something else
            return int(connection.info.pop(NUMBER))
        return int(connection.exec_driver_sql("SELECT txid_current()").scalar_one())

    @retried
    def _committed(self, number: int) -> bool:
        """Outcome of a transaction; waits for the end of one that is still being worked on."""
        deadline = time.monotonic() + 30.0
        while True:
            with self._read() as connection:
                ask = f"SELECT txid_status({number})"
                status = connection.exec_driver_sql(ask).scalar_one()
            if status != "in progress":
                return bool(status == "committed")
            if time.monotonic() > deadline:
                raise InputError(
                    "The database server does not say whether it saved the last change. "
                    "Look before you repeat it."
                )
            time.sleep(0.02)


_BEGUN = 1.0
"""Seconds in which a database that another program has begun is more than nothing."""


class Tables:
    """Tables about one matter, as a part of the store.

    Args:
        database: they are in.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._read, self._write = database._read, database._write
        self._rows, self._change = database._rows, database._change


def tables() -> Any:
    """The tables; SQLAlchemy is imported when they are first asked for."""
    from workbench.store import schema

    return schema


def address_of(url: str | Path | None) -> str:
    """The SQLAlchemy URL that a URL, a path of an SQLite file, or nothing stands for."""
    if url is None:
        url = os.environ.get("WORKBENCH_DATABASE_URL") or workbench_home() / "workbench.sqlite"
    if isinstance(url, str) and "://" in url:
        return url
    if isinstance(url, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", url):
        raise InputError(
            f"{cut(url)} is no address of a database: write sqlite:////folder/file.sqlite or "
            "postgresql://user@host/database (WORKBENCH_DATABASE_URL)."
        )
    path = Path(url).expanduser().resolve()
    return f"sqlite:///{path}"


def _check_not_emptied(path: Path) -> None:
    """Refuse a database of no bytes beside uploads: it was a database once, and a new one would hide that.

    Raises:
        StorageError: says what to do.
    """
    uploads = path.parent / FOLDER
    log = path.with_name(f"{path.name}-wal")
    deadline = time.monotonic() + _BEGUN
    while path.is_file() and not path.stat().st_size and not log.exists() and any(uploads.glob("*/*")):
        if time.monotonic() > deadline:  # another program may be making it just now
            raise StorageError(
                f"The database {path} is empty (0 bytes), and uploads of its projects lie beside it: it was "
                "damaged. Move it away and put back a copy (workbench restore COPY)."
            )
        time.sleep(0.02)


def _json(document: Any) -> str:
    """A document as it is stored: with texts that every database keeps."""
    text = json.dumps(document)
    valid = checked_texts(text, document)
    return text if valid is document else json.dumps(valid)


def _from_json(data: str | bytes) -> Any:
    text = data if isinstance(data, str) else bytes(data).decode()  # psycopg gives bytes
    return checked_texts(text, json.loads(text))


def _connect(address: str) -> Engine:
    from sqlalchemy import create_engine, event
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

    try:
        url = make_url(address)
        if url.get_backend_name() not in ("sqlite", "postgresql"):
            meant = " Write postgresql:// in full." if url.drivername == "postgres" else ""
            raise InputError(
                f"The database must be SQLite or PostgreSQL; WORKBENCH_DATABASE_URL names "
                f"{url.drivername!r}.{meant}"
            )
        if url.get_backend_name() == "sqlite":
            if not url.database or url.database == ":memory:":
                raise InputError(
                    "Give the SQLite database a file: one in memory would not outlive the program."
                )
            _check_not_emptied(Path(url.database))
            private_file(Path(url.database))  # SQLite gives its log the same permissions
        elif url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        engine = create_engine(
            url,
            json_serializer=_json,
            json_deserializer=_from_json,
        )
    except InputError:
        raise
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise InputError(
            f"The database URL (WORKBENCH_DATABASE_URL) cannot be read: {reason(error)}. "
            "Write postgresql://user@host:5432/database."
        ) from error
    except ImportError as error:
        raise InputError(
            f"PostgreSQL needs the package psycopg: {install_command('psycopg[binary]')} ({error})"
        ) from error
    except OSError as error:
        raise InputError(
            f"The database {url.database} cannot be made or written: {error.strerror or error}. See that you "
            "may write there, or point WORKBENCH_HOME at another folder."
        ) from error
    if url.get_backend_name() == "sqlite":
        event.listen(engine, "connect", _sqlite_settings)
        event.listen(engine, "begin", _sqlite_begin)
    else:
        event.listen(engine, "connect", _server_settings)
        event.listen(engine, "checkin", _left)
        event.listen(engine, "checkout", _taken)
    try:
        with said_plainly(Path(str(url.database)) if url.get_backend_name() == "sqlite" else None):
            _make_tables(engine)
    except StorageError:
        engine.dispose()
        raise
    except SQLAlchemyError as error:
        engine.dispose()
        message = str(getattr(error, "orig", None) or error)
        raise InputError(f"The database {url.render_as_string()} cannot be opened: {message}") from error
    return engine


def _make_tables(engine: Engine) -> None:
    """Make the tables of an empty database; safe when two processes do it at once.

    Raises:
        InputError: an older or a newer version of the program wrote it; it is left as it is.
    """
    schema = tables()
    with engine.connect() as connection:
        present = _version(connection)
    if present is None:
        with engine.connect() as plain:
            connection = plain.execution_options(workbench_write=True)
            with connection.begin():
                if connection.dialect.name == "postgresql":
                    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7710234)")
                present = _version(connection)
                if present is None:
                    schema.metadata.create_all(connection)
                    schema.versions.create(connection, checkfirst=True)
                    connection.execute(schema.versions.insert(), {"version_num": schema.VERSION})
                    return
    if present != schema.VERSION:
        raise InputError(
            f"The database is at version {present}, which this version of Workbench does not know. "
            "Use the version of Workbench that wrote it, or point WORKBENCH_HOME at another folder."
        )


def _version(connection: Connection) -> str | None:
    """The version that a database is at; None of an empty one, also where the table of it has no row."""
    from sqlalchemy import inspect, select

    versions = tables().versions
    if not inspect(connection).has_table(versions.name):
        return None
    version = connection.execute(select(versions)).scalar_one_or_none()
    return None if version is None else str(version)


def _sqlite_settings(connection: Any, _record: Any) -> None:
    # The driver must not begin transactions by itself: _sqlite_begin decides which kind.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {int(1000 * LOCKED_SECONDS)}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA fullfsync = ON")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _server_settings(connection: Any, _record: Any) -> None:
    connection.autocommit = True  # so that no rollback takes it back
    connection.execute(f"SET lock_timeout = '{int(1000 * LOCKED_SECONDS)}ms'")
    connection.autocommit = False


def _left(_connection: Any, record: Any) -> None:
    record.info["left"] = time.monotonic()


def _taken(connection: Any, record: Any, _proxy: Any) -> None:
    """Have the pool give another connection where one has lain idle and the server has ended it since."""
    from sqlalchemy.exc import DisconnectionError

    if time.monotonic() - record.info.get("left", 0.0) < IDLE_SECONDS:
        return
    try:
        connection.autocommit = True
        connection.execute("")
        connection.autocommit = False
    except Exception as error:
        raise DisconnectionError(str(error)) from error


def _sqlite_begin(connection: Any) -> None:
    # A writer takes the lock before it reads: a deferred transaction that turns into a writing one
    # fails at once, whatever the time-out, when another process wrote in between.
    write = connection.get_execution_options().get("workbench_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


class FairSemaphore:
    """A lock for a few holders at once, first come first served.

    SQLite's own waiting is by chance: whoever writes without a pause keeps others out, and each of those who
    wait holds a connection that readers need.

    Args:
        places: how many may hold it at once.
        seconds: how long a turn is waited for.
    """

    def __init__(self, places: int, seconds: float) -> None:
        self._free = places
        self._seconds = seconds
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._holders: set[int] = set()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Within the block the thread holds a place; another thread may end the block.

        Raises:
            StorageError: none was free all that time, or the thread holds one: it would wait for itself.
        """
        thread = threading.get_ident()
        with self._changed:
            if thread in self._holders:
                raise StorageError("A change was begun within another one. Nothing of it was saved.")
            self._wait()
            self._free -= 1
            self._holders.add(thread)
        try:
            yield
        finally:
            with self._changed:
                self._holders.discard(thread)
                self._free += 1
                self._changed.notify_all()

    def _wait(self) -> None:
        """Wait for a free place; whoever came first has it."""
        turn = object()
        self._waiting.append(turn)
        try:
            if self._changed.wait_for(lambda: self._free and self._waiting[0] is turn, self._seconds):
                return
        finally:
            self._waiting.remove(turn)
            self._changed.notify_all()
        raise StorageError(
            f"Others have been writing to the database for {self._seconds:.0f} seconds. Nothing was "
            "saved: do it again."
        )
