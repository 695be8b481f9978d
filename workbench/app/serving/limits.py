"""How much one person, and one project, may ask of the server at a time, so that the others keep theirs.

Nothing is lost: whoever is told to wait keeps what they have done in their browser, and it is sent again.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

OPERATIONS, OPERATIONS_AT_ONCE = 60.0, 400.0
"""A second and person, and what may come at once: what a browser kept while the server was away."""
REQUESTS, REQUESTS_AT_ONCE = 30.0, 120.0
WORKING = 16
"""Requests of a project that work at the same time: a slow one leaves threads to the others."""
WAITING = 200
"""Requests of a project that wait for that; further ones come later."""
OF_ONE = 6
"""Requests of one person that work or wait: a few tabs."""
_KEPT = 10_000  # people


class TooMuchError(Exception):
    """Come again after `seconds`."""

    def __init__(self, why: str, seconds: float) -> None:
        super().__init__(why)
        self.seconds = max(1, math.ceil(seconds))


@dataclass
class _Bucket:
    left: float
    at: float

    def take(self, n: float, a_second: float, most: float, now: float) -> float:
        """Take n, or say how many seconds it is until they are there."""
        self.left = min(most, self.left + (now - self.at) * a_second)
        self.at = now
        n = min(n, most)
        if self.left >= n:
            self.left -= n
            return 0.0
        return (n - self.left) / a_second


class Limits:
    """What people and projects have used up; safe to use from several threads and event loops.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()
        self._working: dict[str, int] = {}
        self._waiting: dict[str, deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]]] = {}
        self._theirs: dict[tuple[str, str], int] = {}

    def requests(self, person: str, n: int = 1) -> None:
        """Count requests of a person.

        Raises:
            TooMuchError: they come too fast.
        """
        self._take("requests", person, n, REQUESTS, REQUESTS_AT_ONCE)

    def operations(self, person: str, n: int) -> None:
        """Count operations of a person, all or none.

        Raises:
            TooMuchError: they come too fast.
        """
        if n:
            self._take("operations", person, n, OPERATIONS, OPERATIONS_AT_ONCE)

    def _take(self, what: str, person: str, n: int, a_second: float, most: float) -> None:
        now = self._clock()
        with self._lock:
            bucket = self._buckets.setdefault((what, person), _Bucket(most, now))
            self._buckets.move_to_end((what, person))
            while len(self._buckets) > _KEPT:
                self._buckets.popitem(last=False)
            wait = bucket.take(n, a_second, most, now)
        if wait:
            raise TooMuchError(f"the server takes {a_second:.0f} {what} a second of one person", wait)

    @asynccontextmanager
    async def turn(self, project: str, person: str) -> AsyncIterator[None]:
        """A block that few requests of a project are in at a time, in the order in which they came.

        Raises:
            TooMuchError: too many wait already, of everybody or of this person.
        """
        mine = await self._come(project, person)
        try:
            if mine is not None:
                await mine
            yield
        finally:
            self._go(project, person, mine)

    async def _come(self, project: str, person: str) -> asyncio.Future[None] | None:
        with self._lock:
            if self._theirs.get((project, person), 0) >= OF_ONE:
                raise TooMuchError(f"{OF_ONE} requests of yours are being answered already", 1.0)
            queue = self._waiting.setdefault(project, deque())
            if len(queue) >= WAITING:
                raise TooMuchError("too many people ask for this project at the moment", 2.0)
            self._theirs[project, person] = self._theirs.get((project, person), 0) + 1
            if self._working.get(project, 0) < WORKING:
                self._working[project] = self._working.get(project, 0) + 1
                return None
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            queue.append((loop, future))
            return future

    def _go(self, project: str, person: str, mine: asyncio.Future[None] | None) -> None:
        with self._lock:
            left = self._theirs[project, person] - 1
            if left:
                self._theirs[project, person] = left
            else:
                del self._theirs[project, person]
            queue = self._waiting[project]
            for one in queue:
                if one[1] is mine:  # gone before its turn came
                    queue.remove(one)
                    return
            if queue:
                loop, future = queue.popleft()
                loop.call_soon_threadsafe(_let_in, future)  # the place goes from hand to hand
                return
            self._working[project] -= 1
            if not self._working[project]:
                del self._working[project], self._waiting[project]


def _let_in(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


LIMITS = Limits()
