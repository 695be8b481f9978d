"""Covariance functions: GPflow's kernels with one fast evaluation in NumPy and in TensorFlow.

A model is asked for a `gpflow.kernels.Kernel`, or for one by name. `as_kernel` gives what the
engine evaluates: for the stationary kernels, the linear one and either of them with a constant, a
description in plain numbers, which needs neither GPflow nor TensorFlow, can be saved, and equals
GPflow's own covariances; for anything else GPflow's K itself, traced once. `to_gpflow` is the way
back. Each formula stands once, here, written for `xp` = `numpy` or `tensorflow`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from workbench.arrays import Array, Floats
from workbench.errors import InputError


class Kernel(Protocol):
    """A covariance function on scaled features."""

    def __call__(self, X: Floats, Z: Floats) -> Floats:
        """K [N, P] between X [N, D] and Z [P, D]."""

    def diagonal(self, X: Floats) -> Floats:
        """[N] values k(x, x)."""

    def to_arrays(self) -> dict[str, Array]:
        """Plain arrays; `kernel_from_arrays` is the way back."""


def squared_distances(A: Any, B: Any, xp: ModuleType) -> Any:
    """|a_n - b_p|^2 [N, P] between rows of A [N, D] and B [P, D], never below 0."""
    squares = xp.einsum("nd,nd->n", A, A)[:, None] + xp.einsum("pd,pd->p", B, B)
    return xp.maximum(squares - 2.0 * xp.matmul(A, xp.transpose(B)), 0.0)


_LEAST = 1e-36  # GPflow's: the square root's gradient stays finite where points coincide


def _squared_exponential(r2: Any, xp: ModuleType) -> Any:
    return xp.exp(-0.5 * r2)


def _exponential(r2: Any, xp: ModuleType) -> Any:
    return xp.exp(-xp.sqrt(xp.maximum(r2, _LEAST)))


def _matern32(r2: Any, xp: ModuleType) -> Any:
    r = xp.sqrt(3.0 * xp.maximum(r2, _LEAST))
    return (1.0 + r) * xp.exp(-r)


def _matern52(r2: Any, xp: ModuleType) -> Any:
    r = xp.sqrt(5.0 * xp.maximum(r2, _LEAST))
    return (1.0 + r + r * r / 3.0) * xp.exp(-r)


_SHAPES: dict[str, Callable[[Any, ModuleType], Any]] = {
    "squared-exponential": _squared_exponential,
    "matern52": _matern52,
    "matern32": _matern32,
    "exponential": _exponential,
}
KERNELS = tuple(_SHAPES)
_GPFLOW_NAMES = {
    "squared-exponential": "SquaredExponential",
    "matern52": "Matern52",
    "matern32": "Matern32",
    "exponential": "Matern12",  # exp(-r); GPflow's Exponential is exp(-r / 2)
}


def stationary(name: str, A: Any, B: Any, variance: Any, xp: ModuleType = np) -> Any:
    """Variance * shape(|a - b|^2) [N, P], differentiable in everything when `xp` is `tensorflow`.

    Args:
        name: one of `KERNELS`.
        A: [N, D] rows divided by the length scale.
        B: [P, D] likewise.
        variance: of the kernel.
        xp: `numpy` or `tensorflow`, whichever made the arguments.
    """
    return variance * _SHAPES[name](squared_distances(A, B, xp), xp)


@dataclass(frozen=True)
class StationaryKernel:
    """variance * shape(|x - z|^2 / length_scale^2), perhaps with a linear function beside it.

    Attributes:
        name: one of `KERNELS`.
        length_scale: one number, or [D] for one per feature; in scaled units.
        variance: k(x, x) where there is no slope.
        slope: prior variance of the linear function's weights, in units of the length scale: slope *
            x'z / length_scale^2 is added.
    """

    name: str
    length_scale: float | Floats
    variance: float
    slope: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in _SHAPES:
            raise InputError(f"Unknown kernel {self.name!r}. Known: {', '.join(KERNELS)}.")
        if not (np.all(np.asarray(self.length_scale) > 0) and self.variance > 0):
            raise InputError("A kernel's length scale and variance must be positive.")

    def __call__(self, X: Floats, Z: Floats) -> Floats:
        """K [N, P] between X [N, D] and Z [P, D], in X's precision."""
        length: Floats = np.asarray(self.length_scale, dtype=X.dtype)
        A, B = X / length, Z.astype(X.dtype, copy=False) / length
        if self.name != "squared-exponential":
            curved = stationary(self.name, A, B, np.asarray(self.variance, dtype=A.dtype))
            return curved + A.dtype.type(self.slope) * (A @ B.T) if self.slope else curved
        K: Floats = A @ B.T
        straight = K * K.dtype.type(self.slope) if self.slope else 0.0
        # exponents a'b - |a|^2/2 - |b|^2/2 + log v, built in place: half the passes over K
        top = K.dtype.type(np.log(self.variance))
        K -= 0.5 * np.einsum("nd,nd->n", A, A)[:, None]
        K -= 0.5 * np.einsum("pd,pd->p", B, B) - top
        np.minimum(K, top, out=K)
        np.exp(K, out=K)
        return np.add(K, straight, out=K) if self.slope else K

    def diagonal(self, X: Floats) -> Floats:
        """[N] values k(x, x)."""
        variances = np.full(len(X), self.variance, dtype=X.dtype)
        if self.slope:
            A = X / np.asarray(self.length_scale, dtype=X.dtype)
            variances += X.dtype.type(self.slope) * np.einsum("nd,nd->n", A, A)
        return variances

    def to_arrays(self) -> dict[str, Array]:
        """Plain arrays, for saving."""
        return {name: np.asarray(value) for name, value in vars(self).items()}


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


DescribedKernel = StationaryKernel | LinearKernel | OffsetKernel


def kernel_from_arrays(arrays: Mapping[str, Array]) -> DescribedKernel:
    """The kernel that `to_arrays` took apart."""
    kernel: StationaryKernel | LinearKernel
    name = str(np.asarray(arrays["name"]))
    if name == "linear":
        kernel = LinearKernel(float(arrays["variance"]))
    else:
        length = np.asarray(arrays["length_scale"], dtype=np.float64)
        values = (float(arrays[part]) for part in ("variance", "slope"))
        kernel = StationaryKernel(name, float(length) if length.ndim == 0 else length, *values)
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

        rows = tf.TensorSpec([None, None], tf.float64)
        return tf.function(lambda X, Z: self.kernel(X, Z), input_signature=[rows, rows])

    @cached_property
    def _traced_diagonal(self) -> Any:
        import tensorflow as tf

        rows = tf.TensorSpec([None, None], tf.float64)
        return tf.function(lambda X: self.kernel(X, full_cov=False), input_signature=[rows])

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


def as_kernel(kernel: Any) -> DescribedKernel | GPflowKernel:
    """Evaluation of a GPflow kernel by the engine.

    Args:
        kernel: a `gpflow.kernels.Kernel`, or what this gave for one.

    Returns:
        Plain numbers where the kernel is one the engine knows; otherwise a copy of the object, traced: the
        same one as long as the kernel's parameters have the same values.

    Raises:
        InputError: not a GPflow kernel.
    """
    if isinstance(kernel, GPflowKernel | DescribedKernel):
        return kernel
    import gpflow

    if not isinstance(kernel, gpflow.kernels.Kernel):
        raise InputError(
            f"kernel must be one of {', '.join(KERNELS)}, or a gpflow.kernels.Kernel; got {kernel!r}."
        )
    described = _described(kernel)
    if described is not None:
        return described
    values = {name: np.array(p) for name, p in gpflow.utilities.parameter_dict(kernel).items()}
    entry = _COPIES.get(kernel)
    if entry is None or any(not np.array_equal(value, entry[0][name]) for name, value in values.items()):
        entry = _COPIES[kernel] = values, GPflowKernel(gpflow.utilities.deepcopy(kernel))
    return entry[1]


# kernel object of one's own -> (its values, the copy that the engine evaluates); gone when the object is
_COPIES: WeakKeyDictionary[Any, tuple[dict[str, Array], GPflowKernel]] = WeakKeyDictionary()


def _described(kernel: Any) -> StationaryKernel | LinearKernel | OffsetKernel | None:
    """The kernel in plain numbers; None where there is no such description."""
    import gpflow

    if type(kernel) is gpflow.kernels.Sum and len(kernel.kernels) == 2:
        inner, constant = kernel.kernels
        if type(inner) is gpflow.kernels.Constant:
            inner, constant = constant, inner
        if type(constant) is not gpflow.kernels.Constant:
            return None
        offset = float(constant.variance.numpy())
        if type(inner) is gpflow.kernels.Linear and inner.variance.shape == ():
            same = _all_columns(inner) and float(inner.variance.numpy()) == offset
            return LinearKernel(offset) if same else None
        description = _described(inner)
        return OffsetKernel(description, offset) if isinstance(description, StationaryKernel) else None
    for name, gpflow_name in _GPFLOW_NAMES.items():
        if type(kernel) is getattr(gpflow.kernels, gpflow_name) and _all_columns(kernel):
            length = kernel.lengthscales.numpy()
            return StationaryKernel(
                name, length if length.ndim else float(length), float(kernel.variance.numpy())
            )
    return None


def _all_columns(kernel: Any) -> bool:
    return isinstance(kernel.active_dims, slice) and kernel.active_dims == slice(None)


def to_gpflow(kernel: Kernel) -> Any:
    """The same covariance function as a `gpflow.kernels.Kernel`.

    Args:
        kernel: one that `as_kernel` or `kernel_from_arrays` gives.

    Raises:
        InputError: there is no such GPflow kernel.
    """
    import gpflow

    if isinstance(kernel, GPflowKernel):
        return gpflow.utilities.deepcopy(kernel.kernel)
    if isinstance(kernel, OffsetKernel):
        return to_gpflow(kernel.inner) + gpflow.kernels.Constant(kernel.offset)
    if isinstance(kernel, LinearKernel):
        return gpflow.kernels.Linear(kernel.variance) + gpflow.kernels.Constant(kernel.variance)
    if isinstance(kernel, StationaryKernel):
        make = getattr(gpflow.kernels, _GPFLOW_NAMES[kernel.name])
        curved = make(variance=kernel.variance, lengthscales=kernel.length_scale)
        slopes = kernel.slope / np.asarray(kernel.length_scale) ** 2
        return curved + gpflow.kernels.Linear(slopes) if kernel.slope else curved
    raise InputError(f"There is no GPflow kernel for {type(kernel).__name__}.")
