"""Images of items: pixels made large enough to see, and sheets of several."""

from collections.abc import Sequence

import numpy as np

from workbench.arrays import Array


def magnified(image: Array, side: int) -> Array:
    """An image in sharp pixels, by the whole factor that makes its longer edge `side` pixels or more.

    Args:
        image: [H, W] or [H, W, 3] uint8.
        side: wanted length of the longer edge, in pixels.

    Returns:
        [H', W'(, 3)] uint8.
    """
    factor = -(-side // max(image.shape[:2]))
    return np.repeat(np.repeat(image, factor, axis=0), factor, axis=1)


def tile(image: Array, side: int) -> Array:
    """An image in the middle of a grey square in colour, so that images of any sizes share a sheet.

    Args:
        image: [H, W], [H, W, 3] or [H, W, 4] uint8; transparency is left out.
        side: of the square, in pixels.

    Returns:
        [side, side, 3] uint8.
    """
    from PIL import Image, ImageOps

    picture = Image.fromarray(image).convert("RGB")
    # a line of pixels stays one, however long it is
    size = [max(1, round(n * side / max(picture.size))) for n in picture.size]
    fitted = picture.resize(size, reducing_gap=2.0)
    return np.asarray(ImageOps.pad(fitted, (side, side), color="#808080"))


def sheet(images: Sequence[Array], columns: int, *, gap: int = 1, ground: int = 255) -> Array:
    """Several images of one size side by side.

    Args:
        images: each [H, W] or [H, W, 3] uint8.
        columns: in a row.
        gap: pixels between them.
        ground: grey level between them.

    Returns:
        One image [H', W'(, 3)] uint8.

    Raises:
        ValueError: no image, or images of different shapes.
    """
    if not len(images):
        raise ValueError("A sheet needs at least one image.")
    shapes = {np.asarray(image).shape for image in images}
    if len(shapes) > 1:
        raise ValueError(f"Images of one sheet share one shape; got {sorted(shapes)}.")
    height, width, *channels = np.asarray(images[0]).shape
    rows = -(-len(images) // columns)
    out = np.full(
        (rows * (height + gap) - gap, columns * (width + gap) - gap, *channels), ground, dtype=np.uint8
    )
    for i, image in enumerate(images):
        top, left = (i // columns) * (height + gap), (i % columns) * (width + gap)
        out[top : top + height, left : left + width] = image
    return out
