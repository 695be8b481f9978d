"""Files in the format of LIBSVM and SVMlight: "label index:value ..." a line."""

from __future__ import annotations

import io
from typing import Any

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.building import number_pool
from workbench.pools.features.numbers import check_finite
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
        The pool.

    Raises:
        InputError: not that format, several labels a line, or too large.
    """
    X, y = _read(file, n_features, max_bytes, max_cells)
    names = tuple(f"x{i + 1}" for i in range(X.shape[1]))
    check_finite(X, names)
    truth, classes = codes_of(y, None, file.name, minus_one=False)
    return number_pool(name or file.stem, X, truth, classes, names, title=file.name)


def rows(file: File) -> Array:
    """The features [N, D]."""
    return _read(file, None, MAX_BYTES, MAX_CELLS)[0]


READER = Reader(load, rows)


def _read(file: File, n_features: int | None, max_bytes: int, max_cells: int) -> tuple[Array, Array]:
    from sklearn.datasets import load_svmlight_file

    data = file.content(max_bytes)
    with reading(file.name, 'a file in the LIBSVM format ("label index:value ..." a line)'):
        sparse: Any
        sparse, y = load_svmlight_file(io.BytesIO(data), n_features=n_features)
    check_cells(
        file.name, sparse.shape[0], sparse.shape[1], max_cells
    )  # an index may be anything: nothing is laid out before
    if sparse.shape[0] < 2 or sparse.shape[1] == 0:
        raise InputError(
            f"{file.name} holds {sparse.shape[0]} item(s) of {sparse.shape[1]} features; too little."
        )
    return sparse.toarray(), y
