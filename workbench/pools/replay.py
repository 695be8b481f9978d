"""Features of a pool by the map that was saved with its project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.pools.features import feature_map_from_json
from workbench.pools.items import ImageItems, RowItems, TextItems
from workbench.pools.photos import PhotoItems
from workbench.pools.pool import Pool

LEARNT = ("text", "pieces", "shapes", "image", "mixed")
"""Kinds of maps that depend on all items of a pool, and so would change when it grows."""


def with_saved_map(pool: Pool, document: Mapping[str, Any]) -> Pool:
    """The pool with the features its project was made with, where the same source now teaches others.

    Args:
        pool: as loaded now.
        document: of the feature map saved with the project.

    Returns:
        The pool itself where the maps agree or are not learnt from the items.

    Raises:
        InputError: a damaged map.
    """
    own = pool.feature_map.to_json()
    if document.get("kind") not in LEARNT or own.get("kind") != document["kind"] or own == document:
        return pool
    items = pool.items
    if isinstance(items, TextItems):
        rows: Any = items.texts
    elif isinstance(items, PhotoItems):
        rows = items.photos
    elif isinstance(items, ImageItems):
        rows = items.images
    elif isinstance(items, RowItems):
        rows = items.cells
    else:
        return pool
    feature_map = feature_map_from_json(dict(document))
    return replace(pool, feature_map=feature_map, features=feature_map.transform(rows))
