"""Separation of two groups by a score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Floats
from workbench.errors import InputError


class RocCurve(NamedTuple):
    """Shares found and falsely raised as a threshold falls.

    Attributes:
        false_positive: [T] share of negatives at or above the threshold, rising from 0 to 1.
        true_positive: [T] share of positives at or above the threshold.
        threshold: [T] scores; infinity first.
    """

    false_positive: Floats
    true_positive: Floats
    threshold: Floats


def roc_curve(positive: ArrayLike, scores: ArrayLike) -> RocCurve:
    """The ROC curve of a score.

    Args:
        positive: [N] true for the group that should score high.
        scores: [N].

    Returns:
        The curve, every threshold that changes it.

    Raises:
        InputError: only one group, scores that are not numbers, or lengths that differ.
    """
    from sklearn.metrics import roc_curve as curve

    is_positive, values = _groups(positive, scores)
    return RocCurve(*curve(is_positive, values, drop_intermediate=False))


def area_under_roc(positive: ArrayLike, scores: ArrayLike) -> float:
    """AUC: the chance that a positive scores above a negative, ties counting one half.

    Args:
        positive: [N] true for the group that should score high.
        scores: [N].

    Returns:
        A number in [0, 1]; exactly 0.5 when both groups hold the same scores.

    Raises:
        InputError: as `roc_curve`.
    """
    is_positive, values = _groups(positive, scores)
    ones, zeros = values[is_positive], np.sort(values[~is_positive])
    # counting in whole numbers keeps ties exact
    below = int(np.searchsorted(zeros, ones, side="left").sum())
    not_above = int(np.searchsorted(zeros, ones, side="right").sum())
    return (below + not_above) / (2 * len(ones) * len(zeros))


def _groups(positive: ArrayLike, scores: ArrayLike) -> tuple[np.ndarray, Floats]:
    is_positive, values = np.asarray(positive).astype(bool), np.asarray(scores, dtype=np.float64)
    if is_positive.ndim != 1 or values.shape != is_positive.shape:
        raise InputError(f"Need one score an item; got {list(is_positive.shape)} and {list(values.shape)}.")
    if is_positive.all() or not is_positive.any():
        raise InputError("A ROC curve needs items of both groups; there is only one.")
    if not np.isfinite(values).all():
        raise InputError(f"The score of item {int((~np.isfinite(values)).argmax())} is no finite number.")
    return is_positive, values
