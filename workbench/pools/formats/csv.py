"""Files of text: a CSV as a table of texts, or an item on each line."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from workbench.csv_writing import plain_cell
from workbench.errors import InputError
from workbench.pools.formats.encodings import as_utf8
from workbench.pools.formats.files import File, check_cells
from workbench.pools.notebooks import counted
from workbench.pools.tables import table_reader
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.report import Fix, Problem
from workbench.pools.tables.source_table import (
    LOOKED_AT,
    RawTable,
    check_names,
    explaining,
    named,
    titles,
    told_names,
    told_titles,
)
from workbench.pools.tables.uses import ColumnUse, is_of_ours
from workbench.reading import cut, reading

_NOTHING = "\x1f"  # stands in no text: between cells where each line is one
_DELIMITERS = (",", ";", "\t", "|")
_SNIFF_CHARACTERS = 65_536
_MAX_RAGGED = 10_000
_QUOTES: dict[str, dict[str, Any]] = {
    '"': {},
    "none": {"quoting": csv.QUOTE_NONE},
    "backslash": {"escapechar": "\\"},
}
_A_TEXT = 3  # words of an only name from which on it may be a text
_SWALLOWED = 3  # lines within cells that split as rows do, from which on they may be rows
_LOOKED_AT, _AGAIN = 1_000, 2  # rows that a first line is compared with, and how often its cell stands there


def read(file: File, options: TableOptions) -> RawTable:
    """A CSV as texts; those that we wrote so that no spreadsheet runs them are what they were.

    Args:
        file: also .gz.
        options: encoding (None means UTF-8 and nothing else), delimiter (None finds it among comma,
            semicolon, tab and bar), header (None means yes), max_bytes, max_cells, max_columns.

    Returns:
        The table; lines with too many or too few cells are listed in `ragged` and left out.

    Raises:
        InputError: empty, in another encoding, two columns of one name, or too large.
    """
    name, header = file.name, options.header
    data = file.content(options.max_bytes)
    if not data.strip(b"\r\n\t ,;|\xef\xbb\xbf"):
        raise InputError(f"{name} is empty. Give a file with a header line and a row for each item.")
    data, encoding, told_encoding = as_utf8(data, name, options.encoding)
    if b"\x00" in data[:_SNIFF_CHARACTERS]:
        raise InputError(
            f"{name} is not a text file (it holds zero bytes). Save the table as CSV or Parquet."
        )
    mark = data[4:5].decode() if data.startswith(b"sep=") else ""  # by Excel, to itself
    sniffed = data[:_SNIFF_CHARACTERS].decode("utf-8", "ignore")
    delimiter = options.delimiter or mark or _find_delimiter(sniffed, file)
    delimiter = _NOTHING if delimiter == "none" else delimiter
    lines = _Lines(data, delimiter, name, options.quote or '"')
    problems = (*told_encoding, *(_settle_quotes(lines) if options.quote is None and b'"' in data else ()))
    above = [] if header is False else lines.titles()
    names, header_lines = lines.first(len(above))
    if header is not False:
        names = lines.fitted(names, len(above))
    looks_like_data = len(names) > 0 and all(_is_number(cell) for cell in names)
    # line ends bound the rows from above: enough to refuse before anything is parsed
    n_lines = data.count(b"\n") + data.count(b"\r") * (b"\n" not in data)
    if n_lines * len(names) > 4 * options.max_cells:
        check_cells(name, n_lines, len(names), options.max_cells)
    check_cells(name, 0, len(names), 0, options.max_columns)
    names, renamed = named(names, header)
    header_lines = 0 if header is False else header_lines
    is_export = header is not False and is_of_ours(names)
    names = [plain_cell(column) for column in names] if is_export else names
    check_names(name, names)
    frame, n_ragged = _parsed(lines, names, header_lines)
    if is_export:
        _take_quotes_away(frame)
    check_cells(name, len(frame), len(names), options.max_cells, options.max_columns)
    lines.width, lines.header_lines, n_rows = len(names), header_lines, len(frame)
    frame, rows = _without_empty_rows(frame)
    n_empty = 0 if rows is None else n_rows - len(rows)
    frame, notes = _without_nothing(frame, renamed)
    n_under, told_under = explaining(frame, header)
    frame = frame.iloc[n_under:].reset_index(drop=True) if n_under else frame
    notes += (f"{counted(n_empty, 'row')} without a cell left out.",) if n_empty else ()
    return RawTable(
        name,
        "csv",
        frame,
        encoding=encoding,
        delimiter=delimiter,
        notes=notes,
        problems=(
            *(lines.told_ragged(n_ragged, n_rows, drop=options.ragged == "drop") if n_ragged else ()),
            *told_names(
                name,
                [column for column in renamed if column in frame],
                looks_like_data=header is None and (looks_like_data or _is_an_item(names, frame)),
            ),
            *(*problems, *told_titles(above), *told_under),
        ),
        n_there=lines.count() - (header is not False),
        n_left=len(above) + n_under + n_empty + n_ragged,
        locate=lambda row: f"line {lines.line_of(row + n_under if rows is None else rows[row + n_under])}",
    )


def ways_to_read(message: str) -> tuple[Fix, ...]:
    """The ways out for a file whose quotes do not fit."""
    if 'quote="none"' in message:
        ways = {"Quotes are part of the texts": "none", "Read it as well as can be": '"'}
        return tuple(Fix(words, {"quote": quote}) for words, quote in ways.items())
    return ()


READER = table_reader(read, ways_to_read)


def _take_quotes_away(frame: Any) -> None:
    """Take away, in place, the quotes that keep a spreadsheet from running cells of a CSV of ours."""
    for name in frame.columns:
        quoted = frame[name].str.startswith("'").to_numpy(dtype=bool, na_value=False)
        if quoted.any():
            frame.loc[quoted, name] = [plain_cell(cell) for cell in frame.loc[quoted, name]]


def _without_empty_rows(frame: Any) -> tuple[Any, Any]:
    """A table without rows of empty cells alone, and the places of those that stay, or None."""
    empty_rows = np.flatnonzero((frame.iloc[:, 0] == "").to_numpy(dtype=bool))
    empty_rows = empty_rows[(frame.iloc[empty_rows] == "").to_numpy(dtype=bool).all(axis=1)]
    if not len(empty_rows) or len(frame.columns) == 1:
        return frame, None
    rows = np.delete(np.arange(len(frame)), empty_rows)
    return frame.iloc[rows].reset_index(drop=True), rows


def _without_nothing(frame: Any, unnamed: list[str]) -> tuple[Any, tuple[str, ...]]:
    """A table without columns of neither a name nor a cell: the commas that a spreadsheet leaves."""
    nothing = [column for column in unnamed if column in frame]
    nothing = [nothing[i] for i in np.flatnonzero((frame[nothing].to_numpy() == "").all(axis=0))]
    if not nothing or len(nothing) == len(frame.columns):
        return frame, ()
    of = "column" if len(nothing) == 1 else "columns"
    return frame.drop(columns=nothing), (f"{len(nothing):,} {of} without a name or a cell left out.",)


class _Lines:
    """Records of a CSV with the numbers of the lines they begin on."""

    def __init__(self, data: bytes, delimiter: str, name: str, quote: str) -> None:
        self.data, self.delimiter, self.name, self.quote = data, delimiter, name, quote
        self.width = self.header_lines = 0

    def __iter__(self) -> Iterator[tuple[int, int, list[str]]]:
        """(first line, last line, cells) of every record that is not blank."""
        return self.records()

    def records(self, *, strict: bool = False) -> Iterator[tuple[int, int, list[str]]]:
        """The same; strict refuses a quote that closes no cell."""
        csv.field_size_limit(1 << 26)  # the reader holds a cell eight times; all texts are 50 million signs
        stream = io.TextIOWrapper(io.BytesIO(self.data), encoding="utf-8", newline="")
        with reading(self.name):
            reader = csv.reader(stream, delimiter=self.delimiter, strict=strict, **_QUOTES[self.quote])
            start = 1
            try:
                for record in reader:
                    if record:
                        yield start, reader.line_num, record
                    start = reader.line_num + 1
            except csv.Error as error:
                raise InputError(
                    f"{self.name}: the quote that opens a cell on line {start} does not close it. Correct "
                    'it, or say quote="none" where quotes are part of the texts.'
                ) from error

    def titles(self) -> list[list[str]]:
        """The records that stand above the names."""
        records = [record for _, _, record in islice(self, LOOKED_AT)]
        return records[: titles(records) or self.data.startswith(b"sep=")]

    def first(self, n_above: int = 0) -> tuple[list[str], int]:
        """The first record below some, and the number of lines down to its end."""
        for _, end, record in islice(self, n_above, None):
            return list(record), end
        raise InputError(f"{self.name} is empty. Give a file with a header line and a row for each item.")

    def fitted(self, names: list[str], n_above: int) -> list[str]:
        """The names where each line has one cell more: a row's name, as of R, or nothing at its end."""
        records = [record for _, _, record in islice(self, n_above + 1, n_above + 1 + LOOKED_AT)]
        if len(names) < 2 or len(records) < 3 or any(len(record) != len(names) + 1 for record in records):
            return names
        if not any(record[-1].strip() for record in records):
            return [*names, ""]
        # texts with a comma have a space behind it
        spaced = any(cell[:1].isspace() for record in records for cell in record)
        unique = len({record[0] for record in records}) == len(records)
        return ["", *names] if unique and not spaced else names

    @property
    def names_quoted(self) -> bool:
        """Tell whether each name of the first line is quoted, as programs write that quote texts."""
        head = self.data[: self.data.find(b"\n") + 1].rstrip(b"\r\n").split(self.delimiter.encode())
        return self.quote == '"' and all(len(name) > 1 and name[:1] == name[-1:] == b'"' for name in head)

    def count(self) -> int:
        """Records that are not blank, the header among them, by another reader than the one of the cells."""
        if b'"' in self.data or self.data.count(b"\r") != self.data.count(b"\r\n"):
            return sum(1 for _ in self)
        return sum(1 for line in io.BytesIO(self.data) if line.strip(b"\r\n"))  # an eighth of the time

    def told_ragged(self, n_ragged: int, n_rows: int, *, drop: bool) -> tuple[Problem]:
        """Finding about records of another width than the header: they are left out, or asked about."""
        if drop:
            return (Problem("ragged", "note", f"{counted(n_ragged, 'ragged line')} left out."),)
        below = ((start, len(record)) for start, _, record in self if start > self.header_lines)
        (line, width), *more = islice((pair for pair in below if pair[1] != self.width), 6)
        also = f" Also line {', '.join(str(start) for start, _ in more)}." if more else ""
        all_of_them = f" These are {n_ragged:,} lines." if n_ragged > 6 else ""
        fixes = (Fix("Leave those lines out", {"ragged": "drop"}),) if n_rows > 1 else ()
        if self.width == 1:
            fixes = (Fix("Each line is one text", {"delimiter": "none"}),)
        message = (
            f"{self.name}, line {line} has {counted(width, 'cell')}; the header has {self.width}.{also}"
            f"{all_of_them} Correct the file."
        )
        return (Problem("ragged", "choice", message, fixes=fixes),)

    def line_of(self, row: int) -> int:
        """The line of a row of the table, which holds what is neither blank nor ragged."""
        rows = (start for start, _, record in self if start > self.header_lines and len(record) == self.width)
        return next(islice(rows, row, None), 0)


def _settle_quotes(lines: _Lines) -> tuple[Problem, ...]:
    """Find out how quotes are meant, for `lines.quote`, and what is to be said about it.

    Quotes that each close the cell they open enclose cells. Where one does not, they are part of the texts,
    or a backslash stands before those that are: whichever gives every line as many cells as the first has.
    A file that reads evenly with them and without is asked about.

    Raises:
        InputError: neither way reads the file.
    """
    try:
        n_records = sum(1 for _ in lines.records(strict=True))
    except InputError as error:
        wrong = error
    else:
        n_lines = _even(lines, "none", '"')
        n_least = 1 if lines.delimiter == "\t" else _SWALLOWED
        if lines.width < 2 or n_lines < n_records + n_least:
            return ()
        ways = (Fix("They are part of the texts", {"quote": "none"}), Fix("They enclose", {"quote": '"'}))
        return (
            Problem(
                "quotes",
                "choice",
                f"{lines.name} has {n_lines:,} rows where quotes are part of the texts, {n_records:,} where "
                "they enclose cells of several lines.",
                fixes=ways,
            ),
        )
    if b'\\"' in lines.data and _even(lines, "backslash", "backslash"):
        return ()
    n_lines = _even(lines, "none", "none")
    enclosed = sum(any(len(c) > 1 and c[0] == c[-1] == '"' for c in record) for _, _, record in lines)
    if not n_lines or 2 * enclosed > n_lines:
        raise wrong
    row = next(record for _, _, record in lines if any('"' in cell for cell in record))
    cell = next(cell for cell in row if '"' in cell)
    message = f"Quotes are part of the texts, as in {cut(cell, 60)}: as marks around cells they do not fit."
    return (Problem("quotes", "note", message, fixes=(Fix("They enclose cells", {"quote": '"'}),)),)


def _even(lines: _Lines, quote: str, old_quote: str) -> int:
    """Number of records under a way to take quotes, all of one width; 0 where widths differ."""
    lines.quote = quote
    try:
        widths = Counter(len(record) for _, _, record in lines.records(strict=True))
    except InputError:
        widths = Counter()
    lines.quote, lines.width = old_quote, max(widths, default=0)
    return widths.total() if len(widths) == 1 else 0


def _find_delimiter(head: str, file: File) -> str:
    if file.plain_name.endswith((".tsv", ".tab")):
        return "\t"
    best, best_score = ",", (0, 0)
    for candidate in _DELIMITERS:
        try:
            records = csv.reader(io.StringIO(head), delimiter=candidate)
            widths = [len(row) for row in islice((row for row in records if row), 20)]
        except csv.Error:
            continue
        if len(widths) > 2:
            widths = widths[:-1]  # the last one may be cut by the sample's end
        # a title may stand above the names
        width = widths[0] if widths and widths[0] > 1 else max(widths, key=widths.count, default=0)
        agree = widths.count(width) if width > 1 else 0
        # lines that agree with the header count first, then the number of cells
        score = (agree, width)
        if score > best_score:
            best, best_score = candidate, score
    return best


def _parsed(lines: _Lines, names: list[str], header_lines: int) -> tuple[Any, int]:
    """The cells as a DataFrame of texts, and how many lines were left out for their number of cells."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.csv as pc

    data, delimiter, name = lines.data, lines.delimiter, lines.name
    if not any(start > header_lines for start, _, _ in lines):
        return pd.DataFrame({column: pd.Series([], dtype="str") for column in names}), 0
    n_ragged = 0

    def skip(row: Any) -> str:
        nonlocal n_ragged
        n_ragged += 1
        return "skip" if n_ragged <= _MAX_RAGGED else "error"

    with reading(name, "a CSV", "Save it again as CSV."):
        if len(delimiter) != 1:
            raise InputError(f"The delimiter must be one character; got {cut(delimiter)}.")
        try:
            table = pc.read_csv(
                pa.BufferReader(data),
                read_options=pc.ReadOptions(
                    column_names=names,
                    skip_rows=header_lines,
                    block_size=max(1 << 20, min(len(data), 1 << 26)),
                ),
                parse_options=pc.ParseOptions(
                    delimiter=delimiter,
                    quote_char=False if lines.quote == "none" else '"',
                    escape_char="\\" if lines.quote == "backslash" else False,
                    newlines_in_values=lines.quote != "none" and b'"' in data,
                    invalid_row_handler=skip,
                ),
                convert_options=pc.ConvertOptions(
                    column_types={column: pa.string() for column in names},
                    # R writes names and texts in quotes, and NA without them for what is missing
                    null_values=["NA"],
                    strings_can_be_null=lines.names_quoted,
                    quoted_strings_can_be_null=False,
                ),
            )
        except pa.ArrowException as error:
            if n_ragged > _MAX_RAGGED:
                raise InputError(
                    f"{name} has more than {_MAX_RAGGED:,} lines with another number of cells than its "
                    "header: it is no table, or its delimiter is another one. Say which with delimiter=."
                ) from error
            raise
        frame = table.to_pandas()
        return frame.fillna("") if lines.names_quoted else frame, n_ragged


def _is_an_item(names: list[str], frame: Any) -> bool:
    """Tell whether a first line reads like a row: a decimal number, a text, or a cell that comes again.

    Whole numbers that follow each other are names, as of pixels and years; so are single letters.
    """
    if len(names) == 1 and len(names[0].split()) >= _A_TEXT:
        return len(frame) > 0
    numbers = {float(name) for name in names if _is_number(name)}
    for name in names:
        cell = name.strip()
        number = float(cell) if _is_number(cell) else None
        if name not in frame or (number is None and len(cell) < 2):
            continue
        if number is not None and {number - 1, number + 1} & numbers:
            continue
        cells = [str(text).strip() for text in frame[name].iloc[:_LOOKED_AT].tolist()]
        decimal = number is not None and number % 1 and sum(map(_is_number, cells)) > 0.9 * len(cells)
        if cells.count(cell) >= _AGAIN or (cells and decimal):
            return True
    return False


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


_FIRST_LINES = 50
_SHORT = 24  # characters of a cell of a table in the mean; sentences with commas are longer


def read_lines(file: File, options: TableOptions) -> RawTable:
    """A text file: lines, or the table that it is by its looks or by what is asked of it.

    Args:
        file: also .gz.
        options: lines says which of the two; the others as for a CSV.

    Returns:
        A table with the one column "text", or that of `read`.

    Raises:
        InputError: as for a CSV.
    """
    data, encoding, problems = as_utf8(file.content(options.max_bytes), file.name, options.encoding)
    text = data.decode()
    as_lines = options.lines
    if as_lines is None:
        as_lines = not _names_columns(options) and not _are_rows(text, options.delimiter)
    if not as_lines:
        return read(file, options)
    import pandas as pd

    numbered = [(i, line.strip()) for i, line in enumerate(_cut_lines(text), start=1) if line.strip()]
    if not numbered:
        raise InputError(f"{file.name} is empty. Give a file with an item on each line.")
    if "\x00" in text[:65_536]:
        raise InputError(f"{file.name} is not a text file (it holds zero bytes).")
    check_cells(file.name, len(numbered), 1, options.max_cells)
    frame = pd.DataFrame({"text": pd.Series([line for _, line in numbered], dtype="str")})
    at = [i for i, _ in numbered]
    return RawTable(
        file.name,
        "lines",
        frame,
        encoding=encoding,
        uses={"text": ColumnUse.of("text", "text")},
        problems=(*problems, _told_lines(frame["text"].tolist()) if options.lines is None else _EACH_LINE),
        locate=lambda row: f"line {at[row]}",
    )


_EACH_LINE = Problem("lines", "note", "Each line is an item.")


def _told_lines(lines: list[str]) -> Problem:
    """Note that each line is an item; a guess where all lines have as many words, as those of a table."""
    widths = [len(line.split()) for line in lines[:_FIRST_LINES]]
    names_rows = widths[0] in (widths[-1], widths[-1] - 1)  # R leaves the names of rows without one
    if min(widths) < 2 or len(set(widths[1:])) != 1 or not names_rows:
        return _EACH_LINE
    ways = (Fix("Items", {"lines": True}), Fix("Cells", {"lines": False, "delimiter": " "}))
    message = f"Each line is an item, as {cut(lines[0], 60)}: or are these cells with a space between?"
    return Problem("lines", "guess", message, fixes=ways)


LINES = table_reader(read_lines, ways_to_read)


def _cut_lines(text: str) -> list[str]:
    """Lines end where they do in any editor; str.splitlines tears texts at eight more characters."""
    return re.split(r"\r\n|\n|\r", text)


def _names_columns(options: TableOptions) -> bool:
    """True if a person speaks of columns that lines do not have."""
    return options.header is not None or any(name != "text" for name in options.columns)


def _are_rows(text: str, delimiter: str | None) -> bool:
    """True if the first lines have as many short cells each."""
    lines = [line for line in _cut_lines(text[:65_536]) if line.strip()][:_FIRST_LINES]
    if len(lines) < 2:
        return False
    for mark in (delimiter,) if delimiter else ("\t", ",", ";", "|"):
        cells = [line.split(mark) for line in lines]
        widths = {len(row) for row in cells}
        if widths != {1} and len(widths) == 1:
            mean = sum(len(cell.strip()) for row in cells for cell in row) / sum(map(len, cells))
            if mark == "\t" or mean <= _SHORT:
                return True
    return False
