"""The exact variation ratio, its bounds and its best k."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from workbench.classifiers.argmax import argmax_mass, argmax_probabilities
from workbench.errors import InputError
from workbench.policies import top_variation_ratio, variation_ratio
from workbench.policies import variation as module
from workbench.policies.variation import bounds, smallest_margin, top_rows


def test_is_one_minus_the_largest_probability() -> None:
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(300, 6)), rng.uniform(0.1, 3, size=(300, 6))
    expected = 1.0 - argmax_probabilities(mean, variance).max(axis=1)
    np.testing.assert_allclose(variation_ratio(mean, variance), expected, atol=1e-12)


def test_a_binary_model_with_one_latent() -> None:
    f, v = np.array([0.3, -2.0, 6.0]), np.array([1.0, 0.5, 2.0])
    mean, variance = np.column_stack([-f / 2, f / 2]), np.column_stack([v / 2, v / 2])
    np.testing.assert_allclose(variation_ratio(mean, variance), ndtr(-np.abs(f) / np.sqrt(v)), rtol=1e-12)


def test_clear_items_keep_their_order() -> None:
    """One minus the winner would round all of these to 0."""
    mean = np.array([[0.0, -gap, -gap - 1] for gap in (12.0, 14.0, 13.0, 30.0)])
    value = variation_ratio(mean, np.full((4, 3), 0.5))
    assert np.all(value > 0)
    assert value.argsort().tolist() == [3, 1, 2, 0]


def test_draws_agree_with_the_exact_value() -> None:
    rng = np.random.default_rng(1)
    mean, variance = rng.normal(size=(4, 5)), rng.uniform(0.1, 3, size=(4, 5))
    exact = variation_ratio(mean, variance)
    drawn = variation_ratio(mean, variance, samples=1_000_000, rng=rng)
    np.testing.assert_allclose(drawn, exact, atol=5 * 0.5e-3)


def test_draws_are_multiples_of_one_over_their_number() -> None:
    rng = np.random.default_rng(2)
    value = variation_ratio(rng.normal(size=(50, 4)), np.ones((50, 4)), samples=100, rng=rng)
    np.testing.assert_allclose(value * 100, np.round(value * 100), atol=1e-9)
    assert value.max() > 0


def test_draws_need_a_generator() -> None:
    with pytest.raises(InputError, match="rng"):
        variation_ratio(np.zeros((2, 2)), np.ones((2, 2)), samples=10)


finite = st.floats(-50, 50, width=64)
positive = st.floats(1e-6, 1e3, width=64)


@st.composite
def moments(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    C = draw(st.integers(2, 12))
    return draw(st.lists(finite, min_size=C, max_size=C)), draw(st.lists(positive, min_size=C, max_size=C))


@settings(max_examples=150, deadline=None)
@given(moments())
def test_bounds_hold_for_the_integral_itself(case: tuple[list[float], list[float]]) -> None:
    mean, s = np.array([case[0]]), np.sqrt(np.array([case[1]]))
    low, high = bounds(mean, s)
    mass = argmax_mass(mean, s)[0]  # not the clipped value: that would pass by itself
    value = 1.0 - mass.max() / mass.sum()
    assert low[0] - 1e-9 <= value <= high[0] + 1e-9
    assert 0 <= low[0] <= high[0] <= 1 - 1 / len(case[0])


@pytest.mark.parametrize("spread", [0.0, 1e-3, 1.0, 30.0])
def test_bounds_hold_to_rounding(spread: float) -> None:
    """Against a reference that is itself good to a few units in the last place."""
    rng = np.random.default_rng(3)
    node, weight = np.polynomial.legendre.leggauss(400)
    for _ in range(60):
        C = int(rng.integers(2, 9))
        mean, s = rng.normal(size=C) * spread, rng.uniform(0.3, 1.5, size=C)
        low, high = bounds(mean[None], s[None])
        a, b = (mean - 8.5 * s).min(), (mean + 8.5 * s).max()
        f = (a + b) / 2 + (b - a) / 2 * node
        cdf = ndtr((f - mean[:, None]) / s[:, None])
        losers = 0.0
        p = []
        for j in range(C):
            density = np.exp(-0.5 * ((f - mean[j]) / s[j]) ** 2) / (s[j] * np.sqrt(2 * np.pi))
            p.append(float((density * np.delete(cdf, j, axis=0).prod(axis=0) * weight).sum() * (b - a) / 2))
        losers = sum(sorted(p)[:-1])
        tolerance = 3e-16 + 1e-13 * losers
        assert low[0] - tolerance <= losers <= high[0] + tolerance


def case(number: int) -> tuple[np.ndarray, np.ndarray, int]:
    rng = np.random.default_rng([99, number])
    n, C, k = int(rng.integers(1, 700)), int(rng.integers(1, 13)), int(rng.choice([1, 2, 10, 60]))
    mean = rng.normal(size=(n, C)) * rng.choice([0.01, 1.0, 10.0, 100.0])
    variance = np.exp(rng.normal(size=(n, C)) * rng.choice([0.0, 1.0, 3.0]))
    kind = number % 8
    if kind == 1:  # many ties
        mean, variance = np.round(mean), np.ones((n, C))
    elif kind == 2:  # no uncertainty at all
        mean, variance = np.round(mean), np.zeros((n, C))
    elif kind == 3:  # squares of these underflow
        mean, variance = mean * 1e-170, variance * 1e-300
    elif kind == 4:  # nothing known about anything
        mean, variance = np.tile(mean[:1], (n, 1)), np.tile(variance[:1], (n, 1))
    elif kind == 5:
        mean, variance = mean.astype(np.float32), variance.astype(np.float32)
        mean, variance = np.asfortranarray(mean), variance[:, ::-1]
    elif kind == 6:  # confident, with a few doubts
        mean[:, 0] += 40
        mean[: max(1, n // 50), 0] -= 40
    return mean, variance, k


@pytest.mark.parametrize(
    "number", [*range(60), *(pytest.param(n, marks=pytest.mark.slow) for n in range(60, 200))]
)
def test_the_best_k_are_those_of_computing_all(number: int) -> None:
    mean, variance, k = case(number)
    every = variation_ratio(mean, variance)
    expected = np.sort(every)[::-1][:k]
    for rng in (None, np.random.default_rng(number)):
        indices, values = top_variation_ratio(mean, variance, k, rng)
        assert len(set(indices.tolist())) == len(indices) == min(k, len(mean))
        assert np.array_equal(values, every[indices])
        np.testing.assert_allclose(values, expected, rtol=1e-9)
    indices, _ = top_variation_ratio(mean, variance, k)
    order = np.lexsort((np.arange(len(mean)), -every))[:k]
    assert np.array_equal(indices, order)  # without an rng the lower index comes first


def test_few_items_are_integrated(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    mean = rng.normal(size=(50_000, 10)) * 6
    variance = rng.uniform(0.1, 0.5, size=(50_000, 10))
    seen = []
    exact = module.exact_rows
    monkeypatch.setattr(module, "exact_rows", lambda m, s: seen.append(len(m)) or exact(m, s))
    top_variation_ratio(mean, variance, 10)
    assert sum(seen) < 2_000


def test_tied_items_are_not_all_integrated_when_a_draw_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    exact = module.exact_rows
    monkeypatch.setattr(module, "exact_rows", lambda m, s: seen.append(len(m)) or exact(m, s))
    top_variation_ratio(np.zeros((20_000, 5)), np.ones((20_000, 5)), 1, np.random.default_rng(0))
    assert sum(seen) < 1_000


def test_ties_are_broken_by_the_rng() -> None:
    mean, variance = np.zeros((40, 3)), np.ones((40, 3))
    firsts = {int(top_variation_ratio(mean, variance, 1, np.random.default_rng(s))[0][0]) for s in range(40)}
    assert len(firsts) > 10


def test_permuting_items_permutes_the_answer() -> None:
    rng = np.random.default_rng(6)
    mean, variance = rng.normal(size=(500, 5)), rng.uniform(0.1, 2, size=(500, 5))
    order = rng.permutation(500)
    plain, _ = top_variation_ratio(mean, variance, 20, np.random.default_rng(0))
    moved, _ = top_variation_ratio(mean[order], variance[order], 20, np.random.default_rng(0))
    assert np.array_equal(order[moved], plain)


def test_a_threshold_only_drops_what_is_below_it() -> None:
    rng = np.random.default_rng(7)
    mean, variance = rng.normal(size=(500, 5)), rng.uniform(0.1, 2, size=(500, 5))
    every = variation_ratio(mean, variance)
    bar = float(np.sort(every)[-8])
    rows, values = top_rows(mean, variance, 30, threshold=bar)
    assert np.array_equal(np.sort(rows), np.flatnonzero(every >= bar))
    assert np.array_equal(values, every[rows])


def test_the_screen_is_a_lower_bound() -> None:
    rng = np.random.default_rng(8)
    mean, variance = rng.normal(size=(300, 5)), rng.uniform(0.1, 2, size=(300, 5))
    screen = ndtr(-np.sqrt(smallest_margin(mean, variance)))
    low = bounds(mean, np.sqrt(variance))[0]
    np.testing.assert_allclose(screen, low, rtol=1e-12)
    other_layout = smallest_margin(np.asfortranarray(mean), np.asfortranarray(variance))
    np.testing.assert_array_equal(other_layout, smallest_margin(mean, variance))


def test_bad_requests() -> None:
    with pytest.raises(InputError, match="k=0"):
        top_variation_ratio(np.zeros((3, 2)), np.ones((3, 2)), 0)
    with pytest.raises(InputError, match="item 2"):
        top_variation_ratio(np.array([[0, 1], [0, 1], [np.inf, 0]]), np.ones((3, 2)), 1)


@pytest.mark.parametrize("ratio", [1.0, 1.25, 1.5, 2.0])
@pytest.mark.parametrize("C", [3, 5, 6, 12, 13, 40])
def test_the_rough_quadrature_stays_above_the_value(C: int, ratio: float) -> None:
    """The worst there is within the limits: all rivals at one place, the winner as wide as it may."""
    rng = np.random.default_rng([C, 7])
    n = 1_000
    mean, s = np.zeros((n, C)), np.ones((n, C))
    s[:, 0] = ratio * 0.9999
    mean[:, 0] = np.linspace(0, 4, n)
    mean[n // 2 :, 1:] -= rng.exponential(0.1, size=(n - n // 2, C - 1))
    loses = 1.0 - argmax_probabilities(mean, s**2)[:, 0]
    for dtype in (np.float32, np.float64):
        high = module._quick_bounds(mean.astype(dtype), (s**2).astype(dtype))
        assert np.all(np.minimum(loses, 1 - 1 / C) <= high + 1e-6)
        assert np.all(high - loses < 0.2)  # and is worth having
    wide = module._quick_bounds(mean, (s * np.r_[2.1, np.ones(C - 1)] / s[:, :1]) ** 2)
    assert np.all(np.isinf(wide))  # outside its limits it says nothing
