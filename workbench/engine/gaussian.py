"""The posterior of whitened sparse GPs, in plain arrays; NumPy only.

One convention for q(v_c) = N(mean_c, S_c) everywhere in the engine (docs/math.md, 1): means are
[P, C], and `root` [C, P, P] holds triangular R_c with S_c = R_c' R_c, the inverse Cholesky factor
of a precision. GPflow keeps q_sqrt, lower triangular L_c with S_c = L_c L_c'; `q_sqrt_of` and
`root_of` go from one to the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Array, Floats


class State(NamedTuple):
    """q(v_c) = N(mean_c, precision_c^-1) with its statistics; P inducing points, C functions.

    Attributes:
        mean: [P, C].
        root: [C, P, P] inverse Cholesky factor of the precision: covariance_c = root_c' root_c.
        prior_mean: [C] m0.
        precision: [C, P, P].
        linear: [C, P] precision_c mean_c + cross_c m0_c.
        cross: [C, P] s Phi' theta_c: how m0 and v_c interact.
        totals: [2, C] sums over items of (g + theta F) and of theta.
    """

    mean: Any
    root: Any
    prior_mean: Any
    precision: Any
    linear: Any
    cross: Any
    totals: Any

    @classmethod
    def prior(cls, n_inducing: int, n_functions: int, mean: float = 0.0, dtype: Any = np.float64) -> State:
        """Q = the prior.

        Args:
            n_inducing: P.
            n_functions: C.
            mean: m0.
            dtype: float32 or float64.
        """
        P, C = n_inducing, n_functions
        eye = np.broadcast_to(np.eye(P, dtype=dtype), (C, P, P)).copy()
        return cls(
            mean=np.zeros((P, C), dtype),
            root=eye,
            prior_mean=np.full(C, mean, dtype),
            precision=eye.copy(),
            linear=np.zeros((C, P), dtype),
            cross=np.zeros((C, P), dtype),
            totals=np.zeros((2, C), dtype),
        )

    @classmethod
    def of(cls, mean: Array, root: Array) -> State:
        """The state of a posterior given as mean [P, C] and triangular roots [C, P, P]; m0 is 0."""
        P, C = mean.shape
        fresh = cls.prior(P, C, dtype=mean.dtype)
        precision = precision_of(root).astype(mean.dtype)
        linear = np.einsum("cpq,qc->cp", precision, mean)
        return fresh._replace(mean=mean, root=root, precision=precision, linear=linear)

    def numpy(self) -> State:
        """The same in NumPy arrays."""
        return State(*(np.asarray(part) for part in self))


def q_sqrt_of(root: Floats) -> Floats:
    """GPflow's q_sqrt: lower triangular L_c with a positive diagonal and L_c L_c' = R_c' R_c.

    Args:
        root: [C, P, P] roots of any shape.
    """
    upper = np.linalg.qr(np.asarray(root, dtype=np.float64), mode="r")  # R_c = Q U, S_c = U'U
    signs = np.where(np.diagonal(upper, axis1=1, axis2=2) < 0, -1.0, 1.0)
    return np.tril(np.swapaxes(upper * signs[:, :, None], 1, 2)).astype(root.dtype)


def root_of(q_sqrt: Floats) -> Floats:
    """Lower triangular R_c with R_c' R_c = L_c L_c', for GPflow's q_sqrt [C, P, P]."""
    wide: Array = np.asarray(q_sqrt, dtype=np.float64)
    turned = np.flip(wide, (1, 2))  # reversed rows and columns: U U' = L L'
    upper = np.linalg.qr(np.swapaxes(turned, 1, 2), mode="r")
    signs = np.where(np.diagonal(upper, axis1=1, axis2=2) < 0, -1.0, 1.0)
    lower = np.flip(upper * signs[:, :, None], (1, 2))
    return np.tril(lower).astype(q_sqrt.dtype)


def precision_of(root: Floats) -> Floats:
    """[C, P, P] precisions S_c^-1 of triangular roots [C, P, P]."""
    inverse = np.linalg.inv(np.asarray(root, dtype=np.float64))
    return np.matmul(inverse, np.swapaxes(inverse, 1, 2))
