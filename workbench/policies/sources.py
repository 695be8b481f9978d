"""Where a scan reads features from: an array, a file that is mapped, or a folder of Parquet parts.

A source divides its rows into units that depend on the source alone, never on who works on them, so
that threads, local processes and a cluster compute the same chunks and give the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.arrays import Array
    from workbench.pools.pool import FeatureMap, Pool

# Rows of one unit of an array or a mapped file: a second's work or less.
UNIT_ROWS = 1 << 18
_NUMPY_NAMES = ("features", "X", "x", "data")


class Unit(NamedTuple):
    """Rows that one worker takes in one go.

    Attributes:
        first: number of the first row in the whole source.
        n_rows: how many.
        part: which file of the source.
        group: which row group of that file.
    """

    first: int
    n_rows: int
    part: int = 0
    group: int = 0


class Source(Protocol):
    """Rows to be scored."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""

    @property
    def n_columns(self) -> int:
        """Numbers in a row as it is read."""

    def units(self) -> list[Unit]:
        """The units of work, in the order of rows."""

    def chunks(self, unit: Unit, chunk_rows: int) -> Iterator[tuple[int, Array]]:
        """(number of the first row, features [n, D]) of a unit, at most `chunk_rows` rows at a time."""

    def portable(self, unit: Unit) -> Source:
        """What another process needs to read that unit: small, or no larger than the unit."""

    def name_of(self, row: int) -> str:
        """How messages call a row."""


class ArraySource:
    """Features in memory or in a mapped array.

    Args:
        features: [N, D].
        feature_map: applied to each chunk, where the array holds raw rows.
        first: number of the first row.
        ids: names of the rows, for messages.
    """

    def __init__(
        self,
        features: Array,
        feature_map: FeatureMap | None = None,
        *,
        first: int = 0,
        ids: Sequence[str] | None = None,
    ) -> None:
        if features.ndim < 2:
            raise InputError(f"Features must be [rows, columns]; got an array of shape {features.shape}.")
        self.features = features
        self.feature_map = feature_map
        self.first = first
        self.ids = ids

    @property
    def n_rows(self) -> int:
        """N."""
        return int(self.features.shape[0])

    @property
    def n_columns(self) -> int:
        """D."""
        return int(np.prod(self.features.shape[1:]))

    def units(self) -> list[Unit]:
        """Runs of UNIT_ROWS rows."""
        return _runs(self.n_rows)

    def chunks(self, unit: Unit, chunk_rows: int) -> Iterator[tuple[int, Array]]:
        """Slices of the array."""
        for start in range(unit.first, unit.first + unit.n_rows, chunk_rows):
            stop = min(start + chunk_rows, unit.first + unit.n_rows)
            rows = self.features[start - self.first : stop - self.first]
            if rows.ndim > 2:
                rows = rows.reshape(len(rows), -1)
            yield start, rows if self.feature_map is None else _transform(self.feature_map, rows, start)

    def portable(self, unit: Unit) -> ArraySource:
        """The unit's rows, copied."""
        start = unit.first - self.first
        rows = np.array(self.features[start : start + unit.n_rows])
        return ArraySource(rows, self.feature_map, first=unit.first)

    def name_of(self, row: int) -> str:
        """Its number, and its id where there is one."""
        return f"row {row}" if self.ids is None else f"row {row} (id {self.ids[row]!r})"


class NumpySource:
    """Features in an NPY file, or in the one array of an NPZ that can be them; mapped, not read.

    A member that was compressed cannot be mapped and is read whole: use numpy.savez, not
    savez_compressed, for pools larger than memory.

    Args:
        path: of the file.
        feature_map: applied to each chunk, where the file holds raw rows.
    """

    def __init__(self, path: Path, feature_map: FeatureMap | None = None) -> None:
        self.path = path
        self.feature_map = feature_map
        self._array: ArraySource | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_array": None}  # a worker maps the file itself

    def _open(self) -> ArraySource:
        if self._array is None:
            from workbench.pools.arrays import NpzFile, read_npy

            if self.path.suffix.lower() == ".npz":
                archive = NpzFile(self.path, self.path.name, max_bytes=1 << 50)
                names = [name for name in _NUMPY_NAMES if name in archive]
                if not names and len(archive) == 1:
                    names = list(archive)
                if not names:
                    raise InputError(
                        f"{self.path.name} has no array called {' or '.join(_NUMPY_NAMES)}; "
                        f"it has {', '.join(archive) or 'none at all'}."
                    )
                array = archive[names[0]]
            else:
                array = read_npy(self.path, self.path.name)
            if array.dtype.kind not in "fiub":
                raise InputError(f"{self.path.name} holds {array.dtype}, not numbers.")
            self._array = ArraySource(array, self.feature_map)
        return self._array

    @property
    def n_rows(self) -> int:
        """N."""
        return self._open().n_rows

    @property
    def n_columns(self) -> int:
        """D."""
        return self._open().n_columns

    def units(self) -> list[Unit]:
        """Runs of UNIT_ROWS rows."""
        return self._open().units()

    def chunks(self, unit: Unit, chunk_rows: int) -> Iterator[tuple[int, Array]]:
        """Slices of the mapped array."""
        yield from self._open().chunks(unit, chunk_rows)

    def portable(self, unit: Unit) -> NumpySource:
        """Itself: the path, which the worker must see too."""
        return self

    def name_of(self, row: int) -> str:
        """File and number."""
        return f"row {row} of {self.path.name}"


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
        from workbench.pools.readers import parquet_parts

        self.feature_map = feature_map
        self.paths = parquet_parts(path)
        self._units: list[Unit] = []
        first = 0
        schema: Any = None
        for number, part in enumerate(self.paths):
            file = _parquet(part)
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
        file = _parquet(path)
        done = 0
        try:
            # threads are ours; Arrow's own would hold several decoded columns at once
            for batch in file.iter_batches(
                chunk_rows, row_groups=[unit.group], columns=list(self.columns), use_threads=False
            ):
                first = unit.first + done
                done += batch.num_rows
                if self.feature_map is not None:
                    yield first, _transform(self.feature_map, batch.to_pandas(), first)
                else:
                    yield first, _numbers(batch, self.columns)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path.name} cannot be read: {error}") from error
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


def open_source(
    source: Pool | Source | Array | str | Path,
    feature_map: FeatureMap | None = None,
    columns: Sequence[str] | None = None,
) -> Source:
    """Rows to score, from whatever they are in.

    Args:
        source: a pool, an array [N, D], the path of an NPY, NPZ or Parquet file or of a folder of
            Parquet parts; or a source.
        feature_map: from raw rows to features, for all but pools.
        columns: of Parquet parts, where there is no feature map.

    Returns:
        The source.

    Raises:
        InputError: nothing there, or nothing that can be streamed.
    """
    if isinstance(source, (ArraySource, NumpySource, ParquetSource)):
        return source
    if isinstance(source, (str, Path)):
        path = Path(source).expanduser()
        ending = path.suffix.lower()
        if ending in (".npy", ".npz") and not path.is_dir():
            return NumpySource(path, feature_map)
        if path.is_dir() or ending in (".parquet", ".pq"):
            return ParquetSource(path, feature_map, columns)
        if not path.exists():
            raise InputError(f"There is no file {str(path)!r}.")
        raise InputError(
            f"{path.name} cannot be streamed: that takes NPY, NPZ, Parquet or a folder of Parquet parts. "
            "Load it with load_pool(...) and score the pool, or convert it."
        )
    if isinstance(source, np.ndarray):
        return ArraySource(source, feature_map)
    if hasattr(source, "features") and hasattr(source, "items"):
        return ArraySource(source.features, ids=source.items.ids)
    if hasattr(source, "chunks") and hasattr(source, "units"):
        return source
    raise InputError(f"Cannot score rows of a {type(source).__name__}.")


def _runs(n_rows: int) -> list[Unit]:
    return [Unit(start, min(UNIT_ROWS, n_rows - start)) for start in range(0, n_rows, UNIT_ROWS)]


def _transform(feature_map: FeatureMap, rows: Any, first: int) -> Array:
    try:
        return feature_map.transform(rows)
    except InputError as error:
        raise InputError(f"In the rows from {first} on: {error}") from error


def _parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path.name} is not a Parquet file that can be read: {error}") from error


def _columns(
    schema: Any, feature_map: FeatureMap | None, columns: Sequence[str] | None, name: str
) -> tuple[str, ...]:
    import pyarrow as pa

    if columns is None and feature_map is not None:
        columns = tuple(getattr(feature_map, "sources", feature_map.columns))
    if columns is not None:
        missing = [column for column in columns if column not in schema.names]
        if missing:
            raise InputError(f"{name} has no column {missing[0]!r}; it has {', '.join(schema.names[:12])}.")
    wanted = tuple(schema.names if columns is None else columns)
    if feature_map is None:
        texts = [column for column in wanted if not _is_number(schema.field(column).type, pa)]
        if texts:
            raise InputError(
                f"Column {texts[0]!r} of {name} is {schema.field(texts[0]).type}, not a number. Score with "
                "the feature map saved beside the model, or name the columns to use."
            )
    return wanted


def _is_number(kind: Any, pa: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


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
