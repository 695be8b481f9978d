"""Folders and zip files of images.

Every size is checked before a pixel is decoded: the unpacked size of an archive, the width and height
an image's header promises, and the pixels of all images together. Nothing is unpacked to disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.building import check_image_features, image_pool
from workbench.pools.features.vectors import is_vectors
from workbench.pools.formats import Reader
from workbench.pools.formats.files import MAX_BYTES, TABLES, File, check_size
from workbench.pools.formats.folders import classes_by_folder
from workbench.pools.images.decoding import MAX_NUMBERS, MAX_PHOTO_PIXELS, MAX_PIXELS, stack_images
from workbench.pools.images.photos import (
    MAX_PHOTO_BYTES,
    READING,
    Decoding,
    PhotoItems,
    Photos,
    dropped_note,
    paged_note,
    photo_pool,
    read_photos,
)
from workbench.pools.pool import Pool
from workbench.progress import part
from workbench.reading import cut, listed, reading

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm")
MAX_FILES = 200_000
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
    if mode not in (None, "grey", "colour"):
        raise InputError(f"mode={mode!r} is not one of 'grey', 'colour'.")
    if corrupt not in ("error", "drop"):
        raise InputError(f"corrupt={corrupt!r} is not one of 'error', 'drop'.")
    size = _wanted_size(resize)
    features = features or ("pixels" if size or mode else "shapes")
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
        limit = MAX_PHOTO_PIXELS if max_pixels == MAX_PIXELS else max_pixels
        pool = _photo_pool(folder, file, name, labelled, corrupt, limit, features)
        if pool is not None:
            return pool
    decoding = Decoding(folder, folder.paths, corrupt)
    decoded = _decode_all(folder, decoding, size, mode, max_pixels, min(max_cells, max_bytes))
    paths = [folder.paths[i] for i in decoding.kept]
    notes = [*_left_out(folder, decoding), *decoding.said]
    if size:
        notes.append(f"Images brought to {size[0]} x {size[1]} pixels.")
    if mode:
        notes.append(f"Images turned to {mode}.")
    labelling = classes_by_folder(file.name, paths, labelled)
    return image_pool(
        name or file.stem,
        decoded,
        labelling.truth,
        labelling.classes,
        ids=paths,
        test=labelling.test,
        features=features,
        resized=size is not None,
        mode=mode,
        brightest=decoding.brightest,
        title=file.name,
        notes=(*notes, *labelling.notes),
    )


def _left_out(folder: ImageFolder, decoding: Decoding) -> list[str]:
    notes = []
    if decoding.paged:
        notes.append(paged_note([folder.paths[i] for i in decoding.paged]))
    if decoding.dropped:
        notes.append(dropped_note(folder.paths, decoding.dropped))
    if folder.ignored:
        notes.append(
            f"{_files(len(folder.ignored))} ignored, as hidden or no image: {listed(folder.ignored, 3)}."
        )
    return notes


def _photo_pool(
    folder: ImageFolder,
    file: File,
    name: str | None,
    labelled: bool | None,
    corrupt: str,
    max_pixels: int,
    features: str,
) -> Pool | None:
    """A pool of photos with shapes or vectors as features; None where the images are too small for shapes."""
    with part(0.0, READING):
        decoding = read_photos(folder, folder.paths, corrupt, max_pixels)
    if len(decoding.kept) < 2:
        raise _too_few(folder, decoding)
    paths = [folder.paths[i] for i in decoding.kept]
    labelling = classes_by_folder(file.name, paths, labelled)
    remarks = _left_out(folder, decoding)
    pool = photo_pool(
        decoding,
        PhotoItems(paths, Photos(folder, paths, max_pixels, brightest=decoding.brightest)),
        labelling.truth,
        labelling.classes,
        features,
        name=name or file.stem,
        title=file.name,
        notes=(*remarks, *labelling.notes),
    )
    return None if pool is None else replace(pool, test=labelling.test)


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


def _decode_all(
    folder: ImageFolder,
    decoding: Decoding,
    size: tuple[int, int] | None,
    mode: str | None,
    max_pixels: int,
    max_cells: int,
) -> Array:
    paths: list[str] = []

    def decoded() -> Iterator[Array]:
        for _, image in decoding.images(size=size, mode=mode, max_pixels=max_pixels):
            paths.append(folder.paths[decoding.kept[-1]])
            yield image

    images = stack_images(decoded(), len(folder.paths), folder.label, max_cells, paths)
    if len(images) < 2:
        raise _too_few(folder, decoding)
    return images


def _too_few(folder: ImageFolder, decoding: Decoding) -> InputError:
    few = f"{folder.label} holds {len(decoding.kept)} image(s) that can be read; a pool needs at least 2."
    return InputError(f"{few} {dropped_note(folder.paths, decoding.dropped)}" if decoding.dropped else few)


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
