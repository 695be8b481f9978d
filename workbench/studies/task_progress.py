"""Progress of work in another process, which also hears that it is to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.errors import Cancelled

Say = Callable[[Any], bool]
"""Takes (fraction, words, the result so far or None), or None; returns whether to stop."""


class Report:
    """Tells how far a work is, and stops it where that is wanted.

    Args:
        say: of the process that asked.
    """

    def __init__(self, say: Say) -> None:
        self._say = say
        self._told = (0.0, "")

    def __call__(self, fraction: float, message: str = "", partial: Any = None) -> None:
        """As `Job.report`.

        Raises:
            Cancelled: it is to stop.
        """
        self._told = (fraction, message)
        if self._say((fraction, message, partial)):
            raise Cancelled(message)

    def publish(self, partial: Any) -> None:
        """A result so far, while the work is as far as it said last.

        Raises:
            Cancelled: it is to stop.
        """
        self(*self._told, partial)

    def should_stop(self) -> bool:
        """Asked by work that stops at a place of its own choosing."""
        return bool(self._say(None))
