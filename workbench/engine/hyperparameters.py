"""Type-II learning: gradients of a sparse objective with respect to the kernel.

At fixed whitened q(v_c) the KL does not depend on the kernel, so the objective changes through the
moments alone: dO = sum g dF - 1/2 sum theta dV, with the slopes g and curvatures theta of
`workbench.engine.conjugate`. Paper 001, section 4.3 and appendix A.3, by automatic differentiation.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf

from workbench.arrays import Floats
from workbench.engine.conjugate import Block, Local, Posterior, compiled


def _exponential(r2: Any) -> Any:
    return tf.exp(-tf.sqrt(r2))


def _matern32(r2: Any) -> Any:
    r = tf.sqrt(3.0 * r2)
    return (1.0 + r) * tf.exp(-r)


def _matern52(r2: Any) -> Any:
    r = tf.sqrt(5.0 * r2)
    return (1.0 + r + r * r / 3.0) * tf.exp(-r)


_SHAPES = {
    "squared-exponential": lambda r2: tf.exp(-0.5 * r2),
    "exponential": _exponential,
    "matern32": _matern32,
    "matern52": _matern52,
}


@cache
def _compiled(kernel: str, dtype_name: str) -> Any:
    dtype = tf.as_dtype(dtype_name)
    shape = _SHAPES[kernel]

    def spec(*sizes: int | None) -> tf.TensorSpec:
        return tf.TensorSpec(sizes, dtype)

    def covariance(A: Any, B: Any, variance: Any) -> Any:
        r2 = (
            tf.reduce_sum(A * A, 1)[:, None]
            + tf.reduce_sum(B * B, 1)
            - 2.0 * tf.matmul(A, B, transpose_b=True)
        )
        # the floor keeps the square roots' gradients finite where points coincide
        return variance * shape(tf.maximum(r2, 1e-12))

    @tf.function(
        input_signature=[
            spec(None, None),
            spec(None, None),
            spec(None),
            spec(),
            spec(),
            spec(None, None),
            spec(None, None, None),
            spec(None, None),
            spec(None, None),
        ]
    )
    def gradient(X, Z, log_length, log_variance, jitter, mean, root, slope, theta):  # type: ignore[no-untyped-def]
        with tf.GradientTape() as tape:
            tape.watch([log_length, log_variance])
            length, variance = tf.exp(log_length), tf.exp(log_variance)
            A, B = X / length, Z / length
            eye = tf.eye(tf.shape(Z)[0], dtype=dtype)
            L = tf.linalg.cholesky(covariance(B, B, variance) + jitter * variance * eye)
            phi = tf.transpose(tf.linalg.triangular_solve(L, covariance(B, A, variance), lower=True))
            f = tf.matmul(phi, mean)
            rest = variance - tf.reduce_sum(phi * phi, 1)
            v = tf.map_fn(
                lambda R: tf.reduce_sum(tf.square(tf.matmul(phi, R, transpose_b=True)), 1),
                root,
                parallel_iterations=1,
            )
            surrogate = tf.reduce_sum(slope * f) - 0.5 * tf.reduce_sum(
                theta * (rest[:, None] + tf.transpose(v))
            )
        return tape.gradient(surrogate, [log_length, log_variance])

    return gradient


def kernel_gradient(
    local: Local,
    kernel: str,
    X: Floats,
    Z: Floats,
    block: Block,
    posterior: Posterior,
    log_length: Floats,
    log_variance: float,
    jitter: float,
) -> tuple[Floats, float]:
    """D objective / d (log length scale, log variance) from some rows.

    Args:
        local: the likelihood.
        kernel: name of a stationary kernel.
        X: [n, D] scaled features of the block's rows.
        Z: [P, D] inducing points.
        block: the rows, projected with the present kernel.
        posterior: q, whitened; held.
        log_length: [1] or [D].
        log_variance: of the kernel.
        jitter: relative to the variance.

    Returns:
        Gradients of the same shapes; multiply by N/n for rows that stand for N.
    """
    dtype = block.phi.dtype
    slope, theta, _ = compiled(local, dtype.name).slopes(*block, *posterior[:3])
    lengths, variance = _compiled(kernel, dtype.name)(
        X.astype(dtype, copy=False),
        Z.astype(dtype),
        log_length.astype(dtype),
        dtype.type(log_variance),
        dtype.type(jitter),
        posterior.mean,
        posterior.root,
        slope,
        theta,
    )
    return np.asarray(lengths, dtype=np.float64), float(variance)


class Adam:
    """Adam ascent on a vector, for a handful of hyperparameters.

    Args:
        size: of the vector.
        rate: step size.
    """

    def __init__(self, size: int, rate: float = 0.1) -> None:
        self.rate = rate
        self._first = np.zeros(size)
        self._second = np.zeros(size)
        self._count = 0

    def step(self, gradient: Floats) -> Floats:
        """The change to make for this gradient [size]."""
        self._count += 1
        self._first += 0.1 * (gradient - self._first)
        self._second += 0.001 * (gradient**2 - self._second)
        first = self._first / (1.0 - 0.9**self._count)
        second = self._second / (1.0 - 0.999**self._count)
        return self.rate * first / (np.sqrt(second) + 1e-12)
