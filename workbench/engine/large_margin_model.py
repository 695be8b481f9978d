"""The large-margin GP as a GPflow model: kernels, inducing variables, predict_f, saved parameters."""

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from workbench.arrays import Array, Floats
from workbench.engine import large_margin
from workbench.engine.large_margin import TAU, LargeMarginFit
from workbench.engine.large_margin_state import Posterior
from workbench.engine.likelihoods.margin import LargeMargin
from workbench.engine.projection import relative_jitter
from workbench.errors import InputError
from workbench.progress import FitCallback


class LargeMarginGP(gpflow.models.GPModel):
    """Multi-class Bayesian SVM with inducing points (Wistuba & Rawat 2018, 2019).

    Parameters: the kernel's, `q_mu` [P, C] and `q_sqrt` [C, P, P] of the whitened q(v), and
    `wide_mu` [B, C] where the mean has a basis of its own.

    Args:
        kernel: a GPflow kernel, of all C latents.
        inducing: [P, D] inducing points.
        n_classes: C.
        wide: [B, D] points of the mean's own basis, beginning with `inducing`; None for none.
        tau: temperature over rivals.
        beta: of the class probabilities.
        jitter: added to K_PP; 1e-6 of the kernel's mean variance unless given.
        wide_jitter: the same for the mean's own basis; `jitter` unless given.
    """

    def __init__(
        self,
        kernel: gpflow.kernels.Kernel,
        inducing: Array,
        n_classes: int,
        *,
        wide: Array | None = None,
        tau: float = TAU,
        beta: float = 1.5,
        jitter: float | None = None,
        wide_jitter: float | None = None,
    ) -> None:
        super().__init__(kernel, LargeMargin(n_classes, tau, beta), num_latent_gps=n_classes)
        self.tau = tau
        self.inducing_variable = gpflow.inducing_variables.InducingPoints(
            np.array(inducing, dtype=np.float64)
        )
        gpflow.set_trainable(self.inducing_variable, False)
        P = len(inducing)
        self.q_mu = gpflow.Parameter(np.zeros((P, n_classes)), name="q_mu")
        self.q_sqrt = gpflow.Parameter(
            np.broadcast_to(np.eye(P), (n_classes, P, P)).copy(),
            transform=gpflow.utilities.triangular(),
            name="q_sqrt",
        )
        self.wide_variable = None
        if wide is not None:
            self.wide_variable = gpflow.inducing_variables.InducingPoints(np.array(wide, dtype=np.float64))
            gpflow.set_trainable(self.wide_variable, False)
            self.wide_mu = gpflow.Parameter(np.zeros((len(wide), n_classes)), name="wide_mu")
        if jitter is None:
            points = tf.convert_to_tensor(np.asarray(inducing, dtype=np.float64))
            jitter = relative_jitter(np.float64) * float(tf.reduce_mean(kernel(points, full_cov=False)))
        self.jitter = jitter
        self.wide_jitter = jitter if wide_jitter is None else wide_jitter

    @property
    def posterior(self) -> Posterior:
        """q(v) as the solver has it."""
        lower = self.q_sqrt.numpy()
        return Posterior.of_covariance(self.q_mu.numpy(), lower @ lower.transpose(0, 2, 1))

    def assign(self, mean: Floats, covariance: Floats, wide_mean: Floats | None = None) -> None:
        """Set q(v).

        Args:
            mean: [P, C].
            covariance: [C, P, P].
            wide_mean: [B, C], for a model with a basis of its own for the mean.
        """
        self.q_mu.assign(np.asarray(mean, dtype=np.float64))
        self.q_sqrt.assign(np.linalg.cholesky(np.asarray(covariance, dtype=np.float64)))
        if wide_mean is not None:
            self.wide_mu.assign(np.asarray(wide_mean, dtype=np.float64))

    def fit(
        self,
        data: tuple[Array, Array],
        *,
        warm_start: bool = True,
        rivals: int | None = None,
        sweeps: int = large_margin.SWEEPS,
        tolerance: float = large_margin.TOLERANCE,
        callback: FitCallback | None = None,
    ) -> LargeMarginFit:
        """Closed-form sweeps on the small basis, from the present q.

        Args:
            data: X [N, D] and class codes Y [N] or [N, 1].
            warm_start: from the present q; else from the prior.
            rivals, sweeps, tolerance, callback: as in `workbench.engine.large_margin.fit`.

        Returns:
            The fit, also stored in `q_mu` and `q_sqrt`. A wide mean, of the rows before, is dropped.
        """
        X, Y = data
        phi, residual = self._project(
            tf.convert_to_tensor(np.asarray(X, dtype=np.float64)), self.inducing_variable, self.jitter
        )
        fit = large_margin.fit(
            phi.numpy(),
            residual.numpy(),
            np.asarray(Y).reshape(-1).astype(np.int64),
            self.num_latent_gps,
            start=self.posterior if warm_start else None,
            tau=self.tau,
            rivals=rivals,
            sweeps=sweeps,
            tolerance=tolerance,
            callback=callback,
        )
        self.assign(fit.posterior.mean, fit.posterior.covariance)
        self.wide_variable = None  # its mean was of other rows: the small basis has it now
        return fit

    def prior_kl(self) -> tf.Tensor:
        """Sum over classes of KL(q(v_c) || N(0, I))."""
        return gpflow.kullback_leiblers.gauss_kl(self.q_mu, self.q_sqrt, None)

    def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
        """G of the small basis: differentiable in every parameter.

        Args:
            data: X [N, D] and codes Y [N, 1].
        """
        X, Y = data
        mean, variance = self._marginals(X, wide=False)
        return tf.reduce_sum(self.likelihood.variational_expectations(X, mean, variance, Y)) - self.prior_kl()

    def predict_f(self, Xnew: Any, full_cov: bool = False, full_output_cov: bool = False) -> Any:
        """Mean [N, C] and variance [N, C] of the latents (or [C, N, N] with `full_cov`)."""
        if full_output_cov:
            raise InputError("The latents are independent: full_output_cov has nothing to show.")
        if not full_cov:
            return self._marginals(Xnew, wide=True)
        phi, _ = self._project(Xnew, self.inducing_variable, self.jitter)
        half = tf.einsum("np,cpq->cnq", phi, self.q_sqrt)
        cov = (
            self.kernel(Xnew)
            - tf.matmul(phi, phi, transpose_b=True)
            + tf.matmul(half, half, transpose_b=True)
        )
        return self._marginals(Xnew, wide=True)[0], cov

    def _project(self, X: Any, points: Any, jitter: float) -> tuple[Any, Any]:
        K = gpflow.covariances.Kuu(points, self.kernel, jitter=jitter)
        cross = gpflow.covariances.Kuf(points, self.kernel, X)
        phi = tf.transpose(tf.linalg.triangular_solve(tf.linalg.cholesky(K), cross))
        residual = self.kernel(X, full_cov=False) - tf.reduce_sum(phi * phi, 1)
        return phi, tf.maximum(residual, tf.cast(0.0, residual.dtype))

    def _marginals(self, X: Any, wide: bool) -> tuple[Any, Any]:
        X = tf.convert_to_tensor(X)
        phi, residual = self._project(X, self.inducing_variable, self.jitter)
        V = tf.reduce_sum(tf.square(tf.einsum("np,cpq->cnq", phi, self.q_sqrt)), 2)
        variance = residual[:, None] + tf.transpose(V)
        if wide and self.wide_variable is not None:
            phi = self._project(X, self.wide_variable, self.wide_jitter)[0]
            return phi @ self.wide_mu, variance
        return phi @ self.q_mu, variance
