"""Pools to be labelled, how to open them and how to show them.

Importing this package costs no more than NumPy; pandas, pyarrow, Pillow and scikit-learn are
imported by the functions that need them.
"""

from workbench.pools.datasets.catalogue import CatalogueEntry, present_sets
from workbench.pools.datasets.catalogue import catalogue as known_sets
from workbench.pools.datasets.generators import three_gaussians_probabilities
from workbench.pools.features import feature_map_from_json
from workbench.pools.features.network import NetworkFeatureMap, with_network
from workbench.pools.fingerprints import compare_fingerprints
from workbench.pools.formats import FORMATS
from workbench.pools.loading import (
    POOLS,
    PoolEntry,
    inspect_table,
    load_pool,
    read_rows,
    seen_as_pixels,
    settled,
)
from workbench.pools.pool import FeatureMap, Items, Pool, Shown, TestSplit
from workbench.pools.projection import Plane, project
from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.report import Fix, Problem, TableReport

__all__ = [
    "FORMATS",
    "POOLS",
    "CatalogueEntry",
    "FeatureMap",
    "Fix",
    "Items",
    "NetworkFeatureMap",
    "Plane",
    "Pool",
    "PoolEntry",
    "Problem",
    "Shown",
    "TableOptions",
    "TableReport",
    "TestSplit",
    "compare_fingerprints",
    "feature_map_from_json",
    "inspect_table",
    "known_sets",
    "load_pool",
    "present_sets",
    "project",
    "read_rows",
    "seen_as_pixels",
    "settled",
    "three_gaussians_probabilities",
    "with_network",
]
