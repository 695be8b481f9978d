"""Pictures that a column names: files of a folder, web addresses, or bytes in the table itself."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

import numpy as np

from workbench.errors import InputError
from workbench.members import FolderMembers
from workbench.pools.cells import read_texts
from workbench.pools.fetching import MAX_PICTURE, fetch_all, is_address, kept
from workbench.pools.formats.files import MAX_BYTES, File
from workbench.pools.formats.images import ImageFolder
from workbench.pools.photos import MAX_PHOTO_BYTES, PhotoSource
from workbench.pools.tables.report import Fix, counted
from workbench.reading import cut, listed, reading

if TYPE_CHECKING:
    from pandas import DataFrame

    from workbench.arrays import Array
    from workbench.pools.tables.options import TableOptions
    from workbench.pools.tables.raw import RawTable
    from workbench.pools.tables.report import Findings

_INLINE = "data:image/"


class ExaminedTable(Protocol):
    """What is looked at here, and told what is wrong: a table under examination.

    Attributes:
        raw: as it was read.
        options: under which it is looked at.
        frame: its cells.
        found: what a person must know.
        keep: [N] rows that stay.
    """

    raw: RawTable
    options: TableOptions
    frame: DataFrame
    found: Findings
    keep: Array


@dataclass(frozen=True)
class FolderFiles:
    """Files that lie beside a table.

    Attributes:
        root: the folder.
    """

    root: str

    @property
    def label(self) -> str:
        """What messages call it."""
        return Path(self.root).name

    def read(self, path: str) -> bytes:
        """One file, by its path in the folder."""
        return FolderMembers(self.root).read(path, MAX_BYTES)

    def size(self, path: str) -> int:
        """Bytes of one file."""
        return FolderMembers(self.root).size(path)


@dataclass(frozen=True)
class Pictures:
    """The pictures of a table, by what its cells say.

    Attributes:
        column: that names them.
        label: of the table, for messages.
        names: [N] the cells.
        held: those that lie in the table itself.
        folder: that holds the files; None where no cell names one.
        paths: name -> path in the folder.
    """

    column: str
    label: str
    names: Sequence[str]
    held: Mapping[str, bytes] = field(default_factory=dict)
    folder: PhotoSource | None = None
    paths: Mapping[str, str] = field(default_factory=dict)

    @property
    def beside(self) -> str:
        """The folder of the table itself, where its cells name files in it; else ""."""
        return self.folder.root if isinstance(self.folder, FolderFiles) else ""

    def read(self, name: str) -> bytes:
        """The file that a cell names.

        Raises:
            InputError: it cannot be read.
        """
        if name in self.held:
            return self.held[name]
        if name.startswith(_INLINE):
            with reading(f"{self.label}: a picture in column {self.column!r}", "base64"):
                return base64.b64decode(name.partition(",")[2][: 2 * MAX_PICTURE])
        if is_address(name):
            with reading(f"{self.label}: {cut(name)}", advice="Fetch it again."):
                return kept(name).read_bytes()
        assert self.folder is not None
        return self.folder.read(self.paths[name])

    def size(self, name: str) -> int:
        """Bytes of the file that a cell names."""
        if self.folder is not None and name in self.paths and name not in self.held:
            return self.folder.size(self.paths[name])
        return len(self.read(name))

    def fetched(self, rows: Sequence[int]) -> dict[str, str]:
        """Fetch the web addresses of these rows; says of which that failed, and why."""
        return fetch_all([name for name in (self.names[i] for i in rows) if is_address(name)])


def find_pictures(table: ExaminedTable, column: str) -> Pictures:
    """Which pictures a column names, and which of them are there.

    Args:
        table: under examination; is told what is wrong, and which rows cannot stay.
        column: of names of files, web addresses or pictures in the table itself.
    """
    options, raw = table.options, table.raw
    texts, blank = read_texts(table.frame[column], blanks=("",))
    names = [str(text).strip() for text in texts]
    held = raw.pictures.get(column, {})
    inside = np.array([name in held or name.startswith(_INLINE) for name in names])
    remote = np.array([is_address(name) for name in names]) & ~inside
    files = ~inside & ~remote & ~blank
    gone = blank.copy()
    folder: PhotoSource | None = None
    paths: dict[str, str] = {}
    if files.any():
        folder, paths = _found_files(table, column, [names[i] for i in np.flatnonzero(files)])
        if folder is not None:
            missing = files & np.array([name not in paths for name in names])
            _about_missing(table, column, names, missing)
            gone |= missing
    if remote.any() and not options.fetch:
        hosts = list(dict.fromkeys(str(urlsplit(names[i]).hostname) for i in np.flatnonzero(remote)))
        n = len({names[i] for i in np.flatnonzero(remote)})
        here = sum(kept(name).is_file() for name in {names[i] for i in np.flatnonzero(remote)})
        if here < n:
            table.found.choice(
                "fetch",
                f"Column {column!r} names {counted(n, 'picture')} on the web, at "
                f"{listed(hosts, 3, quote=False)}. "
                "Nothing is fetched without your yes.",
                column,
                (Fix(f"Fetch {counted(n, 'picture')}", {"fetch": True}),),
            )
    if blank.any():
        table.found.note("missing", f"{counted(int(blank.sum()), 'row')} without a picture left out.", column)
    table.keep &= ~gone
    return Pictures(column, raw.name, names, held, folder, paths)


def _found_files(
    table: ExaminedTable, column: str, names: Sequence[str]
) -> tuple[PhotoSource | None, dict[str, str]]:
    """The folder of the files a column names, and their paths in it."""
    leave = Fix("Leave the column out", {"columns": {column: {"use": "leave out"}}})
    place = table.options.folder
    if not place:
        on_disk = _beside(table.raw.folder, names)
        if on_disk:
            return FolderFiles(table.raw.folder), on_disk
        words = (
            f"Column {column!r} names files ({cut(names[0])}), and they are not here. Give their folder "
            f"or a zip of "
            "it with folder=, or leave the column out."
        )
        table.found.choice("folder", words, column, (leave,))
        return None, {}
    try:
        folder = ImageFolder(File.of(place), MAX_PHOTO_BYTES)
    except InputError as error:
        table.found.choice("folder", f"Column {column!r} names files, but {error}", column, (leave,))
        return None, {}
    whole = {_plain(path): path for path in folder.paths}
    last: dict[str, str | None] = {}
    for path in folder.paths:
        name = PurePosixPath(path).name.lower()
        last[name] = None if name in last else path  # two of one name: only the whole path tells them apart
    found: dict[str, str] = {}
    for name in set(names):
        plain = _plain(name)
        match = whole.get(plain) or last.get(PurePosixPath(plain).name)
        if match is not None:
            found[name] = match
    return folder, found


def _beside(folder: str, names: Sequence[str]) -> dict[str, str]:
    """Name -> path, of the files that lie where a table's cells say, seen from the table; never outside."""
    if not folder:
        return {}
    members = FolderMembers(folder)
    found = {}
    for name in set(names):
        path = unquote(name).replace("\\", "/").removeprefix("./")
        if path in members:
            found[name] = path
    return found


def _plain(name: str) -> str:
    """A path as it is compared: with slashes, without what is before the folder itself."""
    return unquote(name).replace("\\", "/").removeprefix("./").lstrip("/").lower()


def _about_missing(table: ExaminedTable, column: str, names: Sequence[str], missing: Any) -> None:
    if not missing.any():
        return
    gone = [names[int(i)] for i in np.flatnonzero(missing)]
    if table.options.missing_files == "drop":
        words = f"{counted(len(gone), 'row')} left out whose file is not there: {listed(gone, 6)}."
        table.found.note("files", words, column)
        return
    row = int(np.flatnonzero(missing)[0])
    table.found.choice(
        "files",
        f"{counted(len(gone), 'file')} named in column {column!r} {'is' if len(gone) == 1 else 'are'} not "
        f"there: "
        f"{listed(gone, 6)}; the first on {table.raw.locate(row)}.",
        column,
        (Fix(f"Leave {'that row' if len(gone) == 1 else 'those rows'} out", {"missing_files": "drop"}),),
    )
