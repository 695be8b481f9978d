"""Photos: images of any sizes, decoded when they are shown, with features learnt from small copies."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from workbench.arrays import Array, Ints
from workbench.errors import InputError
from workbench.pools.building import image_pool, said_of_shapes
from workbench.pools.features.cache import WorkCache, cached_features, saved_white
from workbench.pools.features.shapes import SIDE, SMALLEST, ShapesFeatureMap
from workbench.pools.features.vectors import is_vectors, without_features
from workbench.pools.fingerprints import word_of
from workbench.pools.images.decoding import (
    MAX_NUMBERS,
    MAX_PHOTO_PIXELS,
    MAX_PIXELS,
    brightness,
    decode_image,
    n_frames,
    opened,
    stack_images,
)
from workbench.pools.notebooks import counted
from workbench.pools.pool import FeatureMap, ItemsWithIds, Pool, Shown, TestSplit, plain
from workbench.progress import part, tell
from workbench.reading import cut, listed, reading

MAX_PHOTO_BYTES = 64 << 30
"""Most bytes of the files of photos that are read one at a time."""
READING = 0.3
"""Share of the whole: photos are decoded before anything is learnt."""
_COPIES_BYTES = 64 << 20
_TOLD = 50  # photos between two reports


class PhotoSource(Protocol):
    """Place of the files of photos: a folder, a zip, a column of a table."""

    @property
    def label(self) -> str:
        """Name of it in messages."""

    def read(self, path: str) -> bytes:
        """One file."""

    def size(self, path: str) -> int:
        """Bytes of one file, without reading it where that can be."""


@dataclass(frozen=True)
class Photos(Sequence[Array]):
    """The images of a folder, a zip or a table, each decoded when it is asked for.

    Attributes:
        folder: that holds them.
        paths: [N] theirs inside it.
        max_pixels: most pixels of one.
        side: longest side to bring each to; None keeps them as they are.
        shape: (height, width) to bring each to; None keeps them as they are.
        mode: "grey" or "colour" to bring each to; None keeps what it is.
        brightest: value of files of more than eight bits a pixel that is white; None takes each file's own.
        clipped: paths of those that were decoded and had brighter pixels.
    """

    folder: PhotoSource
    paths: Sequence[str]
    max_pixels: int = MAX_PHOTO_PIXELS
    side: int | None = None
    shape: tuple[int, int] | None = None
    mode: str | None = None
    brightest: float | None = None
    clipped: dict[str, None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def attrs(self) -> dict[str, tuple[str, ...]]:
        """Notes on how they were decoded, where the rows of a table have theirs."""
        files = counted(len(self.clipped), "file has", "files have")
        words = f"{files} pixels brighter than the pool's white, which are white, too"
        return {"notes": (f"{words}: {listed(self.clipped, 3)}.",) if self.clipped else ()}

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return replace(self, paths=self.paths[index])
        path = self.paths[index]
        label = f"{self.folder.label}: {cut(path)}"
        data = self.folder.read(path)
        how = (self.shape, self.mode, self.max_pixels, self.side, True, self.brightest)
        return decode_image(data, label, *how, lambda: self.clipped.setdefault(path))

    def size(self, index: int) -> tuple[int, int]:
        """Width and height of an image as it lies in its file, from its head alone."""
        path = self.paths[index]
        label = f"{self.folder.label}: {cut(path)}"
        with reading(label, "an image"), opened(self.folder.read(path), label) as picture:
            return int(picture.width), int(picture.height)

    def longest(self, index: int) -> int:
        """Pixels of the longer side of an image, from its head alone."""
        return max(self.size(index))

    def brought(
        self,
        *,
        side: int | None = None,
        shape: tuple[int, int] | None = None,
        mode: str | None = None,
        brightest: float | None = None,
    ) -> Photos:
        """The same images, brought to a size and a mode as they are decoded; the arguments are its own."""
        return replace(self, side=side, shape=shape, mode=mode, brightest=brightest or self.brightest)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """All of them [N, H, W(, 3)].

        Raises:
            InputError: images of different sizes or modes, or too many pixels.
        """
        images = stack_images(iter(self), len(self), self.folder.label, MAX_NUMBERS, self.paths)
        return images if dtype is None else images.astype(dtype)


@dataclass(frozen=True)
class PhotoItems(ItemsWithIds):
    """Photos shown as they are in their files; their ids are paths, or those of a table that names them.

    Attributes:
        photos: those of the ids, decoded when asked for.
        cells: column name -> [N] values, of such a table.
    """

    photos: Photos
    cells: Mapping[str, Any] | None = None

    def show(self, index: int) -> Shown:
        """Photo `index`, uint8, of its own size and mode."""
        row = self.cells and {name: plain(column[index]) for name, column in self.cells.items()}
        return Shown("image", row=row, image=self.photos[int(index)])


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


def dropped_note(paths: Sequence[str], dropped: Mapping[int, str]) -> str:
    """Finding about pictures that are left out because they cannot be read.

    Args:
        paths: [N] of all.
        dropped: position -> why it cannot be read.
    """
    pictures = counted(len(dropped), "picture that cannot be read is", "pictures that cannot be read are")
    names = listed([paths[i] for i in dropped])
    why = next(iter(dropped.values())).removesuffix(" Leave it out.")
    first = "" if len(dropped) == 1 else "The first: "
    return f"{pictures} left out: {names}. {first}{why}"


def paged_note(paths: Sequence[str]) -> str:
    """Message about files of which the first page or frame is the item."""
    files = counted(
        len(paths),
        "file of several pages or frames: its first one is",
        "files of several pages or frames: the first one of each is",
    )
    return f"{files} the item, the others are left out: {listed(paths, 3)}."


class Decoding:
    """The files of photos, decoded one after the other.

    Args:
        source: that holds them.
        paths: [N] theirs in it.
        corrupt: those that cannot be decoded: "error" or "drop".

    Attributes:
        kept: positions of those that were decoded so far.
        dropped: position -> why it could not be, of the others.
        paged: positions of those kept that hold further pages or frames.
        brightest: value of files of more than eight bits a pixel that is white, one for all: that of a saved
            map (`saved_map`), else of the files; None where there are none.
        copies: a small copy of each that was kept, where they were looked at (`read_photos`).
        words: [n] uint64, the fingerprints of these.
    """

    def __init__(self, source: PhotoSource, paths: Sequence[str], corrupt: str) -> None:
        self._source, self._paths, self._drops = source, paths, corrupt != "error"
        self.kept: list[int] = []
        self.dropped: dict[int, str] = {}
        self.paged: list[int] = []
        self.brightest = saved_white()
        self._n_deep = 0
        self._clipped: list[str] = []
        self.copies = Copies()
        self.words: Array = np.empty(0, np.uint64)

    def images(self, **how: Any) -> Iterator[tuple[bytes, Array]]:
        """The bytes and the image of each that can be decoded.

        Args:
            how: arguments of `decode_image`.

        Raises:
            InputError: one that cannot be decoded, unless these are dropped.
        """
        for i, path in enumerate(self._paths):
            try:
                data = self._source.read(path)
                label = f"{self._source.label}: {cut(path)}"
                clipped = partial(self._clipped.append, path)
                white = partial(self._white, i)
                image = decode_image(data, label, upright=True, brightest=white, clipped=clipped, **how)
            except InputError as error:
                if not self._drops:
                    raise
                self.dropped[i] = str(error)
                continue
            self.kept.append(i)
            if path.lower().endswith((".tif", ".tiff", ".gif", ".webp")) and n_frames(data) > 1:
                self.paged.append(i)
            yield data, image

    @property
    def said(self) -> tuple[str, ...]:
        """Notes on how they were read."""
        if not self._n_deep or self.brightest is None:
            return ()
        files = counted(self._n_deep, "file has", "files have")
        words = f"{files} more than 8 bits a pixel: {self.brightest:,.0f} is white"
        words += f"; brighter pixels of {listed(self._clipped, 3)} are white, too" if self._clipped else ""
        return (f"{words}.",)

    def _white(self, first: int) -> float | None:
        """The value that is white in all files of more than eight bits a pixel, when one of them is met."""
        self._n_deep += 1
        if self.brightest is None:
            whites = []
            for path in self._paths[first:]:
                with suppress(InputError):
                    whites.append(brightness(self._source.read(path), path))
            self.brightest = max((white for white in whites if white is not None), default=None)
        return self.brightest


def read_photos(source: PhotoSource, paths: Sequence[str], corrupt: str, max_pixels: int) -> Decoding:
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
    words: list[int] = []
    decoding = Decoding(source, paths, corrupt)
    tell(0.0, f"Reading the photos: 0 of {len(paths):,}")
    for data, copy in decoding.images(max_pixels=max_pixels, side=2 * SIDE):
        decoding.copies.append(copy)
        words.append(word_of(data))
        if (i := decoding.kept[-1] + 1) % _TOLD == 0:
            tell(i / len(paths), f"Reading the photos: {i:,} of {len(paths):,}")
    decoding.words = np.array(words, dtype=np.uint64)
    return decoding


class Described(NamedTuple):
    """Properties of the photos that were kept.

    Attributes:
        ids: [n].
        truth: [n] class codes or None.
        classes: their names.
        test: the source's own split.
        notes: what was done on the way.
        cells: column name -> [n] values, of a table that names them.
    """

    ids: Sequence[str]
    truth: Ints | None
    classes: tuple[str, ...]
    test: TestSplit | None = None
    notes: tuple[str, ...] = ()
    cells: Mapping[str, Any] | None = None


def photo_pool(
    source: PhotoSource,
    paths: Sequence[str],
    describe: Callable[[Decoding], Described],
    features: str,
    corrupt: str,
    *,
    name: str,
    title: str,
    size: tuple[int, int] | None = None,
    mode: str | None = None,
    max_pixels: int = MAX_PHOTO_PIXELS,
    max_cells: int = MAX_NUMBERS,
) -> Pool:
    """A pool of photos: decoded when they are shown, or held together where their pixels are the features.

    Args:
        source: that holds them.
        paths: [N] theirs in it.
        describe: properties of those that were kept.
        features: "shapes", "pixels", "embeddings:FILE" or the path of a network's feature map. Where all are
            too small for shapes, these are pixels.
        corrupt: those that cannot be decoded: "error" or "drop".
        name: of the pool.
        title: one line.
        size: (height, width) to bring each to, for pixels.
        mode: "grey" or "colour" to bring each to, for pixels.
        max_pixels: most pixels of one; photos that are not held together may have more (`MAX_PHOTO_PIXELS`).
        max_cells: most pixels x colours of all together, for pixels.

    Raises:
        InputError: one that cannot be decoded, unless these are dropped; too many pixels; or as `describe`.
    """
    if features == "shapes" or is_vectors(features):
        limit = MAX_PHOTO_PIXELS if max_pixels == MAX_PIXELS else max_pixels
        with part(0.0, READING):
            read = read_photos(source, paths, corrupt, limit)
        about = describe(read)
        photos = Photos(source, [paths[i] for i in read.kept], limit, brightest=read.brightest)
        pair: tuple[FeatureMap, Array] | None = None
        shape_notes: tuple[str, ...] = ()
        if is_vectors(features):
            pair = without_features(features, len(photos))
        elif max(max(shape[:2]) for shape in read.copies.shapes) >= SMALLEST:
            with part(READING, 1.0):
                pair = _shapes_of(read)
            shape_notes = (said_of_shapes(pair[0]),)
        if pair is not None:
            return Pool(
                name,
                "image",
                pair[1],
                about.classes,
                about.truth,
                PhotoItems(about.ids, photos, about.cells),
                pair[0],
                read.words,
                about.test,
                title,
                f"{len(photos):,} images.",
                common_scale=True,
                notes=(*about.notes, *read.said, *shape_notes),
            )
    decoding, kept = Decoding(source, paths, corrupt), []

    def decoded() -> Iterator[Array]:
        for _, image in decoding.images(size=size, mode=mode, max_pixels=max_pixels):
            kept.append(paths[decoding.kept[-1]])
            yield image

    images = stack_images(decoded(), len(paths), source.label, max_cells, kept)
    about = describe(decoding)
    notes = [*about.notes, *decoding.said]
    if size:
        notes.append(f"Images brought to {size[0]} x {size[1]} pixels.")
    if mode:
        notes.append(f"Images turned to {mode}.")
    return image_pool(
        name,
        images,
        about.truth,
        about.classes,
        ids=about.ids,
        test=about.test,
        features=features,
        resized=size is not None,
        mode=mode,
        brightest=decoding.brightest,
        title=title,
        notes=tuple(notes),
    )


def _shapes_of(read: Decoding) -> tuple[FeatureMap, Array]:
    """Shapes of photos that were read, learnt from their copies."""

    def learn(cache: WorkCache) -> tuple[FeatureMap, Array]:
        shapes_map, features = ShapesFeatureMap.learn(read.copies, cache=cache)
        return replace(shapes_map, brightest=read.brightest), features

    def replay(shapes_map: FeatureMap, rows: Ints) -> Array:
        return shapes_map.transform([read.copies[int(row)] for row in rows])

    how = (2 * SIDE, read.brightest) if read.brightest else 2 * SIDE
    fixed = {"white": 255.0, "brightest": read.brightest}
    return cached_features("shapes", read.words, how, learn, replay, **fixed)
