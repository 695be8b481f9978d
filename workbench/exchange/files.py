"""JSON and CSV as they are written and read: the same way every time, and no cell that a spreadsheet runs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from workbench.members import FolderMembers
from workbench.reading import parse_json

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def json_text(document: Any) -> str:
    """A JSON document the same way every time: sorted keys, two spaces, a newline at the end."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def read_json(path: Path) -> Any:
    """A JSON file.

    Raises:
        InputError: not there, no plain file, or not JSON.
    """
    return parse_json(FolderMembers(path.parent).read(path.name), str(path))


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV table; None and NaN are empty cells, floats keep every digit, texts are made safe."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([safe_cell(c) for c in columns])
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return buffer.getvalue()


def csv_cells(values: Iterable[Any]) -> list[Any]:
    """Values of a row as `csv_text` writes them."""
    return [_cell(value) for value in values]


def safe_cell(text: str) -> str:
    """Text that a spreadsheet shows instead of running it: a quote before = + - @."""
    return f"'{text}" if _runs(text) else text


def plain_cell(text: str) -> str:
    """The text that `safe_cell` was given."""
    return text[1:] if text.startswith("'") and _runs(text) else text


def _runs(text: str) -> bool:
    # Text that has quotes of its own before the sign gets one more, so that taking one away is exact.
    return text.lstrip("'").startswith(_FORMULA)


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, float):
        return repr(value)
    return safe_cell(value) if isinstance(value, str) else value
