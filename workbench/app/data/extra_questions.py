"""More questions about each item, chosen where a project begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.data.column_uses import chips
from workbench.app.words.text import plural
from workbench.errors import InputError
from workbench.reading import names_in

if TYPE_CHECKING:
    from workbench.pools.tables.report import TableReport

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


def columns_of(asked: Sequence[Any]) -> list[str]:
    """Names of the columns among questions that were chosen."""
    if not asked:
        return []
    from workbench.sessions.questions import columns_in

    return columns_in(asked)


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


def with_first(
    asked: Sequence[Any], name: str, classes: Sequence[str] | None, *, own: bool
) -> tuple[Any, ...]:
    """All questions of a project: that of the data's own classes before those that were chosen beside it.

    Args:
        asked: as `chosen` gives them.
        name: of the question about the data's own classes; "" for the usual one.
        classes: its classes; None for those that the data has.
        own: whether it is asked at all.
    """
    from workbench.store import LABEL

    return ((name or LABEL, list(classes or ())), *asked) if own else tuple(asked)
