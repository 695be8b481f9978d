"""Uncertainty: the pool on a plane, coloured by what the model does not know."""

from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from workbench.app import desk
from workbench.app.access import current
from workbench.app.data import forms
from workbench.app.history import decisions
from workbench.app.serving.caching import computed
from workbench.app.shell import downloads, frame, widgets
from workbench.app.uncertainty import mapping, selection
from workbench.app.words.text import explain, one_line, percent, plural, show_kept_error, verbatim
from workbench.classifiers import title_of
from workbench.errors import InputError
from workbench.sessions.insight import DOUBT
from workbench.short_names import short_names

PAIR, FUNCTIONS = "Side by side", "Class functions"
BY_NEIGHBOURS, BY_COMPONENTS, TWO_FEATURES = "Neighbours", "Principal components", "Two features"
MOST_IN_GALLERY = 200
LAYOUTS = (BY_NEIGHBOURS, BY_COMPONENTS, TWO_FEATURES)
HOW_TO_READ = (
    "Each dot is an item, alike ones close together; the larger marks are labelled. Click one to see and "
    "label it; with the lasso, many."
)
BEHIND = {"regions": "Predicted class", "blend": "Probabilities as colour", "none": "Nothing"}


def what_to_label() -> None:
    """Doubts of the model, and the groups worth labelling: a button selects one."""
    doubts = mapping.uncertain_items(view, open_items)
    if not doubts.of:
        st.markdown("**No item is left to ask about.**")
        return
    if not doubts.n:
        st.markdown(f"**{verbatim(session.predictions.verdict.of_no_doubt(doubts.of))}**")
        return
    amount = f"{doubts.n:,} of {plural(doubts.of, 'open item')}"
    words = f"**The model is unsure of {amount}.** {verbatim(session.predictions.verdict.caution)} "
    words += "These are most useful to label:" if doubts.groups else ""
    st.markdown(words, help=explain("doubt"))
    widgets.style(
        # two long names take two lines where there is no room for one
        ".st-key-groups button { height: auto; text-align: left; } .st-key-groups button p"
        " { white-space: normal; overflow: visible; text-overflow: clip; }"
    )
    with st.container(horizontal=True, gap="small", key="groups"):
        short = dict(zip(session.classes, short_names(session.classes, 34), strict=True))
        for number, group in enumerate(doubts.groups):
            first, second = (verbatim(short.get(name, name)) for name in group.classes)
            st.button(
                f"{plural(len(group.items), 'item')}: {first} or {second}?",
                key=f"group-{number}",
                on_click=selection.choose,
                args=(session, list(group.items)),
                help="Selects them; label them together, or one after the other.",
            )


def inspect(item: int, view: Any, values: Any, title: str, *, offered: bool) -> None:
    with st.container(border=True, key="inspected-item"):
        st.markdown(f"## Item {verbatim(session.pool.items.ids[item], 40)}")
        label = session.state.labels.get(item)
        words = f"labelled {verbatim(label, 40)}" if label is not None else "not labelled"
        if np.isfinite(values[item]):
            words += f" · {verbatim(title)}: **{mapping.shown_as(name, float(values[item]))}**"
        st.markdown(words)
        gallery((item,), view.model, offered=offered)
        from workbench.figures.maps import class_probabilities

        widgets.figure(
            class_probabilities(view.model.probabilities_of(item), view.model.classes),
            f"bars-{item}-{view.model.number}",
            "What the model thinks its class is",
        )


def gallery(chosen: tuple[int, ...], model: Any, *, offered: bool = False) -> None:
    """The items with the desk's keys: all of several are chosen, so that one key labels them."""
    known = {row.item: row for row in computed(decisions.decisions, shared, at=session.state.last_event)}
    rows = [known.get(i, decisions.Decision(i, decisions.OPEN)) for i in chosen[:MOST_IN_GALLERY]]
    tiles = decisions.tiles(session.pool, rows, {}, desk.picture_address(session))
    p = model.probabilities_at(np.array([row.item for row in rows]))
    # a name of before may be another class's by now
    is_named_so = model.classes == session.state.classes
    for tile, code, sure in zip(tiles, p.argmax(axis=1).tolist(), p.max(axis=1).tolist(), strict=True):
        tile |= {"says": model.classes[code], "sure": sure} if is_named_so else {}
    # what is given here stands here until something else is selected
    stamp = repr((chosen, st.session_state.get("map-turn", 0), st.session_state[frame.VISIT]))
    desk.mount_gallery(session, tiles, stamp, beside=True, offered=offered)


def inspect_many(chosen: list[int], values: Any, title: str) -> None:
    with st.container(border=True, key="inspected-items"):
        st.markdown(f"## {plural(len(chosen), 'item')} selected")
        n_labelled = sum(i in session.state.labels for i in chosen)
        finite = values[chosen][np.isfinite(values[chosen])]
        words = f"{n_labelled} labelled already, and would be labelled anew. " if n_labelled else ""
        if finite.size:
            ends = [mapping.shown_as(name, float(end)) for end in (finite.min(), finite.max())]
            words += f"{title}: {ends[0]} to {ends[1]}."
        st.caption(verbatim(words, 300))
        to_ask = [i for i in chosen if i in still_open]
        st.button(
            f"Ask me about {'this one' if len(to_ask) == 1 else f'these {len(to_ask):,}'}",
            key="ask-selected",
            icon=":material/arrow_forward:",
            disabled=not to_ask,
            on_click=selection.ask_about,
            args=(session, tuple(to_ask)),
            help="They come next on Label, one after the other.",
        )
        show_kept_error("map-problem")
        if len(chosen) > MOST_IN_GALLERY:
            st.caption(f"The first {MOST_IN_GALLERY} of them stand here, and the keys are of these.")
        gallery(tuple(chosen), view.model)
        st.button("Clear selection", key="clear-selection", type="tertiary", on_click=selection.forget)


def rounds_slider(label: str, key: str, default: int) -> int:
    """A round, chosen by its number of labels."""
    by_number = {r.number: r.n_labelled for r in session.rounds}
    if len(by_number) < 2:
        return default
    numbers = sorted(by_number)
    if st.session_state.get(key) not in (None, *numbers):
        del st.session_state[key]
    number = st.select_slider(
        label,
        numbers,
        value=default if default in by_number else numbers[-1],
        format_func=lambda n: f"{by_number[n]} labels",
        key=key,
    )
    return int(number)


DOUBT_FIRST, ASKED_BY, MORE = "doubt", "asked", "more"


def measure_name(key: str = "measure", without: str = "") -> tuple[str, str, str]:
    """The measure to colour by: name for `insight.measure`, title, words.

    Args:
        key: of the widget.
        without: a measure that is shown already.
    """
    offered = {n: t for n, t in mapping.measures_for(model).items() if n != without}
    policy = str(session.settings["policy"])
    kinds = {DOUBT_FIRST: "Doubt, in per cent"} if DOUBT in offered else {}
    if policy in offered:
        kinds[ASKED_BY] = f"What is asked by: {offered[policy]}"
    kinds[MORE] = "More measures"
    kind = st.radio(
        "Colour by",
        list(kinds),
        format_func=kinds.__getitem__,
        key=f"{key}-kind-{len(kinds)}",
        persist_state="session",
    )
    if kind == DOUBT_FIRST:
        return DOUBT, offered[DOUBT], mapping.words_of(DOUBT)
    if kind == ASKED_BY:
        return policy, offered[policy], mapping.words_of(policy)
    rest = {n: t for n, t in offered.items() if n not in (DOUBT, policy)}
    name = st.selectbox(
        "Measure",
        list(rest),
        format_func=rest.__getitem__,
        key=f"{key}-{len(rest)}",
        persist_state="session",
        help=explain("variation ratio", "entropy", "BALD", "margin", "latent"),
    )
    words = mapping.words_of(name)
    if name == mapping.CLASS_VARIANCE:
        which = st.selectbox(
            "Class", model.classes, key=f"{key}-class", format_func=lambda c: one_line(c, 40)
        )
        return f"variance:{which}", f"Variance of {which}", words
    return name, rest[name], words


def layout() -> tuple[Any, Any]:
    """The plane, with a menu where there is a choice, and the job that still computes it."""
    pool = session.pool
    if pool.n_features <= 2:
        return mapping.layout(session.pool), None
    names = list(map(str, pool.feature_map.columns))
    again = bool(st.session_state.pop("map-again", False))
    neighbour_map, job, reason = mapping.neighbours(session, again=again)
    with st.popover("Layout", icon=":material/view_in_ar:", key="projection"):
        kind = st.radio("Lay the pool out by", LAYOUTS, key="projection-kind", persist_state="session")
        if kind == TWO_FEATURES:
            first = st.selectbox("Across", range(len(names)), format_func=lambda i: names[i], key="axis-x")
            second = st.selectbox(
                "Up", range(len(names)), index=1, format_func=lambda i: names[i], key="axis-y"
            )
            return mapping.layout(session.pool, (int(first), int(second))), None
    if kind == BY_NEIGHBOURS and neighbour_map is not None:
        return mapping.neighbour_layout(neighbour_map), None
    if kind == BY_NEIGHBOURS and reason:
        st.caption(f"{verbatim(reason)} The map shows principal components.")
    return mapping.with_trust(
        mapping.layout(session.pool), neighbour_map
    ), job if kind == BY_NEIGHBOURS else None


def making(job: Any) -> None:
    """The neighbour map on its way, above the components that stand in for it."""
    if job.status not in ("failed", "cancelled"):
        widgets.job_panel(job, "neighbour-map")
        return
    with widgets.row("no-neighbour-map"):
        why = "was cancelled." if job.status == "cancelled" else f"could not be made: {verbatim(job.error)}"
        st.caption(f"The neighbour map {why}")
        st.button("Make it", key="make-map", on_click=lambda: st.session_state.update({"map-again": True}))


def drawn(view: Any, values: Any, title: str, scale: tuple[float, float] | None, height: int) -> Any:
    """The map of one model."""
    from workbench.figures import maps

    over = mapping.over_plane(view.model) if where.own and behind != "none" else None
    fig = maps.pool_map(
        where.points,
        items=session.pool.trainable,
        values=values,
        measure=title,
        classes=view.model.classes,
        labels=mapping.labels_at(view, len(session.pool)),
        names=session.pool.items.ids,
        details=mapping.hover_words(view.model),
        asked=chosen,
        ringed_as="selected",
        revision=st.session_state.get("revision", 0),
        regions=over[0] if over is not None and behind == "regions" else None,
        axes=where.axes,
        height=height,
        value_range=scale,
        share=title == doubt_title,
        next_item=mapping.next_question(session, view, open_items),
    )
    if over is not None and behind == "blend" and len(view.model.classes) <= 10:
        from workbench.figures.teaching import blend_image

        grid, p = over
        image = blend_image(grid.x, grid.y, p, opacity=0.7)
        fig = maps.with_blend(fig, image, grid.x, grid.y)
    points = mapping.inducing_points(view, where) if inducing else None
    if points is not None:
        fig = maps.with_inducing(fig, points)
    pairs = mapping.neighbour_lines(session, chosen, item) if joined else None
    return fig if pairs is None or not len(pairs) else maps.with_lines(fig, where.points, pairs)


def chart(fig: Any, key: str, alt: str) -> None:
    if where.place is None or where.axes[0].startswith(mapping.WIDEST):
        # a place on such a map has no unit
        fig.update_xaxes(showticklabels=False, showgrid=False)
        fig.update_yaxes(showticklabels=False, showgrid=False)
    elif session.pool.n_features == 1:
        # nothing is drawn along it
        fig.update_yaxes(showticklabels=False, showgrid=False)
    widgets.figure(
        fig,
        key,
        alt,
        on_select=lambda: selection.remember(session, key),
        selection_mode=("points", "box", "lasso"),
        config={"displaylogo": False, "modeBarButtonsToRemove": ["autoScale2d"]},  # has the lasso
    )
    selection.mount_pointer(
        session,
        chart=key,
        measure=title,
        chosen=chosen,
        start=item,
        act=partial(selection.act, session),
        turn=st.session_state.get("map-turn", 0),
    )
    downloads.figure_downloads(fig, f"workbench-{key.partition('-')[0]}", f"save-{key}")


def neighbours_toggle() -> bool:
    """True if lines join items that are neighbours in all features."""
    making = session.fits.making
    is_on = st.toggle(
        "Lines to neighbours",
        key="neighbour-lines",
        persist_state="session",
        disabled=not making.at_hand,
        help=explain("leans on neighbours"),
    )
    if making.running:
        st.caption(f"The graph of neighbours is being made: {percent(making.fraction, 0)}.")
    elif making.neighbourhood.too_few:
        st.caption(f"No lines: {verbatim(making.neighbourhood.too_few)}.")
    elif is_on and len(making.neighbourhood) > mapping.MOST_LINES:
        st.caption("Of the item shown; select others to see theirs.")
    return bool(is_on) and making.at_hand


def settings() -> tuple[tuple[str, str, str], Any, Any, str, bool, bool, Any, Any]:
    """The map's controls: measure, plane, what lies behind, inducing points, lines, the model and its job."""
    measure = measure_name()
    if model.latent is None:
        st.caption(mapping.LATENT_ONLY)
    number = rounds_slider("Round", f"round-{session.id}-{model.number}", model.number)
    (where, laying), behind, inducing, joined = layout(), "none", False, False
    if shown_as != FUNCTIONS:
        if where.own:
            behind = st.radio(
                "Behind the points",
                list(BEHIND),
                format_func=BEHIND.__getitem__,
                key="behind",
                persist_state="session",
            )
        with st.expander("Details of the model", key="map-details"):
            inducing = st.toggle(
                "Inducing points",
                key="inducing",
                persist_state="session",
                help=explain("inducing point"),
                disabled=where.place is None or model.seen is not None,
            )
            joined = neighbours_toggle()
    if behind == "blend" and len(model.classes) > 10:
        st.caption(
            f"No colour map: {len(model.classes)} classes, and no more than 10 colours can be told apart."
        )
    return measure, where, laying, behind, inducing, joined, *mapping.at_round(session, number)


def other_map(view: Any, name: str, values: Any, title: str) -> tuple[Any, Any, tuple[str, str], Any]:
    """Map at the right: its model, its values, the two titles, the common scale or None."""
    against = st.radio("Beside it", ["Another measure", "Another model", "Another round"], key="against")
    if against == "Another measure":
        second, second_title, _ = measure_name("second-measure", without=name)
        return view, mapping.values_of(view.model, second), (title, second_title), None
    if against == "Another model":
        classifier = str(session.settings["classifier"])
        possible = forms.classifiers_for(session.pool.kind, len(model.classes))
        kinds = [kind for kind in possible if kind != classifier]
        kind = st.selectbox("Model", kinds, key="other-kind", format_func=title_of)
        other_view, job = mapping.other_kind(session, view, kind)
        left_title = title_of(classifier)
    else:
        first = session.rounds[0].number if session.rounds else model.number
        chosen_round = rounds_slider("Round on the right", f"other-round-{session.id}", first)
        other_view, job = mapping.at_round(session, chosen_round)
        left_title = view.title
    if other_view is None:
        assert job is not None
        widgets.job_panel(job, "other-model", again=True)
        frame.end()
    theirs = mapping.values_of(other_view.model, name)
    scale = np.concatenate([values[session.pool.trainable], theirs[session.pool.trainable]])
    scale = scale[np.isfinite(scale)]
    return (
        other_view,
        theirs,
        (left_title, other_view.title),
        (float(scale.min()), float(scale.max())) if scale.size else (0, 1),
    )


def functions(view: Any, item: int) -> None:
    """The class functions along one feature through an item."""
    if view.model.latent is None:
        st.info("This model has no latent functions to draw.", icon=":material/info:")
        frame.end()
    columns = list(map(str, session.pool.feature_map.columns))
    column = st.selectbox(
        "Along feature",
        range(len(columns)),
        index=mapping.strongest_feature(view.model, item),
        format_func=lambda i: one_line(columns[i], 60),
        key=f"band-column-{item}",
        width=300,
        help="Opens at the feature that changes the prediction of this item most.",
    )
    if mapping.is_constant(session, int(column)):
        st.info(
            f"Every item has the same value of {verbatim(columns[column], 60)}, so there is nothing to draw "
            "along it.",
            icon=":material/info:",
        )
        return
    line = mapping.line_through(view.model, item, int(column))
    codes = np.argsort(-view.model.probabilities_of(item), kind="stable")[:4]
    from workbench.figures.teaching import class_bands

    fig = class_bands(
        line.grid,
        line.mean,
        line.variance,
        line.probabilities,
        classes=view.model.classes,
        axis=line.axis,
        mark=line.at,
        shown=sorted(map(int, codes)),
        height=600,
    )
    downloads.figure(
        fig,
        "class-bands",
        "Latent functions with 95\u00a0% bands and class probabilities along one feature",
        "workbench-class-functions",
    )
    st.caption(
        f"The {plural(len(codes), 'most probable class', 'most probable classes')} of the item shown here, "
        "along one feature; its other features stay as they are. The dashed line is the item. "
        "Where the lines go flat, the model's own scaling has cut the feature."
    )
    if view.model.smoothing.strength != "none":
        st.caption(
            "The model also goes by an item's neighbours, or by a column beside it. The lines go without "
            "that: at the dashed line they may differ from the bars."
        )


def about_the_map(where: Any, behind: str) -> None:
    """Legend of the colours and places, folded."""
    with st.expander("What the map shows", key="about-map"):
        st.caption(
            f"{verbatim(title)}: {verbatim(words)}. Model of {plural(view.model.n_labelled, 'label')}; "
            f"{session.queue.n_left:,} of {plural(len(trainable), 'item')} may still be asked about."
        )
        map_notes(where, behind)


def map_notes(where: Any, behind: str) -> None:
    if where.note:
        st.caption(verbatim(where.note), help=explain("PCA", "t-SNE", "trustworthiness"))
    elif behind == "regions":
        st.caption("The tint is the predicted class; dotted lines are its probability.")
    elif behind == "blend":
        st.caption("Each class has a colour, mixed by probability: pure is sure, muddy is a guess.")


if st.session_state.pop("map-go", False):
    frame.go("label")
shared = frame.needed("see where the model is unsure", "Uncertainty", example="doubt")
session = current.mine(shared)
with widgets.row("map-head", gap="medium"):
    st.title("Uncertainty", width="content")
    shown_as = st.segmented_control(
        "Show",
        ["Map", PAIR, FUNCTIONS],
        default="Map",
        required=True,
        key="map-view",
        label_visibility="collapsed",
        persist_state="session",
    )
current.keep_fitting(session)
fitted_model = session.model
if fitted_model is None:
    frame.no_model(session)
model = fitted_model
chosen = selection.selected(session)
# the map comes first; its controls stand beside it, or below on a narrow screen
left, right = widgets.split([2.6, 1], "map-and-item")
widgets.style(
    # where all stands in one column, the item follows its map, and the map's controls come last
    "@media (max-width: 1150px) {"
    " [data-testid=stLayoutWrapper]:has(> .st-key-map-tools, > .st-key-other-tools) { order: 1; } }"
)
with right, st.container(border=True, key="map-tools"):
    (name, title, words), where, laying, behind, inducing, joined, view, job = settings()
if view is None:
    with left:
        widgets.job_panel(job, "round", again=True)
    frame.end()
trainable = session.pool.trainable
open_items = mapping.open_items(session)
still_open = frozenset(open_items.tolist())
doubt_title = mapping.measures_for(view.model).get(DOUBT, "")
try:
    values = mapping.values_of(view.model, name)
    if shown_as == PAIR:
        with right, st.container(border=True, key="other-tools"):
            other, theirs, titles, scale = other_map(view, name, values, title)
except InputError as error:
    with left:
        st.info(verbatim(error), icon=":material/info:")
    frame.end()
candidates = open_items if open_items.size else trainable
highest = int(candidates[np.argmax(np.nan_to_num(values[candidates], nan=-np.inf))])
# the item under the keys stays when its label has come: the next one is not to have a key meant for it
at = session.id, name, view.model.uid, st.session_state.get("map-turn", 0), st.session_state[frame.VISIT]
if st.session_state.get("map-first", ((), 0))[0] != at:
    st.session_state["map-first"] = at, highest
item = chosen[0] if chosen else st.session_state["map-first"][1]
with left:
    if laying is not None and shown_as != FUNCTIONS:
        making(laying)
    if shown_as == PAIR:
        from workbench.figures.maps import side_by_side

        pair = (drawn(view, values, title, scale, 600), drawn(other, theirs, titles[1], scale, 600))
        fig = side_by_side(*pair, titles, one_scale=scale is not None, height=600)
        chart(fig, f"pair-{session.id}", f"Two maps side by side: {titles[0]} and {titles[1]}")
        map_notes(where, behind)
        st.caption("Zoom one and the other follows. Click or circle items to see them.")
    elif shown_as == FUNCTIONS:
        functions(view, item)
    else:
        what_to_label()
        st.caption(HOW_TO_READ)
        chart(
            drawn(view, values, title, None, 620),
            f"map-{session.id}",
            f"The pool on a plane, coloured by {title.lower()}; labelled items are marked by class",
        )
        about_the_map(where, behind)
with right:
    if len(chosen) > 1:
        inspect_many(chosen, values, title)
    else:
        if not chosen:
            st.caption(
                "The most doubtful open item; click another on the map."
                if name == DOUBT
                else "The highest open item."
            )
        inspect(item, view, values, title, offered=not chosen)
