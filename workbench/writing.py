"""Writing files so that they are whole or not there."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_LONGEST = 200
"""Bytes of a name that its neighbour repeats: file systems end at 255."""
_LEFT = re.compile(r"\..+\.[0-9a-f]{8}\.new", re.DOTALL)


def short_name(name: str, most: int = _LONGEST) -> str:
    """The first characters of a name that take at most so many bytes in UTF-8."""
    return name.encode("utf-8", "surrogateescape")[:most].decode("utf-8", "ignore")


@contextmanager
def whole_file(path: Path, *, private: bool = False, synced: bool = True) -> Iterator[BinaryIO]:
    """A file to write that appears under its name when all of it is there; after an error nothing does.

    It is written as a neighbour `.NAME.xxxx.new`, of a name of its own, so that two that write at once
    do not mix, and renamed. Its writer holds a lock on it; what a killed one left in the folder is removed.

    Args:
        path: in a folder that exists.
        private: only its owner may read it.
        synced: on the disk before this returns, also after a power cut; a cache can do without.

    Raises:
        OSError: it cannot be written.
    """
    with suppress(OSError):
        _remove_abandoned(path.parent) if synced else None
    temporary, handle = _new_part(path, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            if synced:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if synced:
        sync_folder(path.parent)


def _new_part(path: Path, mode: int) -> tuple[Path, int]:
    """A neighbour of a file and its locked handle."""
    while True:
        temporary = path.with_name(f".{short_name(path.name)}.{secrets.token_hex(4)}.new")
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        _lock(handle, wait=True)
        if os.fstat(handle).st_nlink:  # nobody took it for abandoned before it was locked
            return temporary, handle
        os.close(handle)


def _remove_abandoned(folder: Path) -> None:
    """Remove the parts of files in a folder that no process is writing any more."""
    for path in folder.iterdir():
        if not _LEFT.fullmatch(path.name) or path.is_symlink():
            continue
        with suppress(OSError):
            handle = os.open(path, os.O_WRONLY)
            try:
                if _lock(handle, wait=False):
                    path.unlink(missing_ok=True)
            finally:
                os.close(handle)


def _lock(handle: int, *, wait: bool) -> bool:
    """Whether a file could be locked; False also where the system or the disk cannot lock."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True


def write_whole(path: Path, data: bytes | str, *, private: bool = False, synced: bool = True) -> None:
    """Write a file at once; texts as UTF-8, the rest as in `whole_file`."""
    with whole_file(path, private=private, synced=synced) as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


def sweep(folder: Path) -> None:
    """Remove what a kill left of `whole_file` in a folder, and in the folders below it.

    Args:
        folder: in which nobody else is writing now.
    """
    for path in folder.rglob(".*.new"):
        if _LEFT.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            path.unlink(missing_ok=True)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """A block that one program at a time is in, for a folder; others wait, and a killed one lets go.

    Args:
        folder: that exists. Where the system cannot lock folders (Windows), nobody waits.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Make a rename in the folder survive a power cut, where the system allows to."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
