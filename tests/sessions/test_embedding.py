import builtins

import numpy as np
import pytest

from workbench.errors import Cancelled, InputError
from workbench.pools.building import number_pool
from workbench.progress import watched
from workbench.sessions import embedding

pytest.importorskip("openTSNE", reason="the extra `maps` is not installed")


def pool_of(X):
    return number_pool("rows", np.asarray(X, float), None, (), tuple(f"f{i}" for i in range(np.shape(X)[1])))


def groups(n, seed=0):
    """Rows in three groups that two components cannot tell apart."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    wide = rng.normal(size=(n, 4)) * 4
    return np.column_stack([wide, 3.0 * np.eye(3)[codes] + 0.2 * rng.normal(size=(n, 3))]), codes


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """A map of 240 rows, the folder it is kept in, and what was told on the way."""
    folder, told = tmp_path_factory.mktemp("maps"), []
    X = groups(300)[0][:240]
    with watched(lambda share, words: told.append((share, words))):
        made = embedding.neighbour_map(pool_of(X), folder)
    return made, folder, told


def test_it_keeps_more_neighbours_than_two_components_and_is_read_again(mapped):
    X = groups(300)[0][:240]
    made, folder, told = mapped
    assert made.points.shape == (240, 2) and np.isfinite(made.points).all()
    assert made.trust > made.trust_of_components + 0.05
    shares = [share for share, _ in told]
    assert shares == sorted(shares) and shares[0] > 0 and shares[-1] < 1 and len(shares) > 10
    again = embedding.kept_map(pool_of(X), folder)
    assert again is not None and np.array_equal(again.points, made.points) and again.trust == made.trust
    # the same items on other features are another map
    assert embedding.kept_map(pool_of(X[:, ::-1]), folder) is None


def test_rows_are_placed_beside_those_near_them_and_a_pool_that_grew_is_laid_out_anew(mapped):
    X, _ = groups(300)
    first, folder, _ = mapped
    placed = first.place(X[240:])
    near = np.array([np.argsort(((X[:240] - row) ** 2).sum(axis=1))[:5] for row in X[240:]])
    gaps = np.linalg.norm(first.points[near].mean(axis=1) - placed, axis=1)
    assert np.median(gaps) < 0.25 * np.ptp(first.points)
    assert np.allclose(first.place(X[:5]), first.points[:5], atol=0.25 * np.ptp(first.points))
    grown = embedding.neighbour_map(pool_of(X), folder)
    assert len(grown.points) == len(grown.landmarks) == 300
    assert np.array_equal(embedding.kept_map(pool_of(X[:240]), folder).points, first.points)


def test_new_rows_are_placed_by_their_exact_neighbours_alone(mapped, monkeypatch):
    X, _ = groups(300)
    first, *_ = mapped
    near, far = embedding._Nearest(X[:240]).to_new(X[240:], 5, return_distances=True)[1:]
    apart = np.linalg.norm(X[240:, None] - X[None, :240], axis=2)
    assert np.allclose(np.sort(apart, axis=1)[:, :15], far, atol=1e-4)
    assert np.allclose(np.take_along_axis(apart, near, axis=1), far, atol=1e-4)
    # the rows that stand are not looked at among themselves again
    monkeypatch.setattr(embedding, "_affinities", lambda rows: pytest.fail("an index of the landmarks"))
    assert first.place(X[240:]).shape == (60, 2)


def test_landmarks_stand_for_a_large_pool(tmp_path, monkeypatch):
    monkeypatch.setattr(embedding, "LANDMARKS", 120)
    X, _ = groups(300)
    made = embedding.neighbour_map(pool_of(X), tmp_path)
    assert len(made.landmarks) == 120 and np.isfinite(made.points).all() and made.points.shape == (300, 2)
    assert made.trust > made.trust_of_components


def test_equal_rows_lie_on_each_other(tmp_path):
    X = np.concatenate([np.ones((60, 4)), np.random.default_rng(0).normal(size=(40, 4))])
    made = embedding.neighbour_map(pool_of(X), tmp_path)
    assert np.ptp(made.points[:60], axis=0).max() == 0 and np.isfinite(made.points).all()


def test_it_stops_when_told_and_leaves_nothing(tmp_path):
    def stop(share, _words):
        if share > 0.3:
            raise Cancelled("map")

    with pytest.raises(Cancelled), watched(stop):
        embedding.neighbour_map(pool_of(groups(200)[0]), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_is_computed_again(tmp_path):
    pool = pool_of(groups(60)[0])
    made = embedding.neighbour_map(pool, tmp_path)
    [path] = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:500])
    assert embedding.kept_map(pool, tmp_path) is None
    assert np.array_equal(embedding.neighbour_map(pool, tmp_path).points, made.points)


@pytest.mark.parametrize(
    ("X", "why"),
    [
        (np.random.default_rng(0).normal(size=(3, 5)), "Fewer than 12"),
        (np.ones((100, 5)), "Fewer than 12"),
        (np.arange(50.0)[:, None], "one or two features"),
    ],
)
def test_pools_without_neighbourhoods_say_so(tmp_path, X, why):
    assert why in embedding.worthwhile(pool_of(X))
    with pytest.raises(InputError, match=why):
        embedding.neighbour_map(pool_of(X), tmp_path)


def test_more_features_than_rows_and_columns_that_never_change(tmp_path):
    rng = np.random.default_rng(0)
    made = embedding.neighbour_map(pool_of(rng.normal(size=(40, 600))), tmp_path)
    assert np.isfinite(made.points).all()
    made = embedding.neighbour_map(
        pool_of(np.column_stack([rng.normal(size=50), np.ones((50, 3))])), tmp_path
    )
    assert np.isfinite(made.points).all()


def test_without_the_package_it_says_how_to_install_it(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *more):
        if name.split(".")[0] == "openTSNE":
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match="pip install openTSNE"):
        embedding.neighbour_map(pool_of(groups(60)[0]), tmp_path)
