"""Files, folders and uploads: what their names say and how large they may be, before anything is read."""

from __future__ import annotations

import bz2
import gzip
import io
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from workbench.errors import InputError
from workbench.members import FolderMembers, Members, ZipMembers
from workbench.reading import cut, listed, reading

MAX_BYTES = 400 << 20
"""Most bytes of a file that is read whole, also once unpacked."""
MAX_CELLS = 50_000_000
"""Most numbers of a table, or of all images together."""
MAX_COLUMNS = 100_000
MAX_ITEMS = 20_000_000

TABLES = (".csv", ".tsv", ".xlsx", ".xls", ".ods", ".json", ".jsonl")
IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm")
METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
"""Tables beside images, as `datasets` calls them."""
SPLITS = ("train", "validation", "valid", "val", "dev", "test")
"""Names of the parts of a dataset, in their usual order."""
_OF_SPLIT = re.compile(r"(?:^|[/_.-])(train|test|validation|valid|dev|val)(?=[/_.-]|$)")
_DOCUMENTS = (".txt", ".md", ".pdf", ".names", ".html", ".rst", ".docx", "license", "readme", "index")
_PACKED = (".gz", ".bz2")
_OPENERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open}


@dataclass(frozen=True)
class File:
    """A file or a folder on disk, or the bytes of an upload.

    Attributes:
        source: its path, or its bytes.
        name: what messages call it; its ending says what it is.
    """

    source: Path | bytes
    name: str

    @classmethod
    def of(cls, source: File | str | Path | bytes, file_name: str | None = None) -> File:
        """Something a person named.

        Args:
            source: a path, or an upload's bytes.
            file_name: name of an upload.

        Raises:
            InputError: nothing there, or a pipe or a device, which cannot be read twice.
        """
        if isinstance(source, File):
            return source
        name = Path(file_name).name if file_name else ""
        if isinstance(source, bytes):
            return cls(source, name or "the upload")._alone()
        path = Path(source).expanduser()
        with reading(f"The path {cut(str(source), 120)}"):
            if not path.exists():
                raise InputError(f"There is no file {cut(str(source), 200)}.")
            if not path.is_file() and not path.is_dir():
                raise InputError(
                    f"{cut(str(source), 120)} is neither a file nor a folder but a pipe or a device. "
                    "Write its contents to a file, and name that."
                )
        return cls(path, name or path.name or path.resolve().name or str(path))._alone()

    def _alone(self, within: bool = False) -> File:
        """The one table that a zip, or a zip in it, holds beside what explains it; else itself."""
        if self.is_folder or not self.name.lower().endswith(".zip"):
            return self
        try:
            members = self.members()
            names = [name for name in members.sizes if not name.startswith("__MACOSX/")]
            names = [name for name in names if not name.lower().endswith(_DOCUMENTS)]
            inner = () if within else (".zip",)
            if len(names) != 1 or not names[0].lower().endswith((*TABLES, *inner)):
                return self
            return File(members.read(names[0], MAX_BYTES), names[0].rpartition("/")[2])._alone(True)
        except InputError:
            return self  # its reader says what is wrong with it

    @property
    def is_upload(self) -> bool:
        """True if it is held in memory."""
        return isinstance(self.source, bytes)

    @property
    def is_folder(self) -> bool:
        """True if it is a folder."""
        return isinstance(self.source, Path) and self.source.is_dir()

    @property
    def path(self) -> Path:
        """The path on this machine; not for uploads."""
        assert isinstance(self.source, Path)
        return self.source

    @property
    def plain_name(self) -> str:
        """The name in lower case, without the ending of a packer."""
        name = self.name.lower()
        return next((name.removesuffix(ending) for ending in _PACKED if name.endswith(ending)), name)

    @property
    def stem(self) -> str:
        """The name without what its format and its packer added."""
        name = self.name[: len(self.plain_name)]
        stem, dot, ending = name.rpartition(".")
        return stem if dot and stem and len(ending) <= 8 else name or "pool"

    def head(self, n: int) -> bytes:
        """The first n bytes."""
        with reading(self.name), self.open() as stream:
            return stream.read(n)

    def open(self) -> IO[bytes]:
        """The file as it stands, for reading."""
        if isinstance(self.source, bytes):
            return io.BytesIO(self.source)
        if self.is_folder:
            raise InputError(f"{self.path} is a folder; name a file in it.")
        return self.path.open("rb")

    def size(self) -> int:
        """Bytes as it stands."""
        return len(self.source) if isinstance(self.source, bytes) else self.source.stat().st_size

    def content(self, max_bytes: int = MAX_BYTES) -> bytes:
        """The whole file, unpacked when it is a .gz or .bz2.

        Args:
            max_bytes: most bytes, packed and unpacked.

        Raises:
            InputError: a folder, unreadable, damaged or too large.
        """
        with reading(self.name, advice="Download or save it again."):
            with self.open() as stream:
                check_size(self.name, self.size(), max_bytes)
                data = stream.read()
            opener = next((_OPENERS[magic] for magic in _OPENERS if data.startswith(magic)), None)
            if opener is None:
                if self.name.lower().endswith(_PACKED):
                    raise InputError(f"{self.name} is a damaged .gz or .bz2 file. Download or pack it again.")
                return data
            with (
                reading(self.name, "a whole .gz or .bz2 file", "Download or pack it again."),
                opener(io.BytesIO(data), "rb") as unpacked,
            ):
                data = unpacked.read(max_bytes + 1)
            check_size(f"{self.name} (unpacked)", len(data), max_bytes)
            return data

    def zipped(self, form: str) -> zipfile.ZipFile:
        """The file as a zip archive.

        Args:
            form: what it should be, for messages ("an NPZ file").

        Raises:
            InputError: not a zip that can be read.
        """
        with reading(self.name, form):
            return zipfile.ZipFile(io.BytesIO(self.source) if isinstance(self.source, bytes) else self.path)

    def members(self, form: str = "a zip file") -> Members:
        """The files in the folder or the zip: the only ones that a name in one of them can mean.

        Args:
            form: what it should be, where it is no folder, for messages.

        Raises:
            InputError: neither a folder nor a zip that can be read.
        """
        return (
            FolderMembers(self.path, self.name)
            if self.is_folder
            else ZipMembers(self.zipped(form), self.name)
        )


def check_size(name: str, size: int, max_bytes: int) -> None:
    """Refuse what is larger than allowed.

    Raises:
        InputError: too large; says what to do.
    """
    if size > max_bytes:
        raise InputError(
            f"{name} holds {size / 2**20:,.0f} MB or more; the limit is {max_bytes / 2**20:,.0f} MB. "
            "Convert it to NPY, which is read piece by piece, take a part of it, or raise max_bytes."
        )


def check_cells(
    name: str, n_rows: int, n_columns: int, max_cells: int, max_columns: int = MAX_COLUMNS
) -> None:
    """Refuse tables with too many cells or columns.

    Raises:
        InputError: too many; says what to do.
    """
    if n_rows * n_columns > max_cells:
        raise InputError(
            f"{name} has {n_rows:,} rows x {n_columns:,} columns = {n_rows * n_columns:,} cells; "
            f"the limit is {max_cells:,}. Take fewer rows or columns, or raise max_cells."
        )
    if n_columns > max_columns:
        raise InputError(
            f"{name} has {n_columns:,} columns; the limit is {max_columns:,}. Take fewer of them (of "
            "numbers an NPZ file may hold more), or bring them down by principal components first."
        )


def check_choice(option: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse a value that an option does not have.

    Raises:
        InputError: says which it has.
    """
    if value not in choices:
        raise InputError(f"{option}={cut(value)} is not one of {', '.join(map(repr, choices))}.")


def by_split(
    name: str, paths: Sequence[str], split: str | None
) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """Files by the split that their paths name, in the usual order; those that name none are "train".

    Args:
        name: of the dataset.
        paths: of the files.
        split: the one that is wanted; None takes all.

    Returns:
        Split -> files, and notes: one where several are taken.

    Raises:
        InputError: no such split.
    """
    files: dict[str, list[str]] = {}
    for path in paths:
        matches = _OF_SPLIT.findall(path.lower())
        files.setdefault(matches[-1] if matches else "train", []).append(path)
    split_names = sorted(files, key=SPLITS.index)
    if split is not None:
        if split not in files:
            raise InputError(f"{name} has no split {cut(split)}; it has {listed(split_names)}.")
        split_names = [split]
    words = f"Splits one after the other: {', '.join(split_names)} (split= takes one)."
    return {name: files[name] for name in split_names}, (words,) if split_names[1:] else ()
