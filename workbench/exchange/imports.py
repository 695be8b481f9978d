"""Labels out of files: matched to a pool by id, rows without a label left out, odd ones refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from workbench.errors import InputError
from workbench.exchange.files import csv_columns
from workbench.exchange.history import is_history
from workbench.pools.cells import plain_text
from workbench.pools.formats.annotations import By, Choice, classes_chosen, votes_of
from workbench.pools.formats.files import File
from workbench.pools.labels import UNLABELLED
from workbench.pools.pool import Pool
from workbench.pools.tables.exported import is_label
from workbench.pools.tables.pictures import found_by_path
from workbench.reading import cut, json_lines, parse_json, reading, valid_text
from workbench.reading import listed as quoted
from workbench.store import FileVote

IMPORTS = ("csv", "parquet", "jsonl", "npz", "label-studio", "huggingface", "coco")
MAX_IMPORT = 200 << 20
MAX_LABELS = 2_000_000
MAX_JSON = 32 << 20
"""Most bytes of one JSON document: what is read of it takes up to twenty times as much."""
MAX_PARTS = 2_000_000
"""Most values of a document with more bytes than that, which has them for its pictures or long texts."""

_FILE = "The file"
_BY = ("id", "item")
_ALIKE = {"text": "its text", "image": "the name of its picture's file", "table": "its row"}


class Labelled(NamedTuple):
    """One row of a file of labels.

    Attributes:
        where: what messages call the row.
        key: the item's id or number, as the file holds it.
        label: the class, as the file holds it; None where there is none.
        by: whose it is, where several people may have said something of one item.
    """

    where: str
    key: Any
    label: Any
    by: By | None = None


class LabelRows(NamedTuple):
    """The rows of a file of labels.

    Attributes:
        by: what the keys are: "id", "item", or "data" where they are all that a task of another program says
            of its item, which is found by it where only one item is so.
        rows: one after the other.
        names: whether labels are names that the file typed as text, where a number may be a name.
        marks: whether a text such as "None" or "nan" may stand for no label: in files that have no other way
            to say so. Where it may, no class is called so and the file brings new classes, it is refused
            rather than guessed.
        files: names of files among the keys: one that is no id is looked for as a path is.
    """

    by: str
    rows: Iterator[Labelled]
    names: bool = False
    marks: bool = False
    files: Sequence[str] = ()


def import_labels(
    data: bytes,
    pool: Pool,
    format: str,
    classes: Sequence[str] = (),
    *,
    unknown: list[str] | None = None,
) -> list[tuple[int, str] | FileVote]:
    """Labels out of a file, matched to the pool by id (by item number where there are no ids).

    Empty cells, null, NaN, the code -1 and what a model predicted are rows without a label. A text such as
    "None" or "nan" is the name of a class where the file can say otherwise that there is no label, or where a
    class is called so; else it is no label, and refused where the file's other labels are new classes too.

    Args:
        data: the file.
        pool: whose items they are of.
        format: one of csv, parquet, jsonl, npz, label-studio, huggingface, coco.
        classes: names of the project's classes, beside the pool's.
        unknown: takes the ids that the pool does not have; without it they are an error.

    Returns:
        (item, class name) pairs, for `Session.import_labels`. Rows without a label are left out. Of Label
        Studio, whose annotations name persons, a vote of each; where nothing decides, they differ.

    Raises:
        InputError: an unknown format, a file of another form, labels that are no names or codes of
            classes, ids the pool does not have, or an id with two different labels, which are not votes of
            persons.
    """
    if format not in IMPORTS:
        raise InputError(f"Labels cannot be imported from {cut(format)}. Known: {', '.join(IMPORTS)}.")
    if len(data) > MAX_IMPORT:
        raise InputError(f"The file has {len(data):,} bytes; the limit is {MAX_IMPORT:,}.")
    if not data.strip():
        raise InputError("The file holds no labels.")
    if is_history(data, format):
        raise InputError(
            "The file is a history, which is for reading and is not taken in. Export the labels instead, or "
            "the bundle, which is the whole project."
        )
    with reading(_FILE, f"a file of labels ({format})", "Is it of another format?"):
        return _matched(_READERS[format](data), pool, {*classes, *pool.classes}, unknown)


def format_of(path: Path | str, data: bytes = b"") -> str:
    """The format that a file's ending tells, of a JSON document its keys.

    Args:
        path: of the file.
        data: what it holds: JSON may be tasks of Label Studio or annotations of COCO.

    Raises:
        InputError: neither tells one; --format says which.
    """
    ending = Path(path).suffix.lower()
    for name in ("csv", "parquet", "jsonl", "npz"):
        if ending == f".{name}":
            return name
    document = _document(data, MAX_IMPORT) if ending == ".json" and data.strip() else None
    if isinstance(document, dict) and {"images", "annotations", "categories"} <= document.keys():
        return "coco"
    if isinstance(document, list) and document and isinstance(document[0], dict) and "data" in document[0]:
        return "label-studio"
    raise InputError(f"The ending of {path} does not tell its format; give --format: {', '.join(IMPORTS)}.")


def _matched(
    labels: LabelRows, pool: Pool, known: set[str], left_out: list[str] | None = None
) -> list[tuple[int, str] | FileVote]:
    position = (
        {valid_text(str(key)): i for i, key in enumerate(pool.items.ids)} if labels.by == "id" else None
    )
    if position is not None and labels.files:
        paths = found_by_path(labels.files, list(map(str, pool.items.ids)))
        position |= {name: position[valid_text(path)] for name, path in paths.items()}
    alike = Alike(pool) if labels.by == "data" else None
    found: dict[int, str] = {}
    chosen: dict[int, list[Choice]] = {}
    wheres: dict[int, str] = {}
    unknown: list[str] = []
    mark: tuple[str, str] | None = None
    n = 0
    for n, row in enumerate(labels.rows, start=1):
        if n > MAX_LABELS:
            raise InputError(f"The file holds more than {MAX_LABELS:,} labels; import it in parts.")
        name = _class_name(row, known, labels)
        if name is None:
            continue
        if isinstance(name, _Mark):
            mark = mark or (row.where, name)
            continue
        if alike is not None:
            item = alike.item(row.key, row.where)
            text = str(item)
        else:
            text = plain_text(row.key) if isinstance(row.key, str | int | float) else cut(row.key)
        if alike is not None:
            pass
        elif position is not None:
            item = position.get(text, -1)
        else:
            item = int(text) if text.isdecimal() and len(text) < 19 and int(text) < len(pool) else -1
        if item < 0:
            unknown.append(text)
        elif row.by is not None:
            chosen.setdefault(item, []).append(Choice(name, row.by))
            wheres[item] = row.where
        elif found.setdefault(item, name) != name:
            raise InputError(f"Item {text} has two labels: {cut(found[item])} and {cut(name)}.")
    if left_out is not None:
        left_out.extend(unknown)
    elif unknown:
        raise InputError(
            f"Pool {pool.name!r} has no item {quoted(unknown, 5, quote=False)}. Nothing was imported."
        )
    votes = [
        FileVote(item, vote.label, *vote.by[:3])
        for item, every in chosen.items()
        for vote in votes_of(every, wheres[item])
    ]
    if mark is not None and not known.issuperset(found.values()):
        raise InputError(
            f"{mark[0]} has the label {cut(str(mark[1]))}, and no class is called so. Where it means that "
            "there is no label, leave the cell empty; where it is a class, add it to the project first. "
            "Nothing was imported."
        )
    if not (found or votes or unknown):
        raise InputError("The file holds no labels.")
    return [*found.items(), *(vote if any(vote[2:]) else vote[:2] for vote in votes)]


class Alike:
    """The items of a pool by what a person sees of them: a text, a picture's file, a row of a table."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._columns: tuple[str, ...] = ()
        self._items: dict[str | tuple[str, ...], list[int]] = {}
        if pool.kind == "table":
            self._columns = tuple(pool.items.show(0).row or ()) if len(pool) else ()
        for item, key in enumerate(pool.items.ids):
            if pool.kind == "image":
                self._items.setdefault(PurePosixPath(str(key).replace("\\", "/")).name, []).append(item)
                continue
            shown = pool.items.show(item)
            seen = (shown.text or "").strip() if pool.kind == "text" else self._row(shown.row or {})
            self._items.setdefault(seen, []).append(item)

    def item(self, about: Mapping[str, Any], where: str) -> int:
        """The only item that is so.

        Args:
            about: what a task says of it.
            where: what messages call the task.

        Raises:
            InputError: none is, or several are.
        """
        found = sorted({i for seen in self._seen(about) for i in self._items.get(seen, ())})
        if len(found) == 1:
            return found[0]
        how = _ALIKE[self._pool.kind]
        said = f"{len(found):,} items of pool {self._pool.name!r} are" if found else "no item of the pool is"
        raise InputError(
            f"{where} does not say which item it is about: its data has neither id nor item, and {said} the "
            f"same by {how}. Put the items' ids into the tasks' data as id. Nothing was imported."
        )

    def _seen(self, about: Mapping[str, Any]) -> Iterator[str | tuple[str, ...]]:
        if self._pool.kind == "table":
            for row in (about, about.get("row")):
                if isinstance(row, dict) and self._columns and all(name in row for name in self._columns):
                    yield self._row(row)
            return
        for text in about.values():
            if isinstance(text, str):
                if self._pool.kind == "text":
                    yield text.strip()
                else:
                    # as stored by Label Studio: an address, with what was uploaded called "1a2b3c4d-NAME"
                    name = re.split(r"[/\\=]", unquote(text.partition("?d=")[2] or text))[-1]
                    yield from {name, re.sub(r"^[0-9a-f]{8}-", "", name)}

    def _row(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(plain_text(row.get(name)) for name in self._columns)


class _Mark(str):
    """A text that may stand for no label, or be the name of a class that nobody knows yet."""


def _class_name(row: Labelled, known: set[str], labels: LabelRows) -> str | None:
    """The class a row names, or None where it names none."""
    if isinstance(row.label, bool) or not isinstance(row.label, str | int | float | None):
        raise InputError(
            f"{row.where} has the label {cut(row.label)}, which is no name of a class. "
            "Write the name as a text."
        )
    if isinstance(row.label, float) and np.isinf(row.label):
        raise InputError(f"{row.where} has the label {row.label}, which is no name of a class.")
    name = plain_text(row.label).strip()
    if name in known:
        return name
    # a text "-1" is a name like any other while no class is known: the classes may be -1 and 1
    said = isinstance(row.label, str)
    if name and said and not labels.marks:
        return name
    if not name or (name == "-1" and (known or not labels.names)) or (not said and name in UNLABELLED):
        return None
    return _Mark(name) if name in UNLABELLED else name


def _table(columns: dict[str, list[Any]], names: bool = False, listed: bool = False) -> LabelRows:
    """Rows of columns, of which two matter; `listed` where the file lists the classes it means."""
    by = next((name for name in _BY if name in columns), "")
    if not by or "label" not in columns:
        has = quoted(columns, 12, quote=False) or "nothing"
        raise InputError(f"A file of labels has the columns id (or item) and label; this one has {has}.")
    if "status" in columns:  # what a model said is nobody's label, nor is a tie
        said = zip(columns["label"], columns["status"], strict=True)
        columns = {**columns, "label": [label if is_label(status) else None for label, status in said]}
    pairs = enumerate(zip(columns[by], columns["label"], strict=True), start=1)
    marks = not listed and "status" not in columns
    return LabelRows(by, (Labelled(f"Row {i} of the file", *pair) for i, pair in pairs), names, marks)


def _read_csv(data: bytes) -> LabelRows:
    columns = csv_columns(data, 4 * MAX_LABELS)
    wanted = [name for name in columns if name in (*_BY, "label", "status")] or list(columns)
    return _table({name: columns[name] for name in wanted}, names=True)


def _read_parquet(data: bytes) -> LabelRows:
    from workbench.pools.formats.parquet import read_columns

    columns, metadata = read_columns(File(data, _FILE), (*_BY, "label", "status"), 4 * MAX_LABELS)
    described = metadata.get(b"huggingface")
    if described and "label" in columns:
        document = parse_json(described, "What the file says of its columns")
        names = document["info"]["features"]["label"].get("names")
        if names:
            columns["label"] = _decoded(columns["label"], [str(name) for name in names])
            return _table(columns, listed=True)
    return _table(columns)


def _read_npz(data: bytes) -> LabelRows:
    from workbench.pools.formats.arrays import NpzFile

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
        return _table({by: keys.tolist(), "label": y.astype(str).tolist()}, names=True)
    if "classes" not in archive:
        raise InputError("An NPZ file of labels holds y, classes, and id or item; this one has no classes.")
    names = [valid_text(str(name)) for name in archive.texts("classes").ravel().tolist()]
    columns = {by: keys.tolist(), "label": _decoded(y.tolist(), names)}
    if "status" in archive:
        columns["status"] = archive.texts("status", len(keys)).astype(str).tolist()
    return _table(columns, listed=True)


def _decoded(codes: list[Any], names: Sequence[str]) -> list[str | None]:
    """Names of classes behind codes; None, NaN and -1 are no label."""
    found: list[str | None] = []
    for i, code in enumerate(codes, start=1):
        if code is None or code == -1 or code != code:
            found.append(None)
            continue
        whole = (type(code) is int) or (type(code) is float and code.is_integer())
        if not whole or not 0 <= code < len(names):
            raise InputError(
                f"Row {i} of the file has the label {cut(code)}, which is no code of its {len(names):,} "
                f"classes: codes are whole numbers from 0 to {len(names) - 1}, and -1 for no label."
            )
        found.append(names[int(code)])
    return found


def _read_jsonl(data: bytes) -> LabelRows:
    every = json_lines(data)
    head = next(every, (0, {}))
    first = head[1]
    by = next((name for name in _BY if name in first), "")
    if not by or "label" not in first:
        return _table({name: [] for name in first})

    def labelled() -> Iterator[Labelled]:
        for number, row in chain((head,), every):
            label = row.get("label") if is_label(row.get("status")) else None
            yield Labelled(f"Line {number} of the file", row.get(by), label)

    return LabelRows(by, labelled(), marks="status" not in first)


def read_tasks(data: bytes) -> list[dict[str, Any]]:
    """The tasks of an export of Label Studio, also in the zip that `export_labels` wrote."""
    if data.startswith(b"PK"):
        data = read_member(data, lambda name: PurePosixPath(name).name == "tasks.json", "tasks.json")
    tasks = _document(data, MAX_IMPORT)
    if not isinstance(tasks, list):
        raise InputError("A Label Studio export is a JSON list of tasks.")
    if tasks and isinstance(tasks[0], dict) and "annotation_id" in tasks[0] and "data" not in tasks[0]:
        raise InputError(
            "This is Label Studio's JSON-MIN, which has its own numbers in the place of ids. Export as JSON."
        )
    return tasks


def _read_label_studio(data: bytes) -> LabelRows:
    rows = [
        (f"Task {cut(task.get('id', number))} of the file", task.get("data", {}), choice)
        for number, task in enumerate(read_tasks(data), start=1)
        for choice in classes_chosen(task)
    ]
    # The number of a task of another program says nothing of an item of ours.
    by = next((name for name in _BY if all(name in about for _, about, _ in rows)), "data")
    keys = (about if by == "data" else about[by] for _, about, _ in rows)
    labelled = (Labelled(where, key, *choice) for (where, _, choice), key in zip(rows, keys, strict=True))
    return LabelRows(by, labelled, names=True)


def _read_huggingface(data: bytes) -> LabelRows:
    """The Parquet file of a zip that `export_labels` wrote, or the file itself."""
    if not data.startswith(b"PK"):
        return _read_parquet(data)
    return _read_parquet(read_member(data, lambda name: name.endswith(".parquet"), "a .parquet file"))


def read_member(data: bytes, wanted: Callable[[str], bool], what: str) -> bytes:
    """The one file of a zip that is meant; its size is checked before it is unpacked."""
    members = File(data, _FILE).members("a zip")
    found = [name for name in members.sizes if wanted(name)]
    if len(found) != 1:
        raise InputError(f"The zip holds {len(found)} times {what}; one is read.")
    return members.read(found[0], MAX_IMPORT)


def _read_coco(data: bytes) -> LabelRows:
    document = _document(data)
    names = {c["id"]: str(c["name"]) for c in document["categories"]}
    files = {i["id"]: str(i["file_name"]) for i in document["images"]}
    if any("bbox" in a or "segmentation" in a for a in document["annotations"]):
        raise InputError("The file holds boxes or outlines; only one class for each whole image is kept.")

    def labelled() -> Iterator[Labelled]:
        for number, entry in enumerate(document["annotations"], start=1):
            where = f"Annotation {number} of the file"
            for key, there in (("image_id", files), ("category_id", names)):
                if entry[key] not in there:
                    raise InputError(
                        f"{where} has the {key} {cut(entry[key])}, which the file does not list."
                    )
            about = entry.get("attributes")
            label: str | None = names[entry["category_id"]]
            if isinstance(about, Mapping) and not is_label(about.get("status")):
                label = None  # what a certificate covers is no person's
            yield Labelled(where, files[entry["image_id"]], label)

    return LabelRows("id", labelled(), names=True, files=list(files.values()))


def _document(data: bytes, most: int = MAX_JSON) -> Any:
    if len(data) > most:
        raise InputError(
            f"The file has {len(data):,} bytes; the limit of one JSON document is {most:,}. "
            "Split it, or use JSON lines."
        )
    if len(data) > MAX_JSON and (parts := sum(data.count(sign) for sign in b"[{,")) > MAX_PARTS:
        raise InputError(
            f"The file has about {parts:,} values in {len(data):,} bytes; the limit of a JSON document of "
            f"more than {MAX_JSON:,} bytes is {MAX_PARTS:,}. Split it, or use JSON lines."
        )
    return parse_json(data, _FILE)


_READERS: dict[str, Callable[[bytes], LabelRows]] = {
    "csv": _read_csv,
    "parquet": _read_parquet,
    "jsonl": _read_jsonl,
    "npz": _read_npz,
    "label-studio": _read_label_studio,
    "huggingface": _read_huggingface,
    "coco": _read_coco,
}
