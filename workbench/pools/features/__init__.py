"""Feature maps: from raw rows to features, one file a map.

A map is a `workbench.pools.pool.FeatureMap` with a `from_json` beside its `to_json`. A new one is a file
here and a line in `FEATURE_MAPS`, whose key is the "kind" that its documents carry.
"""

from typing import Any

from workbench.errors import InputError
from workbench.pools.pool import FeatureMap
from workbench.reading import cut, reading
from workbench.registry import load_target

FEATURE_MAPS = {
    "numbers": "workbench.pools.features.numbers:NumberMap",
    "table": "workbench.pools.features.table:TableFeatureMap",
    "image": "workbench.pools.features.numbers:ImageFeatureMap",
    "pieces": "workbench.pools.features.pieces:PiecesFeatureMap",
    "shapes": "workbench.pools.features.shapes:ShapesFeatureMap",
    "vectors": "workbench.pools.features.vectors:VectorFeatureMap",
    "encoder": "workbench.pools.features.vectors:EncoderFeatureMap",
    "joined": "workbench.pools.features.vectors:JoinedFeatureMap",
    "network": "workbench.pools.features.network:NetworkFeatureMap",
}
"""Kind of a saved map -> "module:class"."""


def feature_map_from_json(document: dict[str, Any]) -> FeatureMap:
    """Rebuild a feature map from what its `to_json` wrote.

    Args:
        document: the JSON document.

    Returns:
        A map that gives the same features for the same rows.

    Raises:
        InputError: not such a document, a damaged one, or one written by a later version.
    """
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str) or kind not in FEATURE_MAPS:
        raise InputError(f"This is not a feature map this version can read (kind {cut(kind)}).")
    with reading(f"The saved feature map (kind {kind!r}) is damaged: it"):
        feature_map: FeatureMap = load_target(FEATURE_MAPS[kind]).from_json(document)
        return feature_map
