"""CSV files as tables of texts."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from workbench.csv_writing import plain_cell
from workbench.errors import InputError
from workbench.pools.formats.files import File, check_cells
from workbench.pools.tables import table_reader
from workbench.pools.tables.exported import is_of_ours
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.raw import Ragged, RawTable, check_names
from workbench.pools.tables.report import Fix
from workbench.reading import cut, reading

_DELIMITERS = (",", ";", "\t", "|")
_SNIFF_CHARACTERS = 65_536
_MAX_RAGGED = 10_000
_BLOCK = 1 << 20
_FIRST_CELL = 12
_LOOKED_AT, _AGAIN = (
    1_000,
    2,
)  # rows that a first line is compared with, and how often a cell of it stands there
_TOLD_BY, _TELLING = 65_536, 8  # bytes by which an encoding is told, and how few beyond ASCII tell nothing
_ENCODINGS = (
    "cp1252",
    "cp1250",
    "cp1251",
    "koi8_r",
    "cp1253",
    "cp1254",
    "cp1255",
    "cp1256",
    "cp932",
    "euc_jp",
    "gb18030",
    "big5",
    "euc_kr",
)


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
    encoding = check_encoding(data, name, options.encoding)
    if encoding not in ("utf-8", "utf-8-sig"):
        data = data.decode(encoding).encode()
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\x00" in data[:_SNIFF_CHARACTERS]:
        raise InputError(
            f"{name} is not a text file (it holds zero bytes). Save the table as CSV or Parquet."
        )
    delimiter = options.delimiter or _find_delimiter(data[:_SNIFF_CHARACTERS].decode("utf-8", "ignore"), file)
    lines = _Lines(data, delimiter, name)
    names, header_lines = lines.first()
    looks_like_data = len(names) > 0 and all(_is_number(cell) for cell in names)
    # line ends bound the rows from above: enough to refuse before anything is parsed
    n_lines = data.count(b"\n") + data.count(b"\r") * (b"\n" not in data)
    if n_lines * len(names) > 4 * options.max_cells:
        check_cells(name, n_lines, len(names), options.max_cells)
    check_cells(name, 0, len(names), 0, options.max_columns)
    renamed: list[str] = []
    if header is False:
        names, header_lines = [f"x{i + 1}" for i in range(len(names))], 0
    else:
        renamed = [f"column_{i + 1}" for i, given in enumerate(names) if not given.strip()]
        names = [given if given.strip() else f"column_{i + 1}" for i, given in enumerate(names)]
    ours = header is not False and is_of_ours(names)
    names = [plain_cell(given) for given in names] if ours else names
    check_names(name, names)
    frame, n_ragged = _parsed(data, names, delimiter, header_lines, name)
    if ours:
        _take_quotes_away(frame)
    check_cells(name, len(frame), len(names), options.max_cells, options.max_columns)
    lines.width, lines.header_lines = len(names), header_lines
    frame, notes = _without_nothing(frame, renamed)
    if b'"' in data:
        notes = (*notes, *_swallowed(frame, delimiter, lambda row: f"line {lines.line_of(row)}"))
    if encoding not in ("utf-8", "utf-8-sig"):
        notes = (*notes, f"The text is read as {encoding}.")
    return RawTable(
        name,
        "csv",
        frame,
        encoding=encoding,
        delimiter=delimiter,
        header_looks_like_data=header is None and (looks_like_data or _is_an_item(names, frame)),
        ragged=tuple(islice(lines.ragged(), 7)) if n_ragged else (),
        n_ragged=n_ragged,
        renamed=tuple(given for given in renamed if given in frame),
        notes=notes,
        n_there=lines.count() - (header is not False),
        locate=lambda row: f"line {lines.line_of(row)}",
    )


def other_encoding(file: File, options: TableOptions, message: str) -> tuple[Fix, ...]:
    """The way out for a file that is not UTF-8."""
    if "is not UTF-8" not in message:
        return ()
    guess = _guess_encoding(file.content(options.max_bytes))
    return (Fix(f"Read it as {guess}", {"encoding": guess}),)


READER = table_reader(read, other_encoding)


def _take_quotes_away(frame: Any) -> None:
    """Take away, in place, the quotes that keep a spreadsheet from running cells of a CSV of ours."""
    for name in frame.columns:
        quoted = frame[name].str.startswith("'").to_numpy(dtype=bool, na_value=False)
        if quoted.any():
            frame.loc[quoted, name] = [plain_cell(cell) for cell in frame.loc[quoted, name]]


def _without_nothing(frame: Any, unnamed: list[str]) -> tuple[Any, tuple[str, ...]]:
    """A table without columns of neither a name nor a cell: the commas that a spreadsheet leaves."""
    nothing = [given for given in unnamed if given in frame]
    nothing = [nothing[i] for i in np.flatnonzero((frame[nothing].to_numpy() == "").all(axis=0))]
    if not nothing or len(nothing) == len(frame.columns):
        return frame, ()
    of = "column" if len(nothing) == 1 else "columns"
    return frame.drop(columns=nothing), (f"{len(nothing):,} {of} without a name or a cell left out.",)


class _Lines:
    """Records of a CSV with the numbers of the lines they begin on."""

    def __init__(self, data: bytes, delimiter: str, name: str) -> None:
        self.data, self.delimiter, self.name = data, delimiter, name
        self.width = self.header_lines = 0

    def __iter__(self) -> Iterator[tuple[int, int, list[str]]]:
        """(first line, last line, cells) of every record that is not blank."""
        csv.field_size_limit(1 << 27)
        stream = io.TextIOWrapper(io.BytesIO(self.data), encoding="utf-8", newline="")
        with reading(self.name):
            reader = csv.reader(stream, delimiter=self.delimiter)
            start = 1
            for record in reader:
                if record:
                    yield start, reader.line_num, record
                start = reader.line_num + 1

    def first(self) -> tuple[list[str], int]:
        """The first record and the number of lines down to its end."""
        for _, end, record in self:
            return list(record), end
        raise InputError(f"{self.name} is empty. Give a file with a header line and a row for each item.")

    def count(self) -> int:
        """Records that are not blank, the header among them, by another reader than the one of the cells."""
        if b'"' in self.data or self.data.count(b"\r") != self.data.count(b"\r\n"):
            return sum(1 for _ in self)
        return sum(1 for line in io.BytesIO(self.data) if line.strip(b"\r\n"))  # an eighth of the time

    def ragged(self) -> Iterator[Ragged]:
        """Records of another width than the header."""
        for start, _, record in self:
            if start > self.header_lines and len(record) != self.width:
                yield Ragged(start, len(record), self.width)

    def line_of(self, row: int) -> int:
        """The line of a row of the table, which holds what is neither blank nor ragged."""
        rows = (start for start, _, record in self if start > self.header_lines and len(record) == self.width)
        return next(islice(rows, row, None), 0)


def check_encoding(data: bytes, name: str, encoding: str | None) -> str:
    """The encoding of a text: the one named, else UTF-8 and nothing else.

    Raises:
        InputError: no such encoding, or a line that it cannot read.
    """
    if encoding is not None:
        try:
            codec = codecs.lookup(encoding)
        except (LookupError, ValueError):
            raise InputError(
                f"There is no encoding called {cut(encoding)}; try 'cp1252' or 'utf-16'."
            ) from None
        if not codec._is_text_encoding:
            raise InputError(f"{encoding!r} is no encoding of texts; try 'cp1252' or 'utf-16'.")
        at = _undecodable(data, encoding)
        if at is not None:
            line = data[:at].count(b"\n") + 1
            raise InputError(f"{name} is not {encoding}: line {line} cannot be read as such.")
        return codec.name
    at = _undecodable(data, "utf-8")
    if at is not None:
        line = data[:at].count(b"\n") + 1
        guess = _guess_encoding(data)
        raise InputError(
            f"{name} is not UTF-8 text: line {line} holds the byte 0x{data[at]:02X}. "
            f'Say which encoding it is, probably encoding="{guess}", or save it again as UTF-8.'
        )
    return "utf-8"


def _undecodable(data: bytes, encoding: str) -> int | None:
    """Where a text stops being one, looked for piece by piece: a text takes up to four times its bytes."""
    decoder = codecs.getincrementaldecoder(encoding)()
    for start in range(0, len(data), _BLOCK):
        held = len(decoder.getstate()[0])
        try:
            decoder.decode(data[start : start + _BLOCK], final=start + _BLOCK >= len(data))
        except UnicodeError as error:
            return max(0, min(start - held + int(getattr(error, "start", 0)), len(data) - 1))
    return None


def _guess_encoding(data: bytes) -> str:
    """The likeliest encoding of a text that is not UTF-8, which reads all of it."""
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    western = "cp1252" if _undecodable(data, "cp1252") is None else "latin-1"
    from charset_normalizer import from_bytes

    # lines with nothing but ASCII tell nothing
    at = max(0, data.rfind(b"\n", 0, _undecodable(data, "utf-8") or 0))
    lines = [line for line in data[at : at + _BLOCK].splitlines() if not line.isascii()]
    sample = b"\n".join(lines)[:_TOLD_BY]
    found = [one for one in from_bytes(sample, cp_isolation=list(_ENCODINGS)) if _all_of(data, one.encoding)]
    if not found:
        return western
    best = found[0]
    # a few accents read as well in several: then the commonest
    read = {one.encoding: (one.chaos, one.coherence) for one in found}
    few = sum(octet >= 0x80 for octet in sample) < _TELLING
    return western if few or read.get(western) == read[best.encoding] else str(best.encoding)


def _all_of(data: bytes, encoding: str) -> bool:
    return _undecodable(data, encoding) is None


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
        agree = sum(width == widths[0] for width in widths) if widths and widths[0] > 1 else 0
        # lines that agree with the header count first, then the number of cells
        score = (agree, widths[0] if widths else 0)
        if score > best_score:
            best, best_score = candidate, score
    return best


def _parsed(data: bytes, names: list[str], delimiter: str, header_lines: int, name: str) -> tuple[Any, int]:
    """The cells as a DataFrame of texts, and how many lines were left out for their number of cells."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.csv as pc

    start = 0
    for _ in range(header_lines):
        start = _line_end(data, start)
    body = memoryview(data)[start:]
    if not data[start : start + _BLOCK].strip() and not data[start:].strip():
        return pd.DataFrame({given: pd.Series([], dtype="str") for given in names}), 0
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
                pa.BufferReader(pa.py_buffer(body)),
                read_options=pc.ReadOptions(
                    column_names=names, block_size=max(1 << 20, min(len(body), 1 << 26))
                ),
                parse_options=pc.ParseOptions(
                    delimiter=delimiter,
                    newlines_in_values=data.find(b'"', start) >= 0,
                    invalid_row_handler=skip,
                ),
                convert_options=pc.ConvertOptions(
                    column_types={given: pa.string() for given in names}, strings_can_be_null=False
                ),
            )
        except pa.ArrowException as error:
            if n_ragged > _MAX_RAGGED:
                raise InputError(
                    f"{name} has more than {_MAX_RAGGED:,} lines with another number of cells than its "
                    "header: it is no table, or its delimiter is another one. Say which with delimiter=."
                ) from error
            raise
        if data.find(b'"', start) >= 0:
            _refuse_open_quote(table, data, delimiter, name)
        return table.to_pandas(), n_ragged


def _refuse_open_quote(table: Any, data: bytes, delimiter: str, name: str) -> None:
    """Refuse a table whose last cell was opened by a quote and never closed: it holds all rows below it."""
    if not table.num_rows or not table.num_columns:
        return
    last = str(table.column(table.num_columns - 1)[-1].as_py() or "")
    opened = b'"' + last.replace('"', '""').encode()
    if data.endswith(opened) and data[: -len(opened)].endswith((b"\n", b"\r", delimiter.encode())):
        line = data[: -len(opened)].count(b"\n") + 1
        raise InputError(
            f"{name}, line {line} opens a cell with a quote that is never closed: it would hold the rest of "
            "the file. Close it, or double the quote where it is part of a text."
        )


def _swallowed(frame: Any, delimiter: str, locate: Any) -> tuple[str, ...]:
    """A note on cells that hold what looks like further rows: a quote was closed some rows too late."""
    width = len(frame.columns)
    if width < 2:
        return ()
    first: dict[int, tuple[str, int]] = {}
    for name in frame.columns:
        held = frame[name].str.contains("\n", regex=False).to_numpy(dtype=bool, na_value=False)
        for row in np.flatnonzero(held)[:_MAX_RAGGED]:
            # the first line is the cell's own; each further one begins as a row does
            lines = [line.split(delimiter) for line in frame[name].iloc[row].split("\n")[1:]]
            likely = sum(len(cells) == width and _begins_a_row(cells[0]) for cells in lines)
            if likely:
                first.setdefault(int(row), (str(name), likely))
    if not first:
        return ()
    row = min(first)
    name, n = first[row]
    cells = "A cell holds" if len(first) == 1 else f"{len(first):,} cells hold"
    return (
        f"{cells} what looks like further rows: {name!r} on {locate(row)} {n:,} of them. Look for a quote "
        "that is not closed.",
    )


def _begins_a_row(cell: str) -> bool:
    """Whether a cell is short and one word, as ids and names are, where a line of prose is longer."""
    return 0 < len(cell) <= _FIRST_CELL and " " not in cell


def _line_end(data: bytes, start: int) -> int:
    newline, back = data.find(b"\n", start), data.find(b"\r", start)
    if back >= 0 and (newline < 0 or back < newline):
        return back + 2 if data[back + 1 : back + 2] == b"\n" else back + 1
    return len(data) if newline < 0 else newline + 1


def _is_an_item(names: list[str], frame: Any) -> bool:
    """Whether a first line reads like one of the rows: a decimal number, or a cell that stands below again.

    Whole numbers that follow each other are names, as of pixels and years; so are single letters.
    """
    numbers = {float(name) for name in names if _is_number(name)}
    for name in names:
        cell = name.strip()
        number = float(cell) if _is_number(cell) else None
        if name not in frame or (number is None and len(cell) < 2):
            continue
        if number is not None and {number - 1, number + 1} & numbers:
            continue
        cells = [str(text).strip() for text in frame[name].iloc[:_LOOKED_AT]]
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
