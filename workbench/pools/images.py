"""Images as pools: zipped or plain folders, idx files, and arrays of images.

Every size is checked before a pixel is decoded: the unpacked size of an archive, the width and
height an image's header promises, and the size of all images together.
"""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.errors import InputError
from workbench.pools.fingerprints import fingerprint_rows
from workbench.pools.items import ImageItems, RowNumbers
from workbench.pools.pool import Pool, TestSplit
from workbench.pools.readers import DAMAGED, MAX_BYTES, check_size, open_zip

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm")
MAX_PIXELS = 25_000_000
MAX_FILES = 200_000
_JUNK = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")
_PCA_ROWS = 20_000


@dataclass(frozen=True)
class ImageFeatureMap:
    """Images to pixels in [0, 1], or to their principal components.

    Attributes:
        shape: (H, W) for grey or (H, W, 3) for colour.
        white: the value of white in raw images; 255 for 8 bits.
        mean: [D] mean of the pool's pixels, for PCA; else None.
        axes: [n, D] principal axes, for PCA; else None.
    """

    shape: tuple[int, ...]
    white: float = 255.0
    mean: Floats | None = None
    axes: Floats | None = None

    @property
    def shows_pixels(self) -> bool:
        """Whether the features are the pixels themselves."""
        return self.axes is None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the D features."""
        if self.axes is not None:
            return tuple(f"component_{i + 1}" for i in range(len(self.axes)))
        if len(self.shape) == 2:
            return tuple(f"pixel_{i}_{j}" for i in range(self.shape[0]) for j in range(self.shape[1]))
        return tuple(
            f"pixel_{i}_{j}_{colour}"
            for i in range(self.shape[0])
            for j in range(self.shape[1])
            for colour in ("red", "green", "blue")
        )

    def transform(self, rows: Any) -> Array:
        """Images to features.

        Args:
            rows: [N, H, W(, 3)] images, or the same laid flat [N, D], in the pool's range of values.

        Returns:
            [N, D] float32.

        Raises:
            InputError: images of another size or mode.
        """
        images = np.asarray(rows)
        size = int(np.prod(self.shape))
        if images.ndim < 2 or (images.shape[1:] != self.shape and images.shape[1:] != (size,)):
            raise InputError(
                f"These images are {_size_text(images.shape[1:])}; the pool's are {_size_text(self.shape)}. "
                "Resize them, or turn them to grey or colour alike."
            )
        if images.dtype.kind not in "fiub":
            raise InputError(f"Images must be numbers; got {images.dtype}.")
        width = size if self.axes is None else len(self.axes)
        out = np.empty((len(images), width), dtype=np.float32)
        step = max(1, 8_000_000 // size)
        for start in range(0, len(images), step):
            part = images[start : start + step].reshape(-1, size).astype(np.float32)
            part /= np.float32(self.white)
            if not np.isfinite(part).all():
                row = start + int((~np.isfinite(part)).any(axis=1).argmax())
                raise InputError(f"Image {row + 1} has pixels that are not finite numbers.")
            if self.axes is not None and self.mean is not None:
                part = (part - self.mean.astype(np.float32)) @ self.axes.T.astype(np.float32)
            out[start : start + step] = part
        return out

    def to_json(self) -> dict[str, Any]:
        """The map as a JSON document; arrays as base64 of little-endian float32."""
        return {
            "kind": "image",
            "shape": list(self.shape),
            "white": self.white,
            "mean": None if self.mean is None else pack(self.mean),
            "axes": None if self.axes is None else pack(self.axes),
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> ImageFeatureMap:
        """Rebuild from `to_json`."""
        mean, axes = document["mean"], document["axes"]
        return cls(
            tuple(int(n) for n in document["shape"]),
            float(document["white"]),
            None if mean is None else unpack(mean),
            None if axes is None else unpack(axes),
        )


def pack(values: Floats) -> dict[str, Any]:
    """An array as JSON: its shape, and base64 of little-endian float32."""
    packed = np.ascontiguousarray(values, dtype="<f4")
    return {"shape": list(packed.shape), "base64": b64encode(packed.tobytes()).decode()}


def unpack(document: dict[str, Any]) -> Floats:
    """The array behind `pack`, float32."""
    flat = np.frombuffer(b64decode(document["base64"]), dtype="<f4")
    return flat.reshape(document["shape"]).astype(np.float32)


def image_pool(
    name: str,
    images: Array,
    truth: Ints | None,
    classes: tuple[str, ...],
    *,
    ids: Any = None,
    test: TestSplit | None = None,
    features: str = "pixels",
    n_components: int = 50,
    title: str = "",
    notes: tuple[str, ...] = (),
) -> Pool:
    """A pool of images held as an array.

    Args:
        name: of the pool.
        images: [N, H, W] or [N, H, W, 3] ([N, H, W, 1] counts as grey); whole numbers from 0 to 255,
            or fractions from 0 to 1.
        truth: [N] class codes or None.
        classes: their names.
        ids: [N] ids, or None for row numbers.
        test: the source's own split.
        features: "pixels" in [0, 1], "pca", or the path of a saved `NetworkFeatureMap` (.json).
        n_components: of "pca".
        title: one line.
        notes: what was done on the way.

    Returns:
        The pool; all features share one scale.

    Raises:
        InputError: an impossible shape, values outside the range, or no such features.
    """
    if images.ndim == 4 and images.shape[3] == 1:
        images = images[..., 0]
    if images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3) or 0 in images.shape:
        raise InputError(
            f"Images must be [N, H, W] grey or [N, H, W, 3] colour; got {list(images.shape)}. "
            "Drop transparency, and put colours last."
        )
    if len(images) < 2:
        raise InputError("A pool needs at least 2 images; got 1.")
    from_network = str(features).lower().endswith(".json")
    if features not in ("pixels", "pca") and not from_network:
        raise InputError(
            f"features={features!r} is not one of 'pixels', 'pca', or the file (.json) of a network's "
            "feature map."
        )
    images, white = _in_range(images)
    shape = tuple(int(n) for n in images.shape[1:])
    feature_map = ImageFeatureMap(shape, white)
    if features == "pca":
        feature_map = _pca_map(images, feature_map, n_components)
        notes = (*notes, f"Features are the first {n_components} principal components of the pixels.")
    pool = Pool(
        name=name,
        kind="image",
        features=np.empty((len(images), 0), np.float32) if from_network else feature_map.transform(images),
        classes=classes,
        truth=truth,
        items=ImageItems(RowNumbers(len(images)) if ids is None else ids, images, white),
        feature_map=feature_map,
        fingerprints=fingerprint_rows(images),
        test=test,
        title=title or name,
        description=f"{len(images):,} {'grey' if len(shape) == 2 else 'colour'} images of "
        f"{shape[0]} x {shape[1]} pixels.",
        common_scale=True,
        notes=notes,
    )
    if not from_network:
        return pool
    from workbench.pools.network_map import NetworkFeatureMap, with_network

    return with_network(pool, NetworkFeatureMap.read(features))


def _in_range(images: Array) -> tuple[Array, float]:
    if images.dtype == np.uint8:
        return images, 255.0
    if images.dtype == bool:
        return images.astype(np.uint8) * np.uint8(255), 255.0
    step = max(1, 8_000_000 // int(np.prod(images.shape[1:])))
    low, high = np.inf, -np.inf
    for start in range(0, len(images), step):
        part = images[start : start + step]
        if images.dtype.kind == "f" and not np.isfinite(part).all():
            bad = start + int((~np.isfinite(part)).reshape(len(part), -1).any(axis=1).argmax())
            raise InputError(
                f"Image {bad} has pixels that are not finite numbers. Correct it or leave it out."
            )
        low, high = min(low, float(part.min())), max(high, float(part.max()))
    if low < 0 or high > 255:
        raise InputError(
            f"Pixels run from {low:g} to {high:g}; they must lie in 0 to 255 (or 0 to 1). Rescale the images."
        )
    if images.dtype.kind in "iu":
        return images.astype(np.uint8), 255.0
    return np.asarray(images, dtype=np.float32), 1.0 if high <= 1.0 else 255.0


def _pca_map(images: Array, pixels: ImageFeatureMap, n_components: int) -> ImageFeatureMap:
    from workbench.pools.projection import principal_axes

    most = min(len(images), int(np.prod(pixels.shape)))
    if not 1 <= n_components <= most:
        raise InputError(f"n_components must lie between 1 and {most}; got {n_components}.")
    rows = np.arange(len(images))
    if len(rows) > _PCA_ROWS:
        rows = np.sort(np.random.default_rng([0, 0, 0x9CA]).choice(rows, _PCA_ROWS, replace=False))
    axes = principal_axes(pixels.transform(images[rows]), n_components)
    return ImageFeatureMap(
        pixels.shape, pixels.white, axes.mean.astype(np.float32), axes.axes.astype(np.float32)
    )


# Folders and zip files ---------------------------------------------------------------------------------


def load_image_folder(
    source: str | Path | bytes,
    *,
    file_name: str | None = None,
    name: str | None = None,
    labelled: bool | None = None,
    resize: int | tuple[int, int] | None = None,
    mode: str | None = None,
    corrupt: str = "error",
    features: str = "pixels",
    n_components: int = 50,
    max_bytes: int = MAX_BYTES,
    max_pixels: int = MAX_PIXELS,
) -> Pool:
    """Make a pool of a folder of images, or of a zip file of one.

    Args:
        source: path of a folder or a zip file, or an upload's bytes.
        file_name: name of an upload.
        name: of the pool; None takes the file's.
        labelled: whether an image's folder is its class; None says yes when there are two folders or
            more and no image lies outside them.
        resize: one side, or (height, width), to bring every image to; None refuses mixed sizes.
        mode: "grey" or "colour" to bring every image to; None refuses a mixture.
        corrupt: files that cannot be decoded: "error" or "drop".
        features: "pixels" or "pca".
        n_components: of "pca".
        max_bytes: most bytes of the files, and of all decoded images together.
        max_pixels: most pixels of one image.

    Returns:
        The pool; ids are the paths inside the folder.

    Raises:
        InputError: what is wrong, with the file's name, and what to do.
    """
    from workbench.pools.tables import class_order, source_name

    label = source_name(source, file_name)
    if mode not in (None, "grey", "colour"):
        raise InputError(f"mode={mode!r} is not one of 'grey', 'colour'.")
    if corrupt not in ("error", "drop"):
        raise InputError(f"corrupt={corrupt!r} is not one of 'error', 'drop'.")
    size = _wanted_size(resize)
    reader = _Folder(source, label, max_bytes)
    decoded, kept, dropped = _decode_all(reader, size, mode, corrupt, max_bytes, max_pixels)
    notes = []
    if dropped:
        notes.append(f"{_files(len(dropped))} that could not be decoded left out: {_some(dropped)}.")
    if reader.ignored:
        notes.append(f"{_files(len(reader.ignored))} that are no images ignored: {_some(reader.ignored)}.")
    if size:
        notes.append(f"Images brought to {size[0]} x {size[1]} pixels.")
    if mode:
        notes.append(f"Images turned to {mode}.")
    folders = _class_folders(kept)
    if labelled is None:
        labelled = "" not in folders and len(set(folders)) > 1
    truth: Ints | None = None
    classes: tuple[str, ...] = ()
    if labelled:
        if "" in folders:
            stray = kept[folders.index("")]
            raise InputError(f"{label}: {stray!r} lies in no folder, so it has no class. Move it into one.")
        classes = tuple(class_order(sorted(set(folders))))
        if len(classes) < 2:
            raise InputError(
                f"{label} has one folder of images only ({classes[0]!r}): one class, nothing to tell."
            )
        if len(classes) >= len(kept):
            raise InputError(
                f"{label} has {len(classes)} folders for {len(kept)} images; a class needs several."
            )
        truth = np.array([classes.index(folder) for folder in folders], dtype=np.int64)
    return image_pool(
        name or label.removesuffix(".zip"),
        decoded,
        truth,
        classes,
        ids=kept,
        features=features,
        n_components=n_components,
        title=label,
        notes=tuple(notes),
    )


class _Folder:
    """The image files under a folder or in a zip, by path, in order; nothing is unpacked to disk."""

    def __init__(self, source: str | Path | bytes, label: str, max_bytes: int) -> None:
        self.label = label
        self._zip: zipfile.ZipFile | None = None
        self._root = Path()
        sizes: dict[str, int] = {}
        if not isinstance(source, bytes) and Path(source).is_dir():
            self._root = Path(source)
            for path in self._root.rglob("*"):
                if path.is_file() and not path.is_symlink():
                    sizes[path.relative_to(self._root).as_posix()] = path.stat().st_size
        else:
            self._zip = open_zip(source, label, "a zip file")
            sizes = {info.filename: info.file_size for info in self._zip.infolist() if not info.is_dir()}
        sizes = {
            path: size
            for path, size in sizes.items()
            if not any(part in _JUNK or part.startswith("._") for part in PurePosixPath(path).parts)
        }
        self.paths = sorted(path for path in sizes if path.lower().endswith(IMAGE_ENDINGS))
        self.ignored = sorted(set(sizes) - set(self.paths))
        if not self.paths:
            raise InputError(f"{label} holds no images. Put in files ending in {', '.join(IMAGE_ENDINGS)}.")
        if len(self.paths) > MAX_FILES:
            raise InputError(
                f"{label} holds {len(self.paths):,} images; the limit is {MAX_FILES:,}. Pack them as an NPZ."
            )
        check_size(f"{label} (unpacked)", sum(sizes[path] for path in self.paths), max_bytes)
        self._sizes = sizes

    def read(self, path: str) -> bytes:
        try:
            if self._zip is None:
                return (self._root / path).read_bytes()
            with self._zip.open(path) as member:
                # the directory's word for the size bounds what is unpacked
                return member.read(self._sizes[path] + 1)
        except DAMAGED as error:
            raise InputError(f"{self.label}: {path!r} is damaged or locked: {error}") from error


def _decode_all(
    reader: _Folder,
    size: tuple[int, int] | None,
    mode: str | None,
    corrupt: str,
    max_bytes: int,
    max_pixels: int,
) -> tuple[Array, list[str], list[str]]:
    kept: list[str] = []
    dropped: list[str] = []
    images: list[Array] = []
    for path in reader.paths:
        try:
            image = decode_image(reader.read(path), f"{reader.label}: {path!r}", size, mode, max_pixels)
        except InputError:
            if corrupt == "error":
                raise
            dropped.append(path)
            continue
        if images and image.shape != images[0].shape:
            _refuse_mixture(reader.label, kept[0], images[0], path, image)
        images.append(image)
        kept.append(path)
        check_size(f"{reader.label} (decoded)", len(images) * image.nbytes, max_bytes)
    if len(images) < 2:
        raise InputError(
            f"{reader.label} holds {len(images)} image(s) that can be read; a pool needs at least 2."
        )
    return np.stack(images), kept, dropped


def _refuse_mixture(label: str, first: str, one: Array, path: str, other: Array) -> None:
    if one.ndim != other.ndim:
        grey, colour = (first, path) if one.ndim == 2 else (path, first)
        raise InputError(
            f"{label} mixes grey ({grey!r}) and colour images ({colour!r}). "
            'Bring them together with mode="grey" or mode="colour".'
        )
    raise InputError(
        f"{label} mixes sizes: {first!r} is {_size_text(one.shape)}, {path!r} is {_size_text(other.shape)}. "
        f"Bring them together with resize=({one.shape[0]}, {one.shape[1]})."
    )


def decode_image(
    data: bytes,
    label: str,
    size: tuple[int, int] | None = None,
    mode: str | None = None,
    max_pixels: int = MAX_PIXELS,
) -> Array:
    """Decode one image file, its size checked before its pixels.

    Args:
        data: the file.
        label: for messages.
        size: (height, width) to bring it to.
        mode: "grey" or "colour" to bring it to; None keeps what it is.
        max_pixels: most pixels before resizing.

    Returns:
        [H, W] or [H, W, 3] uint8; transparency is laid on white.

    Raises:
        InputError: not an image, damaged, or too large.
    """
    from PIL import Image, UnidentifiedImageError

    bombs = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        with Image.open(io.BytesIO(data)) as picture:
            width, height = picture.size
            if width * height > max_pixels:
                raise InputError(
                    f"{label} is {width:,} x {height:,} pixels; the limit is {max_pixels:,} pixels an image. "
                    "Make it smaller, or leave it out."
                )
            image: Any = picture
            if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
                image = image.convert("RGBA")
                image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
                image = image.convert("RGB" if picture.mode != "LA" else "L")
            grey = image.mode in ("1", "L") or image.mode.startswith(("I", "F"))
            if image.mode.startswith("I"):  # 16 bits: keep the upper eight
                image = Image.fromarray(
                    (np.asarray(image, dtype=np.int64) >> 8).clip(0, 255).astype(np.uint8)
                )
            image = image.convert("L" if mode == "grey" or (mode is None and grey) else "RGB")
            if size is not None and image.size != (size[1], size[0]):
                image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)
            return np.asarray(image, dtype=np.uint8)
    except bombs as error:
        raise InputError(f"{label} is too large to open: {error}") from error
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, struct.error, zlib.error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f'{label} is not an image that can be read ({error}). Leave it out, or say corrupt="drop".'
        ) from error


def _class_folders(paths: Sequence[str]) -> list[str]:
    """The first folder in which the paths differ, "" for those that lie above it."""
    parts = [PurePosixPath(path).parts[:-1] for path in paths]
    depth = 0
    while all(len(part) > depth for part in parts) and len({part[depth] for part in parts}) == 1:
        depth += 1
    if depth and all(len(part) == depth for part in parts):
        depth -= 1  # one folder for all: it is the class, not a wrapper
    return [part[depth] if len(part) > depth else "" for part in parts]


def _wanted_size(resize: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if resize is None:
        return None
    size = (resize, resize) if isinstance(resize, int) else tuple(int(n) for n in resize)
    if len(size) != 2 or not all(1 <= n <= 4096 for n in size):
        raise InputError(f"resize must be one side or (height, width), 1 to 4096 pixels; got {resize!r}.")
    return (size[0], size[1])


# idx files ---------------------------------------------------------------------------------------------

_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(source: str | Path | bytes, name: str, max_bytes: int = MAX_BYTES) -> Array:
    """An idx file, the format MNIST is kept in; a .gz is unpacked.

    Args:
        source: path, or an upload's bytes.
        name: for messages.
        max_bytes: most bytes once unpacked.

    Returns:
        The array it holds.

    Raises:
        InputError: not an idx file, cut short, or too large.
    """
    data = source if isinstance(source, bytes) else _file_bytes(Path(source))
    stream: IO[bytes] = io.BytesIO(data)
    if data[:2] == b"\x1f\x8b":
        stream = gzip.GzipFile(fileobj=stream)  # type: ignore[assignment]
    try:
        magic = stream.read(4)
        if len(magic) < 4 or magic[:2] != b"\x00\x00" or magic[2] not in _IDX_TYPES or not 1 <= magic[3] <= 4:
            raise InputError(f"{name} is not an idx file: it begins with {magic.hex() or 'nothing'}.")
        shape = struct.unpack(f">{magic[3]}I", stream.read(4 * magic[3]))
        dtype = np.dtype(_IDX_TYPES[magic[2]])
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        check_size(f"{name} (unpacked)", size, max_bytes)
        body = stream.read(size)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise InputError(f"{name} is damaged: {error}") from error
    if len(body) < size:
        raise InputError(f"{name} is cut short: it promises {size:,} bytes and holds {len(body):,}.")
    return np.frombuffer(body, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def load_idx(
    source: str | Path | bytes,
    *,
    file_name: str | None = None,
    name: str | None = None,
    labels: str | Path | bytes | None = None,
    classes: tuple[str, ...] | None = None,
    features: str = "pixels",
    n_components: int = 50,
    max_bytes: int = MAX_BYTES,
) -> Pool:
    """Make a pool of idx files.

    Args:
        source: a file of images, or a folder with train-images-idx3-ubyte and its companions.
        file_name: name of an upload.
        name: of the pool.
        labels: the file of labels; None looks beside the images ("images-idx3" -> "labels-idx1").
        classes: names of the classes, in the order of the codes.
        features: "pixels" or "pca".
        n_components: of "pca".
        max_bytes: most bytes once unpacked.

    Returns:
        The pool; with the test files there too, the source's own split.

    Raises:
        InputError: what is wrong and what to do.
    """
    from workbench.pools.arrays import codes_of, own_split
    from workbench.pools.tables import source_name

    label = source_name(source, file_name)
    test: TestSplit | None = None
    images: Array
    y: Array | None
    if not isinstance(source, bytes) and Path(source).is_dir():
        pairs = [_idx_pair(Path(source), part) for part in ("train", "t10k")]
        found = [pair for pair in pairs if pair is not None]
        if not found:
            raise InputError(f"{source} holds no train-images-idx3-ubyte file.")
        parts = [(read_idx(x, x.name, max_bytes), read_idx(y, y.name, max_bytes)) for x, y in found]
        images, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        if len(parts) == 2:
            test = own_split(len(parts[0][0]), len(parts[1][0]))
    else:
        images = read_idx(source, label, max_bytes)
        if labels is None and not isinstance(source, bytes):
            beside = Path(source).with_name(
                Path(source).name.replace("images-idx3", "labels-idx1").replace("images.idx3", "labels.idx1")
            )
            labels = beside if beside != Path(source) and beside.exists() else None
        y = None
        if labels is not None:
            y = read_idx(labels, source_name(labels, None), max_bytes)
    if images.ndim not in (3, 4):
        raise InputError(f"{label} holds an array of shape {list(images.shape)}, not images.")
    if y is not None and y.shape != (len(images),):
        raise InputError(f"{label} holds {len(images):,} images but labels of shape {list(y.shape)}.")
    truth, known = (None, tuple(classes or ())) if y is None else codes_of(y, classes, label)
    return image_pool(
        name or label.removesuffix(".gz"),
        images,
        truth,
        known,
        test=test,
        features=features,
        n_components=n_components,
        title=label,
    )


def _idx_pair(folder: Path, part: str) -> tuple[Path, Path] | None:
    for ending in ("", ".gz"):
        x = folder / f"{part}-images-idx3-ubyte{ending}"
        y = folder / f"{part}-labels-idx1-ubyte{ending}"
        if x.exists() and y.exists():
            return x, y
    return None


# JPEG files end to end in an NPZ -----------------------------------------------------------------------


def jpeg_members(archive: Any, max_cells: int) -> tuple[Array, Array, TestSplit | None]:
    """Decode the arrays jpeg_*, offset_*, y_* of an NPZ of JPEG files laid end to end.

    Args:
        archive: the `NpzFile`.
        max_cells: most numbers once decoded.

    Returns:
        Images [N, H, W, 3], labels [N] and the source's own split.

    Raises:
        InputError: offsets that do not fit, or a damaged image.
    """
    from workbench.pools.arrays import own_split

    parts = [part for part in ("train", "test") if f"jpeg_{part}" in archive]
    images: list[Array] = []
    labels: list[Array] = []
    for part in parts:
        octets = archive[f"jpeg_{part}"]
        offsets = _offsets(archive, part, len(octets))
        y = archive[f"y_{part}"]
        if len(y) != len(offsets) - 1:
            raise InputError(
                f"{archive.name} holds {len(offsets) - 1:,} images but {len(y):,} labels ({part})."
            )
        images.append(_jpegs(octets, offsets, archive.name, part, max_cells))
        labels.append(y)
    if len(parts) == 1:
        return images[0], labels[0], None
    return np.concatenate(images), np.concatenate(labels), own_split(len(images[0]), len(images[1]))


def _offsets(archive: Any, part: str, size: int) -> Ints:
    offsets = np.asarray(archive[f"offset_{part}"], dtype=np.int64)
    if len(offsets) < 2 or offsets[0] < 0 or offsets[-1] > size or (np.diff(offsets) <= 0).any():
        raise InputError(f"{archive.name} has offsets ({part}) that do not fit its images.")
    return offsets


def _jpegs(octets: Array, offsets: Ints, name: str, part: str, max_cells: int) -> Array:
    out: Array | None = None
    for i, image in enumerate(_each_jpeg(octets, offsets, name, part)):
        if out is None:
            shape = (len(offsets) - 1, *image.shape)
            if int(np.prod(shape)) > max_cells:
                raise InputError(
                    f"{name} decodes to {int(np.prod(shape)):,} numbers; the limit is {max_cells:,}."
                )
            out = np.empty(shape, dtype=np.uint8)
        if image.shape != out.shape[1:]:
            raise InputError(f"{name} mixes image sizes at image {i} ({part}).")
        out[i] = image
    assert out is not None
    return out


def _each_jpeg(octets: Array, offsets: Ints, name: str, part: str) -> Iterator[Array]:
    for i in range(len(offsets) - 1):
        data = octets[offsets[i] : offsets[i + 1]].tobytes()
        yield decode_image(data, f"{name}, image {i} ({part})", mode="colour")


def _file_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}.") from None


def _size_text(shape: Sequence[int]) -> str:
    if len(shape) < 2:
        return f"{list(shape)} numbers"
    colour = "colour" if len(shape) == 3 else "grey"
    return f"{shape[0]} x {shape[1]} {colour}"


def _files(n: int) -> str:
    return f"{n:,} file" if n == 1 else f"{n:,} files"


def _some(names: Sequence[str], limit: int = 3) -> str:
    listed = ", ".join(repr(name) for name in names[:limit])
    return listed if len(names) <= limit else f"{listed} and {len(names) - limit} more"
