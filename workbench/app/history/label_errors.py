"""The part *All questions* of History: labels of every question that look wrong, in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zlib import crc32

import streamlit as st

from workbench.app.access import current
from workbench.app.history import corrections, decision_tables, decisions
from workbench.app.serving import evaluation
from workbench.app.serving.caching import computed
from workbench.app.serving.jobs import manager
from workbench.app.shell import frame, widgets
from workbench.app.words.text import plural, verbatim
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.app.serving.jobs import Job
    from workbench.sessions import Session
    from workbench.sessions.fitted_model import FittedModel

MOST = 200
"""Rows of the table; with pictures, so many are still quick."""
_HEIGHT = 460
_WANTED, _DONE = "every-question-wanted", "every-question-done"


@dataclass(frozen=True, slots=True)
class LabelIssue:
    """A label of one question of which a model that did not see it says another class.

    Attributes:
        question: name.
        decision: the label.
        said: what the model says.
    """

    question: str
    decision: decisions.Decision
    said: decisions.Opinion


@dataclass(slots=True)
class LabelIssues:
    """Comparison of the labels of all questions with models.

    Attributes:
        issues: what looks wrong first, then by the chance that the label is right.
        n_labels: that were compared.
        n_questions: whose labels were.
        left: why others were not, in words: name -> reason.
        job: that compares the labels of one more question; None where all is done.
        ended: jobs that failed or were cancelled.
    """

    issues: list[LabelIssue] = field(default_factory=list)
    n_labels: int = 0
    n_questions: int = 0
    left: dict[str, str] = field(default_factory=dict)
    job: Job | None = None
    ended: list[Job] = field(default_factory=list)

    @property
    def n_wrong(self) -> int:
        """Number of labels that look wrong."""
        return sum(one.said.wrong for one in self.issues)


def find_issues(sessions: Mapping[str, Session], models: Mapping[str, FittedModel | None]) -> LabelIssues:
    """Compare the labels of one question after the other with models that did not see them.

    Args:
        sessions: name of a question -> its session.
        models: name of a question -> the model whose training set is compared.

    Returns:
        What is known by now; while its job is under way, of the questions before.
    """
    found = LabelIssues()
    compared: list[tuple[str, Session, FittedModel, Job]] = []
    for name, one in sessions.items():
        model = models.get(name)
        if model is None or model.classes != one.state.classes:
            found.left[name] = "no model yet" if model is None else "its classes changed since the fit"
            continue
        if any(job.status == "cancelled" for job in found.ended):
            found.left[name] = "not looked at: cancelled before"
            continue
        job = evaluation.cross_validation(one, model)
        if job.active:
            found.job = job
            break
        if job.status == "done":
            compared.append((name, one, model, job))
        else:
            found.left[name] = job.error or "cancelled"
            found.ended.append(job)
    found.n_questions = len(compared)
    for name, one, model, job in compared:
        n, pairs = computed(_disagreeing, one, model, job, at=one.state.last_event)
        found.n_labels += n
        found.issues += [LabelIssue(name, row, said) for row, said in pairs]
    found.issues.sort(key=lambda one: (not one.said.wrong, one.said.right))
    return found


def _disagreeing(
    session: Session, model: FittedModel, job: Job
) -> tuple[int, list[tuple[decisions.Decision, decisions.Opinion]]]:
    """Number of labels that were compared, and those where a model expected another class."""
    opinions = decisions.opinions(session.state, model, job.result)
    rows = [(row, opinions[row.item]) for row in decisions.decisions(session) if row.item in opinions]
    return len(opinions), [(row, said) for row, said in rows if said.disagrees]


def verdict(found: LabelIssues) -> str:
    """Result of the comparison, in a sentence for people."""
    if not found.n_questions:
        return "No question has labels that a model could be compared with."
    of = f"{plural(found.n_labels, 'label')} of {plural(found.n_questions, 'question')}"
    if not found.issues:
        return f"None of {of} looks wrong to a model that did not see it."
    likely = decisions.likely_wrong([one.said for one in found.issues])
    some = f"models that did not see them expected another class for {len(found.issues):,}"
    named = f", of which {found.n_wrong:,} {'looks' if found.n_wrong == 1 else 'look'} wrong"
    return f"Of {of} {some}{named if found.n_wrong else ''}: {likely} of these are likely wrong."


def rows(pool: Any, issues: Sequence[LabelIssue]) -> list[dict[str, Any]]:
    """The issues as rows for people.

    Args:
        pool: of the project.
        issues: in their order.
    """
    return [
        {"Question": one.question}
        | decision_tables.table(pool, [one.decision], {one.decision.item: one.said})[0]
        for one in issues
    ]


def model_is_right(
    sessions: Mapping[str, Session], issues: Sequence[LabelIssue]
) -> tuple[str, list[tuple[str, int]]]:
    """Give each of some labels the class that the model says, in its own question.

    Args:
        sessions: name of a question -> its session, of whoever decides.
        issues: chosen ones.

    Returns:
        What was done, in a sentence, and (question, event) of each act.

    Raises:
        InputError: nothing is to be changed.
    """
    if not issues:
        raise InputError("Nothing is selected.")
    by_question: dict[str, dict[str, list[int]]] = {}
    for one in issues:
        by_question.setdefault(one.question, {}).setdefault(one.said.label, []).append(one.decision.item)
    acts = []
    for question, by_class in by_question.items():
        session = sessions[question]
        for name, items in by_class.items():
            before = session.state.undoable.get(session.annotator)
            corrections.relabel(session, items, name)
            last = session.state.undoable.get(session.annotator)
            # where somebody else has changed them meanwhile, nothing was done that could be taken back
            if last is not None and (before is None or before.id != last.id):
                acts.append((question, last.id))
    of = "" if len(by_question) == 1 else f" of {plural(len(by_question), 'question')}"
    return f"{plural(len(issues), 'label')}{of} changed to what the model says.", acts


def take_back(sessions: Mapping[str, Session], acts: Sequence[tuple[str, int]]) -> str:
    """Undo acts of `model_is_right`, as far as nothing was done in their questions since.

    Args:
        sessions: name of a question -> its session, of whoever decided.
        acts: in the order in which they were done.

    Returns:
        What was taken back, in a sentence.
    """
    undone = [sessions[question].undo(of=act) for question, act in reversed(acts)]
    if None in undone:
        n = sum(one is None for one in undone)
        return f"{plural(n, 'change')} not taken back, as you did something else in their question since."
    return "Taken back."


# --------------------------------------------------------------------------- the part of the page


def part(session: Session) -> None:
    """The table of all questions, once somebody asks for it.

    Args:
        session: of whoever looks, of any question of the project.
    """
    # as the models were when it was asked for: what is changed here moves no row
    kept, models = st.session_state.get(_WANTED, ((), {}))
    if kept != session.question_ids:
        st.markdown(
            "Each label of each question is compared with a model that did not see it; what looks wrong "
            "stands in one table."
        )
        if st.button(
            f"Compare the labels of {plural(len(session.questions), 'question')}",
            key="every-question-start",
            type="primary",
            icon=":material/fact_check:",
        ):
            _begin(session)
        return
    sessions = {one.question_name: one for one in session.asked()}
    found = find_issues(sessions, models)
    with st.container(horizontal=True, vertical_alignment="center"):
        if found.job is None:
            st.markdown(f"**{verdict(found)}**", width="content")
            _ways_on(session, sessions, models, found)
        else:
            done = found.n_questions + len(found.left)
            st.markdown(f"**{done:,} of {plural(len(sessions), 'question')} looked at.**")
    if found.job is not None:
        widgets.job_panel(found.job, "every-question", height=64)
    _said(session, sessions)
    if found.left:
        with st.expander(f"{plural(len(found.left), 'question')} not compared", key="every-question-left"):
            st.markdown("\n".join(f"- {verbatim(name)}: {verbatim(why)}" for name, why in found.left.items()))
    if found.issues:
        _table(session, sessions, found.issues)


def _ways_on(
    session: Session,
    sessions: Mapping[str, Session],
    models: Mapping[str, FittedModel | None],
    found: LabelIssues,
) -> None:
    """Look again with newer models, or at what was not compared."""
    newer = any(one.model is not None and one.model is not models.get(n) for n, one in sessions.items())
    look = {"type": "tertiary", "icon": ":material/refresh:"}
    if newer and st.button("Look again", key="every-question-newer", **look):  # type: ignore[arg-type]
        _begin(session)
    if found.ended and st.button("Try again", key="every-question-again", **look):  # type: ignore[arg-type]
        for job in found.ended:
            manager().forget(job)
        st.rerun()


def _begin(session: Session) -> None:
    models = {one.question_name: one.model for one in session.asked()}
    st.session_state[_WANTED] = (session.question_ids, models)
    st.rerun()


def _table(session: Session, sessions: Mapping[str, Session], issues: list[LabelIssue]) -> None:
    import pandas as pd

    if len(issues) > MOST:
        st.caption(f"The first {MOST:,} of {len(issues):,}.")
        issues = issues[:MOST]
    image = session.pool.kind == "image"
    # a selection is kept by row number: other rows are another table
    stamp = crc32(repr([(one.question, one.decision.item) for one in issues]).encode())
    made = st.dataframe(
        pd.DataFrame(rows(session.pool, issues)),
        hide_index=True,
        key=f"every-question-{stamp:x}",
        height=min(40 + (60 if image else 35) * len(issues), _HEIGHT),
        row_height=60 if image else 35,
        on_select="rerun",
        selection_mode="multi-row",
        placeholder="",
        alt="Labels of all questions that look wrong, with what a model says",
        column_config={
            "Question": st.column_config.TextColumn(width=150),
            "Picture": st.column_config.ImageColumn(width=70),
            "Chance it is right": st.column_config.ProgressColumn(
                format="percent", min_value=0, max_value=1, width=125
            ),
            "Shows": st.column_config.TextColumn(width="large"),
        },
    )
    chosen = [issues[i] for i in made.selection.rows if i < len(issues)]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            f"The model is right about {plural(len(chosen), 'label')}" if chosen else "The model is right",
            key="every-question-right",
            type="primary",
            disabled=not chosen,
            on_click=_change,
            args=(session, sessions, chosen),
        )
        if st.button(
            f"Open {verbatim(chosen[0].question, 40)}" if chosen else "Open its question",
            key="every-question-open",
            disabled=not chosen,
            icon=":material/arrow_forward:",
        ):
            current.choose(sessions[chosen[0].question].id)
            st.rerun()
        if not chosen:
            st.caption("Select rows at their left edge to change them.")


def _change(session: Session, sessions: Mapping[str, Session], chosen: list[LabelIssue]) -> None:
    try:
        _keep(session, *model_is_right(sessions, chosen))
    except InputError as error:
        _keep(session, str(error), [])


def _undo(session: Session, sessions: Mapping[str, Session], acts: list[tuple[str, int]]) -> None:
    _keep(session, take_back(sessions, acts), [])


def _keep(session: Session, words: str, acts: list[tuple[str, int]]) -> None:
    # of this visit and these questions: elsewhere its undo would be of something else
    st.session_state[_DONE] = (session.question_ids, st.session_state[frame.VISIT], words, acts)


def _said(session: Session, sessions: Mapping[str, Session]) -> None:
    """Result of the last change of this visit, and the way back."""
    ids, visit, words, acts = st.session_state.get(_DONE, ((), None, "", []))
    if (ids, visit) != (session.question_ids, st.session_state[frame.VISIT]):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="every-question-said"):
        st.markdown(f":material/check: {verbatim(words)}", width="content")
        if acts:
            st.button(
                "Undo",
                key="every-question-undo",
                icon=":material/undo:",
                type="tertiary",
                on_click=_undo,
                args=(session, sessions, acts),
            )
