"""Candidates for the nearest items: never one too few, whatever was asked before."""

import threading

import numpy as np
import pytest

from workbench.app.serving.explanations import Nearby
from workbench.arrays import Array, Ints
from workbench.sessions.insight import nearest_among


def exact(X: Array, items: Ints, item: int, k: int) -> list[int]:
    of_them = X[np.append(items, item)]
    places, _ = nearest_among(of_them, np.arange(len(items)), len(items), k)
    found: list[int] = items[places].tolist()
    return found


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_the_nearest_of_those_that_may_be_near_are_the_nearest_of_all(scale: float) -> None:
    rng = np.random.default_rng(0)
    X = scale * (rng.normal(size=(400, 32)) + 3.0)
    X[100:140] = X[:40]  # copies: of equally near ones the first counts
    near, labelled = Nearby(lambda of: X[of]), rng.permutation(300)
    for n in (3, 5, 50, 300):  # more are labelled meanwhile
        items = labelled[:n]
        for item in (*range(300, 330), 105):
            found = near.likely(items, item, 6)
            assert exact(X, items[found], item, 6) == exact(X, items, item, 6)
    assert len(near.likely(labelled, 310, 6)) < 40  # few are left to measure


def test_one_that_lost_its_label_is_not_among_them() -> None:
    X = np.arange(40.0).reshape(20, 2)
    near = Nearby(lambda of: X[of])
    items = np.arange(15)
    near.likely(items, 16, 3)
    assert set(items[:12][near.likely(items[:12], 16, 3)]) >= {9, 10, 11}
    assert near.likely(items[:12], 16, 3).max() < 12


def test_what_is_no_number_is_left_to_who_measures() -> None:
    X = np.ones((30, 2))
    X[3], X[4] = np.nan, 1e30
    with np.errstate(invalid="ignore", over="ignore"):
        assert {3, 4} <= set(Nearby(lambda of: X[of]).likely(np.arange(20), 25, 4).tolist())


def test_features_are_read_once_and_several_may_ask_at_once() -> None:
    X, read = np.random.default_rng(0).normal(size=(2000, 8)), list[int]()

    def points(of: Ints) -> Array:
        read.extend(of.tolist())
        return X[of]

    near, wrong = Nearby(points), list[int]()

    def ask(first: int) -> None:
        for n in range(50, 1500, 97):
            items = np.arange(n)
            if exact(X, items[near.likely(items, first, 6)], first, 6) != exact(X, items, first, 6):
                wrong.append(n)

    askers = [threading.Thread(target=ask, args=(1900 + i,)) for i in range(4)]
    for one in askers:
        one.start()
    for one in askers:
        one.join()
    labelled = [i for i in read if i < 1500]
    assert not wrong and len(labelled) == len(set(labelled))
