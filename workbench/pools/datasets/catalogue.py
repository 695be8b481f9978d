"""Pools by name, and known data sets: what they are and where they lie; this imports no NumPy.

Files are looked for in the folder named by `WORKBENCH_DATA` and in the user's cache folder, in this
order. Downloads go through the packages of those who publish the data, into the first of them.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import InputError
from workbench.members import member_name
from workbench.registry import Entry, Registry, written_entries

if TYPE_CHECKING:
    from workbench.pools.pool import Kind

GROUPS = ("pmlb", "raetsch", "large", "images")
"""Groups of the catalogue; "pmlb:letter" names a set. "openml:NAME" and "libsvm:FILE" need no entry."""


@dataclass(frozen=True)
class CatalogueEntry:
    """One known data set.

    Attributes:
        group: "pmlb", "raetsch", "large" or "images".
        name: in its group.
        file: path below a data folder.
        n_items: N.
        n_features: D.
        n_classes: C.
        sha256: of the file.
        paper68: whether it is one of the 68 sets of the large-margin GP papers.
        paper_name: what the papers call it.
        source: where the file comes from.
        how: how to get it.
    """

    group: str
    name: str
    file: str
    n_items: int
    n_features: int
    n_classes: int
    sha256: str
    paper68: bool
    paper_name: str
    source: str
    how: str

    @property
    def full_name(self) -> str:
        """Names that `load_pool` takes, such as "pmlb:letter"."""
        return f"{self.group}:{self.name}"

    @property
    def path(self) -> Path | None:
        """The path of its file, or None when it is not there."""
        return find_file(self.file)


@cache
def catalogue() -> tuple[CatalogueEntry, ...]:
    """All known data sets, by group and name."""
    with bundled_file("catalogue.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            CatalogueEntry(
                **{key: value for key, value in row.items() if key != "bytes"}
                | {name: int(row[name]) for name in ("n_items", "n_features", "n_classes")}
                | {"paper68": row["paper68"] == "yes"}
            )
            for row in csv.DictReader(file)
        )


def bundled_file(name: str) -> Path:
    """A file of data/, which lies beside the package in the repository and inside it in a wheel.

    Args:
        name: of the file.

    Returns:
        Its path.

    Raises:
        InputError: the installation is incomplete.
    """
    package = Path(__file__).resolve().parents[2]
    for folder in (package.parent / "data", package / "bundled"):
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"The file {name!r} that belongs to this program is missing; install it again.")


def data_folders() -> list[Path]:
    """Folders in which data sets are looked for, first come first served; all of them exist."""
    folders = dict.fromkeys((cache_folder(), _user_cache()))
    return [folder for folder in folders if folder.is_dir()]


def cache_folder() -> Path:
    """The folder of downloads: `WORKBENCH_DATA` when it is set, else the user's cache folder."""
    setting = os.environ.get("WORKBENCH_DATA")
    return Path(setting).expanduser() if setting else _user_cache()


def _user_cache() -> Path:
    from platformdirs import user_cache_path

    return Path(user_cache_path("workbench")) / "datasets"


def find_file(file: str) -> Path | None:
    """The first data folder's copy of a file, or None.

    Args:
        file: path below a data folder.
    """
    try:
        member_name(file, "A set")
    except InputError:
        return None
    return next((folder / file for folder in data_folders() if (folder / file).is_file()), None)


def present_sets() -> list[CatalogueEntry]:
    """The known data sets that lie on this machine, by group and name."""
    # the folders are asked for once: finding them takes longer than looking into them
    folders = data_folders()
    return [e for e in catalogue() if e.file and any((folder / e.file).is_file() for folder in folders)]


def find_entry(group: str, name: str) -> CatalogueEntry | None:
    """The catalogue's entry, by today's name or by the papers' ("-" and "_" are alike)."""
    key = _folded(name)
    for entry in catalogue():
        if entry.group == group and key in (_folded(entry.name), _folded(entry.paper_name)):
            return entry
    return None


def _folded(name: str) -> str:
    return name.replace("-", "_").lower()


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
    "pool", written_entries(Path(__file__).parents[1] / "pools.toml", PoolEntry)
)
