import numpy as np
import pytest

from workbench.errors import InputError
from workbench.metrics import area_under_roc, roc_curve


def test_equal_groups_give_exactly_one_half():
    scores = np.random.default_rng(0).random(333).round(2)
    assert area_under_roc(scores, scores) == 0.5


def test_curve_by_hand():
    curve = roc_curve([0.8, 0.1], [0.9, 0.7])
    np.testing.assert_allclose(curve.false_positive, [0, 0, 0.5, 0.5, 1])
    np.testing.assert_allclose(curve.true_positive, [0, 0.5, 0.5, 1, 1])
    assert np.trapezoid(curve.true_positive, curve.false_positive) == area_under_roc([0.8, 0.1], [0.9, 0.7])


@pytest.mark.parametrize(
    ("negative", "positive", "match"),
    [
        ([], [0, 1], "both groups"),
        ([1], [], "both groups"),
        ([0], [np.nan], "finite"),
        ([np.inf], [0], "finite"),
    ],
)
def test_bad_input(negative, positive, match):
    for function in (roc_curve, area_under_roc):
        with pytest.raises(InputError, match=match):
            function(negative, positive)
