"""Copies of a whole database, and putting one in its place."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from workbench.errors import InputError
from workbench.store import pool_files
from workbench.store.database import Database, address_of, tables
from workbench.store.database_errors import retried
from workbench.store.events import now
from workbench.store.projects import Projects
from workbench.writing import private_file, short_name, workbench_home

if TYPE_CHECKING:
    from sqlalchemy import Connection

_ROWS = 500  # copied at once: a row may hold a posterior


class Copies(Projects):
    """Backup and restore."""

    def backup(self, path: str | Path, *, files: bool = True) -> int:
        """Write a consistent copy of the whole database, also while others write to it.

        Args:
            path: of an SQLite file that is not there yet, whatever this database is.
            files: put the files that people uploaded into it too.

        Returns:
            How many files are in it.

        Raises:
            InputError: there is such a file, or it cannot be written.
        """
        place = Path(path).expanduser()
        if place.exists():
            raise InputError(f"{place} is there already; choose another file.")
        partial = place.with_name(f".{short_name(place.name)}.partial")
        try:
            partial.unlink(missing_ok=True)
            private_file(partial)
            if self._is_file:
                with self._raw() as source:
                    _copy(source, partial)
            else:
                self._copy_tables_to(partial)
            n_files = 0
            if files:
                with closing(sqlite3.connect(partial)) as copy:
                    n_files = pool_files.put_in(copy)
            partial.replace(place)
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{place} cannot be written: {error}.") from error
        finally:
            partial.unlink(missing_ok=True)
        return n_files

    def restore(self, path: str | Path, *, replace: bool = False) -> Path | None:
        """Put a copy that `backup` wrote in the place of this database.

        The copy may come from a database of the other sort: so projects move from a file to a server. Files
        of pools in it go into this home, and the projects find them there.

        Args:
            path: of the copy.
            replace: also where this database holds projects, runs or comparisons; it is copied first, beside
                its file or, from a server, into the home folder.

        Returns:
            Where the database as it was before lies; None where it held nothing.

        Raises:
            InputError: no such copy, one of a newer version, or projects that would be lost.
        """
        place = Path(path).expanduser()
        if not place.is_file():
            raise InputError(f"There is no file {place}.")
        contents = self._held()
        if contents and not replace:
            raise InputError(
                f"{self._shown} holds {contents}. With --replace they are put aside and the copy takes "
                "their place; or point WORKBENCH_HOME at an empty folder."
            )
        with TemporaryDirectory() as folder:
            # Brought up to this version beside the database, so that a copy of another sort changes nothing.
            copy = Path(folder) / "copy.sqlite"
            try:
                with closing(sqlite3.connect(f"file:{place.resolve()}?mode=ro", uri=True)) as source:
                    if source.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                        raise sqlite3.DatabaseError("parts of it are damaged")
                    _copy(source, copy)
                Database(address_of(copy)).close()
                with closing(sqlite3.connect(copy)) as connection:
                    pool_files.take_out(connection)
            except sqlite3.Error as error:
                raise InputError(f"{place} is no copy of a database: {error}.") from error
            aside = None
            if contents:
                moment = now().partition("+")[0].replace(":", "").replace("-", "").replace(".", "-")
                home = workbench_home() / "workbench"
                database = Path(str(self._engine.url.database)) if self._is_file else home
                aside = database.with_name(f"{database.stem}-before-{moment}.sqlite")
                self.backup(aside, files=False)
            if self._is_file:
                with self._turns.taken(), closing(sqlite3.connect(copy)) as source, self._raw() as target:
                    source.backup(target)
            else:
                self._take_tables_from(copy)
        return aside

    @retried
    def _held(self) -> str:
        """Data that would be lost with this database, in words; "" where there is none."""
        from sqlalchemy import func, select

        t = tables()
        kinds = ((t.projects, "project"), (t.runs, "run"), (t.studies, "comparison"))
        with self._read() as connection:
            counts = [
                (connection.execute(select(func.count()).select_from(table)).scalar_one(), kind)
                for table, kind in kinds
            ]
        return " and ".join(f"{n} {kind}(s)" for n, kind in counts if n)

    @retried
    def _copy_tables_to(self, path: Path) -> None:
        """All rows as of one moment, into an SQLite file."""
        path.unlink(missing_ok=True)
        private_file(path)
        with (
            closing(Database(address_of(path))) as copy,
            self._snapshot() as source,
            copy._write() as target,
        ):
            _copy_rows(source.execution_options(yield_per=_ROWS), target)
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode = DELETE")

    @retried
    def _take_tables_from(self, path: Path) -> None:
        """All rows of an SQLite file in the place of those here, in one transaction."""
        with closing(Database(address_of(path))) as copy, copy._read() as plain, self._write() as target:
            own_tables = tables().metadata.sorted_tables
            names = ", ".join(table.name for table in own_tables)
            target.exec_driver_sql(f"LOCK TABLE {names} IN EXCLUSIVE MODE")
            for table in reversed(own_tables):
                target.execute(table.delete())
            _copy_rows(plain.execution_options(yield_per=_ROWS), target)

    @contextmanager
    def _raw(self) -> Iterator[sqlite3.Connection]:
        """The driver's own connection to an SQLite file."""
        connection = self._engine.raw_connection()
        try:
            driver = connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            yield driver
        finally:
            connection.close()


def _copy_rows(source: Connection, target: Connection) -> None:
    for table in tables().metadata.sorted_tables:
        for part in source.execute(table.select()).partitions(_ROWS):
            target.execute(table.insert(), [dict(row._mapping) for row in part])


def _copy(source: sqlite3.Connection, path: Path) -> None:
    with closing(sqlite3.connect(path)) as target:
        source.backup(target)
        # A copy is one file: what waits in a log of its own would be left behind.
        target.execute("PRAGMA journal_mode = DELETE")
