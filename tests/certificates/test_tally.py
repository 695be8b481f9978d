"""What was promised before the first check keeps its confidence: several errors, strata."""

import itertools

import numpy as np
import pytest

from workbench.certificates import (
    AuditDesign,
    Promise,
    by_class,
    draws_of_strata,
    least_checks,
    tally,
)
from workbench.certificates.tally import SequentialBound
from workbench.errors import InputError


def test_a_larger_error_of_the_first_set_comes_earlier_and_costs_nothing() -> None:
    wrong, ranks = np.zeros(200, dtype=bool), np.arange(200) * 5 % 1_000
    alone = tally(AuditDesign(1_000, 0.05, (1_000,), 0.95), wrong, ranks)
    also = tally(AuditDesign(1_000, 0.05, (1_000,), 0.95, (Promise(0.1, (1_000,)),)), wrong, ranks)
    (_, _, at), (_, _, sooner) = also.certified_at()
    assert alone.certified_at() == [(0, 1_000, at)] and sooner < at


def test_other_sets_wait_for_the_first_and_share_delta() -> None:
    design = AuditDesign(1_000, 0.05, (800, 1_000), 0.95, (Promise(0.02, (500,)), Promise(0.1, (800, 1_000))))
    assert [round(1 - one.confidence, 6) for one in design.tests] == [
        0.05,
        0.016667,
        0.016667,
        0.05,
        0.016667,
    ]
    rng = np.random.default_rng(3)
    found = tally(design, np.zeros(400, dtype=bool), rng.permutation(1_000)[:400])
    at = {(promise, size): t for promise, size, t in found.certified_at()}
    assert len(at) == 5 and at[1, 500] >= at[0, 800] and at[2, 800] <= at[0, 800]
    # where the first does not hold, only what follows from less is said
    bad = np.zeros(400, dtype=bool)
    bad[::14] = True
    held = tally(design, bad, rng.permutation(800)[:400]).certified_at()
    assert {promise for promise, _, _ in held} <= {2} and {size for _, size, _ in held} <= {800}


@pytest.mark.slow
def test_several_errors_hold_together() -> None:
    """The hardest case: the first set keeps its promise, and each other set just breaks its own."""
    rng = np.random.default_rng(5)
    size, runs, confidence, false = 600, 400, 0.8, 0
    truth = np.zeros(size, dtype=bool)
    truth[rng.permutation(200)[:5]] = True  # 2.5 % of the surest 200, more than 2 %
    truth[200 + rng.permutation(200)[:12]] = True  # 17 of 400: 4.25 %
    truth[400 + rng.permutation(200)[:44]] = True  # 61 of 600, more than 10 %
    design = AuditDesign(
        size, 0.07, (400, 600), confidence, (Promise(0.02, (200,)), Promise(0.1, (400, 600)))
    )
    for _ in range(runs):
        order = rng.permutation(size)[:250]
        held = tally(design, truth[order], order).certified_at()
        false += any(truth[:n].mean() > design.promises[p].error for p, n, _ in held)
    assert false / runs <= 0.2 + 1.645 * np.sqrt(0.2 * 0.8 / runs)


@pytest.mark.slow  # alone: the confidence of strata over 80 repetitions
def test_draws_within_strata_keep_the_promise_and_the_bound() -> None:
    rng = np.random.default_rng(7)
    strata = np.repeat([0, 1, 2], [300, 80, 20])
    truth = np.zeros(400, dtype=bool)
    truth[[*range(0, 12), *range(300, 308), 380]] = True  # 21 of 400: more than 5 %
    ranks = rng.permutation(400)
    counts = {
        200: tuple(int(((ranks < 200) & (strata == g)).sum()) for g in range(3)),
        400: (300, 80, 20),
    }
    runs, confidence, false, uncovered = 80, 0.8, 0, 0
    for seed in range(runs):
        order = draws_of_strata(strata, seed, 120)
        design = AuditDesign(400, 0.05, (400,), confidence, strata={400: counts[400]})
        made = tally(design, truth[order], ranks[order], strata[order])
        false += made.delivered() > 0
        inside = order[ranks[order] < 200]
        bound = SequentialBound(
            AuditDesign(400, 0.05, (200,), confidence, strata={200: counts[200]}), 200, confidence
        )
        for item in inside.tolist():
            bound.add(bool(truth[item]), int(strata[item]))
        uncovered += bound.curve[-1] < truth[ranks < 200].mean() - 1e-9
    assert false / runs <= 0.2 + 1.645 * np.sqrt(0.2 * 0.8 / runs)
    assert uncovered / runs <= 0.2 + 1.645 * np.sqrt(0.2 * 0.8 / runs)


@pytest.mark.slow  # alone: the confidence of all classes together over 15 repetitions
def test_intervals_of_classes_hold_together_within_strata() -> None:
    rng = np.random.default_rng(2)
    names, size, confidence, missed = ["a", "b", "c"], 500, 0.8, 0
    narrow = []
    for seed in range(15):
        said = rng.choice(3, size=size, p=[0.7, 0.25, 0.05])
        truth = np.where(rng.random(size) < 0.1, rng.choice(3, size=size), said)
        order = draws_of_strata(said, seed, 200)
        found = by_class(
            [names[c] for c in said[order]],
            [names[c] for c in truth[order]],
            {
                name: [int((said == c).sum()) if g == c else 0 for g in range(3)]
                for c, name in enumerate(names)
            },
            confidence,
            said[order],
        )
        inside = True
        for c, one in enumerate(found):
            precision, recall = (truth[said == c] == c).mean(), (said[truth == c] == c).mean()
            inside &= one.precision[0] - 1e-9 <= precision <= one.precision[1] + 1e-9
            inside &= one.recall[0] - 1e-9 <= recall <= one.recall[1] + 1e-9
        missed += not inside
        narrow.append(found[2].precision[1] - found[2].precision[0])
    assert missed <= 3 + 4  # 3 expected at most
    assert np.median(narrow) < 0.15  # of a class of 25 labels: it is looked at as a whole


def test_checks_that_are_needed_at_least() -> None:
    assert least_checks(10_000, 0.05, 0.95) == 70
    assert least_checks(10, 0.05, 0.95) == 10
    assert least_checks(40, 0.05, 0.95) < 40
    assert least_checks(5, 0.5, 0.6) < 5


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"sizes": ()}, "from 1 to"),
        ({"sizes": (11,)}, "from 1 to"),
        ({"error": 0.0}, "allowed error"),
        ({"confidence": 1.0}, "confidence"),
        ({"also": (Promise(1.0, (5,)),)}, "allowed error"),
        ({"also": (Promise(0.1, (5,)),) * 9}, "At most 8"),
        ({"strata": {5: (5,)}}, "add up"),
    ],
)
def test_terms_that_are_none_are_refused(changed: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        AuditDesign(**{"size": 10, "error": 0.1, "sizes": (10,), "confidence": 0.9, **changed})  # type: ignore[arg-type]


def test_more_draws_than_labels_are_refused() -> None:
    made = tally(AuditDesign(2, 0.5, (2,), 0.9), [0, 0], [0, 1])
    with pytest.raises(InputError, match="More draws"):
        made.add(0, False)


def test_a_bound_begins_at_everything_and_never_rises_while_answers_are_right() -> None:
    design = AuditDesign(200, 0.05, (200,), 0.95)
    made = SequentialBound(design, 200, 0.95)
    assert made.curve == [1.0]
    for _ in range(60):
        made.add(False)
    assert all(later <= before for before, later in itertools.pairwise(made.curve))
    assert 0.0 < made.curve[-1] < 0.1
