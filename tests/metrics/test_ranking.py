import numpy as np
import pytest

from workbench.errors import InputError
from workbench.metrics import area_under_roc, roc_curve


def test_equal_groups_give_exactly_one_half():
    scores = np.random.default_rng(0).random(333).round(2)
    assert area_under_roc(np.repeat([True, False], 333), np.tile(scores, 2)) == 0.5


def test_curve_by_hand():
    curve = roc_curve([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    np.testing.assert_allclose(curve.false_positive, [0, 0, 0.5, 0.5, 1])
    np.testing.assert_allclose(curve.true_positive, [0, 0.5, 0.5, 1, 1])
    assert np.trapezoid(curve.true_positive, curve.false_positive) == area_under_roc(
        [1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1]
    )


@pytest.mark.parametrize(
    ("positive", "scores", "match"),
    [([1, 1], [0, 1], "both groups"), ([1, 0], [0, np.nan], "item 1"), ([1, 0], [0], "one score an item")],
)
def test_bad_input(positive, scores, match):
    for function in (roc_curve, area_under_roc):
        with pytest.raises(InputError, match=match):
            function(positive, scores)
