"""Predictions of another tool or an older model for a project's items: read as a guess, never as labels."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.exchange.models import load_model
from workbench.pools import read_rows
from workbench.pools.pool import Pool
from workbench.reading import cut, listed, parse_json, reading

Prediction = tuple[int, str, float | None]
"""An item, the class it is taken for, and how sure that is."""
_CLASSES = ("prediction", "predicted", "pred", "suggestion", "llm_label", "class", "label")
_SURE = ("confidence", "score", "probability", "suggestion_score", "p")
_IDS = ("id", "item")


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
    with reading(name, "a file of predictions"):
        tasks = _tasks(data, name)
        found = list(_of_tasks(tasks) if tasks is not None else _of_table(data, name))
    position = {str(key): i for i, key in enumerate(pool.items.ids)}
    out: dict[int, Prediction] = {}
    strange: list[str] = []
    for by, given, said, sure in found:
        key = _key(given)
        number = int(key) if by == "item" and key.isdecimal() else None
        item = position.get(key) if number is None else number if number < len(pool) else None
        if item is None:
            strange.append(key)
        elif said and sure is not None and not 0.0 <= sure <= 100.0:
            raise InputError(
                f"{name} gives item {cut(key)} a confidence of {sure}; it is 0 to 1 or per cent."
            )
        elif said:
            out[item] = (item, said, sure)
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


def _tasks(data: bytes, name: str) -> list[Any] | None:
    """Label Studio's tasks, or None for a table."""
    if not name.lower().endswith(".json"):
        return None
    document = parse_json(data, name)
    if isinstance(document, list) and any(isinstance(t, Mapping) and "predictions" in t for t in document):
        return document
    return None


def _of_tasks(tasks: list[Any]) -> Iterator[tuple[str, Any, str, float | None]]:
    for task in tasks:
        data = task.get("data") or {}
        by = next((name for name in _IDS if name in data), "")
        key = data[by] if by else task.get("id")
        for one in (task.get("predictions") or [])[-1:]:
            choices = [
                choice
                for result in one.get("result") or []
                for choice in (result.get("value") or {}).get("choices") or []
            ]
            if choices:
                yield by or "id", key, str(choices[0]).strip(), _number(one.get("score"))


def _of_table(data: bytes, name: str) -> Iterator[tuple[str, Any, str, float | None]]:
    frame = read_rows(data, file_name=name)
    columns = [str(column) for column in getattr(frame, "columns", ())]
    low = {column.lower(): column for column in columns}
    by = next((low[one] for one in _IDS if one in low), "")
    of = next((low[one] for one in _CLASSES if one in low), "")
    if not by or not of:
        has = listed(columns, 12, quote=False) or "nothing"
        raise InputError(
            "A file of predictions has the columns id (or item) and prediction (or suggestion, class, "
            f"label), and maybe confidence; {name} has {has}."
        )
    sure = next((low[one] for one in _SURE if one in low), "")
    status = frame[low["status"]].tolist() if "status" in low else None
    for row, (key, said) in enumerate(zip(frame[by].tolist(), frame[of].tolist(), strict=True)):
        if status is not None and str(status[row]) in ("labelled", "undecided"):
            continue  # what people said is no guess
        text = "" if said is None or (isinstance(said, float) and math.isnan(said)) else str(said).strip()
        yield by.lower(), key, text, _number(frame[sure].iloc[row]) if sure else None


def _key(cell: Any) -> str:
    """An id as the pool has it: whole numbers without .0."""
    whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell) if whole else cell).strip()


def _number(cell: Any) -> float | None:
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None
