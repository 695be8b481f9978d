"""The graph of a pool: seconds, memory and recall; and what thinning it costs new rows."""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from unittest import mock

import numpy as np

from benchmarks.features import pool_of
from workbench.arrays import Floats, Ints
from workbench.pools.neighbours import graph as neighbours
from workbench.pools.neighbours.graph import STRENGTHS, Neighbourhood, hops, operator
from workbench.pools.neighbours.nearest import K, Nearest, nearest, nearest_among, way

_DRAWN = 500  # rows whose neighbours are found again, exactly
_ROWS = 20  # of these at a time
_INNER = 12  # dimensions that the rows have, as learnt features do


def rows_of(n: int, D: int, seed: int = 0) -> Floats:
    """[n, D] float32 rows near curved sheets of a dozen dimensions, in 200 clusters.

    Args:
        n: rows.
        D: columns.
        seed: of the rows.
    """
    rng = np.random.default_rng(seed)
    centres, maps = rng.normal(size=(200, _INNER)), rng.normal(size=(_INNER, D)).astype(np.float32)
    X = np.empty((n, D), np.float32)
    for start in range(0, n, 50_000):
        m = min(50_000, n - start)
        inner = centres[rng.integers(0, 200, m)] + 0.5 * rng.normal(size=(m, _INNER))
        X[start : start + m] = np.tanh(inner.astype(np.float32) @ maps / 3.0)
        X[start : start + m] += 0.05 * rng.standard_normal((m, D), np.float32)
    return X


def graph(n: int, D: int, strength: str) -> None:
    """Print what the graph of n rows and one strength take, and the recall at 10 of a sample."""
    X = rows_of(n, D)
    before = _most()
    began, spent = time.perf_counter(), time.process_time()
    found = nearest(X)
    wall, processor = time.perf_counter() - began, time.process_time() - spent
    graphs = _most() - before
    began, spent = time.perf_counter(), time.process_time()
    *_, _last = hops(operator(found).matrix, X, STRENGTHS[strength])
    hopped, hopping, whole = time.perf_counter() - began, time.process_time() - spent, _most() - before
    print(
        f"{n:,} x {D} by {way(n)}: {wall:.0f} s, {processor:.0f} s of processor, {graphs:,.0f} MB above the "
        f"{X.nbytes / 1e6:,.0f} MB of rows, recall at {K} {_recall(found, X):.4f}; {strength}: "
        f"{hopped:.0f} s, {hopping:.0f} s of processor, {whole:,.0f} MB",
        flush=True,
    )


def _recall(found: Nearest, X: Floats) -> float:
    """Of a sample: found again exactly, a few rows at a time so that it takes no memory to speak of."""
    sample = np.random.default_rng(1).choice(len(X), min(len(X), _DRAWN), replace=False)
    hits = 0
    for start in range(0, len(sample), _ROWS):
        some = sample[start : start + _ROWS]
        exact = nearest_among(X[some], X, K + 1)
        for item, mine, theirs in zip(some, found.rows[some], exact.rows, strict=True):
            hits += len(set(mine.tolist()) & set(theirs[theirs != item][:K].tolist()))
    return hits / (K * len(sample))


def _most() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def thinning(X: Floats, y: Ints, kept: Sequence[int], strength: str = "strong", labels: int = 200) -> None:
    """Print the error on new rows where a part of the pool is stored, for a linear model on all of it.

    Args:
        X: [N, D].
        y: [N] classes.
        kept: rows of the pool that are stored.
        strength: of the smoothing.
        labels: of the model.
    """
    from sklearn.linear_model import LogisticRegression

    order = np.random.default_rng(0).permutation(len(y))
    new, train = order[: len(y) // 4], np.sort(order[len(y) // 4 :])
    pool = pool_of(X, y, train)
    errors = []
    for rows in (len(train), *kept):
        with (
            mock.patch.object(neighbours, "MOST_ROWS", rows),
            mock.patch.object(neighbours, "MOST_BYTES", 1 << 40),
        ):
            seen = Neighbourhood(pool).seen(strength)
        scale = float(seen.features[train].std())
        few = np.random.default_rng(1).choice(train, labels, replace=False)
        model = LogisticRegression(C=0.1, max_iter=500).fit(seen.features[few] / scale, y[few])
        errors.append(f"{rows:,}: {np.mean(model.predict(seen.features[new] / scale) != y[new]):.4f}")
    print(f"{strength}, {labels} labels, error on {len(new):,} new rows by rows stored: {', '.join(errors)}")


def main(flags: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[60_000, 1_000_000])
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--strength", choices=[name for name in STRENGTHS if name != "none"], default="weak")
    parser.add_argument("--thinned", type=int, nargs="*", help="on MNIST shapes, rows that are stored")
    arguments = parser.parse_args(flags)
    if arguments.thinned is not None:
        from benchmarks.features import features_of

        for n in arguments.items:
            found, truth, _ = features_of("mnist", n, 0)
            thinning(found["shapes"], truth, arguments.thinned)
        return 0
    for n in arguments.items:
        graph(n, arguments.columns, arguments.strength)
    return 0
