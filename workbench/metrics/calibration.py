"""Do probabilities mean what they say? (MATH.md section 8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Floats, Ints
from workbench.errors import InputError
from workbench.metrics.checks import check_scores


@dataclass(frozen=True, eq=False)
class ReliabilityTable:
    """One row a bin of confidence; bin b of B holds confidences in ((b-1)/B, b/B].

    Attributes:
        lower: [B] left ends (excluded).
        upper: [B] right ends (included).
        count: [B] items in the bin.
        confidence: [B] mean confidence, NaN for an empty bin.
        accuracy: [B] share of hits, NaN for an empty bin.
    """

    lower: Floats
    upper: Floats
    count: Ints
    confidence: Floats
    accuracy: Floats

    @property
    def gap(self) -> Floats:
        """[B] |accuracy - confidence|, 0 for an empty bin."""
        return np.nan_to_num(np.abs(self.accuracy - self.confidence), nan=0.0)


def reliability_table(
    y: ArrayLike, probabilities: ArrayLike, n_bins: int = 10, *, class_code: int | None = None
) -> ReliabilityTable:
    """Accuracy against confidence in bins of equal width.

    Args:
        y: [N] true class codes.
        probabilities: [N, C].
        n_bins: B.
        class_code: None bins the largest probability against "the prediction was right"; a class
            bins that class's probability against "it was this class".

    Returns:
        The table; what a reliability diagram draws.

    Raises:
        InputError: nothing to measure on, fewer than one bin, or no such class.
    """
    confidence, hit = _confidence_and_hits(y, probabilities, class_code)
    return _table(confidence, hit, _equal_width_edges(n_bins))


def expected_calibration_error(
    y: ArrayLike, probabilities: ArrayLike, n_bins: int = 15, *, class_code: int | None = None
) -> float:
    """ECE: the mean over items of |accuracy - confidence| of their bin.

    Args:
        y: [N] true class codes.
        probabilities: [N, C].
        n_bins: B, bins of equal width.
        class_code: as in `reliability_table`.

    Returns:
        A number in [0, 1]. Biased upward: 2,000 perfectly calibrated items show about .026, so
        differences below .02 mean nothing.

    Raises:
        InputError: as `reliability_table`.
    """
    return _ece(reliability_table(y, probabilities, n_bins, class_code=class_code))


def _ece(table: ReliabilityTable) -> float:
    return float(np.sum(table.count * table.gap) / table.count.sum())


def _equal_width_edges(n_bins: int) -> Floats:
    if n_bins < 1:
        raise InputError(f"Calibration needs at least one bin; got {n_bins}.")
    return np.arange(n_bins + 1) / n_bins


def _confidence_and_hits(
    y: ArrayLike, probabilities: ArrayLike, class_code: int | None
) -> tuple[Floats, Floats]:
    codes, p = check_scores(y, probabilities)
    if class_code is None:
        guess = p.argmax(axis=1)
        return p[np.arange(codes.shape[0]), guess], (guess == codes).astype(np.float64)
    if not 0 <= class_code < p.shape[1]:
        raise InputError(f"There is no class with code {class_code}; codes run from 0 to {p.shape[1] - 1}.")
    return p[:, class_code], (codes == class_code).astype(np.float64)


def _table(confidence: Floats, hit: Floats, edges: Floats) -> ReliabilityTable:
    n_bins = len(edges) - 1
    # counting the inner edges strictly below puts a confidence equal to an edge into the lower bin
    index = np.searchsorted(edges[1:-1], confidence, side="left")
    count = np.bincount(index, minlength=n_bins)
    divisor = np.where(count > 0, count, np.nan)
    return ReliabilityTable(
        edges[:-1],
        edges[1:],
        count,
        np.bincount(index, weights=confidence, minlength=n_bins) / divisor,
        np.bincount(index, weights=hit, minlength=n_bins) / divisor,
    )
