"""Logistic-softmax probabilities by quadrature against sampling and exact cases."""

import tracemalloc

import numpy as np
import pytest
from scipy.special import expit, log_expit, softmax
from scipy.stats import norm, qmc

from workbench.engine import quadrature
from workbench.engine.quadrature import gauss_hermite, logistic_softmax_probabilities, softmax_probabilities


def sobol(mean, variance, log2=15, seed=0):
    z = norm.ppf(np.clip(qmc.Sobol(mean.shape[1], seed=seed).random(1 << log2), 1e-12, 1 - 1e-12))
    s = expit(mean[:, None] + np.sqrt(variance)[:, None] * z)
    return (s / s.sum(axis=2, keepdims=True)).mean(axis=1)


@pytest.mark.parametrize(("n_classes", "spread", "widest"), [(2, 1, 1), (3, 3, 4), (10, 4, 10), (3, 10, 30)])
def test_matches_scrambled_sobol(n_classes, spread, widest):
    rng = np.random.default_rng(n_classes)
    mean = spread * rng.standard_normal((12, n_classes))
    variance = rng.uniform(0, widest, (12, n_classes))
    p = logistic_softmax_probabilities(mean, variance)
    assert p == pytest.approx(sobol(mean, variance), abs=1.5e-3)
    assert p.sum(axis=1) == pytest.approx(1)


def test_is_converged_in_nodes_and_step():
    rng = np.random.default_rng(0)
    mean, variance = 3 * rng.standard_normal((50, 5)), rng.uniform(0, 10, (50, 5))
    fine = quadrature._shares(mean, variance, log_expit, 120, 0.25)
    assert logistic_softmax_probabilities(mean, variance) == pytest.approx(fine, abs=2e-4)
    assert logistic_softmax_probabilities(mean, variance, rough=True) == pytest.approx(fine, abs=5e-3)


def test_without_variance_it_is_the_likelihood():
    mean = np.array([[2.0, -1.0, 0.5], [-30.0, -31.0, -35.0], [40.0, 40.0, 0.0]])
    s = expit(mean)
    p = logistic_softmax_probabilities(mean, np.zeros_like(mean))
    assert p == pytest.approx(s / s.sum(axis=1, keepdims=True), abs=1e-5)


def test_means_alone_would_be_wrong():
    mean, variance = np.array([[4.0, -2.0]]), np.array([[16.0, 16.0]])
    s = expit(mean)
    assert abs(logistic_softmax_probabilities(mean, variance) - s / s.sum()).max() > 0.1


def test_rows_do_not_depend_on_their_neighbours_and_classes_may_be_permuted():
    rng = np.random.default_rng(1)
    mean, variance = rng.standard_normal((30, 4)), rng.uniform(0.1, 5, (30, 4))
    p = logistic_softmax_probabilities(mean, variance)
    assert logistic_softmax_probabilities(mean[:3], variance[:3]) == pytest.approx(p[:3], abs=1e-6)
    order = [2, 0, 3, 1]
    assert logistic_softmax_probabilities(mean[:, order], variance[:, order]) == pytest.approx(p[:, order])


def test_empty_and_float32_input():
    assert logistic_softmax_probabilities(np.zeros((0, 3)), np.zeros((0, 3))).shape == (0, 3)
    p = logistic_softmax_probabilities(np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32))
    assert p.dtype == np.float64 and p == pytest.approx(1 / 3)


def test_gauss_hermite_integrates_polynomials():
    x, w = gauss_hermite(8)
    assert (w @ x**2, w @ x**4, w @ x**6) == pytest.approx((1, 3, 15))


@pytest.mark.parametrize("variance", [10.0, 30.0, 100.0, 300.0, 1000.0])
def test_wide_posteriors_are_as_exact_as_narrow_ones(variance):
    """Protects against nodes further apart than the functions they sample (errors up to 0.04)."""
    rng = np.random.default_rng(0)
    mean = rng.standard_normal((12, 5)) * np.sqrt(variance / 4)
    mean[3] -= np.sqrt(variance)
    spread = np.full(mean.shape, variance)
    spread[5, 1:] = 0.01
    z = norm.ppf(np.clip(qmc.Sobol(5, seed=0).random(1 << 16), 1e-12, 1 - 1e-12))
    f = mean[:, None] + np.sqrt(spread)[:, None] * z
    for score, p in (
        (f, softmax_probabilities(mean, spread)),
        (log_expit(f), logistic_softmax_probabilities(mean, spread)),
    ):
        assert p == pytest.approx(softmax(score, axis=2).mean(axis=1), abs=6e-4)
        assert p.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("probabilities", [softmax_probabilities, logistic_softmax_probabilities])
def test_the_work_of_a_row_does_not_grow_with_its_variance(probabilities, monkeypatch):
    """Protects against nodes and grid that both grow with the deviation: 1e8 exponentials a row at 1e6."""
    counted = 0
    exp = np.exp

    def counting(x, *arguments, **options):
        nonlocal counted
        counted += np.size(x)
        return exp(x, *arguments, **options)

    monkeypatch.setattr(quadrature.np, "exp", counting)
    probabilities(np.array([[100.0, 0.0, -50.0]]), np.full((1, 3), 120.0**2))
    at_a_hundred, counted = counted, 0
    p = probabilities(np.array([[1e3, 0.0, -500.0]]), np.full((1, 3), 1e6))
    assert counted < 4 * at_a_hundred < 400_000
    assert np.isfinite(p).all() and p.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("deviation", [30.0, 1e3, 1e6])
def test_a_very_wide_posterior_compares_its_largest_values(deviation):
    """At such deviations the softmax is the largest latent, and with two classes a normal integral."""
    scale = np.array([1.0, 0.4])
    mean = np.array([[0.3, -0.2], [2.0, 0.0], [-1.0, 1.0]]) * deviation
    spread = np.broadcast_to((scale * deviation) ** 2, mean.shape)
    shares = norm.cdf((mean[:, 0] - mean[:, 1]) / np.sqrt(deviation**2 * (scale**2).sum() + np.pi**2 / 3))
    assert softmax_probabilities(mean, spread)[:, 0] == pytest.approx(shares, abs=1e-4)
    assert logistic_softmax_probabilities(mean - 9.0 * deviation, spread)[:, 0] == pytest.approx(
        shares, abs=1e-4
    )
    beside_a_narrow_one = np.array([[0.3 * deviation, 2.0, 1.0]])
    narrow = np.array([[deviation**2, 0.0, 0.0]])
    p = softmax_probabilities(beside_a_narrow_one, narrow)[0]
    assert p[1] / p[2] == pytest.approx(np.e, rel=20.0 / deviation + 1e-3)
    assert p[0] == pytest.approx(norm.cdf(0.3), abs=2.0 / deviation + 1e-4)


def test_a_wide_row_leaves_its_neighbours_alone():
    mean, variance = np.zeros((3, 4)), np.array([[1.0] * 4, [200.0] * 4, [2.0] * 4])
    mean[:, 0] = 1.0
    for probabilities in (softmax_probabilities, logistic_softmax_probabilities):
        together = probabilities(mean, variance)
        for i in (0, 2):
            assert together[i] == pytest.approx(
                probabilities(mean[i : i + 1], variance[i : i + 1])[0], abs=1e-6
            )


@pytest.mark.parametrize("probabilities", [softmax_probabilities, logistic_softmax_probabilities])
def test_the_memory_of_a_row_does_not_grow_with_its_variance(probabilities):
    # grid times nodes grow with the variance: at 1e6 it was 3 GB a row and three classes
    tracemalloc.start()
    p = probabilities(np.zeros((2, 3)), np.full((2, 3), 120.0**2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert p == pytest.approx(1 / 3) and peak < 3e7
