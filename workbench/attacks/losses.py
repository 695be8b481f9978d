"""Losses that attacks raise: functions of latent moments and the true class, in TensorFlow.

Each is (mean [n, C], variance [n, C] or None, beta, codes [n]) -> [n], higher = better for the attacker.
Models without latent functions give their logits as means, and no variance: losses that need one are
refused for them beforehand. beta is the inverse temperature of the model's own class probabilities.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def cross_entropy(mean: Any, variance: Any, beta: Any, codes: Any) -> Any:
    """Cross-entropy of the model's own probabilities, softmax(beta mean) [n]."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(codes, beta * mean)


def hinge(mean: Any, variance: Any, beta: Any, codes: Any) -> Any:
    """1 + the largest rival's mean - the true class's mean [n]."""
    return 1.0 + tf.reduce_max(_rivals(mean, codes), 1) - _own(mean, codes)


def objective(mean: Any, variance: Any, beta: Any, codes: Any) -> Any:
    """Eb + sqrt(Eb2) for the rival of largest mean [n]: the large-margin model's loss (docs/math.md, 2)."""
    rival = tf.argmax(_rivals(mean, codes), 1, output_type=tf.int32)
    d = 1.0 + _own(mean, rival) - _own(mean, codes)
    return d + tf.sqrt(d * d + _own(variance, rival) + _own(variance, codes))


def adaptive(mean: Any, variance: Any, beta: Any, codes: Any) -> Any:
    """Margin of the best wrong class t over all others [n].

    The smallest over j of (mu_t - mu_j) / sqrt(s_t^2 + s_j^2), docs/math.md, 10.
    """
    winner = tf.argmax(_rivals(mean, codes), 1, output_type=tf.int32)
    gap = _own(mean, winner)[:, None] - mean
    spread = tf.sqrt(_own(variance, winner)[:, None] + variance + 1e-12)
    return tf.reduce_min(tf.where(_is(mean, winner), tf.cast(float("inf"), mean.dtype), gap / spread), 1)


def _own(values: Any, codes: Any) -> Any:
    return tf.gather(values, codes, batch_dims=1)


def _is(values: Any, codes: Any) -> Any:
    return tf.one_hot(codes, tf.shape(values)[1], on_value=True, off_value=False)


def _rivals(mean: Any, codes: Any) -> Any:
    return tf.where(_is(mean, codes), tf.cast(float("-inf"), mean.dtype), mean)
