"""Opening rows to be scored, whatever they are in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import InputError
from workbench.pools.formats import format_of
from workbench.pools.formats.encodings import undecodable
from workbench.pools.formats.files import File
from workbench.pools.sources import ArraySource, Source, transformed
from workbench.pools.tables.options import READING
from workbench.reading import reading

if TYPE_CHECKING:
    from workbench.arrays import Array
    from workbench.pools.pool import FeatureMap, Pool


def read_like(file: File, read: Mapping[str, Any]) -> dict[str, Any]:
    """Options that read a file as a pool's own was read, whatever program wrote it.

    Args:
        file: of other rows.
        read: as of `Pool.reading`.

    Returns:
        The same for a table, without an encoding where the file is UTF-8; none for any other file.
    """
    if format_of(file).reader.inspect is None:
        return {}
    utf8 = "encoding" in read and undecodable(file.content(), "utf-8") is None
    names = [name for name in READING if name in read and not (utf8 and name == "encoding")]
    return {name: read[name] for name in names}


def open_source(
    source: Pool | Source | Array | str | Path,
    feature_map: FeatureMap | None = None,
    columns: Sequence[str] | None = None,
    read: Mapping[str, Any] | None = None,
) -> Source:
    """Rows to score, from whatever they are in.

    Args:
        source: a pool, an array [N, D], the path of a file or a folder; or a source. NPY, NPZ and Parquet
            are read piece by piece; other formats whole, and only with a feature map.
        feature_map: from raw rows to features, for all but pools.
        columns: of Parquet parts, where there is no feature map.
        read: how the pool was read whose rows these are (`Pool.reading`).

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
            rows = entry.reader.rows(file, **read_like(file, read or {}))
            features = transformed(feature_map, rows, 0)
            return ArraySource(features, notes=getattr(rows, "attrs", {}).get("notes", ()))
    if isinstance(source, np.ndarray):
        return ArraySource(source, feature_map)
    if hasattr(source, "features") and hasattr(source, "items"):
        return ArraySource(source.features, ids=source.items.ids)
    if hasattr(source, "chunks") and hasattr(source, "units"):
        return source
    raise InputError(f"Cannot score rows of a {type(source).__name__}.")
