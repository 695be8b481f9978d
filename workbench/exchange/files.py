"""JSON and CSV as they are written and read: the same way every time, and no cell that a spreadsheet runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workbench.csv_writing import csv_lines, csv_text, plain_cell, safe_cell
from workbench.members import FolderMembers
from workbench.pools import FORMATS
from workbench.pools.formats.files import File
from workbench.reading import parse_json

__all__ = ["csv_columns", "csv_lines", "csv_text", "json_text", "plain_cell", "read_json", "safe_cell"]


def json_text(document: Any) -> str:
    """A JSON document the same way every time: sorted keys, two spaces, a newline at the end."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def csv_columns(data: bytes, most_cells: int) -> dict[str, list[Any]]:
    """The columns of a CSV as lists of texts.

    Args:
        data: the file.
        most_cells: that it may have.

    Raises:
        InputError: no CSV, or too large.
    """
    frame = FORMATS["csv"].reader.rows(File(data, "The file"), id_column=None, max_cells=most_cells)
    return {str(name): frame[name].tolist() for name in frame.columns}


def read_json(path: Path) -> Any:
    """A JSON file.

    Raises:
        InputError: not there, no plain file, or not JSON.
    """
    return parse_json(FolderMembers(path.parent).read(path.name), str(path))
