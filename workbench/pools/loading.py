"""One function that opens every kind of pool, and the registry of pools with a name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.errors import InputError
from workbench.pools.pool import Kind, Pool
from workbench.registry import Entry, Registry


@dataclass(frozen=True)
class PoolEntry(Entry):
    """A pool that is known by name.

    Attributes:
        kind: what its items are.
        n_items: N (of the default options).
        n_features: D.
        n_classes: C.
    """

    kind: Kind = "table"
    n_items: int = 0
    n_features: int = 0
    n_classes: int = 0


POOLS: Registry[PoolEntry] = Registry(
    "pool",
    [
        PoolEntry(
            "digits",
            "workbench.pools.bundled:digits",
            "Handwritten digits",
            "1,797 digits of 8 x 8 pixels: the one to start with.",
            kind="image",
            n_items=1797,
            n_features=64,
            n_classes=10,
        ),
        PoolEntry(
            "wine",
            "workbench.pools.bundled:wine",
            "Wine",
            "178 wines by 13 chemical measurements, three growers.",
            n_items=178,
            n_features=13,
            n_classes=3,
        ),
        PoolEntry(
            "iris",
            "workbench.pools.bundled:iris",
            "Iris",
            "150 flowers by four lengths, three species.",
            n_items=150,
            n_features=4,
            n_classes=3,
        ),
        PoolEntry(
            "breast-cancer",
            "workbench.pools.bundled:breast_cancer",
            "Breast cancer",
            "569 tumours by 30 measurements, malignant or benign.",
            n_items=569,
            n_features=30,
            n_classes=2,
        ),
        PoolEntry(
            "three-gaussians",
            "workbench.pools.generators:three_gaussians",
            "Three Gaussians",
            "Points in the plane with as much overlap as you like; the best possible answer is known.",
            n_items=2500,
            n_features=2,
            n_classes=3,
        ),
    ],
)


def load_pool(source: str, **options: Any) -> Pool:
    """Open a pool.

    Args:
        source: a name in `POOLS`.
        options: what that pool takes ("noise" for three-gaussians, ...).

    Returns:
        The pool, without a test split (see `Pool.split`).

    Raises:
        InputError: no such pool, or an option it does not have; the message says what there is.
    """
    entry = POOLS[source]
    return call_with_options(entry.load(), f"Pool {source!r}", {**entry.options, **options})


def call_with_options(function: Callable[..., Pool], what: str, options: dict[str, Any]) -> Pool:
    """Call a loader, refusing options it does not have.

    Args:
        function: the loader.
        what: "Pool 'digits'", for the message.
        options: keyword arguments.

    Returns:
        What the loader returns.

    Raises:
        InputError: an option the loader does not have; the message lists those it has.
    """
    known = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    unknown = [name for name in options if name not in known]
    if unknown:
        has = f"It has: {', '.join(known)}." if known else "It has none."
        raise InputError(f"{what} has no option {unknown[0]!r}. {has}")
    return function(**options)
