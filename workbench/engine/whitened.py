"""The whitened sparse GP in TensorFlow: pieces that every solver traces into its own graph.

Posteriors are those of `workbench.engine.gaussian`: means [P, C], roots R_c [C, P, P] with
S_c = R_c' R_c. The transpose of GPflow's q_sqrt is such a root, upper triangular.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from workbench.engine.kernels import stationary

_FEW_ROWS = 256  # so few, [C, n, P] stays in the cache and one product for all classes is the faster one


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


def each_class(function: Callable[..., Any], *parts: Any, gives: Any = None) -> Any:
    """`function` of the slices of every class, one after the other: its results stacked, [C, ...].

    A loop of the graph, not of Python, so that one trace serves any number of classes.

    Args:
        function: of a slice of each of the parts; gives tensors of one shape for all classes.
        parts: tensors with the classes along the first axis.
        gives: dtypes of the results, where there are several; else that of the first part.
    """
    return tf.map_fn(
        lambda slices: function(*slices),
        parts,
        fn_output_signature=gives or parts[0].dtype,
        parallel_iterations=1,
    )


def variances(phi: Any, root: Any, blocked: bool = False) -> Any:
    """V_nc = phi_n' S_c phi_n [n, C], one class at a time: dense [C, n, P] batches are slower."""
    return tf.transpose(each_class(lambda R: row_squares(phi, R, blocked), root))


def variances_at_once(phi: Any, root: Any) -> Any:
    """The same by one product of [n, C P]: quicker where rows are few or a gradient is wanted."""
    B = tf.matmul(phi, tf.reshape(root, [-1, tf.shape(phi)[1]]), transpose_b=True)
    shape = tf.stack([tf.shape(phi)[0], tf.shape(root)[0], tf.shape(root)[1]])
    return tf.reduce_sum(tf.reshape(tf.square(B), shape), 2)


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


def grams(phi: Any, weights: Any, blocked: bool = False) -> Any:
    """Phi' diag(w_c) Phi [C, P, P] for weights [n, C], which `blocked` needs to be at least 0."""
    columns = tf.transpose(weights)
    if blocked:
        return each_class(lambda w: gram(tf.sqrt(w)[:, None] * phi, True), columns)

    def at_once() -> Any:
        return tf.matmul(columns[:, :, None] * phi, phi, transpose_a=True)

    def one_by_one() -> Any:
        return each_class(lambda w: tf.matmul(w[:, None] * phi, phi, transpose_a=True), columns)

    return tf.cond(tf.shape(phi)[0] <= _FEW_ROWS, at_once, one_by_one)


def kl(mean: Any, root: Any) -> Any:
    """Sum over classes of KL(q(v_c) || N(0, I)), for mean [P, C] and triangular roots [C, P, P]."""
    size = tf.cast(tf.shape(root)[0] * tf.shape(root)[1], root.dtype)
    log_det = tf.reduce_sum(tf.math.log(tf.square(tf.linalg.diag_part(root))))
    covariances = tf.reduce_sum(tf.square(root)) - size - log_det
    return 0.5 * (covariances + tf.reduce_sum(tf.square(mean)))


def inverse_root(precision: Any) -> Any:
    """R_c [C, P, P] lower triangular, the inverse Cholesky factor of a precision [C, P, P]."""
    eye = tf.eye(tf.shape(precision)[1], dtype=precision.dtype)
    return tf.linalg.triangular_solve(
        tf.linalg.cholesky(precision), tf.broadcast_to(eye, tf.shape(precision)), lower=True
    )
