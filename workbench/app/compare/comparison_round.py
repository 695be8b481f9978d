"""A comparison's rounds looked at one at a time, and what the stopping rules would have said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from workbench.app.compare import comparison, stopping
from workbench.app.shell import downloads, widgets
from workbench.app.words.text import percent, plural, show_error
from workbench.errors import InputError
from workbench.figures.curves import learning_curve
from workbench.policies.registry import title_of

if TYPE_CHECKING:
    from workbench.studies import StudyResult

_ROUND_HEIGHT = 480


def rounds_again(record: comparison.Comparison, results: StudyResult) -> None:
    """The rounds of a run whose models are fitted again: advice on when to stop, and one at a time."""
    policies = [p for p in record.spec.policies if results.of(p)]
    if policies:
        widgets.folded("When to stop", "comparison-stop-box", _advice, record, results, policies)
        widgets.folded("One round, looked at", "comparison-round-box", _one_round, record, results, policies)


def _one_round(record: comparison.Comparison, results: StudyResult, policies: list[str]) -> None:
    """One slider for curve values, reliability and map of the same round."""
    left, right = st.columns([1, 2], gap="medium")
    policy = left.selectbox("Policy", policies, format_func=title_of, key="round-policy")
    seed, rounds = min(results.of(policy).items())
    if len(rounds) < 2:
        return
    number = right.slider("Round", 0, len(rounds) - 1, len(rounds) - 1, key="round-number")
    try:
        model = comparison.round_model(record, policy, seed, int(number))
    except InputError as error:
        show_error(error)
        return
    row = rounds[int(number)]
    st.caption(
        f"Seed {seed}, {plural(row.n_labelled, 'label')}: error {percent(row.error)}, NLL {row.nll:.3f}, "
        f"ECE {percent(row.ece)}. The model is fitted again on that round's labels."
    )
    fig = learning_curve(
        comparison.curves(results, policies, "error"),
        measure="Test error",
        height=280,
        marks=[("this round", float(row.n_labelled))],
    )
    downloads.figure(
        fig,
        "round-curve",
        "Test error against the number of labels, this round marked",
        f"curve-round-{number}",
    )
    _reliability_and_map(model, int(number))


def _advice(record: comparison.Comparison, results: StudyResult, policies: list[str]) -> None:
    """The advice on when to stop, as it would have been during a run."""
    left, right = st.columns([1, 2], gap="medium", vertical_alignment="bottom")
    policy = left.selectbox("Policy", policies, format_func=title_of, key="stop-policy")
    seed = min(results.of(policy))
    right.caption(
        f"Seed {seed}. Advice only: nothing here ends a run. The run's models are fitted again to see "
        "what they predicted on a fixed sample of the pool."
    )
    job = comparison.advice(record, policy, seed)
    if job.status != "done":
        widgets.job_panel(job, "stop-advice", again=True)
        return
    stopping.shown(*job.result)


def _reliability_and_map(model: Any, number: int) -> None:
    """Quality of one round's model, and the places where it is unsure."""
    from workbench.figures.maps import pool_map
    from workbench.figures.reliability import reliability_diagram
    from workbench.sessions import insight

    honest = insight.calibration(model)
    left, right = widgets.split([1, 1], "round-panels")
    with left:
        fig = reliability_diagram(honest.table, height=_ROUND_HEIGHT)
        downloads.figure(
            fig,
            "round-reliability",
            "Accuracy against confidence on the test items of this round",
            f"reliability-round-{number}",
        )
    with right:
        name = "variation-ratio" if model.latent is not None else "entropy"
        view = insight.pool_map(model, name, limit=4000)
        fig = pool_map(
            view.plane.points,
            items=view.items,
            values=insight.measure(model, name),
            measure=view.title,
            classes=model.classes,
            labels=_labels_of(model),
            height=_ROUND_HEIGHT,
        )
        downloads.figure(
            fig,
            "round-map",
            "The pool on its plane, coloured by uncertainty, labels marked",
            f"map-round-{number}",
        )


def _labels_of(model: Any) -> Any:
    """[N] class codes of the items that a model was fitted on, -1 of the others."""
    labels = np.full(len(model.pool), -1)
    labels[model.items] = model.codes
    return labels
