"""Results that lessons show when they open, computed beforehand into data/lessons.npz: `make lessons`.

Arrays and plain records, no pickle. A state that is not in the file is computed when somebody asks.
"""

import json
from functools import cache
from typing import Any

import numpy as np

from workbench.errors import InputError

FILE = "lessons.npz"


def records() -> dict[str, Any]:
    """The kinds of record a result is made of, by name."""
    from workbench.figures import records as figures
    from workbench.metrics import ConfidenceHistogram, ReliabilityTable
    from workbench.studies import lessons

    kinds = (
        figures.CalibrationReport,
        figures.Scores,
        figures.SweepCurve,
        ConfidenceHistogram,
        ReliabilityTable,
        lessons.Grid,
        lessons.Inducing,
        lessons.Measures,
        lessons.Looked,
        lessons.Rivals,
        lessons.Outvoted,
        lessons.Promises,
        lessons.Unlabelled,
    )
    return {kind.__name__: kind for kind in kinds}


def unpacked(tree: Any, arrays: Any) -> Any:
    """The result behind what `benchmarks.lessons` packed."""
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        array = np.asarray(arrays[tree["array"]])
        return array.astype(np.float64) if array.dtype == np.float16 else array
    if "record" in tree:
        fields = {name: unpacked(part, arrays) for name, part in tree["fields"].items()}
        return records()[tree["record"]](**fields)
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
