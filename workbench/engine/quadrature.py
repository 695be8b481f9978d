"""Expectations of softmax and logistic-softmax without sampling; NumPy only.

With independent Gaussian f_c and values a_c = a(f_c), the exponential or the logistic function, everything
follows from one-dimensional integrals per class, because 1 / sum_c a_c = int_0^inf exp(-l sum_c a_c) dl:

    E[a_k / sum_c a_c] = int E[a_k exp(-l a_k)] prod_{c != k} E[exp(-l a_c)] dl

Inner integrals: Gauss-Hermite. Outer integral: the trapezoid rule in z = -log l, one grid for all classes,
which converges geometrically because the integrand is analytic in a strip around the real axis.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.special import log_expit

from workbench.arrays import Array, Floats

NODES = 32  # Gauss-Hermite, per class
FEW = 20  # where no deviation is above 2
ROUGH = 10  # of probabilities that only choose something: to about 1e-3
WIDE = 3.5  # deviations from which on Gauss-Hermite misses what lies between its nodes
_ENDS, _APART = (
    6.5,
    0.9,
)  # of even grids: their ends in deviations, their step in units of the function's rise
STEP, LOGISTIC_STEP = 1.0, 0.75  # of z: to about 1e-4, and 1e-5 of the total
REACH = 4.5  # deviations
BELOW, ABOVE = 3.7, 14.0  # where exp(-l a) is 3e-18, where it misses 1 by 8e-7
_CHUNK = 1 << 19  # numbers in the largest temporary


@cache
def gauss_hermite(nodes: int) -> tuple[Floats, Floats]:
    """Nodes and weights for E[g(Z)], Z ~ N(0, 1).

    Args:
        nodes: Q.

    Returns:
        nodes [Q], weights [Q] summing to 1.
    """
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    return x, w / w.sum()


def nodes_for(deviation: float, nodes: int) -> tuple[Floats, Floats]:
    """Nodes and weights for E[g(Z)] of a g that rises or falls over a length of 1 / deviation.

    Gauss-Hermite up to a deviation of 3.5; beyond that its nodes stand further apart than the rise, and an
    even grid takes their place, which converges geometrically for such functions (Trefethen & Weideman 2014).

    Args:
        deviation: of the Gaussian, in units of the rise.
        nodes: of Gauss-Hermite.

    Returns:
        nodes [Q], weights [Q] summing to 1.
    """
    if deviation <= WIDE:
        return gauss_hermite(nodes)
    return _even(int(np.ceil(2.0 * _ENDS * deviation / _APART / 16.0)) * 16)


@cache
def _even(nodes: int) -> tuple[Floats, Floats]:
    x = np.linspace(-_ENDS, _ENDS, nodes)
    w = np.exp(-0.5 * x * x)
    return x, w / w.sum()


def softmax_probabilities(mean: Array, variance: Array, *, rough: bool = False) -> Floats:
    """E[exp(f_k) / sum_c exp(f_c)] for independent f_c ~ N(mean_c, variance_c), to about 1e-4.

    Args:
        mean: [N, C].
        variance: [N, C], >= 0.
        rough: to about 1e-3, in a third of the time.

    Returns:
        [N, C] float64, rows sum to 1.
    """
    return _shares(mean, variance, lambda f: f, ROUGH if rough else NODES, STEP)


def logistic_softmax_probabilities(mean: Array, variance: Array, *, rough: bool = False) -> Floats:
    """E[sigma(f_k) / sum_c sigma(f_c)] for independent f_c ~ N(mean_c, variance_c).

    Args:
        mean: [N, C].
        variance: [N, C], >= 0.
        rough: to about 1e-3, in a third of the time.

    Returns:
        [N, C] float64, rows sum to 1.
    """
    return _shares(mean, variance, log_expit, ROUGH if rough else NODES, LOGISTIC_STEP)


def _shares(
    mean: Array, variance: Array, log_of: Callable[[Floats], Floats], nodes: int, step: float
) -> Floats:
    """[N, C] expected shares of values whose logarithms are a function of the latents."""
    mean = np.asarray(mean, dtype=np.float64)
    deviation = np.sqrt(np.asarray(variance, dtype=np.float64))
    n, C = mean.shape
    out = np.zeros((n, C))
    low = log_of(mean - REACH * deviation).max(axis=1, initial=-np.inf) - BELOW
    high = log_of(mean + REACH * deviation).max(axis=1, initial=-np.inf) + ABOVE + np.log(C)
    # grid and nodes depend on the item alone, so an item's answer does not depend on its neighbours
    sizes = 4 * np.ceil(((high - low) / step + 1.0) / 4.0).astype(np.int64)
    widest = deviation.max(axis=1, initial=0.0)
    # 0 for the few nodes, 1 for the more, then by the whole deviation
    kinds = np.where(widest <= 2.0, 0, np.where(widest <= WIDE, 1, np.ceil(widest))).astype(np.int64)
    for size, kind in np.unique(np.stack([sizes, kinds], axis=1), axis=0):
        x, w = nodes_for(float(kind), nodes if kind else min(nodes, FEW))
        decay = np.exp(-step * np.arange(size))
        group = np.flatnonzero((sizes == size) & (kinds == kind))
        share = max(1, _CHUNK // (C * len(x) * int(size)))
        for first in range(0, len(group), share):
            rows = group[first : first + share]
            log_a = log_of(mean[rows, :, None] + deviation[rows, :, None] * x)  # [n, C, Q]
            # beyond 700 the inner exponential is zero either way
            start = np.exp(np.minimum(log_a - low[rows, None, None], 700.0))[:, :, None]
            few = max(1, _CHUNK // start.size)
            for place in range(0, int(size), few):
                t = start * decay[place : place + few, None]
                e = np.exp(-t)
                survive = np.maximum(e @ w, 1e-300)  # [n, C, G]
                joint = np.exp(np.log(survive).sum(axis=1, keepdims=True))
                t *= e
                out[rows] += ((t @ w) / survive * joint).sum(axis=2)
    return out / out.sum(axis=1, keepdims=True)
