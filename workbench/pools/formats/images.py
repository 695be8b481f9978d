"""Folders and zip files of images.

Every size is checked before a pixel is decoded: the unpacked size of an archive, the width and height
an image's header promises, and the pixels of all images together. Nothing is unpacked to disk.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any, NamedTuple, Protocol

import numpy as np

from workbench.arrays import Array, Ints
from workbench.errors import InputError
from workbench.pools.building import check_image_features, image_pool, shapes_pool
from workbench.pools.features.cache import WorkCache, cached_features
from workbench.pools.features.pixels import size_text
from workbench.pools.features.shapes import SIDE, SMALLEST, ShapesFeatureMap, shrunk
from workbench.pools.features.vectors import is_vectors, without_features
from workbench.pools.formats import Reader
from workbench.pools.formats.files import MAX_BYTES, File, check_size
from workbench.pools.items import plain
from workbench.pools.labels import class_order
from workbench.pools.pool import FeatureMap, Pool, Shown
from workbench.progress import part, tell
from workbench.reading import cut, listed, reading

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm")
# Pillow's others may start programs (EPS) or read files an image names
_PILLOW_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
MAX_PIXELS = 25_000_000
MAX_NUMBERS = 100_000_000
"""Most pixels x colours of all images together: their features take four bytes each."""
MAX_FILES = 200_000
_COPIES_BYTES = 64 << 20
_READING = 0.3  # of the whole: photos are decoded before anything is learnt
_TOLD = 50  # photos between two reports
MAX_PHOTO_BYTES = 64 << 30
"""Most bytes of the files of photos that are read one at a time."""
_JUNK = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")


def load(
    file: File,
    *,
    name: str | None = None,
    labelled: bool | None = None,
    resize: int | tuple[int, int] | None = None,
    mode: str | None = None,
    corrupt: str = "error",
    features: str = "pixels",
    n_components: int = 50,
    max_bytes: int = MAX_BYTES,
    max_pixels: int = MAX_PIXELS,
    max_cells: int = MAX_NUMBERS,
) -> Pool:
    """Make a pool of a folder of images, or of a zip file of one.

    Args:
        file: a folder or a zip file.
        name: of the pool; None takes the file's.
        labelled: whether an image's folder is its class; None says yes when there are two folders or
            more and no image lies outside them.
        resize: one side, or (height, width), to bring every image to; None refuses mixed sizes. Not for
            shapes, which take any sizes.
        mode: "grey" or "colour" to bring every image to; None refuses a mixture. Not for shapes.
        corrupt: files that cannot be decoded: "error" or "drop".
        features: "pixels", "shapes", "pca", "embeddings:FILE" or the path of a network's feature map. With
            shapes and embeddings images are decoded when they are shown, never held together.
        n_components: of "pca".
        max_bytes: most bytes of the files once unpacked, and of all images once decoded.
        max_pixels: most pixels of one image, before resizing.
        max_cells: most pixels x colours of all images together, after resizing; for features of pixels.

    Returns:
        The pool; ids are the paths inside the folder.

    Raises:
        InputError: what is wrong, with the file's name, and what to do.
    """
    if mode not in (None, "grey", "colour"):
        raise InputError(f"mode={mode!r} is not one of 'grey', 'colour'.")
    if corrupt not in ("error", "drop"):
        raise InputError(f"corrupt={corrupt!r} is not one of 'error', 'drop'.")
    size = _wanted_size(resize)
    check_image_features(features)
    # photos are read one at a time: only an upload, which is held in memory, is limited
    shapes = features == "shapes" or is_vectors(features)
    folder = ImageFolder(file, MAX_PHOTO_BYTES if shapes and max_bytes == MAX_BYTES else max_bytes)
    if shapes:
        if size or mode:
            raise InputError(
                "resize= and mode= are for features of pixels; shapes take images as they are. Leave them "
                'out, or say features="pixels".'
            )
        pool = _photo_pool(folder, file, name, labelled, corrupt, max_pixels, features)
        if pool is not None:
            return pool
    decoded, paths, dropped = _decode_all(folder, size, mode, corrupt, max_pixels, min(max_cells, max_bytes))
    notes = _left_out(folder, dropped)
    if size:
        notes.append(f"Images brought to {size[0]} x {size[1]} pixels.")
    if mode:
        notes.append(f"Images turned to {mode}.")
    truth, classes = _classes_by_folder(file.name, paths, labelled)
    return image_pool(
        name or file.stem,
        decoded,
        truth,
        classes,
        ids=paths,
        features=features,
        n_components=n_components,
        title=file.name,
        notes=tuple(notes),
    )


def _left_out(folder: ImageFolder, dropped: Sequence[str]) -> list[str]:
    notes = []
    if dropped:
        notes.append(f"{_files(len(dropped))} that could not be decoded left out: {listed(dropped, 3)}.")
    if folder.ignored:
        notes.append(
            f"{_files(len(folder.ignored))} that are no images ignored: {listed(folder.ignored, 3)}."
        )
    return notes


def _photo_pool(
    folder: ImageFolder, file: File, name: str | None, labelled: bool | None, corrupt: str, max_pixels: int,
    features: str,
) -> Pool | None:  # fmt: skip
    """A pool of photos with shapes or vectors as features; None where the images are too small for shapes."""
    with part(0.0, _READING):
        read = read_photos(folder, folder.paths, corrupt, max_pixels)
    if len(read.kept) < 2:
        raise _too_few(folder, len(read.kept))
    paths = [folder.paths[i] for i in read.kept]
    truth, classes = _classes_by_folder(file.name, paths, labelled)
    return photo_pool(
        read,
        PhotoItems(paths, Photos(folder, paths, max_pixels)),
        truth,
        classes,
        features,
        name=name or file.stem,
        title=file.name,
        notes=tuple(_left_out(folder, [folder.paths[i] for i in read.dropped])),
    )


OF_FEATURES = 256
"""Longest side of copies that features are made of, at most."""


class PhotosRead(NamedTuple):
    """Photos that were looked at once, one after the other.

    Attributes:
        kept: positions of those that can be decoded.
        dropped: positions of the others.
        copies: a small copy of each that was kept.
        words: [n] uint64, their fingerprints.
    """

    kept: list[int]
    dropped: list[int]
    copies: Copies
    words: Array


class Copies(Sequence[Array]):
    """Small images one after the other: in memory up to 64 MB, beyond that in a file without a name.

    Attributes:
        shapes: of each.
    """

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []
        self._starts: list[int] = []
        self._end = 0
        self._file = tempfile.SpooledTemporaryFile(max_size=_COPIES_BYTES)  # noqa: SIM115

    def append(self, image: Array) -> None:
        """Add one, uint8."""
        self._file.seek(self._end)
        self._file.write(np.ascontiguousarray(image, dtype=np.uint8).tobytes())
        self.shapes.append(image.shape)
        self._starts.append(self._end)
        self._end += image.size

    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        shape = self.shapes[index]
        self._file.seek(self._starts[index])
        return np.frombuffer(self._file.read(int(np.prod(shape))), np.uint8).reshape(shape)


def read_photos(source: PhotoSource, paths: Sequence[str], corrupt: str, max_pixels: int) -> PhotosRead:
    """Look at photos one at a time.

    Args:
        source: that holds them.
        paths: [N] theirs in it.
        corrupt: those that cannot be decoded: "error" or "drop".
        max_pixels: most pixels of one.

    Returns:
        What there is of them.

    Raises:
        InputError: one that cannot be decoded, unless these are dropped.
    """
    kept: list[int] = []
    dropped: list[int] = []
    copies = Copies()
    words: list[int] = []
    for i, path in enumerate(paths):
        if i % _TOLD == 0:
            tell(i / len(paths), f"Reading the photos: {i:,} of {len(paths):,}")
        try:
            data = source.read(path)
            copy = decode_image(data, f"{source.label}: {cut(path)}", max_pixels=max_pixels, side=SIDE)
        except InputError:
            if corrupt == "error":
                raise
            dropped.append(i)
            continue
        kept.append(i)
        copies.append(copy)
        words.append(int.from_bytes(blake2b(data, digest_size=8).digest(), "little"))
    return PhotosRead(kept, dropped, copies, np.array(words, dtype=np.uint64))


def photo_pool(
    read: PhotosRead,
    items: PhotoItems,
    truth: Ints | None,
    classes: tuple[str, ...],
    features: str,
    *,
    name: str,
    title: str,
    notes: tuple[str, ...] = (),
) -> Pool | None:
    """A pool of photos that were read, with shapes or vectors as features.

    Args:
        read: the photos.
        items: [n] those that were kept.
        truth: [n] class codes or None.
        classes: their names.
        features: "shapes" or "embeddings:FILE".
        name: of the pool.
        title: one line.
        notes: what was done on the way.

    Returns:
        The pool; None where the images are too small for shapes.
    """
    vectors = is_vectors(features)
    if not vectors and max(max(shape[:2]) for shape in read.copies.shapes) < SMALLEST:
        return None
    shared: dict[str, Any] = {"title": title, "description": f"{len(items):,} images."}
    if vectors:
        bare, none = without_features(features, len(items))
        return Pool(name, "image", none, classes, truth, items, bare, read.words, notes=notes, **shared)

    def learn(cache: WorkCache) -> tuple[FeatureMap, Array]:
        return ShapesFeatureMap.learn(read.copies, cache=cache)

    def replay(made: FeatureMap, rows: Ints) -> Array:
        return made.transform([read.copies[int(row)] for row in rows])

    with part(_READING, 1.0):
        learnt, found = cached_features("shapes", read.words, SIDE, learn, replay, white=255.0)
    return shapes_pool(name, items, learnt, found, read.words, truth, classes, notes=notes, **shared)


def rows(file: File) -> Photos:
    """The images by path, decoded when asked for; as an array [N, H, W(, 3)] where they are of one size."""
    folder = ImageFolder(file, MAX_PHOTO_BYTES)
    return Photos(folder, folder.paths, MAX_PIXELS)


class PhotoSource(Protocol):
    """What holds the files of photos: a folder, a zip, a column of a table."""

    @property
    def label(self) -> str:
        """What messages call it."""

    def read(self, path: str) -> bytes:
        """One file."""


@dataclass(frozen=True)
class Photos(Sequence[Array]):
    """The images of a folder, a zip or a table, each decoded when it is asked for.

    Attributes:
        folder: that holds them.
        paths: [N] theirs inside it.
        max_pixels: most pixels of one.
        side: longest side to bring each to; None keeps them as they are.
    """

    folder: PhotoSource
    paths: Sequence[str]
    max_pixels: int = MAX_PIXELS
    side: int | None = None

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return replace(self, paths=self.paths[index])
        path = self.paths[index]
        label = f"{self.folder.label}: {cut(path)}"
        return decode_image(self.folder.read(path), label, max_pixels=self.max_pixels, side=self.side)

    def longest(self, index: int) -> int:
        """Pixels of the longer side of an image, from its head alone."""
        path = self.paths[index]
        label = f"{self.folder.label}: {cut(path)}"
        with reading(label, "an image"), _opened(self.folder.read(path), label) as picture:
            return max(picture.size)

    def small(self, side: int) -> Photos:
        """The same images, brought to `side` pixels on their longest side as they are decoded."""
        return replace(self, side=side)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """All of them [N, H, W(, 3)].

        Raises:
            InputError: images of different sizes or modes, or too many pixels.
        """
        images = stack_images(iter(self), len(self), self.folder.label, MAX_NUMBERS, self.paths)
        return images if dtype is None else images.astype(dtype)


@dataclass(frozen=True)
class PhotoItems:
    """Photos shown as they are in their files.

    Attributes:
        ids: [N] paths, or the ids of a table that names them.
        photos: the same, decoded when asked for.
        cells: column name -> [N] values, of such a table.
    """

    ids: Sequence[str]
    photos: Photos
    cells: Mapping[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def show(self, index: int) -> Shown:
        """Photo `index`, uint8, of its own size and mode."""
        row = self.cells and {name: plain(column[index]) for name, column in self.cells.items()}
        return Shown("image", row=row, image=self.photos[int(index)])


READER = Reader(load, rows)


class ImageFolder:
    """The image files under a folder or in a zip, by path, in order."""

    def __init__(self, file: File, max_bytes: int) -> None:
        self.label = file.name
        self._zip: zipfile.ZipFile | None = None
        self._file = file
        if file.is_folder:
            root = file.path
            with reading(self.label):
                found = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
                sizes = {path.relative_to(root).as_posix(): path.stat().st_size for path in found}
        else:
            self._zip = file.zipped("a zip file")
            sizes = {info.filename: info.file_size for info in self._zip.infolist() if not info.is_dir()}
        sizes = {path: size for path, size in sizes.items() if not _is_junk(path)}
        self.paths = sorted(path for path in sizes if path.lower().endswith(IMAGE_ENDINGS))
        self.ignored = sorted(set(sizes) - set(self.paths))
        if not self.paths:
            raise InputError(
                f"{self.label} holds no images. Put in files ending in {', '.join(IMAGE_ENDINGS)}."
            )
        if len(self.paths) > MAX_FILES:
            raise InputError(
                f"{self.label} holds {len(self.paths):,} images; the limit is {MAX_FILES:,}. "
                "Pack them as an NPZ."
            )
        check_size(f"{self.label} (unpacked)", sum(sizes[path] for path in self.paths), max_bytes)
        self._sizes = sizes

    def read(self, path: str) -> bytes:
        """One file, no more of it than was promised."""
        with reading(f"{self.label}: {cut(path)} is damaged or locked; it"):
            if self._zip is None:
                return (self._file.path / path).read_bytes()
            with self._zip.open(path) as member:
                # the directory's word for the size bounds what is unpacked
                return member.read(self._sizes[path] + 1)


def _is_junk(path: str) -> bool:
    return any(part in _JUNK or part.startswith("._") for part in PurePosixPath(path).parts)


def _decode_all(
    folder: ImageFolder,
    size: tuple[int, int] | None,
    mode: str | None,
    corrupt: str,
    max_pixels: int,
    max_cells: int,
) -> tuple[Array, list[str], list[str]]:
    read: list[str] = []
    dropped: list[str] = []

    def decoded() -> Iterator[Array]:
        for path in folder.paths:
            try:
                image = decode_image(
                    folder.read(path), f"{folder.label}: {cut(path)}", size, mode, max_pixels
                )
            except InputError:
                if corrupt == "error":
                    raise
                dropped.append(path)
                continue
            read.append(path)
            yield image

    images = stack_images(decoded(), len(folder.paths), folder.label, max_cells, read)
    if len(images) < 2:
        raise _too_few(folder, len(images))
    return images, read, dropped


def _too_few(folder: ImageFolder, n: int) -> InputError:
    return InputError(f"{folder.label} holds {n} image(s) that can be read; a pool needs at least 2.")


def stack_images(
    images: Iterable[Array], n_most: int, label: str, max_cells: int, paths: Sequence[str] = ()
) -> Array:
    """Images of one size as one array, which is asked for once, after its size was checked.

    Args:
        images: [H, W] or [H, W, 3] each.
        n_most: how many there can be.
        label: of the file, for messages.
        max_cells: most pixels x colours of all together.
        paths: what they are called; grows while the images come.

    Returns:
        [N, H, W] or [N, H, W, 3] uint8.

    Raises:
        InputError: images of different sizes or modes, or too many pixels.
    """
    out = np.empty((0, 0, 0), np.uint8)
    n = 0
    for image in images:
        if n == 0:
            total = n_most * image.size
            if total > max_cells:
                raise InputError(
                    f"{label} holds {n_most:,} images of {size_text(image.shape)}, {total:,} numbers "
                    f"once decoded; the limit is {max_cells:,}. Make the images smaller with resize=, take "
                    "fewer, or raise max_cells."
                )
            out = np.empty((n_most, *image.shape), np.uint8)
        elif image.shape != out.shape[1:]:
            _refuse_mixture(label, out[0], image, *(paths[i] if paths else f"image {i}" for i in (0, n)))
        out[n] = image
        n += 1
    return out[:n]


def _refuse_mixture(label: str, one: Array, other: Array, first: str, path: str) -> None:
    if one.ndim != other.ndim:
        grey, colour = (first, path) if one.ndim == 2 else (path, first)
        raise InputError(
            f"{label} mixes grey ({cut(grey)}) and colour images ({cut(colour)}). "
            'Bring them together with mode="grey" or mode="colour".'
        )
    raise InputError(
        f"{label} mixes sizes: {cut(first)} is {size_text(one.shape)}, {cut(path)} is "
        f"{size_text(other.shape)}. Bring them together with resize=({one.shape[0]}, {one.shape[1]})."
    )


def decode_image(
    data: bytes,
    label: str,
    size: tuple[int, int] | None = None,
    mode: str | None = None,
    max_pixels: int = MAX_PIXELS,
    side: int | None = None,
) -> Array:
    """Decode one image file, its size checked before its pixels.

    Args:
        data: the file.
        label: for messages.
        size: (height, width) to bring it to.
        mode: "grey" or "colour" to bring it to; None keeps what it is.
        max_pixels: most pixels before resizing.
        side: longest side of a small copy; larger images are averaged down to it, others stay.

    Returns:
        [H, W] or [H, W, 3] uint8; transparency is laid on white.

    Raises:
        InputError: not an image, damaged, or too large.
    """
    from PIL import Image

    with (
        reading(label, "an image", 'Leave it out, or say corrupt="drop".'),
        _opened(data, label) as picture,
    ):
        width, height = picture.size
        if width * height > max_pixels:
            raise InputError(
                f"{label} is {width:,} x {height:,} pixels; the limit is {max_pixels:,} pixels an image. "
                "Make it smaller, or leave it out."
            )
        image: Any = picture
        if side is not None:
            # JPEG: an eighth of the work; large copies are looked at, not learnt from
            enough = 4 * side if side <= OF_FEATURES else side
            picture.draft(None, (enough, enough))
        if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
            image = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
            image = image.convert("RGB" if picture.mode != "LA" else "L")
        grey = image.mode in ("1", "L") or image.mode.startswith(("I", "F"))
        if image.mode.startswith("I"):  # 16 bits: keep the upper eight
            image = Image.fromarray((np.asarray(image, dtype=np.int64) >> 8).clip(0, 255).astype(np.uint8))
        image = image.convert("L" if mode == "grey" or (mode is None and grey) else "RGB")
        if side is not None:
            size = shrunk(height, width, side)
            if image.size != (size[1], size[0]):
                image = image.resize((size[1], size[0]), Image.Resampling.BOX)
        elif size is not None and image.size != (size[1], size[0]):
            image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)
        return np.asarray(image, dtype=np.uint8)


def _opened(data: bytes, label: str) -> Any:
    from PIL import Image

    try:
        return Image.open(io.BytesIO(data), formats=_PILLOW_FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise InputError(f"{label} is too large to open: {error}") from error


def _classes_by_folder(
    label: str, paths: list[str], labelled: bool | None
) -> tuple[Ints | None, tuple[str, ...]]:
    """Class codes and names of images whose folder is their class; none where it is not."""
    folders = _class_folders(paths)
    if labelled is None:
        labelled = "" not in folders and len(set(folders)) > 1
    if not labelled:
        return None, ()
    if "" in folders:
        stray = paths[folders.index("")]
        raise InputError(f"{label}: {cut(stray)} lies in no folder, so it has no class. Move it into one.")
    classes = tuple(class_order(sorted(set(folders))))
    if len(classes) < 2:
        raise InputError(
            f"{label} has one folder of images only ({cut(classes[0])}): one class, nothing to tell."
        )
    if len(classes) >= len(paths):
        raise InputError(
            f"{label} has {len(classes)} folders for {len(paths)} images; a class needs several."
        )
    position = {name: code for code, name in enumerate(classes)}
    return np.array([position[folder] for folder in folders], dtype=np.int64), classes


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
    with reading(f"resize={cut(resize)}", "a size", "Give one side or (height, width)."):
        size = (resize, resize) if isinstance(resize, int) else tuple(int(n) for n in resize)
    if len(size) != 2 or not all(1 <= n <= 4096 for n in size):
        raise InputError(f"resize must be one side or (height, width), 1 to 4096 pixels; got {resize!r}.")
    return (size[0], size[1])


def _files(n: int) -> str:
    return f"{n:,} file" if n == 1 else f"{n:,} files"
