"""Vectors as features: those of a file, those that an encoder makes, and several sets side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, TypeGuard

import numpy as np
from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator

from workbench.arrays import Array, first_not_finite
from workbench.errors import InputError
from workbench.numpy_predictor import unit
from workbench.pools.cells import texts_of
from workbench.pools.encoders import is_encoder, of_document, open_encoder, weights_of
from workbench.pools.features.saved_map import Packed, Positive, SavedMap
from workbench.pools.pool import FeatureMap
from workbench.reading import cut

PREFIX = "embeddings:"
IMAGE_FEATURES = ("pixels", "shapes")
"""Features of images that are no vectors."""
MAX_AXES = 256
_FIT_ROWS = 20_000
_CHUNK = 20_000


@dataclass(frozen=True, eq=False)
class VectorFeatureMap(SavedMap):
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
    mean: Packed
    axes: Packed | None = None
    class_names: tuple[str, ...] = ()
    class_features: Packed | None = None
    kind: ClassVar[str] = "vectors"
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
            if (row := first_not_finite(part)) is not None:
                raise InputError(f"Vector {start + row + 1} holds numbers that are not finite.")
            part = unit(part)
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

    def check(self) -> None:
        """Refuse axes and vectors of classes that do not fit the mean."""
        axes, features = self.axes, self.class_features
        if (
            self.mean.ndim != 1
            or not len(self.mean)
            or not (axes is None or axes.shape[1:] == self.mean.shape)
        ):
            raise ValueError("its axes do not fit its mean")
        if features is not None and features.shape != (len(self.class_names), len(self.columns)):
            raise ValueError("its vectors of classes do not fit its columns")


def _plain(name: str) -> str:
    return " ".join(str(name).replace("_", " ").casefold().split())


@dataclass(frozen=True, eq=False)
class EncoderFeatureMap(SavedMap):
    """An encoder's vectors, centred, of unit length and projected.

    Attributes:
        encoder: as `features=` names it.
        items: what it reads, "image" or "text".
        column: of the texts, for rows of a table.
        vectors: from the encoder's vectors to features.
        weights: digest of the encoder that made the pool's features (`weights_of`); "" for code of one's own.
        brightest: value of files of more than eight bits a pixel that is white; None takes each file's own.
    """

    encoder: Annotated[str, AfterValidator(of_document)]
    items: Annotated[str, Field(pattern=r"^(image|text)$")]
    column: str
    vectors: VectorFeatureMap
    weights: str = ""
    brightest: Positive | None = None
    kind: ClassVar[str] = "encoder"
    shows_pixels: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.vectors.columns

    def transform(self, rows: Any) -> Array:
        """Items to features.

        Args:
            rows: N texts, or a table with their column; or N images [H, W(, 3)].

        Returns:
            [N, n] float32.

        Raises:
            InputError: what the encoder cannot read, or an encoder that is not installed here or is another
                one under the same name.
        """
        if hasattr(rows, "brought"):
            rows = rows.brought(brightest=self.brightest)
        items: Sequence[Any] = texts_of(rows, self.column) if self.items == "text" else rows
        encode = open_encoder(self.encoder, self.items)
        if self.weights and weights_of(self.encoder, self.items, encode) != self.weights:
            raise other_encoder(self.encoder)
        return self.vectors.transform(encode(items))


def other_encoder(name: str) -> InputError:
    """Message for an encoder that is not the one that made a pool's features."""
    return InputError(
        f"The encoder {cut(name)} is another one than these features were made by: its file, its version or "
        "its weights have changed. Bring the former one back, or make a new project with this one."
    )


def _rebuilt(document: dict[str, Any]) -> FeatureMap:
    from workbench.pools.features import feature_map_from_json

    return feature_map_from_json(document)


_Part = Annotated[FeatureMap, PlainValidator(_rebuilt), PlainSerializer(lambda part: part.to_json())]


@dataclass(frozen=True, eq=False)
class JoinedFeatureMap(SavedMap):
    """Sets of features side by side, each brought to unit length: the sum of their linear kernels.

    Attributes:
        parts: one map a set; all read the same rows.
    """

    parts: Annotated[tuple[_Part, ...], Field(min_length=2)]
    kind: ClassVar[str] = "joined"
    shows_pixels: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features, numbered by set."""
        return tuple(f"{i + 1}.{name}" for i, part in enumerate(self.parts) for name in part.columns)

    @property
    def column(self) -> str:
        """Name of the texts' column in a table, which the sets share; "" for none."""
        return next((part.column for part in self.parts if hasattr(part, "column")), "")

    def transform(self, rows: Any) -> Array:
        """Items to features.

        Args:
            rows: as every part takes them.

        Returns:
            [N, D] float32.

        Raises:
            InputError: vectors of a file among the sets (new items have none), or as the parts raise.
        """
        if any(isinstance(part, VectorFeatureMap) for part in self.parts):
            raise InputError(
                "These features join vectors of a file with others; new items have no such vectors. Use "
                "features that are made from the items alone for a model that must predict."
            )
        return joined([part.transform(rows) for part in self.parts])


def joined(blocks: Sequence[Array]) -> Array:
    """Blocks [N, d] side by side, rows of each of length 1 / sqrt(number of blocks)."""
    parts = []
    for block in blocks:
        length = np.linalg.norm(block, axis=1, keepdims=True)
        parts.append(block / (np.where(length > 1e-12, length, 1.0) * np.sqrt(len(blocks))))
    return np.concatenate(parts, axis=1).astype(np.float32)


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
