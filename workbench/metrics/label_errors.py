"""Labels that are likely wrong, from what models that did not see them say: confident learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Array, Floats, Ints
from workbench.errors import InputError
from workbench.metrics.checks import check_scores

# A probability this close below its threshold counts as reaching it, and one this close below the largest
# as large: means of equal numbers differ in the last digits.
_NEARLY = 1e-6

Quality = Literal["self-confidence", "normalised-margin"]


@dataclass(frozen=True, eq=False)
class LabelErrors:
    """Result of confident learning on given labels.

    Attributes:
        thresholds: [C] mean probability of a class over the items that were given it; infinite for a class
            that nobody was given.
        joint: [C, C] the confident joint: row i, column j counts items given i that are confidently j.
        likely: [n] the class an item is confidently counted as; -1 where it reaches no threshold.
        wrong: [n] whether the label is likely wrong.
        self_confidence: [n] probability of the given class; the lower, the more doubtful.
        normalised_margin: [n] (probability of the given class - largest of the others + 1) / 2, 0 to 1.
    """

    thresholds: Floats
    joint: Ints
    likely: Ints
    wrong: Array
    self_confidence: Floats
    normalised_margin: Floats

    def ranked(self, by: Quality = "self-confidence") -> Ints:
        """Places of the labels that are likely wrong, the most doubtful first.

        Args:
            by: the quality of a label that is compared; ties keep the given order.

        Returns:
            [m].
        """
        quality = self.self_confidence if by == "self-confidence" else self.normalised_margin
        places = np.flatnonzero(self.wrong)
        return places[np.argsort(quality[places], kind="stable")]


def label_errors(given: ArrayLike, probabilities: ArrayLike) -> LabelErrors:
    """Find likely label errors by confident learning (Northcutt, Jiang & Chuang 2021, section 3.1).

    A class's threshold is the mean self-confidence of the items that were given it. An item is counted as
    class j when its probability of j reaches the threshold of j. Where several do, the one of the largest
    probability counts; as in the authors' package `cleanlab` that is the largest of all classes, where the
    paper takes the largest of those at their threshold. A label is likely wrong when its item is counted off
    the diagonal and another class is more probable than the given one (`filter_by="confident_learning"` of
    the package). The joint is of raw counts: neither calibrated to the number of labels of a class nor given
    a diagonal of at least one, as the package does.

    Args:
        given: [n] codes of the given labels.
        probabilities: [n, C] out of sample: of models that did not learn from the item's own label.

    Raises:
        InputError: as `check_scores`, or fewer than two classes.
    """
    codes, p = check_scores(given, probabilities)
    n_classes = p.shape[1]
    if n_classes < 2:
        raise InputError("Label errors need probabilities of at least two classes.")
    rows = np.arange(len(codes))
    own = p[rows, codes]
    counts = np.bincount(codes, minlength=n_classes)
    sums = np.bincount(codes, weights=own, minlength=n_classes)
    # a threshold of zero would be reached by every item
    thresholds = np.where(counts > 0, np.maximum(sums / np.maximum(counts, 1), 2 * _NEARLY), np.inf)
    reaches = p >= thresholds - _NEARLY
    several = reaches.sum(axis=1) > 1
    likely = np.where(several, p.argmax(axis=1), reaches.argmax(axis=1))
    likely = np.where(reaches.any(axis=1), likely, -1)
    counted = likely >= 0
    joint = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(joint, (codes[counted], likely[counted]), 1)
    others = p.copy()
    others[rows, codes] = -np.inf
    best = others.max(axis=1)
    wrong = counted & (likely != codes) & (best > own + _NEARLY)
    return LabelErrors(thresholds, joint, likely, wrong, own, (own - best + 1.0) / 2.0)
