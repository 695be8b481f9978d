"""JSON of a whole table, as pandas writes it: by columns, by rows, split, or rows without names."""

from collections.abc import Collection, Sequence
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
        {"columns": names, "data": rows}, of [[cells]], or of [texts]. Keys of rows that are no plain
        numbering are ids. None for any other document, rows as objects among them.

    Raises:
        InputError: too many cells.
    """
    if isinstance(document, list) and document and all(isinstance(cell, str) for cell in document):
        return [{"text": cell} for cell in document]
    names: Collection[Any] | None = None
    keys: Collection[Any] = ()
    rows: Any = document
    if isinstance(document, dict):
        values = list(document.values())
        names, rows = document.get("columns"), document.get("data")
        if (
            isinstance(names, list)
            and isinstance(rows, list)
            and set(document) <= {"columns", "index", "data"}
        ):
            keys = document.get("index") or ()
        elif "data" not in document and values and all(isinstance(value, dict) for value in values):
            inner = list(dict.fromkeys(key for value in values for key in value))
            _check(len(inner) * len(values))
            if _by_columns(document, inner):
                names, keys = document, inner
                rows = [[column.get(key) for column in values] for key in inner]
            else:
                names, keys = inner, document
                rows = [[row.get(name) for name in inner] for row in values]
        elif len(values) > 1 and all(isinstance(value, list) for value in values):
            names = document
            rows = list(zip(*values, strict=False)) if len({*map(len, values)}) == 1 else []
        else:
            return None
    if (
        not rows
        or not isinstance(rows, list)
        or not all(isinstance(row, list | tuple) and row for row in rows)
    ):
        return None
    names = [f"x{i + 1}" for i in range(len(rows[0]))] if names is None else list(map(str, names))
    if any(len(row) != len(names) for row in rows) or _is_nested(rows):
        return None
    _check(len(rows) * len(names))
    if len(keys) == len(rows) and ID not in names and not all(str(key).isdigit() for key in keys):
        names = [ID, *names]
        rows = [[str(key), *row] for key, row in zip(keys, rows, strict=True)]
    return [dict(zip(names, row, strict=True)) for row in rows]


def _by_columns(outer: Collection[str], inner: Collection[str]) -> bool:
    """Tell whether the outer names are those of columns: rows are numbered, or more than columns."""
    numbered, within = (all(key.isdigit() for key in keys) for keys in (outer, inner))
    return within if numbered != within else len(inner) > len(outer)


def _is_nested(rows: Sequence[Sequence[Any]]) -> bool:
    """Tell whether most cells of the first rows are lists or objects: then this is another document."""
    cells = [cell for row in rows[:100] for cell in row[:20]]
    return 2 * sum(isinstance(cell, list | dict) for cell in cells) > len(cells)


def _check(n_cells: int) -> None:
    if n_cells > MAX_CELLS:
        raise InputError(
            f"The table has {n_cells:,} cells; the limit of this form of JSON is {MAX_CELLS:,}. Write it as "
            "JSON lines, CSV or Parquet."
        )
