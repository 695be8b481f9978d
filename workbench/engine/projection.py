"""The whitened sparse projection every model shares, in NumPy (MATH.md section 1).

K_PP + jitter I = L L',  phi_n = L^-1 k_P(x_n),  kt_n = k_nn - |phi_n|^2.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha1
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cholesky, get_blas_funcs, solve_triangular

from workbench.arrays import Array, Floats
from workbench.errors import InputError

CHUNK = 2048  # rows at a time: the kernel block stays in the cache
_TRIES = 8
ALIGNMENT = 64  # bytes: what TensorFlow asks of memory it is to share


class Kernel(Protocol):
    """A covariance function on scaled features."""

    def __call__(self, X: Floats, Z: Floats) -> Floats:
        """K [N, P] between X [N, D] and Z [P, D]."""

    def diagonal(self, X: Floats) -> Floats:
        """[N] values k(x, x)."""

    def to_arrays(self) -> dict[str, Array]:
        """Plain arrays; `kernel_from_arrays` is the way back."""


def _squared_exponential(r2: Floats) -> Floats:
    r2 *= -0.5
    return np.exp(r2, out=r2)


def _exponential(r2: Floats) -> Floats:
    r = np.sqrt(r2, out=r2)
    return np.exp(-r)


def _matern32(r2: Floats) -> Floats:
    r = np.sqrt(r2, out=r2)
    r *= np.sqrt(3.0).astype(r.dtype)
    return (1.0 + r) * np.exp(-r)


def _matern52(r2: Floats) -> Floats:
    r = np.sqrt(5.0 * r2)
    r2 *= 5.0 / 3.0
    return (1.0 + r + r2) * np.exp(-r)


_SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "squared-exponential": _squared_exponential,
    "matern52": _matern52,
    "matern32": _matern32,
    "exponential": _exponential,
}
KERNELS = tuple(_SHAPES)


@dataclass(frozen=True)
class StationaryKernel:
    """variance * shape(|x - z|^2 / length_scale^2).

    Attributes:
        name: one of `KERNELS`.
        length_scale: one number, or [D] for one per feature; in scaled units.
        variance: k(x, x).
    """

    name: str
    length_scale: float | Floats
    variance: float

    def __post_init__(self) -> None:
        if self.name not in _SHAPES:
            raise InputError(f"Unknown kernel {self.name!r}. Known: {', '.join(KERNELS)}.")
        if not (np.all(np.asarray(self.length_scale) > 0) and self.variance > 0):
            raise InputError("A kernel's length scale and variance must be positive.")

    def __call__(self, X: Floats, Z: Floats) -> Floats:
        """K [N, P] between X [N, D] and Z [P, D], in X's precision."""
        length: Floats = np.asarray(self.length_scale, dtype=X.dtype)
        A, B = X / length, Z.astype(X.dtype, copy=False) / length
        return self.of_scaled(A, B, np.einsum("pd,pd->p", B, B))

    def of_scaled(self, A: Floats, B: Floats, squares: Floats) -> Floats:
        """K between rows already divided by the length scale.

        Args:
            A: [N, D].
            B: [P, D].
            squares: [P] squared norms of B, which callers in a loop keep.
        """
        K: Floats = A @ B.T
        if self.name == "squared-exponential":
            # exponents a'b - |a|^2/2 - |b|^2/2 + log v, built in place: half the passes over K
            top = K.dtype.type(np.log(self.variance))
            K -= 0.5 * np.einsum("nd,nd->n", A, A)[:, None]
            K -= 0.5 * squares - top
            np.minimum(K, top, out=K)
            return np.exp(K, out=K)
        K *= -2.0
        K += np.einsum("nd,nd->n", A, A)[:, None]
        K += squares
        np.maximum(K, 0.0, out=K)
        K = _SHAPES[self.name](K)
        K *= np.asarray(self.variance, dtype=K.dtype)
        return K

    def diagonal(self, X: Floats) -> Floats:
        """[N] values k(x, x) = variance."""
        return np.full(len(X), self.variance, dtype=X.dtype)

    def to_arrays(self) -> dict[str, Array]:
        """Plain arrays, for saving."""
        return {
            "name": np.asarray(self.name),
            "length_scale": np.asarray(self.length_scale),
            "variance": np.asarray(self.variance),
        }


@dataclass(frozen=True)
class LinearKernel:
    """variance * (x'z + 1): linear functions with an intercept, each weight N(0, variance).

    Attributes:
        variance: prior variance of every weight and of the intercept.
    """

    variance: float

    def __call__(self, X: Floats, Z: Floats) -> Floats:
        """K [N, P] between X [N, D] and Z [P, D], in X's precision."""
        K = X @ Z.astype(X.dtype, copy=False).T
        K += 1.0
        K *= X.dtype.type(self.variance)
        return K

    def diagonal(self, X: Floats) -> Floats:
        """[N] values k(x, x)."""
        return X.dtype.type(self.variance) * (np.einsum("nd,nd->n", X, X) + X.dtype.type(1.0))

    def to_arrays(self) -> dict[str, Array]:
        """Plain arrays, for saving."""
        return {"name": np.asarray("linear"), "variance": np.asarray(self.variance)}


@dataclass(frozen=True)
class OffsetKernel:
    """k(x, z) + offset: a GP with covariance k around an unknown constant of variance `offset`.

    Attributes:
        inner: k.
        offset: prior variance of the constant.
    """

    inner: Kernel
    offset: float

    def __call__(self, X: Floats, Z: Floats) -> Floats:
        """K [N, P] between X [N, D] and Z [P, D], in X's precision."""
        K = self.inner(X, Z)
        K += self.offset
        return K

    def diagonal(self, X: Floats) -> Floats:
        """[N] values k(x, x)."""
        diagonal = self.inner.diagonal(X)
        diagonal += self.offset
        return diagonal

    def to_arrays(self) -> dict[str, Array]:
        """Plain arrays, for saving."""
        return self.inner.to_arrays() | {"offset": np.asarray(self.offset)}


def kernel_from_arrays(arrays: Mapping[str, Array]) -> StationaryKernel | LinearKernel | OffsetKernel:
    """The kernel that `to_arrays` took apart."""
    kernel: StationaryKernel | LinearKernel
    name = str(np.asarray(arrays["name"]))
    if name == "linear":
        kernel = LinearKernel(float(arrays["variance"]))
    else:
        length = np.asarray(arrays["length_scale"], dtype=np.float64)
        kernel = StationaryKernel(
            name, float(length) if length.ndim == 0 else length, float(arrays["variance"])
        )
    return OffsetKernel(kernel, float(arrays["offset"])) if "offset" in arrays else kernel


@dataclass(frozen=True)
class GPflowKernel:
    """Any GPflow kernel behind the same two calls; its K is traced once.

    Attributes:
        kernel: a `gpflow.kernels.Kernel`.
    """

    kernel: Any

    @cached_property
    def _traced(self) -> Any:
        import tensorflow as tf

        spec = tf.TensorSpec([None, None], tf.float64)
        return tf.function(lambda X, Z: self.kernel.K(X, Z), input_signature=[spec, spec])

    @cached_property
    def _traced_diagonal(self) -> Any:
        import tensorflow as tf

        return tf.function(
            lambda X: self.kernel.K_diag(X), input_signature=[tf.TensorSpec([None, None], tf.float64)]
        )

    def __call__(self, X: Floats, Z: Floats) -> Floats:
        """K [N, P] between X [N, D] and Z [P, D], in X's precision."""
        K = self._traced(X.astype(np.float64, copy=False), Z.astype(np.float64, copy=False))
        return np.array(K, dtype=X.dtype)

    def diagonal(self, X: Floats) -> Floats:
        """[N] values k(x, x)."""
        return np.array(self._traced_diagonal(X.astype(np.float64, copy=False)), dtype=X.dtype)

    def to_arrays(self) -> dict[str, Array]:
        """Not possible for an arbitrary object.

        Raises:
            InputError: always, saying what can be saved.
        """
        raise InputError(
            "A model with a GPflow kernel object cannot be saved; name a kernel instead: "
            f"{', '.join(KERNELS)}."
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"kernel": self.kernel}

    def __setstate__(self, state: dict[str, Any]) -> None:
        object.__setattr__(self, "kernel", state["kernel"])


class Basis(NamedTuple):
    """Inducing points with their Cholesky factor.

    Attributes:
        points: [P, D], scaled units.
        factor: [P, P] lower L with L L' = K_PP + jitter I.
        whitener: [P, P] L^-T, so that Phi = K_NP whitener.
        jitter: what was added to the diagonal.
    """

    points: Floats
    factor: Floats
    whitener: Floats
    jitter: float


def relative_jitter(dtype: Any) -> float:
    """Jitter relative to the kernel variance that a precision needs."""
    return 1e-6 if np.dtype(dtype) == np.float64 else 1e-4


_KEPT: OrderedDict[bytes, Basis] = OrderedDict()
_KEEP = 4
_KEPT_LOCK = Lock()


def kept_basis(points: Floats, kernel: Kernel, dtype: Any = np.float64) -> Basis:
    """`make_basis`, remembering the last few: a labelling run asks for the same one every round.

    Args:
        points: [P, D] inducing points, scaled units.
        kernel: covariance function; objects other than `StationaryKernel` are not remembered.
        dtype: the precision the basis will be used in.

    Returns:
        The basis; do not write into it.
    """
    if not isinstance(kernel, StationaryKernel):
        return make_basis(points, kernel, dtype)
    digest = sha1(np.ascontiguousarray(points).tobytes(), usedforsecurity=False)
    digest.update(np.asarray(kernel.length_scale, dtype=np.float64).tobytes())
    digest.update(f"{kernel.name}|{kernel.variance!r}|{np.dtype(dtype).name}|{points.shape}".encode())
    key = digest.digest()
    with _KEPT_LOCK:
        if key in _KEPT:
            _KEPT.move_to_end(key)
            return _KEPT[key]
    basis = make_basis(points, kernel, dtype)
    with _KEPT_LOCK:
        _KEPT[key] = basis
        while len(_KEPT) > _KEEP:
            _KEPT.popitem(last=False)
    return basis


def make_basis(points: Floats, kernel: Kernel, dtype: Any = np.float64) -> Basis:
    """Factor K_PP, with ten times the jitter after each failure.

    Args:
        points: [P, D] inducing points, scaled units.
        kernel: covariance function.
        dtype: the precision the basis will be used in; the factor itself is float64.

    Returns:
        The basis.

    Raises:
        InputError: the matrix stays singular (features that are not finite, for example).
    """
    points = np.asarray(points, dtype=np.float64)
    K = kernel(points, points)
    K = 0.5 * (K + K.T)
    scale = float(np.mean(np.diag(K))) or 1.0
    jitter = relative_jitter(dtype) * scale
    for _ in range(_TRIES):
        try:
            factor = cholesky(K + jitter * np.eye(len(K)), lower=True)
        except (LinAlgError, ValueError):
            jitter *= 10.0
            continue
        inverse = solve_triangular(factor, np.eye(len(K)), lower=True)
        return Basis(points, factor, np.ascontiguousarray(inverse.T), jitter)
    raise InputError("The kernel matrix of the inducing points is singular; check features and length scale.")


def aligned(shape: tuple[int, ...], dtype: Any) -> Floats:
    """An uninitialised array that TensorFlow can use without copying it."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(size + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    result: Floats = raw[start : start + size].view(dtype).reshape(shape)
    return result


def times_triangular(K: Floats, whitener: Floats) -> Floats:
    """K whitener in half the work of a full product.

    Args:
        K: [n, P] in C order, which is written over.
        whitener: [P, P] upper triangular, in C order.

    Returns:
        [n, P].
    """
    (trmm,) = get_blas_funcs(("trmm",), (K,))
    # BLAS reads columns: (K W)' = W' K' with W' lower triangular
    product: Floats = trmm(1.0, whitener.T, K.T, lower=1, overwrite_b=1)
    return product.T


def project(X: Floats, basis: Basis, kernel: Kernel) -> tuple[Floats, Floats]:
    """Whitened features of rows.

    Args:
        X: [N, D] scaled features; their precision is the result's.
        basis: of P points.
        kernel: the one the basis was made with.

    Returns:
        Phi [N, P] and kt [N] = max(k_nn - |phi_n|^2, 0).
    """
    points = basis.points.astype(X.dtype, copy=False)
    whitener = basis.whitener.astype(X.dtype, copy=False)
    Phi = aligned((len(X), len(points)), X.dtype)
    for start in range(0, len(X), CHUNK):
        rows = slice(start, start + CHUNK)
        Phi[rows] = times_triangular(kernel(X[rows], points), whitener)
    kt = kernel.diagonal(X) - np.einsum("np,np->n", Phi, Phi)
    return Phi, np.maximum(kt, 0.0, out=kt)
