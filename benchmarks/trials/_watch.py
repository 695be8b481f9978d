"""An eye on what a piece of code does: imports, processes, unpickling, writing, connecting."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_FORBIDDEN = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "os.remove",
    "os.rename",
    "os.mkdir",
    "pickle.find_class",
    "socket.connect",
    "shutil.rmtree",
)
_noted: list[str] | None = None
_hooked = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _noted is None:
        return
    if event in _FORBIDDEN:
        _noted.append(f"{event}{arguments!r}"[:200])
    elif event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        _noted.append(f"open for writing: {arguments[0]!r}"[:200])
    elif event == "import" and str(arguments[0]).partition(".")[0] not in _known():
        _noted.append(f"import {arguments[0]}")


def _known() -> set[str]:
    """Packages that were there before anything hostile was read, and Python's own."""
    return _packages | set(sys.stdlib_module_names)


_packages: set[str] = set()


@contextmanager
def watched() -> Iterator[list[str]]:
    """What the code inside did that reading a file must not do, as it happens."""
    global _noted, _hooked
    if not _hooked:
        sys.addaudithook(_hook)  # for good: a hook cannot be taken away
        _hooked = True
    _packages.update(name.partition(".")[0] for name in list(sys.modules))
    _noted = []
    try:
        yield _noted
    finally:
        _noted = None
