"""Opening rows to be scored, whatever they are in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import InputError
from workbench.pools.formats import format_of
from workbench.pools.formats.files import File
from workbench.pools.sources import ArraySource, Source, transformed
from workbench.reading import reading

if TYPE_CHECKING:
    from workbench.arrays import Array
    from workbench.pools.pool import FeatureMap, Pool


def open_source(
    source: Pool | Source | Array | str | Path,
    feature_map: FeatureMap | None = None,
    columns: Sequence[str] | None = None,
) -> Source:
    """Rows to score, from whatever they are in.

    Args:
        source: a pool, an array [N, D], the path of a file or a folder; or a source. NPY, NPZ and Parquet
            are read piece by piece; other formats whole, and only with a feature map.
        feature_map: from raw rows to features, for all but pools.
        columns: of Parquet parts, where there is no feature map.

    Returns:
        The source.

    Raises:
        InputError: nothing there, or nothing that can be streamed.
    """
    if isinstance(source, (str, Path)):
        file = File.of(source)
        entry = format_of(file)
        if entry.reader.stream is not None:
            with reading(file.name):
                return entry.reader.stream(file.path, feature_map, columns)
        if feature_map is None:
            raise InputError(
                f"{file.name} cannot be streamed: that takes NPY, NPZ, Parquet or a folder of Parquet parts. "
                "Load it with load_pool(...) and score the pool, or convert it."
            )
        with reading(file.name):
            rows = entry.reader.rows(file)
            notes = getattr(rows, "attrs", {}).get("notes", ())
            return ArraySource(transformed(feature_map, rows, 0), notes=notes)
    if isinstance(source, np.ndarray):
        return ArraySource(source, feature_map)
    if hasattr(source, "features") and hasattr(source, "items"):
        return ArraySource(source.features, ids=source.items.ids)
    if hasattr(source, "chunks") and hasattr(source, "units"):
        return source
    raise InputError(f"Cannot score rows of a {type(source).__name__}.")
