"""The filter *All questions* of History: labels of every question that look wrong, together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.history import decisions
from workbench.app.serving import evaluation
from workbench.app.serving.caching import computed
from workbench.app.serving.jobs import Job, manager
from workbench.app.shell import widgets
from workbench.app.words.text import plural, verbatim

if TYPE_CHECKING:
    from workbench.sessions import Session
    from workbench.sessions.fitted_model import FittedModel

_WANTED = "every-question-wanted"
"""State: the questions whose labels were asked to be compared, and name -> model of each."""


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
        return sum(issue.said.wrong for issue in self.issues)


def find_issues(sessions: Mapping[str, Session], models: Mapping[str, FittedModel | None]) -> LabelIssues:
    """Compare the labels of one question after the other with models that did not see them.

    Args:
        sessions: name of a question -> its session.
        models: name of a question -> the model whose training set is compared.

    Returns:
        What is known by now; while its job is under way, of the questions before.
    """
    report = LabelIssues()
    compared: list[tuple[str, Session, FittedModel, Job]] = []
    for name, question in sessions.items():
        model = models.get(name)
        if model is None or model.classes != question.state.classes:
            report.left[name] = "no model yet" if model is None else "its classes changed since the fit"
            continue
        if any(job.status == "cancelled" for job in report.ended):
            report.left[name] = "not looked at: cancelled before"
            continue
        job = evaluation.cross_validation(question, model)
        if job.active:
            report.job = job
            break
        if job.status == "done":
            compared.append((name, question, model, job))
        else:
            report.left[name] = job.error or "cancelled"
            report.ended.append(job)
    report.n_questions = len(compared)
    for name, question, model, job in compared:
        n, pairs = computed(_disagreeing, question, model, job, at=question.state.last_event)
        report.n_labels += n
        report.issues += [LabelIssue(name, row, opinion) for row, opinion in pairs]
    report.issues.sort(key=lambda issue: (not issue.said.wrong, issue.said.right))
    return report


def _disagreeing(
    session: Session, model: FittedModel, job: Job
) -> tuple[int, list[tuple[decisions.Decision, decisions.Opinion]]]:
    """Number of labels that were compared, and those where a model expected another class."""
    opinions = decisions.opinions_of(session, model, job)
    rows = [(row, opinions[row.item]) for row in decisions.decisions(session) if row.item in opinions]
    return len(opinions), [(row, opinion) for row, opinion in rows if opinion.disagrees]


def verdict(report: LabelIssues) -> str:
    """Result of the comparison, in a sentence for people."""
    if not report.n_questions:
        return "No question has labels that a model could be compared with."
    of = f"{plural(report.n_labels, 'label')} of {plural(report.n_questions, 'question')}"
    if not report.issues:
        return f"None of {of} looks wrong to a model that did not see it."
    likely = decisions.likely_wrong([issue.said for issue in report.issues])
    statement = f"models that did not see them expected another class for {len(report.issues):,}"
    clause = f", of which {report.n_wrong:,} {'looks' if report.n_wrong == 1 else 'look'} wrong"
    return f"Of {of} {statement}{clause if report.n_wrong else ''}: {likely} of these are likely wrong."


# --------------------------------------------------------------------------- the part of the page


def part(session: Session) -> tuple[list[LabelIssue], str]:
    """The comparison of all questions, once somebody asks for it.

    Args:
        session: of whoever looks, of any question of the project.

    Returns:
        What looks wrong (nothing while it is looked for), and the version of the comparison.
    """
    # as the models were when it was asked for: what is changed here moves no row
    question_ids, models = st.session_state.get(_WANTED, ((), {}))
    if question_ids != session.questions.ids:
        st.markdown(
            "Each label of each question is compared with a model that did not see it; what looks wrong "
            "stands in one gallery."
        )
        if st.button(
            f"Compare the labels of {plural(len(session.questions), 'question')}",
            key="every-question-start",
            type="primary",
            icon=":material/fact_check:",
        ):
            _begin(session)
        return [], ""
    sessions = _by_name(session)
    report = find_issues(sessions, models)
    with widgets.row():
        if report.job is None:
            st.markdown(f"**{verdict(report)}**", width="content")
            _ways_on(session, sessions, models, report)
        else:
            n_done = report.n_questions + len(report.left)
            st.markdown(f"**{n_done:,} of {plural(len(sessions), 'question')} looked at.**")
    if report.job is not None:
        widgets.job_panel(report.job, "every-question", height=64)
    if report.left:
        with st.expander(f"{plural(len(report.left), 'question')} not compared", key="every-question-left"):
            st.markdown(
                "\n".join(f"- {verbatim(name)}: {verbatim(why)}" for name, why in report.left.items())
            )
    fits = ["" if model is None else model.uid for model in models.values()]
    return report.issues if report.job is None else [], repr((fits, report.left))


def tiles(session: Session, issues: Sequence[LabelIssue], picture: str) -> list[dict[str, Any]]:
    """The issues as tiles of the gallery, each with its question."""
    return [
        decisions.tiles(session.pool, [issue.decision], {issue.decision.item: issue.said}, picture)[0]
        | {"question": issue.question}
        for issue in issues
    ]


def _ways_on(
    session: Session,
    sessions: Mapping[str, Session],
    models: Mapping[str, FittedModel | None],
    report: LabelIssues,
) -> None:
    """Look again with newer models, or at what was not compared."""
    newer = any(
        question.model is not None and question.model is not models.get(n) for n, question in sessions.items()
    )
    look = {"type": "tertiary", "icon": ":material/refresh:"}
    if newer and st.button("Look again", key="every-question-newer", **look):  # type: ignore[arg-type]
        _begin(session)
    if report.ended and st.button("Try again", key="every-question-again", **look):  # type: ignore[arg-type]
        for job in report.ended:
            manager().forget(job)
        st.rerun()


def _by_name(session: Session) -> dict[str, Session]:
    """Name of a question -> its session."""
    return {question.question_name: question for question in session.questions.sessions()}


def _begin(session: Session) -> None:
    models = {name: question.model for name, question in _by_name(session).items()}
    st.session_state[_WANTED] = (session.questions.ids, models)
    st.rerun()
