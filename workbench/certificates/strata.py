"""Drawing within strata, and what the checks say of each class.

Strata are predicted classes, or bands of confidence: each gets its share of the draws, however rare it is.
The product of the strata's wealths is evidence against any split of the wrong labels over them; what counts
is the split that it speaks least against.
Spertus, Mazaheri and Stark, "Sequential stratified inference for the mean", 2024. The minimum is bounded from
below by its dual, which holds whatever the shape of the wealths.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Array, Floats, Ints
from workbench.certificates.drawing import Draws
from workbench.certificates.validation import checks_of, confidence_of, error_of, size_of, too_many
from workbench.certificates.wealth import BETS, WEIGHTS, levels_of, threshold, upper_bound
from workbench.errors import InputError

WIDEST = 0.3
"""An interval above this is said to be of too few checks."""
_MULTIPLIERS: Floats = np.concatenate([[0.0], np.geomspace(1e-6, 100.0, 160)])


def stratified(wrong: ArrayLike, strata: ArrayLike, sizes: ArrayLike, error: float) -> Floats:
    """Evidence that at most `error` of all labels are wrong, from draws within strata.

    Which stratum is drawn from next may depend on the answers so far, not on those to come.

    Args:
        wrong: [t] of 0 and 1, in the order of the draws.
        strata: [t] of which stratum each is, from 0 to G - 1; uniform within it, without replacement.
        sizes: [G] labels in each.
        error: allowed share of all labels.

    Returns:
        [t], as `log_wealth`: certify once it reaches `threshold(confidence)`.

    Raises:
        InputError: shapes that do not go together, or more draws of a stratum than it has labels.
    """
    counts = [size_of(size) for size in np.asarray(sizes).ravel().tolist()]
    found = checks_of(wrong, sum(counts))
    where = np.asarray(strata)
    if where.shape != found.shape or (len(where) and (where.min() < 0 or where.max() >= len(counts))):
        raise InputError(f"Give the stratum of each of the {len(found)} draws, from 0 to {len(counts) - 1}.")
    forbidden = too_many(sum(counts), error_of(error))
    tables = StrataBound(counts)
    out = np.empty(len(found))
    for t, (stratum, answer) in enumerate(zip(where.tolist(), found.tolist(), strict=True)):
        tables.add(answer, stratum)
        out[t] = tables.evidence(forbidden)
    return out


def draws_of_strata(strata: ArrayLike, seed: int, count: int, attempt: int = 1) -> Ints:
    """An order of draws with half of them in proportion to the strata's sizes and half in equal parts.

    Args:
        strata: [N] of which stratum each item is, from 0 on.
        seed: of the order.
        count: how many.
        attempt: another one has another order.

    Returns:
        [min(count, N)] items.
    """
    where = np.asarray(strata)
    items = [np.flatnonzero(where == g) for g in range(int(where.max()) + 1)] if len(where) else []
    shares = np.array([0.5 * len(one) / len(where) + 0.5 / len(items) for one in items])
    orders = [
        one[Draws(len(one), seed + g, attempt).first(count)] if len(one) else one
        for g, one in enumerate(items)
    ]
    taken = np.zeros(len(items), dtype=np.int64)
    most = np.array([len(one) for one in items])
    found = []
    for t in range(min(count, len(where))):
        # the stratum that is furthest behind its share, of those that have items left
        behind = np.where(taken < most, shares * (t + 1) - taken, -np.inf)
        g = int(behind.argmax())
        found.append(int(orders[g][taken[g]]))
        taken[g] += 1
    return np.array(found, dtype=np.int64)


class _Table:
    """Wealth of one stratum against each number of wrong labels it may have."""

    def __init__(self, size: int) -> None:
        self.size, self.checks, self.wrong = size, 0, 0
        self.levels = np.concatenate([[0], levels_of(size, [])])
        self._wealth = np.repeat(np.log(WEIGHTS)[:, None], len(self.levels), axis=1)

    def add(self, wrong: bool) -> None:
        if self.checks == self.size:
            raise InputError(f"More draws of a stratum than the {self.size:,} labels it has.")
        if wrong:
            self._wealth += np.log1p(-BETS)[:, None]
        else:
            # a number of wrong labels below what was found is a lower bound to those above it
            chance = np.clip((self.levels - self.wrong) / (self.size - self.checks), 0.0, 1.0)
            self._wealth += np.log1p(BETS[:, None] * (chance / np.maximum(1.0 - chance, 1e-300)))
        self.checks += 1
        self.wrong += wrong

    def floors(self) -> Floats:
        """[M] for each multiplier, the least of the wealth's logarithm less the multiplier a wrong label."""
        most = self.wrong + self.size - self.checks
        top = np.minimum(np.append(self.levels[1:] - 1, self.size), most)
        there = (top >= self.wrong) & (self.levels <= most)
        wealth = self._wealth[:, there]
        peak = wealth.max(axis=0)
        cost = peak + np.log(np.exp(wealth - peak).sum(axis=0))
        least: Floats = (cost - _MULTIPLIERS[:, None] * top[there]).min(axis=1)
        return least


class StrataBound:
    """Evidence against any number of wrong labels in all strata together, kept up to date answer by answer.

    The least product of the strata's wealths over all ways to spread W wrong labels is at least
    max over m >= 0 of exp(m W + sum of the strata's `floors` at m): each m is a lower bound, so a grid of
    them will do.

    Args:
        sizes: [G] labels in each stratum; some may have none.

    Raises:
        InputError: no labels at all.
    """

    def __init__(self, sizes: ArrayLike) -> None:
        counts = [int(size) for size in np.asarray(sizes).ravel().tolist()]
        self.size = size_of(sum(counts))
        self._tables = [_Table(size) if size else None for size in counts]
        self._floors = np.array(
            [np.zeros(len(_MULTIPLIERS)) if one is None else one.floors() for one in self._tables]
        )
        self.checks = 0
        self.wrong = 0

    def add(self, wrong: bool | int, stratum: int = 0) -> None:
        """Take one more answer.

        Raises:
            InputError: more draws of a stratum than it has labels.
        """
        table = self._tables[stratum]
        if table is None:
            raise InputError("More draws of a stratum than the 0 labels it has.")
        table.add(bool(wrong))
        self._floors[stratum] = table.floors()
        self.checks += 1
        self.wrong += bool(wrong)

    def evidence(self, forbidden: int) -> float:
        """Logarithm of the wealth against `forbidden` wrong labels or more, from below."""
        if self.wrong >= forbidden:
            return -math.inf
        if self.wrong + self.size - self.checks < forbidden:
            return math.inf
        return float((_MULTIPLIERS * forbidden + self._floors.sum(axis=0)).max())

    def most(self, confidence: float) -> int:
        """Labels that are wrong at most, by the answers so far."""
        needed = (threshold(confidence) - self._floors.sum(axis=0)[1:]) / _MULTIPLIERS[1:]
        rejected = math.ceil(float(np.clip(needed.min(), 0.0, self.size + 1.0)))
        return max(self.wrong, min(rejected - 1, self.wrong + self.size - self.checks))


@dataclass(frozen=True)
class ClassBounds:
    """What the checks say of one class; all intervals of all classes hold together.

    Attributes:
        name: of the class.
        labels: frozen labels of it.
        checks: draws among them.
        precision: (from, to), share of them that are right.
        recall: (from, to), share of the items of the class that have its label.
    """

    name: str
    labels: int
    checks: int
    precision: tuple[float, float]
    recall: tuple[float, float]

    @property
    def too_few(self) -> tuple[bool, bool]:
        """Whether precision, and recall, would need more checks to say anything."""
        return tuple(high - low > WIDEST for low, high in (self.precision, self.recall))  # type: ignore[return-value]


def by_class(
    labels: Sequence[str],
    answers: Sequence[str],
    sizes: Mapping[str, int | Sequence[int]],
    confidence: float,
    strata: ArrayLike | None = None,
) -> list[ClassBounds]:
    """Precision and recall of each class of the frozen labels, by random draws.

    Args:
        labels: [t] frozen labels of the draws, in their order.
        answers: [t] what people said; "" where nobody could tell, which counts against both.
        sizes: class -> frozen labels of it, or [G] of it in each stratum; of classes that only people named
            there are 0.
        confidence: of all intervals together, at all times.
        strata: [t] of which stratum each draw is, where they were drawn within strata.

    Returns:
        One a class, in the order of `sizes`.

    Raises:
        InputError: labels that `sizes` does not have, or lists of other lengths.
    """
    counts = {name: np.atleast_1d(np.asarray(size, dtype=np.int64)) for name, size in sizes.items()}
    where = np.zeros(len(labels), dtype=np.int64) if strata is None else np.asarray(strata)
    if not len(labels) == len(answers) == len(where):
        raise InputError("Give as many answers as labels.")
    unknown = set(labels) - {name for name, size in counts.items() if size.sum()}
    if unknown:
        raise InputError(f"There are no frozen labels of {sorted(unknown)[0]!r}.")
    delta = (1.0 - confidence_of(confidence)) / (4 * max(1, len(counts)))
    said, given = np.array(labels, dtype=object), np.array(answers, dtype=object)
    total = sum(counts.values(), np.zeros(1, dtype=np.int64))
    out = []
    for name, size in counts.items():
        mine, n = said == name, int(size.sum())
        wrong = given[mine] != name
        unsure, missed = given[~mine] == "", given[~mine] == name
        w_low, w_high = _between(wrong, wrong, size, delta, where[mine])
        m_low, m_high = _between(missed, missed | unsure, total - size, delta, where[~mine])
        worst, best = n - w_high, n - w_low
        out.append(
            ClassBounds(
                name,
                n,
                int(mine.sum()),
                (worst / n, best / n) if n else (0.0, 1.0),
                (
                    worst / (worst + m_high) if worst + m_high else 0.0,
                    best / (best + m_low) if best + m_low else 1.0,
                ),
            )
        )
    return out


def _between(least: Array, most: Array, sizes: Ints, delta: float, strata: Ints) -> tuple[float, float]:
    """Numbers of marked items between which the truth lies, at delta each side."""
    size = int(sizes.sum())
    if not size:
        return 0.0, 0.0
    if not len(most):
        return 0.0, float(size)
    high = _highest(most, sizes, delta, strata)
    low = size - _highest(~least, sizes, delta, strata)
    return min(low, high), high


def _highest(marked: Array, sizes: Ints, delta: float, strata: Ints) -> float:
    if len(sizes) == 1:
        return float(upper_bound(marked, int(sizes[0]), 1.0 - delta)[-1]) * int(sizes[0])
    bound, found = StrataBound(sizes), int(sizes.sum())
    for answer, stratum in zip(marked.tolist(), strata.tolist(), strict=True):
        bound.add(answer, stratum)
        found = min(found, bound.most(1.0 - delta))
    return float(found)
