"""Fits measured on part of a pool: which rows, which split, how long, how good."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import lru_cache
from time import process_time
from typing import Any

import numpy as np

from workbench.arrays import Array, Ints
from workbench.pools import load_pool
from workbench.pools.pool import ArrayItems, Pool, RowNumbers

POKER = "poker"


def cut(pool: Pool, rows: int | None, seed: int) -> Pool:
    """At most so many rows of a pool, one of every class at least; no test split of its own.

    Args:
        pool: of numbers.
        rows: at most, or None for all.
        seed: of the choice.
    """
    if rows is None or len(pool) <= rows or pool.truth is None:
        return pool
    selection = some_rows(np.asarray(pool.truth), rows, seed)
    features = np.asarray(pool.features[selection])
    return replace(
        pool,
        features=features,
        truth=np.asarray(pool.truth)[selection],
        items=ArrayItems(RowNumbers(len(selection)), features, pool.feature_map.columns),
        fingerprints=pool.fingerprints[selection],
        test=None,
    )


def some_rows(truth: Ints, rows: int, seed: int) -> Ints:
    """A random choice of rows that has two of each class where there are two.

    Args:
        truth: [N] codes.
        rows: how many.
        seed: of the choice.

    Returns:
        [rows] sorted indices; more only where classes are more.
    """
    rng = np.random.default_rng([seed, 0xC07])
    order = rng.permutation(len(truth))
    ranks = np.empty(len(truth), dtype=np.int64)
    for code in np.unique(truth):
        members = order[truth[order] == code]
        ranks[members] = np.arange(len(members))
    first = order[ranks[order] < 2]
    rest = order[ranks[order] >= 2]
    return np.sort(np.concatenate([first, rest[: max(0, rows - len(first))]]))


@lru_cache(maxsize=2)
def opened(name: str, rows: int | None, seed: int) -> Pool:
    """A pool by name, cut and split; the last two are kept.

    Args:
        name: as for `load_pool`.
        rows: at most, or None.
        seed: of the cut and of the split.
    """
    if name == POKER and rows is not None:
        # hands are dealt one after the other, so a cut of more is not worth dealing a million
        return load_pool(POKER, n_items=max(rows, 11), seed=seed).split(seed)
    return cut(load_pool(name), rows, seed).split(seed)


def measured_fit(
    make: Callable[[], Any], X: Array, y: Ints, X_test: Array, y_test: Ints, *, kind: Hashable
) -> dict[str, float]:
    """Fit and measure.

    Args:
        make: () -> an estimator with `classes=` set.
        X: [n, D].
        y: [n] codes.
        X_test: [m, D].
        y_test: [m].
        kind: what compiled functions are kept by, such as a model, its number of classes and of inducing
            points: before the first of a kind another is fitted to some rows and asked for probabilities,
            as importing and compiling are not training.

    Returns:
        error, nll, brier (0 to 2), ece, and CPU seconds of the fit.
    """
    from workbench.sessions.measure import metrics_of

    if kind not in _compiled:
        compile_first(make, X, y)
        _compiled.add(kind)
    estimator = make()
    began = process_time()
    estimator.fit(X, y)
    seconds = process_time() - began
    metrics = metrics_of(y_test, np.asarray(estimator.predict_proba(X_test)))
    return {k: float(metrics[k]) for k in ("error", "nll", "brier", "ece")} | {"seconds": seconds}


_compiled: set[Hashable] = set()
WARM_ROWS = 600
"""Of a first fit that is not timed: more than a minibatch or the inducing points, so that it is of their
shapes."""


def compile_first(make: Callable[[], Any], X: Array, y: Ints) -> None:
    """Let a model compile what it compiles before it is timed: a fit on some rows.

    Args:
        make: () -> estimator.
        X: [n, D].
        y: [n] codes; rows of every class are taken where they are few.
    """
    rows = some_rows(y, min(len(y), WARM_ROWS), 0)
    make().fit(X[rows], y[rows]).predict_proba(X[rows])


def split_arrays(pool: Pool) -> tuple[Array, Ints, Array, Ints]:
    """Training features and codes, test features and codes."""
    assert pool.test is not None and pool.truth is not None
    truth = np.asarray(pool.truth)
    train, test = pool.test.train, pool.test.test
    return pool.features[train], truth[train], pool.features[test], truth[test]
