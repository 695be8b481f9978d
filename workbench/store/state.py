"""Plain arrays to bytes and back: the same arrays give the same bytes, and nothing is unpickled."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError

# Zip's own epoch: a member carries its time, and bytes must not depend on when they were written.
_EPOCH = (1980, 1, 1, 0, 0, 0)
MAX_BYTES = 8 << 30


def arrays_to_bytes(arrays: Mapping[str, Array]) -> bytes:
    """An NPZ file of the arrays, sorted by name and without times.

    Args:
        arrays: name -> array of numbers, booleans or fixed-width strings.

    Raises:
        ValueError: an array of objects, which could only be pickled.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(arrays[name]), version=(1, 0), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            info.external_attr = 0o644 << 16
            archive.writestr(info, member.getvalue())
    return buffer.getvalue()


def bytes_to_arrays(data: bytes, *, limit: int = MAX_BYTES) -> dict[str, Array]:
    """The arrays of an NPZ file.

    Args:
        data: the file.
        limit: largest size in bytes of all members together, checked before anything is read.

    Raises:
        InputError: not such a file, too large, or one that holds objects.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(info.file_size for info in archive.infolist())
            if size > limit:
                raise InputError(f"The file unpacks to {size:,} bytes; the limit is {limit:,}.")
        with np.load(io.BytesIO(data), allow_pickle=False) as loaded:
            return {name: loaded[name] for name in loaded.files}
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"The arrays cannot be read: {error}") from error
