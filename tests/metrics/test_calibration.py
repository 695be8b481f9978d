import numpy as np
import pytest

from workbench.errors import InputError
from workbench.metrics import (
    brier_parts,
    classwise_calibration_error,
    expected_calibration_error,
    reliability_table,
    share_interval,
)
from workbench.metrics.calibration import calibration_interval


def two_class(confidence, hit):
    """Probabilities of class 0 and codes that make class 0 right or wrong."""
    c = np.asarray(confidence, dtype=float)
    return 1 - np.asarray(hit), np.column_stack([c, 1 - c])


def oracle(seed=0, n=2000, c=3, sharp=0.7):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(c, sharp), n)
    return (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), p


def test_by_hand():
    y, p = two_class([0.55, 0.58, 0.75, 0.95, 0.98], [1, 0, 1, 1, 0])
    # bins of ten: (0.5, 0.6] 2 items conf 0.565 acc 0.5; (0.7, 0.8] 1: 0.75, 1; (0.9, 1] 2: 0.965, 0.5
    assert expected_calibration_error(y, p, 10) == pytest.approx((2 * 0.065 + 0.25 + 2 * 0.465) / 5)
    assert reliability_table(y, p, 10).gap.max() == pytest.approx(0.465)
    table = reliability_table(y, p, 10)
    np.testing.assert_array_equal(table.right[[5, 7, 9]], [1, 1, 1])
    np.testing.assert_array_equal(table.wrong[[5, 7, 9]], [1, 0, 1])
    assert table.mean_accuracy == pytest.approx(0.6)
    assert table.over_confidence == pytest.approx(np.mean([0.55, 0.58, 0.75, 0.95, 0.98]) - 0.6)


def test_against_a_second_writing_of_the_definition():
    y, p = oracle(1, n=400, c=4)
    conf, hit = p.max(axis=1), p.argmax(axis=1) == y
    for n_bins in (1, 3, 10, 15):
        total = worst = 0.0
        for b in range(1, n_bins + 1):
            inside = (conf > (b - 1) / n_bins) & (conf <= b / n_bins)
            if inside.any():
                gap = abs(hit[inside].mean() - conf[inside].mean())
                total += inside.mean() * gap
                worst = max(worst, gap)
        assert expected_calibration_error(y, p, n_bins) == pytest.approx(total, abs=1e-12)
        assert reliability_table(y, p, n_bins).gap.max() == pytest.approx(worst, abs=1e-12)


def test_classwise_is_the_mean_of_the_classes():
    y, p = oracle(2)
    each = [reliability_table(y, p, 15, class_code=k).error for k in range(3)]
    assert classwise_calibration_error(y, p) == pytest.approx(np.mean(each))
    table = reliability_table(y, p, 5, class_code=1)
    inside = (p[:, 1] > 0.4) & (p[:, 1] <= 0.6)
    assert table.count[2] == inside.sum()
    assert table.accuracy[2] == pytest.approx((y[inside] == 1).mean())


def test_adaptive_bins_hold_equal_shares_and_keep_ties_together():
    y, p = oracle(3, n=1500)
    table = reliability_table(y, p, 15, equal_mass=True)
    assert table.count.sum() == 1500 and (table.count == 100).all()
    assert table.lower[0] == 0.0 and table.upper[-1] == 1.0
    shuffled = np.random.default_rng(0).permutation(1500)
    assert reliability_table(y[shuffled], p[shuffled], 15, equal_mass=True).error == pytest.approx(
        reliability_table(y, p, 15, equal_mass=True).error
    )
    tied_y, tied_p = two_class([0.9] * 7 + [0.6] * 3, [1, 1, 1, 0, 1, 1, 1, 0, 1, 1])
    assert len(reliability_table(tied_y, tied_p, 15, equal_mass=True).count) == 2
    assert reliability_table(tied_y, tied_p, 15, equal_mass=True).error == pytest.approx(
        0.7 * abs(6 / 7 - 0.9) + 0.3 * abs(2 / 3 - 0.6)
    )


def test_the_parts_of_the_brier_score_add_up():
    y, p = oracle(4)
    parts = brier_parts(y, p, 10)
    assert parts.brier == pytest.approx(np.mean((p.max(axis=1) - (p.argmax(axis=1) == y)) ** 2))
    assert parts.brier == pytest.approx(
        parts.reliability - parts.resolution + parts.uncertainty + parts.remainder, abs=1e-12
    )
    assert parts.reliability < 0.005 < parts.resolution
    assert parts.remainder != 0
    # one confidence a bin leaves nothing over
    exact = brier_parts(*two_class([0.9] * 5 + [0.65] * 4, [1, 1, 1, 1, 0, 1, 0, 1, 0]), 10)
    assert abs(exact.remainder) < 1e-12


def test_perfectly_calibrated_items_show_the_known_bias_and_an_interval_from_zero():
    values, covered, inside = [], 0, 0
    for seed in range(20):
        y, p = oracle(seed, sharp=1.0)
        interval = calibration_interval(reliability_table(y, p, 15), n_samples=200, seed=seed)
        assert interval.value == pytest.approx(expected_calibration_error(y, p))
        values.append(interval.value)
        covered += interval.low <= 0.01
        inside += interval.low <= interval.value <= interval.high
        assert interval.n == 2000
    assert 0.015 < np.mean(values) < 0.035, "ECE of a perfect model is biased upward"
    assert covered >= 18 and inside == 20


def coverage(n: int, over: float, draws: int) -> float:
    """Share of samples of a model that is over-confident by so much whose interval holds that error."""
    rng, covered = np.random.default_rng(n), 0
    for seed in range(draws):
        confidence = rng.uniform(0.55, 1, n)
        y, p = two_class(confidence, (rng.random(n) < confidence - over).astype(int))
        found = calibration_interval(reliability_table(y, p, 15), n_samples=200, seed=seed)
        assert found.low <= found.value <= found.high
        covered += found.low <= over <= found.high
    return covered / draws


@pytest.mark.slow  # alone: how often intervals of small samples cover
def test_a_calibrated_models_interval_reaches_zero():
    assert coverage(100, 0.0, 60) >= 0.9 and coverage(100, 0.1, 60) >= 0.85


def test_a_known_error_of_calibration_lies_in_its_interval():
    # one confidence alone: every item says 0.9 and is right with chance 0.7
    rng = np.random.default_rng(0)
    y, p = two_class(np.full(400, 0.9), (rng.random(400) < 0.7).astype(int))
    found = calibration_interval(reliability_table(y, p, 15))
    assert 0.19 < found.low <= found.value <= found.high < 0.33 and found == calibration_interval(
        reliability_table(y, p, 15)
    )
    # all right with certainty, thirty times: nothing seen, and a tenth could have been missed
    none = calibration_interval(reliability_table(*two_class(np.ones(30), np.ones(30, int)), 15))
    assert none.value == none.low == 0 and 0.05 < none.high < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "over"), [(30, 0.0), (30, 0.1), (100, 0.05), (100, 0.2), (400, 0.0), (400, 0.1)]
)
def test_intervals_of_calibration_errors_cover_what_they_say(n: int, over: float):
    """Protects the share of samples, 95 %, that the page promises; for a calibrated model it was half of
    that."""
    assert coverage(n, over, 200) >= 0.95 - 2.6 * (0.95 * 0.05 / 200) ** 0.5


def test_reliability_band_surrounds_the_accuracies():
    y, p = oracle(6, n=600)
    table = reliability_table(y, p)
    low, high = table.band
    filled = table.count > 0
    assert (low[filled] <= table.accuracy[filled] + 1e-12).all()
    assert (high[filled] >= table.accuracy[filled] - 1e-12).all()
    assert np.isnan(low[~filled]).all() and np.isnan(high[~filled]).all()
    sure_y, sure_p = two_class([0.95] * 4, [1] * 4)
    low, high = reliability_table(sure_y, sure_p).band
    assert low[9] < 0.6 and high[9] == 1.0, "four hits out of four are no proof"


def test_bad_input():
    y, p = oracle(0, n=10)
    for equal_mass in (False, True):
        with pytest.raises(InputError, match="at least one bin"):
            reliability_table(y, p, 0, equal_mass=equal_mass)
        with pytest.raises(InputError, match=r"at least one bin, a whole number of them; got 2\.5"):
            reliability_table(y, p, 2.5, equal_mass=equal_mass)
    with pytest.raises(InputError, match="no class with code 3"):
        reliability_table(y, p, class_code=3)
    with pytest.raises(InputError, match="level"):
        calibration_interval(reliability_table(y, p, 15), level=1.5)
    with pytest.raises(InputError, match="hits"):
        share_interval(3, 0)
