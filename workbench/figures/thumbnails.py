"""Images of items: pixels made large enough to see, and sheets of several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.arrays import Array


def enlarged(image: Array, side: int, *, smooth: bool = True) -> Array:
    """An image `side` pixels on its longer edge; one that is larger already is left as it is.

    Args:
        image: [H, W] or [H, W, 3] uint8.
        side: wanted length of the longer edge, in pixels.
        smooth: interpolate (Catmull-Rom), because people read few large squares badly; else whole
            factors of sharp pixels.

    Returns:
        [H', W'(, 3)] uint8.

    Raises:
        ValueError: not an image of that shape.
    """
    from PIL import Image

    image = np.asarray(image)
    if image.ndim not in (2, 3) or 0 in image.shape or (image.ndim == 3 and image.shape[2] not in (3, 4)):
        raise ValueError(f"An image is [H, W], [H, W, 3] or [H, W, 4]; got {image.shape}.")
    height, width = image.shape[:2]
    longest = max(height, width)
    if longest >= side:
        return image
    if not smooth:
        factor = -(-side // longest)
        return np.repeat(np.repeat(image, factor, axis=0), factor, axis=1)
    tall, wide = max(1, round(height * side / longest)), max(1, round(width * side / longest))
    return np.asarray(Image.fromarray(image).resize((wide, tall), Image.Resampling.BICUBIC))


def thumbnail(image: Array, side: int) -> Array:
    """An image brought to `side` pixels on its longer edge, smaller or larger.

    Args:
        image: [H, W] or [H, W, 3] uint8.
        side: wanted length of the longer edge, in pixels.

    Returns:
        [H', W'(, 3)] uint8.

    Raises:
        ValueError: not an image of that shape.
    """
    longest = max(np.asarray(image).shape[:2], default=0)
    if longest <= side:
        return enlarged(image, side)
    from PIL import Image

    height, width = (max(1, round(n * side / longest)) for n in image.shape[:2])
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BOX, reducing_gap=2.0))


def tile(image: Array, side: int, *, ground: int = 128) -> Array:
    """A thumbnail in the middle of a square in colour, so that images of any sizes share a sheet.

    Args:
        image: [H, W], [H, W, 3] or [H, W, 4] uint8; transparency is left out.
        side: of the square, in pixels.
        ground: grey level around the image.

    Returns:
        [side, side, 3] uint8.
    """
    small = thumbnail(image, side)
    height, width = small.shape[:2]
    top, left = (side - height) // 2, (side - width) // 2
    out = np.full((side, side, 3), ground, dtype=np.uint8)
    out[top : top + height, left : left + width] = small[..., :3] if small.ndim == 3 else small[..., None]
    return out


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
