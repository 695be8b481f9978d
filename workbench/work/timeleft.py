"""Time left, told from how far something has come."""

import math
import time
from collections.abc import Callable

from workbench.progress import duration

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
