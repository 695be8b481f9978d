"""Operands of commands: the project that is named, the files that are read and written, the audit's entry."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.values import parse_settings
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.pools.formats.files import File
    from workbench.sessions import Session
    from workbench.store import ProjectSummary, Store
    from workbench.store.audit import Deed


def project_named(project: str, question: str | None = None) -> tuple[ProjectSummary, Store]:
    """The project with this id, or the only one with this name; by one of its questions where it is named."""
    from workbench.store import Store

    store = Store.open()
    return store.named(project, question), store


def session_of(project: str, question: str | None = None) -> Session:
    """Open the session of a project, or of one of its questions."""
    from workbench.sessions import Session

    record, store = project_named(project, question)
    return Session.open(record.id, store=store)


def answers_in(file: Path, read: Sequence[str] | None) -> File:
    """A file of answers; where somebody says how it is read, as a table that says the same in UTF-8.

    Args:
        file: its path.
        read: values of --read.
    """
    from workbench.pools import read_rows
    from workbench.pools.cells import plain_text
    from workbench.pools.formats.files import File

    if not read and file.suffix.lower() not in (".feather", ".arrow"):
        return File.of(file)
    frame = read_rows(file, **parse_settings(read or [], "--read"))
    for note in frame.attrs["notes"]:
        print(note, file=sys.stderr)
    frame = frame.map(plain_text)
    return File(frame.to_csv(index=False).encode(), f"{file.stem}.csv")


def files_kept(*inputs: Path | str | None) -> Iterator[Path | str | None]:
    """Paths that a command never writes: what it reads, and what the projects here need."""
    from workbench.store import Store
    from workbench.store.needed_files import files_in_use

    yield from inputs
    yield from files_in_use(Store.open())


def check_out(out: Path | None, *inputs: Path | str | None, replace: bool) -> None:
    """Refuse the place of a command's result before the work is done.

    Args:
        out: given by --out; None prints.
        inputs: files and folders that the command reads.
        replace: whether --replace was given.

    Raises:
        InputError: as `check_place`.
    """
    from workbench.writing import check_place

    if out is not None:
        check_place(out, protected=files_kept(*inputs), replace=replace)


def deliver(text: str, out: Path | None, *inputs: Path | str, replace: bool) -> None:
    """Write the result of a command to the place that --out names, or print it."""
    if out is None:
        sys.stdout.write(text)
        return
    from workbench.writing import chosen_file

    with chosen_file(out, protected=files_kept(*inputs), replace=replace) as file:
        file.write(text.encode())


def done(store: Store, what: Deed, project: ProjectSummary, detail: str) -> None:
    """Record what the command line did to a project.

    Args:
        store: where the project is.
        what: one of `store.audit.DEEDS`.
        project: the project.
        detail: which file, whom it was shared with.
    """
    from workbench.store.audit import AuditEntry

    try:
        name = f"{getpass.getuser()} (command line)"
    except (OSError, KeyError):
        name = "command line"
    # a home that cannot be written keeps nobody from their labels
    with suppress(InputError):
        store.record_deed(AuditEntry(what, name, project=project.id, called=project.name, detail=detail))
