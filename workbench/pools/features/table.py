"""From the rows of a table to features, by a recipe that can be replayed on new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.arrays import Array, Floats
from workbench.errors import InputError
from workbench.pools.cells import Numbers, read_numbers, read_texts
from workbench.reading import cut, listed

BLANK_CATEGORY = "(empty)"


@dataclass(frozen=True)
class NumberColumn:
    """A column taken as a number.

    Attributes:
        name: of the column in the source.
        fill: what an empty, infinite or unreadable cell becomes; None refuses them.
        unreadable_as_empty: whether texts that are no number count as empty.
    """

    name: str
    fill: float | None = None
    unreadable_as_empty: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the features it gives."""
        return (self.name,)

    def read(self, column: Any, decimal: str) -> Floats:
        """[N, 1] numbers of a pandas column."""
        return self.encode(column, read_numbers(column, decimal))

    def encode(self, column: Any, cells: Numbers) -> Floats:
        """[N, 1] numbers of a column that was read already."""
        if not self.unreadable_as_empty and cells.unreadable.any():
            row = int(cells.unreadable.argmax())
            raise InputError(
                f"Row {row + 1}, column {self.name!r} holds {cut(str(column.iloc[row]))}, which is not a "
                "number."
            )
        gone = ~np.isfinite(cells.values)
        if gone.any() and self.fill is None:
            row = int(gone.argmax())
            what = "is empty" if np.isnan(cells.values[row]) else "is infinite"
            raise InputError(
                f"Row {row + 1}, column {self.name!r} {what}, and the recipe made with this pool has nothing "
                'to fill in. Complete the row or leave it out (or open the pool with missing="impute").'
            )
        values = np.where(gone, 0.0 if self.fill is None else self.fill, cells.values)
        return values[:, None]


@dataclass(frozen=True)
class CategoryColumn:
    """A text column taken as one 0/1 feature a category.

    Attributes:
        name: of the column in the source.
        categories: the texts it may hold.
        blank: whether empty cells are a category of their own; else they are refused.
    """

    name: str
    categories: tuple[str, ...]
    blank: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the features it gives."""
        extra = (BLANK_CATEGORY,) if self.blank else ()
        return tuple(f"{self.name}={category}" for category in (*self.categories, *extra))

    def read(self, column: Any, decimal: str) -> Floats:
        """[N, categories] zeros and ones of a pandas column."""
        texts, empty = read_texts(column)
        if empty.any() and not self.blank:
            row = int(empty.argmax())
            raise InputError(
                f"Row {row + 1}, column {self.name!r} is empty, and the recipe made with this pool knows no "
                'empty cells. Complete the row or leave it out (or open the pool with missing="impute").'
            )
        position = {category: i for i, category in enumerate(self.categories)}
        codes = np.fromiter((position.get(text, -1) for text in texts), dtype=np.int64, count=len(texts))
        codes[empty] = len(self.categories)
        if (codes < 0).any():
            row = int((codes < 0).argmax())
            raise InputError(
                f"Row {row + 1}, column {self.name!r} holds {cut(texts[row])}, which the pool never held; "
                f"known are {listed(self.categories)}. Correct the cell or leave the row out."
            )
        return np.eye(len(self.outputs))[codes]


@dataclass(frozen=True)
class TableFeatureMap:
    """The recipe that turns rows of a table into features.

    Attributes:
        recipe: one entry a source column that is used, in order.
        decimal: the decimal sign of numbers written as text.
    """

    recipe: tuple[NumberColumn | CategoryColumn, ...]
    decimal: str = "."

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the D features."""
        return tuple(name for column in self.recipe for name in column.outputs)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the source columns that are used."""
        return tuple(column.name for column in self.recipe)

    def transform(self, rows: Any) -> Array:
        """Rows to features.

        Args:
            rows: a DataFrame with the source's columns (others are left alone), a list of mappings
                column name -> cell, or an array [N, number of source columns].

        Returns:
            [N, D] float64.

        Raises:
            InputError: a missing column, an unreadable or empty cell, or a category never seen.
        """
        frame = as_frame(rows, self.sources)
        missing = [name for name in self.sources if name not in frame.columns]
        if missing:
            noun = "columns" if missing[1:] else "column"
            raise InputError(f"The rows lack the {noun} {listed(missing)}.")
        out = np.empty((len(frame), len(self.columns)))
        at = 0
        for column in self.recipe:
            width = len(column.outputs)
            out[:, at : at + width] = column.read(frame[column.name], self.decimal)
            at += width
        return out

    def to_json(self) -> dict[str, Any]:
        """The map as a JSON document."""
        recipe: list[dict[str, Any]] = []
        for column in self.recipe:
            if isinstance(column, NumberColumn):
                recipe.append(
                    {
                        "type": "number",
                        "name": column.name,
                        "fill": column.fill,
                        "unreadable_as_empty": column.unreadable_as_empty,
                    }
                )
            else:
                recipe.append(
                    {
                        "type": "one-hot",
                        "name": column.name,
                        "categories": list(column.categories),
                        "blank": column.blank,
                    }
                )
        return {"kind": "table", "decimal": self.decimal, "recipe": recipe}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> TableFeatureMap:
        """Rebuild from `to_json`."""
        recipe: list[NumberColumn | CategoryColumn] = []
        for entry in document["recipe"]:
            if entry["type"] == "number":
                fill = entry["fill"]
                if fill is not None and not np.isfinite(float(fill)):
                    raise ValueError(f"it fills in {fill}")
                recipe.append(
                    NumberColumn(
                        str(entry["name"]),
                        None if fill is None else float(fill),
                        bool(entry["unreadable_as_empty"]),
                    )
                )
            else:
                recipe.append(
                    CategoryColumn(
                        str(entry["name"]), tuple(map(str, entry["categories"])), bool(entry["blank"])
                    )
                )
        return cls(tuple(recipe), str(document["decimal"]))


def as_frame(rows: Any, names: Sequence[str]) -> Any:
    """Rows of any accepted form as a DataFrame.

    Args:
        rows: a DataFrame, a mapping of columns, a list of mappings, or an array [N, len(names)].
        names: of the columns, for an array.

    Returns:
        A DataFrame.

    Raises:
        InputError: an array of another width.
    """
    import pandas as pd

    if isinstance(rows, pd.DataFrame):
        return rows
    if isinstance(rows, Mapping):
        return pd.DataFrame(dict(rows))
    if isinstance(rows, list) and rows and isinstance(rows[0], Mapping):
        return pd.DataFrame(rows)
    values = np.asarray(rows)
    if values.ndim != 2 or values.shape[1] != len(names):
        raise InputError(
            f"These rows have shape {list(values.shape)}; the pool's recipe reads {len(names)} columns."
        )
    return pd.DataFrame(values, columns=list(names))
