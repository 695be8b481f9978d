"""Batch selectors: k items at once that are worth asking about and unlike each other.

Each reads `belief.utilities` (NaN = not in the running) where a policy has set them, costs O(n) per
added item over a limited number of candidates, and never forms an n x n matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.policies.variation import best_first

if TYPE_CHECKING:
    from numpy.random import Generator

    from workbench.arrays import Floats, Ints
    from workbench.policies.belief import Belief


def top(belief: Belief, k: int, rng: Generator) -> Ints:
    """The k items of largest utility, ties at random."""
    return best_first(_utilities(belief, rng), k, rng)


def k_means(belief: Belief, k: int, rng: Generator) -> Ints:
    """The best item of each of k clusters of the max(50, 5k) items of largest utility.

    Distances are those of the features as the model scales them. Follows Bodo et al. 2011 and
    Zhdanov 2019 ("diverse mini-batch active learning").

    Args:
        belief: with utilities; without, those of `margin` are taken.
        k: how many.
        rng: ties and the clusters' starts.

    Returns:
        [k] indices, of falling utility.
    """
    from sklearn.cluster import KMeans

    utilities = _utilities(belief, rng)
    # in falling utility, so that the answer does not depend on the pool's order
    candidates = best_first(utilities, max(50, 5 * k), rng)
    if k == 1 or len(candidates) <= k:
        return candidates[:k]
    points = np.asarray(belief.scaled[candidates], dtype=np.float64)
    distinct = len(np.unique(points, axis=0))
    seed = int(rng.integers(2**31))
    cluster = KMeans(min(k, distinct), n_init=4, random_state=seed).fit(points).labels_
    _, best = np.unique(cluster, return_index=True)
    chosen = np.sort(best)  # positions are ranks: ascending is falling utility
    if len(chosen) < k:  # fewer distinct points than items wanted
        rest = np.setdiff1d(np.arange(len(candidates)), chosen)[: k - len(chosen)]
        chosen = np.sort(np.concatenate([chosen, rest]))
    return candidates[chosen]


def _utilities(belief: Belief, rng: Generator) -> Floats:
    if belief.utilities is not None:
        return belief.utilities
    from workbench.policies.utilities import margin

    values = np.full(len(belief), np.nan)
    askable = belief.askable
    values[askable] = margin(belief, rng)[askable]
    return values
