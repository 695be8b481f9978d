"""Advice on when to stop, for a run of a comparison and for a person's own project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from workbench.app.serving import jobs
from workbench.app.serving.jobs import DAY, Job, manager
from workbench.app.shell import downloads, frame, widgets
from workbench.app.words.text import plural, verbatim

if TYPE_CHECKING:
    from workbench.sessions import Session

KIND = "project-stopping-advice"
MOST_ROUNDS = 24
"""Rounds whose models are fitted again; of more, these are spread evenly, the last one among them."""
FEWEST_ROUNDS = 3


def project_advice(session: Session, *, again: bool = False) -> Job | None:
    """The advice on when to stop a project, worked out by a job that fits its rounds again.

    Args:
        session: of the project.
        again: start it where there is none, or one of fewer rounds.

    Returns:
        The newest job, None where there is none; its result is (labels [R], what the rule advises).
    """
    job = manager().get(session.id, KIND)
    if not again or (job is not None and job.active):
        return job
    rounds = session.rounds
    picked = np.unique(np.linspace(0, len(rounds) - 1, min(MOST_ROUNDS, len(rounds))).astype(int))
    inputs = "advised_project", session.store.url, session.id, [rounds[i].number for i in picked]
    new_job = manager().submit(
        session.id,
        KIND,
        lambda job: jobs.compute(job, *inputs, session=session),
        title="When to stop",
        lane="short",
        limit=DAY,
    )
    new_job.about = len(rounds)
    return new_job


def of_project(session: Session) -> None:
    """An expander with the advice for a project; it is worked out when somebody asks."""
    if len(session.rounds) >= FEWEST_ROUNDS:
        widgets.folded("When to stop", "stop-box", _advice, session)


def _advice(session: Session) -> None:
    job, n = project_advice(session), len(session.rounds)
    if job is None or job.status in ("cancelled", "failed") or (not job.active and job.about != n):
        fits = min(n, MOST_ROUNDS)
        st.caption(
            f"It looks at what changed from fit to fit. {plural(fits, 'fit')} of the past are "
            "made again for it, in the background. Advice only: nothing here stops anything."
        )
        st.button("Ask", key="ask-stop", on_click=ask, args=(session,))
    if job is None:
        return
    if job.status != "done":
        widgets.job_panel(job, "stop-advice")
        return
    shown(*job.result, key="own-stop")
    if session.model is not None:
        frame.link("finish", "Finish with a guarantee", ":material/verified:")


def ask(session: Session) -> None:
    """For the button."""
    project_advice(session, again=True)


def sentence(rule: Any, labels: list[int]) -> str:
    """The advice and when it was first given."""
    first = "" if rule.first is None else f" It first said stop at {plural(labels[rule.first], 'label')}."
    return f"{'Stop' if rule.stop else 'Go on'}: {rule.reason[0].lower()}{rule.reason[1:]}{first}"


def shown(labels: list[int], rules: list[Any], *, key: str = "stop") -> None:
    """A sentence and what it rests on, after each round.

    Args:
        labels: [R] after each round.
        rules: what the rule advises.
        key: of the elements.
    """
    from workbench.figures.curves import Panel, stopping_panels

    [rule] = rules
    st.markdown(f"**{verbatim(sentence(rule, labels))}**")
    first = None if rule.first is None else labels[rule.first]
    title = "Share of the sample whose class changed"
    fig = stopping_panels(np.asarray(labels), [Panel(title, rule.values, rule.limit, first, share=True)])
    downloads.figure(fig, f"{key}-panels", "Share of predictions that changed, after each round", "stopping")
