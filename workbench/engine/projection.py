"""The whitened sparse projection every model shares, in NumPy (docs/math.md, 1).

K_PP + jitter I = L L',  phi_n = L^-1 k_P(x_n),  residual_n = k_nn - |phi_n|^2.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, get_blas_funcs, solve_triangular

from workbench.arrays import Cache, Floats, digest, slices
from workbench.engine.kernels import GPflowKernel, Kernel
from workbench.errors import InputError

CHUNK = 2048  # rows at a time: the kernel block stays in the cache
_TRIES = 8
ALIGNMENT = 64  # bytes: what TensorFlow asks of memory it is to share


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


_BASES = Cache[Basis](4)


def cached_basis(points: Floats, kernel: Kernel, dtype: Any = np.float64) -> Basis:
    """`make_basis`, remembering the last few: a labelling run asks for the same one every round.

    Args:
        points: [P, D] inducing points, scaled units.
        kernel: covariance function; GPflow's objects are not remembered.
        dtype: the precision the basis will be used in.

    Returns:
        The basis; do not write into it.
    """
    if isinstance(kernel, GPflowKernel):
        return make_basis(points, kernel, dtype)
    values = [(name, np.asarray(value).tobytes()) for name, value in kernel.to_arrays().items()]
    key = (digest(points), np.dtype(dtype).name, *values)
    return _BASES.ask(key, lambda: make_basis(points, kernel, dtype))


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
    return raw[start : start + size].view(dtype).reshape(shape)


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
        Phi [N, P] and residual [N] = max(k_nn - |phi_n|^2, 0).
    """
    points = basis.points.astype(X.dtype, copy=False)
    whitener = basis.whitener.astype(X.dtype, copy=False)
    Phi = aligned((len(X), len(points)), X.dtype)
    for rows in slices(len(X), CHUNK):
        Phi[rows] = times_triangular(kernel(X[rows], points), whitener)
    residual = kernel.diagonal(X) - np.einsum("np,np->n", Phi, Phi)
    return Phi, np.maximum(residual, 0.0, out=residual)
