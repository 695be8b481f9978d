"""The labelled set in the formats other programs read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import InputError
from workbench.exchange.files import csv_text, json_text
from workbench.store import Event, ProjectState, Store, fold
from workbench.store.state import arrays_to_bytes

if TYPE_CHECKING:
    import pyarrow

    from workbench.sessions.session import Session

# Format -> the ending of its file.
FORMATS = {
    "csv": ".csv",
    "parquet": ".parquet",
    "jsonl": ".jsonl",
    "npz": ".npz",
    "label-studio": ".json",
    "huggingface": ".parquet",
    "coco": ".json",
}
NEED_POOL = ("npz", "coco")
_WHOLE, _NUMBERS = ("item", "round", "model_labels"), ("utility", "seconds")
_GIVEN = ("role", "policy", "utility", "round", "seconds", "model_labels")
COLUMNS = ("item", "id", "label", "annotator", "time", "set", *_GIVEN, "flag", "note")


@dataclass(frozen=True)
class StoredLabels:
    """The labels of a project without its pool, such as when that was moved or changed.

    Attributes:
        state: of the project.
        ids: [N] the source's ids; None for a project of version 0.1.0 that was not opened since.
        events: all of the project's, oldest first.
        pool: None.
    """

    state: ProjectState
    ids: Sequence[str] | None
    events: Sequence[Event] = ()
    pool: None = None

    @classmethod
    def of(cls, project_id: str, store: Store) -> StoredLabels:
        """What the database knows of a project's labels."""
        events = store.events(project_id)
        return cls(fold(events), store.item_ids(project_id), events)


def label_table(session: Session | StoredLabels) -> list[dict[str, Any]]:
    """The labelled items, in the pool's order.

    Args:
        session: of the project; `StoredLabels` have no columns of the items themselves.

    Returns:
        For each: item (index), id, label, annotator, time, set ("training", or "evaluation" for items
        never trained on); how it came about: role of the question, policy and utility that chose it, round of
        the model, seconds the person took, how many labels the model had seen; flag, note; then the
        columns of the item itself, for tables and texts.
    """
    state, pool = session.state, session.pool
    payloads = {event.id: event.payload for event in session.events}
    ids = pool.items.ids if pool is not None else session.ids  # type: ignore[union-attr]
    rows = []
    for item in sorted(state.labels):
        vote = state.standing[item]
        row: dict[str, Any] = {
            "item": item,
            "id": "" if ids is None else str(ids[item]),
            "label": state.labels[item],
            "annotator": vote.annotator,
            "time": vote.time,
            "set": "evaluation" if item in state.evaluation else "training",
            **_provenance(payloads.get(vote.event, {}), vote.role),
            "flag": state.flagged.get(item, "") or ("flagged" if item in state.flagged else ""),
            "note": " | ".join(note.text for note in state.notes.get(item, ())),
        }
        if pool is None or pool.kind == "image":  # a photo need not be decoded to name it
            rows.append(row)
            continue
        shown = pool.items.show(item)
        own = dict(shown.row or {})
        if shown.text is not None:
            own["text"] = shown.text
        # A column of the source that is called like one of ours keeps its values under another name.
        row |= {name if name not in COLUMNS else f"source_{name}": value for name, value in own.items()}
        rows.append(row)
    return rows


def _provenance(payload: Mapping[str, Any], role: str) -> dict[str, Any]:
    """How a label came about, as far as its event says; None where it does not."""
    rounds = payload.get("round", -1)
    return {
        "role": role or str(payload.get("source", "")),
        "policy": payload.get("policy", ""),
        "utility": payload.get("utility"),
        "round": None if rounds is None or rounds < 0 else int(rounds),
        "seconds": payload.get("seconds"),
        "model_labels": payload.get("n_labelled"),
    }


def export_labels(session: Session | StoredLabels, format: str = "csv") -> bytes:
    """The labelled set as a file.

    Args:
        session: of the project; or `StoredLabels` where its pool is not at hand.
        format: a key of `FORMATS`. CSV quotes cells that a spreadsheet would run; npz holds features
            [n, D], codes, classes and ids; huggingface is Parquet with the class names in its schema.

    Returns:
        The file's bytes.

    Raises:
        InputError: an unknown format, or one that cannot hold this pool.
    """
    if format not in FORMATS:
        raise InputError(f"There is no format {format!r}. Known: {', '.join(FORMATS)}.")
    if session.pool is None and format in NEED_POOL:
        without = ", ".join(name for name in FORMATS if name not in NEED_POOL)
        raise InputError(f"{format} holds the items themselves, and the pool is not at hand. Use {without}.")
    writers: dict[str, Callable[[Any], bytes]] = {
        "csv": _write_csv,
        "parquet": _write_parquet,
        "jsonl": _write_jsonl,
        "npz": _write_npz,
        "label-studio": _write_label_studio,
        "huggingface": _write_huggingface,
        "coco": _write_coco,
    }
    return writers[format](session)


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys([*COLUMNS, *(name for row in rows for name in row)]))


def _write_csv(session: Session | StoredLabels) -> bytes:
    rows = label_table(session)
    columns = _columns(rows)
    return csv_text(columns, ([row.get(c) for c in columns] for row in rows)).encode("utf-8")


def _write_jsonl(session: Session | StoredLabels) -> bytes:
    lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) for row in label_table(session))
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def _arrow(session: Session | StoredLabels, classes: Sequence[str] | None = None) -> pyarrow.Table:
    import pyarrow as pa

    rows = label_table(session)
    columns = _columns(rows)
    arrays = []
    for name in columns:
        values = [row.get(name) for row in rows]
        if name == "label" and classes is not None:
            arrays.append(pa.array([classes.index(v) for v in values], type=pa.int64()))
        elif name in _WHOLE:
            arrays.append(pa.array(values, type=pa.int64()))
        elif name in _NUMBERS:
            arrays.append(pa.array(values, type=pa.float64()))
        elif name in COLUMNS:
            arrays.append(pa.array(values, type=pa.string()))
        else:
            kinds = {type(v) for v in values if v is not None}
            mixed = len(kinds) > 1 and kinds != {int, float}
            arrays.append(pa.array([None if v is None else str(v) for v in values] if mixed else values))
    return pa.table(dict(zip(columns, arrays, strict=True)))


def _parquet(table: pyarrow.Table) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _write_parquet(session: Session | StoredLabels) -> bytes:
    return _parquet(_arrow(session))


def _write_huggingface(session: Session | StoredLabels) -> bytes:
    classes = session.state.classes
    table = _arrow(session, classes)
    names = {"int64": "int64", "double": "float64", "string": "string", "bool": "bool", "null": "null"}
    features: dict[str, Any] = {
        field.name: {"dtype": names.get(str(field.type), "string"), "_type": "Value"}
        for field in table.schema
    }
    features["label"] = {"names": list(classes), "_type": "ClassLabel"}
    # `datasets` reads the features of a Parquet file from this key of its schema.
    described = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    return _parquet(table.replace_schema_metadata(described))


def _write_npz(session: Session) -> bytes:
    state, pool = session.state, session.pool
    items = np.asarray(sorted(state.codes), dtype=np.int64)
    return arrays_to_bytes(
        {
            "X": np.asarray(pool.features[items]),
            "y": np.asarray([state.codes[i] for i in items.tolist()], dtype=np.int64),
            "classes": np.asarray(state.classes, dtype=np.str_),
            "item": items,
            "id": np.asarray([str(pool.items.ids[i]) for i in items.tolist()], dtype=np.str_),
            "evaluation": np.asarray([i in state.evaluation for i in items.tolist()], dtype=bool),
        }
    )


def _write_label_studio(session: Session | StoredLabels) -> bytes:
    tasks = []
    for row in label_table(session):
        about = {name: value for name, value in row.items() if name != "label"}
        choice = {
            "from_name": "label",
            "to_name": "item",
            "type": "choices",
            "value": {"choices": [row["label"]]},
        }
        # who and when travel in the task's data: Label Studio refuses annotators it does not know
        annotation = {"created_at": row["time"], "result": [choice]}
        tasks.append({"id": row["item"], "data": about, "annotations": [annotation]})
    return json_text(tasks).encode("utf-8")


def _write_coco(session: Session) -> bytes:
    pool, state = session.pool, session.state
    if pool.kind != "image":
        raise InputError(f"COCO is for images, and pool {pool.name!r} is a {pool.kind}. Use csv or jsonl.")
    images, annotations = [], []
    for number, row in enumerate(label_table(session), start=1):
        image = pool.items.show(row["item"]).image
        assert image is not None
        images.append(
            {"id": row["item"], "file_name": row["id"], "height": image.shape[0], "width": image.shape[1]}
        )
        category = state.classes.index(row["label"]) + 1
        annotations.append({"id": number, "image_id": row["item"], "category_id": category})
    categories = [{"id": code + 1, "name": name} for code, name in enumerate(state.classes)]
    document = {"images": images, "annotations": annotations, "categories": categories}
    return json_text(document).encode("utf-8")
