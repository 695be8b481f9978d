"""Folders of Hugging Face datasets, and zips of them: Parquet or Arrow files, or images with metadata."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.members import Members
from workbench.pools.formats import Reader
from workbench.pools.formats.arrow_sizes import unpacked_size
from workbench.pools.formats.files import File, check_cells, check_size
from workbench.pools.formats.metadata import METADATA, by_split, read_folder
from workbench.pools.formats.parquet import frame_of, plain_table
from workbench.pools.tables import table_reader
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.raw import RawTable, check_names
from workbench.pools.tables.uses import ColumnUse
from workbench.reading import listed, parse_json, reading

_FORM = "a Hugging Face dataset"
_LABELS = ("label", "labels", "target", "class", "category")


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


class _Blobs(Mapping[str, bytes]):
    """Pictures in a column of a table, by the name that stands in the cell."""

    def __init__(self, cells: Any, names: Sequence[str]) -> None:
        self._cells = cells
        self._rows = {name: i for i, name in enumerate(names)}

    def __getitem__(self, name: str) -> bytes:
        return bytes(self._cells[self._rows[name]].as_py() or b"")

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def _table(name: str, members: Members, data: list[str], options: TableOptions) -> RawTable:
    """The table of Parquet or Arrow files, split after split."""
    import pyarrow as pa

    splits, note = by_split(name, data, options.split)
    paths = [path for found in splits.values() for path in found]
    check_size(name, sum(members.sizes[path] for path in paths), options.max_bytes)
    tables: list[Any] = []
    n_rows = n_bytes = 0
    for path in paths:
        for table in _pieces(path, members.read(path, options.max_bytes), options, name):
            if tables and table.schema.names != tables[0].schema.names:
                raise InputError(f"The files of {name} do not have the same columns; make them alike.")
            n_rows, n_bytes = n_rows + table.num_rows, n_bytes + table.nbytes
            check_cells(name, n_rows, table.num_columns, options.max_cells, options.max_columns)
            check_size(f"{name} (unpacked)", n_bytes, options.max_bytes)
            tables.append(table)
    if not tables:
        raise InputError(f"{name} holds no rows.")
    whole = pa.concat_tables(tables, promote_options="permissive")
    check_names(name, whole.column_names)
    return _framed(name, whole, _features(whole, members), (note,) if note else (), n_rows)


def _pieces(path: str, data: bytes, options: TableOptions, name: str) -> Iterator[Any]:
    """One file's tables, its sizes checked as it is unpacked."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.endswith(".parquet"):
        file = pq.ParquetFile(io.BytesIO(data))
        groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
        check_size(f"{name} (unpacked)", sum(group.total_byte_size for group in groups), options.max_bytes)
        check_cells(name, file.metadata.num_rows, len(file.schema_arrow.names), options.max_cells)
        yield file.read()
        return
    # a file is a stream behind eight bytes, and an index that need not tell the truth about it
    stream = memoryview(data)[8:] if data[:6] == b"ARROW1" else memoryview(data)
    check_size(f"{name} (unpacked)", unpacked_size(stream), options.max_bytes)
    source = pa.ipc.open_stream(pa.py_buffer(stream))
    for batch in source:
        # Arrow believes a file's offsets unless asked: damaged ones would read memory that is another's
        batch.validate(full=True)
        yield pa.Table.from_batches([batch], schema=source.schema)


def _features(table: Any, members: Members) -> Mapping[str, Any]:
    """Columns as the dataset describes them; {} where it says nothing."""
    described = (table.schema.metadata or {}).get(b"huggingface")
    if described:
        document = parse_json(described, "What the dataset says of its columns")
        return document.get("info", {}).get("features") or {}
    for path in _paths(members):
        if PurePosixPath(path).name == "dataset_info.json" and members.sizes[path] < 10 << 20:
            document = parse_json(members.read(path), path)
            if isinstance(document, dict) and isinstance(document.get("features"), dict):
                return document["features"]
    return {}


def _framed(
    name: str, table: Any, features: Mapping[str, Any], notes: tuple[str, ...], n_rows: int
) -> RawTable:
    import pandas as pd
    import pyarrow as pa

    columns: dict[str, Any] = {}
    uses: dict[str, ColumnUse] = {}
    pictures: dict[str, Mapping[str, bytes]] = {}
    nested: list[str] = []
    for given in table.column_names:
        cells, feature = table.column(given), features.get(given)
        feature = feature if isinstance(feature, dict) else {}
        kind = cells.type
        if pa.types.is_struct(kind) and {field.name for field in kind} >= {"bytes", "path"}:
            if pictures:
                nested.append(given)
                continue
            names, held = _pictures(cells.combine_chunks(), given)
            columns[given], pictures[given] = pd.Series(names, dtype="str"), held
            uses[given] = ColumnUse.of(given, "picture")
            continue
        if pa.types.is_nested(kind):
            nested.append(given)
            continue
        if feature.get("_type") == "ClassLabel" and feature.get("names"):
            columns[given] = _named(cells, [str(label) for label in feature["names"]], given)
            if "class" not in {use.use for use in uses.values()}:
                uses[given] = ColumnUse("class")
            continue
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            nested.append(given)
            continue
        plain = plain_table(pa.table({given: cells}), pa.schema([(given, kind)]), name, False)
        columns[given] = frame_of(plain)[given]
    if nested:
        notes = (*notes, f"Left out are lists, records and further pictures: {listed(nested)}.")
    if not columns:
        raise InputError(f"{name} holds no column of plain values and no pictures.")
    frame = pd.DataFrame(columns)
    if pictures:  # the model sees the pictures alone
        label = next((c for c in frame.columns if c.lower() in _LABELS and c not in uses), None)
        if label is not None and "class" not in {use.use for use in uses.values()}:
            uses[label] = ColumnUse("class")
        uses |= {c: ColumnUse("leave out") for c in frame.columns if c not in uses and c.lower() != "id"}
    return RawTable(name, "huggingface", frame, pictures=pictures, uses=uses, notes=notes, n_there=n_rows)


def _pictures(cells: Any, column: str) -> tuple[list[str], _Blobs]:
    """Names of the pictures of a column of {bytes, path}, each once, and their bytes."""
    paths = cells.field("path").to_pylist()
    taken: set[str] = set()
    names = []
    for i, path in enumerate(paths):
        name = PurePosixPath(str(path)).name if path else f"{column}-{i:06d}"
        name = name if name not in taken else f"{i:06d}-{name}"
        taken.add(name)
        names.append(name)
    return names, _Blobs(cells.field("bytes"), names)


def _named(cells: Any, names: list[str], column: str) -> Any:
    """Codes as the names of their classes; -1 is no class."""
    import pandas as pd

    codes = cells.to_pandas().to_numpy(dtype=np.float64, na_value=-1)
    codes = np.where(np.isnan(codes), -1, codes).astype(np.int64)
    if len(codes) and int(codes.max()) >= len(names):
        raise InputError(
            f"Column {column!r} holds the code {int(codes.max())}, and there are {len(names)} classes."
        )
    return pd.Series([names[code] if code >= 0 else "" for code in codes], dtype="str")
