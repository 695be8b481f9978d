"""Names that cost nothing to list: an entry holds "module:attribute" and is imported on use.

A file never chooses code. A name "package.module:name" is imported only as a `CodeName`, which is made where
a person typed it, or after `trust` (what the command line does with what was typed, and `--trust-code`).
Every other text, wherever it came from and whatever was done to it, resolves in registries alone.
docs/security.md says what runs code.
"""

import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib import import_module
from inspect import Signature, signature
from pathlib import Path
from typing import Any, Generic, TypeVar

from workbench.errors import InputError
from workbench.reading import with_texts


@dataclass(frozen=True)
class Entry:
    """One registered thing.

    Attributes:
        name: what users write.
        target: "module:attribute".
        title: a few words for people.
        summary: a sentence for people.
        options: fixed keyword arguments this name implies.
        broken: it is another package's and cannot be imported; lists to choose from leave it out.
    """

    name: str
    target: str
    title: str
    summary: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    broken: bool = field(default=False, kw_only=True)

    def load(self) -> Any:
        """The object behind the entry; imports its module.

        Raises:
            InputError: the module or the attribute does not exist.
        """
        return load_target(self.target)


E = TypeVar("E", bound=Entry)
T = TypeVar("T")


def written_entries(path: Path, make: Callable[..., T]) -> list[T]:
    """Entries of a TOML file, in its order: a table each, by its name.

    Args:
        path: of the file, which is part of the package.
        make: an entry of its name and its fields.
    """
    with path.open("rb") as file:
        return [make(name, **fields) for name, fields in tomllib.load(file).items()]


class Registry(Mapping[str, E], Generic[E]):
    """An ordered mapping of names to entries that explains itself when a name is unknown.

    Args:
        kind: what the entries are, for messages ("policy").
        entries: in the order people should see them.
        added: gives the entries that other packages add, which come last; asked when somebody lists the
            names or looks for one that is not among `entries`. A name of `entries` cannot be taken.
    """

    def __init__(self, kind: str, entries: list[E], added: Callable[[], Iterable[E]] | None = None) -> None:
        self.kind = kind
        self.own: Mapping[str, E] = {entry.name: entry for entry in entries}
        self._added = added

    def _all(self) -> Mapping[str, E]:
        added = () if self._added is None else self._added()
        return {**self.own, **{e.name: e for e in added if e.name not in self.own}} if added else self.own

    def __getitem__(self, name: str) -> E:
        entry = self.get(name)
        if entry is None:
            from difflib import get_close_matches

            close = get_close_matches(str(name), self._all(), n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            known_names = ", ".join(self._all())
            raise InputError(f"There is no {self.kind} called {name!r}.{hint} Known: {known_names}.")
        return entry

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._all()

    def get(self, name: str, default: Any = None) -> Any:
        """The entry called `name`, or `default`."""
        return self.own[name] if name in self.own else self._all().get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


@cache
def plugins(group: str, describe: Callable[[str, str, Any], E]) -> tuple[E, ...]:
    """Objects that installed packages offer under a group of entry points; looked up once a process.

    A package offers either the thing itself (a function, a class), or an `Entry` that describes it.

    Args:
        group: of the entry points.
        describe: (name, target, the thing; None where it cannot be imported) -> its entry.

    Returns:
        An entry each. That of a package that cannot be imported says so in its summary.
    """
    from importlib.metadata import entry_points

    entries: list[E] = []
    for point in entry_points(group=group):
        try:
            thing = load_target(point.value)
        except Exception as error:  # somebody else's module may fail in any way
            described = describe(point.name, point.value, None)
            entries.append(replace(described, summary=f"Cannot be imported: {error}", broken=True))
            continue
        entry = thing if isinstance(thing, Entry) else describe(point.name, point.value, thing)
        entries.append(replace(entry, name=point.name))  # type: ignore[arg-type]
    return tuple(entries)


class CodeName(str):
    """A name of code, "package.module:name", that a person typed: `CodeName("mine:Model")` in Python.

    Equal to the same text, and the only text that is imported. What reads files and arrays makes none;
    `str`, joining and splitting give a plain text again, which is imported no more.
    """


class FileName(str):
    """A text with a colon that stood in a file: equal to any other text.

    Nothing rests on the mark but the sentence that refuses it.

    Attributes:
        where: what held it, for that sentence.
    """

    where: str = "a file"


_trusted: set[str] = set()
_ANY = "*"


def trust(*names: Any) -> None:
    """Vouch for code of your own: whatever names it may use it in this process.

    Args:
        names: "package.module:name"; options (mappings, lists) that hold such names; "*" for every name.

    Raises:
        InputError: a name that itself came from a file.
    """
    for text in texts_of(names):
        if isinstance(text, FileName):
            raise InputError(_refusal(text))
        if text == _ANY or ":" in text:
            _trusted.add(str(text))


def trust_typed(*names: Any) -> None:
    """Vouch for those names that a person typed (`CodeName`), so that what is stored under them opens again.

    Args:
        names: texts; options (mappings, lists) that hold texts.
    """
    trust(*(text for text in texts_of(names) if isinstance(text, CodeName)))


def _vouched_for(name: str) -> bool:
    return isinstance(name, CodeName) or name in _trusted or _ANY in _trusted


def typed(value: Any) -> Any:
    """The value with every vouched-for name as `CodeName`, which it stays in another process, too.

    Args:
        value: a text, or lists and mappings of texts and other values.
    """
    return with_texts(value, lambda text: CodeName(text) if ":" in text and _vouched_for(text) else text)


def from_file(value: Any, where: str, *, trust_code: bool = False) -> Any:
    """Content of a file: texts, and names of code only where a person vouched for them.

    Args:
        value: a text, or lists and mappings of texts and other values.
        where: what holds it, for the message of the refusal ("The model in runs/a").
        trust_code: a person said that the file may choose code.

    Returns:
        The same value; texts with a colon are `CodeName`s if trusted, else `FileName`s.
    """

    def read(text: str) -> str:
        if ":" not in text:
            return text
        if trust_code or text in _trusted or _ANY in _trusted:
            return CodeName(text)
        marked = FileName(text)
        marked.where = where
        return marked

    return with_texts(value, read)


def vouched(name: str, where: str) -> str:
    """The name, where a person vouched for it; for names that make a library load code or weights.

    Args:
        name: what is to be loaded.
        where: what holds it, for the message.

    Returns:
        A `CodeName`, where it is one of code.

    Raises:
        InputError: nobody did.
    """
    if ":" not in name:
        return str(name)
    if _vouched_for(name):
        return CodeName(name)
    marked = FileName(name)
    marked.where = getattr(name, "where", where)
    raise InputError(_refusal(marked))


def texts_of(value: Any) -> Iterator[str]:
    """The texts in a value: itself, or those in lists and mappings however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from texts_of(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts_of(part)


def _refusal(name: FileName) -> str:
    return (
        f"{name.where} names code of its own, {str(name)[:100]!r}, and a file may name only what is "
        "registered or installed. If you trust where it comes from: --trust-code (in Python: "
        "workbench.registry.trust)."
    )


def _not_typed(name: str) -> str:
    return (
        f"{name[:100]!r} names code of its own, and a plain text names only what is registered or installed. "
        f'If you mean it: workbench.registry.CodeName("{name[:100]}"), or workbench.registry.trust.'
    )


def load_own(target: str, kind: str, *methods: str) -> Any:
    """Import a person's own "module:attribute" and check what it is before anybody calls it.

    Args:
        target: the name; a `CodeName`, or one that `trust` knows.
        kind: what it should be, for messages ("classifier").
        methods: names it must have.

    Returns:
        The attribute.

    Raises:
        InputError: a text that nobody typed; nothing there; or something else than a `kind`.
    """
    attribute = load_code(target)
    missing = [name for name in methods if not callable(getattr(attribute, name, None))]
    if missing:
        raise InputError(f"{target!r} is no {kind}: it has no {missing[0]}.")
    if not callable(attribute):
        raise InputError(f"{target!r} is no {kind}: it cannot be called.")
    return attribute


def load_code(target: str) -> Any:
    """Import a person's own "module:attribute".

    Args:
        target: the name; a `CodeName`, or one that `trust` knows.

    Returns:
        The attribute.

    Raises:
        InputError: a text that nobody typed, not of that form, or nothing there.
    """
    if not _vouched_for(target):
        raise InputError(_refusal(target) if isinstance(target, FileName) else _not_typed(target))
    return load_target(target)


def load_target(target: str) -> Any:
    """Import the "module:attribute" of a registry's entry: a constant of the package or of an installed one.

    Args:
        target: for example "workbench.policies.rowwise:margin".

    Returns:
        The attribute.

    Raises:
        InputError: not of that form, nothing there, or a name out of a file.
    """
    if isinstance(target, FileName):
        raise InputError(_refusal(target))
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


def lazy(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """`__getattr__` of a package whose names are imported when they are first used, and are listed before.

    Args:
        package: its name.
        modules: name -> module that has it.
    """

    def resolve(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(modules[name]), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == __package__:
                raise
            raise ImportError(
                f"The package {error.name} is not installed for this Python ({sys.executable}). `make run` "
                "installs everything into .venv of the checkout: use .venv/bin/python, or activate it first."
            ) from error

    namespace = vars(sys.modules[package])
    namespace["__all__"] = names = sorted(modules)
    namespace["__dir__"] = lambda: sorted({*namespace, *names})
    return resolve
