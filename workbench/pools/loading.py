"""One function that opens every kind of pool, and its rows and features later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import InputError
from workbench.pools.datasets.catalogue import POOLS
from workbench.pools.features import feature_map_from_json
from workbench.pools.features.table import TableFeatureMap
from workbench.pools.features.vectors import is_vectors, other_encoder
from workbench.pools.formats import call_with_options, format_of
from workbench.pools.formats.encodings import undecodable
from workbench.pools.formats.files import File
from workbench.pools.images.photos import PhotoItems, Photos
from workbench.pools.named_features import with_named_features
from workbench.pools.neighbours.twins import groups_of
from workbench.pools.notebooks import counted
from workbench.pools.pool import ArrayItems, ImageItems, Pool, RowItems, TextItems
from workbench.pools.python_objects import held_file
from workbench.pools.sources import ArraySource, Source, transformed
from workbench.pools.tables.options import READING, SHORT
from workbench.reading import cut, reading

if TYPE_CHECKING:
    from workbench.arrays import Array
    from workbench.pools.pool import FeatureMap
    from workbench.pools.tables.report import TableReport


def load_pool(
    source: Any, y: Any = None, *, file_name: str | None = None, strict: bool = False, **options: Any
) -> Pool:
    """Open a pool.

    Args:
        source: a name in `POOLS`; "pmlb:NAME", "raetsch:NAME", "large:NAME", "images:NAME",
            "openml:NAME" or "libsvm:FILE"; the path of a CSV, Parquet, NPZ, NPY, LIBSVM, idx or zip
            file or of a folder of images; or an upload's bytes. A name wins over a file or folder of
            the same name, which is meant by "./name". Or what Python holds: a DataFrame, an array [N, D]
            or of images [N, H, W(, 3)], a list of texts, a list of paths of pictures.
        y: [N] the classes of what Python holds, None where not known; a file names its own (`target`).
        file_name: name of an upload; its ending says what it is.
        strict: refuse a table in which something was guessed that could be otherwise; `inspect_table` lists
            it, and the pool's notes.
        options: what that kind of pool takes: "noise" for three-gaussians, "target" and the others of
            `workbench.pools.tables.options.TableOptions` for tables, "features" for images, ...

    Returns:
        The pool, without a test split unless the source has its own (see `Pool.split`).

    Raises:
        InputError: no such pool, an option it does not have, or a source that cannot be used as it
            is; the message says what to do.
    """
    if not isinstance(source, str | Path | bytes):
        return _of_objects(source, y, options, strict=strict)
    if y is not None:
        raise InputError("y is for arrays, texts and tables in memory; of a file, name the column: target=.")
    pool = replace(_loaded(source, file_name, options, strict=strict), grouping=groups_of)
    features = options.get("features")
    if not is_vectors(features):
        return pool

    def learnt(name: str) -> Pool:
        plain = {key: value for key, value in options.items() if key != "features"}
        return _loaded(source, file_name, plain | ({"features": name} if name == "shapes" else {}))

    return with_named_features(pool, features, learnt)


def _of_objects(source: Any, y: Any, options: Mapping[str, Any], *, strict: bool) -> Pool:
    """A pool of what Python holds, read as the file that a project would keep of it."""
    content = held_file(source, y, options)
    name = f"{content.stem}{content.ending}"
    try:
        pool = load_pool(content.data, file_name=name, strict=strict, **content.options)
    except InputError as error:
        subject = "The table" if content.ending == ".parquet" else "The array"
        raise InputError(str(error).replace(name, subject)) from error
    n, noun = len(pool), "items of a table" if pool.kind == "table" else f"{pool.kind}s"
    return replace(
        pool,
        title=pool.name,
        description=f"{n:,} {noun}.",
        held=replace(content, options=settled(content.options, pool)),
    )


def _loaded(
    source: str | Path | bytes, file_name: str | None, options: dict[str, Any], *, strict: bool = False
) -> Pool:
    if isinstance(source, str):
        loader = _named(source)
        if loader is not None:
            function, implied = loader
            try:
                return call_with_options(function, f"Pool {source!r}", {**implied, **options})
            except InputError:
                raise
            except (TypeError, ValueError) as error:
                arguments = ", ".join(f"{name}={value!r}" for name, value in options.items())
                raise InputError(
                    f"Pool {source!r} cannot be made with {arguments or 'no options'}: {error}."
                ) from error
    file = _found(source, file_name)
    entry = format_of(file)
    if strict and entry.reader.inspect is not None:
        options = {**options, "strict": True}
    with reading(file.name):
        return call_with_options(entry.reader.load, f"A file like {file.name!r}", options, file)


def settled(options: Mapping[str, Any], pool: Pool) -> dict[str, Any]:
    """Options with which a pool opens as it is, also when its table grows: with a use for every column.

    Args:
        options: of `load_pool` that it was opened with.
        pool: that they made.
    """
    if pool.uses is None:
        return dict(options)
    base = {name: value for name, value in options.items() if name not in (*SHORT, "strict")}
    return {**base, **pool.reading, "columns": pool.uses}


def is_table(source: str | Path | bytes, file_name: str | None = None) -> bool:
    """Tell whether a source is a file of a table, whose columns have uses."""
    return not _is_name(source) and format_of(File.of(source, file_name)).reader.inspect is not None


def seen_as_pixels(source: str | Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options under which images stay pixels, for a model that learns from them (`classifiers.sees_pixels`).

    Args:
        source: as for `load_pool`.
        options: as a person gave them; features that they choose stay.
    """
    settings = dict(options)
    if {"features", "resize", "mode"} & set(settings):
        return settings
    is_name = _is_name(source)
    images = str(source).startswith("images:") if is_name else "image" in format_of(File.of(source)).kinds
    return settings | ({"features": "pixels"} if images and (is_name or not is_table(source)) else {})


def _is_name(source: str | Path | bytes) -> bool:
    return isinstance(source, str) and (not Path(source).expanduser().exists() or is_named(source))


def is_named(source: str) -> bool:
    """True if a text names a pool that comes with the program or a known set, rather than a file.

    Raises:
        InputError: a group of known sets that has no such set.
    """
    return _named(source) is not None


def inspect_table(
    source: str | Path | bytes, *, file_name: str | None = None, preview: int = 10, **options: Any
) -> TableReport:
    """Look at a table without making a pool of it.

    Args:
        source: a path, or an upload's bytes.
        file_name: name of an upload; its ending says what it is.
        preview: rows to show.
        options: those of `TableOptions`, as they would be given to `load_pool`.

    Returns:
        The columns and the problems that remain under these options, each with its ways out. A file
        that cannot be read at all gives a report with one problem.

    Raises:
        InputError: no such file, no table, or an option there is not. What is wrong with the file
            itself is in the report.
    """
    file = _found(source, file_name)
    inspect = format_of(file).reader.inspect
    if inspect is None:
        raise InputError(f"{file.name} is no table with names on its columns; open it with load_pool.")
    with reading(file.name):
        return inspect(file, preview, **options)


def read_rows(
    source: str | Path | bytes,
    *,
    file_name: str | None = None,
    like: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """The rows of a file, for a feature map to transform.

    Args:
        source: a path, or an upload's bytes.
        file_name: name of an upload.
        like: how the pool was read whose rows these are (`Pool.reading`), where the options say nothing else.
        options: for tables, those of `READING`, max_bytes and max_cells of `TableOptions`.

    Returns:
        A pandas DataFrame for tables (the cells of a CSV are texts), else an array [N, ...].

    Raises:
        InputError: the file cannot be read, or has ragged lines and ragged is "error".
    """
    file = _found(source, file_name)
    entry = format_of(file)
    with reading(file.name):
        options = read_like(file, like or {}) | options
        return call_with_options(entry.reader.rows, f"A file like {file.name!r}", options, file)


def _named(source: str) -> tuple[Callable[..., Pool], Mapping[str, Any]] | None:
    """The loader behind a name and the options the name implies, or None where it names none."""
    if source in POOLS:
        entry = POOLS[source]
        return entry.load(), entry.options
    from workbench.pools.datasets.known import load_known

    loader = load_known(source)
    return None if loader is None else (loader, {})


def _found(source: str | Path | bytes, file_name: str | None) -> File:
    if isinstance(source, str):
        if not source.strip():
            raise InputError(f"Name a pool or a file; there are {', '.join(POOLS)}.")
        with reading(f"The path {cut(source, 120)}"):
            if not Path(source).expanduser().exists():
                if not any(mark in source for mark in "/\\."):
                    POOLS[source]  # raises, and says what there is
                raise InputError(
                    f"There is no file {cut(source, 200)}. Check the path, or name a pool: "
                    f"{', '.join(POOLS)}."
                )
    return File.of(source, file_name)


LEARNT = ("pieces", "shapes", "table")
"""Kinds of maps that depend on all items of a pool, and so would change when it grows. Those of vectors, of
encoders and joined ones are taken up while a pool is loaded (`workbench.pools.features.cache.saved_map`)."""


def with_saved_map(pool: Pool, document: Mapping[str, Any]) -> Pool:
    """The pool with the features its project was made with, where the same source now teaches others.

    Args:
        pool: as loaded now.
        document: of the feature map saved with the project.

    Returns:
        The pool itself where the maps agree or are not learnt from the items. A cell that a saved map of
        a table never met (a new category) is none of those it knows, and the pool's notes say so.

    Raises:
        InputError: a damaged map, or an encoder that is another one under its name.
    """
    own_map = pool.feature_map.to_json()
    _refuse_other_encoders(own_map, document)
    if document.get("kind") not in LEARNT or own_map.get("kind") != document["kind"] or own_map == document:
        return pool
    items = pool.items
    if isinstance(items, TextItems):
        rows: Any = items.texts
    elif isinstance(items, PhotoItems):
        rows = items.photos
    elif isinstance(items, ImageItems):
        rows = items.images
    elif isinstance(items, RowItems):
        rows = items.cells
    elif isinstance(items, ArrayItems):
        rows = items.values
    else:
        return pool
    feature_map = feature_map_from_json(dict(document))
    notes: tuple[str, ...]
    if isinstance(feature_map, TableFeatureMap):
        features, unmet = feature_map.transform_known(rows)
        notes = tuple(
            f"{counted(n, 'new cell')} of {name!r} hold what the project never met and count as none of its "
            "categories."
            for name, n in unmet.items()
        )
    else:
        features = feature_map.transform(rows)
        notes = rows.attrs["notes"] if isinstance(rows, Photos) else ()
    return replace(pool, feature_map=feature_map, features=features, notes=(*pool.notes, *notes))


def _refuse_other_encoders(own_map: Mapping[str, Any], document: Mapping[str, Any]) -> None:
    for part, saved_part in zip(
        own_map.get("parts", [own_map]), document.get("parts", [document]), strict=False
    ):
        same = part.get("kind") == saved_part.get("kind") == "encoder" and part["encoder"] == saved_part.get(
            "encoder"
        )
        if same and part["weights"] != saved_part.get("weights"):
            raise other_encoder(part["encoder"])


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
