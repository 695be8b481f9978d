"""A table as its source holds it, before anything is made of it, and the lines about its names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.pools.cells import EXACT, MOST, read_numbers
from workbench.pools.tables.report import Fix, Problem
from workbench.pools.tables.uses import CLASS_NAMES, TEXT_NAMES, ColumnUse
from workbench.reading import cut, listed

Pictured = Mapping[str, Callable[[], bytes]]
"""Pictures that come with a table: name that stands in a cell -> what reads one."""


@dataclass(frozen=True)
class RawTable:
    """A table as the source holds it.

    Attributes:
        name: the file's name.
        format: "csv", "parquet" or "frame".
        frame: pandas DataFrame; all texts for a CSV, typed for Parquet.
        encoding: of a CSV.
        delimiter: of a CSV.
        locate: row -> "line 7" or "row 6".
        pictures: column -> the pictures that lie in the table itself, by the name that its cells hold.
        uses: what the source itself says of its columns.
        notes: what was done while reading.
        problems: what the reader has to ask or to tell, with its ways out.
        folder: that the file lies in; "" for uploads.
        n_there: rows that the source says it holds; None where it says nothing.
        n_left: of these, rows that were left out and that the notes or the problems tell of.
    """

    name: str
    format: str
    frame: Any
    encoding: str = ""
    delimiter: str = ""
    locate: Callable[[int], str] = field(default=lambda row: f"row {row + 1}")

    pictures: Mapping[str, Pictured] = field(default_factory=dict)
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
        met = len(self.frame) + self.n_left
        if self.n_there is not None and met != self.n_there:
            raise InputError(
                f"{self.name} holds {self.n_there:,} rows, and {met:,} of them came. Write it again; if this "
                "stays, it is a mistake of the program."
            )
        return self


def check_names(name: str, columns: Sequence[str]) -> None:
    """Refuse two columns of one name.

    Raises:
        InputError: names the first.
    """
    met: set[str] = set()
    for column in columns:
        if column in met:
            raise InputError(f"{name} has more than one column called {cut(column)}. Rename one of them.")
        met.add(column)


def typed_column(values: Sequence[Any], text: Callable[[Any], str | None]) -> Any:
    """Values of one column, None where empty, as numbers, dates or yes and no where all are; else as texts.

    Args:
        values: [N]; whole numbers that no float holds make texts of all.
        text: of a value.

    Returns:
        A pandas Series.
    """
    import pandas as pd

    filled = [value for value in values if value is not None]
    kinds = set(map(type, filled))
    if kinds == {bool}:
        return pd.Series(values, dtype="boolean")
    numbers = bool(kinds) and kinds <= {int, float}
    if numbers and all(isinstance(value, float) or abs(value) < EXACT for value in filled):
        return pd.Series(values, dtype="float64")
    if kinds == {datetime}:
        return pd.to_datetime(pd.Series(values, dtype="object"), errors="coerce")
    return pd.Series(list(map(text, values)), dtype="str")


LOOKED_AT = 20
"""Lines that tell what stands above the names."""
_MOST = 3  # lines that explain
SAMPLE = 200
_FEWEST = 5
_IMPORT = '"ImportId"'  # what Qualtrics writes under its questions
_RESPONSES = ("Response", "Open-Ended Response", "Other (please specify)")  # and SurveyMonkey


def titles(records: Sequence[Sequence[str]]) -> int:
    """Number of lines above the names: one cell each, where all further lines are even.

    Args:
        records: cells of the first lines that hold something.
    """
    import pandas as pd

    width = max((len(_filled(record)) for record in records), default=0)
    # nothing stands behind the first cell of a title, or behind the first two of three and more
    n = next((i for i, record in enumerate(records) if _filled(record[1 + (width > 2) :])), 0)
    below = records[n:]
    if not n or len(below) < 3 or len({len(record) for record in below}) > 1:
        return 0

    names = [cell.strip() for cell in below[0] if cell.strip()]
    has_names = len(names) > 1 and not any(np.isfinite(read_numbers(pd.Series(names)).values))
    items = [set(cells) & {name} for name, *cells in zip(*below, strict=True) if name.strip()]
    if any(items) or records[0][0].strip().lower() in TEXT_NAMES:
        return 0  # they stand again as cells; a name alone above texts with commas
    if any(len(_filled(record)) > 1 for record in records[:n]):  # "Date: 2024" above names, not a name less
        columns = (pd.Series(column[1:]) for column in zip(*below, strict=True))
        has_names = has_names and any(np.isfinite(read_numbers(column).values).all() for column in columns)
    known = not set(CLASS_NAMES).isdisjoint(map(str.lower, names))
    # a nameless column beside one with a name is no title
    is_title = known or all(len(record) < 2 or len(names) > 2 for record in records[:n])
    return n if has_names and is_title else 0


def _filled(record: Sequence[str]) -> list[str]:
    return [cell.strip() for cell in record if cell.strip()]


def told_titles(lines: Sequence[Sequence[str]]) -> tuple[Problem, ...]:
    """Note on lines above the names, but for "sep=;", which Excel writes for itself."""
    words = [" ".join(_filled(line)) for line in lines if _filled(line) and not line[0].startswith("sep=")]
    if not words:
        return ()
    return (Problem("title", "note", f"Above the names stands {listed(words, 3)}: no item, left out."),)


def named(first: Sequence[str], header: bool | int | None) -> tuple[list[str], list[str]]:
    """Names of the columns by the first line, and those among them of columns without one.

    Args:
        first: its cells.
        header: False where they are an item.
    """
    if header is False:
        return [f"x{i + 1}" for i in range(len(first))], []
    stripped = [cell.strip() for cell in first]
    filled = _filled(first)
    names = stripped if len({*filled}) == len(filled) else first
    names = [name if name.strip() else f"column_{i + 1}" for i, name in enumerate(names)]
    return names, [name for name, cell in zip(names, stripped, strict=True) if not cell]


def told_names(name: str, unnamed: Sequence[str], *, looks_like_data: bool) -> tuple[Problem, ...]:
    """Findings about a line of names: it may be the first item, and some columns had none.

    Args:
        name: of the file.
        unnamed: names that were given to columns without one.
        looks_like_data: whether the line reads like an item.
    """
    ways = (Fix("It is the first item", {"header": False}), Fix("It holds the names", {"header": True}))
    message = f"The first line of {name} reads like an item: is it a header or the first item?"
    questions = [Problem("header", "choice", message, fixes=ways)] if looks_like_data else []
    notes = (
        Problem("unnamed", "note", f"A column without a name is called {column!r}.", column)
        for column in unnamed
    )
    return (*questions, *notes)


def explaining(frame: Any, header: bool | int | None) -> tuple[int, tuple[Problem, ...]]:
    """Number of first rows that explain the names (questions in full, units), and a note on them.

    Args:
        frame: pandas DataFrame of texts.
        header: lines of the head that somebody said, the names among them; True is one, None finds out.
    """
    if header is not None:
        return min(max(int(header) - 1, 0), len(frame)), ()
    n = _n_explaining(frame)
    if not n:
        return 0, ()
    first = next((str(cell) for cell in frame.iloc[0] if str(cell).strip()), "")
    lines = "A line under the names explains" if n == 1 else f"{n} lines under the names explain"
    return n, (
        Problem(
            "explaining",
            "guess",
            f"{lines} them, as {cut(first, 60)}: no item, left out.",
            fixes=(Fix("No items", {"header": n + 1}), Fix("They are items", {"header": True})),
        ),
    )


def _n_explaining(frame: Any) -> int:
    """Rows that hold words in every column of numbers, of two and more, or down to Qualtrics' own row."""
    head, below = frame.iloc[:_MOST], frame.iloc[_MOST : _MOST + SAMPLE]
    for i in reversed(range(len(head))):
        if any(_IMPORT in str(cell) or (i == 0 and cell in _RESPONSES) for cell in head.iloc[i]):
            return i + 1
    words = []
    for name in frame.columns if len(below) >= _FEWEST else ():
        if np.isfinite(read_numbers(below[name]).values).mean() >= MOST:
            words.append(read_numbers(head[name]).unreadable)
            if not words[-1][0]:
                return 0
    together = np.append(np.all(words, axis=0), False) if len(words) > 1 else np.zeros(1, dtype=bool)
    return int(together.argmin())
