"""Policies that foresee what an answer would change: one step ahead, in closed form for a Gaussian process.

Only the two leading classes of an item are in play. With g the gap of their latents (mean g_x > 0, variance
v_x), an answer y = +1 (the leading class) or -1 is a probit observation of g_x; it moves the gap of every
other item t by their posterior covariance (docs/math.md, 11):

    s = sqrt(v_x + 1), z = g_x / s, p_y = Phi(yz), h = phi(z) / p_y
    g_t' = g_t + y cov(x, t) h / s        v_t' = v_t - cov(x, t)^2 h (h + yz) / s^2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from workbench.policies.batches import posterior_factors
from workbench.policies.rowwise import latent_of, leading_pair, margin
from workbench.policies.variation import best_first

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    from workbench.arrays import Floats, Ints
    from workbench.policies.belief import Belief

_CANDIDATES = 50  # askable items of smallest gap; 200 change nothing
_TARGETS = 100  # random askable items that an answer is to help
_NOISE = 0.3  # of a label, as a share of the prior variance, where the model gives no covariances


class LookAhead(NamedTuple):
    """Effect of an answer about each candidate on the targets.

    Attributes:
        chance: [2, m] probability of either answer: the leading class, the other.
        before: [t] probability that the target's leading class is its own.
        after: [2, m, t] the same after either answer.
    """

    chance: Floats
    before: Floats
    after: Floats


def expected_error_reduction(belief: Belief, rng: Generator) -> Floats:
    """Expected drop of the error on 100 random items when an item is answered [N].

    Roy and McCallum 2001, among the 50 items of smallest margin. The others follow in the order of
    their margins, below all of these.
    """

    def drop(lookahead: LookAhead) -> Floats:
        error = np.minimum(lookahead.after, 1.0 - lookahead.after).mean(axis=2)  # [2, m]
        baseline = np.minimum(lookahead.before, 1.0 - lookahead.before).mean()
        return baseline - (lookahead.chance * error).sum(axis=0)

    return _among_the_closest(belief, rng, drop)


def epig(belief: Belief, rng: Generator) -> Floats:
    """Mean information of an item's label about the labels of 100 random items [N], in nats.

    Bickford Smith et al. 2023, of the two leading classes of each, among the 50 items of smallest
    margin. The others follow in the order of their margins, below all of these.
    """

    def information(lookahead: LookAhead) -> Floats:
        mixed = (lookahead.chance[:, :, None] * lookahead.after).sum(axis=0)  # [m, t]
        expected = (lookahead.chance[:, :, None] * _entropy(lookahead.after)).sum(axis=0)
        return (_entropy(mixed) - expected).mean(axis=1)

    return _among_the_closest(belief, rng, information)


def look_ahead(belief: Belief, candidates: Ints, targets: Ints) -> LookAhead:
    """The probit update of each target's gap by each candidate's answer.

    Args:
        belief: with latents.
        candidates: [m] items that might be asked about.
        targets: [t] items that the answer is to help.
    """
    from scipy.special import log_ndtr, ndtr

    mean, variance = latent_of(belief)
    gap, spread, pair = leading_pair(mean[candidates], variance[candidates])
    far_gap, far_spread, far_pair = leading_pair(mean[targets], variance[targets])
    cov = _gap_covariance(belief, candidates, targets, pair, far_pair)
    s = np.sqrt(spread + 1.0)
    z = gap / s
    sign = np.array([1.0, -1.0])[:, None]
    h = np.exp(-0.5 * z * z - 0.5 * np.log(2 * np.pi) - log_ndtr(sign * z))  # [2, m]
    new_gap = far_gap + (sign * h / s)[:, :, None] * cov
    new_spread = far_spread - (h * (h + sign * z) / s**2)[:, :, None] * cov**2
    after: Floats = ndtr(new_gap / np.sqrt(np.maximum(new_spread, 0.0) + 1.0))
    return LookAhead(ndtr(sign * z), ndtr(far_gap / np.sqrt(far_spread + 1.0)), after)


def _among_the_closest(belief: Belief, rng: Generator, value: Callable[[LookAhead], Floats]) -> Floats:
    """[N] a value of the askable items of smallest margin; the others rank below by their margins."""
    askable = belief.askable
    ranks = margin(belief, rng)
    candidates = askable[best_first(ranks[askable], _CANDIDATES, rng)]
    targets = askable
    if len(askable) > _TARGETS:
        targets = rng.choice(askable, _TARGETS, replace=False)
    values = value(look_ahead(belief, candidates, targets))
    below = values.min(initial=0.0)
    out: Floats = ranks - ranks.max() + below - 1.0
    out[candidates] = values
    return out


def _gap_covariance(belief: Belief, rows: Ints, targets: Ints, pair: Ints, far_pair: Ints) -> Floats:
    """[m, t] covariance of the gaps: sum_c e_xc e_tc cov_c(x, t), e = +1 and -1 at the leading classes."""
    mean, variance = latent_of(belief)
    if belief.covariance is not None:
        per_class = belief.covariance(rows, targets)
    else:  # the model's own variances, with the correlations that one covariance for all classes gives
        factors, residual = posterior_factors(belief, np.concatenate([rows, targets]), _NOISE)
        factors = factors / np.sqrt(np.einsum("np,np->n", factors, factors) + residual)[:, None]
        alike = factors[: len(rows)] @ factors[len(rows) :].T
        near, far = (np.sqrt(np.asarray(variance[i], dtype=np.float64)).T for i in (rows, targets))
        per_class = near[:, :, None] * far[:, None, :] * alike
    unit = np.eye(mean.shape[1])
    e, e_far = (unit[codes[:, 0]] - unit[codes[:, 1]] for codes in (pair, far_pair))
    return np.einsum("mc,tc,cmt->mt", e, e_far, per_class)


def _entropy(p: Floats) -> Floats:
    """Of a yes with probability p, in nats."""
    from scipy.special import entr

    return entr(p) + entr(1.0 - p)
