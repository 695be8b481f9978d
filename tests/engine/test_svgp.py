"""The SVGP engine: its sites, steps and bounds against GPflow, SciPy, Monte Carlo and finite differences."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_ndtr as scipy_log_ndtr
from scipy.special import log_softmax, softmax

from workbench.classifiers.svgp import LIKELIHOODS, make_likelihood
from workbench.engine import gradient
from workbench.engine.gaussian import State, q_sqrt_of, root_of
from workbench.engine.gpflow_models import as_svgp
from workbench.engine.gradient import Gaussian, ascend_adam
from workbench.engine.kernels import StationaryKernel
from workbench.engine.likelihoods import (
    BayesianSVM,
    LargeMargin,
    LogisticSoftmax,
    RobustMax,
    SiteLikelihood,
    Softmax,
)
from workbench.engine.likelihoods import softmax as engine
from workbench.engine.likelihoods.base import log_ndtr
from workbench.engine.natural_gradient import NaturalGradientAscent, ascend, objective
from workbench.engine.natural_steps import ZERO_MEAN, Block, compiled
from workbench.engine.projection import make_basis, project
from workbench.engine.quadrature import softmax_probabilities
from workbench.errors import InputError

C = 3


def block_of(X, codes, kernel, basis):
    return Block.of(*project(X, basis, kernel), np.eye(C)[codes].astype(X.dtype))


@pytest.fixture(scope="module")
def problem():
    """Sixty points of three overlapping classes on ten inducing points."""
    rng = np.random.default_rng(0)
    codes = np.arange(60) % C
    X = rng.normal(size=(60, 2)) + 1.3 * np.eye(3, 2)[codes]
    kernel = StationaryKernel("squared-exponential", 1.2, 4.0)
    basis = make_basis(X[:10], kernel)
    return X, codes, kernel, basis, block_of(X, codes, kernel, basis)


def sites(likelihood, F, V, codes):
    """value, slope, curvature in NumPy."""
    found = likelihood.sites(tf.constant(F), tf.constant(V), tf.one_hot(codes, C, dtype=F.dtype))
    return found.value.numpy(), found.slope.numpy(), found.curvature.numpy()


def elbo(likelihood, block, state):
    return objective(likelihood, [block], state, ZERO_MEAN)


def fit_natural(likelihood, block, state=None, **options):
    start = State.prior(block.phi.shape[1], C, dtype=block.phi.dtype) if state is None else state
    return ascend(likelihood, [block], start, **({"growth": 1.5, "longest": 1.0} | options))


def prior_of(P):
    return Gaussian(np.zeros((P, C)), np.tile(np.eye(P), (C, 1, 1)))


def moments(n=7, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, C)) * 2, rng.uniform(0.2, 3.0, (n, C)), rng.integers(0, C, n).astype(np.int32)


@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-9), ("float32", 2e-5)])
def test_log_ndtr(dtype, tol):
    a = np.concatenate([np.linspace(-60, 12, 500), [-20, -19.999, -20.001, -5, -5.001, -4.999]]).astype(dtype)
    got = log_ndtr(tf.constant(a)).numpy()
    np.testing.assert_allclose(
        got, scipy_log_ndtr(a.astype(float)), rtol=tol, atol=1e-15 if dtype == "float64" else 1e-7
    )
    x = tf.constant(a)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(log_ndtr(x))
    assert np.isfinite(tape.gradient(y, x).numpy()).all()


def test_probit_likelihood_against_sampling_and_finite_differences():
    f = np.array([[0.3, -0.4, 1.0], [2.0, 1.5, -3.0], [-6.0, 0.0, 6.0]])
    y = np.array([0, 1, 0])
    value, gradient, curvature = (
        x.numpy() for x in engine.log_probit(tf.constant(f), tf.one_hot(y, C, dtype=tf.float64))
    )
    rng = np.random.default_rng(1)
    winners = (f[:2, None, :] + rng.normal(size=(2, 400_000, C))).argmax(-1)
    frequency = (winners == y[:2, None]).mean(1)
    np.testing.assert_allclose(np.exp(value[:2]), frequency, atol=4 * 0.5 / np.sqrt(400_000))

    def log_p(points):
        return engine.log_probit(tf.constant(points), tf.one_hot(y, C, dtype=tf.float64))[0].numpy()

    h = 1e-4
    for c in range(C):
        step = h * np.eye(C)[c]
        up, down = log_p(f + step), log_p(f - step)
        np.testing.assert_allclose(gradient[:, c], (up - down) / (2 * h), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(curvature[:, c], -(up - 2 * value + down) / h**2, rtol=1e-3, atol=1e-3)
    # only differences of latents matter
    np.testing.assert_allclose(gradient.sum(1), 0, atol=1e-4)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_sites_are_gpflows_expectations_and_their_slopes(name):
    F, V, codes = moments()
    likelihood = make_likelihood(name, C, {"softmax": 2048, "heaviside": 256}.get(name))
    value, g, w = sites(likelihood, F, V, codes)
    f, v = tf.constant(F), tf.constant(V)
    with tf.GradientTape() as tape:
        tape.watch([f, v])
        expected = likelihood.variational_expectations(
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


def test_robust_max_is_gpflows_up_to_the_floor_of_its_cdf():
    F, V, codes = moments(40, seed=11)
    theirs = gpflow.likelihoods.MultiClass(C, invlink=gpflow.likelihoods.RobustMax(C, 1e-3))
    wanted = theirs.variational_expectations(tf.zeros([40, 0], tf.float64), F, V, codes[:, None])
    np.testing.assert_allclose(sites(RobustMax(C), F, V, codes)[0], wanted, atol=5e-3)


@pytest.mark.parametrize("name", ["softmax", "heaviside"])
def test_fixed_nodes_agree_with_plain_monte_carlo(name):
    # the same three items on every row of the node table: what a fit averages over
    F, V, codes = (np.repeat(x, 256, axis=0) for x in moments(3, seed=2))
    values = np.stack(
        [
            sites(make_likelihood(name, C), F[i : i + 256], V[i : i + 256], codes[i : i + 256])[0]
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
        log_p = engine.log_probit(tf.constant(f), tf.constant(one_hot))[0].numpy()
    error = log_p.std(1) / np.sqrt(20_000)
    np.testing.assert_array_less(np.abs(values.mean(1) - log_p.mean(1)), 5 * error + 0.02)


def test_labels_are_integers():
    # GPflow's softmax reads the first column of a one-hot matrix as the label and says nothing
    F = np.array([[2.0, 0.0, -1.0], [0.0, 1.0, 3.0]])
    codes = np.array([2, 0])
    tiny = np.full_like(F, 1e-20)
    value = sites(Softmax(C), F, tiny, codes)[0]
    np.testing.assert_allclose(value, log_softmax(F, axis=1)[[0, 1], codes], rtol=1e-8)


def test_node_sets_are_symmetric_with_unit_variance():
    z = engine.node_table(4, 16)
    assert z.shape == (256, 16, 4)
    np.testing.assert_allclose(z.mean(1), 0, atol=1e-12)
    np.testing.assert_allclose((z**2).mean(1), 1, rtol=1e-12)
    assert not np.allclose(z[0], z[1])


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_bound_is_that_of_gpflow(problem, name):
    X, codes, kernel, basis, block = problem
    likelihood = make_likelihood(name, C)
    rng = np.random.default_rng(4)
    mean = rng.normal(size=(10, C))
    q_sqrt = np.tril(0.1 * rng.normal(size=(C, 10, 10))) + 0.7 * np.eye(10)
    model = as_svgp(likelihood, kernel, basis, mean, q_sqrt, n_rows=len(codes))
    ours = elbo(likelihood, block, State.of(mean, root_of(q_sqrt)))
    assert ours == pytest.approx(float(model.elbo((X, codes[:, None]))), rel=1e-9)
    if name == "softmax":  # and with GPflow's own likelihood, up to its random draws
        model.likelihood = gpflow.likelihoods.Softmax(C)
        model.likelihood.num_monte_carlo_points = 20_000
        assert ours == pytest.approx(float(model.elbo((X, codes[:, None]))), rel=5e-3)


def test_a_step_is_gpflows_natural_gradient(problem):
    X, codes, kernel, basis, block = problem
    likelihood = Softmax(C, 4096)
    state = fit_natural(likelihood, block, sweeps=1, rate=0.3).posterior  # somewhere off the prior
    model = as_svgp(likelihood, kernel, basis, state.mean, q_sqrt_of(state.root), n_rows=len(codes))
    gpflow.optimizers.NaturalGradient(gamma=0.2).minimize(
        model.training_loss_closure((X, codes[:, None]), compile=False), [(model.q_mu, model.q_sqrt)]
    )
    run = compiled(likelihood, "float64")
    moved, _ = run.advance(state, run.sums(block, state), np.float64(0.2), ZERO_MEAN.tensors(np.float64))
    theirs = model.q_mu.numpy() - model.q_mu.numpy().mean(1, keepdims=True)
    np.testing.assert_allclose(moved.mean.numpy(), theirs, atol=2e-3)
    np.testing.assert_allclose(q_sqrt_of(moved.root.numpy()), model.q_sqrt.numpy(), atol=2e-3)


@pytest.mark.parametrize("growth", [1.5, 2.0])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_bound_never_falls_and_stops_near_the_end(problem, name, growth):
    block, likelihood = problem[-1], make_likelihood(name, C)
    options = {"growth": growth, "longest": 1.0 if growth < 2 else 8.0}
    fit = fit_natural(likelihood, block, **options)
    assert (np.diff(fit.trace) >= -1e-8 * np.abs(fit.trace[1:])).all()
    assert fit.objective > fit.trace[0]
    assert elbo(likelihood, block, fit.posterior) == pytest.approx(fit.objective, rel=1e-9)
    long = fit_natural(likelihood, block, sweeps=300, tol=1e-12, **options)
    assert fit.objective >= long.objective - 1e-3 * abs(long.objective)
    np.testing.assert_allclose(fit.posterior.mean.mean(1), 0, atol=1e-12)
    again = fit_natural(likelihood, block, fit.posterior, **options)
    assert len(again.trace) <= 5
    assert again.objective >= fit.objective - 1e-9 * abs(fit.objective)


@pytest.mark.slow  # alone: two optimisers, one bound
def test_natural_gradients_and_adam_find_the_same_bound(problem):
    block, likelihood = problem[-1], make_likelihood("softmax", C)
    natural = fit_natural(likelihood, block, tol=1e-8)
    adam = ascend_adam(
        likelihood, block, prior_of(10), rate=0.1, epochs=300, batch_size=None, rng=np.random.default_rng(0)
    )
    assert adam.objective == pytest.approx(natural.objective, rel=2e-3)
    small = ascend_adam(
        likelihood, block, prior_of(10), rate=0.03, epochs=150, batch_size=16, rng=np.random.default_rng(0)
    )
    assert small.objective == pytest.approx(natural.objective, rel=2e-2)
    assert small.objective == max(small.trace)


@pytest.mark.slow  # alone: against GPflow's full model
def test_inducing_points_at_the_data_give_the_full_gp():
    rng = np.random.default_rng(5)
    codes = np.arange(24) % C
    X = rng.normal(size=(24, 2)) + 1.5 * np.eye(3, 2)[codes]
    kernel = StationaryKernel("squared-exponential", 1.0, 2.0)
    likelihood = Softmax(C, 512)
    sparse = fit_natural(likelihood, block_of(X, codes, kernel, make_basis(X, kernel)), tol=1e-9, sweeps=100)
    full = gpflow.models.VGP(
        (X, codes[:, None]), gpflow.kernels.SquaredExponential(2.0, 1.0), likelihood, num_latent_gps=C
    )
    loss = tf.function(full.training_loss)
    optimiser = gpflow.optimizers.NaturalGradient(gamma=0.5)
    for _ in range(30):
        optimiser.minimize(loss, [(full.q_mu, full.q_sqrt)])
    assert sparse.objective == pytest.approx(float(full.elbo()), rel=2e-3)


@pytest.mark.slow  # alone: single precision, each likelihood
def test_float32_finds_the_same_bound(problem):
    X, codes, kernel, basis, block = problem
    single = block_of(X.astype(np.float32), codes, kernel, make_basis(basis.points, kernel, np.float32))
    for name in LIKELIHOODS:
        wide = fit_natural(make_likelihood(name, C), block)
        slim = fit_natural(make_likelihood(name, C), single)
        assert slim.posterior.mean.dtype == np.float32
        assert slim.objective == pytest.approx(wide.objective, rel=2e-2)


def test_one_trace_while_data_inducing_points_and_classes_grow():
    rng = np.random.default_rng(6)
    for name in LIKELIHOODS:
        for n, P, classes in ((20, 5, C), (40, 5, C + 1), (41, 9, C), (300, 6, C + 4)):
            y = np.eye(classes)[rng.integers(0, classes, n)]
            block = Block.of(rng.normal(size=(n, P)) / 3, rng.uniform(0.1, 1, n), y)
            fit_natural(make_likelihood(name, classes), block, State.prior(P, classes), sweeps=2)
        run = compiled(make_likelihood(name, C), "float64")
        assert run.sums.function.experimental_get_tracing_count() == 1
        assert run.advance.function.experimental_get_tracing_count() == 1


@pytest.mark.slow  # alone: random nodes do not depend on the chunk
def test_rows_keep_their_nodes_whatever_the_chunks(problem):
    block = problem[-1]
    long = Block.of(np.tile(block.phi, (12, 1)), np.tile(block.residual, 12), np.tile(block.targets, (12, 1)))
    state = State.prior(10, C)._replace(mean=0.3 * np.ones((10, C)))

    class Cut(Softmax):
        def __init__(self, n_classes, n_nodes, rows):
            super().__init__(n_classes, n_nodes)
            self.setting = (n_nodes, rows)

        def chunk_rows(self, n_classes):
            return self.setting[1]

    values = [elbo(Cut(C, 62, rows), long, state) for rows in (None, 256, 512)]
    assert values[1:] == pytest.approx(values[:1] * 2, rel=1e-12)


@pytest.mark.slow  # alone: from a length that is much too long
def test_learning_hyperparameters_raises_the_bound(problem):
    X, codes, _, basis, _ = problem
    likelihood = make_likelihood("softmax", C)
    start = gradient.Hyper(4.0, 1.0, basis.points)  # much too long
    kernel = StationaryKernel("squared-exponential", 4.0, 1.0)
    poor = fit_natural(likelihood, block_of(X, codes, kernel, make_basis(basis.points, kernel)))
    q = Gaussian(poor.posterior.mean, q_sqrt_of(poor.posterior.root))
    rows = gradient.Rows(X, np.eye(C)[codes])
    for move in (False, True):
        fit, found = gradient.learn(
            likelihood,
            kernel.name,
            rows,
            q,
            start,
            rate=0.1,
            epochs=40,
            batch_size=30,
            move_inducing=move,
            rng=np.random.default_rng(0),
        )
        assert fit.n_iter == 40
        assert found.length_scale != 4.0
        assert np.array_equal(found.inducing, basis.points) is not move
        better = StationaryKernel(kernel.name, found.length_scale, found.variance)
        block = block_of(X, codes, better, make_basis(found.inducing, better))
        assert fit_natural(likelihood, block).objective > poor.objective


def test_callbacks_see_progress_and_stop(problem):
    block, likelihood = problem[-1], make_likelihood("softmax", C)
    seen = []

    def stop_at_third(fraction, bound):
        seen.append((fraction, bound))
        return len(seen) == 3

    fit = fit_natural(likelihood, block, callback=stop_at_third)
    assert fit.stopped
    assert len(seen) == 3
    assert len(fit.trace) == 4
    assert fit.objective == seen[-1][1]
    assert [f for f, _ in seen] == sorted(f for f, _ in seen)
    seen.clear()
    stopped = ascend_adam(
        likelihood,
        block,
        prior_of(10),
        rate=0.1,
        epochs=50,
        batch_size=None,
        rng=np.random.default_rng(0),
        callback=stop_at_third,
    )
    assert stopped.stopped
    assert len(seen) == 3


def test_unknown_likelihood_is_refused():
    with pytest.raises(InputError, match="softmax, robust-max, heaviside"):
        make_likelihood("logit", 3)


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
    likelihood = make_likelihood("heaviside", C)
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


# ---------------------------------------------------------------------------------- for GPflow's users


ALL = {
    "softmax": Softmax(C),
    "heaviside": make_likelihood("heaviside", C),
    "robust-max": RobustMax(C),
    "logistic-softmax": LogisticSoftmax(C),
    "large-margin": LargeMargin(C),
}


@pytest.mark.slow  # alone: our likelihoods in GPflow's own SVGP
@pytest.mark.parametrize("name", list(ALL))
def test_a_likelihood_alone_trains_anybodys_svgp(problem, name):
    X, codes, _, basis, _ = problem
    likelihood, Y = ALL[name], codes[:, None]
    model = gpflow.models.SVGP(
        gpflow.kernels.Matern52(), likelihood, basis.points, num_latent_gps=C, num_data=len(X)
    )
    before = float(model.elbo((X, Y)))
    loss = model.training_loss_closure((X, Y))
    gpflow.optimizers.Scipy().minimize(loss, model.trainable_variables, options={"maxiter": 15})
    assert float(model.elbo((X, Y))) > before + 5
    p, _ = model.predict_y(X)
    np.testing.assert_allclose(p.numpy().sum(1), 1, atol=1e-6)
    assert (p.numpy().argmax(1) == codes).mean() > 0.55  # classes overlap
    log_density = model.predict_log_density((X, Y)).numpy()
    np.testing.assert_allclose(np.exp(log_density), p.numpy()[np.arange(60), codes], rtol=1e-6)


def test_the_bayesian_svm_likelihood_trains_anybodys_svgp(problem):
    X, codes, _, basis, _ = problem
    signs = np.where(codes == 0, 1.0, -1.0)[:, None]
    model = gpflow.models.SVGP(gpflow.kernels.Matern52(), BayesianSVM(), basis.points)
    before = float(model.elbo((X, signs)))
    NaturalGradientAscent().maximize(model, (X, signs))
    assert float(model.elbo((X, signs))) > before + 5
    p, _ = model.predict_y(X)
    assert ((p.numpy() > 0.5) == (signs > 0)).mean() > 0.7
    log_density = model.predict_log_density((X, signs)).numpy()
    np.testing.assert_allclose(np.exp(log_density), np.where(signs > 0, p, 1 - p.numpy())[:, 0], rtol=1e-9)


@pytest.mark.slow  # alone: our solver on GPflow's own SVGP
@pytest.mark.parametrize("name", list(ALL))
def test_the_solver_alone_raises_the_bound_of_anybodys_svgp(problem, name):
    X, codes, _, basis, _ = problem
    data = (X, codes[:, None])
    model = gpflow.models.SVGP(gpflow.kernels.RationalQuadratic(), ALL[name], basis.points, num_latent_gps=C)
    start = float(model.elbo(data))
    fit = NaturalGradientAscent(growth=1.5).maximize(model, data)
    assert fit.objective == pytest.approx(float(model.elbo(data)), rel=1e-9)
    assert fit.objective > start + 5
    # no small step of GPflow's own improves what is a maximum in q
    again = NaturalGradientAscent(growth=1.5, tol=1e-9, sweeps=200).maximize(model, data)
    q = [(model.q_mu, model.q_sqrt)]
    if name != "robust-max":
        gpflow.optimizers.NaturalGradient(0.1).minimize(model.training_loss_closure(data, compile=False), q)
    assert float(model.elbo(data)) <= again.objective + 2e-3 * abs(again.objective)


@pytest.mark.parametrize("name", list(ALL))
def test_slopes_of_every_likelihood_are_those_of_its_expectation(name):
    F, V, codes = moments(seed=12)
    f, v, y = tf.constant(F), tf.constant(V), tf.one_hot(codes, C, dtype=tf.float64)
    with tf.GradientTape() as tape:
        tape.watch([f, v])
        value = ALL[name].expectation(f, v, y)
    df, dv = tape.gradient(value, [f, v])
    found = ALL[name].sites(f, v, y)
    np.testing.assert_allclose(found.slope, df, atol=1e-4)
    if name in ("logistic-softmax", "large-margin"):
        np.testing.assert_allclose(found.curvature, -2 * dv, atol=1e-8)


def test_what_the_solver_is_not_for_is_refused(problem):
    X, codes, _, basis, _ = problem
    data = (X, codes[:, None])
    kernel = gpflow.kernels.Matern52()
    wrong = {
        "whiten=True": gpflow.models.SVGP(kernel, Softmax(C), basis.points, num_latent_gps=C, whiten=False),
        "has no sites": gpflow.models.SVGP(
            kernel, gpflow.likelihoods.Softmax(C), basis.points, num_latent_gps=C
        ),
    }
    for text, model in wrong.items():
        with pytest.raises(InputError, match=text):
            NaturalGradientAscent().maximize(model, data)


def test_a_likelihood_of_ones_own_needs_one_formula(problem):
    block = problem[-1]

    class Quadratic(SiteLikelihood):
        """-(f - y)^2 / 2, so that q is Gaussian regression."""

        def expectation(self, mean, variance, targets, first=0):
            return -0.5 * tf.reduce_sum(tf.square(mean - targets) + variance, axis=1)

        probabilities = probabilities_at = log_probability = None

    fit = ascend(Quadratic(C), [block], State.prior(10, C), sweeps=3)
    precision = np.eye(10) + block.phi.T @ block.phi
    np.testing.assert_allclose(fit.posterior.precision[1], precision, rtol=1e-9)
    wanted = np.linalg.solve(precision, block.phi.T @ block.targets)
    np.testing.assert_allclose(fit.posterior.mean, wanted, atol=1e-9)


def test_compiled_functions_are_kept_in_a_bounded_place():
    from workbench.engine import natural_steps
    from workbench.engine.likelihoods import BayesianSVM, LogisticSoftmax

    for n_classes in range(2, 40):
        compiled(make_likelihood("robust-max", n_classes), "float64")
    assert natural_steps._compiled.cache_info().currsize <= natural_steps.KEPT
    # and one set of them for all C where the formulas read C off their arguments
    for kind in (LogisticSoftmax, BayesianSVM):
        assert compiled(kind(3), "float64") is compiled(kind(40), "float64")
    assert compiled(LogisticSoftmax(3, "plain"), "float64") is not compiled(LogisticSoftmax(3), "float64")
    # five traces of one function make TensorFlow warn, and this one is of no likelihood
    assert compiled(LogisticSoftmax(3), "float64").penalty is compiled(RobustMax(3), "float64").penalty
