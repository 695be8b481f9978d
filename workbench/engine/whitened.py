"""The whitened sparse GP in TensorFlow: pieces that every solver traces into its own graph.

Posteriors are those of `workbench.engine.gaussian`: means [P, C], roots R_c [C, P, P] with
S_c = R_c' R_c. The transpose of GPflow's q_sqrt is such a root, upper triangular.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from workbench.engine.kernels import stationary


def project(kernel: str, X: Any, Z: Any, length: Any, variance: Any, jitter: Any) -> tuple[Any, Any]:
    """Whitened features and what they leave open, differentiable in every tensor.

    Args:
        kernel: one of `workbench.engine.kernels.KERNELS`.
        X: [N, D] scaled features.
        Z: [P, D] inducing points.
        length: length scale, [] or [D].
        variance: of the kernel.
        jitter: on the diagonal of K_PP, relative to the variance.

    Returns:
        phi [N, P] and residual [N] = max(k_nn - |phi_n|^2, 0).
    """
    A, B = X / length, Z / length
    eye = tf.eye(tf.shape(Z)[0], dtype=X.dtype)
    lower = tf.linalg.cholesky(stationary(kernel, B, B, variance, tf) + jitter * variance * eye)
    phi = tf.transpose(tf.linalg.triangular_solve(lower, stationary(kernel, B, A, variance, tf)))
    return phi, tf.maximum(variance - tf.reduce_sum(tf.square(phi), 1), 0.0)


def variances(phi: Any, root: Any, blocked: bool = False) -> Any:
    """V_nc = phi_n' S_c phi_n [n, C], one class at a time: dense [C, n, P] batches are slower."""
    n_classes = root.shape[0]
    if n_classes is not None:
        columns = [row_squares(phi, root[c], blocked) for c in range(n_classes)]
        return tf.stack(columns, axis=1)
    rows = tf.map_fn(lambda R: row_squares(phi, R), root, parallel_iterations=1)
    return tf.transpose(rows)


def row_squares(phi: Any, R: Any, blocked: bool = False) -> Any:
    """|R phi_n|^2 [n]; `blocked`, for lower triangular R, takes three quarters of the flops."""
    if not blocked:
        return tf.reduce_sum(tf.square(tf.matmul(phi, R, transpose_b=True)), axis=1)
    h = tf.shape(R)[0] // 2
    return row_squares(phi[:, :h], R[:h, :h]) + row_squares(phi, R[h:])


def gram(A: Any, blocked: bool = False) -> Any:
    """A'A, which is symmetric: `blocked` does not compute one of its corners."""
    if not blocked:
        return tf.matmul(A, A, transpose_a=True)
    h = tf.shape(A)[1] // 2
    left, right = A[:, :h], A[:, h:]
    cross = tf.matmul(left, right, transpose_a=True)
    top = tf.concat([gram(left), cross], 1)
    return tf.concat([top, tf.concat([tf.transpose(cross), gram(right)], 1)], 0)


def grams(phi: Any, weights: Any) -> Any:
    """Phi' diag(w_c) Phi [C, P, P] for weights [n, C]."""
    n_classes = weights.shape[1]
    if n_classes is not None:
        return tf.stack(
            [tf.matmul(phi, weights[:, c, None] * phi, transpose_a=True) for c in range(n_classes)]
        )
    return tf.map_fn(
        lambda w: tf.matmul(phi, w[:, None] * phi, transpose_a=True),
        tf.transpose(weights),
        parallel_iterations=1,
    )


def kl(mean: Any, root: Any) -> Any:
    """Sum over classes of KL(q(v_c) || N(0, I)), for mean [P, C] and triangular roots [C, P, P]."""
    return kl_of_roots(root) + half_squares(mean)


def kl_of_roots(root: Any) -> Any:
    """The covariances' share of `kl`."""
    size = tf.cast(tf.shape(root)[0] * tf.shape(root)[1], root.dtype)
    log_det = tf.reduce_sum(tf.math.log(tf.square(tf.linalg.diag_part(root))))
    return 0.5 * (tf.reduce_sum(tf.square(root)) - size - log_det)


def half_squares(mean: Any) -> Any:
    """The means' share of `kl`: half the sum of their squares."""
    return 0.5 * tf.reduce_sum(tf.square(mean))


def inverse_root(precision: Any) -> Any:
    """R_c [C, P, P] lower triangular, the inverse Cholesky factor of a precision [C, P, P]."""
    eye = tf.eye(tf.shape(precision)[1], dtype=precision.dtype)
    return tf.linalg.triangular_solve(
        tf.linalg.cholesky(precision), tf.broadcast_to(eye, tf.shape(precision)), lower=True
    )
