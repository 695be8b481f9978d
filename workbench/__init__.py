"""Workbench: label less and see why.

Importing this package costs nothing: names are resolved on first use, and nothing here imports
TensorFlow, GPflow or scikit-learn until a model is needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.pools.pool import Pool as Pool
    from workbench.sessions.session import Session as Session
    from workbench.sessions.simulate import simulate as simulate

__version__ = "0.1.0"
__all__ = ["Pool", "Session", "__version__", "simulate"]

_LAZY = {
    "Pool": "workbench.pools.pool",
    "Session": "workbench.sessions.session",
    "simulate": "workbench.sessions.simulate",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'workbench' has no attribute {name!r}")
