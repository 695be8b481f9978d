"""Files that are made or read beside the server: what a page offers, waits for, and shows meanwhile."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import IO, TYPE_CHECKING, Any

from workbench.app.serving import jobs
from workbench.app.serving.jobs import DAY, Job, manager
from workbench.app.shell import widgets
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.sessions import Session

MANY = 50_000
"""Rows from which on a file takes long enough to be made with a bar, and fetched when it is there."""
PATIENCE = 2.0
"""Seconds for which a page waits for a file that is read before it shows a bar."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Making:
    """A file that a function of `workbench.studies.tasks` writes.

    Attributes:
        target: name of the function.
        arguments: of it, after `say` and the place.
        title: of the work, for people.
        session: of the project that it is about.
        rows: how many it holds, as far as that is known.
    """

    target: str
    arguments: tuple[Any, ...]
    title: str = field(compare=False)
    session: Session | None = field(default=None, compare=False)
    rows: int = field(default=0, compare=False)

    @property
    def is_long(self) -> bool:
        """True if a person is to see how far it is."""
        return self.rows >= MANY

    def begin(self, owner: str, kind: str) -> Job:
        """Have it made; the job's result is the open file, which has no name on disk any more."""
        return manager().submit(owner, kind, self.made, title=self.title, lane="file", limit=DAY)

    def made(self, job: Job) -> IO[bytes]:
        """The file, open for reading.

        Args:
            job: that is told how far it is, and says when to stop.

        Raises:
            InputError: it cannot be made, or there is no room for it.
            Cancelled: the job was.
        """
        with told_plainly(), TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            place = Path(folder) / "file"
            jobs.compute(
                job,
                self.target,
                str(place),
                *self.arguments,
                where=jobs.file_work,
                session=self.session,
            )
            return place.open("rb")


def of_project(target: str, session: Session, title: str, *arguments: Any, rows: int = 0) -> Making:
    """A file about a project: `arguments` follow its database and id."""
    return Making(target, (session.store.url, session.id, *arguments), title, session, rows)


@contextmanager
def told_plainly() -> Iterator[None]:
    """Words of the system about a file, for people.

    Raises:
        InputError: for an OSError within the block.
    """
    try:
        yield
    except OSError as error:
        raise InputError(not_made(error)) from error


def not_made(error: OSError) -> str:
    """Why a file could not be made, in a sentence."""
    room = f"; it is made in {gettempdir()}, where there may be no room (TMPDIR names another folder)"
    why = (error.strerror or str(error)) + (room if error.errno in _NO_ROOM else "")
    return f"The file could not be made: {why}."


def read(
    owner: str,
    kind: str,
    target: str,
    *arguments: Any,
    title: str,
    data: bytes | None = None,
    session: Session | None = None,
    tries: int = jobs.TRIES,
    patience: float = PATIENCE,
) -> Any | None:
    """Result of a function of `studies.tasks` for a file; None while the page shows how far it is.

    A page that asks again with the same owner and kind looks at the same work, and has its result once.

    Args:
        owner: whose it is.
        kind: of the job; names all that the result depends on.
        target: name of the function.
        arguments: its arguments after `say` and, where there is `data`, the place of the file.
        title: of the work, for people.
        data: of an uploaded file.
        session: of the project that is among the arguments.
        tries: as for `jobs.compute`.
        patience: seconds to wait before it shows a bar. A dialog waits long: the page's run that comes with
            the end of a bar would shut it.

    Raises:
        InputError: as the function; whatever was wrong may be mended, so the next run asks anew.
    """
    job = manager().get(owner, kind)
    if job is None:
        work = partial(_read, target=target, arguments=arguments, data=data, session=session, tries=tries)
        job = manager().submit(owner, kind, work, title=title, lane="file", limit=DAY)
        job.wait(patience)
    if job.status == "done":
        manager().forget(job)
        return job.result
    if job.status == "failed" and not job.details:
        manager().forget(job)
        raise InputError(job.error)
    widgets.job_panel(job, "reading-file", height=64, again=True)
    return None


def _read(
    job: Job,
    target: str,
    arguments: tuple[Any, ...],
    data: bytes | None,
    session: Session | None,
    tries: int,
) -> Any:
    call: Callable[..., Any] = partial(
        jobs.compute, job, target, where=jobs.file_work, session=session, tries=tries
    )
    if data is None:
        return call(*arguments)
    with told_plainly(), TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Path(folder) / "file"
        place.write_bytes(data)
        return call(str(place), *arguments)
