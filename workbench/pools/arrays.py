"""NPY and NPZ files: nothing is unpickled, and sizes are checked before anything is read."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from workbench.arrays import Array, Ints
from workbench.errors import InputError
from workbench.pools.cells import plain_text
from workbench.pools.features import NumberMap, check_finite
from workbench.pools.fingerprints import fingerprint_rows
from workbench.pools.items import ArrayItems, RowNumbers
from workbench.pools.pool import FeatureMap, Pool, TestSplit
from workbench.pools.readers import DAMAGED, MAX_BYTES, MAX_CELLS, check_cells, check_size, open_zip
from workbench.pools.table_map import NumberColumn, TableFeatureMap

_X_NAMES = ("X", "x", "features", "data", "images")
_Y_NAMES = ("y", "Y", "labels", "label", "target", "targets")
_CLASS_NAMES = ("classes", "class_names")
_COLUMN_NAMES = ("feature_names", "columns")


class _Header(NamedTuple):
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    offset: int


class NpzFile(Mapping[str, Array]):
    """An NPZ whose members are checked and read one at a time.

    Args:
        source: path, or an upload's bytes.
        name: of the file, for messages.
        max_bytes: most bytes of all members once unpacked.

    Raises:
        InputError: not an NPZ, damaged, or larger than allowed.
    """

    def __init__(self, source: str | Path | bytes, name: str, max_bytes: int = MAX_BYTES) -> None:
        self.name = name
        self._path = None if isinstance(source, bytes) else Path(source)
        self._zip = open_zip(source, name, "an NPZ file")
        members = [info for info in self._zip.infolist() if info.filename.endswith(".npy")]
        check_size(f"{name} (unpacked)", sum(info.file_size for info in members), max_bytes)
        self._members = {info.filename[:-4]: info for info in members}

    def __iter__(self) -> Any:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, key: object) -> bool:
        return key in self._members  # Mapping would read the whole member to answer

    def __getitem__(self, key: str) -> Array:
        info = self._members[key]
        where = f"{self.name}, array {key!r}"
        try:
            with self._zip.open(info) as stream:
                header = _read_header(stream, where, info.file_size)
                mapped = self._mapped(info, header)
                if mapped is not None:
                    return mapped
                data = stream.read()
        except InputError:
            raise
        except DAMAGED as error:
            raise InputError(f"{where} is damaged or locked: {error}") from error
        return _from_bytes(data, header, where)

    def _mapped(self, info: zipfile.ZipInfo, header: _Header) -> Array | None:
        """The member as a memory map, when it lies in the file as it is."""
        if self._path is None or info.compress_type != zipfile.ZIP_STORED or 0 in header.shape:
            return None
        with self._path.open("rb") as file:
            file.seek(info.header_offset + 26)
            lengths = file.read(4)
        start = info.header_offset + 30 + int.from_bytes(lengths[:2], "little")
        start += int.from_bytes(lengths[2:], "little") + header.offset
        order: Any = "F" if header.fortran else "C"
        return np.memmap(self._path, header.dtype, "r", start, header.shape, order)


def read_npy(source: str | Path | bytes, name: str, max_bytes: int = MAX_BYTES) -> Array:
    """An NPY file: memory-mapped from a path, checked either way.

    Args:
        source: path, or an upload's bytes.
        name: of the file, for messages.
        max_bytes: most bytes of an upload (a path is mapped, whatever its size).

    Returns:
        The array.

    Raises:
        InputError: not an NPY, cut short, pickled or too large.
    """
    if isinstance(source, bytes):
        check_size(name, len(source), max_bytes)
        stream = io.BytesIO(source)
        header = _read_header(stream, name, len(source))
        return _from_bytes(stream.read(), header, name)
    path = Path(source)
    try:
        with path.open("rb") as file:
            header = _read_header(file, name, path.stat().st_size)
    except FileNotFoundError:
        raise InputError(f"There is no file {str(source)!r}.") from None
    if 0 in header.shape:
        return np.empty(header.shape, header.dtype)
    order: Any = "F" if header.fortran else "C"
    return np.memmap(path, header.dtype, "r", header.offset, header.shape, order)


def _read_header(stream: IO[bytes], where: str, size: int) -> _Header:
    try:
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise ValueError(f"format version {version}")
        shape, fortran, dtype = read(stream)
    except Exception as error:  # a damaged header makes the parser raise whatever it stumbles on
        raise InputError(f"{where} is not a NumPy array that can be read: {error}") from error
    if dtype.hasobject:
        raise InputError(
            f"{where} holds pickled Python objects, which may run code when opened and are never read. "
            "Save plain numbers or texts: np.savez(file, X=X.astype(float), y=y.astype(str))."
        )
    offset = stream.tell()
    # a header may promise more than the file holds: refuse before any memory is asked for
    if int(np.prod(shape, dtype=object) or 0) * dtype.itemsize > size - offset:
        raise InputError(f"{where} is cut short: its header promises {list(shape)} of {dtype}.")
    return _Header(shape, fortran, dtype, offset)


def _from_bytes(data: bytes, header: _Header, where: str) -> Array:
    count = int(np.prod(header.shape))
    if len(data) < count * header.dtype.itemsize:
        raise InputError(f"{where} is cut short.")
    flat = np.frombuffer(data, header.dtype, count)
    return flat.reshape(header.shape, order="F" if header.fortran else "C")


def load_arrays(
    source: str | Path | bytes,
    *,
    file_name: str | None = None,
    name: str | None = None,
    x: str | None = None,
    target: str | None = None,
    classes: tuple[str, ...] | None = None,
    missing: str = "error",
    features: str = "pixels",
    n_components: int = 50,
    max_bytes: int = MAX_BYTES,
    max_cells: int = MAX_CELLS,
) -> Pool:
    """Make a pool of an NPY or NPZ file.

    An NPZ holds X [N, D] or images [N, H, W(, 3)], maybe y [N], classes, ids and feature_names; or
    x_train, y_train, x_test, y_test, whose split is then the pool's own.

    Args:
        source: path, or an upload's bytes.
        file_name: name of an upload.
        name: of the pool; None takes the file's.
        x: name of the array of items, when it is none of the usual ones.
        target: name of the array of classes, when it is none of the usual ones.
        classes: names of the classes, in the order of the codes.
        missing: rows with NaN or infinities: "error", "drop" or "impute" the median (tables only).
        features: "pixels" or "pca", for images.
        n_components: of "pca".
        max_bytes: most bytes of all arrays once unpacked.
        max_cells: most numbers in X (an NPY of floats is mapped, and may be larger).

    Returns:
        A table pool, or an image pool for arrays of images.

    Raises:
        InputError: what is wrong and what to do.
    """
    from workbench.pools.tables import source_name

    label = source_name(source, file_name)
    if missing not in ("error", "drop", "impute"):
        raise InputError(f"missing={missing!r} is not one of 'error', 'drop', 'impute'.")
    y: Array | None = None
    ids: Array | None = None
    columns: tuple[str, ...] | None = None
    test: TestSplit | None = None
    if label.lower().endswith(".npy"):
        values = read_npy(source, label, max_bytes)
    else:
        archive = NpzFile(source, label, max_bytes)
        if "jpeg_train" in archive and x is None:
            from workbench.pools.images import jpeg_members

            values, y, test = jpeg_members(archive, max_cells)
        elif "x_train" in archive and x is None:
            values, y, test = _train_and_test(archive)
        else:
            values = archive[_pick(archive, x, _X_NAMES, "items")]
            key = _pick(archive, target, _Y_NAMES, "classes", needed=target is not None)
            y = archive[key] if key else None
        ids = archive.get("ids")
        given = next((archive[key] for key in _CLASS_NAMES if key in archive), None)
        if classes is None and given is not None:
            classes = tuple(str(value) for value in given.ravel())
        named = next((archive[key] for key in _COLUMN_NAMES if key in archive), None)
        columns = None if named is None else tuple(str(value) for value in named.ravel())
    if values.dtype.kind not in "fiub":
        raise InputError(f"{label} holds {values.dtype} where numbers are needed.")
    if len(values.shape) == 0 or values.shape[0] == 0:
        raise InputError(f"{label} holds no items.")
    if values.shape[0] < 2:
        raise InputError(f"{label} holds a single item; a pool needs at least 2.")
    if y is not None and (y.ndim != 1 or len(y) != len(values)):
        raise InputError(f"{label} holds {len(values):,} items, but classes of shape {list(y.shape)}.")
    if ids is not None:
        ids = _checked_ids(ids, len(values), label)
    title = name or label.rsplit(".", 1)[0]
    truth, known = (None, tuple(classes or ())) if y is None else codes_of(y, classes, label)
    if values.ndim in (3, 4):
        from workbench.pools.images import image_pool

        return image_pool(
            title, values, truth, known, ids=ids, test=test, features=features, n_components=n_components
        )
    if features != "pixels":
        raise InputError(f"features={features!r} is for images; {label} holds a table.")
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(f"{label} must hold a table [N, D] or images [N, H, W]; got {list(values.shape)}.")
    if columns is not None and len(columns) != values.shape[1]:
        raise InputError(f"{label} names {len(columns)} columns but has {values.shape[1]}.")
    columns = columns or tuple(f"x{i + 1}" for i in range(values.shape[1]))
    if not (isinstance(values, np.memmap) and values.dtype.kind == "f"):
        check_cells(label, values.shape[0], values.shape[1], max_cells)
        values = np.array(values, dtype=np.float64)
    return _table(title, label, values, truth, known, columns, ids, test, missing)


def _table(
    name: str,
    label: str,
    values: Array,
    truth: Ints | None,
    classes: tuple[str, ...],
    columns: tuple[str, ...],
    ids: Any,
    test: TestSplit | None,
    missing: str,
) -> Pool:
    notes: tuple[str, ...] = ()
    feature_map: FeatureMap = NumberMap(columns)
    raw = values
    if missing == "error":
        check_finite(values, columns)
    elif not np.isfinite(values).all():
        gone = ~np.isfinite(values)
        if missing == "drop":
            keep = np.flatnonzero(~gone.any(axis=1))
            if len(keep) < 2:
                raise InputError(
                    f'Leaving out incomplete rows leaves {len(keep)} of them. Use missing="impute".'
                )
            notes = (f"{len(values) - len(keep):,} rows left out because of missing numbers.",)
            ids = [str(row) for row in keep] if ids is None else [ids[row] for row in keep]
            truth = None if truth is None else truth[keep]
            test, raw = None, values[keep]
            values = raw
        else:
            fills: list[float | None] = [None] * values.shape[1]
            for column in np.flatnonzero(gone.any(axis=0)):
                kept = values[~gone[:, column], column]
                if not kept.size:
                    raise InputError(
                        f"Column {columns[column]!r} of {label} holds no number at all; remove it."
                    )
                fills[int(column)] = float(np.median(kept))
            feature_map = TableFeatureMap(
                tuple(NumberColumn(column, fill) for column, fill in zip(columns, fills, strict=True))
            )
            values = feature_map.transform(values)
            notes = (f"{int(gone.sum()):,} missing numbers filled in with their column's median.",)
    shown = RowNumbers(len(values)) if ids is None else ids
    return Pool(
        name=name,
        kind="table",
        features=values,
        classes=classes,
        truth=truth,
        items=ArrayItems(shown, raw, columns),
        feature_map=feature_map,
        fingerprints=fingerprint_rows(raw),
        test=test,
        title=label,
        description=f"{len(values):,} items from {label}.",
        plane=values.shape[1] == 2,
        notes=notes,
    )


def codes_of(y: Array, classes: tuple[str, ...] | None, label: str) -> tuple[Ints, tuple[str, ...]]:
    """Class codes and names from an array of labels.

    Args:
        y: [N] numbers or texts; NaN and "" are unknown, and so are negative codes where names are given.
        classes: names in the order of the codes, or None to take the labels themselves.
        label: of the file, for messages.

    Returns:
        [N] codes, -1 unknown, and the names.

    Raises:
        InputError: a code without a name, one class, or as many classes as items.
    """
    if y.dtype.kind in "iub" and classes is not None:
        codes = y.astype(np.int64)
        if codes.max() >= len(classes):
            raise InputError(
                f"{label} holds class {int(codes.max())}, but only {len(classes)} classes have names."
            )
        codes = np.where(codes < 0, -1, codes)
    else:
        texts = np.array(
            [plain_text(value.decode() if isinstance(value, bytes) else value) for value in y.tolist()]
        )
        if classes is None:
            from workbench.pools.tables import class_order

            classes = tuple(class_order([str(key) for key in np.unique(texts) if key not in ("", "nan")]))
        position = {key: i for i, key in enumerate(classes)}
        codes = np.array([position.get(str(text), -1) for text in texts], dtype=np.int64)
        stray = np.flatnonzero((codes < 0) & (texts != "") & (texts != "nan"))
        if stray.size:
            raise InputError(
                f"{label}, item {stray[0]} has the class {str(texts[stray[0]])!r}, which is not "
                "among those given."
            )
    if len(classes) < 2:
        raise InputError(f"{label} holds one class only; there is nothing to tell apart.")
    if len(classes) >= len(codes):
        raise InputError(
            f"{label} holds {len(classes)} classes for {len(codes)} items; "
            "a pool needs more items than classes."
        )
    return codes, classes


def _train_and_test(archive: NpzFile) -> tuple[Array, Array | None, TestSplit | None]:
    train = archive["x_train"]
    y = archive.get("y_train")
    if "x_test" not in archive:
        return train, y, None
    held = archive["x_test"]
    if held.shape[1:] != train.shape[1:]:
        raise InputError(
            f"{archive.name}: x_train and x_test differ in shape, {list(train.shape)} and {list(held.shape)}."
        )
    if (y is None) != ("y_test" not in archive):
        raise InputError(f"{archive.name} has classes for one of x_train and x_test only.")
    if y is not None:
        y = np.concatenate([y, archive["y_test"]])
    return np.concatenate([train, held]), y, own_split(len(train), len(held))


def own_split(n_train: int, n_test: int) -> TestSplit:
    """A source's own split: first the training items, then the test items."""
    n = n_train + n_test
    return TestSplit(0, n_test / n, np.arange(n_train), np.arange(n_train, n), given=True)


def _pick(
    archive: NpzFile, wanted: str | None, usual: tuple[str, ...], what: str, needed: bool = True
) -> str:
    if wanted is not None:
        if wanted not in archive:
            raise InputError(
                f"{archive.name} has no array {wanted!r}; it has {', '.join(archive) or 'none'}."
            )
        return wanted
    found = next((key for key in usual if key in archive), "")
    if not found and needed:
        raise InputError(
            f"{archive.name} has no array of {what} under a usual name ({', '.join(usual)}); it has "
            f"{', '.join(archive) or 'none'}. Name it with x=."
        )
    return found


def _checked_ids(ids: Array, n: int, label: str) -> Any:
    if ids.shape != (n,):
        raise InputError(f"{label} holds {n:,} items but ids of shape {list(ids.shape)}.")
    texts = [str(value) for value in ids]
    if len(set(texts)) < n:
        seen: set[str] = set()
        twice = next(text for text in texts if text in seen or seen.add(text))  # type: ignore[func-returns-value]
        raise InputError(f"{label} holds the id {twice!r} more than once. Ids must be unique, or left out.")
    return texts
