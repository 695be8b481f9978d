"""Pools whose features are named by a person: vectors, encoders, several sets; and a model's input."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Array, Ints
from workbench.errors import InputError
from workbench.pools.cells import texts_of
from workbench.pools.encoders import ENCODERS, is_encoder, of_document, open_encoder, weights_of
from workbench.pools.features.cache import WorkCache, cached_features
from workbench.pools.features.numbers import white_of
from workbench.pools.features.pieces import PiecesFeatureMap
from workbench.pools.features.shapes import ShapesFeatureMap
from workbench.pools.features.vectors import PREFIX, VectorFeatureMap
from workbench.pools.fingerprints import fingerprint_words
from workbench.pools.images.photos import PhotoItems
from workbench.pools.pool import FeatureMap, Pool
from workbench.pools.vectors import with_vectors
from workbench.progress import part
from workbench.reading import cut

_CHUNK = 64


def with_named_features(pool: Pool, features: str, learnt: Callable[[str], Pool]) -> Pool:
    """The same pool with the features that a person named.

    Args:
        pool: its items stay as they are shown.
        features: "embeddings:FILE", an encoder (`workbench.pools.encoders`), or several of these, and
            "shapes" or "pieces" where the items are images or texts, joined by "+".
        learnt: loads the pool with "shapes" or "pieces".

    Returns:
        The pool; its fingerprints tell the features too.

    Raises:
        InputError: features that these items cannot have.
    """
    parts = split_sets(features)
    if len(parts) == 1:
        return _with_one(pool, features, learnt)
    if len(set(parts)) != len(parts):
        raise InputError(f"features={cut(features)} names a set twice.")
    pools = []
    for number, name in enumerate(parts):
        with part(number / len(parts), (number + 1) / len(parts)):
            pools.append(_with_one(pool, name, learnt))
    maps: tuple[FeatureMap, ...] = tuple(member.feature_map for member in pools)
    matrix = joined([member.features for member in pools])
    return replace(
        pool,
        features=matrix,
        feature_map=JoinedFeatureMap(maps),
        fingerprints=fingerprint_words([member.fingerprints for member in pools]),
        plane=False,
        common_scale=True,
        notes=(
            *pool.notes,
            f"Features are {matrix.shape[1]} numbers of {len(parts)} sets: {', '.join(parts)}.",
        ),
    )


def split_sets(features: str) -> list[str]:
    """The sets that a text joins; a "+" inside a file's name does not part it."""
    names = "|".join(re.escape(name) for name in (*ENCODERS, PREFIX, "shapes", "pieces"))
    return re.split(rf"\+(?=(?:{names}|[\w.]+:[A-Za-z_]\w*(?:$|\+)))", features)


def _with_one(pool: Pool, features: str, learnt: Callable[[str], Pool]) -> Pool:
    if features.startswith(PREFIX):
        return with_vectors(pool, features)
    if features in ("shapes", "pieces"):
        if pool.kind != ("image" if features == "shapes" else "text"):
            raise InputError(f"These items are {pool.kind}s; they have no {features}.")
        return learnt(features)
    if not is_encoder(features):
        raise InputError(
            f"features={cut(features)} is no set of features. There are '{PREFIX}FILE', an ONNX file, "
            f"package.module:function, {', '.join(ENCODERS)}, and shapes or pieces to join with them."
        )
    if pool.kind not in ("image", "text"):
        raise InputError(f"Encoders read images or texts; these items are rows of a table: {cut(features)}.")
    column = pool.text_column
    brightest = pool.items.photos.brightest if isinstance(pool.items, PhotoItems) else None

    encode = open_encoder(features, pool.kind)
    own_code = ":" in features and not any(features.startswith(name) for name in ENCODERS)
    weights = "" if own_code else weights_of(features, pool.kind, encode)

    def read(places: Sequence[int]) -> Array:
        items = [pool.items.show(int(i)) for i in places]
        return encode([item.text if pool.kind == "text" else item.image for item in items])

    def learn(cache: WorkCache) -> tuple[FeatureMap, Array]:
        vectors = cache.rows(
            "vectors",
            len(pool),
            lambda start, stop: read(range(start, stop)),
            _CHUNK,
            f"The encoder {cut(features)}",
        )
        inner = VectorFeatureMap.of(vectors, features)
        encoder_map = EncoderFeatureMap(features, pool.kind, column, inner, weights, brightest)
        return encoder_map, inner.transform(vectors)

    def replay(encoder_map: FeatureMap, places: Ints) -> Array:
        assert isinstance(encoder_map, EncoderFeatureMap)
        vectors = WorkCache().rows(
            "vectors",
            len(places),
            lambda start, stop: read(places[start:stop].tolist()),
            _CHUNK,
            f"The encoder {cut(features)}, new items",
        )
        return encoder_map.vectors.transform(vectors)

    if own_code:
        feature_map, matrix = learn(WorkCache())  # a function of somebody's own may change
    else:
        feature_map, matrix = cached_features(
            "encoder",
            pool.fingerprints,
            (weights, pool.kind, column, brightest),
            learn,
            replay,
            encoder=features,
            weights=weights,
            brightest=brightest,
        )
        assert isinstance(feature_map, EncoderFeatureMap)
        # as the person and the table name them, not as a file did
        feature_map = replace(feature_map, encoder=features, column=column)
    name = sha256(features.encode()).digest()  # of the whole of it: many encoders begin alike
    salt = np.full(len(pool), np.uint64(int.from_bytes(name[:8], "little")))
    return replace(
        pool,
        features=matrix,
        feature_map=feature_map,
        fingerprints=fingerprint_words([pool.fingerprints, salt]),
        plane=False,
        common_scale=True,
        notes=(*pool.notes, f"Features are {matrix.shape[1]} numbers by the encoder {features}."),
    )


OF_FILES = ("folder", "labels")
"""Options that are a path: of the pictures that a table names, of the labels of idx images."""
YES = ("fetch",)
"""Options that are a person's yes: a document cannot give it."""
_NETWORKS = (".json", ".onnx")


def files_in(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths that options name.

    Args:
        options: of `load_pool`.

    Returns:
        Each path once: folders and labels beside the pool, vectors, networks in files.
    """
    paths = [str(options[name]) for name in OF_FILES if options.get(name)]
    paths += [path for path in map(_path_of, _sets(options)) if path]
    return tuple(dict.fromkeys(paths))


def with_files(options: Mapping[str, Any], places: Mapping[str, str]) -> dict[str, Any]:
    """The same options with other paths.

    Args:
        options: of `load_pool`.
        places: path -> path; those it does not have stay.
    """
    new_options = dict(options)
    for name in OF_FILES:
        if new_options.get(name):
            new_options[name] = places.get(str(new_options[name]), new_options[name])
    if _sets(options):
        parts = []
        for part in _sets(options):
            path = _path_of(part)
            new_path = places.get(path, path)
            if part.startswith(PREFIX):
                column = part.removeprefix(PREFIX).partition("#")[2]
                part = f"{PREFIX}{new_path}#{column}" if column else f"{PREFIX}{new_path}"
            elif path:
                part = new_path
            parts.append(part)
        new_options["features"] = "+".join(parts)
    return new_options


def _sets(options: Mapping[str, Any]) -> list[str]:
    features = options.get("features")
    return split_sets(features) if isinstance(features, str) and features else []


def _path_of(part: str) -> str:
    """The file that a set of features is read from; "" for none."""
    if part.startswith(PREFIX):
        return part.removeprefix(PREFIX).partition("#")[0]
    return part if part.lower().endswith(_NETWORKS) else ""


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


N_TERMS = 16


@dataclass(frozen=True)
class ModelInput:
    """An item as the features see it.

    Attributes:
        words: a sentence for people.
        image: the copy that the features are made of, [h, w(, 3)] uint8; None where there is none to show.
        terms: words and pieces of words with their weights, the largest first; a space in a piece is "_".
    """

    words: str
    image: Array | None = None
    terms: tuple[tuple[str, float], ...] = ()


def model_input_of(pool: Pool, item: int) -> ModelInput | None:
    """Input of the model for an item.

    Args:
        pool: it belongs to.
        item: its index.

    Returns:
        None for the rows of a table: what is shown of them is what the model has.
    """
    if pool.kind == "table":
        return None
    view = pool.items.show(item)
    content: Any = view.text if view.image is None else view.image
    if pool.image_shape is not None:
        return ModelInput("Its pixels, as they are shown.", view.image)
    return _input(pool.feature_map, content, item)


def _input(made_by: FeatureMap, content: Any, item: int) -> ModelInput:
    if isinstance(made_by, JoinedFeatureMap):
        parts = [_input(part, content, item) for part in made_by.parts]
        image = next((part.image for part in parts if part.image is not None), None)
        terms = next((part.terms for part in parts if part.terms), ())
        return ModelInput(" Beside that: ".join(part.words for part in parts), image, terms)
    if isinstance(made_by, ShapesFeatureMap):
        copy = made_by.copy_of(content)
        colour = "in colour" if copy.ndim == 3 else "in grey"
        height, width = made_by.canvas
        what_of = "A copy" if made_by.n_copies == 1 else "The whole and what stands out in it, in copies"
        words = f"{what_of} of {width} x {height} pixels {colour}: gradients and patches."
        return ModelInput(words, copy)
    if isinstance(made_by, PiecesFeatureMap):
        terms = made_by.heaviest(str(content), N_TERMS)
        if not terms:
            return ModelInput("Nothing: no word of this text occurs in another text of the pool.")
        return ModelInput("The terms that count most, out of all it knows.", terms=terms)
    if isinstance(made_by, EncoderFeatureMap):
        entry = ENCODERS.get(made_by.encoder)
        sentence = f" {entry.sentence}" if entry is not None else ""
        kind = "text" if made_by.items == "text" else "picture"
        return ModelInput(
            f"{len(made_by.columns)} numbers that the encoder {made_by.encoder} makes of it.{sentence}"
            f" The encoder itself reads the whole {kind}."
        )
    if isinstance(made_by, VectorFeatureMap):
        return ModelInput(f"Vector number {item + 1} of your file, {len(made_by.columns)} numbers of it.")
    return ModelInput(f"{len(made_by.columns)} numbers that were made of it.")
