"""Items near to another one among many that are asked again and again: their features are read once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from workbench.arrays import Array, Floats, Ints

_ROUNDING = 1e-4
"""Of the squares that single precision adds up, more than it may be wrong by."""
_FIRST = 256


class Nearby:
    """Items that may be among the nearest; safe to use from several threads.

    Rows are kept in single precision, which says who may be near: whoever asks measures those few exactly.

    Args:
        points: gives the features [n, D] of items [n].
    """

    def __init__(self, points: Callable[[Ints], Array]) -> None:
        self._points = points
        self._lock = threading.Lock()
        self._place: dict[int, int] = {}
        self._rows = np.empty((0, 0), dtype=np.float32)
        self._squares = np.empty(0, dtype=np.float32)

    def likely(self, items: Ints, item: int, k: int) -> Ints:
        """Places of the items among which the k nearest are.

        Args:
            items: [n] to choose from.
            item: near to which.
            k: how many.

        Returns:
            [m] ascending places in `items`, m >= min(k, n).
        """
        if items.size <= k:
            return np.arange(items.size)
        # what has no number, or is too large for single precision, is measured by whoever asks
        with np.errstate(over="ignore", invalid="ignore"):
            rows, squares, places = self._known(items)
            row = np.asarray(self._points(np.array([item])), dtype=np.float32)[0]
            square = row @ row
            distances = (squares - 2.0 * (rows @ row) + square)[places]
            threshold = np.partition(distances, k - 1)[k - 1]
            wrong = _ROUNDING * float(squares.max() + square)
            candidates: Ints = np.flatnonzero(~(distances > threshold + 2.0 * wrong))
        return candidates

    def _known(self, items: Ints) -> tuple[Floats, Floats, Ints]:
        """All rows [N, D] that are kept, their squares [N], and where those of the items [n] are."""
        with self._lock:
            place = self._place
            new = [i for i in items.tolist() if i not in place]
            if new:
                self._add(new)
            n, rows, squares = len(place), self._rows, self._squares
            places = np.fromiter((place[i] for i in items.tolist()), dtype=np.int64, count=items.size)
            return rows[:n], squares[:n], places

    def _add(self, new: list[int]) -> None:
        points = np.asarray(self._points(np.array(new)), dtype=np.float32)
        n = len(self._place)
        if n + len(new) > len(self._rows):
            room = max(_FIRST, 2 * (n + len(new)))
            rows = np.zeros((room, points.shape[1]), dtype=np.float32)
            squares = np.zeros(room, dtype=np.float32)
            if n:
                rows[:n], squares[:n] = self._rows[:n], self._squares[:n]
            self._rows, self._squares = rows, squares
        # beyond what anybody who is reading looks at
        self._rows[n : n + len(new)] = points
        self._squares[n : n + len(new)] = np.einsum("nd,nd->n", points, points)
        self._place.update(zip(new, range(n, n + len(new)), strict=True))
