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
from workbench.app.shell import widgets
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
class Doubt:
    """A label of one question that models expected not to be so.

    Attributes:
        question: name.
        decision: the label.
        said: what models say that did not see it.
    """

    question: str
    decision: decisions.Decision
    said: decisions.Opinion


@dataclass(slots=True)
class Looked:
    """What is known of the labels of all questions.

    Attributes:
        doubts: labels of which a model says another class, what looks wrong first, then by the chance that
            the label is right.
        n_labels: that were compared.
        n_questions: whose labels were.
        left: why others were not, in words: name -> reason.
        job: that compares the labels of one more question; None where all is done.
    """

    doubts: list[Doubt] = field(default_factory=list)
    n_labels: int = 0
    n_questions: int = 0
    left: dict[str, str] = field(default_factory=dict)
    job: Job | None = None

    @property
    def n_wrong(self) -> int:
        """How many look wrong."""
        return sum(one.said.wrong for one in self.doubts)


def looked(sessions: Mapping[str, Session], models: Mapping[str, FittedModel | None]) -> Looked:
    """Compare the labels of one question after the other with models that did not see them.

    Args:
        sessions: name of a question -> its session.
        models: name of a question -> the model whose training set is compared.

    Returns:
        What is known by now; while its job is under way, of the questions before.
    """
    found = Looked()
    for name, one in sessions.items():
        state, model = one.state, models.get(name)
        if model is None or model.classes != state.classes:
            found.left[name] = "no model yet" if model is None else "its classes changed since the fit"
            continue
        job = evaluation.cross_validation(one, model)
        if job.active:
            found.job = job
            return _in_order(found)
        if job.status != "done":
            found.left[name] = job.error or "cancelled"
            continue
        opinions = decisions.opinions(state, model, job.result)
        found.n_questions += 1
        found.n_labels += len(opinions)
        found.doubts += [
            Doubt(name, row, opinions[row.item])
            for row in decisions.decisions(one)
            if row.item in opinions and opinions[row.item].disagrees
        ]
    return _in_order(found)


def _in_order(found: Looked) -> Looked:
    found.doubts.sort(key=lambda one: (not one.said.wrong, one.said.self_confidence))
    return found


def verdict(found: Looked) -> str:
    """What the comparison comes to, in a sentence for people."""
    if not found.n_questions:
        return "No question has labels that a model could be compared with."
    of = f"{plural(found.n_labels, 'label')} of {plural(found.n_questions, 'question')}"
    if not found.doubts:
        return f"None of {of} looks wrong to a model that did not see it."
    if not found.n_wrong:
        return (
            f"None of {of} looks clearly wrong to a model that did not see it. Of {len(found.doubts):,} it "
            "expected another class."
        )
    if found.n_wrong == 1:
        return f"1 of {of} looks wrong to a model that did not see it: a hint, no proof."
    return f"{found.n_wrong:,} of {of} look wrong to models that did not see them: a hint, no proof."


def rows(pool: Any, doubts: Sequence[Doubt]) -> list[dict[str, Any]]:
    """The doubts as rows for people.

    Args:
        pool: of the project.
        doubts: in their order.
    """
    return [
        {"Question": one.question}
        | decision_tables.table(pool, [one.decision], {one.decision.item: one.said})[0]
        for one in doubts
    ]


def model_is_right(
    sessions: Mapping[str, Session], doubts: Sequence[Doubt]
) -> tuple[str, list[tuple[str, int]]]:
    """Give each of some labels the class that the model says, in its own question.

    Args:
        sessions: name of a question -> its session, of whoever decides.
        doubts: chosen ones.

    Returns:
        What was done, in a sentence, and (question, event) of each act.

    Raises:
        InputError: nothing is to be changed.
    """
    if not doubts:
        raise InputError("Nothing is selected.")
    by_question: dict[str, dict[str, list[int]]] = {}
    for one in doubts:
        by_question.setdefault(one.question, {}).setdefault(one.said.label, []).append(one.decision.item)
    acts = []
    for question, by_class in by_question.items():
        session = sessions[question]
        for name, items in by_class.items():
            corrections.relabel(session, items, name)
            last = session.state.undoable.get(session.annotator)
            if last is not None:
                acts.append((question, last.id))
    of = "" if len(by_question) == 1 else f" of {plural(len(by_question), 'question')}"
    return f"{plural(len(doubts), 'label')}{of} changed to what the model says.", acts


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
            key="every-question-start", type="primary", icon=":material/fact_check:",
        ):  # fmt: skip
            _begin(session)
        return
    sessions = {one.question_name: one for one in session.asked()}
    found = looked(sessions, models)
    if found.job is not None:
        done = found.n_questions + len(found.left)
        st.markdown(f"**{done:,} of {plural(len(sessions), 'question')} looked at.**")
        widgets.job_panel(found.job, "every-question", height=64)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{verdict(found)}**", width="content")
        newer = any(one.model is not None and one.model is not models.get(n) for n, one in sessions.items())
        if (
            newer
            and found.job is None
            and st.button(
                "Look again", key="every-question-newer", type="tertiary", icon=":material/refresh:"
            )
        ):
            _begin(session)
    _said(sessions)
    if found.left:
        with st.expander(f"{plural(len(found.left), 'question')} not compared", key="every-question-left"):
            st.markdown("\n".join(f"- {verbatim(name)}: {verbatim(why)}" for name, why in found.left.items()))
    if found.doubts:
        _table(session, sessions, found.doubts)


def _begin(session: Session) -> None:
    models = {one.question_name: one.model for one in session.asked()}
    st.session_state[_WANTED] = (session.question_ids, models)
    st.rerun()


def _table(session: Session, sessions: Mapping[str, Session], doubts: list[Doubt]) -> None:
    import pandas as pd

    if len(doubts) > MOST:
        st.caption(f"The first {MOST:,} of {len(doubts):,}.")
        doubts = doubts[:MOST]
    image = session.pool.kind == "image"
    # a selection is kept by row number: other rows are another table
    stamp = crc32(repr([(one.question, one.decision.item) for one in doubts]).encode())
    made = st.dataframe(
        pd.DataFrame(rows(session.pool, doubts)),
        hide_index=True,
        key=f"every-question-{stamp:x}",
        height=min(40 + (60 if image else 35) * len(doubts), _HEIGHT),
        row_height=60 if image else 35,
        on_select="rerun",
        selection_mode="multi-row",
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
    chosen = [doubts[i] for i in made.selection.rows if i < len(doubts)]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            f"The model is right about {plural(len(chosen), 'label')}" if chosen else "The model is right",
            key="every-question-right",
            type="primary",
            disabled=not chosen,
            on_click=_change,
            args=(sessions, chosen),
        )
        if st.button(
            f"Open {verbatim(chosen[0].question, 40)}" if chosen else "Open its question",
            key="every-question-open", disabled=not chosen, icon=":material/arrow_forward:",
        ):  # fmt: skip
            current.choose(sessions[chosen[0].question].id)
            st.rerun()
        if not chosen:
            st.caption("Select rows at their left edge to change them.")


def _change(sessions: Mapping[str, Session], chosen: list[Doubt]) -> None:
    try:
        st.session_state[_DONE] = model_is_right(sessions, chosen)
    except InputError as error:
        st.session_state[_DONE] = (str(error), [])


def _undo(sessions: Mapping[str, Session], acts: list[tuple[str, int]]) -> None:
    st.session_state[_DONE] = (take_back(sessions, acts), [])


def _said(sessions: Mapping[str, Session]) -> None:
    """What the last change did, and the way back."""
    words, acts = st.session_state.get(_DONE, ("", []))
    if not words:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="every-question-said"):
        st.markdown(f":material/check: {verbatim(words)}", width="content")
        if acts:
            st.button(
                "Undo", key="every-question-undo", icon=":material/undo:", type="tertiary",
                on_click=_undo, args=(sessions, acts),
            )  # fmt: skip
