"""Array aliases shared by every floor, arrays inside JSON documents, and a cache of what was computed."""

from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from threading import Lock
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.floating[Any]]
Ints: TypeAlias = NDArray[np.integer[Any]]
T = TypeVar("T")

_SMALLEST, _LARGEST = 1e-140, 1e140  # deviations whose squares are far from the ends of a double


def column_moments(X: Array) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each column, whatever its size: no square over- or underflows.

    Args:
        X: [N, D] finite numbers, N >= 1.

    Returns:
        [D] means and [D] deviations.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = X.mean(axis=0), X.std(axis=0)
    extreme = np.flatnonzero(~((deviation > _SMALLEST) & (deviation < _LARGEST)))
    columns = X[:, extreme]
    exponents = np.frexp(np.abs(columns).max(axis=0))[1] + 1
    columns = np.ldexp(columns, -exponents)
    mean[extreme] = np.ldexp(columns.mean(axis=0), exponents)
    deviation[extreme] = np.ldexp(columns.std(axis=0), exponents)
    return mean, deviation


def unmirrored(axes: Floats) -> Floats:
    """Axes [n, D] whose entry of largest size is positive: the same data never come out mirrored."""
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    return axes * np.where(signs == 0, axes.dtype.type(1), signs)[:, None]


def first_not_finite(values: Array) -> int | None:
    """Number of the first row of values [N, ...] that holds NaN or an infinity; None where none does."""
    sound = np.isfinite(values)
    return None if sound.all() else int((~sound).reshape(len(values), -1).any(axis=1).argmax())


def slices(n: int, size: int) -> Iterator[slice]:
    """Slices of n rows, so many at a time.

    Args:
        n: rows.
        size: of a slice; the last may be smaller.
    """
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def digest(*arrays: Array) -> bytes:
    """A fingerprint of arrays, of their shapes and kinds: different arrays have different ones.

    Args:
        arrays: of numbers.

    Returns:
        16 bytes by BLAKE2b.
    """
    hasher = blake2b(digest_size=16)
    for array in arrays:
        hasher.update(f"{array.dtype.str}{array.shape}".encode())
        hasher.update(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    return hasher.digest()


class Cache(OrderedDict[Any, T]):
    """Values of the keys asked for last, bounded in size; for several threads.

    Args:
        limit: of the sizes together; the last value stays whatever its size.
        size: of a value; 1 unless given.
    """

    def __init__(self, limit: int, size: Callable[[T], int] = lambda _: 1) -> None:
        self._limit, self._size, self._lock = limit, size, Lock()

    def ask(self, key: Any, compute: Callable[[], T]) -> T:
        """The value under the key, computed where it is not there: not to be written into."""
        with self._lock:
            if key in self:
                self.move_to_end(key)  # it is never gone: others look without the lock
                return self[key]
        value = compute()
        with self._lock:
            self[key] = value
            self.move_to_end(key)
            while sum(map(self._size, self.values())) > self._limit and len(self) > 1:
                self.popitem(last=False)
        return value


def items_and_codes(labels: Mapping[int, int]) -> tuple[Ints, Ints]:
    """Keys [n] and values [n] of a mapping of items to codes, in its order."""
    return np.fromiter(labels, np.int64, len(labels)), np.fromiter(labels.values(), np.int64, len(labels))


def standardised(features: Array, common_scale: bool) -> Array:
    """Features [n, D] with unit variance, cut at +-2; or as they are when they share one scale."""
    X = np.asarray(features, dtype=np.float64)
    if common_scale:
        return X
    mean, spread = column_moments(X)
    return np.clip((X - mean) / np.where(spread > 0, spread, 1.0), -2.0, 2.0)


def pack(values: Floats) -> dict[str, Any]:
    """An array as JSON: its shape, and base64 of little-endian float32."""
    packed = np.ascontiguousarray(values, dtype="<f4")
    return {"shape": list(packed.shape), "base64": b64encode(packed.tobytes()).decode()}


def unpack(document: dict[str, Any]) -> Floats:
    """The array behind `pack`, float32."""
    flat = np.frombuffer(b64decode(document["base64"]), dtype="<f4")
    if not np.isfinite(flat).all():
        raise ValueError("it holds numbers that are not finite")
    return flat.reshape(document["shape"]).astype(np.float32)
