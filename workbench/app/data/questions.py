"""The questions of a project, in a dialog of the Data page: another one, other names, put aside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.access import current, login
from workbench.app.words.text import plural, verbatim
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.sessions import Session
    from workbench.store import ProjectSummary

FEW = 6
"""Questions above which the form for another one stands before them, where it is seen."""


@st.dialog("Questions about each item", width="medium")
def dialog(record: ProjectSummary) -> None:
    """Ask one more question, rename one or put it aside.

    Args:
        record: the project; whoever may change it changes its questions.
    """
    session = current.opened(record.id)
    st.markdown(
        "Each question has its own classes, model and figures; at the desk all of them stand below the item."
    )
    may = login.may_change(record)
    asked = session.every_question
    first = len(asked) > FEW
    if may and first:
        _another(session)
    for one in asked:
        _row(session, one, may)
    if may and not first:
        _another(session)
    if not may:
        st.caption("Its owner adds questions and changes them.")


def _row(session: Session, one: ProjectSummary, may: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"question-row-{one.id}"):
        n = one.n_labelled or 0
        label = plural(n, "item") + " answered" + (", not asked any more" if one.aside else "")
        name = st.text_input(
            verbatim(label), value=one.question, key=f"question-name-{one.id}", disabled=not may
        )
        if not may:
            return
        if st.button("Rename", key=f"question-rename-{one.id}", type="tertiary") and name != one.question:
            _done(lambda: session.rename_question(one.id, name))
        words, aside = ("Ask again", False) if one.aside else ("Put aside", True)
        if st.button(words, key=f"question-aside-{one.id}", type="tertiary"):
            _done(lambda: session.archive_question(one.id, aside))


def _another(session: Session) -> None:
    with (
        st.form("another-question", border=False, clear_on_submit=True),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        name = st.text_input("One more question", max_chars=100, placeholder="urgent")
        given = st.text_input(
            "Classes, with commas between",
            placeholder="empty: yes or no",
            help="An item has one of them. Without any the question is a switch, yes or no.",
        )
        if st.form_submit_button("Add", icon=":material/add:"):
            classes = [one.strip() for one in given.split(",") if one.strip()]
            _done(lambda: session.add_question((name, classes) if classes else name))


def _done(work: Callable[[], object]) -> None:
    try:
        work()
    except InputError as error:
        st.error(verbatim(error), icon=":material/error:")
        return
    st.rerun(scope="fragment")
