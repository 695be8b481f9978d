"""Agreement of people beyond chance: Cohen's kappa of two, Krippendorff's alpha of any number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Floats
from workbench.errors import InputError
from workbench.metrics.calibration import Interval, share_interval
from workbench.metrics.checks import check_predictions

ENOUGH = 10
"""Items from which on an agreement beyond chance is told."""
_FEW = 5  # items that differ from the rest, below which drawing items again tells too little


class Agreement(NamedTuple):
    """Agreement of two people or more.

    Attributes:
        observed: share of pairs of ratings of one item that are the same.
        expected: what chance alone would give, from how often each class is named.
        kappa: (observed - expected) / (1 - expected), which is alpha for more than two people: 1 is full
            agreement, 0 what chance gives; NaN where everybody named one and the same class, so that chance
            agrees as well.
        n_items: items it was computed on.
        n_ratings: ratings of them, all together.
    """

    observed: float
    expected: float
    kappa: float
    n_items: int
    n_ratings: int


def cohen_kappa(first: ArrayLike, second: ArrayLike) -> Agreement:
    """Agreement of two people about the same items (Cohen 1960).

    Args:
        first: [n] class codes that one gave.
        second: [n] class codes that the other gave.

    Raises:
        InputError: no items, lengths that differ, or codes that are none.
    """
    a, b, n_classes = check_predictions(first, np.ravel(second))
    shares = [np.bincount(codes, minlength=n_classes) / len(a) for codes in (a, b)]
    return _agreement(float(np.mean(a == b)), float(shares[0] @ shares[1]), len(a), 2 * len(a))


def krippendorff_alpha(counts: ArrayLike) -> Agreement:
    """Agreement of any number of people about classes, each item rated by some of them.

    Krippendorff's alpha for nominal data (Krippendorff 2011, "Computing Krippendorff's alpha-reliability"):
    every pair of ratings of one item counts, whoever gave them, a rating of an item with m ratings in m - 1
    pairs. Chance is that of drawing two of all these ratings without putting the first back.

    Args:
        counts: [n, C] how many people gave item i class j; items with fewer than two ratings say nothing,
            are left out.

    Raises:
        InputError: not such a table, or no item with two ratings.
    """
    table = np.asarray(counts)
    if table.ndim != 2 or table.dtype.kind not in "iu" or (table.size and table.min() < 0):
        raise InputError("Agreement needs a table of counts, [items, classes], of whole numbers from 0.")
    rows = table[table.sum(axis=1) >= 2].astype(np.float64)
    if not len(rows):
        raise InputError("Agreement needs an item that two people labelled.")
    ratings = rows.sum(axis=1)
    n = float(ratings.sum())
    observed = float(((rows * (rows - 1)).sum(axis=1) / (ratings - 1)).sum() / n)
    class_counts = rows.sum(axis=0)
    expected = float((class_counts * (class_counts - 1)).sum() / (n * (n - 1)))
    return _agreement(observed, expected, len(rows), int(n))


def alpha_interval(counts: ArrayLike, *, draws: int = 1000, seed: int = 0) -> Interval:
    """95 % interval of Krippendorff's alpha: percentiles over items drawn again with replacement.

    Where fewer than five items are not unanimous, or fewer than five have two ratings alike, the draws say
    too little of that end: it is then no nearer than by Wilson's interval of the share of such items.

    Args:
        counts: [n, C] as `krippendorff_alpha` takes them.
        draws: how many resamples.
        seed: of the draws.

    Returns:
        Alpha, its ends and the items behind it; NaN where all ratings are of one class.

    Raises:
        InputError: as `krippendorff_alpha`.
    """
    _, by_chance, alpha, *_ = krippendorff_alpha(counts)
    table = np.asarray(counts)
    rows = table[table.sum(axis=1) >= 2].astype(np.float64)
    ratings = rows.sum(axis=1)
    same = (rows * (rows - 1)).sum(axis=1) / (ratings - 1)
    weights = np.random.default_rng(seed).multinomial(len(rows), np.full(len(rows), 1 / len(rows)), draws)
    n, class_counts = weights @ ratings, weights @ rows
    observed, expected = weights @ same / n, (class_counts * (class_counts - 1)).sum(axis=1) / (n * (n - 1))
    varied = expected < 1.0 - 1e-12
    if not varied.any():
        return Interval(alpha, float("nan"), float("nan"), len(rows))
    alphas = (observed[varied] - expected[varied]) / (1.0 - expected[varied])
    low, high = (float(end) for end in np.percentile(alphas, [2.5, 97.5]))
    items, unanimous, alike = len(rows), int((rows.max(axis=1) == ratings).sum()), int((same > 0).sum())
    if items - unanimous < _FEW:
        low = min(low, _alpha_where(rows, share_interval(unanimous, items).low))
    if alike < _FEW:
        high = max(high, (share_interval(alike, items).high - by_chance) / (1.0 - by_chance))
    return Interval(alpha, low, high, len(rows))


def _alpha_where(table: Floats, share: float) -> float:
    """Krippendorff's alpha, were this share of the items unanimous and the others as those that are not.

    Args:
        table: [n, C] ratings of each item, two or more.
        share: from 0 to 1.
    """
    is_unanimous = table.max(axis=1) == table.sum(axis=1)
    if is_unanimous.all():  # none differs: one that names the two commonest classes
        another = np.zeros((1, table.shape[1]))
        another[0, np.argsort(-table.sum(axis=0), kind="stable")[:2]] = 1.0
        table, is_unanimous = np.concatenate([table, another]), np.append(is_unanimous, False)
    parts = np.where(
        is_unanimous, share / max(int(is_unanimous.sum()), 1), (1.0 - share) / (~is_unanimous).sum()
    )
    weights = parts * len(table)
    ratings = table.sum(axis=1)
    n, class_counts = weights @ ratings, weights @ table
    observed = weights @ ((table * (table - 1)).sum(axis=1) / (ratings - 1)) / n
    expected = (class_counts * (class_counts - 1)).sum() / (n * (n - 1))
    return float((observed - expected) / (1.0 - expected)) if expected < 1.0 - 1e-12 else 1.0


def _agreement(observed: float, expected: float, n: int, m: int) -> Agreement:
    beyond = 1.0 - expected
    kappa = (observed - expected) / beyond if beyond > 1e-12 else float("nan")
    return Agreement(observed, expected, kappa, n, m)
