"""A project's history as a table: everything that people did, one row each, to go on with elsewhere."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.documents.events import check_event
from workbench.errors import InputError
from workbench.exchange.files import csv_columns
from workbench.pools.formats.files import File
from workbench.reading import cut, json_lines, listed, parse_json, reading, valid_text, valid_texts
from workbench.store import Event, fold
from workbench.store.events import KINDS

if TYPE_CHECKING:
    from workbench.pools.pool import Pool

HISTORY = "history"
"""The scope of an export that holds it."""
CARRIED_BY = ("csv", "parquet", "jsonl")
COLUMNS = ("event", "time", "person", "kind", "id", "label", "changed_from", "ids", "details")
NOT_PEOPLES = (
    *("round", "model-changed", "guesses-changed", "question-changed", "names-hidden"),
    *("checks-started", "certified", "picture-kept"),
)
"""Kinds of events that stay behind: fits, whose models a table does not hold, what was to be fitted, and
pictures, which are no text."""
MOST_EVENTS = 2_000_000
_FILE = "The file"
_SIGN = frozenset(("event", "kind", "details"))


def history_rows(
    events: Sequence[Event], ids: Sequence[str], names: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """The rows of a history, oldest first.

    Args:
        events: all of the project's, oldest first.
        ids: [N] of the pool's items.
        names: key -> name of the classes, as far as they are known.

    Yields:
        event (a running number), time, person, kind, id (where it is about one item), label and changed_from
        (the class that person gave it before), ids (JSON: number -> id of all the items it names), details
        (JSON: all that was recorded).
    """
    number_of: dict[int, int] = {}
    given: dict[tuple[str, int], str] = {}
    for event in events:
        if event.kind in NOT_PEOPLES:
            continue
        number_of[event.id] = len(number_of) + 1
        payload = dict(event.payload)
        if event.kind in ("undo", "redo") and "of" in payload:
            payload["of"] = number_of.get(int(payload["of"]), 0)
        payload.pop("check", None)  # elsewhere nothing was frozen: it is a label like any other
        row: dict[str, Any] = dict.fromkeys(COLUMNS, "")
        row |= {
            "event": number_of[event.id],
            "time": event.time,
            "person": event.annotator,
            "kind": event.kind,
        }
        if event.item is not None:
            row["id"] = ids[event.item]
        key = payload.get("class")
        if isinstance(key, str):
            row["label"] = str(payload.get("name") or names.get(key, key))
            if event.item is not None:
                before = given.get((event.annotator, event.item), "")
                row["changed_from"] = before if before != row["label"] else ""
                given[event.annotator, event.item] = row["label"]
        row["ids"] = _text({str(item): str(ids[item]) for item in sorted(set(_items(payload)))})
        row["details"] = _text(payload)
        yield {name: valid_texts(value) for name, value in row.items()}


def is_history(data: bytes, format: str) -> bool:
    """Whether a file of labels is a history; damaged ones are not."""
    if format not in CARRIED_BY:
        return False
    if format == "parquet":
        import pyarrow.parquet as pq

        try:
            return set(pq.read_schema(io.BytesIO(data)).names) >= _SIGN
        except (OSError, ValueError):
            return False
    head = data[:4096].partition(b"\n")[0].decode("utf-8", "replace").lstrip("\ufeff")
    return all(name in head for name in ("event", "kind", "details", "changed_from", "ids"))


def read_history(data: bytes, pool: Pool, format: str) -> list[Event]:
    """The events of a history, of the items of a pool with the same ids.

    Args:
        data: the file.
        pool: whose items they are about, in whatever order.
        format: one of csv, parquet, jsonl.

    Returns:
        Events for `Session.take_history`; their ids are the file's running numbers.

    Raises:
        InputError: no such file, an odd row, or ids that the pool does not have.
    """
    position = {valid_text(str(key)): i for i, key in enumerate(pool.items.ids)}
    unknown: dict[str, None] = {}
    found: list[Event] = []
    with reading(_FILE, f"a history ({format})", "Is it of another format?"):
        for number, row in enumerate(_READERS[format](data), start=1):
            if number > MOST_EVENTS:
                raise InputError(f"The history holds more than {MOST_EVENTS:,} events.")
            found.append(_event(row, number, position, unknown))
        fold(found)  # what cannot be understood is refused before anything is recorded
    if unknown:
        raise InputError(
            f"Pool {pool.name!r} has no item {listed(list(unknown), 5, quote=False)}. Nothing was imported."
        )
    if not found:
        raise InputError("The history holds no events.")
    return found


def _event(
    row: Mapping[str, Any], number: int, position: Mapping[str, int], unknown: dict[str, None]
) -> Event:
    where = f"Row {number} of the history"
    kind = str(row.get("kind"))
    if kind not in KINDS or kind in NOT_PEOPLES:
        raise InputError(f"{where} is of the kind {cut(kind)}, which no history holds.")
    payload = parse_json(str(row.get("details") or "{}"), where)
    ids = parse_json(str(row.get("ids") or "{}"), where)
    if not isinstance(payload, dict) or not isinstance(ids, dict):
        raise InputError(f"{where} holds no details.")
    here: dict[int, int] = {}
    for item, key in ids.items():
        if str(key) not in position:
            unknown[str(key)] = None
        here[int(item)] = position.get(str(key), 0)
    check_event(kind, payload, where)
    missing = next((item for item in _items(payload) if item not in here), None)
    if missing is not None:
        raise InputError(f"{where} names item {missing} and does not say which it is.")
    return Event(
        kind,
        _renumbered(payload, here),
        str(row.get("person") or "")[:200],
        str(row["time"])[:40],
        int(row["event"]),
    )


def _items(payload: Mapping[str, Any]) -> list[int]:
    """The items that what was recorded names."""
    found = [payload["item"]] if payload.get("item") is not None else []
    found += [*payload.get("items", ()), *payload.get("rejected", ())]
    found += [pair[0] for pair in payload.get("labels", ())]
    found += [ask["item"] for ask in payload.get("asks", ()) if isinstance(ask, Mapping)]
    return [int(item) for item in found]


def _renumbered(payload: Mapping[str, Any], here: Mapping[int, int]) -> dict[str, Any]:
    """The same with the numbers that the items have here."""
    found = dict(payload)
    if found.get("item") is not None:
        found["item"] = here[int(found["item"])]
    for name in ("items", "rejected"):
        if name in found:
            found[name] = [here[int(item)] for item in found[name]]
    if "labels" in found:
        found["labels"] = [[here[int(item)], str(key)] for item, key in found["labels"]]
    if "asks" in found:
        found["asks"] = [
            {**ask, "item": here[int(ask["item"])]} if isinstance(ask, Mapping) else str(ask)
            for ask in found["asks"]
        ]
    return found


def _text(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":")) if document else ""


def _csv(data: bytes) -> Iterable[dict[str, Any]]:
    return _rows(csv_columns(data, 20 * MOST_EVENTS))


def _parquet(data: bytes) -> Iterable[dict[str, Any]]:
    from workbench.pools.formats.parquet import read_columns

    columns, _ = read_columns(File(data, _FILE), COLUMNS, 20 * MOST_EVENTS)
    return _rows(columns)


def _rows(columns: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for cells in zip(*columns.values(), strict=True):
        yield dict(zip(columns, cells, strict=True))


def _jsonl(data: bytes) -> Iterable[dict[str, Any]]:
    return (row for _, row in json_lines(data))


_READERS = {"csv": _csv, "parquet": _parquet, "jsonl": _jsonl}
