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
from scipy.special import log_expit, ndtr

from workbench.arrays import Array, Floats

NODES = 32  # Gauss-Hermite, per class
FEW = 20  # where no deviation is above 2
ROUGH = 10  # of probabilities that only choose something: to about 1e-3
WIDE = 3.5  # deviations from which on Gauss-Hermite misses what lies between its nodes
_CELL = 0.75  # of a latent, in units of the function's rise
_EDGES = _CELL * np.arange(-36.0, 22.0)  # of cells around the rise
STEP, FINE_STEP = 1.0, 0.75  # of z: to about 1e-4, and 1e-5 of the total
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
    return _shares(mean, variance, log_expit, ROUGH if rough else NODES, FINE_STEP)


def _shares(
    mean: Array, variance: Array, log_of: Callable[[Floats], Floats], nodes: int, step: float
) -> Floats:
    """[N, C] expected shares of values whose logarithms are a function of the latents."""
    mean = np.asarray(mean, dtype=np.float64)
    deviation = np.sqrt(np.asarray(variance, dtype=np.float64))
    n, C = mean.shape
    out = np.zeros((n, C))
    lowest = log_of(mean - REACH * deviation).max(axis=1, initial=-np.inf)
    highest = log_of(mean + REACH * deviation).max(axis=1, initial=-np.inf)
    low, high = lowest - BELOW, highest + ABOVE + np.log(C)
    # grid and nodes depend on the item alone, so an item's answer does not depend on its neighbours
    sizes = 4 * np.ceil(((high - low) / step + 1.0) / 4.0).astype(np.int64)
    widest = deviation.max(axis=1, initial=0.0)
    for row in np.flatnonzero(widest > WIDE):
        ends, reach = (low[row], high[row]), (lowest[row], highest[row])
        out[row] = _wide(mean[row], deviation[row], log_of, nodes, *_graded(ends, reach))
    few_nodes = widest <= 2.0
    kinds = np.where(widest > WIDE, -1, few_nodes)
    for size, kind in np.unique(np.stack([sizes, kinds], axis=1)[kinds >= 0], axis=0):
        x, w = gauss_hermite(min(nodes, FEW) if kind else nodes)
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


def _graded(ends: tuple[float, float], reach: tuple[float, float]) -> tuple[Floats, Floats]:
    """Places z [G] and what each stands for, finest where the largest value can begin and end.

    A class whose Gaussian is cut off at `reach` varies at a distance from it only over a share of that
    distance: with p and q the distances from both in units of 2 REACH, z is even in asinh p + asinh q.
    """
    unit = 2.0 * REACH
    middle, half = 0.5 * (reach[0] + reach[1]), 0.5 * (reach[1] - reach[0]) / unit
    first, last = (sum(np.arcsinh((z - end) / unit) for end in reach) for z in ends)
    y = np.arange(first, last + FINE_STEP / unit, FINE_STEP / unit) / 2.0
    u = np.sinh(y) * np.sqrt(1.0 + (half / np.cosh(y)) ** 2)
    stands = 1.0 / (1.0 / np.sqrt(1.0 + (u + half) ** 2) + 1.0 / np.sqrt(1.0 + (u - half) ** 2))
    return middle + unit * u, stands


def _wide(
    mean: Floats, deviation: Floats, log_of: Callable[[Floats], Floats], nodes: int, z: Floats, stands: Floats
) -> Floats:
    """[C] shares, not yet divided by their sum, of an item with some deviation above `WIDE`.

    Of a wide class the rise of exp(-l a) is taken apart, not the Gaussian: E g(f) = g(-inf) +
    sum_j (g(e_j+1) - g(e_j)) P(f > u), u even in the cell from e_j to e_j+1. What it costs does not
    depend on the deviation.

    Args:
        mean: [C].
        deviation: [C].
        log_of: logarithm of the values, of the latents.
        nodes: for classes that are not wide.
        z: [G] grid of -log l.
        stands: [G] length each place stands for.
    """
    x, w = gauss_hermite(nodes)
    is_wide = deviation > WIDE
    shares = np.zeros(len(mean))
    few = max(1, _CHUNK // (len(mean) * max(len(_EDGES), nodes)))
    for place in range(0, len(z), few):
        part = z[place : place + few, None]
        survive, density = np.empty((2, len(mean), len(part)))
        edges = np.minimum(part, log_of(np.inf)) + _EDGES  # [G, J + 1]
        t = np.exp(np.minimum(log_of(edges) - part, 700.0))
        e = np.exp(-t)
        cells = 0.5 * (edges[:, 1:] + edges[:, :-1])
        root = np.sqrt(deviation[is_wide] ** 2 - _CELL**2 / 12.0)[:, None, None]
        beyond = ndtr((mean[is_wide, None, None] - cells) / root)  # [C, G, J]
        survive[is_wide] = 1.0 + (np.diff(e) * beyond).sum(axis=2)
        density[is_wide] = (np.diff(t * e) * beyond).sum(axis=2)
        f = mean[~is_wide, None, None] + deviation[~is_wide, None, None] * x
        t = np.exp(np.minimum(log_of(f) - part, 700.0))
        e = np.exp(-t)
        survive[~is_wide], density[~is_wide] = e @ w, (t * e) @ w
        survive = np.maximum(survive, 1e-300)
        joint = np.exp(np.log(survive).sum(axis=0)) * stands[place : place + few]
        shares += (density / survive * joint).sum(axis=1)
    return shares
