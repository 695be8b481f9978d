"""Values that pages and cards look at again and again: computed once, and kept while they are looked at."""

import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from functools import partial, wraps
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar
from weakref import ref

import numpy as np

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
_MOST = 250_000_000
_FEWEST = 8


@dataclass(frozen=True)
class Computation:
    """Record of a computation, under which its value is kept.

    Attributes:
        make: the function.
        inputs: its inputs: arrays by their bytes, sessions and records by id, models and pools by
            identity, others by value.
        at: version of inputs that change.
    """

    make: Callable[..., Any]
    inputs: tuple[Hashable, ...]
    at: Hashable

    @property
    def is_over(self) -> bool:
        """True if one of its inputs is gone, so that nobody can ask again."""
        return any(isinstance(argument, ref) and argument() is None for argument in self.inputs)


class _Shelf(OrderedDict[Computation, tuple[Any, int]]):
    """Values with the bytes that they take, the one used last at the end."""

    octets = 0

    def put(self, key: Computation, value: Any, size: int) -> None:
        """Keep a value, as far as there is room for it instead of those used longest ago."""
        self.drop(key)
        self[key] = value, size
        self.octets += size
        while self.octets > _MOST and len(self) > _FEWEST:
            self.drop(next(iter(self)))

    def drop(self, key: Computation) -> None:
        self.octets -= self.pop(key, (None, 0))[1]


# large values have a shelf of their own, so that they push no small ones off
_SHELVES = _Shelf(), _Shelf()
_GONE: list[ref[Any]] = []  # inputs that ended since their values were dropped
_LOCK = threading.Lock()


def computed(make: Callable[..., T], *inputs: Any, at: Hashable = None, known: T | None = None) -> T:
    """A value made once from its inputs, and from nothing else; to be looked at, not changed.

    The values used last are kept, up to half a gigabyte; small ones have a half of it. None is none.

    Args:
        make: a function of a module; may run twice when two threads ask at once.
        *inputs: of the function. What has an identity of its own, such as a model, is not kept alive.
        at: for inputs that change, such as a session: what they were when the value was made.
        known: the value, where somebody has it already.
    """
    if "<" in make.__qualname__:
        raise TypeError(f"{make.__qualname__} is no function of a module: it may depend on more than inputs.")
    key = Computation(make, tuple(map(_recorded, inputs)), at)
    with _LOCK:
        for shelf in _SHELVES:
            if key in shelf:
                shelf.move_to_end(key)
                cached_value: T = shelf[key][0]
                return cached_value
    value = make(*inputs) if known is None else known
    if value is not None:
        size = _octets(value, set())
        with _LOCK:
            _SHELVES[size > _MOST // 50].put(key, value, size)
            if _GONE:
                _GONE.clear()
                for shelf in _SHELVES:
                    for computation in [entry for entry in shelf if entry.is_over]:
                        shelf.drop(computation)
    return value


def kept(make: F) -> F:
    """The function with its values kept as `computed` keeps them; its inputs are given in their order."""
    return wraps(make)(partial(computed, make))  # type: ignore[return-value]


def _recorded(value: Any) -> Hashable:
    """Record of an input that is equal for equal ones."""
    if isinstance(value, np.ndarray):
        described = repr((value.shape, value.dtype.str)).encode()
        return sha256(described + np.ascontiguousarray(value).tobytes()).hexdigest()
    if isinstance(name := getattr(value, "id", None), str):
        return type(value), name
    hashed: object = type(value).__hash__
    if value is not None and hashed is object.__hash__:
        return ref(value, _GONE.append)
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def _octets(value: Any, seen: set[int]) -> int:
    """Bytes that a value takes with all that it holds, about; a file that is mapped takes none."""
    if id(value) in seen or isinstance(value, np.memmap):
        return 0
    seen.add(id(value))
    if isinstance(value, str | float | int):  # most of what cards are made of
        return sys.getsizeof(value)
    parts: Collection[Any] = ()
    if isinstance(value, Mapping):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        parts = value
    elif is_dataclass(value):
        parts = vars(value).values() if hasattr(value, "__dict__") else ()
    return int(getattr(value, "nbytes", sys.getsizeof(value))) + sum(_octets(part, seen) for part in parts)


# --- stamps of files ------------------------------------------------------------------------------


def stamp(path: str, options: Mapping[str, Any] | None = None) -> str:
    """Stamp of a file, or of a folder with all files below it, and of the files that options of reading name.

    Args:
        path: what `load_pool` takes; a name of a pool has no file, and one stamp.
        options: of `load_pool`; a folder of pictures and a file of vectors count as well.
    """
    digest = sha256()
    for place in (path, *_named(options or {})):
        digest.update(repr(_files(place)).encode("utf-8", "replace"))
    return digest.hexdigest()[:16]


def _named(options: Mapping[str, Any]) -> list[str]:
    """Texts of the options that may be paths, after what stands before a colon too."""
    texts = [value for value in options.values() if isinstance(value, str)]
    return [part for text in texts for part in {text, text.partition(":")[2]} if Path(part).is_absolute()]


def _files(place: str) -> list[tuple[str, int, int]]:
    """(Path, size, time) of every file, in one order; nothing where nothing can be read."""
    try:
        if not Path(place).is_dir():
            return [_facts(Path(place), "")]
    except (OSError, ValueError):
        return []
    facts = []
    for folder, _, names in os.walk(place):
        for name in names:
            with suppress(OSError):
                facts.append(_facts(Path(folder, name), os.path.relpath(folder, place) + "/" + name))
    return sorted(facts)


def _facts(path: Path, name: str) -> tuple[str, int, int]:
    facts = path.stat()
    return name, facts.st_size, facts.st_mtime_ns
