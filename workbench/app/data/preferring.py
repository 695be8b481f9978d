"""Which features the open project's labels prefer, on the Data page: a job, and the table it ends with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.access import current
from workbench.app.serving.jobs import Job, manager
from workbench.app.shell import widgets
from workbench.app.words.text import percent, plural, verbatim

if TYPE_CHECKING:
    from workbench.sessions import Session

KIND = "feature-preference"


def panel() -> None:
    """Shown where the open project's items are images or texts and have labels enough."""
    session = current.if_open()
    if session is None or session.pool.kind == "table":
        return
    # only now: without a project the first page loads no model
    from workbench.sessions.preference import LEAST_LABELS

    training = session.state.training
    if len(training) < LEAST_LABELS or len(set(training.values())) < 2:
        return
    job = manager().get(session.id, KIND)
    with st.expander(
        f"Which features do the labels of {verbatim(session.project.name, 60)} prefer?",
        icon=":material/visibility:",
        expanded=job is not None,
        key=f"preference-{session.id}",
    ):
        st.caption(
            f"Scores every set of features there is for these {session.pool.kind}s with the "
            f"{plural(len(training), 'label')} you gave, each label foretold by a model that did not see it; "
            "no label more is asked for. Takes up to a minute, with an encoder several."
        )
        if job is not None and (job.active or job.status != "done"):
            widgets.job_panel(job, "preference-job", height=64)
        if job is not None and job.status == "done":
            table(job.result)
        if job is None or not job.active:
            words = "Compare the features" if job is None else "Compare again"
            if st.button(words, key="compare-features", icon=":material/compare_arrows:"):
                compare(session)
                st.rerun()


def compare(session: Session) -> Job:
    """Start scoring; the job's result is a `Preference`."""
    state, seed = session.state, int(session.settings["seed"])

    def work(job: Job) -> Any:
        from workbench.sessions.preference import prefer

        return prefer(session.pool, state.training, len(state.classes), seed=seed, report=job.report)

    return manager().submit(session.id, KIND, work, title="Comparing features", lane="map")


def table(found: Any) -> None:
    """What came of it: a sentence, and a row a set."""
    best = found.best
    if best is None:
        st.warning("None of the sets could be scored.", icon=":material/warning:")
    else:
        words = f"{verbatim(str(found))} – leave-one-out error on {plural(found.n_labels, 'label')}."
        if best.in_use:
            words += f" The labels prefer **{verbatim(best.features)}**, which is in use."
        else:
            words += (
                f" The labels prefer **{verbatim(best.features)}**. They were asked for where the set in "
                "use is in doubt, which flatters the others a little. "
                "A new project on the same data can take it."
            )
        st.markdown(words)
    import pandas as pd

    rows = [
        {
            "Features": one.features + (" (in use)" if one.in_use else ""),
            "Leave-one-out error": one.problem or percent(one.error),
            "Log-likelihood": None if one.problem else round(one.log_likelihood, 3),
            "Seconds of processor": round(one.seconds, 1),
        }
        for one in found.scores
    ]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key=f"preference-table-{len(rows)}",
        alt="Sets of features, best first",
    )
    n = plural(found.n_items, "item")
    st.caption(f"Sets other than the one in use were made from {n}, the labelled ones among them.")
