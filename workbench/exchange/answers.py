"""Rows of files of answers, whatever program wrote them: labels, answers to several questions, guesses."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from workbench.csv_writing import plain_cell
from workbench.errors import InputError
from workbench.exchange.rows import SIGN
from workbench.pools.cells import plain_text
from workbench.pools.formats import FORMATS
from workbench.pools.formats.files import File
from workbench.pools.formats.json import answered
from workbench.pools.formats.label_studio import MAX_PERSON, By, annotations_of, choices_of, time_of
from workbench.pools.pool import Pool
from workbench.pools.tables.pictures import found_by_path
from workbench.pools.tables.uses import COLUMNS as EXPORTED
from workbench.pools.tables.uses import TAKEN, is_of_ours
from workbench.reading import cut, json_lines, letters, listed, parse_json, valid_text

_FRAMES = ("csv", "xlsx", "arrow", "arff", "stata", "sas")
IMPORTS = (*_FRAMES, "parquet", "jsonl", "npz", "label-studio", "huggingface", "coco")
"""Formats of files; "csv" is any table of texts, "jsonl" also a JSON list of objects."""
LABEL_STUDIO = "label-studio"
TAGS = "tags"
"""The column, and the choice of several, that lists the yes / no questions answered with yes."""
LISTS = (TAGS, "labels")
MAX_IMPORT = 200 << 20
MAX_LABELS = 2_000_000
MAX_JSON = 32 << 20
"""Most bytes of one JSON document: what is read of it takes up to twenty times as much."""
MAX_PARTS = 2_000_000
"""Most values of a document with more bytes than that, which has them for its pictures or long texts."""
_FILE = "The file"
_BY = ("id", "item")
_FLAT = "annotation_id"  # in Label Studio's CSV and JSON-MIN, where "id" is its own number of a task
_SESSION = re.compile(r"-\d{4}(-\d\d){2}_\d\d(-\d\d){2}$")
"""End of the names that Prodigy gives to sessions of nobody, DATASET-2026-01-31_12-00-00: of one person."""
_SHOWN = ("text", "data", "image", "file_name")
"""Names that other programs give the column of what a person sees."""
_ALIKE = {"text": "its text", "image": "the name of its picture's file", "table": "its row"}


class Row(NamedTuple):
    """A row of a table, or an annotation of a task.

    Attributes:
        where: what messages call it.
        about: what it says of its item: all that it holds, of a task its data.
        cells: what it says of the item's class, by name: all that it holds, of a task what was chosen.
        by: whose annotation it is, where several people may have said something of one item.
    """

    where: str
    about: Mapping[str, Any]
    cells: Mapping[str, Any]
    by: By | None = None


class Rows(NamedTuple):
    """The rows of a file.

    Attributes:
        rows: one after the other.
        columns: their names, of tables.
        marks: whether a text such as "None" or "nan" may stand for no label: in files that have no other way
            to say so.
        files: names of files among the ids: one that is no id is looked for as a path is.
        notes: what was done while reading.
    """

    rows: Iterable[Row]
    columns: tuple[str, ...] = ()
    marks: bool = False
    files: Sequence[str] = ()
    notes: Sequence[str] = ()

    def column(self, names: Sequence[str]) -> str:
        """The first of some names that a column has, in any capitals; "" for none."""
        low = {name.strip().lower(): name for name in self.columns}
        return next((low[name] for name in names if name in low), "")


def format_of(path: Path | str, data: bytes = b"") -> str:
    """The format that a file's ending tells, of a JSON document its keys, of a zip its members.

    Args:
        path: of the file.
        data: what it holds.

    Raises:
        InputError: neither tells one; --format says which.
    """
    ending = Path(File(data, str(path)).plain_name).suffix
    for entry in FORMATS.values():
        if entry.name in IMPORTS and ending in entry.endings:
            return entry.name
    if ending == ".zip" and data:
        members = File(data, _FILE).members("a zip").sizes
        return LABEL_STUDIO if any(name.endswith("tasks.json") for name in members) else "huggingface"
    document = _document(data, MAX_IMPORT) if ending == ".json" and data.strip() else None
    if isinstance(document, dict) and {"images", "annotations", "categories"} <= document.keys():
        return "coco"
    if isinstance(document, list) and document and isinstance(document[0], dict):
        return LABEL_STUDIO if "data" in document[0] else "jsonl"
    raise InputError(f"The ending of {path} tells no format. Choose one (--format): {', '.join(IMPORTS)}.")


def rows_of(data: bytes, format: str) -> Rows:
    """The rows of a file; of tasks one for each annotation.

    Args:
        data: the file.
        format: one of `IMPORTS`.

    Raises:
        InputError: an unknown format, another form, or too large.
    """
    if format not in IMPORTS:
        raise InputError(f"Labels cannot be imported from {cut(format)}. Known: {', '.join(IMPORTS)}.")
    if len(data) > MAX_IMPORT:
        raise InputError(f"The file has {len(data):,} bytes; the limit is {MAX_IMPORT:,}.")
    if not data.strip():
        raise InputError("The file holds no labels.")
    records = _OBJECTS[format](data) if format in _OBJECTS else None
    columns, is_coded, notes = _TABLES[format](data) if records is None else ({}, False, ())
    if _FLAT in columns:
        columns.pop("id", None)
    if SIGN.issubset(columns if records is None else records.columns):
        raise InputError(
            "The file is a history, which is for reading and is not taken in. Export the labels instead, or "
            "the bundle, which is the whole project."
        )
    if records is not None:
        return records
    cells = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    rows = (Row(f"Row {n} of the file", row, row, _by(row)) for n, row in enumerate(cells, start=1))
    return Rows(rows, tuple(columns), not is_coded and _may_mark(columns), notes=notes)


def _may_mark(columns: Iterable[str]) -> bool:
    """True if a text in these columns may stand for no label; in what we wrote such cells are empty."""
    return "status" not in columns and not is_of_ours([*columns])


def _by(row: Mapping[str, Any]) -> By | None:
    """Origin of a row of Label Studio's CSV and JSON-MIN, or of an example of Prodigy; None of others."""
    return by_whom(row, "annotator") if _FLAT in row else by_whom(row, "_annotator_id", "_session_id")


def by_whom(row: Mapping[str, Any], *persons: str) -> By | None:
    """Origin of a row by the first of some columns that names a person; None where none does."""
    person, time = (
        next(filter(None, (plain_text(row.get(name)).strip() for name in names)), "")  # a number may be 0
        for names in (persons, ("_timestamp", "created_at", "updated_at"))
    )
    person = _SESSION.sub("", person)
    return By(person[:MAX_PERSON], time_of(time)) if person else None


# --- the item of a row ----------------------------------------------------------------------------


class Places:
    """The items of a pool by what rows say of them: their ids, their numbers, or what a person sees.

    Args:
        pool: of the items.
        rows: of the file.
        column: of the labels, which says nothing of the items.
    """

    def __init__(self, pool: Pool, rows: Rows, column: str = "") -> None:
        self._pool = pool
        # an export of ours calls every pool's ids "id", and the items' numbers "item"
        id_column, uses = pool.id_column, pool.uses or {}
        # "ID" as good as "id", but where it is a column of the pool's own
        alike = [name for name in rows.columns if name.strip().lower() == "id" and name not in uses]
        in_order = ("id", id_column) if id_column == "item" else (id_column, "id")
        self._ids = tuple(filter(None, dict.fromkeys((*in_order, *alike))))
        self._names = (*self._ids, "item")
        position = {valid_text(str(key)): i for i, key in enumerate(pool.items.ids)}
        self._position = {letters(key): i for key, i in position.items()} | position
        if rows.files:
            paths = found_by_path(rows.files, list(map(str, pool.items.ids)))
            self._position |= {name: self._position[valid_text(path)] for name, path in paths.items()}
        self._named = not set(self._names).isdisjoint(rows.columns)
        # the ids of texts without some are their numbers, and another program's numbers are others
        self._numbered = pool.kind == "text" and not id_column
        shown = [name for name in uses if uses[name]["use"] in ("text", "picture")]
        # in an export of ours "note" is a person's, and the item's own is "source_note"
        self._shown_names = (
            *(f"{TAKEN}{name}" for name in shown if name in EXPORTED),
            *(name for name in shown if name != column),
            *_SHOWN,
        )
        self._others = {*EXPORTED, *LISTS, "class", column.strip().lower()}
        self._columns = tuple(pool.items.show(0).row or ()) if pool.kind == "table" and len(pool) else ()

    def item(self, row: Row) -> tuple[int, str]:
        """The item of a row, -1 for none of the pool, and its key as messages call it.

        Raises:
            InputError: the row names none, and not one alone is the same by what a person sees.
        """
        by = next((name for name in self._names if row.about.get(name) not in (None, "")), "")
        item, key = self._by_key(by, row.about)
        text = self._shown(row.about) if self._pool.kind == "text" else ""
        if by and not text and not self._numbered:
            return item, key
        if text and item >= 0 and _spaced(self._pool.items.show(item).text or "") == _spaced(text):
            return item, key
        same = self._alike(row.about)
        if len(same) == 1:
            return same[0], str(same[0])
        if text and by:  # the number may be another program's
            return -1, f"{key} with the text {cut(text)}"
        if not by and not self._named:
            pool, how = f"pool {self._pool.name!r}", _ALIKE[self._pool.kind]
            phrase = f"{len(same):,} items of {pool} are" if same else "no item of the pool is"
            raise InputError(
                f"{row.where} does not say which item it is about: it has neither id nor item, and {phrase} "
                f"the same by {how}. Put the items' ids into it as id. Nothing was imported."
            )
        return item, key

    def _by_key(self, by: str, about: Mapping[str, Any]) -> tuple[int, str]:
        """The item of an id or a number, -1 for none, and that as a text."""
        key = about.get(by, "")
        text = plain_text(key) if isinstance(key, str | int | float) else cut(key)
        if by in self._ids:
            return self._position.get(text, self._position.get(letters(text.strip()), -1)), text
        number = int(text) if text.isdecimal() and len(text) < 19 else -1
        return number if number < len(self._pool) else -1, text

    def _shown(self, about: Mapping[str, Any]) -> str:
        """The text, or the name of a picture, in the column that is called so; "" for none."""
        cells = [about.get(name) for name in self._shown_names]
        return next((cell for cell in cells if isinstance(cell, str) and cell.strip()), "")

    @cached_property
    def _seen(self) -> dict[str | tuple[str, ...], list[int]]:
        """Items by what a person sees of them: a text, the name of a picture's file, a row."""
        items: dict[str | tuple[str, ...], list[int]] = {}
        for item, name in enumerate(self._pool.items.ids):
            key: str | tuple[str, ...] = PurePosixPath(str(name).replace("\\", "/")).name
            if self._pool.kind != "image":
                content = self._pool.items.show(item)
                key = self._row(content.row or {}) if self._columns else _spaced(content.text or "")
            items.setdefault(key, []).append(item)
        return items

    def _alike(self, about: Mapping[str, Any]) -> list[int]:
        return sorted({i for key in self._said(about) for i in self._seen.get(key, ())})

    def _said(self, about: Mapping[str, Any]) -> Iterator[str | tuple[str, ...]]:
        if self._pool.kind == "table":
            for row in (about, about.get("row")):
                if isinstance(row, dict) and self._columns and all(name in row for name in self._columns):
                    yield self._row(row)
            return
        cells = [cell for name, cell in about.items() if name.strip().lower() not in self._others]
        shown = self._shown(about)
        for text in [shown] if shown else cells:
            if isinstance(text, str):
                if self._pool.kind == "text":
                    yield _spaced(text)
                else:
                    # as stored by Label Studio: an address, with what was uploaded called "1a2b3c4d-NAME"
                    name = re.split(r"[/\\=]", unquote(text.partition("?d=")[2] or text))[-1]
                    yield from {name, re.sub(r"^[0-9a-f]{8}-", "", name)}

    def _row(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(plain_text(row.get(name)) for name in self._columns)


def _spaced(text: str) -> str:
    """A text with single spaces, and without the quote before a sign that a spreadsheet would run."""
    return " ".join(plain_cell(text).split())


# --- formats --------------------------------------------------------------------------------------

_Columns = tuple[dict[str, list[Any]], bool, Sequence[str]]
"""The columns of a table, whether it has a way of its own to say that there is no label, and what is told."""


def _frame(format: str, data: bytes) -> _Columns:
    options = {"id_column": None, "header": True, "max_cells": 4 * MAX_LABELS}
    frame = FORMATS[format].reader.rows(File(data, _FILE), **options)
    return {str(name): frame[name].tolist() for name in frame.columns}, False, frame.attrs["notes"]


def _parquet(data: bytes) -> _Columns:
    """A Parquet file, or that of a zip; codes become the names of classes that it lists."""
    from workbench.pools.formats.arrow import read_columns

    if data.startswith(b"PK"):
        data = _member(data, lambda name: name.endswith(".parquet"), "a .parquet file")
    columns, metadata = read_columns(File(data, _FILE), ("label", *LISTS), 4 * MAX_LABELS)
    described = metadata.get(b"huggingface")
    document = parse_json(described, "What the file says of its columns") if described else None
    is_coded = False
    for name, feature in document["info"]["features"].items() if document else ():
        inner = feature.get("feature", feature) if isinstance(feature, dict) else {}
        classes = (
            [str(class_name) for class_name in inner.get("names") or ()] if isinstance(inner, dict) else []
        )
        if classes and name in columns:
            columns[name] = [
                _named(code, classes, f"Row {n} of the file") for n, code in enumerate(columns[name], start=1)
            ]
            is_coded |= name == "label"
            if name in LISTS:  # the file says which names its list could have
                columns.setdefault("answered", [classes] * len(columns[name]))
    return columns, is_coded, ()


def _npz(data: bytes) -> _Columns:
    from workbench.pools.formats.npy_files import NpzFile

    archive = NpzFile(File(data, _FILE), MAX_IMPORT)
    by = archive.first_of(_BY)
    if "y" not in archive or not by:
        raise InputError("An NPZ file of labels holds y, classes, and id or item.")
    keys = np.asarray(archive[by])
    if keys.ndim != 1 or len(keys) > MAX_LABELS:
        raise InputError(
            f"The file holds {by} of shape {list(keys.shape)}; a row of at most {MAX_LABELS:,} is read."
        )
    y = archive.texts("y", len(keys))
    if y.dtype.kind in "US":
        return {by: keys.tolist(), "label": y.astype(str).tolist()}, False, ()
    if "classes" not in archive:
        raise InputError("An NPZ file of labels holds y, classes, and id or item; this one has no classes.")
    classes = [valid_text(str(name)) for name in archive.texts("classes").ravel().tolist()]
    names = [_named(code, classes, f"Row {n} of the file") for n, code in enumerate(y.tolist(), start=1)]
    columns = {by: keys.tolist(), "label": names}
    if "status" in archive:
        columns["status"] = archive.texts("status", len(keys)).astype(str).tolist()
    return columns, True, ()


def _named(code: Any, names: Sequence[str], where: str) -> Any:
    """The name of a class behind a code, also of a list of them; None, NaN and -1 are no label."""
    if isinstance(code, list):
        return [_named(element, names, where) for element in code]
    if code is None or code == -1 or code != code:
        return None
    is_whole = type(code) is int or (type(code) is float and code.is_integer())
    if not is_whole or not 0 <= code < len(names):
        raise InputError(
            f"{where} has the label {cut(code)}, which is no code of its {len(names):,} classes: codes are "
            f"whole numbers from 0 to {len(names) - 1}, and -1 for no label."
        )
    return names[int(code)]


def _objects(data: bytes) -> Rows:
    """JSON lines, or a JSON list of objects: also those of Prodigy, whose rejected classes are none."""
    every: Iterator[tuple[int, Any]] = json_lines(data)
    noun = "Line"
    if data.lstrip()[:1] == b"[":
        every, noun = enumerate(_document(data), start=1), "Object"

    unnamed: set[str] = set()

    def items() -> Iterator[Row]:
        for n, row in every:
            if not isinstance(row, dict):
                raise InputError(
                    f"{noun} {n} of the file is {cut(row)}, not an object with names and values."
                )
            by = _by(row)
            if by and _SESSION.search(plain_text(row.get("_annotator_id") or row.get("_session_id") or "")):
                unnamed.add(by.person)
            if _FLAT in row:
                row.pop("id", None)
            item = answered([row])[0][0]
            yield Row(f"{noun} {n} of the file", item, item, by)

    rows = items()
    first = list(islice(rows, 1_000))
    columns = tuple(dict.fromkeys(name for row in first for name in row.cells))
    notes = [f"Prodigy's sessions without a name count as one person: {listed(unnamed)}."] if unnamed else ()
    return Rows(chain(first, rows), columns, _may_mark(columns), notes=notes)


def read_tasks(data: bytes) -> list[dict[str, Any]]:
    """The tasks of an export of Label Studio, also in the zip that `export_labels` wrote."""
    if data.startswith(b"PK"):
        data = _member(data, lambda name: PurePosixPath(name).name == "tasks.json", "tasks.json")
    tasks = _document(data, MAX_IMPORT)
    if not isinstance(tasks, list):
        raise InputError("A Label Studio export is a JSON list of tasks.")
    if tasks and isinstance(tasks[0], dict) and "annotation_id" in tasks[0] and "data" not in tasks[0]:
        raise InputError(
            "This is Label Studio's JSON-MIN, which has its own numbers in the place of ids. Export as JSON."
        )
    return tasks


def _tasks(data: bytes) -> Rows:
    tasks = read_tasks(data)
    counted = [annotations_of(task) for task in tasks]
    every_choice = (choices_of(annotation) for pairs in counted for annotation, _ in pairs)
    offered = {tag for choices in every_choice for name in LISTS for tag in choices.get(name, ())}
    for task in tasks:
        names = task.get("data", {}).get("answered")
        offered.update(names if isinstance(names, list) else ())
    rows = []
    for number, (task, pairs) in enumerate(zip(tasks, counted, strict=True), start=1):
        about = task.get("data", {})
        selections = [choices_of(annotation) for annotation, _ in pairs]
        lists = {name for choices in selections for name in choices}.intersection(LISTS) or {TAGS}
        for choices, (annotation, by) in zip(selections, pairs, strict=True):
            cells: dict[str, Any] = (
                {name: [] for name in lists} if offered else {}
            )  # nothing was chosen of it
            for name, picked in choices.items():
                cells[name] = picked if name in LISTS or len(picked) != 1 else picked[0]
            # who answered there saw all choices that the file knows of: what they left out is a no
            questions = about.get("answered")
            is_timed = annotation.get("lead_time") is not None
            cells["answered"] = questions if isinstance(questions, list) and not is_timed else list(offered)
            rows.append(Row(f"Task {cut(task.get('id', number))} of the file", about, cells, by))
    return Rows(rows)


def _coco(data: bytes) -> Rows:
    document = _document(data)
    names = {c["id"]: str(c["name"]) for c in document["categories"]}
    files = {i["id"]: str(i["file_name"]) for i in document["images"]}
    if any("bbox" in a or "segmentation" in a for a in document["annotations"]):
        raise InputError("The file holds boxes or outlines; only one class for each whole image is kept.")

    def rows() -> Iterator[Row]:
        for number, entry in enumerate(document["annotations"], start=1):
            where = f"Annotation {number} of the file"
            for key, lookup in (("image_id", files), ("category_id", names)):
                if entry[key] not in lookup:
                    raise InputError(
                        f"{where} has the {key} {cut(entry[key])}, which the file does not list."
                    )
            about = entry.get("attributes")
            status = about.get("status") if isinstance(about, Mapping) else None
            cells = {"label": names[entry["category_id"]], "status": status}
            yield Row(where, {"id": files[entry["image_id"]]}, cells)

    return Rows(rows(), ("id", "label"), files=list(files.values()))


def _member(data: bytes, predicate: Callable[[str], bool], description: str) -> bytes:
    """The one file of a zip that is meant; its size is checked before it is unpacked."""
    members = File(data, _FILE).members("a zip")
    names = [name for name in members.sizes if predicate(name)]
    if len(names) != 1:
        raise InputError(f"The zip holds {len(names)} times {description}; one is read.")
    return members.read(names[0], MAX_IMPORT)


def _document(data: bytes, max_bytes: int | None = None) -> Any:
    limit = MAX_JSON if max_bytes is None else max_bytes
    if len(data) > limit:
        raise InputError(
            f"The file has {len(data):,} bytes; the limit of one JSON document is {limit:,}. "
            "Split it, or use JSON lines."
        )
    if len(data) > MAX_JSON and (parts := sum(data.count(sign) for sign in b"[{,")) > MAX_PARTS:
        raise InputError(
            f"The file has about {parts:,} values in {len(data):,} bytes; the limit of a JSON document of "
            f"more than {MAX_JSON:,} bytes is {MAX_PARTS:,}. Split it, or use JSON lines."
        )
    return parse_json(data, _FILE)


_OBJECTS: dict[str, Callable[[bytes], Rows]] = {"jsonl": _objects, LABEL_STUDIO: _tasks, "coco": _coco}
_TABLES: dict[str, Callable[[bytes], _Columns]] = {
    **{format: partial(_frame, format) for format in _FRAMES},
    **{"parquet": _parquet, "huggingface": _parquet, "npz": _npz},
}
