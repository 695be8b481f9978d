"""Uncertainty: the pool on a plane, coloured by what the model does not know."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from workbench.app import current, frame, items, seeing, widgets
from workbench.app.text import plural, verbatim
from workbench.errors import InputError


def picked(key: str) -> int | None:
    """The item of the point that was clicked last; kept, because a new figure clears the selection."""
    event = st.session_state.get(key)
    points = event["selection"]["points"] if event else []
    if points:
        data = points[0].get("customdata")
        item = (
            data[0] if isinstance(data, (list, tuple)) else data.get("0") if isinstance(data, dict) else None
        )
        if item is not None:
            st.session_state["inspected"] = int(item)
    return st.session_state.get("inspected")


def inspect(session: Any, item: int, values: Any, title: str) -> None:
    state = session.state
    with st.container(border=True, key="inspected-item"):
        st.markdown(f"#### Item {verbatim(session.pool.items.ids[item], 40)}")
        label = state.labels.get(item)
        st.caption(f"labelled {verbatim(label, 40)}" if label is not None else "not labelled")
        if session.pool.kind == "image":
            from workbench.figures.thumbnails import enlarged

            image = session.pool.items.show(item).image
            if image is not None:
                st.image(enlarged(image, 150), width=150, output_format="PNG", alt=f"Item {item}")
        else:
            items.show(session.pool, item, key=f"inspected-{item}")
        if np.isfinite(values[item]):
            st.markdown(f"{verbatim(title)}: **{values[item]:.3f}**")
        from workbench.figures.bars import class_probabilities

        model = session.model
        widgets.figure(
            class_probabilities(model.probabilities[item], model.classes),
            f"bars-{item}-{model.number}",
            "What the model thinks its class is",
            config={"displayModeBar": False},
        )


session = frame.needed("see where the model is unsure", "Uncertainty")
st.title("Uncertainty")
current.keep_fitting(session)
model = session.model
if model is None:
    with st.container(border=True, key="no-model"):
        st.markdown("**There is no model yet.**")
        st.markdown("It is fitted as soon as there are labels of two classes.")
        frame.link("label", "Label some items", ":material/arrow_forward:")
    frame.end()
where = seeing.plane(session)
left, right = widgets.split([2.3, 1], "map-and-item")
with left:
    name = st.segmented_control(
        "Colour by",
        list(seeing.MEASURES),
        default="variation-ratio" if model.latent is not None else "entropy",
        required=True,
        format_func=lambda m: seeing.MEASURES[m][0],
        key="measure",
        persist_state="session",
    )
    title, words = seeing.MEASURES[name]
    try:
        values = seeing.measure_of(session.id, model, name)
    except InputError as error:
        st.error(verbatim(error), icon=":material/error:")
        frame.end()
    trainable = session.pool.trainable
    codes = session.state.codes
    labels = np.full(len(session.pool), -1)
    labels[list(codes)] = list(codes.values())
    from workbench.figures.maps import pool_map

    st.caption(
        f"{verbatim(title)}: {verbatim(words)}. Model of {plural(model.n_labelled, 'label')}; "
        f"{plural(len(trainable), 'item')} that may be asked about. Click a point to look at its item."
    )
    fig = pool_map(
        where.points,
        items=trainable,
        values=values,
        measure=title,
        classes=session.classes,
        labels=labels,
        names=session.pool.items.ids,
        regions=seeing.regions(session),
        axes=where.axes,
        height=640,
    )
    key = f"map-{session.id}"
    widgets.figure(
        fig,
        key,
        f"The pool on a plane, coloured by {title.lower()}; labelled items are marked by class",
        on_select="rerun",
        selection_mode=("points",),
    )
    if where.note:
        st.caption(verbatim(where.note))
    elif where.own:
        st.caption("The pool's own two features. The tint behind the points is the predicted class.")
with right:
    item = picked(key)
    if item is None or not 0 <= item < len(session.pool):
        open_items = seeing.open_of(session.pool, session.state)
        candidates = open_items if open_items.size else trainable
        highest = np.nan_to_num(values[candidates], nan=-np.inf)
        item = int(candidates[np.argmax(highest)])
        st.caption("The highest open item; click another on the map.")
    inspect(session, item, values, title)
