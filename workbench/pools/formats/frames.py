"""JSON of a whole table, as pandas writes it: by columns, by rows, split, or rows without names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.errors import InputError

ID = "id"
MAX_CELLS = 2_000_000
"""Most cells of a table in one of these forms: each row becomes an object."""


def rows_of(document: Any) -> list[dict[str, Any]] | None:
    """The rows of a table that was written in one of the forms of `DataFrame.to_json`.

    Args:
        document: as parsed.

    Returns:
        An object a row: of columns {name: {row: cell}} or {name: [cells]}, of rows {key: {name: cell}}, of
        {"columns": names, "data": rows}, or of [[cells]]. Keys of rows that are no plain numbering are ids.
        None for any other document, rows as objects among them.

    Raises:
        InputError: too many cells.
    """
    if isinstance(document, list):
        return _without_names(document)
    if not isinstance(document, dict) or not document:
        return None
    names, rows = document.get("columns"), document.get("data")
    if isinstance(names, list) and isinstance(rows, list) and set(document) <= {"columns", "index", "data"}:
        if not all(isinstance(row, list) and len(row) == len(names) for row in rows) or _is_nested(rows):
            return None
        keys = document.get("index")
        keyed = isinstance(keys, list) and len(keys) == len(rows)
        made = [dict(zip(map(str, names), row, strict=True)) for row in rows]
        return _with_ids(made, [str(key) for key in keys]) if keyed and keys is not None else made
    values = list(document.values())
    if len(values) > 1 and all(isinstance(column, list) for column in values):
        if len({len(column) for column in values}) > 1 or _is_nested(values):
            return None
        return [dict(zip(document, row, strict=True)) for row in zip(*values, strict=True)]
    if not all(isinstance(value, dict) for value in values) or "data" in document:
        return None
    inner = list(dict.fromkeys(key for value in values for key in value))
    if not inner or _is_nested([list(value.values()) for value in values]):
        return None
    if _by_columns(document, inner):
        _check(len(inner) * len(document))
        made = [{name: column.get(key) for name, column in document.items()} for key in inner]
        return _with_ids(made, inner)
    return _with_ids([dict(row) for row in values], list(document))


def _by_columns(document: Mapping[str, Any], inner: list[str]) -> bool:
    """Whether the outer names are those of columns: rows are numbered, or more than columns."""
    numbered, within = all(key.isdigit() for key in document), all(key.isdigit() for key in inner)
    if numbered != within:
        return within
    return len(inner) > len(document)


def _with_ids(rows: list[dict[str, Any]], keys: list[str]) -> list[dict[str, Any]]:
    if all(key.isdigit() for key in keys) or any(ID in row for row in rows):
        return rows
    return [{ID: key, **row} for key, row in zip(keys, rows, strict=True)]


def _is_nested(columns: list[list[Any]]) -> bool:
    """Whether most cells of the first rows are lists or objects: then this is another document.

    Raises:
        InputError: they are not, and there are too many of them.
    """
    cells = [cell for column in columns[:100] for cell in column[:20]]
    if 2 * sum(isinstance(cell, list | dict) for cell in cells) > len(cells):
        return True
    _check(sum(map(len, columns)))
    return False


def _check(n_cells: int) -> None:
    if n_cells > MAX_CELLS:
        raise InputError(
            f"The table has {n_cells:,} cells; the limit of this form of JSON is {MAX_CELLS:,}. Write it as "
            "JSON lines, CSV or Parquet."
        )


def _without_names(rows: list[Any]) -> list[dict[str, Any]] | None:
    if not rows or not all(isinstance(row, list) and row for row in rows) or _is_nested(rows):
        return None
    if len({len(row) for row in rows}) > 1:
        return None
    return [{f"x{i + 1}": cell for i, cell in enumerate(row)} for row in rows]
