"""Blocks of several threads that add to one project within one database transaction."""

import threading
import time
from collections.abc import Callable

from workbench.store import Event, Store
from workbench.store.database_errors import was_cut_off

MOST = 64
"""Blocks that share a transaction."""
SECONDS = 0.05
"""How long a transaction is kept open for others who come."""


class TogetherError(Exception):
    """A transaction of several was refused for what one of them had added: each does it again, alone."""

    connection_invalidated = True  # as what a server cut off, it is done again (`store.retry`)


class Group:
    """One database transaction, and those who wait for its commit.

    Args:
        store: the database.
        project_id: of the project.
        known: the last event that the caller knows.

    Attributes:
        recorder: what its blocks add to, one after another.
        members: how many blocks there were.
        error: why nothing of it is stored; None while it is open, and where all of it is.
    """

    def __init__(self, store: Store, project_id: str, known: Event | None) -> None:
        self._transaction = store.recording(project_id, known)
        self.recorder = self._transaction.__enter__()
        self.members = 0
        self.error: BaseException | None = None
        self._begun = time.monotonic()
        self._ended = threading.Event()

    @property
    def full(self) -> bool:
        """True if nobody else may come in."""
        return self.members >= MOST or time.monotonic() - self._begun > SECONDS

    def end(self, error: BaseException | None = None) -> None:
        """Commit; or, where a block broke the transaction, let all of it go. Does not raise."""
        try:
            if error is None:
                self._transaction.__exit__(None, None, None)
            else:
                self._transaction.__exit__(type(error), error, error.__traceback__)
                self.error = error
        except BaseException as found:
            # whose fault it was nobody knows; what a cut connection or a full disk refused is all of it
            shared = self.members > 1 and type(found).__module__.startswith("sqlalchemy")
            cut_off = isinstance(found, Exception) and was_cut_off(found)
            self.error = TogetherError(str(found)) if shared and not cut_off else found

    def tell(self) -> None:
        """Wake those who wait."""
        self._ended.set()

    def passed(self, settle: Callable[[], None] | None = None) -> None:
        """Wait until it has ended, however.

        Args:
            settle: ends it, if it is still open; called where whoever was to do so does not come.
        """
        while not self._ended.wait(1.0):
            if settle is not None:
                settle()

    def wait(self, settle: Callable[[], None]) -> None:
        """Wait until it is on disk.

        Args:
            settle: as `passed` takes it.

        Raises:
            BaseException: nothing of it was stored; why.
        """
        self.passed(settle)
        if self.error is not None:
            raise self.error
