"""The tempered large-margin solver against an independent NumPy statement of its mathematics."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from scipy.linalg import cholesky, solve_triangular
from scipy.special import kv, logsumexp

from tests.engine.problems import differences, overlapping, projected
from workbench.engine import large_margin as lm
from workbench.engine import large_margin_training as training
from workbench.engine import wide_mean as wm
from workbench.engine.large_margin_state import (
    WORTH,
    Data,
    Posterior,
    RowTerms,
    SpannedPosterior,
    inverse_roots,
    spanned,
    within,
)

TAU = 0.1


@pytest.fixture(scope="module")
def problem():
    X, codes = overlapping(90, 3, seed=1)
    (Phi, kt, _, _) = projected(X, 12)
    return Phi, kt, codes


def random_state(P, C, seed=0):
    """A posterior away from any optimum."""
    rng = np.random.default_rng(seed)
    A = 0.3 * rng.standard_normal((C, P, P))
    precision = np.eye(P) + A @ A.transpose(0, 2, 1)
    root = np.stack([solve_triangular(cholesky(L, lower=True), np.eye(P), lower=True) for L in precision])
    return Posterior(rng.standard_normal((P, C)), precision, root)


def margins(Phi, kt, codes, M, S):
    """d and a [N, C]; the true class's entries mean nothing."""
    rows = np.arange(len(codes))
    F = Phi @ M
    V = np.einsum("np,cpq,nq->nc", Phi, S, Phi)
    d = 1 + F - F[rows, codes][:, None]
    return d, d**2 + 2 * kt[:, None] + V + V[rows, codes][:, None]


def kl(M, S):
    P, C = M.shape
    logs = sum(np.linalg.slogdet(S[c])[1] for c in range(C))
    return 0.5 * (np.trace(S, axis1=1, axis2=2).sum() + (M**2).sum() - P * C - logs)


def objective(Phi, kt, codes, M, S, tau=TAU):
    d, a = margins(Phi, kt, codes, M, S)
    g = d + np.sqrt(a)
    g[np.arange(len(codes)), codes] = -np.inf
    return -tau * logsumexp(g / tau, axis=1).sum() - kl(M, S)


def one_step(Phi, kt, codes, C, state, rho=1.0, scale=1.0, k=None, tau=TAU):
    step = lm._stochastic("float64", False)
    k = C - 1 if k is None else k
    scalars = np.float64(rho), np.float64(scale), np.float64(tau), np.int32(k)
    q, G = step(Phi, kt, codes.astype(np.int32), np.zeros((len(Phi), C)), *state, *scalars)
    return [part.numpy() for part in (*q, G)]


# ------------------------------------------------------------------ formulas


def test_the_objective_is_the_stated_one(problem):
    Phi, kt, codes = problem
    state = random_state(12, 3)
    found = lm.fit(Data.of(Phi, kt, codes, 3), start=state, sweeps=0)
    assert found.trace == pytest.approx([objective(Phi, kt, codes, state.mean, state.covariance)], rel=1e-10)


def test_targets_are_the_gradients_of_the_objective(problem):
    # a full step lands on Lam' = -2 dE/dS with E the data term plus the prior, and on
    # h' = Lam' m + dG/dm: both sides by central differences of the objective
    Phi, kt, codes = problem
    state = random_state(12, 3)
    M2, Lam2, _, _ = one_step(Phi, kt, codes, 3, state)
    S = state.covariance
    slope = differences(lambda M: objective(Phi, kt, codes, M, S), state.mean)
    rng = np.random.default_rng(3)
    for c in range(3):
        B = rng.standard_normal((12, 12))
        direction = np.zeros_like(S)
        direction[c] = B + B.T
        up, down = (objective(Phi, kt, codes, state.mean, S + e * direction) for e in (1e-6, -1e-6))
        expected = 0.5 * np.trace((np.linalg.inv(S[c]) - Lam2[c]) @ direction[c])
        assert (up - down) / 2e-6 == pytest.approx(expected, rel=1e-4, abs=1e-4)
    wanted = np.stack(
        [np.linalg.solve(Lam2[c], Lam2[c] @ state.mean[:, c] + slope[:, c]) for c in range(3)], axis=1
    )
    wanted -= wanted.mean(axis=1, keepdims=True)
    assert M2 == pytest.approx(wanted, abs=1e-6)  # noqa: SIM300


def test_second_derivatives_in_F_are_those_of_the_objective():
    # one row: the data term as a function of F alone, differentiated numerically twice
    rng = np.random.default_rng(5)
    F, spread = rng.standard_normal(4), 0.7

    def data(F, y=1):
        d = 1 + np.delete(F - F[y], y)
        return -TAU * logsumexp((d + np.sqrt(d**2 + spread)) / TAU)

    d = 1 + np.delete(F - F[1], 1)[None]
    found = wm.derivatives(d, d**2 + spread, TAU)
    rivals = np.array([[0, 2, 3]])
    slope = wm.by_class(found.slope, -found.slope.sum(axis=1), rivals, np.array([1]), 4)[0]
    curvature = wm.by_class(found.curvature, found.own_curvature, rivals, np.array([1]), 4)[0]
    assert slope == pytest.approx(differences(data, F), abs=1e-7)
    for c in range(4):
        e = 1e-4 * np.eye(4)[c]
        second = (data(F + e) - 2 * data(F) + data(F - e)) / 1e-8
        assert curvature[c] == pytest.approx(-second, abs=1e-5)


def test_the_hard_objective_is_the_expectation_over_functions(problem):
    # Eb and Eb2 by Monte Carlo; the objective bounds the expected log pseudo-likelihood from below
    Phi, kt, codes = problem
    state = random_state(12, 3)
    rng = np.random.default_rng(0)
    d, a = margins(Phi, kt, codes, state.mean, state.covariance)
    F, V = Phi @ state.mean, np.einsum("np,cpq,nq->nc", Phi, state.covariance, Phi) + kt[:, None]
    f = F + np.sqrt(V) * rng.standard_normal((20_000, *F.shape))
    for n in range(5):
        t = (codes[n] + 1) % 3
        b = 1 + f[:, n, t] - f[:, n, codes[n]]
        assert b.mean() == pytest.approx(d[n, t], abs=0.1)
        assert (b**2).mean() == pytest.approx(a[n, t], rel=0.05)
        assert (-2 * np.maximum(b, 0)).mean() > -(d[n, t] + np.sqrt(a[n, t]))


# ------------------------------------------------------------------ errata of the papers


def test_erratum_signs_of_the_latent_scales_terms():
    # Wistuba & Rawat 2018, eq. 12, 14, 33, and 2019, eq. 17: the entropy of q(lambda) enters with
    # +1/4 log alpha + log K; then the bound peaks at alpha = Eb2 with value -Eb - sqrt(Eb2); with the
    # printed minus it runs away
    Eb, Eb2 = 0.3, 2.5
    alpha = np.logspace(-2, 4, 4001)
    root = np.sqrt(alpha)
    common = -Eb - Eb2 / (2 * root) + root / 2
    entropic = np.log(alpha) / 4 + np.log(kv(0.5, root)) - 0.5 * np.log(np.pi / 2)
    right, printed = common + entropic, common - entropic
    assert right.max() == pytest.approx(-Eb - np.sqrt(Eb2), abs=1e-6)
    assert alpha[right.argmax()] == pytest.approx(Eb2, rel=0.01)
    assert printed.argmax() == len(alpha) - 1


def test_erratum_signs_of_the_linear_terms():
    # Wistuba & Rawat 2018, eq. 42-45: a row pulls its own class by phi (1 + w (1 + F_t)) and its rival by
    # -phi (1 + w (1 - F_y)); eq. 45's leading minus would turn the classifier round
    X, codes = overlapping(60, 3, seed=2)
    Phi, kt, _, _ = projected(X, 12)
    state = random_state(12, 3, seed=4)
    look = lm.fit(Data.of(Phi, kt, codes, 3), start=state, sweeps=0, rivals=1)
    t, w = look.rivals[:, 0], look.second[:, 0] ** -0.5
    F, rows = Phi @ state.mean, np.arange(60)
    h, precision = np.zeros((12, 3)), np.stack([np.eye(12)] * 3)
    for n in rows:
        y = codes[n]
        h[:, y] += Phi[n] * (1 + w[n] * (1 + F[n, t[n]]))
        h[:, t[n]] -= Phi[n] * (1 + w[n] * (1 - F[n, y]))
        for c in (y, t[n]):
            precision[c] += w[n] * np.outer(Phi[n], Phi[n])
    M2, Lam2, _, _ = one_step(Phi, kt, codes, 3, state, k=1)
    M = np.stack([np.linalg.solve(precision[c], h[:, c]) for c in range(3)], axis=1)
    assert Lam2 == pytest.approx(precision, rel=1e-9)
    assert M2 == pytest.approx(M - M.mean(axis=1, keepdims=True), abs=1e-9)  # noqa: SIM300


# ------------------------------------------------------------------ the solver


@pytest.mark.parametrize(("n_classes", "rivals"), [(2, None), (3, None), (5, None), (5, 2), (5, 1)])
def test_the_objective_never_falls(n_classes, rivals):
    X, codes = overlapping(240, n_classes, seed=n_classes, spread=1.0)
    Phi, kt, _, _ = projected(X, 20)
    trace = lm.fit(Data.of(Phi, kt, codes, n_classes), rivals=rivals, sweeps=100, tolerance=1e-9).trace
    assert len(trace) > 5
    assert np.all(np.diff(trace) >= -1e-8 * np.abs(trace[1:]))


@pytest.mark.parametrize("n_classes", [2, 4, 7])
def test_the_default_stop_is_close_to_convergence(n_classes):
    X, codes = overlapping(300, n_classes, seed=n_classes, spread=1.0)
    Phi, kt, _, _ = projected(X, 24)
    short = lm.fit(Data.of(Phi, kt, codes, n_classes))
    long = lm.fit(Data.of(Phi, kt, codes, n_classes), sweeps=300, tolerance=0.0)
    assert len(short.trace) < 40
    assert short.trace[-1] == pytest.approx(long.trace[-1], rel=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_a_steep_first_drop_does_not_end_a_fit(seed):
    # from the prior G rises a hundredfold in one sweep, which says nothing of the sweeps after it
    rng = np.random.default_rng(seed)
    Phi, codes = 22.0 * rng.standard_normal((5, 16)), rng.permutation(5)
    short = lm.fit(Data.of(Phi, np.full(5, 0.1), codes, 5))
    long = lm.fit(Data.of(Phi, np.full(5, 0.1), codes, 5), sweeps=300, tolerance=0.0)
    assert short.trace[1] > 0.1 * short.trace[0]
    assert short.trace[-1] == pytest.approx(long.trace[-1], rel=2e-3)


def test_a_converged_fit_is_stationary(problem):
    Phi, kt, codes = problem
    q = lm.fit(Data.of(Phi, kt, codes, 3), sweeps=400, tolerance=1e-14).posterior
    slope = differences(lambda M: objective(Phi, kt, codes, M, q.covariance), q.mean)
    assert np.abs(slope).max() < 1e-3
    _, Lam, _, _ = one_step(Phi, kt, codes, 3, q)
    assert Lam == pytest.approx(q.precision, rel=1e-4, abs=1e-3)


def test_centring_leaves_margins_alone(problem):
    Phi, kt, codes = problem
    q = lm.fit(Data.of(Phi, kt, codes, 3)).posterior
    assert np.abs(q.mean.sum(axis=1)).max() < 1e-10
    moved = objective(Phi, kt, codes, q.mean + 0.5, q.covariance)
    assert moved < objective(Phi, kt, codes, q.mean, q.covariance)


def test_whitened_equals_unwhitened(problem):
    # the same full step written in u = L v: precision K^-1 + K^-1 k w k' K^-1
    X, codes = overlapping(60, 3, seed=7)
    Phi, kt, _, basis = projected(X, 10)
    state = Posterior.prior(10, 3)
    M2, Lam2, _, _ = one_step(Phi, kt, codes, 3, state)
    L = basis.factor
    A = Phi @ np.linalg.inv(L)  # k_n' K^-1
    d, a = margins(Phi, kt, codes, state.mean, state.covariance)
    rows = np.arange(60)
    g = (d + np.sqrt(a)) / TAU
    g[rows, codes] = -np.inf
    pi = np.exp(g - logsumexp(g, axis=1, keepdims=True))
    W, u = pi / np.sqrt(a), -pi * (1 + d / np.sqrt(a))
    W[rows, codes], u[rows, codes] = W.sum(axis=1), -u.sum(axis=1)
    K_inv = np.linalg.inv(L @ L.T)
    means = []
    for c in range(3):
        precision = K_inv + A.T @ (W[:, [c]] * A)
        means.append(np.linalg.solve(precision, A.T @ u[:, c]))
        assert L.T @ precision @ L == pytest.approx(Lam2[c], rel=1e-7, abs=1e-7)
    means = np.stack(means, axis=1)
    means -= means.mean(axis=1, keepdims=True)
    assert L @ M2 == pytest.approx(means, abs=1e-6)  # noqa: SIM300


def test_a_minibatch_of_everything_is_one_natural_gradient_step(problem):
    Phi, kt, codes = problem
    mean, precision, _, _ = one_step(Phi, kt, codes, 3, Posterior.prior(12, 3))
    batch = lm.fit_minibatch(Data.of(Phi, kt, codes, 3), batch_size=len(codes), epochs=1, rho_start=1.0)
    assert batch.posterior.mean == pytest.approx(mean, abs=1e-9)
    assert batch.posterior.precision == pytest.approx(precision, abs=1e-9)


def test_both_solvers_reach_the_same_optimum(monkeypatch):
    # every rival at once by Newton steps, and the sweeps for data too large for that
    X, codes = overlapping(300, 4, seed=11, spread=1.0)
    Phi, kt, _, _ = projected(X, 20)
    newton = lm.fit(Data.of(Phi, kt, codes, 4), sweeps=100, tolerance=1e-12)
    monkeypatch.setattr(lm, "ALL_RIVALS", 100)
    plain = lm.fit(Data.of(Phi, kt, codes, 4), rivals=3, sweeps=600, tolerance=1e-13)
    assert len(newton.trace) < len(plain.trace) / 5
    assert newton.trace[-1] == pytest.approx(plain.trace[-1], rel=1e-7)
    assert newton.posterior.mean == pytest.approx(plain.posterior.mean, abs=1e-2)
    assert newton.posterior.precision == pytest.approx(plain.posterior.precision, rel=1e-2, abs=1e-2)
    assert np.array_equal(newton.rivals, np.sort(plain.rivals, axis=1))


def test_minibatches_approach_the_full_fit(problem):
    Phi, kt, codes = problem
    full = lm.fit(Data.of(Phi, kt, codes, 3))
    small = lm.fit_minibatch(Data.of(Phi, kt, codes, 3), batch_size=30, epochs=60, seed=1)
    reached = objective(Phi, kt, codes, small.posterior.mean, small.posterior.covariance)
    assert reached == pytest.approx(full.trace[-1], rel=0.02)


@pytest.mark.slow  # alone: large data are the same fit in pieces of rows
def test_chunks_do_not_change_the_fit(problem, monkeypatch):
    Phi, kt, codes = problem
    monkeypatch.setattr(lm, "ALL_RIVALS", 100)
    whole = lm.fit(Data.of(Phi, kt, codes, 3), rivals=2)
    monkeypatch.setattr(lm, "_CHUNK", 25)
    monkeypatch.setattr(lm, "_ONE_CHUNK", 50)
    lm._solver.cache_clear()
    lm._traced.cache_clear()
    try:
        pieces = lm.fit(Data.of(Phi, kt, codes, 3), rivals=2)
    finally:
        monkeypatch.undo()
        lm._solver.cache_clear()
        lm._traced.cache_clear()
    assert pieces.trace == pytest.approx(whole.trace, rel=1e-10)
    assert pieces.posterior.mean == pytest.approx(whole.posterior.mean, abs=1e-8)
    assert pieces.margin == pytest.approx(whole.margin, abs=1e-8)


@pytest.mark.slow  # alone: and in blocks of columns
@pytest.mark.parametrize("all_rivals", [20_000, 100])
def test_blocks_do_not_change_the_fit(all_rivals, monkeypatch):
    monkeypatch.setattr(lm, "ALL_RIVALS", all_rivals)
    X, codes = overlapping(200, 3, seed=9)
    Phi, kt, _, _ = projected(X, 31)
    plain = lm.fit(Data.of(Phi, kt, codes, 3), rivals=2)
    monkeypatch.setattr(lm, "_BLOCKED", 8)
    blocked = lm.fit(Data.of(Phi, kt, codes, 3), rivals=2)
    assert blocked.trace == pytest.approx(plain.trace, rel=1e-9)


def test_listing_every_rival_through_the_short_list_changes_nothing(problem, monkeypatch):
    # C - 1 rivals take the dense path; forcing the general one must give the same numbers
    Phi, kt, codes = problem
    dense = lm.fit(Data.of(Phi, kt, codes, 3), rivals=2)
    four = np.concatenate([codes, [3]])
    Phi4, kt4 = np.concatenate([Phi, np.zeros((1, 12))]), np.append(kt, 2.0)
    state = random_state(12, 4)
    general = lm.fit(Data.of(Phi4, kt4, four, 4), start=state, rivals=2, sweeps=0)
    d, a = margins(Phi4, kt4, four, state.mean, state.covariance)
    assert general.margin == pytest.approx(np.take_along_axis(d, general.rivals, axis=1))
    assert general.second == pytest.approx(np.take_along_axis(a, general.rivals, axis=1))
    assert dense.rivals.shape == (len(codes), 2)


def test_every_rival_counts_up_to_thirty_classes_and_few_where_each_costs_much():
    rows = {(4000, 10): 9, (40_000, 10): 9, (100_000, 10): 3, (4000, 40): 3, (500, 40): 39}
    assert {at: lm.rival_count(*at) for at in rows} == rows


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_cold_start_against_few_rivals_gets_going(seed, monkeypatch):
    """At the prior every rival ties, and steps against the three that are listed raise nothing."""
    X, codes = overlapping(600, 12, seed, spread=1.5, dims=8)
    phi, kt, *_ = projected(X, 30, 2.5, 10.0)
    every = lm.fit(Data.of(phi, kt, codes, 12))
    monkeypatch.setattr(lm, "ALL_RIVALS", 1500)
    for few in (lm.fit(Data.of(phi, kt, codes, 12)), lm.fit(Data.of(phi, kt, codes, 12), rivals=3)):
        assert few.rivals.shape[1] == 3
        wrong = np.mean((phi @ few.posterior.mean).argmax(axis=1) != codes)
        assert wrong < np.mean((phi @ every.posterior.mean).argmax(axis=1) != codes) + 0.03


def test_big_arrays_are_shared_and_unaligned_ones_copied():
    from workbench.engine.projection import aligned

    big = aligned((4000, 64), np.float64)
    big[:] = 1.0
    shared = lm._tensor(big)
    big[0, 0] = 7.0
    assert float(shared[0, 0]) == 7.0
    odd = aligned((4000, 65), np.float64).reshape(-1)[1 : 1 + 4000 * 64].reshape(4000, 64)
    odd[:] = 2.0
    copied = lm._tensor(odd)
    odd[0, 0] = 7.0
    assert float(copied[0, 0]) == 2.0


def test_callbacks_come_in_order_and_stop_with_the_best_state(problem):
    Phi, kt, codes = problem
    seen = []

    def watch(fraction, value):
        seen.append((fraction, value))
        return len(seen) == 2

    stopped = lm.fit(Data.of(Phi, kt, codes, 3), callback=watch)
    free = lm.fit(Data.of(Phi, kt, codes, 3))
    watched = lm.fit(Data.of(Phi, kt, codes, 3), callback=lambda *_: None)
    assert stopped.stopped and len(seen) == 2 and len(stopped.trace) == 3
    assert stopped.trace[-1] == seen[-1][1] == stopped.trace.max()
    assert watched.trace == pytest.approx(free.trace, rel=1e-12)
    assert not watched.stopped


def test_one_trace_while_the_data_grow():
    X, codes = overlapping(20, 3, seed=0)
    Phi, kt, _, _ = projected(X, 9)
    before = lm.trace_count()
    lm.fit(Data.of(Phi, kt, codes, 3))
    assert lm.trace_count() == before  # every rival: NumPy
    lm.fit(Data.of(Phi, kt, codes, 3), rivals=1)
    before = lm.trace_count()
    for n in (20, 35, 60, 90):
        X, codes = overlapping(n, 3, seed=n)
        Phi, kt, _, _ = projected(X, 9 + n // 20)
        start = lm.fit(Data.of(Phi, kt, codes, 3)).posterior
        lm.fit(Data.of(Phi, kt, codes, 3), start=start, rivals=1)
    assert lm.trace_count() == before


def test_one_trace_for_any_number_of_classes():
    def fits(n_classes):
        X, codes = overlapping(20 * n_classes, n_classes, seed=n_classes)
        Phi, kt, _, _ = projected(X, 9)
        for rivals in (None, 1):
            lm.fit(Data.of(Phi, kt, codes, n_classes), rivals=rivals)
        lm.fit_minibatch(Data.of(Phi, kt, codes, n_classes), epochs=1)
        training.fit_adam(Data.of(Phi, kt, codes, n_classes), epochs=1)

    def traced():
        functions = (lm._stochastic("float64", False), training._adam("float64"))
        return [lm.trace_count(), *(f.experimental_get_tracing_count() for f in functions)]

    fits(3)
    before = traced()
    for n_classes in (2, 4, 7, 12):
        fits(n_classes)
    assert traced() == before


def test_rows_are_put_in_the_order_of_their_classes():
    C = 400  # more than a digit holds
    listed = np.random.default_rng(0).integers(0, C, (90, 3))
    listed[listed == 17] = 18  # a class that nobody names
    order, ends = (part.numpy() for part in lm._by_class(tf.constant(listed, tf.int32), C))
    assert (order == np.argsort(listed.ravel(), kind="stable")).all()
    assert (ends == np.bincount(listed.ravel(), minlength=C).cumsum()).all()


@pytest.mark.parametrize("n_classes", [2, 5, 9])
@pytest.mark.parametrize("blocked", [False, True])
def test_few_rivals_say_of_their_pairs_what_all_say(n_classes, blocked):
    """Margins, second moments, precisions and slopes of the listed pairs, against dense sums over classes."""
    X, codes = overlapping(400, n_classes, seed=1)
    codes[codes == n_classes - 1] = 0  # a class that no row is of
    Phi, kt, _, _ = projected(X, 9)
    start = lm.fit(Data.of(Phi, kt, codes, n_classes), sweeps=2).posterior
    found = lm.closing(start, np.zeros(0), Data.of(Phi, kt, codes, n_classes), 0.1, 1, False)
    F, V = Phi @ start.mean, np.einsum("np,cpq,nq->nc", Phi, start.covariance, Phi)
    rows = np.arange(len(codes))
    others = F.copy()
    others[rows, codes] = -np.inf
    rival = others.argmax(axis=1)
    assert (found.rivals[:, 0] == rival).all()
    d = 1 + F[rows, rival] - F[rows, codes]
    assert found.margin[:, 0] == pytest.approx(d)
    a = d**2 + V[rows, rival] + V[rows, codes] + 2 * kt
    assert found.second[:, 0] == pytest.approx(a)

    data = Data.of(Phi, kt, codes, n_classes)
    at = lm._Look(
        *(tf.constant(part) for part in (found.rivals.astype(np.int32), found.margin, found.second, 0.0))
    )
    q = Posterior(*(tf.constant(part) for part in start))
    precision, gradient = lm._target(data, q, at, tf.constant(0.1, tf.float64), 1, blocked)
    w, slope = a**-0.5, 1 + d * a**-0.5
    W, u = np.zeros_like(F), np.zeros_like(F)
    W[rows, rival] = W[rows, codes] = w
    u[rows, rival], u[rows, codes] = -slope, slope
    dense = np.eye(Phi.shape[1]) + np.einsum("nc,np,nq->cpq", W, Phi, Phi)
    assert precision.numpy() == pytest.approx(dense)
    assert gradient.numpy() == pytest.approx(Phi.T @ u - start.mean)


def test_a_warm_start_from_the_optimum_stays(problem):
    Phi, kt, codes = problem
    first = lm.fit(Data.of(Phi, kt, codes, 3), sweeps=300, tolerance=1e-9)
    again = lm.fit(Data.of(Phi, kt, codes, 3), start=first.posterior)
    assert len(again.trace) <= 4
    assert again.trace[-1] >= first.trace[-1] - 1e-9 * abs(first.trace[-1])


def test_float32_agrees(problem):
    Phi, kt, codes = problem
    double = lm.fit(Data.of(Phi, kt, codes, 3))
    # a temperature as a grid of options has it does not change the precision
    single = lm.fit(Data.of(Phi.astype(np.float32), kt.astype(np.float32), codes, 3), tau=np.float64(lm.TAU))
    assert single.posterior.mean.dtype == np.float32
    assert single.trace[-1] == pytest.approx(double.trace[-1], rel=1e-3)
    assert Phi @ single.posterior.mean == pytest.approx(Phi @ double.posterior.mean, abs=0.05)


def test_two_classes_reach_the_binary_means_with_doubled_variance():
    # at equal weights the two-class model's difference f_1 - f_0 is the binary model's f under
    # twice the kernel; its stationary point is solved for both classes at once
    X, codes = overlapping(50, 2, seed=3)
    Phi, kt, _, _ = projected(X, 10)
    sign = 2.0 * codes - 1.0
    w = np.random.default_rng(0).uniform(0.2, 1.0, 50)
    double = np.sqrt(2.0) * Phi
    binary = double @ np.linalg.solve(
        np.eye(10) + double.T @ (w[:, None] * double), double.T @ (sign * (1 + w))
    )
    # u_t = -(1 + w d): dG/dF of docs/math.md, 2, linear in M while w is held
    M = np.zeros((10, 2))
    for _ in range(4000):
        F = Phi @ M
        u = 1 + w * (1 - sign * (F[:, 1] - F[:, 0]))
        slope = np.stack([-Phi.T @ (sign * u), Phi.T @ (sign * u)], axis=1) - M
        M += 0.005 * slope
    assert Phi @ (M[:, 1] - M[:, 0]) == pytest.approx(binary, abs=1e-6)
    # and the engine's own slope is that one
    state = Posterior.prior(10, 2)._replace(mean=M)
    look = lm.fit(Data.of(Phi, kt, codes, 2), start=state, sweeps=0)
    d, a = look.margin[:, 0], look.second[:, 0]
    assert wm.derivatives(look.margin, look.second, TAU).slope[:, 0] == pytest.approx(-(1 + d / np.sqrt(a)))


# ------------------------------------------------------------------ the wide mean


def wide_problem(seed=0):
    X, codes = overlapping(120, 3, seed=seed, spread=1.0)
    small = projected(X, 10)
    wide = projected(X, 60)
    fit = lm.fit(Data.of(small[0], small[1], codes, 3))
    return codes, small, wide, fit


def test_the_wide_basis_begins_with_the_small_one():
    _, small, wide, _ = wide_problem()
    assert wide[0][:, :10] == pytest.approx(small[0], abs=1e-8)


def test_the_wide_mean_climbs_to_a_stationary_point():
    codes, small, wide, fit = wide_problem()
    Phi = wide[0]
    s = fit.second - fit.margin**2
    V = wm.variances(small[0], fit.posterior.root)
    spread = V + V[np.arange(120), codes][:, None] + 2 * small[1][:, None]
    assert np.take_along_axis(spread, fit.rivals, axis=1) == pytest.approx(s)

    def G(M):
        F = Phi @ M
        d = 1 + np.take_along_axis(F, fit.rivals, axis=1) - F[np.arange(120), codes][:, None]
        return -TAU * logsumexp((d + np.sqrt(d**2 + s)) / TAU, axis=1).sum() - 0.5 * (M**2).sum()

    start = np.zeros((60, 3))
    start[:10] = fit.posterior.mean
    at = wm.derivatives(fit.margin, fit.second, TAU)
    k = wm.by_class(at.curvature, at.own_curvature, fit.rivals, codes, 3)
    args = (Phi, codes, spread, start, fit.posterior.root, k, TAU)
    default, _ = wm.fit_mean(*args)
    best, d = wm.fit_mean(*args, iterations=500, tolerance=0.0)
    assert G(start) < G(default) <= G(best) + 1e-9
    assert G(default) == pytest.approx(G(best), rel=0.02)
    assert np.abs(differences(G, best)).max() < 0.01 * np.abs(differences(G, start)).max()
    F = Phi @ best
    assert d == pytest.approx(1 + F - F[np.arange(120), codes][:, None])


def test_a_wide_fit_reports_and_stops():
    codes, small, wide, fit = wide_problem()
    V = wm.variances(small[0], fit.posterior.root)
    spread = V + V[np.arange(120), codes][:, None] + 2 * small[1][:, None]
    seen = []
    start = np.zeros((60, 3))
    args = (wide[0], codes, spread, start, fit.posterior.root, np.ones((120, 3)), TAU)
    wm.fit_mean(*args, callback=lambda fraction, value: seen.append((fraction, value)) and None)
    assert len(seen) > 3
    assert all(a[1] <= b[1] + 1e-9 for a, b in itertools.pairwise(seen))
    stopped, _ = wm.fit_mean(*args, callback=lambda *_: True)
    assert np.isfinite(stopped).all() and np.abs(stopped).max() > 0


def test_a_class_far_from_every_margin_has_plain_leverages_and_no_complaint_of_lapack(capfd):
    Phi = np.random.default_rng(0).normal(size=(8, 5))
    found, crossed = wm.leverages(Phi, np.zeros((8, 2)), np.arange(8), np.ones((8, 2), bool), 2.0 * Phi)
    np.testing.assert_allclose(crossed, 2.0 * found)
    np.testing.assert_allclose(found, np.repeat((Phi**2).sum(axis=1)[:, None], 2, axis=1))
    assert capfd.readouterr().err == ""


def test_leverages_agree_in_both_forms():
    rng = np.random.default_rng(0)
    Phi, k = rng.standard_normal((30, 12)), rng.uniform(0.1, 1.0, (30, 2))
    k[8:, 1] = 0.0  # fewer rows than points: the dual form
    sample = np.array([0, 3, 29])
    other = rng.standard_normal((3, 12))
    found, crossed = wm.leverages(Phi, k, sample, np.ones((3, 2), bool), other)
    assert np.array_equal(wm.leverages(Phi, k, sample, np.ones((3, 2), bool))[0], found)
    for c in range(2):
        H = np.eye(12) + 2.0 * Phi.T @ (k[:, [c]] * Phi)
        assert found[:, c] == pytest.approx(
            np.einsum("np,np->n", Phi[sample], np.linalg.solve(H, Phi[sample].T).T)
        )
        assert crossed[:, c] == pytest.approx(
            np.einsum("np,np->n", other, np.linalg.solve(H, Phi[sample].T).T)
        )


# ------------------------------------------------------------------ fewer rows than points


@pytest.fixture(scope="module")
def few():
    """30 rows of which two are copies, 48 points."""
    X, codes = overlapping(48, 3, seed=2, dims=4)
    Phi, kt, *_ = projected(X, 48, length=2.0)
    Phi[3], kt[3] = Phi[0], kt[0]
    return Phi[:30].copy(), kt[:30].copy(), codes[:30]


def test_few_rows_are_fitted_in_their_span_with_the_same_result(few, monkeypatch):
    Phi, kt, codes = few
    offset = np.random.default_rng(0).normal(size=(len(codes), 3))
    found = lm.fit(Data.of(Phi, kt, codes, 3, offset))
    assert isinstance(found.posterior, SpannedPosterior)
    monkeypatch.setattr(lm, "WORTH", 0.0)
    whole = lm.fit(Data.of(Phi, kt, codes, 3, offset))
    assert isinstance(whole.posterior, Posterior)
    np.testing.assert_allclose(found.trace, whole.trace, rtol=1e-9)
    for mine, theirs in zip(found.posterior, whole.posterior, strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, atol=1e-7)
    np.testing.assert_allclose(found.posterior.covariance, whole.posterior.covariance, atol=1e-7)
    np.testing.assert_allclose(found.margin, whole.margin, atol=1e-7)
    np.testing.assert_allclose(found.second, whole.second, atol=1e-7)


def test_a_fit_in_the_span_goes_on_from_one_of_other_rows(few, monkeypatch):
    Phi, kt, codes = few
    before = lm.fit(Data.of(Phi[:25], kt[:25], codes[:25], 3)).posterior
    assert isinstance(before, SpannedPosterior)
    plain = Posterior(*before)
    _, axes = spanned(Phi)
    for mine, theirs in zip(within(before, axes), within(plain, axes), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-9)
    here = [lm.fit(Data.of(Phi, kt, codes, 3), start=start).trace for start in (before, plain)]
    monkeypatch.setattr(lm, "WORTH", 0.0)
    there = lm.fit(Data.of(Phi, kt, codes, 3), start=plain).trace
    np.testing.assert_allclose(here[0], here[1], rtol=1e-9)
    np.testing.assert_allclose(here[0], there, rtol=1e-9)


def test_what_rows_said_starts_a_fit_of_another_kernel_near_its_optimum(few):
    Phi, kt, codes = few
    X, _ = overlapping(48, 3, seed=2, dims=4)
    other, kt_other, *_ = projected(X, 48, length=2.6)
    other, kt_other = other[:30], kt_other[:30]
    first = lm.fit(Data.of(Phi, kt, codes, 3), tolerance=1e-12, sweeps=500)
    said = RowTerms.of(Phi @ first.posterior.mean, first.margin, first.second, first.rivals, codes, TAU)
    # at the same kernel they are the optimum itself
    back = said.posterior(Phi)
    np.testing.assert_allclose(back.mean, first.posterior.mean, atol=1e-3)
    np.testing.assert_allclose(back.precision, first.posterior.precision, atol=1e-3)
    cold, warm = (lm.fit(Data.of(other, kt_other, codes, 3), start=start) for start in (None, said))
    best = max(cold.trace[-1], warm.trace[-1])
    assert best - warm.trace[0] < 0.2 * (best - cold.trace[0])
    assert len(warm.trace) <= len(cold.trace)
    np.testing.assert_allclose(warm.trace[-1], cold.trace[-1], rtol=1e-3)


def test_only_few_rows_are_worth_it_and_a_look_alone_keeps_its_start(few):
    Phi, kt, codes = few
    assert len(Phi) <= WORTH * Phi.shape[1]
    start = random_state(Phi.shape[1], 3)
    look = lm.fit(Data.of(Phi, kt, codes, 3), start=start, sweeps=0)
    assert np.array_equal(look.posterior.mean, start.mean)
    square = lm.fit(Data.of(Phi[:, :30], kt, codes, 3))
    assert isinstance(square.posterior, Posterior)
    with pytest.raises(np.linalg.LinAlgError, match="not positive"):
        inverse_roots(-np.eye(3)[None])
