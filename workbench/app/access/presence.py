"""Who labels a project together, as its owner sees them, and how others join."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.access import auditing, current, guests, joining, login
from workbench.app.words.text import plural, verbatim
from workbench.sessions.presence import LATELY, people_of

if TYPE_CHECKING:
    from workbench.sessions import Session
    from workbench.store import ProjectSummary


@st.fragment(run_every=5.0)
def table(shared: Session) -> None:
    """Who is there and how fast they are; looks again by itself."""
    import pandas as pd

    with shared.snapshot():
        people, now = people_of(shared.state, shared.events), datetime.now(UTC)
    if not people:
        return
    here = sum(one.last is not None and now - one.last <= LATELY for one in people)
    st.caption(f"{plural(here, 'person', 'people')} answered in the last ten minutes")
    rows = [
        {
            "Person": one.name,
            "Labels": one.labels,
            "A minute": one.a_minute or None,
            "Last answer": one.last,
        }
        for one in people
    ]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key="people-now",
        alt="Each person's labels, pace and last answer",
        column_config={
            "A minute": st.column_config.NumberColumn(format="%.1f", help="Over the last ten minutes."),
            "Last answer": st.column_config.DatetimeColumn(format="distance"),
        },
    )


def invite(shared: Session) -> None:
    """A QR code and the address of the desk, where whoever opens it gives a name and labels."""
    with st.expander("Others join", icon=":material/qr_code_2:", key="invite"):
        if login.required():
            if without_account(shared.project, "history"):
                return
            st.markdown(
                f"Whoever has logged in and may open **{verbatim(shared.project.name, 80)}** joins by this "
                "address; *Share* on Data says who may."
            )
        else:
            st.markdown("Whoever opens this gives a name on the page and is asked about items of their own.")
        joining.join({current.PARAMETER: shared.id}, page="label")


def without_account(record: ProjectSummary, where: str) -> bool:
    """The owner's switch for people without an account, and their link.

    Args:
        record: the project.
        where: on which page, for the key.

    Returns:
        Whether they may come, so that the link is shown.
    """
    on = guests.allowed(record)
    if login.may_change(record):
        # the key is of what is stored: what another tab changed is shown, and not changed back
        st.toggle(
            "People without an account may join",
            value=on,
            key=f"guests-{where}-{record.id}-{on}",
            on_change=_let_in,
            args=(record, not on),
            help="They give a name and label here, and open nothing else. Off again, nobody of them comes in "
            "any more; their labels stay.",
        )
    if on:
        st.markdown("Whoever opens this gives a name and labels in this project alone, without an account.")
        joining.join(guests.link(record), page=guests.PATH.strip("/"))
    return on


def _let_in(record: ProjectSummary, on: bool) -> None:
    guests.allow(record, on)
    auditing.record("shared", project=record.id, called=record.name, detail="guests" if on else "no guests")
