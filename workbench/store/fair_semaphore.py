"""Threads that come for one thing get it in the order in which they came."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from workbench.errors import StorageError


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
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self._holders: set[int] = set()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Within the block the thread holds a place; another thread may end the block.

        Raises:
            StorageError: none was free all that time, or the thread holds one: it would wait for itself.
        """
        thread = threading.get_ident()
        with self._lock:
            if thread in self._holders:
                raise StorageError("A change was begun within another one. Nothing of it was saved.")
        self._take()
        try:
            with self._lock:
                self._holders.add(thread)
            yield
        finally:
            with self._lock:
                self._holders.discard(thread)
            self._give_back()

    def _take(self) -> None:
        with self._lock:
            if self._free and not self._waiting:
                self._free -= 1
                return
            turn = threading.Event()
            self._waiting.append(turn)
        deadline = time.monotonic() + self._seconds
        try:
            come = turn.wait(max(0.0, deadline - time.monotonic()))
        except BaseException:
            if not self._leave(turn):
                self._give_back()
            raise
        if not come and self._leave(turn):
            raise StorageError(
                f"Others have been writing to the database for {self._seconds:.0f} seconds. Nothing was "
                "saved: do it again."
            )

    def _leave(self, turn: threading.Event) -> bool:
        """Stop waiting; False where the turn has come meanwhile."""
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return True
        return False

    def _give_back(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()  # the place goes from hand to hand
            else:
                self._free += 1
