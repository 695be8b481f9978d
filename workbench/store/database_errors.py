"""Meaning of SQLite's errors for a person: the disk, the permissions, another program, a damaged file."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.errors import StorageError

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
