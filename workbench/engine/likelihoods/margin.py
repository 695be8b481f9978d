"""Margin likelihoods: the Bayesian SVM and its multi-class form, by one augmented hinge.

Both are pseudo-likelihoods exp(-2 max(0, d)), and `workbench.engine.augmentation` has the bound.
Binary: Wenzel et al. 2017 (docs/math.md, 3), with the corrections of its algorithm 1 (factor N/|S|)
and equation 13 (square root of the variance). Several classes: Wistuba & Rawat 2018 and 2019
(docs/math.md, 2), with tempered rivals.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from workbench.engine.augmentation import (
    augmented_hinge,
    rival_hinges,
    rival_margins,
    rival_pull,
    rival_weight,
    tempered_maximum,
    tempered_shares,
    without_own,
)
from workbench.engine.likelihoods.base import SiteLikelihood, Sites, gpflow, tf

TAU = 0.1


class BayesianSVM(SiteLikelihood):
    """exp(-2 max(0, 1 - y f)) for signs Y [N, C], -1 or +1; each column a problem of its own.

    Its expectation is the augmented model's bound, E = sum_c (-d - sqrt a), d = 1 - y F.

    Args:
        n_functions: C; 1 for a binary model.
    """

    def __init__(self, n_functions: int = 1) -> None:
        super().__init__(n_functions, observation_dim=n_functions)

    def for_any_classes(self) -> BayesianSVM:
        """The same object for all C: columns do not interact."""
        return _machine()

    def encode(self, Y: Any, dtype: Any) -> Any:
        """The signs themselves."""
        return tf.cast(Y, dtype)

    def sites(self, mean: Any, variance: Any, targets: Any, first: Any = 0, share: Any = 1.0) -> Sites:
        """The bound at its best auxiliary variables (docs/math.md, 3); columns do not interact."""
        hinge = augmented_hinge(1.0 - targets * mean, variance, tf)
        return Sites(targets * hinge.slope, hinge.weight, -tf.reduce_sum(hinge.bound, axis=1))

    def log_probability(self, F: Any, targets: Any) -> Any:
        """[...] minus twice the hinge losses."""
        return -2.0 * tf.reduce_sum(tf.nn.relu(1.0 - targets * F), axis=-1)

    def probabilities(self, mean: Any, variance: Any) -> Any:
        """[n, C] p(y = 1) = Phi(mean / sqrt(1 + variance)): equation 13, with its root."""
        return self.probabilities_at(mean / tf.sqrt(1.0 + variance))

    def probabilities_at(self, F: Any) -> Any:
        """[..., C] Phi(f)."""
        return 0.5 * tf.math.erfc(-F / np.sqrt(2.0))

    def _predict_log_density(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        return tf.reduce_sum(tf.math.log(self.probabilities(tf.cast(Y, Fmu.dtype) * Fmu, Fvar)), axis=-1)


class LargeMargin(SiteLikelihood):
    """Exp of minus the tempered margin loss, for integer labels [N, 1]: not normalised over classes.

    log p = -tau log sum_t exp(2 max(0, 1 + f_t - f_y) / tau) over the rivals t of y; its expectation
    is the augmented bound, with g = d + sqrt a in the place of the hinge (docs/math.md, 2).

    Args:
        n_classes: C.
        tau: temperature over rivals.
        beta: predictions are softmax(beta * mean) (docs/math.md, 8).
    """

    shift_invariant = True

    def __init__(self, n_classes: int, tau: float = TAU, beta: float = 1.5) -> None:
        super().__init__(n_classes, observation_dim=1)
        self.tau = tau
        self.beta = gpflow.Parameter(beta, transform=gpflow.utilities.positive(), name="beta")
        gpflow.set_trainable(self.beta, False)

    def sites(self, mean: Any, variance: Any, targets: Any, first: Any = 0, share: Any = 1.0) -> Sites:
        """U_t = -pi (1 + w d), u_y = -sum u_t; W_t = pi w, W_y = sum W_t (docs/math.md, 2)."""
        hinge = rival_hinges(mean, variance, targets, tf)
        share, value = tempered_shares(without_own(hinge.bound, targets, tf), self.tau, tf)
        pull, weight = rival_pull(hinge, share), rival_weight(hinge, share)
        slope = targets * tf.reduce_sum(pull, axis=1, keepdims=True) - pull
        curvature = targets * tf.reduce_sum(weight, axis=1, keepdims=True) + weight
        return Sites(slope, curvature, value)

    def log_probability(self, F: Any, targets: Any) -> Any:
        """[...] minus the tempered margin loss."""
        loss = 2.0 * tf.nn.relu(rival_margins(F, tf.reduce_sum(targets * F, axis=-1, keepdims=True)))
        return -tempered_maximum(without_own(loss, targets, tf), self.tau)

    def probabilities(self, mean: Any, variance: Any) -> Any:
        """[n, C] softmax(beta * mean)."""
        return self.probabilities_at(mean)

    def probabilities_at(self, F: Any) -> Any:
        """[..., C] softmax(beta f)."""
        return tf.nn.softmax(tf.cast(self.beta, F.dtype) * F)


@cache
def _machine() -> BayesianSVM:
    return BayesianSVM()
