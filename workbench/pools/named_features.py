"""Features that a person names for a pool: vectors in a file, an encoder, several sets joined."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from workbench.arrays import Array, Ints, first_not_finite
from workbench.errors import InputError
from workbench.pools.encoders import ENCODERS, is_encoder, open_encoder, weights_of
from workbench.pools.features.cache import WorkCache, cached_features, saved_of
from workbench.pools.features.vectors import (
    PREFIX,
    EncoderFeatureMap,
    JoinedFeatureMap,
    VectorFeatureMap,
    joined,
)
from workbench.pools.fingerprints import fingerprint_rows, fingerprint_words
from workbench.pools.formats.files import File
from workbench.pools.formats.npy_files import NpzFile, read_npy
from workbench.pools.images.photos import PhotoItems
from workbench.pools.pool import FeatureMap, Pool
from workbench.progress import part
from workbench.reading import cut, letters, listed, reading

MAX_NUMBERS = 400_000_000
"""Most numbers in a file of vectors."""
_NAMES = ("embeddings", "vectors", "features", "X")
_ID_NAMES = ("id", "ids", "item", "path")
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
        return _with_set(pool, features, learnt)
    if len(set(parts)) != len(parts):
        raise InputError(f"features={cut(features)} names a set twice.")
    pools = []
    for number, name in enumerate(parts):
        with part(number / len(parts), (number + 1) / len(parts)):
            pools.append(_with_set(pool, name, learnt))
    maps: tuple[FeatureMap, ...] = tuple(member.feature_map for member in pools)
    matrix = joined([member.features for member in pools])
    words = fingerprint_words([member.fingerprints for member in pools])
    note = f"Features are {matrix.shape[1]} numbers of {len(parts)} sets: {', '.join(parts)}."
    return pool.with_features(JoinedFeatureMap(maps), matrix, note, words)


def split_sets(features: str) -> list[str]:
    """The sets that a text joins; a "+" inside a file's name does not part it."""
    names = "|".join(re.escape(name) for name in (*ENCODERS, PREFIX, "shapes", "pieces"))
    return re.split(rf"\+(?=(?:{names}|[\w.]+:[A-Za-z_]\w*(?:$|\+)))", features)


def _with_set(pool: Pool, features: str, learnt: Callable[[str], Pool]) -> Pool:
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

    def vectors_of(places: Sequence[int], cache: WorkCache, what: str) -> Array:
        def read(start: int, stop: int) -> Array:
            items = [pool.items.show(i) for i in places[start:stop]]
            return encode([item.text if pool.kind == "text" else item.image for item in items])

        return cache.rows("vectors", len(places), read, _CHUNK, what)

    def learn(cache: WorkCache) -> tuple[FeatureMap, Array]:
        vectors = vectors_of(range(len(pool)), cache, f"The encoder {cut(features)}")
        inner = VectorFeatureMap.of(vectors, features)
        encoder_map = EncoderFeatureMap(features, pool.kind, column, inner, weights, brightest)
        return encoder_map, inner.transform(vectors)

    def replay(encoder_map: FeatureMap, places: Ints) -> Array:
        assert isinstance(encoder_map, EncoderFeatureMap)
        vectors = vectors_of(places.tolist(), WorkCache(), f"The encoder {cut(features)}, new items")
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
    note = f"Features are {matrix.shape[1]} numbers by the encoder {features}."
    return pool.with_features(feature_map, matrix, note, fingerprint_words([pool.fingerprints, salt]))


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


def with_vectors(pool: Pool, features: str) -> Pool:
    """The same pool with vectors from a file in the place of its features.

    Args:
        pool: of anything; its items stay as they are shown.
        features: "embeddings:FILE" or "embeddings:FILE#column": NPY, NPZ or Parquet with a column of lists.
            Joined by id where the file has ids, else by the order of rows.

    Returns:
        The pool; its fingerprints tell the vectors too.

    Raises:
        InputError: vectors that are missing, of another length, not finite, or of an id met twice.
    """
    vectors, notes = vectors_for(features, pool.items.ids)
    source = features.removeprefix(PREFIX)
    # a file that grew would teach another centre and other axes
    feature_map = saved_of("vectors", source=source)
    if feature_map is None:
        feature_map = with_classes(VectorFeatureMap.of(vectors, source), features)
    matrix = feature_map.transform(vectors)
    words = fingerprint_words([pool.fingerprints, fingerprint_rows(np.asarray(vectors))])
    note = f"Features are {matrix.shape[1]} directions of the vectors given."
    return replace(pool, notes=(*pool.notes, *notes)).with_features(feature_map, matrix, note, words)


def vectors_for(features: str, ids: Sequence[str]) -> tuple[Array, tuple[str, ...]]:
    """The vectors [N, d] float32 of the items with these ids, and notes for people.

    Raises:
        InputError: as `with_vectors`.
    """
    path, _, column = features.removeprefix(PREFIX).partition("#")
    vectors, keys = _read(path, column)
    name = Path(path).name
    if (row := first_not_finite(vectors)) is not None:
        place = f"of {cut(keys[row])}" if keys is not None else f"in row {row + 1}"
        raise InputError(f"{name}: the vector {place} holds numbers that are not finite. Encode it again.")
    if keys is None:
        if len(vectors) != len(ids):
            raise InputError(
                f"{name} holds {len(vectors):,} vectors without ids, and the pool {len(ids):,} items. Add an "
                "array or a column of ids, or give one vector an item, in the pool's order."
            )
        return vectors, ()
    position: dict[str, int] = {}
    for row, key in enumerate(keys):
        if key in position:
            raise InputError(
                f"{name} has two vectors of {cut(key)} (rows {position[key] + 1} and {row + 1}). Leave one "
                "out."
            )
        position[key] = row
    position = {letters(key): row for key, row in position.items()} | position
    names = [key if key in position else letters(key) for key in map(str, ids)]
    missing = [key for key in names if key not in position]
    if missing:
        raise InputError(
            f"{name} has no vector of {len(missing):,} of the pool's {len(ids):,} items: "
            f"{listed(missing, 3)}; its ids look like {listed(keys[:2], 2)}. Encode them too, or correct the "
            "ids."
        )
    pool_ids = set(map(letters, names))
    unknown = [key for key in keys if letters(key) not in pool_ids]
    notes: tuple[str, ...] = ()
    if unknown:
        notes = (
            f"{len(unknown):,} vectors of items that are not in the pool left out: {listed(unknown, 3)}.",
        )
    return vectors[[position[key] for key in names]], notes


def with_classes(feature_map: VectorFeatureMap, features: str) -> VectorFeatureMap:
    """The map with the vectors of classes that an NPZ holds beside those of items, if it does.

    Args:
        feature_map: of the items' vectors.
        features: "embeddings:FILE", whose arrays `class_vectors` [K, d] and `class_names` [K] are looked for.

    Raises:
        InputError: one without the other, or of other shapes.
    """
    file = File.of(Path(features.removeprefix(PREFIX).partition("#")[0]).expanduser())
    if not file.plain_name.endswith(".npz"):
        return feature_map
    archive = NpzFile(file)
    flags = [name in archive for name in ("class_vectors", "class_names")]
    if not any(flags):
        return feature_map
    if not all(flags):
        raise InputError(
            f"{file.name} needs both arrays for a guess from its classes: class_vectors [K, d] and "
            "class_names [K]."
        )
    values = archive["class_vectors"]
    if values.ndim != 2 or values.shape[1] != len(feature_map.mean) or values.dtype.kind not in "fiub":
        raise InputError(
            f"{file.name}, class_vectors: {values.dtype} of shape {list(values.shape)}; the items' vectors "
            f"have {len(feature_map.mean)} numbers. Take both from one encoder."
        )
    if not np.isfinite(values).all():
        raise InputError(f"{file.name}, class_vectors: numbers that are not finite. Encode them again.")
    return feature_map.with_classes([*map(str, archive.texts("class_names", len(values)))], values)


def _read(path: str, column: str) -> tuple[Array, list[str] | None]:
    """[N, d] float32 vectors of a file, and their ids if it has any."""
    if not path:
        raise InputError(f"Name a file after {PREFIX!r}: an NPY, an NPZ or a Parquet file.")
    file = File.of(Path(path).expanduser())
    ids: list[str] | None = None
    if file.plain_name.endswith(".npy"):
        values: Any = read_npy(file)
    elif file.plain_name.endswith(".npz"):
        archive = NpzFile(file)
        name = column or archive.first_of(_NAMES)
        if name not in archive:
            raise InputError(
                f"{file.name} has no array {cut(name or _NAMES[0])}; it has {listed(list(archive))}. "
                f"Name one: {PREFIX}{path}#NAME."
            )
        values = archive[name]
        key = archive.first_of(_ID_NAMES)
        if key:
            ids = [str(value) for value in archive.texts(key, len(values))]
    elif file.plain_name.endswith((".parquet", ".pq")):
        values, ids = _read_parquet(file, column)
    else:
        raise InputError(f"{file.name} is no NPY, NPZ or Parquet file of vectors.")
    if values.ndim != 2 or values.dtype.kind not in "fiub" or 0 in values.shape:
        raise InputError(
            f"{file.name} holds {values.dtype} of shape {list(values.shape)}, not vectors [N, d]."
        )
    if values.size > MAX_NUMBERS:
        raise InputError(
            f"{file.name} holds {values.size:,} numbers; the limit is {MAX_NUMBERS:,}. Give fewer or shorter "
            "vectors."
        )
    return np.asarray(values, dtype=np.float32), ids


def _read_parquet(file: Any, column: str) -> tuple[Array, list[str] | None]:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with reading(file.name, "a Parquet file", "Write it again."):
        parquet = pq.ParquetFile(file.path)
        schema = parquet.schema_arrow
        kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
        lists = [field.name for field in schema if any(is_kind(field.type) for is_kind in kinds)]
        if (column and column not in lists) or (not column and len(lists) != 1):
            raise InputError(
                f"{file.name} has {'no' if column or not lists else 'several'} columns of lists"
                f"{f' called {cut(column)}' if column else ''}; it has {listed(schema.names)}. Name one: "
                f"{PREFIX}{file.name}#COLUMN."
            )
        name = column or lists[0]
        key = next((candidate for candidate in _ID_NAMES if candidate in schema.names), "")
        table = parquet.read(columns=[name, *([key] if key else [])])
        cells = table.column(name).combine_chunks()
        lengths = pc.list_value_length(cells).fill_null(-1).to_numpy(zero_copy_only=False)
        odd = np.flatnonzero(lengths != lengths[0])
        if len(odd) or not len(lengths):
            row = int(odd[0]) if len(odd) else 0
            raise InputError(
                f"{file.name}, column {name!r}: row {row + 1} holds {max(0, int(lengths[row]))} numbers, the "
                f"first {max(0, int(lengths[0]))}. All vectors must have one length."
            )
        flat = cells.flatten().to_numpy(zero_copy_only=False).astype(np.float32)
        ids = [str(value) for value in table.column(key).to_pylist()] if key else None
        return flat.reshape(len(lengths), -1), ids
