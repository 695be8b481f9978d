"""Checks that are to go, and when more of them are likely to be wasted: advice, no part of a guarantee."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Ints
from workbench.certificates.validation import checks_of
from workbench.certificates.wealth import first_reached, log_wealth

_LEAST = 20  # checks before which nothing is given up
_Z = 1.2815515655446004  # one-sided 90 %
_KNOWN = 20  # checks that a guess at the share of wrong ones is worth: half of what is allowed


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
    checks = checks_of(wrong, size)
    return _to_go(checks, float(checks.mean()) if len(checks) else 0.0, size, error, confidence, most)


def range_to_go(
    wrong: ArrayLike, size: int, error: float, confidence: float, most: int = 3_000
) -> tuple[int, int | None] | None:
    """Fewest and most checks that are likely to go, of 8 of 10 cases: a forecast, narrower with every check.

    The share of wrong ones may be anything that fits the checks so far (a beta distribution, begun at half
    of what is allowed).

    Args:
        wrong: [t] of the checks so far, within the set.
        size: of the set.
        error: allowed share.
        confidence: of this attempt.
        most: checks that it looks ahead.

    Returns:
        The two ends, the second None where none may do; None where none would at the rate so far.
    """
    from scipy.stats import beta

    checks = checks_of(wrong, size)
    middle = checks_to_go(checks, size, error, confidence, most)
    if middle is None:
        return None
    bad = float(checks.sum()) + _KNOWN * error / 2
    rates = beta.ppf([0.1, 0.9], bad, len(checks) + _KNOWN - bad)
    low, high = (_to_go(checks, float(rate), size, error, confidence, most) for rate in rates)
    return min(middle, middle if low is None else low), high if high is None else max(middle, high)


def _to_go(checks: Ints, rate: float, size: int, error: float, confidence: float, horizon: int) -> int | None:
    """Checks that are to go where a share of the next ones is wrong."""
    # the next wrong ones evenly spread, the first after half a gap
    counts = np.floor(rate * (np.arange(min(size - len(checks), horizon)) + 1) + 0.5)
    ahead = np.diff(counts, prepend=0.0) > 0
    reached = int(first_reached(log_wealth(np.concatenate([checks, ahead]), size, error), confidence))
    return max(0, reached - len(checks)) if reached else None


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
