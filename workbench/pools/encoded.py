"""Pools whose features are named by a person: a file of vectors, an encoder, or several sets joined."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.arrays import Array
from workbench.errors import InputError
from workbench.pools.encoders import ENCODERS, is_encoder, open_encoder
from workbench.pools.features.cache import cached_features
from workbench.pools.features.encoded import EncoderFeatureMap, JoinedFeatureMap, joined
from workbench.pools.features.vectors import PREFIX, VectorFeatureMap
from workbench.pools.fingerprints import fingerprint_words
from workbench.pools.pool import FeatureMap, Pool
from workbench.pools.vectors import with_vectors
from workbench.reading import cut

_CHUNK = 256


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
    pools = [_with_one(pool, part, learnt) for part in parts]
    maps: tuple[FeatureMap, ...] = tuple(one.feature_map for one in pools)
    found = joined([one.features for one in pools])
    return replace(
        pool,
        features=found,
        feature_map=JoinedFeatureMap(maps),
        fingerprints=fingerprint_words([one.fingerprints for one in pools]),
        plane=False,
        common_scale=True,
        notes=(
            *pool.notes,
            f"Features are {found.shape[1]} numbers of {len(parts)} sets: {', '.join(parts)}.",
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

    def learn() -> tuple[FeatureMap, Array]:
        vectors = _encoded(pool, features)
        inner = VectorFeatureMap.of(vectors, features)
        return EncoderFeatureMap(features, pool.kind, column, inner), inner.transform(vectors)

    if ":" in features and not any(features.startswith(name) for name in ENCODERS):
        feature_map, found = learn()  # a function of somebody's own may change
    else:
        feature_map, found = cached_features(
            "encoder", pool.fingerprints, (features, pool.kind, column), learn
        )
    salt = np.full(len(pool), np.uint64(int.from_bytes(features.encode()[:8].ljust(8, b"\0"), "little")))
    return replace(
        pool,
        features=found,
        feature_map=feature_map,
        fingerprints=fingerprint_words([pool.fingerprints, salt]),
        plane=False,
        common_scale=True,
        notes=(*pool.notes, f"Features are {found.shape[1]} numbers by the encoder {features}."),
    )


def _encoded(pool: Pool, features: str) -> Array:
    """[N, d] vectors of all items, some at a time."""
    encode = open_encoder(features, pool.kind)
    out = []
    for start in range(0, len(pool), _CHUNK):
        shown = [pool.items.show(i) for i in range(start, min(start + _CHUNK, len(pool)))]
        some: Sequence[Any] = [one.text if pool.kind == "text" else one.image for one in shown]
        out.append(encode(some))
        if out[-1].shape[1] != out[0].shape[1]:
            raise InputError(f"The encoder {cut(features)} returned vectors of different lengths.")
    return np.concatenate(out)
