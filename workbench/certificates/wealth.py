"""Testing by betting, without replacement: whether too many of N labels are wrong, whenever one looks.

A gambler bets on "right" at each draw, at odds that are fair if as many labels are wrong as the promise
forbids. If the promise is broken, wealth is a supermartingale, and by Ville's inequality it reaches 1 / delta
with probability delta at most, however often one looks and whenever one stops. Waudby-Smith and Ramdas,
"Estimating means of bounded random variables by betting", 2024 (sections 4 and 5); docs/math.md, 14.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Array, Floats, Ints
from workbench.errors import InputError

MOST_ITEMS = 1 << 31


def size_of(size: int) -> int:
    """A number of items.

    Raises:
        InputError: no whole number from 1 on.
    """
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size < MOST_ITEMS:
        raise InputError(f"A set to certify has from 1 item on; got {size!r}.")
    return int(size)


def error_of(error: float) -> float:
    """A share of wrong labels that is allowed.

    Raises:
        InputError: not between 0 and 1.
    """
    if not _between(error):
        raise InputError(
            f"The allowed error is a share between 0 and 1, as 0.05; got {error!r}. "
            "Where no label may be wrong, every label has to be looked at."
        )
    return float(error)


def confidence_of(confidence: float) -> float:
    """A confidence.

    Raises:
        InputError: not between 0 and 1.
    """
    if not _between(confidence):
        raise InputError(f"The confidence is a share between 0 and 1, as 0.95; got {confidence!r}.")
    return float(confidence)


def _between(value: float) -> bool:
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return is_number and 0.0 < float(value) < 1.0


def checks_of(wrong: ArrayLike, size: int) -> Array:
    """Answers of checks as booleans.

    Args:
        wrong: [..., t]; 1 where the draw was wrong.
        size: of the set they were drawn from.

    Raises:
        InputError: something else than 0 and 1, or more draws than items.
    """
    checks = np.asarray(wrong)
    if checks.ndim == 0 or (checks.dtype.kind not in "biuf" and checks.size > 0):
        raise InputError("Checks are a list of 0 (right) and 1 (wrong), in the order they were drawn.")
    if checks.dtype.kind != "b" and not np.isin(checks, (0, 1)).all():
        raise InputError("Checks are 0 (right) or 1 (wrong); leave out what nobody has answered.")
    if checks.shape[-1] > size:
        raise InputError(f"{checks.shape[-1]:,} checks of {size:,} items: every item is drawn once at most.")
    return checks.astype(bool)


def too_many(size: int, error: float) -> int:
    """The smallest number of wrong items that breaks the promise "at most `error` of `size`"."""
    # the product of a share and a count may fall just under a whole number that it is
    return int(np.floor(error * size + 1e-9)) + 1


BETS: Floats = np.array([0.03, 0.12, 0.30, 0.50, 0.65, 0.80, 0.90, 0.995])
"""Shares of the wealth put on "right": a wrong draw leaves 1 - b of it.

The best one is 1 - p/alpha for a true error p. A third lies on almost everything, which is what makes few
checks enough where nothing is wrong; the small ones serve bounds of sets with many wrong labels.
"""
WEIGHTS: Floats = np.array([0.02, 0.03, 0.0992, 0.1116, 0.124, 0.1364, 0.1488, 0.33])
"""What each bet begins with; they sum to 1."""

_FINENESS = 1.01  # between two levels that the bound may stand at, from 100 items on


def threshold(confidence: float) -> float:
    """Bound for the logarithm of the wealth: log(1 / delta), delta = 1 - confidence.

    Args:
        confidence: as 0.95.

    Raises:
        InputError: not between 0 and 1.
    """
    return -math.log1p(-confidence_of(confidence))


def log_wealth(wrong: ArrayLike, size: int, error: float) -> Floats:
    """Evidence that at most `error` of the `size` labels are wrong, after each draw.

    Certify once it reaches `threshold(confidence)`; it may be looked at after every draw, and once it was
    reached it counts, whatever follows.

    Args:
        wrong: [..., t] of 0 and 1, in the order of the draws, uniform without replacement; leading axes are
            other histories.
        size: N, labels in the set.
        error: alpha, the share that may be wrong.

    Returns:
        [..., t], logarithm of the mixture's wealth: inf where what is left cannot break the promise any more,
        -inf where what was found has broken it.

    Raises:
        InputError: another size, error or another kind of checks.
    """
    size = size_of(size)
    forbidden = too_many(size, error_of(error))
    checks = checks_of(wrong, size)
    t = np.arange(1, checks.shape[-1] + 1)
    after = checks.cumsum(axis=-1)
    before = after - checks
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = np.clip((forbidden - before) / (size - t + 1), 0.0, 1.0)
        odds = np.where(checks, 0.0, chance / (1.0 - chance))
        total = np.full(checks.shape, -np.inf)
        for bet, weight in zip(BETS, WEIGHTS, strict=True):
            steps = np.where(checks, np.log1p(-bet), np.log1p(bet * odds))
            np.logaddexp(total, steps.cumsum(axis=-1) + math.log(weight), out=total)
    total[after >= forbidden] = -np.inf
    total[after + (size - t) < forbidden] = np.inf
    return total


def first_reached(evidence: Floats, confidence: float) -> Array:
    """The draw after which evidence sufficed.

    Args:
        evidence: [..., t] of `log_wealth`.
        confidence: as 0.95.

    Returns:
        [...], number of draws, 0 where it has not sufficed yet.
    """
    reached = np.asarray(evidence) >= threshold(confidence)
    first: Array = (
        np.where(reached.any(axis=-1), reached.argmax(axis=-1) + 1, 0)
        if reached.shape[-1]
        else (np.zeros(reached.shape[:-1], dtype=int))
    )
    return first


class Wealth:
    """The wealth of the gambler against several hypotheses at once, kept up to date answer by answer.

    Args:
        sizes: [H] labels in the set that each is about.
        forbidden: [H] wrong labels of it, or more, by each.
    """

    def __init__(self, sizes: ArrayLike, forbidden: ArrayLike) -> None:
        self.sizes: Ints = np.asarray(sizes, dtype=np.int64)
        self.forbidden: Ints = np.asarray(forbidden, dtype=np.int64)
        self.checks: Ints = np.zeros(len(self.sizes), dtype=np.int64)
        """[H] draws that fell into the set of each."""
        self.wrong: Ints = np.zeros(len(self.sizes), dtype=np.int64)
        """[H] of these."""
        self._logs: Floats = np.repeat(np.log(WEIGHTS)[:, None], len(self.sizes), axis=1)

    def add(self, wrong: bool, member: Array | slice = slice(None)) -> None:
        """Take the answer to a draw.

        Args:
            wrong: whether the label is.
            member: [H] whether the draw fell into the set of each.
        """
        if wrong:
            self._logs[:, member] += np.log1p(-BETS)[:, None]
        else:
            n_left = np.maximum(self.sizes - self.checks, 1)[member]
            chance = np.clip((self.forbidden - self.wrong)[member] / n_left, 0.0, 1.0)
            self._logs[:, member] += np.log1p(BETS[:, None] * (chance / np.maximum(1.0 - chance, 1e-300)))
        self.checks[member] += 1
        self.wrong[member] += wrong

    def evidence(self) -> Floats:
        """[H] logarithm of the wealth, as `log_wealth` has it."""
        peak = self._logs.max(axis=0, initial=-np.inf)
        total: Floats = peak + np.log(np.exp(self._logs - peak).sum(axis=0))
        total[self.wrong >= self.forbidden] = -np.inf
        total[self.wrong + self.sizes - self.checks < self.forbidden] = np.inf
        return total

    def keep(self, which: Array) -> None:
        """Go on with some of the hypotheses.

        Args:
            which: [H].
        """
        for name in ("sizes", "forbidden", "checks", "wrong"):
            setattr(self, name, getattr(self, name)[which])
        self._logs = self._logs[:, which]


class Bound:
    """The upper bound on the share of wrong labels, kept up to date answer by answer.

    It is the smallest share that the test has rejected, on a grid of every number of items up to 100 and
    steps of 1 % beyond; a share of `at` is a level of its own, so that the bound passes it exactly when
    `log_wealth` passes its threshold.

    Args:
        size: N, labels in the set.
        confidence: of the bound at all times together.
        at: allowed errors that are levels of the grid.

    Raises:
        InputError: another size or confidence.
    """

    def __init__(self, size: int, confidence: float, at: Iterable[float] = ()) -> None:
        self.size = size_of(size)
        self._needed = threshold(confidence)
        self.checks = 0
        self.wrong = 0
        self.count = self.size
        """Labels that may be wrong at most."""
        self.curve = [1.0]
        """The bound before the first answer and after each."""
        levels = levels_of(self.size, [too_many(self.size, error_of(error)) for error in at])
        self._wealth = Wealth(np.full(len(levels), self.size), levels)

    def add(self, wrong: bool | int) -> float:
        """Take one more answer.

        Args:
            wrong: whether the label that was drawn is wrong.

        Returns:
            The bound after it, from 0 to 1.

        Raises:
            InputError: every item was drawn, or the answer is neither 0 nor 1.
        """
        is_wrong = bool(checks_of([wrong], self.size - self.checks)[0])
        self.checks += 1
        self.wrong += is_wrong
        self._wealth.add(is_wrong)
        levels = self._wealth.forbidden
        rejected = levels[self._wealth.evidence() >= self._needed]
        if len(rejected):
            self.count = min(self.count, int(rejected[0]) - 1)
        self.count = max(min(self.count, self.wrong + self.size - self.checks), self.wrong)
        # levels that were rejected, and those that what was found rules out, are never looked at again
        alive = (levels <= self.count) & (levels > self.wrong)
        if not alive.all():
            self._wealth.keep(alive)
        self.curve.append(self.count / self.size)
        return self.curve[-1]


def upper_bound(wrong: ArrayLike, size: int, confidence: float) -> Floats:
    """An upper bound on the share of wrong labels, after each draw; it holds at all of them together.

    Args:
        wrong: [t] of 0 and 1, in the order of the draws.
        size: N, labels in the set.
        confidence: as 0.95.

    Returns:
        [t], never above 1; it rises only to what was found wrong, and is the share itself once all are drawn.

    Raises:
        InputError: another size, confidence or another kind of checks.
    """
    bound = Bound(size, confidence)
    return np.array([bound.add(answer) for answer in checks_of(wrong, bound.size)])


def levels_of(size: int, more: list[int]) -> Array:
    """Numbers of wrong items that are tested, rising; `more` and `size` among them, [L]."""
    steps = max(0, math.ceil(math.log(size / 100) / math.log(_FINENESS))) if size > 100 else 0
    coarse = np.floor(100 * _FINENESS ** np.arange(1, steps + 1)).astype(np.int64) + 1
    levels = np.concatenate([np.arange(1, min(size, 100) + 1), coarse, [size], more])
    return np.unique(levels[levels <= size])


_AHEAD = 3_000  # checks that a forecast looks ahead
_LEAST = 20  # checks before which nothing is given up
_Z = 1.2815515655446004  # one-sided 90 %
_KNOWN = 20  # checks that a guess at the share of wrong ones is worth: half of what is allowed


def checks_to_go(wrong: ArrayLike, size: int, error: float, confidence: float) -> int | None:
    """About how many checks are to go, if the share of wrong ones stays what it is: a forecast.

    Args:
        wrong: [t] of the checks so far, within the set.
        size: of the set.
        error: allowed share.
        confidence: of this attempt.

    Returns:
        0 where they suffice; None where they would not at this rate.
    """
    checks = checks_of(wrong, size)
    return _to_go(checks, float(checks.mean()) if len(checks) else 0.0, size, error, confidence)


def range_to_go(
    wrong: ArrayLike, size: int, error: float, confidence: float
) -> tuple[int, int | None] | None:
    """Fewest and most checks that are likely to go, of 8 of 10 cases: a forecast, narrower with every check.

    The share of wrong ones may be anything that fits the checks so far (a beta distribution, begun at half
    of what is allowed).

    Args:
        wrong: [t] of the checks so far, within the set.
        size: of the set.
        error: allowed share.
        confidence: of this attempt.

    Returns:
        The two ends, the second None where none may do; None where none would at the rate so far.
    """
    from scipy.stats import beta

    checks = checks_of(wrong, size)
    middle = checks_to_go(checks, size, error, confidence)
    if middle is None:
        return None
    bad = float(checks.sum()) + _KNOWN * error / 2
    rates = beta.ppf([0.1, 0.9], bad, len(checks) + _KNOWN - bad)
    low, high = (_to_go(checks, float(rate), size, error, confidence) for rate in rates)
    return min(middle, middle if low is None else low), high if high is None else max(middle, high)


def _to_go(checks: Ints, rate: float, size: int, error: float, confidence: float) -> int | None:
    """Checks that are to go where a share of the next ones is wrong."""
    # the next wrong ones evenly spread, the first after half a gap
    counts = np.floor(rate * (np.arange(min(size - len(checks), _AHEAD)) + 1) + 0.5)
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
