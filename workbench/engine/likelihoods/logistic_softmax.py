"""The logistic-softmax likelihood: p(y = k | f) = sigma(f_k) / sum_c sigma(f_c) (docs/math.md, 4).

Source: Galy-Fajou et al. 2019, "Multi-class Gaussian process classification made conjugate". Its
augmentation (Gamma lambda_i, Poisson n_ic, Polya-Gamma omega_ic) makes the model conditionally
conjugate. Three bounds on log p(y):

* `joint`: q(u) q(lambda, n, omega). Given u's moments lambda and n integrate exactly, so there is
  no inner loop and no digamma function; tighter than the paper's at the same cost.
* `mean_field`: q(u) q(lambda) q(n, omega), the paper's, with the factor 1/2 its equation 12 lacks
  and its inner fixed point solved by Newton's method.
* `plain`: no augmentation; E_q[log p(y | f)] by quadrature. The most accurate and the slowest; for
  the comparison of the paper's figure 5.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from workbench.engine.likelihoods.base import SiteLikelihood, Sites, in_numpy, tf
from workbench.engine.quadrature import gauss_hermite, logistic_softmax_probabilities

NEWTON_STEPS = 6


def _augmented(mean: Any, variance: Any) -> tuple[Any, Any, Any]:
    """C = sqrt(E f^2), l = -m/2 - log 2cosh(c/2) and t(c) = tanh(c/2) / (2c), all [n, C]."""
    c = tf.sqrt(mean * mean + variance)
    # (c + m) / 2 without cancellation where m < 0
    half = tf.where(mean < 0, 0.5 * variance / tf.maximum(c - mean, 1e-30), 0.5 * (c + mean))
    l = -half - tf.math.log1p(tf.exp(-c))  # noqa: E741
    safe = tf.maximum(c, 1e-4)
    t = tf.where(c < 1e-4, 0.25 - c * c / 48.0, tf.tanh(0.5 * safe) / (2.0 * safe))
    return c, l, t


def joint(mean: Any, variance: Any, y: Any, factor: Any) -> Sites:
    """The bound with q(lambda, n, omega) kept together.

    Args:
        mean: [n, C] of f.
        variance: [n, C] of f.
        y: [n, C] one-hot.
        factor: all classes / classes given; scales the sum over classes when they are subsampled.

    Returns:
        The sites.
    """
    _, l, t = _augmented(mean, variance)  # noqa: E741
    log_total = tf.math.log(_total(l, factor))  # log E-like mean of sum_c sigma(f_c)
    gamma = tf.exp(l - log_total)
    theta = (y + gamma) * t
    # m/2 - log 2cosh(c/2) = l + m
    value = tf.reduce_sum(y * (l + mean), axis=1) - log_total[:, 0]
    return Sites(0.5 * (y - gamma) - theta * mean, theta, value)


def mean_field(mean: Any, variance: Any, y: Any, factor: Any) -> Sites:
    """The paper's bound, q(lambda) apart from q(n, omega).

    Args:
        mean: [n, C] of f.
        variance: [n, C] of f.
        y: [n, C] one-hot.
        factor: all classes / classes given.

    Returns:
        The sites.
    """
    _, l, t = _augmented(mean, variance)  # noqa: E741
    n_classes = factor * tf.cast(tf.shape(mean)[1], mean.dtype)
    gap = _total(l, factor) / n_classes  # 1 - S
    alpha = gamma_shape(gap)
    digamma = tf.math.digamma(alpha)
    gamma = tf.exp(digamma - tf.math.log(n_classes) + l)
    theta = (y + gamma) * t
    # sum_c gamma_c = alpha - 1 at the fixed point, which folds the terms in gamma into one
    value = (
        tf.reduce_sum(y * (l + mean), axis=1)
        + ((alpha - 1.0) * (1.0 - digamma) + tf.math.lgamma(alpha))[:, 0]
        - tf.math.log(n_classes)
    )
    return Sites(0.5 * (y - gamma) - theta * mean, theta, value)


def gamma_shape(gap: Any) -> Any:
    """Solve alpha = 1 + (1 - gap) exp(digamma(alpha)) by Newton's method.

    Args:
        gap: in (0, 1], any shape: R / C.

    Returns:
        alpha >= 1, the shape of q(lambda). The start is the solution of its own expansion at
        large alpha, so that six steps are enough for any gap.
    """
    alpha = (1.0 + gap) / (2.0 * gap)
    for _ in range(NEWTON_STEPS):
        rise = (1.0 - gap) * tf.exp(tf.math.digamma(alpha))
        slope = 1.0 - rise * tf.math.polygamma(tf.ones_like(alpha), alpha)
        alpha = tf.maximum(alpha - (alpha - 1.0 - rise) / slope, 1.0)
    return alpha


def _total(l: Any, factor: Any) -> Any:  # noqa: E741
    """R = sum_c (1 - e^l_c), [n, 1]."""
    tiny = np.finfo(l.dtype.as_numpy_dtype).tiny
    return tf.maximum(-factor * tf.reduce_sum(tf.math.expm1(l), axis=1, keepdims=True), tiny)


OUTER = np.arange(-26.0, 34.0, 0.75)  # log t of the outer integral
OUTER_AT_ONCE = 8


def plain(mean: Any, variance: Any, y: Any, factor: Any) -> Sites:
    """E_q[log p(y | f)] itself, without augmentation.

    E log sum_c s_c = int_0^inf (e^-t - prod_c E e^(-t s_c)) dt / t: Gauss-Hermite inside, the
    trapezoid rule in log t outside. Slope and curvature are exact derivatives of that rule. The
    curvature may be negative (misclassified items), so steps need judging: `ascend` does.

    Args:
        mean: [n, C] of f.
        variance: [n, C] of f.
        y: [n, C] one-hot.
        factor: not used: this bound does not subsample classes.

    Returns:
        The sites.
    """
    dtype = mean.dtype
    x, w = (tf.constant(a, dtype) for a in gauss_hermite(20))
    with tf.GradientTape() as tape:
        tape.watch([mean, variance])
        f = mean[:, :, None] + tf.sqrt(tf.maximum(variance, 1e-12))[:, :, None] * x
        log_s = tf.math.log_sigmoid(f)  # [n, C, Q]
        own_term = tf.reduce_sum(y * tf.linalg.matvec(log_s, w), axis=1)
        value = own_term - _expected_log_sum(tf.exp(log_s), w)
    slope, rise = tape.gradient(value, [mean, variance])
    return Sites(slope, -2.0 * rise, value)


def _expected_log_sum(s: Any, w: Any) -> Any:
    """E log sum_c s_c [n] for values s [n, C, Q] with weights w [Q]."""
    tiny = np.finfo(s.dtype.as_numpy_dtype).tiny
    total = tf.zeros(tf.shape(s)[:1], s.dtype)
    for u in OUTER.reshape(-1, OUTER_AT_ONCE):
        t = tf.constant(np.exp(u), s.dtype)
        survive = tf.linalg.matvec(tf.exp(-t[:, None] * s[:, :, None]), w)  # [n, C, T]
        product = tf.exp(tf.reduce_sum(tf.math.log(tf.maximum(survive, tiny)), axis=1))
        total += float(np.exp(-np.exp(u)).sum()) - tf.reduce_sum(product, axis=1)
    return (OUTER[1] - OUTER[0]) * total


BOUNDS = {"joint": joint, "mean-field": mean_field, "plain": plain}
"""The bounds by the name users write."""


class LogisticSoftmax(SiteLikelihood):
    """p(y = k | f) = sigma(f_k) / sum_c sigma(f_c), for integer labels [N, 1].

    Args:
        n_classes: C.
        bound: a name in `BOUNDS`.
    """

    def __init__(self, n_classes: int, bound: str = "joint") -> None:
        super().__init__(n_classes)
        self.bound = bound

    def for_any_classes(self) -> LogisticSoftmax:
        """The same object for all C with this bound."""
        return _of_bound(self.bound)

    def sites(self, mean: Any, variance: Any, targets: Any, first: Any = 0, share: Any = 1.0) -> Sites:
        """The chosen bound."""
        return BOUNDS[self.bound](mean, variance, targets, tf.cast(share, mean.dtype))

    def log_probability(self, F: Any, targets: Any) -> Any:
        """[...] log p(y | f)."""
        log_s = tf.math.log_sigmoid(F)
        return tf.reduce_sum(targets * log_s, axis=-1) - tf.reduce_logsumexp(log_s, axis=-1)

    def probabilities(self, mean: Any, variance: Any) -> Any:
        """[n, C] E p(y = k | f), by quadrature."""
        return in_numpy(logistic_softmax_probabilities, mean, variance)

    def probabilities_at(self, F: Any) -> Any:
        """[..., C] p(y = k | f)."""
        return tf.nn.softmax(tf.math.log_sigmoid(F))


@cache
def _of_bound(bound: str) -> LogisticSoftmax:
    return LogisticSoftmax(2, bound)
