"""Gaussian Wasserstein inference: distances, gradients, the data term and the errata of the GWI notes."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.linalg import sqrtm
from scipy.stats import norm

from workbench.engine import networks
from workbench.engine import wasserstein as engine
from workbench.engine.fitting import minibatches
from workbench.engine.kernels import StationaryKernel
from workbench.engine.likelihoods.softmax import wins
from workbench.engine.projection import make_basis, project
from workbench.errors import InputError


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    kernel = StationaryKernel("squared-exponential", 1.0, 1.5)
    phi, rest = project(X, make_basis(X[:5] + 0.1, kernel), kernel)
    root = np.tril(0.2 * rng.normal(size=(3, 5, 5))) + 0.6 * np.eye(5)
    return X, kernel, kernel(X, X), phi, rest, root


def posterior_covariance(K, phi, root):
    return K - phi @ phi.T + phi @ root @ root.T @ phi.T


def numeric_gradient(function, at, h=1e-6):
    out = np.empty(at.size)
    for i in range(at.size):
        step = np.zeros(at.size)
        step[i] = h
        step = step.reshape(at.shape)
        out[i] = (function(at + step) - function(at - step)) / (2 * h)
    return out.reshape(at.shape)


def value_and_gradient(function, at):
    x = tf.constant(at)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return y.numpy(), tape.gradient(y, x).numpy()


# ---------------------------------------------------------------------------------- nuclear norm


def nuclear_norm(M):
    n = M.shape[-2]
    return engine.trace_root(tf.zeros([n, n], M.dtype), M)


def test_nuclear_norm_and_its_gradient():
    M = np.random.default_rng(1).normal(size=(4, 6))
    value, gradient = value_and_gradient(nuclear_norm, M)
    U, s, Vt = np.linalg.svd(M, full_matrices=False)
    assert value == pytest.approx(s.sum(), rel=1e-10)
    np.testing.assert_allclose(gradient, U @ Vt, atol=1e-8)
    np.testing.assert_allclose(gradient, numeric_gradient(lambda m: np.linalg.norm(m, "nuc"), M), atol=1e-6)


def test_nuclear_norm_of_singular_matrices():
    rng = np.random.default_rng(2)
    M = rng.normal(size=(5, 2)) @ rng.normal(size=(2, 6))  # rank 2
    value, gradient = value_and_gradient(nuclear_norm, M)
    U, s, Vt = np.linalg.svd(M)
    assert value == pytest.approx(s.sum(), rel=1e-6)
    np.testing.assert_allclose(gradient, U[:, :2] @ Vt[:2], atol=1e-6)  # the least subgradient
    # a subgradient: the norm lies above its tangent everywhere
    for _ in range(20):
        other = rng.normal(size=M.shape)
        assert np.linalg.norm(other, "nuc") >= value + np.sum(gradient * (other - M)) - 1e-6
    zero, at_zero = value_and_gradient(nuclear_norm, np.zeros((3, 4)))
    assert zero == 0.0
    np.testing.assert_array_equal(at_zero, 0.0)


# ---------------------------------------------------------------------------------- the distance


def test_exact_distance_is_the_bures_distance(problem):
    _, _, K, phi, _, root = problem
    got = engine.covariance_distance(tf.constant(K), tf.constant(phi), tf.constant(root)).numpy()
    half = sqrtm(K).real
    for c in range(3):
        R = posterior_covariance(K, phi, root[c])
        direct = np.trace(K + R - 2 * sqrtm(half @ R @ half).real) / len(K)
        assert got[c] == pytest.approx(direct, abs=1e-7)
        # the same by eigenvalues of the product, as W2 between Gaussians is often written
        eigenvalues = np.maximum(np.linalg.eigvals(R @ K).real, 0)
        assert got[c] == pytest.approx((np.trace(K + R) - 2 * np.sqrt(eigenvalues).sum()) / len(K), abs=1e-6)
        # and as the nuclear norm of any two factors
        jitter = 1e-10 * np.eye(len(K))
        factors = np.linalg.cholesky(K + jitter).T @ np.linalg.cholesky(R + jitter)
        assert got[c] == pytest.approx(
            (np.trace(K + R) - 2 * np.linalg.norm(factors, "nuc")) / len(K), abs=1e-6
        )
    assert (got > 0).all()


def test_distance_vanishes_at_the_prior_and_not_elsewhere(problem):
    _, _, K, phi, _, _ = problem
    prior = np.eye(5)[None]
    tensors = tf.constant(K), tf.constant(phi)
    assert engine.covariance_distance(*tensors, tf.constant(prior)).numpy()[0] == pytest.approx(0, abs=1e-7)
    assert engine.covariance_distance(*tensors, tf.constant(0.0 * prior)).numpy()[0] > 0.05


@pytest.mark.parametrize(
    ("distance", "atol"),
    [
        (engine.covariance_distance, 1e-5),
        pytest.param(  # alone: the distance as the paper prints it
            *(lambda K, phi, r: engine.printed_covariance_distance(K, phi, r, 4), 1e-4),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["ours", "printed"],
)
def test_distance_gradient(problem, distance, atol):
    _, _, K, phi, _, root = problem

    def total(r):
        return tf.reduce_sum(distance(tf.constant(K), tf.constant(phi), r))

    _, gradient = value_and_gradient(total, root)
    numeric = numeric_gradient(lambda r: float(total(tf.constant(r))), root, h=1e-5)
    np.testing.assert_allclose(gradient, numeric, atol=atol)


def test_distance_and_gradient_stay_finite_with_duplicated_rows(problem):
    _, kernel, _, _, _, root = problem
    X = np.zeros((6, 2))  # K has rank one, and L is singular, too
    phi, _ = project(X, make_basis(np.arange(10.0).reshape(5, 2), kernel), kernel)
    K = np.full((6, 6), kernel.variance)
    for r in (root, np.zeros_like(root)):
        value, gradient = value_and_gradient(
            lambda x: tf.reduce_sum(engine.covariance_distance(tf.constant(K), tf.constant(phi), x)), r
        )
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
        assert np.abs(gradient).max() < 10


def test_printed_estimate_is_exact_only_where_all_rows_are_used(problem):
    _, _, K, phi, _, root = problem
    tensors = tf.constant(K), tf.constant(phi), tf.constant(root)
    exact = engine.covariance_distance(*tensors).numpy()
    np.testing.assert_allclose(engine.printed_covariance_distance(*tensors, 12).numpy(), exact, atol=1e-4)
    fewer = engine.printed_covariance_distance(*tensors, 6).numpy()
    assert np.abs(fewer - exact).max() > 0.01
    # as printed, by NumPy: eigenvalues of a product that is not symmetric
    for c in range(3):
        R = posterior_covariance(K, phi, root[c])
        eigenvalues = np.linalg.eigvals(R[:6] @ K[:, :6])
        roots = np.sqrt(np.maximum(eigenvalues.real, 0)).sum()
        assert fewer[c] == pytest.approx((np.trace(K) + np.trace(R)) / 12 - 2 / np.sqrt(72) * roots, abs=1e-4)


def test_printed_root_sum_of_complex_and_negative_eigenvalues():
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])  # eigenvalues +-i
    value, gradient = value_and_gradient(engine.printed_root_sum, turn[None])
    assert value[0] == 0.0
    assert np.isfinite(gradient).all()
    value, _ = value_and_gradient(engine.printed_root_sum, np.diag([4.0, -9.0])[None])
    assert value[0] == pytest.approx(2.0)


# ---------------------------------------------------------------------------------- the data term


def test_largest_against_sampling_with_variances_entering_as_square_roots():
    rng = np.random.default_rng(3)
    mean, variance = rng.normal(size=(4, 3)), rng.uniform(0.1, 4.0, (4, 3))
    codes = np.array([0, 1, 2, 1])
    S = wins(tf.constant(mean), tf.constant(variance), tf.one_hot(codes, 3, dtype=tf.float64)).numpy()
    f = mean[:, None] + np.sqrt(variance)[:, None] * rng.normal(size=(4, 200_000, 3))
    frequency = (f.argmax(-1) == codes[:, None]).mean(1)
    np.testing.assert_allclose(S, frequency, atol=4 * 0.5 / np.sqrt(200_000))
    # two classes in closed form: phi of the notes is the distribution function, not the density
    m, v = tf.constant([[0.3, -0.2]], tf.float64), tf.constant([[0.5, 2.0]], tf.float64)
    S = wins(m, v, tf.one_hot([0], 2, dtype=tf.float64)).numpy()[0]
    assert pytest.approx(norm.cdf(0.5 / np.sqrt(2.5)), abs=1e-6) == S


def test_erratum_epsilon_is_shared_by_the_other_classes():
    # a certain loser among J classes gets eps / (J - 1), so that probabilities sum to one
    mean = tf.constant([[50.0, 0.0, 0.0, 0.0]], tf.float64)
    variance = tf.ones_like(mean)
    terms = [engine.data_term(mean, variance, tf.constant([j]), 0.01).numpy()[0] for j in range(4)]
    np.testing.assert_allclose(terms, np.log([0.99] + 3 * [0.01 / 3]))
    assert np.exp(terms).sum() == pytest.approx(1.0)


def test_erratum_the_sum_over_rows_is_around_both_terms():
    mean = tf.constant([[5.0, -5.0], [-5.0, 5.0], [5.0, -5.0]], tf.float64)
    each = engine.data_term(mean, 0.1 * tf.ones_like(mean), tf.constant([0, 0, 1]), 0.01).numpy()
    assert each.shape == (3,)  # a wrong row pays its own penalty
    np.testing.assert_allclose(each, np.log([0.99, 0.01, 0.01]), atol=1e-6)


# ---------------------------------------------------------------------------------- training


def toy(n=60, seed=4):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    X = rng.normal(size=(n, 2)) + 2 * np.eye(3, 2)[codes]
    kernel = StationaryKernel("squared-exponential", 2.0, 1.0)
    phi, rest = project(X, make_basis(X[:8], kernel), kernel)
    return engine.Rows(X.astype(np.float32), phi, rest, codes), engine.Prior(0.0, 2.0, 1.0)


def begin(data, seed=0):
    weights = networks.initial_weights("mlp", (2,), seed)
    d = networks.n_features("mlp", (2,))
    return engine.start(weights, d, 3, data.phi, 1.0, seed)


def fit(data, prior, steps=60, **options):
    options = {"weight": 60.0, "epsilon": 0.01, "n_sub": 16} | options
    rows = minibatches(len(data.codes), 20, steps, np.random.default_rng(0))
    rates = np.linspace(1, 0.05, steps)[:, None] * np.array([5e-3, 2e-2])
    return engine.train("mlp", (2,), begin(data), data, prior, rows=rows, rates=rates, **options)


def test_start_is_a_regression_posterior():
    data, _ = toy()
    state = begin(data)
    S = state.root @ np.swapaxes(state.root, 1, 2)
    expected = np.linalg.inv(np.eye(8) + data.phi.T @ data.phi)
    np.testing.assert_allclose(S, np.tile(expected, (3, 1, 1)), atol=1e-10)


@pytest.mark.parametrize("printed", [False, pytest.param(True, marks=pytest.mark.slow)])  # alone: as printed
def test_training_lowers_the_loss_and_moves_every_part(printed):
    data, prior = toy()
    first = begin(data)
    done = fit(data, prior, printed=printed)
    assert done.trace[-1] > done.trace[0] + 0.1 * len(data.codes)
    assert done.objective == done.trace.max()
    # Keras variables included: a tf.Module's own list would leave the network out
    for old, new in zip(first.weights, done.posterior.weights, strict=True):
        assert new.dtype == np.float32
        assert not np.array_equal(old, new)
    assert not np.array_equal(first.root, done.posterior.root)
    np.testing.assert_array_equal(done.posterior.root, np.tril(done.posterior.root))


def test_the_weight_keeps_variances_from_collapsing():
    data, prior = toy()
    spread = {}
    for weight in (1.0, 60.0):
        root = fit(data, prior, steps=150, weight=weight).posterior.root
        spread[weight] = (
            data.residual[:, None] + (np.einsum("np,cpq->ncq", data.phi, root) ** 2).sum(-1)
        ).mean()
    assert spread[60.0] > 2 * spread[1.0]


def test_one_trace_whatever_the_data():
    for n, seed in ((30, 1), (60, 2), (61, 3)):
        data, prior = toy(n, seed)
        fit(data, prior, steps=2)
    wide = data._replace(scaled=np.tile(data.scaled, (1, 3)))
    state = engine.start(networks.initial_weights("mlp", (6,), 0), 64, 3, data.phi, 1.0, 0)
    rows, rates = minibatches(61, 20, 2, np.random.default_rng(0)), np.full((2, 2), 1e-3)
    engine.train("mlp", (6,), state, wide, prior, weight=1.0, epsilon=0.01, n_sub=8, rows=rows, rates=rates)
    assert engine.compiled("mlp", (6,), False).experimental_get_tracing_count() == 1


def test_dense_forward_is_the_registered_network():
    X = np.random.default_rng(5).normal(size=(7, 3)).astype(np.float32)
    weights = networks.initial_weights("mlp", (3,), 0)
    theirs = networks.forward("mlp", (3,), [tf.constant(w) for w in weights], tf.constant(X)).numpy()
    np.testing.assert_allclose(engine._dense_forward(weights, X).numpy(), theirs, atol=1e-5)


def test_callback_stops_and_divergence_is_reported():
    data, prior = toy()
    seen = []
    done = fit(data, prior, callback=lambda f, o: seen.append(f) or len(seen) == 3)
    assert len(seen) == 3
    assert done.n_iter == 30
    rows = minibatches(60, 20, 5, np.random.default_rng(0))
    bad = data._replace(phi=data.phi * np.nan)
    with pytest.raises(InputError, match="diverged"):
        engine.train(
            "mlp",
            (2,),
            begin(data),
            bad,
            prior,
            rows=rows,
            rates=np.full((5, 2), 1e-3),
            weight=1.0,
            epsilon=0.01,
            n_sub=4,
        )
