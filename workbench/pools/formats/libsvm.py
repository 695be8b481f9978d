"""Files in the format of LIBSVM and SVMlight: "label index:value ..." a line."""

import io
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.building import number_pool
from workbench.pools.features.numbers import IndexedRows, check_finite
from workbench.pools.formats import Reader
from workbench.pools.formats.files import MAX_BYTES, MAX_CELLS, File, check_cells
from workbench.pools.labels import codes_of
from workbench.pools.pool import Pool
from workbench.reading import reading


def load(
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
    table, y = _read(file, n_features, max_bytes, max_cells)
    X, names = table.values, table.names
    check_finite(X, names)
    truth, classes = codes_of(y, None, file.name, minus_one=False)
    return number_pool(name or file.stem, X, truth, classes, names, title=file.name)


def rows(file: File) -> IndexedRows:
    """The features, by the file's own indices: those that no row names are zero."""
    return _read(file, None, MAX_BYTES, MAX_CELLS)[0]


READER = Reader(load, rows)


def _read(file: File, n_features: int | None, max_bytes: int, max_cells: int) -> tuple[IndexedRows, Array]:
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
