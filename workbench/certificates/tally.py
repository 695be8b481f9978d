"""What is promised before the first check, and what the checks say of it, answer by answer.

The first set at the main error is tested at the whole of delta. Whatever else is asked (larger sets, other
errors) begins once that holds, and shares delta equally: a false certificate of these has to follow a true
first one, or begins with it (gatekeeping; Bretz, Maurer, Brannath and Posch, "A graphical approach to
sequentially rejective multiple test procedures", 2009). A larger error for the first set follows from a
smaller one, so it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.certificates.strata import StrataBound
from workbench.certificates.validation import confidence_of, error_of, size_of, too_many
from workbench.certificates.wealth import BETS, WEIGHTS, Bound, first_reached, log_wealth, threshold
from workbench.errors import InputError

MOST_ALSO = 8
"""Further errors that may be asked about."""


class Promise(NamedTuple):
    """An allowed error, and the sets that are tested for it, in order: so many of the surest."""

    error: float
    sizes: tuple[int, ...]


class _Test(NamedTuple):
    promise: int
    size: int
    forbidden: int
    confidence: float
    gated: bool


@dataclass(frozen=True)
class AuditDesign:
    """All that is fixed before the first check.

    Attributes:
        size: N, frozen labels.
        error: allowed share of wrong labels.
        sizes: [K] sets to be certified, in the order of the test.
        confidence: of this attempt (`confidence_at`).
        also: further errors with their sets.
        strata: size -> labels in each stratum, where draws are made within strata.

    Raises:
        InputError: values outside their range, or sets larger than what is frozen.
    """

    size: int
    error: float
    sizes: tuple[int, ...]
    confidence: float
    also: tuple[Promise, ...] = ()
    strata: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        size_of(self.size), confidence_of(self.confidence)
        if len(self.also) > MOST_ALSO:
            raise InputError(f"At most {MOST_ALSO} further errors can be asked about.")
        for promise in self.promises:
            error_of(promise.error)
            if not promise.sizes or any(not 1 <= size_of(size) <= self.size for size in promise.sizes):
                raise InputError(f"A set to certify has from 1 to {self.size:,} labels.")
        for size in {size for promise in self.promises for size in promise.sizes}:
            if self.strata and sum(self.strata.get(size, ())) != size:
                raise InputError(f"The strata of the surest {size:,} labels do not add up to them.")

    @property
    def promises(self) -> tuple[Promise, ...]:
        """The main one and the others."""
        return (Promise(self.error, tuple(self.sizes)), *self.also)

    @cached_property
    def tests(self) -> tuple[_Test, ...]:
        """Each set with each error, in the order of its promise."""
        first = self.sizes[0]
        alone = all(set(promise.sizes) == {first} for promise in self.promises)
        free = [
            [alone or (size == first and promise.error >= self.error) for size in promise.sizes]
            for promise in self.promises
        ]
        shares = sum(not all(one) for one in free)
        delta = (1.0 - self.confidence) / max(1, shares)
        return tuple(
            _Test(
                place,
                size,
                too_many(size, promise.error),
                self.confidence if costless else 1.0 - delta,
                not costless,
            )
            for place, promise in enumerate(self.promises)
            for size, costless in zip(promise.sizes, free[place], strict=True)
        )


class Tally:
    """The checks so far, as evidence on everything that was promised.

    Args:
        design: what was.
    """

    def __init__(self, design: AuditDesign) -> None:
        self.design, tests = design, design.tests
        self.draws = 0
        self._sizes: Ints = np.array([one.size for one in tests], dtype=np.int64)
        self._forbidden: Ints = np.array([one.forbidden for one in tests], dtype=np.int64)
        self._needed = np.array([threshold(one.confidence) for one in tests])
        self._wealth: Floats = np.repeat(np.log(WEIGHTS)[None], len(tests), axis=0)
        self.checks: Ints = np.zeros(len(tests), dtype=np.int64)
        """[H] draws that fell into the set of each test."""
        self.wrong: Ints = np.zeros(len(tests), dtype=np.int64)
        """[H] of these."""
        self.at: Ints = np.zeros(len(tests), dtype=np.int64)
        """[H] draws after which its own evidence sufficed, 0 where it does not yet."""
        self._strata = {size: StrataBound(counts) for size, counts in design.strata.items()}

    def add(self, rank: int, wrong: bool | int, stratum: int = 0) -> None:
        """Take the answer to the next draw.

        Args:
            rank: of the label by confidence, from 0 on, the surest first.
            wrong: whether it is.
            stratum: of the draw.

        Raises:
            InputError: more draws than labels.
        """
        self.draws += 1
        member = rank < self._sizes
        if (self.checks[member] >= self._sizes[member]).any() or self.draws > self.design.size:
            raise InputError("More draws lie in a set than it has items.")
        if self._strata:
            found = self._within_strata(rank, bool(wrong), stratum)
        else:
            found = self._uniform(member, bool(wrong))
        self.at[member & (self.at == 0) & (found >= self._needed)] = self.draws

    def _uniform(self, member: Array, wrong: bool) -> Floats:
        left = np.maximum(self._sizes - self.checks, 1)
        if wrong:
            self._wealth[member] += np.log1p(-BETS)
        else:
            chance = np.clip((self._forbidden - self.wrong) / left, 0.0, 1.0)[member]
            odds = chance / np.maximum(1.0 - chance, 1e-300)
            self._wealth[member] += np.log1p(BETS * odds[:, None])
        self._count(member, wrong)
        peak = self._wealth.max(axis=1)
        total = peak + np.log(np.exp(self._wealth - peak[:, None]).sum(axis=1))
        total[self.wrong >= self._forbidden] = -np.inf
        total[self.wrong + self._sizes - self.checks < self._forbidden] = np.inf
        return total

    def _within_strata(self, rank: int, wrong: bool, stratum: int) -> Floats:
        for size, bound in self._strata.items():
            if rank < size:
                bound.add(wrong, stratum)
        self._count(rank < self._sizes, wrong)
        return np.array([self._strata[one.size].evidence(one.forbidden) for one in self.design.tests])

    def _count(self, member: Array, wrong: bool) -> None:
        self.checks[member] += 1
        self.wrong[member] += wrong

    def certified_at(self) -> list[tuple[int, int, int]]:
        """(promise, size, draws after which it was certified) of all that is, in the order of the tests."""
        found = []
        gate = int(self.at[0])
        reached: dict[int, int] = {}
        for place, test in enumerate(self.design.tests):
            before = reached.get(test.promise, 1)
            own = int(self.at[place])
            if not before or not own or (test.gated and not gate):
                reached[test.promise] = 0
                continue
            reached[test.promise] = max(before, own, gate if test.gated else 0)
            found.append((test.promise, test.size, reached[test.promise]))
        return found

    def delivered(self, promise: int = 0) -> int:
        """The largest set that is certified for a promise, 0 where none is."""
        return max((size for place, size, _ in self.certified_at() if place == promise), default=0)

    def of_set(self, size: int) -> tuple[int, int]:
        """(draws that fell into a set, wrong ones of these).

        Raises:
            InputError: no such set.
        """
        place = np.flatnonzero(self._sizes == size)
        if not place.size:
            raise InputError(f"No set of {size:,} labels is tested.")
        return int(self.checks[place[0]]), int(self.wrong[place[0]])


def tally(
    design: AuditDesign,
    wrong: Iterable[bool | int],
    ranks: Iterable[int],
    strata: Sequence[int] | Ints | None = None,
) -> Tally:
    """The tally of a list of answers.

    Args:
        design: what was promised.
        wrong: [t] in the order of the draws.
        ranks: [t].
        strata: [t], where draws were made within strata.
    """
    made, where = Tally(design), None if strata is None else [int(one) for one in strata]
    for t, (answer, rank) in enumerate(zip(wrong, ranks, strict=True)):
        made.add(int(rank), bool(answer), 0 if where is None else where[t])
    return made


class SequentialBound:
    """The upper bound of a set, kept up to date answer by answer, however draws are made.

    Args:
        design: what was promised.
        size: of the set.
        confidence: of the bound.
    """

    def __init__(self, design: AuditDesign, size: int, confidence: float) -> None:
        self.curve = [1.0]
        self._size, self._confidence = size, confidence
        counts = design.strata.get(size)
        levels = [one.error for one in design.promises]
        self._strata = None if counts is None else StrataBound(counts)
        self._plain = Bound(size, confidence, levels) if counts is None else None

    def add(self, wrong: bool, stratum: int = 0) -> float:
        """Take one more answer; the bound after it."""
        if self._plain is not None:
            share = self._plain.add(wrong)
        else:
            assert self._strata is not None
            self._strata.add(wrong, stratum)
            share = min(self.curve[-1], self._strata.most(self._confidence) / self._size)
            share = max(share, self._strata.wrong / self._size)
        self.curve.append(share)
        return share


def least_checks(size: int, error: float, confidence: float) -> int:
    """Checks that a certificate takes where none of them is wrong; `size` where it takes a census.

    Args:
        size: N.
        error: allowed share.
        confidence: of this attempt.
    """
    size = size_of(size)
    most = min(size, math.ceil(64.0 * max(1.0, threshold(confidence)) / error_of(error)))
    reached = int(first_reached(log_wealth(np.zeros(most, dtype=bool), size, error), confidence))
    return reached or size
