import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from workbench.classifiers import Geometry
from workbench.classifiers import geometry as geometry_module
from workbench.errors import InputError


def cloud(n=500, dims=3, seed=0):
    return np.random.default_rng(seed).normal([1.0, -50.0, 1e4][:dims], [0.1, 5.0, 1e3][:dims], (n, dims))


def test_scaled_features_are_clipped_z_scores():
    X = cloud()
    geometry = Geometry.of(X, 8, 0)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    assert geometry.transform(X) == pytest.approx(np.clip(z, -2, 2))
    assert Geometry.of(X, 8, 0, clip=1.0).transform(X).max() == 1.0
    assert geometry.transform(X, np.float32).dtype == np.float32


def test_pixels_share_one_scale_and_are_not_clipped():
    X = np.random.default_rng(0).uniform(0, 16, (200, 6))
    X[0, 0], X[1, 1] = 0.0, 16.0
    X[:, 5] = 0.0
    geometry = Geometry.of(X, 8, 0, common_scale=True)
    assert geometry.transform(X) == pytest.approx(X / 16)
    assert np.isinf(geometry.clip)
    assert geometry.transform(X + 100).max() > 5


def test_constant_columns_stay_finite_and_silent():
    X = np.column_stack([cloud(50, 1), np.full(50, 7.0), np.zeros(50), np.full(50, 1e8) + 1e-9])
    scaled = Geometry.of(X, 8, 0).transform(X)
    assert np.isfinite(scaled).all()
    assert scaled[:, 1:] == pytest.approx(0, abs=1e-6)


def test_centres_cover_the_pool_better_than_a_random_subset():
    X = cloud(2000)

    def cover(method):
        g = Geometry.of(X, 32, 0, method=method)
        gaps = ((g.transform(X)[:, None] - g.inducing[None]) ** 2).sum(axis=2)
        return gaps.min(axis=1).mean()

    assert cover("k-means++") < 0.8 * cover("random")


def test_the_length_scale_is_the_median_distance():
    X = cloud(400)
    geometry = Geometry.of(X, 8, 0)
    Z = geometry.transform(X)
    gaps = np.sqrt(((Z[:, None] - Z[None]) ** 2).sum(axis=2))[np.triu_indices(400, 1)]
    assert geometry.length_scale == pytest.approx(np.median(gaps), rel=1e-6)
    # duplicates do not shrink it
    often = np.concatenate([X[:60]] + [X[:1]] * 400)
    assert Geometry.of(often, 8, 0).length_scale > 0.5


def test_the_same_seed_gives_the_same_geometry_and_others_do_not():
    X = cloud(300)
    a, b, c = (Geometry.of(X, 16, seed, n_mean=20) for seed in (3, 3, 4))
    for one, two in zip(a, b, strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(a.inducing, c.inducing)


def test_few_distinct_rows_give_few_points():
    X = np.repeat(cloud(5), 40, axis=0)
    geometry = Geometry.of(X, 64, 0, n_mean=64)
    assert len(geometry.inducing) == 5
    assert len(geometry.mean_inducing) == 0
    single = Geometry.of(X[:1], 4, 0)
    assert single.inducing.shape == (1, 3) and single.length_scale == 1.0


def test_mean_centres_are_further_points():
    geometry = Geometry.of(cloud(100), 20, 0, n_mean=90)
    both = np.concatenate([geometry.inducing, geometry.mean_inducing])
    assert len(np.unique(both, axis=0)) == len(both) > 100
    assert Geometry.of(cloud(1000), 20, 0, n_mean=90).mean_inducing.shape == (90, 3)


def test_big_pools_are_sampled(monkeypatch):
    from workbench.classifiers import geometry as module

    monkeypatch.setattr(module, "MAX_ROWS", 200)
    X = cloud(5000)
    geometry = Geometry.of(X, 16, 0)
    assert geometry.shift == pytest.approx(X.mean(axis=0), rel=0.2)


def test_arrays_and_back():
    geometry = Geometry.of(cloud(), 8, 0, n_mean=4, common_scale=True)
    again = Geometry.from_arrays(geometry.to_arrays())
    for one, two in zip(geometry, again, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_inducing": 0}, "n_inducing"),
        ({"n_mean": -1}, "n_mean"),
        ({"clip": 0.0}, "clip"),
        ({"method": "grid"}, "k-means"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        Geometry.of(cloud(20), **{"n_inducing": 4, "seed": 0} | options)


def test_bad_features_are_named():
    with pytest.raises(InputError, match="at least one row"):
        Geometry.of(np.empty((0, 3)), 4, 0)
    with pytest.raises(InputError, match="2 columns"):
        Geometry.of(cloud(20), 4, 0).transform(np.ones((3, 2)))


def test_importing_it_is_light():
    code = (
        "import sys; import workbench.classifiers.geometry, workbench.classifiers.predictor;"
        "bad = {'sklearn', 'tensorflow', 'gpflow'} & set(sys.modules); sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_centres_of_a_large_pool_are_kept_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORKBENCH_FEATURES", str(tmp_path))
    X = np.random.default_rng(0).normal(size=(300, 4))
    X[:, 3] = np.arange(300) % 5  # a column that may stand for categories
    fresh = Geometry.of(X, 8, 1, n_mean=12, representations=True)
    monkeypatch.setattr(geometry_module, "_WORTH", 100)
    kept = Geometry.of(X, 8, 1, n_mean=12, representations=True)

    def nothing(*given: object, **named: object) -> None:
        raise AssertionError("measured again")

    with monkeypatch.context() as patch:
        patch.setattr(geometry_module, "_k_means", nothing)
        read = Geometry.of(X, 8, 1, n_mean=12, representations=True)
        for seed, points in ((2, 8), (1, 9)):
            with pytest.raises(AssertionError, match="measured again"):
                Geometry.of(X, points, seed, n_mean=12, representations=True)
    for other in (kept, read):
        one, two = fresh.to_arrays(), other.to_arrays()
        assert one.keys() == two.keys()
        for name, array in one.items():
            np.testing.assert_array_equal(two[name], array)
    for place in tmp_path.iterdir():
        (place / "shift.npy").unlink()
    again = Geometry.of(X, 8, 1, n_mean=12, representations=True)
    assert np.array_equal(again.inducing, fresh.inducing)
