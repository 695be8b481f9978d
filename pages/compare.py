"""Compare: policies against random on one pool, the curves growing as rounds finish."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.access import current
from workbench.app.compare import comparison, comparison_sources
from workbench.app.compare.comparison_round import rounds_again
from workbench.app.compare.comparison_tables import named, ranks, summary
from workbench.app.data import forms
from workbench.app.serving.jobs import Job
from workbench.app.shell import downloads, widgets
from workbench.app.words.text import explain, one_line, plural, refused, show_error, verbatim
from workbench.classifiers import CLASSIFIERS
from workbench.classifiers import title_of as model_title
from workbench.errors import InputError
from workbench.figures.curves import learning_curve, learning_curves
from workbench.metrics import MIN_SEEDS
from workbench.policies import POLICIES
from workbench.policies.registry import title_of
from workbench.progress import duration

if TYPE_CHECKING:
    from workbench.studies import StudyResult, StudySpec

HEIGHT = 430


def form() -> None:
    st.header("A new comparison")
    with st.container(border=True, key="comparison-form"):
        sources = comparison_sources.sources(current.project_id())
        left, right = widgets.split([1, 1], "comparison-columns", below=900)
        key = left.selectbox(
            "What is labelled",
            sources,
            format_func=lambda k: one_line(sources[k].title, 60),
            key="compare-pool",
            help="Pools whose classes are known: bundled ones, known sets on this machine, files of your "
            "projects, and each question of the open project of which 20 items are answered: the answers "
            "are then the known classes. A new file is uploaded on the Data page.",
        )
        try:
            with st.spinner("Opening the pool"):
                source = sources[key].opened()
        except InputError as error:
            # a project without known classes is no mistake; another pool is to be chosen
            st.info(verbatim(error), icon=":material/info:")
            return
        if key.startswith("question:"):
            st.caption(
                "The known classes are the labels that are there. Only these items are asked about and "
                "measured on; they are no random draw, so their errors are not those of the whole pool."
            )
        kind: Any = source.kind
        models = forms.classifiers_for(kind, source.n_classes)
        with right:
            classifier = forms.choice(
                "Model",
                models,
                CLASSIFIERS,
                key="compare-model",
                first=models[0],
                help="Learns from the labels in every run.",
            )
        policies = ways_of_choosing(classifier)
        with left:
            seeds = how_many_seeds()
        # side by side where there is room; no name of a field is broken
        guesses = begin_with(source, classifier)
        row = widgets.row("compare-numbers", align="bottom", gap="medium")
        # a small pool has fewer to ask about than a person asked for before
        limit = min(2000, source.n_asked)
        st.session_state["compare-budget"] = min(int(st.session_state.get("compare-budget", 60)), limit)
        budget = left.number_input("Labels asked for in each run", 1, limit, step=10, key="compare-budget")
        # the button that starts stands first, whatever is decided before it is pressed
        go, measuring = row.container(width="content"), row.container(width="content")
        batch, workers = machinery(row)
        start = go.button(
            "Start", type="primary", key="start-comparison", width=120, icon=":material/play_arrow:"
        )
        is_timed = measuring.button(
            "How long?",
            key="time-comparison",
            icon=":material/timer:",
            width=130,
            help="Measures a few rounds of each policy on this machine, some seconds.",
        )
        if start:
            if not policies:
                st.error("Choose at least one policy to hold against random.", icon=":material/error:")
                return
            with refused():
                spec = spec_of(source, classifier, policies, seeds, int(budget), batch)
                study = comparison.start(spec, current.family_id(), workers=workers, guesses=guesses)
                current.show(comparison.PARAMETER, study)
                st.rerun()
            return
        runs = (1 + len(policies)) * seeds
        st.caption(
            f"{plural(runs, 'run')} of {1 + -(-int(budget) // batch)} rounds. Runs of one seed share "
            "the test split and the first labels, so differences are the policies'."
        )
        if policies:
            spec = spec_of(source, classifier, policies, seeds, int(budget), batch)
            how_long(comparison.expected(spec, workers, begin=is_timed), 1 + bool(guesses))


def ways_of_choosing(classifier: str) -> list[str]:
    """The policies that are held against random."""
    possible = [p for p in forms.policies_for(classifier) if p != comparison.BASELINE]
    # those to begin with stand first
    possible.sort(key=lambda p: not POLICIES[p].advice)
    best, why = forms.suggestion(possible)
    return choose_policies(possible, possible[best], why, f"compare-policies-{classifier}")


def how_many_seeds() -> int:
    """Runs of each policy; with few, that they will not do for a verdict."""
    seeds = st.number_input(
        "Runs of each way (seeds)",
        1,
        50,
        10,
        key="compare-seeds",
        help="Each begins elsewhere; runs of one seed share the test split and the first labels.",
    )
    if seeds < MIN_SEEDS:
        st.warning(
            f"{plural(int(seeds), 'seed')} cannot tell policies apart, however large the difference: "
            f"take {MIN_SEEDS} or more for a verdict.",
            icon=":material/info:",
        )
    return int(seeds)


def choose_policies(possible: list[str], first: str, why: str, key: str) -> list[str]:
    """Those recommended, and the others where somebody asks for all; what each does, in a line."""
    notes = [f"Measured: {verbatim(why)}"] if why else []
    few = [policy for policy in possible if POLICIES[policy].advice or policy == first]
    rest = [policy for policy in possible if policy not in few]
    selection = st.pills(
        "Ways of choosing, held against random",
        [*few, forms.ALL] if rest else few,
        selection_mode="multi",
        default=[first],
        format_func=lambda n: f"All {len(possible)} ..." if n == forms.ALL else POLICIES[n].title,
        key=key,
        help="\n\n".join([*notes, *(explain(name) for name in ("BALD",) if "bald" in few)]) or None,
    )
    policies: list[str] = [policy for policy in selection if policy != forms.ALL]
    if forms.ALL in selection:
        policies += st.pills(
            "Others",
            rest,
            selection_mode="multi",
            format_func=lambda n: POLICIES[n].title,
            key=f"{key}-others",
            label_visibility="collapsed",
        )
    for policy in policies:
        words = POLICIES[policy].advice or f"Asks first where {POLICIES[policy].high}."
        st.caption(f"**{verbatim(POLICIES[policy].title)}**: {verbatim(words)}")
    return policies


def machinery(row: Any) -> tuple[int, int]:
    """Number of items asked about at a time, and of processes that run; good as they are."""
    with row.popover("More", icon=":material/tune:", key="compare-more"):
        batch = st.number_input("Asked at a time", 1, 100, 1, key="compare-batch")
        workers = st.number_input(
            "Processes",
            1,
            max(os.cpu_count() or 1, 2),
            1,
            key="compare-workers",
            help="One runs beside these pages. More take ten seconds to start and leave the pages quick: "
            "for comparisons of many minutes. The results are the same.",
        )
    return int(batch), int(workers)


def spec_of(
    source: comparison_sources.Source,
    classifier: str,
    policies: list[str],
    seeds: int,
    budget: int,
    batch: int,
) -> StudySpec:
    """The runs that the form says."""
    from workbench.studies import StudySpec

    return StudySpec(
        name="app",
        pools=(source.pool,),
        classifiers=(classifier,),
        policies=(*policies, comparison.BASELINE),
        seeds=seeds,
        pool_options=dict(source.options),
        budget=budget,
        batch=batch,
    )


def how_long(job: Job | None, times: int) -> None:
    """Measurement of the time that the runs will take.

    Args:
        job: of `comparison.expected`.
        times: how often the runs are made.
    """
    if job is None:
        return
    if job.status == "done":
        low, high, rounds = job.result
        st.markdown(
            f"**About {duration(times * low)} to {duration(times * high)}** on this machine, reckoned from "
            f"{plural(rounds, 'round')} measured just now. It shows the time left while it runs."
        )
        return
    widgets.job_panel(job, "expected-time", again=True)


def begin_with(source: comparison_sources.Source, classifier: str) -> tuple[str, ...]:
    """The guesses that runs begin with; the same runs without them stand beside."""
    from workbench.sessions.guessing import takes_guess

    if not source.guesses or not takes_guess(classifier):
        return ()
    return tuple(
        st.pills(
            "Begin with a guess, and once without",
            source.guesses,
            selection_mode="multi",
            format_func=lambda source: verbatim(comparison_sources.guess_title(source)),
            key="compare-guesses",
            help="What is known before any label. The same runs without it are made as well, and both stand "
            "side by side.",
        )
    )


def picture(results: Any, policies: tuple[str, ...], measure: str, key: str) -> Any:
    title, share = comparison.MEASURES[measure]
    gap = comparison.saving(results) if measure == "error" and results is not None else None
    fig = learning_curve(
        comparison.curves(results, policies, measure),
        measure=title,
        share=share,
        height=HEIGHT,
        saving=gap,
    )
    widgets.figure(fig, key, f"{title} against the number of labels, one line a policy")
    return fig


@st.fragment(run_every=1.0)
def watched(token: str, policies: tuple[str, ...], measure: str) -> None:
    job = comparison.job_of(token)
    if job is None or not job.active:
        st.rerun()
    widgets.bar(job, "comparison")
    picture(job.partial, policies, measure, "comparison-curve")


def shown(token: str) -> None:
    record = comparison.find(token)
    spec = record.spec
    title = comparison_sources.title_of_pool(spec.pools[0])
    with widgets.row(horizontal_alignment="distribute"):
        st.header(verbatim(title, 60))
        if st.button("New comparison", key="new-comparison", type="tertiary", icon=":material/add:"):
            current.show(comparison.PARAMETER, None)
            st.rerun()
    facts = [
        model_title(spec.classifiers[0]),
        plural(spec.seeds, "seed"),
        f"{plural(spec.budget, 'label')} each"
        # the curves begin with those
        + (" after one of every class" if spec.initial == "one-per-class" else ""),
        f"{spec.batch} at a time",
    ]
    if spec.guess:
        facts.append("begins with " + ", ".join(map(comparison_sources.guess_title, spec.guess)).lower())
    st.caption(" · ".join(map(verbatim, facts)))
    # the answer stands above what it can be asked about
    answer_box, curve_box = st.container(), st.container()
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
        with curve_box:
            watched(token, spec.policies, measure)
        return
    results = comparison.results(record)
    n_left = len(spec.runs()) - record.n_finished
    if n_left:
        with widgets.row("comparison-rest", gap="medium"):
            if job is not None and job.status == "failed":
                show_error(job.error)
            else:
                st.info(
                    f"Stopped with {plural(n_left, 'run')} to go. What was finished is kept.",
                    icon=":material/pause:",
                )
            if st.button("Go on", key="resume-comparison", icon=":material/play_arrow:"):
                comparison.resume(record)
                st.rerun()
    with answer_box:
        answer(results, measure)
    several = [(record, results), *others_added(record)]
    with curve_box:
        fig = together(several, measure)
    from workbench.studies.study import made_with

    st.caption(made_with(*(r for _, r in several)))
    take_away(fig, [r for _, r in several])
    summary(several, measure)
    ranks([r for _, r in several], measure)
    rounds_again(record, results)


def answer(results: StudyResult, measure: str) -> None:
    """Result of the comparison, in one sentence."""
    from workbench.studies.statistics import headline

    curves = comparison.paired_curves(results, measure)
    sentence = "" if curves is None else headline(curves, {p: title_of(p) for p in curves.values})
    words = comparison.meaning(results)
    if words:
        st.markdown(f"**{verbatim(words)}**")
    if sentence:
        st.markdown(verbatim(sentence))


def others_added(record: comparison.Comparison) -> list[tuple[comparison.Comparison, StudyResult]]:
    """Finished comparisons a person puts beside this one."""
    candidates = [c for c in comparison.all_of() if c.id != record.id and c.n_finished]
    if not candidates:
        return []
    chosen_ids = st.multiselect(
        "Beside it",
        [c.id for c in candidates if not comparison.is_without(record, c)],
        format_func=lambda i: next(f"{named(c)} · {c.created[:10]}" for c in candidates if c.id == i),
        key=f"beside-{record.id}",
        placeholder="Other comparisons, side by side",
    )
    added = [(c, comparison.results(c)) for c in candidates if c.id in chosen_ids]
    without = next((c for c in candidates if comparison.is_without(record, c)), None)
    return added if without is None else [(without, comparison.results(without)), *added]


def together(several: list[tuple[comparison.Comparison, StudyResult]], measure: str) -> Any:
    if len(several) == 1:
        record, results = several[0]
        return picture(results, record.spec.policies, measure, "comparison-curve")
    title, share = comparison.MEASURES[measure]
    fig = learning_curves(
        [
            (named(record), comparison.curves(results, record.spec.policies, measure))
            for record, results in several
        ],
        measure=title,
        share=share,
    )
    widgets.figure(
        fig,
        "comparison-curve",
        f"{title} against the number of labels, a picture a comparison and a line a policy",
    )
    return fig


def take_away(fig: Any, several: list[StudyResult]) -> None:
    with st.container(horizontal=True, gap="medium", key="comparison-downloads"):
        downloads.figure_downloads(fig, "comparison", "save-comparison")
        downloads.button(
            "Rows of every round and seed (CSV)",
            lambda: comparison.rows_csv(several).encode(),
            "comparison.csv",
            "comparison-rows",
            kind="tertiary",
        )


def earlier(token: str | None) -> None:
    records = [c for c in comparison.all_of() if c.id != token]
    if not records:
        return
    st.header("Earlier comparisons")
    for record in records[:8]:
        with widgets.row(f"comparison-{record.id}", border=True, gap="medium"):
            with st.container(width="stretch", gap=None):
                name = comparison_sources.title_of_pool(record.spec.pools[0])
                titles = [title_of(p) for p in record.spec.policies]
                st.markdown(f"**{verbatim(name, 40)}** · {verbatim(', '.join(titles), 90)}")
                st.caption(
                    f"{record.n_finished} of {plural(len(record.spec.runs()), 'run')} finished · "
                    f"{verbatim(record.created[:16].replace('T', ' '))} UTC"
                )
            if st.button("Show", key=f"show-{record.id}"):
                current.show(comparison.PARAMETER, record.id)
                st.rerun()


st.title("Compare", help=explain("pool", "policy", "test split"))
st.markdown(
    "Does it pay to choose what you are asked? Several ways of choosing label the same items side by side, "
    "and the known classes answer."
)
token = current.shown(comparison.PARAMETER)
if token is not None:
    try:
        shown(token)
    except InputError as error:
        current.show(comparison.PARAMETER, None)
        show_error(error)
        form()
else:
    form()
    if not comparison.all_of():
        from workbench.figures.parts import example

        widgets.figure(
            example("comparison"), "comparison-example", "An example: two curves and the labels saved"
        )
        st.caption("What you will see: how fast the error falls, and how many labels a policy saves.")
earlier(token)
