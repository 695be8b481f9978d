"""What is to be labelled: pools, how to open them and how to show them.

Importing this package costs no more than NumPy; pandas, pyarrow, Pillow and scikit-learn are
imported by the functions that need them.
"""

from workbench.pools.catalogue import CatalogueEntry
from workbench.pools.catalogue import catalogue as known_sets
from workbench.pools.features import feature_map_from_json
from workbench.pools.fingerprints import compare_fingerprints
from workbench.pools.generators import overlapping_probabilities, three_gaussians_probabilities
from workbench.pools.loading import POOLS, PoolEntry, load_pool
from workbench.pools.network_map import NetworkFeatureMap, with_network
from workbench.pools.pool import FeatureMap, Items, Pool, Shown, TestSplit
from workbench.pools.projection import Plane, project
from workbench.pools.tables import Fix, Problem, TableOptions, TableReport, inspect_table, read_rows

__all__ = [
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
    "overlapping_probabilities",
    "project",
    "read_rows",
    "three_gaussians_probabilities",
    "with_network",
]
