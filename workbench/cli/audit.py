"""Entries of the audit for what the command line does to projects."""

from __future__ import annotations

import getpass
from contextlib import suppress
from typing import TYPE_CHECKING

from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.store import ProjectSummary, Store
    from workbench.store.audit import Deed


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
