"""Labels that are likely wrong, from what models that did not see them say: confident learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

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


SELDOM, USUAL, OFTEN = 0.01, 0.02, 0.05
"""Shares of labels that careful, usual and hasty people get wrong."""
_TEMPERATURES = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
_FLOORS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)


class Mistakes(NamedTuple):
    """Probabilities that given labels are wrong, with what is known of people.

    Attributes:
        wrong: [n] the probability that a label is wrong.
        low: [n] the same, where people err as seldom as they do.
        high: [n] the same, where they err as often as they do.
    """

    wrong: Floats
    low: Floats
    high: Floats


def mistakes(given: ArrayLike, probabilities: ArrayLike, groups: ArrayLike | None = None) -> Mistakes:
    """Probability that each label is wrong: of what a model says, its own error and people's usual one.

    A label is wrong with probability e, and then any other class:
    p(y | x) = (1 - e) q_y + e (1 - q_y) / (C - 1), with e of `USUAL`. q are the given probabilities at a
    temperature and with a floor, which are averaged over by how likely they make the labels (a quarter of
    the prior is on no floor): what surprises is first the model's error, and a model that is often surprised
    is believed less. (Uniform noise as of Natarajan et al. 2013; the temperature is that of Guo et al. 2017.)

    Args:
        given: [n] codes of the given labels.
        probabilities: [n, C] out of sample: of models that did not learn from the item's own label.
        groups: [n] group of each item, of which each has an error of its own: items that were asked because
            the model was unsure of them are those that it gets wrong. None takes all together.

    Returns:
        The probabilities.

    Raises:
        InputError: as `label_errors`.
    """
    codes, p = check_scores(given, probabilities)
    n_classes = p.shape[1]
    if n_classes < 2:
        raise InputError("Label errors need probabilities of at least two classes.")
    group = np.zeros(len(codes), dtype=np.int64) if groups is None else np.asarray(groups)
    made = Mistakes(*np.zeros((3, len(codes))))
    for name in np.unique(group):
        rows = np.flatnonzero(group == name)
        for whole, some in zip(made, _mistakes(codes[rows], p[rows]), strict=True):
            whole[rows] = some
    return made


def _mistakes(codes: Ints, p: Floats) -> Mistakes:
    """`mistakes` of items of one group."""
    n_classes = p.shape[1]
    logs = np.log(np.clip(p, 1e-12, 1.0))
    logs -= logs.max(axis=1, keepdims=True)
    rows = np.arange(len(codes))
    tempered = [np.exp(logs / temperature) for temperature in _TEMPERATURES]
    tempered = [q[rows, codes] / q.sum(axis=1) for q in tempered]
    own = np.array([(1.0 - floor) * q + floor / n_classes for q in tempered for floor in _FLOORS])
    prior = np.log(np.tile([0.25, *[0.75 / (len(_FLOORS) - 1)] * (len(_FLOORS) - 1)], len(_TEMPERATURES)))

    def chances(share: float) -> Floats:
        """[n] that each label is wrong, where people err in a share of them."""
        right, wrong = (1.0 - share) * own, share * (1.0 - own) / (n_classes - 1)
        evidence = np.log(right + wrong).sum(axis=1) + prior
        weights = np.exp(evidence - evidence.max())
        mean: Floats = (weights / weights.sum()) @ (wrong / (right + wrong))
        return mean

    wrong = chances(USUAL)
    return Mistakes(wrong, np.minimum(wrong, chances(SELDOM)), np.maximum(wrong, chances(OFTEN)))
