"""The database: projects and their events, runs and their rounds, behind one name.

Every write is one transaction; when a call returns, what it wrote survives a power cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any

from workbench.store.accounts import Audit, People, ProgramKeys
from workbench.store.copies import Copies
from workbench.store.database import address_of
from workbench.store.runs import Rounds, Runs


class Store(Copies):
    """The database. Build with `Store.open`; safe to share between threads and processes.

    Attributes:
        url: of the database.
        rounds: fits of runs and of projects.
        runs: runs and studies.
        people: those who logged in.
        audit: who did what to a project.
        keys: keys of programs.
    """

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.rounds, self.runs = Rounds(self), Runs(self)
        self.people, self.audit, self.keys = People(self), Audit(self), ProgramKeys(self)

    @classmethod
    def open(cls, url: str | Path | None = None) -> Store:
        """Open (and create) a database.

        Args:
            url: an SQLAlchemy URL, or a path of an SQLite file; None means WORKBENCH_DATABASE_URL,
                else `workbench.sqlite` under `workbench_home()`. The same URL gives the same Store
                within a process.

        Raises:
            InputError: the URL cannot be read or the database cannot be opened.
        """
        address = address_of(url)
        with _OPEN_LOCK:
            if address not in _OPEN:
                _OPEN[address] = cls(address)
            return _OPEN[address]

    def close(self) -> None:
        """Let go of the connections; the Store must not be used afterwards."""
        with _OPEN_LOCK:
            _OPEN.pop(self.url, None)
        super().close()


_OPEN: dict[str, Store] = {}
_OPEN_LOCK = Lock()


_VECTORS = "embeddings:"  # before the path of a file of vectors


def files_in_use(store: Store) -> Iterator[Path]:
    """Files and folders that the projects of a database need: their pools, features made elsewhere, itself.

    Args:
        store: of the projects.

    Yields:
        Paths, also of what is not there now.
    """
    if store.url.startswith("sqlite"):
        from sqlalchemy import make_url

        if place := make_url(store.url).database:
            yield Path(place)
    for project in store.projects():
        for key, text in _texts(project.pool):
            vectors = text.removeprefix(_VECTORS)
            if vectors != text:
                yield Path(vectors.partition("#")[0])
            elif key == "folder" or Path(text).is_absolute():
                yield Path(text)


def _texts(document: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """The texts of a document, each with the key it stands at."""
    if isinstance(document, dict):
        for name, part in document.items():
            yield from _texts(part, str(name))
    elif isinstance(document, list):
        for part in document:
            yield from _texts(part, key)
    elif isinstance(document, str):
        yield key, document
