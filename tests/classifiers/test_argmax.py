"""P(argmax): against dense quadrature, Monte Carlo and closed forms."""

import numpy as np
import pytest
from scipy.special import ndtr

from workbench.classifiers.argmax import argmax_mass, argmax_probabilities
from workbench.errors import InputError


def dense(mean: np.ndarray, s: np.ndarray) -> np.ndarray:
    """[C], one fine quadrature per class: slow and independent of the shared grid."""
    x = np.linspace(-9, 9, 1_501)
    out = np.empty(len(mean))
    for j in range(len(mean)):
        f = mean[j] + s[j] * x
        p = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)
        for other in range(len(mean)):
            if other != j:
                p = p * ndtr((f - mean[other]) / s[other])
        out[j] = p.sum() * (x[1] - x[0])
    return out


def moments(rng: np.random.Generator, n: int, C: int, spread: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=(n, C)) * spread, np.exp(rng.uniform(-1, 1, size=(n, C)))


@pytest.mark.parametrize("C", [1, 2, 3, 5, 10, 26, 50])
@pytest.mark.parametrize("spread", [0.0, 0.5, 3.0])
def test_agrees_with_one_quadrature_per_class(C: int, spread: float) -> None:
    mean, variance = moments(np.random.default_rng(C), 6, C, spread)
    got = argmax_probabilities(mean, variance)
    for i in range(len(mean)):
        np.testing.assert_allclose(got[i], dense(mean[i], np.sqrt(variance[i])), atol=2e-10)
    np.testing.assert_allclose(got.sum(axis=1), 1.0, atol=1e-14)


@pytest.mark.parametrize("C", [3, 10, 100])
def test_the_integral_is_one_before_it_is_normalised(C: int) -> None:
    rng = np.random.default_rng(0)
    for spread, wide in ((0.0, 0.0), (1.0, 0.5), (4.0, 1.5)):
        mean = rng.normal(size=(200, C)) * spread
        mass = argmax_mass(mean, np.exp(rng.uniform(-wide, wide, size=(200, C))))
        np.testing.assert_allclose(mass.sum(axis=1), 1.0, atol=2e-7 if C == 100 else 2e-10)


def test_agrees_with_a_million_draws() -> None:
    mean, variance = moments(np.random.default_rng(3), 2, 6)
    got = argmax_probabilities(mean, variance)
    rng = np.random.default_rng(4)
    for i in range(len(mean)):
        draws = rng.standard_normal((1_000_000, 6)) * np.sqrt(variance[i]) + mean[i]
        share = np.bincount(draws.argmax(axis=1), minlength=6) / 1e6
        # five standard errors of a share
        assert np.all(np.abs(share - got[i]) < 5 * np.sqrt(np.maximum(got[i] * (1 - got[i]), 1e-6) / 1e6))


def test_two_classes_have_a_closed_form() -> None:
    mean, variance = moments(np.random.default_rng(5), 50, 2, 3.0)
    z = (mean[:, 0] - mean[:, 1]) / np.sqrt(variance.sum(axis=1))
    np.testing.assert_allclose(argmax_probabilities(mean, variance)[:, 0], ndtr(z), rtol=1e-12)


def test_certainty_and_ties() -> None:
    p = argmax_probabilities(np.array([[1.0, 0, 0], [0, 0, 0], [0, 0, -9]]), np.zeros((3, 3)))
    np.testing.assert_allclose(p, [[1, 0, 0], [1 / 3] * 3, [0.5, 0.5, 0]], atol=1e-9)
    # one class certain at 0, one spread around it: a coin
    np.testing.assert_allclose(argmax_probabilities([[0.0, 0.0]], [[0.0, 4.0]]), [[0.5, 0.5]], atol=1e-9)


@pytest.mark.parametrize("ratio", [1e-2, 1e-4, 1e-8])
def test_deviations_of_different_orders(ratio: float) -> None:
    mean = np.array([[0.1, 0.0, -0.2, 0.05]])
    s = np.array([[1.0, ratio, 1.0, 0.5]])
    got = argmax_probabilities(mean, s**2)[0]
    # the narrow class sits at 0, up to a deviation of `ratio`
    f = 0.0
    expected = ndtr((f - 0.1) / 1.0) * ndtr((f + 0.2) / 1.0) * ndtr((f - 0.05) / 0.5)
    assert got[1] == pytest.approx(expected, abs=max(2 * ratio**2, 1e-9))
    assert got.sum() == pytest.approx(1.0)


def test_extreme_scales() -> None:
    rng = np.random.default_rng(6)
    mean, s = rng.normal(size=(20, 4)), rng.uniform(0.5, 1.5, size=(20, 4))
    plain = argmax_probabilities(mean, s**2)
    for scale in (1e-140, 1e140):
        np.testing.assert_allclose(argmax_probabilities(mean * scale, (s * scale) ** 2), plain, atol=1e-12)


def test_an_item_is_its_own_affair() -> None:
    """Not the last bit depends on the order of items or on what else is in the block."""
    mean, variance = moments(np.random.default_rng(7), 400, 7, 2.0)
    whole = argmax_probabilities(mean, variance)
    order = np.random.default_rng(8).permutation(400)
    assert np.array_equal(argmax_probabilities(mean[order], variance[order]), whole[order])
    assert np.array_equal(argmax_probabilities(mean[17:18], variance[17:18]), whole[17:18])


def test_permuting_classes_permutes_columns() -> None:
    mean, variance = moments(np.random.default_rng(9), 50, 5)
    order = np.array([3, 1, 4, 0, 2])
    np.testing.assert_allclose(
        argmax_probabilities(mean[:, order], variance[:, order]),
        argmax_probabilities(mean, variance)[:, order],
        atol=1e-14,
    )


def test_bad_moments_name_the_item() -> None:
    mean, variance = moments(np.random.default_rng(10), 5, 3)
    mean[3, 1] = np.nan
    with pytest.raises(InputError, match="item 3"):
        argmax_probabilities(mean, variance)
    mean[3, 1] = 0.0
    variance[4, 0] = -1e-3
    with pytest.raises(InputError, match="item 4"):
        argmax_probabilities(mean, variance)
    with pytest.raises(InputError, match="items, classes"):
        argmax_probabilities(mean, variance[:, :2])


def test_nothing_in_nothing_out() -> None:
    assert argmax_probabilities(np.empty((0, 4)), np.empty((0, 4))).shape == (0, 4)
