"""Latent marginals without TensorFlow: what scoring, maps, workers and saved models use.

With S_c = I - U_c U_c' the projection's remainder cancels (MATH.md section 7):
mean = k(x, Z) W_0 and variance_c = k_nn - |k(x, Z) W_c|^2, where W_c = L^-T U_c has only as many
columns as class c has learnt directions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers.geometry import Geometry
from workbench.classifiers.latent import Latent
from workbench.engine.projection import CHUNK, Basis, Kernel, StationaryKernel, kernel_from_arrays

_ARRAYS = ("shift", "scale", "clip", "points", "mean_weights", "mean_offset", "factors", "ranks", "raises",
           "raise_ranks", "whitener", "binary")  # fmt: skip


class View(NamedTuple):
    """Rows as a predictor's points and kernel see them, whatever the posterior.

    Attributes:
        phi: [N, P] whitened features, float32.
        kernel_block: [N, B] k(x, points), where the mean has more points than the variance; else None.
        prior: the kernel's variance.
    """

    phi: Floats
    kernel_block: Floats | None
    prior: float


class Predictor:
    """X [N, D] raw features -> Latent [N, C]. Picklable, NumPy only, float64 or float32.

    Attributes:
        shift, scale, clip: the geometry's scaling.
        kernel: covariance function on scaled features.
        points: [B, D] points of the mean; the first P also carry the variance.
        mean_weights: [B, C] W_0.
        mean_offset: [C] prior mean of each latent.
        factors: [P, sum of ranks] the W_c side by side; they lower the variance.
        ranks: [C] columns of `factors` that belong to each class.
        raises, raise_ranks: the same for directions in which S_c exceeds the prior; mostly empty.
        whitener: [P, P] L^-T of the first P points.
        binary: one latent f, answered as (-f/2, +f/2).
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
        factors: Floats,
        ranks: Array,
        raises: Floats,
        raise_ranks: Array,
        whitener: Floats,
        binary: bool = False,
        dtype: Any = np.float64,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.shift, self.scale, self.clip = shift, scale, float(clip)
        self.kernel = kernel
        self.points = points.astype(self.dtype, copy=False)
        self.mean_weights = mean_weights.astype(self.dtype, copy=False)
        self.mean_offset = mean_offset.astype(self.dtype, copy=False)
        self.factors = factors.astype(self.dtype, copy=False)
        self.ranks = np.asarray(ranks, dtype=np.int64)
        self.raises = raises.astype(self.dtype, copy=False)
        self.raise_ranks = np.asarray(raise_ranks, dtype=np.int64)
        self.whitener = whitener.astype(self.dtype, copy=False)
        self.binary = bool(binary)

    @classmethod
    def from_posterior(
        cls,
        geometry: Geometry,
        kernel: Kernel,
        basis: Basis,
        mean: Floats,
        covariance: Floats,
        *,
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
            covariance: [C, P, P] whitened S_c.
            mean_basis: B points whose first P are the basis's, if the mean has its own.
            mean_offset: prior mean, one or [C].
            binary: C is 1 and stands for (-f/2, +f/2).
            dtype: of the computation.

        Returns:
            The predictor.
        """
        wide = basis if mean_basis is None else mean_basis
        n_latent = mean.shape[1]
        down, up = zip(*(_split(S) for S in np.asarray(covariance, dtype=np.float64)), strict=True)
        whitener = np.asarray(basis.whitener, dtype=np.float64)
        return cls(
            shift=geometry.shift,
            scale=geometry.scale,
            clip=geometry.clip,
            kernel=kernel,
            points=wide.points,
            mean_weights=wide.whitener @ np.asarray(mean, dtype=np.float64),
            mean_offset=np.broadcast_to(np.asarray(mean_offset, dtype=np.float64), (n_latent,)).copy(),
            factors=whitener @ np.concatenate(down, axis=1),
            ranks=np.array([U.shape[1] for U in down]),
            raises=whitener @ np.concatenate(up, axis=1),
            raise_ranks=np.array([U.shape[1] for U in up]),
            whitener=whitener,
            binary=binary,
            dtype=dtype,
        )

    def scaled(self, X: Array) -> Floats:
        """[N, D] features as the kernel sees them."""
        scaled = (np.asarray(X, dtype=np.float64) - self.shift) / self.scale
        if np.isfinite(self.clip):
            np.clip(scaled, -self.clip, self.clip, out=scaled)
        return scaled.astype(self.dtype, copy=False)

    def __call__(self, X: Array) -> Latent:
        """Latent mean and variance [N, C] of raw features X [N, D], in chunks of rows."""
        n, n_latent = len(X), self.mean_weights.shape[1]
        n_columns = 2 if self.binary else n_latent
        mean = np.empty((n, n_columns), dtype=self.dtype)
        variance = np.empty((n, n_columns), dtype=self.dtype)
        block = self._block()
        for start in range(0, n, CHUNK):
            rows = slice(start, min(start + CHUNK, n))
            m, v = self._chunk(self.scaled(X[rows]), block)
            if self.binary:
                m, v = _both_sides(m, v)
            mean[rows], variance[rows] = m, v
        return Latent(mean, variance)

    def mean(self, X: Array) -> Floats:
        """[N, C] latent means alone, of raw features X [N, D]."""
        n, n_latent = len(X), self.mean_weights.shape[1]
        result = np.empty((n, n_latent), dtype=self.dtype)
        block = self._block()
        for start in range(0, n, CHUNK):
            rows = slice(start, min(start + CHUNK, n))
            np.matmul(block(self.scaled(X[rows])), self.mean_weights, out=result[rows])
        result += self.mean_offset
        return np.concatenate([-0.5 * result, 0.5 * result], axis=1) if self.binary else result

    def project(self, X: Array) -> Floats:
        """Whitened features phi [N, P] of raw features X [N, D]."""
        points = self.points[: len(self.whitener)]
        phi = np.empty((len(X), len(points)), dtype=self.dtype)
        for start in range(0, len(X), CHUNK):
            rows = slice(start, min(start + CHUNK, len(X)))
            np.matmul(self.kernel(self.scaled(X[rows]), points), self.whitener, out=phi[rows])
        return phi

    def view(self, X: Array) -> View | None:
        """What `seen` needs of raw features X [N, D]; None for a kernel that is not stationary."""
        if not isinstance(self.kernel, StationaryKernel):
            return None
        P, wide = len(self.whitener), len(self.points) > len(self.whitener)
        phi = np.empty((len(X), P), dtype=np.float32)
        kernel_block = np.empty((len(X), len(self.points)), dtype=self.dtype) if wide else None
        block = self._block()
        for start in range(0, len(X), CHUNK):
            rows = slice(start, start + CHUNK)
            K = block(self.scaled(X[rows]))
            if kernel_block is not None:
                kernel_block[rows] = K
            phi[rows] = K[:, :P] @ self.whitener
        return View(phi, kernel_block, float(self.kernel.variance))

    def seen(self, view: View) -> Seen:
        """Latents of rows whose projection is known.

        Args:
            view: by a predictor of the same points and kernel, see `sees_as`.
        """
        return Seen(self, view)

    def sees_as(self, other: Predictor) -> bool:
        """Whether a view made by the other predictor serves this one."""
        if self is other:
            return True
        mine, theirs = self.kernel, other.kernel
        return (
            isinstance(mine, StationaryKernel)
            and isinstance(theirs, StationaryKernel)
            and (mine.name, mine.variance, self.clip, self.dtype)
            == (theirs.name, theirs.variance, other.clip, other.dtype)
            and len(self.whitener) == len(other.whitener)
            and all(
                a is b or np.array_equal(a, b)
                for a, b in (
                    (self.points, other.points),
                    (self.shift, other.shift),
                    (self.scale, other.scale),
                    (mine.length_scale, theirs.length_scale),
                )
            )
        )

    def _block(self) -> Any:
        """A function of scaled rows giving k(x, points), with what repeats done once."""
        kernel, points = self.kernel, self.points
        if not isinstance(kernel, StationaryKernel):
            return lambda rows: kernel(rows, points)
        length = np.asarray(kernel.length_scale, dtype=self.dtype)
        B = points / length
        squares = np.einsum("pd,pd->p", B, B)
        return lambda rows: kernel.of_scaled(rows / length, B, squares)

    def _chunk(self, rows: Floats, block: Any) -> tuple[Floats, Floats]:
        K = block(rows)
        mean = K @ self.mean_weights
        mean += self.mean_offset
        K = K[:, : len(self.whitener)]
        prior = self.kernel.diagonal(rows)[:, None]
        variance = prior - _row_squares(K @ self.factors, self.ranks)
        if self.raises.shape[1]:
            variance += _row_squares(K @ self.raises, self.raise_ranks)
        return mean, np.maximum(variance, 0.0, out=variance)

    def to_arrays(self) -> dict[str, Array]:
        """Plain arrays, for saving; `from_arrays` is the way back.

        Raises:
            InputError: the kernel is an object that cannot be saved.
        """
        arrays = {name: np.asarray(getattr(self, name)) for name in _ARRAYS}
        arrays["dtype"] = np.asarray(self.dtype.name)
        return arrays | {f"kernel.{key}": value for key, value in self.kernel.to_arrays().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Predictor:
        """The predictor that `to_arrays` took apart."""
        kernel = kernel_from_arrays(
            {k.removeprefix("kernel."): v for k, v in arrays.items() if k.startswith("kernel.")}
        )
        values: dict[str, Any] = {name: np.asarray(arrays[name]) for name in _ARRAYS}
        values["clip"] = float(values["clip"])
        values["binary"] = bool(values["binary"])
        return cls(kernel=kernel, dtype=str(np.asarray(arrays["dtype"])), **values)


class Seen:
    """Latents of a view's rows in float32, worked out as far as they are asked for.

    Attributes:
        mean: [N, C].
    """

    def __init__(self, predictor: Predictor, view: View) -> None:
        whitener = predictor.whitener.astype(np.float64, copy=False)
        self._view, self._ranks, self._raise_ranks = view, predictor.ranks, predictor.raise_ranks
        self._binary = predictor.binary
        self._factors, self._raises = (
            solve_triangular(whitener, part).astype(np.float32)
            for part in (predictor.factors, predictor.raises)
        )
        if view.kernel_block is None:
            mean = view.phi @ solve_triangular(whitener, predictor.mean_weights).astype(np.float32)
        else:
            mean = (view.kernel_block @ predictor.mean_weights).astype(np.float32)
        mean += predictor.mean_offset.astype(np.float32)
        self.mean: Floats = np.concatenate([-0.5 * mean, 0.5 * mean], axis=1) if self._binary else mean

    def variance(self, rows: Ints | None = None) -> Floats:
        """[n, C] of some rows [n], or of all."""
        phi = self._view.phi if rows is None else self._view.phi[rows]
        out = np.empty((len(phi), len(self._ranks)), dtype=np.float32)
        for start in range(0, len(phi), CHUNK):
            part = slice(start, start + CHUNK)
            out[part] = self._view.prior - _row_squares(phi[part] @ self._factors, self._ranks)
            if self._raises.shape[1]:
                out[part] += _row_squares(phi[part] @ self._raises, self._raise_ranks)
        np.maximum(out, 0.0, out=out)
        return np.repeat(0.5 * out, 2, axis=1) if self._binary else out

    def ceiling(self) -> Floats | None:
        """[N, C] no less than the variance, at a quarter of its price; None where there is no such bound."""
        if self._binary or self._raises.shape[1]:
            return None
        few = np.minimum(self._ranks, -(-len(self._factors) // 4))
        starts = np.concatenate([[0], np.cumsum(self._ranks)[:-1]])
        # the first directions are those that lower the variance most
        columns = np.concatenate([np.arange(s, s + r) for s, r in zip(starts, few, strict=True)])
        factors, phi = self._factors[:, columns], self._view.phi
        out = np.empty((len(phi), len(few)), dtype=np.float32)
        for start in range(0, len(phi), CHUNK):
            part = slice(start, start + CHUNK)
            out[part] = self._view.prior - _row_squares(phi[part] @ factors, few)
        return np.maximum(out, 0.0, out=out)


def _both_sides(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """One latent f, answered as (-f/2, +f/2)."""
    return np.concatenate([-0.5 * mean, 0.5 * mean], axis=1), np.repeat(0.5 * variance, 2, axis=1)


def _split(S: Floats) -> tuple[Floats, Floats]:
    """Factors of I - S = U U' - T T' with as few columns as its rank (T mostly empty)."""
    from scipy.linalg import eigh
    from scipy.linalg.lapack import dpstrf

    remainder = np.eye(len(S)) - S
    factor, pivots, rank, info = dpstrf(remainder, lower=1, tol=1e-14 * len(S))
    if info >= 0:
        U = np.zeros((len(S), rank))
        U[pivots - 1] = np.tril(factor)[:, :rank]
        left = np.abs(np.diag(remainder) - np.einsum("pr,pr->p", U, U)).max(initial=0.0)
        if left <= 1e-12 * len(S):
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
