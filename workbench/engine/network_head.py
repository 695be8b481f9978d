"""The large-margin head in front of a network (LMGP-DNN, Wistuba & Rawat 2018, 2019; docs/math.md, 10).

Network and head maximise

    sum_n [ -tau log sum_t exp(g_nt / tau) ] - KL(q || p),  g = d + sqrt(a),
    d = 1 + F_t - F_y,  a = d^2 + 2 r + V_t + V_y,

over the network's weights, the inducing points Z and q(v_c) = N(m_c, L_c L_c'), by Adam
(`network_training`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from workbench.arrays import Floats
from workbench.engine.augmentation import rival_hinges, tempered_maximum, without_own
from workbench.engine.whitened import kl, project

JITTER = 1e-5  # relative to the kernel's variance: points may meet while they move


class Head(NamedTuple):
    """Variables that joint training moves besides the network.

    Attributes:
        points: [P, d] inducing points in feature space.
        mean: [P, C] whitened means of q.
        factor: [C, P, P] lower factors of the whitened covariances: below the diagonal as they
            are, on it their logarithms, so that no step can leave the domain.
    """

    points: Any
    mean: Any
    factor: Any

    @classmethod
    def of(cls, points: Floats, mean: Floats, covariance: Floats) -> Head:
        """Take a posterior apart.

        Args:
            points: [P, d].
            mean: [P, C].
            covariance: [C, P, P].
        """
        factor = np.linalg.cholesky(covariance)
        diagonal = np.arange(factor.shape[1])
        factor[:, diagonal, diagonal] = np.log(factor[:, diagonal, diagonal])
        return cls(np.array(points, np.float64), np.array(mean, np.float64), factor)

    @property
    def covariance(self) -> Floats:
        """[C, P, P]."""
        factor = np.tril(np.asarray(self.factor), -1)
        diagonal = np.arange(factor.shape[1])
        factor[:, diagonal, diagonal] = np.exp(np.asarray(self.factor)[:, diagonal, diagonal])
        return np.matmul(factor, factor.transpose(0, 2, 1))


def _lower(raw: Any) -> Any:
    return tf.linalg.set_diag(tf.linalg.band_part(raw, -1, 0), tf.exp(tf.linalg.diag_part(raw)))


def head_moments(head: Head, kernel: Any, features: Any) -> tuple[Any, Any, Any]:
    """Latent mean [n, C], q's share of the variance [n, C] and what the points leave open [n].

    Args:
        head: tensors, float64.
        kernel: [2] variance and length scale of the squared exponential.
        features: [n, d] float64.
    """
    phi, residual = project("squared-exponential", features, head.points, kernel[1], kernel[0], JITTER)
    B = tf.matmul(phi[None], _lower(head.factor))  # [C, n, P]
    return tf.matmul(phi, head.mean), tf.transpose(tf.reduce_sum(B * B, 2)), residual


def margin_loss(mean: Any, share: Any, residual: Any, codes: Any, tau: Any) -> Any:
    """[n] minus the objective's term of each row: tempered maximum over rivals of g.

    Args:
        mean: [n, C].
        share: [n, C] q's share of the variance.
        residual: [n] what the points leave open.
        codes: [n] true classes.
        tau: temperature over rivals.
    """
    one_hot = tf.one_hot(codes, tf.shape(mean)[1], dtype=mean.dtype)
    hinge = rival_hinges(mean, share + residual[:, None], one_hot, tf)
    return tempered_maximum(without_own(hinge.bound, one_hot, tf), tau)


def head_kl(head: Head) -> Any:
    """KL(q || p) over all classes."""
    return kl(head.mean, _lower(head.factor))
