"""Guesses of a class, before the picture is shown; kept in this process, the oldest dropped first."""

import re
import threading
from collections import OrderedDict

from workbench.errors import InputError

MOST = 500
"""Guesses kept of each lesson."""
_GUESSES: dict[str, OrderedDict[str, float]] = {}
_LOCK = threading.Lock()


def parse(text: str) -> float:
    """The number somebody typed: "62", "62 %", "0,5".

    Raises:
        InputError: it is none.
    """
    match = re.fullmatch(
        r"(-?\d{1,12}(?:[.,]\d{1,12})?|-?[.,]\d{1,12})\s*(%|nats|of 100|sweeps)?", text.strip()
    )
    if match is None:
        raise InputError(f"A guess is a number, such as 62; got {text.strip()[:40]!r}.")
    return float(match[1].replace(",", "."))


def give(lesson: str, who: str, value: float) -> None:
    """Count a guess; a second one of the same person replaces the first.

    Args:
        lesson: its name.
        who: one browser.
        value: of the guess.
    """
    with _LOCK:
        guesses = _GUESSES.setdefault(lesson, OrderedDict())
        guesses[who] = value
        guesses.move_to_end(who)
        while len(guesses) > MOST:
            guesses.popitem(last=False)


def given(lesson: str) -> list[float]:
    """All guesses of a lesson."""
    with _LOCK:
        return list(_GUESSES.get(lesson, {}).values())


def of(lesson: str, who: str) -> float | None:
    """Guesses of one browser."""
    with _LOCK:
        return _GUESSES[lesson].get(who) if lesson in _GUESSES else None


def clear(lesson: str) -> None:
    """Begin anew, for the next class."""
    with _LOCK:
        _GUESSES.pop(lesson, None)
