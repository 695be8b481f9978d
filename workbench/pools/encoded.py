"""Pools whose features are named by a person: a file of vectors, an encoder, or several sets joined."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from workbench.arrays import Array, Ints
from workbench.errors import InputError
from workbench.pools.encoders import ENCODERS, is_encoder, open_encoder, weights_of
from workbench.pools.features.cache import WorkCache, cached_features
from workbench.pools.features.encoded import EncoderFeatureMap, JoinedFeatureMap, joined
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
    column = str(getattr(pool.feature_map, "column", "text"))
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
        feature_map = replace(feature_map, encoder=features)  # as the person named it, not as a file did
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
