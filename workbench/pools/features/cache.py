"""Learnt features kept on disk, so that a pool opened again does not learn them again."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Array

if TYPE_CHECKING:
    from workbench.pools.pool import FeatureMap

VERSION = 1
"""Of what is learnt: a change of a map's recipe makes it one more."""
WORTH = 500
"""Items from which on learning takes longer than reading."""
MAX_BYTES = 2 << 30


def cached_features(
    kind: str,
    fingerprints: Array,
    options: Any,
    learn: Callable[[], tuple[FeatureMap, Array]],
) -> tuple[FeatureMap, Array]:
    """A map learnt from a pool, and its features; read where this version learnt them before.

    Args:
        kind: of the map.
        fingerprints: [N] of the items.
        options: everything else the map depends on.
        learn: learns them.

    Returns:
        The map and [N, D] features. What cannot be read or written is learnt again.
    """
    if len(fingerprints) < WORTH:
        return learn()
    digest = sha256(repr((VERSION, kind, options)).encode())
    digest.update(np.ascontiguousarray(fingerprints, dtype="<u8").tobytes())
    place = _folder() / f"{kind}-{digest.hexdigest()[:32]}"
    found = _read(place, len(fingerprints))
    if found is None:
        found = learn()
        _write(place, *found)
    return found


def _folder() -> Path:
    given = os.environ.get("WORKBENCH_FEATURES")
    if given:
        return Path(given).expanduser()
    from platformdirs import user_cache_path

    return Path(user_cache_path("workbench")) / "features"


def _read(place: Path, n: int) -> tuple[FeatureMap, Array] | None:
    from workbench.pools.features import feature_map_from_json

    try:
        feature_map = feature_map_from_json(json.loads((place / "map.json").read_text(encoding="utf-8")))
        features = np.load(place / "features.npy", allow_pickle=False)
        os.utime(place)
    except (OSError, ValueError):  # not there, damaged, or of another version
        return None
    whole = features.shape == (n, len(feature_map.columns)) and features.dtype == np.float32
    return (feature_map, features) if whole and np.isfinite(features).all() else None


def _write(place: Path, feature_map: FeatureMap, features: Array) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = Path(tempfile.mkdtemp(dir=place.parent, prefix="new-"))
        (made / "map.json").write_text(json.dumps(feature_map.to_json()), encoding="utf-8")
        np.save(made / "features.npy", np.asarray(features, dtype=np.float32))
        shutil.rmtree(place, ignore_errors=True)
        made.rename(place)
        _keep_newest(place.parent)
    except OSError:  # a full or read-only disk: it is learnt again next time
        return


def _keep_newest(folder: Path) -> None:
    """Remove what was not used for longest until the rest fits."""
    total = 0
    for place in sorted(folder.iterdir(), key=lambda entry: -entry.stat().st_mtime):
        total += sum(file.stat().st_size for file in place.iterdir()) if place.is_dir() else 0
        if total > MAX_BYTES:
            shutil.rmtree(place, ignore_errors=True)
