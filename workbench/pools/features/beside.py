"""A text together with a column that is shown beside it, for a model that may learn from both."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.pools.cells import read_texts
from workbench.pools.features.pieces import PiecesFeatureMap
from workbench.pools.features.table import CategoryColumn, TableFeatureMap, TextColumn
from workbench.pools.items import TextItems
from workbench.pools.pool import Pool

COLUMN = "column:"
_MOST = 20  # values; more are codes


class WithColumn(NamedTuple):
    """Features of a text and of a column, each of variance 1 and both scaled to at most unit length.

    Attributes:
        feature_map: of both.
        text_scale: that the text's features are divided by.
        indicators: [N, d] features of the column.
    """

    feature_map: TableFeatureMap
    text_scale: float
    indicators: Floats

    def transform(self, X: Array, indicators: Floats | None = None) -> Array:
        """[n, D + d] of texts X [n, D]; the column's mean stands for indicators [n, d] that are not known."""
        if indicators is None:
            indicators = np.tile(self.indicators.mean(axis=0), (len(X), 1))
        return np.hstack([X / self.text_scale, indicators]).astype(np.float32)


def with_columns(pool: Pool, rows: Ints) -> dict[str, WithColumn]:
    """A text together with each column shown beside it that holds few values, by "column:" and its name.

    Args:
        pool: empty unless it is one of texts by words and pieces.
        rows: [n] items that values and scales are taken from.
    """
    import pandas as pd

    items, text_map = pool.items, pool.feature_map
    if not isinstance(items, TextItems) or not isinstance(text_map, PiecesFeatureMap):
        return {}
    spread = _spread(np.asarray(pool.features[rows]))
    sets: dict[str, WithColumn] = {}
    for name in items.beside:
        cells = pd.Series((items.cells or {})[name])
        texts, blank = read_texts(cells.iloc[rows])
        values = tuple(sorted(set(texts[~blank].tolist())))
        if not 2 <= len(values) <= _MOST:
            continue
        column = CategoryColumn(name, values, blank=True)
        indicators = column.read_known(cells)[0]
        own_spread = _spread(indicators[rows])
        # rows of both sets are no longer than 1 before they are divided by their spreads
        length = float(np.hypot(1.0 / spread, 1.0 / own_spread))
        own_spread *= length
        text = TextColumn(text_map.column, text_map, spread * length)
        feature_map = TableFeatureMap((text, replace(column, scale=own_spread)))
        sets[f"{COLUMN}{name}"] = WithColumn(feature_map, text.scale, indicators / own_spread)
    return sets


def _spread(X: Array) -> float:
    return float(np.sqrt(X.var(axis=0, dtype=np.float64).sum())) or 1.0
