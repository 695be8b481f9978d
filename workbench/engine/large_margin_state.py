"""Values that the large-margin solvers pass around: data, posterior, and their signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from workbench.arrays import Floats


class Data(NamedTuple):
    """Labelled rows, projected.

    Attributes:
        phi: [N, P] whitened features.
        residual: [N] variance the inducing points leave open.
        codes: [N] true classes, int32.
        offset: [N, C] mean function at the rows: F = Phi M + offset, so that of a rival the margin
            1 + m_t - m_y is asked.
    """

    phi: Any
    residual: Any
    codes: Any
    offset: Any


class Posterior(NamedTuple):
    """q(v_c) = N(mean_c, precision_c^-1), whitened. A warm start is just this.

    Attributes:
        mean: [P, C].
        precision: [C, P, P].
        root: [C, P, P] R_c = chol(precision_c)^-1, so that S_c = R_c' R_c.
    """

    mean: Any
    precision: Any
    root: Any

    @property
    def covariance(self) -> Floats:
        """[C, P, P] S_c."""
        return np.matmul(self.root.transpose(0, 2, 1), self.root)

    @classmethod
    def of_covariance(cls, mean: Floats, covariance: Floats) -> Posterior:
        """From means [P, C] and covariances S_c [C, P, P]."""
        precision = np.linalg.inv(np.asarray(covariance, dtype=np.float64))
        precision = 0.5 * (precision + precision.transpose(0, 2, 1))
        root = np.tril(np.linalg.inv(np.linalg.cholesky(precision)))
        return cls(mean, precision.astype(mean.dtype), root.astype(mean.dtype))

    @classmethod
    def prior(cls, n_inducing: int, n_classes: int, dtype: Any = np.float64) -> Posterior:
        """The cold start: q is the prior."""
        eye = np.broadcast_to(np.eye(n_inducing, dtype=dtype), (n_classes, n_inducing, n_inducing))
        return cls(np.zeros((n_inducing, n_classes), dtype=dtype), eye.copy(), eye.copy())

    def rearranged(self, before: list[Any], after: list[Any]) -> Posterior:
        """The posterior for another list of classes, matched by label; the prior where one is new."""
        posterior = Posterior.prior(len(self.mean), len(after), self.mean.dtype)
        for new, label in enumerate(after):
            if label in before:
                old = before.index(label)
                posterior.mean[:, new] = self.mean[:, old]
                posterior.precision[new], posterior.root[new] = self.precision[old], self.root[old]
        return posterior


class Signature(NamedTuple):
    """Shapes for compiled functions in one precision; all sizes are open, the number of classes as well."""

    data: Data
    posterior: Posterior
    scalar: Any
    integer: Any


def compiled(*structure: Any) -> Callable[[Callable[..., Any]], Any]:
    """`tf.function` for a body with structured arguments, called with their tensors one after the other.

    Matching structured arguments costs TensorFlow half a millisecond a call, a tenth of a small fit.

    Args:
        structure: of the body's arguments: specs, or tuples of them.
    """
    flat = tf.nest.flatten(structure)

    def wrap(body: Callable[..., Any]) -> Any:
        return tf.function(lambda *tensors: body(*tf.nest.pack_sequence_as(structure, tensors)), flat)

    return wrap


def signature(dtype: Any) -> Signature:
    """The signature in a TensorFlow dtype."""
    matrix, cube = tf.TensorSpec([None, None], dtype), tf.TensorSpec([None, None, None], dtype)
    return Signature(
        Data(matrix, tf.TensorSpec([None], dtype), tf.TensorSpec([None], tf.int32), matrix),
        Posterior(matrix, cube, cube),
        tf.TensorSpec([], dtype),
        tf.TensorSpec([], tf.int32),
    )
