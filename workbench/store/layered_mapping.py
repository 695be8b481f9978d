"""A large dictionary of which many versions are kept: each holds what it changed of one that all share."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from itertools import chain
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

FEW = 4096
"""Entries up to which a plain dictionary is copied faster than it is layered."""
MOST = 1000
"""Changes after which they become part of what is shared."""


class LayeredMapping(Mapping[K, V]):
    """A dictionary whose copy costs what was changed; equal to a `dict` in content and order.

    Args:
        base: shared with other versions, and never changed from here on.
    """

    __slots__ = ("_added", "_base", "_changed", "_gone")

    def __init__(self, base: dict[K, V]) -> None:
        self._base = base
        # new values at the places of old ones, keys that left, and those that came after all of the base
        self._changed: dict[K, V] = {}
        self._gone: set[K] = set()
        self._added: dict[K, V] = {}

    def copy(self) -> LayeredMapping[K, V]:
        """Another version, to be changed."""
        if len(self._changed) + len(self._gone) + len(self._added) > MOST:
            return LayeredMapping(dict(self.items()))
        version = LayeredMapping(self._base)
        version._changed, version._gone, version._added = (
            self._changed.copy(),
            self._gone.copy(),
            self._added.copy(),
        )
        return version

    def __getitem__(self, key: K) -> V:
        if key in self._added:
            return self._added[key]
        if key in self._changed:
            return self._changed[key]
        if key in self._gone:
            raise KeyError(key)
        return self._base[key]

    def __setitem__(self, key: K, value: V) -> None:
        at_its_place = key in self._base and key not in self._gone
        (self._changed if at_its_place else self._added)[key] = value

    def __delitem__(self, key: K) -> None:
        if key in self._added:
            del self._added[key]
        elif key in self._base and key not in self._gone:
            self._gone.add(key)
            self._changed.pop(key, None)
        else:
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return key in self._added or (key in self._base and key not in self._gone)

    def __len__(self) -> int:
        return len(self._base) - len(self._gone) + len(self._added)

    def __iter__(self) -> Iterator[K]:
        removed_keys = self._gone
        base = (key for key in self._base if key not in removed_keys) if removed_keys else self._base
        return chain(base, self._added)

    def __reversed__(self) -> Iterator[K]:
        yield from reversed(self._added)
        yield from (key for key in reversed(self._base) if key not in self._gone)

    def items(self) -> ItemsView[K, V]:
        """Keys and values, in order."""
        return _Items(self)

    def values(self) -> ValuesView[V]:
        """Values, in order."""
        return _Values(self)

    def pairs(self) -> Iterator[tuple[K, V]]:
        """Layers that `items` goes through."""
        if self._gone or self._changed:
            removed_keys, changed = self._gone, self._changed
            for key, value in self._base.items():
                if key not in removed_keys:
                    yield key, changed.get(key, value)
        else:
            yield from self._base.items()
        yield from self._added.items()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping) or len(other) != len(self):
            return NotImplemented if not isinstance(other, Mapping) else False
        return all(key in other and other[key] == value for key, value in self.pairs())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(dict(self.items()))


class _Items(ItemsView[K, V]):
    _mapping: LayeredMapping[K, V]

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return self._mapping.pairs()


class _Values(ValuesView[V]):
    _mapping: LayeredMapping[Any, V]

    def __iter__(self) -> Iterator[V]:
        return (value for _, value in self._mapping.pairs())


def changed_keys(before: Any, now: Any) -> list[Any] | None:
    """Keys at which two versions of a dictionary differ; None where they share nothing."""
    base = getattr(before, "_base", None)
    if base is None or base is not getattr(now, "_base", None):
        return None
    layers = (layer for of in (before, now) for layer in (of._changed, of._gone, of._added))
    return [key for key in dict.fromkeys(chain(*layers)) if before.get(key) is not now.get(key)]


def another(known: Any) -> Any:
    """A version of a dictionary, list or set that can be changed while somebody keeps the one before."""
    return LayeredMapping(known).copy() if isinstance(known, dict) and len(known) > FEW else known.copy()
