"""Expectations of softmax and logistic-softmax without sampling; NumPy only.

With independent Gaussian f_c and values a_c = a(f_c), the exponential or the logistic function, everything
follows from one-dimensional integrals per class, because 1 / sum_c a_c = int_0^inf exp(-l sum_c a_c) dl:

    E[a_k / sum_c a_c] = int E[a_k exp(-l a_k)] prod_{c != k} E[exp(-l a_c)] dl

Inner integrals: Gauss-Hermite. Outer integral: the trapezoid rule in z = -log l, one grid for all classes,
which converges geometrically because the integrand is analytic in a strip around the real axis.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.special import log_expit, ndtr

from workbench.arrays import Array, Floats, slices

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
    reach = [log_of(mean + side * deviation).max(axis=1, initial=-np.inf) for side in (-REACH, REACH)]
    ends = [reach[0] - BELOW, reach[1] + ABOVE + np.log(C)]
    # grid and nodes depend on the item alone, so an item's answer does not depend on its neighbours
    widest = deviation.max(axis=1, initial=0.0)
    kinds = (widest > 2.0).astype(np.int64) + (widest > WIDE)
    lengths = np.where(kinds < 2, (ends[1] - ends[0]) / step, _even(ends[1], *reach) - _even(ends[0], *reach))
    sizes = 4 * np.ceil((lengths + 1.0) / 4.0).astype(np.int64)
    for size, kind in np.unique(np.stack([sizes, kinds], axis=1), axis=0):
        x, w = gauss_hermite(nodes if kind else min(nodes, FEW))
        group = np.flatnonzero((sizes == size) & (kinds == kind))
        numbers = C * (len(_EDGES) if kind == 2 else len(x))
        share = max(1, _CHUNK // (numbers * int(size)))
        for part in slices(len(group), share):
            rows = group[part]
            low, *limits = (end[rows, None] for end in (ends[0], *reach))
            log_a = log_of(mean[rows, :, None] + deviation[rows, :, None] * x)  # [n, C, Q]
            # beyond 700 the inner exponential is zero either way
            start = np.exp(np.minimum(log_a - low[:, None], 700.0))[:, :, None]
            few = max(1, _CHUNK // (numbers * len(rows)))
            for place in range(0, int(size), few):
                above: Any = step * np.arange(place, min(place + few, int(size)))[None]
                stands: Any = 1.0
                if kind == 2:
                    above, stands = _graded(_even(low, *limits) + above / step, *limits)
                    above = above - low
                t = start * np.exp(-above)[:, None, :, None]
                e = np.exp(-t)
                survive = e @ w  # [n, C, G]
                t *= e
                density = t @ w
                if kind == 2:
                    of_wide = _of_wide(mean[rows], deviation[rows], low + above, log_of)
                    is_wide = deviation[rows, :, None] > WIDE
                    survive, density = np.where(is_wide, of_wide, (survive, density))
                survive = np.maximum(survive, 1e-300)
                joint = np.exp(np.log(survive).sum(axis=1)) * stands
                out[rows] += (density / survive * joint[:, None]).sum(axis=2)
    return out / out.sum(axis=1, keepdims=True)


_UNIT = 2.0 * REACH


def _even(z: Floats, lowest: Floats, highest: Floats) -> Floats:
    """A scale for z = -log l in which an even grid is finest where the largest value can begin and end.

    A class whose Gaussian is cut off at these varies at a distance from them only over a share of that
    distance: with p and q the distances from both in units of 2 REACH, the scale is asinh p + asinh q.
    """
    ends: Floats = np.arcsinh((z - lowest) / _UNIT) + np.arcsinh((z - highest) / _UNIT)
    return ends * (_UNIT / FINE_STEP)


def _graded(even: Floats, lowest: Floats, highest: Floats) -> tuple[Floats, Floats]:
    """The z of a place in that scale, and the length that a step there stands for."""
    y = even * (0.5 * FINE_STEP / _UNIT)
    half = 0.5 * (highest - lowest) / _UNIT
    u = np.sinh(y) * np.sqrt(1.0 + (half / np.cosh(y)) ** 2)
    stands = 1.0 / (1.0 / np.hypot(1.0, u + half) + 1.0 / np.hypot(1.0, u - half))
    return 0.5 * (lowest + highest) + _UNIT * u, stands


def _of_wide(mean: Floats, deviation: Floats, z: Floats, log_of: Callable[[Floats], Floats]) -> Floats:
    """E[exp(-l a)] and E[l a exp(-l a)] [2, n, C, G] of classes with deviations above `WIDE`.

    The rise of the function is taken apart, not the Gaussian: E g(f) = g(-inf) + sum_j (g(e_j+1) - g(e_j))
    P(f > u), u even in the cell from e_j to e_j+1. What it costs does not depend on the deviation.
    """
    edges = np.minimum(z, log_of(np.array(np.inf)))[:, :, None] + _EDGES  # [n, G, J + 1]
    t = np.exp(np.minimum(log_of(edges) - z[:, :, None], 700.0))
    e = np.exp(-t)
    cells = edges[:, None, :, 1:] - 0.5 * _CELL
    root = np.sqrt(np.maximum(deviation, 1.0) ** 2 - _CELL**2 / 12.0)[:, :, None, None]
    beyond = ndtr((mean[:, :, None, None] - cells) / root)  # [n, C, G, J]
    rises = np.stack([np.diff(e), np.diff(t * e)])[:, :, None]
    result: Floats = (rises * beyond).sum(axis=4)
    result[0] += 1.0
    return result
