"""Text files with an item on each line."""

import re

from workbench.errors import InputError
from workbench.pools.formats import csv
from workbench.pools.formats.encodings import as_utf8
from workbench.pools.formats.files import File, check_cells
from workbench.pools.tables import table_reader
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.report import Fix, Problem
from workbench.pools.tables.source_table import RawTable
from workbench.pools.tables.uses import ColumnUse
from workbench.reading import cut

_LOOKED_AT = 50
_CELL = 24  # characters of a cell of a table in the mean; sentences with commas are longer


def read(file: File, options: TableOptions) -> RawTable:
    """A text file: lines, or the table that it is by its looks or by what is asked of it.

    Args:
        file: also .gz.
        options: lines says which of the two; the others as for a CSV.

    Returns:
        A table with the one column "text", or that of `csv.read`.

    Raises:
        InputError: as for a CSV.
    """
    data, encoding, problems = as_utf8(file.content(options.max_bytes), file.name, options.encoding)
    text = data.decode()
    as_lines = options.lines
    if as_lines is None:
        as_lines = not _names_columns(options) and not _is_table(text, options.delimiter)
    if not as_lines:
        return csv.read(file, options)
    import pandas as pd

    numbered = [(i, line.strip()) for i, line in enumerate(_lines(text), start=1) if line.strip()]
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
        problems=(*problems, _told(frame["text"].tolist()) if options.lines is None else _EACH),
        locate=lambda row: f"line {at[row]}",
    )


_EACH = Problem("lines", "note", "Each line is an item.")


def _told(lines: list[str]) -> Problem:
    """Note that each line is an item; a guess where all lines have as many words, as those of a table."""
    widths = [len(line.split()) for line in lines[:_LOOKED_AT]]
    names_rows = widths[0] in (widths[-1], widths[-1] - 1)  # R leaves the names of rows without one
    if min(widths) < 2 or len(set(widths[1:])) != 1 or not names_rows:
        return _EACH
    ways = (Fix("Items", {"lines": True}), Fix("Cells", {"lines": False, "delimiter": " "}))
    message = f"Each line is an item, as {cut(lines[0], 60)}: or are these cells with a space between?"
    return Problem("lines", "guess", message, fixes=ways)


READER = table_reader(read, csv.ways_to_read)


def _lines(text: str) -> list[str]:
    """Lines end where they do in any editor; str.splitlines tears texts at eight more characters."""
    return re.split(r"\r\n|\n|\r", text)


def _names_columns(options: TableOptions) -> bool:
    """True if a person speaks of columns that lines do not have."""
    return options.header is not None or any(name != "text" for name in options.columns)


def _is_table(text: str, delimiter: str | None) -> bool:
    """True if the first lines have as many short cells each."""
    lines = [line for line in _lines(text[:65_536]) if line.strip()][:_LOOKED_AT]
    if len(lines) < 2:
        return False
    for mark in (delimiter,) if delimiter else ("\t", ",", ";", "|"):
        cells = [line.split(mark) for line in lines]
        widths = {len(row) for row in cells}
        if widths != {1} and len(widths) == 1:
            mean = sum(len(cell.strip()) for row in cells for cell in row) / sum(map(len, cells))
            if mark == "\t" or mean <= _CELL:
                return True
    return False
