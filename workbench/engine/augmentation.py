"""The augmented hinge exp(-2 max(0, d)): one set of formulas for every Bayesian SVM.

As a mean-variance mixture (Polson & Scott 2011) with its auxiliary variable at the best, the
expected log of the hinge under a Gaussian d is bounded from below by -g (docs/math.md, 2 and 3):

    a = E[d^2] = (E d)^2 + var d,   g = E d + sqrt a,   dg/dE d = 1 + w E d,   2 dg/dvar d = w = a^-1/2

The large-margin GP has d = 1 + f_t - f_y for a rival t of the true class y, the binary machine
d = 1 - y f. Arguments are NumPy arrays or tensors; the results are of the same kind.
"""

from __future__ import annotations

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
