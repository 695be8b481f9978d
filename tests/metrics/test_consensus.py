"""The consensus knows whom to believe, says little of few labels, and knows where one more answer helps."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.metrics.agreement import (
    alpha_interval,
    consensus,
    everybody,
    krippendorff_alpha,
    without_person,
    worth_asking,
)


def crowd(accuracies, n=300, C=4, each=3, seed=0):
    """Ratings of n items by people of these accuracies, `each` of them an item; and the truth."""
    rng = np.random.default_rng(seed)
    truth, ratings = rng.integers(C, size=n), []
    for i in range(n):
        for p in rng.choice(len(accuracies), each, replace=False):
            right = rng.random() < accuracies[p]
            ratings.append((i, p, truth[i] if right else (truth[i] + rng.integers(1, C)) % C))
    return (*np.array(ratings).T, truth)


def test_it_is_right_more_often_than_the_majority_where_spammers_answer():
    items, people, codes, truth = crowd([0.9, 0.85, 0.9, 0.25, 0.25], n=600)
    found = consensus(items, people, codes, 4)
    plain = np.stack([np.bincount(codes[items == i], minlength=4) for i in range(600)]).argmax(axis=1)
    assert (found.codes != truth).mean() < 0.8 * (plain != truth).mean()
    assert found.accuracies[:3].min() > 0.75 and found.accuracies[3:].max() < 0.45


def test_shares_of_classes_sum_to_one_however_many_classes_nobody_named():
    items, people, codes, _ = crowd([0.9, 0.9, 0.9], n=60)
    for n_classes in (4, 40):
        shares = consensus(items, people, codes, n_classes).shares
        assert shares.shape == (n_classes,) and shares.sum() == pytest.approx(1.0, abs=1e-9)


def test_a_class_that_somebody_takes_for_another_is_in_their_confusion():
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=200)
    ratings = [(i, p, int(c)) for i, c in enumerate(truth) for p in (0, 1)]
    ratings += [(i, 2, 1 if c == 0 else int(c)) for i, c in enumerate(truth)]  # always 1 for 0
    found = consensus(*np.array(ratings).T, 3)
    assert found.confusions[2, 0, 1] > 0.8 and found.confusions[0, 0, 0] > 0.9
    assert (found.codes == truth).all()
    np.testing.assert_allclose(found.confusions.sum(axis=2), 1.0, atol=1e-4)
    np.testing.assert_allclose(found.shares, np.bincount(truth, minlength=3) / 200, atol=0.02)


def test_the_interval_of_agreement_is_that_of_tables_drawn_again():
    table = np.array([[3, 0], [2, 1], [0, 2], [1, 1], [0, 3], [2, 0], [1, 2]])
    drawn = np.random.default_rng(4).multinomial(7, np.full(7, 1 / 7), 60)
    alphas = [krippendorff_alpha(np.repeat(table, times, axis=0)).kappa for times in drawn]
    found = alpha_interval(table, draws=60, seed=4)
    np.testing.assert_allclose(found[1:3], np.percentile(alphas, [2.5, 97.5]))


def test_three_labels_say_little():
    found = consensus([0, 0, 0], [0, 1, 2], [1, 1, 0], 3)
    assert found.codes[0] == 1 and 0.6 < found.certainties[0] < 0.97
    tie = consensus([0, 0], [0, 1], [0, 1], 2)
    np.testing.assert_allclose(tie.probabilities, 0.5, atol=1e-6)


def test_where_people_alike_differ_the_commoner_class_is_likelier():
    agreed = [
        (i, p, int(i >= 16)) for i in range(20) for p in (0, 1)
    ]  # sixteen of one class, four of the other
    torn = [(20, 0, 0), (20, 1, 1), (21, 0, 1), (21, 1, 0)]
    found = consensus(*np.array(agreed + torn).T, 2)
    assert found.shares[0] > 0.7
    assert (found.codes[20:] == 0).all() and (found.certainties[20:] > 0.6).all()


def test_a_good_classifier_decides_ties_and_a_bad_one_is_not_believed():
    items, people, codes, truth = crowd([0.75, 0.75, 0.75], n=400, each=2, seed=3)
    good = np.full((400, 4), 0.05)
    good[np.arange(400), truth] = 0.85
    bad = np.full((400, 4), 0.05)
    bad[np.arange(400), np.random.default_rng(0).integers(4, size=400)] = 0.85
    alone, helped = consensus(items, people, codes, 4), consensus(items, people, codes, 4, good)
    misled = consensus(items, people, codes, 4, bad)
    assert (helped.codes != truth).mean() < 0.5 * (alone.codes != truth).mean()
    assert helped.weight == 1.0 and misled.weight <= 0.25
    assert (misled.codes != truth).mean() < (alone.codes != truth).mean() + 0.05
    silent = consensus(items, people, codes, 4, np.full((400, 4), np.nan))
    np.testing.assert_allclose(silent.probabilities, alone.probabilities, atol=1e-9)


def test_one_more_answer_is_worth_most_where_people_differ():
    found = consensus([0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 1, 0], [0, 0, 0, 0, 1, 1], 2)
    value = worth_asking(found.probabilities, everybody(found))
    assert value.argmax() == 1 and value[1] > 0.1 and (value >= 0).all()
    nothing = np.full((2, 2), 0.5)  # of somebody who answers at random
    np.testing.assert_allclose(worth_asking(found.probabilities, nothing), 0.0, atol=1e-12)


def test_without_a_persons_own_answer_the_others_remain():
    found = consensus([0, 0, 0], [0, 1, 2], [0, 0, 1], 2)
    assert without_person(found, 0, 2, 1)[0] > found.probabilities[0, 0]
    assert without_person(found, 0, 0, 0)[0] < found.probabilities[0, 0]


@pytest.mark.parametrize("ratings", [([], [], []), ([0], [0], [5]), ([0], [0], [2]), ([0, 0], [0], [1])])
def test_what_is_no_ratings_is_refused(ratings):
    with pytest.raises(InputError):
        consensus(*ratings, 2)


def test_the_interval_of_alpha_holds_alpha_and_narrows_with_items():
    rng = np.random.default_rng(0)

    def counts(n):
        truth = rng.integers(3, size=n)
        rows = np.zeros((n, 3), dtype=int)
        for i, c in enumerate(truth):
            for _ in range(int(rng.integers(1, 4))):  # some ratings are missing
                rows[i, c if rng.random() < 0.8 else int(rng.integers(3))] += 1
        return rows

    few, many = counts(40), counts(1000)
    for table in (few, many):
        _, low, high, _ = alpha_interval(table)
        assert low < krippendorff_alpha(table).kappa < high
    assert np.ptp(alpha_interval(many)[1:3]) < 0.4 * np.ptp(alpha_interval(few)[1:3])
    assert np.isnan(alpha_interval([[2, 0], [3, 0]])[:3]).all()
