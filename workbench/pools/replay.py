"""Features of a pool by the map that was saved with its project."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.pools.features import feature_map_from_json
from workbench.pools.features.encoded import other_encoder
from workbench.pools.features.table import TableFeatureMap
from workbench.pools.images.photos import PhotoItems, Photos
from workbench.pools.items import ArrayItems, ImageItems, RowItems, TextItems
from workbench.pools.pool import Pool

LEARNT = ("text", "pieces", "shapes", "mixed", "table")
"""Kinds of maps that depend on all items of a pool, and so would change when it grows. Those of vectors, of
encoders and joined ones are taken up while a pool is loaded (`workbench.pools.features.cache.saved_map`)."""


def with_saved_map(pool: Pool, document: Mapping[str, Any]) -> Pool:
    """The pool with the features its project was made with, where the same source now teaches others.

    Args:
        pool: as loaded now.
        document: of the feature map saved with the project.

    Returns:
        The pool itself where the maps agree or are not learnt from the items. A cell that a saved map of
        a table never met (a new category) is none of those it knows, and the pool's notes say so.

    Raises:
        InputError: a damaged map, or an encoder that is another one under its name.
    """
    own_map = pool.feature_map.to_json()
    _refuse_other_encoders(own_map, document)
    if document.get("kind") not in LEARNT or own_map.get("kind") != document["kind"] or own_map == document:
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
    elif isinstance(items, ArrayItems):
        rows = items.values
    else:
        return pool
    feature_map = feature_map_from_json(dict(document))
    if not isinstance(feature_map, TableFeatureMap):
        features = feature_map.transform(rows)
        clipped = rows.attrs["notes"] if isinstance(rows, Photos) else ()
        return replace(pool, feature_map=feature_map, features=features, notes=(*pool.notes, *clipped))
    features, unmet = feature_map.transform_known(rows)
    notes = tuple(
        f"{n:,} new {'cell' if n == 1 else 'cells'} of {name!r} hold what the project never met and count as "
        "none of its categories."
        for name, n in unmet.items()
    )
    return replace(pool, feature_map=feature_map, features=features, notes=(*pool.notes, *notes))


def _refuse_other_encoders(own_map: Mapping[str, Any], document: Mapping[str, Any]) -> None:
    for part, saved_part in zip(
        own_map.get("parts", [own_map]), document.get("parts", [document]), strict=False
    ):
        same = part.get("kind") == saved_part.get("kind") == "encoder" and part["encoder"] == saved_part.get(
            "encoder"
        )
        if same and part["weights"] != saved_part.get("weights"):
            raise other_encoder(part["encoder"])
