"""A promise that was made before the first check keeps its confidence, set by set."""

import numpy as np
import pytest

from workbench.certificates import Promise, least_checks, tally
from workbench.certificates.promise import delta_of
from workbench.errors import InputError

TERMS = {"size": 10, "error": 0.1, "confidence": 0.9, "sizes": (10,)}


def test_larger_sets_follow_the_first_in_their_order() -> None:
    promise = Promise(1_000, 0.05, 0.95, (800, 900, 1_000))
    order = np.random.default_rng(3).permutation(1_000)[:400]
    certified = tally(promise, np.zeros(400, dtype=bool), order).certified_at()
    assert [size for size, _ in certified] == [800, 900, 1_000]
    assert [at for _, at in certified] == sorted(at for _, at in certified)
    # where the first does not hold nothing is said, whatever the others would show
    bad = np.zeros(400, dtype=bool)
    bad[::14] = True
    ranks = np.concatenate([np.arange(0, 800, 2), np.arange(800, 1_000)])
    wrong = np.concatenate([bad, np.zeros(200, dtype=bool)])
    assert tally(promise, wrong, ranks).certified_at() == []
    alone = Promise(1_000, 0.05, 0.95, (1_000,))
    assert tally(alone, wrong[::-1], ranks[::-1]).delivered() == 1_000


def test_an_attempt_has_to_reach_what_is_left_for_it() -> None:
    wrong, ranks = np.zeros(300, dtype=bool), np.arange(300)
    first, second = (Promise(1_000, 0.05, 0.95, (1_000,), attempt) for attempt in (1, 2))
    assert second.delta == delta_of(0.95, 2) < first.delta
    ((_, early),), ((_, late),) = (tally(one, wrong, ranks).certified_at() for one in (first, second))
    assert early < late


def test_a_promise_comes_back_from_its_document() -> None:
    promise = Promise(300, 0.05, 0.9, (60, 300), 2, "column:llm", True)
    assert Promise.from_document(promise.document()) == promise
    assert promise.words() == "with 90 % confidence a checker calls at most 5 % of them wrong"
    assert promise.words("300 labels", 0.125).endswith("at most 12.5 % of 300 labels wrong")


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
        ({"attempt": 51}, "from 1 to 50"),
    ],
)
def test_terms_that_are_none_are_refused(changed: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Promise(**{**TERMS, **changed})  # type: ignore[arg-type]


def test_more_draws_than_labels_are_refused() -> None:
    made = tally(Promise(2, 0.5, 0.9, (2,)), [0, 0], [0, 1])
    with pytest.raises(InputError, match="More draws"):
        made.add(0, False)
