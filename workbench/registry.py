"""Names that cost nothing to list: an entry holds "module:attribute" and is imported on use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from inspect import Signature, signature
from typing import Any, Generic, TypeVar

from workbench.errors import InputError


@dataclass(frozen=True)
class Entry:
    """One registered thing.

    Attributes:
        name: what users write.
        target: "module:attribute".
        title: a few words for people.
        summary: a sentence for people.
        options: fixed keyword arguments this name implies.
    """

    name: str
    target: str
    title: str
    summary: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> Any:
        """The object behind the entry; imports its module.

        Raises:
            InputError: the module or the attribute does not exist.
        """
        return load_target(self.target)


E = TypeVar("E", bound=Entry)


class Registry(Mapping[str, E], Generic[E]):
    """An ordered mapping of names to entries that explains itself when a name is unknown.

    Args:
        kind: what the entries are, for messages ("policy").
        entries: in the order people should see them.
    """

    def __init__(self, kind: str, entries: list[E]) -> None:
        self.kind = kind
        self._entries = {entry.name: entry for entry in entries}

    def __getitem__(self, name: str) -> E:
        try:
            return self._entries[name]
        except KeyError:
            close = get_close_matches(str(name), self._entries, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            known = ", ".join(self._entries)
            raise InputError(f"There is no {self.kind} called {name!r}.{hint} Known: {known}.") from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def get(self, name: str, default: Any = None) -> Any:
        """The entry called `name`, or `default`."""
        return self._entries.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def load_target(target: str) -> Any:
    """Import "module:attribute".

    Args:
        target: for example "workbench.policies.basic:margin".

    Returns:
        The attribute.

    Raises:
        InputError: not of that form, or nothing there.
    """
    module, colon, attribute = target.partition(":")
    if not colon or not module or not attribute:
        raise InputError(f"{target!r} is not of the form package.module:name.")
    try:
        return getattr(import_module(module), attribute)
    except ImportError as error:
        raise InputError(f"Cannot import {module!r} (for {target!r}): {error}") from error
    except AttributeError as error:
        raise InputError(f"Module {module!r} has nothing called {attribute!r}.") from error


def signature_of(target: Any) -> Signature:
    """`inspect.signature`, remembered: it takes a tenth of a millisecond, and a round asks seven times."""
    try:
        return _kept_signature(target)
    except TypeError:  # not hashable, or no callable at all: then this raises again
        return signature(target)


_kept_signature = lru_cache(maxsize=256)(signature)
