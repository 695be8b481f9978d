"""Tables of Arrow as cells, and files of them: Feather, and Arrow's own; sizes are read off first."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.pools.formats.files import File, check_cells, check_size
from workbench.pools.images.decoding import is_image
from workbench.pools.tables import table_reader
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.source_table import Pictured, RawTable, check_names
from workbench.pools.tables.uses import ColumnUse
from workbench.reading import listed, parse_json, reading

_FORM = "a Feather or Arrow file"
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
