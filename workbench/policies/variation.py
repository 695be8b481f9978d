"""The variation ratio: how often a draw of the latent functions names another class than the usual one.

Exact, by Monte Carlo as in the papers, and the exact best k of a big pool without computing the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.classifiers.argmax import argmax_mass, check_moments
from workbench.errors import InputError

if TYPE_CHECKING:
    from numpy.random import Generator

    from workbench.arrays import Array, Floats, Ints

_ROWS = 1 << 13
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
    for start in range(0, len(mean), _ROWS):
        rows = slice(start, start + _ROWS)
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
    result: Floats = np.clip(value, low, high)
    return result


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
    values = variation_ratio(mean, variance)
    order = best_first(values, k, rng)
    return order, values[order]


def best_first(values: Floats, k: int, rng: Generator | None = None) -> Ints:
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
    for start in range(0, n, chunk):
        rows = slice(start, start + chunk)
        mu, sd = mean[rows].astype(np.float64), np.sqrt(variance[rows].astype(np.float64))
        draws = rng.standard_normal((len(mu), samples, n_classes))
        draws *= sd[:, None, :]
        draws += mu[:, None, :]
        winner = draws.argmax(axis=2) + np.arange(len(mu))[:, None] * n_classes
        votes = np.bincount(winner.ravel(), minlength=len(mu) * n_classes).reshape(len(mu), n_classes)
        out[rows] = 1.0 - votes.max(axis=1) / samples
    return out
