"""The checks of a promise so far, answer by answer: which sets are certified.

Sets within sets are tested in the order that was fixed before the first check, each at the whole of what the
attempt spends, up to the first that fails: a false certificate has to reject the first set that breaks the
promise (docs/math.md, 14).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from workbench.arrays import Ints
from workbench.certificates.promise import Promise
from workbench.certificates.validation import error_of, size_of
from workbench.certificates.wealth import Wealth, first_reached, log_wealth, threshold
from workbench.errors import InputError


class Tally:
    """Evidence on each set of a promise.

    Args:
        promise: what was promised.
    """

    def __init__(self, promise: Promise) -> None:
        self.promise = promise
        self.draws = 0
        self._sizes: Ints = np.array(promise.sizes, dtype=np.int64)
        self._wealth = Wealth(self._sizes, [promise.forbidden(size) for size in promise.sizes])
        self._needed = threshold(promise.confidence_here)
        self.at: Ints = np.zeros(len(self._sizes), dtype=np.int64)
        """[K] draws after which the evidence on each set sufficed, 0 where it does not yet."""

    def add(self, rank: int, wrong: bool | int) -> None:
        """Take the answer to the next draw.

        Args:
            rank: of the label by confidence, from 0 on, the surest first.
            wrong: whether it is.

        Raises:
            InputError: more draws than labels.
        """
        self.draws += 1
        member = rank < self._sizes
        if (self._wealth.checks[member] >= self._sizes[member]).any() or self.draws > self.promise.size:
            raise InputError("More draws lie in a set than it has items.")
        self._wealth.add(bool(wrong), member)
        self.at[member & (self.at == 0) & (self._wealth.evidence() >= self._needed)] = self.draws

    def certified_at(self) -> list[tuple[int, int]]:
        """(size, draws after which it was certified) of all sets that are, in the order of the test."""
        pairs, before = [], 0
        for size, draws in zip(self._sizes.tolist(), self.at.tolist(), strict=True):
            if not draws:
                break
            before = max(before, draws)
            pairs.append((size, before))
        return pairs

    def delivered(self) -> int:
        """The largest set that is certified, 0 where none is."""
        return max((size for size, _ in self.certified_at()), default=0)


def tally(promise: Promise, wrong: Iterable[bool | int], ranks: Iterable[int]) -> Tally:
    """The tally of a list of answers.

    Args:
        promise: what was promised.
        wrong: [t] in the order of the draws.
        ranks: [t].
    """
    counter = Tally(promise)
    for answer, rank in zip(wrong, ranks, strict=True):
        counter.add(int(rank), bool(answer))
    return counter


def least_checks(size: int, error: float, confidence: float) -> int:
    """Checks that a certificate takes where none of them is wrong; `size` where it takes a census.

    Args:
        size: N.
        error: allowed share.
        confidence: of this attempt.
    """
    size = size_of(size)
    limit = min(size, math.ceil(64.0 * max(1.0, threshold(confidence)) / error_of(error)))
    reached = int(first_reached(log_wealth(np.zeros(limit, dtype=bool), size, error), confidence))
    return reached or size
