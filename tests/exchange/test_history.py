"""A project's history out and in again: two people, relabels, flags, skips, notes, undo."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.databases import new_project
from workbench.errors import InputError
from workbench.exchange import (
    CARRIED_BY,
    FORMATS,
    export_labels,
    import_labels,
    is_history,
    read_history,
)
from workbench.exchange.imports import IMPORTS
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
    """What two people do in an afternoon."""
    ann = new(store)
    ben = ann.as_annotator('ben, "B"')
    items = ann.pool.trainable.tolist()
    for k, item in enumerate(items[:6]):
        ann.label_item(item, CLASSES[k % 3])
    ann.refit()
    first, second, third = ann.ask(3)
    ann.tell(first.id, CLASSES[0])
    ann.tell_many([Operation("op-1", "skip", ask=second.id), Operation("op-2", "unsure", ask=third.id)])
    ben.label_item(items[0], CLASSES[2])  # a tie
    ben.label_item(items[1], CLASSES[2])
    ben.resolve(items[1], CLASSES[1])
    ann.correct(first.item, CLASSES[2])
    ann.flag(items[2], reason="odd | one")
    ann.note(items[2], "=1+1\nsecond line")
    ben.note(items[2], "so it is")
    ann.label_item(items[3], CLASSES[0])
    ann.undo()
    ann.rename_class(CLASSES[2], "sea")
    ben.relabel(items[4:6], CLASSES[0])
    grid = ann.ask_grid(CLASSES[0], 4)
    ann.confirm([a.id for a in grid[:3]], CLASSES[0], [a.id for a in grid[3:]])
    ann.ask_again([second.item])
    return ann


def told(session: Session) -> list[tuple[str, Any, str, str]]:
    """Everything people did, without the project's making."""
    number: dict[int, int] = {}
    found = []
    for event in session.events:
        if event.kind in ("round", "model-changed") or event.annotator == "source":
            continue
        number[event.id] = len(number)
        payload = dict(event.payload)
        if "of" in payload:
            payload["of"] = number.get(payload["of"], -1)
        found.append((event.kind, json.loads(json.dumps(payload)), event.annotator, event.time))
    return found


@pytest.mark.parametrize("format", list(FORMATS))
def test_what_comes_back_is_what_left(format: str, store: Store) -> None:
    session = lived(store)
    other = new(store)
    if format in CARRIED_BY:
        data = export_labels(session, format, "history")
        assert is_history(data, format) and not is_history(export_labels(session, format), format)
        assert other.take_history(read_history(data, other.pool, format)) == len(told(session))
        assert told(other) == told(session)
        for name in (
            "skipped",
            "unsure",
            "requeued",
            "flagged",
            "notes",
            "undecided",
            "conflicts",
            "classes",
        ):
            assert getattr(other.state, name) == getattr(session.state, name), name
        mine, theirs = (
            {
                i: {who: (v.key, v.time, v.final) for who, v in votes.items()}
                for i, votes in s.state.votes.items()
            }
            for s in (session, other)
        )
        assert mine == theirs
        assert other.as_annotator("ann").undo() is not None  # and it goes on from there
    elif format in IMPORTS:
        labels = import_labels(export_labels(session, format), other.pool, format, session.classes)
        other.import_labels(labels, "file")
        left_out = session.state.undecided if format == "coco" else set()
        assert {**other.state.labels} == {i: n for i, n in session.state.labels.items() if i not in left_out}
    if format not in CARRIED_BY:
        with pytest.raises(InputError, match="no history"):
            export_labels(session, format, "history")


def test_a_history_finds_its_items_where_they_lie_now(store: Store, tmp_path: Path) -> None:
    rows = [f"u{i},{i},{i % 3}" for i in range(12)]
    for name, lines in (("a.csv", rows), ("b.csv", rows[::-1])):
        (tmp_path / name).write_text("id,n,m\n" + "\n".join(lines) + "\n")
    session, other = (new(store, load_pool(str(tmp_path / name))) for name in ("a.csv", "b.csv"))
    session.label_items([0, 3], CLASSES[0])
    session.import_labels([(5, "new")], "file")
    other.take_history(read_history(export_labels(session, "jsonl", "history"), other.pool, "jsonl"))
    assert {other.pool.items.ids[i]: n for i, n in other.state.labels.items()} == {
        "u0": CLASSES[0],
        "u3": CLASSES[0],
        "u5": "new",
    }


def test_a_history_that_does_not_fit_is_refused_and_changes_nothing(store: Store) -> None:
    session = lived(store)
    data = export_labels(session, "jsonl", "history")
    other = new(store)
    events = read_history(data, other.pool, "jsonl")
    other.label_item(0, CLASSES[0])
    with pytest.raises(InputError, match="nobody has decided anything yet"):
        other.take_history(events)
    assert other.state.n_labelled == 1
    with pytest.raises(InputError, match="has no item"):
        read_history(data, load_pool("iris"), "jsonl")
    for line, why in (
        ({"event": 1, "kind": "round", "details": "{}"}, "no history holds"),
        ({"event": 1, "kind": "label", "details": '{"item": 3, "class": "c"}', "time": ""}, "which it is"),
        ({"event": 1, "kind": "label", "details": '{"class": "c"}', "time": ""}, "history"),
        ({"event": "x", "kind": "skip", "details": "[", "time": ""}, "Row 1"),
        ({}, "no history holds"),
    ):
        with pytest.raises(InputError, match=why):
            read_history(json.dumps(line).encode(), other.pool, "jsonl")
    with pytest.raises(InputError, match="no events"):
        read_history(b"", other.pool, "jsonl")
