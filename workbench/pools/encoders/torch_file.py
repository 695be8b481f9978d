"""Weights from files that PyTorch wrote before 1.6, read without it and without running anything in them.

By hand, because the weights come in a package as a file of PyTorch's alone: reading it otherwise takes all of
PyTorch, and a copy in another format would be somebody else's file carried here.
"""

import pickle
from collections import OrderedDict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError

_DTYPES = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "LongStorage": "<i8", "IntStorage": "<i4"}
_MAGIC = 0x1950A86A20F9469CFC6C


def read_weights(path: Path, digest: str) -> dict[str, Array]:
    """Name -> array of a file with one dictionary of tensors.

    Args:
        path: of the file.
        digest: its SHA-256; another file is not opened.

    Returns:
        The tensors as NumPy arrays.

    Raises:
        InputError: another file, or one that holds anything but tensors.
    """
    data = path.read_bytes()
    if sha256(data).hexdigest() != digest:
        raise InputError(
            f"{path.name} is not the file that is expected (its SHA-256 differs). Install it anew."
        )
    with path.open("rb") as file:
        if _Tensors(file).load() != _MAGIC:
            raise InputError(f"{path.name} is no file of weights.")
        _Tensors(file).load(), _Tensors(file).load()
        tensors = _Tensors(file).load()
        storages = {}
        for key in _Tensors(file).load():
            size = int.from_bytes(file.read(8), "little")
            storages[key] = (file.tell(), size)
            dtype = next(np.dtype(t.dtype) for t in tensors.values() if t.key == key)
            file.seek(size * dtype.itemsize, 1)
    return {name: tensor.read(data, storages) for name, tensor in tensors.items()}


class _Tensor:
    """The place of a tensor in its storage."""

    def __init__(self, storage: tuple[Any, ...], offset: int, size: tuple[int, ...], stride: Any, *_: Any):
        self.key, self.dtype = storage[2], _DTYPES[storage[1]]
        self.offset, self.size, self.stride = offset, size, stride

    def read(self, data: bytes, storages: dict[str, tuple[int, int]]) -> Array:
        start, length = storages[self.key]
        flat = np.frombuffer(data, self.dtype, length, start)[self.offset :]
        steps = [step * flat.itemsize for step in self.stride]
        return np.lib.stride_tricks.as_strided(flat, self.size, steps).copy()


class _Tensors(pickle.Unpickler):
    """Knows tensors and ordered dictionaries; any other name in the file ends the reading."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _Tensor
        if module == "torch" and name in _DTYPES:
            return name
        raise InputError(f"The file of weights names {module}.{name}, which is no tensor; it is not read.")

    def persistent_load(self, pid: Any) -> Any:
        return pid
