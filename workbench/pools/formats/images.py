"""Folders and zip files of images, and the meaning of the folders' names: classes, and what is for testing.

Every size is checked before a pixel is decoded: the unpacked size of an archive, the width and height
an image's header promises, and the pixels of all images together. Nothing is unpacked to disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from workbench.arrays import Ints
from workbench.errors import InputError
from workbench.pools.building import check_image_features
from workbench.pools.features.vectors import is_vectors
from workbench.pools.formats import Reader
from workbench.pools.formats.files import IMAGE_ENDINGS, MAX_BYTES, TABLES, File, check_choice, check_size
from workbench.pools.images.decoding import MAX_NUMBERS, MAX_PIXELS
from workbench.pools.images.photos import (
    MAX_PHOTO_BYTES,
    Decoding,
    Described,
    Photos,
    dropped_note,
    paged_note,
    photo_pool,
)
from workbench.pools.labels import class_order
from workbench.pools.notebooks import counted
from workbench.pools.pool import Pool, TestSplit
from workbench.reading import cut, listed, reading

MAX_FILES = 200_000
_TRAINING = ("train", "training", "val", "valid", "validation", "dev")
_TESTING = ("test", "testing")
_JUNK = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")


def load(
    file: File,
    *,
    name: str | None = None,
    labelled: bool | None = None,
    resize: int | tuple[int, int] | None = None,
    mode: str | None = None,
    corrupt: str = "drop",
    features: str | None = None,
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
        corrupt: files that cannot be decoded: "drop" leaves them out and names them in the notes, "error"
            refuses them all.
        features: "shapes", "pixels", "embeddings:FILE" or the path of a network's feature map; None
            takes shapes, and pixels where a size or mode is said. With shapes and embeddings images are
            decoded when they are shown, never held together.
        max_bytes: most bytes of the files once unpacked, and of all images once decoded.
        max_pixels: most pixels of one image, before resizing; photos whose features are shapes or vectors may
            have four times as many, and are decoded at reduced size.
        max_cells: most pixels x colours of all images together, after resizing; for features of pixels.

    Returns:
        The pool; ids are the paths inside the folder.

    Raises:
        InputError: what is wrong, with the file's name, and what to do.
    """
    check_choice("mode", "grey" if mode is None else mode, ("grey", "colour"))
    check_choice("corrupt", corrupt, ("error", "drop"))
    size = _wanted_size(resize)
    features = features or ("pixels" if size or mode else "shapes")
    check_image_features(features)
    if features == "shapes" or is_vectors(features):
        if size or mode:
            raise InputError(
                "resize= and mode= are for features of pixels; shapes take images as they are. Leave them "
                'out, or say features="pixels".'
            )
        # photos are read one at a time: only an upload, which is held in memory, is limited
        max_bytes = MAX_PHOTO_BYTES if max_bytes == MAX_BYTES else max_bytes
    folder = ImageFolder(file, max_bytes)
    return photo_pool(
        folder,
        folder.paths,
        partial(_described, folder, labelled),
        features,
        corrupt,
        name=name or file.stem,
        title=file.name,
        size=size,
        mode=mode,
        max_pixels=max_pixels,
        max_cells=min(max_cells, max_bytes),
    )


def _described(folder: ImageFolder, labelled: bool | None, decoding: Decoding) -> Described:
    """The images that were decoded with what their folders mean, and notes on the other files.

    Raises:
        InputError: fewer than two, or as `classes_by_folder`.
    """
    if len(decoding.kept) < 2:
        few = f"{folder.label} holds {len(decoding.kept)} image(s) that can be read; a pool needs at least 2."
        why = f" {dropped_note(folder.paths, decoding.dropped)}" if decoding.dropped else ""
        raise InputError(few + why)
    paths = [folder.paths[i] for i in decoding.kept]
    folders = classes_by_folder(folder.label, paths, labelled)
    return Described(paths, *folders._replace(notes=(*_left_out(folder, decoding), *folders.notes)))


def _left_out(folder: ImageFolder, decoding: Decoding) -> list[str]:
    notes = []
    if decoding.paged:
        notes.append(paged_note([folder.paths[i] for i in decoding.paged]))
    if decoding.dropped:
        notes.append(dropped_note(folder.paths, decoding.dropped))
    if folder.ignored:
        files = counted(len(folder.ignored), "file")
        notes.append(f"{files} ignored, as hidden or no image: {listed(folder.ignored, 3)}.")
    return notes


def rows(file: File) -> Photos:
    """The images by path, decoded when asked for; as an array [N, H, W(, 3)] where they are of one size."""
    folder = ImageFolder(file, MAX_PHOTO_BYTES)
    return Photos(folder, folder.paths)


READER = Reader(load, rows)


class ImageFolder:
    """The image files under a folder or in a zip, by path, in order."""

    def __init__(self, file: File, max_bytes: int) -> None:
        self.label = file.name
        self._members = file.members()
        sizes = {path: size for path, size in self._members.sizes.items() if not _is_junk(path)}
        self.paths = sorted(
            path for path in sizes if path.lower().endswith(IMAGE_ENDINGS) and not _is_hidden(path)
        )
        self.ignored = sorted(set(sizes) - set(self.paths))
        tables = [path for path in self.ignored if path.lower().endswith((*TABLES, ".zip"))]
        if not self.paths and tables:
            raise InputError(
                f"{self.label} holds no images, and of tables {', '.join(tables[:5])}. "
                "Unpack it, and open the one that you want."
            )
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

    def read(self, path: str) -> bytes:
        """One file, no more of it than was promised."""
        return self._members.read(path)

    def size(self, path: str) -> int:
        """Bytes of one file."""
        return self._members.size(path)


def _is_junk(path: str) -> bool:
    return any(part in _JUNK or part.startswith("._") for part in PurePosixPath(path).parts)


def _is_hidden(path: str) -> bool:
    """True if a folder on the way is hidden, as those of notebooks and version control are."""
    return any(part.startswith(".") for part in PurePosixPath(path).parts[:-1])


def _wanted_size(resize: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if resize is None:
        return None
    with reading(f"resize={cut(resize)}", "a size", "Give one side or (height, width)."):
        size = (resize, resize) if isinstance(resize, int) else tuple(int(n) for n in resize)
    if len(size) != 2 or not all(1 <= n <= 4096 for n in size):
        raise InputError(f"resize must be one side or (height, width), 1 to 4096 pixels; got {resize!r}.")
    return (size[0], size[1])


class Folders(NamedTuple):
    """Meaning of the folders of images.

    Attributes:
        truth: [N] class codes, -1 where an image has none; None where folders are no classes.
        classes: their names.
        test: the split that the folders are, or None.
        notes: what people should know of how they were read.
    """

    truth: Ints | None
    classes: tuple[str, ...]
    test: TestSplit | None = None
    notes: tuple[str, ...] = ()


def classes_by_folder(label: str, paths: Sequence[str], labelled: bool | None) -> Folders:
    """Classes of images whose folder is their class; none where it is not.

    A class is the first folder in which the paths differ; below folders called train, validation and test,
    or below several folders that all hold the same ones, it is the next.

    Args:
        label: of the file, for messages.
        paths: [N] of the images.
        labelled: whether folders are classes; None says yes where there are two or more and a third of the
            images lies in them. The others have no class yet.

    Raises:
        InputError: an image outside of folders, one class, or as many classes as images.
    """
    parts = _below_common([PurePosixPath(path).parts[:-1] for path in paths])
    tops = [part[0] if part else "" for part in parts]
    below = [part[1] if len(part) > 1 else "" for part in parts]
    are_splits = _are_splits(tops)
    test, notes = _split(tops) if are_splits else (None, ())
    if are_splits or _repeats(tops, below):
        parts = [part[1:] for part in parts]
        if not are_splits:
            first = sorted(set(tops))
            notes = (f"The classes are the folders below {listed(first, 4)}, which all hold the same ones.",)
    folders = [part[0] if part else "" for part in parts]
    strays = folders.count("")
    partly = labelled is None and 3 * (len(paths) - strays) >= len(paths) > strays and len(set(folders)) > 2
    if labelled is None:
        labelled = partly or (not strays and len(set(folders)) > 1)
        if strays and len(set(folders)) > 2:
            stray = cut(paths[folders.index("")])
            lie = f"{strays:,} of {len(paths):,} images lie in none, the first {stray}."
            words = f"Folders are not taken for classes, since {lie}"
            if partly:
                words = f"Folders are classes; {lie} These have no class yet."
            notes = (*notes, words)
    if not labelled:
        return Folders(None, (), test, notes)
    if strays and not partly:
        stray = paths[folders.index("")]
        raise InputError(f"{label}: {cut(stray)} lies in no folder, so it has no class. Move it into one.")
    classes = tuple(class_order(sorted({*folders} - {""})))
    if len(classes) < 2:
        raise InputError(
            f"{label} has one folder of images only ({cut(classes[0])}): one class, nothing to tell."
        )
    if len(classes) >= len(paths):
        raise InputError(
            f"{label} has {len(classes)} folders for {len(paths)} images; a class needs several."
        )
    position = {name: code for code, name in enumerate(classes)}
    truth = np.array([position.get(folder, -1) for folder in folders], dtype=np.int64)
    return Folders(truth, classes, test, notes)


def _below_common(parts: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Folders from the first on in which the paths differ; those that lie above it have none."""
    depth = 0
    while all(len(part) > depth for part in parts) and len({part[depth] for part in parts}) == 1:
        depth += 1
    if depth and all(len(part) == depth for part in parts):
        depth -= 1  # one folder for all: it is the class, not a wrapper
    return [part[depth:] for part in parts]


def _are_splits(tops: Sequence[str]) -> bool:
    names = {top.lower() for top in tops}
    training, testing = names & set(_TRAINING), names & set(_TESTING)
    return names <= {*_TRAINING, *_TESTING} and bool(training) and len(training) + len(testing) > 1


def _split(tops: Sequence[str]) -> tuple[TestSplit | None, tuple[str, ...]]:
    for_test = np.array([top.lower() in _TESTING for top in tops])
    names = sorted(set(tops))
    if not for_test.any() or for_test.all():
        return None, (f"The folders {listed(names)} are splits, taken together.",)
    train, test = np.flatnonzero(~for_test), np.flatnonzero(for_test)
    note = f"The folders {listed(names)} are splits: the {len(test):,} images for testing are the test set."
    return TestSplit(0, len(test) / len(tops), train, test, given=True), (note,)


def _repeats(tops: Sequence[str], below: Sequence[str]) -> bool:
    """True if several folders hold the same two or more folders each, which are the classes then."""
    children: dict[str, set[str]] = {}
    for top, name in zip(tops, below, strict=True):
        children.setdefault(top, set()).add(name)
    first = next(iter(children.values()))
    return (
        len(children) > 1
        and len(first) > 1
        and "" not in first
        and all(names == first for names in children.values())
    )
