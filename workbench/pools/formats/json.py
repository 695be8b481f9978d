"""JSON lines, lists and tables, and the tasks of Label Studio with their annotations: an object an item."""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from math import isnan
from typing import Any

from workbench.errors import InputError
from workbench.pools.cells import plain_text
from workbench.pools.formats.encodings import as_utf8
from workbench.pools.formats.files import SPLITS, File, check_cells
from workbench.pools.formats.label_studio import LABEL, classes_chosen, decided
from workbench.pools.tables import table_reader
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.report import Fix, Problem
from workbench.pools.tables.source_table import RawTable, typed_column
from workbench.pools.tables.uses import ColumnUse
from workbench.reading import json_lines, listed, parse_json

MAX_DOCUMENT = 64 << 20
"""Most bytes of one JSON document: what is read of it takes up to twenty times as much."""
MAX_PARTS = 4_000_000
"""Most lists and objects of one, each of which takes up to 250 bytes."""
_FILLED = re.compile(rb"^[^\S\n]*\S", re.MULTILINE)  # a line that is not blank


def read_lines(file: File, options: TableOptions) -> RawTable:
    """A file with a JSON object on each line.

    Args:
        file: also .gz.
        options: max_bytes, max_cells, max_columns.

    Returns:
        The table: a column for each key that some object has.

    Raises:
        InputError: a line that is no object, values that are lists or objects themselves, or too large.
    """
    data, _, problems = as_utf8(file.content(options.max_bytes), file.name, options.encoding)
    rows: list[dict[str, Any]] = []
    at: list[int] = []
    n_cells = 0
    for number, row in json_lines(data, lambda line: f"{file.name}, line {line}", most=MAX_DOCUMENT):
        n_cells += len(row)
        check_cells(file.name, 1, n_cells, options.max_cells, options.max_cells)
        rows.append(row)
        at.append(number)
    raw = _framed(file.name, "jsonl", rows, options, lambda row: f"line {at[row]}")
    n_there = sum(1 for _ in _FILLED.finditer(data))
    return replace(raw, n_there=n_there, problems=(*problems, *raw.problems))


def read_document(file: File, options: TableOptions) -> RawTable:
    """A JSON document: a list of objects, or the tasks of Label Studio.

    Args:
        file: also .gz.
        options: as of `read_lines`.

    Returns:
        The table. Of tasks: the columns of their data, and as the column "label" the choice on which the
        annotations that count agree; a task of which they differ has none, and a note says so.

    Raises:
        InputError: as `read_lines`.
    """
    data, _, encoding_problems = as_utf8(file.content(options.max_bytes), file.name, options.encoding)
    parts = data.count(b"[") + data.count(b"{")
    if len(data) > MAX_DOCUMENT or parts > MAX_PARTS:
        raise InputError(
            f"{file.name} has {len(data):,} bytes and about {parts:,} lists and objects; the limits of "
            f"one JSON document are {MAX_DOCUMENT:,} and {MAX_PARTS:,}. Use JSON lines (.jsonl)."
        )
    if _is_lines(data):
        return read_lines(file, options)
    document = parse_json(data, file.name)
    document, note = _rows_in(document)
    if isinstance(document, dict):
        if "categories" in document and "annotations" in document:
            raise InputError(
                f"{file.name} holds COCO annotations, not items. Open the images, then import it as labels."
            )
        raise InputError(f"{file.name} is one JSON object; give a list with an object an item.")
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        raise InputError(f"{file.name} is no list of objects; give one with an object an item.")
    if document and all(isinstance(row.get("data"), dict) for row in document):
        raw = _tasks(file.name, document, options)
    else:
        raw = _framed(file.name, "json", document, options, lambda row: f"object {row + 1}")
    problems = (*encoding_problems, *raw.problems)
    return replace(raw, n_there=len(document), problems=problems, notes=(*note, *raw.notes))


def _rows_in(document: Any) -> tuple[Any, tuple[str, ...]]:
    """The rows that a document holds, and a note where it holds more.

    Returns:
        A list of objects; any other document as it is.
    """
    if isinstance(document, dict) and {"categories", "annotations"} <= document.keys():
        return document, ()
    rows = rows_of(document)
    if rows is not None or not isinstance(document, dict):
        return document if rows is None else rows, ()
    lists = {key: value for key, value in document.items() if isinstance(value, list) and value}
    if len(lists) > 1 and all(key.lower() in SPLITS for key in lists):
        parts = [rows_of(part) or part for part in lists.values()]
        return [row for part in parts for row in part], (f"Splits one after the other: {listed(lists)}.",)
    inside = next(iter(document.values()), None)
    if len(document) == 1 and isinstance(inside, dict):
        return _rows_in(inside)  # a name around all
    objects = {key: value for key, value in lists.items() if all(isinstance(row, dict) for row in value)}
    if not objects:
        return document, ()
    longest = max(objects, key=lambda key: len(objects[key]))
    other_keys = [key for key in lists if key != longest]
    return objects[longest], (
        (f"Read is {longest!r}; there are also {listed(other_keys)}.",) if other_keys else ()
    )


def _is_lines(data: bytes) -> bool:
    """Tell whether a document is several, an object a line, as Amazon and Yelp write them."""
    first, _, rest = data.strip().partition(b"\n")
    if not (first.startswith(b"{") and rest.lstrip().startswith(b"{")):
        return False
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


LINES = table_reader(read_lines)
DOCUMENT = table_reader(read_document)


def _tasks(name: str, tasks: list[dict[str, Any]], options: TableOptions) -> RawTable:
    """The tasks of Label Studio."""
    labels: list[str | None] = []
    undecided: list[str] = []
    for number, task in enumerate(tasks, start=1):
        try:
            choices = classes_chosen(task)
            torn = bool(choices) and decided(choices) is None
        except InputError:  # several in one annotation
            choices, torn = [], True
        labels.append(decided(choices))
        undecided += [str(task.get("id", number))] * torn
    rows = []
    for number, (task, label) in enumerate(zip(tasks, labels, strict=True), start=1):
        row = dict(task["data"])
        row.setdefault("id", task.get("id", number))
        if any(label is not None for label in labels):
            row[LABEL] = label
        rows.append(row)
    raw = _framed(name, "label-studio", rows, options, lambda row: f"task {row + 1}")
    columns = list(raw.frame.columns)
    uses = {"id": ColumnUse("id")} if raw.frame["id"].is_unique else {}
    if LABEL in columns and (options.classes or len({label for label in labels if label is not None}) > 1):
        uses[LABEL] = ColumnUse("class")
    n = sum(label is not None for label in labels)
    note = f"Tasks of Label Studio: {n:,} of {len(tasks):,} with a choice."
    if undecided:
        listing = listed(undecided, quote=False)
        note += f" Annotations differ or choose several, so these tasks have no label: {listing}."
    return replace(raw, uses=uses, notes=(note, *raw.notes))


def _framed(name: str, form: str, rows: list[dict[str, Any]], options: TableOptions, locate: Any) -> RawTable:
    import pandas as pd

    rows, remarks = answered(rows)
    names = list(dict.fromkeys(str(key) for row in rows for key in row))
    if not names:
        raise InputError(f"{name} is empty. Give an object for each item.")
    check_cells(name, len(rows), len(names), options.max_cells, options.max_columns)
    columns: dict[str, list[Any]] = {}
    nested: list[str] = []
    problems: list[Problem] = []
    for key in names:
        values = [_alone(row.get(key)) for row in rows]
        values = [None if isinstance(value, float) and isnan(value) else value for value in values]
        odd = [i for i, value in enumerate(values) if isinstance(value, list | dict)]
        plain = len(values) - len(odd) - values.count(None)
        if odd and not plain:
            nested.append(key)
            continue
        if odd:
            problems.append(_odd(key, len(odd), locate(odd[0]), 9 * len(odd) <= plain, options))
        if 9 * len(odd) <= plain or not odd:
            columns[key] = [None if isinstance(value, list | dict) else value for value in values]
    if not columns:
        raise InputError(f"{name} holds lists and objects only; give plain values, a name each.")
    notes = (f"Left out are lists and objects: {listed(nested)}.",) if nested else ()
    frame = pd.DataFrame({key: typed_column(values, _text) for key, values in columns.items()})
    return RawTable(name, form, frame, notes=(*remarks, *notes), problems=tuple(problems), locate=locate)


def _alone(value: Any) -> Any:
    """The text of a list of one text or none, as doccano writes a class; any other value as it is."""
    few = isinstance(value, list) and len(value) < 2 and all(isinstance(part, str) for part in value)
    return (value or [None])[0] if few else value


def _odd(key: str, n: int, where: str, few: bool, options: TableOptions) -> Problem:
    """Finding about lists or objects among the plain values of a column."""
    cells = "a list or an object" if n == 1 else f"lists or objects in {n:,} cells"
    outcome = "Such cells are taken as empty." if few else "The column is left out."
    ways = (("It is the class", "class"), ("It is a text", "text")) if few else ()
    fixes = [Fix.to_use(label, use, key) for label, use in (*ways, ("Leave it out", "leave out"))]
    use = options.columns.get(key)
    severity: Any = "guess" if use is None or use.guessed else "note"
    message = f"Column {key!r} holds {cells} among plain values, the first on {where}. {outcome}"
    return Problem("lists", severity, message, key, tuple(fixes))


def answered(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Examples of Prodigy as items: with the class that was accepted, or none."""
    if not rows or not all({"_input_hash", "answer"} <= row.keys() for row in rows):
        return rows, ()
    items = []
    for row in rows:
        fields = {key: value for key, value in row.items() if not key.startswith("_") and key != "answer"}
        fields[LABEL] = row.get(LABEL, row.get("accept")) if row["answer"] == "accept" else None
        items.append({key: value for key, value in fields.items() if key not in ("accept", "options")})
    n = sum(row["answer"] != "accept" for row in rows)
    return items, (f"Examples of Prodigy: {n:,} rejected or ignored, which have no class.",)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return plain_text(value) if isinstance(value, float) else json.dumps(value)


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
