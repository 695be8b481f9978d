"""Pools of numbers: arrays of NPY and NPZ files, of idx files as of MNIST, and the format of LIBSVM."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.arrays import Array, digest
from workbench.errors import InputError
from workbench.pools.building import image_pool, number_pool, own_split
from workbench.pools.features.cache import WORTH, kept_arrays
from workbench.pools.features.numbers import IndexedRows, check_finite
from workbench.pools.features.table import NumberColumn, TableFeatureMap
from workbench.pools.features.vectors import IMAGE_FEATURES
from workbench.pools.formats import Reader
from workbench.pools.formats.files import (
    MAX_BYTES,
    MAX_CELLS,
    MAX_ITEMS,
    File,
    check_cells,
    check_choice,
    check_size,
)
from workbench.pools.formats.npy_files import NpzFile, read_npy
from workbench.pools.labels import codes_of
from workbench.pools.pool import Pool, TestSplit
from workbench.pools.sources import ArraySource, Unit
from workbench.pools.tables.columns import typical
from workbench.pools.tables.source_table import check_names
from workbench.reading import cut, listed, reading

if TYPE_CHECKING:
    from workbench.pools.pool import FeatureMap

ITEM_NAMES = ("X", "x", "features", "data", "images")
"""What the array of items is called in an NPZ; the first one there is meant, whoever opens the file."""
LABEL_NAMES = ("y", "Y", "labels", "label", "target", "targets")
_CLASS_NAMES = ("classes", "class_names")
_COLUMN_NAMES = ("feature_names", "columns")


def items_of(archive: NpzFile, x: str | None = None, max_cells: int = MAX_CELLS) -> tuple[Array, str]:
    """The items of an NPZ: the one rule by which files are loaded, scored and predicted.

    Args:
        archive: the file.
        x: name of the array of items, when it is none of the usual ones.
        max_cells: most numbers of JPEG files once decoded.

    Returns:
        [N, ...], the training items before the test items where the file has both, and the name of the
        array ("jpeg" or "split" for files with parts).

    Raises:
        InputError: no such array; says which there are.
    """
    if x is not None and x not in archive:
        raise InputError(
            f"{archive.name} has no array {cut(x)}; it has {listed(archive, 12, False) or 'none'}."
        )
    if x is None and "jpeg_train" in archive:
        return _decoded(archive, max_cells), "jpeg"
    if x is None and "x_train" in archive:
        train = archive["x_train"]
        if "x_test" not in archive:
            return train, "split"
        test = archive["x_test"]
        if train.ndim == 0 or test.shape[1:] != train.shape[1:]:
            raise InputError(
                f"{archive.name}: x_train and x_test differ in shape, {list(train.shape)} and "
                f"{list(test.shape)}."
            )
        return np.concatenate([train, test]), "split"
    key = x or archive.first_of((*ITEM_NAMES, "x_test")) or (next(iter(archive)) if len(archive) == 1 else "")
    if not key:
        raise InputError(
            f"{archive.name} has no array of items under a usual name ({', '.join(ITEM_NAMES)}); it has "
            f"{listed(archive, 12, False) or 'none'}. Call it X, or name it with x=."
        )
    return archive[key], key


def _labels_of(
    archive: NpzFile, layout: str, target: str | None, n: int
) -> tuple[Array | None, TestSplit | None]:
    """[N] labels of the items, and the file's own split."""
    if layout in ("jpeg", "split"):
        stem = "jpeg" if layout == "jpeg" else "x"
        if f"{stem}_test" not in archive:
            return (archive.texts("y_train", n) if "y_train" in archive else None), None
        n_test = len(archive["offset_test"]) - 1 if layout == "jpeg" else len(archive["x_test"])
        test = own_split(n - n_test, n_test)
        splits = [part for part in ("train", "test") if f"y_{part}" in archive]
        if len(splits) == 1:
            raise InputError(f"{archive.name} has classes for one of {stem}_train and {stem}_test only.")
        if not splits:
            return None, test
        parts = [archive.texts("y_train", n - n_test), archive.texts("y_test", n_test)]
        return np.concatenate(parts), test
    if target is not None and target not in archive:
        raise InputError(
            f"{archive.name} has no array {cut(target)}; it has {listed(archive, 12, False) or 'none'}."
        )
    key = target or archive.first_of(LABEL_NAMES)
    return (archive.texts(key, n) if key and key != layout else None), None


def load(
    file: File,
    *,
    name: str | None = None,
    x: str | None = None,
    target: str | None = None,
    classes: tuple[str, ...] | None = None,
    missing: str = "error",
    features: str = "shapes",
    max_bytes: int = MAX_BYTES,
    max_cells: int = MAX_CELLS,
) -> Pool:
    """Make a pool of an NPY or NPZ file.

    An NPZ holds X [N, D] or images [N, H, W(, 3)], maybe y [N], classes, ids and feature_names; or
    x_train, y_train, x_test, y_test, whose split is then the pool's own.

    Args:
        file: the file.
        name: of the pool; None takes the file's.
        x: name of the array of items, when it is none of the usual ones.
        target: name of the array of classes, when it is none of the usual ones.
        classes: names of the classes, in the order of the codes.
        missing: rows with NaN or infinities: "error", "drop" or "impute" the median (tables only).
        features: "shapes", "pixels" or the path of a network's feature map, for images.
        max_bytes: most bytes of an array once unpacked.
        max_cells: most numbers in X (floats that are mapped may be more).

    Returns:
        A table pool, or an image pool for arrays of images.

    Raises:
        InputError: what is wrong and what to do.
    """
    label, title = file.name, name or file.stem
    check_choice("missing", missing, ("error", "drop", "impute"))
    content = _held(file, x, target, classes is None, max_bytes, max_cells)
    values, test = content.values, content.test
    known_classes = content.classes if classes is None else classes
    truth, class_names = (
        (None, tuple(known_classes or ())) if content.y is None else codes_of(content.y, known_classes, label)
    )
    if values.ndim in (3, 4):
        check_cells(label, len(values), int(np.prod(values.shape[1:])), 2 * max_cells, 2 * max_cells)
        return image_pool(title, values, truth, class_names, ids=content.ids, test=test, features=features)
    if features not in IMAGE_FEATURES:
        raise InputError(f"features={cut(features)} is for images; {label} holds a table.")
    _check_table(values, content.columns, label)
    if isinstance(values, np.memmap) and values.dtype.kind == "f":
        check_cells(label, 0, values.shape[1], 0)
    else:
        check_cells(label, values.shape[0], values.shape[1], max_cells)
        values = np.asarray(values, dtype=np.float64)
    names = content.columns or tuple(f"x{i + 1}" for i in range(values.shape[1]))
    rows = _Rows(values, truth, content.ids, test)
    feature_map: TableFeatureMap | None = None
    notes: tuple[str, ...] = ()
    if missing == "error":
        check_finite(values, names)
    elif not np.isfinite(values).all():
        rows, notes = rows.complete() if missing == "drop" else (rows, ())
        if missing == "impute":
            feature_map, notes = _medians(values, names, label)
    return number_pool(
        title,
        rows.values if feature_map is None else feature_map.transform(rows.values),
        rows.truth,
        class_names,
        names,
        raw=rows.values,
        ids=rows.ids,
        feature_map=feature_map,
        test=rows.test,
        title=label,
        description=f"{len(rows.values):,} items from {label}.",
        notes=notes,
    )


class _Held(NamedTuple):
    """Content of a file; what it does not hold is None or empty."""

    values: Array
    y: Array | None = None
    test: TestSplit | None = None
    ids: list[str] | None = None
    classes: tuple[str, ...] | None = None
    columns: tuple[str, ...] = ()


def _held(
    file: File, x: str | None, target: str | None, class_names: bool, max_bytes: int, max_cells: int
) -> _Held:
    """The arrays of a file; the names of its classes are read where they are wanted."""
    if file.plain_name.endswith(".npy"):
        values = read_npy(file, max_bytes)
        _check_items(values, file.name)
        return _Held(values)
    archive = NpzFile(file, max_bytes)
    values, layout = items_of(archive, x, max_cells)
    _check_items(values, file.name)
    y, test = _labels_of(archive, layout, target, len(values))
    ids = _checked_ids(archive.texts("ids", len(values)), file.name) if "ids" in archive else None

    def texts(array: str) -> tuple[str, ...]:
        return tuple(_text(value) for value in archive.texts(array).ravel().tolist())

    class_key, columns = archive.first_of(_CLASS_NAMES), archive.first_of(_COLUMN_NAMES)
    classes = texts(class_key) if class_names and class_key else None
    return _Held(values, y, test, ids, classes, texts(columns) if columns else ())


def _check_table(values: Array, names: Sequence[str], label: str) -> None:
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(f"{label} must hold a table [N, D] or images [N, H, W]; got {list(values.shape)}.")
    if names and len(names) != values.shape[1]:
        raise InputError(f"{label} names {len(names)} columns but has {values.shape[1]}.")
    check_names(label, names)


class _Rows(NamedTuple):
    """Rows of a table with what belongs to each."""

    values: Array
    truth: Array | None
    ids: list[str] | None
    test: TestSplit | None

    def complete(self) -> tuple[_Rows, tuple[str, ...]]:
        """The rows without a missing number, and a note on the others."""
        keep = np.flatnonzero(np.isfinite(self.values).all(axis=1))
        if len(keep) < 2:
            raise InputError(f'Leaving out incomplete rows leaves {len(keep)} of them. Use missing="impute".')
        test = self.test
        if test is not None:
            is_test = np.isin(keep, test.test)
            n_test = int(is_test.sum())
            if not 0 < n_test < len(keep):
                raise InputError(
                    "Leaving out incomplete rows leaves no "
                    f'{"training" if n_test else "test"} items. Use missing="impute".'
                )
            at, kept_test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
            test = replace(test, fraction=n_test / len(keep), train=at, test=kept_test)
        ids = [str(row) for row in keep] if self.ids is None else [self.ids[row] for row in keep]
        truth = None if self.truth is None else self.truth[keep]
        note = f"{len(self.values) - len(keep):,} rows left out because of missing numbers."
        return _Rows(self.values[keep], truth, ids, test), (note,)


def _medians(values: Array, names: Sequence[str], label: str) -> tuple[TableFeatureMap, tuple[str, ...]]:
    """Values that fill in missing numbers with their column's median, and a note on them."""
    missing = ~np.isfinite(values)
    empty = np.flatnonzero(missing.all(axis=0))
    if empty.size:
        raise InputError(f"Column {names[empty[0]]!r} of {label} holds no number at all; remove it.")
    columns = (
        NumberColumn(column, typical(values[~bad, i]) if bad.any() else None)
        for i, (column, bad) in enumerate(zip(names, missing.T, strict=True))
    )
    note = f"{int(missing.sum()):,} missing numbers filled in with their column's median."
    return TableFeatureMap(tuple(columns)), (note,)


def _check_items(values: Array, label: str) -> None:
    if values.dtype.kind not in "fiub":
        raise InputError(f"{label} holds {values.dtype} where numbers are needed.")
    if values.ndim == 0 or values.shape[0] == 0:
        raise InputError(f"{label} holds no items.")
    if values.shape[0] < 2:
        raise InputError(f"{label} holds a single item; a pool needs at least 2.")
    if values.shape[0] > MAX_ITEMS and not isinstance(values, np.memmap):
        raise InputError(
            f"{label} holds {values.shape[0]:,} items; the limit is {MAX_ITEMS:,}. Take a part of it."
        )


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _checked_ids(ids: Array, label: str) -> list[str]:
    texts = [_text(value) for value in ids.tolist()]
    met: set[str] = set()
    for text in texts:
        if text in met:
            raise InputError(
                f"{label} holds the id {cut(text)} more than once. Ids must be unique, or left out."
            )
        met.add(text)
    return texts


def _decoded(archive: NpzFile, max_cells: int) -> Array:
    """The images of JPEG files laid end to end in jpeg_train, jpeg_test, with offset_train, offset_test.

    Thousands of them are decoded once and kept on disk.
    """
    from workbench.pools.images.decoding import decode_image, stack_images

    def images() -> Iterator[Array]:
        for part, bounds in offsets.items():
            octets = archive[f"jpeg_{part}"]
            if bounds[-1] > octets.size or octets.dtype != np.uint8:
                raise InputError(f"{archive.name} has offsets ({part}) that do not fit its images.")
            for i in range(len(bounds) - 1):
                data = octets[bounds[i] : bounds[i + 1]].tobytes()
                yield decode_image(data, f"{archive.name}, image {i} ({part})", mode="colour")

    offsets = {part: _offsets(archive, part) for part in ("train", "test") if f"jpeg_{part}" in archive}
    n = sum(len(bounds) - 1 for bounds in offsets.values())
    if n < WORTH:
        return stack_images(images(), n, archive.name, 4 * max_cells)
    key = [(part, digest(archive[f"jpeg_{part}"], bounds).hex()) for part, bounds in offsets.items()]
    return kept_arrays(
        "decoded",
        (key, 4 * max_cells),
        lambda: {"images": stack_images(images(), n, archive.name, 4 * max_cells)},
    )["images"]


def _offsets(archive: NpzFile, part: str) -> Array:
    key = f"offset_{part}"
    offsets = np.asarray(archive[key]) if key in archive else np.empty(0)
    if offsets.dtype.kind not in "iu" or offsets.ndim != 1 or len(offsets) < 2:
        raise InputError(f"{archive.name} has no offsets ({part}) that fit its images.")
    offsets = offsets.astype(np.int64)
    if offsets[0] < 0 or (np.diff(offsets) <= 0).any():
        raise InputError(f"{archive.name} has offsets ({part}) that do not fit its images.")
    return offsets


class NumpySource(ArraySource):
    """The items of an NPY or NPZ file, mapped where they lie in it as they are.

    A member that was compressed cannot be mapped and is read whole: use numpy.savez, not
    savez_compressed, for pools larger than memory.

    Args:
        path: of the file.
        feature_map: applied to each chunk, where the file holds raw rows.
    """

    def __init__(self, path: Path, feature_map: FeatureMap | None = None) -> None:
        super().__init__(_rows(File.of(path)), feature_map)
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return NumpySource, (self.path, self.feature_map)  # a worker maps the file itself

    def portable(self, unit: Unit) -> NumpySource:
        """Itself: the path, which the worker must see too."""
        return self

    def name_of(self, row: int) -> str:
        """File and number."""
        return f"row {row} of {self.path.name}"


def _rows(file: File, max_bytes: int = MAX_BYTES) -> Array:
    """The items [N, ...], as the file holds them."""
    if file.plain_name.endswith(".npy"):
        array = read_npy(file, max_bytes)
    else:
        array, _ = items_of(NpzFile(file, max_bytes))
    if array.dtype.kind not in "fiub":
        raise InputError(f"{file.name} holds {array.dtype}, not numbers.")
    return array


def _stream(path: Path, feature_map: FeatureMap | None, columns: Sequence[str] | None) -> NumpySource:
    return NumpySource(path, feature_map)


READER = Reader(load, _rows, stream=_stream)


def load_libsvm(
    file: File,
    *,
    name: str | None = None,
    n_features: int | None = None,
    max_bytes: int = MAX_BYTES,
    max_cells: int = MAX_CELLS,
) -> Pool:
    """Make a pool of a LIBSVM file.

    Args:
        file: also .gz or .bz2.
        name: of the pool.
        n_features: D, when the file's last columns may all be zero.
        max_bytes: most bytes of the file, unpacked.
        max_cells: most rows x columns once laid out.

    Returns:
        The pool; its columns are called by the file's own indices, x0, x1, ... or x1, x2, ....

    Raises:
        InputError: not that format, several labels a line, or too large.
    """
    table, y = _read_libsvm(file, n_features, max_bytes, max_cells)
    X, names = table.values, table.names
    check_finite(X, names)
    truth, classes = codes_of(y, None, file.name, minus_one=False)
    return number_pool(name or file.stem, X, truth, classes, names, title=file.name)


def _rows_of_libsvm(file: File) -> IndexedRows:
    """The features, by the file's own indices: those that no row names are zero."""
    return _read_libsvm(file, None, MAX_BYTES, MAX_CELLS)[0]


def _read_libsvm(
    file: File, n_features: int | None, max_bytes: int, max_cells: int
) -> tuple[IndexedRows, Array]:
    from sklearn.datasets import load_svmlight_file

    data = file.content(max_bytes)
    with reading(file.name, 'a file in the LIBSVM format ("label index:value ..." a line)'):
        sparse: Any
        sparse, y = load_svmlight_file(io.BytesIO(data), zero_based=True)
    first = 0 if sparse.indices.size and int(sparse.indices.min()) == 0 else 1
    width = sparse.shape[1] - first
    if n_features is not None and n_features < width:
        raise InputError(
            f"{file.name} names the index {width - 1 + first}; n_features={n_features} is fewer."
        )
    width = width if n_features is None else n_features
    check_cells(file.name, sparse.shape[0], width, max_cells)  # an index may be anything: not laid out before
    if sparse.shape[0] < 2 or width <= 0:
        raise InputError(f"{file.name} holds {sparse.shape[0]} item(s) of {width} features; too little.")
    values = np.zeros((sparse.shape[0], width))
    values[:, : sparse.shape[1] - first] = sparse.toarray()[:, first:]
    return IndexedRows(values, first), y


LIBSVM = Reader(load_libsvm, _rows_of_libsvm)


_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def load_idx(
    file: File,
    *,
    name: str | None = None,
    labels: str | Path | bytes | None = None,
    classes: tuple[str, ...] | None = None,
    features: str = "shapes",
    max_bytes: int = MAX_BYTES,
) -> Pool:
    """Make a pool of idx files.

    Args:
        file: of images, or a folder with train-images-idx3-ubyte and its companions.
        name: of the pool.
        labels: the file of labels; None looks beside the images ("images-idx3" -> "labels-idx1").
        classes: names of the classes, in the order of the codes.
        features: "shapes", "pixels" or the path of a network's feature map.
        max_bytes: most bytes once unpacked.

    Returns:
        The pool; with the test files there too, the source's own split.

    Raises:
        InputError: what is wrong and what to do.
    """
    images, y, test = _idx_images(file, labels, max_bytes)
    if y is not None and y.shape != (len(images),):
        raise InputError(f"{file.name} holds {len(images):,} images but labels of shape {list(y.shape)}.")
    truth, class_names = (None, tuple(classes or ())) if y is None else codes_of(y, classes, file.name)
    return image_pool(
        name or file.stem,
        images,
        truth,
        class_names,
        test=test,
        features=features,
        title=file.name,
    )


def _rows_of_idx(file: File) -> Array:
    """The images [N, H, W(, 3)]."""
    return _idx_images(file, None, MAX_BYTES)[0]


IDX = Reader(load_idx, _rows_of_idx)


def read_idx(file: File, max_bytes: int = MAX_BYTES) -> Array:
    """One idx file; a .gz is unpacked.

    Args:
        file: the file.
        max_bytes: most bytes once unpacked.

    Returns:
        The array it holds.

    Raises:
        InputError: not an idx file, cut short, or too large.
    """
    name = file.name
    data = file.content(max_bytes)
    magic = data[:4]
    if len(magic) < 4 or magic[:2] != b"\x00\x00" or magic[2] not in _IDX_TYPES or not 1 <= magic[3] <= 4:
        raise InputError(f"{name} is not an idx file: it begins with {magic.hex() or 'nothing'}.")
    with reading(f"{name} is damaged; it"):
        shape = struct.unpack(f">{magic[3]}I", data[4 : 4 + 4 * magic[3]])
        dtype = np.dtype(_IDX_TYPES[magic[2]])
        body = memoryview(data)[4 + 4 * magic[3] :]
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        check_size(f"{name} (unpacked)", size, max_bytes)
        if len(body) < size:
            raise InputError(f"{name} is cut short: it promises {size:,} bytes and holds {len(body):,}.")
        return np.ndarray(shape, dtype, body).astype(dtype.newbyteorder("="), copy=False)


def _idx_images(
    file: File, labels: str | Path | bytes | None, max_bytes: int
) -> tuple[Array, Array | None, TestSplit | None]:
    """Images, labels and the source's own split."""
    y: Array | None = None
    test: TestSplit | None = None
    if file.is_folder:
        pairs = [_idx_pair(file.path, part) for part in ("train", "t10k")]
        parts = [[read_idx(File.of(path), max_bytes) for path in pair] for pair in pairs if pair]
        if not parts:
            raise InputError(
                f"{file.name} holds no train-images-idx3-ubyte file with its train-labels-idx1-ubyte."
            )
        with reading(file.name, advice="The training and the test file must hold images of one size."):
            images, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        if len(parts) == 2:
            test = own_split(len(parts[0][0]), len(parts[1][0]))
    else:
        images = read_idx(file, max_bytes)
        if labels is None and not file.is_upload:
            partner = file.path.with_name(file.name)
            for mark in ("-", "."):
                partner = partner.with_name(partner.name.replace(f"images{mark}idx3", f"labels{mark}idx1"))
            labels = partner if partner.name != file.name and partner.exists() else None
        if labels is not None:
            y = read_idx(File.of(labels), max_bytes)
    if images.ndim not in (3, 4):
        raise InputError(f"{file.name} holds an array of shape {list(images.shape)}, not images.")
    return images, y, test


def _idx_pair(folder: Path, part: str) -> tuple[Path, Path] | None:
    for ending in ("", ".gz"):
        x = folder / f"{part}-images-idx3-ubyte{ending}"
        y = folder / f"{part}-labels-idx1-ubyte{ending}"
        if x.exists() and y.exists():
            return x, y
    return None
