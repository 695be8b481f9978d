"""Callbacks of long work, by which it says how far it is."""

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
