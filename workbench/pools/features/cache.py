"""Learnt features kept on disk: read again, gone on with after a stop, and grown with their pool."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Array, Ints
from workbench.errors import InputError
from workbench.progress import tell
from workbench.writing import alone_in, write_whole

if TYPE_CHECKING:
    from workbench.pools.pool import FeatureMap

VERSION = 2
"""Of what is learnt: a change of a map's recipe makes it one more."""
WORTH = 500
"""Items from which on learning takes longer than reading."""
MAX_BYTES = 2 << 30
_MAPPED = 32 << 20  # bytes of features from which on they stay on disk and are read where they are looked at
_BLOCK = 1 << 20
_FLUSH = 1.0  # seconds of work that a stop may cost
_UNREADABLE = (OSError, ValueError, TypeError, KeyError, EOFError)
"""Errors of reading a file that is not there, damaged, or of another version."""
_SAVED: ContextVar[Mapping[str, Any] | None] = ContextVar("saved map", default=None)


class WorkCache:
    """A store of work on features, piece by piece, so that a stop costs only the piece in hand.

    Args:
        place: a folder that the same work finds again; None keeps nothing.
    """

    def __init__(self, place: Path | None = None) -> None:
        self._place = place

    def map(self, make: Callable[[], FeatureMap]) -> FeatureMap:
        """A map that is learnt once."""
        return _map_in(self.once("map", lambda: {"map": _octets(make())})["map"])

    def once(self, name: str, make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
        """Arrays that are made once; read where they were made before."""
        return make() if self._place is None else _once(self._place / name, make)

    def rows(self, name: str, n: int, make: Callable[[int, int], Array], step: int, what: str) -> Array:
        """[n, d] float32 rows made some at a time; those made before a stop are read.

        Args:
            name: of these rows in this work.
            n: how many.
            make: (start, stop) -> [stop - start, d].
            step: rows at a time; the same one every time, so that the same rows come out.
            what: is being done, for people.
        """
        values, n_done = self._begun(name, n)
        n_resumed = n_saved = n_done
        at = monotonic()
        try:
            while n_done < n:
                tell(n_done / n, f"{what}: {n_done:,} of {n:,}")
                stop = min(n_done + step, n)
                rows = np.asarray(make(n_done, stop), dtype=np.float32)
                if values is not None and values.shape[1] != rows.shape[1]:
                    if n_done > n_resumed:
                        raise InputError(f"{what}: the vectors are of different lengths.")
                    values, n_done, n_resumed = None, 0, 0  # those put down are of something else
                    continue
                if values is None:
                    values = self._new(name, (n, rows.shape[1]))
                values[n_done:stop] = rows
                n_done = stop
                if monotonic() - at > _FLUSH:
                    self._put_down(name, values, n_done)
                    n_saved, at = n_done, monotonic()
        finally:
            if values is not None and n_done > n_saved:
                self._put_down(name, values, n_done)
        assert values is not None
        return values

    def _begun(self, name: str, n: int) -> tuple[Array | None, int]:
        if self._place is None:
            return None, 0
        try:
            document = json.loads((self._place / f"{name}.json").read_text(encoding="utf-8"))
            n_done, file = int(document["done"]), str(document["file"])
            if Path(file).name != file:
                return None, 0
            values = np.load(self._place / file, mmap_mode="r+", allow_pickle=False)
        except _UNREADABLE:
            return None, 0
        sound = values.ndim == 2 and len(values) == n and 0 <= n_done <= n and values.dtype == np.float32
        return (values, n_done) if sound else (None, 0)

    def _new(self, name: str, shape: tuple[int, int]) -> Array:
        """Room for rows, in a file of its own: one that somebody else has mapped is never cut short."""
        if self._place is not None:
            path = self._place / f"{name}-{secrets.token_hex(4)}.npy"
            try:
                self._place.mkdir(parents=True, exist_ok=True, mode=0o700)
                return _with_room(path, shape)
            except OSError:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
        return np.empty(shape, np.float32)

    def _put_down(self, name: str, values: Array, n_done: int) -> None:
        if self._place is None or not isinstance(values, np.memmap):
            return
        try:
            values.flush()
            document = json.dumps({"file": Path(str(values.filename)).name, "done": n_done})
            write_whole(self._place / f"{name}.json", document, synced=False)
        except OSError:  # a full disk, or somebody else has finished the same work and put it away
            return

    def done(self) -> None:
        """The work is finished and kept elsewhere."""
        if self._place is not None:
            shutil.rmtree(self._place, ignore_errors=True)


def _with_room(path: Path, shape: tuple[int, int]) -> Array:
    """A mapped array in a new file whose every page is on the disk: a write to any other ends the process.

    Raises:
        OSError: the disk has no room for it.
    """
    with path.open("xb") as file:
        np.lib.format.write_array_header_2_0(
            file,
            {
                "descr": np.lib.format.dtype_to_descr(np.dtype(np.float32)),
                "fortran_order": False,
                "shape": shape,
            },
        )
        start, size = file.tell(), 4 * shape[0] * shape[1]
        if hasattr(os, "posix_fallocate"):
            file.flush()
            os.posix_fallocate(file.fileno(), 0, start + size)
        else:
            for at in range(0, size, _BLOCK):
                file.write(bytes(min(_BLOCK, size - at)))
    return np.load(path, mmap_mode="r+", allow_pickle=False)


@contextmanager
def _one_writer(folder: Path) -> Iterator[None]:
    """A block that one thread of one program is in for a folder; the others wait and can be stopped."""
    with ExitStack() as turn:
        with suppress(OSError):  # nothing can be kept there
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            turn.enter_context(alone_in(folder, _stopped))
        try:
            yield
        finally:
            with suppress(OSError):  # there are pieces for the next one
                folder.rmdir()


def _stopped() -> bool:
    tell(0.0, "Waiting for the same features, which are being learnt already")  # stops here
    return False


@contextmanager
def saved_map(document: Mapping[str, Any]) -> Iterator[None]:
    """Within the block, pools that are loaded keep this map where they would learn another of its kind.

    A pool that grew then costs only its new items.

    Args:
        document: of a map, as `to_json` wrote it.
    """
    token = _SAVED.set(document)
    try:
        yield
    finally:
        _SAVED.reset(token)


def saved_of(kind: str, **fixed: Any) -> FeatureMap | None:
    """The map of this kind within `saved_map`, or the part of a joined one; None where there is none.

    Args:
        kind: of the map.
        fixed: what its document must say.
    """
    from workbench.pools.features import feature_map_from_json

    document = _saved(_SAVED.get(), kind, fixed)
    return None if document is None else feature_map_from_json(document)


def saved_white() -> float | None:
    """The value that is white in pictures of more than eight bits a pixel, of the map within `saved_map`."""
    document = _SAVED.get() or {}
    whites = (part.get("brightest") for part in document.get("parts", [document]))
    return next((float(white) for white in whites if white), None)


def cached_features(
    kind: str,
    fingerprints: Array,
    options: Any,
    learn: Callable[[WorkCache], tuple[FeatureMap, Array]],
    replay: Callable[[FeatureMap, Ints], Array] | None = None,
    **fixed: Any,
) -> tuple[FeatureMap, Array]:
    """A map learnt from a pool, and its features; read where this version learnt them before.

    Args:
        kind: of the map.
        fingerprints: [N] of the items.
        options: everything else the map depends on.
        learn: learns them, putting pieces down with the cache; a stop in the middle leaves these, and
            the same call later goes on from there.
        replay: (map, places of some items) -> their features, for a pool that has grown.
        fixed: what a saved map's document must say to be taken up.

    Returns:
        The map and [N, D] features. What cannot be read or written is learnt again.
    """
    document = None if replay is None else _saved(_SAVED.get(), kind, fixed)
    if document is not None and replay is not None:
        return _grown(kind, fingerprints, document, replay)
    if len(fingerprints) < WORTH:
        return learn(WorkCache())
    place = _place(kind, options, fingerprints)
    pair = _read(place, len(fingerprints))
    if pair is not None:
        return pair
    part = place.with_name(place.name + ".part")
    with _one_writer(part):
        pair = _read(place, len(fingerprints))  # somebody else may have learnt them in the meantime
        if pair is None:
            cache = WorkCache(part)
            pair = learn(cache)
            _write(place, *pair, fingerprints)
            cache.done()
    return pair


def kept_arrays(kind: str, key: Any, make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """Arrays that take long to make, read where this version made them before.

    Args:
        kind: of what they are.
        key: everything they depend on; its `repr` tells one from another.
        make: makes them.

    Returns:
        The arrays; those of 32 MB and more stay on disk where they were kept. What cannot be read or
        written is made.
    """
    return _once(_place(kind, key), make)


def _once(place: Path, make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """Arrays of a folder, made where they cannot be read."""
    arrays = _arrays_in(place)
    if arrays is None:
        arrays = make()
        _put(place, arrays)
    return arrays


def _arrays_in(place: Path) -> dict[str, Array] | None:
    """The arrays of a folder; None where they are not there, damaged, or of another version."""
    try:
        names = json.loads((place / "names.json").read_text(encoding="utf-8"))
        arrays = {str(name): _loaded(place / f"{name}.npy") for name in names}
        os.utime(place)
    except _UNREADABLE:
        return None
    return arrays


def _saved(document: Any, kind: str, fixed: Mapping[str, Any]) -> dict[str, Any] | None:
    """The document of a map of this kind, or of the part of a joined one."""
    if not isinstance(document, Mapping):
        return None
    if document.get("kind") == "joined":
        parts = (_saved(part, kind, fixed) for part in document.get("parts", ()))
        return next((part for part in parts if part is not None), None)
    same = document.get("kind") == kind and all(document.get(key) == value for key, value in fixed.items())
    return dict(document) if same else None


def _grown(
    kind: str, fingerprints: Array, document: dict[str, Any], replay: Callable[[FeatureMap, Ints], Array]
) -> tuple[FeatureMap, Array]:
    """Features by a saved map: of items that it met before they are read, the others are made."""
    from workbench.pools.features import feature_map_from_json

    feature_map = feature_map_from_json(document)
    if len(fingerprints) < WORTH:
        return feature_map, replay(feature_map, np.arange(len(fingerprints)))
    name = _digest(_octets(feature_map))
    place, words = max(
        _met(kind, name),
        key=lambda entry: int(np.isin(fingerprints, entry[1]).sum()),
        default=(Path(), np.empty(0, np.uint64)),
    )
    pair = _read(place, len(words)) if len(words) else None
    if pair is not None and np.array_equal(words, fingerprints):
        return pair
    features = np.empty((len(fingerprints), len(feature_map.columns)), np.float32)
    missing = np.arange(len(fingerprints))
    if pair is not None:
        order = np.argsort(words)
        at = order[np.searchsorted(words, fingerprints, sorter=order).clip(max=len(words) - 1)]
        hits = words[at] == fingerprints
        features[hits], missing = pair[1][at[hits]], np.flatnonzero(~hits)
    if len(missing):
        features[missing] = replay(feature_map, missing)
    _write(_place(kind, name, fingerprints), feature_map, features, fingerprints)
    return feature_map, features


def _met(kind: str, name: str) -> Iterator[tuple[Path, Array]]:
    """Folders of features by the map of this digest, with the fingerprints of their items."""
    for place in sorted(_folder().glob(f"{kind}-*")):
        try:
            if _digest(np.load(place / "map.npy", allow_pickle=False)) == name:
                yield place, np.load(place / "words.npy", allow_pickle=False)
        except _UNREADABLE:
            continue


def _octets(feature_map: FeatureMap) -> Array:
    """The document of a map as an array of bytes."""
    return np.frombuffer(json.dumps(feature_map.to_json(), sort_keys=True).encode(), np.uint8)


def _map_in(octets: Array) -> FeatureMap:
    """The map behind `_octets`."""
    from workbench.pools.features import feature_map_from_json

    return feature_map_from_json(json.loads(octets.tobytes()))


def _digest(octets: Array) -> str:
    return sha256(octets.tobytes()).hexdigest()[:32]


def _place(kind: str, key: Any, fingerprints: Array | None = None) -> Path:
    """Folder of what is kept of this kind, by everything that it depends on."""
    digest = sha256(repr((VERSION, kind, key)).encode())
    if fingerprints is not None:
        digest.update(np.ascontiguousarray(fingerprints, dtype="<u8").tobytes())
    return _folder() / f"{kind}-{digest.hexdigest()[:32]}"


def _loaded(path: Path) -> Array:
    """An array of a file; a large one stays there, and is read where it is looked at."""
    large = path.stat().st_size > _MAPPED
    array: Array = np.load(path, allow_pickle=False, mmap_mode="r" if large else None)
    return array


def _folder() -> Path:
    setting = os.environ.get("WORKBENCH_FEATURES")
    if setting:
        return Path(setting).expanduser()
    from platformdirs import user_cache_path

    return Path(user_cache_path("workbench")) / "features"


def _read(place: Path, n: int) -> tuple[FeatureMap, Array] | None:
    arrays = _arrays_in(place) or {}
    try:
        feature_map, features = _map_in(arrays["map"]), arrays["features"]
    except _UNREADABLE:
        return None
    is_whole = features.shape == (n, len(feature_map.columns)) and features.dtype == np.float32
    return (feature_map, features) if is_whole and _finite(features) else None


def _finite(features: Array) -> bool:
    step = max(1, _MAPPED // max(1, 4 * features.shape[1]))
    return all(np.isfinite(features[i : i + step]).all() for i in range(0, len(features), step))


def _write(place: Path, feature_map: FeatureMap, features: Array, fingerprints: Array) -> None:
    words = np.ascontiguousarray(fingerprints, dtype="<u8")
    _put(
        place,
        {"map": _octets(feature_map), "words": words, "features": features.astype(np.float32, copy=False)},
    )


def _put(place: Path, arrays: Mapping[str, Array]) -> None:
    """A folder of arrays that is whole or not there; on a full or read-only disk nothing is left of it."""
    folder: Path | None = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = Path(tempfile.mkdtemp(dir=place.parent, prefix="new-"))
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)
        (folder / "names.json").write_text(json.dumps(list(arrays)), encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        folder.rename(place)
        _keep_newest(place.parent)
    except OSError:  # it is made again next time
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _keep_newest(folder: Path) -> None:
    """Remove what was not used for longest until the rest fits."""
    total = 0
    for place in sorted(folder.iterdir(), key=lambda entry: -entry.stat().st_mtime):
        total += sum(file.stat().st_size for file in place.iterdir()) if place.is_dir() else 0
        if total > MAX_BYTES and place.is_dir():
            shutil.rmtree(place, ignore_errors=True)
