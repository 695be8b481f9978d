"""Bounds of each class of the frozen labels: its precision and its recall, by the same checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.arrays import Array
from workbench.certificates.validation import confidence_of
from workbench.certificates.wealth import upper_bound
from workbench.errors import InputError

WIDEST = 0.3
"""An interval above this is said to be of too few checks."""


@dataclass(frozen=True)
class ClassBounds:
    """Bounds of one class by the checks; all intervals of all classes hold together.

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
        """True, for precision and for recall, where more checks are needed to say anything."""
        return tuple(high - low > WIDEST for low, high in (self.precision, self.recall))  # type: ignore[return-value]


def by_class(
    labels: Sequence[str], answers: Sequence[str], sizes: Mapping[str, int], confidence: float
) -> list[ClassBounds]:
    """Precision and recall of each class of the frozen labels, by random draws.

    Args:
        labels: [t] frozen labels of the draws, in their order.
        answers: [t] what people said; "" where nobody could tell, which counts against both.
        sizes: class -> frozen labels of it; of classes that only people named there are 0.
        confidence: of all intervals together, at all times.

    Returns:
        One a class, in the order of `sizes`.

    Raises:
        InputError: labels that `sizes` does not have, or lists of other lengths.
    """
    if len(labels) != len(answers):
        raise InputError("Give as many answers as labels.")
    unknown = set(labels) - {name for name, size in sizes.items() if size}
    if unknown:
        raise InputError(f"There are no frozen labels of {sorted(unknown)[0]!r}.")
    delta = (1.0 - confidence_of(confidence)) / (4 * max(1, len(sizes)))
    frozen, replies = np.array(labels, dtype=object), np.array(answers, dtype=object)
    total = sum(sizes.values())
    out = []
    for name, n in sizes.items():
        in_class = frozen == name
        wrong = replies[in_class] != name
        unsure, missed = replies[~in_class] == "", replies[~in_class] == name
        w_low, w_high = _between(wrong, wrong, n, delta)
        m_low, m_high = _between(missed, missed | unsure, total - n, delta)
        worst, best = n - w_high, n - w_low
        out.append(
            ClassBounds(
                name,
                n,
                int(in_class.sum()),
                (worst / n, best / n) if n else (0.0, 1.0),
                (
                    worst / (worst + m_high) if worst + m_high else 0.0,
                    best / (best + m_low) if best + m_low else 1.0,
                ),
            )
        )
    return out


def _between(lower: Array, upper: Array, size: int, delta: float) -> tuple[float, float]:
    """Numbers of marked items between which the truth lies, at delta each side."""
    if not size:
        return 0.0, 0.0
    if not len(upper):
        return 0.0, float(size)
    high = _highest(upper, size, delta)
    return min(size - _highest(~lower, size, delta), high), high


def _highest(marked: Array, size: int, delta: float) -> float:
    return float(upper_bound(marked, size, 1.0 - delta)[-1]) * size
