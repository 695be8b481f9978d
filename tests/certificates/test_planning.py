"""Forecasts: made of what a model says of itself, mended by answers, and never evidence."""

from dataclasses import replace

import numpy as np
import pytest

from workbench.certificates import confidence_at, first_reached, log_wealth, plan
from workbench.certificates.planning import checks_needed
from workbench.certificates.wealth import checks_to_go, looks_broken, range_to_go
from workbench.errors import InputError


def risks(n: int = 3_000, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).beta(0.3, 3.0, size=n)


def test_a_plan_leaves_the_least_sure_to_people_and_is_the_same_again() -> None:
    found = plan(risks(), 0.05, 0.975)
    best = found.choice
    assert best is not None and 0 < best.size < 3_000
    assert best.error < 0.05 and best.success >= 0.75
    assert best.answers < 3_000 and best.rest == 3_000 - best.size
    assert best.answers_range[0] <= best.answers <= best.answers_range[1]
    assert found == plan(risks()[::-1], 0.05, 0.975)
    sizes = [option.size for option in found.options]
    assert sizes == sorted(sizes) and sizes[-1] == 3_000
    assert found.sizes().tolist() == sizes[found.chosen :]
    low, high = (f"{end:,.0f}" for end in best.answers_range)
    assert f"for about {best.answers:,.0f} answers ({low} to {high}): " in found.sentence()
    checks = round(best.answers) - best.rest
    assert f"{checks:,} checks and {best.rest:,} labels by hand" in found.sentence()
    alike = replace(best, rest=0, answers=66.0, answers_range=(66.0, 66.2))
    assert alike.in_answers("**") == "**66 checks**"


def test_a_stricter_promise_costs_more() -> None:
    answers = [plan(risks(), error, 0.975).choice for error in (0.1, 0.05, 0.02)]
    costs = [3_000.0 if one is None else one.answers for one in answers]
    assert costs == sorted(costs)


def test_answers_mend_a_forecast_of_a_model_that_is_too_sure() -> None:
    truth = risks()
    says = truth**3  # much surer than it should be
    rng = np.random.default_rng(1)
    known = rng.permutation(3_000)[:400]
    wrong = rng.random(400) < truth[known]
    trusting = plan(says, 0.05, 0.975).choice
    mended = plan(says, 0.05, 0.975, held_out=(says[known], wrong)).choice
    fair = plan(truth, 0.05, 0.975).choice
    assert trusting is not None and mended is not None and fair is not None
    assert mended.size < trusting.size
    assert abs(mended.size - fair.size) < abs(trusting.size - fair.size)


def test_the_forecast_of_checks_is_that_of_the_test() -> None:
    rng = np.random.default_rng(2)
    for size in (300, 20_000):
        simulated = checks_needed(size, 0.05, 0.95, 0.0, rng)
        exact = int(first_reached(log_wealth(np.zeros(200, dtype=int), size, 0.05), 0.95))
        assert abs(np.median(simulated) - exact) <= 3
    some = checks_needed(20_000, 0.05, 0.95, 0.02, rng)
    wrong = np.random.default_rng(3).random((300, 3_000)) < 0.02
    reached = first_reached(log_wealth(wrong, 20_000, 0.05), 0.95)
    assert abs(np.median(some) / np.median(reached) - 1) < 0.3


@pytest.mark.parametrize("size", [1, 10, 30])
def test_few_items_are_labelled_by_hand(size: int) -> None:
    found = plan(np.full(size, 0.2), 0.05, 0.975)
    assert found.choice is None
    assert "labelling all" in found.sentence()
    assert found.sizes().tolist() == [size]


def test_a_million_items_are_planned_and_drawn() -> None:
    found = plan(risks(1_000_000), 0.05, 0.975)
    assert found.choice is not None and found.choice.size > 100_000


@pytest.mark.parametrize("risk", [[np.nan], [-0.1], [1.5], [np.inf], []])
def test_what_is_no_chance_is_refused(risk: list[float]) -> None:
    with pytest.raises(InputError):
        plan(risk, 0.05, 0.95)
    with pytest.raises(InputError):
        plan([0.1], 0.05, 0.95, held_out=([0.1, 0.2], [True]))
    with pytest.raises(InputError, match="held-out answers are chances from 0 to 1"):
        plan([0.1], 0.05, 0.95, held_out=([0.1], [np.nan]))
    for share in (0.0, 1.0):
        with pytest.raises(InputError, match="between 0 and 1"):
            plan([0.1], share, 0.95)


def test_attempts_spend_what_is_left() -> None:
    assert confidence_at(0.95, 1) < confidence_at(0.95, 2) < confidence_at(0.95, 3)


@pytest.mark.parametrize("wrong", [0, 1])
def test_the_checks_to_go_are_just_enough_where_all_of_them_are_right(wrong: int) -> None:
    done = np.array([0] * (30 - wrong) + [1] * wrong)
    more = checks_to_go(done, 2_000, 0.05, 0.95) if not wrong else None
    if wrong:
        # at this rate of wrong ones it is further than without any
        rest, none = checks_to_go(done, 2_000, 0.05, 0.95), checks_to_go(done[:-1], 2_000, 0.05, 0.95)
        assert rest is not None and none is not None and rest > none > 0
        return
    assert more is not None and more > 0
    whole = log_wealth(np.zeros(30 + more, dtype=int), 2_000, 0.05)
    assert int(first_reached(whole, 0.95)) == 30 + more
    assert checks_to_go(np.zeros(30 + more, dtype=int), 2_000, 0.05, 0.95) == 0


def test_the_words_of_a_forecast_add_up() -> None:
    """Few are sure, so that most are left to people: these are among the answers."""
    rng = np.random.default_rng(1)
    for n, error, part in ((3_000, 0.05, 1.0), (8_000, 0.01, 1.4), (1_000, 0.02, 0.8)):
        mean = error * part
        forecast = plan(rng.beta(0.3, 0.3 * (1 - mean) / mean, n), error, 0.95, seed=n)
        for option in forecast.options:
            assert option.answers_range[0] >= option.rest and option.answers >= option.rest


def test_what_is_to_go_is_a_range_that_narrows() -> None:
    clean = np.zeros(80, dtype=int)
    ends = [range_to_go(clean[:n], 2_000, 0.05, 0.95) for n in (0, 20, 40)]
    assert ends[0] is not None and ends[0][1] is None, "before the first check it may be none"
    (low, high), (lower, higher) = ((0 if one is None else one[0], one and one[1]) for one in ends[1:])
    assert high is not None and higher is not None and high - low > higher - lower > 0
    # of checks with a share of wrong ones that would do, most end within the range that was named
    rng, inside = np.random.default_rng(0), 0
    for _ in range(20):
        wrong = (rng.random(2_000) < 0.01).astype(int)
        taken = int(first_reached(log_wealth(wrong, 2_000, 0.05), 0.95))
        low, high = range_to_go(wrong[:40], 2_000, 0.05, 0.95) or (0, 0)
        inside += low <= taken - 40 <= (2_000 if high is None else high)
    assert inside >= 14


def test_no_number_of_checks_helps_a_set_with_too_many_wrong_ones() -> None:
    assert checks_to_go(np.tile([1, 0, 0, 0], 10), 2_000, 0.05, 0.95) is None


@pytest.mark.parametrize(("wrong", "checks"), [(3, 40), (6, 40), (8, 40), (5, 60), (9, 60)])
def test_a_set_looks_broken_where_wilsons_interval_lies_above(wrong: int, checks: int) -> None:
    from scipy.stats import binomtest

    low = float(binomtest(wrong, checks).proportion_ci(0.8, "wilson").low)
    assert looks_broken(wrong, checks, low - 1e-6)
    assert not looks_broken(wrong, checks, low + 1e-6)
    assert not looks_broken(19, 19, 0.01), "too few to give anything up"
