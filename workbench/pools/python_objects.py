"""Pools of what Python holds: a DataFrame, arrays, texts, paths; each as the file that a project keeps."""

import io
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.cells import plain_text
from workbench.pools.formats.files import IMAGE_ENDINGS
from workbench.pools.pool import Held
from workbench.pools.tables.source_table import check_names
from workbench.reading import cut, listed

LABEL = "label"
"""The column that classes given beside a table or texts become."""
_SOURCES = (
    "a name, the path of a file or folder, an upload's bytes, a DataFrame, an array with or without labels, "
    "a list of texts or a list of paths of pictures"
)


def held_file(source: Any, y: Any, options: Mapping[str, Any]) -> Held:
    """File that `load_pool` reads, for what Python holds.

    Args:
        source: a DataFrame (or what has `to_pandas`), a mapping of columns, a list of records, an array
            [N, D] or of images [N, H, W(, 3)], a list of texts, or a list of paths of pictures.
        y: [N] the classes, empty or None where not known; None without any.
        options: as a person gave them.

    Returns:
        The file, with the options that its kind adds.

    Raises:
        InputError: something else, labels of another number, or cells that no file holds.
    """
    if hasattr(source, "to_pandas") and not hasattr(source, "iloc"):
        source = source.to_pandas()
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return _frame(source, y, options, "table")
    if hasattr(source, "iloc"):  # a column of texts or of paths
        source = source.tolist()
    if isinstance(source, Mapping):
        return _frame(_made_frame(source), y, options, "table")
    if isinstance(source, list | tuple) and source:
        if all(isinstance(entry, Mapping) for entry in source):
            return _frame(_made_frame(list(source)), y, options, "table")
        if all(isinstance(entry, str | Path) for entry in source):
            return _paths(source, y, options) if _are_paths(source) else _texts(source, y, options)
    if hasattr(source, "toarray"):
        raise InputError("The array is sparse: give X.toarray(), or the path of a LIBSVM file.")
    if isinstance(source, list | tuple | np.ndarray) or hasattr(source, "__array__"):
        return _arrays(source, y, options)
    raise InputError(f"No pool can be made of this ({type(source).__name__}); give {_SOURCES}.")


def _made_frame(columns: Any) -> Any:
    import pandas as pd

    try:
        return pd.DataFrame(columns)
    except (TypeError, ValueError) as error:
        raise InputError(f"These columns make no table: {error}.") from error


def _frame(frame: Any, y: Any, options: Mapping[str, Any], stem: str) -> Held:
    """A table: its index is left out, unless it has a name or holds texts, and so is a column."""
    index = frame.index
    index_name = next((name for name in ("id", "index") if name not in frame.columns), None)
    if index_name and index.nlevels == 1 and index.name is None and index.inferred_type == "string":
        frame = frame.rename_axis(index=index_name)
    index_names = [name for name in frame.index.names if name is not None]
    clash = [name for name in index_names if name in frame.columns]
    frame = frame.reset_index(drop=bool(clash) or not index_names)
    frame.columns = [str(name) for name in frame.columns]
    options = dict(options)
    if y is not None:
        target = str(getattr(y, "name", None) or LABEL)
        if options.get("target") is not None or target in frame.columns:
            raise InputError(
                f"The table has a column {cut(options.get('target') or target)} for the classes, and y gives "
                "them once more. Leave one of them out."
            )
        frame[target] = _labels(y, len(frame))
        options["target"] = target
    check_names("The table", list(frame.columns))
    for name in frame.columns:
        frame[name] = plain_column(frame[name])
    out = io.BytesIO()
    try:
        frame.to_parquet(out, index=False)
    except Exception as error:  # whatever pyarrow says of a cell it cannot take
        raise InputError(
            f"The table cannot be kept as a file: {cut(str(error), 200)}. Make its cells numbers, texts or "
            "dates."
        ) from error
    return Held(str(options.get("name") or stem), ".parquet", out.getvalue(), options)


def plain_column(column: Any) -> Any:
    """A column as a file holds it: categories as their texts, mixed cells as texts."""
    from pandas.api.types import infer_dtype

    if column.dtype == "category":
        column = column.astype(object)
    if column.dtype != object:
        return column
    if infer_dtype(column, skipna=True) in ("string", "empty", "boolean", "integer", "floating", "decimal"):
        return column
    return column.where(column.isna(), column.map(plain_text))


def _labels(y: Any, n: int) -> list[str | None]:
    """[n] names of classes, None where there is none; a class -1 is none, as it is in a file of arrays."""
    values = np.asarray(y.tolist() if hasattr(y, "tolist") else y, dtype=object)
    if values.ndim != 1 or len(values) != n:
        raise InputError(
            f"There are {n:,} items and labels of shape {list(values.shape)}; give one label an item, "
            "None where it is not known."
        )
    texts = [plain_text(value).strip() for value in values.tolist()]
    numbers = all(isinstance(value, int | float | None) for value in values.tolist())
    unknown = "-1" if numbers and set(texts) - {"", "-1"} != {"1"} else ""
    return [None if text in ("", unknown) else text for text in texts]


def _texts(texts: Sequence[Any], y: Any, options: Mapping[str, Any]) -> Held:
    import pandas as pd

    frame = pd.DataFrame({"text": [str(text) for text in texts]})
    settings = {"columns": {"text": {"use": "text"}}}
    return _frame(frame, y, {**settings, **options}, "texts")


def _are_paths(source: Sequence[Any]) -> bool:
    """True if these are paths of pictures: `Path`s, or texts that end so and are there."""
    if any(isinstance(entry, Path) for entry in source):
        return True
    has_endings = all(len(entry) < 4096 and entry.lower().endswith(IMAGE_ENDINGS) for entry in source)
    return has_endings and Path(source[0]).expanduser().is_file()


def _paths(source: Sequence[Any], y: Any, options: Mapping[str, Any]) -> Held:
    """Pictures by their paths, which stay where they are."""
    import pandas as pd

    paths = [Path(entry).expanduser().resolve() for entry in source]
    missing = [str(original) for original, path in zip(source, paths, strict=True) if not path.is_file()]
    if missing:
        raise InputError(
            f"{len(missing):,} of {len(paths):,} files are not there: {listed(missing, 3)}. Check the paths."
        )
    folder = Path(os.path.commonpath([path.parent for path in paths]))
    frame = pd.DataFrame({"picture": [path.relative_to(folder).as_posix() for path in paths]})
    settings = {"columns": {"picture": {"use": "picture"}}, "folder": str(folder)}
    return _frame(frame, y, {**settings, **options}, "pictures")


def _arrays(source: Any, y: Any, options: Mapping[str, Any]) -> Held:
    X = _numbers(source)
    arrays: dict[str, Array] = {"X": X}
    if y is not None:
        arrays["y"] = np.array(["" if name is None else name for name in _labels(y, len(X))], dtype=np.str_)
    out = io.BytesIO()
    np.savez(out, **arrays)  # type: ignore[arg-type]
    return Held(str(options.get("name") or "arrays"), ".npz", out.getvalue(), options)


def _numbers(source: Any) -> Array:
    try:
        X = np.asarray(source)
    except (TypeError, ValueError) as error:
        raise InputError(f"This is no array of items: {cut(str(error), 160)}. Give {_SOURCES}.") from error
    if X.dtype == object:
        with suppress(TypeError, ValueError):  # said below
            X = X.astype(np.float64)
    if X.dtype.kind not in "biuf":
        raise InputError(
            f"The array holds {X.dtype}, and an array of items is all numbers. Give a DataFrame for columns "
            "of several kinds, a list of texts for texts."
        )
    return X
