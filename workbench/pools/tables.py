"""Tables with names on their columns: what is in them, what is wrong with them, and the pool they make.

`inspect_table` and `load_table` share one examination: whatever the first lists as a problem without
an answer, the second refuses with the same words. Nothing is dropped, filled in or recoded unless an
option says so; what an option did is written into the pool's notes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from workbench.arrays import Array, Ints
from workbench.errors import InputError
from workbench.pools.cells import Numbers, is_text, looks_comma_decimal, plain_text, read_numbers, read_texts
from workbench.pools.fingerprints import fingerprint_values, fingerprint_words
from workbench.pools.items import RowItems, RowNumbers, TextItems, plain
from workbench.pools.pool import Pool
from workbench.pools.readers import (
    MAX_BYTES,
    MAX_CELLS,
    RawTable,
    guess_encoding,
    read_bytes,
    read_csv,
    read_parquet,
)
from workbench.pools.table_map import CategoryColumn, NumberColumn, TableFeatureMap

ColumnType = Literal["number", "text", "mixed", "empty"]
Role = Literal["feature", "target", "id", "left out"]

_CHOICES = {
    "ragged": ("error", "drop"),
    "missing": ("error", "drop", "impute"),
    "numeric_text": ("error", "missing", "text"),
    "text": ("error", "one-hot", "drop"),
    "constant": ("keep", "drop"),
    "duplicate_ids": ("error", "first"),
    "decimal": (None, ".", ","),
    "header": (None, True, False),
}
_BLANK_WORD = np.uint64(0xB1A9)
_ID_NAMES = ("id", "_id", "uuid", "item_id", "row_id")
_TARGET_NAMES = ("target", "label", "class", "y", "category")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How a table is to be read; every default refuses rather than guesses.

    Attributes:
        name: of the pool; None takes the file's.
        target: column of the classes; None when people are to label. Empty cells there are unlabelled items.
        id_column: column of the items' ids; "auto" takes a column called id, uuid, ... when there is
            one; None numbers the rows.
        text_column: column of texts that are the items themselves; makes a pool of texts whose features
            are their topics, and leaves every other column out.
        exclude: columns to leave out of the features (they are still shown).
        classes: names of the classes, in order; None takes those found in the target, sorted.
        encoding: of a CSV that is not UTF-8.
        delimiter: of a CSV; None finds it.
        header: whether a CSV's first line holds names; None takes it so unless it is all numbers.
        decimal: "." or "," in numbers of a CSV; None means "." and reports columns that look otherwise.
        ragged: lines with too many or too few cells: "error" or "drop".
        missing: empty or infinite cells: "error", "drop" the row, or "impute" the column's median
            (for texts a category of its own).
        numeric_text: cells that are no number in a column of numbers: "error", take them as
            "missing", or take the whole column as "text".
        text: columns of texts: "error", "one-hot" or "drop".
        constant: columns with one value: "keep" or "drop".
        duplicate_ids: ids met twice: "error" or keep the "first" of them.
        max_categories: most categories of a column for one-hot.
        max_classes: most classes of a target.
        max_bytes: most bytes read.
        max_cells: most rows x columns.
    """

    name: str | None = None
    target: str | None = None
    id_column: str | None = "auto"
    text_column: str | None = None
    exclude: tuple[str, ...] = ()
    classes: tuple[str, ...] | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    decimal: str | None = None
    ragged: str = "error"
    missing: str = "error"
    numeric_text: str = "error"
    text: str = "error"
    constant: str = "keep"
    duplicate_ids: str = "error"
    max_categories: int = 100
    max_classes: int = 1000
    max_bytes: int = MAX_BYTES
    max_cells: int = MAX_CELLS

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> TableOptions:
        """Check option names and values.

        Args:
            options: keyword arguments as a person gave them.

        Returns:
            The options.

        Raises:
            InputError: an unknown option or value; says what there is.
        """
        known = [entry.name for entry in fields(cls)]
        for name, value in options.items():
            if name not in known:
                raise InputError(f"Tables have no option {name!r}. They have: {', '.join(known)}.")
            allowed = _CHOICES.get(name)
            if allowed is not None and value not in allowed:
                raise InputError(f"{name}={value!r} is not one of {', '.join(map(repr, allowed))}.")
        given = dict(options)
        if isinstance(given.get("exclude"), str):
            given["exclude"] = (given["exclude"],)
        for name in ("exclude", "classes"):
            if given.get(name) is not None:
                given[name] = tuple(map(str, given[name]))
        return cls(**given)


@dataclass(frozen=True)
class Fix:
    """One way out of a problem.

    Attributes:
        label: a few words for a button.
        options: keyword arguments for `load_pool` and `inspect_table`.
    """

    label: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """Something about a table that a person should know or decide.

    Attributes:
        code: a stable short name ("missing", "text", ...).
        severity: "error" and "choice" stop a pool from being made ("choice" has fixes), "note" does not.
        message: what is wrong, with the column and the line.
        column: its name, or "".
        fixes: ways out.
    """

    code: str
    severity: Literal["error", "choice", "note"]
    message: str
    column: str = ""
    fixes: tuple[Fix, ...] = ()


@dataclass(frozen=True)
class ColumnReport:
    """What is in one column.

    Attributes:
        name: of the column.
        type: "number", "text", "mixed" (mostly numbers, some texts) or "empty".
        role: what it is used for under the given options.
        n_missing: empty cells.
        n_infinite: infinite cells.
        n_unreadable: texts in a column of numbers.
        n_unique: different values.
        examples: a few of them.
    """

    name: str
    type: ColumnType
    role: Role
    n_missing: int
    n_infinite: int
    n_unreadable: int
    n_unique: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class TableReport:
    """What is in a table and what stands in the way of making a pool from it.

    Attributes:
        name: of the file.
        format: "csv" or "parquet"; "" when it could not be read.
        n_rows: rows, without lines left out.
        encoding: of a CSV.
        delimiter: of a CSV.
        columns: one report a column.
        classes: class -> how many items, when a target is named.
        problems: what a person should know or decide, worst first.
        preview: the first rows, column -> cell.
    """

    name: str
    format: str = ""
    n_rows: int = 0
    encoding: str = ""
    delimiter: str = ""
    columns: tuple[ColumnReport, ...] = ()
    classes: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    preview: tuple[Mapping[str, Any], ...] = ()

    @property
    def ready(self) -> bool:
        """Whether `load_pool` with the same options would make a pool."""
        return not any(problem.severity != "note" for problem in self.problems)


def inspect_table(
    source: str | Path | bytes, *, file_name: str | None = None, preview: int = 10, **options: Any
) -> TableReport:
    """Look at a table without making a pool of it.

    Args:
        source: a path, or an upload's bytes.
        file_name: name of an upload; its ending says what it is.
        preview: rows to show.
        options: those of `TableOptions`, as they would be given to `load_pool`.

    Returns:
        The columns and the problems that remain under these options, each with its ways out. A file
        that cannot be read at all gives a report with one problem.

    Raises:
        InputError: an option there is not. What is wrong with the file itself is in the report.
    """
    given = TableOptions.of(options)
    name = source_name(source, file_name)
    try:
        raw = read_raw(source, name, given)
    except InputError as error:
        fixes: tuple[Fix, ...] = ()
        if "is not UTF-8" in str(error):
            guess = guess_encoding(read_bytes(source, name, given.max_bytes))
            fixes = (Fix(f"Read it as {guess}", {"encoding": guess}),)
        severity: Literal["error", "choice"] = "choice" if fixes else "error"
        return TableReport(name, problems=(Problem("unreadable", severity, str(error), fixes=fixes),))
    return _Examination(raw, given).report(preview)


def load_table(source: str | Path | bytes, *, file_name: str | None = None, **options: Any) -> Pool:
    """Make a pool of a table.

    Args:
        source: a path, or an upload's bytes.
        file_name: name of an upload; its ending says what it is.
        options: those of `TableOptions`.

    Returns:
        The pool; its `notes` say what was dropped, filled in or recoded.

    Raises:
        InputError: the table needs a decision or cannot be used; the message says where and what to do.
    """
    given = TableOptions.of(options)
    return _Examination(read_raw(source, source_name(source, file_name), given), given).pool()


def load_frame(frame: Any, label: str, **options: Any) -> Pool:
    """Make a pool of a DataFrame.

    Args:
        frame: pandas DataFrame.
        label: what to call it in messages.
        options: those of `TableOptions`.

    Returns:
        The pool.

    Raises:
        InputError: as `load_table`.
    """
    frame = frame.reset_index(drop=True)
    frame.columns = [str(name) for name in frame.columns]
    if not frame.columns.is_unique:
        raise InputError(f"{label} has two columns of one name. Rename one of them.")
    return _Examination(RawTable(label, "frame", frame), TableOptions.of(options)).pool()


def read_rows(source: str | Path | bytes, *, file_name: str | None = None, **options: Any) -> Any:
    """The rows of a table as a DataFrame, for a feature map to transform.

    Args:
        source: a path, or an upload's bytes.
        file_name: name of an upload.
        options: encoding, delimiter, header, ragged, max_bytes, max_cells of `TableOptions`.

    Returns:
        A pandas DataFrame; the cells of a CSV are texts.

    Raises:
        InputError: the file cannot be read, or has ragged lines and ragged is "error".
    """
    given = TableOptions.of(options)
    raw = read_raw(source, source_name(source, file_name), given)
    if raw.ragged and given.ragged == "error":
        raise InputError(_ragged_message(raw))
    return raw.frame


def source_name(source: str | Path | bytes, file_name: str | None) -> str:
    """The name a source goes by in messages."""
    if file_name:
        return Path(file_name).name
    return "the upload" if isinstance(source, bytes) else Path(source).name


def read_raw(source: str | Path | bytes, name: str, options: TableOptions) -> RawTable:
    """Cells as they stand.

    Raises:
        InputError: the file cannot be read.
    """
    is_folder = not isinstance(source, bytes) and Path(source).is_dir()
    packed = isinstance(source, bytes) and source[:4] == b"PAR1"
    if name.lower().endswith((".parquet", ".pq")) or is_folder or packed:
        return read_parquet(source, name, max_bytes=options.max_bytes, max_cells=options.max_cells)
    return read_csv(
        read_bytes(source, name, options.max_bytes),
        name,
        encoding=options.encoding,
        delimiter=options.delimiter,
        header=options.header,
        max_cells=options.max_cells,
    )


@dataclass
class _Column:
    """One column, read."""

    name: str
    type: ColumnType
    series: Any
    cells: Numbers
    blank: Array
    infinite: Array
    unreadable: Array
    n_unique: int


class _Examination:
    """Everything known about a raw table under given options."""

    def __init__(self, raw: RawTable, options: TableOptions) -> None:
        self.raw = raw
        self.options = options
        self.frame = raw.frame
        self.names = [str(name) for name in self.frame.columns]
        self.frame.columns = self.names
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.columns: dict[str, _Column] = {}
        self.counts: dict[str, int] = {}
        self.truth: Ints | None = None
        self.classes: tuple[str, ...] = options.classes or ()
        self.ids: Array | None = None
        self.texts: Array | None = None  # of a pool of texts
        self.keep = np.ones(len(self.frame), dtype=bool)
        self.id_column = ""
        self._examine()

    # What is wrong, in the order a person would mend it ----------------------------------------------

    def _examine(self) -> None:
        raw, options = self.raw, self.options
        if raw.ragged:
            if options.ragged == "error":
                self._choice(
                    "ragged",
                    _ragged_message(raw),
                    fixes=(Fix("Leave those lines out", {"ragged": "drop"}),),
                )
            else:
                self._note("ragged", f"{_count(len(raw.ragged), 'ragged line')} left out.")
        if raw.header_looks_like_data:
            self._choice(
                "header",
                f"The first line of {raw.name} holds numbers only: is it a header or the first item? "
                "Say header=False when it is an item, header=True when those are names.",
                fixes=(
                    Fix("It is the first item", {"header": False}),
                    Fix("It holds the names", {"header": True}),
                ),
            )
        for name in raw.renamed:
            self._note("unnamed", f"A column without a name is called {name!r}.", name)
        if len(self.frame) == 0:
            self._error("no rows", f"{raw.name} has a header but no rows. Add a row for each item.")
            return
        if len(self.frame) == 1:
            self._error("one row", f"{raw.name} has a single row; a pool needs at least 2 items.")
        for wanted, what in (
            (options.target, "target"),
            (options.id_column, "id_column"),
            (options.text_column, "text_column"),
        ):
            if wanted not in (None, "auto") and wanted not in self.names:
                self._error(what, f"{raw.name} has no column {wanted!r}; it has {_some(self.names)}.")
        for wanted in options.exclude:
            if wanted not in self.names:
                self._error(
                    "exclude", f"There is no column {wanted!r} to leave out; it has {_some(self.names)}."
                )
        if options.target in self.names:
            self._read_target(str(options.target))
        elif options.target is None:
            named = [name for name in self.names if name.lower() in _TARGET_NAMES]
            if named and named[0] not in options.exclude:
                self._note(
                    "target?",
                    f"Column {named[0]!r} looks like the classes, but no target is named: as it stands it is "
                    "a feature.",
                    named[0],
                    fixes=(
                        Fix("It holds the classes", {"target": named[0]}),
                        Fix("Leave it out", {"exclude": (*options.exclude, named[0])}),
                    ),
                )
            if options.classes is not None:
                self._check_classes_given()
        self._read_ids()
        if options.text_column in self.names:
            self._read_items(str(options.text_column))
            return
        for name in self.feature_names:
            self._read_column(name)
        self._after_columns()

    @property
    def feature_names(self) -> list[str]:
        out = {self.options.target, self.id_column, *self.options.exclude}
        return [name for name in self.names if name not in out]

    def _read_target(self, name: str) -> None:
        texts, blank = read_texts(self.frame[name], blanks=("",))
        known = texts[~blank].astype(str)
        if known.size == 0:
            self._error("target", f"The target column {name!r} is empty on every row.", name)
            return
        found, counts = np.unique(known, return_counts=True)
        classes = class_order([str(value) for value in found])
        self.counts = {key: int(counts[np.searchsorted(found, key)]) for key in classes}
        if self.options.classes is not None:
            extra = [key for key in classes if key not in self.options.classes]
            if extra:
                row = int(np.flatnonzero((texts == extra[0]) & ~blank)[0])
                self._error(
                    "classes",
                    f"Column {name!r}, {self.raw.locate(row)} holds {extra[0]!r}, which is not among the "
                    f"classes given ({_some(self.options.classes)}).",
                    name,
                )
                return
            classes = list(self.options.classes)
        if len(classes) > self.options.max_classes:
            self._error(
                "many classes",
                f"The target column {name!r} holds {len(classes):,} different values in {len(texts):,} rows: "
                "more like an id or a measurement than classes. Name another column as target"
                f" (or raise max_classes, now {self.options.max_classes:,}).",
                name,
            )
            return
        if len(classes) < 2:
            self._error(
                "one class",
                f"The target column {name!r} holds one class only ({classes[0]!r}); there is nothing to tell "
                "apart. Name another column, or give the names of all classes with classes=.",
                name,
            )
            return
        if len(classes) >= len(texts):
            self._error(
                "more classes than items",
                f"The target column {name!r} has {len(classes)} classes for {len(texts)} items; a pool needs "
                "more items than classes. Name another column, or add items.",
                name,
            )
            return
        folded: dict[str, str] = {}
        for key in classes:
            other = folded.setdefault(key.strip().casefold(), key)
            if other != key:
                self._note(
                    "similar classes",
                    f"The classes {other!r} and {key!r} differ only in spaces or capitals; both are kept.",
                    name,
                )
        position = {key: i for i, key in enumerate(classes)}
        truth = np.full(len(texts), -1, dtype=np.int64)
        truth[~blank] = [position[str(text)] for text in texts[~blank]]
        self.truth, self.classes = truth, tuple(classes)
        if blank.any():
            self._note("unlabelled", f"{_count(int(blank.sum()), 'item')} without a class in {name!r}.", name)

    def _check_classes_given(self) -> None:
        classes = self.options.classes or ()
        if len(classes) < 2 or len(set(classes)) < len(classes):
            self._error("classes", "Give at least two different names of classes.")
        elif len(classes) >= len(self.frame):
            self._error(
                "more classes than items",
                f"{len(classes)} classes for {len(self.frame)} items; a pool needs more items than classes.",
            )

    def _read_ids(self) -> None:
        wanted = self.options.id_column
        if wanted == "auto":
            wanted = next(
                (name for name in self.names if name.lower() in _ID_NAMES and name != self.options.target),
                None,
            )
            if wanted in self.options.exclude:
                wanted = None
            if wanted is not None:
                self._note("id", f"Column {wanted!r} is taken as the items' ids.", wanted)
        if wanted is None or wanted not in self.names:
            return
        self.id_column = wanted
        texts, blank = read_texts(self.frame[wanted], blanks=("",))
        if blank.any():
            self._choice(
                "id",
                f"Column {wanted!r} has no id on {self.raw.locate(int(blank.argmax()))}. Complete it, or "
                "number the rows with id_column=None.",
                wanted,
                (Fix("Number the rows instead", {"id_column": None, "exclude": self._also(wanted)}),),
            )
            return
        _, first, inverse, counts = np.unique(
            texts.astype(str), return_index=True, return_inverse=True, return_counts=True
        )
        if (counts > 1).any():
            again = np.flatnonzero(first[inverse] != np.arange(len(texts)))
            row = int(again[0])
            if self.options.duplicate_ids == "error":
                self._choice(
                    "duplicate ids",
                    f"The id {str(texts[row])!r} in column {wanted!r} stands on {self.raw.locate(row)} "
                    f"and before ({_count(len(again), 'row')} with an id met before). Correct them, "
                    'keep the first of each with duplicate_ids="first", or number the rows with '
                    "id_column=None.",
                    wanted,
                    (
                        Fix("Keep the first of each", {"duplicate_ids": "first"}),
                        Fix("Number the rows instead", {"id_column": None, "exclude": self._also(wanted)}),
                    ),
                )
            else:
                self.keep[again] = False
                self._note("duplicate ids", f"{_count(len(again), 'row')} with an id met before left out.")
        self.ids = texts

    def _also(self, name: str) -> tuple[str, ...]:
        return (*self.options.exclude, name)

    def _read_items(self, name: str) -> None:
        """The texts of a pool of texts."""
        texts, blank = read_texts(self.frame[name], blanks=("",))
        if name in (self.options.target, self.id_column):
            self._error(
                "text_column", f"Column {name!r} cannot be the items and something else as well.", name
            )
            return
        self.texts = texts
        if blank.any():
            if self.options.missing == "drop":
                self.keep &= ~blank
                self._note("missing", f"{_count(int(blank.sum()), 'empty text')} left out.", name)
            else:
                self._choice(
                    "missing",
                    f"Column {name!r} has {_count(int(blank.sum()), 'empty text')}, first on "
                    f'{self.raw.locate(int(blank.argmax()))}. missing="drop" leaves them out.',
                    name,
                    (Fix("Leave empty texts out", {"missing": "drop"}),),
                )
        if int(self.keep.sum()) < 2:
            self._error("no rows", f"Fewer than 2 texts are left of column {name!r}.", name)

    def _read_column(self, name: str) -> None:
        options, series = self.options, self.frame[name]
        if not is_text(series):
            cells = read_numbers(series)
            kind: ColumnType = "empty" if cells.blank.all() else "number"
        else:
            cells = read_numbers(series, options.decimal or ".")
            readable = int(np.count_nonzero(~cells.blank & ~cells.unreadable))
            filled = int(np.count_nonzero(~cells.blank))
            if filled == 0:
                kind = "empty"
            elif readable == filled:
                kind = "number"
            else:
                kind = "mixed" if readable * 2 > filled else "text"
        infinite = np.isinf(cells.values)
        if kind in ("number", "empty"):
            n_unique = int(np.unique(cells.values[~cells.blank]).size)
        else:
            n_unique = int(series[~cells.blank].nunique())
        column = _Column(
            name,
            kind,
            series,
            cells,
            cells.blank,
            infinite if kind != "text" else np.zeros(len(series), dtype=bool),
            cells.unreadable if kind == "mixed" else np.zeros(len(series), dtype=bool),
            n_unique,
        )
        self.columns[name] = column
        if kind == "empty":
            self._note("empty", f"Column {name!r} is empty and left out.", name)
            return
        if kind == "text" and options.decimal is None and looks_comma_decimal(series):
            self._choice(
                "decimal",
                f"Column {name!r} holds numbers with a decimal comma ({str(series.iloc[0])!r}). "
                'Say decimal=",".',
                name,
                (Fix("Read commas as decimal points", {"decimal": ","}),),
            )
            return
        if kind == "mixed":
            self._about_mixed(column)
        if self._as_text(column):
            self._about_text(column)
        elif n_unique == 1 and not column.blank.any():
            self._about_constant(column)
        self._about_missing(column)

    def _about_mixed(self, column: _Column) -> None:
        row, n = int(column.unreadable.argmax()), int(column.unreadable.sum())
        if self.options.numeric_text == "error":
            self._choice(
                "numeric text",
                f"Column {column.name!r} holds numbers, but {str(column.series.iloc[row])!r} on "
                f"{self.raw.locate(row)} ({_count(n, 'such cell')}). Take them as empty with "
                'numeric_text="missing", or the column as text with numeric_text="text".',
                column.name,
                (
                    Fix("Take them as empty cells", {"numeric_text": "missing"}),
                    Fix("Take the column as text", {"numeric_text": "text"}),
                    Fix("Leave the column out", {"exclude": self._also(column.name)}),
                ),
            )
        elif self.options.numeric_text == "missing":
            self._note("numeric text", f"{_count(n, 'text')} in {column.name!r} taken as empty.", column.name)

    def _as_text(self, column: _Column) -> bool:
        return column.type == "text" or (column.type == "mixed" and self.options.numeric_text == "text")

    def _about_text(self, column: _Column) -> None:
        name, options = column.name, self.options
        if options.text == "error":
            filled = column.series[~column.blank]
            fixes = [Fix("Leave text columns out", {"text": "drop"})]
            few = column.n_unique <= options.max_categories
            if not few:
                fixes.append(Fix("They are the texts to be labelled", {"text_column": name}))
            if few:
                fixes.insert(0, Fix("One 0/1 feature for each text", {"text": "one-hot"}))
            advice = 'text="one-hot" makes a 0/1 feature of each text, text="drop" leaves such columns out'
            if not few:
                advice = (
                    'text="drop" leaves such columns out, '
                    f"text_column={name!r} makes the texts the items to be labelled"
                )
            self._choice(
                "text",
                f"Column {name!r} holds text ({str(filled.iloc[0])!r} on "
                f"{self.raw.locate(int((~column.blank).argmax()))}; {column.n_unique:,} different): "
                f"{advice}.",
                name,
                tuple(fixes),
            )
        elif options.text == "drop":
            self._note("text", f"Text column {name!r} is shown to people but not used as a feature.", name)
        elif column.n_unique > options.max_categories:
            self._choice(
                "many categories",
                f"Column {name!r} holds {column.n_unique:,} different texts, too many for one-hot "
                f"(max_categories={options.max_categories}). Leave it out with exclude={name!r}, or use "
                'text="drop".',
                name,
                (Fix("Leave the column out", {"exclude": self._also(name)}),),
            )
        else:
            self._note("text", f"Column {name!r} becomes {column.n_unique} features of 0 and 1.", name)

    def _about_constant(self, column: _Column) -> None:
        value = str(column.series.iloc[0])
        if self.options.constant == "keep":
            self._note(
                "constant",
                f"Column {column.name!r} holds {value} on every row: kept, though it tells nothing.",
                column.name,
                (Fix("Leave constant columns out", {"constant": "drop"}),),
            )
        else:
            self._note("constant", f"Constant column {column.name!r} is left out.", column.name)

    def _gone(self, column: _Column) -> Array:
        """[N] cells of a used column with nothing to go by."""
        gone = column.blank | column.infinite
        if column.type == "mixed" and self.options.numeric_text == "missing":
            gone = gone | column.unreadable
        if self._as_text(column):
            gone = column.blank
        return gone

    def _about_missing(self, column: _Column) -> None:
        if not self._used(column):
            return
        gone, name = self._gone(column), column.name
        if not gone.any():
            return
        row, n = int(gone.argmax()), int(gone.sum())
        if self.options.missing == "error":
            infinite = int(column.infinite.sum())
            what = "infinite" if infinite == n else "empty"
            also = f" ({infinite} of them infinite)" if 0 < infinite < n else ""
            self._choice(
                "missing",
                f"Column {name!r} has {_count(n, f'{what} cell')}{also}, first on {self.raw.locate(row)}. "
                'missing="drop" leaves those rows out, missing="impute" fills in the column\'s median'
                " (for text a category of its own).",
                name,
                (
                    Fix("Leave those rows out", {"missing": "drop"}),
                    Fix("Fill them in", {"missing": "impute"}),
                    Fix("Leave the column out", {"exclude": self._also(name)}),
                ),
            )
        elif self.options.missing == "drop":
            self.keep &= ~gone
        else:
            self._note("missing", f"{_count(n, 'cell')} of {name!r} filled in.", name)

    def _used(self, column: _Column) -> bool:
        if column.type == "empty":
            return False
        if self._as_text(column):
            return self.options.text != "drop"
        constant = column.n_unique == 1 and not column.blank.any() and not column.unreadable.any()
        return not (constant and self.options.constant == "drop")

    def _after_columns(self) -> None:
        lost = int((~self.keep).sum())
        if self.options.missing == "drop" and lost:
            self._note("missing", f"{_count(lost, 'row')} left out because of empty cells or repeated ids.")
        if not any(self._used(column) for column in self.columns.values()):
            self._error(
                "no features",
                f"No column of {self.raw.name} is left to learn from. Use fewer exclusions, "
                'or text="one-hot".',
            )
        elif lost and int(self.keep.sum()) < 2:
            self._error(
                "no rows",
                f"Leaving out rows with empty cells leaves {_count(int(self.keep.sum()), 'item')} of "
                f'{len(self.frame)}. Use missing="impute", or exclude the emptiest columns.',
            )
        elif lost and self.truth is not None:
            left = np.unique(self.truth[self.keep & (self.truth >= 0)]).size
            if left < 2:
                self._error("one class", "The rows left have fewer than two classes among them.")

    # Saying it -----------------------------------------------------------------------------------------

    def _error(self, code: str, message: str, column: str = "") -> None:
        self.problems.append(Problem(code, "error", message, column))

    def _choice(self, code: str, message: str, column: str = "", fixes: tuple[Fix, ...] = ()) -> None:
        self.problems.append(Problem(code, "choice", message, column, fixes))

    def _note(self, code: str, message: str, column: str = "", fixes: tuple[Fix, ...] = ()) -> None:
        self.problems.append(Problem(code, "note", message, column, fixes))
        self.notes.append(message)

    def report(self, preview: int) -> TableReport:
        """The examination as a report."""
        order = {"error": 0, "choice": 1, "note": 2}
        columns = []
        for name in self.names:
            series = self.frame[name]
            column = self.columns.get(name)
            role: Role = "feature"
            if name == self.options.target:
                role = "target"
            elif name == self.id_column:
                role = "id"
            elif self.texts is not None:
                role = "feature" if name == self.options.text_column else "left out"
            elif column is None or not self._used(column):
                role = "left out"
            # examples come from the top: a report must not read a large table twice
            texts, blank = read_texts(series.iloc[:200])
            gone = (
                column.blank
                if column
                else series.isna().to_numpy(dtype=bool) | (series == "").to_numpy(dtype=bool)
            )
            columns.append(
                ColumnReport(
                    name,
                    column.type if column else ("text" if is_text(series) else "number"),
                    role,
                    int(gone.sum()),
                    int(column.infinite.sum()) if column else 0,
                    int(column.unreadable.sum()) if column else 0,
                    column.n_unique if column else int(series[~gone].nunique()),
                    tuple(dict.fromkeys(str(text)[:60] for text in texts[~blank]))[:4],
                )
            )
        head = self.frame.head(preview)
        return TableReport(
            self.raw.name,
            self.raw.format,
            len(self.frame),
            self.raw.encoding,
            self.raw.delimiter,
            tuple(columns),
            self.counts,
            tuple(sorted(self.problems, key=lambda problem: order[problem.severity])),
            tuple({name: plain(head[name].iloc[i]) for name in self.names} for i in range(len(head))),
        )

    # The pool ------------------------------------------------------------------------------------------

    def pool(self) -> Pool:
        """The pool, when nothing stands in its way."""
        open_problems = [problem for problem in self.problems if problem.severity != "note"]
        if open_problems:
            open_problems.sort(key=lambda problem: problem.severity != "error")
            first = open_problems[0].message
            more = len(open_problems) - 1
            raise InputError(
                f"{first} ({_count(more, 'further problem')} of this kind or another.)" if more else first
            )
        kept = np.flatnonzero(self.keep)
        if self.texts is not None:
            return self._text_pool(kept)
        used = [column for column in self.columns.values() if self._used(column)]
        recipe: list[NumberColumn | CategoryColumn] = []
        features = []
        for column in used:
            series = column.series if len(kept) == len(self.frame) else column.series.iloc[kept]
            gone = self._gone(column)
            if self._as_text(column):
                texts, _ = read_texts(column.series)
                categories = tuple(sorted(set(map(str, texts[self.keep & ~gone]))))
                entry = CategoryColumn(column.name, categories, bool(gone[kept].any()))
                recipe.append(entry)
                features.append(entry.read(series, "."))
                continue
            fill = None
            if self.options.missing == "impute" and gone.any():
                fill = float(np.median(column.cells.values[~gone]))
            number = NumberColumn(column.name, fill, self.options.numeric_text == "missing")
            recipe.append(number)
            features.append(number.encode(series, Numbers(*(part[kept] for part in column.cells))))
        feature_map = TableFeatureMap(tuple(recipe), self.options.decimal or ".")
        frame = self.frame if len(kept) == len(self.frame) else self.frame.iloc[kept]
        shown = [name for name in self.names if name != self.options.target]
        ids = self._ids(kept)
        return Pool(
            name=self.options.name or _stem(self.raw.name),
            kind="table",
            features=np.column_stack(features),
            classes=self.classes,
            truth=None if self.truth is None else self.truth[kept],
            items=RowItems(ids, {name: frame[name].array for name in shown}),
            feature_map=feature_map,
            fingerprints=self._fingerprints(shown, kept),
            title=self.raw.name,
            description=f"{len(kept):,} items from {self.raw.name}.",
            plane=len(feature_map.columns) == 2
            and all(isinstance(column, NumberColumn) for column in recipe),
            notes=tuple(self.notes),
        )

    def _ids(self, kept: Ints) -> Sequence[str]:
        if self.ids is not None:
            return [str(text) for text in self.ids[kept]]
        return RowNumbers(len(kept)) if len(kept) == len(self.frame) else [str(row) for row in kept]

    def _text_pool(self, kept: Ints) -> Pool:
        from workbench.pools.texts import TextFeatureMap

        assert self.texts is not None
        name = str(self.options.text_column)
        texts = [str(text) for text in self.texts[kept]]
        feature_map = TextFeatureMap.of(texts, name)
        return Pool(
            name=self.options.name or _stem(self.raw.name),
            kind="text",
            features=feature_map.transform(texts),
            classes=self.classes,
            truth=None if self.truth is None else self.truth[kept],
            items=TextItems(self._ids(kept), texts),
            feature_map=feature_map,
            fingerprints=fingerprint_words([fingerprint_values(texts)]),
            title=self.raw.name,
            description=f"{len(kept):,} texts from {self.raw.name}.",
            common_scale=True,
            notes=(*self.notes, f"Features are {len(feature_map.columns)} topics of {name!r}."),
        )

    def _fingerprints(self, shown: list[str], kept: Ints) -> Array:
        words = []
        for name in shown:
            column = self.columns.get(name)
            series = self.frame[name]
            cells = column.cells if column else read_numbers(series, self.options.decimal or ".")
            # cell by cell, so that a text appended to a column of numbers leaves the other rows as they were
            word = np.where(cells.blank, 0.0, cells.values + 0.0).view(np.uint64)
            word = word ^ np.where(cells.blank, _BLANK_WORD, np.uint64(0))
            if cells.unreadable.any():
                texts = [plain_text(value) for value in series.array[cells.unreadable]]
                word[cells.unreadable] = fingerprint_values(texts)
            words.append(word[kept])
        return fingerprint_words(words)


def _ragged_message(raw: RawTable) -> str:
    first = raw.ragged[0]
    lines = ", ".join(str(entry.line) for entry in raw.ragged[1:6])
    more = f" Also line{'s' if raw.ragged[2:] else ''} {lines}" if lines else ""
    more += f" and {len(raw.ragged) - 6} more." if len(raw.ragged) > 6 else ("." if lines else "")
    return (
        f"{raw.name}, line {first.line} has {_count(first.found, 'cell')}; the header has {first.expected}."
        f"{more} "
        'Correct the file, or leave such lines out with ragged="drop".'
    )


def class_order(classes: list[str]) -> list[str]:
    """Names of classes in order: numbers by size, anything else by the alphabet."""
    try:
        return sorted(classes, key=lambda key: (float(key), key))
    except ValueError:
        return sorted(classes)


def _stem(name: str) -> str:
    for ending in (".gz", ".csv", ".tsv", ".tab", ".txt", ".data", ".parquet", ".pq", ".npz", ".npy", ".zip"):
        name = name.removesuffix(ending)
    return name or "pool"


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _some(names: Sequence[str], limit: int = 8) -> str:
    listed = ", ".join(repr(name) for name in names[:limit])
    return listed if len(names) <= limit else f"{listed} and {len(names) - limit} more"


__all__ = [
    "ColumnReport",
    "Fix",
    "Problem",
    "TableOptions",
    "TableReport",
    "class_order",
    "inspect_table",
    "load_table",
    "read_rows",
]
