"""A project's history as a table: everything that people did, one row each."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.reading import valid_texts
from workbench.store import Event

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
SIGN = frozenset(("event", "kind", "details"))
"""Columns that only a history has; it is read by people and programs and not taken in again."""


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
    labels: dict[tuple[str, int], str] = {}
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
                before = labels.get((event.annotator, event.item), "")
                row["changed_from"] = before if before != row["label"] else ""
                labels[event.annotator, event.item] = row["label"]
        row["ids"] = _text({str(item): str(ids[item]) for item in sorted(set(_items(payload)))})
        row["details"] = _text(payload)
        yield {name: valid_texts(value) for name, value in row.items()}


def _items(payload: Mapping[str, Any]) -> list[int]:
    """The items that what was recorded names."""
    items = [payload["item"]] if payload.get("item") is not None else []
    items += [*payload.get("items", ()), *payload.get("rejected", ())]
    items += [pair[0] for pair in payload.get("labels", ())]
    items += [ask["item"] for ask in payload.get("asks", ()) if isinstance(ask, Mapping)]
    return [int(item) for item in items]


def _text(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":")) if document else ""
