"""Files and uploads as raw tables: cells as they stand, sizes checked before anything is read."""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.errors import InputError

MAX_BYTES = 1 << 30
MAX_CELLS = 200_000_000
_DELIMITERS = (",", ";", "\t", "|")
_SNIFF_CHARACTERS = 65_536


@dataclass(frozen=True)
class Ragged:
    """A line whose number of cells is not the header's.

    Attributes:
        line: its number in the file, from 1.
        found: cells it has.
        expected: cells the header has.
    """

    line: int
    found: int
    expected: int


@dataclass(frozen=True)
class RawTable:
    """A table as the source holds it.

    Attributes:
        name: the file's name.
        format: "csv" or "parquet".
        frame: pandas DataFrame; all texts for a CSV, typed for Parquet.
        encoding: of a CSV.
        delimiter: of a CSV.
        headed: whether the first line was taken as names.
        header_looks_like_data: whether all names are numbers.
        ragged: lines left out because of their number of cells.
        renamed: columns that had no name and were given one.
        locate: row -> "line 7" or "row 6".
    """

    name: str
    format: str
    frame: Any
    encoding: str = ""
    delimiter: str = ""
    headed: bool = True
    header_looks_like_data: bool = False
    ragged: tuple[Ragged, ...] = ()
    renamed: tuple[str, ...] = ()
    locate: Callable[[int], str] = field(default=lambda row: f"row {row + 1}")


def read_bytes(source: str | Path | bytes, name: str, max_bytes: int = MAX_BYTES) -> bytes:
    """A whole file, unpacked when it is a .gz, never more than allowed.

    Args:
        source: a path, or the bytes themselves.
        name: of the file, for messages and for the ".gz" ending.
        max_bytes: most bytes, after unpacking.

    Returns:
        The bytes.

    Raises:
        InputError: no such file, a folder, unreadable, damaged or too large.
    """
    if isinstance(source, bytes):
        data = source
        check_size(name, len(data), max_bytes)
    else:
        path = Path(source)
        if path.is_dir():
            raise InputError(f"{path} is a folder; name a file in it.")
        try:
            check_size(name, path.stat().st_size, max_bytes)
            data = path.read_bytes()
        except FileNotFoundError:
            raise InputError(f"There is no file {str(path)!r}.") from None
        except OSError as error:
            raise InputError(f"Cannot read {str(path)!r}: {error.strerror or error}") from error
    if name.lower().endswith(".gz") or data[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = packed.read(max_bytes + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{name} is a damaged .gz file: {error}. Download or pack it again.") from error
        check_size(f"{name} (unpacked)", len(data), max_bytes)
    return data


DAMAGED: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    RuntimeError,  # a password is asked for; NotImplementedError is one of them
    ValueError,
    EOFError,
    OSError,
)
"""What zipfile and the decompressors raise on archives that are damaged, locked or too new."""


def open_zip(source: str | Path | bytes, name: str, kind: str) -> zipfile.ZipFile:
    """Open a zip archive.

    Args:
        source: path, or an upload's bytes.
        name: of the file, for messages.
        kind: what it should be, for messages ("a zip file").

    Returns:
        The archive.

    Raises:
        InputError: no such file, or not a zip that can be read.
    """
    try:
        return zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else Path(source))
    except FileNotFoundError:
        raise InputError(f"There is no file {str(source)!r}.") from None
    except DAMAGED as error:
        raise InputError(f"{name} is not {kind} that can be read: {error}") from error


def check_size(name: str, size: int, max_bytes: int) -> None:
    """Refuse what is larger than allowed.

    Raises:
        InputError: too large; says what to do.
    """
    if size > max_bytes:
        raise InputError(
            f"{name} holds {size / 2**20:,.0f} MB or more; the limit is {max_bytes / 2**20:,.0f} MB. "
            "Convert it to NPY, which is read piece by piece, take a part of it, or raise max_bytes."
        )


def check_cells(name: str, n_rows: int, n_columns: int, max_cells: int) -> None:
    """Refuse tables with too many cells.

    Raises:
        InputError: too many; says what to do.
    """
    if n_rows * n_columns > max_cells:
        raise InputError(
            f"{name} has {n_rows:,} rows x {n_columns:,} columns = {n_rows * n_columns:,} cells; "
            f"the limit is {max_cells:,}. Take fewer rows or columns, or raise max_cells."
        )


def read_csv(
    data: bytes,
    name: str,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    max_cells: int = MAX_CELLS,
) -> RawTable:
    """A CSV as texts.

    Args:
        data: the file.
        name: of the file.
        encoding: None means UTF-8 and nothing else.
        delimiter: None finds it among comma, semicolon, tab and bar.
        header: whether the first line holds names; None means yes.
        max_cells: most rows x columns.

    Returns:
        The table; lines with too many or too few cells are listed in `ragged` and left out.

    Raises:
        InputError: empty, in another encoding, two columns of one name, or too large.
    """
    if not data.strip(b"\r\n\t ,;|\xef\xbb\xbf"):
        raise InputError(f"{name} is empty. Give a file with a header line and a row for each item.")
    text_encoding = _check_encoding(data, name, encoding)
    if text_encoding not in ("utf-8", "utf-8-sig"):
        data = data.decode(text_encoding).encode()
    elif data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    if b"\x00" in data[:_SNIFF_CHARACTERS]:
        raise InputError(
            f"{name} is not a text file (it holds zero bytes). Save the table as CSV or Parquet."
        )

    head = data[:_SNIFF_CHARACTERS].decode("utf-8", "ignore")
    delimiter = delimiter or _find_delimiter(head, name)
    names, header_lines = _first_record(data, delimiter, name)
    looks_like_data = len(names) > 0 and all(_is_number(cell) for cell in names)
    headed = header is not False
    renamed: list[str] = []
    if headed:
        for i, given in enumerate(names):
            if not given.strip():
                names[i] = f"column_{i + 1}"
                renamed.append(names[i])
        twice = (
            sorted({given for given in names if names.count(given) > 1})
            if len(set(names)) < len(names)
            else []
        )
        if twice:
            raise InputError(f"{name} has more than one column called {twice[0]!r}. Rename one of them.")
    else:
        names, header_lines = [f"x{i + 1}" for i in range(len(names))], 0
    # line ends bound the rows from above: enough to refuse before anything is parsed
    check_cells(name, data.count(b"\n"), len(names), 4 * max_cells)
    frame, any_ragged = _arrow_csv(data, names, delimiter, header_lines, name)
    check_cells(name, len(frame), len(names), max_cells)
    ragged = tuple(_ragged_lines(data, delimiter, len(names), header_lines)) if any_ragged else ()

    def locate(row: int) -> str:
        return f"line {_line_of(data, delimiter, len(names), header_lines, row)}"

    return RawTable(
        name,
        "csv",
        frame,
        encoding=text_encoding,
        delimiter=delimiter,
        headed=headed,
        header_looks_like_data=looks_like_data and header is None,
        ragged=ragged,
        renamed=tuple(renamed),
        locate=locate,
    )


def read_parquet(
    source: str | Path | bytes, name: str, *, max_bytes: int = MAX_BYTES, max_cells: int = MAX_CELLS
) -> RawTable:
    """A Parquet file (or a folder of parts) as a typed table.

    Args:
        source: path or bytes.
        name: of the file.
        max_bytes: most bytes of an upload, and of the table once unpacked.
        max_cells: most rows x columns.

    Returns:
        The table.

    Raises:
        InputError: not Parquet, parts that differ, nested columns, empty or too large.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if isinstance(source, bytes):
            check_size(name, len(source), max_bytes)
            files = [pq.ParquetFile(io.BytesIO(source))]
        else:
            files = [pq.ParquetFile(path) for path in parquet_parts(source)]
        schema = files[0].schema_arrow
        for part in files[1:]:
            if not part.schema_arrow.equals(schema, check_metadata=False):
                raise InputError(f"The parts of {name} do not have the same columns; make them alike.")
        check_cells(name, sum(part.metadata.num_rows for part in files), len(schema.names), max_cells)
        unpacked = sum(
            part.metadata.row_group(i).total_byte_size for part in files for i in range(part.num_row_groups)
        )
        check_size(f"{name} (unpacked)", unpacked, max_bytes)
        nested = [column.name for column in schema if pa.types.is_nested(column.type)]
        if nested:
            raise InputError(
                f"Column {nested[0]!r} of {name} holds lists or records; spread it over plain columns, "
                "one number or text a cell."
            )
        table = pa.concat_tables([part.read() for part in files])
        for i, column in enumerate(schema):
            if pa.types.is_boolean(column.type):  # with empty cells pandas would make texts of them
                table = table.set_column(i, column.name, table.column(i).cast(pa.int8()))
    except InputError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{name} is not a Parquet file that can be read: {error}") from error
    if len(set(schema.names)) < len(schema.names):
        raise InputError(f"{name} has two columns of one name. Rename one of them.")
    # pandas' own metadata would hide an index that was saved as a column, such as the ids
    table = table.replace_schema_metadata(None)
    unnamed = [column for column in table.column_names if column.startswith("__index_level_")]
    return RawTable(name, "parquet", table.drop_columns(unnamed).to_pandas())


def parquet_parts(source: str | Path) -> list[Path]:
    """The files of a Parquet table: itself, or the .parquet files in a folder by name.

    Raises:
        InputError: nothing there.
    """
    path = Path(source)
    if path.is_dir():
        parts = sorted(path.glob("*.parquet"))
        if not parts:
            raise InputError(f"There is no .parquet file in the folder {str(path)!r}.")
        return parts
    if not path.exists():
        raise InputError(f"There is no file {str(path)!r}.")
    return [path]


def _check_encoding(data: bytes, name: str, encoding: str | None) -> str:
    if encoding is not None:
        try:
            data.decode(encoding)
        except LookupError:
            raise InputError(f"There is no encoding called {encoding!r}; try 'cp1252' or 'utf-16'.") from None
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise InputError(f"{name} is not {encoding}: line {line} cannot be read as such.") from None
        return encoding.lower().replace("_", "-")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        guess = guess_encoding(data)
        line = data[: error.start].count(b"\n") + 1
        raise InputError(
            f"{name} is not UTF-8 text: line {line} holds the byte 0x{data[error.start]:02X}. "
            f'Say which encoding it is, probably encoding="{guess}", or save it again as UTF-8.'
        ) from None
    return "utf-8"


def guess_encoding(data: bytes) -> str:
    """The likeliest encoding of a text that is not UTF-8."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def _find_delimiter(head: str, name: str) -> str:
    if name.lower().removesuffix(".gz").endswith((".tsv", ".tab")):
        return "\t"
    best, best_score = ",", (0, 0)
    for candidate in _DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(io.StringIO(head), delimiter=candidate) if row][:20]
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


def _reader(data: bytes, delimiter: str) -> Any:
    csv.field_size_limit(1 << 27)
    stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    return csv.reader(stream, delimiter=delimiter)


def _first_record(data: bytes, delimiter: str, name: str) -> tuple[list[str], int]:
    reader = _reader(data, delimiter)
    try:
        for record in reader:
            if record:
                return list(record), reader.line_num
    except csv.Error as error:
        raise InputError(f"{name}, line {reader.line_num}: {error}.") from error
    raise InputError(f"{name} is empty. Give a file with a header line and a row for each item.")


def _arrow_csv(
    data: bytes, names: list[str], delimiter: str, header_lines: int, name: str
) -> tuple[Any, bool]:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.csv as pc

    body = data
    for _ in range(header_lines):
        body = body[_line_end(body) :]
    if not body.strip():
        return pd.DataFrame({given: pd.Series([], dtype="str") for given in names}), False
    bad: list[int] = []

    def skip(row: Any) -> str:
        bad.append(1)
        return "skip"

    try:
        table = pc.read_csv(
            pa.BufferReader(body),
            read_options=pc.ReadOptions(column_names=names, block_size=max(1 << 20, min(len(body), 1 << 26))),
            parse_options=pc.ParseOptions(
                delimiter=delimiter, newlines_in_values=b'"' in body, invalid_row_handler=skip
            ),
            convert_options=pc.ConvertOptions(
                column_types={given: pa.string() for given in names}, strings_can_be_null=False
            ),
        )
    except pa.ArrowException as error:
        raise InputError(f"{name} cannot be read as CSV: {error}") from error
    return table.to_pandas(), bool(bad)


def _line_end(data: bytes) -> int:
    newline, back = data.find(b"\n"), data.find(b"\r")
    if back >= 0 and (newline < 0 or back < newline):
        return back + 2 if data[back + 1 : back + 2] == b"\n" else back + 1
    return len(data) if newline < 0 else newline + 1


def _ragged_lines(data: bytes, delimiter: str, width: int, header_lines: int) -> list[Ragged]:
    found: list[Ragged] = []
    reader = _reader(data, delimiter)
    start = 1
    for record in reader:
        if record and start > header_lines and len(record) != width:
            found.append(Ragged(start, len(record), width))
        start = reader.line_num + 1
    return found


def _line_of(data: bytes, delimiter: str, width: int, header_lines: int, row: int) -> int:
    reader = _reader(data, delimiter)
    start, at = 1, -1
    for record in reader:
        # the same lines count here that the table kept: not blank, not ragged
        if record and start > header_lines and len(record) == width:
            at += 1
            if at == row:
                return start
        start = reader.line_num + 1
    return start


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
