"""Record of the acts of code: imports, processes, unpickling, writing, connecting, looking elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.pools.formats import sheet_process

_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "pty.spawn")
_WRITES = (
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "shutil.rmtree",
)
_CODE = ("pickle.find_class", "ctypes.dlopen")
_NET = ("socket.connect", "socket.bind", "urllib.Request")
_READER = [sys.executable, "-P", str(Path(sheet_process.__file__))]
_FORBIDDEN = frozenset((*_STARTS, *_WRITES, *_CODE, *_NET))
_noted: list[str] | None = None
_hooked = False
_outside: tuple[str, ...] = ()
_may_write = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _noted is None:
        return
    if event == "subprocess.Popen" and list(arguments[1])[:3] == _READER:
        return  # our own reader of spreadsheets, a process of limited memory
    kept = os.environ.get("WORKBENCH_FEATURES")
    if kept and arguments and str(arguments[0]).startswith(kept):
        return  # features that are kept for the next time, in a folder of the trial's
    if event in ("os.remove", "os.rmdir") and arguments[1] != -1:
        return  # within a folder of which shutil.rmtree was told
    if event in _FORBIDDEN and not (_may_write and event in _WRITES):
        _noted.append(f"{event}{arguments!r}"[:200])
    elif event == "open" and _is_outside(arguments[0]):
        _noted.append(f"reads {arguments[0]!r}"[:200])
    elif (
        event == "open"
        and not isinstance(arguments[0], int)
        and not _may_write
        and _writes(arguments[1], arguments[2])
    ):
        _noted.append(f"open for writing: {arguments[0]!r}"[:200])
    elif event == "import" and str(arguments[0]).partition(".")[0] not in _known():
        _noted.append(f"import {arguments[0]}")


def _is_outside(path: object) -> bool:
    """True if a path that is opened leads to where nothing may be read, also by a link."""
    if not _outside or not isinstance(path, str | bytes | os.PathLike):
        return False
    return os.path.realpath(os.fsdecode(path)).startswith(_outside)


def _writes(mode: object, flags: object) -> bool:
    if isinstance(mode, str):
        return bool(set(mode) & set("wax+"))
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


def _known() -> set[str]:
    """Packages that were there before anything hostile was read, and Python's own."""
    return _packages | set(sys.stdlib_module_names)


_packages: set[str] = set()


@contextmanager
def watched(outside: Sequence[str] = (), may_write: bool = False) -> Iterator[list[str]]:
    """Acts of the code inside that reading a file must not do, as they happen.

    Args:
        outside: folders and files that it must not read.
        may_write: files may be written: a project that is opened is stored.
    """
    global _noted, _hooked, _outside, _may_write
    if not _hooked:
        sys.addaudithook(_hook)  # for good: a hook cannot be taken away
        _hooked = True
    _packages.update(name.partition(".")[0] for name in list(sys.modules))
    _noted, _outside, _may_write = [], tuple(os.path.realpath(path) for path in outside), may_write
    try:
        yield _noted
    finally:
        _noted, _outside = None, ()
