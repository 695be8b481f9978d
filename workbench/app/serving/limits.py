"""Limits of one person and of one project at the server, so that the others keep theirs.

Nothing is lost: whoever is told to wait keeps what they have done in their browser, and it is sent again.
"""

import asyncio
import math
import time
from collections import Counter, OrderedDict
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
    """Use of the limits by people and projects; asked by the requests of one event loop.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._there: Counter[str] = Counter()
        self._theirs: Counter[tuple[str, str]] = Counter()

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

    def _take(self, kind: str, person: str, n: int, a_second: float, capacity: float) -> None:
        now = self._clock()
        bucket = self._buckets.setdefault((kind, person), _Bucket(capacity, now))
        self._buckets.move_to_end((kind, person))
        while len(self._buckets) > _KEPT:
            self._buckets.popitem(last=False)
        wait = bucket.take(n, a_second, capacity, now)
        if wait:
            raise TooMuchError(f"the server takes {a_second:.0f} {kind} a second of one person", wait)

    @asynccontextmanager
    async def turn(self, project: str, person: str) -> AsyncIterator[None]:
        """A block that few requests of a project are in at a time, in the order in which they came.

        Raises:
            TooMuchError: too many wait already, of everybody or of this person.
        """
        if self._theirs[project, person] >= OF_ONE:
            raise TooMuchError(f"{OF_ONE} requests of yours are being answered already", 1.0)
        if self._there[project] >= WORKING + WAITING:
            raise TooMuchError("too many people ask for this project at the moment", 2.0)
        self._there[project] += 1
        self._theirs[project, person] += 1
        try:
            async with self._turns.setdefault(project, asyncio.Semaphore(WORKING)):
                yield
        finally:
            self._there[project] -= 1
            self._theirs[project, person] -= 1
            if not self._theirs[project, person]:
                del self._theirs[project, person]
            if not self._there[project]:
                del self._there[project], self._turns[project]


LIMITS = Limits()
