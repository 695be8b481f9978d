"""One column of a table under given options: what it holds, what is wrong with it, and its features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.pools.cells import BLANKS, Numbers, decimal_of, read_numbers, read_texts
from workbench.pools.dates import date_format, other_reading, read_dates
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.report import ColumnType, Findings, Fix, counted
from workbench.pools.tables.uses import ColumnUse
from workbench.reading import cut


@dataclass(frozen=True)
class Column:
    """A feature column, read.

    Attributes:
        name: of the column.
        type: what it holds.
        series: the cells as they stand.
        cells: read as numbers.
        infinite: [N] bool, infinite numbers.
        unreadable: [N] bool, texts in a column of numbers.
        n_unique: different values.
        as_text: whether it is used as text.
        used: whether it becomes features.
        gone: [N] bool, cells with nothing to go by.
        use: what it is used for, where that was said or guessed column by column.
    """

    name: str
    type: ColumnType
    series: Any
    cells: Numbers
    infinite: Array
    unreadable: Array
    n_unique: int
    as_text: bool
    used: bool
    gone: Array
    use: ColumnUse | None = None

    @property
    def blank(self) -> Array:
        """[N] bool, empty cells."""
        return self.cells.blank

    @classmethod
    def read(cls, name: str, series: Any, options: TableOptions) -> Column:
        """Find out what a column holds, and what the options make of it."""
        cells = read_numbers(series, options.decimal or "")
        blank = cells.blank
        finite = int(np.count_nonzero(np.isfinite(cells.values)))
        readable = int(np.count_nonzero(~blank & ~cells.unreadable))
        filled = int(np.count_nonzero(~blank))
        kind: ColumnType
        if readable == filled:
            kind = "number" if finite else "empty"
        else:
            kind = "mixed" if readable * 2 > filled and finite else "text"
        none = np.zeros(len(series), dtype=bool)
        infinite = none if kind == "text" else np.isinf(cells.values)
        unreadable = cells.unreadable if kind == "mixed" else none
        if kind in ("number", "empty"):
            n_unique = int(np.unique(cells.values[~blank]).size)
        else:
            n_unique = int(series[~blank].nunique())
        as_text = kind == "text" or (kind == "mixed" and options.numeric_text == "text")
        if as_text:
            used, gone = options.text != "drop", blank
        else:
            constant = n_unique == 1 and not blank.any() and not unreadable.any()
            used = kind != "empty" and not (constant and options.constant == "drop")
            gone = blank | infinite
            if options.numeric_text == "missing":
                gone = gone | unreadable
        return cls(name, kind, series, cells, infinite, unreadable, n_unique, as_text, used, gone)

    @classmethod
    def used_as(cls, name: str, series: Any, use: ColumnUse, options: TableOptions) -> Column:
        """Find out what a column holds, and what its own use makes of it."""
        decimal = use.decimal or options.decimal or ""
        none = np.zeros(len(series), dtype=bool)
        if use.use in ("category", "text"):
            texts, blank = read_texts(series, blanks=("",) if use.use == "text" else BLANKS)
            cells = Numbers(np.full(len(series), np.nan), blank, ~blank)
            n_unique = len(set(texts[~blank].tolist()))
            return cls(name, "text", series, cells, none, none, n_unique, True, True, blank, use)
        cells = read_dates(series, use.format) if use.use == "date" else read_numbers(series, decimal)
        infinite = np.isinf(cells.values)
        gone = cells.blank | cells.unreadable | infinite
        n_unique = int(np.unique(cells.values[~gone]).size)
        kind: ColumnType = "mixed" if cells.unreadable.any() else "number" if n_unique else "empty"
        return cls(name, kind, series, cells, infinite, cells.unreadable, n_unique, False, True, gone, use)

    def examine_use(self, most: int, locate: Callable[[int], str], found: Findings) -> None:
        """Say what its use makes of it, and what stands in the way of that.

        Args:
            most: most categories of a column.
            locate: row -> "line 7".
            found: gets the problems.
        """
        assert self.use is not None
        name, use, n_gone = self.name, self.use.use, int(self.gone.sum())
        leave = Fix("Leave the column out", {"columns": {name: {"use": "leave out"}}})
        if n_gone == len(self.series):
            what = {"number": "no number", "date": "no date"}.get(use, "nothing")
            row = int(self.unreadable.argmax())
            such = f" ({cut(str(self.series.iloc[row]))} on {locate(row)})" if self.unreadable.any() else ""
            ways = (Fix("Use it as a category", {"columns": {name: {"use": "category"}}}), leave)
            found.choice(
                "use",
                f"Column {name!r} holds {what}{such}: use it as something else, or leave it out.",
                name,
                ways,
            )
            return
        if use == "category" and self.n_unique > most:
            ways = (Fix("Use it as text", {"columns": {name: {"use": "text"}}}), leave)
            found.choice(
                "many categories",
                f"Column {name!r} holds {self.n_unique:,} different values, too many for categories (at most "
                f"{most:,}): use it as text or as a number, or leave it out.",
                name,
                ways,
            )
            return
        if use == "date" and (self.use.guessed or not self.use.format):
            self._ask_which_stands_first(found)
        if self.unreadable.any():
            row, n = int(self.unreadable.argmax()), int(self.unreadable.sum())
            found.note(
                "numeric text",
                f"What is no {use} in {name!r} ({counted(n, 'cell')}, such as "
                f"{cut(str(self.series.iloc[row]))} "
                f"on {locate(row)}) counts as empty.",
                name,
            )
        if n_gone and self.use.empty != "drop":
            how = (
                "are a category of their own"
                if use == "category"
                else "get the median, and a sign that they were"
            )
            if self.use.empty == "median":
                how = "count as the commonest" if use == "category" else "get the median"
            how = "count as a text without words" if use == "text" else how
            found.note("missing", f"Empty cells of {name!r} ({n_gone:,}) {how}.", name)
        if self.n_unique == 1 and not n_gone:
            found.note(
                "constant", f"Column {name!r} holds one value on every row, which tells nothing.", name
            )

    def _ask_which_stands_first(self, found: Findings) -> None:
        assert self.use is not None
        form = self.use.format or date_format(self.series) or ""
        other, cell = other_reading(self.series, form)
        if not other:
            return
        ways = {"The day stands first": form, "The month stands first": other}
        found.guess(
            "date",
            f"{cell} in {self.name!r} is read as day, month, year; no date of the column says whether the "
            "month stands first.",
            self.name,
            tuple(
                Fix(words, {"columns": {self.name: self.use.to_json() | {"format": way}}})
                for words, way in ways.items()
            ),
        )

    def examine(self, options: TableOptions, locate: Callable[[int], str], found: Findings) -> None:
        """Say what is wrong, in the order a person would mend it.

        Args:
            options: of the table.
            locate: row -> "line 7".
            found: gets the problems.
        """
        if self.type == "empty":
            what = "holds no finite number" if self.infinite.any() else "is empty"
            found.note("empty", f"Column {self.name!r} {what} and is left out.", self.name)
            return
        sign, cell = decimal_of(self.series) if options.decimal is None else ("", "")
        if self.type != "number" and "," in cell:
            self._about_decimal(sign, found)
            return
        if self.type == "mixed":
            self._about_mixed(options, locate, found)
        if self.as_text:
            self._about_text(options, locate, found)
        elif self.n_unique == 1 and not self.blank.any():
            self._about_constant(options, found)
        if self.used and self.gone.any():
            self._about_missing(options, locate, found)

    def _leave_out(self, options: TableOptions) -> Fix:
        return Fix("Leave the column out", {"exclude": (*options.exclude, self.name)})

    def _about_decimal(self, sign: str, found: Findings) -> None:
        comma = Fix("Read commas as decimal points", {"decimal": ","})
        point = Fix("Leave commas between thousands out", {"decimal": "."})
        held = f"Column {self.name!r} holds numbers with commas ({cut(str(self.series.iloc[0]))})"
        ways = {
            ",": (f'{held}, which are decimal commas. Say decimal=",".', (comma,)),
            ".": (f'{held} between thousands. Say decimal=".".', (point,)),
        }
        both = f'{held}: decimal commas, or commas between thousands? Say decimal="," or decimal=".".'
        words, fixes = ways.get(sign, (both, (comma, point)))
        found.choice("decimal", words, self.name, fixes)

    def _about_mixed(self, options: TableOptions, locate: Callable[[int], str], found: Findings) -> None:
        row, n = int(self.unreadable.argmax()), int(self.unreadable.sum())
        if options.numeric_text == "error":
            found.choice(
                "numeric text",
                f"Column {self.name!r} holds numbers, but {cut(str(self.series.iloc[row]))} on "
                f"{locate(row)} ({counted(n, 'such cell')}). Take them as empty with "
                'numeric_text="missing", or the column as text with numeric_text="text".',
                self.name,
                (
                    Fix("Take them as empty cells", {"numeric_text": "missing"}),
                    Fix("Take the column as text", {"numeric_text": "text"}),
                    self._leave_out(options),
                ),
            )
        elif options.numeric_text == "missing":
            found.note("numeric text", f"{counted(n, 'text')} in {self.name!r} taken as empty.", self.name)

    def _about_text(self, options: TableOptions, locate: Callable[[int], str], found: Findings) -> None:
        name, few = self.name, self.n_unique <= options.max_categories
        if options.text == "drop":
            found.note("text", f"Text column {name!r} is shown to people but not used as a feature.", name)
        elif options.text == "one-hot" and few:
            found.note("text", f"Column {name!r} becomes {self.n_unique} features of 0 and 1.", name)
        elif options.text == "one-hot":
            found.choice(
                "many categories",
                f"Column {name!r} holds {self.n_unique:,} different texts, too many for one-hot "
                f"(max_categories={options.max_categories}). Leave it out with exclude={name!r}, or use "
                'text="drop".',
                name,
                (self._leave_out(options),),
            )
        else:
            drop = Fix("Leave text columns out", {"text": "drop"})
            if few:
                advice = (
                    'text="one-hot" makes a 0/1 feature of each text, text="drop" leaves such columns out'
                )
                fixes = (Fix("One 0/1 feature for each text", {"text": "one-hot"}), drop)
            else:
                advice = (
                    'text="drop" leaves such columns out, '
                    f"text_column={name!r} makes the texts the items to be labelled"
                )
                fixes = (drop, Fix("They are the texts to be labelled", {"text_column": name}))
            row = int((~self.blank).argmax())
            found.choice(
                "text",
                f"Column {name!r} holds text ({cut(str(self.series.iloc[row]))} on {locate(row)}; "
                f"{self.n_unique:,} different): {advice}.",
                name,
                fixes,
            )

    def _about_constant(self, options: TableOptions, found: Findings) -> None:
        if options.constant == "drop":
            found.note("constant", f"Constant column {self.name!r} is left out.", self.name)
            return
        found.note(
            "constant",
            f"Column {self.name!r} holds {cut(str(self.series.iloc[0]))[1:-1]} on every row: kept, though it "
            "tells nothing.",
            self.name,
            (Fix("Leave constant columns out", {"constant": "drop"}),),
        )

    def _about_missing(self, options: TableOptions, locate: Callable[[int], str], found: Findings) -> None:
        row, n, name = int(self.gone.argmax()), int(self.gone.sum()), self.name
        if options.missing == "error":
            infinite = int(self.infinite.sum())
            what = "infinite" if infinite == n else "empty"
            also = f" ({infinite} of them infinite)" if 0 < infinite < n else ""
            found.choice(
                "missing",
                f"Column {name!r} has {counted(n, f'{what} cell')}{also}, first on {locate(row)}. "
                'missing="drop" leaves those rows out, missing="impute" fills in the column\'s median'
                " (for text a category of its own).",
                name,
                (
                    Fix("Leave those rows out", {"missing": "drop"}),
                    Fix("Fill them in", {"missing": "impute"}),
                    self._leave_out(options),
                ),
            )
        elif options.missing == "impute":
            found.note("missing", f"{counted(n, 'cell')} of {name!r} filled in.", name)


def typical(values: Array) -> float:
    """The median, also where the middle two add up to more than a float holds.

    Args:
        values: [N] finite, at least one.
    """
    with np.errstate(over="ignore"):
        middle = float(np.median(values))
    return middle if np.isfinite(middle) else float(np.quantile(values, 0.5, method="lower"))
