"""Pools to be labelled, how to open them and how to show them.

Importing this package costs nothing: each name is imported when it is first used. NumPy, pandas, pyarrow,
Pillow and scikit-learn come with the modules and functions that need them.
"""

from typing import TYPE_CHECKING

from workbench.registry import lazy

if TYPE_CHECKING:
    from workbench.pools.datasets.catalogue import POOLS as POOLS
    from workbench.pools.datasets.catalogue import present_sets as present_sets
    from workbench.pools.features import feature_map_from_json as feature_map_from_json
    from workbench.pools.features.network import with_network as with_network
    from workbench.pools.fingerprints import compare_fingerprints as compare_fingerprints
    from workbench.pools.loading import inspect_table as inspect_table
    from workbench.pools.loading import load_pool as load_pool
    from workbench.pools.loading import read_rows as read_rows
    from workbench.pools.loading import seen_as_pixels as seen_as_pixels
    from workbench.pools.pool import Pool as Pool

__getattr__ = lazy(
    __name__,
    {
        "POOLS": "workbench.pools.datasets.catalogue",
        "Pool": "workbench.pools.pool",
        "compare_fingerprints": "workbench.pools.fingerprints",
        "feature_map_from_json": "workbench.pools.features",
        "inspect_table": "workbench.pools.loading",
        "load_pool": "workbench.pools.loading",
        "present_sets": "workbench.pools.datasets.catalogue",
        "read_rows": "workbench.pools.loading",
        "seen_as_pixels": "workbench.pools.loading",
        "with_network": "workbench.pools.features.network",
    },
)
