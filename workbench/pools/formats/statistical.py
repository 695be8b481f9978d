"""Tables of statistics programs: Weka's ARFF, Stata and SAS. Values with labels are read as their labels."""

import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from workbench.errors import InputError
from workbench.pools.formats.arrow import framed
from workbench.pools.formats.encodings import as_utf8, settle_encoding
from workbench.pools.formats.files import File, check_cells, check_size
from workbench.pools.formats.json import MAX_DOCUMENT
from workbench.pools.python_objects import plain_column
from workbench.pools.tables import table_reader
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.source_table import RawTable, check_names
from workbench.pools.tables.uses import CLASS_NAMES, ColumnUse
from workbench.reading import reading

_CHUNK = 10_000  # rows that are read at once: a head may say any number of them
_ATTRIBUTE = re.compile(
    r"""^[^\S\n]*@attribute\s+('(?:[^'\\\n]|\\.){0,999}'|"(?:[^"\\\n]|\\.){0,999}"|[^\s{]+)\s*(\{[^\n]*|\w+)""",
    re.MULTILINE | re.IGNORECASE,
)
# nothing of a quoted cell is given back: each sign that might be takes the matcher 150 bytes
_CELL = r"""\s*((?:\d+ +)?(?:'(?:[^'\\]|\\.|'')*+'|"(?:[^"\\]|\\.|"")*+"|[^{0}]*?))\s*{0}"""
_SIGNS = {"n": "\n", "t": "\t", "r": "\r"}
_DATA = re.compile(r"^[^\S\n]*@data\b.*$", re.MULTILINE | re.IGNORECASE)
_SAS_SET = re.compile(rb"(?=HEADER RECORD\*{7}MEMB(?:ER|V8) )")
_NUMBERS = ("numeric", "real", "integer")


def read_stata(file: File, options: TableOptions) -> RawTable:
    """A file of Stata (.dta).

    Args:
        file: also .gz.
        options: max_bytes, max_cells, max_columns.

    Raises:
        InputError: damaged, or too large.
    """
    import pandas as pd

    def opened(named: bool) -> Any:
        return pd.read_stata(io.BytesIO(data), chunksize=_CHUNK, convert_categoricals=named)

    data = file.content(options.max_bytes)
    note = (
        f"Labels of values are read of files up to {MAX_DOCUMENT >> 21} MB; these are the values themselves."
    )
    with reading(file.name, "a file of Stata", "Save it again, or as CSV."):
        try:
            if len(data) <= MAX_DOCUMENT // 2:  # pandas looks for labels in all that follows the rows
                return _framed(file.name, "stata", opened(True), options)
        except ValueError as error:  # two values with one label
            if "labels" not in str(error):
                raise
            note = "Several values have the same label, so the values are read and not their labels."
        return _framed(file.name, "stata", opened(False), options, note)


def read_sas(file: File, options: TableOptions) -> RawTable:
    """A data set of SAS (.sas7bdat), or its transport file (.xpt).

    Args:
        file: also .gz.
        options: max_bytes, max_cells, max_columns, encoding.

    Raises:
        InputError: damaged, of an unknown encoding, or too large.
    """
    import pandas as pd

    data = file.content(options.max_bytes)
    is_transport = data.startswith(b"HEADER RECORD")
    starts = [match.start() for match in _SAS_SET.finditer(data)] if is_transport else []
    notes = (f"The first of its {len(starts)} data sets.",) if len(starts) > 1 else ()
    data = data[: starts[1]] if notes else data

    def opened(encoding: str | None) -> Any:
        form = "xport" if is_transport else "sas7bdat"
        reader: Any = pd.read_sas(io.BytesIO(data), format=form, chunksize=_CHUNK, encoding=encoding)  # type: ignore[call-overload]
        if is_transport:  # pandas takes blanks in the last texts for rows that are none
            rows, length = data[reader.record_start :], reader.record_length
            reader.nobs = min(-(-len(rows.rstrip()) // length), len(rows) // length)
        return reader

    with reading(file.name, "a data set of SAS", "Save it again, or as CSV."), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a file that is cut, which is told of
        if not is_transport:
            return _framed(file.name, "sas", opened(options.encoding or "infer"), options)
        with opened(None) as reader:
            rows = data[reader.record_start :]
            if len(rows) % 80 or len(rows.rstrip()) > reader.nobs * reader.record_length:
                notes = (*notes, f"{file.name} ends within a row: it may be cut. Its whole rows are read.")
            texts = (piece.select_dtypes("object").to_numpy().ravel() for piece in reader)
            odd = b"\n".join(cell for cells in texts for cell in cells if not cell.isascii())
        encoding, problems = settle_encoding(odd, file.name, options.encoding)
        return replace(_framed(file.name, "sas", opened(encoding), options, *notes), problems=problems)


def _framed(name: str, form: str, source: Any, options: TableOptions, *notes: str) -> RawTable:
    """The rows of a reader of pandas, piece by piece."""
    import pandas as pd
    import pyarrow as pa

    pieces: list[Any] = []
    n_rows = n_bytes = 0
    with source as reader, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pieces have other categories, and dates of no day
        for piece in reader:
            n_rows, n_bytes = n_rows + len(piece), n_bytes + int(piece.memory_usage(deep=True).sum())
            check_cells(name, n_rows, piece.shape[1], options.max_cells, options.max_columns)
            check_size(f"{name} (unpacked)", n_bytes, 4 * options.max_bytes)
            pieces.append(piece.apply(plain_column))
    if not pieces:
        raise InputError(f"{name} holds no rows.")
    frame = pd.concat(pieces, ignore_index=True).apply(plain_column)
    check_names(name, [str(column) for column in frame.columns])
    return framed(name, form, pa.Table.from_pandas(frame, preserve_index=False), {}, notes)


def read_arff(file: File, options: TableOptions) -> RawTable:
    """A file of Weka, as OpenML has them: names and types, then rows with commas between, or sparse ones.

    Args:
        file: also .gz.
        options: max_bytes, max_cells, max_columns, encoding.

    Raises:
        InputError: no such head, a row of another number of cells, or too large.
    """
    import pandas as pd

    data = file.content(options.max_bytes)
    check_size(f"{file.name} (of this format)", len(data), MAX_DOCUMENT)
    data, _, problems = as_utf8(data, file.name, options.encoding)
    text = data.decode()
    start = _DATA.search(text)
    attributes = _ATTRIBUTE.findall(text[: start.start()]) if start else []
    if start is None or not attributes:
        raise InputError(f"{file.name} has no lines of @attribute and of @data. Save it again, or as CSV.")
    names = [_unquoted(name) for name, _ in attributes]
    # a row of "{}" is as many cells as one that names all, and each is an object until it is a column's
    n_lines, most = text.count("\n", start.end()), options.max_cells // 5
    check_cells(file.name, n_lines, len(names), most, options.max_columns)
    lines = enumerate(text[start.end() :].split("\n"), start=text.count("\n", 0, start.end()) + 1)
    numbered = [(at, line.strip()) for at, line in lines if line.strip() and line.lstrip()[0] != "%"]
    check_names(file.name, names)
    zeros = [_cells(kind[1:])[0].rstrip("} ") if kind[0] == "{" else "0" for _, kind in attributes]
    rows = [_row(line, zeros) for _, line in numbered]
    odd = next((i for i, row in enumerate(rows) if len(row) != len(names)), None)
    if odd is not None:
        raise InputError(
            f"Line {numbered[odd][0]} of {file.name} has {len(rows[odd])} cells for {len(names)} attributes. "
            "Correct it, or save the table as CSV."
        )
    columns: dict[str, Any] = {}
    uses: dict[str, ColumnUse] = {}
    for (_, kind), name, cells in zip(attributes, names, zip(*rows, strict=True), strict=False):
        column = pd.Series(cells, dtype="str").replace("?", None)
        with reading(f"The attribute {name!r} of {file.name}", "all numbers", "Correct its cells."):
            columns[name] = pd.to_numeric(column) if kind.lower() in _NUMBERS else column
        if kind[0] == "{" and name.strip().lower() not in CLASS_NAMES:
            uses[name] = ColumnUse("category", "own", guessed=True)
    frame = pd.DataFrame(columns, columns=names)
    return RawTable(
        file.name, "arff", frame, uses=uses, problems=problems, locate=lambda row: f"line {numbered[row][0]}"
    )


def _row(line: str, zeros: Sequence[str]) -> list[str]:
    """The cells of a line; of a sparse one, {index value, ...}, those that it does not name are zeros."""
    row = _cells(line)
    if line.startswith("{") and line.endswith("}"):
        row = list(zeros)
        for cell in filter(None, _cells(line[1:-1])):
            index, *value = cell.split(None, 1)
            if not index.isdecimal() or len(index) > 9 or int(index) >= len(row):
                return []
            row[int(index)] = "".join(value)
    return list(map(_unquoted, row)) if len(row) == len(zeros) else row


def _cells(line: str) -> list[str]:
    """The cells of a line, still quoted, each with its number where it has one."""
    between = "," if "," in line or "\t" not in line else "\t"
    return re.findall(_CELL.format(between), line + between)


def _unquoted(text: str) -> str:
    if len(text) < 2 or text[0] not in "'\"" or text[-1] != text[0]:
        return text
    return re.sub(
        rf"\\(.)|{text[0]}{{2}}", lambda match: _SIGNS.get(match[1], match[1] or text[0]), text[1:-1]
    )


ARFF, STATA, SAS = table_reader(read_arff), table_reader(read_stata), table_reader(read_sas)
