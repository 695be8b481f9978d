"""idx files, the format MNIST is kept in: one by one, or a folder with the training and test files."""

import struct
from pathlib import Path

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.building import image_pool, own_split
from workbench.pools.formats import Reader
from workbench.pools.formats.files import MAX_BYTES, File, check_size
from workbench.pools.labels import codes_of
from workbench.pools.pool import Pool, TestSplit
from workbench.reading import reading

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def load(
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
    images, y, test = _images(file, labels, max_bytes)
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


def rows(file: File) -> Array:
    """The images [N, H, W(, 3)]."""
    return _images(file, None, MAX_BYTES)[0]


READER = Reader(load, rows)


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
    if len(magic) < 4 or magic[:2] != b"\x00\x00" or magic[2] not in _TYPES or not 1 <= magic[3] <= 4:
        raise InputError(f"{name} is not an idx file: it begins with {magic.hex() or 'nothing'}.")
    with reading(f"{name} is damaged; it"):
        shape = struct.unpack_from(f">{magic[3]}I", data, 4)
        dtype = np.dtype(_TYPES[magic[2]])
        body = memoryview(data)[4 + 4 * magic[3] :]
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        check_size(f"{name} (unpacked)", size, max_bytes)
        if len(body) < size:
            raise InputError(f"{name} is cut short: it promises {size:,} bytes and holds {len(body):,}.")
        return np.ndarray(shape, dtype, body).astype(dtype.newbyteorder("="), copy=False)


def _images(
    file: File, labels: str | Path | bytes | None, max_bytes: int
) -> tuple[Array, Array | None, TestSplit | None]:
    """Images, labels and the source's own split."""
    y: Array | None = None
    test: TestSplit | None = None
    if file.is_folder:
        pairs = [_pair(file.path, part) for part in ("train", "t10k")]
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


def _pair(folder: Path, part: str) -> tuple[Path, Path] | None:
    for ending in ("", ".gz"):
        x = folder / f"{part}-images-idx3-ubyte{ending}"
        y = folder / f"{part}-labels-idx1-ubyte{ending}"
        if x.exists() and y.exists():
            return x, y
    return None
