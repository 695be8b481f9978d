"""Plain arrays to bytes and back: the same arrays give the same bytes, and nothing is unpickled."""

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
    from workbench.pools.formats.files import File
    from workbench.pools.formats.npy_files import NpzFile

    archive = NpzFile(File(data, "The stored state"), limit)
    if archive.n_bytes > limit:
        raise InputError(f"The stored state unpacks to {archive.n_bytes:,} bytes; the limit is {limit:,}.")
    # copied: what lies in the bytes of a file cannot be written to
    return {name: archive[name].copy() for name in archive}
