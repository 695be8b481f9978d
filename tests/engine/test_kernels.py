"""One fast evaluation of GPflow's kernels: the same covariances as GPflow's own, there and back."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from workbench.engine.kernels import (
    KERNELS,
    GPflowKernel,
    LinearKernel,
    OffsetKernel,
    StationaryKernel,
    as_kernel,
    kernel_from_arrays,
    stationary,
    to_gpflow,
)
from workbench.errors import InputError

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(40, 3)), rng.normal(size=(7, 3))
ARD = np.array([0.4, 1.0, 2.5])

OURS = [StationaryKernel(name, length, 2.5) for name in KERNELS for length in (0.7, ARD)]
OURS += [LinearKernel(1.7), *[OffsetKernel(StationaryKernel(name, ARD, 2.5), 4.0) for name in KERNELS]]


@pytest.mark.parametrize("kernel", OURS, ids=repr)
def test_covariances_are_gpflows(kernel) -> None:
    theirs = to_gpflow(kernel)
    np.testing.assert_allclose(kernel(X, Z), theirs(X, Z), rtol=0, atol=1e-10)
    np.testing.assert_allclose(kernel.diagonal(X), theirs(X, full_cov=False), rtol=0, atol=1e-10)
    # of points with themselves GPflow's own rounding under a square root shows
    rough = "exponential" in (
        getattr(kernel, "name", ""),
        getattr(getattr(kernel, "inner", None), "name", ""),
    )
    np.testing.assert_allclose(kernel(X, X), theirs(X), rtol=0, atol=1e-6 if rough else 1e-10)


@pytest.mark.parametrize("kernel", OURS, ids=repr)
def test_a_kernel_goes_to_gpflow_and_to_arrays_and_back(kernel) -> None:
    for again in (as_kernel(to_gpflow(kernel)), kernel_from_arrays(kernel.to_arrays())):
        assert type(again) is type(kernel)
        np.testing.assert_allclose(again(X, Z), kernel(X, Z), rtol=1e-13)


@pytest.mark.parametrize("name", KERNELS)
def test_the_tensorflow_path_is_the_numpy_path_with_finite_gradients(name) -> None:
    kernel = StationaryKernel(name, ARD, 2.5)
    points = tf.constant(np.concatenate([X[:5], X[:2]]))  # two coincide
    with tf.GradientTape() as tape:
        length = tf.constant(ARD)
        tape.watch([length, points])
        K = stationary(name, points / length, Z / length, tf.constant(2.5, tf.float64), tf)
        own = stationary(name, points / length, points / length, tf.constant(2.5, tf.float64), tf)
        total = tf.reduce_sum(K) + tf.reduce_sum(own)
    np.testing.assert_allclose(K, kernel(points.numpy(), Z), rtol=0, atol=1e-12)
    assert all(np.isfinite(g).all() for g in tape.gradient(total, [length, points]))


def test_gpflows_exponential_halves_its_distance() -> None:
    theirs = gpflow.kernels.Exponential(variance=1.5, lengthscales=0.8)
    np.testing.assert_allclose(as_kernel(theirs)(X, Z), theirs(X, Z), atol=1e-10)


@pytest.mark.parametrize(
    "theirs",
    [
        gpflow.kernels.RationalQuadratic(),
        gpflow.kernels.SquaredExponential(active_dims=[1]),
        gpflow.kernels.SquaredExponential() + gpflow.kernels.Matern52(),
        gpflow.kernels.Linear(2.0) + gpflow.kernels.Constant(1.0),
        gpflow.kernels.Matern32() * gpflow.kernels.Linear(),
    ],
    ids=lambda k: type(k).__name__,
)
def test_any_other_gpflow_kernel_is_evaluated_by_gpflow(theirs) -> None:
    kernel = as_kernel(theirs)
    assert isinstance(kernel, GPflowKernel)
    assert as_kernel(theirs) is kernel is as_kernel(kernel)  # traced once for all fits
    for mine in (kernel.kernel, to_gpflow(kernel)):  # copies both ways: what either side alters stays there
        assert mine is not theirs and mine is not to_gpflow(kernel)
    np.testing.assert_allclose(kernel(X, Z), theirs(X, Z), atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(X), theirs(X, full_cov=False), atol=1e-12)
    with pytest.raises(InputError, match="cannot be saved"):
        kernel.to_arrays()


def test_what_is_no_kernel_is_refused_with_the_names_that_are() -> None:
    with pytest.raises(InputError, match=r"matern52.*gpflow\.kernels\.Kernel"):
        as_kernel(3)
