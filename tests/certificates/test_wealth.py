"""The test by betting keeps its promise: by enumeration of every history of small sets, and by its bounds."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from workbench.certificates import (
    Bound,
    Draws,
    Promise,
    check_spent,
    confidence_at,
    first_reached,
    log_wealth,
    tally,
    threshold,
    upper_bound,
)
from workbench.certificates.promise import FIRST_SHARE, delta_of
from workbench.certificates.wealth import BETS, WEIGHTS, too_many
from workbench.errors import InputError


def every_history(size: int, wrong: int) -> np.ndarray:
    """All equally likely orders of `wrong` wrong labels among `size`, [orders, size]."""
    places = list(itertools.combinations(range(size), wrong))
    found = np.zeros((len(places), size), dtype=int)
    for row, where in enumerate(places):
        found[row, list(where)] = 1
    return found


@pytest.mark.parametrize("size", [1, 2, 5, 8, 12])
@pytest.mark.parametrize("error", [0.05, 0.2, 0.5, 0.9])
def test_wealth_is_a_supermartingale_wherever_the_promise_is_broken(size: int, error: float) -> None:
    assert math.isclose(WEIGHTS.sum(), 1.0)
    for wrong in range(too_many(size, error), size + 1):
        histories = every_history(size, wrong)
        wealth = np.exp(log_wealth(histories, size, error))
        assert np.isfinite(wealth).all()
        before = np.concatenate([np.ones((len(wealth), 1)), wealth], axis=1)
        for t in range(size):
            # histories with the same beginning are one node of the tree
            beginnings = np.unique(histories[:, :t], axis=0, return_inverse=True)[1].ravel()
            for node in range(beginnings.max() + 1):
                here = beginnings == node
                assert before[here, t + 1].mean() <= before[here, t][0] * (1 + 1e-12)


@pytest.mark.parametrize(("size", "error", "confidence"), [(12, 0.2, 0.8), (14, 0.1, 0.7), (10, 0.5, 0.9)])
def test_no_stopping_rule_certifies_a_broken_promise_more_often_than_delta(
    size: int, error: float, confidence: float
) -> None:
    for wrong in range(too_many(size, error), size + 1):
        ever = first_reached(log_wealth(every_history(size, wrong), size, error), confidence) > 0
        assert Fraction(int(ever.sum()), len(ever)) <= Fraction(1 - confidence)


@pytest.mark.parametrize("confidence", [0.6, 0.9])
def test_the_bound_covers_the_share_at_all_times_together(confidence: float) -> None:
    size = 9
    for wrong in range(size + 1):
        histories = every_history(size, wrong)
        missed = sum((upper_bound(h, size, confidence) < wrong / size - 1e-12).any() for h in histories)
        assert missed / len(histories) <= 1 - confidence


def test_the_bound_falls_and_is_exact_once_all_are_checked() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 7, 99, 400):
        wrong = (rng.random(size) < 0.3).astype(int)
        bound = upper_bound(wrong, size, 0.95)
        assert bound.max() <= 1.0
        assert (np.diff(bound) <= 0).all()
        assert bound[-1] == wrong.sum() / size
        # a prefix says what the whole said at that time
        np.testing.assert_array_equal(upper_bound(wrong[: size // 2], size, 0.95), bound[: size // 2])


def test_bound_and_wealth_agree_about_an_error_that_was_named() -> None:
    rng = np.random.default_rng(2)
    for size, error in ((300, 0.05), (10_000, 0.03), (1_000_000, 0.1)):
        wrong = (rng.random(min(size, 600)) < error / 3).astype(int)
        reached = log_wealth(wrong, size, error) >= threshold(0.95)
        bound = Bound(size, 0.95, [error])
        below = np.array([bound.add(answer) for answer in wrong]) <= error + 1e-12
        np.testing.assert_array_equal(np.logical_or.accumulate(reached), below)


def test_a_census_settles_it_either_way() -> None:
    held = np.array([0] * 19 + [1])
    assert log_wealth(held, 20, 0.05)[-1] == np.inf
    broken = np.array([0] * 18 + [1, 1])
    assert log_wealth(broken, 20, 0.05)[-1] == -np.inf
    assert upper_bound(broken, 20, 0.05)[-1] == 0.1


def test_checks_needed_where_nothing_or_little_is_wrong() -> None:
    right = np.zeros(200, dtype=int)
    assert 60 <= first_reached(log_wealth(right, 10_000, 0.05), 0.95) <= 83
    one = right.copy()
    one[30] = 1
    assert first_reached(log_wealth(one, 10_000, 0.05), 0.95) <= 135


def test_more_wrong_answers_never_help_and_a_looser_promise_is_never_harder() -> None:
    rng = np.random.default_rng(3)
    wrong = (rng.random(120) < 0.02).astype(int)
    worse = wrong.copy()
    worse[np.flatnonzero(wrong == 0)[:3]] = 1
    assert (log_wealth(worse, 500, 0.05) <= log_wealth(wrong, 500, 0.05)).all()
    assert (log_wealth(wrong, 500, 0.05) <= log_wealth(wrong, 500, 0.1)).all()


def test_long_histories_of_wrong_answers_underflow_to_no_evidence() -> None:
    wealth = log_wealth(np.ones(3_000, dtype=int), 1_000_000, 0.05)
    assert not np.isnan(wealth).any()
    bound = Bound(1_000_000, 0.95)
    for _ in range(400):
        share = bound.add(1)
    assert 0.98 < share <= 1.0


@pytest.mark.parametrize("error", [0.0, 1.0, -0.1, float("nan"), float("inf"), "0.05", True])
def test_an_error_that_is_no_share_is_refused(error: object) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        log_wealth([0], 10, error)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="between 0 and 1"):
        threshold(error)  # type: ignore[arg-type]


@pytest.mark.parametrize("checks", [[0, 2], [0.5], [np.nan], ["right"], [None]])
def test_answers_that_are_neither_right_nor_wrong_are_refused(checks: list[object]) -> None:
    with pytest.raises(InputError, match="0"):
        log_wealth(checks, 10, 0.05)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        upper_bound(checks, 10, 0.95)  # type: ignore[arg-type]


def test_more_checks_than_items_and_sets_of_none_are_refused() -> None:
    with pytest.raises(InputError, match="once at most"):
        log_wealth(np.zeros(11, dtype=int), 10, 0.05)
    bound = Bound(1, 0.95)
    bound.add(0)
    with pytest.raises(InputError, match="once at most"):
        bound.add(0)
    for size in (0, -3, 2.5, True):
        with pytest.raises(InputError, match="from 1 item on"):
            log_wealth([], size, 0.05)  # type: ignore[arg-type]


def test_no_checks_are_no_evidence() -> None:
    assert log_wealth([], 10, 0.05).shape == (0,)
    assert first_reached(log_wealth([], 10, 0.05), 0.95) == 0
    assert upper_bound([], 10, 0.95).shape == (0,)


def certified(
    wrong: np.ndarray, ranks: np.ndarray, sizes: list[int], error: float, confidence: float
) -> dict[int, int]:
    """Size -> draws after which the set was certified."""
    spent = 1.0 - (1.0 - confidence) / FIRST_SHARE  # so that the first attempt reaches `confidence`
    promise = Promise(max(sizes), error, spent, tuple(sizes))
    return dict(tally(promise, wrong, ranks).certified_at())


def test_nested_sets_stop_at_the_first_that_is_not_certified() -> None:
    ranks = np.arange(1000)
    rng = np.random.default_rng(4)
    order = rng.permutation(1000)
    wrong = (ranks >= 900).astype(int)[order]  # the least sure tenth is wrong
    found = certified(wrong[:400], order[:400], [500, 800, 1000, 900], 0.05, 0.95)
    assert list(found) == [500, 800]
    # the flag stands from the draw on at which it could be seen, by the plain test of each set
    before = 0
    for size, at in found.items():
        drawn = np.flatnonzero(order[:400] < size)
        alone = int(first_reached(log_wealth(wrong[:400][drawn], size, 0.05), 0.95))
        before = max(before, int(drawn[alone - 1]) + 1)
        assert at == before
    at = found[800]
    assert 800 in certified(wrong[:at], order[:at], [500, 800, 1000], 0.05, 0.95)
    assert 800 not in certified(wrong[: at - 1], order[: at - 1], [500, 800, 1000], 0.05, 0.95)


def test_nested_sets_hold_together_by_enumeration() -> None:
    """Over every order of five items a broken set is certified in delta of the orders at most."""
    error, confidence = 0.3, 0.7
    orders = np.array(list(itertools.permutations(range(5))))
    for pattern in ([0, 0, 1, 1, 0], [1, 1, 0, 0, 0], [0, 0, 0, 1, 1], [0, 1, 0, 1, 0]):
        wrong = np.array(pattern)
        sizes = [2, 4, 5]
        broken = [wrong[:k].sum() >= too_many(k, error) for k in sizes]
        false = 0
        for order in orders:
            found = certified(wrong[order], order, sizes, error, confidence)
            false += any(size in found for size, is_broken in zip(sizes, broken, strict=True) if is_broken)
        assert false / len(orders) <= 1 - confidence, pattern


def test_draws_are_a_permutation_that_its_seed_fixes_and_prefixes_share() -> None:
    whole = Draws(500, 7).first(500)
    assert sorted(whole.tolist()) == list(range(500))
    np.testing.assert_array_equal(Draws(500, 7).first(31), whole[:31])
    grown = Draws(500, 7)
    grown.first(3)
    np.testing.assert_array_equal(grown.first(900), whole)
    assert not np.array_equal(Draws(500, 8).first(500), whole)
    assert not np.array_equal(Draws(500, 7, attempt=2).first(500), whole)
    assert len(set(Draws(1_000_000, 0).first(2_000).tolist())) == 2_000
    assert Draws(10, 0).first(0).tolist() == []


def test_draws_are_the_same_on_every_machine() -> None:
    assert Draws(10, 3).first(10).tolist() == [9, 1, 2, 4, 5, 7, 3, 8, 6, 0]
    assert Draws(1_000_000, 3).first(3).tolist() == FIRST_OF_A_MILLION


FIRST_OF_A_MILLION = [73299, 201394, 793262]


def test_draws_are_uniform() -> None:
    counts = np.zeros((4, 4))
    for seed in range(2_000):
        for place, item in enumerate(Draws(4, seed).first(4)):
            counts[place, item] += 1
    # 500 expected in each, standard deviation 19
    assert np.abs(counts - 500).max() < 90


@pytest.mark.parametrize("seed", [-1, 1.5, "a", 1 << 63, True])
def test_seeds_that_are_none_are_refused(seed: object) -> None:
    with pytest.raises(InputError, match="seed"):
        Draws(10, seed)  # type: ignore[arg-type]


def test_attempts_share_delta() -> None:
    assert math.isclose(sum(delta_of(0.95, i) for i in range(1, 51)), 0.05)
    assert math.isclose(confidence_at(0.95, 1), 0.955)
    assert math.isclose(delta_of(0.95, 2), 0.0025)
    assert math.isclose(delta_of(0.95, 3), 0.00125)
    with pytest.raises(InputError, match="Attempts"):
        delta_of(0.95, 0)


def test_attempts_at_different_confidences_add_up() -> None:
    check_spent(0.8, [(0.99, 1)])
    check_spent(0.95, [(0.95, n) for n in range(1, 40)])
    with pytest.raises(InputError, match=r"keep no 99 %\. Choose a confidence of 81 % or less") as told:
        check_spent(0.99, [(0.8, 1)])
    assert "spent 0.18" in str(told.value)
    check_spent(0.81, [(0.8, 1)])
    with pytest.raises(InputError, match="Choose"):
        check_spent(0.8115, [(0.8, 1)])


def test_bets_lie_where_wealth_stays_positive() -> None:
    assert ((BETS > 0) & (BETS < 1)).all()
