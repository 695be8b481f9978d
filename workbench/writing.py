"""Files that are whole or not there, the place of a person's projects, and what only they may read."""

import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from workbench.errors import Cancelled, InputError

_LONGEST = 200
"""Bytes of a name that its neighbour repeats: file systems end at 255."""
_LOOK = 0.1  # seconds between two looks at whether it is one's turn
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
    """True if a file could be locked; False also where the system or the disk cannot lock."""
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


@contextmanager
def chosen_file(
    path: Path, *, protected: Iterable[Path | str | None] = (), replace: bool = False
) -> Iterator[BinaryIO]:
    """A file to write at a path that a person chose, whole or not there; folders above it are made.

    Args:
        path: of the file.
        protected: files and folders that are never written, also with `replace`: what the content is made
            from, and the pools of projects. Asked for only where something lies at `path`; None is nothing.
        replace: write over another file that is there.

    Raises:
        InputError: a protected path, a file that is there, or a place that cannot be written.
    """
    check_place(path, protected=protected, replace=replace)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            yield file
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error


def check_place(path: Path, *, protected: Iterable[Path | str | None] = (), replace: bool = False) -> None:
    """Refuse a place as `chosen_file` does, before the work that would be written there.

    Args:
        path: of a file.
        protected: as of `chosen_file`.
        replace: as of `chosen_file`.

    Raises:
        InputError: a protected path, or something that is there.
    """
    if not os.path.lexists(path):
        return
    for protected_path in protected:
        if protected_path is not None and _is_within(path, Path(protected_path)):
            raise InputError(
                f"{path} belongs to {protected_path}, which this is made from or which a project needs. "
                "Nothing was written; choose another file."
            )
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file.")
    if not replace:
        raise InputError(
            f"{path} is there already. Choose another file, or replace it: --replace, in Python replace=True."
        )


def _is_within(path: Path, container: Path) -> bool:
    """True if two paths are one file, by whatever name, or the first lies in the folder of the second."""
    try:
        return path.samefile(container) or (
            container.is_dir() and path.resolve().is_relative_to(container.resolve())
        )
    except OSError:
        return False


def sweep(folder: Path) -> None:
    """Remove what a kill left of `whole_file` in a folder, and in the folders below it.

    Args:
        folder: in which nobody else is writing now.
    """
    for path in folder.rglob(".*.new"):
        if _LEFT.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            path.unlink(missing_ok=True)


@contextmanager
def alone_in(folder: Path, stop: Callable[[], bool] | None = None) -> Iterator[None]:
    """A block that one program at a time is in, for a folder; others wait, and a killed one lets go.

    Args:
        folder: that exists. Where the system cannot lock folders (Windows), nobody waits.
        stop: asked again and again while it waits, whether it is to give up.

    Raises:
        Cancelled: `stop` said so.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        while stop is not None and not _locked_at_once(handle):
            if stop():
                raise Cancelled("before its turn")
            time.sleep(_LOOK)
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _locked_at_once(handle: int) -> bool:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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


def workbench_home() -> Path:
    """The folder of projects and database: WORKBENCH_HOME, else the user's data folder."""
    folder = os.environ.get("WORKBENCH_HOME")
    if folder:
        return Path(folder).expanduser()
    from platformdirs import user_data_path

    return Path(user_data_path("workbench", appauthor=False))


def private_folder(path: Path) -> None:
    """Make a folder, with those above it, that only its owner may look into."""
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)


def private_file(path: Path) -> None:
    """Make an empty file that only its owner may read; one that is there stays as it is."""
    private_folder(path.parent)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
