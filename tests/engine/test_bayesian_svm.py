"""The Bayesian SVM's closed form against numbers, and its models against each other."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.optimize import minimize_scalar

from tests.engine.problems import differences, overlapping, projected
from workbench.engine.full_svm import full_gp
from workbench.engine.gaussian import State
from workbench.engine.kernels import StationaryKernel
from workbench.engine.large_margin_state import Data
from workbench.engine.likelihoods import BayesianSVM
from workbench.engine.natural_gradient import (
    ProjectedRows,
    Schedule,
    ascend,
    ascend_stochastic,
    class_minibatches,
    objective,
)
from workbench.engine.natural_steps import ZERO_MEAN, Block, Compiled, Drift, Plan, compiled
from workbench.engine.projection import make_basis, project

SVM = BayesianSVM()
FLAGS = ZERO_MEAN.tensors(np.float64)
hinge = SVM.sites


def problem(n=60, n_inducing=12, seed=0, **kernel):
    X, codes = overlapping(n, 2, seed)
    phi, rest, *_ = projected(X, n_inducing, **kernel)
    return X, Block.of(phi, rest, np.where(codes == 1, 1.0, -1.0)[:, None])


def converged(block, sweeps=300, tol=1e-13):
    P, C = block.phi.shape[1], block.targets.shape[1]
    fresh = State.prior(P, C)
    return ascend(SVM, [block], fresh, ZERO_MEAN, sweeps=sweeps, tol=tol)


def test_slopes_are_the_derivatives_of_the_value():
    rng = np.random.default_rng(0)
    mean, variance = 2 * rng.standard_normal((5, 3)), rng.uniform(0.05, 3, (5, 3))
    signs = np.where(rng.random((5, 3)) < 0.5, -1.0, 1.0)
    slope, curvature, _ = hinge(*map(tf.constant, (mean, variance, signs)))

    def value(m, v):
        return float(tf.reduce_sum(hinge(*map(tf.constant, (m, v, signs)))[2]))

    assert slope.numpy() == pytest.approx(differences(lambda m: value(m, variance), mean), abs=1e-7)
    bend = differences(lambda v: value(mean, v), variance)
    assert curvature.numpy() == pytest.approx(-2 * bend, abs=1e-7)


def test_alpha_is_at_its_best():
    # E log p + entropy of q(lambda) for free alpha: -Eb - Eb2 / (2 sqrt a) - sqrt(a) / 2
    mean, variance, sign = 0.3, 0.8, 1.0
    slack = 1 - sign * mean
    second = slack**2 + variance
    best = minimize_scalar(
        lambda log_a: slack + second / (2 * np.exp(log_a / 2)) + np.exp(log_a / 2) / 2,
        bounds=(-10, 10),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert np.exp(best.x) == pytest.approx(second, rel=1e-5)
    value = hinge(*(tf.constant([[a]], tf.float64) for a in (mean, variance, sign)))[2]
    assert float(value[0]) == pytest.approx(-best.fun, abs=1e-9)


def test_value_bounds_the_expected_hinge_and_meets_it_without_variance():
    rng = np.random.default_rng(1)
    mean, sign = rng.normal(0, 2, (40, 1)), np.where(rng.random((40, 1)) < 0.5, -1.0, 1.0)
    f = mean + np.sqrt(0.7) * rng.standard_normal((40, 20_000))
    expected = (-2 * np.maximum(0, 1 - sign * f)).mean(axis=1)
    bound = hinge(*map(tf.constant, (mean, np.full_like(mean, 0.7), sign)))[2].numpy()
    assert (bound <= expected + 0.03).all()
    exact = hinge(*map(tf.constant, (mean, np.zeros_like(mean), sign)))[2].numpy()
    assert exact == pytest.approx(-2 * np.maximum(0, 1 - sign * mean)[:, 0], abs=1e-5)


def test_one_sweep_is_the_papers_update():
    _, block = problem()
    fit = ascend(SVM, [block], State.prior(12, 1), ZERO_MEAN, sweeps=1, tol=0)
    y = block.targets[:, 0]
    alpha = 1 + block.residual + (block.phi**2).sum(axis=1)  # the prior's (1 - y f)^2
    precision = np.eye(12) + block.phi.T @ (alpha[:, None] ** -0.5 * block.phi)
    mean = np.linalg.solve(precision, block.phi.T @ (y * (alpha**-0.5 + 1)))
    assert fit.posterior.precision[0] == pytest.approx(precision, abs=1e-12)
    assert fit.posterior.mean[:, 0] == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("growth", [1.0, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_objective_never_falls(growth, seed):
    _, block = problem(seed=seed, variance=10.0)
    fit = ascend(SVM, [block], State.prior(12, 1), ZERO_MEAN, sweeps=80, tol=0, growth=growth)
    gains = np.diff(fit.trace)
    assert len(gains) > 20
    assert gains.min() >= -1e-8 * abs(fit.objective)


def test_long_steps_end_where_the_papers_steps_do():
    _, block = problem(variance=10.0)
    fresh = State.prior(12, 1)
    slow = ascend(SVM, [block], fresh, ZERO_MEAN, sweeps=2000, tol=1e-13, growth=1.0)
    fast = converged(block)
    assert fast.objective == pytest.approx(slow.objective, rel=1e-9)
    assert fast.n_iter < 0.6 * slow.n_iter


def test_fixed_point_is_stationary_in_mean_and_covariance():
    _, block = problem(n_inducing=5)
    q = converged(block, sweeps=2000, tol=1e-15).posterior

    def at(mean, root):
        return objective(SVM, [block], q._replace(mean=mean, root=root), ZERO_MEAN)

    assert np.abs(differences(lambda m: at(m, q.root), q.mean)).max() < 1e-4
    lower = np.tril(differences(lambda r: at(q.mean, r), q.root)[0])
    assert np.abs(lower).max() < 1e-4


def test_objective_matches_monte_carlo_of_its_parts():
    _, block = problem()
    q = converged(block, sweeps=5).posterior
    S = q.root[0].T @ q.root[0]
    kl = 0.5 * (np.trace(S) + (q.mean**2).sum() - 12 - np.linalg.slogdet(S)[1])
    v = q.mean[:, 0] + np.random.default_rng(0).standard_normal((200_000, 12)) @ np.linalg.cholesky(S).T
    slack = 1 - block.targets[:, 0] * (v @ block.phi.T)
    second = (slack**2).mean(axis=0) + block.residual
    value = (-slack.mean(axis=0) - np.sqrt(second)).sum() - kl
    assert objective(SVM, [block], q, ZERO_MEAN) == pytest.approx(value, abs=0.05)


def test_blocks_add_up_to_the_whole():
    _, block = problem()
    parts = [Block(*(a[s] for a in block)) for s in (slice(0, 17), slice(17, 60))]
    fresh = State.prior(12, 1)
    whole = ascend(SVM, [block], fresh, ZERO_MEAN, sweeps=10, tol=0)
    split = ascend(SVM, parts, fresh, ZERO_MEAN, sweeps=10, tol=0)
    assert split.trace == pytest.approx(whole.trace, rel=1e-10)


def test_rows_project_lazily_when_they_do_not_fit(monkeypatch):
    from workbench.engine import natural_gradient

    X, block = problem()
    kernel = StationaryKernel("squared-exponential", 1.0, 2.0)
    basis = make_basis(X[:12], kernel)
    monkeypatch.setattr(natural_gradient, "BLOCK_ROWS", 25)
    kept = list(ProjectedRows(X, block.targets, basis, kernel))
    monkeypatch.setattr(natural_gradient, "HELD_BYTES", 0)
    lazy = ProjectedRows(X, block.targets, basis, kernel)
    for _ in range(2):
        again = list(lazy)
        assert len(again) == len(kept) == 3
        assert all(np.array_equal(a.phi, b.phi) for a, b in zip(again, kept, strict=True))


# ------------------------------------------------------------------------------ minibatches


def test_minibatch_of_everything_with_step_one_is_a_sweep():
    _, block = problem()
    fresh = State.prior(12, 1)
    sweep = ascend(SVM, [block], fresh, ZERO_MEAN, sweeps=1, tol=0)
    step = ascend_stochastic(
        SVM,
        [block],
        60,
        fresh,
        ZERO_MEAN,
        epochs=1,
        batch_size=60,
        class_batch=1,
        schedule=Schedule(1.0, 0.0, 1.0, 0.0),
        rng=np.random.default_rng(0),
    )
    assert step.posterior.mean == pytest.approx(sweep.posterior.mean, abs=1e-12)
    assert step.objective == pytest.approx(sweep.objective, rel=1e-12)


def test_minibatches_carry_the_factor_n_over_s():
    # four copies of the data: a minibatch holding one copy, scaled by 4, gives the full update
    _, block = problem(n=20)
    copies = Block(*(np.concatenate([a] * 4) for a in block))
    fresh = State.prior(12, 1)
    full = ascend(SVM, [copies], fresh, ZERO_MEAN, sweeps=1, tol=0)
    run = compiled(SVM, "float64")
    rows = np.arange(20, dtype=np.int32)[None]
    plan = Plan(rows, np.zeros((1, 1), np.int32), np.float64(80 / 20))
    out = run.scheduled(copies, fresh, plan, np.ones(1), FLAGS)
    assert out.precision.numpy() == pytest.approx(full.posterior.precision, abs=1e-10)
    assert out.mean.numpy() == pytest.approx(full.posterior.mean, abs=1e-10)


@pytest.mark.slow  # alone: each schedule of steps comes near the closed form
@pytest.mark.parametrize("schedule", [None, Schedule()], ids=["adaptive", "decaying"])
def test_stochastic_fits_come_near_the_full_one(schedule):
    _, block = problem(n=400)
    full = converged(block)
    fit = ascend_stochastic(
        SVM,
        [block],
        400,
        State.prior(12, 1),
        ZERO_MEAN,
        epochs=30,
        batch_size=20,
        class_batch=1,
        schedule=schedule,
        rng=np.random.default_rng(0),
    )
    assert full.objective >= fit.objective > full.objective - 0.03 * abs(full.objective)
    assert fit.objective == fit.trace.max()


def test_adaptive_rates_stay_in_the_unit_interval_and_shrink():
    _, block = problem(n=400)
    rng = np.random.default_rng(0)
    run = compiled(SVM, "float64")
    rows, classes = class_minibatches(400, 10, 1, 1, rng)
    state = State.prior(12, 1)
    drift = Drift(np.zeros((1, 12)), np.zeros((1, 12, 12)), np.array([[0.0], [0.0], [1.0]]))
    windows = []
    for t in range(40):
        plan = Plan(rows[t % 40 : t % 40 + 1], classes[:1], np.float64(40))
        state, drift = run.adaptive(block, state, plan, drift, np.float64(10), FLAGS)
        windows.append(float(drift.averaging[2, 0]))
    # the memory is a plain mean for ten steps; then it grows by less than one a step: 0 < rho < 1
    assert windows[:10] == pytest.approx(np.arange(2, 12))
    steps = np.diff(windows[10:])
    assert (steps < 1).all() and (np.array(windows) >= 1).all()


def test_every_item_is_in_an_epoch():
    rows, classes = class_minibatches(23, 5, 4, 4, np.random.default_rng(0))
    assert rows.shape == (5, 5) and set(rows.ravel()) == set(range(23))
    assert classes.shape == (5, 4)
    rows, classes = class_minibatches(23, 5, 4, 2, np.random.default_rng(0))
    assert rows.shape == (10, 5) and classes.shape == (10, 2)
    assert all(len(set(c)) == 2 for c in classes)


# ------------------------------------------------------------------------------ equivalences


def test_inducing_points_at_the_data_give_the_full_gp():
    X, codes = overlapping(40, 2, 3)
    signs = np.where(codes == 1, 1.0, -1.0)
    kernel = StationaryKernel("squared-exponential", 1.0, 2.0)
    basis = make_basis(X, kernel)
    phi, rest = project(X, basis, kernel)
    sparse = converged(Block.of(phi, rest, signs[:, None]))
    full = full_gp(basis.factor @ basis.factor.T, signs, sweeps=500, tol=1e-13)
    # the jitter is a nugget at the data but not in phi: agreement up to its size
    assert sparse.objective == pytest.approx(full.objective, rel=1e-5)
    new = np.random.default_rng(0).uniform(-3, 3, (30, 2))
    phi_new, rest_new = project(new, basis, kernel)
    K = kernel(new, X)
    mean = phi_new @ sparse.posterior.mean[:, 0]
    variance = rest_new + ((phi_new @ sparse.posterior.root[0].T) ** 2).sum(axis=1)
    assert K @ full.posterior.weights == pytest.approx(mean, abs=1e-4)
    assert 2.0 - ((K @ full.posterior.factor) ** 2).sum(axis=1) == pytest.approx(variance, abs=1e-4)


def test_one_against_the_rest_of_two_classes_is_the_binary_model():
    _, block = problem()
    both = converged(block._replace(targets=np.concatenate([-block.targets, block.targets], axis=1)))
    single = converged(block)
    assert both.posterior.mean[:, 1] == pytest.approx(single.posterior.mean[:, 0], abs=1e-5)
    assert both.posterior.mean[:, 0] == pytest.approx(-single.posterior.mean[:, 0], abs=1e-5)
    assert both.objective == pytest.approx(2 * single.objective, rel=1e-9)


def test_large_margin_gp_of_two_classes_pulls_like_the_binary_model_with_twice_the_variance():
    # f = F_1 - F_0 has twice the prior variance. At the prior both see E[(1 - y f)^2] = 1 + 2k,
    # hence equal weights; with those held, the best means agree.
    from workbench.engine import large_margin

    X, codes = overlapping(50, 2, 5)
    phi, rest, *_ = projected(X, 10, variance=1.0)
    y = np.where(codes == 1, 1.0, -1.0)
    w = (1 + 2 * (rest + (phi**2).sum(axis=1))) ** -0.5
    _, curvature, _ = hinge(*map(tf.constant, (np.zeros((50, 1)), (1 / w**2 - 1)[:, None], y[:, None])))
    assert curvature.numpy()[:, 0] == pytest.approx(w)
    binary = (
        np.sqrt(2)
        * phi
        @ np.linalg.solve(np.eye(10) + 2 * phi.T @ (w[:, None] * phi), np.sqrt(2) * phi.T @ (y * (1 + w)))
    )
    step = large_margin.fit_minibatch(
        Data.of(phi, rest, codes, 2), rivals=1, batch_size=50, epochs=1, rho_start=1.0
    ).posterior
    # one mean-field step moves each class as if the other stood still: solve its system for both
    own = np.eye(10) + phi.T @ (w[:, None] * phi)
    assert step.precision[0] == pytest.approx(own, abs=1e-8)
    cross = phi.T @ (w[:, None] * phi)
    joint = np.block([[own, -cross], [-cross, own]])
    pull = phi.T @ (y * (1 + w))
    means = np.linalg.solve(joint, np.concatenate([-pull, pull]))
    assert phi @ (means[10:] - means[:10]) == pytest.approx(binary, abs=1e-8)


def test_full_gp_never_falls_and_ecm_climbs_the_svms_posterior():
    X, codes = overlapping(50, 2, 1)
    y = np.where(codes == 1, 1.0, -1.0)
    K = StationaryKernel("squared-exponential", 1.0, 5.0)(X, X) + 1e-6 * np.eye(50)
    for options in ({}, {"growth": 1.0}, {"point_estimate": True, "growth": 1.0}):
        fit = full_gp(K, y, sweeps=150, tol=1e-10, **options)
        assert np.diff(fit.trace).min() >= -1e-8 * abs(fit.objective)
    f = K @ fit.posterior.weights
    hinge_loss = np.maximum(0, 1 - y * f).sum()
    assert fit.objective == pytest.approx(-2 * hinge_loss - 0.5 * fit.posterior.weights @ f, rel=1e-6)
    # the mode of that posterior: no small change is better
    rng = np.random.default_rng(0)
    for _ in range(20):
        g = f + 0.05 * K @ rng.standard_normal(50) / 50
        assert -2 * np.maximum(0, 1 - y * g).sum() - 0.5 * g @ np.linalg.solve(K, g) <= fit.objective + 1e-2


def test_full_gp_uses_the_variance_and_ecm_does_not():
    X, codes = overlapping(40, 2, 2)
    y = np.where(codes == 1, 1.0, -1.0)
    K = StationaryKernel("squared-exponential", 1.0, 5.0)(X, X) + 1e-6 * np.eye(40)
    bayes, ecm = full_gp(K, y), full_gp(K, y, point_estimate=True)
    assert (bayes.posterior.r > ecm.posterior.r).mean() > 0.9


def test_full_gp_starts_warm_and_stops_on_request():
    X, codes = overlapping(40, 2, 2)
    y = np.where(codes == 1, 1.0, -1.0)
    K = StationaryKernel("squared-exponential", 1.0, 5.0)(X, X) + 1e-6 * np.eye(40)
    cold = full_gp(K, y)
    warm = full_gp(K, y, r=cold.posterior.r)
    assert warm.n_iter < cold.n_iter and warm.objective >= cold.objective - 1e-9
    stopped = full_gp(K, y, callback=lambda fraction, value: fraction > 0.01)
    assert stopped.stopped and stopped.n_iter < cold.n_iter


def test_one_trace_while_the_data_grows():
    tiny = problem(n=30)[1]
    converged(tiny, sweeps=2)
    run = compiled(SVM, "float64")
    for n, P in ((30, 12), (45, 12), (80, 20)):
        _, block = problem(n=n, n_inducing=P)
        converged(block, sweeps=3)
        both = block._replace(targets=np.concatenate([block.targets, -block.targets], axis=1))
        converged(both, sweeps=3)
    assert run.sums.function.experimental_get_tracing_count() == 1
    assert run.advance.function.experimental_get_tracing_count() == 1


def test_posterior_parts_agree():
    _, block = problem()
    q: State = converged(block, sweeps=7).posterior
    precision = np.linalg.inv(q.root[0].T @ q.root[0])
    assert precision == pytest.approx(q.precision[0], rel=1e-8)
    assert q.precision[0] @ q.mean[:, 0] == pytest.approx(q.linear[0], abs=1e-8)


@pytest.mark.parametrize(
    "method",
    ["penalty", *(pytest.param(name, marks=pytest.mark.slow) for name in ("sums", "sites", "scheduled"))],
)
def test_many_likelihoods_in_a_process_are_no_retracing(monkeypatch, method):
    """Protects against TensorFlow's warning: it counts traces of a method over all objects that have it."""
    said = []
    monkeypatch.setattr(tf.get_logger(), "handle", lambda record: said.append(record.getMessage()))
    block = Block.of(np.ones((4, 2)), np.ones(4), np.ones((4, 3)))
    state = State.prior(2, 3, 0.0)
    plan = Plan(np.zeros((1, 2), np.int32), np.zeros((1, 3), np.int32), np.float64(1.0))
    mean = ZERO_MEAN.tensors(np.dtype(np.float64))
    arguments = {
        "sums": (block, state),
        "sites": (block, state),
        "penalty": (state, mean),
        "scheduled": (block, state, plan, np.ones(1), mean),
    }
    for _ in range(6):
        getattr(Compiled(BayesianSVM(3), tf.float64), method)(*arguments[method])
    assert not [line for line in said if "retracing" in line]
