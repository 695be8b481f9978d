"""The graph of a pool, features smoothed over it, and new rows that come to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.pools import load_pool
from workbench.pools.neighbours.graph import (
    STRENGTHS,
    Neighbourhood,
    View,
    checked_strength,
    edge_weights,
    hops,
    lines,
    operator,
)
from workbench.pools.neighbours.nearest import nearest, nearest_among, way
from workbench.pools.pool import ArrayItems, Pool, RowNumbers
from workbench.progress import watched


def pool_of(X: np.ndarray, **more: object) -> Pool:
    base = load_pool("iris")
    items = ArrayItems(RowNumbers(len(X)), X, tuple(f"x{i}" for i in range(X.shape[1])))
    return replace(
        base,
        features=X,
        truth=None,
        test=None,
        items=items,
        fingerprints=np.arange(len(X), dtype=np.uint64),
        **more,
    )


def blobs(n: int = 120, D: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, D)) + 2.0 * rng.normal(size=(3, D))[y], y


def test_neighbours_are_the_nearest_ones():
    X = np.random.default_rng(0).normal(size=(700, 5)).astype(np.float32)
    found = nearest(X, 10)
    gaps = np.square(X[:, None].astype(float) - X[None]).sum(axis=2)
    np.fill_diagonal(gaps, np.inf)
    assert np.array_equal(found.rows, np.argsort(gaps, axis=1, kind="stable")[:, :10])
    np.testing.assert_allclose(found.distances**2, np.sort(gaps, axis=1)[:, :10], rtol=1e-5)
    assert nearest_among(X[:3], X, 4).rows[:, 0].tolist() == [0, 1, 2]
    assert nearest_among(X[:3], X[:2], 10).rows.shape == (3, 2)  # there are no more


def test_hops_are_those_of_the_formula():
    X, _ = blobs(60)
    Z = X.astype(np.float32)
    found = nearest(Z, 10)
    A = np.zeros((60, 60))
    A[np.repeat(np.arange(60), 10), found.rows.ravel()] = np.exp(
        -2.0 * (found.distances / found.distances[:, -1:]).ravel() ** 2
    )
    A = np.maximum(A, A.T) + np.eye(60)
    S = A / np.sqrt(A.sum(axis=1)[:, None] * A.sum(axis=1)[None])
    expected = Z.astype(float)
    for _ in range(4):
        expected = 0.8 * S @ expected + 0.2 * Z
    *_, last = hops(operator(found).matrix, Z, STRENGTHS["medium"])
    np.testing.assert_allclose(last, expected, atol=1e-5)


def test_smoothing_brings_classes_together():
    X, y = blobs(300)
    near = Neighbourhood(pool_of(X)).seen("strong").features

    def spread(F: np.ndarray) -> float:
        means = np.stack([F[y == c].mean(axis=0) for c in range(3)])
        return float(np.square(F - means[y]).sum() / np.square(means[y] - F.mean(axis=0)).sum())

    assert spread(near) < 0.5 * spread(X)


def test_test_items_stay_outside_the_graph():
    X, _ = blobs(200)
    pool = pool_of(X).split(0, 0.25)
    assert pool.test is not None
    moved = X.copy()
    moved[pool.test.test] = 50.0 + np.random.default_rng(1).normal(size=(len(pool.test.test), X.shape[1]))
    here, there = Neighbourhood(pool), Neighbourhood(replace(pool, features=moved))
    train = pool.test.train
    for strength in ("weak", "strong", "both"):
        one, two = here.seen(strength).features, there.seen(strength).features
        assert np.array_equal(one[train], two[train])
        assert not np.allclose(one[pool.test.test], two[pool.test.test])


def test_new_rows_lean_on_the_pool_and_copies_are_seen_as_it_is():
    X, _ = blobs(300)
    for strength in ("weak", "medium", "strong", "both"):
        seen = Neighbourhood(pool_of(X)).seen(strength)
        again = View.from_arrays(seen.view.to_arrays())
        np.testing.assert_allclose(again.transform(X[:50]), seen.features[:50], atol=5e-3)
        # an item of the pool, moved a little, comes near to where the pool has it
        near = again.transform(X[:50] + 1e-2)
        assert np.abs(near - seen.features[:50]).mean() < 0.15 * seen.features.std()
        assert again.transform(X[:0]).shape == (0, again.n_features)


def test_a_new_row_is_seen_as_if_it_were_among_the_pools():
    X, _ = blobs(400)
    view = Neighbourhood(pool_of(X[1:])).seen("weak").view
    Z, z = view.layers[0].astype(float), view.scaled(X[:1])[0].astype(float)
    gaps = np.sqrt(np.square(Z - z).sum(axis=1))
    near = np.argsort(gaps)[:10]
    w = np.exp(-2.0 * (gaps[near] / gaps[near[-1]]) ** 2)
    degree, layer = 1.0 + w.sum(), z
    for pool in view.layers[:-1].astype(float):
        around = (w / np.sqrt(degree * view.degrees[near])) @ pool[near]
        layer = 0.7 * (layer / degree + around) + 0.3 * z
    np.testing.assert_allclose(view.transform(X[:1])[0], layer, rtol=2e-3, atol=2e-3)


def test_items_as_new_are_nearly_what_the_graph_without_them_makes_of_them():
    X = np.random.default_rng(0).normal(size=(300, 40)) + np.eye(40)[np.arange(300) % 3] * 6.0
    made = Neighbourhood(pool_of(X))
    items = np.array([3, 17, 120, 190, 280])
    seen, new = made.seen("weak").features[items], made.as_new("weak", items)
    alone = [
        Neighbourhood(pool_of(np.delete(X, item, axis=0))).seen("weak").view.transform(X[[item]])[0]
        for item in items
    ]
    assert np.abs(new - alone).mean() < 0.5 * np.abs(seen - alone).mean()
    assert np.array_equal(made.as_new("weak", items[::-1]), new[::-1])
    searched = made.seen("weak").view.without_self(X[items])  # as where the pool is thinned
    np.testing.assert_allclose(searched, new, atol=5e-3)
    late = Neighbourhood(pool_of(X), begun=280)  # what came later is new already
    assert np.array_equal(late.as_new("weak", items[4:]), late.seen("weak").features[items[4:]])
    X[:20] = X[0]  # of copies only one is the item itself
    again = Neighbourhood(pool_of(X))
    np.testing.assert_allclose(again.as_new("weak", np.arange(3)), again.seen("weak").features[:3], atol=0.1)


def test_a_pool_that_grows_keeps_what_was_seen_of_its_items():
    X, _ = blobs(260)
    before = Neighbourhood(pool_of(X[:200]), begun=200).seen("strong").features
    after = Neighbourhood(pool_of(X), begun=200).seen("strong").features
    assert np.array_equal(after[:200], before) and after.shape == (260, X.shape[1])
    assert np.isfinite(after).all()


@pytest.mark.parametrize("strength", ["weak", "strong", "both"])
def test_copies_constant_columns_and_a_far_cluster_give_numbers(strength: str):
    X, _ = blobs(120)
    X[:40] = X[0]  # copies: the ten nearest are at distance 0
    X[:, 2] = 7.0
    X[-15:] += 1e6
    seen = Neighbourhood(pool_of(X)).seen(strength)
    assert np.isfinite(seen.features).all()
    assert np.isfinite(seen.view.transform(np.vstack([X[:5], X[-5:] + 1.0, X[:1] - 1e9]))).all()
    assert np.array_equal(edge_weights(np.zeros((2, 10))), np.ones((2, 10)))


def test_a_tiny_pool_and_one_of_equal_items_have_no_neighbours():
    assert Neighbourhood(pool_of(blobs(5)[0])).strengths == ("none",)
    assert "too few" in Neighbourhood(pool_of(blobs(5)[0])).too_few
    assert Neighbourhood(pool_of(np.ones((80, 3)))).strengths == ("none",)
    assert Neighbourhood(pool_of(blobs(80)[0])).strengths == tuple(STRENGTHS)


def test_the_making_says_how_far_it_is_and_can_be_ended(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_FEATURES", str(tmp_path))
    X = np.random.default_rng(0).normal(size=(1200, 90))
    told: list[float] = []

    def stop(fraction: float, message: str) -> None:
        told.append(fraction)
        if fraction > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), watched(stop):
        Neighbourhood(pool_of(X)).make()
    assert told == sorted(told) and not list(tmp_path.glob("neighbours-*"))
    whole = Neighbourhood(pool_of(X))
    with watched(lambda fraction, message: told.append(fraction)):
        whole.make()
    assert whole.is_kept() and list(tmp_path.glob("neighbours-*"))
    # another process reads what was kept
    monkeypatch.setattr("workbench.pools.neighbours.nearest", None)
    again = Neighbourhood(pool_of(X)).seen("strong").features
    assert np.array_equal(again, whole.seen("strong").features)


def test_a_thinned_pool_moves_new_rows_little(monkeypatch):
    X, _ = blobs(2000, 8)
    new = blobs(200, 8, seed=5)[0]
    whole = Neighbourhood(pool_of(X)).seen("strong").view.transform(new)
    monkeypatch.setattr("workbench.pools.neighbours.graph.MOST_ROWS", 500)
    view = Neighbourhood(pool_of(X)).seen("strong").view
    assert view.layers.shape[1] == 500 and view.layers.dtype == np.float16
    assert np.abs(view.transform(new) - whole).mean() < 0.25 * whole.std()


def test_lines_join_neighbours_each_pair_once():
    X, _ = blobs(80)
    made = Neighbourhood(pool_of(X))
    shown = np.arange(0, 80, 2)
    pairs = lines(made.graph, made.rows, shown)
    assert np.isin(pairs, shown).any(axis=1).all() and (pairs[:, 0] < pairs[:, 1]).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs) and set(shown) <= set(pairs.ravel())
    assert all(b in made.graph.rows[a] or a in made.graph.rows[b] for a, b in pairs.tolist())
    assert len(lines(made.graph, made.rows, shown[:1])) == made.graph.rows.shape[1]


def test_items_around_one_are_the_graphs_own_and_further_ones_are_found_by_walking_along_it():
    X = np.random.default_rng(1).normal(size=(900, 4))
    pool = pool_of(X).split(0)
    made = Neighbourhood(pool)
    Z = made._base()
    item = int(made.rows[17])
    assert item in made and int(pool.test.test[0]) not in made and len(X) not in made
    exact = made.rows[nearest_among(Z[[17]], Z, 41).rows[0][1:]]
    assert np.array_equal(made.around(item, 10), exact[:10])
    assert np.array_equal(made.around(item, 4), exact[:4])
    walked = made.around(item, 40)
    assert len(walked) == 40 and item not in walked
    assert len(set(walked.tolist()) & set(exact.tolist())) >= 36
    assert np.array_equal(walked[:10], exact[:10])
    with pytest.raises(InputError, match="not in the graph"):
        made.around(int(pool.test.test[0]), 5)


def test_walking_ends_where_a_far_off_cluster_has_no_more_items():
    X = np.random.default_rng(2).normal(size=(60, 3))
    X[:20] += 1000.0
    made = Neighbourhood(pool_of(X))
    found = made.around(3, 40)
    assert sorted(found.tolist()) == [i for i in range(20) if i != 3]


def test_bad_strengths_and_damaged_views_are_said():
    assert checked_strength("auto") == "auto"
    with pytest.raises(InputError, match="neighbours must be one of auto, none, weak"):
        checked_strength("very")
    view = Neighbourhood(pool_of(blobs(60)[0])).seen("weak").view
    with pytest.raises(InputError, match="have 2 features"):
        view.transform(np.zeros((3, 2)))
    for name, value in (
        ("name", np.asarray("other")),
        ("layers", view.layers[:1]),
        ("scale", view.scale * np.nan),
        ("degrees", view.degrees[:-1]),
        ("degrees", view.degrees * 0.0),
    ):
        with pytest.raises(ValueError):
            View.from_arrays(view.to_arrays() | {name: value})


def test_many_rows_are_searched_by_cells(monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr("workbench.pools.neighbours.nearest.EXACT", 1000)
    X = np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32)
    X[:40] = X[0]
    exact, found = nearest_among(X, X, 10, own=True), nearest(X, 10)
    share = np.mean(
        [len(set(a) & set(b)) / 10 for a, b in zip(exact.rows[40:], found.rows[40:], strict=True)]
    )
    assert share > 0.9
    assert not (found.rows == np.arange(3000)[:, None])[40:].any() and (found.rows >= 0).all()
    np.testing.assert_allclose(found.distances[:40], 0.0, atol=2e-3)
    assert (np.diff(found.distances, axis=1) >= -1e-6).all()
    # whoever cancels, or ends the program, waits for the next word of progress
    monkeypatch.setattr("workbench.pools.neighbours.nearest._AT_ONCE", 500)
    words: list[tuple[float, str]] = []
    with watched(lambda fraction, message: words.append((fraction, message))):
        assert np.array_equal(nearest(X, 10).rows, found.rows)
    assert sum(message.endswith("put into cells") for _, message in words) == 6
    assert words == sorted(words, key=lambda word: word[0])


def test_a_missing_library_is_said_and_exact_search_goes_on_to_its_limit(monkeypatch):
    monkeypatch.setattr("workbench.pools.neighbours.nearest.find_spec", lambda name: None)
    assert way(20_000) == way(100_000) == "exact"
    assert "pip install faiss-cpu" in way(100_001)
    monkeypatch.setattr("workbench.pools.neighbours.nearest.EXACT", 50)
    monkeypatch.setattr("workbench.pools.neighbours.nearest.MOST_EXACT", 60)
    made = Neighbourhood(pool_of(blobs(80)[0]))
    assert made.strengths == ("none",) and "faiss-cpu is not installed" in made.too_few
    with pytest.raises(InputError, match="need an approximate search"):
        nearest(blobs(80)[0].astype(np.float32), 10)
