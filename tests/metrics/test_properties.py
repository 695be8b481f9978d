"""Laws that the statistics keep for any input: order, scale, bounds, and what SciPy and scikit-learn say.

Values are small whole numbers or eighths, so that ties are met and sums are exact.
"""

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import stats

from workbench.metrics import (
    area_under_curve,
    area_under_roc,
    average_ranks,
    balanced_error_rate,
    brier_parts,
    brier_score,
    classwise_calibration_error,
    cliques,
    cohen_kappa,
    error_rate,
    expected_calibration_error,
    gaps_of,
    krippendorff_alpha,
    labels_saved,
    macro_f1,
    mean_band,
    mean_interval,
    negative_log_likelihood,
    paired_tests,
    rank_methods,
    reliability_table,
    roc_curve,
    share_interval,
    wilcoxon_p,
)
from workbench.metrics.calibration import calibration_interval
from workbench.metrics.comparison import critical_difference, holm, labels_to_reach

FEW = settings(max_examples=25)

eighths = st.integers(-64, 64).map(lambda i: i / 8)
seeds = st.integers(0, 2**32 - 1)


def table(rows, columns, elements=eighths):
    """[rows, columns] of exact numbers; both sides may be strategies of their length."""
    return st.tuples(rows, columns).flatmap(lambda s: npst.arrays(np.float64, s, elements=elements))


def column(least, most, elements=eighths):
    return st.integers(least, most).flatmap(lambda n: npst.arrays(np.float64, n, elements=elements))


@st.composite
def curves(draw, most_seeds=6):
    """Labels that rise, and the errors of some seeds at each of them."""
    steps = draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
    errors = st.integers(0, 8).map(lambda i: i / 8)
    shape = (draw(st.integers(1, most_seeds)), len(steps))
    return np.cumsum(steps), draw(npst.arrays(np.float64, shape, elements=errors))


@st.composite
def predictions(draw, most=40):
    """True codes, and probabilities of which some are equal, some 0 and some 1."""
    n, n_classes = draw(st.integers(1, most)), draw(st.integers(2, 5))
    weights = draw(npst.arrays(np.int64, (n, n_classes), elements=st.integers(0, 6)))
    weights[:, 0] += weights.sum(axis=1) == 0
    codes = draw(npst.arrays(np.int64, n, elements=st.integers(0, n_classes - 1)))
    return codes, weights / weights.sum(axis=1, keepdims=True)


@st.composite
def groups(draw):
    """A score for items of two groups, both of them there."""
    positive = np.array(draw(st.lists(st.booleans(), min_size=2, max_size=40)))
    assume(positive.any() and not positive.all())
    return positive, draw(npst.arrays(np.float64, len(positive), elements=eighths))


# areas under curves and labels saved


@FEW
@given(curves(), eighths, st.integers(1, 8))
def test_an_area_is_a_height_between_the_curves_ends(drawn, shift, scale):
    labels, errors = drawn
    area = area_under_curve(labels, errors)
    assert (errors.min(axis=1) - 1e-12 <= area).all() and (area <= errors.max(axis=1) + 1e-12).all()
    # in the unit of the values, whatever the unit of the labels
    assert area_under_curve(labels, scale * errors + shift) == pytest.approx(scale * area + shift)
    assert area_under_curve(7 * labels + 3, errors) == pytest.approx(area)
    assert area_under_curve(labels, errors[0]) == pytest.approx(area[0])
    if len(labels) > 1:
        width = labels[-1] - labels[0]
        assert area == pytest.approx(_integral(labels, errors) / width)


def _integral(labels, errors):
    """The area by a sum over every single label, the curve read off between the rounds."""
    fine = np.linspace(labels[0], labels[-1], 16 * int(labels[-1] - labels[0]) + 1)
    heights = np.array([np.interp(fine, labels, row) for row in errors])
    return ((heights[:, 1:] + heights[:, :-1]) / 2).sum(axis=1) / 16


@FEW
@given(curves(), st.integers(0, 8).map(lambda i: i / 8))
def test_labels_to_reach_is_the_first_round_at_or_below(drawn, target):
    labels, errors = drawn
    for row in errors:
        needed = labels_to_reach(labels, row, target)
        there = [int(n) for n, e in zip(labels, row, strict=True) if e <= target]
        assert there[:1] == ([] if np.isnan(needed) else [needed])
        # an easier target never takes more labels
        easier = labels_to_reach(labels, row, target + 0.25)
        assert np.isnan(needed) or easier <= needed


@FEW
@given(curves(), st.data())
def test_labels_saved_counts_every_seed_once_and_turns_round_with_the_sides(drawn, data):
    labels, mine = drawn
    theirs = data.draw(npst.arrays(np.float64, mine.shape, elements=st.integers(0, 8).map(lambda i: i / 8)))
    target = data.draw(st.integers(0, 8)) / 8
    one, two = labels_saved(labels, mine, theirs, target), labels_saved(labels, theirs, mine, target)
    assert (one.n_both, one.n_only_policy, one.n_only_baseline) == (
        two.n_both,
        two.n_only_baseline,
        two.n_only_policy,
    )
    neither = ((mine > target).all(axis=1) & (theirs > target).all(axis=1)).sum()
    assert one.n_both + one.n_only_policy + one.n_only_baseline + neither == len(mine)
    width = labels[-1] - labels[0]
    if one.n_arrived or two.n_arrived:
        assert -width <= one.mean <= width and labels[0] <= one.labels <= labels[-1]
        # the null check: exchanged sides give the negative, and the bound turns round
        assert one.mean == -two.mean
        turned = {"at least": "at most", "at most": "at least"}
        assert two.bound == turned.get(one.bound, one.bound)
    else:
        assert np.isnan(one.mean) and np.isnan(one.labels)
    order = data.draw(st.permutations(range(len(mine))))
    again = labels_saved(labels, mine[order], theirs[order], target)
    assert again == pytest.approx(one, nan_ok=True)
    assert labels_saved(labels, mine, mine, target).mean == (
        0 if one.n_arrived else pytest.approx(np.nan, nan_ok=True)
    )


# paired tests


# errors are k of n items: as floats k / n, sums and areas of them round, as fractions they do not
counted = st.tuples(
    st.integers(3, 4001).map(lambda n: 2 * n + 1), st.integers(2, 9), st.integers(2, 14)
).flatmap(
    lambda s: st.tuples(
        st.just(s[0]),
        *(npst.arrays(np.int64, (s[1], s[2]), elements=st.integers(0, min(s[0], 12))) for _ in range(2)),
    )
)


@FEW
@given(counted, seeds)
def test_areas_of_whole_numbers_win_tie_and_rank_as_the_fractions_do(drawn, seed):
    n, one, two = drawn
    # the seeds of one side in another order: areas that are equal as fractions, summed another way
    two = np.where(np.random.default_rng(seed).random(one.shape) < 0.7, one[:, ::-1], two)
    labels = np.arange(10, 10 + one.shape[1])
    exact = [
        [
            sum((Fraction(int(a) + int(b), 2 * n) for a, b in itertools.pairwise(row)), Fraction(0))
            for row in side
        ]
        for side in (one, two)
    ]
    whole = np.array([[2 * n * value for value in side] for side in exact], dtype=np.int64)
    areas = [area_under_curve(labels, side / n) for side in (one, two)]
    found = paired_tests({"margin": areas[0], "random": areas[1]})[0]
    assert found.wins == sum(a < b for a, b in zip(*exact, strict=True))
    assert found.losses == sum(a > b for a, b in zip(*exact, strict=True))
    assert found.p == wilcoxon_p(whole[0] * 1.0, whole[1] * 1.0), "ranks of whole numbers are exact"
    np.testing.assert_array_equal(average_ranks(areas), average_ranks(whole))
    np.testing.assert_array_equal(average_ranks(np.transpose(areas)), average_ranks(whole.T))
    last, whole_last = [side[:, -1] / n for side in (one, two)], [side[:, -1] * 1.0 for side in (one, two)]
    assert wilcoxon_p(*last) == wilcoxon_p(*whole_last)


def test_equals_that_rounding_tells_apart_are_ties():
    a, b = np.array([2, 0, 8, 6, 1, 9, 9, 6, 0, 8, 8]), np.array([3, 2, 7, 4, 1, 11, 11, 4, 0, 10, 6])
    assert wilcoxon_p(a / 36, b / 36) == wilcoxon_p(a * 1.0, b * 1.0)
    np.testing.assert_array_equal(average_ranks([[0.1 + 0.2, 0.3, 0.5]]), [[1.5, 1.5, 3]])
    # what rounding is follows the size of the numbers
    np.testing.assert_array_equal(average_ranks([[1e-13, 3e-13, 2e-13]]), [[1, 3, 2]])
    np.testing.assert_array_equal(gaps_of([0.1 + 0.2, 0.5], [0.3, 0.25]), [0.0, 0.25])


@FEW
@given(column(1, 8, st.integers(-4, 4).map(float)))
def test_wilcoxon_is_the_share_of_signs_that_are_as_far_from_even(gap):
    moved = gap[gap != 0]
    expected = 1.0
    if moved.size:
        ranks = stats.rankdata(np.abs(moved))
        sums = np.array([np.dot(ranks, s) for s in itertools.product([-1, 1], repeat=moved.size)])
        expected = np.mean(np.abs(sums) >= abs(np.dot(ranks, np.sign(moved))) - 1e-9)
    assert wilcoxon_p(gap, np.zeros_like(gap)) == pytest.approx(expected)


def test_wilcoxon_with_many_ties_joins_the_normal_approximation():
    rng = np.random.default_rng(0)
    for n in (50, 60):
        gap = np.round(rng.normal(0.1, 1.0, n), 1)
        near = stats.wilcoxon(gap, method="asymptotic").pvalue
        assert wilcoxon_p(gap, np.zeros_like(gap)) == pytest.approx(near, rel=0.03)


@FEW
@given(st.integers(2, 25), seeds)
def test_wilcoxon_is_scipys_without_ties_and_does_not_care_for_order_sides_or_unit(n, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    p = wilcoxon_p(a, b)
    assert p == pytest.approx(stats.wilcoxon(a, b, method="exact").pvalue)
    order = rng.permutation(n)
    assert wilcoxon_p(b, a) == p == wilcoxon_p(a[order], b[order]) == wilcoxon_p(4 * a, 4 * b)
    assert 2.0 ** (1 - n) <= p * (1 + 1e-12) and p <= 1


@FEW
@given(st.lists(st.floats(0, 1), max_size=12), st.randoms(use_true_random=False))
def test_holm_only_raises_keeps_the_order_and_never_passes_bonferroni(p, random):
    adjusted = holm(p)
    assert (adjusted >= np.array(p)).all() and (adjusted <= np.minimum(1, len(p) * np.array(p)) + 1e-15).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()
    order = list(range(len(p)))
    random.shuffle(order)
    assert holm([p[i] for i in order]) == pytest.approx(adjusted[order])
    for alpha in (0.05, 0.5):
        # Holm's own words: go up through the sorted p-values until one misses its level
        rejected = set()
        for step, i in enumerate(np.argsort(p, kind="stable")):
            if p[i] * (len(p) - step) > alpha:
                break
            rejected.add(int(i))
        assert rejected == set(np.flatnonzero(adjusted <= alpha).tolist())


@settings(max_examples=12)  # ties are gone through sign by sign, in SciPy
@given(st.integers(2, 3), st.integers(2, 8), st.data())
def test_paired_tests_turn_round_with_the_sides_and_a_mean_lies_in_its_interval(k, n, data):
    values = {f"p{i}": data.draw(npst.arrays(np.float64, n, elements=eighths)) for i in range(k)}
    found = paired_tests(values, "p0")
    upside = paired_tests(values, "p0", lower_is_better=False)
    mirrored = paired_tests({name: -v for name, v in values.items()}, "p0")
    shifted = paired_tests({name: v + 8 for name, v in values.items()}, "p0")
    other = {"better": "worse", "worse": "better"}
    for test, turned, minus, moved in zip(found, upside, mirrored, shifted, strict=True):
        assert test.low <= test.difference <= test.high
        assert test.wins + test.losses <= n and 0 < test.p <= test.p_holm <= 1
        assert turned.verdict == other.get(test.verdict, test.verdict) == minus.verdict
        assert (minus.wins, minus.losses, minus.difference) == (test.losses, test.wins, -test.difference)
        assert (moved.p, moved.difference, moved.verdict) == (test.p, test.difference, test.verdict)
        (alone,) = paired_tests({test.policy: values[test.policy], "p0": values["p0"]}, "p0")
        assert alone.p == alone.p_holm == test.p
    pairs = paired_tests(values, None)
    assert len(pairs) == k * (k - 1) // 2
    assert [t.p_holm for t in pairs] == pytest.approx(holm([t.p for t in pairs]))


# intervals


@FEW
@given(table(st.integers(2, 12), st.integers(1, 4)), st.floats(0.05, 0.99))
def test_a_mean_lies_in_its_interval_and_a_higher_level_is_wider(values, level):
    mean, low, high = mean_band(values, level)
    _, lower, higher = mean_band(values, (1 + level) / 2)
    assert (low <= mean).all() and (mean <= high).all()
    assert (lower <= low + 1e-12).all() and (high <= higher + 1e-12).all()
    for r in range(values.shape[1]):
        one = mean_interval(values[:, r], level)
        assert one == pytest.approx((mean[r], low[r], high[r], len(values)))
        if np.ptp(values[:, r]):
            expected = stats.t.interval(level, len(values) - 1, values[:, r].mean(), stats.sem(values[:, r]))
            assert (one.low, one.high) == pytest.approx(expected)
        else:
            assert one.low == one.value == one.high
    _, moved_low, moved_high = mean_band(2 * values + 1, level)
    assert moved_low == pytest.approx(2 * low + 1) and moved_high == pytest.approx(2 * high + 1)


@FEW
@given(st.integers(1, 60), st.data(), st.floats(0.05, 0.99))
def test_wilsons_interval_holds_its_share_and_is_the_other_outcomes_turned_round(n, data, level):
    hits = data.draw(st.integers(0, n))
    found, misses = share_interval(hits, n, level), share_interval(n - hits, n, level)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert (1 - misses.high, 1 - misses.low) == pytest.approx((found.low, found.high))
    theirs = stats.binomtest(hits, n).proportion_ci(level, method="wilson")
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    more = share_interval(10 * hits, 10 * n, level)
    assert more.high - more.low < found.high - found.low


@settings(max_examples=15)
@given(predictions(), seeds)
def test_intervals_of_calibration_are_in_order_and_in_bounds(drawn, seed):
    y, p = drawn
    seed %= 1000
    gap = calibration_interval(reliability_table(y, p, 5), n_samples=50, seed=seed)
    assert 0 <= gap.low <= gap.value <= gap.high <= 1 and gap.n == len(y)
    assert gap.value == pytest.approx(expected_calibration_error(y, p, 5))
    table = reliability_table(y, p, 5)
    (low, high), accuracy = table.band, table.accuracy
    assert (np.isnan(low) == np.isnan(accuracy)).all() and (np.isnan(high) == np.isnan(accuracy)).all()
    assert np.nanmin(low) >= 0 and np.nanmax(high) <= 1 and (low <= high)[~np.isnan(low)].all()


# ranks


@FEW
@given(table(st.integers(1, 6), st.integers(2, 6)), st.data())
def test_ranks_add_up_and_ask_only_for_the_order(values, data):
    m, k = values.shape
    ranks = average_ranks(values)
    assert ranks.sum(axis=1) == pytest.approx(np.full(m, k * (k + 1) / 2))
    assert ranks.min() >= 1 and ranks.max() <= k
    for row, given_ranks in zip(values, ranks, strict=True):
        # the definition: one more than those below, and half of those that are equal
        by_hand = [(row < x).sum() + ((row == x).sum() + 1) / 2 for x in row]
        assert given_ranks == pytest.approx(by_hand)
    assert average_ranks(values**3 + values) == pytest.approx(ranks)
    assert average_ranks(values, lower_is_better=False) == pytest.approx(k + 1 - ranks)
    order = data.draw(st.permutations(range(k)))
    assert average_ranks(values[:, order]) == pytest.approx(ranks[:, order])


@FEW
@given(table(st.integers(2, 8), st.integers(3, 5)), st.data())
def test_a_ranking_does_not_depend_on_the_order_of_sets_or_methods(values, data):
    m, k = values.shape
    names = [f"m{i}" for i in range(k)]
    found = rank_methods(values, names)
    order = data.draw(st.permutations(range(m)))
    again = rank_methods(values[order], names)
    assert again.mean_ranks == pytest.approx(found.mean_ranks) and again.p == pytest.approx(found.p)
    columns = data.draw(st.permutations(range(k)))
    turned = rank_methods(values[:, columns], [names[i] for i in columns])
    assert turned.p == pytest.approx(found.p) and turned.mean_ranks == pytest.approx(
        found.mean_ranks[columns]
    )
    assert {frozenset(g) for g in turned.groups if len(g) == k} == {
        frozenset(g) for g in found.groups if len(g) == k
    }
    assert 0 <= found.p <= 1 and found.statistic >= -1e-9
    untied = (found.ranks != found.ranks[:, :1]).any()
    if untied and all(np.ptp(row) for row in values):
        expected = stats.friedmanchisquare(*values.T)
        assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.critical_difference == critical_difference(k, m)


@FEW
@given(
    st.lists(st.integers(8, 80).map(lambda i: i / 8), min_size=1, max_size=8),
    st.integers(0, 16).map(lambda i: i / 4),
)
def test_two_methods_share_a_clique_exactly_when_they_are_not_told_apart(ranks, gap):
    runs = cliques(ranks, gap)
    ordered = np.sort(ranks)
    together = {(i, j) for a, b in runs for i in range(a, b + 1) for j in range(i + 1, b + 1)}
    assert together == {
        (i, j) for i in range(len(ranks)) for j in range(i + 1, len(ranks)) if ordered[j] - ordered[i] <= gap
    }
    for one, other in itertools.permutations(runs, 2):
        assert not (other[0] <= one[0] and one[1] <= other[1])


# agreement


@FEW
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30), st.data())
def test_cohens_kappa_is_scikit_learns_and_knows_neither_names_nor_order(pairs, data):
    from sklearn.metrics import cohen_kappa_score

    first, second = np.array(pairs).T
    found = cohen_kappa(first, second)
    assert 0 <= found.expected <= 1 and 0 <= found.observed <= 1
    if len({*first, *second}) == 1:
        assert np.isnan(found.kappa)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found.kappa == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)
    assert -1 - 1e-12 <= found.kappa <= 1
    assert (found.kappa == 1) == (first == second).all()
    assert cohen_kappa(second, first).kappa == pytest.approx(found.kappa)
    renamed = np.array(data.draw(st.permutations(range(4))))
    assert cohen_kappa(renamed[first], renamed[second]).kappa == pytest.approx(found.kappa)
    order = data.draw(st.permutations(range(len(first))))
    assert cohen_kappa(first[order], second[order]).kappa == pytest.approx(found.kappa)


@FEW
@given(st.integers(2, 5), st.integers(1, 12), st.integers(2, 4), st.data())
def test_krippendorffs_alpha_is_agreement_over_pairs_and_knows_neither_names_nor_order(m, n, n_classes, data):
    given_codes = data.draw(npst.arrays(np.int64, (n, m), elements=st.integers(0, n_classes - 1)))
    counts = np.array([np.bincount(row, minlength=n_classes) for row in given_codes])
    found = krippendorff_alpha(counts)
    pairs = [row[i] == row[j] for row in given_codes for i, j in itertools.combinations(range(m), 2)]
    assert found.observed == pytest.approx(np.mean(pairs))
    assert (found.n_items, found.n_ratings) == (n, m * n)
    named, size = np.bincount(given_codes.ravel(), minlength=n_classes), given_codes.size
    assert found.expected == pytest.approx((named * (named - 1)).sum() / (size * (size - 1)))
    if len(np.unique(given_codes)) == 1:
        assert np.isnan(found.kappa)
        return
    assert -1 - 1e-9 <= found.kappa <= 1 + 1e-12
    columns, rows = data.draw(st.permutations(range(n_classes))), data.draw(st.permutations(range(n)))
    assert krippendorff_alpha(counts[rows][:, columns]).kappa == pytest.approx(found.kappa)


# scores and calibration


def worst_gap(y, p, n_bins=15):
    return reliability_table(y, p, n_bins).gap.max()


def equal_mass_error(y, p, n_bins=15):
    return reliability_table(y, p, n_bins, equal_mass=True).error


@FEW
@given(predictions(), st.data())
def test_scores_stay_in_bounds_and_know_neither_order_nor_names(drawn, data):
    y, p = drawn
    n, n_classes = p.shape
    order = data.draw(st.permutations(range(n)))
    bounds = {
        error_rate: 1,
        balanced_error_rate: 1,
        macro_f1: 1,
        brier_score: 2,
        negative_log_likelihood: -np.log(1e-12),
        expected_calibration_error: 1,
        worst_gap: 1,
        equal_mass_error: 1,
        classwise_calibration_error: 1,
    }
    for score, most in bounds.items():
        value = score(y, p)
        assert 0 <= value <= most + 1e-12, score
        assert score(y[order], p[order]) == pytest.approx(value), score
        # two of every item are the same share of errors
        assert score(np.repeat(y, 2), np.repeat(p, 2, axis=0)) == pytest.approx(value), score
    truth = np.eye(n_classes)[y]
    assert [score(y, truth) for score in bounds] == [0, 0, 1, 0, 0, 0, 0, 0, 0]
    # names: where no two classes are equally likely, the order of the columns decides nothing
    renamed = np.array(data.draw(st.permutations(range(n_classes))))
    other = np.empty_like(p)
    other[:, renamed] = p
    for score in (negative_log_likelihood, brier_score, classwise_calibration_error):
        assert score(renamed[y], other) == pytest.approx(score(y, p)), score
    if all(np.sum(row == row.max()) == 1 for row in p):
        for score in bounds:
            assert score(renamed[y], other) == pytest.approx(score(y, p)), score


@FEW
@given(predictions(), st.integers(1, 20))
def test_calibration_errors_lie_in_order_and_one_bin_is_the_gap_of_the_means(drawn, n_bins):
    y, p = drawn
    ece, mce = expected_calibration_error(y, p, n_bins), worst_gap(y, p, n_bins)
    assert ece <= mce + 1e-12
    accuracy, confidence = 1 - error_rate(y, p), p.max(axis=1).mean()
    one = expected_calibration_error(y, p, 1)
    assert one == pytest.approx(abs(accuracy - confidence))
    # finer bins of one binning never lower it, and no binning is below the gap of the means
    assert ece >= one - 1e-12 and expected_calibration_error(y, p, 2 * n_bins) >= ece - 1e-12
    assert equal_mass_error(y, p, n_bins) >= one - 1e-12
    found = reliability_table(y, p, n_bins)
    assert found.count.sum() == len(y)
    held = found.count > 0
    assert (found.lower[held] <= found.confidence[held] + 1e-12).all()
    assert (found.confidence[held] <= found.upper[held] + 1e-12).all()
    assert np.nansum(found.count * found.accuracy) == pytest.approx(accuracy * len(y))
    parts = brier_parts(y, p, n_bins)
    assert parts.brier == pytest.approx(
        parts.reliability - parts.resolution + parts.uncertainty + parts.remainder
    )
    assert min(parts[:4]) >= 0 and parts.resolution <= parts.uncertainty + 1e-12


# ROC


@FEW
@given(groups(), st.data())
def test_auc_is_scikit_learns_and_asks_only_for_the_order_of_scores(drawn, data):
    from sklearn.metrics import roc_auc_score

    positive, scores = drawn
    low, high = scores[~positive], scores[positive]
    auc = area_under_roc(low, high)
    assert 0 <= auc <= 1 and auc == pytest.approx(roc_auc_score(positive, scores))
    by_hand = [(a > b) + (a == b) / 2 for a in scores[positive] for b in scores[~positive]]
    assert auc == pytest.approx(np.mean(by_hand))
    assert area_under_roc(low**3 + low, high**3 + high) == auc
    assert area_under_roc(-low, -high) == pytest.approx(1 - auc)
    assert area_under_roc(high, low) == pytest.approx(1 - auc)
    curve = roc_curve(low, high)
    assert (np.diff(curve.false_positive) >= 0).all() and (np.diff(curve.true_positive) >= 0).all()
    assert (curve.false_positive[0], curve.true_positive[0]) == (0, 0)
    assert (curve.false_positive[-1], curve.true_positive[-1]) == (1, 1)
    assert np.trapezoid(curve.true_positive, curve.false_positive) == pytest.approx(auc)
    assert area_under_roc(low, data.draw(st.permutations(high.tolist()))) == auc
