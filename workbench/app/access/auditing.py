"""The audit log of what people opened, exported, shared, deleted and uploaded, as owners see it.

It stands in the database (`workbench log` prints it) and, without ids, in the server's log.
"""

from __future__ import annotations

import getpass
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.access import current, login
from workbench.errors import InputError
from workbench.reading import cut
from workbench.store import ProjectSummary, Store
from workbench.store.accounts import AuditEntry, Deed

if TYPE_CHECKING:
    from workbench.sessions import Session

MOST = 500  # entries that History shows
_log = logging.getLogger(__name__)
_log.setLevel(logging.INFO)


def record(
    what: Deed,
    project: str | None = None,
    called: str = "",
    detail: str = "",
    *,
    octets: int | None = None,
    by: login.Person | None = None,
    name: str = "",
) -> None:
    """Record what somebody did; what cannot be recorded is said in the log and stops nobody.

    Args:
        what: one of `store.audit.DEEDS`.
        project: its id.
        called: its name.
        detail: which file, whom it was shared with.
        octets: bytes of an upload.
        by: who, with a log-in; whoever the page's script runs for unless given.
        name: who, without a log-in; the machine's user unless given.
    """
    if login.required():
        by = by or login.of_page()
    actor = by.name if by is not None else name or current.person(_user())
    entry = AuditEntry(what, actor, "" if by is None else by.key, project, called, detail, octets)
    try:
        Store.open().audit.record(entry)
    except InputError as error:
        _log.error("What %s did (%s) could not be recorded: %s", actor, what, error)
    else:
        _log.info("%s %s %s%s", actor, what, cut(called), f" ({detail})" if detail else "")


def opened(session: Session) -> None:
    """Record that whoever sits here opened a project: once in each visit of a browser's tab."""
    session_ids = st.session_state.setdefault("audited", set())
    if session.id not in session_ids:
        session_ids.add(session.id)
        record("opened", session.id, session.project.name)


def exported(session: Session, file: str) -> Callable[[login.Person | None], None]:
    """Audit entries for files of a project that somebody took away.

    Args:
        session: of whoever the page was drawn for.
        file: its name.
    """
    project, title, name = session.id, session.project.name, session.annotator
    return lambda person: record("exported", project, title, file, by=person, name=name)


def table(project: ProjectSummary) -> None:
    """Acts of people on a project, for its owner."""
    import pandas as pd

    entries = Store.open().audit.entries(project=project.id, most=MOST)
    if not entries:
        st.caption("Nothing yet.")
        return
    st.dataframe(
        pd.DataFrame(rows(entries)),
        hide_index=True,
        key="audit-table",
        alt="Who opened, exported and shared the project, newest first",
    )


def rows(entries: Sequence[AuditEntry]) -> list[dict[str, str]]:
    """Entries as people read them."""
    return [
        {
            "When (UTC)": entry.time[:19].replace("T", " "),
            "Who": entry.name,
            "What": entry.what,
            "About": entry.detail,
        }
        for entry in entries
    ]


# --- limits ---------------------------------------------------------------------------------------------


def room_for_project() -> None:
    """See that whoever sits here may have one more project.

    Raises:
        InputError: they have as many as the file of the log-in says.
    """
    quota, person = login.limit("projects"), login.of_page()
    if quota is None or person is None:
        return
    n = sum(project.owner == person.key for project in Store.open().projects())
    if n >= quota:
        raise InputError(
            f"You have {n} projects, and one person may have {quota} on this server. Delete one, or ask "
            "whoever runs it ([workbench] projects)."
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "somebody"
