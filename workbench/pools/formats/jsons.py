"""JSON lines, lists and tables, and the tasks of Label Studio with their annotations: an object an item."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import isnan
from typing import Any, NamedTuple, TypeVar

from workbench.errors import InputError
from workbench.pools.cells import plain_text
from workbench.pools.formats.encodings import settle_encoding
from workbench.pools.formats.files import File, check_cells
from workbench.pools.formats.folders import SPLITS
from workbench.pools.tables import table_reader
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.report import Fix, Problem
from workbench.pools.tables.source_table import RawTable, check_names
from workbench.pools.tables.uses import ColumnUse, is_exported
from workbench.reading import cut, json_lines, listed, parse_json

MAX_DOCUMENT = 64 << 20
"""Most bytes of one JSON document: what is read of it takes up to twenty times as much."""
MAX_PARTS = 4_000_000
"""Most lists and objects of one, each of which takes up to 250 bytes."""
LABEL = "label"
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
    data, problems = _content(file, options)
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
    data, encoding_problems = _content(file, options)
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


def _content(file: File, options: TableOptions) -> tuple[bytes, tuple[Problem, ...]]:
    """A file as UTF-8, and what is to be said of its encoding."""
    data = file.content(options.max_bytes)
    encoding, problems = settle_encoding(data, file.name, options.encoding)
    return (data if encoding == "utf-8" else data.decode(encoding).encode()), problems


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
    check_names(name, names)
    check_cells(name, len(rows), len(names), options.max_cells, options.max_columns)
    columns: dict[str, list[Any]] = {}
    nested: list[str] = []
    problems: list[Problem] = []
    for key in names:
        values = [_alone(row.get(key)) for row in rows]
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
    frame = pd.DataFrame({key: _column(values) for key, values in columns.items()})
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
    fixes = [
        Fix(label, {"columns": {key: {"use": use}}}) for label, use in (*ways, ("Leave it out", "leave out"))
    ]
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


def _column(values: list[Any]) -> Any:
    """Values of one key as numbers where all are, else as texts; NaN is an empty cell."""
    import pandas as pd

    values = [None if isinstance(value, float) and isnan(value) else value for value in values]
    filled = [value for value in values if value is not None]
    if filled and all(isinstance(value, bool) for value in filled):
        return pd.Series(values, dtype="boolean")
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in filled)
    if filled and numbers and all(isinstance(v, float) or abs(v) < 2**53 for v in filled):
        return pd.Series(values, dtype="float64")
    return pd.Series([_text(value) for value in values], dtype="str")


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


ADVICE = "Mark the right one as ground truth in Label Studio, or leave the item out of the file."
MAX_PERSON = 200
_What = TypeVar("_What")


class Disagreement(InputError):
    """Annotations of one task differ, and none of them decides."""


class By(NamedTuple):
    """Origin of an annotation.

    Attributes:
        person: `completed_by`, an address, else a number; "" where it does not say.
        time: `created_at` in UTC, ISO 8601; "" where it does not say.
        final: it is marked as ground truth.
        made: a person made it in Label Studio. It imports annotations in the name of whoever imports them,
            marked as ground truth and without a `lead_time`: nobody's, where nobody differs from them.
    """

    person: str = ""
    time: str = ""
    final: bool = False
    made: bool = True


class Choice(NamedTuple):
    """A class that an annotation chose."""

    label: str
    by: By


def annotations_of(task: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], By]]:
    """The annotations of a task that count, each with its origin.

    Cancelled ones do not. Of a person's the newest does; annotations that do not say who made them, or when,
    all count.

    Args:
        task: of an export as JSON.

    Raises:
        InputError: a person's name that is too long.
    """
    pairs = [
        (annotation, _by(annotation, task.get("data")))
        for annotation in task.get("annotations") or ()
        if not annotation.get("was_cancelled")
    ]
    return newest(pairs)


def newest(pairs: Sequence[tuple[_What, By]]) -> list[tuple[_What, By]]:
    """The pairs that are each a person's newest of an item; those that do not say who or when all count."""
    times: dict[str, str] = {}
    for _, by in pairs:
        times[by.person] = max(times.get(by.person, ""), by.time)
    return [(what, by) for what, by in pairs if not by.person or not by.time or by.time == times[by.person]]


def choices_of(annotation: Mapping[str, Any]) -> dict[str, list[str]]:
    """The choices of an annotation, by their name."""
    choices: dict[str, list[str]] = {}
    for result in annotation.get("result") or ():
        if result.get("type") == "choices":
            picked = [str(choice) for choice in result["value"]["choices"]]
            choices.setdefault(str(result.get("from_name")), []).extend(picked)
    return choices


def classes_chosen(task: Mapping[str, Any]) -> list[Choice]:
    """The classes that the annotations of a task chose; those without a choice are left out.

    Args:
        task: of an export as JSON.

    Raises:
        InputError: several choices in one annotation.
    """
    class_choices = []
    for annotation, by in annotations_of(task):
        picked = [choice for choices in choices_of(annotation).values() for choice in choices]
        if len(picked) > 1:
            raise InputError(
                f"Task {cut(task.get('id'))} has several choices; one class an item is what we keep."
            )
        class_choices += [Choice(label, by) for label in picked]
    return class_choices


def decided(choices: Sequence[Choice]) -> str | None:
    """The class that choices about one item add up to: the ground truth, else what all chose, else None."""
    truths = {choice.label for choice in choices if choice.by.final}
    labels = truths or {choice.label for choice in choices}
    return labels.pop() if len(labels) == 1 else None


def votes_of(choices: Sequence[Choice], where: str) -> list[Choice]:
    """The votes that choices about one item are, one a person.

    Args:
        choices: at least one.
        where: what messages call the item and, of several questions, the one.

    Returns:
        A vote of each person. Where a ground truth decides, its vote is final; where nothing does, none is.
        The vote of nobody stands where no person chose what is decided.

    Raises:
        Disagreement: nothing decides, and the file does not say who differs.
    """
    choices = [Choice(*pair) for pair in newest(choices)]
    label = decided(choices)
    votes: dict[str, Choice] = {}
    torn: set[str] = set()
    for choice in sorted(choices, key=lambda choice: not choice.by.final):
        if label is not None and not choice.by.made:
            continue
        before = votes.setdefault(choice.by.person, choice)
        if before.label != choice.label and not (before.by.final and label is not None):
            torn.add(choice.by.person)
    if label is None:
        if torn or "" in votes:
            ways = listed(dict.fromkeys(choice.label for choice in choices))
            raise Disagreement(f"{where} has annotations that differ: {ways}. {ADVICE}")
        return [vote._replace(by=vote.by._replace(final=False)) for vote in votes.values()]
    final = any(choice.by.final for choice in choices)
    of_persons = [vote for person, vote in votes.items() if person and person not in torn]
    if any(vote.label == label and vote.by.final == final for vote in of_persons):
        return of_persons
    return [*of_persons, Choice(label, By(final=final))]


def _by(annotation: Mapping[str, Any], data: Any) -> By:
    """Origin of an annotation; the data of a task of ours says who gave the label that went there with it."""
    person, time = annotation.get("completed_by"), annotation.get("created_at")
    is_manual = annotation.get("lead_time", 0) is not None
    if not is_manual and isinstance(data, Mapping) and is_exported([*data, LABEL]):
        person, time = data["person"], data["time"]
    if isinstance(person, Mapping):
        person = person.get("email") or person.get("id")
    name = "" if person is None else str(person).strip()
    if len(name) > MAX_PERSON:
        raise InputError(
            f"An annotation is completed_by {cut(name)}; a name has at most {MAX_PERSON} letters."
        )
    return By(name, time_of(time), is_manual and bool(annotation.get("ground_truth")), is_manual)


def time_of(stamp: Any) -> str:
    """A time, of ISO 8601 or in seconds since 1970, in UTC with milliseconds; "" where it is none."""
    try:
        text = plain_text(stamp)
        is_count = text.replace(".", "", 1).isdecimal()
        time = datetime.fromtimestamp(float(text), UTC) if is_count else datetime.fromisoformat(text)
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return time.isoformat(timespec="milliseconds")
