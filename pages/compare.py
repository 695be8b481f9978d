"""Compare: policies against random on one pool, the curves growing as rounds finish."""

from __future__ import annotations

from typing import Any

import streamlit as st

from workbench.app import comparison, current, forms, widgets
from workbench.app.text import percent, plural, verbatim
from workbench.classifiers import CLASSIFIERS
from workbench.errors import InputError
from workbench.figures.curves import learning_curve
from workbench.policies import POLICIES
from workbench.pools import POOLS

OWN = "this project's pool"
HEIGHT = 430


def choose(token: str | None) -> None:
    if token is None:
        st.query_params.pop(comparison.PARAMETER, None)
        st.session_state.pop("comparison", None)
    else:
        st.query_params[comparison.PARAMETER] = token
        st.session_state["comparison"] = token


def chosen() -> str | None:
    given = st.query_params.get(comparison.PARAMETER) or st.session_state.get("comparison")
    if given:
        choose(given)
    return given


def sources() -> list[str]:
    opened = current.session()
    names = list(POOLS)
    if opened is None or not opened.pool.has_truth:
        return names
    own = str(opened.project.pool["name"])
    return [own, *(n for n in names if n != own)] if own in names else [OWN, *names]


def form() -> None:
    opened = current.session()
    st.header("A new comparison")
    with st.container(border=True, key="comparison-form"):
        names = sources()
        left, middle, right = st.columns([1.2, 1.2, 1], gap="medium")
        pool = left.selectbox(
            "Pool", names, format_func=lambda n: POOLS[n].title if n in POOLS else n, key="compare-pool"
        )
        kind, n_classes = ("table", 0) if pool == OWN else (POOLS[pool].kind, POOLS[pool].n_classes)
        classifier = middle.selectbox(
            "Model",
            forms.classifiers_for(kind, n_classes),
            format_func=lambda n: CLASSIFIERS[n].title,
            key="compare-model",
        )
        possible = [p for p in forms.policies_for(classifier) if p != comparison.BASELINE]
        policies = st.pills(
            "Policies against random",
            possible,
            selection_mode="multi",
            default=possible[:1],
            format_func=lambda n: POLICIES[n].title,
            key=f"compare-policies-{classifier}",
        )
        seeds = right.number_input(
            "Seeds", 1, 50, 5, key="compare-seeds", help="Runs of each policy, paired."
        )
        left, middle, right = st.columns([1.2, 1.2, 1], gap="medium", vertical_alignment="bottom")
        budget = left.number_input("Labels asked for in each run", 1, 2000, 60, step=10, key="compare-budget")
        batch = middle.number_input("Asked at a time", 1, 100, 1, key="compare-batch")
        if right.button(
            "Start", type="primary", key="start-comparison", width="stretch", icon=":material/play_arrow:"
        ):
            if not policies:
                st.error("Choose at least one policy to hold against random.", icon=":material/error:")
                return
            reference: Any = {"name": pool} if pool != OWN or opened is None else dict(opened.project.pool)
            from workbench.studies import StudySpec

            try:
                spec = StudySpec(
                    name="app",
                    pools=(str(reference["name"]),),
                    classifiers=(classifier,),
                    policies=(*policies, comparison.BASELINE),
                    seeds=int(seeds),
                    pool_options=dict(reference.get("options", {})),
                    budget=int(budget),
                    batch=int(batch),
                )
                choose(comparison.start(spec, current.project_id()))
            except InputError as error:
                st.error(verbatim(error), icon=":material/error:")
                return
            st.rerun()
        runs = (1 + len(policies)) * int(seeds)
        st.caption(
            f"{plural(runs, 'run')} of {1 + -(-int(budget) // int(batch))} rounds. Runs of one seed share "
            "the test split and the first labels, so differences are the policies'."
        )


def picture(found: comparison.Results, policies: tuple[str, ...], measure: str, key: str) -> None:
    title, share = comparison.MEASURES[measure]
    fig = learning_curve(
        comparison.curves(found, policies, measure), measure=title, share=share, height=HEIGHT
    )
    widgets.figure(fig, key, f"{title} against the number of labels, one line a policy")


@st.fragment(run_every=1.0)
def watched(token: str, policies: tuple[str, ...], measure: str) -> None:
    job = comparison.job_of(token)
    if job is None or not job.active:
        st.rerun()
    bar(job)
    picture(job.partial or {}, policies, measure, "comparison-curve")


def bar(job: Any) -> None:
    words = "stopping" if job.cancelling else job.message or "waiting for its turn"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="comparison-bar"):
        st.progress(job.fraction, text=f"{job.fraction:.0%} · {verbatim(words)}")
        if st.button("Cancel", key="cancel-comparison", icon=":material/stop:", disabled=job.cancelling):
            job.cancel()
            st.rerun()


def shown(token: str) -> None:
    found = comparison.find(token)
    spec = found.spec
    pool = spec.pools[0]
    title = POOLS[pool].title if pool in POOLS else pool.replace("\\", "/").rpartition("/")[2]
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.header(verbatim(title, 60))
        if st.button("New comparison", key="new-comparison", type="tertiary", icon=":material/add:"):
            choose(None)
            st.rerun()
    facts = [
        CLASSIFIERS[spec.classifiers[0]].title if spec.classifiers[0] in CLASSIFIERS else spec.classifiers[0],
        plural(spec.seeds, "seed"),
        f"{plural(spec.budget, 'label')} each",
        f"{spec.batch} at a time",
    ]
    st.caption(" · ".join(map(verbatim, facts)))
    measure = st.segmented_control(
        "Measure",
        list(comparison.MEASURES),
        default="error",
        required=True,
        format_func=lambda m: comparison.MEASURES[m][0].partition(",")[0],
        key="comparison-measure",
        label_visibility="collapsed",
        persist_state="session",
    )
    job = comparison.job_of(token)
    if job is not None and job.active:
        watched(token, spec.policies, measure)
        return
    results = comparison.results(found)
    left = len(spec.runs()) - found.n_finished
    if left:
        with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="comparison-rest"):
            if job is not None and job.status == "failed":
                st.error(verbatim(job.error), icon=":material/error:")
            else:
                st.info(
                    f"Stopped with {plural(left, 'run')} to go. What was finished is kept.",
                    icon=":material/pause:",
                )
            if st.button("Go on", key="resume-comparison", icon=":material/play_arrow:"):
                comparison.resume(found)
                st.rerun()
    picture(results, spec.policies, measure, "comparison-curve")
    summary(results, spec.policies, measure)


def summary(results: comparison.Results, policies: tuple[str, ...], measure: str) -> None:
    rows = comparison.table(results, policies, measure)
    if not rows:
        return
    import pandas as pd

    title, share = comparison.MEASURES[measure]

    def told(value: float) -> str:
        return percent(value) if share else f"{value:.3f}"

    with st.container(key="comparison-table"):
        st.dataframe(
            pd.DataFrame(
                [
                    {
                        "Policy": POLICIES[r["policy"]].title if r["policy"] in POLICIES else r["policy"],
                        "At the end": told(r["end"]),
                        "Mean over the curve": told(r["average"]),
                        "Better than random": "–"
                        if r["won"] is None
                        else f"{r['won']} of {plural(r['pairs'], 'seed')}",
                        "Whole runs": r["seeds"],
                    }
                    for r in rows
                ]
            ),
            hide_index=True,
            key="comparison-table-table",
            alt=f"{title} of each policy",
        )
    st.caption(
        "Means over whole runs. Better: a lower mean over the curve than random's with the same seed. "
        "With few seeds a lead may be luck."
    )


def earlier(token: str | None) -> None:
    others = [c for c in comparison.all_of() if c.id != token]
    if not others:
        return
    st.header("Earlier comparisons")
    for one in others[:8]:
        with st.container(
            horizontal=True,
            vertical_alignment="center",
            border=True,
            key=f"comparison-{one.id}",
            gap="medium",
        ):
            with st.container(width="stretch", gap=None):
                pool = one.spec.pools[0]
                name = POOLS[pool].title if pool in POOLS else pool.replace("\\", "/").rpartition("/")[2]
                titles = [POLICIES[p].title if p in POLICIES else p for p in one.spec.policies]
                st.markdown(f"**{verbatim(name, 40)}** · {verbatim(', '.join(titles), 90)}")
                st.caption(
                    f"{one.n_finished} of {plural(len(one.spec.runs()), 'run')} finished · "
                    f"{verbatim(one.created[:16].replace('T', ' '))} UTC"
                )
            if st.button("Show", key=f"show-{one.id}"):
                choose(one.id)
                st.rerun()


st.title("Compare")
st.markdown(
    "Does choosing the items pay? Policies label one pool side by side, with its own truth as the oracle."
)
token = chosen()
if token is not None:
    try:
        shown(token)
    except InputError as error:
        choose(None)
        st.error(verbatim(error), icon=":material/error:")
        form()
else:
    form()
earlier(token)
