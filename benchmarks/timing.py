"""One meter for every ratio: the same warm-up, turns and repetitions for each side, or no ratio."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Processor seconds of this process, and what the work returned."""
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


class NoRatioError(ValueError):
    """Two sides that do not compare: the message says why."""


class Ratio(NamedTuple):
    """Ratio of the times of two sides.

    Attributes:
        value: median of the turns' ratios; exchanged sides give the inverse.
        low: lower quartile.
        high: upper quartile.
        turns: how many.
    """

    value: float
    low: float
    high: float
    turns: int

    def __str__(self) -> str:
        return f"{self.value:.3g}x ({self.low:.3g} to {self.high:.3g})"


@dataclass
class Sides:
    """Work of several sides, measured in turn.

    Args:
        works: side -> what it does once.
        warm: side -> what is done before anything is timed, so that imports, traces and first calls are
            nobody's; the work itself unless given. Give the same for all sides, on other rows where a fit
            keeps what it made.
        arrived: (side, result) -> whether the side reached what it was asked for; unless given, all do.
        clock: seconds; processor time of this process unless given.

    Attributes:
        seconds: side -> [turns].
        results: side -> what each turn returned.
        failed: side -> why there is no time of it.
    """

    works: Mapping[str, Callable[[], Any]]
    warm: Mapping[str, Callable[[], Any]] | None = None
    arrived: Callable[[str, Any], bool] = lambda side, result: True
    clock: Callable[[], float] = time.process_time
    seconds: dict[str, list[float]] = field(default_factory=dict)
    results: dict[str, list[Any]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def run(self, turns: int) -> Sides:
        """Warm all sides up, then measure them in turn, every other turn in the opposite order.

        Args:
            turns: of each side.
        """
        for side in self.works:
            self.seconds[side], self.results[side] = [], []
            self._once(side, (self.warm or self.works)[side])
        for turn in range(turns):
            for side in list(self.works) if turn % 2 == 0 else list(reversed(self.works)):
                if side in self.failed:
                    continue
                began = self.clock()
                result = self._once(side, self.works[side])
                spent = self.clock() - began
                if side not in self.failed:
                    self.seconds[side].append(spent)
                    self.results[side].append(result)
                    if not self.arrived(side, result):
                        self.failed[side] = "did not get there"
        return self

    def _once(self, side: str, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:
            self.failed[side] = f"failed: {type(error).__name__}: {error}"
            return None

    def median(self, side: str) -> float:
        """Median seconds of a side."""
        return float(np.median(self.seconds[side]))

    def ratio(self, of: str, to: str) -> Ratio:
        """Ratio of the times of `of` and `to`, turn by turn.

        Raises:
            NoRatioError: a side failed, never got there, or ran another number of times.
        """
        for side in (of, to):
            if side in self.failed:
                raise NoRatioError(f"{side} {self.failed[side]}")
        one, other = (np.asarray(self.seconds[side]) for side in (of, to))
        if len(one) != len(other) or not len(one):
            raise NoRatioError(f"{of} was run {len(one)} times and {to} {len(other)} times")
        low, value, high = np.exp(np.quantile(np.log(one / other), [0.25, 0.5, 0.75]))
        return Ratio(float(value), float(low), float(high), len(one))

    def told(self, of: str, to: str) -> str:
        """The ratio in words, or why there is none."""
        try:
            return str(self.ratio(of, to))
        except NoRatioError as error:
            return f"no ratio: {error}"

    def line(self, side: str) -> str:
        """Median and quartiles of a side, in seconds."""
        if not self.seconds[side]:
            return self.failed.get(side, "not run")
        low, value, high = np.quantile(self.seconds[side], [0.25, 0.5, 0.75])
        return f"{value:.3g} s ({low:.3g} to {high:.3g})"


def race(sides: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median processor seconds of each side, warmed and in turn.

    Raises:
        NoRatioError: a side failed.
    """
    ran = Sides(sides).run(rounds)
    for side, why in ran.failed.items():
        raise NoRatioError(f"{side} {why}")
    return {side: ran.median(side) for side in sides}
