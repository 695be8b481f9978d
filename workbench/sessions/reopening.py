"""The pool of a project again, as it was when the project began."""

import base64
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.pools import POOLS, compare_fingerprints, load_pool
from workbench.pools.features.cache import saved_map
from workbench.pools.loading import with_saved_map
from workbench.pools.neighbours.twins import twins_from
from workbench.pools.pool import Pool, TestSplit
from workbench.reading import cut
from workbench.store import ProjectRecord, ProjectSummary, Store


def is_gone(record: ProjectSummary) -> bool:
    """True if the pool was a file or folder that is not where it was."""
    name = str(record.pool["name"])
    place = Path(name)
    if name in POOLS or not place.is_absolute():
        return False
    try:
        return not place.exists()
    except OSError:  # where the server may not look, or on a disk that is away
        return True


def open_pool(store: Store, project_id: str, pool: Pool | None = None) -> tuple[ProjectRecord, Pool]:
    """A project with its pool, checked to be the one it was made from.

    Raises:
        InputError: no such project; its file or folder is gone; or items of the pool were changed, removed or
            moved since.
    """
    record = store.project(project_id)
    if pool is None and is_gone(record):
        raise InputError(
            f"The file or folder of this project cannot be found at {cut(str(record.pool['name']), 200)}. "
            f"If it has moved: workbench relocate {record.id} FILE"
        )
    loaded = load_as_saved(record.pool, record.feature_map) if pool is None else pool
    n_appended = compare_fingerprints(record.fingerprints, loaded.fingerprints, name=record.pool["name"])
    if n_appended:
        store.update_project(project_id, fingerprints=loaded.fingerprints, item_ids=loaded.items.ids)
        record = store.project(project_id)
    packed = record.settings.get("test")
    split = None if packed is None else unpack(packed, len(loaded))
    twins = twins_from(record.settings.get("twins"), len(loaded))
    return record, replace(loaded, test=split, grouping=lambda pool: twins.first)


def load_as_saved(reference: Mapping[str, Any], feature_map: Mapping[str, Any]) -> Pool:
    """A project's pool with the features that the project was made with.

    A pool that grew would teach other features, and the project's models know the old ones.

    Args:
        reference: the pool's `name` and the `options` of `load_pool`.
        feature_map: the document of the map that was saved with the project.
    """
    with saved_map(feature_map):
        pool = load_pool(reference["name"], **reference.get("options", {}))
    return with_saved_map(pool, feature_map)  # maps that are kept nowhere else


def pack(split: TestSplit, n: int) -> dict[str, Any]:
    """The test split of n items itself, as JSON: rows appended later must not reshuffle it."""
    mask = np.zeros(n, dtype=bool)
    mask[split.test] = True
    bits = base64.b64encode(np.packbits(mask).tobytes()).decode()
    return {"seed": split.seed, "fraction": split.fraction, "n": n, "bits": bits}


def unpack(document: Mapping[str, Any], n: int) -> TestSplit:
    """The split that `pack` wrote, of a pool that has n items now."""
    bits = np.frombuffer(base64.b64decode(document["bits"]), dtype=np.uint8)
    mask = np.zeros(n, dtype=bool)
    mask[: document["n"]] = np.unpackbits(bits, count=int(document["n"])).astype(bool)
    return TestSplit(
        int(document["seed"]), float(document["fraction"]), np.flatnonzero(~mask), np.flatnonzero(mask)
    )
