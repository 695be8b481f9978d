"""A project's history as a table: two people, relabels, flags, skips, notes, undo."""

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.databases import new_project
from workbench.errors import InputError
from workbench.exchange.answers import IMPORTS
from workbench.exchange.imports import import_labels, plan_import
from workbench.exchange.labels import FORMATS, export_labels
from workbench.exchange.rows import CARRIED_BY
from workbench.pools import load_pool
from workbench.sessions import Session
from workbench.sessions.operations import Operation
from workbench.store import Store

CLASSES = ["=sum(A1)", 'b, "quoted"\nline', "c"]


def new(store: Store, pool: Any = None) -> Session:
    if pool is None:
        pool = replace(load_pool("digits"), truth=None)
    return new_project(store, pool, classes=CLASSES)


def lived(store: Store) -> Session:
    """Acts of two people in an afternoon."""
    ann = new(store)
    ben = ann.as_annotator('ben, "B"')
    items = ann.pool.trainable.tolist()
    for k, item in enumerate(items[:6]):
        ann.items.label(item, CLASSES[k % 3])
    ann.refit()
    first, second, third = ann.ask(3)
    ann.tell(first.id, CLASSES[0])
    ann.apply([Operation("op-1", "skip", ask=second.id), Operation("op-2", "unsure", ask=third.id)])
    ben.items.label(items[0], CLASSES[2])  # a tie
    ben.items.label(items[1], CLASSES[2])
    ben.items.resolve(items[1], CLASSES[1])
    ann.items._event("correct", item=first.item, label=CLASSES[2])
    ann.items.flag(items[2], reason="odd | one")
    ann.items.note(items[2], "=1+1\nsecond line")
    ben.items.note(items[2], "so it is")
    ann.items.label(items[3], CLASSES[0])
    ann.undo()
    ann.classes.rename(CLASSES[2], "sea")
    ben.items.relabel(items[4:6], CLASSES[0])
    grid = ann.predictions.grid(CLASSES[0], 4)
    ann.queue.confirm([a.id for a in grid[:3]], CLASSES[0], [a.id for a in grid[3:]])
    ann.items._event("requeue", items=[second.item])
    return ann


def of_people(session: Session) -> list[tuple[str, Any, str, str]]:
    """Everything people did, without the project's making."""
    number: dict[int, int] = {}
    found = []
    for event in session.log.events:
        if event.kind in ("round", "model-changed"):
            continue
        number[event.id] = len(number) + 1  # the numbers of the rows
        payload = dict(event.payload)
        if "of" in payload:
            payload["of"] = number[payload["of"]]
        if event.annotator != "source":
            found.append((event.kind, json.loads(json.dumps(payload)), event.annotator, event.time))
    return found


def rows(data: bytes, format: str) -> list[dict[str, Any]]:
    """A history as another program reads it."""
    if format == "parquet":
        return pq.read_table(io.BytesIO(data)).to_pylist()
    if format == "csv":
        return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
    return [json.loads(line) for line in data.splitlines()]


@pytest.mark.parametrize("format", list(FORMATS))
def test_what_leaves_is_all_that_people_did_and_labels_come_back(format: str, store: Store) -> None:
    session = lived(store)
    other = new(store)
    if format in IMPORTS:
        labels = import_labels(export_labels(session, format), other.pool, format, session.classes)
        other.items.import_labels(labels, "file")
        assert {**other.state.labels} == {**session.state.decided}
    if format not in CARRIED_BY:
        with pytest.raises(InputError, match="no history"):
            export_labels(session, format, "history")
        return
    data = export_labels(session, format, "history")
    written = [row for row in rows(data, format) if row["person"] != "source"]
    assert [(r["kind"], json.loads(r["details"] or "{}"), r["person"], r["time"]) for r in written] == [
        *of_people(session)
    ]
    assert [json.loads(r["ids"]) for r in written if r["kind"] == "relabelled"] == [
        {str(i): session.pool.items.ids[i] for i in session.pool.trainable[4:6].tolist()}
    ]
    # read as labels, each item would have one of many
    before = other.state.n_events
    with pytest.raises(InputError, match="is a history, which is for reading"):
        plan_import(data, other, format)
    assert other.state.n_events == before
