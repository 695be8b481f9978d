"""Probability that a latent function is the largest: P(argmax_c f_c = j) for independent Gaussian marginals.

P_j = E[prod_{l != j} Phi((f_j - mu_l) / s_l)], as an integral over the value f of the largest
function on one grid shared by all classes of an item: P_j = sum_f [phi_j(f) / (s_j Phi_j(f))]
prod_l Phi_l(f) df. That costs C x G evaluations an item where one quadrature per class costs
C x C x Q.

Everything an item's answer depends on is computed from that item alone, so the answer does not
change, not even in the last bit, when items are reordered or split into other chunks.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from workbench.arrays import Array, Floats, Ints, slices
from workbench.errors import InputError

# Phi(-8) = 6e-16: what lies beyond is below one rounding error of the total.
TAIL = 8.0
# Grid step for ten classes, of the smallest deviation in the running. The integrands are analytic, so
# the trapezoid rule converges faster than any power of the step; the more classes, the narrower the
# distribution of the largest, and the finer the step (see `_step`).
STEP = 0.42
# P(all of r functions < f) <= Phi(-t_r)^r: with r = 1, 2, 4, ... these t_r all mean Phi(-8).
_RANKS = (1, 2, 4, 8, 16, 32, 64)
# Grids are rounded up to these sizes, so that items of like size share one block.
_SIZES = np.array(
    [16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512]
)
_BLOCK = 1 << 15  # evaluations at a time: stays in the second-level cache
_ROWS = 1 << 13


def argmax_probabilities(mean: Array, variance: Array) -> Floats:
    """Probability that each class has the largest latent function (deterministic, to about 1e-11).

    Args:
        mean: [N, C] of the latent functions.
        variance: [N, C], >= 0.

    Returns:
        [N, C], rows sum to 1.

    Raises:
        InputError: shapes differ, or an item's moments are not finite or a variance is negative.
    """
    mean, variance = check_moments(mean, variance)
    out = np.empty(mean.shape, dtype=np.float64)
    for rows in slices(len(mean), _ROWS):
        mass = argmax_mass(mean[rows].astype(np.float64), np.sqrt(variance[rows].astype(np.float64)))
        out[rows] = mass / mass.sum(axis=1, keepdims=True)
    return out


def check_moments(mean: Array, variance: Array, first: int = 0) -> tuple[Array, Array]:
    """Latent moments as arrays, or a clear error.

    Args:
        mean: [N, C].
        variance: [N, C].
        first: number of the first item, for the message.

    Returns:
        The two arrays.

    Raises:
        InputError: shapes differ, or an item's moments are not finite or a variance is negative.
    """
    mean, variance = np.asarray(mean), np.asarray(variance)
    if mean.ndim != 2 or mean.shape != variance.shape or mean.shape[1] < 1:
        raise InputError(
            "Latent means and variances must both be [items, classes]; "
            f"got {mean.shape} and {variance.shape}."
        )
    # one pass each when all is well: a sum is finite only if every term is
    if not (np.isfinite(mean.sum()) and np.isfinite(variance.sum())) or (
        variance.size and variance.min() < 0
    ):
        bad = ~(np.isfinite(mean) & np.isfinite(variance) & (variance >= 0)).all(axis=1)
        if bad.any():
            item = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"The model gives no usable belief about item {first + item}: mean {mean[item].tolist()}, "
                f"variance {variance[item].tolist()} ({int(bad.sum())} such item(s)). "
                "Check that item's features, or fit the model again."
            )
    return mean, variance


def deviations(mean: Floats, deviation: Floats) -> Floats:
    """Standard deviations with zeros lifted to where they change no probability by more than 1e-10.

    Args:
        mean: [N, C].
        deviation: [N, C], >= 0.

    Returns:
        [N, C], > 0.
    """
    scale = np.maximum(deviation.max(axis=1), np.ptp(mean, axis=1))
    floor = np.where(scale > 0, 1e-10 * scale, 1.0)
    return np.maximum(deviation, floor[:, None])


def argmax_mass(mean: Floats, deviation: Floats) -> Floats:
    """Unnormalised P(argmax = j): the integral's value, so losing classes keep their own precision.

    Args:
        mean: [N, C] float64.
        deviation: [N, C] float64 standard deviations, >= 0.

    Returns:
        [N, C]; rows sum to 1 up to the quadrature's error.
    """
    n, n_classes = mean.shape
    s = deviations(mean, deviation)
    out = np.zeros((n, n_classes))
    low = _lowest(mean, s)
    high = (mean + TAIL * s).max(axis=1)
    # a class that stays below the grid's start is never the largest
    active = mean + TAIL * s > low[:, None]
    count = active.sum(axis=1)
    alone = np.flatnonzero(count == 1)
    out[alone, active[alone].argmax(axis=1)] = 1.0
    pairs = np.flatnonzero(count == 2)
    if pairs.size:
        _two_classes(mean, s, active, pairs, out)
    rest = np.flatnonzero(count > 2)
    if rest.size:
        finest = np.where(active[rest], s[rest], np.inf).min(axis=1)
        n_points = (high[rest] - low[rest]) / (_step(count[rest]) * finest) + 1
        bucket = np.searchsorted(_SIZES, n_points)
        for b in np.unique(bucket):
            rows = rest[bucket == b]
            if b == len(_SIZES):
                for row in rows:
                    out[row] = _panels(mean[row], s[row], low[row], high[row])
            else:
                _shared_grid(mean, s, active, rows, low, high, int(_SIZES[b]), out)
    return out


def _lowest(mean: Floats, s: Floats) -> Floats:
    """[n] values below which the largest function falls with probability Phi(-TAIL) at most."""
    from scipy.special import ndtri_exp

    log_tail = -TAIL * TAIL / 2 - np.log(TAIL * np.sqrt(2 * np.pi))
    n_classes = mean.shape[1]
    low: Floats = (mean - TAIL * s).max(axis=1)
    for rank in _RANKS[1:]:
        if rank > n_classes:
            break
        reach = mean + ndtri_exp(log_tail / rank) * s
        np.maximum(low, np.partition(reach, n_classes - rank, axis=1)[:, n_classes - rank], out=low)
    return low


def _step(n_classes: Ints) -> Floats:
    """Grid step in deviations: the spread of the largest of C falls like 1 / sqrt(log C)."""
    return STEP * np.sqrt(np.log(10.0) / np.log(np.maximum(n_classes, 6)))


def _two_classes(mean: Floats, s: Floats, active: Array, rows: Ints, out: Floats) -> None:
    """Two classes in the running: P(f_a > f_b) in closed form."""
    from scipy.special import ndtr

    first = active[rows].argmax(axis=1)
    second = active.shape[1] - 1 - active[rows, ::-1].argmax(axis=1)
    z = (mean[rows, first] - mean[rows, second]) / np.hypot(s[rows, first], s[rows, second])
    out[rows, first] = ndtr(z)
    out[rows, second] = ndtr(-z)


def _shared_grid(
    mean: Floats, s: Floats, active: Array, rows: Ints, low: Floats, high: Floats, size: int, out: Floats
) -> None:
    """The trapezoid rule on `size` nodes from low to high, over the (item, class) pairs in the running."""
    from scipy.special import ndtr

    nodes = np.arange(size, dtype=np.float64)
    per_item = max(1, _BLOCK // (size * int(active[rows].sum(axis=1).mean() + 1)))
    for part in slices(len(rows), per_item):
        block = rows[part]
        item, cls = np.nonzero(active[block])
        row = block[item]
        step = (high[block] - low[block]) / (size - 1)
        mu, sd = mean[row, cls], s[row, cls]
        x = ((low[row] - mu) / sd)[:, None] + (step[item] / sd)[:, None] * nodes  # [pairs, G], >= -TAIL
        cdf = ndtr(x)
        density = np.exp(-0.5 * x * x)
        begins = np.searchsorted(item, np.arange(len(block)))
        density *= np.multiply.reduceat(cdf, begins, axis=0)[item]
        density /= cdf
        out[row, cls] = density.sum(axis=1) * (step[item] / (sd * np.sqrt(2 * np.pi)))


@cache
def _gauss_legendre() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(16)


def _panels(mean: Floats, s: Floats, low: float, high: float) -> Floats:
    """One item whose deviations differ by orders of magnitude: Gauss-Legendre between break points.

    Every function is either saturated on a panel or the panel is at most two of its deviations wide.
    """
    from scipy.special import ndtr

    knots = (mean[:, None] + s[:, None] * np.arange(-TAIL, TAIL + 1, 2)).ravel()
    knots = np.unique(np.concatenate([[low, high], knots[(knots > low) & (knots < high)]]))
    node, weight = _gauss_legendre()
    half = np.diff(knots)[:, None] / 2
    f = ((knots[:-1, None] + half) + half * node).ravel()
    x = (f - mean[:, None]) / s[:, None]  # [C, nodes], >= -TAIL
    cdf = ndtr(x)
    density = np.exp(-0.5 * x * x) / (cdf * s[:, None] * np.sqrt(2 * np.pi))
    return (density * cdf.prod(axis=0) * (half * weight).ravel()).sum(axis=1)
