"""Errors of the database: their meaning for a person, and the retry of work that a server cut off."""

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from workbench.errors import InputError, StorageError
from workbench.reading import cut

_NO_LOCK = "55P03"  # of PostgreSQL: a lock was waited for too long
_SMALL = 1 << 20  # bytes; SQLite says "disk I/O error" where its index of the log does not fit any more


@contextmanager
def said_plainly(path: Path | None) -> Iterator[None]:
    """Turn an error of the database's about its place, or a lock, into one sentence.

    Args:
        path: of the database; None for one that is no file, whose errors pass.

    Raises:
        StorageError: (the block does) the place of the database cannot be used now.
    """
    try:
        yield
    except Exception as error:
        if getattr(getattr(error, "orig", None), "sqlstate", None) == _NO_LOCK:
            raise StorageError(
                "Somebody else has kept the project locked all this time. Nothing was saved: do it again."
            ) from error
        driver = error if isinstance(error, sqlite3.Error) else getattr(error, "orig", None)
        words = explained(driver, path) if path is not None and isinstance(driver, sqlite3.Error) else ""
        if not words:
            raise
        raise StorageError(words) from error


def explained(error: sqlite3.Error, path: Path) -> str:
    """A sentence about an error of SQLite's; "" where it is none about the place of the database.

    Args:
        error: of the driver.
        path: of the database.
    """
    name = str(getattr(error, "sqlite_errorname", "") or "")
    folder = path.parent
    kind = name.removeprefix("SQLITE_").partition("_")[0]
    if kind == "FULL" or (kind in ("IOERR", "CANTOPEN", "READONLY") and _free(folder) < _SMALL):
        return (
            f"The disk of {folder} is full: nothing more can be saved. What was saved is kept; make room "
            "there, or point WORKBENCH_HOME at another disk, and do it again."
        )
    if kind in ("READONLY", "CANTOPEN", "PERM", "AUTH"):
        return (
            f"The database {path} cannot be opened for writing ({error}): see that you may write to it and "
            "to its folder, or point WORKBENCH_HOME at another one."
        )
    if kind in ("BUSY", "LOCKED"):
        return (
            f"Another program has kept the database {path} locked all this time. Nothing was saved: "
            "end that program, and do it again."
        )
    if kind == "IOERR":
        return (
            f"The database {path} cannot be written or read ({error}): the disk refuses. Make room, or see "
            "that it may be written, and do it again."
        )
    if kind in ("CORRUPT", "NOTADB"):
        return f"The database {path} cannot be opened ({error}): put back a copy (workbench restore)."
    return ""


def _free(folder: Path) -> float:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return float("inf")


P = ParamSpec("P")
T = TypeVar("T")

# Seconds between the tries; a server that is started anew is away for some of them.
PAUSES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)
# Connection gone, ended by the server, deadlock or clash of transactions, too many connections.
_STATES = ("08", "57", "40", "53300")


def retried(method: Callable[P, T]) -> Callable[P, T]:
    """Make a function of one transaction begin again when the database server cut that off.

    The transaction must have been rolled back: `Store` sees to that also for one that was cut off while
    it was committed, by asking the server what became of it.

    Raises:
        InputError: (the function does) the server is still out of reach after some 25 seconds.
    """

    @wraps(method)
    def again(*originals: P.args, **keywords: P.kwargs) -> T:
        # arguments are used again
        arguments: Any = [
            list(argument) if isinstance(argument, Iterator) else argument for argument in originals
        ]
        for pause in PAUSES:
            try:
                return method(*arguments, **keywords)
            except Exception as error:
                if not was_cut_off(error):
                    raise
            time.sleep(pause)
        try:
            return method(*arguments, **keywords)
        except Exception as error:
            if not was_cut_off(error):
                raise
            message = cut(" ".join(str(getattr(error, "orig", error)).split()))
            raise InputError(
                f"The database server does not answer ({message}). What was saved is kept; "
                "try again when it is back."
            ) from error

    return again


def was_cut_off(error: Exception) -> bool:
    """True if an error of SQLAlchemy's says that the server, not the statement, is to blame."""
    if getattr(error, "connection_invalidated", False):
        return True
    driver = getattr(error, "orig", None)
    if driver is None or not type(driver).__module__.startswith("psycopg"):
        return False
    state = getattr(driver, "sqlstate", None)
    if state is None:
        # told by the client's side: no connection could be made, or it broke
        return type(error).__name__ == "OperationalError"
    return str(state).startswith(_STATES)
