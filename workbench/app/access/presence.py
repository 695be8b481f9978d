"""People who label a project together, as its owner sees them, and how others join."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.access import current, joining, login
from workbench.app.words.text import plural, verbatim
from workbench.sessions.presence import LATELY, people_of

if TYPE_CHECKING:
    from workbench.sessions import Session


@st.fragment(run_every=5.0)
def table(shared: Session) -> None:
    """People who are there and their speed; looks again by itself."""
    import pandas as pd

    with shared.log.snapshot():
        people, moment = people_of(shared.state, shared.log.events), datetime.now(UTC)
    if not people:
        return
    n_active = sum(person.last is not None and moment - person.last <= LATELY for person in people)
    st.caption(f"{plural(n_active, 'person', 'people')} answered in the last ten minutes")
    rows = [
        {
            "Person": person.name,
            "Labels": person.labels,
            "A minute": person.a_minute or None,
            "Last answer": person.last,
        }
        for person in people
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
            st.markdown(
                f"Whoever has logged in and may open **{verbatim(shared.project.name, 80)}** joins by this "
                "address; *Share* on Data says who may."
            )
        else:
            st.markdown("Whoever opens this gives a name on the page and is asked about items of their own.")
        joining.join({current.PARAMETER: shared.id}, page="label")
