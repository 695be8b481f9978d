import numpy as np
import pytest

from workbench.errors import InputError
from workbench.metrics import cohen_kappa, fleiss_kappa


def test_cohen_by_hand():
    # both yes 20, only the first 5, only the second 10, both no 15: .7 where chance gives .5
    first = [1] * 20 + [1] * 5 + [0] * 10 + [0] * 15
    second = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    found = cohen_kappa(first, second)
    assert (found.n_items, found.n_ratings) == (50, 2)
    assert found[:3] == pytest.approx((0.7, 0.5, 0.4))


def test_cohen_against_scikit_learn():
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 60)
    second = np.where(rng.random(60) < 0.6, first, rng.integers(0, 5, 60))
    assert cohen_kappa(first, second).kappa == pytest.approx(cohen_kappa_score(first, second))


def test_fleiss_by_hand():
    # pairs that agree: all, 1 of 3, all, 1 of 3; half of the ratings are of each class
    found = fleiss_kappa([[3, 0], [2, 1], [0, 3], [1, 2]])
    assert found[:3] == pytest.approx((2 / 3, 0.5, 1 / 3))
    assert (found.n_items, found.n_ratings, found.n_left_out) == (4, 3, 0)


def test_fleiss_of_the_example_of_fourteen_raters():
    rows = (
        "0 0 0 0 14/0 2 6 4 2/0 0 3 5 6/0 3 9 2 0/2 2 8 1 1/7 7 0 0 0/3 2 6 3 0/2 5 3 2 2/6 5 2 1 0/0 2 2 3 7"
    )
    counts = np.array([row.split() for row in rows.split("/")], dtype=int)
    found = fleiss_kappa(counts)
    assert found[:3] == pytest.approx((0.378, 0.213, 0.210), abs=5e-4)


def test_items_rated_less_often_are_left_out_and_counted():
    table = [[3, 0], [2, 1], [0, 3], [1, 2], [1, 1], [0, 1]]
    assert fleiss_kappa(table) == fleiss_kappa(table[:4])._replace(n_left_out=2)
    # as common: the larger number of ratings
    assert fleiss_kappa([[3, 0], [1, 1]]).n_ratings == 3


def test_kappa_is_undefined_where_chance_agrees_as_well():
    found = cohen_kappa([1, 1], [1, 1])
    assert found.observed == 1.0 and np.isnan(found.kappa)
    assert np.isnan(fleiss_kappa([[2, 0], [2, 0]]).kappa)


def test_refused():
    with pytest.raises(InputError, match="2 true classes but 1 predictions"):
        cohen_kappa([0, 1], [0])
    with pytest.raises(InputError, match="an item that two people labelled"):
        fleiss_kappa([[1, 0], [0, 1]])
    with pytest.raises(InputError, match="table of counts"):
        fleiss_kappa([[0.5, 1.5]])
