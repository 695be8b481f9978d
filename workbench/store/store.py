"""The database: projects and their events, runs and their rounds, behind one name.

Every write is one transaction; when a call returns, what it wrote survives a power cut.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from workbench.store.audit import Audit
from workbench.store.copies import Copies
from workbench.store.database import address_of
from workbench.store.people import People
from workbench.store.program_keys import ProgramKeys
from workbench.store.rounds import Rounds
from workbench.store.runs import Runs


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
        """Open (and create or migrate) a database.

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
