"""Logistic-softmax expectations without sampling; NumPy only.

With independent Gaussian f_c and s_c = sigma(f_c), everything follows from one-dimensional
integrals per class, because 1 / sum_c s_c = int_0^inf exp(-lambda sum_c s_c) d lambda:

    E[s_k / sum_c s_c] = int E[s_k exp(-lambda s_k)] prod_{c != k} E[exp(-lambda s_c)] d lambda

Inner integrals: Gauss-Hermite. Outer integral: the trapezoid rule in u = log lambda, which
converges geometrically because the integrand is analytic in a strip around the real axis.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import expit, log_expit, logsumexp

from workbench.arrays import Array, Floats

NODES = 32  # Gauss-Hermite, per class
WIDE = 3.5  # deviations from which on Gauss-Hermite misses what lies between its nodes
_ENDS, _APART = (
    6.5,
    0.9,
)  # of even grids: their ends in deviations, their step in units of the function's rise
STEP = 0.75  # of log lambda: trapezoid error below 1e-5 of the total
BELOW, ABOVE = 14.0, 8.0  # around -log sum_c sigma(mean_c)
_CHUNK = 1 << 21  # numbers in the largest temporary


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


def logistic_softmax_probabilities(
    mean: Array, variance: Array, *, nodes: int = NODES, step: float = STEP
) -> Floats:
    """E[sigma(f_k) / sum_c sigma(f_c)] for independent f_c ~ N(mean_c, variance_c).

    Args:
        mean: [N, C].
        variance: [N, C], >= 0.
        nodes: Gauss-Hermite nodes a class, where no deviation is above 3.5; more beyond that.
        step: of the outer rule, in log lambda.

    Returns:
        [N, C] float64, rows sum to 1.
    """
    mean = np.asarray(mean, dtype=np.float64)
    deviation = np.sqrt(np.asarray(variance, dtype=np.float64))
    out = np.empty(mean.shape)
    widest = deviation.max(axis=1, initial=0.0)
    narrow = np.flatnonzero(widest <= WIDE)
    if narrow.size:
        # wide posteriors put mass where all sigma(f_c) are small: reach further up
        reach = float(widest[narrow].max())
        steps = int(np.ceil((BELOW + ABOVE + 2.0 * reach) / step)) + 1
        centre = -logsumexp(log_expit(mean[narrow]), axis=1)
        _fill(out, narrow, mean, deviation, centre, -BELOW + step * np.arange(steps), gauss_hermite(nodes))
    wide = np.flatnonzero(widest > WIDE)
    if wide.size:
        # where sums of sigma may lie: five deviations up, three down; grids by the item alone
        first = -logsumexp(log_expit(mean[wide] + 5.0 * deviation[wide]), axis=1)
        last = -logsumexp(log_expit(mean[wide] - 3.0 * deviation[wide]), axis=1)
        sizes = 32 * np.ceil((BELOW + ABOVE + last - first) / step / 32.0).astype(np.int64)
        classes = np.ceil(widest[wide]).astype(np.int64)
        for size, upper in np.unique(np.stack([sizes, classes], axis=1), axis=0):
            group = np.flatnonzero((sizes == size) & (classes == upper))
            grid = -BELOW + step * np.arange(int(size) + 1)
            _fill(out, wide[group], mean, deviation, first[group], grid, nodes_for(float(upper), nodes))
    return out


def _fill(
    out: Floats,
    rows: Array,
    mean: Floats,
    deviation: Floats,
    centre: Floats,
    u: Floats,
    rule: tuple[Floats, Floats],
) -> None:
    """Write the probabilities of some rows, a part of them at a time."""
    share = max(1, _CHUNK // (mean.shape[1] * len(rule[0])))
    for start in range(0, len(rows), share):
        part = rows[start : start + share]
        out[part] = _probabilities(mean[part], deviation[part], centre[start : start + share], u, rule)


def _probabilities(
    mean: Floats, deviation: Floats, centre: Floats, u: Floats, rule: tuple[Floats, Floats]
) -> Floats:
    x, w = rule
    f = mean[:, :, None] + deviation[:, :, None] * x  # [n, C, Q]
    s = expit(f)
    total = np.zeros_like(mean)
    weighted = s * w
    for offset in u:
        rate = np.exp(centre + offset)
        decay = np.exp(-rate[:, None, None] * s)
        survive = decay @ w  # E exp(-lambda s_c)
        hazard = np.einsum("ncq,ncq->nc", decay, weighted)
        # in logs: far out every factor underflows, and the term with it
        with np.errstate(divide="ignore", invalid="ignore"):
            log_survive = np.log(survive)
            joint = np.exp(log_survive.sum(axis=1) + centre + offset)
            ratio = np.where(survive > 0, hazard / survive, 0.0)
        total += joint[:, None] * ratio
    return total / total.sum(axis=1, keepdims=True)
