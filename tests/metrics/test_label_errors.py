from typing import Any

import numpy as np
import pytest

from workbench.arrays import Ints
from workbench.errors import InputError
from workbench.metrics import mistakes
from workbench.metrics.scores import Mistakes
from workbench.sessions.insight import cross_validated
from workbench.sessions.learner import Learner
from workbench.sessions.rounds import labelled_at
from workbench.sessions.spec import RunSpec
from workbench.studies import run


def test_refused():
    with pytest.raises(InputError, match="at least two classes"):
        mistakes([0, 0], [[1.0], [1.0]])
    with pytest.raises(InputError, match="has no column"):
        mistakes([0, 2], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(InputError, match="2 labels and groups of 1"):
        mistakes([0, 1], [[0.5, 0.5], [0.5, 0.5]], groups=[0])


def asked(n: int, error: float, wrong: int, seed: int) -> tuple[Any, Any, Any]:
    """Labels of four classes, probabilities that err with `error` and are too sure, and the bad labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, n)
    said = np.where(rng.random(n) < error, rng.integers(0, 4, n), truth)
    p = rng.dirichlet(np.full(4, 0.3), n) * 0.3
    p[np.arange(n), said] += 0.7
    bad = rng.choice(n, wrong, replace=False)
    given = truth.copy()
    given[bad] = (given[bad] + rng.integers(1, 4, wrong)) % 4
    return given, p, bad


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("error", [0.1, 0.25])
def test_right_labels_of_a_model_that_is_often_wrong_are_not_accused(error: float, seed: int) -> None:
    given, p, _ = asked(200, error, 0, seed)
    said = mistakes(given, p)
    assert (p.argmax(axis=1) != given).sum() >= 5, "the model says something else of these"
    assert (said.wrong > 0.5).sum() <= 3
    assert (said.low <= said.wrong).all() and (said.wrong <= said.high).all() and said.high.sum() <= 12


def test_a_label_is_weighed_with_the_error_on_items_that_were_asked_for_the_same_reason() -> None:
    p = np.full((200, 2), 0.005)
    p[:, 0] = 0.995
    given = np.zeros(200, dtype=np.int64)
    given[[*range(40), 150]] = 1  # of the first hundred the model was unsure, as it says too late
    why = np.repeat(["doubt", "chance"], 100)
    apart, together = mistakes(given, p, why).wrong, mistakes(given, p).wrong
    assert apart[150] > 0.5 > 0.1 > apart[:40].max() and together[150] == together[0] < 0.2


@pytest.mark.parametrize("seed", range(5))
def test_wrong_labels_come_first(seed: int) -> None:
    given, p, bad = asked(200, 0.04, 10, seed)
    said = mistakes(given, p)
    first = np.argsort(-said.wrong, kind="stable")[:20]
    assert len(set(first.tolist()) & set(bad.tolist())) >= 5
    assert said.low.sum() <= 10 and said.high.sum() > 5


@pytest.mark.slow  # alone: labels of a real pool that were asked because the model was unsure of them
@pytest.mark.parametrize("seed", range(5))
def test_of_right_labels_that_margin_asked_for_at_most_three_are_accused(seed: int) -> None:
    spec = RunSpec("digits", classifier="logistic-regression", budget=190, batch=20, seed=seed)
    pool = spec.load_pool()
    rounds = run(spec, pool=pool).rounds
    items, codes = labelled_at(rounds, rounds[-1].number)
    bad = np.random.default_rng(seed).choice(len(items), len(items) // 20, replace=False)
    given = codes.copy()
    given[bad] = (given[bad] + 1) % 10
    learner = Learner(pool, spec.classifier, seed=seed)

    def weighed(labels: Ints) -> Mistakes:
        _, found, p = cross_validated(learner.fit(items, labels, number=9), learner)
        return mistakes(found, p)

    assert (weighed(codes).wrong > 0.5).sum() <= 3
    first = np.argsort(-weighed(given).wrong, kind="stable")[:20]
    assert len(set(first.tolist()) & set(bad.tolist())) >= len(bad) / 2
