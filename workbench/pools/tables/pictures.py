"""Pictures that a column names: files of a folder, web addresses, or bytes in the table itself."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from unicodedata import normalize
from urllib.parse import unquote, urlsplit

import numpy as np

from workbench.errors import InputError
from workbench.members import FolderMembers
from workbench.pools.cells import read_texts
from workbench.pools.formats.files import File
from workbench.pools.formats.images import ImageFolder
from workbench.pools.images.fetching import MAX_PICTURE, fetch_all, is_address, kept
from workbench.pools.images.photos import MAX_PHOTO_BYTES, PhotoSource
from workbench.pools.notebooks import counted
from workbench.pools.tables.report import Fix
from workbench.pools.tables.source_table import Pictured
from workbench.reading import cut, letters, listed, reading

if TYPE_CHECKING:
    from workbench.pools.tables.second_readings import ExaminedTable

_INLINE = "data:image/"


@dataclass(frozen=True)
class Pictures:
    """The pictures of a table, by what its cells say.

    Attributes:
        column: that names them.
        label: of the table, for messages.
        names: [N] the cells.
        embedded: those that lie in the table itself.
        folder: that holds the files; None where no cell names one.
        paths: name -> path in the folder.
    """

    column: str
    label: str
    names: Sequence[str]
    embedded: Pictured = field(default_factory=dict)
    folder: PhotoSource | None = None
    paths: Mapping[str, str] = field(default_factory=dict)

    @property
    def beside(self) -> str:
        """The folder of the table itself, where its cells name files in it; else ""."""
        return str(self.folder.root) if isinstance(self.folder, FolderMembers) else ""

    def read(self, name: str) -> bytes:
        """The file that a cell names.

        Raises:
            InputError: it cannot be read.
        """
        if name in self.embedded:
            return self.embedded[name]()
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
        if self.folder is not None and name in self.paths and name not in self.embedded:
            return self.folder.size(self.paths[name])
        return len(self.read(name))

    def fetched(self, rows: Sequence[int]) -> dict[str, str]:
        """Fetch the web addresses of these rows; says of which that failed, and why."""
        return fetch_all([name for name in (self.names[i] for i in rows) if is_address(name)])


def find_pictures(table: ExaminedTable, column: str) -> Pictures:
    """Pictures that a column names, and those of them that are there.

    Args:
        table: under examination; is told what is wrong, and which rows cannot stay.
        column: of names of files, web addresses or pictures in the table itself.
    """
    options, raw = table.options, table.raw
    texts, blank = read_texts(table.frame[column], blanks=("",))
    names = [str(text).strip() for text in texts]
    contents = raw.pictures.get(column, {})
    inside = np.array([name in contents or name.startswith(_INLINE) for name in names])
    remote = np.array([is_address(name) for name in names]) & ~inside
    files = ~inside & ~remote & ~blank
    gaps = blank.copy()
    folder: PhotoSource | None = None
    paths: dict[str, str] = {}
    if files.any():
        if column not in raw.pictures:
            folder, paths = _found_files(table, column, [names[i] for i in np.flatnonzero(files)])
        if column in raw.pictures or folder is not None:
            missing = files & np.array([name not in paths for name in names])
            _about_missing(table, column, names, missing)
            gaps |= missing
    if remote.any() and not options.fetch:
        hosts = list(dict.fromkeys(str(urlsplit(names[i]).hostname) for i in np.flatnonzero(remote)))
        n = len({names[i] for i in np.flatnonzero(remote)})
        n_cached = sum(kept(name).is_file() for name in {names[i] for i in np.flatnonzero(remote)})
        if n_cached < n:
            table.found.choice(
                "fetch",
                f"Column {column!r} names {counted(n, 'picture')} on the web, at "
                f"{listed(hosts, 3, quote=False)}. Nothing is fetched without your yes.",
                column,
                (Fix(f"Fetch {counted(n, 'picture')}", {"fetch": True}),),
            )
    if blank.any():
        table.found.note("missing", f"{counted(int(blank.sum()), 'row')} without a picture left out.", column)
    table.keep &= ~gaps
    return Pictures(column, raw.name, names, contents, folder, paths)


def _found_files(
    table: ExaminedTable, column: str, names: Sequence[str]
) -> tuple[PhotoSource | None, dict[str, str]]:
    """The folder of the files a column names, and their paths in it."""
    leave = Fix.to_use("Leave the column out", "leave out", column)
    place = table.options.folder
    if not place:
        on_disk = _beside(table.raw.folder, names)
        if on_disk:
            return FolderMembers(table.raw.folder), on_disk
        words = (
            f"Column {column!r} names files ({cut(names[0])}), and they are not here. Give their folder or a "
            "zip of it with folder=, or leave the column out."
        )
        table.found.choice("folder", words, column, (leave,))
        return None, {}
    try:
        folder = ImageFolder(File.of(place), MAX_PHOTO_BYTES)
    except InputError as error:
        table.found.choice("folder", f"Column {column!r} names files, but {error}", column, (leave,))
        return None, {}
    return folder, found_by_path(names, folder.paths)


def found_by_path(names: Sequence[str], paths: Sequence[str]) -> dict[str, str]:
    """The files that cells name.

    A file is found by its path, with its ending or without. Where none is so, it may be the one whose name
    differs in capitals, in the form of its accents or in escapes alone; the one of that name, where a cell
    says no folder; or the one that a start common to all such cells leads to. No file is found for two
    different cells.

    Args:
        names: what the cells say.
        paths: of the files, in their folder.

    Returns:
        Name -> path, of the cells whose file is there.
    """
    exact = _unique(paths, lambda path: _slashed(path).rpartition(".")[0])  # without its ending
    exact |= {_slashed(path): path for path in paths}
    folded, last = _unique(paths, _folded), _unique(paths, lambda path: PurePosixPath(_folded(path)).name)
    matches: dict[str, str] = {}
    loose: dict[str, str] = {}
    for name in dict.fromkeys(names):
        plain = _slashed(name)
        match = exact.get(plain) or exact.get(unquote(plain))
        if match is not None:
            matches[name] = match
            continue
        plain = _folded(unquote(plain))
        match = folded.get(plain) or (last.get(plain) if "/" not in plain else None)
        if match is not None:
            loose[name] = match
    used_paths = set(matches.values())
    rest = [name for name in dict.fromkeys(names) if name not in matches and name not in loose]
    for candidates in (loose, {} if matches or loose else _shifted(rest, folded)):
        cells: dict[str, set[str]] = {}
        for name, path in candidates.items():
            cells.setdefault(path, set()).add(_folded(unquote(_slashed(name))))
        matches |= {
            name: path
            for name, path in candidates.items()
            if path not in used_paths and len(cells[path]) == 1
        }
        used_paths = set(matches.values())
    return matches


def _shifted(names: Sequence[str], folded: Mapping[str, str]) -> dict[str, str]:
    """Files under one start more, or less, than all cells say: a table and its folder were parted."""
    plain = {name: _folded(unquote(_slashed(name))) for name in names}
    cells = set(plain.values())
    shifts: dict[tuple[str, str], dict[str, str]] = {}
    for path, file_path in folded.items():
        parts = path.split("/")
        for i in range(1, len(parts)):  # the folder has more before the path
            rest = "/".join(parts[i:])
            if rest in cells and "/" in rest:
                shifts.setdefault(("/".join(parts[:i]), ""), {})[rest] = file_path
    for cell in cells:
        parts = cell.split("/")
        for i in range(1, len(parts)):  # the cell has more
            rest = "/".join(parts[i:])
            if rest in folded:
                shifts.setdefault(("", "/".join(parts[:i])), {})[cell] = folded[rest]
    if len(shifts) != 1:
        return {}
    (by_cell,) = shifts.values()
    return {name: by_cell[cell] for name, cell in plain.items() if cell in by_cell}


def _unique(paths: Sequence[str], key: Callable[[str], str]) -> dict[str, str]:
    """Key -> path, of the keys that one path alone has."""
    by_key: dict[str, str | None] = {}
    for path in paths:
        by_key[key(path)] = None if key(path) in by_key else path
    return {name: path for name, path in by_key.items() if path is not None}


def _beside(folder: str, names: Sequence[str]) -> dict[str, str]:
    """Name -> path, of the files that lie where a table's cells say, seen from the table; never outside."""
    if not folder:
        return {}
    members = FolderMembers(folder)
    paths = {}
    for name in set(names):
        plain = name.replace("\\", "/").removeprefix("./")
        path = next(
            (
                path
                for path in (plain, unquote(plain), letters(plain), normalize("NFD", plain))
                if path in members
            ),
            None,
        )
        if path is not None:
            paths[name] = path
    return paths


def _slashed(name: str) -> str:
    """A path with slashes, seen from the folder itself."""
    return name.replace("\\", "/").removeprefix("./").lstrip("/")


def _folded(path: str) -> str:
    """A path as it is compared where capitals and the form of accents do not count."""
    return letters(_slashed(path)).casefold()


def _about_missing(table: ExaminedTable, column: str, names: Sequence[str], missing: Any) -> None:
    if not missing.any():
        return
    files = [names[int(i)] for i in np.flatnonzero(missing)]
    if table.options.missing_files == "drop":
        words = f"{counted(len(files), 'row')} left out whose file is not there: {listed(files, 6)}."
        table.found.note("files", words, column)
        return
    row = int(np.flatnonzero(missing)[0])
    table.found.choice(
        "files",
        f"{counted(len(files), 'file')} named in column {column!r} {'is' if len(files) == 1 else 'are'} not "
        f"there: {listed(files, 6)}; the first on {table.raw.locate(row)}.",
        column,
        (Fix(f"Leave {'that row' if len(files) == 1 else 'those rows'} out", {"missing_files": "drop"}),),
    )
