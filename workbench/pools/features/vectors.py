"""Vectors of one's own as features: of an encoder run elsewhere, in a file beside the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeGuard

import numpy as np

from workbench.arrays import Array, Floats, pack, unpack
from workbench.errors import InputError
from workbench.pools.encoders import is_encoder
from workbench.reading import cut

PREFIX = "embeddings:"
MAX_AXES = 256
_FIT_ROWS = 20_000
_CHUNK = 20_000


@dataclass(frozen=True, eq=False)
class VectorFeatureMap:
    """Vectors centred, brought to unit length and, above 256 columns, projected (docs/math.md, 12).

    Attributes:
        source: the file they came from, as it was named.
        mean: [d] of the pool's vectors.
        axes: [n, d] principal axes; None up to 256 columns.
        class_names: of the K classes that the file has vectors of, as an encoder with a text tower gives.
        class_features: [K, n] their features, from vectors less their own mean: texts and photos of one
            encoder lie around different centres.
    """

    source: str
    mean: Floats
    axes: Floats | None = None
    class_names: tuple[str, ...] = ()
    class_features: Floats | None = None
    shows_pixels: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"vector_{i + 1}" for i in range(len(self.mean if self.axes is None else self.axes)))

    @classmethod
    def of(cls, vectors: Array, source: str = "") -> VectorFeatureMap:
        """Centre and axes of a pool's vectors.

        Args:
            vectors: [N, d] finite.
            source: where they came from.

        Returns:
            The map.
        """
        from workbench.pools.projection import principal_axes

        step = -(-len(vectors) // _FIT_ROWS)
        rows = np.asarray(vectors[::step], dtype=np.float32)
        feature_map = cls(source, rows.mean(axis=0))
        n = min(MAX_AXES, len(rows) - 1)
        if vectors.shape[1] <= MAX_AXES or n < 1:
            return feature_map
        axes = principal_axes(feature_map.transform(rows), n).axes
        return replace(feature_map, axes=np.asarray(axes, dtype=np.float32))

    def transform(self, rows: Any) -> Array:
        """Vectors to features.

        Args:
            rows: [N, d] vectors of the same encoder.

        Returns:
            [N, n] float32.

        Raises:
            InputError: what is no such vectors.
        """
        d = len(self.mean)
        values: Any = rows
        if hasattr(rows, "columns") or not isinstance(rows, np.ndarray):
            try:
                values = np.asarray(rows, dtype=np.float32)
            except (TypeError, ValueError):
                values = np.empty(0)
        if values.ndim != 2 or values.shape[1] != d or values.dtype.kind not in "fiub":
            raise InputError(
                f"This model reads vectors of {d} numbers, as those of {cut(self.source)}; these rows are "
                "none. Run the same encoder on the new items, and give its vectors as an NPY file."
            )
        out = np.empty((len(values), len(self.columns)), np.float32)
        for start in range(0, len(values), _CHUNK):
            part = np.asarray(values[start : start + _CHUNK], dtype=np.float32) - self.mean
            if not np.isfinite(part).all():
                row = start + int((~np.isfinite(part)).any(axis=1).argmax())
                raise InputError(f"Vector {row + 1} holds numbers that are not finite.")
            length = np.linalg.norm(part, axis=1, keepdims=True)
            part /= np.where(length > 1e-12, length, 1.0)
            out[start : start + _CHUNK] = part if self.axes is None else part @ self.axes.T
        return out

    def with_classes(self, names: Sequence[str], vectors: Array) -> VectorFeatureMap:
        """The map that knows vectors of classes, too.

        Args:
            names: of K classes.
            vectors: [K, d] of the same encoder.
        """
        class_vectors = np.asarray(vectors, dtype=np.float32)
        centred = replace(self, mean=class_vectors.mean(axis=0)).transform(class_vectors)
        return replace(self, class_names=tuple(map(str, names)), class_features=centred)

    def of_classes(self, classes: Sequence[str]) -> tuple[Array, Array] | None:
        """Features [C, n] of classes by their names, and which of them [C] the file has a vector of.

        Capitals, `_` and spaces do not count. None where it has no vectors of classes.
        """
        if self.class_features is None:
            return None
        place = {_plain(name): k for k, name in enumerate(self.class_names)}
        places = [place.get(_plain(name), -1) for name in classes]
        has_vector = np.array([k >= 0 for k in places], dtype=bool)
        out = np.zeros((len(places), self.class_features.shape[1]), np.float32)
        out[has_vector] = self.class_features[np.array(places, dtype=np.int64)[has_vector]]
        return out, has_vector

    def to_json(self) -> dict[str, Any]:
        """The map as a JSON document; arrays as base64 of little-endian float32."""
        axes = None if self.axes is None else pack(self.axes)
        document: dict[str, Any] = {
            "kind": "vectors",
            "source": self.source,
            "mean": pack(self.mean),
            "axes": axes,
        }
        if self.class_features is not None:
            document |= {"classes": list(self.class_names), "of_classes": pack(self.class_features)}
        return document

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> VectorFeatureMap:
        """Rebuild from `to_json`."""
        mean = unpack(document["mean"])
        axes = None if document["axes"] is None else unpack(document["axes"])
        if mean.ndim != 1 or not len(mean) or (axes is not None and axes.shape[1:] != mean.shape):
            raise ValueError("its axes do not fit its mean")
        feature_map = cls(str(document["source"]), mean, axes)
        if "of_classes" not in document:
            return feature_map
        names, features = tuple(map(str, document["classes"])), unpack(document["of_classes"])
        if features.shape != (len(names), len(feature_map.columns)):
            raise ValueError("its vectors of classes do not fit its columns")
        return replace(feature_map, class_names=names, class_features=features)


def _plain(name: str) -> str:
    return " ".join(str(name).replace("_", " ").casefold().split())


def is_vectors(features: Any) -> TypeGuard[str]:
    """True if an option of features names vectors: a file of them, an encoder, or several sets joined."""
    if not isinstance(features, str):
        return False
    return features.startswith(PREFIX) or is_encoder(features) or _joins(features)


def _joins(features: str) -> bool:
    first, plus, second = features.partition("+")
    return bool(plus) and (first in ("shapes", "pieces") or is_encoder(first)) and bool(second)


def without_features(features: str, n: int) -> tuple[VectorFeatureMap, Array]:
    """A map and [n, 0] features that hold the place of vectors until `load_pool` has read them."""
    return VectorFeatureMap(features, np.zeros(0, np.float32)), np.empty((n, 0), np.float32)
