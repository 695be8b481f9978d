"""Fitted posteriors as GPflow's own models, made on request from arrays.

A GPflow object costs time and memory to make; the loop of fits and predictions works on arrays.
"""

from typing import Any

import gpflow as _gpflow
import numpy as np
import tensorflow as _tensorflow

from workbench.arrays import Array
from workbench.engine.kernels import Kernel, to_gpflow
from workbench.engine.projection import Basis

tf: Any = _tensorflow
gpflow: Any = _gpflow


class Jittered(gpflow.kernels.Kernel):
    """A kernel whose covariance of a set with itself has `jitter` added to the diagonal.

    GPflow adds one absolute jitter to every model; ours is relative to the kernel variance. This
    carries the difference, so that both factor the same matrix.

    Args:
        kernel: the kernel.
        jitter: may be negative.
    """

    def __init__(self, kernel: Any, jitter: float) -> None:
        super().__init__()
        self.kernel = kernel
        self.jitter = jitter

    def K(self, X: Any, X2: Any = None) -> Any:
        """[N, N2] covariances."""
        K = self.kernel(X, X2)
        if X2 is not None:
            return K
        return K + self.jitter * tf.eye(tf.shape(X)[-2], dtype=K.dtype)

    def K_diag(self, X: Any) -> Any:
        """[N] variances, without jitter."""
        return self.kernel(X, full_cov=False)


class FunctionMean(gpflow.functions.MeanFunction):
    """A mean function that is any function of the rows.

    Args:
        function: tensor X [N, D] -> [N, C].
    """

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def __call__(self, X: Any) -> Any:
        """[N, C] means."""
        return self.function(X)


def as_svgp(
    likelihood: Any,
    kernel: Kernel,
    basis: Basis,
    mean: Array,
    q_sqrt: Array,
    *,
    mean_function: Any = 0.0,
    n_rows: int | None = None,
) -> gpflow.models.SVGP:
    """A whitened posterior as a `gpflow.models.SVGP`, in float64.

    Args:
        likelihood: a GPflow likelihood.
        kernel: of the latents.
        basis: P inducing points.
        mean: [P, C] whitened means.
        q_sqrt: [C, P, P] lower triangular, q_sqrt q_sqrt' the covariances.
        mean_function: a GPflow mean function, or prior means, one or [C].
        n_rows: N, for bounds of minibatches.

    Returns:
        The model; `predict_f` equals the predictor, `elbo` the objective.
    """
    if not isinstance(mean_function, gpflow.functions.MeanFunction):
        constant = np.asarray(mean_function, dtype=np.float64)
        mean_function = gpflow.functions.Constant(constant) if constant.any() else None
    return gpflow.models.SVGP(
        Jittered(to_gpflow(kernel), basis.jitter - gpflow.config.default_jitter()),
        likelihood,
        gpflow.inducing_variables.InducingPoints(basis.points),
        mean_function=mean_function,
        num_latent_gps=mean.shape[1],
        q_mu=np.asarray(mean, dtype=np.float64),
        q_sqrt=np.asarray(q_sqrt, dtype=np.float64),
        whiten=True,
        num_data=n_rows,
    )
