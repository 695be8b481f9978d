"""Labels that are likely wrong: what models that did not see them say, weighed with how often people err."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Floats, Ints
from workbench.errors import InputError
from workbench.metrics.checks import check_scores

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
        InputError: as `check_scores`, or fewer than two classes.
    """
    codes, p = check_scores(given, probabilities)
    n_classes = p.shape[1]
    if n_classes < 2:
        raise InputError("Label errors need probabilities of at least two classes.")
    group = np.zeros(len(codes), dtype=np.int64) if groups is None else np.asarray(groups)
    chances = Mistakes(*np.zeros((3, len(codes))))
    for name in np.unique(group):
        rows = np.flatnonzero(group == name)
        for field, part in zip(chances, _mistakes(codes[rows], p[rows]), strict=True):
            field[rows] = part
    return chances


def _mistakes(codes: Ints, p: Floats) -> Mistakes:
    """`mistakes` of items of one group."""
    n_classes = p.shape[1]
    logs = np.log(np.clip(p, 1e-12, 1.0))
    logs -= logs.max(axis=1, keepdims=True)
    rows = np.arange(len(codes))
    tempered = [np.exp(logs / temperature) for temperature in _TEMPERATURES]
    tempered = [q[rows, codes] / q.sum(axis=1) for q in tempered]
    likelihoods = np.array([(1.0 - floor) * q + floor / n_classes for q in tempered for floor in _FLOORS])
    prior = np.log(np.tile([0.25, *[0.75 / (len(_FLOORS) - 1)] * (len(_FLOORS) - 1)], len(_TEMPERATURES)))

    def chances(share: float) -> Floats:
        """[n] that each label is wrong, where people err in a share of them."""
        right, wrong = (1.0 - share) * likelihoods, share * (1.0 - likelihoods) / (n_classes - 1)
        evidence = np.log(right + wrong).sum(axis=1) + prior
        weights = np.exp(evidence - evidence.max())
        mean: Floats = (weights / weights.sum()) @ (wrong / (right + wrong))
        return mean

    wrong = chances(USUAL)
    return Mistakes(wrong, np.minimum(wrong, chances(SELDOM)), np.maximum(wrong, chances(OFTEN)))
