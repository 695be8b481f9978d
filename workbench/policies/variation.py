"""The variation ratio: how often a draw of the latent functions names another class than the usual one.

Exact, by Monte Carlo as in the papers, and the exact best k of a big pool without computing the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.arrays import Array, Floats, Ints, slices
from workbench.classifiers.argmax import argmax_mass, check_moments
from workbench.errors import InputError

if TYPE_CHECKING:
    from numpy.random import Generator


_ROWS = 1 << 13
# Numbers looked at together: in float32 a temporary stays under 128 KB, which the allocator reuses.
_CELLS = 1 << 15
# Values closer than this share of themselves are ties: it is above the quadrature's error.
TIE = 1e-10


def variation_ratio(
    mean: Array, variance: Array, *, samples: int | None = None, rng: Generator | None = None
) -> Floats:
    """Variation ratio 1 - max_j P(argmax f = j) of Gaussian latent functions.

    The exact value is the sum of the losing classes' probabilities over the sum of all, not one
    minus the winner's, so that small values keep their precision and do not tie.

    Args:
        mean: [N, C].
        variance: [N, C], >= 0.
        samples: None for the exact value; S for the papers' estimate from S draws, a multiple of 1/S.
        rng: of the draws; needed with `samples`.

    Returns:
        [N] in [0, 1 - 1/C].

    Raises:
        InputError: moments that are no moments (the item is named), or samples < 1 or without rng.
    """
    mean, variance = check_moments(mean, variance)
    if samples is not None:
        return _sampled(mean, variance, samples, rng)
    out = np.empty(len(mean), dtype=np.float64)
    for rows in slices(len(mean), _ROWS):
        out[rows] = exact_rows(mean[rows].astype(np.float64), np.sqrt(variance[rows].astype(np.float64)))
    return out


def exact_rows(mean: Floats, deviation: Floats) -> Floats:
    """Exact variation ratio of float64 moments, no checks.

    Args:
        mean: [n, C].
        deviation: [n, C] standard deviations.

    Returns:
        [n].
    """
    mass = argmax_mass(mean, deviation)
    total = mass.sum(axis=1)
    rows = np.arange(len(mass))
    mass[rows, mass.argmax(axis=1)] = 0.0
    value = mass.sum(axis=1) / total
    # The bounds hold for the true value: they repair the last digits of the integral's tails, so
    # that even items of vanishing variation ratio keep their order.
    low, high = bounds(mean, deviation)
    return np.clip(value, low, high)


def bounds(mean: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Bounds on the variation ratio that hold for every item.

    With m the class of largest mean and z_j = (mu_m - mu_j) / sqrt(s_m^2 + s_j^2):
    max_j Phi(-z_j) <= VR <= min(1 - prod_j Phi(z_j), 1 - 1/C). The upper one is Slepian's
    inequality: the events f_m > f_j are positively correlated.

    Args:
        mean: [n, C].
        deviation: [n, C] standard deviations.

    Returns:
        lower and upper bound, each [n].
    """
    from scipy.special import ndtr

    n, n_classes = mean.shape
    if n_classes == 1:
        return np.zeros(n), np.zeros(n)
    lose = ndtr(-margins(mean, deviation))
    # 1 - prod(1 - q) without cancellation; q = 1 cannot be: z >= 0
    high = np.minimum(-np.expm1(np.log1p(-lose).sum(axis=1)), 1.0 - 1.0 / n_classes)
    low = np.minimum(lose.max(axis=1), high)
    return low, high


def margins(mean: Floats, deviation: Floats) -> Floats:
    """Standardised margins of the class of largest mean over each other one.

    Args:
        mean: [n, C].
        deviation: [n, C] standard deviations.

    Returns:
        [n, C], >= 0; infinite for the class itself and where the difference is certain.
    """
    rows = np.arange(len(mean))
    best = mean.argmax(axis=1)
    gap = mean[rows, best][:, None] - mean
    spread = np.hypot(deviation[rows, best][:, None], deviation)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = gap / spread
    z[np.isnan(z)] = 0.0  # an exact tie without any uncertainty
    z[rows, best] = np.inf
    return z


def top_variation_ratio(
    mean: Array, variance: Array, k: int, rng: Generator | None = None
) -> tuple[Ints, Floats]:
    """The k items of largest exact variation ratio, the same as computing all and sorting.

    Args:
        mean: [N, C].
        variance: [N, C], >= 0.
        k: how many; more than N gives N.
        rng: breaks ties; without it, the lower index comes first.

    Returns:
        indices [k] and their variation ratios [k], best first.

    Raises:
        InputError: k < 1 or moments that are no moments (the item is named).
    """
    if k < 1:
        raise InputError(f"At least one item must be asked for; got k={k}.")
    best, values = top_rows(*check_moments(mean, variance), k, rng=rng)
    return best[:k], values[:k]


def top_rows(
    mean: Array,
    variance: Array,
    k: int,
    *,
    threshold: float = -np.inf,
    rng: Generator | None = None,
    squared: Floats | None = None,
) -> tuple[Ints, Floats]:
    """The items that may be among the k of largest variation ratio and reach a threshold; no checks.

    Three steps, each of what the one before let through: the smallest standardised margin alone, a rough
    quadrature in single precision, the exact value in blocks by falling upper bound.

    Args:
        mean: [N, C], float32 or float64.
        variance: [N, C].
        k: how many.
        threshold: what the k-th best of other chunks already reaches.
        rng: puts ties in random order and saves computing those beyond k. Without it all that tie
            with the k-th are given, the lower index first.
        squared: `smallest_margin(mean, variance)`, where it is known already.

    Returns:
        indices and variation ratios, best first.
    """
    n, n_classes = mean.shape
    k = min(k, n)
    if n_classes == 1:
        tied = np.arange(n) if rng is None else rng.permutation(n)[:k]
        return tied, np.zeros(len(tied))
    if squared is None:
        squared = smallest_margin(mean, variance)
    rows, reached = _screen(squared, k, n_classes, threshold)
    while True:
        first = rows[_smallest(squared[rows], k)] if len(rows) >= k else rows
        low = bounds(*_precise(mean, variance, first))[0].min(initial=np.inf)
        bar = max(threshold, float(low)) if len(rows) >= k else threshold
        if len(rows) == n or bar >= reached * (1 - 1e-3):
            break
        rows = np.arange(n)  # squares under- or overflowed: the moments are extreme, rule nothing out

    order = np.arange(len(rows)) if rng is None else rng.permutation(len(rows))
    high = _upper_bounds(mean, variance, rows)
    queue = order[high[order] >= bar * (1 - TIE)]
    queue = queue[np.argsort(-high[queue], kind="stable")]
    # what is left may still tie with the k-th best; at random, those already computed serve as well
    slack = 1 - TIE if rng is None else 1 + TIE
    values = np.full(len(rows), -np.inf)
    leaders = np.empty(0)
    few = size = max(16, 2 * k)
    while len(queue) and (len(leaders) < k or high[queue[0]] > bar * slack):
        block, queue = queue[:size], queue[size:]
        mu, sd = _precise(mean, variance, rows[block])
        inside, tight = np.arange(len(block)), high[block]
        while len(inside) and (len(leaders) < k or tight[inside[0]] > bar * slack):
            part, inside = inside[:few], inside[few:]
            values[block[part]] = exact_rows(mu[part], sd[part])
            leaders = np.concatenate([leaders, values[block[part]]])
            if len(leaders) >= k:
                leaders = np.partition(leaders, len(leaders) - k)[len(leaders) - k :]
                bar = max(bar, float(leaders[0]))
        size = min(2 * size, 1 << 12)
    reaching = order[values[order] >= bar]
    reaching = reaching[np.isfinite(values[reaching])]
    if rng is None:
        reaching = np.sort(reaching)
    best = reaching[np.argsort(-values[reaching], kind="stable")]
    if rng is not None:
        best = best[:k]
    return rows[best], values[best]


def _smallest(values: Array, k: int) -> Ints:
    """Places [k] of the k smallest values; of those that tie with the last, the first."""
    last = np.partition(values, k - 1)[k - 1]
    below = np.flatnonzero(values < last)
    return np.concatenate([below, np.flatnonzero(values == last)[: k - len(below)]])


def _precise(mean: Array, variance: Array, rows: Ints) -> tuple[Floats, Floats]:
    """float64 means and standard deviations of some rows."""
    return mean[rows].astype(np.float64), np.sqrt(variance[rows].astype(np.float64))


def _upper_bounds(mean: Array, variance: Array, rows: Ints) -> Floats:
    """Upper bounds [n] of some rows: the rough quadrature where it holds, Slepian's inequality elsewhere."""
    n_classes = mean.shape[1]
    if n_classes == 2:  # there the inequality is the value itself
        return bounds(*_precise(mean, variance, rows))[1]
    high = np.full(len(rows), np.inf)
    if n_classes <= _QUICK_SLACK[-1][0]:
        size = _CELLS // n_classes
        for part in slices(len(rows), size):
            high[part] = _quick_bounds(mean[rows[part]], variance[rows[part]])
    open_ = np.flatnonzero(~np.isfinite(high))
    for part in slices(len(open_), _ROWS):
        block = open_[part]
        high[block] = bounds(*_precise(mean, variance, rows[block]))[1]
    return high


# Seven nodes of the trapezoid rule, 1 apart, for P(class of largest mean wins), with a logistic form of
# Phi that is off by 1.4e-4. By most classes: (most times a deviation of the winner may exceed the
# smallest, slack). The slacks are two and a half times the largest error found in a search, where all
# rivals stand at one place and the winner is as wide as it may.
_QUICK_SLACK = (
    (5, ((1.25, 0.005), (1.5, 0.0125), (2.0, 0.042))),
    (12, ((1.25, 0.016), (1.5, 0.033), (2.0, 0.078))),
    (40, ((1.25, 0.042), (1.5, 0.068), (2.0, 0.12))),
)
_LOGISTIC = (np.float32(-0.07056), np.float32(-1.5976))
_STEPS = np.arange(-3.0, 4.0, dtype=np.float32)


def _quick_bounds(mean: Array, variance: Array) -> Floats:
    """Upper bounds [n] of the variation ratio in single precision; infinite where there is none."""
    n, n_classes = mean.shape
    cells = mean.argmax(axis=1), np.arange(n)
    mu, sd = (np.ascontiguousarray(part.T) for part in (mean, np.sqrt(variance)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # the winner beats class j given its own t-th deviation: Phi(gap_j + ratio_j t)
        gap = ((mu[cells] - mu) / sd).astype(np.float32)
        ratio = (sd[cells] / sd).astype(np.float32)
        gap[cells] = np.inf
        weights = np.exp(-0.5 * _STEPS**2)
        wins = np.zeros(n, dtype=np.float32)
        for node, weight in zip(_STEPS, weights / weights.sum(), strict=True):
            x = ratio * node
            x += gap
            power = x * x
            power *= _LOGISTIC[0]
            power += _LOGISTIC[1]
            power *= x
            np.exp(power, out=power)
            power += 1.0  # 1 / Phi
            wins += weight / np.multiply.reduce(power, axis=0)
        widest = ratio.max(axis=0)
    slack = np.full(n, np.inf)
    limits = next(limits for bound, limits in _QUICK_SLACK if n_classes <= bound)
    for bound, error in limits[::-1]:
        slack[widest <= bound] = error
    high = np.minimum(1.0 - wins + slack, 1.0 - 1.0 / n_classes)
    high[~np.isfinite(slack)] = np.inf
    high[np.isnan(high)] = np.inf
    return high


def smallest_margin(mean: Array, variance: Array) -> Floats:
    """Squares of the smallest standardised margin, in the moments' own precision.

    Args:
        mean: [N, C].
        variance: [N, C].

    Returns:
        [N]; Phi(-root) is a lower bound of the variation ratio.
    """
    n, n_classes = mean.shape
    out = np.empty(n, dtype=mean.dtype if mean.dtype.kind == "f" else np.float64)
    size = max(1, _CELLS * 4 // (n_classes * mean.dtype.itemsize))
    offsets = np.arange(size) * n_classes
    for rows in slices(n, size):
        mu, v = mean[rows], variance[rows]
        best = mu.argmax(axis=1)
        best += offsets[: len(mu)]
        gap = np.subtract(mu, mu.take(best)[:, None], order="C")  # ravel below must be a view
        spread = v + v.take(best)[:, None]
        gap *= gap
        with np.errstate(divide="ignore", invalid="ignore"):
            gap /= spread
        gap.ravel()[best] = np.inf
        # the smallest over classes: far faster along the long axis
        np.minimum.reduce(gap.T.copy(), axis=0, out=out[rows])
    out[np.isnan(out)] = 0.0  # a tie without any uncertainty
    return out


def _screen(squared: Floats, k: int, n_classes: int, threshold: float) -> tuple[Ints, float]:
    """Rows whose smallest margin z leaves them a chance: (C - 1) Phi(-z) >= the k-th best Phi(-z).

    Returns:
        indices, ascending, and the variation ratio that k rows (or others) were found to reach.
    """
    from scipy.special import ndtr, ndtri

    bar = threshold
    if len(squared) > k:
        kth = float(np.partition(squared, k - 1)[k - 1])
        # the squares carry the rounding of the moments' precision
        bar = max(bar, float(ndtr(-np.sqrt(kth) * (1 + 1e-5))))
    if bar <= 0:
        return np.arange(len(squared)), bar
    share = bar * (1 - TIE) / (n_classes - 1)
    if share >= 0.5:  # more than any margin allows
        return np.flatnonzero(squared <= 0), bar
    return np.flatnonzero(squared <= ndtri(share) ** 2 * (1 + 2e-5) + 1e-12), bar


def best_first(values: Floats, k: int, rng: Generator | None) -> Ints:
    """Indices of the k largest values, best first; NaN never.

    Args:
        values: [N].
        k: how many at most.
        rng: puts equal values in random order; without it, the lower index comes first.

    Returns:
        [min(k, number of values that are not NaN)].
    """
    rows = np.flatnonzero(~np.isnan(values))
    if len(rows) > k > 0:
        threshold = np.partition(values[rows], len(rows) - k)[len(rows) - k]
        rows = rows[values[rows] >= threshold]
    if rng is not None:
        rows = rng.permutation(rows)
    return rows[np.argsort(-values[rows], kind="stable")][:k]


def _sampled(mean: Array, variance: Array, samples: int, rng: Generator | None) -> Floats:
    if samples < 1 or rng is None:
        raise InputError("The Monte Carlo variation ratio needs samples >= 1 and an rng.")
    n, n_classes = mean.shape
    out = np.empty(n)
    chunk = max(1, (1 << 20) // (samples * n_classes))
    for rows in slices(n, chunk):
        mu, sd = mean[rows].astype(np.float64), np.sqrt(variance[rows].astype(np.float64))
        draws = rng.standard_normal((len(mu), samples, n_classes))
        draws *= sd[:, None, :]
        draws += mu[:, None, :]
        winner = draws.argmax(axis=2) + np.arange(len(mu))[:, None] * n_classes
        votes = np.bincount(winner.ravel(), minlength=len(mu) * n_classes).reshape(len(mu), n_classes)
        out[rows] = 1.0 - votes.max(axis=1) / samples
    return out
