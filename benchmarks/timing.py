"""Processor time of one piece of work, and of several in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Processor seconds of this process, and what the work returned."""
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def race(sides: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median processor seconds of each side, taking turns."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, work in sides.items():
            times[name].append(timed(work)[0])
    return {name: float(np.median(held)) for name, held in times.items()}
