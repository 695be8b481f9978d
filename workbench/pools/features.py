"""Feature maps for rows that are numbers already, and the way back from JSON for every map."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.pool import FeatureMap

_KINDS = {
    "numbers": "workbench.pools.features:NumberMap",
    "table": "workbench.pools.table_map:TableFeatureMap",
    "image": "workbench.pools.images:ImageFeatureMap",
    "text": "workbench.pools.texts:TextFeatureMap",
    "network": "workbench.pools.network_map:NetworkFeatureMap",
}


def feature_map_from_json(document: dict[str, Any]) -> FeatureMap:
    """Rebuild a feature map from what its `to_json` wrote.

    Args:
        document: the JSON document.

    Returns:
        A map that gives the same features for the same rows.

    Raises:
        InputError: not such a document, or one written by a later version.
    """
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind not in _KINDS:
        raise InputError(f"This is not a feature map this version can read (kind {kind!r}).")
    module, _, name = _KINDS[str(kind)].partition(":")
    try:
        return getattr(import_module(module), name).from_json(document)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"The saved feature map (kind {kind!r}) is damaged: {error}") from error


@dataclass(frozen=True)
class NumberMap:
    """Numeric rows, times one factor.

    Attributes:
        names: of the D columns.
        factor: features = rows * factor (1/16 for the digits' pixels).
    """

    names: tuple[str, ...]
    factor: float = 1.0

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the D features."""
        return self.names

    def transform(self, rows: Any) -> Array:
        """Rows to features.

        Args:
            rows: [N, D] numbers, [N, H, W] images with H * W = D, or a DataFrame with the columns
                by name (others are left alone).

        Returns:
            [N, D] float64.

        Raises:
            InputError: a missing column, a wrong width, or a value that is not a finite number.
        """
        if hasattr(rows, "columns") and hasattr(rows, "to_numpy"):
            from workbench.pools.table_map import NumberColumn, TableFeatureMap

            # texts of a CSV too, with messages that name row and column
            named = TableFeatureMap(tuple(NumberColumn(name) for name in self.names))
            return named.transform(rows) * self.factor
        try:
            values = np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"These rows must be numbers: {error}") from error
        if values.ndim < 2:
            raise InputError(f"Rows must be a table [N, {len(self.names)}]; got shape {list(values.shape)}.")
        values = values.reshape(values.shape[0], -1)
        if values.shape[1] != len(self.names):
            raise InputError(f"These rows have {values.shape[1]} columns; the model knows {len(self.names)}.")
        check_finite(values, self.names)
        return values * self.factor

    def to_json(self) -> dict[str, Any]:
        """The map as a JSON document."""
        return {"kind": "numbers", "names": list(self.names), "factor": self.factor}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> NumberMap:
        """Rebuild from `to_json`."""
        return cls(tuple(str(name) for name in document["names"]), float(document["factor"]))


def check_finite(values: Array, names: tuple[str, ...]) -> None:
    """Refuse NaN and infinities, naming the first.

    Args:
        values: [N, D].
        names: [D] of the columns.

    Raises:
        InputError: with row and column.
    """
    if values.dtype.kind in "iub":
        return
    step = max(1, 4_000_000 // max(1, values.shape[1]))
    for start in range(0, len(values), step):  # a memory map is never held whole
        sound = np.isfinite(values[start : start + step])
        if not sound.all():
            row, column = (int(i[0]) for i in np.nonzero(~sound))
            raise InputError(
                f"Row {start + row + 1}, column {names[column]!r} holds {values[start + row, column]}, "
                'which is not a finite number. Leave such rows out (missing="drop") or fill them in '
                '(missing="impute").'
            )
