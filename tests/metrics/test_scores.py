import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError
from workbench.metrics import (
    balanced_error_rate,
    brier_score,
    error_rate,
    expected_calibration_error,
    macro_f1,
    negative_log_likelihood,
    reliability_table,
)

Y = np.array([0, 0, 0, 1, 1, 2])
P = np.array(
    [[0.8, 0.1, 0.1], [0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.1, 0.9, 0.0], [0.6, 0.4, 0.0], [0.0, 0.0, 1.0]]
)


def test_by_hand():
    assert error_rate(Y, P) == pytest.approx(2 / 6)
    assert balanced_error_rate(Y, P) == pytest.approx((1 / 3 + 1 / 2 + 0) / 3)
    # class 0: 2 hits, 3 true, 3 predicted; class 1: 1, 2, 2; class 2: 1, 1, 1
    assert macro_f1(Y, P) == pytest.approx((4 / 6 + 2 / 4 + 1) / 3)
    assert negative_log_likelihood(Y, P) == pytest.approx(-np.log([0.8, 0.5, 0.2, 0.9, 0.4, 1.0]).mean())
    first = [0.06, 0.38, 1.14, 0.02, 0.72, 0.0]
    assert brier_score(Y, P) == pytest.approx(np.mean(first))
    assert error_rate(Y, P.argmax(axis=1)) == error_rate(Y, P)


def test_zero_probability_stays_finite_and_brier_reaches_two():
    p = np.array([[1.0, 0.0]])
    assert negative_log_likelihood([1], p) == pytest.approx(-np.log(1e-12))
    assert brier_score([1], p) == 2.0


def test_against_scikit_learn():
    from sklearn.metrics import balanced_accuracy_score, brier_score_loss, f1_score, log_loss

    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 4, 300), rng.dirichlet(np.ones(4), 300)
    guess = p.argmax(axis=1)
    assert balanced_error_rate(y, p) == pytest.approx(1 - balanced_accuracy_score(y, guess))
    assert macro_f1(y, p) == pytest.approx(f1_score(y, guess, average="macro"))
    assert negative_log_likelihood(y, p) == pytest.approx(log_loss(y, p, labels=range(4)))
    assert brier_score(y, p) == pytest.approx(brier_score_loss(y, p, labels=range(4)))


def test_edges_belong_to_the_lower_bin():
    # confidences 0.6, 0.8, 1 in 5 bins: ((b-1)/5, b/5]
    p = np.array([[0.6, 0.4], [0.8, 0.2], [1.0, 0.0], [0.7, 0.3]])
    table = reliability_table([0, 1, 0, 0], p, 5)
    np.testing.assert_array_equal(table.count, [0, 0, 1, 2, 1])
    assert table.confidence[3] == pytest.approx(0.75) and table.accuracy[3] == 0.5
    assert np.isnan(table.accuracy[0])
    assert expected_calibration_error([0, 1, 0, 0], p, 5) == pytest.approx((0.4 + 2 * 0.25 + 0) / 4)


@given(st.integers(1, 30), st.integers(1, 40))
def test_every_edge_of_every_binning_stays_inside(n_bins, n):
    confidence = np.arange(n + 1) / n
    p = np.column_stack([confidence, 1 - confidence])
    table = reliability_table(np.zeros(n + 1, int), p, n_bins, class_code=0)
    assert table.count.sum() == n + 1
    inside = table.count > 0
    assert (table.confidence[inside] <= table.upper[inside] + 1e-12).all()
    assert (table.confidence[inside] >= table.lower[inside]).all()


@pytest.mark.parametrize(
    ("y", "p", "match"),
    [
        ([], np.zeros((0, 2)), "nothing to measure"),
        ([0, -1], [[1, 0], [0, 1]], "no known class"),
        ([0, 2], [[1, 0], [0, 1]], "no column"),
        ([0], [[1, 0], [0, 1]], "one row an item"),
        ([0, 1], [[1, 0], [np.nan, 1]], "Item 1"),
        ([0, 1], [[1, 0], [0.9, 0.8]], r"row 1 sum to 1\.7, not to 1"),
        ([0.5], [[1, 0]], "whole-number"),
        ([np.inf], [[1, 0]], "whole-number"),
        ([1e30], [[1, 0]], "whole-number"),
        (["a"], [[1, 0]], "whole-number"),
    ],
)
def test_bad_input_is_named(y, p, match):
    for metric in (error_rate, brier_score, negative_log_likelihood, expected_calibration_error):
        with pytest.raises(InputError, match=match):
            metric(np.asarray(y), np.asarray(p))


def test_one_class_is_allowed():
    p = np.ones((4, 1))
    assert error_rate(np.zeros(4, int), p) == 0 and expected_calibration_error(np.zeros(4, int), p) == 0
