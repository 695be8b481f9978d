"""The pieces all solvers share, against finite differences, GPflow and brute force."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from workbench.engine import gaussian, whitened
from workbench.engine.adam import AdamState, adam_step
from workbench.engine.augmentation import augmented_hinge
from workbench.engine.fitting import minibatches
from workbench.engine.kernels import StationaryKernel
from workbench.engine.projection import make_basis, project

rng = np.random.default_rng(1)
P, C = 5, 3


def roots():
    A = rng.normal(size=(C, P, P)) + 3 * np.eye(P)
    return np.linalg.inv(np.linalg.cholesky(A @ np.swapaxes(A, 1, 2)))


def test_roots_of_both_conventions_stand_for_one_covariance() -> None:
    root = roots()
    covariance = np.swapaxes(root, 1, 2) @ root
    q_sqrt = gaussian.q_sqrt_of(root)
    np.testing.assert_allclose(q_sqrt, np.linalg.cholesky(covariance), atol=1e-12)
    back = gaussian.root_of(q_sqrt)
    np.testing.assert_allclose(np.swapaxes(back, 1, 2) @ back, covariance, atol=1e-12)
    assert np.array_equal(back, np.tril(back))
    np.testing.assert_allclose(
        gaussian.precision_of(root) @ covariance, np.tile(np.eye(P), (C, 1, 1)), atol=1e-9
    )


def test_kl_and_variances_are_gpflows() -> None:
    root, mean, phi = roots(), rng.normal(size=(P, C)), rng.normal(size=(9, P))
    q_sqrt = gaussian.q_sqrt_of(root)
    theirs = gpflow.kullback_leiblers.gauss_kl(tf.constant(mean), tf.constant(q_sqrt), None)
    np.testing.assert_allclose(whitened.kl(tf.constant(mean), tf.constant(root)), theirs)
    S = np.swapaxes(root, 1, 2) @ root
    expected = np.einsum("np,cpq,nq->nc", phi, S, phi)
    np.testing.assert_allclose(whitened.variances(tf.constant(phi), tf.constant(root)), expected)
    np.testing.assert_allclose(whitened.variances_at_once(tf.constant(phi), tf.constant(root)), expected)
    spec = [tf.TensorSpec([None] * rank, tf.float64) for rank in (2, 3)]
    opened = tf.function(whitened.variances, input_signature=spec)
    np.testing.assert_allclose(opened(phi, root), expected)
    # its gradient in the roots passes through the loop over classes
    with tf.GradientTape() as tape:
        moving = tf.constant(root)
        tape.watch(moving)
        value = tf.reduce_sum(opened(phi, moving))
    np.testing.assert_allclose(
        tape.gradient(value, moving), 2 * np.einsum("np,cqp,nr->cqr", phi, root, phi), rtol=1e-10
    )


@pytest.mark.parametrize("n", [9, 300])  # all classes at once, and one after the other
@pytest.mark.parametrize("blocked", [False, True])
def test_grams_of_any_number_of_classes_are_one_trace(n: int, blocked: bool) -> None:
    spec = [tf.TensorSpec([None, None], tf.float64)] * 2
    traced = tf.function(lambda a, w: whitened.grams(a, w, blocked), input_signature=spec)
    for n_classes in (1, 2, 7):
        phi, weights = rng.normal(size=(n, P)), rng.uniform(size=(n, n_classes))
        np.testing.assert_allclose(
            traced(phi, weights), np.einsum("np,nc,nq->cpq", phi, weights, phi), rtol=1e-10, atol=1e-10
        )
    assert traced.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("name", ["squared-exponential", "matern32"])
def test_the_projection_in_tensorflow_is_the_one_in_numpy(name: str) -> None:
    X = rng.normal(size=(20, 2))
    kernel = StationaryKernel(name, 0.8, 3.0)
    phi, residual = project(X, make_basis(X[:P], kernel), kernel)
    found = whitened.project(name, X, X[:P], tf.constant(0.8, tf.float64), tf.constant(3.0, tf.float64), 1e-6)
    np.testing.assert_allclose(found[0], phi, atol=1e-7)
    np.testing.assert_allclose(found[1], residual, atol=1e-7)


@pytest.mark.parametrize("xp", [np, tf], ids=["numpy", "tensorflow"])
def test_the_augmented_hinge_has_the_slopes_it_says_and_bounds_the_hinge(xp) -> None:
    d, v, h = rng.normal(size=50), rng.uniform(0.1, 2.0, 50), 1e-6

    def g(d, v):
        return np.asarray(augmented_hinge(xp.convert_to_tensor(d) if xp is tf else d, v, xp).bound)

    at = augmented_hinge(tf.constant(d) if xp is tf else d, v, xp)
    np.testing.assert_allclose(at.slope, (g(d + h, v) - g(d - h, v)) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(at.weight, (g(d, v + h) - g(d, v - h)) / h, rtol=1e-6)
    draws = d + np.sqrt(v) * rng.normal(size=(20_000, 50))
    assert (2 * np.maximum(draws, 0).mean(axis=0) < g(d, v) + 0.05).all()


def test_adam_steps_are_those_of_keras() -> None:
    start = [rng.normal(size=(3, 2)), rng.normal(size=4)]
    theirs = [tf.Variable(v) for v in start]
    optimizer = tf.keras.optimizers.Adam(0.05, epsilon=1e-7)
    ours, state = tuple(tf.constant(v) for v in start), AdamState.start(start)
    for _ in range(5):
        optimizer.apply_gradients((2.0 * v, v) for v in theirs)
        ours, state = adam_step(ours, [2.0 * v for v in ours], state, [0.05, 0.05])
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_minibatches_pass_over_every_row_and_are_filled() -> None:
    rows = minibatches(10, 4, 6, np.random.default_rng(0))
    assert rows.shape == (6, 4)
    for first in (0, 3):
        assert set(rows[first : first + 3].ravel()) == set(range(10))
    assert np.array_equal(minibatches(3, 8, 2, np.random.default_rng(0)), [[0, 1, 2], [0, 1, 2]])
    assert minibatches(3, 2, 0, np.random.default_rng(0)).shape == (0, 2)
