"""Rows that are numbers already as features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError


@dataclass(frozen=True)
class IndexedRows:
    """Rows of a sparse file: a column is known by its index, and one that no row names is zero.

    Attributes:
        values: [N, D].
        first: index of the first column, 0 or 1.
    """

    values: Array
    first: int

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, by their indices."""
        return tuple(f"x{i + self.first}" for i in range(self.values.shape[1]))

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, D)."""
        return self.values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.values if dtype is None else self.values.astype(dtype)

    def aligned(self, names: tuple[str, ...]) -> Array:
        """[N, D] with the columns of a model.

        Raises:
            InputError: a row has a value at an index that the model does not know.
        """
        if not set(names) & set(self.names):
            return self.values  # a model of other names: by position
        place = {name: i for i, name in enumerate(names)}
        out = np.zeros((len(self.values), len(names)))
        for i, name in enumerate(self.names):
            if name in place:
                out[:, place[name]] = self.values[:, i]
            elif self.values[:, i].any():
                row = int(np.flatnonzero(self.values[:, i])[0])
                raise InputError(
                    f"Row {row + 1} has a value at the index {name[1:]}; the model knows "
                    f"{names[0][1:]} to {names[-1][1:]}."
                )
        return out


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
        if isinstance(rows, IndexedRows):
            rows = rows.aligned(self.names)
        if hasattr(rows, "columns") and hasattr(rows, "to_numpy"):
            from workbench.pools.features.table import NumberColumn, TableFeatureMap

            # texts of a CSV too, with messages that name row and column
            table_map = TableFeatureMap(tuple(NumberColumn(name) for name in self.names))
            return table_map.transform(rows) * self.factor
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
        factor = float(document["factor"])
        if not np.isfinite(factor):
            raise ValueError(f"its factor is {factor}")
        return cls(tuple(str(name) for name in document["names"]), factor)


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
