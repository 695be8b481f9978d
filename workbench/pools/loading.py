"""One function that opens every kind of pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import InputError
from workbench.pools.encoded import with_named_features
from workbench.pools.features.vectors import is_vectors
from workbench.pools.formats import call_with_options, format_of
from workbench.pools.formats.files import File
from workbench.pools.neighbours.twins import groups_of
from workbench.pools.pool import Pool
from workbench.pools.python_objects import held_file
from workbench.pools.registry import POOLS
from workbench.pools.streams import read_like
from workbench.pools.tables.options import SHORT
from workbench.reading import cut, reading

if TYPE_CHECKING:
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
            return call_with_options(function, f"Pool {source!r}", {**implied, **options})
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
