"""Scan of a spreadsheet's XML for where its cells lie: readers make a cell of each place up to the last."""

import functools
import posixpath
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

from workbench.errors import InputError
from workbench.pools.formats.files import check_cells, check_size
from workbench.reading import cut

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
                column, row = _column(letters[:4]), int(place[len(letters) :])
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
def _column(letters: str) -> int:
    return functools.reduce(lambda total, letter: 26 * total + ord(letter) - 64, letters, 0)
