"""Folders of Hugging Face datasets, and zips of them: Parquet or Arrow files, or images with metadata."""

import io
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from workbench.errors import InputError
from workbench.members import Members
from workbench.pools.formats import Reader
from workbench.pools.formats.arrow import read_streams
from workbench.pools.formats.files import METADATA, File, check_size
from workbench.pools.formats.folders import by_split
from workbench.pools.formats.metadata import read_folder
from workbench.pools.formats.parquet import read_parts
from workbench.pools.tables import table_reader
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.source_table import RawTable
from workbench.reading import listed, parse_json, reading

_FORM = "a Hugging Face dataset"


def read(file: File, options: TableOptions) -> RawTable:
    """A dataset as a table; its images, if it has any, are the items.

    Args:
        file: a folder as `save_to_disk` writes it or as it lies on the hub, or a zip of one.
        options: split (None takes all, one after the other), max_bytes of all files that are read whole,
            max_cells, max_columns.

    Returns:
        The table, with the names of its classes in place of their codes.

    Raises:
        InputError: no such dataset, no such split, damaged, or too large.
    """
    with reading(file.name, _FORM, "Download or save it again."):
        members = file.members()
        paths = _paths(members)
        about = any(PurePosixPath(path).name in METADATA for path in paths)
        data = sorted(
            p for p in paths if p.endswith((".parquet", ".arrow")) and PurePosixPath(p).name not in METADATA
        )
        if data:
            return _table(file.name, members, data, options)
        if not about:
            raise InputError(
                f"{file.name} holds no .parquet and no .arrow file, and no {' or '.join(METADATA[:2])} "
                "beside images."
            )
        return read_folder(file.name, members, paths, options)


READER: Reader = table_reader(read)


def _paths(members: Members) -> list[str]:
    """Those of the files, without what macOS puts beside them."""
    return [path for path in members.sizes if "__MACOSX" not in path]


def _table(name: str, members: Members, data: list[str], options: TableOptions) -> RawTable:
    """The table of Parquet or Arrow files, split after split."""
    splits, note = by_split(name, data, options.split)
    paths = [path for files in splits.values() for path in files]
    check_size(name, sum(members.sizes[path] for path in paths), options.max_bytes)
    features = _features(members)
    parquet_paths = [path for path in paths if path.endswith(".parquet")]
    if parquet_paths == paths:
        sources = {path: io.BytesIO(members.read(path, options.max_bytes)) for path in paths}
        return read_parts(name, "huggingface", sources, options, note, features)
    notes = [note] if note else []
    notes += [f"Parquet beside Arrow files left out: {listed(parquet_paths, 3)}."] if parquet_paths else []
    streams = (members.read(path, options.max_bytes) for path in paths if path not in parquet_paths)
    return read_streams(name, "huggingface", streams, options, notes, features)


def _features(members: Members) -> Mapping[str, Any]:
    """Columns as a file beside the dataset describes them; {} where there is none."""
    for path in _paths(members):
        if PurePosixPath(path).name == "dataset_info.json" and members.sizes[path] < 10 << 20:
            document = parse_json(members.read(path), path)
            if isinstance(document, dict) and isinstance(document.get("features"), dict):
                return document["features"]
    return {}
