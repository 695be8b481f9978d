"""The Bayesian SVM: the hinge loss as a pseudo-likelihood exp(-2 max(0, 1 - y f)), y = -1 or +1.

Written as a mean-variance mixture over lambda_n (Polson & Scott 2011), q(lambda_n) = GIG(1/2, 1,
alpha_n) with alpha_n = Eb2_n = E_q[(1 - y f)^2] at its best, which leaves

    objective = sum_n [ -Eb_n - sqrt(Eb2_n) ] - KL,    Eb_n = 1 - y_n E_q[f_n]

a lower bound on the log pseudo-evidence without Bessel functions. Source: Wenzel et al. 2017,
"Bayesian nonlinear support vector machines for big data" (paper 001), sections 4.1 and 4.2, with
the corrections of its algorithm 1 (factor N/|S|) and equation 13 (square root of the variance).

This is the sparse model's local step for `workbench.engine.conjugate`; several columns are
independent one-vs-rest problems. `workbench.engine.full_svm` has the model without inducing points.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from workbench.engine.full_svm import FLOOR


def hinge(mean: Any, variance: Any, signs: Any, factor: Any) -> tuple[Any, Any, Any]:
    """Slope, curvature and value of the bound at its best alpha.

    Args:
        mean: [n, C] of f.
        variance: [n, C] of f.
        signs: [n, C], -1 or +1.
        factor: not used: one-vs-rest problems do not interact.

    Returns:
        dE/dmean [n, C], -2 dE/dvariance [n, C] = alpha^-1/2, value [n].
    """
    slack = 1.0 - signs * mean  # Eb
    second = tf.maximum(slack * slack + variance, FLOOR[mean.dtype.name])  # Eb2 = alpha
    root = tf.sqrt(second)
    weight = 1.0 / root
    return signs * (1.0 + weight * slack), weight, tf.reduce_sum(-slack - root, axis=1)
