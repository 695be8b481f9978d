import numpy as np
import pytest

from workbench.errors import InputError
from workbench.metrics import label_errors

GIVEN = [0, 0, 1, 1, 2, 2]
P = [
    [0.6, 0.3, 0.1],
    [0.2, 0.7, 0.1],
    [0.1, 0.8, 0.1],
    [0.5, 0.4, 0.1],
    [0.1, 0.1, 0.8],
    [0.38, 0.42, 0.2],
]


def test_thresholds_joint_and_ranking_by_hand():
    found = label_errors(GIVEN, P)
    np.testing.assert_allclose(found.thresholds, [0.4, 0.6, 0.5])
    # the last item reaches no threshold and is not counted, although its label is improbable
    assert found.likely.tolist() == [0, 1, 1, 0, 2, -1]
    assert found.joint.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert np.flatnonzero(found.wrong).tolist() == [1, 3]
    np.testing.assert_allclose(found.self_confidence, [0.6, 0.2, 0.8, 0.4, 0.8, 0.2])
    np.testing.assert_allclose(found.normalised_margin, [0.65, 0.25, 0.85, 0.45, 0.85, 0.39])
    assert found.ranked().tolist() == [1, 3]


def test_the_larger_probability_counts_where_two_thresholds_are_reached():
    # thresholds 0.3 and 0.4: the first and the third item reach both
    found = label_errors([0, 0, 1, 1], [[0.5, 0.5], [0.1, 0.9], [0.4, 0.6], [0.8, 0.2]])
    np.testing.assert_allclose(found.thresholds, [0.3, 0.4])
    assert found.likely.tolist() == [0, 1, 1, 0]
    assert found.ranked().tolist() == [1, 3]


def test_a_sure_second_class_beats_a_low_probability_only_by_the_margin():
    p = [
        [0.30, 0.35, 0.35],
        [0.31, 0.69, 0.0],
        [0.9, 0.05, 0.05],
        *([[0.2, 0.3, 0.5]] * 2),
        *([[0.3, 0.5, 0.2]] * 2),
    ]
    found = label_errors([0, 0, 0, 1, 1, 2, 2], p)
    by_confidence, by_margin = found.ranked(), found.ranked("normalised-margin")
    assert sorted(by_confidence) == sorted(by_margin)
    quality = found.normalised_margin[by_margin]
    assert np.all(np.diff(quality) >= 0) and np.all(np.diff(found.self_confidence[by_confidence]) >= 0)
    assert by_confidence.tolist() != by_margin.tolist()


def test_a_class_nobody_was_given_is_never_the_likely_one():
    found = label_errors([0, 0, 1], [[0.4, 0.1, 0.5], [0.9, 0.0, 0.1], [0.1, 0.8, 0.1]])
    assert found.thresholds[2] == np.inf and not found.wrong.any()
    assert 2 not in found.likely


def test_wrong_labels_put_into_clear_data_are_found():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 50)
    p = np.full((200, 4), 0.05)
    p[np.arange(200), truth] = 0.85
    p = 0.8 * p + 0.2 * rng.dirichlet(np.ones(4), 200)
    given = truth.copy()
    flipped = rng.choice(200, 20, replace=False)
    given[flipped] = (given[flipped] + 1) % 4
    found = set(label_errors(given, p).ranked())
    # one that stays just below its threshold is not counted
    assert found <= set(flipped) and len(found) >= 18


def test_refused():
    with pytest.raises(InputError, match="at least two classes"):
        label_errors([0, 0], [[1.0], [1.0]])
    with pytest.raises(InputError, match="has no column"):
        label_errors([0, 2], [[0.5, 0.5], [0.5, 0.5]])
