"""What is to be labelled: pools, how to open them and how to show them.

Importing this package costs no more than NumPy; pandas, pyarrow, Pillow and scikit-learn are
imported by the functions that need them.
"""

from workbench.pools.features import feature_map_from_json
from workbench.pools.fingerprints import compare_fingerprints
from workbench.pools.generators import three_gaussians_probabilities
from workbench.pools.loading import POOLS, PoolEntry, load_pool
from workbench.pools.pool import FeatureMap, Items, Pool, Shown, TestSplit

__all__ = [
    "POOLS",
    "FeatureMap",
    "Items",
    "Pool",
    "PoolEntry",
    "Shown",
    "TestSplit",
    "compare_fingerprints",
    "feature_map_from_json",
    "load_pool",
    "three_gaussians_probabilities",
]
