"""Kinds of files that pools come from: how each is recognised, and what reads it.

A format is a module here with a `READER`, and a table in formats.toml. Whoever opens a file, to load a pool,
to score or predict its rows or to take labels from it, asks `format_of` and uses that reader.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.documents.checking import check_plain_options
from workbench.errors import InputError
from workbench.pools.formats.files import File
from workbench.reading import cut
from workbench.registry import Entry, Registry, written_entries

if TYPE_CHECKING:
    from workbench.pools.pool import FeatureMap, Kind, Pool
    from workbench.pools.sources import Source
    from workbench.pools.tables.report import TableReport


class Reader(NamedTuple):
    """Operations on files of one format. All take the `File` first, then keyword options.

    Attributes:
        load: the file as a pool.
        rows: its rows as a feature map takes them: a DataFrame, or an array [N, ...].
        inspect: what is in it and what stands in the way of a pool; None where there is nothing to ask.
        stream: its rows piece by piece, for files larger than memory: (path, feature map, columns);
            None where it is read whole.
    """

    load: Callable[..., Pool]
    rows: Callable[..., Any]
    inspect: Callable[..., TableReport] | None = None
    stream: Callable[[Any, FeatureMap | None, Any], Source] | None = None


@dataclass(frozen=True)
class FileFormat(Entry):
    """One kind of file.

    Attributes:
        endings: of the files' names, in lower case; a .gz or .bz2 behind them does not count.
        folder: pattern of the files that make a folder one of this kind; "" where folders are none.
        magic: bytes such a file begins with, where they tell more than the name.
        kinds: of pools that come of such files; the Data page offers the upload where it asks for these.
        inside: patterns of files that make a folder or a zip one of this kind, whatever else lies there.
    """

    endings: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ("table", "text")
    folder: str = ""
    magic: bytes = b""
    inside: tuple[str, ...] = ()

    @property
    def reader(self) -> Reader:
        """Reader of the format; imports its module."""
        reader: Reader = self.load()
        return reader


def _format(name: str, *, magic: str = "", **fields: Any) -> FileFormat:
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()
    }
    return FileFormat(name, magic=magic.encode(), **values)


FORMATS: Registry[FileFormat] = Registry(
    "file format", written_entries(Path(__file__).with_name("formats.toml"), _format)
)


def endings_of(kind: Kind | None = None) -> tuple[str, ...]:
    """Endings, with their dots, of the files that pools of a kind come from; None means of any kind."""
    return tuple(
        ending
        for entry in FORMATS.values()
        if kind is None or kind in entry.kinds
        for ending in entry.endings
        if ending.startswith(".")
    )


def format_of(file: File) -> FileFormat:
    """The format of a file, by its first bytes, its name or what lies in the folder.

    Raises:
        InputError: nothing known; says what there is.
    """
    entries = list(FORMATS.values())
    special = _by_members(file, entries)
    if special is not None:
        return special
    if file.is_folder:
        # idx files and Parquet parts are asked for before images, which any folder may hold
        for entry in sorted((e for e in entries if e.folder), key=lambda e: -len(e.folder)):
            if any(file.path.glob(entry.folder)):
                return entry
        raise InputError(
            f"There is no image, no idx file and no .parquet file in the folder {str(file.path)!r}."
        )
    if file.is_upload:
        head = file.head(8)
        for entry in entries:
            if entry.magic and head.startswith(entry.magic):
                return entry
    for entry in entries:
        if file.plain_name.endswith(entry.endings):
            return entry
    titles = [entry.title for entry in entries]
    raise InputError(
        f"The ending of {file.name!r} says nothing known. Files may be {', '.join(titles[:-1])} "
        f"or {titles[-1]}."
    )


def _by_members(file: File, entries: list[FileFormat]) -> FileFormat | None:
    """The format that what lies in a folder or a zip tells, whatever else lies there."""
    patterns = [(entry, pattern) for entry in entries for pattern in entry.inside]
    if file.is_folder:
        return next((entry for entry, pattern in patterns if any(file.path.glob(pattern))), None)
    if not file.plain_name.endswith(".zip"):
        return None
    try:
        with file.zipped("a zip file") as packed:
            names = packed.namelist()
    except InputError:
        return None  # its reader says what is wrong with it
    # a zip may hold the folder itself; and what is Parquet in it is a dataset, for nothing else reads it
    for entry, pattern in patterns:
        if any(fnmatch(name, pattern) or fnmatch(name, f"*/{pattern}") for name in names):
            return entry
        if any(name.endswith(".parquet") for name in names):
            return entry
    return None


def call_with_options(
    function: Callable[..., Pool], what: str, options: dict[str, Any], *positional: Any
) -> Pool:
    """Call a loader, refusing options it does not have, and values of another kind.

    Args:
        function: the loader.
        what: "Pool 'digits'", for the message.
        options: keyword arguments.
        positional: arguments before them.

    Returns:
        What the loader returns.

    Raises:
        InputError: an option the loader does not have; the message lists those it has. Or another kind of
            value than the option is of.
    """
    parameters = inspect.signature(function).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return function(*positional, **options)  # it checks them itself
    names = [
        name for name, parameter in parameters.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    unknown = [name for name in options if name not in names]
    if unknown:
        has = f"It has: {', '.join(names)}." if names else "It has none."
        raise InputError(f"{what} has no option {cut(unknown[0])}. {has}")
    check_plain_options(function, options, what)
    return function(*positional, **options)
