"""Softmax expectations without sampling; NumPy only.

softmax(f)_k is the probability that f_k + e_k is the largest when the e_c are independent standard
Gumbel variables. With Gaussian f_c, that probability is an integral over the largest value z:

    E[softmax(f)_k] = int h_k(z) prod_{c != k} H_c(z) dz,   H_c(z) = E[exp(-exp(f_c - z))], h = H'

Inner expectations: Gauss-Hermite. Outer integral: the trapezoid rule, one grid for all classes.
"""

from __future__ import annotations

import numpy as np

from workbench.arrays import Array, Floats
from workbench.engine.quadrature import WIDE, gauss_hermite, nodes_for

NODES = 20  # Gauss-Hermite, per class; more where a deviation is above 2, an even grid above 3.5
WIDE_NODES = 32
STEP = 1.0
BELOW, ABOVE = 3.7, 18.0  # where a Gumbel's CDF is 3e-18, where it misses 1 by 2e-8
_CHUNK = 1 << 19  # numbers in the largest temporary


def softmax_probabilities(mean: Array, variance: Array, *, step: float = STEP) -> Floats:
    """E[softmax(f)] for independent f_c ~ N(mean_c, variance_c), to about 1e-4.

    Args:
        mean: [N, C].
        variance: [N, C], >= 0.
        step: of the outer rule.

    Returns:
        [N, C] float64, rows sum to 1.
    """
    mean = np.asarray(mean, dtype=np.float64)
    deviation = np.sqrt(np.asarray(variance, dtype=np.float64))
    n, C = mean.shape
    out = np.empty((n, C))
    low = (mean - 6.0 * deviation).max(axis=1, initial=-np.inf) - BELOW
    high = (mean + 6.0 * deviation).max(axis=1, initial=-np.inf) + ABOVE
    # grid and nodes depend on the item alone, so an item's answer does not depend on its neighbours
    sizes = 4 * np.ceil(((high - low) / step + 1.0) / 4.0).astype(np.int64)
    widest = deviation.max(axis=1, initial=0.0)
    # 0 for the few nodes, 1 for the more, then by the whole deviation
    kinds = np.where(widest <= 2.0, 0, np.where(widest <= WIDE, 1, np.ceil(widest))).astype(np.int64)
    for size, kind in np.unique(np.stack([sizes, kinds], axis=1), axis=0):
        rule = gauss_hermite(NODES) if kind == 0 else nodes_for(float(kind), WIDE_NODES)
        decay = np.exp(-step * np.arange(size))
        group = np.flatnonzero((sizes == size) & (kinds == kind))
        share = max(1, _CHUNK // (C * len(rule[0]) * int(size)))
        for first in range(0, len(group), share):
            rows = group[first : first + share]
            out[rows] = _mass(mean[rows] - low[rows, None], deviation[rows], decay, rule)
    return out / out.sum(axis=1, keepdims=True)


def _mass(mean: Floats, deviation: Floats, decay: Floats, rule: tuple[Floats, Floats]) -> Floats:
    """[n, C] sums over the grid; `mean` [n, C] counts from the grid's start, `decay` [G] is exp(-z)."""
    x, w = rule
    # beyond 700 the inner exponential is zero either way
    start = np.exp(np.minimum(mean[:, :, None] + deviation[:, :, None] * x, 700.0))  # [n, C, Q]
    t = start[:, :, None, :] * decay[:, None]  # [n, C, G, Q]
    e = np.exp(-t)
    cdf = np.maximum(e @ w, 1e-300)
    t *= e
    joint = np.exp(np.log(cdf).sum(axis=1, keepdims=True))
    mass: Floats = ((t @ w) / cdf * joint).sum(axis=2)
    return mass
