"""Callbacks of long work, by which it says how far it is, and the time that is left."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

FitCallback = Callable[[float, float], bool | None]
"""callback(fraction done in [0, 1], objective) -> True to stop a fit and keep the best state."""

OnProgress = Callable[[float, str], None]
"""report(fraction done in [0, 1], what is being done); it may raise to stop the work."""

_WATCH: ContextVar[tuple[OnProgress, float, float] | None] = ContextVar("watch", default=None)


@contextmanager
def watched(report: OnProgress) -> Iterator[None]:
    """Within the block, what is done in this thread tells `report` how far it is (`tell`).

    Args:
        report: what it raises, for instance because a person cancelled, ends the work where it is.
    """
    token = _WATCH.set((report, 0.0, 1.0))
    try:
        yield
    finally:
        _WATCH.reset(token)


@contextmanager
def part(low: float, high: float) -> Iterator[None]:
    """Within the block, fractions count from `low` to `high` of the whole: a stage of it."""
    watch = _WATCH.get()
    if watch is None:
        yield
        return
    report, start, end = watch
    token = _WATCH.set((report, start + low * (end - start), start + high * (end - start)))
    try:
        yield
    finally:
        _WATCH.reset(token)


def quiet(fraction: float, message: str) -> None:
    """Progress that nobody wants to hear of."""


def tell(fraction: float, message: str) -> None:
    """Say how far the present stage is; nothing happens where nobody watches.

    Raises:
        Exception: whatever the watcher raises to stop the work.
    """
    watch = _WATCH.get()
    if watch is not None:
        report, low, high = watch
        report(low + min(max(fraction, 0.0), 1.0) * (high - low), message)


def duration(seconds: float) -> str:
    """A time as people say it: "40 s", "12 min", "1.5 h", "12 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.{int(hours < 10)}f} h"


NOTICE = 60.0
"""Seconds: what is expected to take longer says so."""

_SETTLE = 3.0
"""Seconds in which nothing is said."""


class TimeLeft:
    """Estimates the whole from the share that is done, beginning with the second step that tells.

    Nobody knows before how fast a machine is, so a step is the measure: what it took, divided by the share
    of the whole that it was. The first one loads libraries and compiles and tells only that it was long: it
    is spoken of when it has taken as long as the notice by itself. Fits may end before their last step, so
    the time is the most it takes, not a promise.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._long = False
        self._first: tuple[float, float] | None = None

    def seconds_left(self, fraction: float) -> float | None:
        """At the pace since the first step; None while nothing is known, that is before the second."""
        if not 0.0 < fraction <= 1.0:
            return None
        moment = self._clock()
        if self._first is None:
            self._first = (fraction, moment)
        share, since = self._first
        if fraction == 1.0:
            return 0.0
        return (moment - since) * (1.0 - fraction) / (fraction - share) if fraction > share else None

    def words(self, fraction: float) -> str:
        """Time left, in words, for something that takes long; "" for what does not.

        Args:
            fraction: done so far, 0 to 1.
        """
        spent = self._clock() - self._began
        seconds = self.seconds_left(fraction)
        if seconds is None:
            # no step has ended: what has passed already is all that is known
            return f"the first step takes {_rounded_up(spent)} so far" if spent >= NOTICE else ""
        # once it was long it stays so: words that come and go tell nobody anything
        self._long = self._long or (spent >= _SETTLE and spent + seconds >= NOTICE)
        return f"at most {_rounded_up(seconds)} left" if self._long else ""


def _rounded_up(seconds: float) -> str:
    step = 10 if seconds <= 80 else 60
    return duration(math.ceil(seconds / step) * step)
