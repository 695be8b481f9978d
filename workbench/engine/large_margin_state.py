"""Values that the large-margin solvers pass around: data, posteriors, and their signatures.

Posteriors of fewer rows than inducing points are the prior everywhere but in the span of the rows. With
phi = L Q' ([n, n] and [n, P], n < P) the data term sees Q'v alone, and what is orthogonal to the rows stays
at the prior, N(0, I). So a fit works on the n coefficients Q'v, whose features are L: the same optimum and
the same steps, at (n / P)^3 of the price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from workbench.arrays import Floats, Ints
from workbench.engine.augmentation import AugmentedHinge, rival_pull, rival_weight, tempered_shares
from workbench.engine.wide_mean import by_class


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

    @classmethod
    def of(
        cls, phi: Floats, residual: Floats, codes: Ints, n_classes: int, offset: Floats | None = None
    ) -> Data:
        """Rows in the precision of phi; an offset of zeros where there is none."""
        offsets = np.zeros((len(phi), n_classes), phi.dtype) if offset is None else offset
        left_open = residual.astype(phi.dtype, copy=False)
        return cls(phi, left_open, codes.astype(np.int32), offsets.astype(phi.dtype, copy=False))

    def rows(self, some: Any) -> Data:
        """These rows alone."""
        return Data(*(part[some] for part in self))


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


WORTH = 0.85  # rows for each point up to which it pays


class SpannedPosterior:
    """q(v_c) that is the prior outside the span of some axes; whole arrays are made when asked for.

    Args:
        inner: of the n coefficients Q'v.
        axes: [P, n] Q, orthonormal columns.

    Attributes:
        mean: [P, C], as of `Posterior`.
    """

    def __init__(self, inner: Posterior, axes: Floats) -> None:
        self.inner, self.axes = inner, axes
        self.mean: Floats = axes @ inner.mean

    @cached_property
    def precision(self) -> Floats:
        """[C, P, P]."""
        return _around_identity(self.axes, self.inner.precision)

    @cached_property
    def root(self) -> Floats:
        """[C, P, P], lower triangular, as of `Posterior`."""
        return inverse_roots(self.precision)

    covariance: Any = Posterior.covariance  # [C, P, P] S_c

    def __iter__(self) -> Iterator[Floats]:
        return iter((self.mean, self.precision, self.root))


class RowTerms(NamedTuple):
    """Messages of the rows at the end of a fit; they stay much the same at another kernel or other points.

    At an optimum the precision is Lam_c = I + Phi' diag(W_c) Phi and the mean Lam_c^-1 Phi' (W_c F_c + u_c),
    with u = dG/dF and W the weights of section 2 of docs/math.md. With the Phi of another kernel they are a
    start near its optimum.

    Attributes:
        weight: [N, C] W.
        target: [N, C] W F + u.
    """

    weight: Floats
    target: Floats

    @classmethod
    def of(cls, F: Floats, margin: Floats, second: Floats, rivals: Ints, codes: Ints, tau: float) -> RowTerms:
        """From where a fit ended.

        Args:
            F: [N, C] latent means of the rows, without an offset.
            margin: [N, k] d.
            second: [N, k] a.
            rivals: [N, k] listed classes.
            codes: [N] true classes.
            tau: temperature.
        """
        hinge = AugmentedHinge(margin, np.sqrt(second))
        share = tempered_shares(hinge.bound, tau).share
        pull, weights = rival_pull(hinge, share), rival_weight(hinge, share)
        slope, weight = (
            by_class(values, own.sum(axis=1), rivals, codes, F.shape[1])
            for values, own in ((-pull, pull), (weights, weights))
        )
        return cls(weight, weight * F + slope)

    def posterior(self, phi: Floats) -> Posterior:
        """The start that these terms make on other features phi [N, P] of the same rows."""
        weighted = np.sqrt(self.weight.T)[:, :, None] * phi
        precision = np.matmul(weighted.transpose(0, 2, 1), weighted)
        places = np.arange(phi.shape[1])
        precision[:, places, places] += 1.0
        roots = inverse_roots(precision)
        half = np.matmul(roots, (phi.T @ self.target).T[:, :, None])
        mean = np.matmul(roots.transpose(0, 2, 1), half)[:, :, 0].T
        return Posterior(np.ascontiguousarray(mean), precision, roots)


def spanned(phi: Floats) -> tuple[Floats, Floats]:
    """Rows phi [n, P], n < P, as L [n, n] and orthonormal Q [P, n] with phi = L Q'."""
    axes, upper = np.linalg.qr(phi.T)
    return np.ascontiguousarray(upper.T), axes


def within(start: Posterior | SpannedPosterior, axes: Floats) -> Posterior:
    """A start for the coefficients of some axes: exact where it is the prior outside of their span.

    Args:
        start: of all points.
        axes: [P, n].
    """
    mean = axes.T @ start.mean
    if isinstance(start, SpannedPosterior):
        precision = _around_identity(axes.T @ start.axes, start.inner.precision)
    else:
        precision = np.matmul(axes.T @ start.precision, axes)
    return Posterior(mean, precision, inverse_roots(precision))


def _around_identity(turn: Floats, precision: Floats) -> Floats:
    """I + T (Lam_c - I) T' for T [m, n] and Lam [C, n, n]."""
    excess = precision - np.eye(precision.shape[1], dtype=precision.dtype)
    matrices: Floats = np.matmul(turn @ excess, turn.T)
    places = np.arange(len(turn))
    matrices[:, places, places] += 1.0
    return matrices


def factors(precision: Floats) -> list[Floats]:
    """Lower triangular chol(precision_c) of [C, n, n].

    Raises:
        LinAlgError: one is not positive.
    """
    from scipy.linalg import LinAlgError, get_lapack_funcs

    (potrf,) = get_lapack_funcs(("potrf",), (precision,))
    lowers = []
    for matrix in precision:
        lower, failed = potrf(matrix.T, lower=1, clean=1)  # symmetric: its transpose lies as LAPACK wants it
        if failed:
            raise LinAlgError("a precision is not positive")
        lowers.append(lower)
    return lowers


def inverse_roots(precision: Floats) -> Floats:
    """R_c = chol(precision_c)^-1 [C, n, n], lower triangular.

    Raises:
        LinAlgError: one is not positive.
    """
    from scipy.linalg import get_lapack_funcs

    (trtri,) = get_lapack_funcs(("trtri",), (precision,))
    roots = np.empty_like(precision)
    for c, lower in enumerate(factors(precision)):
        roots[c] = trtri(lower, lower=1, overwrite_c=1)[0]
    return roots
