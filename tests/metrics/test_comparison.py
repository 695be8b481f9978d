import numpy as np
import pytest
from scipy import stats

from workbench.errors import InputError
from workbench.metrics import (
    area_under_curve,
    gaps_of,
    labels_saved,
    mean_band,
    mean_interval,
    paired_counts,
    paired_tests,
    rank_methods,
    share_interval,
    wilcoxon_p,
)
from workbench.metrics.comparison import critical_difference, holm, labels_to_reach


def test_one_value_has_no_interval_and_no_difference_no_p_value():
    one = mean_interval([3.0])
    assert one.value == 3.0 and np.isnan(one.low) and one.n == 1
    assert wilcoxon_p([1, 2], [1, 2]) == 1.0


def test_area_by_hand():
    assert area_under_curve([0, 10, 20], [1.0, 0.5, 0.0]) == pytest.approx(0.5)
    assert area_under_curve([0, 10, 40], [1.0, 0.0, 0.0]) == pytest.approx(5 / 40)
    np.testing.assert_allclose(area_under_curve([5, 7], [[1, 1], [0, 1]]), [1, 0.5])
    assert area_under_curve([5], [0.25]) == 0.25
    with pytest.raises(InputError, match="rise"):
        area_under_curve([1, 1], [0, 0])
    with pytest.raises(InputError, match="each of 2 rounds"):
        area_under_curve([1, 2], [0, 0, 0])


def test_labels_to_reach_and_saved():
    n = [10, 20, 30, 40]
    assert labels_to_reach(n, [0.5, 0.3, 0.2, 0.1], 0.3) == 20
    assert np.isnan(labels_to_reach(n, [0.5, 0.3, 0.2, 0.1], 0.05))
    policy = [[0.5, 0.2, 0.1, 0.1], [0.5, 0.4, 0.2, 0.1], [0.5, 0.2, 0.1, 0.1], [0.5, 0.4, 0.4, 0.4]]
    random = [[0.5, 0.4, 0.3, 0.2], [0.5, 0.4, 0.3, 0.2], [0.5, 0.4, 0.4, 0.4], [0.5, 0.4, 0.3, 0.2]]
    saved = labels_saved(n, policy, random, 0.2)
    # 20 and 10 where both arrive; where one does not, its 40 labels count: 20 on the third, 0 on the last
    assert (saved.n_both, saved.n_only_policy, saved.n_only_baseline, saved.n_arrived) == (2, 1, 1, 3)
    assert saved.mean == pytest.approx(50 / 4) and saved.bound == "about"
    assert labels_saved(n, policy[:2], random[:2], 0.2).bound == ""
    assert labels_saved(n, policy[:3], random[:3], 0.2).bound == "at least"
    assert labels_saved(n, random[:3], policy[:3], 0.2).bound == "at most"
    assert np.isnan(labels_saved(n, policy, random, 0.01).mean)


def test_early_luck_on_one_seed_of_ten_is_no_saving():
    policy, random = np.tile(np.linspace(0.5, 0.3, 21), (10, 1)), np.tile(np.linspace(0.5, 0.2, 21), (10, 1))
    policy[0] = 0.1
    saved = labels_saved(np.arange(3, 24), policy, random, 0.2)
    assert (saved.n_arrived, saved.n_only_baseline, saved.n) == (1, 9, 10) and not saved.mostly_arrived
    assert saved.mean == 2.0 and saved.bound == "at most", (
        "20 on one seed, none on the nine that never arrive"
    )


def test_a_target_that_is_the_mean_of_equal_errors_is_reached_by_them():
    last = np.full(6, 1 / 36)
    assert last.mean() != last[0], "the mean of equal floats may be another float"
    assert labels_to_reach([10, 20], [0.5, last[0]], float(last.mean()) - 1e-18) == 20


def test_holm_by_hand():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.5, 0.9]), [1.0, 1.0])
    assert holm([]).shape == (0,)


def test_paired_tests_on_a_hand_made_table():
    random = np.linspace(0.3, 0.4, 8)
    values = {"random": random, "good": random - np.linspace(0.01, 0.02, 8), "same": random}
    good, same = paired_tests(values)
    assert (good.policy, good.baseline, good.n, good.wins, good.losses) == ("good", "random", 8, 8, 0)
    assert good.difference == pytest.approx(-0.015) and good.low < -0.015 < good.high
    assert good.p == pytest.approx(2 / 256) and good.p_holm == pytest.approx(4 / 256)
    assert good.verdict == "better" and same.verdict == "no difference shown" and same.p_holm == 1.0
    assert paired_tests(values, lower_is_better=False)[0].verdict == "worse"
    assert len(paired_tests(values, None)) == 3
    assert paired_tests(values, "good")[0].verdict == "worse"


def test_below_six_seeds_there_is_no_verdict():
    values = {"random": np.arange(5.0), "good": np.arange(5.0) - 9}
    assert paired_tests(values)[0].verdict == "too few seeds to tell"
    assert paired_tests({"random": np.arange(6.0), "good": np.arange(6.0) - 9.5})[0].verdict == "better"


def test_seeds_too_few_for_the_correction_are_too_few():
    seeds = np.arange(6.0)
    two = {"random": seeds, "good": seeds - 9.5, "better": seeds - 10.5}
    # 6 wins of 6 have p = 1/32, twice that after Holm: no outcome could have shown a difference
    assert {t.verdict for t in paired_tests(two)} == {"too few seeds to tell"}
    assert [t.p_holm for t in paired_tests(two)] == pytest.approx([1 / 16, 1 / 16])
    seeds = np.arange(7.0)
    three = {"random": seeds, "good": seeds - 9.5, "better": seeds - 10.5}
    assert {t.verdict for t in paired_tests(three)} == {"better"}


def test_comparison_bad_input():
    with pytest.raises(InputError, match="at least two"):
        paired_tests({"random": [1, 2]})
    with pytest.raises(InputError, match="no values of the baseline"):
        paired_tests({"a": [1, 2], "b": [1, 2]})
    with pytest.raises(InputError, match="same seeds"):
        paired_tests({"random": [1, 2], "b": [1, 2, 3]})
    with pytest.raises(InputError, match="Seed 1 of 'b'"):
        paired_tests({"random": [1, 2], "b": [1, np.nan]})
    with pytest.raises(InputError, match="Data set 1 has no value of 'y'"):
        rank_methods([[1, 2], [1, np.nan]], ["x", "y"])
    with pytest.raises(InputError, match="one row a seed"):
        mean_band(np.empty((0, 3)))


@pytest.mark.parametrize("other", [[0.1], [0.1, np.nan], [0.1, np.inf]])
@pytest.mark.parametrize("count", [gaps_of, paired_counts, wilcoxon_p])
def test_pairs_without_a_number_on_both_sides_are_refused(count, other):
    with pytest.raises(InputError, match="a number on both sides"):
        count([0.1, 0.2], other)


@pytest.mark.parametrize(
    "values",
    [[1.0, 2.0], [[1.0, 2.0, 3.0]], np.empty((0, 2)), [[1.0], [2.0]]],
    ids=["row", "wide", "empty", "narrow"],
)
def test_a_table_of_another_shape_than_its_names_is_refused(values):
    with pytest.raises(InputError, match="a row a data set and a column for each of 2 methods"):
        rank_methods(values, ["x", "y"])


def test_one_method_alone_has_no_rank():
    with pytest.raises(InputError, match="at least 2"):
        rank_methods([[1.0], [2.0]], ["x"])


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 2.0, float("nan")])
def test_the_ends_of_a_level_are_no_levels(level):
    for interval in (mean_interval, mean_band):
        with pytest.raises(InputError, match="between 0 and 1"):
            interval([[1.0], [2.0]] if interval is mean_band else [1.0, 2.0], level)
    with pytest.raises(InputError, match="between 0 and 1"):
        share_interval(1, 2, level)


def test_critical_differences_are_those_of_published_tables():
    # Demsar 2006, table 5: q_.05 for 2, 5 and 10 methods
    for k, q in [(2, 1.960), (5, 2.728), (10, 3.164)]:
        assert critical_difference(k, 1) / np.sqrt(k * (k + 1) / 6) == pytest.approx(q, abs=0.001)


def test_groups_are_the_maximal_runs_that_are_not_told_apart():
    values = np.tile([1.0, 2.0, 3.0, 4.0, 5.0], (40, 1))
    gap = critical_difference(5, 40)
    assert 0.9 < gap < 1.0
    assert rank_methods(values, list("abcde")).groups == ()
    wider = rank_methods(values[:30], list("abcde"))
    assert wider.groups == (("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"))
    tied = rank_methods(np.ones((6, 3)), list("abc"))
    assert tied.groups == (("a", "b", "c"),) and tied.p == 1.0


def simulated_study(rng, gain: float, n_seeds: int = 10):
    """Areas of three policies that share each seed's luck; the first may be better than random."""
    luck = rng.normal(0.3, 0.05, n_seeds)
    return {
        "random": luck + rng.normal(0, 0.02, n_seeds),
        "planted": luck - gain + rng.normal(0, 0.02, n_seeds),
        "other": luck + rng.normal(0, 0.02, n_seeds),
    }


@pytest.mark.slow  # alone: how often verdicts are wrong
def test_200_simulated_studies_find_what_is_planted_and_nothing_else():
    rng = np.random.default_rng(2024)
    false_alarms = sum(
        any(test.verdict in ("better", "worse") for test in paired_tests(simulated_study(rng, 0.0)))
        for _ in range(200)
    )
    # at level 0.05 for the whole study, 200 studies give 10 +- 3.1; the discrete test stays below
    assert false_alarms <= stats.binom.ppf(0.999, 200, 0.05)
    found = [paired_tests(simulated_study(rng, 0.04)) for _ in range(200)]
    assert np.mean([tests[0].verdict == "better" for tests in found]) > 0.85
    assert np.mean([tests[1].verdict != "no difference shown" for tests in found]) < 0.08


def test_won_lost_and_tied_pairs_are_those_of_the_test_beside_them() -> None:
    from workbench.metrics import paired_counts, wilcoxon_p

    a, b = [0.1 + 0.2, 0.5, 0.1, 0.4], [0.3, 0.4, 0.2, 0.4]
    assert paired_counts(a, b) == (1, 1, 2, wilcoxon_p(a, b))
