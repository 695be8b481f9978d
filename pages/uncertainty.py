"""Uncertainty: the pool on a plane, coloured by what the model does not know."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from workbench.app import current, frame, items, mapping, seeing, widgets
from workbench.app.downloads import figure_downloads
from workbench.app.text import plural, verbatim
from workbench.errors import InputError

BUTTONS = 12
BEHIND = {"regions": "Predicted class", "blend": "Probabilities as colour", "none": "Nothing"}


def remember(key: str) -> None:
    """Keep what was clicked or circled; a new figure clears the selection itself."""
    event = st.session_state.get(key)
    found = []
    for point in event["selection"]["points"] if event else []:
        data = point.get("customdata")
        first = data[0] if isinstance(data, (list, tuple)) and data else None
        first = data.get("0") if isinstance(data, dict) else first
        if first is not None:
            found.append(int(first))
    if found:
        st.session_state["selected"] = list(dict.fromkeys(found))
        st.session_state["selected-in"] = session.id


def selected() -> list[int]:
    if st.session_state.get("selected-in") != session.id:
        return []
    return [i for i in st.session_state.get("selected", []) if 0 <= i < len(session.pool)]


def forget() -> None:
    st.session_state["selected"] = []


def give(chosen: tuple[int, ...], name: str) -> None:
    """Label what is selected."""
    try:
        session.label_items(chosen, name)
    except InputError as error:
        st.session_state["label-problem"] = str(error)
        return
    many = plural(len(chosen), "item")
    st.session_state["label-told"] = f"{many} labelled {verbatim(name, 40)}."


def take_back() -> None:
    event = session.undo()
    st.session_state["label-told"] = "Taken back." if event is not None else "There is nothing to take back."


def label_buttons(chosen: tuple[int, ...]) -> None:
    """One button a class; the items are in the keys, so that a late click cannot hit others."""
    mark = f"{chosen[0]}-{len(chosen)}"
    what = "this item" if len(chosen) == 1 else f"these {len(chosen):,} items"
    with st.container(horizontal=True, key="map-answers", gap="small"):
        if len(session.classes) <= BUTTONS:
            for code, name in enumerate(session.classes):
                st.button(
                    verbatim(name, 30),
                    key=f"give-{mark}-{code}",
                    on_click=give,
                    args=(chosen, name),
                    help=f"Label {what} {verbatim(name, 40)}",
                )
        else:
            name = st.selectbox(
                "Class",
                session.classes,
                index=None,
                placeholder="Choose a class",
                key=f"class-{mark}",
                label_visibility="collapsed",
                format_func=lambda name: verbatim(name, 40),
            )
            st.button(
                "Label", key=f"give-{mark}", disabled=name is None, on_click=give, args=(chosen, str(name))
            )
        st.button("Undo", key="map-undo", icon=":material/undo:", type="tertiary", on_click=take_back)
    if "label-told" in st.session_state:
        st.caption(st.session_state.pop("label-told"))
    if "label-problem" in st.session_state:
        st.error(verbatim(st.session_state.pop("label-problem")), icon=":material/error:")


def inspect(item: int, view: Any, values: Any, title: str) -> None:
    with st.container(border=True, key="inspected-item"):
        st.markdown(f"#### Item {verbatim(session.pool.items.ids[item], 40)}")
        label = session.state.labels.get(item)
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
        label_buttons((item,))
        from workbench.figures.bars import class_probabilities

        widgets.figure(
            class_probabilities(view.model.probabilities[item], view.model.classes),
            f"bars-{item}-{view.model.number}",
            "What the model thinks its class is",
            config={"displayModeBar": False},
        )


def inspect_many(chosen: list[int], values: Any, title: str) -> None:
    with st.container(border=True, key="inspected-items"):
        st.markdown(f"#### {plural(len(chosen), 'item')} selected")
        done = sum(i in session.state.labels for i in chosen)
        finite = values[chosen][np.isfinite(values[chosen])]
        words = f"{done} labelled already, and would be labelled anew. " if done else ""
        if finite.size:
            words += f"{title}: {finite.min():.3f} to {finite.max():.3f}."
        st.caption(verbatim(words, 300))
        if session.pool.kind == "image":
            from workbench.figures.thumbnails import enlarged, sheet

            images = [session.pool.items.show(i).image for i in chosen[:24]]
            same = [im for im in images if im is not None and im.shape == images[0].shape]
            if same:
                st.image(
                    sheet([enlarged(im, 48) for im in same], 6),
                    output_format="PNG",
                    alt=f"The first {len(same)} of them",
                )
        label_buttons(tuple(chosen))
        st.button("Clear selection", key="clear-selection", type="tertiary", on_click=forget)


def waiting(job: Any, key: str) -> None:
    if job.active or job.status in ("failed", "cancelled"):
        widgets.job_panel(job, key)
    else:
        st.rerun()


def rounds_slider(label: str, key: str, default: int) -> int:
    """A round, chosen by its number of labels."""
    by_number = {r.number: r.n_labelled for r in session.rounds}
    if len(by_number) < 2:
        return default
    numbers = sorted(by_number)
    if st.session_state.get(key) not in (None, *numbers):
        del st.session_state[key]
    chosen = st.select_slider(
        label,
        numbers,
        value=default if default in by_number else numbers[-1],
        format_func=lambda n: f"{by_number[n]} labels",
        key=key,
    )
    return int(chosen)


def measure_name() -> tuple[str, str, str]:
    """The measure to colour by: name for `insight.measure`, title, words."""
    offered = mapping.measures_for(model)
    name = st.segmented_control(
        "Colour by",
        list(offered),
        default="variation-ratio" if "variation-ratio" in offered else "entropy",
        required=True,
        format_func=offered.get,
        key=f"measure-{len(offered)}",
        persist_state="session",
    )
    title, words = offered[name], mapping.words_of(name)
    if name == mapping.CLASS_VARIANCE:
        which = st.selectbox(
            "Class", model.classes, key="variance-class", format_func=lambda c: verbatim(c, 40), width=260
        )
        return f"variance:{which}", f"Variance of {which}", words
    return name, title, words


def layout() -> Any:
    pool = session.pool
    if pool.n_features <= 2:
        return mapping.layout(session)
    names = list(map(str, pool.feature_map.columns))
    with st.popover("Projection", icon=":material/view_in_ar:", key="projection"):
        kind = st.radio(
            "Lay the pool out by",
            ("Principal components", "Two features"),
            key="projection-kind",
            persist_state="session",
        )
        if kind == "Two features":
            first = st.selectbox("Across", range(len(names)), format_func=lambda i: names[i], key="axis-x")
            second = st.selectbox(
                "Up", range(len(names)), index=1, format_func=lambda i: names[i], key="axis-y"
            )
            return mapping.layout(session, (int(first), int(second)))
    return mapping.layout(session)


def drawn(view: Any, values: Any, title: str, scale: tuple[float, float] | None, height: int) -> Any:
    """The map of one model."""
    from workbench.figures import maps

    over = mapping.over_plane(session, view, where) if behind != "none" else None
    fig = maps.pool_map(
        where.points,
        items=session.pool.trainable,
        values=values,
        measure=title,
        classes=view.model.classes,
        labels=mapping.labels_at(view, len(session.pool)),
        names=session.pool.items.ids,
        regions=over[0] if over is not None and behind == "regions" else None,
        axes=where.axes,
        height=height,
        value_range=scale,
    )
    if over is not None and behind == "blend" and len(view.model.classes) <= 10:
        from workbench.figures.teaching import blend_image

        grid, p = over
        image = blend_image(grid.x, grid.y, p, opacity=0.7)
        fig = maps.with_blend(fig, image, grid.x, grid.y)
    points = mapping.inducing_points(view, where) if inducing else None
    return fig if points is None else maps.with_inducing(fig, points)


def chart(fig: Any, key: str, alt: str) -> None:
    widgets.figure(
        fig,
        key,
        alt,
        on_select=lambda: remember(key),
        selection_mode=("points", "box", "lasso"),
        config={"modeBarButtonsToRemove": ["autoScale2d"]},
    )
    figure_downloads(fig, f"workbench-{key.partition('-')[0]}", f"save-{key}")


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
shown_as = st.segmented_control(
    "Show",
    ["Map", "Side by side", "Class functions"],
    default="Map",
    required=True,
    key="map-view",
    label_visibility="collapsed",
    persist_state="session",
)
name, title, words = measure_name()
if model.latent is None:
    st.caption(mapping.LATENT_ONLY)
with st.container(horizontal=True, gap="large", vertical_alignment="bottom", key="map-tools"):
    where = layout()
    behind, inducing = "none", False
    if shown_as != "Class functions":
        if where.own:
            behind = st.segmented_control(
                "Behind the points",
                list(BEHIND),
                default="regions",
                required=True,
                format_func=BEHIND.get,
                key="behind",
                persist_state="session",
            )
        inducing = st.toggle("Inducing points", key="inducing", persist_state="session")
if behind == "blend" and len(model.classes) > 10:
    st.caption(f"No colour map: {len(model.classes)} classes, and no more than 10 colours can be told apart.")
number = rounds_slider("Round", f"round-{session.id}-{model.number}", model.number)
view, job = mapping.at_round(session, number)
if view is None:
    waiting(job, f"round-{number}")
    frame.end()
try:
    values = mapping.values_of(session, view, name)
except InputError as error:
    st.error(verbatim(error), icon=":material/error:")
    frame.end()
trainable = session.pool.trainable
chosen = selected()
open_items = seeing.open_of(session.pool, session.state)
candidates = open_items if open_items.size else trainable
highest = int(candidates[np.argmax(np.nan_to_num(values[candidates], nan=-np.inf))])
item = chosen[0] if chosen else highest

if shown_as == "Side by side":
    with st.container(horizontal=True, gap="large", vertical_alignment="bottom", key="other-tools"):
        against = st.segmented_control(
            "Beside it",
            ["Another round", "Another model"],
            default="Another model",
            required=True,
            key="against",
        )
        if against == "Another model":
            own = str(session.settings["classifier"])
            kinds = [kind for kind in mapping.MODELS if kind != own]
            kind = st.selectbox(
                "Model", kinds, key="other-kind", width=300, format_func=mapping.classifier_title
            )
            other, other_job = mapping.other_kind(session, view, kind)
            left_title = mapping.classifier_title(own)
        else:
            left_title = view.title
            first = session.rounds[0].number if session.rounds else number
            chosen_round = rounds_slider("Round on the right", f"other-round-{session.id}", first)
            other, other_job = mapping.at_round(session, chosen_round)
    if other is None:
        waiting(other_job, "other-model")
        frame.end()
    try:
        theirs = mapping.values_of(session, other, name)
    except InputError as error:
        st.info(verbatim(error), icon=":material/info:")
        frame.end()
    both = np.concatenate([values[trainable], theirs[trainable]])
    both = both[np.isfinite(both)]
    scale = (float(both.min()), float(both.max())) if both.size else (0.0, 1.0)
    from workbench.figures.maps import side_by_side

    fig = side_by_side(
        drawn(view, values, title, scale, 580),
        drawn(other, theirs, title, scale, 580),
        (left_title, other.title),
        height=580,
    )
    st.caption(
        "One colour scale for both; zoom one and the other follows. Click or circle items to see them."
    )
    chart(fig, f"pair-{session.id}", f"Two models' maps side by side, coloured by {title.lower()}")
    if where.note:
        st.caption(verbatim(where.note))
    inspect_many(chosen, values, title) if len(chosen) > 1 else inspect(item, view, values, title)
    frame.end()

left, right = widgets.split([2.3, 1], "map-and-item")
with left:
    if shown_as == "Class functions":
        if view.model.latent is None:
            st.info("This model has no latent functions to draw.", icon=":material/info:")
            frame.end()
        columns = list(map(str, session.pool.feature_map.columns))
        spread = np.ptp(np.asarray(session.pool.features[trainable]), axis=0)
        column = st.selectbox(
            "Along feature",
            range(len(columns)),
            index=int(np.argmax(spread > 0)),
            format_func=lambda i: verbatim(columns[i], 60),
            key="band-column",
            width=300,
        )
        line = mapping.line_through(session, view, item, int(column))
        most = np.argsort(-view.model.probabilities[item], kind="stable")[:4]
        from workbench.figures.teaching import class_bands

        fig = class_bands(
            line.grid,
            line.mean,
            line.variance,
            line.probabilities,
            classes=view.model.classes,
            axis=line.axis,
            mark=line.at,
            shown=sorted(map(int, most)),
            height=600,
        )
        widgets.figure(
            fig, "class-bands", "Latent functions with 95 % bands and class probabilities along one feature"
        )
        figure_downloads(fig, "workbench-class-functions", "save-class-bands")
        st.caption(
            f"The {plural(len(most), 'most probable class', 'most probable classes')} of the item at the "
            "right, along one feature; its other features stay as they are. The dashed line is the item. "
            "Where the lines go flat, the model's own scaling has cut the feature."
        )
    else:
        st.caption(
            f"{verbatim(title)}: {verbatim(words)}. Model of {plural(view.model.n_labelled, 'label')}; "
            f"{plural(len(trainable), 'item')} that may be asked about. Click a point to see and label its "
            "item; with the lasso, many."
        )
        chart(
            drawn(view, values, title, None, 640),
            f"map-{session.id}",
            f"The pool on a plane, coloured by {title.lower()}; labelled items are marked by class",
        )
        if where.note:
            st.caption(verbatim(where.note))
        elif behind == "regions":
            st.caption("The tint is the predicted class; dotted lines are its probability.")
        elif behind == "blend":
            st.caption("Each class has a colour, mixed by probability: pure is sure, muddy is a guess.")
with right:
    if len(chosen) > 1:
        inspect_many(chosen, values, title)
    else:
        if not chosen:
            st.caption("The highest open item; click another on the map.")
        inspect(item, view, values, title)
