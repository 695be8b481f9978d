import numpy as np
import pytest

from workbench.pools import load_pool
from workbench.pools.projection import principal_axes, project


def test_a_plane_of_its_own_is_left_alone():
    pool = load_pool("three-gaussians", n_items=50)
    plane = project(pool)
    assert plane.own and plane.explained is None and plane.names == ("x1", "x2")
    np.testing.assert_array_equal(plane.points, pool.features)
    np.testing.assert_array_equal(plane.place(pool.features[:3]), pool.features[:3])


def test_axes_against_scikit_learn():
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(0)
    for shape in [(60, 7), (5, 12)]:
        X = rng.normal(size=shape) * np.arange(1, shape[1] + 1)
        ours, theirs = principal_axes(X, 3), PCA(3, svd_solver="full").fit(X)
        np.testing.assert_allclose(np.abs(np.sum(ours.axes * theirs.components_, axis=1)), 1.0)
        np.testing.assert_allclose(ours.explained, theirs.explained_variance_ratio_)
        largest = ours.axes[np.arange(3), np.abs(ours.axes).argmax(axis=1)]
        assert (largest > 0).all(), "the sign is fixed"


def test_digits_keep_one_scale_and_tables_get_z_scores():
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    digits = load_pool("digits")
    plane = project(digits)
    theirs = PCA(2, svd_solver="full").fit(digits.features)
    np.testing.assert_allclose(np.abs(plane.points), np.abs(theirs.transform(digits.features)), atol=1e-9)
    np.testing.assert_allclose(plane.explained, theirs.explained_variance_ratio_)
    wine = load_pool("wine")
    scaled = StandardScaler().fit_transform(wine.features)
    expected = PCA(2, svd_solver="full").fit_transform(scaled)
    np.testing.assert_allclose(np.abs(project(wine).points), np.abs(expected), atol=1e-9)


def test_placing():
    pool = load_pool("wine")
    plane = project(pool)
    np.testing.assert_allclose(plane.place(pool.features), plane.points)


def test_one_feature_constant_features_and_few_items():
    data = b"a,b,c\n1,7,7\n2,7,7\n"
    plane = project(load_pool(data, file_name="t.csv"))
    assert np.isfinite(plane.points).all() and plane.explained == pytest.approx([1, 0])
    one = project(load_pool(b"a\n1\n2\n4\n", file_name="t.csv"))
    assert one.points.shape == (3, 2) and (one.points[:, 1] == 0).all()
