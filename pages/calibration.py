"""Calibration: does the model mean what it says?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from workbench.app.access import current
from workbench.app.lessons import lessons, teaching
from workbench.app.serving import evaluation
from workbench.app.shell import downloads, frame, labelling_speed, widgets
from workbench.app.words import percentages
from workbench.app.words.text import (
    explain,
    one_line,
    plural,
    used_in,
    verbatim,
    with_minus,
)
from workbench.arrays import Ints
from workbench.classifiers import protocols
from workbench.errors import InputError
from workbench.figures.reliability import confidence_histogram, reliability_diagram
from workbench.metrics import ReliabilityTable

if TYPE_CHECKING:
    from workbench.sessions import Session
    from workbench.sessions.fitted_model import FittedModel
    from workbench.sessions.insight import Calibration

FEW = 20
PART = "experiment"
OWN = "project"
PARTS = {OWN: "This project"} | {name: entry.experiment for name, entry in lessons.EXPERIMENTS.items()}


def measured(session: Any, model: Any) -> tuple[Any, Any, Any, str] | None:
    """Items, codes, probabilities (None: the model's own) and where they come from."""
    items, codes = session.fits.held_out()
    if len(items) >= (1 if session.pool.test is not None else FEW):
        has_test = session.pool.test is not None and session.pool.truth is not None
        where = "kept aside to measure on" if has_test else "drawn for measuring among your questions"
        return items, codes, None, f"{plural(len(items), 'item')} {where}"
    st.info(
        f"{len(items)} of the {FEW} items are labelled that are needed to measure on. Until then each label "
        f"is predicted by a model that did not see it. {labelling_speed.not_drawn(session.state)}",
        icon=":material/info:",
    )
    job = evaluation.cross_validation(session, model)
    if job.status != "done":
        widgets.job_panel(job, f"cross-{model.number}", again=True)
        return None
    items, codes, p = job.result
    return items, codes, p, f"{plural(len(items), 'label')}, each predicted by a model that did not see it"


def turn() -> None:
    """To another part: its own values belong into the address, the old part's do not."""
    choice = st.session_state[PART]
    for experiment in lessons.EXPERIMENTS.values():
        for control in experiment.controls:
            st.query_params.pop(control.name, None)
    if choice == OWN:
        st.query_params.pop(PART, None)
    else:
        st.query_params[PART] = choice


def choose_part() -> str:
    if st.session_state.get(PART) is None:
        choice = st.query_params.get(PART, OWN)
        st.session_state[PART] = choice if choice in PARTS else OWN
    return str(
        st.segmented_control(
            "Look at",
            list(PARTS),
            required=True,
            format_func=PARTS.__getitem__,
            key=PART,
            on_change=turn,
            label_visibility="collapsed",
        )
    )


def run_experiment(name: str) -> None:
    """One experiment: its question, a button that starts it, and what is computed so far."""
    experiment = lessons.EXPERIMENTS[name]
    st.header(
        experiment.question,
        help=explain(*used_in(experiment.question, experiment.lead, *experiment.look)) or None,
    )
    st.markdown(verbatim(experiment.lead, 600))
    values = teaching.controls(experiment)
    outcome, job = lessons.present(experiment, values)
    active = job is not None and job.active
    if outcome is None and not active:  # it may have ended between the two looks
        outcome, job = lessons.present(experiment, values)
    if outcome is None:
        st.button(
            "Compute",
            key="start-experiment",
            type="primary",
            icon=":material/play_arrow:",
            disabled=active,
            on_click=teaching.begin,
            args=(experiment, values),
            help="In the background; kept for everybody on this server",
        )
    if outcome is not None:
        teaching.draw(experiment, outcome, values)
    elif job is not None and active:
        teaching.streaming(experiment, values, job, cancel=True)
    elif job is not None and job.status == "failed":
        st.error(f"This could not be computed: {verbatim(job.error)}", icon=":material/error:")
    elif job is not None and job.status == "cancelled":
        st.caption("Cancelled; this is how far it came." if job.partial else "Cancelled.")
        if job.partial is not None:
            teaching.draw(experiment, job.partial, values)
    teaching.look(experiment.look)
    if outcome is not None:
        teaching.numbers(experiment, outcome, values)


def controls(model: Any, versions: dict[str, str]) -> tuple[int, int, str]:
    """Choice of a confidence, its bins, and the reading of the model."""
    with widgets.row(align="bottom", gap="medium"):
        names = ["The prediction", *model.classes]
        which = st.selectbox(
            "Confidence in",
            range(len(names)),
            format_func=lambda i: one_line(names[i], 40),
            key="cal-class",
            width=230,
        )
        bins = st.slider("Bins", 5, 20, 15, key="cal-bins", width=160)
        version = "own"
        if len(versions) > 1:
            version = (
                st.segmented_control(
                    "Probabilities",
                    list(versions),
                    default="own",
                    required=True,
                    format_func=lambda name: versions[name],
                    key="cal-version",
                )
                or "own"
            )
    return int(which), int(bins), str(version)


@st.fragment
def readings(session: Session, model: FittedModel, measurement: tuple[Any, Any, Any, str]) -> None:
    """All that was measured. Its controls run this anew, not the page.

    Args:
        session: the project.
        model: the fit that is measured.
        measurement: what `measured` gave.
    """
    verdict, picture = st.container(key="verdict"), st.container(key="cal-picture")
    from workbench.sessions import insight

    items, codes, crossed, where = measurement
    versions = insight.probability_versions(model) if crossed is None else {"own": "As the model predicts"}
    # on a phone the readings of the latents wrap
    widgets.style(".st-key-cal-version [role=radiogroup] { flex-wrap: wrap; }")
    with st.expander("Look at one class, or in finer steps", key="cal-controls"):
        which, bins, version = controls(model, versions)
    code = None if which == 0 else int(which) - 1
    calibration = evaluation.calibration(model, items, codes, version, bins, code, crossed)
    with verdict:
        event = "" if code is None else str(model.classes[code])
        st.markdown(f"**{verbatim(percentages.sentence(calibration.verdict, event))}**")
        st.markdown(verbatim(percentages.meaning(calibration.verdict, event)))
        st.caption(
            f"Measured on {verbatim(where)}. The model learnt from {plural(model.n_labelled, 'label')}.",
            help=explain("test split", "evaluation set"),
        )

    with picture:
        reliability(calibration, event)
    # what is closed is not sent: each move of the slider would draw it anew
    widgets.folded("How sure it is, of how many items", "cal-confidence", confidences, calibration.table)
    widgets.folded("In numbers", "cal-in-numbers", numbers, calibration, len(items))
    if len(versions) > 1:
        widgets.folded(
            "Other ways to read the same model",
            "cal-readings",
            other_readings,
            model,
            items,
            codes,
            versions,
            bins,
        )


def reliability(shown: Calibration, event: str) -> None:
    """The share right against confidence, bin by bin."""
    st.header("How often it is right when it says so", help=explain("reliability"))
    fig = reliability_diagram(shown.table, event=event or "the prediction", height=420)
    fig.update_layout(margin_t=40)
    # both axes are shares: as wide as high, or nearly
    with st.container(width=640):
        downloads.figure(
            fig,
            "cal-reliability",
            "Share right against confidence, in bins, with 95\u00a0% intervals",
            "workbench-reliability",
        )
    st.caption(
        "Above the dotted line it is too modest, below it promises too much. Grey: fewer than "
        "five items, which say next to nothing. Bars: 95\u00a0% intervals of the share right; a bin where "
        "all are right has one too."
    )


def confidences(table: ReliabilityTable) -> None:
    """Numbers of items by confidence, right and wrong ones."""
    fig = confidence_histogram(table, height=420)
    downloads.figure(
        fig, "cal-histogram", "Number of items by confidence, right and wrong ones", "workbench-confidence"
    )
    st.caption(with_minus(f"Mean confidence minus accuracy: {table.over_confidence:+.3f}."))


def numbers(shown: Calibration, n: int) -> None:
    """Every measure with its value and what that says; n items were measured on."""
    st.caption("Each measure in a line.", help=explain("ECE", "NLL", "Brier score"))
    ece, parts = shown.ece, shown.parts
    sign = "+" if parts.remainder >= 0 else "−"
    rows = [
        (
            "Expected calibration error",
            f"{ece.value:.3f}  ({ece.low:.3f} to {ece.high:.3f})",
            "Mean gap between confidence and share right. The 95\u00a0% interval is for the gap without "
            "what chance alone adds; it begins at 0 where chance can be all of it.",
        ),
        (
            "Maximum calibration error",
            f"{shown.maximum:.3f}",
            "Largest gap of any bin, however few its items.",
        ),
        (
            "Adaptive calibration error",
            f"{shown.adaptive:.3f}",
            "As the first, with equally many items a bin.",
        ),
        (
            "Classwise calibration error",
            f"{shown.classwise:.3f}",
            "Mean over the classes of each one's own error.",
        ),
        ("Negative log-likelihood", f"{shown.nll:.3f}", "Nats per item; punishes being sure and wrong."),
        ("Brier score", f"{shown.brier:.3f}", "0 to 2, over all classes; 0 is perfect."),
        (
            "Brier score of this event",
            f"{parts.brier:.3f} = {parts.reliability:.3f} − {parts.resolution:.3f} + "
            f"{parts.uncertainty:.3f} {sign} {abs(parts.remainder):.3f}",
            "Reliability (low is good) − resolution (high is good) + uncertainty + remainder in the bins.",
        ),
    ]
    named = [dict(zip(("Measure", "Value", "What it says"), row, strict=True)) for row in rows]
    widgets.table(named, "cal-numbers", "Calibration measures")
    if n < 200:
        st.caption(f"With n = {n:,} do not rank anything closer than about {1 / np.sqrt(n):.2f}.")


def other_readings(
    model: FittedModel, items: Ints, codes: Ints, versions: Mapping[str, str], bins: int
) -> None:
    """The same model's probabilities read in each way that it has, side by side."""
    st.caption(
        "What the model computes can be turned into probabilities in more than one way.",
        help=explain("latent", "temperature", "argmax frequency"),
    )
    beta = protocols.temperature_of(model.estimator)
    sharpness = "" if beta is None else f" Sharpness {beta:.2f}, fitted on each label while it was hidden."
    notes = {
        "own": f"What the program uses.{sharpness}",
        "plain": f"Sharpness 1, as if none were fitted: {'less sure' if (beta or 0) > 1 else 'surer'}.",
        "argmax": "How often a draw of the functions is largest here: right for asking only.",
        "guess": "What was known before any label: the gap to the first line is what labels taught.",
    }
    rows = []
    for name, title in versions.items():
        calibration = evaluation.calibration(model, items, codes, name, bins, None, None)
        measured = f"ECE {calibration.ece.value:.3f} · NLL {calibration.nll:.3f}"
        rows.append({"Reading": title, "Measured": measured, "What it is": notes[name]})
    widgets.table(rows, "cal-versions", "Calibration of each reading of the latent functions")


st.title("Calibration")
widgets.style(".st-key-verdict p strong { font-size: 1.3rem; font-weight: 600; }")
part = choose_part()
if part != OWN:
    run_experiment(part)
    frame.end()
if current.project_id() is None:
    st.caption("The other three need no project.")
session = frame.needed("see whether its percentages can be trusted", example="reliability")
current.keep_fitting(session)
model = session.model
if model is None:
    frame.no_model(session)
try:
    measurement = measured(session, model)
except InputError as error:
    st.info(verbatim(error), icon=":material/info:")
    frame.end()
if measurement is None:
    frame.end()
readings(session, model, measurement)
