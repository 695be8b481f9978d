"""The k nearest neighbours of every row of a pool: by blocks, or by an approximate library where many."""

from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.errors import InputError, install_command
from workbench.progress import part, tell

K = 10
EXACT = 20_000
"""Rows up to which neighbours are always found exactly."""
MOST_EXACT = 100_000
"""Rows up to which they are found exactly where the approximate library is missing."""
_BLOCK = 512  # rows at a time: the same ones always, so that the same distances come out
_SPARE = 6  # more are found in float32 and put in order in float64
_TRAINED = 50  # rows a cell that the cells are learnt from
_PROBED = 24  # cells that are looked into
_AT_ONCE = 4_000  # rows between two words of progress, where the work can be cancelled


class Nearest(NamedTuple):
    """Neighbours of n rows, nearest first.

    Attributes:
        rows: [n, k] int32 places of the neighbours.
        distances: [n, k] float32.
    """

    rows: Ints
    distances: Floats


def way(n: int) -> str:
    """Search for the neighbours of n rows here: "exact" or "faiss"; or why there is none, for people."""
    if n <= EXACT:
        return "exact"
    if find_spec("faiss") is not None:
        return "faiss"
    if n <= MOST_EXACT:
        return "exact"
    return (
        f"The neighbours of {n:,} items need an approximate search, and faiss-cpu is not installed: "
        f"{install_command('faiss-cpu')}. Without it they are found of up to "
        f"{MOST_EXACT:,} items."
    )


def nearest(X: Floats, k: int = K) -> Nearest:
    """The k nearest other rows of each row: up to `EXACT` rows exactly, and of equal distances the first.

    Args:
        X: [n, D] float32, n > k.
        k: neighbours.

    Raises:
        InputError: too many rows for an exact search, and no library for another.
    """
    how = way(len(X))
    if how == "exact":
        return nearest_among(X, X, k, own=True)
    if how == "faiss":
        return _by_cells(np.ascontiguousarray(X, np.float32), k)
    raise InputError(how)


def nearest_among(X: Floats, others: Floats, k: int = K, own: bool = False) -> Nearest:
    """The k rows of `others` nearest to each of X, exactly.

    Args:
        X: [m, D].
        others: [n, D].
        k: neighbours; fewer where there are fewer.
        own: X is `others`, and no row is its own neighbour.
    """
    X, others = np.asarray(X, np.float32), np.asarray(others, np.float32)
    n = len(others)
    k = min(k, n - own)
    n_candidates = min(k + _SPARE, n - own)
    squares = np.einsum("nd,nd->n", others, others)
    rows, distances = np.empty((len(X), k), np.int32), np.empty((len(X), k), np.float32)
    for start in range(0, len(X), _BLOCK):
        tell(start / len(X), f"Neighbours: {start:,} of {len(X):,}")
        block = X[start : start + _BLOCK]
        gaps = block @ others.T
        gaps *= -2.0
        gaps += squares
        if own:
            gaps[np.arange(len(block)), np.arange(start, start + len(block))] = np.inf
        if n_candidates < n:
            at = np.argpartition(gaps, n_candidates - 1, axis=1)[:, :n_candidates]
        else:
            at = np.tile(np.arange(n), (len(block), 1))
        near = others[at].astype(np.float64) - block[:, None].astype(np.float64)
        exact = np.einsum("mtd,mtd->mt", near, near)
        order = np.lexsort((at, exact), axis=1)[:, :k]
        rows[start : start + _BLOCK] = np.take_along_axis(at, order, 1)
        distances[start : start + _BLOCK] = np.sqrt(np.take_along_axis(exact, order, 1))
    return Nearest(rows, distances)


def _by_cells(X: Floats, k: int) -> Nearest:
    """By faiss: rows are put into cells, and looked for in the nearest cells only (Johnson et al. 2019)."""
    import faiss

    n, D = X.shape
    cells = int(2 * np.sqrt(n))
    tell(0.0, f"Neighbours: learning {cells:,} cells")
    index: Any = faiss.IndexIVFFlat(faiss.IndexFlatL2(D), D, cells)
    index.cp.niter, index.cp.seed = 8, 1
    sample = np.sort(np.random.default_rng([n, 0x4E2]).choice(n, min(n, _TRAINED * cells), replace=False))
    index.train(X[sample])
    for start in range(0, n, _AT_ONCE):
        tell(0.05, f"Neighbours: {start:,} of {n:,} put into cells")
        index.add(X[start : start + _AT_ONCE])
    index.nprobe = _PROBED
    rows, distances = np.empty((n, k), np.int32), np.empty((n, k), np.float32)
    with part(0.1, 1.0):
        for start in range(0, n, _AT_ONCE):
            tell(start / n, f"Neighbours: {start:,} of {n:,}")
            block = X[start : start + _AT_ONCE]
            squares, at = index.search(block, k + 1)
            hits = _without_self(squares, at, start)
            short = np.flatnonzero((hits[0] < 0).any(axis=1))  # in cells of few rows
            stop = start + len(block)
            rows[start:stop], distances[start:stop] = hits
            for i in short.tolist():
                all_of = nearest_among(block[i : i + 1], X, k + 1)
                is_other = all_of.rows[0] != start + i
                rows[start + i] = all_of.rows[0][is_other][:k]
                distances[start + i] = all_of.distances[0][is_other][:k]
    return Nearest(rows, distances)


def _without_self(squares: Floats, rows: Ints, start: int) -> tuple[Ints, Floats]:
    """[m, k] of [m, k + 1] hits: not the row itself, which copies may have pushed out."""
    is_self = rows == start + np.arange(len(rows))[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    k = rows.shape[1] - 1
    return rows[~is_self].reshape(-1, k), np.sqrt(np.maximum(squares[~is_self].reshape(-1, k), 0.0))
