"""Pools from arrays held in memory or mapped: rows of numbers, and images."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from workbench.arrays import Array, Ints, first_not_finite
from workbench.errors import InputError
from workbench.pools.features.cache import cached_features
from workbench.pools.features.numbers import MAX_IMAGE_FEATURES, ImageFeatureMap, NumberMap, size_text
from workbench.pools.features.shapes import SMALLEST, ShapesFeatureMap
from workbench.pools.features.vectors import IMAGE_FEATURES, PREFIX, is_vectors, without_features
from workbench.pools.fingerprints import fingerprint_rows
from workbench.pools.pool import ArrayItems, FeatureMap, ImageItems, Pool, RowNumbers, TestSplit
from workbench.reading import cut


def number_pool(
    name: str,
    features: Array,
    truth: Ints | None,
    classes: tuple[str, ...],
    names: tuple[str, ...],
    *,
    raw: Array | None = None,
    ids: Sequence[str] | None = None,
    feature_map: FeatureMap | None = None,
    test: TestSplit | None = None,
    title: str = "",
    description: str = "",
    common_scale: bool = False,
    notes: tuple[str, ...] = (),
) -> Pool:
    """A pool of rows of numbers.

    Args:
        name: of the pool.
        features: [N, D] finite.
        truth: [N] class codes, -1 unknown, or None.
        classes: names of the classes.
        names: [D] of the columns.
        raw: [N, D] the rows as their source holds them, where the features differ.
        ids: [N] ids, or None for row numbers.
        feature_map: from raw rows to features; None where they are the same.
        test: the source's own split.
        title: one line.
        description: a sentence; None says how large it is.
        common_scale: whether all columns share a unit.
        notes: what was done on the way.

    Returns:
        The pool.
    """
    raw = features if raw is None else raw
    of_classes = f", {len(classes)} classes" if classes else ""
    return Pool(
        name=name,
        kind="table",
        features=features,
        classes=classes,
        truth=None if truth is None else np.asarray(truth, dtype=np.int64),
        items=ArrayItems(RowNumbers(len(raw)) if ids is None else ids, raw, names),
        feature_map=feature_map or NumberMap(names),
        fingerprints=fingerprint_rows(raw),
        test=test,
        title=title or name,
        description=description or f"{len(raw):,} items, {len(names):,} features{of_classes}.",
        plane=features.shape[1] == 2,
        common_scale=common_scale,
        notes=notes,
    )


def own_split(n_train: int, n_test: int) -> TestSplit:
    """A source's own split: first the training items, then the test items."""
    n = n_train + n_test
    return TestSplit(0, n_test / n, np.arange(n_train), np.arange(n_train, n), given=True)


def image_pool(
    name: str,
    images: Array,
    truth: Ints | None,
    classes: tuple[str, ...],
    *,
    ids: Any = None,
    test: TestSplit | None = None,
    features: str = "pixels",
    resized: bool = False,
    mode: str | None = None,
    brightest: float | None = None,
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
        features: "pixels" in [0, 1], "shapes" learnt from the images (pixels below 12 a side),
            "embeddings:FILE" (the pool then has none yet: `load_pool` reads them), or the path of a saved
            `NetworkFeatureMap` (.json).
        resized: whether the images were brought to their size, as new ones then are.
        mode: "grey" or "colour" that they were brought to.
        brightest: value of their files that is white, where these have more than eight bits a pixel.
        title: one line.
        notes: what was done on the way.

    Returns:
        The pool; all features share one scale.

    Raises:
        InputError: an impossible shape, values outside the range, or no such features.
    """
    check_image_features(features)
    images, white = _checked_images(images)
    vectors = is_vectors(features)
    shape = tuple(int(n) for n in images.shape[1:])
    pool = partial(
        Pool,
        name,
        "image",
        classes=classes,
        truth=truth,
        items=ImageItems(RowNumbers(len(images)) if ids is None else ids, images, white),
        test=test,
        title=title or name,
        description=f"{len(images):,} {'grey' if len(shape) == 2 else 'colour'} images of {shape[0]} x "
        f"{shape[1]} pixels.",
        common_scale=True,
    )
    words = fingerprint_rows(images)
    if features == "shapes" and max(shape[:2]) >= SMALLEST:
        learnt, matrix = cached_features(
            "shapes",
            words,
            (shape, white),
            lambda cache: ShapesFeatureMap.learn(images, white, cache=cache),
            lambda shapes_map, rows: shapes_map.transform(images[rows]),
            white=white,
        )
        notes = (*notes, said_of_shapes(learnt))
        return pool(features=matrix, feature_map=learnt, fingerprints=words, notes=notes)
    pixels_map, pixel_notes = _pixels_map(images, white, features, resized, mode)
    pixels_map = replace(pixels_map, brightest=brightest)
    notes = (*notes, *pixel_notes)
    if vectors:
        bare, none = without_features(features, len(images))
        return pool(features=none, feature_map=bare, fingerprints=words, notes=notes)
    if not features.lower().endswith(".json"):
        matrix = pixels_map.transform(images)
        return pool(features=matrix, feature_map=pixels_map, fingerprints=words, notes=notes)
    from workbench.pools.features.network import NetworkFeatureMap, with_network

    none = np.empty((len(images), 0), np.float32)
    bare_pool = pool(features=none, feature_map=pixels_map, fingerprints=words, notes=notes)
    return with_network(bare_pool, NetworkFeatureMap.read(features))


def _checked_images(images: Array) -> tuple[Array, float]:
    """Images [N, H, W] or [N, H, W, 3] as they are kept, and the value that is white."""
    if images.ndim == 4 and images.shape[3] == 1:
        images = images[..., 0]
    if images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3) or 0 in images.shape:
        raise InputError(
            f"Images must be [N, H, W] grey or [N, H, W, 3] colour; got {list(images.shape)}. "
            "Drop transparency, and put colours last."
        )
    if len(images) < 2:
        raise InputError("A pool needs at least 2 images; got 1.")
    return _in_range(images)


def _pixels_map(
    images: Array, white: float, features: str, resized: bool, mode: str | None
) -> tuple[ImageFeatureMap, tuple[str, ...]]:
    """The map from images to their pixels, and notes on it."""
    shape = tuple(int(n) for n in images.shape[1:])
    size = int(np.prod(shape))
    if size > MAX_IMAGE_FEATURES:
        raise InputError(
            f"Images of {size_text(shape)} have {size:,} features; the limit is "
            f"{MAX_IMAGE_FEATURES:,}. Make them smaller, with resize= for a zip or a folder."
        )
    feature_map = ImageFeatureMap(shape, white, resized=resized, mode=mode)
    if features == "shapes":
        note = f"Features are the pixels: below {SMALLEST} pixels a side there are no shapes."
        return feature_map, (note,)
    return feature_map, ()


def check_image_features(features: str) -> None:
    """Refuse features that images do not have.

    Raises:
        InputError: says which they have.
    """
    of_file = is_vectors(features) or str(features).lower().endswith(".json")
    if features not in IMAGE_FEATURES and not of_file:
        raise InputError(
            f"features={cut(features)} is not one of {', '.join(map(repr, IMAGE_FEATURES))}, "
            f"'{PREFIX}FILE', or the file (.json) of a network's feature map."
        )


def said_of_shapes(feature_map: FeatureMap) -> str:
    """Features of a pool of images, where these are shapes, in words."""
    return (
        f"Features are {len(feature_map.columns)} shapes learnt from small copies of the images; shown "
        "are the originals."
    )


def _in_range(images: Array) -> tuple[Array, float]:
    if images.dtype == np.uint8:
        return images, 255.0
    if images.dtype == bool:
        return images.astype(np.uint8) * np.uint8(255), 255.0
    step = max(1, 8_000_000 // int(np.prod(images.shape[1:])))
    low, high = np.inf, -np.inf
    for start in range(0, len(images), step):
        part = images[start : start + step]
        if images.dtype.kind == "f" and (row := first_not_finite(part)) is not None:
            raise InputError(
                f"Image {start + row} has pixels that are not finite numbers. Correct it or leave it out."
            )
        low, high = min(low, float(part.min())), max(high, float(part.max()))
    if low < 0 or high > 255:
        raise InputError(
            f"Pixels run from {low:g} to {high:g}; they must lie in 0 to 255 (or 0 to 1). Rescale the images."
        )
    if images.dtype.kind in "iu":
        # 0 and 1 alone are black and white, as they are of bool and of fractions
        white = np.uint8(255 if high <= 1 else 1)
        return images.astype(np.uint8) * white, 255.0
    return np.asarray(images, dtype=np.float32), 1.0 if high <= 1.0 else 255.0
