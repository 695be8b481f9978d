"""The order of the checks: fixed by a seed before the first one, so that nobody draws until it looks good."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence

import numpy as np

from workbench.arrays import Ints
from workbench.certificates.validation import confidence_of, size_of
from workbench.errors import InputError

FIRST_SHARE = 0.9
"""What the first attempt spends of delta: most projects need no other."""
SECOND_LOOKS = 10
"""Of so many checks that are answered "right", one is asked again of another person."""


def delta_of(confidence: float, attempt: int = 1) -> float:
    """Share of delta = 1 - confidence for attempt `attempt`: nine tenths, then half of the rest each.

    All of them together spend delta, however many there are.

    Raises:
        InputError: a confidence outside 0 and 1, or no attempt from 1 to 50.
    """
    delta, number = 1.0 - confidence_of(confidence), _attempt(attempt)
    return delta * (FIRST_SHARE if number == 1 else (1.0 - FIRST_SHARE) * 0.5 ** (number - 1))


def confidence_at(confidence: float, attempt: int = 1) -> float:
    """The confidence that attempt `attempt` has to reach, that all of them together keep `confidence`."""
    return 1.0 - delta_of(confidence, attempt)


def check_spent(confidence: float, before: Sequence[tuple[float, int]]) -> None:
    """Refuse a next attempt whose confidence the earlier ones have spent already.

    All attempts together keep the confidence of each: what they spend adds up, whatever each was to keep.

    Args:
        confidence: of the next attempt.
        before: (confidence, number) of each earlier one.

    Raises:
        InputError: together they spend more than 1 - confidence; says the most that is left.
    """
    spent = math.fsum(delta_of(level, number) for level, number in before)
    if spent + delta_of(confidence, len(before) + 1) > 1.0 - confidence + 1e-12:
        limit = 1.0 - spent / (1.0 - (delta_of(0.5, len(before) + 1) / 0.5))
        percent = math.floor(1000 * limit) / 10
        raise InputError(
            f"Earlier attempts have spent {spent:.3g}, so all of them together keep no "
            f"{100 * confidence:g} %. Choose a confidence of {percent:g} % or less."
        )


def _attempt(attempt: int) -> int:
    if isinstance(attempt, bool) or not isinstance(attempt, int | np.integer) or not 1 <= attempt <= 50:
        raise InputError(f"Attempts are counted from 1 to 50; got {attempt!r}. Label the rest by hand.")
    return int(attempt)


def seed_of(checksum: str) -> int:
    """The seed of the draws: the first 62 bits of the labels' checksum, so that nobody chooses the order.

    The same labels are always checked in the same order, whatever was thrown away in between. Whoever makes
    labels can know that order, too: see docs/finish.md.

    Args:
        checksum: of the labels (`checksum_of`), hexadecimal.

    Raises:
        InputError: no checksum.
    """
    if not re.fullmatch("[0-9a-f]{64}", checksum):
        raise InputError(f"The order is made from the labels' checksum; got {checksum!r}.")
    return int(checksum[:16], 16) >> 2


def has_second_look(seed: int, item: str) -> bool:
    """Tell whether a check is asked again of another person once it was answered "right".

    Args:
        seed: of the draws.
        item: id of the item.
    """
    digest = hashlib.sha256(f"{seed} {item}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % SECOND_LOOKS == 0


class Draws:
    """A seeded order of N items, uniform among all orders, made as far as it is asked for.

    Fisher and Yates, each swap from 64 raw bits of PCG64 by rejection: NumPy promises that these bits stay
    the same from one version to the next, which it does not of `permutation`.

    Args:
        size: N.
        seed: a whole number from 0 on.
        attempt: another one has another order.

    Raises:
        InputError: another size, seed or attempt.
    """

    def __init__(self, size: int, seed: int, attempt: int = 1) -> None:
        self.size = size_of(size)
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 1 << 63:
            raise InputError(f"A seed is a whole number from 0 on; got {seed!r}.")
        self.seed, self.attempt = int(seed), _attempt(attempt)
        self._bits = np.random.PCG64(np.random.SeedSequence([self.seed, self.attempt]))
        self._moved: dict[int, int] = {}  # places whose item is not the one that began there
        self._order: list[int] = []

    def first(self, count: int) -> Ints:
        """The first `count` positions, from 0 to N - 1; fewer where there are no more items.

        Args:
            count: how many.

        Returns:
            [min(count, N)], each at most once; a longer prefix begins with every shorter one.
        """
        while len(self._order) < min(count, self.size):
            self._draw()
        return np.array(self._order[: max(count, 0)], dtype=np.int64)

    def _draw(self) -> None:
        position = len(self._order)
        partner = position + self._below(self.size - position)
        place = self._moved.get(partner, partner)
        self._moved[partner] = self._moved.pop(position, position)
        self._order.append(place)

    def _below(self, limit: int) -> int:
        fair = (1 << 64) - (1 << 64) % limit
        while (bits := int(self._bits.random_raw())) >= fair:
            pass
        return bits % limit
