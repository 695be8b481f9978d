"""Predictions of another tool or an older model for a project's items: read as a guess, never as labels."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.exchange.answers import LABEL_STUDIO, Places, Row, Rows, format_of, read_tasks, rows_of
from workbench.exchange.models import load_model
from workbench.guesses import likely_columns
from workbench.pools.cells import MARKS, bare, plain_text
from workbench.pools.formats.label_studio import By, choices_of
from workbench.pools.pool import Pool
from workbench.reading import cut, listed, reading

Prediction = tuple[int, str, float | None]
"""An item, the class it is taken for, and how sure that is."""
_CLASSES = ("prediction", "predicted", "pred", "suggestion", "llm_label", "class", "label")
_SURE = ("confidence", "score", "probability", "suggestion_score", "p")


def read_predictions(
    data: bytes, name: str, pool: Pool, *, unknown: list[str] | None = None
) -> list[Prediction]:
    """Predictions out of a file, matched to the pool by id, or by number where there are only numbers.

    A table (CSV, Parquet, JSON lines) has the columns id (or item), a class (prediction, suggestion, label,
    ...) and maybe confidence or score: our own exports with predictions, whose labels by people are left
    out, and lists of suggestions. A JSON list of tasks is Label Studio's, with its `predictions`.

    Args:
        data: the file.
        name: its name, whose ending says what it is.
        pool: of N items.
        unknown: takes the ids that the pool does not have; such rows are left out.

    Returns:
        (item, class, confidence or None); the last of an item that the file names twice.

    Raises:
        InputError: another form, or no prediction of an item of this pool.
    """
    out: dict[int, Prediction] = {}
    strange: list[str] = []
    with reading(name, "a file of predictions"):
        format = format_of(name, data)
        rows = _of_tasks(read_tasks(data)) if format == LABEL_STUDIO else _of_table(data, name, format)
        places = Places(pool, rows)
        for row in rows.rows:
            label, sure = row.cells["class"], _number(row.cells["sure"], row.where)
            item, key = places.item(row)
            if item < 0:
                strange.append(key)
            elif label and sure is not None and not 0.0 <= sure <= 100.0:
                raise InputError(
                    f"{name} gives item {cut(key)} a confidence of {sure}; it is 0 to 1 or per cent."
                )
            elif label:
                out[item] = (item, label, sure)
    if not out:
        why = f" Not in this pool: {listed(strange, 3, quote=False)}." if strange else ""
        raise InputError(f"{name} holds no prediction of an item of this pool.{why}")
    if unknown is not None:
        unknown += strange
    return [out[item] for item in sorted(out)]


def predictions_of(folder: Path | str, pool: Pool) -> list[Prediction]:
    """Predictions of a saved model for a pool.

    Args:
        folder: a run's or a project's bundle, or its model folder.
        pool: with the same features, or of a file whose rows the model can read.

    Raises:
        InputError: no model there, or one that cannot read this pool.
    """
    saved = load_model(folder)
    mean = None
    if json.dumps(saved.feature_map.to_json(), sort_keys=True) == json.dumps(
        pool.feature_map.to_json(), sort_keys=True
    ):
        features = saved.as_seen(np.asarray(pool.features))
    else:
        cells = getattr(pool.items, "cells", None)
        texts = getattr(pool.items, "texts", None)
        if cells is None and texts is None:
            raise InputError(f"The model in {folder} sees other features than this pool has.")
        import pandas as pd

        rows: Any = pd.DataFrame({name: list(values) for name, values in (cells or {}).items()})
        if texts is not None:
            rows[str(getattr(saved.feature_map, "column", "text"))] = list(texts)
        features = saved.features(rows)
        mean = saved.mean(rows, features)[0]
    p = saved.probabilities(features, mean)
    best = p.argmax(axis=1)
    return [(i, saved.classes[c], round(float(p[i, c]), 6)) for i, c in enumerate(best.tolist())]


def _of_tasks(tasks: list[Any]) -> Rows:
    """The newest prediction of each task."""
    rows = []
    for number, task in enumerate(tasks, start=1):
        for prediction in (task.get("predictions") or [])[-1:]:
            choices = [choice for picked in choices_of(prediction).values() for choice in picked]
            if choices:
                cells = {"class": choices[0].strip(), "sure": prediction.get("score")}
                about = task.get("data") or {}
                about = {**about, "id": task.get("id")} if about.keys().isdisjoint(("id", "item")) else about
                rows.append(Row(f"Task {cut(task.get('id', number))} of the file", about, cells, By()))
    return Rows(rows)


def _of_table(data: bytes, name: str, format: str) -> Rows:
    table = rows_of(data, format)
    likely = likely_columns(table.columns, ())
    of = table.column(_CLASSES) or next(iter(likely), "")
    sure = table.column(_SURE) or next(
        (name for name in (*likely, *table.columns) if "confiden" in name.lower()), ""
    )
    if not of:
        has = listed(table.columns, 12, quote=False) or "nothing"
        raise InputError(
            "A file of predictions has the columns id (or item) and prediction (or suggestion, class, "
            f"label), and maybe confidence; {name} has {has}."
        )
    rows = (
        row._replace(cells={"class": plain_text(row.cells.get(of)).strip(), "sure": row.cells.get(sure)})
        for row in table.rows
        if str(row.cells.get("status")) not in ("labelled", "undecided")  # what people said is no guess
    )
    return table._replace(rows=rows)


def _number(cell: Any, where: str) -> float | None:
    """A confidence, also as 93 % and 0,93; None where it is empty.

    Raises:
        InputError: it is no number.
    """
    text = plain_text(cell).strip()
    if text.lower() in MARKS:
        return None
    try:
        value = float(bare(text).replace(",", "."))
    except ValueError:
        raise InputError(
            f"{where} has the confidence {cut(text)}, which is no number. Correct it, or take the column out."
        ) from None
    return value if math.isfinite(value) else None
