import numpy as np
import pytest

from workbench.errors import InputError
from workbench.metrics.scores import trustworthiness


def test_it_is_scikit_learns_number_and_a_sample_comes_close():
    from sklearn.manifold import trustworthiness as theirs

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    Y = X[:, :2] + 0.3 * rng.normal(size=(300, 2))
    assert trustworthiness(X, Y) == pytest.approx(theirs(X, Y, n_neighbors=5), abs=1e-12)
    assert trustworthiness(X, Y, k=9) == pytest.approx(theirs(X, Y, n_neighbors=9), abs=1e-12)
    assert trustworthiness(X, Y, judged=150) == pytest.approx(trustworthiness(X, Y), abs=0.02)


def test_a_layout_that_is_the_features_is_perfect_and_a_random_one_is_half():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    assert trustworthiness(X, X) == 1.0
    assert trustworthiness(X, rng.permutation(X)) == pytest.approx(0.5, abs=0.05)


def test_equal_rows_are_neighbours_whichever_of_them_is_nearest():
    X = np.repeat(np.arange(10.0)[:, None], 4, axis=0)
    assert trustworthiness(X, np.random.default_rng(0).permutation(X), k=3) < 1
    assert trustworthiness(X, X + 1e-6 * np.random.default_rng(0).normal(size=X.shape), k=3) == 1.0


def test_what_cannot_be_judged_is_said():
    with pytest.raises(InputError, match="more than 10 items"):
        trustworthiness(np.zeros((10, 2)), np.zeros((10, 2)))
    with pytest.raises(InputError, match="cannot be judged"):
        trustworthiness(np.zeros((20, 2)), np.zeros((19, 2)))
