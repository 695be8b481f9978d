"""The closed-form bounds as GPflow likelihoods, so that a fitted model is an ordinary SVGP.

`variational_expectations` gives the bound at its best auxiliary variables; hence
`gpflow.models.SVGP.elbo` is the objective the closed-form updates climb, and GPflow's optimisers,
kernels and monitoring work on it.
"""

from __future__ import annotations

from typing import Any

import gpflow as _gpflow
import numpy as np
import tensorflow as tf

from workbench.engine.bayesian_svm import hinge
from workbench.engine.logistic_softmax import BOUNDS
from workbench.engine.quadrature import logistic_softmax_probabilities

gpflow: Any = _gpflow


class Hinge(gpflow.likelihoods.Likelihood):
    """exp(-2 max(0, 1 - y f)) for signs y [N, C]; each column a problem of its own.

    Args:
        n_functions: C; 1 for a binary model.
    """

    def __init__(self, n_functions: int = 1) -> None:
        super().__init__(input_dim=None, latent_dim=n_functions, observation_dim=n_functions)

    def _log_prob(self, X: Any, F: Any, Y: Any) -> Any:
        return tf.reduce_sum(-2.0 * tf.nn.relu(1.0 - Y * F), axis=-1)

    def _variational_expectations(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        return hinge(Fmu, Fvar, Y, None)[2]

    def _predict_mean_and_var(self, X: Any, Fmu: Any, Fvar: Any) -> tuple[Any, Any]:
        """p(y = 1) = Phi(mean / sqrt(1 + variance)): paper 001, equation 13, with its root."""
        p = 0.5 * tf.math.erfc(-Fmu / tf.sqrt(2.0 * (1.0 + Fvar)))
        return p, p - tf.square(p)

    def _predict_log_density(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        p = 0.5 * tf.math.erfc(-Y * Fmu / tf.sqrt(2.0 * (1.0 + Fvar)))
        return tf.reduce_sum(tf.math.log(p), axis=-1)

    def _conditional_mean(self, X: Any, F: Any) -> Any:
        return 0.5 * tf.math.erfc(-F / np.sqrt(2.0))

    def _conditional_variance(self, X: Any, F: Any) -> Any:
        p = self._conditional_mean(X, F)
        return p - tf.square(p)


class LogisticSoftmax(gpflow.likelihoods.Likelihood):
    """p(y = k | f) = sigma(f_k) / sum_c sigma(f_c), for integer labels [N, 1].

    Args:
        n_classes: C.
        bound: a name in `workbench.engine.logistic_softmax.BOUNDS`.
    """

    def __init__(self, n_classes: int, bound: str = "joint") -> None:
        super().__init__(input_dim=None, latent_dim=n_classes, observation_dim=None)
        self.n_classes = n_classes
        self.bound = bound

    def _one_hot(self, Y: Any, dtype: Any) -> Any:
        return tf.one_hot(tf.cast(Y[..., 0], tf.int32), self.n_classes, dtype=dtype)

    def _log_prob(self, X: Any, F: Any, Y: Any) -> Any:
        log_s = tf.math.log_sigmoid(F)
        own = tf.reduce_sum(self._one_hot(Y, F.dtype) * log_s, axis=-1)
        return own - tf.reduce_logsumexp(log_s, axis=-1)

    def _variational_expectations(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        return BOUNDS[self.bound](Fmu, Fvar, self._one_hot(Y, Fmu.dtype), tf.ones((), Fmu.dtype))[2]

    def _predict_mean_and_var(self, X: Any, Fmu: Any, Fvar: Any) -> tuple[Any, Any]:
        p = tf.numpy_function(logistic_softmax_probabilities, [Fmu, Fvar], tf.float64)
        p = tf.ensure_shape(tf.cast(p, Fmu.dtype), Fmu.shape)
        return p, p - tf.square(p)

    def _predict_log_density(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        p, _ = self._predict_mean_and_var(X, Fmu, Fvar)
        return tf.math.log(tf.reduce_sum(self._one_hot(Y, Fmu.dtype) * p, axis=-1))

    def _conditional_mean(self, X: Any, F: Any) -> Any:
        return tf.nn.softmax(tf.math.log_sigmoid(F))

    def _conditional_variance(self, X: Any, F: Any) -> Any:
        p = self._conditional_mean(X, F)
        return p - tf.square(p)
