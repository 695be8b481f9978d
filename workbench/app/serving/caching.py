"""Values that pages and cards look at again and again: computed once, and kept while they are looked at."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np

from workbench.arrays import Array

Inputs = TypeVar("Inputs", bound=Hashable)
T = TypeVar("T")
_CACHE: OrderedDict[Hashable, Any] = OrderedDict()
_LOCK = threading.Lock()
_KEPT = 64


def digest(*arrays: Array) -> str:
    """Key of arrays: of their bytes, not of how many they are."""
    found = sha256()
    for one in arrays:
        found.update(repr((one.shape, one.dtype.str)).encode() + np.ascontiguousarray(one).tobytes())
    return found.hexdigest()[:16]


def computed(inputs: Inputs, make: Callable[[Inputs], T]) -> T:
    """A value made once from its inputs, and from nothing else.

    Args:
        inputs: a frozen dataclass with all that the value depends on; what stands for another field (a
            model beside its uid) is left out of the comparison (`compare=False`).
        make: a function of a module; may run twice when two threads ask at once.
    """
    return cached(inputs, lambda: make(inputs))


def cached(key: Hashable, make: Callable[[], T]) -> T:
    """A value made once for a key; the newest 64 are kept.

    Args:
        key: must name everything the value depends on; of more than a name or two, take `computed`.
        make: computes it; may run twice when two threads ask at once.
    """
    with _LOCK:
        if key in _CACHE:
            _CACHE.move_to_end(key)
            return _CACHE[key]
    value = make()
    with _LOCK:
        _CACHE[key] = value
        while len(_CACHE) > _KEPT:
            _CACHE.popitem(last=False)
    return value


def latest(key: Hashable, version: Hashable, make: Callable[[], T]) -> T:
    """The value of a key's present version; that of the version before is let go.

    Args:
        key: as for `cached`.
        version: of what the value depends on.
        make: makes it, at once: others wait meanwhile.
    """
    with _LOCK:
        held = _CACHE.get(key)
        if held is None or held[0] != version:
            held = _CACHE[key] = (version, make())
        _CACHE.move_to_end(key)
    value: T = held[1]
    return value


class Cache:
    """Small values made once, of JSON; those used last are kept, as JSON: objects take five times the room.

    Args:
        octets: how much room they take, in all.
    """

    def __init__(self, octets: int) -> None:
        self._most = octets
        self._held = 0
        self._values: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key; each time another copy.

        Args:
            key: must name everything the value depends on.
            make: computes it; may run twice when two threads ask at once.
        """
        with self._lock:
            held = self._values.get(key)
            if held is not None:
                self._values.move_to_end(key)
        if held is not None:
            found: T = json.loads(held)
            return found
        value = make()
        held = json.dumps(value).encode()
        with self._lock:
            if key not in self._values:
                self._values[key] = held
                self._held += len(held)
            while self._held > self._most:
                self._held -= len(self._values.popitem(last=False)[1])
        return value
