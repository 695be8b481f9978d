"""The questions of a project, in a dialog of the Data page: another one, other names, put aside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.access import current, login
from workbench.app.shell import widgets
from workbench.app.words.text import plural, refused, verbatim
from workbench.reading import names_in
from workbench.store import ProjectSummary

if TYPE_CHECKING:
    from workbench.sessions import Session

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
    questions = session.questions.every
    first = len(questions) > FEW
    if may and first:
        _another(session)
    for question in questions:
        _row(session, question, may)
    if may and not first:
        _another(session)
    if not may:
        st.caption("Its owner adds questions and changes them.")


def _row(session: Session, record: ProjectSummary, may: bool) -> None:
    with widgets.row(f"question-row-{record.id}", align="bottom"):
        n = record.n_labelled or 0
        label = plural(n, "item") + " answered" + (", not asked any more" if record.aside else "")
        name = st.text_input(
            verbatim(label), value=record.question, key=f"question-name-{record.id}", disabled=not may
        )
        if not may:
            return
        if (
            st.button("Rename", key=f"question-rename-{record.id}", type="tertiary")
            and name != record.question
        ):
            _done(lambda: session.questions.rename(record.id, name))
        words, aside = ("Ask again", False) if record.aside else ("Put aside", True)
        if st.button(words, key=f"question-aside-{record.id}", type="tertiary"):
            _done(lambda: session.questions.archive(record.id, aside))


def _another(session: Session) -> None:
    with (
        st.form("another-question", border=False, clear_on_submit=True),
        widgets.row(align="bottom"),
    ):
        name = st.text_input("One more question", max_chars=100, placeholder="urgent")
        text = st.text_input(
            "Classes, with commas between",
            placeholder="empty: yes or no",
            help="An item has one of them. Without any the question is a switch, yes or no.",
        )
        if st.form_submit_button("Add", icon=":material/add:"):
            classes = names_in(text)
            _done(lambda: session.questions.add((name, classes) if classes else name))


def _done(work: Callable[[], object]) -> None:
    with refused():
        work()
        st.rerun(scope="fragment")
