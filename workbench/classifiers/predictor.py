"""Latent marginals without TensorFlow: what scoring, maps, workers and saved models use.

With S_c = I - U_c U_c' the projection's remainder cancels (docs/math.md, 7):
mean = k(x, Z) W_0 and variance_c = k_nn - |k(x, Z) W_c|^2, where W_c = L^-T U_c has only as many
columns as class c has learnt directions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from workbench.arrays import Array, Floats, Ints, slices
from workbench.classifiers.geometry import Geometry, prefixed, within
from workbench.classifiers.latent import Latent
from workbench.classifiers.representation import Representation
from workbench.engine.kernels import GPflowKernel, Kernel, kernel_from_arrays
from workbench.engine.projection import CHUNK, Basis

_ARRAYS = ("shift", "scale", "clip", "points", "mean_weights", "mean_offset", "whitener", "binary")
_BLOCKS = 4  # a triangular root in so many steps: 5/8 of the flops
_COLUMNS = 512  # at a time: what comes out of a product stays in the cache


class Projection:
    """Rows projected on a predictor's points by its kernel, whatever the posterior.

    Args:
        kernel_block: [N, B] k(x, points); None where only what is whitened is kept.
        whiten: makes `whitened`.
    """

    def __init__(self, kernel_block: Floats | None, whiten: Callable[[], tuple[Floats, Floats]]) -> None:
        self.kernel_block, self._whiten = kernel_block, whiten

    @cached_property
    def whitened(self) -> tuple[Floats, Floats]:
        """Features phi [P, N] and the variance [N] that the points leave open, float32."""
        return self._whiten()


class Folded(NamedTuple):
    """Covariances as directions in which they differ from the prior.

    Attributes:
        factors: [P, sum of ranks] the W_c side by side; they lower the variance.
        ranks: [C] columns of `factors` that belong to each class.
        raises, raise_ranks: the same for directions in which S_c exceeds the prior; mostly empty.
    """

    factors: Floats
    ranks: Ints
    raises: Floats
    raise_ranks: Ints


class Predictor:
    """X [N, D] raw features -> Latent [N, C]. Picklable, NumPy only, float64 or float32.

    Attributes:
        shift, scale, clip: the geometry's scaling.
        kernel: covariance function on scaled features.
        points: [B, D] points of the mean; the first P also carry the variance.
        mean_weights: [B, C] W_0.
        mean_offset: [C] prior mean of each latent.
        whitener: [P, P] L^-T of the first P points.
        folded, roots: the covariances in two forms, each made from the other when it is asked for.
        binary: one latent f, answered as (-f/2, +f/2).
        representation: the geometry's, applied before the scaling.
    """

    def __init__(
        self,
        *,
        shift: Floats,
        scale: Floats,
        clip: float,
        kernel: Kernel,
        points: Floats,
        mean_weights: Floats,
        mean_offset: Floats,
        whitener: Floats,
        folded: Folded | None = None,
        roots: Floats | None = None,
        binary: bool = False,
        dtype: Any = np.float64,
        representation: Representation | None = None,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.representation = representation
        self.shift, self.scale, self.clip = shift, scale, float(clip)
        self.kernel = kernel
        self.points = points.astype(self.dtype, copy=False)
        self.mean_weights = mean_weights.astype(self.dtype, copy=False)
        self.mean_offset = mean_offset.astype(self.dtype, copy=False)
        self.whitener = whitener.astype(self.dtype, copy=False)
        self.binary = bool(binary)
        if folded is not None:
            self.folded = Folded(
                folded.factors.astype(self.dtype, copy=False),
                np.asarray(folded.ranks, dtype=np.int64),
                folded.raises.astype(self.dtype, copy=False),
                np.asarray(folded.raise_ranks, dtype=np.int64),
            )
        if roots is not None:
            self.roots = roots

    @property
    def n_features(self) -> int:
        """D of the rows it takes; a representation gives the scaling more columns than that."""
        return len(self.shift) if self.representation is None else self.representation.n_features

    @cached_property
    def folded(self) -> Folded:
        """The covariances as `Folded`, in the predictor's precision."""
        roots = self.roots.astype(np.float64, copy=False)
        fold = _fold(np.matmul(roots.transpose(0, 2, 1), roots), self.whitener.astype(np.float64, copy=False))
        return fold._replace(factors=fold.factors.astype(self.dtype), raises=fold.raises.astype(self.dtype))

    @cached_property
    def roots(self) -> Floats:
        """[C, P, P] lower triangular R_c with S_c = R_c' R_c, float64."""
        whitener = self.whitener.astype(np.float64, copy=False)
        factors, ranks, raises, raise_ranks = self.folded
        P = len(whitener)
        covariance = np.tile(np.eye(P), (len(ranks), 1, 1))
        for sign, part, widths in ((-1.0, factors, ranks), (1.0, raises, raise_ranks)):
            columns = solve_triangular(whitener, part)
            for S, U in zip(covariance, np.split(columns, np.cumsum(widths)[:-1], axis=1), strict=True):
                S += sign * (U @ U.T)
        return np.stack([_root(S) for S in covariance])

    @classmethod
    def from_posterior(
        cls,
        geometry: Geometry,
        kernel: Kernel,
        basis: Basis,
        mean: Floats,
        covariance: Floats | None,
        *,
        roots: Floats | None = None,
        mean_basis: Basis | None = None,
        mean_offset: Floats | float = 0.0,
        binary: bool = False,
        dtype: Any = np.float64,
    ) -> Predictor:
        """Fold a whitened posterior q(v_c) = N(m_c, S_c).

        Args:
            geometry: for scaling raw features.
            kernel: of all latents.
            basis: P inducing points.
            mean: [P, C] whitened means, or [B, C] in the mean's basis.
            covariance: [C, P, P] whitened S_c; None where `roots` are at hand.
            roots: [C, P, P] lower triangular R_c with S_c = R_c' R_c.
            mean_basis: B points whose first P are the basis's, if the mean has its own.
            mean_offset: prior mean, one or [C].
            binary: C is 1 and stands for (-f/2, +f/2).
            dtype: of the computation.

        Returns:
            The predictor.
        """
        wide = basis if mean_basis is None else mean_basis
        n_latent = mean.shape[1]
        whitener = np.asarray(basis.whitener, dtype=np.float64)
        return cls(
            shift=geometry.shift,
            scale=geometry.scale,
            clip=geometry.clip,
            kernel=kernel,
            points=wide.points,
            mean_weights=wide.whitener @ np.asarray(mean, dtype=np.float64),
            mean_offset=np.broadcast_to(np.asarray(mean_offset, dtype=np.float64), (n_latent,)).copy(),
            whitener=whitener,
            folded=None if covariance is None else _fold(np.asarray(covariance, np.float64), whitener),
            roots=roots,
            binary=binary,
            dtype=dtype,
            representation=geometry.representation,
        )

    def scaled(self, X: Array) -> Floats:
        """[N, D] features as the kernel sees them."""
        features: Floats = np.asarray(X, dtype=np.float64)
        if self.representation is not None:
            features = self.representation.transform(features)
        scaled = (features - self.shift) / self.scale
        if np.isfinite(self.clip):
            np.clip(scaled, -self.clip, self.clip, out=scaled)
        return scaled.astype(self.dtype, copy=False)

    def __call__(self, X: Array) -> Latent:
        """Latent mean and variance [N, C] of raw features X [N, D], in chunks of rows."""
        n, n_latent = len(X), self.mean_weights.shape[1]
        n_columns = 2 if self.binary else n_latent
        mean = np.empty((n, n_columns), dtype=self.dtype)
        variance = np.empty((n, n_columns), dtype=self.dtype)
        for rows in slices(n, CHUNK):
            m, v = self._chunk(self.scaled(X[rows]))
            if self.binary:
                m, v = both_sides(m, v)
            mean[rows], variance[rows] = m, v
        return Latent(mean, variance)

    def mean(self, X: Array) -> Floats:
        """[N, C] latent means alone, of raw features X [N, D]."""
        n, n_latent = len(X), self.mean_weights.shape[1]
        result = np.empty((n, n_latent), dtype=self.dtype)
        for rows in slices(n, CHUNK):
            np.matmul(self._kernel_block(X[rows]), self.mean_weights, out=result[rows])
        result += self.mean_offset
        return self._as_columns(result)

    def project(self, X: Array) -> Floats:
        """Whitened features phi [N, P] of raw features X [N, D]."""
        points = self.points[: len(self.whitener)]
        phi = np.empty((len(X), len(points)), dtype=self.dtype)
        for rows in slices(len(X), CHUNK):
            np.matmul(self.kernel(self.scaled(X[rows]), points), self.whitener, out=phi[rows])
        return phi

    def covariance(self, X: Array, others: Array) -> Floats:
        """Posterior covariances [C, n, m] of each latent between raw features X [n, D] and others [m, D].

        (R_c phi_x)'(R_c phi_t) + k(x, t) - phi_x'phi_t (docs/math.md, 7 and 11).
        """
        phi, far = (np.asarray(self.project(rows), dtype=np.float64) for rows in (X, others))
        left, right = (np.matmul(self.roots, rows.T) for rows in (phi, far))
        between = self.kernel(self.scaled(X), self.scaled(others)) - phi @ far.T
        result: Floats = np.matmul(left.transpose(0, 2, 1), right) + between
        return np.repeat(0.5 * result, 2, axis=0) if self.binary else result

    def projected(self, X: Array, *, compact: bool = False) -> Projection | None:
        """Inputs of `latent_at` for raw features X [N, D]; None for a kernel that has no description.

        Args:
            X: [N, D] raw features.
            compact: keep float32 alone: the kernel's block where the mean has more points than the variance.
        """
        if isinstance(self.kernel, GPflowKernel):
            return None
        P = len(self.whitener)
        kernel_block: Floats | None = None
        if not compact or len(self.points) > P:
            kernel_block = np.empty((len(X), len(self.points)), np.float32 if compact else self.dtype)
            for rows in slices(len(X), CHUNK):
                kernel_block[rows] = self._kernel_block(X[rows])

        def whiten() -> tuple[Floats, Floats]:
            phi, residual = np.empty((P, len(X)), np.float32), np.empty(len(X), np.float32)
            for rows in slices(len(X), CHUNK):
                scaled = self.scaled(X[rows])
                K = (
                    self.kernel(scaled, self.points)
                    if kernel_block is None or compact
                    else kernel_block[rows]
                )
                part = K[:, :P] @ self.whitener
                phi[:, rows] = part.T
                prior = self.kernel.diagonal(scaled)
                residual[rows] = np.maximum(prior - np.einsum("np,np->n", part, part), 0.0)
            return phi, residual

        return Projection(kernel_block, whiten)

    def latent_at(self, projection: Projection) -> Latent:
        """Latent mean and variance [N, C] of rows whose projection is known, in float32.

        Args:
            projection: by a predictor of the same points and kernel, see `projects_like`.
        """
        mean = self._mean_at(projection)
        phi, residual = projection.whitened
        variance = _quadratic_forms(phi, self.roots.astype(np.float32)) + residual
        variance = np.ascontiguousarray(variance.T)
        return Latent(*both_sides(mean, variance)) if self.binary else Latent(mean, variance)

    def mean_at(self, projection: Projection) -> Floats:
        """The mean of `latent_at` alone [N, C], to the same bytes: the variances are most of its work."""
        return self._as_columns(self._mean_at(projection))

    def _as_columns(self, mean: Floats) -> Floats:
        return np.concatenate([-0.5 * mean, 0.5 * mean], axis=1) if self.binary else mean

    def _mean_at(self, projection: Projection) -> Floats:
        if projection.kernel_block is None:
            weights = solve_triangular(self.whitener.astype(np.float64, copy=False), self.mean_weights)
            mean: Floats = (weights.T.astype(np.float32) @ projection.whitened[0]).T
        else:
            K = projection.kernel_block
            mean = (K @ self.mean_weights.astype(K.dtype, copy=False)).astype(np.float32, copy=False)
        mean += self.mean_offset.astype(np.float32)
        return np.ascontiguousarray(mean)

    def projects_like(self, other: Predictor) -> bool:
        """True if a projection made by the other predictor serves this one."""
        if self is other:
            return True
        if isinstance(self.kernel, GPflowKernel) or isinstance(other.kernel, GPflowKernel):
            return False
        return (
            (self.clip, self.dtype) == (other.clip, other.dtype)
            and len(self.whitener) == len(other.whitener)
            and all(
                a is b or np.array_equal(a, b)
                for a, b in (
                    (self.points, other.points),
                    (self.shift, other.shift),
                    (self.scale, other.scale),
                )
            )
            and _same(self.kernel.to_arrays(), other.kernel.to_arrays())
            and _same(_written(self), _written(other))
        )

    def _kernel_block(self, X: Array) -> Floats:
        """k(x, points) [N, B] of raw features."""
        return self.kernel(self.scaled(X), self.points)

    def _chunk(self, rows: Floats) -> tuple[Floats, Floats]:
        K = self.kernel(rows, self.points)
        mean = K @ self.mean_weights
        mean += self.mean_offset
        K = K[:, : len(self.whitener)]
        prior = self.kernel.diagonal(rows)[:, None]
        factors, ranks, raises, raise_ranks = self.folded
        variance = prior - _row_squares(K @ factors, ranks)
        if raises.shape[1]:
            variance += _row_squares(K @ raises, raise_ranks)
        return mean, np.maximum(variance, 0.0, out=variance)

    def to_arrays(self) -> dict[str, Array]:
        """Plain arrays, for saving; `from_arrays` is the way back.

        Raises:
            InputError: the kernel is an object that cannot be saved.
        """
        arrays = {name: np.asarray(getattr(self, name)) for name in _ARRAYS} | self.folded._asdict()
        arrays["dtype"] = np.asarray(self.dtype.name)
        return (
            arrays | prefixed("kernel", self.kernel.to_arrays()) | prefixed("representation", _written(self))
        )

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Predictor:
        """The predictor that `to_arrays` took apart."""
        kernel = kernel_from_arrays(within("kernel", arrays))
        representation = within("representation", arrays)
        values: dict[str, Any] = {name: np.asarray(arrays[name]) for name in _ARRAYS}
        values["clip"] = float(values["clip"])
        values["binary"] = bool(values["binary"])
        values["folded"] = Folded(*(np.asarray(arrays[name]) for name in Folded._fields))
        values["representation"] = Representation.from_arrays(representation) if representation else None
        return cls(kernel=kernel, dtype=str(np.asarray(arrays["dtype"])), **values)


def _written(predictor: Predictor) -> dict[str, Array]:
    """The arrays of a predictor's representation; none where columns are taken as they are."""
    return {} if predictor.representation is None else predictor.representation.to_arrays()


def _same(a: Mapping[str, Array], b: Mapping[str, Array]) -> bool:
    return a is b or (
        a.keys() == b.keys() and all(np.array_equal(a[k], b[k], equal_nan=a[k].dtype.kind == "f") for k in a)
    )


def both_sides(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """One latent f, answered as (-f/2, +f/2)."""
    return np.concatenate([-0.5 * mean, 0.5 * mean], axis=1), np.repeat(0.5 * variance, 2, axis=1)


def _fold(covariance: Floats, whitener: Floats) -> Folded:
    down, up = zip(*(_split(S) for S in covariance), strict=True)
    return Folded(
        whitener @ np.concatenate(down, axis=1),
        np.array([U.shape[1] for U in down], dtype=np.int64),
        whitener @ np.concatenate(up, axis=1),
        np.array([U.shape[1] for U in up], dtype=np.int64),
    )


def _root(S: Floats) -> Floats:
    """[P, P] lower triangular R with R' R = S; a covariance that is singular is lifted a little.

    In float32 a direction that is known for certain can come out below zero by its rounding.
    """
    from scipy.linalg import LinAlgError, cholesky

    turned = S[::-1, ::-1]
    for lift in (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-7, 1e-6):
        try:
            upper = cholesky(turned + lift * len(S) * np.eye(len(S)), check_finite=False)
        except LinAlgError:
            continue
        return np.ascontiguousarray(upper[::-1, ::-1])
    raise LinAlgError("a posterior covariance is not positive")


def _quadratic_forms(phi: Floats, roots: Floats) -> Floats:
    """|R_c phi_n|^2 [C, N] of columns phi [P, N] for lower triangular R_c [C, P, P]."""
    C, P = roots.shape[:2]
    edges = np.unique(np.linspace(0, P, _BLOCKS + 1).astype(int)).tolist()
    blocks = [roots[:, low:high, :high].reshape(-1, high) for low, high in itertools.pairwise(edges)]
    out = np.zeros((C, phi.shape[1]), dtype=phi.dtype)
    for part in slices(phi.shape[1], _COLUMNS):
        for rows in blocks:
            B = (rows @ phi[: rows.shape[1], part]).reshape(C, len(rows) // C, -1)
            out[:, part] += np.einsum("ckn,ckn->cn", B, B)
    return out


def _split(S: Floats) -> tuple[Floats, Floats]:
    """Factors of I - S = U U' - T T' with as few columns as its rank (T mostly empty)."""
    from scipy.linalg import eigh
    from scipy.linalg.lapack import dpstrf

    remainder = np.eye(len(S)) - S
    factor, pivots, rank, info = dpstrf(remainder, lower=1, tol=1e-14 * len(S))
    if info >= 0:
        U = np.zeros((len(S), rank))
        U[pivots - 1] = np.tril(factor)[:, :rank]
        error = np.abs(np.diag(remainder) - np.einsum("pr,pr->p", U, U)).max(initial=0.0)
        if error <= 1e-12 * len(S):
            return U, np.zeros((len(S), 0))
    values, vectors = eigh(remainder)  # a covariance larger than the prior in some direction
    down, up = values > 1e-14, values < -1e-14
    return vectors[:, down] * np.sqrt(values[down]), vectors[:, up] * np.sqrt(-values[up])


def _row_squares(B: Floats, ranks: Array) -> Floats:
    """[N, C] sums of squares over each class's columns."""
    np.multiply(B, B, out=B)
    sums = np.zeros((len(B), len(ranks)), dtype=B.dtype)
    starts = np.concatenate([[0], np.cumsum(ranks)[:-1]])
    filled = np.flatnonzero(ranks)
    if filled.size:
        sums[:, filled] = np.add.reduceat(B, starts[filled], axis=1)
    return sums
