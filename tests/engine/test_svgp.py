"""The SVGP engine: its sites, steps and bounds against GPflow, SciPy, Monte Carlo and finite differences."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_ndtr as scipy_log_ndtr
from scipy.special import log_softmax, softmax

from workbench.engine import svgp
from workbench.engine.kernels import StationaryKernel
from workbench.engine.projection import make_basis, project
from workbench.engine.softmax import softmax_probabilities
from workbench.errors import InputError

C = 3


@pytest.fixture(scope="module")
def problem():
    """Sixty points of three overlapping classes on ten inducing points."""
    rng = np.random.default_rng(0)
    codes = np.arange(60) % C
    X = rng.normal(size=(60, 2)) + 1.3 * np.eye(3, 2)[codes]
    kernel = StationaryKernel("squared-exponential", 1.2, 4.0)
    basis = make_basis(X[:10], kernel)
    return X, codes, kernel, basis, svgp.Projected(*project(X, basis, kernel), codes)


def kernels(name, nodes=None, dtype="float64", n_classes=C):
    return svgp.compiled(name, n_classes, nodes or svgp.NODES[name], svgp.EPSILON, dtype)


def moments(n=7, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, C)) * 2, rng.uniform(0.2, 3.0, (n, C)), rng.integers(0, C, n).astype(np.int32)


@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-9), ("float32", 2e-5)])
def test_log_ndtr(dtype, tol):
    a = np.concatenate([np.linspace(-60, 12, 500), [-20, -19.999, -20.001, -5, -5.001, -4.999]]).astype(dtype)
    got = svgp.log_ndtr(tf.constant(a)).numpy()
    np.testing.assert_allclose(
        got, scipy_log_ndtr(a.astype(float)), rtol=tol, atol=1e-15 if dtype == "float64" else 1e-7
    )
    x = tf.constant(a)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(svgp.log_ndtr(x))
    assert np.isfinite(tape.gradient(y, x).numpy()).all()


def test_probit_likelihood_against_sampling_and_finite_differences():
    f = np.array([[0.3, -0.4, 1.0], [2.0, 1.5, -3.0], [-6.0, 0.0, 6.0]])
    y = np.array([0, 1, 0])
    value, gradient, curvature = (
        x.numpy() for x in svgp._log_probit(tf.constant(f), tf.one_hot(y, C, dtype=tf.float64))
    )
    rng = np.random.default_rng(1)
    winners = (f[:2, None, :] + rng.normal(size=(2, 400_000, C))).argmax(-1)
    frequency = (winners == y[:2, None]).mean(1)
    np.testing.assert_allclose(np.exp(value[:2]), frequency, atol=4 * 0.5 / np.sqrt(400_000))

    def log_p(points):
        return svgp._log_probit(tf.constant(points), tf.one_hot(y, C, dtype=tf.float64))[0].numpy()

    h = 1e-4
    for c in range(C):
        step = h * np.eye(C)[c]
        up, down = log_p(f + step), log_p(f - step)
        np.testing.assert_allclose(gradient[:, c], (up - down) / (2 * h), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(curvature[:, c], -(up - 2 * value + down) / h**2, rtol=1e-3, atol=1e-3)
    # only differences of latents matter
    np.testing.assert_allclose(gradient.sum(1), 0, atol=1e-4)


@pytest.mark.parametrize("name", svgp.LIKELIHOODS)
def test_sites_are_gpflows_expectations_and_their_slopes(name):
    F, V, codes = moments()
    k = kernels(name, nodes=2048 if name == "softmax" else 256 if name == "heaviside" else None)
    value, g, w = (x.numpy() for x in k.sites(F, V, codes))
    f, v = tf.constant(F), tf.constant(V)
    with tf.GradientTape() as tape:
        tape.watch([f, v])
        expected = k.likelihood.variational_expectations(
            tf.zeros([len(F), 0], tf.float64), f, v, codes[:, None]
        )
        total = tf.reduce_sum(expected)
    df, dv = (x.numpy() for x in tape.gradient(total, [f, v]))
    np.testing.assert_allclose(value, expected.numpy(), rtol=1e-9)
    # the probit's gradient is an expectation over its own nodes: the quadrature's error, 1e-5, remains
    np.testing.assert_allclose(g, df, rtol=1e-8, atol=1e-4 if name == "heaviside" else 1e-10)
    if name == "robust-max":
        np.testing.assert_allclose(w, np.maximum(-2 * dv, 0), rtol=1e-8, atol=1e-10)
    else:  # Price's theorem: the same quantity, another estimate from the same nodes
        np.testing.assert_allclose(w, -2 * dv, atol=0.02 if name == "softmax" else 0.05)
        assert (w >= 0).all()


@pytest.mark.parametrize("name", ["softmax", "heaviside"])
def test_fixed_nodes_agree_with_plain_monte_carlo(name):
    # the same three items on every row of the node table: what a fit averages over
    F, V, codes = (np.repeat(x, 256, axis=0) for x in moments(3, seed=2))
    values = np.stack(
        [
            kernels(name).sites(F[i : i + 256], V[i : i + 256], codes[i : i + 256])[0].numpy()
            for i in (0, 256, 512)
        ]
    )
    F, V, codes = moments(3, seed=2)
    rng = np.random.default_rng(3)
    f = F[:, None] + np.sqrt(V)[:, None] * rng.normal(size=(3, 20_000, C))
    if name == "softmax":
        log_p = log_softmax(f, axis=-1)[np.arange(3)[:, None], np.arange(20_000), codes[:, None]]
    else:
        one_hot = np.broadcast_to(np.eye(C)[codes][:, None], f.shape)
        log_p = svgp._log_probit(tf.constant(f), tf.constant(one_hot))[0].numpy()
    error = log_p.std(1) / np.sqrt(20_000)
    np.testing.assert_array_less(np.abs(values.mean(1) - log_p.mean(1)), 5 * error + 0.02)


def test_labels_are_integers():
    # GPflow's softmax reads the first column of a one-hot matrix as the label and says nothing
    F = np.array([[2.0, 0.0, -1.0], [0.0, 1.0, 3.0]])
    codes = np.array([2, 0])
    tiny = np.full_like(F, 1e-20)
    value = kernels("softmax").sites(F, tiny, codes.astype(np.int32))[0].numpy()
    np.testing.assert_allclose(value, log_softmax(F, axis=1)[[0, 1], codes], rtol=1e-8)


def test_node_sets_are_symmetric_with_unit_variance():
    z = svgp.node_table(4, 16)
    assert z.shape == (256, 16, 4)
    np.testing.assert_allclose(z.mean(1), 0, atol=1e-12)
    np.testing.assert_allclose((z**2).mean(1), 1, rtol=1e-12)
    assert not np.allclose(z[0], z[1])


@pytest.mark.parametrize("name", svgp.LIKELIHOODS)
def test_bound_is_that_of_gpflow(problem, name):
    X, codes, kernel, basis, data = problem
    k = kernels(name)
    rng = np.random.default_rng(4)
    q = svgp.Variational(
        rng.normal(size=(10, C)), np.tril(0.1 * rng.normal(size=(C, 10, 10))) + 0.7 * np.eye(10)
    )
    model = svgp.gpflow_model(k.likelihood, kernel, basis, q.mean, q.root, len(codes))
    assert svgp.elbo(k, data, q) == pytest.approx(float(model.elbo((X, codes[:, None]))), rel=1e-9)
    if name == "softmax":  # and with GPflow's own likelihood, up to its random draws
        model.likelihood = gpflow.likelihoods.Softmax(C)
        model.likelihood.num_monte_carlo_points = 20_000
        assert svgp.elbo(k, data, q) == pytest.approx(float(model.elbo((X, codes[:, None]))), rel=5e-3)


def test_a_step_is_gpflows_natural_gradient(problem):
    X, codes, kernel, basis, data = problem
    k = kernels("softmax", nodes=4096)
    fit = svgp.fit_natural(k, data, svgp.prior(10, C), max_iter=1, rate=0.3)  # somewhere off the prior
    q = fit.posterior
    model = svgp.gpflow_model(k.likelihood, kernel, basis, q.mean, q.root, len(codes))
    gpflow.optimizers.NaturalGradient(gamma=0.2).minimize(
        model.training_loss_closure((X, codes[:, None]), compile=False), [(model.q_mu, model.q_sqrt)]
    )
    _, linear, gram = k.statistics(data.phi, data.rest, data.codes.astype(np.int32), q.mean, q.root)
    mean, root, _ = k.advance(
        q.mean, q.root, svgp._precision(q.root), linear, gram, tf.constant(0.2, tf.float64)
    )
    theirs = model.q_mu.numpy() - model.q_mu.numpy().mean(1, keepdims=True)
    np.testing.assert_allclose(mean.numpy(), theirs, atol=2e-3)
    np.testing.assert_allclose(svgp._lower(root.numpy()), model.q_sqrt.numpy(), atol=2e-3)


@pytest.mark.parametrize("name", svgp.LIKELIHOODS)
def test_bound_never_falls_and_stops_near_the_end(problem, name):
    data = problem[-1]
    k = kernels(name)
    fit = svgp.fit_natural(k, data, svgp.prior(10, C))
    assert (np.diff(fit.trace) >= -1e-8 * np.abs(fit.trace[1:])).all()
    assert fit.objective > fit.trace[0]
    assert svgp.elbo(k, data, fit.posterior) == pytest.approx(fit.objective, rel=1e-9)
    long = svgp.fit_natural(k, data, svgp.prior(10, C), max_iter=300, tol=1e-12)
    assert fit.objective >= long.objective - 1e-3 * abs(long.objective)
    np.testing.assert_allclose(fit.posterior.mean.mean(1), 0, atol=1e-12)
    again = svgp.fit_natural(k, data, fit.posterior)
    assert again.steps <= 4
    assert again.objective >= fit.objective - 1e-9 * abs(fit.objective)


def test_natural_gradients_and_adam_find_the_same_bound(problem):
    data = problem[-1]
    k = kernels("softmax")
    natural = svgp.fit_natural(k, data, svgp.prior(10, C), tol=1e-8)
    adam = svgp.fit_adam(
        k, data, svgp.prior(10, C), rate=0.1, epochs=300, batch_size=None, rng=np.random.default_rng(0)
    )
    assert adam.objective == pytest.approx(natural.objective, rel=2e-3)
    small = svgp.fit_adam(
        k, data, svgp.prior(10, C), rate=0.03, epochs=150, batch_size=16, rng=np.random.default_rng(0)
    )
    assert small.objective == pytest.approx(natural.objective, rel=2e-2)
    assert small.objective == max(small.trace)


def test_inducing_points_at_the_data_give_the_full_gp():
    rng = np.random.default_rng(5)
    codes = np.arange(24) % C
    X = rng.normal(size=(24, 2)) + 1.5 * np.eye(3, 2)[codes]
    kernel = StationaryKernel("squared-exponential", 1.0, 2.0)
    data = svgp.Projected(*project(X, make_basis(X, kernel), kernel), codes)
    k = kernels("softmax", nodes=512)
    sparse = svgp.fit_natural(k, data, svgp.prior(24, C), tol=1e-9, max_iter=100)
    full = gpflow.models.VGP(
        (X, codes[:, None]), gpflow.kernels.SquaredExponential(2.0, 1.0), k.likelihood, num_latent_gps=C
    )
    loss = tf.function(full.training_loss)
    optimiser = gpflow.optimizers.NaturalGradient(gamma=0.5)
    for _ in range(30):
        optimiser.minimize(loss, [(full.q_mu, full.q_sqrt)])
    assert sparse.objective == pytest.approx(float(full.elbo()), rel=2e-3)


def test_float32_finds_the_same_bound(problem):
    X, codes, kernel, basis, data = problem
    basis32 = make_basis(basis.points, kernel, np.float32)
    single = svgp.Projected(*project(X.astype(np.float32), basis32, kernel), codes)
    for name in svgp.LIKELIHOODS:
        wide = svgp.fit_natural(kernels(name), data, svgp.prior(10, C))
        slim = svgp.fit_natural(kernels(name, dtype="float32"), single, svgp.prior(10, C, np.float32))
        assert slim.posterior.mean.dtype == np.float32
        assert slim.objective == pytest.approx(wide.objective, rel=2e-2)


def test_one_trace_while_data_and_inducing_points_grow():
    rng = np.random.default_rng(6)
    for name in svgp.LIKELIHOODS:
        for n, P in ((20, 5), (40, 5), (41, 9), (300, 6)):
            data = svgp.Projected(rng.normal(size=(n, P)) / 3, rng.uniform(0.1, 1, n), rng.integers(0, C, n))
            svgp.fit_natural(kernels(name), data, svgp.prior(P, C), max_iter=2)
        assert svgp.trace_count(name, C) == 1


def test_rows_keep_their_nodes_whatever_the_chunks(problem, monkeypatch):
    data = problem[-1]
    long = svgp.Projected(np.tile(data.phi, (12, 1)), np.tile(data.rest, 12), np.tile(data.codes, 12))
    q = svgp.Variational(0.3 * np.ones((10, C)), svgp.prior(10, C).root)
    whole = svgp.elbo(kernels("softmax", 62), long, q)
    svgp.compiled.cache_clear()
    monkeypatch.setattr(svgp, "_CELLS", 1)
    assert svgp.elbo(kernels("softmax", 62), long, q) == pytest.approx(whole, rel=1e-12)
    svgp.compiled.cache_clear()


def test_learning_hyperparameters_raises_the_bound(problem):
    X, codes, _, basis, _ = problem
    k = kernels("softmax")
    start = svgp.Hyper(4.0, 1.0, basis.points)  # much too long
    poor_kernel = StationaryKernel("squared-exponential", 4.0, 1.0)
    poor = svgp.fit_natural(
        k,
        svgp.Projected(*project(X, make_basis(basis.points, poor_kernel), poor_kernel), codes),
        svgp.prior(10, C),
    )
    options = {"rng": np.random.default_rng(0), "rate": 0.1}
    fit, hyper = svgp.fit_type2(
        k, X, codes, svgp.prior(10, C), start, inducing=False, rounds=6, max_iter=60, tol=1e-4, **options
    )
    assert fit.objective > poor.objective
    assert hyper.length_scale != 4.0
    np.testing.assert_array_equal(hyper.inducing, basis.points)
    moved, hyper = svgp.learn(k, X, codes, poor.posterior, start, epochs=40, batch_size=30, **options)
    assert hyper.inducing.shape == basis.points.shape
    assert not np.array_equal(hyper.inducing, basis.points)
    assert moved.steps == 40


def test_callbacks_see_progress_and_stop(problem):
    data = problem[-1]
    seen = []

    def stop_at_third(fraction, bound):
        seen.append((fraction, bound))
        return len(seen) == 3

    fit = svgp.fit_natural(kernels("softmax"), data, svgp.prior(10, C), callback=stop_at_third)
    assert len(seen) == 3
    assert fit.steps == 3
    assert fit.objective == seen[-1][1]
    assert [f for f, _ in seen] == sorted(f for f, _ in seen)
    seen.clear()
    svgp.fit_adam(
        kernels("softmax"), data, svgp.prior(10, C), rate=0.1, epochs=50, batch_size=None,
        rng=np.random.default_rng(0), callback=stop_at_third,
    )  # fmt: skip
    assert len(seen) == 3


def test_unknown_likelihood_is_refused():
    with pytest.raises(InputError, match="softmax, robust-max, heaviside"):
        svgp.make_likelihood("logit", 3)


@pytest.mark.parametrize("spread", [0.05, 1.0, 20.0])
def test_softmax_probabilities_without_sampling(spread):
    rng = np.random.default_rng(7)
    mean, variance = rng.normal(size=(6, 4)) * 2, rng.uniform(0.3, 1, (6, 4)) * spread
    p = softmax_probabilities(mean, variance)
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-12)
    f = mean[:, None] + np.sqrt(variance)[:, None] * rng.normal(size=(6, 100_000, 4))
    np.testing.assert_allclose(p, softmax(f, axis=-1).mean(1), atol=4 * 0.5 / np.sqrt(100_000))


def test_softmax_probabilities_at_the_edges():
    mean = np.array([[0.0, 800.0, -800.0], [1.0, 2.0, 3.0]])
    np.testing.assert_allclose(
        softmax_probabilities(mean, np.zeros_like(mean)), softmax(mean, axis=1), atol=2e-4
    )
    assert softmax_probabilities(np.zeros((0, 3)), np.zeros((0, 3))).shape == (0, 3)


def test_multinomial_probit_predictions():
    F, V, codes = moments(5, seed=8)
    likelihood = svgp.make_likelihood("heaviside", C)
    nothing = tf.zeros([5, 0], tf.float64)
    p, variance = likelihood.predict_mean_and_var(nothing, tf.constant(F), tf.constant(V))
    np.testing.assert_allclose(p.numpy().sum(1), 1, atol=1e-12)
    np.testing.assert_allclose(variance.numpy(), p.numpy() * (1 - p.numpy()))
    rng = np.random.default_rng(9)
    f = F[:, None] + np.sqrt(V + 1)[:, None] * rng.normal(size=(5, 100_000, C))
    frequency = np.eye(C)[f.argmax(-1)].mean(1)
    np.testing.assert_allclose(p.numpy(), frequency, atol=4 * 0.5 / np.sqrt(100_000))
    log_density = likelihood.predict_log_density(nothing, tf.constant(F), tf.constant(V), codes[:, None])
    np.testing.assert_allclose(np.exp(log_density.numpy()), p.numpy()[np.arange(5), codes])
    np.testing.assert_allclose(
        likelihood.conditional_mean(nothing, tf.constant(F)).numpy().sum(1), 1, atol=1e-12
    )
