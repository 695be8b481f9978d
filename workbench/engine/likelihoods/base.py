"""Base of our likelihoods: GPflow likelihoods that also give the slope of their expectation."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import gpflow as _gpflow
import numpy as np
import tensorflow as _tensorflow

from workbench.engine.quadrature import gauss_hermite

# their type stubs know neither AutoGraph's loops nor NumPy arrays as arguments
tf: Any = _tensorflow
gpflow: Any = _gpflow


class Sites(NamedTuple):
    """An expectation E = E_q[log p(y | f)], or a bound on it, and its derivatives in q's moments.

    Attributes:
        slope: [n, C] dE/dmean.
        curvature: [n, C] -2 dE/dvariance.
        value: [n] E.
    """

    slope: Any
    curvature: Any
    value: Any


class SiteLikelihood(gpflow.likelihoods.Likelihood):
    """A GPflow likelihood of C independent Gaussian latents whose expectation comes with its slopes.

    `gpflow.models.SVGP` uses it as any other; the solvers of `workbench.engine.natural_gradient`
    ask for `sites`. A subclass writes `sites` or `expectation` (the other follows from it), and
    `probabilities`, `probabilities_at` and `log_probability`.

    Args:
        n_classes: C, the number of latents.
        observation_dim: columns of Y; None where any number is right.
    """

    shift_invariant = False
    """Whether adding one number to every latent of an item changes nothing."""

    def __init__(self, n_classes: int, observation_dim: int | None = None) -> None:
        super().__init__(input_dim=None, latent_dim=n_classes, observation_dim=observation_dim)
        self.n_classes = n_classes

    def for_any_classes(self) -> SiteLikelihood:
        """Key of compiled steps: one for all C where `sites` reads C off its arguments.

        Here the likelihood itself, which may hold arrays of its own C.
        """
        return self

    def chunk_rows(self, n_classes: Any) -> Any:
        """Rows at a time in a pass over data of so many classes, a number or a tensor; None for all."""
        return None

    # ------------------------------------------------------------------ for subclasses

    def sites(self, mean: Any, variance: Any, targets: Any, first: Any = 0, share: Any = 1.0) -> Sites:
        """The expectation's slope, curvature and value; here by automatic differentiation.

        Args:
            mean: [n, C] of the latents.
            variance: [n, C] of the latents.
            targets: [n, C] from `encode`.
            first: number of the first row, for expectations over fixed nodes.
            share: all classes / classes given, where they are subsampled.

        Returns:
            The sites; the curvature is cut at 0 where the likelihood is not log-concave.
        """
        with tf.GradientTape() as tape:
            tape.watch([mean, variance])
            value = self.expectation(mean, variance, targets, first)
        slope, rise = tape.gradient(value, [mean, variance])
        return Sites(slope, tf.maximum(-2.0 * rise, 0.0), value)

    def expectation(self, mean: Any, variance: Any, targets: Any, first: Any = 0) -> Any:
        """[n] E_q[log p(y | f)], or the bound; arguments as in `sites`."""
        return self.sites(mean, variance, targets, first).value

    @abstractmethod
    def probabilities(self, mean: Any, variance: Any) -> Any:
        """[n, C] p(y = k) under Gaussian latents."""

    @abstractmethod
    def probabilities_at(self, F: Any) -> Any:
        """[..., C] p(y = k | f)."""

    @abstractmethod
    def log_probability(self, F: Any, targets: Any) -> Any:
        """[...] log p(y | f) of targets [..., C]."""

    def encode(self, Y: Any, dtype: Any) -> Any:
        """[..., C] one-hot of integer labels Y [..., 1]."""
        return tf.one_hot(tf.cast(Y[..., 0], tf.int32), self.n_classes, dtype=dtype)

    # ------------------------------------------------------------------ GPflow's methods

    def _log_prob(self, X: Any, F: Any, Y: Any) -> Any:
        return self.log_probability(F, tf.broadcast_to(self.encode(Y, F.dtype), tf.shape(F)))

    def _variational_expectations(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        return self.expectation(Fmu, Fvar, self.encode(Y, Fmu.dtype))

    def _predict_mean_and_var(self, X: Any, Fmu: Any, Fvar: Any) -> tuple[Any, Any]:
        p = self.probabilities(Fmu, Fvar)
        return p, p - tf.square(p)

    def _predict_log_density(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        p = self.probabilities(Fmu, Fvar)
        return tf.math.log(tf.reduce_sum(self.encode(Y, Fmu.dtype) * p, axis=-1))

    def _conditional_mean(self, X: Any, F: Any) -> Any:
        return self.probabilities_at(F)

    def _conditional_variance(self, X: Any, F: Any) -> Any:
        p = self.probabilities_at(F)
        return p - tf.square(p)


def in_numpy(function: Any, mean: Any, variance: Any) -> Any:
    """A NumPy function of moments [n, C] as a tensor of the same shape and precision; not differentiable."""
    p = tf.numpy_function(function, [mean, variance], tf.float64)
    return tf.ensure_shape(tf.cast(p, mean.dtype), mean.shape)


def log_ndtr(a: Any) -> Any:
    """Logarithm of Phi(a), with finite gradients for every finite a.

    Args:
        a: a float tensor.
    """
    edge = -20.0 if a.dtype == tf.float64 else -5.0
    central = a > edge
    body = tf.math.log(0.5 * tf.math.erfc(-np.sqrt(0.5) * tf.where(central, a, tf.ones_like(a))))
    far = tf.where(central, edge * tf.ones_like(a), a)
    i = 1.0 / tf.square(far)
    # the asymptotic series alternates: five terms leave 3e-9 at -20, 1e-3 of a float32's unit at -5
    series = i * (-1.0 + i * (3.0 + i * (-15.0 + i * (105.0 - 945.0 * i))))
    tail = -0.5 * tf.square(far) - tf.math.log(-far) - 0.5 * np.log(2 * np.pi) + tf.math.log1p(series)
    return tf.where(central, body, tail)


def hermite(n: int, dtype: Any) -> tuple[Any, Any]:
    """Gauss-Hermite nodes [n] and logarithms of their weights [n], for a standard normal."""
    x, w = gauss_hermite(n)
    return tf.constant(x, dtype), tf.constant(np.log(w), dtype)
