"""The promise of a certificate: what is drawn for it, how it is said, and the checks that count."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from workbench.arrays import Ints
from workbench.certificates.wealth import (
    BETS,
    WEIGHTS,
    Wealth,
    confidence_of,
    error_of,
    first_reached,
    log_wealth,
    size_of,
    threshold,
    too_many,
)
from workbench.errors import InputError

FIRST_SHARE = 0.9
"""Share of delta that the first attempt spends: most projects need no other."""
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


MODEL = "model"
"""Source of a model's own labels; others are somebody's column, file or other source."""


@dataclass(frozen=True)
class Promise:
    """All that is fixed before the first check, but for the labels and their order.

    Pages, the desk, the command line, a certificate and `verify` read this.

    Attributes:
        size: N, frozen labels.
        error: allowed share of wrong labels, in the words of `words`.
        confidence: of all attempts together.
        sizes: [K] sets to be certified, in the order of the test: so many of the surest.
        attempt: from 1 on; what each spends is `delta`.
        of: "model", or the column or file that the labels come from.
        per_class: whether precision and recall of each class are stated, too.

    Raises:
        InputError: values outside their range, or sets larger than what is frozen.
    """

    size: int
    error: float
    confidence: float
    sizes: tuple[int, ...]
    attempt: int = 1
    of: str = MODEL
    per_class: bool = False

    def __post_init__(self) -> None:
        size_of(self.size), error_of(self.error), delta_of(self.confidence, self.attempt)
        if not self.sizes or any(not 1 <= size_of(size) <= self.size for size in self.sizes):
            raise InputError(f"A set to certify has from 1 to {self.size:,} labels.")

    @property
    def delta(self) -> float:
        """The part of 1 - confidence that this attempt spends."""
        return delta_of(self.confidence, self.attempt)

    @property
    def confidence_here(self) -> float:
        """Confidence that this attempt has to reach, so that all of them together keep `confidence`."""
        return confidence_at(self.confidence, self.attempt)

    def forbidden(self, size: int) -> int:
        """The smallest number of wrong labels that breaks the promise for a set of `size`."""
        return too_many(size, self.error)

    def words(self, of: str = "them", bound: float | None = None) -> str:
        """The promise in words, "with 95 % confidence a checker calls at most 5 % of them wrong".

        Args:
            of: of which labels.
            bound: what the checks say now, in the place of the allowed error.
        """
        limit = self.error if bound is None else bound
        return (
            f"with {share(self.confidence)} confidence a checker calls at most {share(limit)} of {of} wrong"
        )

    def document(self) -> dict[str, Any]:
        """As JSON has it (`workbench.documents.certificates.PromiseDocument`)."""
        return {**asdict(self), "sizes": list(self.sizes)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Promise:
        """A promise out of its checked document."""
        return cls(**{**document, "sizes": tuple(document["sizes"])})


def share(value: float) -> str:
    """A share as per cent."""
    return f"{100 * value:.3g} %"


Certificate = Any
"""`workbench.certificates.Certificate`, which makes its words when it is made."""


def sentence_of(certificate: Certificate) -> str:
    """The promise, in words."""
    c, within = certificate, certificate.within
    wrong = sum(check.wrong for check in within)
    checks = f"{_count(len(within), 'random check')}, {wrong:,} called wrong."
    if not c.holds:
        estimate = f"the estimate is {share(wrong / len(within))}, " if within else ""
        bound = c.promise.words(f"{c.aim:,} labels", c.bound)
        return f"Not certified at {share(c.promise.error)}: {estimate}{bound}; {checks}"
    which = "labels" if c.delivered == c.promise.size else f"labels, the surest of {c.promise.size:,}"
    whose = "machine " if c.promise.of == MODEL else ""
    return f"{c.delivered:,} {whose}{which}; {c.promise.words()}; {checks}"


def method_of(certificate: Certificate) -> str:
    """Method of the certificate, in words."""
    c, p = certificate, certificate.promise
    order = ", ".join(f"{size:,}" for size in p.sizes)
    nests = f" Sets of the surest {order} labels were tested in this order, up to the first that failed." * (
        len(p.sizes) > 1
    )
    bets = ", ".join(f"{bet:g} ({weight:g})" for bet, weight in zip(BETS, WEIGHTS, strict=True))
    return (
        f"{p.size:,} labels were frozen. Items were drawn uniformly without replacement, in an order fixed "
        "by the labels' checksum before the first check, and a person answered without seeing the label. "
        "Tested by betting (Waudby-Smith and Ramdas, 2024), which holds whenever one looks and stops, with "
        f"shares (weights) {bets}.{nests} This is attempt {p.attempt}, which spends {p.delta:.6g} of "
        f"{1 - p.confidence:.6g}. Wrong is what a checker called wrong, and what they could not tell. "
        f"One in {SECOND_LOOKS} of the checks that were answered right is asked again of another person, "
        f"where there is one: {second_looks(c)}."
    )


def second_looks(certificate: Certificate) -> str:
    """Words on the second looks, "3 of 9 were made, 1 disagreed and counts as wrong"."""
    looks = certificate.second_looks
    if not looks.disagreed:
        return f"{looks.made:,} of {looks.drawn:,} were made, none disagreed"
    counts = f", {looks.open:,} of these count as wrong until somebody decides" * bool(looks.open)
    return f"{looks.made:,} of {looks.drawn:,} were made, {looks.disagreed:,} disagreed{counts}"


def facts_of(certificate: Certificate) -> list[tuple[str, str]]:
    """Assumptions of the certificate, by name; "" where there is nothing to say."""
    c, p, within = certificate, certificate.promise, certificate.within
    n_outside = len(c.checks) - len(within)
    return [
        ("Certificate", c.id),
        ("Made", c.made),
        ("Labels of", "the model" if p.of == MODEL else p.of),
        ("Frozen labels", f"{p.size:,}"),
        ("Certified labels", f"{c.delivered:,}"),
        ("Labels beside, not checked", f"{c.beside:,}" if c.beside else ""),
        ("Allowed error", share(p.error)),
        ("Confidence", share(p.confidence)),
        ("Attempt", f"{p.attempt}, which spends {p.delta:.6g} of {1 - p.confidence:.6g}"),
        ("Checks", f"{len(within):,}, of which {sum(check.wrong for check in within):,} called wrong"),
        ("Checks beside the set", f"{n_outside:,}" if n_outside else ""),
        ("Second looks", second_looks(c)),
        ("Seed of the draws", f"{c.seed}"),
        ("Made of the checksum", "" if c.drawn_from == c.labels_sha256 else c.drawn_from),
        ("SHA-256 of the frozen labels", c.labels_sha256),
        ("SHA-256 of the other labels", c.people_sha256),
        *sorted(c.versions.items()),
    ]


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


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
