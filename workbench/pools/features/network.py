"""A trained network as a feature map: images to its features, in NumPy alone, saved and replayed as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Array, Floats
from workbench.errors import InputError
from workbench.pools.features.numbers import ImageFeatureMap
from workbench.pools.features.saved_map import Packed, SavedMap
from workbench.pools.formats.files import File
from workbench.pools.pool import ImageItems, Pool
from workbench.reading import cut, parse_json, reading
from workbench.writing import chosen_file

_FLOATS = 1 << 23  # of the widest layer's patches in one chunk


@dataclass(frozen=True)
class Layer:
    """One layer of a network.

    Attributes:
        kind: "convolution" or "dense", both followed by a rectifier, "pooling" (largest of 2 x 2) or "flat".
        weights: [h, w, c, d] or [c, d]; None for the others.
        bias: [d]; None for the others.
        padding: of a convolution, "same" or "valid".
    """

    kind: str
    weights: Packed | None = None
    bias: Packed | None = None
    padding: str = "valid"


@dataclass(frozen=True)
class NetworkFeatureMap(SavedMap):
    """Images to the features of a trained network, each row of mean 0 and variance 1.

    Attributes:
        pixels: from raw images to pixels in [0, 1].
        shift: [D] subtracted from the pixels.
        scale: [D] then divided by.
        layers: in order.
    """

    pixels: ImageFeatureMap
    shift: Packed
    scale: Packed
    layers: tuple[Layer, ...]
    kind: ClassVar[str] = "network"
    shows_pixels: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features."""
        widths = [len(layer.bias) for layer in self.layers if layer.bias is not None]
        return tuple(f"unit_{i + 1}" for i in range(widths[-1]))

    def transform(self, rows: Any) -> Array:
        """Images to features.

        Args:
            rows: [N, H, W(, 3)] images, or the same laid flat [N, D], in the pool's range of values.

        Returns:
            [N, d] float32.

        Raises:
            InputError: images of another size or mode.
        """
        images = np.asarray(rows)
        out = np.empty((len(images), len(self.columns)), np.float32)
        if not len(images):
            self.pixels.transform(images)
        step = max(1, _FLOATS // self._widest())
        for start in range(0, len(images), step):
            flat = (self.pixels.transform(images[start : start + step]) - self.shift) / self.scale
            out[start : start + step] = self._forward(flat)
        return out

    def check(self) -> None:
        """Refuse pixels and layers that do not fit each other."""
        super().check()
        self.transform(np.zeros((1, *self.pixels.shape)))

    def save(self, path: str | Path, *, replace: bool = False) -> None:
        """Write the map to a file that `load_pool(..., features=path)` reads.

        Args:
            path: should end in .json.
            replace: write over another such map that is there.

        Raises:
            InputError: a file that is there, with `replace` one that is no such map, or a place that cannot
                be written.
        """
        path = Path(path)
        if replace and path.exists():
            type(self).read(path)
        with chosen_file(path, replace=replace) as file:
            file.write(json.dumps(self.to_json()).encode() + b"\n")

    @classmethod
    def read(cls, path: str | Path) -> NetworkFeatureMap:
        """The map in a file.

        Raises:
            InputError: no such file, or not such a map.
        """
        file = File.of(path)
        form = "a saved feature map of a network"
        document = parse_json(file.content(), file.name, form)
        with reading(file.name, form):
            if document["kind"] != "network":
                raise InputError(
                    f"{file.name} holds no network's feature map but one of kind {cut(document['kind'])}."
                )
            return cls.from_json(document)

    def _widest(self) -> int:
        H, W = self.pixels.shape[:2]
        sizes = [layer.weights.shape for layer in self.layers if layer.weights is not None]
        return max([H * W] + [H * W * int(np.prod(size[:3])) for size in sizes if len(size) == 4])

    def _forward(self, flat: Floats) -> Floats:
        height, width, *colours = self.pixels.shape
        values = flat.reshape(len(flat), height, width, *(colours or [1]))
        for layer in self.layers:
            if layer.kind == "pooling":
                n, h, w, c = values.shape
                even = values[:, : h // 2 * 2, : w // 2 * 2]
                values = even.reshape(n, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))
            elif layer.kind == "flat":
                values = values.reshape(len(values), -1)
            else:
                weights, bias = np.asarray(layer.weights), np.asarray(layer.bias)
                flat_rows = layer.kind == "dense"
                product = values @ weights if flat_rows else _convolved(values, weights, layer.padding)
                values = np.maximum(product + bias, 0.0)
        centred = values - values.mean(axis=1, keepdims=True)
        return centred / np.sqrt(np.mean(centred * centred, axis=1, keepdims=True) + np.float32(1e-5))


def _convolved(values: Floats, weights: Floats, padding: str) -> Floats:
    h, w, c, d = weights.shape
    if padding == "same":
        values = np.pad(values, ((0, 0), ((h - 1) // 2, h // 2), ((w - 1) // 2, w // 2), (0, 0)))
    patches = np.lib.stride_tricks.sliding_window_view(values, (h, w), axis=(1, 2))  # [n, H, W, c, h, w]
    matrix = weights.transpose(2, 0, 1, 3).reshape(c * h * w, d)
    product: Floats = patches.reshape(*patches.shape[:3], -1) @ matrix
    return product


def pixels_of(pool: Pool) -> ImageFeatureMap:
    """From a pool's raw images to pixels in [0, 1], whatever its features are.

    Raises:
        InputError: not a pool of images.
    """
    if not isinstance(pool.items, ImageItems):
        if pool.kind == "image":
            raise InputError(
                f"The photos of pool {pool.name!r} have no common size, which a network needs. Open it with "
                'features="pixels", and resize= where sizes differ.'
            )
        raise InputError(f"Pool {pool.name!r} holds no images, so a network for images has nothing to read.")
    return ImageFeatureMap(tuple(int(n) for n in pool.items.images.shape[1:]), pool.items.white)


def with_network(pool: Pool, feature_map: NetworkFeatureMap) -> Pool:
    """The same pool with a network's features in the place of its own.

    Args:
        pool: of images.
        feature_map: of a network for images of that shape.

    Returns:
        The pool; its feature map is saved with every run and model, and replayed on new images.

    Raises:
        InputError: not a pool of images, or of another shape or range than the network's.
    """
    pixels = pixels_of(pool)
    if (pixels.shape, pixels.white) != (feature_map.pixels.shape, feature_map.pixels.white):
        raise InputError(
            f"The network was made for images of shape {list(feature_map.pixels.shape)} with white at "
            f"{feature_map.pixels.white:g}; those of pool {pool.name!r} have {list(pixels.shape)} and "
            f"{pixels.white:g}."
        )
    images: Sequence[Any] = pool.items.images  # type: ignore[attr-defined]
    d = len(feature_map.columns)
    note = f"Features are the {d} units a trained network ends in."
    return pool.with_features(feature_map, feature_map.transform(images), note)
