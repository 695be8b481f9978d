"""Promise before the first check: whose labels, how wrong they may be, and what that costs."""

from __future__ import annotations

from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Literal

import streamlit as st

from workbench.app.serving.caching import computed
from workbench.app.serving.jobs import HOUR, Job, manager
from workbench.app.shell import frame, labelling_speed, widgets
from workbench.app.words.text import explain, percent, plural, refused, verbatim
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.certificates import Plan
    from workbench.sessions import Session

MODEL = "model"
ALL, EACH = "All in all", "Every class, too"
ANEW, ON = "finish-anew", "finish-on"
ERRORS = (0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2)
_WAITING = (
    ".st-key-finish-waiting > div, .st-key-finish-waiting-picture > div { border-radius: 8px; background:"
    " color-mix(in srgb, currentColor 8%, transparent); animation: finish-waits 1.4s ease-in-out infinite; }"
    ".st-key-finish-waiting { height: 4.75rem; } .st-key-finish-waiting-picture { height: 320px; }"
    "@keyframes finish-waits { 50% { opacity: .45; } }"
    "@media (prefers-reduced-motion: reduce) { .st-key-finish-waiting > div,"
    " .st-key-finish-waiting-picture > div { animation: none; } }"
)


def sources(session: Session) -> list[str]:
    """Sources whose labels can be checked: the model, and columns that the project knows."""
    used = [guess.source for guess in session.guesses.now() if guess.guess is not None]
    offered = (*used, *session.guesses.offered())
    columns = [source for source in offered if source.startswith("column:")]
    model = [MODEL] if session.model is not None else []
    # whoever brought a column and labelled nothing came to check it
    return [*model, *dict.fromkeys(columns)] if session.state.codes else [*dict.fromkeys(columns), *model]


def title_of(of: str) -> str:
    """Source of the labels, in words."""
    return "the model" if of == MODEL else f"column {of.split(':')[1]}"


def lead(session: Session, of: str, n: int) -> str:
    """Offer of this project, in two sentences: how many labels, how wrong they may be, what a person does."""
    steps = "Decide how wrong they may be, check some at random, and take them with a bound that holds."
    if of != MODEL:
        return f"**{title_of(of).capitalize()} has {plural(n, 'label')} that nobody has looked at.** {steps}"
    verdict = session.predictions.verdict.of_the_rest(n)
    return f"**The machine can label the other {plural(n, 'item')}, {verdict}.** {steps}"


def counts(session: Session, of: str, n: int) -> None:
    """Numbers of labels by people and by the machine, and the error that is expected of these."""
    with st.container(key="finish-counts"):
        columns = st.columns(3)
        columns[0].metric("Labelled", f"{len(session.state.codes):,}", border=True)
        whose = "The machine would label" if of == MODEL else f"Labels of {title_of(of)}"
        columns[1].metric(verbatim(whose, 40), f"{n:,}", border=True)
        value, words = _expected(session, of)
        columns[2].metric("Expected error", value, border=True, help=words)


def _expected(session: Session, of: str) -> tuple[str, str]:
    if of != MODEL:
        return "unknown", "Nobody has looked at these labels yet: the checks say how wrong they are."
    rate = session.predictions.evaluation
    if not session.predictions.verdict.told:
        value = f"{percent(rate.low, 0)} to {percent(rate.high, 0)}" if rate.n else "unknown"
        return value, f"Too few to tell: {session.predictions.verdict.between}."
    return (
        f"{percent(rate.error)} ({percent(rate.low)} to {percent(rate.high)})",
        f"95\u00a0% interval {percent(rate.low)} to {percent(rate.high)}, on {rate.where}; a forecast for "
        "the labels that are left, and no promise.",
    )


def start(session: Session) -> None:
    """The promise, what it costs, and the button that freezes the labels."""
    offered = sources(session)
    if not offered:
        nothing(session)
        return
    of = offered[0]
    if len(offered) > 1:
        of = st.segmented_control(
            "Whose labels",
            offered,
            default=offered[0],
            format_func=lambda of: verbatim(title_of(of)),
            key="finish-of",
            required=True,
        )
    try:
        fit = getattr(session.model, "uid", "")
        n = computed(_n_candidates, session, of, at=(fit, session.state.n_events))
    except InputError as problem:
        st.info(verbatim(problem), icon=":material/check_circle:")
        return
    st.markdown(lead(session, of, n))
    rare = labelling_speed.of_rare_classes(session.predictions.verdict) if of == MODEL else ""
    if rare:
        st.markdown(rare)
    counts(session, of, n)
    left, right = widgets.split([2, 3], "finish-promise")
    with left:
        st.header("What can you live with?")
        about = st.segmented_control(
            "Every class, or all in all?",
            [ALL, EACH],
            default=None if rare else ALL,  # of a rare class a promise about all says little
            key="finish-about",
            help=explain("bounds of classes"),
        )
        error = _percent("Allowed error,\u00a0%", (0.5, 20.0, 5.0, 0.5), "finish-error", "allowed error")
        confidence = _percent(
            "Confidence,\u00a0%", (80.0, 99.0, 95.0, 1.0), "finish-confidence", "confidence of a certificate"
        )
        is_dear, place = census(session, n, error, confidence), st.container()
        job = forecast_of_tab(session, of, error, confidence)
        forecast = job.partial
        if not is_dear:
            with place.container(border=True, key="finish-forecast"):
                if forecast is not None:
                    st.markdown(words(forecast, of))
                else:
                    waiting("finish-waiting", "Working out what it costs")
        if session.checks.attempt_next > 1:
            st.caption(
                f"This is attempt {session.checks.attempt_next}. The first could spend most of what the "
                "confidence leaves, so this one takes more checks; what was checked before are labels now."
            )
        icon = ":material/fact_check:"
        kind: Literal["primary", "secondary"] = "secondary" if is_dear else "primary"
        undecided = about is None
        if st.button("Start the checks", type=kind, icon=icon, key="finish-start", disabled=undecided):
            begin(session, of, error, confidence, about == EACH)
        if undecided:
            st.caption("Choose above what is promised: *All in all* says little of a rare class.")
        st.caption(
            "The labels are frozen, and so is the order in which they are checked: nobody can draw until it "
            "looks good. You answer without seeing what the machine says."
        )
    with right:
        st.header("What it costs")
        if job.active:
            watched(job, forecast is None, "finish-waiting-picture", "Working out what other errors cost")
        elif job.status == "done":
            plan, plans = job.result
            picture(of, plan, plans, n)
        else:
            widgets.job_panel(job, "finish-forecasting", again=True)


def _percent(label: str, scale: tuple[float, float, float, float], key: str, term: str) -> float:
    """A share from a slider in per cent.

    Args:
        label: shown above the slider.
        scale: least, most, first value and step, per cent.
        key: of the widget.
        term: of the glossary, which explains the slider.
    """
    minimum, maximum, start_value, step = scale
    percent = st.slider(
        label,
        minimum,
        maximum,
        start_value,
        step,
        format="%g",
        key=key,
        persist_state="session",
        help=explain(term),
    )
    return percent / 100.0


def _n_candidates(session: Session, of: str) -> int:
    # of a column its cells are read
    return session.checks.n_candidates(of)


def census(session: Session, n: int, error: float, confidence: float) -> bool:
    """Say, where few labels are left, that people had better give them all; True if it was said."""
    from workbench.certificates import confidence_at
    from workbench.sessions.finish_state import census_words, is_census

    level = confidence_at(confidence, session.checks.attempt_next)
    if not is_census(n, error, level):
        return False
    with st.container(border=True, key="finish-census"):
        st.markdown(census_words(n, error, level))
        frame.link("label", f"Label all {n:,}", ":material/arrow_forward:")
    return True


def waiting(key: str, words: str) -> None:
    """A place that is filled once what belongs there is worked out."""
    widgets.style(_WAITING)
    with st.container(key=key):
        st.html(f'<div style="height:100%" role="status" aria-label="{words}">&nbsp;</div>')


@st.fragment(run_every=widgets.POLL_SECONDS)
def watched(job: Job, first: bool, place: str, words: str) -> None:
    """A place while it is worked out; the page runs again when there is more to show.

    Args:
        job: that works it out.
        first: whether even the forecast of the chosen error is still missing.
        place: key, of `_WAITING`.
        words: on what is worked out.
    """
    waiting(place, words)
    if not job.active or (first and job.partial is not None):
        st.rerun()


def nothing(session: Session) -> None:
    """There is nothing to freeze: what is missing, and the way there."""
    with st.container(border=True, key="finish-empty"):
        if session.queue.n_left == 0 and session.state.codes:
            st.markdown("**Every item has a label.** Nothing is left for the machine.")
            frame.link("history", "Download the labels", ":material/arrow_forward:")
            return
        st.markdown("**There is nothing to check yet.**")
        st.markdown(
            f"{labelling_speed.first_fit(session)} Then the machine can label the rest, and random checks "
            "say how many of its labels are wrong. A column with somebody's labels can be checked without a "
            "model."
        )
        frame.link("label", "Label items", ":material/arrow_forward:")


def begin(session: Session, of: str, error: float, confidence: float, per_class: bool) -> None:
    """Freeze the labels and go on with the checks, or say why not."""
    with refused(), st.spinner("Freezing the labels and the order of their checks", show_time=True):
        session.checks.start(error, confidence, of=of, per_class=per_class)
        for name in (ANEW, ON):
            st.session_state.pop(name, None)
        st.rerun()


def forecast_of_tab(session: Session, of: str, error: float, confidence: float) -> Job:
    """The job of `forecast_job` for this tab, a moment later."""
    tab = st.session_state.setdefault("finish-tab", token_hex(8))
    job = forecast_job(session, of, error, confidence, tab)
    job.wait(0.1)
    return job


def forecast_job(session: Session, of: str, error: float, confidence: float, tab: str) -> Job:
    """The job that forecasts a promise, and what other errors would cost; made once for a tab.

    Its `partial` is the forecast of the chosen error, its result that one and those of `ERRORS`. An earlier
    one of the same tab is cancelled; those of other tabs go on, which somebody else waits for.

    Args:
        session: of the project.
        of: "model" or "column:NAME".
        error: allowed share.
        confidence: of all attempts together.
        tab: of the browser that asks.
    """
    model, state, checks = session.model, session.state, session.checks
    fit = "" if of != MODEL or model is None else model.uid
    labels = hash(frozenset(state.codes.items()))
    compute = partial(
        manager().compute,
        session.id,
        (fit, of, labels, checks.attempt_next, error, confidence, tab),
        lambda job: _forecast(job, session, of, error, confidence),
        title="Forecast",
        lane="map",
        limit=HOUR,
    )
    job = compute()
    for other_job in manager().active(session.id):
        if other_job is not job and other_job.title == job.title and other_job.about == tab:
            other_job.cancel()  # of a slider that was moved on
    if job.status == "cancelled":
        manager().forget(job)
        job = compute()
    job.about = tab
    return job


def _forecast(
    job: Job, session: Session, of: str, chosen_error: float, confidence: float
) -> tuple[Plan, list[Plan]]:
    candidates = session.checks.candidates(of)

    def at(error: float) -> Plan:
        return session.checks.forecast(error, confidence, of, found=candidates)

    plan = at(chosen_error)
    plans = []
    for number, error in enumerate(ERRORS):
        job.report(number / len(ERRORS), "other errors", partial=plan)
        plans.append(at(error))
    return plan, plans


def words(forecast: Plan, of: str) -> str:
    """A forecast as a sentence."""
    best = forecast.choice
    if of != MODEL:
        least = forecast.options[-1]
        return (
            f"About {least.in_answers('**')} where few of the labels are wrong. If many are, the checks say "
            "so and how many."
        )
    if best is None:
        return (
            "No certificate costs fewer answers than labelling everything. Label more first, or allow a "
            "larger error."
        )
    surest = ", the ones it is surest of" if best.rest else ""
    return (
        f"About {best.in_answers('**')}. The machine labels **{best.size:,}** of {forecast.size:,}{surest}."
    )


def picture(of: str, forecast: Plan, plans: list[Plan], n: int) -> None:
    """Human answers against the allowed error."""
    from workbench.figures.finish import Cost, answers_needed

    def cost(plan: Plan, error: float) -> Cost:
        best = plan.options[-1] if of != MODEL else plan.choice
        if best is None:
            return Cost(error, float(plan.size), float(plan.size), float(plan.size), 0)
        low, high = best.answers_range
        return Cost(error, best.answers, low, high, best.size)

    costs = [cost(plan, error) for plan, error in zip(plans, ERRORS, strict=True)]
    current_cost = cost(forecast, forecast.error)
    widgets.figure(
        answers_needed(costs, current_cost, n),
        "finish-costs",
        f"Human answers needed against the allowed error; about {current_cost.answers:,.0f} at "
        f"{percent(current_cost.error)}, {n:,} for labelling everything.",
    )
    st.caption(
        "A forecast from what the model says of its own errors, measured where it can be; the band holds 8 "
        "of 10 cases. The checks decide, whatever was forecast."
    )
