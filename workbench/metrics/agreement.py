"""How far people agree beyond chance: Cohen's and Fleiss' kappa."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from workbench.errors import InputError
from workbench.metrics.checks import check_predictions


class Agreement(NamedTuple):
    """Agreement of two people or more.

    Attributes:
        observed: share of pairs of ratings of one item that are the same.
        expected: what chance alone would give, from how often each class is named.
        kappa: (observed - expected) / (1 - expected): 1 is full agreement, 0 what chance gives; NaN where
            everybody named one and the same class, so that chance agrees as well.
        n_items: items it was computed on.
        n_ratings: ratings of each of them.
        n_left_out: items that were given and not used.
    """

    observed: float
    expected: float
    kappa: float
    n_items: int
    n_ratings: int
    n_left_out: int = 0


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
    return _agreement(float(np.mean(a == b)), float(shares[0] @ shares[1]), len(a), 2)


def fleiss_kappa(counts: ArrayLike) -> Agreement:
    """Agreement of several people, not always the same ones (Fleiss 1971).

    It is defined for items that were rated equally often. Where they were not, it is computed on the items
    that have the commonest number of ratings of at least two (the larger number where two are as common),
    and the others are left out and counted.

    Args:
        counts: [n, C] how many people gave item i class j.

    Raises:
        InputError: not such a table, or no item with two ratings.
    """
    table = np.asarray(counts)
    if table.ndim != 2 or table.dtype.kind not in "iu" or (table.size and table.min() < 0):
        raise InputError("Fleiss' kappa needs a table of counts, [items, classes], of whole numbers from 0.")
    ratings = table.sum(axis=1)
    often = np.bincount(ratings[ratings >= 2]) if (ratings >= 2).any() else np.empty(0, dtype=np.int64)
    if not often.size:
        raise InputError("Agreement needs an item that two people labelled.")
    m = len(often) - 1 - int(np.argmax(often[::-1]))
    used = table[ratings == m].astype(np.float64)
    observed = float(((used**2).sum(axis=1) - m).mean() / (m * (m - 1)))
    shares = used.sum(axis=0) / used.sum()
    return _agreement(observed, float(shares @ shares), len(used), m, len(table) - len(used))


def _agreement(observed: float, expected: float, n: int, m: int, left_out: int = 0) -> Agreement:
    beyond = 1.0 - expected
    kappa = (observed - expected) / beyond if beyond > 1e-12 else float("nan")
    return Agreement(observed, expected, kappa, n, m, left_out)
