"""Share of nearest neighbours that a layout keeps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Array, Floats, Ints
from workbench.errors import InputError

_NUMBERS = 4_000_000
"""Distances held at once."""


def trustworthiness(
    features: ArrayLike, layout: ArrayLike, *, k: int = 5, judged: int | None = None, seed: int = 0
) -> float:
    """Share of near neighbours on a layout that are near in the features, too (Venna & Kaski 2001).

    Args:
        features: [N, D] where nearness is true.
        layout: [N, d] that is judged.
        k: neighbours looked at.
        judged: items whose neighbours are looked at, a sample of this size against all N; None for all.
        seed: of the sample.

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
        items = np.sort(np.random.default_rng([seed, 0x7125]).choice(n, judged, replace=False))
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
