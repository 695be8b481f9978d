"""Image files become arrays: every size is checked before a pixel is decoded."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from threading import RLock
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.features.numbers import size_text
from workbench.pools.features.shapes import shrunk
from workbench.reading import cut, reading

# Pillow's others may start programs (EPS) or read files an image names
_PILLOW_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
MAX_PIXELS = 25_000_000
"""Most pixels of an image that is learnt from as it is, and of what is shown of a photo."""
MAX_PHOTO_PIXELS = 100_000_000
"""Most pixels of a photo; those above `MAX_PIXELS` are decoded at reduced size, one at a time."""
MAX_NUMBERS = 100_000_000
"""Most pixels x colours of all images together: their features take four bytes each."""
_LARGE = RLock()  # one large image at a time: some are held whole for a moment
_ORIENTATION = 0x0112  # of EXIF
_NO_IMAGE = (InputError, OSError, ValueError, SyntaxError, EOFError)
_OF_FEATURES = 256  # longest side of copies that features are made of, at most


def decode_image(
    data: bytes,
    label: str,
    size: tuple[int, int] | None = None,
    mode: str | None = None,
    max_pixels: int = MAX_PIXELS,
    side: int | None = None,
    upright: bool = False,
    brightest: float | Callable[[], float | None] | None = None,
    clipped: Callable[[], object] | None = None,
) -> Array:
    """Decode one image file, its size checked before its pixels.

    Args:
        data: the file.
        label: for messages.
        size: (height, width) to bring it to.
        mode: "grey" or "colour" to bring it to; None keeps what it is.
        max_pixels: most pixels before resizing.
        side: longest side of a small copy; larger images are averaged down to it, others stay.
        upright: turn it as its camera says that it was held (EXIF), as browsers do.
        brightest: of an image of more than eight bits a pixel, the value that becomes white, or what says it
            where it is wanted; None takes it from the image itself (`brightness`).
        clipped: called where pixels are brighter than this value and so become white.

    Returns:
        [H, W] or [H, W, 3] uint8; transparency is laid on white.

    Raises:
        InputError: not an image, damaged, or too large.
    """
    from PIL import Image, ImageOps

    with (
        reading(label, "an image", "Leave it out."),
        opened(data, label) as picture,
        _LARGE if picture.width * picture.height > MAX_PIXELS else nullcontext(),
    ):
        width, height = picture.size
        if width * height > max_pixels:
            raise InputError(
                f"{label} is {width:,} x {height:,} pixels; the limit is {max_pixels:,} pixels an image. "
                "Make it smaller, or leave it out."
            )
        image: Any = picture
        if width * height > MAX_PIXELS:
            image = _reduced(picture, side or max(size or (0,)))
            if side is None and size is None:
                width, height = image.size
        elif side is not None:
            # JPEG: an eighth of the work; large copies are looked at, not learnt from
            enough = 4 * side if side <= _OF_FEATURES else side
            picture.draft(None, (enough, enough))
        if upright and picture.getexif().get(_ORIENTATION, 1) != 1:
            before = image.size
            image = ImageOps.exif_transpose(image)
            if image.size != before:
                width, height = height, width
        if image.mode.startswith(("I", "F")):
            values = np.asarray(image)
            white = brightest() if callable(brightest) else brightest
            if white and clipped and values.max() > white:
                clipped()
            eight = _eight_bits(values, label, white or _brightness(values), image.info)
            image = Image.fromarray(eight)
        elif image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
            was_grey = image.mode in ("1", "L", "LA")
            image = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
            image = image.convert("L" if was_grey else "RGB")
        grey = image.mode in ("1", "L")
        image = image.convert("L" if mode == "grey" or (mode is None and grey) else "RGB")
        if side is not None:
            size = shrunk(height, width, side)
            if image.size != (size[1], size[0]):
                image = image.resize((size[1], size[0]), Image.Resampling.BOX)
        elif size is not None and image.size != (size[1], size[0]):
            image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)
        return np.asarray(image, dtype=np.uint8)


def brightness(data: bytes, label: str, max_pixels: int = MAX_PHOTO_PIXELS) -> float | None:
    """The value that should be white in an image file of more than eight bits a pixel; None for any other.

    Args:
        data: the file.
        label: for messages.
        max_pixels: most pixels.

    Raises:
        InputError: as `decode_image`.
    """
    with reading(label, "an image"), opened(data, label) as picture:
        n_pixels = picture.width * picture.height
        if not picture.mode.startswith(("I", "F")) or n_pixels > max_pixels:
            return None
        with _LARGE if n_pixels > MAX_PIXELS else nullcontext():
            return _brightness(np.asarray(_reduced(picture, 0) if n_pixels > MAX_PIXELS else picture))


def _brightness(values: Array) -> float:
    """White of [H, W] numbers; a thousandth of the pixels, one at least, may be brighter.

    Whole numbers have as many bits as the others need: 8, 12 (microscopes, X-rays), 16 or more. Fractions go
    to 1, or to 255.
    """
    flat = values.ravel()
    place = max(0, flat.size - 2 - flat.size // 1_000)
    level = float(np.partition(flat, place)[place])
    if values.dtype.kind == "f" or not np.isfinite(level):
        return 1.0 if level <= 1 else 255.0
    bits = max(0, int(level)).bit_length()
    bits = next((depth for depth in (8, 12, 16) if bits <= depth), bits)
    return 2.0**bits - 1


def _eight_bits(values: Array, label: str, white: float, info: Mapping[Any, Any]) -> Array:
    """[H, W] numbers of more than eight bits, or fractions, as uint8; what is brighter than white is white.

    Args:
        values: of the pixels.
        label: for messages.
        white: as of `brightness`; of whole numbers the upper eight of its bits are kept.
        info: of the file; a value that is transparent becomes white.

    Raises:
        InputError: numbers below 0, or fractions beyond 0 to 255.
    """
    low, high = float(np.min(values)), float(np.max(values))
    fractions = values.dtype.kind == "f"
    if not (low >= 0 and np.isfinite(high)) or (fractions and high > 255):
        raise InputError(
            f"{label} has pixels from {low:g} to {high:g}; bring them to whole numbers from 0 on, or to "
            "fractions from 0 to 1."
        )
    if fractions:
        eight = np.rint(np.minimum(values * (255.0 if white <= 1 else 1.0), 255.0)).astype(np.uint8)
    else:
        bits = max(8, int(white).bit_length())
        eight = (np.minimum(values.astype(np.int64), 2**bits - 1) >> (bits - 8)).astype(np.uint8)
    transparent = info.get("transparency")
    if isinstance(transparent, int):
        eight = np.where(values == transparent, np.uint8(255), eight)
    return eight


def _reduced(picture: Any, side: int) -> Any:
    """A large image at a size that fits in memory several times over; a JPEG is never decoded whole.

    Args:
        picture: of which only the head was read.
        side: longest side that is wanted of it; 0 for as much as may be shown.

    Returns:
        The image, of at most `MAX_PIXELS`, and of at least 2 x `side` where it is that large.
    """
    from PIL import Image

    def fraction(size: tuple[int, int]) -> int:
        """By what whole number an image of a size may be divided."""
        divisor = max(1, max(size) // (2 * side)) if side else 1
        while size[0] * size[1] > divisor * divisor * MAX_PIXELS:
            divisor += 1
        return divisor

    factor = fraction(picture.size)
    # a JPEG has scales of its own, 1/2, 1/4 and 1/8: the largest that is no smaller than what is wanted
    picture.draft(None, (picture.width // factor, picture.height // factor))
    step = fraction(picture.size)
    if step == 1:
        return picture
    if picture.mode.startswith("I;"):
        return Image.fromarray(np.ascontiguousarray(np.asarray(picture)[::step, ::step]))
    return (picture.convert("RGBA") if picture.mode in ("P", "PA") else picture).reduce(step)


def opened(data: bytes, label: str) -> Any:
    """Pillow's picture of an image file, of which only the head was read.

    Args:
        data: the file.
        label: for messages.

    Raises:
        InputError: it would not fit in memory.
    """
    from PIL import Image

    # Pillow's own limit is lower than ours, which is checked before a pixel is decoded
    Image.MAX_IMAGE_PIXELS = max(Image.MAX_IMAGE_PIXELS or 0, MAX_PHOTO_PIXELS)
    try:
        return Image.open(io.BytesIO(data), formats=_PILLOW_FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise InputError(f"{label} is too large to open: {error}") from error


def is_image(data: bytes) -> bool:
    """True if the first bytes of a file are those of an image that can be read."""
    with suppress(*_NO_IMAGE), opened(data, "it"):
        return True
    return False


def n_frames(data: bytes) -> int:
    """Pages or frames of an image file, of which the first is the item; 1 where they cannot be counted."""
    with suppress(*_NO_IMAGE), opened(data, "it") as picture:
        return int(getattr(picture, "n_frames", 1))
    return 1


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


def _refuse_mixture(label: str, base: Array, image: Array, first: str, path: str) -> None:
    if base.ndim != image.ndim:
        grey, colour = (first, path) if base.ndim == 2 else (path, first)
        raise InputError(
            f"{label} mixes grey ({cut(grey)}) and colour images ({cut(colour)}). "
            'Bring them together with mode="grey" or mode="colour".'
        )
    raise InputError(
        f"{label} mixes sizes: {cut(first)} is {size_text(base.shape)}, {cut(path)} is "
        f"{size_text(image.shape)}. Bring them together with resize=({base.shape[0]}, {base.shape[1]})."
    )
