"""Array aliases shared by every floor."""

from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.floating[Any]]
Ints: TypeAlias = NDArray[np.integer[Any]]


def digest(*arrays: Array) -> bytes:
    """A fingerprint of arrays, of their shapes and kinds: different arrays have different ones.

    Args:
        arrays: of numbers.

    Returns:
        16 bytes by BLAKE2b.
    """
    found = blake2b(digest_size=16)
    for array in arrays:
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    return found.digest()
