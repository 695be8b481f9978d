"""The augmented hinge exp(-2 max(0, d)): one set of formulas for every Bayesian SVM.

As a mean-variance mixture (Polson & Scott 2011) with its auxiliary variable at the best, the
expected log of the hinge under a Gaussian d is bounded from below by -g (docs/math.md, 2 and 3):

    a = E[d^2] = (E d)^2 + var d,   g = E d + sqrt a,   dg/dE d = 1 + w E d,   2 dg/dvar d = w = a^-1/2

The large-margin GP has d = 1 + f_t - f_y for a rival t of the true class y, the binary machine
d = 1 - y f. Several rivals enter as tau log sum_t exp(g_t / tau), with shares pi = softmax(g / tau).
Arguments are NumPy arrays or tensors; the results are of the same kind. Entries stand either for a
list of k rivals, or for all C classes with a share of 0 at the true one.
"""

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

FLOOR = {"float64": 1e-12, "float32": 1e-6}
"""Least second moment: its inverse square root is a weight."""


def floor_of(dtype: Any) -> float:
    """The least second moment in a precision, given as a NumPy or TensorFlow dtype or a name."""
    return FLOOR[getattr(dtype, "name", None) or np.dtype(dtype).name]


class AugmentedHinge(NamedTuple):
    """Moments of d and what the bound makes of them.

    Attributes:
        margin: E d.
        root: sqrt a.
    """

    margin: Any
    root: Any

    @property
    def bound(self) -> Any:
        """G = E d + sqrt a: minus the bound on the expected log of the hinge."""
        return self.margin + self.root

    @property
    def slope(self) -> Any:
        """Dg/dE d = 1 + w E d."""
        return 1.0 + self.margin / self.root

    @property
    def weight(self) -> Any:
        """W = a^-1/2 = 2 dg/dvar d."""
        return 1.0 / self.root


def augmented_hinge(margin: Any, variance: Any, xp: ModuleType = np) -> AugmentedHinge:
    """The bound from the moments of d.

    Args:
        margin: E d, of any shape.
        variance: of d, of the same shape.
        xp: `numpy` or `tensorflow`, whichever made the arguments.
    """
    second = xp.maximum(margin * margin + variance, floor_of(margin.dtype))
    return AugmentedHinge(margin, xp.sqrt(second))


def rival_margins(mean: Any, own: Any) -> Any:
    """E d [N, C] = 1 + F - F_y of every class against the true one; the true class's entry is 1.

    Args:
        mean: [N, C] F.
        own: [N, 1] F_y.
    """
    return 1.0 + mean - own


def tempered_maximum(bound: Any, tau: Any) -> Any:
    """[N] tau log sum_t exp(g_t / tau) over the rivals, for a tensor `bound` [N, k].

    Args:
        bound: g of each rival; minus infinity where a class is none.
        tau: temperature.
    """
    import tensorflow as tf

    return tau * tf.reduce_logsumexp(bound / tau, axis=-1)


class Shares(NamedTuple):
    """Tempered rivals.

    Attributes:
        share: [n, k] pi, 0 where g is minus infinity.
        value: [n] -tau log sum_t exp(g_t / tau): what the rows contribute to the objective.
    """

    share: Any
    value: Any


def tempered_shares(bound: Any, tau: Any, xp: ModuleType = np) -> Shares:
    """Shares and value in one pass over exp(g / tau), for [n, k] `bound`."""
    scaled = bound / tau
    top = _row_max(scaled, xp)
    powers = xp.exp(scaled - top)
    total = _row_sum(powers, xp)
    logarithm = xp.math.log(total) if xp is not np else np.log(total)
    return Shares(powers / total, -tau * (logarithm + top)[:, 0])


def rival_hinges(mean: Any, variance: Any, own: Any, xp: ModuleType) -> AugmentedHinge:
    """The hinges of all classes against the true one, from marginals [n, C] and one-hot labels `own`."""
    spread = variance + _row_sum(own * variance, xp)
    return augmented_hinge(rival_margins(mean, _row_sum(own * mean, xp)), spread, xp)


def without_own(values: Any, own: Any, xp: ModuleType = np) -> Any:
    """`values` [n, C] with minus infinity at the true class."""
    return xp.where(own > 0, xp.cast(-np.inf, values.dtype) if xp is not np else -np.inf, values)


def rival_pull(hinge: AugmentedHinge, share: Any) -> Any:
    """Minus u_t = pi (1 + w d): how strongly G wants a rival's mean lower; the true class gets their sum."""
    return share * hinge.slope


def rival_weight(hinge: AugmentedHinge, share: Any) -> Any:
    """W_t = pi w, the rival's entry of the target precision; the true class gets their sum."""
    return share * hinge.weight


def rival_curvature(hinge: AugmentedHinge, share: Any, tau: Any) -> Any:
    """k_t = -d2G/dF_t2 = pi w (1 - (w d)^2) + pi (1 - pi) (1 + w d)^2 / tau (docs/math.md, 8)."""
    slope = hinge.slope
    return _straight(hinge, share) + share * (1.0 - share) * slope * slope / tau


def own_curvature(hinge: AugmentedHinge, share: Any, tau: Any) -> Any:
    """k_y [n, 1] = sum_t pi w (1 - (w d)^2) + [sum_t pi (1 + w d)^2 - (sum_t pi (1 + w d))^2] / tau."""
    pull = rival_pull(hinge, share)
    mean = _row_sum(pull, np)
    return _row_sum(_straight(hinge, share) + pull * hinge.slope / tau, np) - mean * mean / tau


def _straight(hinge: AugmentedHinge, share: Any) -> Any:
    """Slope where the shares are held: pi w (1 - (w d)^2)."""
    ratio = hinge.margin / hinge.root
    return share * (1.0 - ratio * ratio) / hinge.root


def _row_sum(x: Any, xp: ModuleType) -> Any:
    return (np.sum if xp is np else xp.reduce_sum)(x, axis=1, keepdims=True)


def _row_max(x: Any, xp: ModuleType) -> Any:
    return (np.max if xp is np else xp.reduce_max)(x, axis=1, keepdims=True)
