"""Guess: scores of every class for every item, on one scale for all sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.errors import InputError
from workbench.metrics import share_interval

_ENOUGH = 10  # labels that tell a column of labels from a good guess


class Agreement(NamedTuple):
    """Quality of a guess on items whose class is known.

    Attributes:
        right: how many it names rightly.
        n: of how many that it says something of.
        low: of the 95 % interval (Wilson) of the share.
        high: its other end; 0 and 1 where n is 0.
        confusions: (true code, guessed code, how often) where these differ, most frequent first.
    """

    right: int
    n: int
    low: float
    high: float
    confusions: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, eq=False)
class Guess:
    """Scores of every class for every item.

    Attributes:
        source: where it comes from: "names", "column:llm_label", "columns:p_*", "model:FOLDER".
        values: [N, C] standardised, columns by class code; a row of zeros is an item without a guess.
        notes: what was seen to on the way, for people.
        deviation: what the scores were divided by; 1 where they were given on this scale.
        unknown: names in it that are no class, most frequent first: for a mapping.
        scale: of the numbers it was made of (`columns.SHARES`, `PER_CENT`, `SCORES`); "" without numbers.
    """

    source: str
    values: Floats
    notes: tuple[str, ...] = ()
    deviation: float = 1.0
    unknown: tuple[str, ...] = ()
    scale: str = ""

    @classmethod
    def of_scores(cls, source: str, scores: Floats, known: Array, notes: Sequence[str] = ()) -> Guess:
        """A guess of scores on any scale.

        Args:
            source: where they come from.
            scores: [N, C], higher for the likelier class.
            known: [N] rows that hold a guess.
            notes: for people.

        Raises:
            InputError: as `standardised`.
        """
        values = standardised(scores, known)
        row = int(np.abs(values).sum(axis=1).argmax()) if len(values) else 0
        code = int(np.abs(values[row]).argmax()) if values.size else 0
        row_mean = float(scores[row].mean()) if values.size else 0.0
        deviation = (float(scores[row, code]) - row_mean) / float(values[row, code]) if values.any() else 1.0
        return cls(source, values, tuple(notes), deviation)

    @property
    def known(self) -> Array:
        """[N] which items it says something of."""
        return np.asarray((self.values != 0).any(axis=1))

    @property
    def codes(self) -> Ints:
        """[N] the class it names, -1 where it names none."""
        return np.where(self.known, self.values.argmax(axis=1), -1)

    def agreement(self, items: Ints, codes: Ints) -> Agreement:
        """Quality of the guess on labelled items.

        Args:
            items: [n] places in the pool.
            codes: [n] their class codes.
        """
        guesses, truth = self.codes[items], np.asarray(codes, dtype=np.int64)
        has_guess = guesses >= 0
        guesses, truth = guesses[has_guess], truth[has_guess]
        n, right = len(guesses), int((guesses == truth).sum())
        low, high = 0.0, 1.0
        if n:
            _, low, high, _ = share_interval(right, n)
        wrong = guesses != truth
        pairs, counts = np.unique(
            np.stack([truth[wrong], guesses[wrong]], axis=1).reshape(-1, 2), axis=0, return_counts=True
        )
        order = np.argsort(-counts, kind="stable")
        confusions = tuple((int(pairs[i][0]), int(pairs[i][1]), int(counts[i])) for i in order)
        return Agreement(right, n, low, high, confusions)

    def suspicion(self, items: Ints, codes: Ints) -> str:
        """A sentence where the guess equals the label of every labelled item, else an empty text."""
        agreement = self.agreement(items, codes)
        if agreement.n < _ENOUGH or agreement.right < agreement.n:
            return ""
        return f"{self.source} equals the label of all {agreement.n} labelled items: this may be your labels."


def standardised(scores: Floats, known: Array | None = None) -> Floats:
    """Scores on the scale that weights are for: minus each row's mean, over the deviation of everything.

    Args:
        scores: [N, C], higher for the likelier class.
        known: [N] rows that hold a guess; those whose scores are all finite unless given.

    Returns:
        [N, C] float64; rows of zeros where there is no guess.

    Raises:
        InputError: all classes have the same scores in every row: it guesses nothing.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 2:
        raise InputError(
            f"Scores are a table of items and classes [N, C]; got the shape {list(scores.shape)}."
        )
    is_known = np.asarray(np.isfinite(scores).all(axis=1) if known is None else known, dtype=bool)
    out: Floats = np.zeros(scores.shape)
    out[is_known] = scores[is_known] - scores[is_known].mean(axis=1, keepdims=True)
    deviation = float(out[is_known].std()) if is_known.any() else 0.0
    if len(out) and deviation <= 1e-12:
        raise InputError("This guess says the same of every class in every row, which is nothing.")
    return out / deviation if deviation else out


def stacked(guesses: Sequence[Guess]) -> Floats:
    """[J, N, C] the values of guesses at one pool, as `mean=` takes them.

    Raises:
        InputError: none is given, or they are of different pools or classes.
    """
    if not guesses:
        raise InputError("There is no guess to start from.")
    shapes = {guess.values.shape for guess in guesses}
    if len(shapes) > 1:
        listing = "; ".join(f"{guess.source}: {list(guess.values.shape)}" for guess in guesses)
        raise InputError(f"Guesses must be of the same items and classes; got {listing}.")
    return np.stack([guess.values for guess in guesses])
