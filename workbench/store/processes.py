"""Owners of work by process, and whether each still lives."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from workbench.writing import private_folder, workbench_home

LEASE = 300.0
"""Seconds after which somebody on another machine, of whom nothing was heard, is taken to be gone."""


def this_process() -> str:
    """This process as "host:pid:start", so that a pid used again is not taken for it."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"


def _started(pid: int) -> str:
    import psutil

    try:
        # Ticks since the start of the machine, which setting its clock does not move, as it moves psutil's
        # time of day: the 22nd field, counted after the parenthesised name, which may hold spaces.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        pass
    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.Error:
        return ""


class Lease:
    """Says again and again, in a thread of its own, that this process is still at work.

    Args:
        renew: says it; what it raises is tried again the next time.
        every: seconds between two times.
    """

    def __init__(self, renew: Callable[[], object], every: float = LEASE / 5) -> None:
        self._renew, self._every = renew, every
        self._ended = threading.Event()
        threading.Thread(target=self._keep, name="lease", daemon=True).start()

    def end(self) -> None:
        """Let go."""
        self._ended.set()

    def _keep(self) -> None:
        while not self._ended.wait(self._every):
            with suppress(Exception):  # a busy database or a full disk passes, and the lease is long
                self._renew()


def is_alive(owner: str, renewed: float) -> bool:
    """True if the process that `this_process` named still runs.

    Args:
        owner: from `this_process`, in that process.
        renewed: when it last said so, epoch seconds; what counts for one on another machine, or in a
            container that is gone.
    """
    host, pid, started = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return time.time() - renewed < LEASE
    import psutil

    if not psutil.pid_exists(int(pid)):
        return False
    start = _started(int(pid))
    return not start or start == started  # of a process of somebody else the start may not be told


@contextmanager
def serving() -> Iterator[None]:
    """Say, while a block runs, that this process serves the projects of `workbench_home`."""
    # containers that share a home often share the number, too
    place = workbench_home() / "servers" / f"{socket.gethostname()}-{os.getpid()}"
    private_folder(place.parent)
    place.write_text(this_process(), encoding="utf-8")
    lease = Lease(lambda: os.utime(place))  # for other machines; it must not make a file that is gone
    try:
        yield
    finally:
        lease.end()
        place.unlink(missing_ok=True)


def is_served() -> bool:
    """True if a server of the projects of `workbench_home` runs."""
    for place in (workbench_home() / "servers").glob("*"):
        with suppress(OSError, ValueError):  # ended meanwhile, or cut short by a full disk
            if is_alive(place.read_text(encoding="utf-8"), place.stat().st_mtime):
                return True
    return False
