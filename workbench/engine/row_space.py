"""Posteriors of fewer rows than inducing points: the prior everywhere but in the span of the rows.

With phi = L Q' ([n, n] and [n, P], n < P) the data term sees Q'v alone, and what is orthogonal to the rows
stays at the prior, N(0, I). So a fit works on the n coefficients Q'v, whose features are L: the same
optimum and the same steps, at (n / P)^3 of the price.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.engine.augmentation import AugmentedHinge, rival_pull, rival_weight, tempered_shares
from workbench.engine.large_margin_state import Posterior
from workbench.engine.wide_mean import by_class

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
