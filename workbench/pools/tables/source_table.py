"""A table as its source holds it, before anything is made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import InputError
from workbench.pools.tables.report import Problem
from workbench.pools.tables.uses import ColumnUse


@dataclass(frozen=True)
class Pictured(Mapping[str, bytes]):
    """Pictures that come with a table, each read when it is asked for.

    Attributes:
        places: name that stands in a cell -> where the picture lies.
        take: from there to its bytes.
    """

    places: Mapping[str, Any]
    take: Callable[[Any], bytes]

    def __getitem__(self, name: str) -> bytes:
        return self.take(self.places[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True)
class RawTable:
    """A table as the source holds it.

    Attributes:
        name: the file's name.
        format: "csv", "parquet" or "frame".
        frame: pandas DataFrame; all texts for a CSV, typed for Parquet.
        encoding: of a CSV.
        delimiter: of a CSV.
        n_ragged: lines left out because of their number of cells.
        locate: row -> "line 7" or "row 6".
        pictures: column -> the pictures that lie in the table itself, by the name that its cells hold.
        uses: what the source itself says of its columns.
        notes: what was done while reading.
        problems: what the reader has to ask or to tell, with its ways out.
        folder: that the file lies in; "" for uploads.
        n_there: rows that the source says it holds; None where it says nothing.
        n_left: of these, rows that were left out and that the notes tell of.
    """

    name: str
    format: str
    frame: Any
    encoding: str = ""
    delimiter: str = ""
    n_ragged: int = 0
    locate: Callable[[int], str] = field(default=lambda row: f"row {row + 1}")

    pictures: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    uses: Mapping[str, ColumnUse] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    folder: str = ""
    n_there: int | None = None
    n_left: int = 0

    def accounted(self) -> RawTable:
        """The table itself, where its rows and those left out with a reason are all that the source holds.

        Raises:
            InputError: rows went missing on the way.
        """
        met = len(self.frame) + self.n_ragged + self.n_left
        if self.n_there is not None and met != self.n_there:
            raise InputError(
                f"{self.name} holds {self.n_there:,} rows, and {met:,} of them came. Write it again; if this "
                "stays, it is a mistake of the program."
            )
        return self


def check_names(name: str, columns: list[str]) -> None:
    """Refuse two columns of one name.

    Raises:
        InputError: names the first.
    """
    met: set[str] = set()
    for column in columns:
        if column in met:
            raise InputError(f"{name} has more than one column called {column!r}. Rename one of them.")
        met.add(column)
