"""JSON and CSV as they are written and read: the same way every time, and no cell that a spreadsheet runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workbench.csv_writing import csv_lines, csv_text, plain_cell, safe_cell
from workbench.members import FolderMembers
from workbench.reading import parse_json

__all__ = ["csv_lines", "csv_text", "json_text", "plain_cell", "read_json", "safe_cell"]


def json_text(document: Any) -> str:
    """A JSON document the same way every time: sorted keys, two spaces, a newline at the end."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def read_json(path: Path) -> Any:
    """A JSON file.

    Raises:
        InputError: not there, no plain file, or not JSON.
    """
    return parse_json(FolderMembers(path.parent).read(path.name), str(path))
