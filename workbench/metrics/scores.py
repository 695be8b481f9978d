"""Errors of predictions; groups parted by a score; labels that are likely wrong; neighbours that are kept."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Array, Floats, Ints
from workbench.errors import InputError
from workbench.metrics.checks import check_predictions, check_scores

SMALLEST_PROBABILITY = (
    1e-12  # docs/math.md, 8: a class given less counts as this much, so that NLL stays finite
)


def error_rate(y: ArrayLike, predicted: ArrayLike) -> float:
    """Share of items whose predicted class is wrong.

    Args:
        y: [N] true class codes.
        predicted: [N, C] probabilities (the first largest wins) or [N] predicted codes.

    Returns:
        A share in [0, 1].

    Raises:
        InputError: nothing to measure on, or shapes and codes that do not fit.
    """
    codes, guesses, _ = check_predictions(y, predicted)
    return float(np.mean(codes != guesses))


def balanced_error_rate(y: ArrayLike, predicted: ArrayLike) -> float:
    """Mean over the classes present in `y` of the share of their items that is wrong.

    Args:
        y: [N] true class codes.
        predicted: [N, C] probabilities or [N] predicted codes.

    Returns:
        A share in [0, 1]; every class counts the same however few its items.

    Raises:
        InputError: as `error_rate`.
    """
    codes, guesses, n_classes = check_predictions(y, predicted)
    members = np.bincount(codes, minlength=n_classes)
    wrong = np.bincount(codes, weights=(codes != guesses).astype(np.float64), minlength=n_classes)
    present = members > 0
    return float(np.mean(wrong[present] / members[present]))


def macro_f1(y: ArrayLike, predicted: ArrayLike) -> float:
    """Mean over classes of the harmonic mean of precision and recall.

    Args:
        y: [N] true class codes.
        predicted: [N, C] probabilities or [N] predicted codes.

    Returns:
        A number in [0, 1]. Classes neither present nor predicted do not count; a class that is
        only present or only predicted counts 0.

    Raises:
        InputError: as `error_rate`.
    """
    codes, guesses, n_classes = check_predictions(y, predicted)
    hits = np.bincount(codes[codes == guesses], minlength=n_classes)
    involved = np.bincount(codes, minlength=n_classes) + np.bincount(guesses, minlength=n_classes)
    is_present = involved > 0
    return float(np.mean(2.0 * hits[is_present] / involved[is_present]))


def negative_log_likelihood(y: ArrayLike, probabilities: ArrayLike) -> float:
    """Mean of -log of the probability given to the true class (nats).

    Args:
        y: [N] true class codes.
        probabilities: [N, C].

    Returns:
        A number >= 0; probabilities below 1e-12 count as 1e-12.

    Raises:
        InputError: nothing to measure on, or shapes and codes that do not fit.
    """
    codes, p = check_scores(y, probabilities)
    likelihoods = p[np.arange(codes.shape[0]), codes]
    return float(np.mean(-np.log(np.clip(likelihoods, SMALLEST_PROBABILITY, 1.0))))


def brier_score(y: ArrayLike, probabilities: ArrayLike) -> float:
    """Mean squared distance between the probabilities and the one-hot truth.

    Args:
        y: [N] true class codes.
        probabilities: [N, C].

    Returns:
        A number in [0, 2] (summed over classes, Brier's own form; the two-class form that stops
        at 1 is half of it).

    Raises:
        InputError: nothing to measure on, or shapes and codes that do not fit.
    """
    codes, p = check_scores(y, probabilities)
    # |p - e_y|^2 = |p|^2 - 2 p_y + 1 needs no one-hot copy, but cancels badly near 0
    difference = p.copy()
    difference[np.arange(codes.shape[0]), codes] -= 1.0
    return float(np.mean(np.einsum("nc,nc->n", difference, difference)))


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


def roc_curve(negative: ArrayLike, positive: ArrayLike) -> RocCurve:
    """The ROC curve of a score.

    Args:
        negative: [n] scores of the group that should score low.
        positive: [m] scores of the group that should score high.

    Returns:
        The curve, every threshold that changes it.

    Raises:
        InputError: only one group, or scores that are not numbers.
    """
    from sklearn.metrics import roc_curve as curve

    groups = _groups(negative, positive)
    is_positive = np.repeat([False, True], [len(group) for group in groups])
    return RocCurve(*curve(is_positive, np.concatenate(groups), drop_intermediate=False))


def area_under_roc(negative: ArrayLike, positive: ArrayLike) -> float:
    """AUC: the chance that a positive scores above a negative, ties counting one half.

    Args:
        negative: [n] scores of the group that should score low.
        positive: [m] scores of the group that should score high.

    Returns:
        A number in [0, 1]; exactly 0.5 when both groups hold the same scores.

    Raises:
        InputError: as `roc_curve`.
    """
    zeros, ones = _groups(negative, positive)
    zeros = np.sort(zeros)
    # counting in whole numbers keeps ties exact
    below = int(np.searchsorted(zeros, ones, side="left").sum())
    not_above = int(np.searchsorted(zeros, ones, side="right").sum())
    return (below + not_above) / (2 * len(ones) * len(zeros))


def _groups(negative: ArrayLike, positive: ArrayLike) -> list[Floats]:
    groups: list[Floats] = [np.ravel(np.asarray(scores, dtype=np.float64)) for scores in (negative, positive)]
    if not all(map(len, groups)):
        raise InputError("A ROC curve needs items of both groups; there is only one.")
    if not all(np.isfinite(scores).all() for scores in groups):
        raise InputError("A ROC curve needs scores that are finite numbers.")
    return groups


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


def mistakes(labels: ArrayLike, probabilities: ArrayLike, groups: ArrayLike | None = None) -> Mistakes:
    """Probability that each label is wrong: of what a model says, its own error and people's usual one.

    A label is wrong with probability e, and then any other class:
    p(y | x) = (1 - e) q_y + e (1 - q_y) / (C - 1), with e of `USUAL`. q are the given probabilities at a
    temperature and with a floor, which are averaged over by how likely they make the labels (a quarter of
    the prior is on no floor): what surprises is first the model's error, and a model that is often surprised
    is believed less. (Uniform noise as of Natarajan et al. 2013; the temperature is that of Guo et al. 2017.)

    Args:
        labels: [n] codes that were given.
        probabilities: [n, C] out of sample: of models that did not learn from the item's own label.
        groups: [n] group of each item, of which each has an error of its own: items that were asked because
            the model was unsure of them are those that it gets wrong. None takes all together.

    Returns:
        The probabilities.

    Raises:
        InputError: as `check_scores`, or fewer than two classes.
    """
    codes, p = check_scores(labels, probabilities)
    n_classes = p.shape[1]
    if n_classes < 2:
        raise InputError("Label errors need probabilities of at least two classes.")
    group = np.zeros(len(codes), dtype=np.int64) if groups is None else np.asarray(groups)
    if len(group) != len(codes):
        raise InputError(f"Each label has a group; got {len(codes)} labels and groups of {len(group)}.")
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


_NUMBERS = 4_000_000
"""Distances held at once."""


def trustworthiness(
    features: ArrayLike, layout: ArrayLike, *, k: int = 5, judged: int | None = None
) -> float:
    """Share of near neighbours on a layout that are near in the features, too (Venna & Kaski 2001).

    Args:
        features: [N, D] where nearness is true.
        layout: [N, d] that is judged.
        k: neighbours looked at.
        judged: items whose neighbours are looked at, a sample of this size against all N; None for all.

    Returns:
        1 where every near neighbour is one in the features, too; about 0.5 for a random layout.

    Raises:
        InputError: fewer than 2k + 1 items, or lengths that differ.
    """
    X, Y = np.asarray(features), np.asarray(layout, dtype=np.float64)
    n = len(X)
    if len(Y) != n:
        raise InputError(f"A layout of {len(Y)} items cannot be judged by {n} rows of features.")
    if n <= 2 * k:
        raise InputError(f"Trustworthiness with {k} neighbours needs more than {2 * k} items; got {n}.")
    items = np.arange(n)
    if judged is not None and judged < n:
        items = np.sort(np.random.default_rng([0, 0x7125]).choice(n, judged, replace=False))
    penalty = 0.0
    step = max(1, _NUMBERS // n)
    for start in range(0, len(items), step):
        batch = items[start : start + step]
        # a copy of an item is as near as it can be: the order of the rows decides nothing
        distances = _distances(X, batch)
        on_layout = _distances(Y, batch)
        near = np.argpartition(on_layout, k - 1, axis=1)[:, :k]
        for row, neighbours in enumerate(near):
            ordered = np.sort(distances[row])
            rank = 1 + np.searchsorted(ordered, distances[row, neighbours])
            penalty += float(np.maximum(rank - k, 0).sum())
    return 1.0 - 2.0 * penalty / (len(items) * k * (2 * n - 3 * k - 1))


def _distances(X: Array, items: Ints) -> Floats:
    """[m, N] squared distances of some rows to all; infinite to the row itself."""
    block = np.asarray(X[items], dtype=np.float64)
    out = np.empty((len(items), len(X)))
    chunk = max(1, _NUMBERS // max(1, X.shape[1]))
    for start in range(0, len(X), chunk):
        part = np.asarray(X[start : start + chunk], dtype=np.float64)
        out[:, start : start + chunk] = (
            (block**2).sum(axis=1)[:, None] + (part**2).sum(axis=1) - 2 * block @ part.T
        )
    out[np.arange(len(items)), items] = np.inf
    return out
