"""Softmax, multinomial probit and robust-max: class likelihoods without augmentation (docs/math.md, 5).

Expectations with no closed form are averages over fixed quasi-random nodes, other ones for each
row of the data: the objective is deterministic, so back-tracking and stopping mean something. By
Price's theorem the curvature is -E[d^2 log p / df_c^2], which for log-concave likelihoods (softmax,
multinomial probit) is never negative even as a sample average.
"""

from functools import cache, lru_cache
from typing import Any

import numpy as np

from workbench.arrays import Floats
from workbench.engine.likelihoods.base import SiteLikelihood, Sites, hermite, in_numpy, log_ndtr, tf
from workbench.engine.quadrature import softmax_probabilities

SOFTMAX_NODES = 64
PROBIT_NODES = 16
WIN_NODES = 20  # of the quadrature for the probability that the true class is the largest
EPSILON = 1e-3  # robust-max: GPflow's default share of wrong labels

_TABLE_ROWS = 256  # rows of data with node sets of their own; after that the sets repeat
_PROBIT_POINTS = 8
_CELLS = 1 << 18  # numbers per intermediate tensor of a chunk: stays in the cache


@lru_cache(maxsize=4)  # of 120 classes 16 MB
def node_table(n_classes: int, n_nodes: int) -> Floats:
    """Quasi-random standard normal nodes, a set for each row of the data modulo the table's length.

    Every set is its own mirror image and has unit variance per class, so that the mean of any
    quadratic is exact. Separate sets for the rows keep a fit from exploiting their common error.

    Args:
        n_classes: C.
        n_nodes: S, rounded up to an even number.

    Returns:
        [256, S, C].
    """
    from scipy.stats import norm, qmc

    half = max(1, (n_nodes + 1) // 2)
    total = 1 << int(np.ceil(np.log2(_TABLE_ROWS * half)))
    uniform = qmc.Sobol(n_classes, scramble=True, rng=np.random.default_rng(20)).random(total)
    z = norm.ppf(np.clip(uniform, 1e-12, 1 - 1e-12))[: _TABLE_ROWS * half].reshape(_TABLE_ROWS, half, -1)
    z /= np.sqrt(np.mean(z * z, axis=1, keepdims=True))
    return np.concatenate([z, -z], axis=1)


class _InChunks(SiteLikelihood):
    """A likelihood that takes many numbers a row and class, so that data pass in chunks of rows.

    Args:
        n_classes: C.
        points: numbers a row and class.
        setting: what else it is made of.
    """

    shift_invariant = True

    def __init__(self, n_classes: int, points: int, *setting: Any) -> None:
        super().__init__(n_classes)
        self.points = points
        self.setting = setting

    def for_any_classes(self) -> SiteLikelihood:
        """The same object for all C with these settings."""
        kind: Any = type(self)
        return _of_settings(kind, self.setting)

    def chunk_rows(self, n_classes: Any) -> Any:
        """A multiple of the node table's length: a row's nodes do not depend on the chunks."""
        return tf.maximum(1, _CELLS // (n_classes * self.points * _TABLE_ROWS)) * _TABLE_ROWS


@cache
def _of_settings(kind: Any, setting: tuple[Any, ...]) -> _InChunks:
    return kind(2, *setting)


class _OnNodes(_InChunks):
    """Expectations as averages over the node table, by position in the data."""

    def __init__(self, n_classes: int, n_nodes: int, points: int) -> None:
        super().__init__(n_classes, points, n_nodes)
        self.n_nodes = n_nodes

    def _at_nodes(self, mean: Any, variance: Any, first: Any) -> Any:
        """[n, S, C] latents at the nodes of rows first .. first + n."""
        # asked for while the graph runs: a constant would belong to one C, and stay for good
        table = tf.numpy_function(self._table, [tf.shape(mean)[1]], tf.float64, stateful=False)
        table = tf.ensure_shape(table, (_TABLE_ROWS, None, mean.shape[1]))
        z = tf.gather(table, (first + tf.range(tf.shape(mean)[0])) % _TABLE_ROWS)
        return mean[:, None, :] + tf.sqrt(variance)[:, None, :] * tf.cast(z, mean.dtype)

    def _table(self, n_classes: Any) -> Floats:
        return node_table(int(n_classes), self.n_nodes)


class Softmax(_OnNodes):
    """p(y | f) = softmax(f)_y for integer labels [N, 1], expectations over fixed nodes.

    Args:
        n_classes: C.
        n_nodes: S per row of the data.
    """

    def __init__(self, n_classes: int, n_nodes: int = SOFTMAX_NODES) -> None:
        super().__init__(n_classes, n_nodes, n_nodes)

    def sites(self, mean: Any, variance: Any, targets: Any, first: Any = 0, share: Any = 1.0) -> Sites:
        """E = F_y - E lse(f), slope y - E p, curvature E[p (1 - p)]."""
        f = self._at_nodes(mean, variance, first)
        log_sum = tf.reduce_logsumexp(f, axis=-1)
        p = tf.exp(f - log_sum[..., None])
        average = tf.reduce_mean(p, axis=1)
        value = tf.reduce_sum(targets * mean, axis=-1) - tf.reduce_mean(log_sum, axis=-1)
        return Sites(targets - average, average - tf.reduce_mean(tf.square(p), axis=1), value)

    def log_probability(self, F: Any, targets: Any) -> Any:
        """[...] log softmax(f)_y."""
        return tf.reduce_sum(targets * F, axis=-1) - tf.reduce_logsumexp(F, axis=-1)

    def probabilities(self, mean: Any, variance: Any) -> Any:
        """[n, C] E softmax(f), by quadrature."""
        return in_numpy(softmax_probabilities, mean, variance)

    def probabilities_at(self, F: Any) -> Any:
        """[..., C] softmax(f)."""
        return tf.nn.softmax(F)


class MultinomialProbit(_OnNodes):
    """Heaviside likelihood on latents with unit noise: p(y | f) = P(f_y + e_y is the largest), e ~ N(0, I).

    With a Gaussian q the expected log of a bare Heaviside function is minus infinity; the noise
    makes it finite. The noise of the true class is integrated by Gauss-Hermite, the others are CDFs.

    Args:
        n_classes: C.
        n_nodes: S per row of the data, for expectations of the log.
    """

    def __init__(self, n_classes: int, n_nodes: int = PROBIT_NODES) -> None:
        super().__init__(n_classes, n_nodes, n_nodes * _PROBIT_POINTS)

    def sites(self, mean: Any, variance: Any, targets: Any, first: Any = 0, share: Any = 1.0) -> Sites:
        """Averages over the nodes of log p, its gradient and minus its diagonal second derivative."""
        f = self._at_nodes(mean, variance, first)
        value, gradient, curvature = log_probit(f, tf.broadcast_to(targets[:, None, :], tf.shape(f)))
        return Sites(*(tf.reduce_mean(part, axis=1) for part in (gradient, curvature, value)))

    def log_probability(self, F: Any, targets: Any) -> Any:
        """[...] log p(y | f)."""
        return log_probit(F, targets)[0]

    def probabilities(self, mean: Any, variance: Any) -> Any:
        """[n, C] probability that each noisy latent is the largest."""
        return largest(mean, variance + 1.0)

    def probabilities_at(self, F: Any) -> Any:
        """[..., C] p(y = k | f)."""
        return largest(F, tf.ones_like(F))


class RobustMax(_InChunks):
    """1 - epsilon for the largest latent, epsilon / (C - 1) for each other, for integer labels [N, 1].

    With S = P(f_y is the largest): E = S log(1 - epsilon) + (1 - S) log(epsilon / (C - 1)). It is not
    log-concave: `sites` cuts the curvature at 0, without which natural gradients end in NaN.

    Args:
        n_classes: C.
        epsilon: share of wrong labels.
    """

    def __init__(self, n_classes: int, epsilon: float = EPSILON) -> None:
        super().__init__(n_classes, WIN_NODES, epsilon)
        self.epsilon = epsilon

    def expectation(self, mean: Any, variance: Any, targets: Any, first: Any = 0) -> Any:
        """[n] expected log-likelihood."""
        S = wins(mean, variance, targets)
        return robust_max_term(S, self.epsilon, tf.shape(mean)[1])

    def log_probability(self, F: Any, targets: Any) -> Any:
        """[...] log p(y | f)."""
        return tf.math.log(tf.reduce_sum(targets * self.probabilities_at(F), axis=-1))

    def probabilities(self, mean: Any, variance: Any) -> Any:
        """[n, C] of labels, rows summing to 1."""
        return self._shared(largest(mean, variance))

    def probabilities_at(self, F: Any) -> Any:
        """[..., C] p(y = k | f)."""
        return self._shared(tf.one_hot(tf.argmax(F, axis=-1), self.n_classes, dtype=F.dtype))

    def _shared(self, p: Any) -> Any:
        return (1.0 - self.epsilon) * p + self.epsilon / (self.n_classes - 1) * (1.0 - p)


def robust_max_term(S: Any, epsilon: Any, n_classes: Any) -> Any:
    """Expected log of robust-max where the true class is the largest with probability S."""
    epsilon = tf.cast(epsilon, S.dtype)
    wrong = epsilon / tf.cast(n_classes - 1, S.dtype)
    return S * tf.math.log(1.0 - epsilon) + (1.0 - S) * tf.math.log(wrong)


def wins(mean: Any, variance: Any, targets: Any) -> Any:
    """[n] P(f_y is the largest) for the true class y, by Gauss-Hermite in logs.

    Args:
        mean: [n, C].
        variance: [n, C], > 0; its square root scales the latents.
        targets: [n, C] one-hot.
    """
    x, log_weight = hermite(WIN_NODES, mean.dtype)
    s = tf.sqrt(tf.maximum(variance, 1e-10))
    own_values = (
        tf.reduce_sum(targets * mean, 1, keepdims=True) + tf.reduce_sum(targets * s, 1, keepdims=True) * x
    )
    log_cdf = log_ndtr((own_values[:, None, :] - mean[:, :, None]) / s[:, :, None])
    rival_mask = (1.0 - targets)[:, :, None]
    return tf.exp(tf.reduce_logsumexp(tf.reduce_sum(log_cdf * rival_mask, axis=1) + log_weight, axis=1))


def largest(mean: Any, variance: Any) -> Any:
    """[..., C] probability that each class has the largest of independent Gaussians; rows sum to 1."""
    C = mean.shape[-1]
    x, log_weight = hermite(32, mean.dtype)
    s = tf.sqrt(variance)
    # node g of class j, against every class l: [N, j, l, G]
    at = mean[..., :, None, None] + s[..., :, None, None] * x
    log_cdf = log_ndtr((at - mean[..., None, :, None]) / s[..., None, :, None])
    keep = 1.0 - tf.eye(C, dtype=mean.dtype)[:, :, None]
    p = tf.exp(tf.reduce_logsumexp(tf.reduce_sum(log_cdf * keep, axis=-2) + log_weight, axis=-1))
    return p / tf.reduce_sum(p, axis=-1, keepdims=True)


def log_probit(F: Any, Y: Any) -> tuple[Any, Any, Any]:
    """The multinomial probit's log p(y | f), its gradient and minus its diagonal second derivative.

    With weights omega(u) proportional to phi(u) prod_{c != y} Phi(a_c), a_c = u + f_y - f_c and
    lambda = phi / Phi: d/df_c = -E[lambda_c], d/df_y = E[u], -d^2/df_c^2 = E[a_c lambda_c] +
    E[lambda_c]^2, -d^2/df_y^2 = 1 - Var[u]; all second derivatives are >= 0 (log-concavity).

    Args:
        F: [..., C] latents.
        Y: [..., C] one-hot.

    Returns:
        [...], [..., C], [..., C].
    """
    x, log_weight = hermite(_PROBIT_POINTS, F.dtype)
    top = tf.reduce_sum(F * Y, axis=-1, keepdims=True)
    rival_mask = (1.0 - Y)[..., None, :]
    # nodes around the integrand's mode, which lies far out where the true class is far behind
    mode, deviation = (tf.stop_gradient(z) for z in _probit_mode(F - top, 1.0 - Y))
    u = mode + deviation * x  # [..., G]
    log_weight = log_weight + tf.math.log(deviation) + 0.5 * (tf.square(x) - tf.square(u))
    a = (top - F)[..., None, :] + u[..., None]  # [..., G, C]
    log_cdf = log_ndtr(a) * rival_mask
    terms = tf.reduce_sum(log_cdf, axis=-1) + log_weight
    log_p = tf.reduce_logsumexp(terms, axis=-1)
    omega = tf.exp(terms - log_p[..., None])[..., None]
    ratio = tf.exp(-0.5 * tf.square(a) - 0.5 * np.log(2 * np.pi) - log_cdf) * rival_mask
    first = tf.reduce_sum(omega * ratio, axis=-2)
    second = tf.reduce_sum(omega * a * ratio, axis=-2)
    mean = tf.reduce_sum(omega[..., 0] * u, axis=-1, keepdims=True)
    spread = tf.reduce_sum(omega[..., 0] * tf.square(u), axis=-1, keepdims=True) - tf.square(mean)
    gradient = Y * mean - first
    curvature = Y * (1.0 - spread) + (1.0 - Y) * (second + tf.square(first))
    return log_p, gradient, tf.maximum(curvature, 0.0)


def _probit_mode(ahead: Any, rival_mask: Any) -> tuple[Any, Any]:
    """Mode [..., 1] and width of phi(u) prod_c Phi(u - ahead_c), ahead [..., C]; three Newton steps."""
    u = tf.maximum(0.5 * tf.reduce_max(ahead, axis=-1, keepdims=True), 0.0)
    for _ in range(3):
        a = u - ahead
        ratio = tf.exp(-0.5 * tf.square(a) - 0.5 * np.log(2 * np.pi) - log_ndtr(a)) * rival_mask
        slope = tf.reduce_sum(ratio, axis=-1, keepdims=True) - u
        curvature = 1.0 + tf.reduce_sum(ratio * (ratio + a), axis=-1, keepdims=True)
        u += slope / curvature
    return u, tf.math.rsqrt(curvature)
