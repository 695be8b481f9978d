"""The questions about each item: chosen where a project begins, and changed in a dialog of the Data page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.access import current, login
from workbench.app.data.column_uses import chips
from workbench.app.shell import widgets
from workbench.app.words.text import plural, refused, verbatim
from workbench.errors import InputError
from workbench.reading import names_in
from workbench.store import ProjectSummary

if TYPE_CHECKING:
    from workbench.pools.tables.report import TableReport
    from workbench.sessions import Session

FEW = 6
"""Questions above which the form for another one stands before them, where it is seen."""
_NEVER = ("class", "id", "text", "picture")
_FEW = 20
"""Different values of a column up to which it looks like the answers to a question."""


def chosen(key: str, report: TableReport | None = None) -> tuple[Any, ...]:
    """Widgets for further questions; what is chosen now, as `Session.create` takes it.

    Args:
        key: makes widget keys unique.
        report: of the table, whose columns may hold answers; None where there is none.

    Raises:
        InputError: what was typed is no question.
    """
    can = candidates(report)
    likely = looks_answered(report)
    hint = f": {plural(len(likely), 'column')} may hold answers" if likely else ""
    with st.expander(f"More questions about each item{hint}", icon=":material/checklist:", key=f"{key}-box"):
        st.caption("Topic, tone, is it urgent: each has its own classes, model and figures.")
        columns = (
            st.multiselect(
                "Columns that hold their answers",
                can,
                key=f"{key}-columns",
                placeholder="None",
                help="Yes or no, names of classes, or several names with ; between them. What is filled in "
                "is taken over, the empty cells are asked, and the model does not see these columns.",
            )
            if can
            else []
        )
        typed = st.text_area(
            "Others, one a line",
            key=f"{key}-typed",
            placeholder="urgent\ntone: angry, calm",
            height=100,
            max_chars=20_000,
            help="A name alone is answered by yes or no. With names of classes behind a colon an item has "
            "one of these.",
        )
        questions = questions_in(typed)
        if questions:
            names = [question if isinstance(question, str) else question[0] for question in questions]
            chips(dict.fromkeys(names), "question", "questions")
    return (*(f"column:{name}" for name in columns), *questions)


def columns_of(questions: Sequence[Any]) -> list[str]:
    """Names of the columns among questions that were chosen."""
    if not questions:
        return []
    from workbench.sessions.questions import columns_in

    return columns_in(questions)


def candidates(report: TableReport | None) -> list[str]:
    """Columns that can hold the answers to a question."""
    from workbench.sessions.questions import MOST_CLASSES

    if report is None:
        return []
    return [
        column.name
        for column in report.columns
        if 0 < column.n_unique <= MOST_CLASSES and (column.use is None or column.use.use not in _NEVER)
    ]


def looks_answered(report: TableReport | None) -> list[str]:
    """Columns beside a text or a picture that look like answers: these alone are what the model sees."""
    if report is None:
        return []
    uses = {column.use.use for column in report.columns if column.use is not None}
    if not uses & {"text", "picture"}:
        return []
    few = {column.name for column in report.columns if column.n_unique <= _FEW}
    return [name for name in candidates(report) if name in few]


def questions_in(typed: str) -> list[Any]:
    """Questions as a person typed them, one a line: a name, or a name, a colon and names of classes.

    Raises:
        InputError: a line without a name, or with less than two classes behind the colon.
    """
    questions: list[Any] = []
    for line in filter(None, map(str.strip, typed.splitlines())):
        name, colon, rest = (part.strip() for part in line.partition(":"))
        classes = names_in(rest)
        if not name:
            raise InputError(f"The line {line!r} has no name of a question before the colon.")
        if colon and len(classes) < 2:
            raise InputError(
                f"{name!r} needs two classes or more behind the colon, with commas between; or no colon, for "
                "yes or no."
            )
        questions.append((name, classes) if colon else name)
    return questions


# --------------------------------------------------------------------------- the dialog


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
