"""Policies: functions of a belief and a generator that give each item a utility, higher = ask first.

Each looks at every item by itself, so they can stream over pools of any size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.arrays import Array, Floats, Ints, slices
from workbench.classifiers.argmax import check_moments
from workbench.classifiers.calibration import softmax
from workbench.errors import InputError
from workbench.policies.variation import variation_ratio as _variation_ratio

if TYPE_CHECKING:
    from numpy.random import Generator

    from workbench.classifiers.latent import Latent
    from workbench.policies.belief import Belief

_ROWS = 16_384  # of a pool at a time


def entropy_of(probabilities: Floats) -> Floats:
    """Shannon entropy in nats.

    Args:
        probabilities: [..., C], rows sum to 1.

    Returns:
        [...].
    """
    safe = np.where(probabilities == 0, 1.0, probabilities)  # what is no number stays none
    return -(safe * np.log(safe)).sum(axis=-1)


def latent_of(belief: Belief) -> Latent:
    """The belief's latents, checked.

    Raises:
        InputError: the model has none, or they are no numbers.
    """
    latent = belief.latent
    if latent is None:
        raise InputError(
            "This policy needs latent functions with uncertainty and the model has only class probabilities. "
            "Use entropy, margin or least-confident, or a Bayesian classifier."
        )
    check_moments(latent.mean, latent.variance)
    return latent


def variation_ratio(belief: Belief, rng: Generator) -> Floats:
    """Exact variation ratio of the latent functions [N]."""
    return _variation_ratio(*latent_of(belief))


def variation_ratio_sampled(belief: Belief, rng: Generator) -> Floats:
    """Variation ratio from 100 draws of the latent functions, as in the papers [N]."""
    return _variation_ratio(*latent_of(belief), samples=100, rng=rng)


def entropy(belief: Belief, rng: Generator) -> Floats:
    """Entropy of the predicted class probabilities [N], in nats."""
    return entropy_of(np.asarray(belief.probabilities, dtype=np.float64))


def entropy_of_means(belief: Belief, rng: Generator) -> Floats:
    """Entropy of softmax(mean of the latent functions) [N]: the papers' policy without uncertainty."""
    return entropy_of(softmax(latent_of(belief).mean))


def margin(belief: Belief, rng: Generator) -> Floats:
    """Minus the gap between the two largest latent means, or probabilities where there are no latents [N]."""
    scores = belief.latent_mean
    if scores is None:
        scores = belief.probabilities
    else:
        check_moments(scores, np.broadcast_to(np.zeros((), scores.dtype), scores.shape))
    return -_gap(scores)


def margin_in_deviations(belief: Belief, rng: Generator) -> Floats:
    """Probability [N] that the second of the two leading classes has the larger latent function.

    The variation ratio of these two alone: Phi(-gap / sqrt(v_a + v_b)), in [0, 1/2].
    """
    from scipy.special import ndtr

    gap, spread, _ = leading_pair(*latent_of(belief))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = gap / np.sqrt(spread)
    return ndtr(-np.where(np.isnan(z), 0.0, z))  # an exact tie without any uncertainty


def leading_pair(mean: Array, variance: Array) -> tuple[Floats, Floats, Ints]:
    """Gap of the two largest latent means, the sum of their variances, and which two classes they are.

    Args:
        mean: [n, C].
        variance: [n, C].

    Returns:
        gap [n] >= 0, spread [n], and codes [n, 2], the largest first; one class leads itself.
    """
    n_classes = mean.shape[1]
    pair = np.argpartition(mean, max(n_classes - 2, 0), axis=1)[:, -2:][:, ::-1]
    if n_classes == 1:
        pair = np.repeat(pair, 2, axis=1)
    first, second = (np.take_along_axis(mean, pair, axis=1).astype(np.float64)).T
    spread = np.take_along_axis(variance, pair, axis=1).astype(np.float64).sum(axis=1)
    return np.abs(first - second), spread, pair


def _gap(scores: Array) -> Floats:
    result: Floats = np.zeros(len(scores))
    if scores.shape[1] < 2:
        return result
    for rows in slices(len(scores), _ROWS):  # what is copied stays in the cache
        part = np.asarray(scores[rows], dtype=np.float64)
        top = np.partition(part, scores.shape[1] - 2, axis=1)[:, -2:]
        np.subtract(top[:, 1], top[:, 0], out=result[rows])
    return result


def least_confident(belief: Belief, rng: Generator) -> Floats:
    """One minus the largest class probability [N]."""
    return 1.0 - np.asarray(belief.probabilities, dtype=np.float64).max(axis=1)


_DRAWS = 1024


def bald(belief: Belief, rng: Generator) -> Floats:
    """Mutual information of the label and the latent functions under softmax(beta f) [N], in nats.

    Houlsby et al. 2011: entropy of the mean prediction minus mean entropy of the predictions, over 1,024
    quasi-random draws (scrambled Sobol points, Owen 1998), the same for all items. Each item's classes are
    drawn in order, the likeliest first: items in like doubt then err alike, which halves the error between
    them. Values are off by some thousandths of a nat; items closer than that may change places with the seed.
    """
    from scipy.special import ndtri
    from scipy.stats.qmc import Sobol

    mean, variance = latent_of(belief)
    n, n_classes = mean.shape
    points = Sobol(n_classes, seed=rng).random(_DRAWS)
    draws = ndtri(np.clip(points, 1e-12, 1.0 - 1e-12)).T.astype(np.float32)
    out = np.empty(n)
    chunk = max(1, (1 << 17) // draws.size)  # what is drawn for them stays in the cache
    for rows in slices(n, chunk):
        mu = np.asarray(mean[rows], dtype=np.float64)
        mu = belief.temperature * (mu - mu.max(axis=1, keepdims=True))
        sd = belief.temperature * np.sqrt(np.asarray(variance[rows], dtype=np.float64))
        order = np.argsort(-(mu + 1.5 * sd), axis=1)
        first, spread = (np.take_along_axis(of, order, axis=1).astype(np.float32) for of in (mu, sd))
        f = first[:, :, None] + spread[:, :, None] * draws
        f -= f.max(axis=1, keepdims=True)
        p = np.exp(f)
        total = p.sum(axis=1)
        # the entropy of softmax(f) is log sum exp f less the mean of f
        mean_entropy = (np.log(total) - (p * f).sum(axis=1) / total).mean(axis=1, dtype=np.float64)
        p /= total[:, None, :]
        out[rows] = entropy_of(p.mean(axis=2, dtype=np.float64)) - mean_entropy
    out[~np.asarray(variance).any(axis=1)] = 0.0  # exactly, where nothing is uncertain
    return np.maximum(out, 0.0)


def variance(belief: Belief, rng: Generator) -> Floats:
    """Mean over classes of the latent functions' predictive variance [N]."""
    return np.asarray(latent_of(belief).variance, dtype=np.float64).mean(axis=1)


def random_order(belief: Belief, rng: Generator) -> Floats:
    """Independent uniform numbers [N]."""
    return rng.random(len(belief))
