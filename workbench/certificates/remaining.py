"""Checks that are to go, and when more of them are likely to be wasted: advice, no part of a guarantee."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from workbench.certificates.validation import checks_of
from workbench.certificates.wealth import first_reached, log_wealth

_LEAST = 20  # checks before which nothing is given up
_Z = 1.2815515655446004  # one-sided 90 %


def checks_to_go(
    wrong: ArrayLike, size: int, error: float, confidence: float, most: int = 3_000
) -> int | None:
    """About how many checks are to go, if the share of wrong ones stays what it is: a forecast.

    Args:
        wrong: [t] of the checks so far, within the set.
        size: of the set.
        error: allowed share.
        confidence: of this attempt.
        most: checks that it looks ahead.

    Returns:
        0 where they suffice; None where they would not at this rate.
    """
    found = checks_of(wrong, size)
    rate = float(found.mean()) if len(found) else 0.0
    # the next wrong ones evenly spread, the first after half a gap
    counts = np.floor(rate * (np.arange(min(size - len(found), most)) + 1) + 0.5)
    ahead = np.diff(counts, prepend=0.0) > 0
    reached = int(first_reached(log_wealth(np.concatenate([found, ahead]), size, error), confidence))
    return max(0, reached - len(found)) if reached else None


def looks_broken(wrong: int, checks: int, error: float) -> bool:
    """True if a set looks worse than is allowed, so that more checks are likely to be wasted.

    Wilson's lower end of the share at 90 % lies above `error`. Advice, no part of the guarantee.
    """
    if checks < _LEAST:
        return False
    p = wrong / checks
    middle = p + _Z * _Z / (2 * checks)
    half = _Z * math.sqrt(p * (1 - p) / checks + _Z * _Z / (4 * checks * checks))
    return (middle - half) / (1 + _Z * _Z / checks) > error
