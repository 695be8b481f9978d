"""Draws within strata and bounds of classes keep their promise, by enumeration and by simulation."""

import itertools

import numpy as np
import pytest

from workbench.certificates import (
    by_class,
    draws_of_strata,
    first_reached,
    log_wealth,
    stratified,
    threshold,
)
from workbench.certificates.validation import too_many
from workbench.errors import InputError


def histories(size: int, wrong: int) -> list[list[int]]:
    return [[int(i in where) for i in range(size)] for where in itertools.combinations(range(size), wrong)]


def test_no_split_of_the_wrong_labels_is_certified_more_often_than_delta() -> None:
    sizes, error, confidence = (4, 5), 0.3, 0.6
    turns = [0, 1, 0, 1, 1, 0, 1, 0, 1]
    for a, b in itertools.product(range(5), range(6)):
        if a + b < too_many(9, error):
            continue
        false = total = 0
        for one, other in itertools.product(histories(4, a), histories(5, b)):
            left = [list(one), list(other)]
            wrong = [left[g].pop(0) for g in turns]
            evidence = stratified(wrong, turns, sizes, error)
            assert evidence[-1] == -np.inf
            false += bool((evidence >= threshold(confidence)).any())
            total += 1
        assert false / total <= 1 - confidence, (a, b)


def test_one_stratum_is_the_plain_test() -> None:
    rng = np.random.default_rng(0)
    wrong = (rng.random(90) < 0.02).astype(int)
    one, plain = stratified(wrong, np.zeros(90, dtype=int), [400], 0.05), log_wealth(wrong, 400, 0.05)
    np.testing.assert_allclose(one, plain, atol=0.02)
    assert (one <= plain + 1e-9).all()  # a bound from below


def test_strata_certify_what_holds_and_a_census_settles_it() -> None:
    sizes = [3_000, 1_000, 60]
    strata = np.repeat([0, 1, 2], sizes)
    order = draws_of_strata(strata, 5, 400)
    assert len(set(order.tolist())) == 400
    assert np.bincount(strata[order]).min() == 60  # the rare one is looked at as a whole
    evidence = stratified(np.zeros(400, dtype=int), strata[order], sizes, 0.05)
    assert first_reached(evidence, 0.95) > 0
    everything = draws_of_strata(np.repeat([0, 1], [6, 4]), 1, 20)
    assert sorted(everything.tolist()) == list(range(10))
    where = np.repeat([0, 1], [6, 4])[everything]
    assert stratified([0] * 9 + [1], where, [6, 4], 0.1)[-1] == np.inf
    assert stratified([0] * 8 + [1, 1], where, [6, 4], 0.1)[-1] == -np.inf


def test_strata_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="stratum of each"):
        stratified([0, 0], [0], [5], 0.05)
    with pytest.raises(InputError, match="from 0 to 0"):
        stratified([0, 0], [0, 1], [5], 0.05)
    with pytest.raises(InputError, match="than the 1 labels"):
        stratified([0, 0], [0, 0], [1, 5], 0.05)


def test_intervals_of_classes_hold_together() -> None:
    rng = np.random.default_rng(1)
    names = ["a", "b", "c"]
    size, confidence, missed = 600, 0.8, 0
    for _ in range(40):
        said = rng.choice(3, size=size, p=[0.6, 0.3, 0.1])
        truth = np.where(rng.random(size) < 0.1, rng.choice(3, size=size), said)
        order = rng.permutation(size)[:250]
        found = by_class(
            [names[c] for c in said[order]],
            [names[c] for c in truth[order]],
            {name: int((said == c).sum()) for c, name in enumerate(names)},
            confidence,
        )
        inside = True
        for c, one in enumerate(found):
            precision = (truth[said == c] == c).mean()
            recall = (said[truth == c] == c).mean()
            inside &= one.precision[0] - 1e-9 <= precision <= one.precision[1] + 1e-9
            inside &= one.recall[0] - 1e-9 <= recall <= one.recall[1] + 1e-9
        missed += not inside
    assert missed <= 8 + 6  # 8 expected at most
    assert found[0].too_few == (False, False)


def test_classes_without_checks_say_too_few_and_a_census_is_exact() -> None:
    found = by_class(["a"], ["a"], {"a": 50, "b": 5, "new": 0}, 0.9)
    assert found[1].precision == (0.0, 1.0)
    assert found[1].too_few == (True, True)
    labels, answers = ["a", "a", "b", "b"], ["a", "b", "b", ""]
    a, b = by_class(labels, answers, {"a": 2, "b": 2}, 0.9)
    assert a.precision == (0.5, 0.5)
    assert b.precision == (0.5, 0.5)
    assert b.recall == (0.5, 0.5)
    assert a.recall == (0.5, 1.0)  # what nobody could tell may be an "a"
    with pytest.raises(InputError, match="no frozen labels of 'c'"):
        by_class(["c"], ["c"], {"a": 2}, 0.9)
    with pytest.raises(InputError, match="as many"):
        by_class(["a"], [], {"a": 2}, 0.9)


def test_draws_follow_the_shares_of_their_strata_from_the_first_on() -> None:
    # shares 0.7 and 0.3: half in proportion to sizes, half in equal parts
    strata = np.array([0] * 9 + [1])
    assert strata[draws_of_strata(strata, seed=3, count=20)].tolist() == [0, 1, *[0] * 8]
    drawn = draws_of_strata(np.repeat([0, 1], 500), seed=3, count=100)
    assert len(set(drawn.tolist())) == 100 and np.bincount(drawn // 500).tolist() == [50, 50]
    assert (drawn[drawn < 500] != drawn[drawn >= 500] - 500).any(), "each stratum has an order of its own"
