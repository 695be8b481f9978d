"""Spreadsheets: one sheet as a table. Formulas are not run; their last values are read.

Another process reads the cells, of which memory and time are limited; the XML of those that have one is
scanned before.
"""

import functools
import io
import json
import posixpath
import re
import subprocess
import sys
import zipfile
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

from workbench.errors import InputError
from workbench.pools.cells import EXACT
from workbench.pools.formats import csv
from workbench.pools.formats.files import File, check_cells, check_size
from workbench.pools.notebooks import counted
from workbench.pools.tables import table_reader
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.report import Problem
from workbench.pools.tables.source_table import (
    LOOKED_AT,
    SAMPLE,
    RawTable,
    check_names,
    explaining,
    named,
    titles,
    told_names,
    told_titles,
    typed_column,
)
from workbench.reading import cut, listed, parse_json, reading

MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384
"""Rows and columns of a sheet in Excel."""
_CELLS = ("c", "table-cell", "covered-table-cell")


@dataclass
class SheetScan:
    """Content of a sheet by its XML.

    Attributes:
        filled: numbers of the rows with a value in some cell, as they stand.
        height: last row of a cell that is not only a style.
        width: last column of one.
        n_errors: cells with an error.
        unstored: column -> cells whose formula has no stored value.
    """

    filled: list[int] = field(default_factory=list)
    height: int = 0
    width: int = 0
    n_errors: int = 0
    unstored: Counter[int] = field(default_factory=Counter)

    def reach(self, name: str, row: int, column: int, max_cells: int) -> None:
        """Take in a cell, up to which a reader makes all cells.

        Raises:
            InputError: too many.
        """
        if row > self.height or column > self.width:
            self.height, self.width = max(self.height, row), max(self.width, column)
            where = f"{name} (up to its last cell that holds something)"
            check_cells(where, self.height, self.width, max_cells, MAX_COLUMNS)


def sheet_parts(packed: zipfile.ZipFile) -> dict[str, str]:
    """Title -> part of the sheets of an .xlsx; hidden ones, which hold lists to choose from, come last."""

    def parsed(part: str) -> Any:
        check_size(part, packed.getinfo(part).file_size, 32 << 20)  # it becomes a tree
        return ElementTree.fromstring(packed.read(part))

    targets = {
        link.get("Id"): posixpath.normpath(posixpath.join("/xl", link.get("Target", ""))).lstrip("/")
        for link in parsed("xl/_rels/workbook.xml.rels")
        if link.get("Type", "").endswith("/worksheet")
    }
    sheets = parsed("xl/workbook.xml").iterfind(".//{*}sheet")
    parts = {}
    for sheet in sorted(sheets, key=lambda sheet: bool(sheet.get("state", "visible") != "visible")):
        link = next((value for key, value in sheet.items() if key.endswith("}id")), "")
        if link in targets:
            parts[sheet.get("name", "")] = targets[link]
    return parts


def scan_cells(name: str, packed: zipfile.ZipFile, part: str, max_cells: int) -> dict[str, SheetScan]:
    """Title -> scan of the sheets in a part of an .ods, in which cells may stand for many, or of an .xlsx.

    Args:
        name: of the file, for messages.
        packed: the file.
        part: its cells; one of an .xlsx is one sheet, and has no title.
        max_cells: most cells up to the last row and column with a value.

    Raises:
        InputError: a reference beyond the last row or column of Excel, or too many cells.
    """
    scans = {"": SheetScan()}
    scan = scans[""]
    row = column = 0
    kind = text = within = ""
    is_there = False

    def start(tag: str, about: dict[str, str]) -> None:
        nonlocal scan, row, column, kind, text, within, is_there
        within = tag = tag.rpartition(":")[2]
        place = about.get("r", "")
        if tag == "table":
            scan, row = scans.setdefault(about.get("table:name", ""), SheetScan()), 0
        elif tag in ("row", "table-row"):
            row = int(place or row + int(about.get("table:number-rows-repeated", 1)))
            column = 0
        elif tag in _CELLS:
            column += int(about.get("table:number-columns-repeated", 1))
            if place:
                letters = place.rstrip("0123456789")
                column, row = _column_number(letters[:4]), int(place[len(letters) :])
            text = about.get("office:value-type", "")
            is_there = bool(text)
            kind = about.get("t", about.get("calcext:value-type", "f" if "table:formula" in about else "n"))
        elif tag in ("v", "is", "p"):
            is_there = True
        elif tag == "f" and kind == "n":
            kind = tag
        if tag in ("row", "c") and not (0 < row <= MAX_ROWS and 0 <= column <= MAX_COLUMNS):
            raise InputError(
                f"A sheet of {name} names the place {cut(place or column)}; Excel has {MAX_ROWS:,} rows and "
                f"{MAX_COLUMNS:,} columns. Save it again with Excel or LibreOffice, or save the sheet as CSV."
            )

    def end(tag: str) -> None:
        nonlocal within
        within = ""
        if tag.rpartition(":")[2] not in _CELLS:
            return
        if is_there:
            scan.reach(name, row, column, max_cells)
        if text:
            if scan.filled[-1:] != [row]:
                scan.filled.append(row)
            scan.n_errors += kind in ("e", "error")
        elif kind == "f":
            scan.unstored[column] += 1

    def take(characters: str) -> None:
        nonlocal text
        if within in ("v", "t", "p"):
            text = text or characters

    parser = expat.ParserCreate()  # makes no tree, which elements of a few bytes would fill
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, take
    with packed.open(part) as xml:
        parser.ParseFile(xml)
    return scans


@functools.lru_cache(maxsize=MAX_COLUMNS)
def _column_number(letters: str) -> int:
    return functools.reduce(lambda total, letter: 26 * total + ord(letter) - 64, letters, 0)


_ERRORS = re.compile(rb"(?s)\x05\x02\x08\0.{6}[\0-\x2a]\x01|\x06\0.{8}\x02\0[\0-\x2a]\0{3}\xff\xff")
"""Records of errors, and of formulas that end with one, in an .xls."""
_FORM, _ADVICE = "a spreadsheet", "Save it as .xlsx, or the sheet as CSV."


def read(file: File, options: TableOptions) -> RawTable:
    """A sheet as a table.

    Args:
        file: .xlsx, .xls, .xlsb or .ods by its bytes, whatever it is called; also .gz.
        options: sheet (None takes the first that holds something, hidden ones last), header, max_bytes also
            of what is packed in the workbook, max_cells, max_columns.

    Returns:
        The table: texts, numbers and dates as the cells hold them. Empty rows are left out.

    Raises:
        InputError: no spreadsheet, no such sheet, empty, two columns of one name, too large, or the system
            cannot limit a process's memory and the cells were not scanned.
    """
    name, data = file.name, file.content(options.max_bytes)
    if data.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"<"):
        raise InputError(
            f"{name} is a web page or XML under a spreadsheet's name. Open it with Excel or LibreOffice, and "
            "save it as .xlsx or CSV."
        )
    if b"\t" in data.partition(b"\n")[0] and (b"\0" not in data[:1_000] or data.startswith(b"\xff\xfe")):
        return csv.read(file, options)  # that a web site calls .xls
    with reading(name, _FORM, _ADVICE):
        sheet, scans = options.sheet, dict[str, SheetScan]()
        limits_needed = True
        if data.startswith(b"PK"):
            with File(data, name).zipped(_FORM) as packed:
                check_size(
                    f"{name} (unpacked)", sum(i.file_size for i in packed.infolist()), options.max_bytes
                )
                names = packed.namelist()
                if "content.xml" in names:
                    scans = scan_cells(name, packed, "content.xml", options.max_cells)
                elif "xl/workbook.bin" not in names:
                    limits_needed = False
                    for title, part in sheet_parts(packed).items():
                        if sheet in (None, title):
                            scans[title] = scan_cells(name, packed, part, options.max_cells)[""]
                            sheet = title if scans[title].filled else sheet
        head, lines = _asked(name, data, [sheet, options.max_cells, options.max_bytes // 2, limits_needed])
        n_rows, n_columns = head["size"]
        check_cells(name, n_rows, n_columns, options.max_cells, options.max_columns)
        if options.sheet is not None and options.sheet not in head["titles"]:
            raise InputError(f"{name} has no sheet {cut(options.sheet)}; it has {listed(head['titles'])}.")
        title = head.get("title", "")
        scan = scans.get(title, SheetScan())
        if not data.startswith(b"PK"):
            scan.n_errors = len(_ERRORS.findall(data))
        rows, filled, n_blank = {}, set(scan.filled), 0
        for number, line in enumerate(lines, start=1):
            if line.isspace():
                n_blank += number in filled
            else:
                rows[number] = [
                    datetime.fromisoformat(cell["date"])
                    if isinstance(cell, dict)
                    else None
                    if cell == ""
                    else cell
                    for cell in parse_json(line, name)
                ]
        others = [other for other in head["titles"] if other != title]
        notes: tuple[str, ...] = ()
        if title and others and not options.sheet:
            way = json.dumps(others[0], ensure_ascii=False)
            ways = f"there are also {listed(others)}. Say sheet={way} to read it."
            notes = (f"Read is the sheet {title!r}; {ways}",)
        if not rows:
            words = f"{name} is empty. Give a sheet with a line of names and a row for each item."
            raise InputError(" ".join((words, *notes)))
        while all(row[-1] is None for row in rows.values()):
            for row in rows.values():
                row.pop()
        raw = replace(_framed(name, rows, options, scan), notes=notes)
        if limits_needed:
            return raw
        return replace(
            raw, n_there=len(scan.filled) - (options.header is not False), n_left=raw.n_left + n_blank
        )


def _asked(name: str, data: bytes, settings: list[Any]) -> tuple[dict[str, Any], io.BytesIO]:
    """The head and the rows that the process writes of a sheet."""
    script = Path(__file__).with_name("sheet_process.py")
    done = subprocess.run(
        [sys.executable, "-P", str(script), json.dumps(settings)],
        input=data,
        capture_output=True,
        check=False,
    )
    lines = io.BytesIO(done.stdout)
    head = parse_json(lines.readline() or b"{}", name)
    problem = head.get("problem")
    if done.returncode < 0 or b"MemoryError" in done.stderr:
        problem = "asks for too much memory or time"
    elif done.returncode:
        problem = "is not a spreadsheet that can be read"
    if problem:
        raise InputError(f"{name} {problem}. {_ADVICE}")
    return head, lines


READER = table_reader(read)


def _framed(
    name: str,
    numbered: dict[int, list[Any]],
    options: TableOptions,
    scan: SheetScan,
) -> RawTable:
    import pandas as pd

    at, rows = list(numbered), list(numbered.values())
    texts = [list(map(_text, row)) for row in rows[: LOOKED_AT + SAMPLE]]
    n_above = 0 if options.header is False else titles(texts[:LOOKED_AT])
    numbers = all(isinstance(cell, int | float) for cell in rows[n_above])
    names, renamed = named(texts[n_above], options.header)
    check_names(name, names)
    n_head = n_above + (options.header is not False)
    rows, at = rows[n_head:], at[n_head:]
    head = pd.DataFrame(texts[n_head : n_head + SAMPLE], columns=names, dtype="str")
    n_under, problems = explaining(head, options.header)
    rows, at = rows[n_under:], at[n_under:]
    told = []
    if scan.n_errors:
        cells = counted(scan.n_errors, "cell")
        told.append(Problem("errors", "note", f"An error (#N/A, #DIV/0!) counts as empty: {cells}."))
    for i, n in scan.unstored.items():
        column = dict(enumerate(names, start=1)).get(i, f"column {i}")
        words = (
            f"{counted(n, 'formula')} of {column!r} without a value count as empty, for no program has "
            "worked them out. Open the file with Excel or LibreOffice, and save it."
        )
        told.append(Problem("formulas", "note", words, column))
    columns = {column: typed_column([row[i] for row in rows], _text) for i, column in enumerate(names)}
    for column, cells in columns.items():
        if cells.dtype == "float64" and (cells.abs() >= EXACT).any() and not (cells % 1 > 0).any():
            words = f"{column!r} has numbers of which a sheet keeps 15 digits. Write ids as texts."
            told.append(Problem("digits", "note", words, column))
    return RawTable(
        name,
        "xlsx",
        pd.DataFrame(columns),
        problems=(
            *told_names(name, renamed, looks_like_data=numbers and options.header is None),
            *(*told_titles(texts[:n_above]), *problems, *told),
        ),
        n_left=n_above + n_under,
        locate=lambda row: f"row {at[row]}",
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)
