"""From the rows of a table to features, by a recipe that can be replayed on new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, PlainSerializer, PlainValidator

from workbench.arrays import Array, Floats
from workbench.errors import InputError
from workbench.pools.cells import FORMATS, Numbers, read_dates, read_numbers, read_texts
from workbench.pools.features.pieces import PiecesFeatureMap
from workbench.pools.features.saved_map import Finite, Positive, SavedMap, Sign
from workbench.reading import cut, listed

BLANK_CATEGORY = "(empty)"
LIMIT = 5.0
"""Standard deviations at which numbers beside texts end."""


@dataclass(frozen=True)
class NumberColumn(SavedMap):
    """A column taken as a number.

    Attributes:
        name: of the column in the source.
        fill: what an empty, infinite or unreadable cell becomes; None refuses them.
        flag: whether a second feature says which cells were empty.
        centre: what is taken off.
        scale: what is divided by, where numbers stand beside texts; such numbers end at +-5.
        decimal: the column's own decimal sign; "" is the table's.
    """

    name: str
    fill: Finite | None = None
    flag: bool = False
    centre: Finite = 0.0
    scale: Positive | None = None
    decimal: Sign = ""
    kind: ClassVar[str] = "number"

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the features it gives."""
        return (self.name, f"{self.name}={BLANK_CATEGORY}") if self.flag else (self.name,)

    def cells(self, column: Any, decimal: str) -> Numbers:
        """A pandas column as numbers."""
        return read_numbers(column, self.decimal or decimal)

    def read(self, column: Any, decimal: str) -> tuple[Floats, str]:
        """[N, 1] numbers of a pandas column of new rows, [N, 2] with the flag; and what to tell of them.

        Raises:
            InputError: of several filled cells none is a number, or more are by another decimal sign than the
                pool's.
        """
        cells = self.cells(column, decimal)
        n, note = int(cells.unreadable.sum()), ""
        if n:
            # a column without a sign knows no groups of three digits: either mark may stand between them
            ways = [
                f"--read decimal={sign}"
                for sign in {".", ","} - {self.decimal or decimal}
                if replace(self, decimal=sign).cells(column, sign).unreadable.sum() < n
            ]
            note = f"{n:,} of {int((~cells.blank).sum()):,} filled cells of {self.name!r} are no {self.kind}"
            note += f", such as {cut(str(column.iloc[int(cells.unreadable.argmax())]))}"
            if ways:
                raise InputError(
                    f"{note}: the decimal sign, or the mark between thousands, is another than in the pool. "
                    f"Write the cells as there, or say {' or '.join(sorted(ways))}."
                )
            if n > 1 and cells.unreadable[~cells.blank].all():
                raise InputError(f"{note}. Correct them, or empty the column.")
            note += ", and count as empty."
        return self.encode(column, cells), note

    def encode(self, column: Any, cells: Numbers) -> Floats:
        """The features of a column that was read already."""
        if self.fill is None and cells.unreadable.any():
            row = int(cells.unreadable.argmax())
            raise InputError(
                f"Row {row + 1}, column {self.name!r} holds {cut(str(column.iloc[row]))}, which is not a "
                f"{self.kind}."
            )
        missing = ~np.isfinite(cells.values)
        if missing.any() and self.fill is None:
            row = int(missing.argmax())
            flaw = "is empty" if np.isnan(cells.values[row]) else "is infinite"
            raise InputError(
                f"Row {row + 1}, column {self.name!r} {flaw}, and the recipe made with this pool has nothing "
                'to fill in. Complete the row or leave it out (or open the pool with missing="impute").'
            )
        values = np.where(missing, 0.0 if self.fill is None else self.fill, cells.values)
        if self.scale is not None:
            values = np.clip((values - self.centre) / self.scale, -LIMIT, LIMIT)
        return np.column_stack([values, missing]) if self.flag else values[:, None]

    def beside_texts(self, column: Any, cells: Numbers) -> NumberColumn:
        """The same column brought to variance 1, to stand beside texts."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = replace(self, flag=False).encode(column, cells)[:, 0]
            centre, scale = float(np.mean(values)), float(np.std(values))
        good = np.isfinite(centre) and np.isfinite(scale) and scale > 0
        return replace(self, centre=centre if good else 0.0, scale=scale if good else 1.0)


def _known_format(form: str) -> str:
    if form not in ("", *FORMATS):
        raise ValueError(f"it reads dates as {cut(form)}")
    return form


@dataclass(frozen=True)
class DateColumn(NumberColumn):
    """A column of dates taken as days since 1 January 1970.

    Attributes:
        format: one of `workbench.pools.cells.FORMATS`; "" for columns of dates as such.
    """

    format: Annotated[str, AfterValidator(_known_format)] = ""
    kind: ClassVar[str] = "date"

    def cells(self, column: Any, decimal: str) -> Numbers:
        """A pandas column as days."""
        return read_dates(column, self.format)


@dataclass(frozen=True)
class CategoryColumn(SavedMap):
    """A text column taken as one 0/1 feature a category.

    Attributes:
        name: of the column in the source.
        categories: the texts it may hold.
        blank: whether empty cells are a category of their own; else they are refused.
        fill: the category that empty cells count as; None for none.
        scale: what is divided by, where categories stand beside texts.
    """

    name: str
    categories: tuple[str, ...]
    blank: bool = False
    fill: str | None = None
    scale: Positive | None = None
    kind: ClassVar[str] = "one-hot"

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the features it gives."""
        extra = (BLANK_CATEGORY,) if self.blank else ()
        return tuple(f"{self.name}={category}" for category in (*self.categories, *extra))

    def read(self, column: Any, decimal: str) -> Floats:
        """[N, categories] zeros and ones of a pandas column."""
        features, codes, texts = self._coded(column)
        if (codes < 0).any():
            row = int((codes < 0).argmax())
            if not texts[row]:
                raise InputError(
                    f"Row {row + 1}, column {self.name!r} is empty, and the recipe made with this pool knows "
                    "no empty cells. Complete the row or leave it out (or open the pool with "
                    'missing="impute").'
                )
            raise InputError(
                f"Row {row + 1}, column {self.name!r} holds {cut(texts[row])}, which the pool never held; "
                f"known are {listed(self.categories)}. Correct the cell or leave the row out."
            )
        return features

    def read_known(self, column: Any) -> tuple[Floats, int]:
        """The same, with zeros for cells that are none of the categories; and how many these are."""
        features, codes, _ = self._coded(column)
        return features, int((codes < 0).sum())

    def _coded(self, column: Any) -> tuple[Floats, Array, Array]:
        texts, empty = read_texts(column)
        if empty.any() and self.fill is not None:
            texts[empty], empty = self.fill, np.zeros(len(texts), dtype=bool)
        position = {category: i for i, category in enumerate(self.categories)}
        codes = np.fromiter((position.get(text, -1) for text in texts), dtype=np.int64, count=len(texts))
        codes[empty] = len(self.categories) if self.blank else -1
        texts[empty] = ""
        features = np.eye(len(self.outputs))[codes]
        features[codes < 0] = 0.0
        return features if self.scale is None else features / self.scale, codes, texts


@dataclass(frozen=True, eq=False)
class TextColumn(SavedMap):
    """A column of texts beside other columns, as directions of words and pieces of words.

    Attributes:
        name: of the column in the source.
        map: what the texts taught.
        scale: what is divided by, so that texts and the other columns count alike.
    """

    name: str
    map: PiecesFeatureMap
    scale: Positive = 1.0
    kind: ClassVar[str] = "text"

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the features it gives."""
        return tuple(f"{self.name}: {axis}" for axis in self.map.columns)

    def read(self, column: Any, decimal: str) -> Array:
        """[N, axes] of a pandas column; an empty text has none of them."""
        texts, blank = read_texts(column, blanks=("",))
        return self.map.transform(["" if gap else str(t) for t, gap in zip(texts, blank, strict=True)]) / (
            np.float32(self.scale)
        )


RecipeColumn = NumberColumn | CategoryColumn | TextColumn
_ENTRIES = {entry.kind: entry for entry in (NumberColumn, DateColumn, CategoryColumn, TextColumn)}
_Entry = Annotated[
    RecipeColumn,
    PlainValidator(lambda document: _ENTRIES[document["kind"]].from_json(document)),
    PlainSerializer(lambda entry: entry.to_json()),
]


@dataclass(frozen=True)
class TableFeatureMap(SavedMap):
    """The recipe that turns rows of a table into features.

    Attributes:
        recipe: one entry a source column that is used, in order.
        decimal: the decimal sign of numbers written as text, where columns have none of their own; "" knows
            no groups of digits.
    """

    recipe: tuple[_Entry, ...]
    decimal: Sign = ""
    kind: ClassVar[str] = "table"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the D features."""
        return tuple(name for column in self.recipe for name in column.outputs)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the source columns that are used."""
        return tuple(column.name for column in self.recipe)

    @property
    def column(self) -> str:
        """Name of the first column of texts; "" for none."""
        return next((entry.name for entry in self.recipe if isinstance(entry, TextColumn)), "")

    def _frame(self, rows: Any) -> Any:
        """Rows as a frame that has every column of the recipe."""
        frame = as_frame(rows, self.sources)
        missing = [name for name in self.sources if name not in frame.columns]
        if missing:
            noun = "columns" if missing[1:] else "column"
            raise InputError(f"The rows lack the {noun} {listed(missing)}.")
        return frame

    def transform(self, rows: Any) -> Array:
        """Rows to features.

        Args:
            rows: a DataFrame with the source's columns (others are left alone), a list of mappings
                column name -> cell, or an array [N, number of source columns].

        Returns:
            [N, D] float64; what is to be told is in `attrs["notes"]` of a DataFrame.

        Raises:
            InputError: a missing column, cells that cannot be read or are empty, or a category never seen.
        """
        return self._encoded(rows, strict=True)[0]

    def transform_known(self, rows: Any) -> tuple[Array, dict[str, int]]:
        """The same with zeros where a cell is none of its column's categories.

        Args:
            rows: as of `transform`.

        Returns:
            [N, D] float64, and column -> how many cells were none.

        Raises:
            InputError: as `transform`, but for such cells.
        """
        return self._encoded(rows, strict=False)

    def _encoded(self, rows: Any, strict: bool) -> tuple[Array, dict[str, int]]:
        frame = self._frame(rows)
        out = np.empty((len(frame), len(self.columns)))
        unmet: dict[str, int] = {}
        notes = [*frame.attrs.get("notes", ())]
        at = 0
        for column in self.recipe:
            width = len(column.outputs)
            if isinstance(column, NumberColumn):
                block, note = column.read(frame[column.name], self.decimal)
                notes += [note] if note and note not in notes else []
            elif isinstance(column, CategoryColumn) and not strict:
                block, n = column.read_known(frame[column.name])
                unmet |= {column.name: n} if n else {}
            else:
                block = column.read(frame[column.name], self.decimal)
            out[:, at : at + width] = block
            at += width
        frame.attrs["notes"] = tuple(notes)
        return out, unmet

    def written_with(self, decimal: str) -> TableFeatureMap:
        """The same map for rows whose numbers have another decimal sign."""
        signs = (replace(e, decimal=decimal) if isinstance(e, NumberColumn) else e for e in self.recipe)
        return TableFeatureMap(tuple(signs), decimal)


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
