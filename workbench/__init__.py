"""Workbench: label less and see why.

Importing this package costs nothing: names are resolved on first use, and nothing here imports
TensorFlow, GPflow or scikit-learn until a model is needed.
"""

from typing import TYPE_CHECKING

from workbench.registry import lazy

if TYPE_CHECKING:
    from workbench.classifiers import make_classifier as make_classifier
    from workbench.errors import InputError as InputError
    from workbench.exchange.models import load_model as load_model
    from workbench.pools.loading import load_pool as load_pool
    from workbench.pools.pool import Pool as Pool
    from workbench.sessions.session import Session as Session
    from workbench.sessions.simulate import simulate as simulate
    from workbench.store.store import Store as Store

__version__ = "1.0.0"

__getattr__ = lazy(
    __name__,
    {
        "InputError": "workbench.errors",
        "Pool": "workbench.pools.pool",
        "Session": "workbench.sessions.session",
        "Store": "workbench.store.store",
        "load_model": "workbench.exchange.models",
        "load_pool": "workbench.pools.loading",
        "make_classifier": "workbench.classifiers",
        "simulate": "workbench.sessions.simulate",
    },
)
