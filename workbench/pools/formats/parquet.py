"""Parquet files, or folders of parts, as typed tables: whole, or a few thousand rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.formats.files import File, check_cells, check_size
from workbench.pools.sources import Unit, transformed
from workbench.pools.tables import table_reader
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.raw import RawTable, check_names
from workbench.reading import cut, listed, reading

if TYPE_CHECKING:
    from workbench.pools.pool import FeatureMap

_FORM = "a Parquet file"


def read(file: File, options: TableOptions) -> RawTable:
    """A Parquet file (or a folder of parts) as a typed table.

    Args:
        file: a file or a folder.
        options: max_bytes, packed and unpacked; max_cells; max_columns.

    Returns:
        The table.

    Raises:
        InputError: not Parquet, parts that differ, nested columns, empty or too large.
    """
    name = file.name
    with reading(name, _FORM, "Write it again."):
        table = _arrow_table(file, options)
        n_there = _rows_there(file)
        # pandas' own metadata would hide an index that was saved as a column, such as the ids
        table = table.replace_schema_metadata(None)
        unnamed = [column for column in table.column_names if column.startswith("__index_level_")]
        return RawTable(name, "parquet", frame_of(table.drop_columns(unnamed)), n_there=n_there)


def _rows_there(file: File) -> int:
    """Rows that the files themselves say they hold."""
    import pyarrow.parquet as pq

    sources: Sequence[Any] = [file.open()] if file.is_upload else parquet_parts(file)
    return sum(int(pq.read_metadata(source).num_rows) for source in sources)


def frame_of(table: Any) -> Any:
    """Columns of Arrow as cells; whole numbers beside empty cells keep all their digits.

    Args:
        table: of plain types (`plain_table`).

    Returns:
        A pandas DataFrame.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    exact = {}
    for i, column in enumerate(table.columns):
        if pa.types.is_integer(column.type) and column.null_count:
            most = pc.min_max(column)
            ends = (most["min"].as_py() or 0, most["max"].as_py() or 0)
            if max(abs(end) for end in ends) >= 2**53:  # beyond what a float holds
                kind = pd.UInt64Dtype() if str(column.type).startswith("u") else pd.Int64Dtype()
                exact[i] = pd.Series(column.to_pylist(), dtype=kind)
    # pandas' own metadata would make types of columns that were brought to plain ones
    frame = table.replace_schema_metadata(None).to_pandas()
    for i, cells in exact.items():
        frame.isetitem(i, cells)
    return frame


def read_columns(
    file: File, wanted: Sequence[str], max_cells: int
) -> tuple[dict[str, list[Any]], dict[bytes, bytes]]:
    """Some columns as plain values, whatever the others hold.

    Args:
        file: the file.
        wanted: names of columns; those that are not there are left out.
        max_cells: most rows x columns.

    Returns:
        Column name -> values, and the metadata of the schema.

    Raises:
        InputError: as `read`.
    """
    with reading(file.name, _FORM, "Write it again."):
        table = _arrow_table(file, TableOptions(max_cells=max_cells), wanted)
        metadata: dict[bytes, bytes] = table.schema.metadata or {}
        return {name: table.column(name).to_pylist() for name in table.column_names}, metadata


def _arrow_table(file: File, options: TableOptions, wanted: Sequence[str] | None = None) -> Any:
    """The columns as Arrow holds them, their sizes checked before anything is unpacked."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = file.name
    if file.is_upload:
        check_size(name, file.size(), options.max_bytes)
    sources: Sequence[Any] = [file.open()] if file.is_upload else parquet_parts(file)
    schema = pq.ParquetFile(sources[0]).schema_arrow
    check_names(name, schema.names)
    names = [column for column in schema.names if wanted is None or column in wanted]
    # texts stay coded until their full length is known: a page of one long text may repeat it for ever
    texts = [column for column in names if _holds_texts(schema.field(column).type)]
    files = [pq.ParquetFile(source, read_dictionary=texts) for source in sources]
    for part in files[1:]:
        if not part.schema_arrow.equals(files[0].schema_arrow, check_metadata=False):
            raise InputError(f"The parts of {name} do not have the same columns; make them alike.")
    n_rows = sum(part.metadata.num_rows for part in files)
    check_cells(name, n_rows, len(names), options.max_cells, options.max_columns)
    groups = [part.metadata.row_group(i) for part in files for i in range(part.num_row_groups)]
    if wanted is None:
        check_size(f"{name} (unpacked)", sum(group.total_byte_size for group in groups), options.max_bytes)
    for column in names:
        if pa.types.is_nested(schema.field(column).type):
            raise InputError(
                f"Column {column!r} of {name} holds lists or records; spread it over plain columns, "
                "one number or text a cell."
            )
    parts = [part.read(names) for part in files]
    _check_texts(name, parts, texts, options.max_bytes)
    return pa.concat_tables([plain_table(part, schema, name, wanted is not None) for part in parts])


def stream(
    path: Path, feature_map: FeatureMap | None = None, columns: Sequence[str] | None = None
) -> ParquetSource:
    """The rows piece by piece."""
    return ParquetSource(path, feature_map, columns)


READER = table_reader(read, stream=stream)


def parquet_parts(file: File) -> list[Path]:
    """The files of a Parquet table: itself, or the .parquet files in a folder by name.

    Raises:
        InputError: none there.
    """
    if not file.is_folder:
        return [file.path]
    parts = sorted(path for path in file.path.glob("*.parquet") if path.is_file())
    if not parts:
        raise InputError(f"There is no .parquet file in the folder {str(file.path)!r}.")
    return parts


def _holds_texts(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    )


def _check_texts(name: str, parts: list[Any], texts: list[str], max_bytes: int) -> None:
    """Refuse texts that are short in the file and endless once spelled out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    total = 0
    for part in parts:
        for column in texts:
            for chunk in part.column(column).chunks:
                if pa.types.is_dictionary(chunk.type):
                    lengths = pc.binary_length(chunk.dictionary).take(chunk.indices)
                    total += int(pc.sum(lengths).as_py() or 0)
                else:
                    total += chunk.nbytes
                check_size(f"{name} (unpacked)", total, max_bytes)


def plain_table(table: Any, schema: Any, name: str, keep_booleans: bool) -> Any:
    """Columns of types that pandas reads as numbers or texts, the same ones whoever reads them.

    Args:
        table: as it was read.
        schema: of the file, where texts may have been read coded.
        name: of the file, for messages.
        keep_booleans: leave them as they are, for whoever wants plain values.

    Raises:
        InputError: bytes that are no text.
    """
    import pyarrow as pa

    for i, given in enumerate(table.column_names):
        column = schema.field(given)
        kind = column.type
        if pa.types.is_boolean(kind):
            if keep_booleans:
                continue
            wanted = pa.int8()  # with empty cells pandas would make texts of them
        elif pa.types.is_decimal(kind):
            wanted = pa.float64()
        elif _holds_texts(kind):
            wanted = pa.large_string()
        elif pa.types.is_dictionary(kind):
            wanted = kind.value_type
        else:
            continue
        cells = table.column(i)
        if pa.types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        try:
            cells = cells.cast(wanted)
        except pa.ArrowException as error:
            if not pa.types.is_binary(kind) and not pa.types.is_large_binary(kind):
                raise
            raise InputError(
                f"Column {column.name!r} of {name} holds bytes that are no text. Leave it out of the file, "
                "or write numbers or texts in its place."
            ) from error
        table = table.set_column(i, column.name, cells)
    return table


class ParquetSource:
    """Features in a Parquet file or in a folder of parts, read a few thousand rows at a time.

    Args:
        path: the file or the folder; parts are taken in the order of their names.
        feature_map: applied to each chunk; its source columns are read. Without one every column
            must be a number.
        columns: which columns, instead.

    Raises:
        InputError: not Parquet, a part with other columns than the first, or columns that are no
            numbers without a feature map.
    """

    def __init__(
        self, path: Path, feature_map: FeatureMap | None = None, columns: Sequence[str] | None = None
    ) -> None:
        self.feature_map = feature_map
        self.paths = parquet_parts(File.of(path))
        self._units: list[Unit] = []
        first = 0
        schema: Any = None
        for number, part in enumerate(self.paths):
            file = _opened(part)
            if schema is None:
                schema = file.schema_arrow
                self.columns = _columns(schema, feature_map, columns, part.name)
            _compare(file.schema_arrow, schema, self.columns, part.name, self.paths[0].name)
            for group in range(file.metadata.num_row_groups):
                n = file.metadata.row_group(group).num_rows
                self._units.append(Unit(first, n, number, group))
                first += n
            file.close()
        self._n_rows = first

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return self._n_rows

    @property
    def n_columns(self) -> int:
        """Columns that are read."""
        return len(self.columns)

    def units(self) -> list[Unit]:
        """The parts' row groups."""
        return self._units

    def chunks(self, unit: Unit, chunk_rows: int) -> Iterator[tuple[int, Array]]:
        """Record batches of the row group, as arrays."""
        import pyarrow as pa

        path = self.paths[unit.part]
        file = _opened(path)
        done = 0
        try:
            # threads are ours; Arrow's own would hold several decoded columns at once
            batches = file.iter_batches(
                chunk_rows, row_groups=[unit.group], columns=list(self.columns), use_threads=False
            )
            while True:
                with reading(path.name, _FORM):
                    batch = next(batches, None)
                if batch is None:
                    break
                first = unit.first + done
                done += batch.num_rows
                if self.feature_map is not None:
                    plain = plain_table(pa.Table.from_batches([batch]), batch.schema, path.name, False)
                    yield first, transformed(self.feature_map, frame_of(plain), first)
                else:
                    yield first, _numbers(batch, self.columns)
        finally:
            file.close()
        if done != unit.n_rows:
            raise InputError(f"{path.name} changed while it was read; scan it again.")

    def portable(self, unit: Unit) -> ParquetSource:
        """Itself: paths, which the worker must see too."""
        return self

    def name_of(self, row: int) -> str:
        """Part and number within it."""
        firsts = [unit.first for unit in self._units]
        unit = self._units[int(np.searchsorted(firsts, row, side="right")) - 1]
        start = next(u.first for u in self._units if u.part == unit.part)
        return f"row {row} ({self.paths[unit.part].name}, row {row - start})"


def _opened(path: Path) -> Any:
    import pyarrow.parquet as pq

    with reading(path.name, _FORM):
        return pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)


def _columns(
    schema: Any, feature_map: FeatureMap | None, columns: Sequence[str] | None, name: str
) -> tuple[str, ...]:
    import pyarrow as pa

    if columns is None and feature_map is not None:
        columns = tuple(getattr(feature_map, "sources", feature_map.columns))
    if columns is not None:
        missing = [column for column in columns if column not in schema.names]
        if missing:
            raise InputError(
                f"{name} has no column {cut(missing[0])}; it has {listed(schema.names, 12, False)}."
            )
    wanted = tuple(schema.names if columns is None else columns)
    if feature_map is None:
        types = pa.types
        for column in wanted:
            kind = schema.field(column).type
            if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
                raise InputError(
                    f"Column {column!r} of {name} is {cut(str(kind))[1:-1]}, not a number. Score with "
                    "the feature map saved beside the model, or name the columns to use."
                )
    return wanted


def _compare(schema: Any, wanted: Any, columns: tuple[str, ...], name: str, first: str) -> None:
    for column in columns:
        if column not in schema.names:
            raise InputError(
                f"{name} has no column {column!r}, which {first} has. All parts need the same columns."
            )
        here, there = schema.field(column).type, wanted.field(column).type
        if here != there:
            raise InputError(
                f"Column {column!r} is {here} in {name} and {there} in {first}. "
                "All parts need the same types."
            )


def _numbers(batch: Any, columns: tuple[str, ...]) -> Array:
    """[n, D] of a record batch whose columns are all numbers; empty cells become NaN."""
    parts = [batch.column(batch.schema.get_field_index(name)) for name in columns]
    kind = np.result_type(*(np.dtype(p.type.to_pandas_dtype()) for p in parts), np.float32)
    out = np.empty((batch.num_rows, len(columns)), dtype=kind)
    for j, column in enumerate(parts):
        out[:, j] = column.to_numpy(zero_copy_only=False)
    return out
