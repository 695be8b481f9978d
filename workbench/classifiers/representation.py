"""Other ways to write a table's columns, learnt from the pool and kept in plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.numpy_predictor import indicators, scores

FEWEST, MOST = 3, 12  # distinct values of an integer column that may be a code
MOST_COLUMNS = 400  # of a table written out as indicators
_KNOTS = 65  # of a column's normal scores


class Representation(NamedTuple):
    """Raw features [N, D] to the columns that a geometry then shifts and scales.

    Attributes:
        name: "one-hot" or "normal-scores"; "numbers" is none at all.
        columns: [D'] raw column of each column it gives.
        values: [D'] the value an indicator stands for; NaN where the column stays a number.
        knots: [D, K] raw values of the normal scores, not falling; empty for indicators.
        scores: [D, K] the scores there.
        n_features: D.
    """

    name: str
    columns: Ints
    values: Floats
    knots: Floats
    scores: Floats
    n_features: int

    def transform(self, X: Array) -> Floats:
        """[N, D'] of raw features X [N, D]; a code the pool never held belongs to no indicator."""
        written = indicators if self.name == "one-hot" else scores
        return written(self._asdict(), np.asarray(X, dtype=np.float64))

    def spread(self, scale: Floats) -> Floats:
        """[D'] scales for its columns: the indicators of a raw column share one, as the parts of one column.

        Args:
            scale: [D'] standard deviation of each column.
        """
        result = scale.copy()
        codes = np.isfinite(self.values)
        for column in np.unique(self.columns[codes]):
            block = codes & (self.columns == column)
            result[block] = np.sqrt((scale[block] ** 2).sum())
        return result

    def to_arrays(self) -> dict[str, Array]:
        """Plain arrays; `from_arrays` is the way back."""
        return {name: np.asarray(value) for name, value in self._asdict().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Representation:
        """The representation that `to_arrays` took apart."""
        columns, values, knots, scores = (
            np.asarray(arrays[name]) for name in ("columns", "values", "knots", "scores")
        )
        return cls(str(np.asarray(arrays["name"])), columns, values, knots, scores, int(arrays["n_features"]))


def one_hot(sample: Floats) -> Representation | None:
    """Integer columns of 3 to 12 distinct values as indicators; None where there is no such column.

    Args:
        sample: [N, D] raw features of the pool.
    """
    columns: list[int] = []
    values: list[float] = []
    for d in range(sample.shape[1]):
        levels = _codes(sample[:, d])
        columns += [d] * max(len(levels), 1)
        values += levels or [np.nan]
    codes = np.asarray(values)
    if not np.isfinite(codes).any() or len(codes) > MOST_COLUMNS:
        return None
    empty = np.empty((0, 0))
    return Representation("one-hot", np.asarray(columns), codes, empty, empty, sample.shape[1])


def _codes(column: Floats) -> list[float]:
    # a few rows rule most columns out
    for rows in (column[:200], column):
        if (rows != np.round(rows)).any():
            return []
        levels = np.unique(rows)
        if len(levels) > MOST:
            return []
    return levels.tolist() if len(levels) >= FEWEST else []


def normal_scores(sample: Floats) -> Representation | None:
    """Each column by the normal quantile of its rank; None where no column has ranks worth the name.

    Args:
        sample: [N, D] raw features of the pool.
    """
    from scipy.special import ndtri

    n, D = sample.shape
    knots, scores = np.empty((D, _KNOTS)), np.empty((D, _KNOTS))
    skewed = False
    for d in range(D):
        values, counts = np.unique(sample[:, d], return_counts=True)
        middle = (np.cumsum(counts) - 0.5 * counts) / n
        if len(values) > _KNOTS:
            at = np.searchsorted(middle, np.linspace(middle[0], middle[-1], _KNOTS)).clip(0, len(values) - 1)
            values, middle = values[at], middle[at]
        filler = _KNOTS - len(values)
        knots[d] = np.concatenate([values, np.full(filler, values[-1])])
        scores[d] = np.concatenate([ndtri(middle), np.full(filler, ndtri(middle[-1]))])
        skewed |= len(values) > MOST
    if not skewed:
        return None
    return Representation("normal-scores", np.arange(D), np.full(D, np.nan), knots, scores, D)


MAKERS = {"one-hot": one_hot, "normal-scores": normal_scores}
