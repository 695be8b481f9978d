"""Workbooks: one sheet as a table. Formulas are not run; their last values are read.

Those of today's Excel are read here, once it is known where their cells lie; .xls, .xlsb and .ods by another
process, of which memory and time are limited.
"""

from __future__ import annotations

import functools
import io
import json
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from datetime import date, datetime, time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from workbench.errors import InputError
from workbench.pools.formats.files import File, check_cells, check_size
from workbench.pools.tables import table_reader
from workbench.pools.tables.heads import LOOKED_AT, SAMPLE, explaining, named, titles, told_names, told_titles
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.source_table import RawTable, check_names
from workbench.reading import cut, listed, parse_json, reading

_FORM = "an Excel workbook (.xlsx)"
_LONGEST = 32_767
"""Characters of a cell in Excel."""
MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384
"""Rows and columns of a sheet in Excel. A reader makes every row and cell that a reference skips."""
_REPEATED = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}number-%s-repeated"
_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})")


def read(file: File, options: TableOptions) -> RawTable:
    """A sheet as a table.

    Args:
        file: also .gz.
        options: sheet (None takes the first that holds something, hidden ones last), header, max_bytes also
            of what is packed in the workbook, max_cells, max_columns.

    Returns:
        The table: texts, numbers and dates as the cells hold them. Empty rows are left out.

    Raises:
        InputError: no workbook, no such sheet, empty, two columns of one name, or too large.
    """
    from openpyxl import load_workbook

    data = file.content(options.max_bytes)
    with reading(file.name, _FORM, "Save it again, or save the sheet as CSV."):
        with File(data, file.name).zipped(_FORM) as packed:
            check_size(
                f"{file.name} (unpacked)", sum(i.file_size for i in packed.infolist()), options.max_bytes
            )
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
        try:
            return _table(file.name, book, options, data)
        finally:
            book.close()


def read_apart(file: File, options: TableOptions) -> RawTable:
    """A sheet of .xls, .xlsb or .ods as a table, read by another process.

    Args:
        file: also .gz.
        options: as of `read`.

    Raises:
        InputError: as `read`; or the system limits no process.
    """
    name, advice = file.name, "Save it as .xlsx, or the sheet as CSV."
    data = file.content(options.max_bytes)
    with reading(name, "a spreadsheet", advice):
        if data.startswith(b"PK"):
            with File(data, name).zipped("a spreadsheet") as packed:
                check_size(
                    f"{name} (unpacked)", sum(i.file_size for i in packed.infolist()), options.max_bytes
                )
                if "content.xml" in packed.namelist():
                    _check_repeated(name, packed, options.max_cells)
        settings = json.dumps([options.sheet, options.max_cells, options.max_bytes // 2])
        script = Path(__file__).with_name("sheet_process.py")
        done = subprocess.run(
            [sys.executable, "-P", str(script), settings], input=data, capture_output=True, check=False
        )
        lines = io.BytesIO(done.stdout)
        head = parse_json(lines.readline() or b"{}", name)
        problem = head.get("problem")
        if done.returncode < 0 or b"MemoryError" in done.stderr:
            problem = "asks for too much memory or time"
        elif done.returncode:
            problem = "is not a spreadsheet that can be read"
        if problem:
            raise InputError(f"{name} {problem}. {advice}")
        height, width = head["size"]
        check_cells(name, height, width, options.max_cells, options.max_columns)
        if options.sheet is not None and options.sheet not in head["titles"]:
            raise _no_sheet(name, options.sheet, head["titles"])
        rows = {}
        for number, line in enumerate(lines, start=1):
            cells = parse_json(line, name)
            if cells.count("") < len(cells):
                rows[number] = list(map(_value, cells))
        if not rows:
            raise _empty(name)
        others = _others(options, head["title"], head["titles"])
        return _framed(name, list(rows.values()), list(rows), others, options)


READER, APART = table_reader(read), table_reader(read_apart)


def _value(cell: Any) -> Any:
    return datetime.fromisoformat(cell["date"]) if isinstance(cell, dict) else None if cell == "" else cell


def _check_repeated(name: str, packed: zipfile.ZipFile, max_cells: int) -> None:
    """Refuse an OpenDocument whose cells, some of which stand for many, reach too far."""
    row = column = width = 0
    filled = False
    with packed.open("content.xml") as xml:
        for _, element in ElementTree.iterparse(xml):
            kind = element.tag.rpartition("}")[2]
            if kind in ("table-cell", "covered-table-cell"):
                column += int(element.get(_REPEATED % "columns", 1))
                if len(element) or any(key.endswith("value-type") for key in element.attrib):
                    width, filled = max(width, column), True
                element.clear()
            elif kind == "table-row":
                row, column = row + int(element.get(_REPEATED % "rows", 1)), 0
                check_cells(name, row if filled else 0, width, max_cells, MAX_COLUMNS)
                filled = False
                element.clear()
            elif kind == "table":
                row = width = 0


def _no_sheet(name: str, title: str, titles: Any) -> InputError:
    return InputError(f"{name} has no sheet {cut(title)}; it has {listed(titles)}.")


def _empty(name: str) -> InputError:
    return InputError(f"{name} is empty. Give a sheet with a line of names and a row for each item.")


def _others(options: TableOptions, title: str, titles: Any) -> tuple[str, ...]:
    """A note on the sheets beside the one that is read, where nobody said which."""
    other_titles = [other for other in titles if other != title]
    if options.sheet or not other_titles:
        return ()
    return (f"Read is the sheet {title!r}; there are also {listed(other_titles)} (sheet=).",)


def _table(name: str, book: Any, options: TableOptions, data: bytes) -> RawTable:
    # hidden sheets hold lists for others to choose from
    ordered = sorted(book.worksheets, key=lambda sheet: bool(sheet.sheet_state != "visible"))
    sheets = {sheet.title: sheet for sheet in ordered}
    if options.sheet is not None and options.sheet not in sheets:
        raise _no_sheet(name, options.sheet, sheets)
    candidates = [sheets[options.sheet]] if options.sheet is not None else list(sheets.values())
    for sheet in candidates:
        n_filled = _check_references(name, data, sheet, options.max_cells)
        rows, at, n_left = _rows(name, sheet, options)
        if rows:
            raw = _framed(name, rows, at, _others(options, sheet.title, sheets), options)
            n_there = n_filled - (options.header is not False)
            return replace(raw, n_there=n_there, n_left=raw.n_left + n_left)
    raise _empty(name)


def _check_references(name: str, data: bytes, sheet: Any, max_cells: int) -> int:
    """Look at where a sheet's rows and cells say that they are, before a reader goes there.

    Args:
        name: of the file, for messages.
        data: of the workbook.
        sheet: of openpyxl.
        max_cells: most cells up to the last one of each row, empty ones included.

    Returns:
        Rows with a value in some cell, counted by another reader than the cells'.

    Raises:
        InputError: a reference beyond the last row or column of Excel, or too many cells.
    """
    n_filled = n_cells = row = 0
    path = sheet._worksheet_path.lstrip("/")
    with zipfile.ZipFile(io.BytesIO(data)) as packed, packed.open(path) as xml:
        filled = False
        for _, element in ElementTree.iterparse(xml):
            kind = element.tag.rpartition("}")[2]
            if kind in ("v", "t"):
                filled = filled or bool(element.text)
            elif kind == "row":
                row = _row_number(name, sheet.title, element.get("r"), row)
                n_cells += _reach(name, sheet.title, element)
                if n_cells > max_cells:
                    raise InputError(
                        f"The sheet {cut(sheet.title)} of {name} has too many cells; the limit is "
                        f"{max_cells:,}, empty ones included. Delete what holds nothing, or save it as CSV."
                    )
                n_filled, filled = n_filled + filled, False
                element.clear()
    return n_filled


def _row_number(name: str, title: str, reference: str | None, before: int) -> int:
    """The number of a row, which follows the one before where it has none of its own."""
    try:
        number = float(before + 1 if reference is None else reference)
    except ValueError:
        number = float("nan")
    if not 1 <= number <= MAX_ROWS or not number.is_integer():
        raise _beyond(name, title, f"row {cut(reference or before + 1)}")
    return int(number)


def _reach(name: str, title: str, row: Any) -> int:
    """Number of cells up to the last one that a row names."""
    column = furthest = 0
    for cell in row:
        reference = cell.get("r")
        match = _CELL.fullmatch(reference or "A1")
        column = (
            column + 1
            if not reference
            else functools.reduce(lambda total, sign: 26 * total + ord(sign) - 64, match[1].upper(), 0)
            if match
            else MAX_COLUMNS + 1
        )
        if column > MAX_COLUMNS or (match and int(match[2]) > MAX_ROWS):
            raise _beyond(name, title, f"cell {cut(reference or column)}")
        furthest = max(furthest, column)
    return furthest


def _beyond(name: str, title: str, place: str) -> InputError:
    return InputError(
        f"The sheet {cut(title)} of {name} names a {place}; Excel has {MAX_ROWS:,} rows and {MAX_COLUMNS:,} "
        "columns. Save it again with Excel or LibreOffice, or save the sheet as CSV."
    )


def _rows(name: str, sheet: Any, options: TableOptions) -> tuple[list[list[Any]], list[int], int]:
    """The rows that hold something, all as long as the longest, their numbers, and how many hold "" alone."""
    rows: list[list[Any]] = []
    at: list[int] = []
    width = n_cells = n_left = 0
    sheet.reset_dimensions()  # other programs write wrong ones, and rows beyond them would not be read
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        values = list(cells)
        while values and values[-1] in (None, ""):
            values.pop()
        if not values:
            n_left += any(cell == "" for cell in cells)
            continue
        width = max(width, len(values))
        n_cells += len(values)
        if n_cells > options.max_cells or width > options.max_columns:
            check_cells(name, len(rows) + 1, width, options.max_cells, options.max_columns)
            raise InputError(f"{name} has more than {options.max_cells:,} cells. Take fewer rows or columns.")
        rows.append(values)
        at.append(number)
    check_cells(name, len(rows), width, options.max_cells, options.max_columns)
    return [row + [None] * (width - len(row)) for row in rows], at, n_left


def _framed(
    name: str, rows: list[list[Any]], at: list[int], notes: tuple[str, ...], options: TableOptions
) -> RawTable:
    import pandas as pd

    texts = [list(map(_text, row)) for row in rows[: LOOKED_AT + SAMPLE]]
    n_above = 0 if options.header is False else titles(texts[:LOOKED_AT])
    numbers = all(isinstance(cell, int | float) for cell in rows[n_above])
    names, renamed = named(texts[n_above], options.header)
    check_names(name, names)
    n_head = n_above + (options.header is not False)
    rows, at = rows[n_head:], at[n_head:]
    cells = pd.DataFrame(texts[n_head : n_head + SAMPLE], columns=names, dtype="str")
    n_under, problems = explaining(cells, None if options.header is None else int(options.header))
    n_under = min(n_under, len(rows))
    rows, at = rows[n_under:], at[n_under:]
    columns = {column: _column([row[i] for row in rows]) for i, column in enumerate(names)}
    return RawTable(
        name,
        "xlsx",
        pd.DataFrame(columns),
        notes=notes,
        problems=(
            *told_names(name, renamed, looks_like_data=numbers and options.header is None),
            *(*told_titles(texts[:n_above]), *problems),
        ),
        n_left=n_above + n_under,
        locate=lambda row: f"row {at[row]}",
    )


def _column(values: list[Any]) -> Any:
    """Cells of one column as numbers or dates where all are, else as texts."""
    import pandas as pd

    filled = [value for value in values if value not in (None, "")]
    plain = [None if value == "" else value for value in values]
    if filled and all(isinstance(value, bool) for value in filled):
        return pd.Series(plain, dtype="boolean")
    if filled and all(isinstance(value, int | float) and not isinstance(value, bool) for value in filled):
        return pd.Series(plain, dtype="float64")
    if filled and all(isinstance(value, datetime | date) for value in filled):
        return pd.Series(pd.to_datetime(pd.Series(plain, dtype="object"), errors="coerce"))
    return pd.Series([_text(value) for value in values], dtype="str")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)[:_LONGEST].replace("_x000D_", "\r")
