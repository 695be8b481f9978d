"""What the Finish page shows: who labels what, what a promise costs, and how the checks go."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from workbench.app import auditing, downloads, frame, seeing, widgets
from workbench.app.exports import NAMES, stem
from workbench.app.glossary import explain
from workbench.app.text import percent, plural, verbatim
from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.certificates import Plan
    from workbench.sessions import Session
    from workbench.sessions.finish_state import FinishState

MODEL = "model"
ANEW, ON = "finish-anew", "finish-on"
ERRORS = (0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2)
_GREEN = (
    ".st-key-certified { background: color-mix(in srgb, #2a9d5c 10%, transparent); border-left: 4px solid"
    " #2a9d5c; border-radius: 0 8px 8px 0; padding: 1.25rem 1.5rem; }"
    ".st-key-certified p { font-size: 1.3rem; line-height: 1.45; }"
    ".st-key-finish-counts [data-testid=stMetricValue] { font-size: 1.75rem; }"
)


@dataclass(frozen=True)
class Offer:
    """Labels that could be frozen.

    Attributes:
        of: "model" or "column:NAME".
        title: for people.
        size: how many.
        attempt: number of the next attempt.
    """

    of: str
    title: str
    size: int
    attempt: int


def sources(session: Session) -> list[str]:
    """Whose labels can be checked: the model's, and columns that the project knows."""
    offered = (*_used(session), *session.guesses_offered())
    columns = [one for one in offered if one.startswith("column:")]
    model = [MODEL] if session.model is not None else []
    # whoever brought a column and labelled nothing came to check it
    return [*model, *dict.fromkeys(columns)] if session.state.codes else [*dict.fromkeys(columns), *model]


def _used(session: Session) -> list[str]:
    return [one.source for one in session.guesses if one.guess is not None]


def title_of(of: str) -> str:
    """Whose labels, in words."""
    return "the model" if of == MODEL else f"column {of.split(':')[1]}"


def counts(session: Session, of: str, n: int) -> None:
    """What people labelled, what the machine would, and how wrong that is expected to be."""
    with st.container(key="finish-counts"):
        columns = st.columns(3)
        columns[0].metric("Labelled by people", f"{len(session.state.codes):,}", border=True)
        whose = "The machine would label" if of == MODEL else f"Labels of {title_of(of)}"
        columns[1].metric(verbatim(whose, 40), f"{n:,}", border=True)
        value, words = _expected(session, of)
        columns[2].metric("Expected error", value, border=True, help=words)


def _expected(session: Session, of: str) -> tuple[str, str]:
    if of != MODEL:
        return "unknown", "Nobody has looked at these labels yet: the checks say how wrong they are."
    found = session.evaluation
    if not found.enough:
        said = 1.0 - session.candidates().confidences.mean()
        return f"{percent(said)}?", (
            f"What the model says of itself; {plural(found.n, 'item')} to measure on are too few to tell "
            "before 20."
        )
    return (
        f"{percent(found.error)} ({percent(found.low)} to {percent(found.high)})",
        f"95 % interval {percent(found.low)} to {percent(found.high)}, on {found.where}; a forecast for the "
        "labels that are left, and no promise.",
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
            "Whose labels", offered, default=offered[0], format_func=title_of, key="finish-of", required=True
        )
    try:
        n = len(session.candidates(of).items)
    except InputError as problem:
        st.info(verbatim(problem), icon=":material/check_circle:")
        return
    counts(session, of, n)
    left, right = widgets.split([2, 3], "finish-promise")
    with left:
        st.header("What can you live with?")
        error = st.slider(
            "Allowed error, %", 0.5, 20.0, 5.0, 0.5, format="%g", key="finish-error", persist_state="session",
            help=explain("allowed error"),
        ) / 100.0  # fmt: skip
        confidence = st.slider(
            "Confidence, %", 80.0, 99.0, 95.0, 1.0, format="%g", key="finish-confidence",
            persist_state="session", help=explain("confidence of a certificate"),
        ) / 100.0  # fmt: skip
        forecast = forecast_of(session, of, error, confidence)
        with st.container(border=True, key="finish-forecast"):
            st.markdown(words(forecast, of))
        if session.attempt_next > 1:
            st.caption(
                f"This is attempt {session.attempt_next}. The first could spend most of what the "
                "confidence leaves, so this one takes more checks; what was checked before are labels now."
            )
        if st.button("Start the checks", type="primary", icon=":material/fact_check:", key="finish-start"):
            begin(session, of, error, confidence)
        st.caption(
            "The labels are frozen, and so is the order in which they are checked: nobody can draw until it "
            "looks good. You answer without seeing what the machine says."
        )
    with right:
        st.header("What it costs")
        picture(session, of, confidence, forecast, n)


def nothing(session: Session) -> None:
    """There is nothing to freeze: what is missing, and the way there."""
    with st.container(border=True, key="finish-empty"):
        if session.n_left == 0 and session.state.codes:
            st.markdown("**Every item has a label of a person's.** Nothing is left for the machine.")
            frame.link("history", "Download the labels", ":material/arrow_forward:")
            return
        st.markdown("**There is nothing to check yet.**")
        st.markdown(
            f"{frame.first_fit(session)} Then the machine can label the rest, and random checks say how many "
            "of its labels are wrong. A column with somebody's labels can be checked without a model."
        )
        frame.link("label", "Label items", ":material/arrow_forward:")


def begin(session: Session, of: str, error: float, confidence: float) -> None:
    """Freeze the labels and go on with the checks, or say why not."""
    try:
        session.start_checks(error, confidence, of=of)
    except InputError as problem:
        st.error(verbatim(problem), icon=":material/error:")
        return
    for name in (ANEW, ON):
        st.session_state.pop(name, None)
    st.rerun()


def forecast_of(session: Session, of: str, error: float, confidence: float) -> Plan:
    """The forecast for a promise, made once."""
    model = session.model
    fit = "" if of != MODEL or model is None else model.uid
    state = session.state
    key = ("finish", session.id, fit, of, len(state.codes), len(state.frozen), error, confidence)
    return seeing.cached(key, lambda: session.forecast(error, confidence, of))


def words(forecast: Plan, of: str) -> str:
    """A forecast as a sentence."""
    best = forecast.choice
    if of != MODEL:
        least = forecast.options[-1]
        low, high = least.checks_range
        return (
            f"About **{least.checks:,.0f} checks** ({low:,.0f} to {high:,.0f}) where few of the labels are "
            "wrong. If many are, the checks say so and how many."
        )
    if best is None:
        return (
            "No certificate costs fewer answers than labelling everything. Label more first, or allow a "
            "larger error. A few items are best looked at one and all."
        )
    low, high = best.checks_range
    rest = forecast.size - best.size
    hand = f", and **{rest:,}** are left to people" if rest else ""
    surest = "" if not rest else ", the ones it is surest of"
    return (
        f"About **{best.checks:,.0f} checks** ({low:,.0f} to {high:,.0f}). The machine labels "
        f"**{best.size:,}** of {forecast.size:,}{surest}{hand}."
    )


def picture(session: Session, of: str, confidence: float, forecast: Plan, n: int) -> None:
    """Human answers against the allowed error."""
    from workbench.figures.finish import Cost, answers_needed

    def cost(one: Plan) -> Cost:
        best = one.options[-1] if of != MODEL else one.choice
        if best is None:
            return Cost(one.error, float(one.size), float(one.size), float(one.size), 0)
        low, high = best.answers_range
        return Cost(one.error, best.answers, low, high, best.size)

    costs = [cost(forecast_of(session, of, error, confidence)) for error in ERRORS]
    chosen = cost(forecast)
    widgets.figure(
        answers_needed(costs, chosen, n),
        "finish-costs",
        f"Human answers needed against the allowed error; about {chosen.answers:,.0f} at "
        f"{percent(chosen.error)}, {n:,} for labelling everything.",
    )
    st.caption(
        "A forecast from what the model says of its own errors, measured where it can be; the band holds 8 "
        "of 10 cases. The checks decide, whatever was forecast."
    )


def promise_line(now: FinishState) -> None:
    """What was frozen, in a line."""
    frozen = now.frozen
    attempt = f" Attempt {frozen.attempt}." if frozen.attempt > 1 else ""
    st.caption(
        f"{plural(frozen.size, 'label')} of {verbatim(title_of(frozen.of))}, frozen "
        f"{frozen.time[:16].replace('T', ' ')} UTC by {verbatim(frozen.by, 40)}. The promise: at most "
        f"{percent(frozen.error)} of them wrong, with {percent(frozen.confidence, 0)} confidence.{attempt}"
    )
    if now.labelled_since:
        st.caption(
            f"{plural(now.labelled_since, 'of them was', 'of them were')} labelled by people since: the "
            "checks stand, and the finished set holds the labels of people."
        )


def failed(session: Session, now: FinishState) -> None:
    """What the checks found, and what to do next."""
    frozen = now.frozen
    with st.container(border=True, key="finish-failed"):
        st.markdown(
            f"**Not at {percent(frozen.error)}: the estimate is {percent(now.estimate)}, "
            f"bound {percent(now.bound)}.** "
            + (now.why or f"{plural(now.checks, 'check')}, {now.wrong:,} wrong.")
        )
        st.markdown(_next_step(now))
        with st.container(horizontal=True, key="finish-failed-steps"):
            if _is_worth_it(now) and st.button(
                f"Ask me about these {now.advice:,}",
                type="primary",
                icon=":material/label:",
                key="finish-label-more",
            ):
                ask_about(session, least_sure(session, now, now.advice), "where the machine is unsure")
            if frozen.of != MODEL and st.button(
                "Show me the likeliest errors", type="primary", icon=":material/label:", key="finish-mend"
            ):
                mend(session, frozen.of)
            st.button("Check again, with another promise", key="finish-again", on_click=anew)
            st.button("Go on checking", key="finish-go-on", on_click=go_on)
    falling(now)
    promise_line(now)


def _next_step(now: FinishState) -> str:
    if now.frozen.of != MODEL:
        wrong = round(now.estimate * now.frozen.size)
        return (
            f"About {wrong:,} of the {now.frozen.size:,} labels are wrong. Mend those that are most likely "
            "wrong and check again: what people say counts, and is no part of what is checked next."
        )
    if not _is_worth_it(now):
        return (
            "The machine is wrong too often: give it more labels, or allow a larger error, and check again."
        )
    return f"Label {now.advice:,} more where it is unsure and check again."


def _is_worth_it(now: FinishState) -> bool:
    """Whether labelling what is least sure leaves the machine most of its labels."""
    return 0 < now.advice <= now.frozen.size / 2


def anew() -> None:
    """For the button: show the promise again."""
    st.session_state[ANEW] = True


def go_on() -> None:
    """For the button: go on with the checks although it is decided."""
    st.session_state[ON] = True


def stop_here() -> None:
    """For the button: back to what was decided."""
    st.session_state.pop(ON, None)
    st.session_state.pop(ANEW, None)


def least_sure(session: Session, now: FinishState, n: int) -> list[int]:
    """The frozen items that the machine is least sure of and nobody has labelled, the least sure first."""
    codes = session.state.codes
    return [item for item in reversed(now.frozen.items.tolist()) if item not in codes][:n]


def ask_about(session: Session, items: list[int], how: str) -> None:
    """Have the person asked about items, at the desk."""
    try:
        session.want(items, how)
    except InputError as error:
        st.error(verbatim(error), icon=":material/error:")
        return
    st.switch_page(frame.page("label"))


def mend(session: Session, of: str) -> None:
    """Have the person asked about the labels of a column that are most likely wrong, the likeliest first."""
    from workbench.sessions.doubtful import doubtful_labels

    with st.spinner("Looking for labels that their neighbours contradict"):
        try:
            items = doubtful_labels(session, of).tolist()
        except InputError as error:
            st.error(verbatim(error), icon=":material/error:")
            return
    ask_about(session, items, f"likely wrong in {title_of(of)}")


def falling(now: FinishState) -> None:
    """The bound, check by check."""
    from workbench.figures.finish import falling_bound

    wrong = (now.evidence.within(now.size).nonzero()[0] + 1).tolist()
    widgets.figure(
        falling_bound(now.curve, now.frozen.error, wrong),
        "finish-bound",
        f"The upper bound on the share of wrong labels after each of {now.checks:,} checks; now "
        f"{percent(now.bound)}, promised {percent(now.frozen.error)}.",
    )


def certified(session: Session, now: FinishState) -> None:
    """The calm page of a finish: the sentence, the finished set, the certificate."""
    certificate = session.certificate()
    if certificate is None:
        return
    now = session.finish_state() or now
    widgets.style(_GREEN)
    with st.container(key="certified"):
        st.markdown(verbatim(certificate.sentence))
    people = len(session.state.codes)
    rest = int(session.pool.trainable.size) - people - _machine_left(session, now)
    st.markdown(
        f"The finished set holds {plural(people, 'label')} by people and "
        f"{_machine_left(session, now):,} of {verbatim(title_of(now.frozen.of))}."
        + (f" {plural(rest, 'item')} beyond it are left to people." if rest else "")
    )
    takeaway(session, certificate)
    left, right = widgets.split([3, 2], "finish-evidence")
    with left:
        st.header("The checks")
        falling(now)
    with right:
        if len(now.frozen.sizes) > 1:
            st.header("Sets of the surest")
            sets(now)
    promise_line(now)
    with st.container(horizontal=True, key="finish-certified-steps"):
        if rest and st.button("Label the rest", icon=":material/label:", key="finish-rest"):
            items = [i for i in now.frozen.items[now.size :].tolist() if i not in session.state.codes]
            ask_about(session, items, "beyond what is certified")
        if now.size < max(now.frozen.sizes) or now.evidence.checks < now.frozen.size:
            st.button("Go on checking", key="finish-go-on", on_click=go_on)
        st.button("Another promise", key="finish-again", on_click=anew)


def _machine_left(session: Session, now: FinishState) -> int:
    from workbench.sessions.certifying import machine_part

    return len(machine_part(now, session.state))


def takeaway(session: Session, certificate: Any) -> None:
    """Downloads of the finished set and of the certificate."""
    from workbench.exchange import FORMATS, write_labels
    from workbench.exchange.labels import OF_IMAGES

    formats = [f for f in FORMATS if f not in OF_IMAGES or session.pool.kind == "image"]
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="finish-downloads"):
        chosen = st.selectbox(
            "Format", formats, format_func=lambda f: NAMES.get(f, f), key="finish-format", width=150,
            label_visibility="collapsed", persist_state="session",
        )  # fmt: skip
        downloads.button(
            "Download the finished set",
            lambda out: write_labels(out, session, chosen, "finished"),
            f"{stem(session)}-finished{FORMATS[chosen]}",
            "download-finished",
            taken=auditing.exported(session, f"the finished set, {NAMES.get(chosen, chosen)}"),
        )
        downloads.button(
            "Certificate (JSON)",
            lambda out: out.write(certificate.to_json().encode()),
            f"{stem(session)}-certificate.json",
            "download-certificate-json",
            icon="verified",
        )
        downloads.button(
            "Certificate (page)",
            lambda out: out.write(certificate.to_html().encode()),
            f"{stem(session)}-certificate.html",
            "download-certificate-html",
            icon="description",
        )
    st.caption(
        f"Certificate {certificate.id}. Whoever has its JSON and the labels recomputes it: "
        f"`workbench verify {stem(session)}-certificate.json {stem(session)}-finished.csv`"
    )


def sets(now: FinishState) -> None:
    """What the same checks say of smaller and larger sets."""
    import pandas as pd

    rows = now.sets()
    best = [one for one in rows if math.isfinite(one.bound)]
    shown = (
        best if len(best) <= 6 else [best[i] for i in np.unique(np.linspace(0, len(best) - 1, 6).astype(int))]
    )
    st.table(
        pd.DataFrame(
            [
                {
                    "The surest": f"{one.size:,} ({percent(one.size / now.frozen.size, 0)})",
                    "Checks": f"{one.checks:,}, {one.wrong:,} wrong",
                    "At most wrong": percent(one.bound),
                    f"At {percent(now.frozen.error)}": "certified" if one.certified else "not yet",
                }
                for one in shown
            ]
        ),
        border="horizontal",
        hide_index=True,
        alt="Sets of the surest labels, with how many of them are wrong at most",
    )
    st.caption("The bounds hold together, so each is a little wider than it would be alone.")


def void(session: Session, now: FinishState) -> None:
    """What was frozen is not there any more."""
    st.error(verbatim(now.why), icon=":material/error:")
    if any(event.payload["started"] == now.frozen.started for event in session.state.certified):
        st.markdown("The certificate that was issued is void: do not hand it on.")
