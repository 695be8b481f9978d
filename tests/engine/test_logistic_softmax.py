"""Logistic-softmax bounds: derivatives, order, fixed points, minibatches, class subsets."""

from itertools import combinations

import numpy as np
import pytest
import tensorflow as tf
from scipy.optimize import brentq
from scipy.special import digamma, expit, gammaln, logsumexp
from scipy.stats import norm, qmc

from tests.engine.problems import differences, one_hot, overlapping, projected
from workbench.engine.gaussian import State
from workbench.engine.gradient import Hyper, Rows, kernel_gradient
from workbench.engine.kernels import StationaryKernel
from workbench.engine.likelihoods import BayesianSVM, LogisticSoftmax
from workbench.engine.likelihoods.logistic_softmax import BOUNDS, gamma_shape, joint, mean_field
from workbench.engine.natural_gradient import Schedule, ascend, ascend_stochastic, objective
from workbench.engine.natural_steps import ZERO_MEAN, Block, MeanPrior, Plan, compiled
from workbench.engine.projection import make_basis, project

CONJUGATE = {"joint": joint, "mean-field": mean_field}
LIKELIHOODS = {name: LogisticSoftmax(3, name) for name in BOUNDS} | {"hinge": BayesianSVM()}
JOINT = LIKELIHOODS["joint"]


def moments(n=6, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    y = one_hot(rng.integers(n_classes, size=n), n_classes)
    return 2 * rng.standard_normal((n, n_classes)), rng.uniform(0.01, 4, (n, n_classes)), y


def call(local, mean, variance, y, factor=1.0):
    return [a.numpy() for a in local(*(tf.constant(a) for a in (mean, variance, y)), np.float64(factor))]


def problem(n=60, n_classes=3, seed=0, n_inducing=10, **kernel):
    X, codes = overlapping(n, n_classes, seed)
    phi, rest, *_ = projected(X, n_inducing, **kernel)
    return X, codes, Block.of(phi, rest, one_hot(codes, n_classes))


def run(likelihood, block, prior=ZERO_MEAN, sweeps=400, tol=1e-13, growth=2.0):
    fresh = State.prior(block.phi.shape[1], block.targets.shape[1], prior.mean)
    return ascend(likelihood, [block], fresh, prior, sweeps=sweeps, tol=tol, growth=growth)


# ------------------------------------------------------------------------------- local steps


@pytest.mark.parametrize("name", list(BOUNDS))
def test_slopes_are_the_derivatives_of_the_value(name):
    local = tf.function(BOUNDS[name], reduce_retracing=True)
    mean, variance, y = moments(n=3, n_classes=3)
    slope, curvature, _ = call(local, mean, variance, y)
    by_mean = differences(lambda m: call(local, m, variance, y)[2].sum(), mean)
    by_variance = differences(lambda v: call(local, mean, v, y)[2].sum(), variance)
    assert slope == pytest.approx(by_mean, abs=1e-6)
    assert curvature == pytest.approx(-2 * by_variance, abs=1e-6)


def test_bounds_are_ordered_below_the_expected_log_likelihood():
    mean, variance, y = moments(n=80, n_classes=5, seed=3)
    low, middle, top = (call(BOUNDS[name], mean, variance, y)[2] for name in ("mean-field", "joint", "plain"))
    assert (low < middle).all()
    assert (middle < top + 1e-9).all()
    z = norm.ppf(np.clip(qmc.Sobol(5, seed=0).random(1 << 13), 1e-12, 1 - 1e-12))
    log_s = -np.logaddexp(0, -(mean[:, None] + np.sqrt(variance)[:, None] * z))
    log_p = (log_s * y[:, None]).sum(axis=2) - logsumexp(log_s, axis=2)
    assert top == pytest.approx(log_p.mean(axis=1), abs=3e-3)


def test_bounds_are_finite_far_out_and_without_variance():
    mean = np.array([[-80.0, -80.0, -80.0], [80.0, -80.0, 0.0], [0.0, 0.0, 0.0]])
    y = np.eye(3)
    for name, local in CONJUGATE.items():
        for variance in (np.zeros((3, 3)), np.full((3, 3), 5.0)):
            for part in call(local, mean, variance, y):
                assert np.isfinite(part).all(), name


def test_mean_field_value_is_the_papers_bound_at_its_maximum():
    mean, variance, y = moments(n=8)
    C = 4
    c = np.sqrt(mean**2 + variance)
    log_cosh = np.logaddexp(c / 2, -c / 2)

    def bound(gamma, alpha):
        psi = digamma(alpha)
        expected = psi - np.log(C)
        parts = (y - gamma) * mean / 2 - (y + gamma) * log_cosh - gamma * np.log(gamma) + gamma
        entropy = gammaln(alpha) + (1 - alpha) * psi
        return (parts + gamma * expected[:, None]).sum(axis=1) - np.log(C) + entropy

    ell = -mean / 2 - log_cosh
    gap = -np.expm1(ell).sum(axis=1) / C
    alpha = gamma_shape(tf.constant(gap)).numpy()
    # with the factor 1/2 that equation 12 lacks: exp(-m/2) / (2 cosh(c/2))
    gamma = np.exp(digamma(alpha) - np.log(C))[:, None] * np.exp(ell)
    assert gamma.sum(axis=1) == pytest.approx(alpha - 1, rel=1e-9)
    best = bound(gamma, alpha)
    assert call(mean_field, mean, variance, y)[2] == pytest.approx(best, abs=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = bound(
            gamma * np.exp(0.2 * rng.standard_normal(gamma.shape)), alpha * np.exp(0.1 * rng.random(8))
        )
        assert (other < best).all()
    assert (bound(2 * gamma, 1 + 2 * (alpha - 1)) < best).all()  # equation 12 as printed


@pytest.mark.parametrize("gap", [1e-7, 1e-4, 0.01, 0.1, 0.5, 0.9, 1.0])
def test_gamma_shape_solves_its_fixed_point(gap):
    wanted = (
        1.0
        if gap == 1.0
        else brentq(lambda a: a - 1 - (1 - gap) * np.exp(digamma(a)), 1.0, 2.0 / gap, xtol=1e-13)
    )
    found = float(gamma_shape(tf.constant(gap, tf.float64)))
    assert found == pytest.approx(wanted, rel=1e-7)


def test_five_fixed_point_iterations_are_not_enough_for_many_classes():
    gap, alpha = 0.1, 1.0
    for _ in range(5):
        alpha = 1 + (1 - gap) * np.exp(digamma(alpha))
    assert alpha < 0.6 * float(gamma_shape(tf.constant(gap, tf.float64)))


def test_two_classes_are_logistic_only_when_opposite():
    f = np.linspace(-3, 3, 7)
    assert expit(f) / (expit(f) + expit(-f)) == pytest.approx(expit(f))
    assert not np.allclose(expit(f) / (expit(f) + expit(0 * f)), expit(f), atol=0.05)


def test_class_subsets_estimate_the_sum_over_classes_without_bias():
    mean, variance, _ = moments(n=5, n_classes=6)

    # in the joint bound exp(-value) without the label's part is R
    def rest(some, factor):
        part = call(joint, mean[:, some], variance[:, some], np.zeros((5, len(some))), factor)[2]
        return np.exp(-part)

    everything = rest(list(range(6)), 1.0)
    subsets = [rest(list(some), 3.0) for some in combinations(range(6), 2)]
    assert np.mean(subsets, axis=0) == pytest.approx(everything, rel=1e-10)


# --------------------------------------------------------------------------------- sweeps


@pytest.mark.parametrize("name", list(CONJUGATE))
def test_one_sweep_is_the_closed_form_update(name):
    _, _, block = problem()
    local = CONJUGATE[name]
    m0 = -0.7
    fit = ascend(LIKELIHOODS[name], [block], State.prior(10, 3, m0), MeanPrior(m0), sweeps=1, tol=0)
    mean = np.full((60, 3), m0)
    variance = block.residual[:, None] + (block.phi**2).sum(axis=1)[:, None] * np.ones(3)
    c = np.sqrt(mean**2 + variance)
    slope, theta, _ = call(local, mean, variance, block.targets)
    gamma = block.targets - 2 * (slope + theta * mean)
    assert theta == pytest.approx((block.targets + gamma) * np.tanh(c / 2) / (2 * c), rel=1e-9)
    for k in range(3):
        precision = np.eye(10) + block.phi.T @ (theta[:, k, None] * block.phi)
        pull = block.phi.T @ ((block.targets - gamma)[:, k] / 2 - theta[:, k] * m0)
        # equation 15 with Sigma, where the paper prints its inverse
        assert fit.posterior.mean[:, k] == pytest.approx(np.linalg.solve(precision, pull), abs=1e-9)


@pytest.mark.parametrize("name", list(BOUNDS))
@pytest.mark.parametrize("prior", [ZERO_MEAN, MeanPrior(-1.0, 1.0)], ids=["fixed mean", "learned mean"])
def test_bounds_never_fall(name, prior):
    sweeps = 15 if name == "plain" else 80
    for seed in range(1 if name == "plain" else 2):
        _, _, block = problem(n=40, n_classes=4, seed=seed, variance=8.0)
        for growth in (1.0, 2.0):
            fit = run(LIKELIHOODS[name], block, prior, sweeps=sweeps, growth=growth)
            gains = np.diff(fit.trace)
            assert len(gains) >= 5
            assert gains.min() >= -1e-8 * abs(fit.objective)


@pytest.mark.parametrize("name", list(BOUNDS))
def test_fixed_point_is_stationary(name):
    _, _, block = problem(n=12, n_inducing=3)
    prior = MeanPrior(-1.0, 1.0)
    q = run(LIKELIHOODS[name], block, prior, sweeps=300).posterior

    def at(**change):
        return objective(LIKELIHOODS[name], [block], q._replace(**change), prior)

    tolerance = 2e-3 if name == "plain" else 2e-4
    assert np.abs(differences(lambda m: at(mean=m), q.mean)).max() < tolerance
    assert np.abs(differences(lambda m: at(prior_mean=m), q.prior_mean)).max() < tolerance
    by_root = differences(lambda r: at(root=r), q.root)
    assert np.abs(np.tril(by_root)).max() < tolerance


@pytest.mark.slow  # alone: where the default stops, against 300 sweeps
@pytest.mark.parametrize("name", ["joint", "mean-field", "hinge"])
def test_default_stop_is_close_to_a_long_run(name):
    _, _, block = problem(n=150, n_inducing=30, variance=10.0, length=0.6)
    likelihood = LIKELIHOODS[name]
    if name == "hinge":
        block = block._replace(targets=2 * block.targets - 1)
    stopped = run(likelihood, block, sweeps=200, tol=1e-4)
    long = run(likelihood, block, sweeps=300, tol=0, growth=1.0)
    assert stopped.n_iter < 60
    assert stopped.objective == pytest.approx(max(long.objective, stopped.objective), rel=1e-3)


def test_minibatch_of_everything_with_step_one_is_a_sweep():
    _, _, block = problem()
    prior = MeanPrior(-1.0, 1.0)
    fresh = State.prior(10, 3, prior.mean)
    sweep = ascend(JOINT, [block], fresh, prior, sweeps=1, tol=0)
    step = ascend_stochastic(
        JOINT,
        [block],
        60,
        fresh,
        prior,
        epochs=1,
        batch_size=60,
        class_batch=3,
        schedule=Schedule(1.0, 0.0, 1.0, 0.0),
        rng=np.random.default_rng(0),
    )
    assert step.posterior.mean == pytest.approx(sweep.posterior.mean, abs=1e-12)
    assert step.posterior.prior_mean == pytest.approx(sweep.posterior.prior_mean, abs=1e-12)


@pytest.mark.parametrize("class_batch", [6, 2])
def test_stochastic_fits_come_near_the_full_one(class_batch):
    _, _, block = problem(n=240, n_classes=6)
    prior = MeanPrior(-np.log(6), 1.0)
    full = run(JOINT, block, prior)
    fit = ascend_stochastic(
        JOINT,
        [block],
        240,
        State.prior(10, 6, prior.mean),
        prior,
        epochs=25,
        batch_size=40,
        class_batch=class_batch,
        schedule=Schedule(),
        rng=np.random.default_rng(0),
    )
    start_value = objective(JOINT, [block], State.prior(10, 6, prior.mean), prior)
    assert full.objective >= fit.objective
    assert full.objective - fit.objective < 0.15 * (full.objective - start_value)


def test_class_batch_touches_only_its_classes():
    _, _, block = problem(n_classes=5)
    fresh = State.prior(10, 5)
    kernels = compiled(JOINT, "float64")
    rows, some = np.arange(60, dtype=np.int32)[None], np.array([[1, 3]], np.int32)
    out = kernels.scheduled(
        block, fresh, Plan(rows, some, np.float64(1)), np.ones(1), ZERO_MEAN.tensors(np.float64)
    )
    moved = np.abs(out.mean.numpy()).max(axis=0) > 0
    assert moved.tolist() == [False, True, False, True, False]


def test_callback_sees_the_objective_and_stops():
    _, _, block = problem()
    seen = []

    def stop(fraction, value):
        seen.append((fraction, value))
        return len(seen) == 3

    fresh = State.prior(10, 3)
    fit = ascend(JOINT, [block], fresh, ZERO_MEAN, sweeps=50, tol=0, callback=stop)
    assert fit.stopped and fit.objective == seen[-1][1] == fit.trace[-1]
    assert all(0 < fraction <= 1 for fraction, _ in seen)


# --------------------------------------------------------------------------------- kernels


@pytest.mark.slow  # alone: gradients of every kernel against differences
@pytest.mark.parametrize("name", ["squared-exponential", "matern32", "matern52", "exponential"])
def test_kernel_gradient_is_the_objectives(name):
    X, codes = overlapping(40, 3)
    targets, lengths = one_hot(codes, 3), np.log([0.9, 1.4])

    def at(theta):
        kernel = StationaryKernel(name, np.exp(theta[:2]), float(np.exp(theta[2])))
        phi, rest = project(X, make_basis(X[:8], kernel), kernel)
        return Block.of(phi, rest, targets)

    theta = np.append(lengths, np.log(3.0))
    q = run(JOINT, at(theta), sweeps=30).posterior
    wanted = differences(lambda t: objective(JOINT, [at(t)], q, ZERO_MEAN), theta, step=1e-4)
    logs = Hyper(theta[:2], theta[2], X[:8])
    found = kernel_gradient(JOINT, name, Rows(X, targets), logs, q)
    assert np.append(found.length_scale, found.variance) == pytest.approx(wanted, abs=2e-3)


def test_inducing_point_gradient_is_the_objectives():
    X, codes = overlapping(40, 3)
    kernel = StationaryKernel("matern52", 1.1, 3.0)

    def at(Z):
        return Block.of(*project(X, make_basis(Z, kernel), kernel), one_hot(codes, 3))

    q = run(JOINT, at(X[:4]), sweeps=30).posterior
    wanted = differences(lambda Z: objective(JOINT, [at(Z)], q, ZERO_MEAN), X[:4].copy(), step=1e-4)
    logs = Hyper(np.log([1.1]), np.log(3.0), X[:4])
    found = kernel_gradient(JOINT, "matern52", Rows(X, one_hot(codes, 3)), logs, q)
    assert found.inducing == pytest.approx(wanted, abs=2e-3)


def test_one_trace_while_data_and_classes_grow():
    for n, C, P in ((30, 3, 8), (50, 4, 8), (40, 3, 12)):
        _, _, block = problem(n=n, n_classes=C, n_inducing=P)
        run(JOINT, block, sweeps=3)
    kernels = compiled(JOINT, "float64")
    assert kernels.sums.function.experimental_get_tracing_count() == 1
    assert kernels.advance.function.experimental_get_tracing_count() == 1


def test_float32_follows_float64():
    X, codes = overlapping(60, 3)
    values = []
    for dtype in (np.float64, np.float32):
        kernel = StationaryKernel("squared-exponential", 1.0, 5.0)
        phi, rest = project(X.astype(dtype), make_basis(X[:10], kernel, np.float32), kernel)
        block = Block.of(phi, rest, one_hot(codes, 3).astype(dtype))
        for name in CONJUGATE:
            fresh = State.prior(10, 3, dtype=dtype)
            values.append(ascend(LIKELIHOODS[name], [block], fresh, ZERO_MEAN, sweeps=20, tol=1e-4).objective)
    assert values[2:] == pytest.approx(values[:2], rel=1e-4)
