"""Parquet files, or folders of parts, as typed tables: whole, or a few thousand rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.formats.arrow import described, frame_of, framed, holds_texts, is_picture, plain_table
from workbench.pools.formats.files import File, by_split, check_cells, check_size
from workbench.pools.sources import Unit, transformed
from workbench.pools.tables import table_reader
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.source_table import RawTable, check_names
from workbench.reading import cut, listed, reading

if TYPE_CHECKING:
    from workbench.pools.pool import FeatureMap

_FORM = "a Parquet file"


def read(file: File, options: TableOptions) -> RawTable:
    """A Parquet file (or a folder of parts) as a typed table.

    Args:
        file: a file or a folder.
        options: split of a folder's parts, max_bytes, packed and unpacked; max_cells; max_columns.

    Returns:
        The table, with the names of its classes and its pictures where the file has them.

    Raises:
        InputError: not Parquet, parts that differ, no column of plain values, empty or too large.
    """
    name = file.name
    with reading(name, _FORM, "Write it again."):
        if file.is_upload:
            check_size(name, file.size(), options.max_bytes)
            sources: dict[str, Any] = {name: file.open()}
            return read_parts(name, "parquet", sources, options)
        parts, notes = parquet_parts(file, options.split)
        return read_parts(name, "parquet", {part.name: part for part in parts}, options, notes)


def read_parts(
    name: str,
    form: str,
    sources: Mapping[str, Any],
    options: TableOptions,
    notes: Sequence[str] = (),
    features: Mapping[str, Any] | None = None,
) -> RawTable:
    """Parquet files, one after the other, as one table.

    Args:
        name: of all together.
        form: of all together.
        sources: name -> a path or an open file.
        options: max_bytes, max_cells, max_columns.
        notes: what was done before.
        features: what a dataset says of its columns; None looks in the files.

    Raises:
        InputError: files that differ, or too large.
    """
    table, leftovers, n_there = _coded_table(name, sources, options)
    features = features or described(table.schema)
    for column in [column for column in table.column_names if column.startswith("__index_level_")]:
        new_name = next(
            new_name for new_name in ("id", "index", column) if new_name not in table.column_names
        )
        if holds_texts(table.field(column).type):  # pandas' names of rows
            table = table.rename_columns({column: new_name})
        else:
            table = table.drop_columns([column])
            notes = (*notes, "The index of the rows is left out: it has no name and holds no texts.")
    return framed(name, form, table, features, notes, left=leftovers, n_there=n_there)


def read_columns(
    file: File, lists: Sequence[str], max_cells: int
) -> tuple[dict[str, list[Any]], dict[bytes, bytes]]:
    """Columns as plain values: those of numbers and texts, and some of lists.

    Args:
        file: the file.
        lists: names of columns that may hold lists; other lists and records are left out.
        max_cells: most rows x columns.

    Returns:
        Column name -> values, and the metadata of the schema.

    Raises:
        InputError: as `read`.
    """
    with reading(file.name, _FORM, "Write it again."):
        parts = [] if file.is_upload else parquet_parts(file)[0]
        sources: dict[str, Any] = {str(part): part for part in parts} or {file.name: file.open()}
        table, _, _ = _coded_table(file.name, sources, TableOptions(max_cells=max_cells), lists)
        metadata: dict[bytes, bytes] = table.schema.metadata or {}
        table = plain_table(table)
        return {name: table.column(name).to_pylist() for name in table.column_names}, metadata


def _coded_table(
    name: str, sources: Mapping[str, Any], options: TableOptions, lists: Sequence[str] = ()
) -> tuple[Any, list[str], int]:
    """The columns as Arrow holds them, their sizes checked before anything is unpacked.

    Args:
        name: of all files.
        sources: path -> path or open file; folders in it that say "column=value" are columns, too.
        options: max_bytes, max_cells, max_columns.
        lists: names of columns that may hold lists.

    Returns:
        The table, its texts coded; names of the lists and records; rows that the files say they hold.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.ParquetFile(next(iter(sources.values()))).schema_arrow
    check_names(name, schema.names)
    kinds = {column: schema.field(column).type for column in schema.names}
    nested = [column for column in kinds if pa.types.is_nested(kinds[column])]
    pictures = [c for c in nested if c in lists or (not lists and is_picture(kinds[c]))]
    leftovers = [column for column in nested if column not in pictures]
    names = [column for column in schema.names if column not in leftovers]
    # texts stay coded until their full length is known: a page of one long text may repeat it for ever
    texts = [column for column in names if holds_texts(kinds[column])]
    files = [pq.ParquetFile(source, read_dictionary=texts) for source in sources.values()]
    for part in files[1:]:
        if {*part.schema_arrow.names} != {*schema.names}:
            raise InputError(f"The parts of {name} do not have the same columns; make them alike.")
    n_rows = sum(int(part.metadata.num_rows) for part in files)
    check_cells(name, n_rows, len(names), options.max_cells, options.max_columns)
    groups = [part.metadata.row_group(i) for part in files for i in range(part.num_row_groups)]
    if not lists:
        check_size(f"{name} (unpacked)", sum(group.total_byte_size for group in groups), options.max_bytes)
    tables = []
    n_bytes = 0
    for path, part in zip(sources, files, strict=True):
        table = part.read([column for column in names if column not in pictures])
        for column in pictures:
            batches, n_bytes = _pictures(name, part, column, options.max_bytes, n_bytes)
            cells = pa.chunked_array([batch.column(0) for batch in batches], type=kinds[column])
            table = table.append_column(column, cells) if table.num_columns else pa.table({column: cells})
        table = table.select(names).replace_schema_metadata(schema.metadata)
        for key, value in _said_by_folders(path).items():
            if key not in table.column_names:
                table = table.append_column(key, pa.array([value] * len(table), pa.large_string()))
        tables.append(table)
    _check_texts(name, tables, texts, options.max_bytes)
    return pa.concat_tables(tables, promote_options="permissive"), leftovers, n_rows


def _pictures(name: str, part: Any, column: str, max_bytes: int, n_bytes: int) -> tuple[list[Any], int]:
    """A column of pictures, so many at a time that no page which repeats one takes more than is allowed."""
    batches: list[Any] = []
    for number in range(part.num_row_groups):
        group = part.metadata.row_group(number)
        inside = [group.column(i) for i in range(group.num_columns)]
        inside = [chunk for chunk in inside if chunk.path_in_schema.startswith(f"{column}.")]
        chunk_size = max((int(chunk.total_uncompressed_size) for chunk in inside), default=1)
        size = max(1, min(1_000, max_bytes // (8 * max(1, chunk_size))))
        for batch in part.iter_batches(size, row_groups=[number], columns=[column], use_threads=False):
            n_bytes += batch.nbytes
            check_size(f"{name} (unpacked)", n_bytes, max_bytes)
            batches.append(batch)
    return batches, n_bytes


def _said_by_folders(path: str) -> dict[str, str]:
    """Column -> value, of the folders on the way to a file that say so: "label=pos"."""
    parts = [part.partition("=") for part in path.split("/")[:-1]]
    return {key: value for key, mark, value in parts if mark and key and value}


def parquet_parts(file: File, split: str | None = None) -> tuple[list[Path], tuple[str, ...]]:
    """The files of a Parquet table, and notes on them: itself, or those in a folder, split after split.

    Args:
        file: a file or a folder.
        split: the one that is wanted; None takes all.

    Raises:
        InputError: none there, or no such split.
    """
    if not file.is_folder:
        return [file.path], ()
    parts = {path.name: path for path in sorted(file.path.glob("*.parquet")) if path.is_file()}
    if not parts:
        raise InputError(f"There is no .parquet file in the folder {str(file.path)!r}.")
    splits, notes = by_split(file.name, list(parts), split)
    return [parts[name] for names in splits.values() for name in names], notes


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


class ParquetSource:
    """Features in a Parquet file or in a folder of parts, read a few thousand rows at a time.

    Args:
        path: the file or the folder; parts are taken as `parquet_parts` orders them.
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
        self.paths, _ = parquet_parts(File.of(path))
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
        n_done = 0
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
                first = unit.first + n_done
                n_done += batch.num_rows
                if self.feature_map is not None:
                    with reading(path.name, _FORM):
                        plain = plain_table(pa.Table.from_batches([batch]))
                    yield first, transformed(self.feature_map, frame_of(plain), first)
                else:
                    yield first, _numbers(batch, self.columns)
        finally:
            file.close()
        if n_done != unit.n_rows:
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
    names = tuple(schema.names if columns is None else columns)
    if feature_map is None:
        types = pa.types
        for column in names:
            kind = schema.field(column).type
            if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
                raise InputError(
                    f"Column {column!r} of {name} is {cut(str(kind))[1:-1]}, not a number. Score with "
                    "the feature map saved beside the model, or name the columns to use."
                )
    return names


def _compare(schema: Any, first_schema: Any, columns: tuple[str, ...], name: str, first: str) -> None:
    for column in columns:
        if column not in schema.names:
            raise InputError(
                f"{name} has no column {column!r}, which {first} has. All parts need the same columns."
            )
        kind, first_kind = schema.field(column).type, first_schema.field(column).type
        if kind != first_kind:
            raise InputError(
                f"Column {column!r} is {kind} in {name} and {first_kind} in {first}. "
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


READER = table_reader(read, stream=ParquetSource)
