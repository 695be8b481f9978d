"""Pools with a name; listing them imports no NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.registry import Entry, Registry, written_entries

if TYPE_CHECKING:
    from workbench.pools.pool import Kind


@dataclass(frozen=True)
class PoolEntry(Entry):
    """A pool that is known by name.

    Attributes:
        kind: what its items are.
        n_items: N (of the default options).
        n_features: D.
        n_classes: C.
        question: what is asked about an item, in words.
    """

    kind: Kind = "table"
    n_items: int = 0
    n_features: int = 0
    n_classes: int = 0
    question: str = ""


POOLS: Registry[PoolEntry] = Registry(
    "pool", written_entries(Path(__file__).with_name("pools.toml"), PoolEntry)
)
