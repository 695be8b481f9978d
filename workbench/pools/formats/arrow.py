"""Tables of Arrow as cells, and files of them: Feather, Arrow's own and Parquet; sizes are read off first."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.formats.files import File, by_split, check_cells, check_size
from workbench.pools.images.decoding import is_image
from workbench.pools.sources import Unit, transformed
from workbench.pools.tables import table_reader
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.source_table import Pictured, RawTable, check_names
from workbench.pools.tables.uses import ColumnUse
from workbench.reading import cut, listed, parse_json, reading

if TYPE_CHECKING:
    from workbench.pools.pool import FeatureMap

_FORM = "a Feather or Arrow file"
_PARQUET = "a Parquet file"
_LABELS = ("label", "labels", "target", "class", "category")


def read(file: File, options: TableOptions) -> RawTable:
    """A Feather file (version 2), or a file or stream of Arrow, as a typed table.

    Args:
        file: also .gz.
        options: max_bytes, packed and unpacked; max_cells; max_columns.

    Returns:
        The table.

    Raises:
        InputError: no such file, damaged, or too large.
    """
    data = file.content(options.max_bytes)
    if data[:4] == b"FEA1":
        raise InputError(f"{file.name} is of Feather's first version. Write it again, or as Parquet.")
    with reading(file.name, _FORM, "Write it again."):
        return read_streams(file.name, "arrow", [data], options)


READER = table_reader(read)


def read_streams(
    name: str,
    form: str,
    streams: Iterable[bytes],
    options: TableOptions,
    notes: Sequence[str] = (),
    features: Mapping[str, Any] | None = None,
) -> RawTable:
    """Files or streams of Arrow, one after the other, as one table; checked before anything is unpacked.

    Args:
        name: of all together.
        form: of all together.
        streams: the bytes of each.
        options: max_bytes, max_cells, max_columns.
        notes: what was done before.
        features: what a dataset says of its columns; None looks in the first.

    Raises:
        InputError: without rows, of columns that differ, or too large.
    """
    import pyarrow as pa

    tables: list[Any] = []
    n_rows = n_bytes = 0
    for data in streams:
        # a file is a stream behind eight bytes, and an index that need not tell the truth about it
        stream = memoryview(data)[8:] if data[:6] == b"ARROW1" else memoryview(data)
        check_size(f"{name} (unpacked)", n_bytes + unpacked_size(stream), options.max_bytes)
        source = pa.ipc.open_stream(pa.py_buffer(stream))
        if tables and source.schema.names != tables[0].schema.names:
            raise InputError(f"The files of {name} do not have the same columns; make them alike.")
        for batch in source:
            # Arrow believes a file's offsets unless asked: damaged ones would read memory that is another's
            batch.validate(full=True)
            n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + batch.nbytes
            check_cells(name, n_rows, batch.num_columns, options.max_cells, options.max_columns)
            check_size(f"{name} (unpacked)", n_bytes, options.max_bytes)
            tables.append(pa.Table.from_batches([batch], schema=source.schema))
    if not tables:
        raise InputError(f"{name} holds no rows.")
    table = pa.concat_tables(tables, promote_options="permissive")
    check_names(name, table.column_names)
    return framed(name, form, table, features or described(table.schema), notes, n_there=n_rows)


def described(schema: Any) -> Mapping[str, Any]:
    """Column -> what a dataset of Hugging Face says of it in a schema's metadata; {} where it does not."""
    metadata = (schema.metadata or {}).get(b"huggingface")
    document = parse_json(metadata, "What the dataset says of its columns") if metadata else {}
    info = document.get("info") if isinstance(document, dict) else None
    features = info.get("features") if isinstance(info, dict) else None
    return features if isinstance(features, dict) else {}


def is_picture(kind: Any) -> bool:
    """Tell whether cells of a type are pictures: {bytes, path}."""
    import pyarrow as pa

    return bool(pa.types.is_struct(kind) and {"bytes", "path"} <= {part.name for part in kind})


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
        if pa.types.is_boolean(column.type) and column.null_count:
            exact[i] = pd.Series(column.to_pylist(), dtype="boolean")  # pandas would make texts of them
        elif pa.types.is_integer(column.type) and column.null_count:
            extremes = pc.min_max(column)
            ends = (extremes["min"].as_py() or 0, extremes["max"].as_py() or 0)
            if max(abs(end) for end in ends) >= 2**53:  # beyond what a float holds
                kind = pd.UInt64Dtype() if str(column.type).startswith("u") else pd.Int64Dtype()
                exact[i] = pd.Series(column.to_pylist(), dtype=kind)
    # pandas' own metadata would make types of columns that were brought to plain ones
    frame = table.replace_schema_metadata(None).to_pandas()
    for i, cells in exact.items():
        frame.isetitem(i, cells)
    return frame


def holds_texts(kind: Any) -> bool:
    """Tell whether cells of a type are texts or bytes."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or is_bytes(kind))


def is_bytes(kind: Any) -> bool:
    """Tell whether cells of a type are bytes, coded or not."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def plain_table(table: Any) -> Any:
    """Columns of types that pandas reads as numbers or texts, the same ones whoever reads them.

    Args:
        table: as it was read; texts may be coded.
    """
    import pyarrow as pa

    for i, name in enumerate(table.column_names):
        kind = table.field(i).type
        if pa.types.is_decimal(kind):
            plain_type = pa.float64()
        elif holds_texts(kind):
            plain_type = pa.large_string()
        elif pa.types.is_dictionary(kind):
            plain_type = kind.value_type
        else:
            continue
        cells = table.column(i)
        if pa.types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        table = table.set_column(i, name, cells.cast(plain_type))
    return table


def _octets(cells: Any, row: int) -> bytes:
    return bytes(cells[row].as_py() or b"")


def framed(
    name: str,
    form: str,
    table: Any,
    features: Mapping[str, Any],
    notes: Sequence[str] = (),
    *,
    left: Sequence[str] = (),
    n_there: int | None = None,
) -> RawTable:
    """A table of Arrow as cells: plain values, classes by their names, and one column of pictures.

    Args:
        name: of the file.
        form: of the file.
        table: as it was read.
        features: column -> what the file says of it (`described`).
        notes: what was done while reading.
        left: columns of lists and records that were not read.
        n_there: rows that the file says it holds.

    Returns:
        The table; lists, records, further pictures and bytes that are no text are left out
        with a note.

    Raises:
        InputError: a code beyond the names of the classes, or nothing is left.
    """
    import pandas as pd
    import pyarrow as pa

    columns: dict[str, Any] = {}
    uses: dict[str, ColumnUse] = {}
    pictures: dict[str, Pictured] = {}
    odd_columns: list[str] = []
    plain: list[str] = []
    for column in table.column_names:
        cells, feature = table.column(column), features.get(column)
        feature = feature if isinstance(feature, dict) else {}
        pair = None if pictures else _pictures(cells, column)
        if pair is not None:
            columns[column], pictures[column] = pd.Series(pair[0], dtype="str"), pair[1]
            uses[column] = ColumnUse.of(column, "picture")
        elif pa.types.is_nested(cells.type) or _is_no_text(cells):
            odd_columns.append(column)
        elif feature.get("_type") == "ClassLabel" and feature.get("names"):
            columns[column] = _named(cells, [str(label) for label in feature["names"]], column)
            if "class" not in {use.use for use in uses.values()}:
                uses[column] = ColumnUse("class")
        else:
            columns[column] = None
            plain.append(column)
    if nested := [*left, *odd_columns]:
        notes = (
            *notes,
            f"Left out are lists, records, bytes that are no text and further pictures: {listed(nested)}.",
        )
    if not columns:
        raise InputError(f"{name} holds no column of plain values and no pictures.")
    if plain:
        cells = frame_of(plain_table(table.select(plain)))
        columns |= {column: cells[column] for column in plain}
    frame = pd.DataFrame(columns)
    if pictures:  # the model sees the pictures alone
        label = next((c for c in frame.columns if c.lower() in _LABELS and c not in uses), None)
        if label is not None and "class" not in {use.use for use in uses.values()}:
            uses[label] = ColumnUse("class")
        uses |= {c: ColumnUse("leave out") for c in frame.columns if c not in uses and c.lower() != "id"}
    return RawTable(name, form, frame, pictures=pictures, uses=uses, notes=tuple(notes), n_there=n_there)


def _pictures(cells: Any, column: str) -> tuple[list[str], Pictured] | None:
    """Names of the pictures of a column, each once, and their bytes; None where it holds none."""
    import pyarrow.compute as pc

    if is_picture(cells.type):
        contents, paths = pc.struct_field(cells, "bytes"), pc.struct_field(cells, "path").to_pylist()
    elif is_bytes(cells.type):
        first = next((cell for cell in cells if cell.is_valid), None)
        if first is None or not is_image(first.as_py()):
            return None
        contents, paths = cells, [None] * len(cells)
    else:
        return None
    used_names: set[str] = set()
    names = []
    for i, path in enumerate(paths):
        name = PurePosixPath(str(path)).name if path else f"{column}-{i:06d}"
        name = name if name not in used_names else f"{i:06d}-{name}"
        used_names.add(name)
        names.append(name)
    return names, {name: partial(_octets, contents, i) for i, name in enumerate(names)}


def _is_no_text(cells: Any) -> bool:
    """Tell whether a column holds bytes that are no text."""
    import pyarrow as pa

    if not is_bytes(cells.type):
        return False
    cells = cells.cast(cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells
    try:
        cells.cast(pa.large_string())
    except pa.ArrowInvalid:
        return True
    return False


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


_HEADER_TYPE, _HEADER = 1, 2  # of a Message
_BUFFERS, _COMPRESSION = 2, 3  # of a RecordBatch
_DATA = 1  # of a DictionaryBatch
_DICTIONARY, _BATCH = 2, 3  # kinds of header


def unpacked_size(stream: Any) -> int:
    """Bytes that all batches and dictionaries of a stream take in memory, before anything is unpacked.

    A compressed batch holds, before each of its buffers, the length that it unpacks to, and Arrow allocates
    that much whatever it is. The lengths' places stand in the message before the batch, a FlatBuffers table.

    Args:
        stream: bytes of a stream, from its schema on.
    """
    import pyarrow as pa

    total = 0
    for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(stream)):
        total += _of_message(bytes(message.metadata), message.body)
    return total


def _of_message(about: bytes, body: Any) -> int:
    (root,) = struct.unpack_from("<I", about, 0)
    kind = _field(about, root, _HEADER_TYPE)
    header = _table(about, root, _HEADER)
    if kind is None or header is None or about[kind] not in (_DICTIONARY, _BATCH):
        return 0
    batch = _table(about, header, _DATA) if about[kind] == _DICTIONARY else header
    if batch is None:
        return 0
    size = 0 if body is None else body.size
    buffers = _table(about, batch, _BUFFERS)
    if buffers is None or _field(about, batch, _COMPRESSION) is None:
        return size
    (n,) = struct.unpack_from("<I", about, buffers)
    total = 0
    for i in range(n):
        offset, length = struct.unpack_from("<qq", about, buffers + 4 + 16 * i)
        if length >= 8 and 0 <= offset <= size - 8:
            (declared,) = struct.unpack("<q", body.slice(offset, 8).to_pybytes())
            total += length if declared < 0 else declared
    return total


def _field(about: bytes, table: int, number: int) -> int | None:
    """The place of a table's field; None where it is left out."""
    (back,) = struct.unpack_from("<i", about, table)
    vtable = table - back
    (size,) = struct.unpack_from("<H", about, vtable)
    at = 4 + 2 * number
    if at + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", about, vtable + at)
    return table + offset if offset else None


def _table(about: bytes, table: int, number: int) -> int | None:
    """The place of the table or vector that a field points at."""
    place = _field(about, table, number)
    if place is None:
        return None
    (ahead,) = struct.unpack_from("<I", about, place)
    return place + int(ahead)


def read_parquet(file: File, options: TableOptions) -> RawTable:
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
    with reading(name, _PARQUET, "Write it again."):
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
        InputError: as `read_parquet`.
    """
    with reading(file.name, _PARQUET, "Write it again."):
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
            batches, n_bytes = _picture_batches(name, part, column, options.max_bytes, n_bytes)
            cells = pa.chunked_array([batch.column(0) for batch in batches], type=kinds[column])
            table = table.append_column(column, cells) if table.num_columns else pa.table({column: cells})
        table = table.select(names).replace_schema_metadata(schema.metadata)
        for key, value in _said_by_folders(path).items():
            if key not in table.column_names:
                table = table.append_column(key, pa.array([value] * len(table), pa.large_string()))
        tables.append(table)
    _check_texts(name, tables, texts, options.max_bytes)
    return pa.concat_tables(tables, promote_options="permissive"), leftovers, n_rows


def _picture_batches(
    name: str, part: Any, column: str, max_bytes: int, n_bytes: int
) -> tuple[list[Any], int]:
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
                with reading(path.name, _PARQUET):
                    batch = next(batches, None)
                if batch is None:
                    break
                first = unit.first + n_done
                n_done += batch.num_rows
                if self.feature_map is not None:
                    with reading(path.name, _PARQUET):
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

    with reading(path.name, _PARQUET):
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


PARQUET = table_reader(read_parquet, stream=ParquetSource)
