"""One column of a table and its use: what it holds, and what that makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.pools.cells import (
    BLANKS,
    Numbers,
    date_format,
    other_reading,
    read_dates,
    read_numbers,
    read_texts,
)
from workbench.pools.notebooks import counted
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.report import Findings, Fix
from workbench.pools.tables.uses import ColumnUse
from workbench.reading import cut

_MOST_CODES = 12
_COMPACT, _FIRST_DAY, _LAST_DAY = "%Y%m%d", 19000101, 20991231


@dataclass(frozen=True)
class Column:
    """A feature column, read as its use says.

    Attributes:
        name: of the column.
        use: what it is used for.
        series: the cells as they stand.
        cells: read as numbers; of texts and categories only which are empty.
        texts: [N] the cells of texts and categories; empty for others.
        unreadable: [N] bool, cells that are no number or no date.
        n_unique: different values.
        gone: [N] bool, cells with nothing to go by.
    """

    name: str
    use: ColumnUse
    series: Any
    cells: Numbers
    texts: Array
    unreadable: Array
    n_unique: int
    gone: Array

    @property
    def blank(self) -> Array:
        """[N] bool, empty cells."""
        return self.cells.blank

    @property
    def may_be_codes(self) -> bool:
        """True if nobody said that it is a number, and it holds few whole numbers, each in many rows."""
        few = 2 < self.n_unique <= min(_MOST_CODES, len(self.series) // 10)
        values = self.cells.values[~self.gone]
        return self.use.use == "number" and self.use.guessed and few and bool((values % 1 == 0).all())

    @classmethod
    def read(cls, name: str, series: Any, use: ColumnUse, decimal: str) -> Column:
        """The column as its use reads it.

        Args:
            name: of the column.
            series: pandas Series.
            use: what it is used for.
            decimal: the table's decimal sign; the use's own goes before it.
        """
        none = np.zeros(len(series), dtype=bool)
        if use.use in ("category", "text"):
            texts, blank = read_texts(series, blanks=("",) if use.use == "text" else BLANKS)
            cells = Numbers(np.full(len(series), np.nan), blank, ~blank)
            return cls(name, use, series, cells, texts, none, len(set(texts[~blank].tolist())), blank)
        dates = use.use == "date"
        cells = read_dates(series, use.format) if dates else read_numbers(series, use.decimal or decimal)
        missing = cells.blank | cells.unreadable | np.isinf(cells.values)
        n_unique = int(np.unique(cells.values[~missing]).size)
        return cls(name, use, series, cells, none[:0], cells.unreadable, n_unique, missing)

    def examine(self, options: TableOptions, locate: Callable[[int], str], found: Findings) -> None:
        """Say what its use makes of it, and what stands in the way of that.

        Args:
            options: of the table.
            locate: row -> "line 7".
            found: gets the problems.
        """
        name, use, n_gone = self.name, self.use.use, int(self.gone.sum())
        leave = Fix.to_use("Leave the column out", "leave out", name)
        if n_gone == len(self.series):
            content = {"number": "no number", "date": "no date"}.get(use, "nothing")
            row = int(self.unreadable.argmax())
            sample = f" ({cut(str(self.series.iloc[row]))} on {locate(row)})" if self.unreadable.any() else ""
            ways = (Fix.to_use("Use it as a category", "category", name), leave)
            message = f"Column {name!r} holds {content}{sample}: use it as something else, or leave it out."
            found.choice("use", message, name, ways)
            return
        if use == "category" and self.n_unique > options.max_categories:
            ways = (Fix.to_use("Use it as text", "text", name), leave)
            found.choice(
                "many categories",
                f"Column {name!r} holds {self.n_unique:,} different values, too many for categories (at most "
                f"{options.max_categories:,}): use it as text or as a number, or leave it out.",
                name,
                ways,
            )
            return
        if use == "date" and (self.use.guessed or not self.use.format):
            self._ask_which_stands_first(found)
        if self.use.guessed and use in ("date", "number"):
            self._ask_for_the_date(found, leave)
        # who says a use says what it makes of its cells
        tell = found.guess if self.use.guessed and not options.empty else found.note
        if self.unreadable.any():
            row, n = int(self.unreadable.argmax()), int(self.unreadable.sum())
            tell(
                "numeric text",
                f"What is no {use} in {name!r} ({counted(n, 'cell')}, such as "
                f"{cut(str(self.series.iloc[row]))} on {locate(row)}) counts as empty.",
                name,
                (self._fix(f"It counts as empty, {name} is a {use}"), leave),
            )
        if n_gone and self.use.empty != "drop":
            row, infinite = int(self.gone.argmax()), int((np.isinf(self.cells.values) & self.gone).sum())
            alone = self.n_unique == 1 and use != "category"
            also = f", {infinite:,} of them infinite" if infinite else ""
            tell(
                "missing",
                f"Empty cells of {name!r} ({n_gone:,}{also}, first on {locate(row)}) {self._filled}.",
                name,
                (
                    self._fix("Fill them in"),
                    *([self._fix("Empty says something", empty="own")] if alone else []),
                    self._fix("Leave those rows out", empty="drop"),
                    leave,
                ),
            )
        if self.n_unique == 1 and not n_gone:
            message = f"Column {name!r} holds one value on every row, which tells nothing."
            found.note("constant", message, name)

    @property
    def _filled(self) -> str:
        """Words for what empty cells become."""
        if self.use.use == "text":
            return "count as a text without words"
        if self.use.empty == "median":
            return "count as the commonest" if self.use.use == "category" else "get the median"
        if self.use.use == "category":
            return "are a category of their own"
        return "get the median, and a sign that they were"

    def _fix(self, words: str, **changes: str) -> Fix:
        return Fix(words, {"columns": {self.name: self.use.to_json() | changes}})

    def _ask_for_the_date(self, findings: Findings, leave: Fix) -> None:
        """Ask about years of two digits that lie ahead, and about numbers that are dates as well."""
        import pandas as pd

        values, form = self.cells.values[~self.gone], self.use.format
        last, today = np.datetime64(int(values.max()), "D"), np.datetime64("today", "D")
        if "%y" in form and last > today:
            cell = self.series.iloc[int(np.nanargmax(self.cells.values))]
            message = f"{cell} in {self.name!r} is read as a day to come, {last}."
            findings.guess("years", message, self.name, (self._fix("Right so", format=form), leave))
        among = self.use.use == "number" and values.min() >= _FIRST_DAY and values.max() <= _LAST_DAY
        if among and (values % 1 == 0).all():
            numerals = pd.Series([f"{value:.0f}" for value in values])
            if not read_dates(numerals, _COMPACT).unreadable.any():
                findings.guess(
                    "date?",
                    f"{numerals[0]} in {self.name!r} is read as a number, and may be a date.",
                    self.name,
                    (self._fix("It is a number"), self._fix("It is a date", use="date", format=_COMPACT)),
                )

    def _ask_which_stands_first(self, findings: Findings) -> None:
        form = self.use.format or date_format(self.series) or ""
        alternative, cell = other_reading(self.series, form)
        if alternative:
            findings.guess(
                "date",
                f"{cell} in {self.name!r} is read as day, month, year; no date of the column says whether "
                "the month stands first.",
                self.name,
                (
                    self._fix("The day stands first", format=form),
                    self._fix("The month stands first", format=alternative),
                ),
            )


def typical(values: Array) -> float:
    """The median, also where the middle two add up to more than a float holds.

    Args:
        values: [N] finite, at least one.
    """
    with np.errstate(over="ignore"):
        middle = float(np.median(values))
    return middle if np.isfinite(middle) else float(np.quantile(values, 0.5, method="lower"))
