"""Images as features made from the pool itself: gradients (HOG) beside learned patches, no download."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import PositiveInt

from workbench.arrays import Array, Floats, unmirrored
from workbench.errors import InputError
from workbench.numpy_predictor import copies_of, unit
from workbench.pools.features.cache import WorkCache
from workbench.pools.features.saved_map import Packed, Positive, SavedMap
from workbench.progress import part, tell

SIDE = 32
PATCH = 6
SMALLEST = 12
_CELL = 4
_PATCHES = 100_000
_PATCHES_AN_IMAGE = 200
_CENTRES = 256
_AXES = 128
_FIT_ROWS = 10_000
_STRIDE_ONE = 20_000
_LEAST_DEVIATION = 0.02
_VARIANCE_FLOOR = 0.01
_CHUNK = 64
_MOST_PIXELS = 512 * 512


class Block(NamedTuple):
    """Scaling with which one kind of feature joins the others: (values - mean) / deviation, then unit length.

    Attributes:
        mean: [d] over the pool.
        deviation: [d] sqrt(variance + 0.01 of the mean variance).
    """

    mean: Packed
    deviation: Packed


@dataclass(frozen=True, eq=False)
class ShapesFeatureMap(SavedMap):
    """Photos to 128 numbers: gradients and k-means patches, joined and projected (docs/math.md, 12).

    The features see a small copy of each image, and where images are larger than that a second one of what
    differs from the border; what is shown stays the original.

    Attributes:
        canvas: (height, width) of the copy.
        colour: whether the copy is in colour.
        white: the value of white in raw images; 255 for 8 bits.
        stride: pixels between patches.
        patch_mean: [p] mean of the contrast-normalised patches, p = 36 (108 in colour).
        whitening: [p, p] their ZCA transform.
        centres: [K, p] k-means centres of whitened patches.
        blocks: scaling of the HOG and of the patch block of each copy.
        mean: [d] mean of the joined blocks.
        axes: [n, d] their principal axes.
        brightest: value of files of more than eight bits a pixel that is white; None takes each file's own.
    """

    canvas: tuple[int, int]
    colour: bool
    white: Positive
    stride: PositiveInt
    patch_mean: Packed
    whitening: Packed
    centres: Packed
    blocks: tuple[Block, ...]
    mean: Packed
    axes: Packed
    brightest: Positive | None = None
    kind: ClassVar[str] = "shapes"
    shows_pixels: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"shape_{i + 1}" for i in range(len(self.axes)))

    @classmethod
    def learn(
        cls,
        images: Array | Sequence[Array],
        white: float = 255.0,
        side: int = SIDE,
        seed: int = 0,
        cache: WorkCache | None = None,
    ) -> tuple[ShapesFeatureMap, Floats]:
        """Learn patches and axes from a pool's images; the features come with them at no further cost.

        Args:
            images: [N, H, W(, 3)], or N images [h, w(, 3)] of any sizes and modes, in [0, white].
            white: the value of white.
            side: longest side of the copies that the features see, in pixels.
            seed: of the drawing of patches and rows.
            cache: where pieces are put down, so that a stop costs only the piece in hand.

        Returns:
            The map and the images' features [N, n] float32; the same images always give the same ones.

        Raises:
            InputError: images smaller than 12 pixels a side, or a side below that.
        """
        cache = cache or WorkCache()
        canvas, colour, n_copies = _canvas(images, side)
        if min(canvas) < SMALLEST:
            raise InputError(
                f"Images of {canvas[1]} x {canvas[0]} pixels are too small for shapes; from {SMALLEST} x "
                f'{SMALLEST} on they have some. Use their pixels: features="pixels".'
            )
        rng = np.random.default_rng([seed, len(images)])
        rows = np.sort(rng.permutation(len(images))[:_FIT_ROWS])
        copies = np.stack([_copies(images[row], canvas, colour, white, n_copies) for row in rows])
        with part(0.0, 0.15):
            tell(0.0, "Learning patches of the images")
            learnt = cache.once("patches", lambda: _patches(np.concatenate(copies), rng, seed))
        patch_mean, whitening, centres = learnt["mean"], learnt["whitening"], learnt["centres"]
        stride = 1 if len(images) <= _STRIDE_ONE else 2

        def raw(start: int, stop: int) -> Floats:
            return np.hstack(_described(copies[start:stop], patch_mean, whitening, centres, stride))

        share = len(rows) / len(images)  # of the images that the axes are learnt from
        with part(0.15, 0.2 + 0.7 * share):
            descriptors = cache.rows("learnt", len(rows), raw, _CHUNK, "Gradients and patches")
            tell(1.0, "Learning the axes")
        parts = [
            part
            for copy in np.split(descriptors, n_copies, axis=1)
            for part in np.split(copy, [copy.shape[1] - 4 * len(centres)], axis=1)
        ]
        blocks = tuple(map(_block, parts))
        joined = np.hstack(list(map(_joined, parts, blocks)))
        mean, axes = _principal_axes(joined)
        feature_map = cls(
            canvas, colour, float(white), stride, patch_mean, whitening, centres, blocks, mean, axes
        )
        features = np.empty((len(images), len(axes)), np.float32)
        features[rows] = feature_map._projected(joined)
        del descriptors, parts, joined
        other_rows = np.setdiff1d(np.arange(len(images)), rows)
        if len(other_rows):
            with part(0.2 + 0.7 * share, 1.0):
                features[other_rows] = cache.rows(
                    "others",
                    len(other_rows),
                    lambda start, stop: feature_map._features(
                        [images[row] for row in other_rows[start:stop]]
                    ),
                    _CHUNK,
                    "Shapes of the other images",
                )
        return feature_map, features

    def transform(self, rows: Any) -> Array:
        """Images to features.

        Args:
            rows: [N, H, W(, 3)] images, the same laid flat [N, H * W(* 3)] at the canvas' size, or N
                images of any sizes, values in [0, white]; such as are decoded when asked for have
                `brought(side=...)`.

        Returns:
            [N, n] float32 of length 1.

        Raises:
            InputError: what is no image.
        """
        if hasattr(rows, "brought"):
            images: Any = rows.brought(side=max(self.canvas) * self.n_copies, brightest=self.brightest)
        elif isinstance(rows, (list, tuple)):
            images = rows
        else:
            images = self._unflattened(np.asarray(rows))
        out = np.empty((len(images), len(self.axes)), np.float32)
        for start in range(0, len(images), _CHUNK):
            batch = range(start, min(start + _CHUNK, len(images)))
            out[start : start + _CHUNK] = self._features([images[row] for row in batch])
        return out

    def copy_of(self, image: Array) -> Array:
        """The copies of an image that the features are made of, as people can look at them.

        Args:
            image: [h, w(, 3)] as it is shown, in 0..255.

        Returns:
            [height, copies x width(, 3)] uint8, beside each other.
        """
        copies = np.hstack(_copies(np.asarray(image), self.canvas, self.colour, 255.0, self.n_copies))
        return np.clip(np.rint(copies * 255.0), 0, 255).astype(np.uint8)

    @property
    def n_copies(self) -> int:
        """Copies of an image: one, or a second of what differs from its border."""
        return len(self.blocks) // 2

    def _features(self, images: Sequence[Array]) -> Floats:
        copies = [_copies(image, self.canvas, self.colour, self.white, self.n_copies) for image in images]
        parts = _described(np.stack(copies), self.patch_mean, self.whitening, self.centres, self.stride)
        return self._projected(np.hstack(list(map(_joined, parts, self.blocks))))

    def _projected(self, joined: Floats) -> Floats:
        features: Floats = unit((joined - self.mean) @ self.axes.T)
        return features

    def _unflattened(self, images: Array) -> Array:
        if images.dtype.kind not in "fiub" or images.ndim not in (2, 3, 4):
            raise InputError(
                f"Images must be numbers [N, H, W] or [N, H, W, 3]; got shape {list(images.shape)}."
            )
        if images.ndim > 2:
            return images
        shape = (*self.canvas, 3) if self.colour else self.canvas
        if images.shape[1] != int(np.prod(shape)):
            raise InputError(
                f"Rows of {images.shape[1]} values are not images of {self.canvas[1]} x {self.canvas[0]} "
                "pixels."
            )
        return images.reshape(-1, *shape)

    def check(self) -> None:
        """Refuse a canvas that is none, and parts that do not fit each other."""
        height, width = self.canvas
        if not 0 < height * width <= _MOST_PIXELS:
            raise ValueError("its canvas is none")
        self._features([np.zeros(self.canvas, np.uint8)])


def _canvas(images: Array | Sequence[Array], side: int) -> tuple[tuple[int, int], bool, int]:
    """Size, mode and number of the copies: the pool's own size up to `side`; a square where sizes differ."""
    if side < SMALLEST:
        raise InputError(f"Shapes need a side of at least {SMALLEST} pixels; got {side}.")
    if isinstance(images, np.ndarray):
        shapes = {images.shape[1:]}
    else:  # copies that lie on disk know their shapes
        shapes = set(getattr(images, "shapes", None) or (image.shape for image in images))
    colour = any(len(shape) == 3 for shape in shapes)
    sizes = {shape[:2] for shape in shapes}
    n_copies = 2 if max(map(max, sizes)) > side else 1
    if len(sizes) > 1:
        return (side, side), colour, n_copies
    height, width = sizes.pop()
    size = shrunk(height, width, side)
    # strips get a square around them, in which patches have room
    return (size if min(size) >= SMALLEST else (max(size), max(size))), colour, n_copies


def shrunk(height: int, width: int, side: int) -> tuple[int, int]:
    """The size of an image brought to `side` on its longest side; smaller ones stay."""
    factor = min(1.0, side / max(height, width))
    return max(1, round(height * factor)), max(1, round(width * factor))


def _checked(image: Array) -> Floats:
    """An image as float32, or an error that says what it is."""
    values = np.asarray(image)
    grey_or_colour = values.ndim == 2 or (values.ndim == 3 and values.shape[2] == 3)
    if values.dtype.kind not in "fiub" or not grey_or_colour or 0 in values.shape:
        raise InputError(
            f"An image must be numbers [H, W] or [H, W, 3]; got {values.dtype} of {list(values.shape)}."
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError("An image has pixels that are not finite numbers. Correct it or leave it out.")
    return values.astype(np.float32)


def _copies(image: Array, canvas: tuple[int, int], colour: bool, white: float, n: int) -> list[Floats]:
    """One image [h, w(, 3)] on the canvas, in [0, 1]; of two the second one has what stands out in it."""
    form = {"canvas": canvas, "colour": colour, "white": white, "copies": n}
    copies: list[Floats] = copies_of(form, _checked(image), _resized)
    return copies


def _resized(values: Floats, size: tuple[int, int]) -> Floats:
    """Box average to [*size(, 3)]."""
    from PIL import Image

    planes = values[..., None] if values.ndim == 2 else values
    box = Image.Resampling.BOX
    parts = [
        np.asarray(Image.fromarray(planes[..., c]).resize(size[::-1], box)) for c in range(planes.shape[2])
    ]
    return parts[0] if values.ndim == 2 else np.stack(parts, axis=2)


def _hog(copies: Floats) -> Floats:
    """[n, d] oriented gradients: cells of 4, nine bins, blocks of 2 x 2 (Dalal & Triggs 2005)."""
    from skimage.feature import hog

    axis = -1 if copies.ndim == 4 else None
    return np.stack(
        [
            hog(copy, 9, (_CELL, _CELL), (2, 2), "L2-Hys", channel_axis=axis).astype(np.float32)
            for copy in copies
        ]
    )


def _windows(copies: Floats, stride: int) -> Floats:
    """[n, h, w, p] contrast-normalised patches."""
    if copies.ndim == 3:
        copies = copies[..., None]
    view = np.lib.stride_tricks.sliding_window_view(copies, (PATCH, PATCH), axis=(1, 2))
    view = view[:, ::stride, ::stride]
    return _normalised(view.reshape(*view.shape[:3], -1))


def _normalised(patches: Floats) -> Floats:
    centred = patches - patches.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(_VARIANCE_FLOOR))


def _patches(copies: Floats, rng: np.random.Generator, seed: int) -> dict[str, Array]:
    """Mean, ZCA transform and k-means centres of patches drawn from the copies."""
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    raw = _drawn_patches(copies, rng)
    mean, whitening = _zca(raw)
    kmeans = MiniBatchKMeans(
        min(_CENTRES, max(2, len(raw) // 10)), batch_size=2048, n_init=1, random_state=seed
    )
    with threadpool_limits(1):  # its batches are small: threads would wait for each other
        centres = kmeans.fit((raw - mean) @ whitening).cluster_centers_.astype(np.float32)
    return {"mean": mean, "whitening": whitening, "centres": centres}


def _drawn_patches(copies: Floats, rng: np.random.Generator) -> Floats:
    """[at most 100,000, p] normalised patches drawn evenly over the images, flat ones left out."""
    planes = copies[..., None] if copies.ndim == 3 else copies
    n, height, width = planes.shape[:3]
    size = min(_PATCHES, _PATCHES_AN_IMAGE * n)
    rows = rng.integers(n, size=size)
    tops = rng.integers(height - PATCH + 1, size=size)
    lefts = rng.integers(width - PATCH + 1, size=size)
    steps = np.arange(PATCH)
    patches = planes[
        rows[:, None, None], tops[:, None, None] + steps[:, None], lefts[:, None, None] + steps
    ]  # [n, 6, 6, channels]
    # the same order as `_windows`: channels first
    flat = np.moveaxis(patches, 3, 1).reshape(size, -1)
    lively = flat[flat.std(axis=1) > _LEAST_DEVIATION]
    if len(lively) < 10 * PATCH:
        lively = flat
    return _normalised(lively)


def _zca(patches: Floats) -> tuple[Floats, Floats]:
    """Mean [p] and ZCA transform [p, p] with a tenth of the mean eigenvalue as its floor."""
    mean = patches.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov((patches - mean).T.astype(np.float64)))
    values = np.maximum(values, 0.0)
    scales = 1.0 / np.sqrt(values + 0.1 * max(values.mean(), 1e-12))
    return mean, ((vectors * scales) @ vectors.T).astype(np.float32)


def _patch_code(
    copies: Floats, patch_mean: Floats, whitening: Floats, centres: Floats, stride: int
) -> Floats:
    """[n, 4 K] activations max(0, mean distance - distance) averaged over quadrants (Coates & Ng 2011)."""
    z = (_windows(copies, stride) - patch_mean) @ whitening
    squares = (z**2).sum(axis=-1, keepdims=True) + (centres**2).sum(axis=1) - 2.0 * (z @ centres.T)
    distance = np.sqrt(np.maximum(squares, 0.0, out=squares), out=squares)
    code = np.maximum(distance.mean(axis=-1, keepdims=True) - distance, 0.0)
    middle_row, middle_column = code.shape[1] // 2, code.shape[2] // 2
    quadrants = [
        part.mean(axis=(1, 2))
        for half in (code[:, :middle_row], code[:, middle_row:])
        for part in (half[:, :, :middle_column], half[:, :, middle_column:])
    ]
    return np.concatenate(quadrants, axis=1)


def _described(
    copies: Floats, patch_mean: Floats, whitening: Floats, centres: Floats, stride: int
) -> list[Floats]:
    """Gradients [n, d] and patch code [n, 4 K] of the first of copies [n, copies, h, w(, 3)], of the next."""
    return [
        part
        for copy in np.moveaxis(copies, 1, 0)
        for part in (_hog(copy), _patch_code(copy, patch_mean, whitening, centres, stride))
    ]


def _block(values: Floats) -> Block:
    variance = values.var(axis=0)
    deviation = np.sqrt(variance + 0.01 * variance.mean() + 1e-12)
    return Block(values.mean(axis=0), deviation.astype(np.float32))


def _joined(values: Floats, block: Block) -> Floats:
    joined: Floats = unit((values - block.mean) / block.deviation)
    return joined


def _principal_axes(values: Floats) -> tuple[Floats, Floats]:
    """Mean [d] and principal axes [n, d], signs fixed."""
    from scipy.linalg import eigh

    mean = values.mean(axis=0)
    centred = values - mean
    n = min(_AXES, len(values) - 1, values.shape[1])
    wide = len(values) < values.shape[1]
    products = centred @ centred.T if wide else centred.T @ centred
    _, vectors = eigh(products, subset_by_index=(len(products) - n, len(products) - 1))
    axes = (centred.T @ vectors).T[::-1] if wide else vectors[:, ::-1].T
    return mean, np.asarray(unmirrored(unit(axes)), dtype=np.float32)
