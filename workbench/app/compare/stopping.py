"""Advice on when to stop, for a run of a comparison and for a person's own project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from workbench.app.serving import background
from workbench.app.serving.jobs import Job, manager
from workbench.app.shell import downloads, frame, widgets
from workbench.app.words.text import plural, verbatim

if TYPE_CHECKING:
    from workbench.sessions import Session

KIND = "project-stopping-advice"
MOST_ROUNDS = 24
"""Rounds whose models are fitted again; of more, these are spread evenly, the last one among them."""
FEWEST_ROUNDS = 3
LOOKS_AT = {
    "budget": "Labels left of the budget",
    "overall-uncertainty": "Mean of 1 − max p over the sample",
    "classification-change": "Share of the sample whose class changed",
    "kappa": "Cohen's kappa with the round before",
    "held-out-error": "Error on held-out items",
}


def project_advice(session: Session, *, again: bool = False) -> Job | None:
    """What the stopping rules say of a project, worked out by a job that fits its rounds again.

    Args:
        session: of the project.
        again: start it where there is none, or one of fewer rounds.

    Returns:
        The newest job, None where there is none; its result is (labels [R], what each rule advises).
    """
    job = manager().get(session.id, KIND)
    if not again or (job is not None and job.active):
        return job
    rounds = session.rounds
    picked = np.unique(np.linspace(0, len(rounds) - 1, min(MOST_ROUNDS, len(rounds))).astype(int))
    chosen = [rounds[i] for i in picked]

    def work(job: Job) -> tuple[list[int], list[Any]]:
        numbers = [one.number for one in chosen]
        found: tuple[list[int], list[Any]] = background.compute(
            job, "advised_project", session.store.url, session.id, numbers, session=session
        )
        return found

    made = manager().submit(session.id, KIND, work, title="When to stop")
    made.about = len(rounds)
    return made


def of_project(session: Session) -> None:
    """An expander with the advice for a project; it is worked out when somebody asks."""
    n = len(session.rounds)
    if n < FEWEST_ROUNDS:
        return
    with st.expander("When to stop", key="stop-box", on_change="rerun") as box:
        if not box.open:
            return
        job = project_advice(session)
        if job is None or job.status in ("cancelled", "failed") or (not job.active and job.about != n):
            fits = min(n, MOST_ROUNDS)
            st.caption(
                f"Four rules look at what changed from fit to fit. {plural(fits, 'fit')} of the past are "
                "made again for it, in the background. Advice only: nothing here stops anything."
            )
            st.button("Ask the rules", key="ask-stop", on_click=ask, args=(session,))
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


def sentence(rules: list[Any], labels: list[int]) -> str:
    """What the rules say together."""
    from workbench.sessions.stopping import STOPPING

    said = [r for r in rules if r.first is not None]
    if not said:
        return f"No rule says stop at {plural(labels[-1], 'label')}."
    first = min(said, key=lambda r: r.first)
    return (
        f"{len(said)} of {plural(len(rules), 'rule')} would have said stop by now; the first, "
        f"{STOPPING[first.rule].title.lower()}, at {plural(labels[first.first], 'label')}."
    )


def shown(labels: list[int], rules: list[Any], *, key: str = "stop") -> None:
    """A sentence, a table and a panel a rule.

    Args:
        labels: [R] after each round.
        rules: what each advises.
        key: of the elements.
    """
    import pandas as pd

    from workbench.figures.stopping import Panel, stopping_panels
    from workbench.sessions.stopping import STOPPING

    def words(rule: Any) -> str:
        return "not yet" if rule.first is None else f"from {plural(labels[rule.first], 'label')} on"

    st.markdown(f"**{verbatim(sentence(rules, labels))}**")
    with st.container(key=f"{key}-table"):
        # not a grid: its cells would cut the reasons
        st.table(
            pd.DataFrame(
                [
                    {
                        "Rule": STOPPING[r.rule].title,
                        "Says stop": words(r),
                        "At the end": verbatim(r.reason, 400),
                    }
                    for r in rules
                ]
            ),
            border="horizontal",
            hide_index=True,
            alt="What each stopping rule advises",
        )
    fig = stopping_panels(
        np.asarray(labels),
        [
            Panel(
                LOOKS_AT.get(r.rule, STOPPING[r.rule].title),
                r.values,
                r.limit,
                None if r.first is None else labels[r.first],
                share=r.rule in ("classification-change", "held-out-error", "overall-uncertainty"),
            )
            for r in rules
        ],
    )
    widgets.figure(fig, f"{key}-panels", "What each stopping rule looks at, after each round")
    downloads.figure_downloads(fig, "stopping", f"save-{key}ping")
