"""The Gibbs sampler: its conditionals, its target, its diagnostics."""

import numpy as np
import pytest
from scipy.special import expit

from workbench.engine.logistic_softmax_gibbs import (
    _gaussian,
    augmentation,
    class_moves,
    diagnose,
    effective_sample_size,
    log_probability,
    sample,
    shift_move,
    split_r_hat,
)


def test_counts_and_polya_gamma_have_their_conditional_means():
    rng = np.random.default_rng(0)
    f = np.array([[1.0, -0.5, 0.2]])
    y = np.array([[1.0, 0.0, 0.0]])
    counts, omega = zip(*(augmentation(f, y, rng) for _ in range(12_000)), strict=True)
    # E n = E lambda sigma(-f) = sigma(-f) / sum sigma(f): the paper prints sigma(f)
    assert np.mean(counts, axis=0) == pytest.approx(expit(-f) / expit(f).sum(), rel=0.06)
    shape = y + expit(-f) / expit(f).sum()
    assert np.mean(omega, axis=0) == pytest.approx(shape * np.tanh(f / 2) / (2 * f), rel=0.06)
    never = (np.array(counts) + y) == 0
    assert never.any() and (np.array(omega)[never] == 0).all() and (np.array(omega)[~never] > 0).all()


def test_rates_stay_countable_when_every_class_is_unlikely():
    counts, omega = augmentation(np.full((3, 2), -60.0), np.zeros((3, 2)), np.random.default_rng(0))
    assert np.isfinite(counts).all() and np.isfinite(omega).all()


@pytest.mark.parametrize(("size", "n"), [(60.0, 1), (300.0, 1), (300.0, 1000), (1000.0, 1000), (1e5, 1)])
def test_polya_gamma_keeps_its_mean_where_latents_are_far_out(size, n):
    """Protects against the package, whose draws are 100 times too large at 300 and NaN from 700 on."""
    f, y = np.full((4000, 1), size), np.full((4000, 1), float(n))
    counts, omega = augmentation(f, y, np.random.default_rng(0))
    assert (counts == 0).all()
    assert omega.mean() == pytest.approx(n / (2.0 * size), rel=0.02)
    assert omega.var() == pytest.approx(n / (2.0 * size**3), rel=0.15)


def test_no_rate_where_every_sigma_underflows():
    with np.errstate(all="raise", under="ignore"):
        counts, omega = augmentation(np.full((3, 2), -1e4), np.zeros((3, 2)), np.random.default_rng(0))
    assert np.isfinite(counts).all() and np.isfinite(omega).all()


def test_gaussian_conditional_has_the_right_moments():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3, 3))
    K = A @ A.T + 0.3 * np.eye(3)
    w, linear, m0 = np.array([0.7, 0.0, 2.0]), np.array([0.5, -1.0, 0.2]), -0.8
    draws = np.stack([_gaussian(linear, w, K, np.linalg.cholesky(K), m0, rng) for _ in range(20_000)])
    covariance = np.linalg.inv(np.diag(w) + np.linalg.inv(K))
    mean = covariance @ (linear + np.linalg.solve(K, np.full(3, m0)))
    assert draws.mean(axis=0) == pytest.approx(mean, abs=0.04)
    assert np.cov(draws.T) == pytest.approx(covariance, abs=0.06)


def tiny_problem():
    K = np.array([[2.0, 1.2, 0.2], [1.2, 2.0, 0.5], [0.2, 0.5, 2.0]])
    codes, C, m0 = np.array([0, 0, 1]), 2, -0.3
    # importance sampling from the prior
    rng = np.random.default_rng(0)
    prior = m0 + np.einsum("ij,sjc->sic", np.linalg.cholesky(K), rng.standard_normal((200_000, 3, C)))
    weights = np.exp(log_probability(prior, codes).sum(axis=1))
    weights /= weights.sum()
    mean = np.einsum("s,snc->nc", weights, prior)
    spread = np.einsum("s,snc->nc", weights, (prior - mean) ** 2)
    return K, codes, C, m0, mean, spread


@pytest.fixture(scope="module")
def tiny():
    return tiny_problem()


@pytest.mark.slow  # alone: the sampler's target against numerical integration
@pytest.mark.parametrize("slice_moves", [0, 1])
def test_chains_find_the_exact_posterior(tiny, slice_moves):
    K, codes, C, m0, mean, spread = tiny
    draws = sample(
        K, codes, C, prior_mean=m0, draws=2000, burn_in=100, chains=2, seed=1, slice_moves=slice_moves
    )
    f = draws.f.reshape(-1, 3, C)
    assert f.mean(axis=0) == pytest.approx(mean, abs=0.08)
    assert f.var(axis=0) == pytest.approx(spread, abs=0.2)
    d = diagnose(draws)
    assert d.r_hat < 1.05 and d.effective_sample_size > 400
    assert d.r_hat_by_item.shape == d.effective_by_item.shape == (3, C)


def test_slice_moves_alone_keep_the_posterior(tiny):
    K, codes, C, m0, mean, spread = tiny
    rng, lower, y = np.random.default_rng(0), np.linalg.cholesky(K), np.eye(C)[codes]
    f = np.zeros((3, C))
    draws = np.empty((6000, 3, C))
    for t in range(len(draws)):
        f = class_moves(shift_move(f, y, lower, m0, rng), y, lower, m0, rng)
        draws[t] = f
    assert draws.mean(axis=0) == pytest.approx(mean, abs=0.1)
    assert draws.var(axis=0) == pytest.approx(spread, abs=0.25)


def test_a_shift_keeps_differences_between_classes():
    rng = np.random.default_rng(0)
    f, y = rng.standard_normal((5, 3)), np.eye(3)[[0, 1, 2, 0, 1]]
    moved = shift_move(f, y, np.eye(5), -1.0, rng)
    assert not np.allclose(moved, f)
    assert np.diff(moved, axis=1) == pytest.approx(np.diff(f, axis=1))


def test_same_seed_same_draws_and_chains_differ():
    K, codes = np.eye(4) + 0.5, np.array([0, 1, 2, 0])
    first, again, other = (sample(K, codes, 3, draws=5, burn_in=2, chains=2, seed=s) for s in (0, 0, 1))
    assert np.array_equal(first.f, again.f)
    assert not np.array_equal(first.f, other.f)
    assert not np.array_equal(first.f[0], first.f[1])


@pytest.mark.parametrize(("stop_at", "kept"), [(0.2, 5), (0.8, 10)])
def test_stopping_keeps_what_was_drawn(stop_at, kept):
    draws = sample(
        np.eye(3),
        np.array([0, 1, 0]),
        2,
        draws=20,
        burn_in=30,
        chains=2,
        seed=0,
        callback=lambda fraction, value: fraction >= stop_at,
    )
    assert draws.stopped and draws.f.shape[1] == kept


def test_split_r_hat_tells_mixed_chains_from_others():
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((4, 500, 2))
    assert split_r_hat(mixed) == pytest.approx(1, abs=0.02)
    apart = mixed + np.arange(4)[:, None, None]
    assert (split_r_hat(apart) > 1.3).all()
    drifting = mixed + np.linspace(0, 3, 500)[None, :, None]
    assert (split_r_hat(drifting) > 1.15).all()
    assert split_r_hat(np.ones((2, 10, 1))) == 1
    assert np.isnan(split_r_hat(mixed[:, :3])).all()


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_effective_sample_size_of_autoregressions(rho):
    rng = np.random.default_rng(1)
    x = np.empty((4, 4000, 1))
    x[:, 0] = rng.standard_normal((4, 1))
    for t in range(1, 4000):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * rng.standard_normal((4, 1))
    assert effective_sample_size(x)[0] == pytest.approx(16_000 * (1 - rho) / (1 + rho), rel=0.2)


def test_effective_sample_size_of_chains_that_disagree_is_small():
    rng = np.random.default_rng(0)
    apart = rng.standard_normal((2, 500, 1)) + np.array([0.0, 10.0])[:, None, None]
    assert effective_sample_size(apart)[0] < 20
