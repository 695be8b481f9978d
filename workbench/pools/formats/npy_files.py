"""NPY and NPZ files: nothing is unpickled, sizes are checked first, the same arrays give the same bytes."""

import io
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.formats.files import MAX_BYTES, MAX_ITEMS, File, check_size
from workbench.reading import cut, reading

_LONGEST_TEXT = 4096  # bytes of a label, an id or a name
_MAX_LABEL_BYTES = 100 << 20


class _Header(NamedTuple):
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    dtype: np.dtype[Any]
    offset: int

    def mapped(self, path: Path, start: int = 0) -> Array:
        """The array behind the header that begins at `start` in a file, as a memory map."""
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        return np.memmap(path, self.dtype, "r", start + self.offset, self.shape, self.order)

    def of(self, data: bytes) -> Array:
        """The array in the bytes behind the header."""
        return np.ndarray(self.shape, self.dtype, data, order=self.order)


class NpzFile(Mapping[str, Array]):
    """An NPZ whose members are checked and read one at a time.

    Args:
        file: the file.
        max_bytes: most bytes of one member once unpacked; those that lie in the file as they are, are
            mapped, whatever their size.

    Raises:
        InputError: not an NPZ, or damaged.
    """

    def __init__(self, file: File, max_bytes: int = MAX_BYTES) -> None:
        self.name = file.name
        self._path = None if file.is_upload else file.path
        self._max_bytes = max_bytes
        self._zip = file.zipped("an NPZ file")
        members = [info for info in self._zip.infolist() if info.filename.endswith(".npy")]
        self._members = {info.filename[:-4]: info for info in members}

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    @property
    def n_bytes(self) -> int:
        """Of all members together once unpacked, as the archive's directory says."""
        return sum(info.file_size for info in self._members.values())

    def __contains__(self, key: object) -> bool:
        return key in self._members  # Mapping would read the whole member to answer

    def __getitem__(self, key: str) -> Array:
        info, where = self._members[key], self._where(key)
        with reading(f"{where} is damaged or locked; it"), self._zip.open(info) as stream:
            header = _read_header(stream, where, info.file_size)
            if self._path is not None and info.compress_type == zipfile.ZIP_STORED:
                return header.mapped(self._path, _place_of(self._path, info))
            check_size(f"{where} (unpacked)", info.file_size, self._max_bytes)
            return header.of(stream.read())

    def texts(self, key: str, n: int | None = None) -> Array:
        """A member of labels, ids or names, whose size is checked against what such things can be.

        Args:
            key: of the member.
            n: items it must have one of each for; None allows any number up to 100,000.
        """
        info, where = self._members[key], self._where(key)
        with reading(f"{where} is damaged or locked; it"), self._zip.open(info) as stream:
            header = _read_header(stream, where, info.file_size)
        if n is not None and header.shape != (n,):
            raise InputError(
                f"{self.name} holds {n:,} items, but {'ids' if key == 'ids' else 'classes'} of shape "
                f"{list(header.shape)} ({cut(key)})."
            )
        size = int(np.prod(header.shape, dtype=object))
        limit = 100_000 if n is None else MAX_ITEMS
        if size > limit or header.dtype.itemsize > _LONGEST_TEXT:
            raise InputError(
                f"{where} holds {size:,} cells of {header.dtype.itemsize:,} bytes; the limits are {limit:,} "
                f"and {_LONGEST_TEXT:,}."
            )
        check_size(
            f"{where} (unpacked)", size * header.dtype.itemsize, min(self._max_bytes, _MAX_LABEL_BYTES)
        )
        return self[key]

    def first_of(self, keys: Sequence[str]) -> str:
        """The first of some names that is there, or ""."""
        return next((key for key in keys if key in self), "")

    def _where(self, key: str) -> str:
        return f"{self.name}, array {cut(key)}"


def _place_of(path: Path, info: zipfile.ZipInfo) -> int:
    """First byte of a member that lies in its archive as it is."""
    with path.open("rb") as file:
        file.seek(info.header_offset + 26)
        return info.header_offset + 30 + sum(struct.unpack("<2H", file.read(4)))


def read_npy(file: File, max_bytes: int = MAX_BYTES) -> Array:
    """An NPY file: memory-mapped from a path, checked either way.

    Args:
        file: the file.
        max_bytes: most bytes of an upload (a path is mapped, whatever its size).

    Returns:
        The array.

    Raises:
        InputError: not an NPY, cut short, pickled or too large.
    """
    with reading(file.name, "a NumPy array"), file.open() as stream:
        header = _read_header(stream, file.name, file.size())
        if file.is_upload:
            check_size(file.name, file.size(), max_bytes)
            return header.of(stream.read())
        return header.mapped(file.path)


def _read_header(stream: IO[bytes], where: str, size: int) -> _Header:
    with reading(where, "a NumPy array"):
        version = np.lib.format.read_magic(stream)
        reader = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if reader is None:
            raise InputError(f"{where} is of a version of NumPy's format that cannot be read: {version}.")
        shape, fortran, dtype = reader(stream)
    if dtype.hasobject:
        raise InputError(
            f"{where} holds pickled Python objects, which may run code when opened and are never read. "
            "Save plain numbers or texts: np.savez(file, X=X.astype(float), y=y.astype(str))."
        )
    offset = stream.tell()
    count = int(np.prod(shape, dtype=object)) if shape else 1
    # a header may promise more than the file holds: refuse before any memory is asked for
    if any(side < 0 for side in shape) or count * dtype.itemsize > size - offset:
        raise InputError(f"{where} is cut short: its header promises {list(shape)} of {dtype}.")
    if max(shape, default=0) > 2**48 or (dtype.itemsize == 0 and count):
        raise InputError(f"{where} holds nothing: its header promises {list(shape)} of {dtype}.")
    return _Header(shape, "F" if fortran else "C", dtype, offset)


# Zip's own epoch: a member carries its time, and bytes must not depend on when they were written.
_EPOCH = (1980, 1, 1, 0, 0, 0)
MAX_STATE = 8 << 30


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


def bytes_to_arrays(data: bytes, *, limit: int = MAX_STATE) -> dict[str, Array]:
    """The arrays of an NPZ file.

    Args:
        data: the file.
        limit: largest size in bytes of all members together, checked before anything is read.

    Raises:
        InputError: not such a file, too large, or one that holds objects.
    """
    archive = NpzFile(File(data, "The stored state"), limit)
    if archive.n_bytes > limit:
        raise InputError(f"The stored state unpacks to {archive.n_bytes:,} bytes; the limit is {limit:,}.")
    # copied: what lies in the bytes of a file cannot be written to
    return {name: archive[name].copy() for name in archive}
