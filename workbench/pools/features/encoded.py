"""Features by an encoder, and several sets of features joined: maps that start from the items themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.cells import texts_of
from workbench.pools.encoders import of_document, open_encoder, weights_of
from workbench.pools.features.numbers import white_of
from workbench.pools.features.vectors import VectorFeatureMap
from workbench.pools.pool import FeatureMap
from workbench.reading import cut


@dataclass(frozen=True, eq=False)
class EncoderFeatureMap:
    """An encoder's vectors, centred, of unit length and projected.

    Attributes:
        encoder: as `features=` names it.
        items: what it reads, "image" or "text".
        column: of the texts, for rows of a table.
        vectors: from the encoder's vectors to features.
        weights: digest of the encoder that made the pool's features (`weights_of`); "" for code of one's own.
        brightest: value of files of more than eight bits a pixel that is white; None takes each file's own.
    """

    encoder: str
    items: str
    column: str
    vectors: VectorFeatureMap
    weights: str = ""
    brightest: float | None = None
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

    def to_json(self) -> dict[str, Any]:
        """The map as a JSON document; the encoder by its name, not its weights."""
        return {
            "kind": "encoder",
            "encoder": self.encoder,
            "items": self.items,
            "column": self.column,
            "weights": self.weights,
            "brightest": self.brightest,
            "vectors": self.vectors.to_json(),
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> EncoderFeatureMap:
        """Rebuild from `to_json`; a function of somebody's own is run only where a person named it."""
        encoder = of_document(str(document["encoder"]))
        if document["items"] not in ("image", "text"):
            raise ValueError("its items are neither images nor texts")
        vectors = VectorFeatureMap.from_json(document["vectors"])
        rest = str(document["column"]), vectors, str(document["weights"]), white_of(document)
        return cls(encoder, document["items"], *rest)


def other_encoder(name: str) -> InputError:
    """Message for an encoder that is not the one that made a pool's features."""
    return InputError(
        f"The encoder {cut(name)} is another one than these features were made by: its file, its version or "
        "its weights have changed. Bring the former one back, or make a new project with this one."
    )


@dataclass(frozen=True, eq=False)
class JoinedFeatureMap:
    """Sets of features side by side, each brought to unit length: the sum of their linear kernels.

    Attributes:
        parts: one map a set; all read the same rows.
    """

    parts: tuple[FeatureMap, ...]
    shows_pixels: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features, numbered by set."""
        return tuple(f"{i + 1}.{name}" for i, part in enumerate(self.parts) for name in part.columns)

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

    def to_json(self) -> dict[str, Any]:
        """The maps as a JSON document."""
        return {"kind": "joined", "parts": [part.to_json() for part in self.parts]}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> JoinedFeatureMap:
        """Rebuild from `to_json`."""
        from workbench.pools.features import feature_map_from_json

        parts = tuple(feature_map_from_json(part) for part in document["parts"])
        if len(parts) < 2:
            raise ValueError("it joins fewer than two sets")
        return cls(parts)


def joined(blocks: Sequence[Array]) -> Array:
    """Blocks [N, d] side by side, rows of each of length 1 / sqrt(number of blocks)."""
    parts = []
    for block in blocks:
        length = np.linalg.norm(block, axis=1, keepdims=True)
        parts.append(block / (np.where(length > 1e-12, length, 1.0) * np.sqrt(len(blocks))))
    return np.concatenate(parts, axis=1).astype(np.float32)
