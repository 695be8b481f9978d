"""What the large-margin solvers share, as functions to be traced."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def specs(C: int, dtype: Any) -> tuple[list[Any], list[Any], Any, Any]:
    """Signatures of the data, of a posterior, of a number and of a count."""
    data = [tf.TensorSpec([None, None], dtype), tf.TensorSpec([None], dtype), tf.TensorSpec([None], tf.int32)]
    cube = tf.TensorSpec([C, None, None], dtype)
    posterior = [tf.TensorSpec([None, C], dtype), cube, cube]
    return data, posterior, tf.TensorSpec([], dtype), tf.TensorSpec([], tf.int32)


def kl(M, R):  # type: ignore[no-untyped-def]
    """sum_c KL(N(m_c, R_c'R_c) || N(0, I)) for triangular R_c."""
    return kl_of(R) + half_squares(M)


def kl_of(R):  # type: ignore[no-untyped-def]
    """The covariances' share of `kl`."""
    log_det = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(R)))
    size = tf.cast(tf.shape(R)[0] * tf.shape(R)[1], R.dtype)
    return 0.5 * (tf.reduce_sum(R * R) - size - log_det)


def half_squares(M):  # type: ignore[no-untyped-def]
    """The means' share of `kl`."""
    return 0.5 * tf.reduce_sum(M * M)


def row_squares(A, R, blocked):  # type: ignore[no-untyped-def]
    """|R a_n|^2 for lower triangular R; in 2 x 2 blocks three quarters of the flops."""
    if not blocked:
        B = tf.matmul(A, R, transpose_b=True)
        return tf.reduce_sum(B * B, 1)
    h = tf.shape(R)[0] // 2
    top = tf.matmul(A[:, :h], R[:h, :h], transpose_b=True)
    low = tf.matmul(A, R[h:], transpose_b=True)
    return tf.reduce_sum(top * top, 1) + tf.reduce_sum(low * low, 1)


def gram(A, blocked):  # type: ignore[no-untyped-def]
    """A'A, which is symmetric."""
    if not blocked:
        return tf.matmul(A, A, transpose_a=True)
    h = tf.shape(A)[1] // 2
    left, right = A[:, :h], A[:, h:]
    cross = tf.matmul(left, right, transpose_a=True)
    top = tf.concat([tf.matmul(left, left, transpose_a=True), cross], 1)
    low = tf.concat([tf.transpose(cross), tf.matmul(right, right, transpose_a=True)], 1)
    return tf.concat([top, low], 0)
