"""Features piece by piece: from an array, a file that is mapped, or a folder of Parquet parts.

A source divides its rows into units that depend on the source alone, never on who works on them, so
that threads, local processes and a cluster compute the same chunks and give the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.arrays import Array
    from workbench.pools.pool import FeatureMap

# Rows of one unit of an array or a mapped file: a second's work or less.
UNIT_ROWS = 1 << 18


class Unit(NamedTuple):
    """Rows that one worker takes in one go.

    Attributes:
        first: number of the first row in the whole source.
        n_rows: how many.
        part: which file of the source.
        group: which row group of that file.
    """

    first: int
    n_rows: int
    part: int = 0
    group: int = 0


class Source(Protocol):
    """Rows to be scored."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_columns(self) -> int:
        """Numbers in a row as it is read."""

    def units(self) -> list[Unit]:
        """The units of work, in the order of rows."""

    def chunks(self, unit: Unit, chunk_rows: int) -> Iterator[tuple[int, Array]]:
        """(number of the first row, features [n, D]) of a unit, at most `chunk_rows` rows at a time."""

    def portable(self, unit: Unit) -> Source:
        """Description that another process needs to read that unit: small, or no larger than the unit."""

    def name_of(self, row: int) -> str:
        """Name of a row in messages."""


class ArraySource:
    """Features in memory or in a mapped array.

    Args:
        features: [N, D].
        feature_map: applied to each chunk, where the array holds raw rows.
        first: number of the first row.
        ids: names of the rows, for messages.
        notes: what was guessed in reading them, for people.
    """

    def __init__(
        self,
        features: Array,
        feature_map: FeatureMap | None = None,
        *,
        first: int = 0,
        ids: Sequence[str] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        if features.ndim < 2:
            raise InputError(f"Features must be [rows, columns]; got an array of shape {features.shape}.")
        self.features = features
        self.feature_map = feature_map
        self.first = first
        self.ids = ids
        self.notes = notes

    @property
    def n_rows(self) -> int:
        """N."""
        return int(self.features.shape[0])

    @property
    def n_columns(self) -> int:
        """D."""
        return int(np.prod(self.features.shape[1:]))

    def units(self) -> list[Unit]:
        """Runs of UNIT_ROWS rows."""
        starts = range(0, self.n_rows, UNIT_ROWS)
        return [Unit(start, min(UNIT_ROWS, self.n_rows - start)) for start in starts]

    def chunks(self, unit: Unit, chunk_rows: int) -> Iterator[tuple[int, Array]]:
        """Slices of the array."""
        for start in range(unit.first, unit.first + unit.n_rows, chunk_rows):
            stop = min(start + chunk_rows, unit.first + unit.n_rows)
            rows = self.features[start - self.first : stop - self.first]
            if rows.ndim > 2:
                rows = rows.reshape(len(rows), -1)
            yield start, rows if self.feature_map is None else transformed(self.feature_map, rows, start)

    def portable(self, unit: Unit) -> ArraySource:
        """The unit's rows, copied."""
        start = unit.first - self.first
        rows = np.array(self.features[start : start + unit.n_rows])
        return ArraySource(rows, self.feature_map, first=unit.first)

    def name_of(self, row: int) -> str:
        """Its number, and its id where there is one."""
        return f"row {row}" if self.ids is None else f"row {row} (id {self.ids[row]!r})"


def transformed(feature_map: FeatureMap, rows: Any, first: int) -> Array:
    """Features of the rows from number `first` on."""
    try:
        return feature_map.transform(rows)
    except InputError as error:
        raise InputError(f"In the rows from {first} on: {error}" if first else str(error)) from error
