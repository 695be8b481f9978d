"""Results that lessons show when they open, computed beforehand into data/lessons.npz: `make lessons`.

Arrays and plain records, no pickle. A state that is not in the file is computed when somebody asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import InputError

FILE = "lessons.npz"
LARGE = 1000
"""Arrays of more elements are stored as float16: for pictures, where half a per mille is not seen."""


def _records() -> dict[str, Any]:
    """The kinds of record a result is made of, by name."""
    from workbench.figures import records
    from workbench.metrics import ConfidenceHistogram, ReliabilityTable
    from workbench.studies import lessons, promises, unlabelled

    kinds = (
        records.CalibrationReport,
        records.Scores,
        records.SweepCurve,
        ConfidenceHistogram,
        ReliabilityTable,
        lessons.Grid,
        lessons.Inducing,
        lessons.Measures,
        lessons.Looked,
        lessons.Rivals,
        lessons.Outvoted,
        promises.Promises,
        unlabelled.Unlabelled,
    )
    return {kind.__name__: kind for kind in kinds}


def packed(value: Any, arrays: dict[str, Any]) -> Any:
    """A result as JSON; its arrays go into `arrays` and are named in it."""
    kind = type(value).__name__
    if isinstance(value, np.ndarray):
        name = f"a{len(arrays)}"
        arrays[name] = value.astype(np.float16) if value.dtype.kind == "f" and value.size > LARGE else value
        return {"array": name}
    if kind in _records():
        fields = getattr(value, "_fields", None) or value.__dataclass_fields__
        return {"record": kind, "fields": {f: packed(getattr(value, f), arrays) for f in fields}}
    if isinstance(value, dict):
        return {"dict": {k: packed(v, arrays) for k, v in value.items()}}
    if isinstance(value, (tuple, list)):
        return {"tuple": [packed(v, arrays) for v in value]}
    return value.item() if isinstance(value, np.generic) else value


def unpacked(tree: Any, arrays: Any) -> Any:
    """The result behind what `packed` gave."""
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        found = np.asarray(arrays[tree["array"]])
        return found.astype(np.float64) if found.dtype == np.float16 else found
    if "record" in tree:
        fields = {name: unpacked(part, arrays) for name, part in tree["fields"].items()}
        return _records()[tree["record"]](**fields)
    if "dict" in tree:
        return {name: unpacked(part, arrays) for name, part in tree["dict"].items()}
    return tuple(unpacked(part, arrays) for part in tree["tuple"])


@cache
def _index() -> tuple[dict[str, Any], dict[str, Any]]:
    """(key -> tree, arrays) of the file; empty where it is missing."""
    from workbench.pools.datasets.catalogue import bundled_file

    try:
        path = bundled_file(FILE)
    except InputError:
        return {}, {}
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files if name != "index"}
        return json.loads(str(file["index"])), arrays


def find(key: str) -> Any:
    """The stored result of a lesson's state, or None.

    Args:
        key: the lesson's name and its values, as `lessons` makes it.
    """
    trees, arrays = _index()
    return unpacked(trees[key], arrays) if key in trees else None


def write(path: Path, states: Iterable[tuple[str, Any]]) -> None:
    """Store results.

    Args:
        path: of the file.
        states: (key, result) of each.
    """
    arrays: dict[str, Any] = {}
    trees = {key: packed(result, arrays) for key, result in states}
    with path.open("wb") as file:
        np.savez_compressed(file, index=np.array(json.dumps(trees)), **arrays)
