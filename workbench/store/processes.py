"""Which process owns what, and whether it still lives."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def this_process() -> str:
    """This process as "host:pid:start", so that a pid used again is not taken for it."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"


def _started(pid: int) -> str:
    try:
        # The 22nd field, counted after the parenthesised name, which may hold spaces.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def is_alive(owner: str) -> bool:
    """Whether the process that `this_process` named still runs.

    Args:
        owner: from `this_process`, in that process. One on another machine is taken to be alive.
    """
    host, pid, started = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _started(int(pid)) == started
