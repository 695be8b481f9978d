"""Label: one item, the keys, why this one, and how well it goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from workbench.app import current, frame, items, mapping, oracle, seeing, widgets
from workbench.app.jobs import manager
from workbench.app.keys import Keys, keys_for
from workbench.app.text import percent, plural, verbatim
from workbench.errors import InputError
from workbench.sessions import Event

ROLES = {
    "policy": ("chosen by the policy", "blue"),
    "evaluation": ("evaluation set", "violet"),
    "cold-start": ("to know the pool", "gray"),
    "uniform": ("drawn at random", "gray"),
    "again": ("taken back", "orange"),
}


def answer(session: Any, ask_id: str, event: Event) -> None:
    try:
        accepted = session.tell(ask_id, event)
    except InputError as error:
        st.toast(verbatim(error), icon=":material/error:")
        return
    if not accepted:
        st.toast("This item was answered already: the late key was dropped.", icon=":material/block:")


def step(session: Any, back: bool) -> None:
    moved = session.undo() if back else session.redo()
    if moved is None:
        st.toast("Nothing to undo." if back else "Nothing to redo.")


def next_ask(session: Any) -> Any:
    """The question to show: one taken back comes before the one that was open."""
    state = session.state
    mine = session.annotator
    again = [i for i in state.reopened.get(mine, ()) if i not in state.answered]
    waiting = {a.item for a in state.asks.values() if a.annotator == mine and not a.answered}
    waiting = {i for i in waiting if i not in state.answered}
    asks = session.ask(max(1, len(waiting | set(again))))
    by_item = {ask.item: ask for ask in asks}
    return next((by_item[i] for i in again if i in by_item), asks[0] if asks else None)


def answers(session: Any, ask: Any, classes: tuple[str, ...], keys: Keys) -> None:
    if not keys.classes:
        chosen = st.selectbox(
            "Class",
            classes,
            index=None,
            placeholder=f"Type to search {len(classes)} classes",
            key=f"class-{ask.item}-{ask.id}",
        )
        if chosen is not None:
            answer(session, ask.id, Event.label(chosen))
            st.rerun()
        return
    across = len(classes) if len(classes) <= 4 else 5 if len(classes) <= 10 else 6
    with st.container(key="answers", gap="small"):
        for first in range(0, len(classes), across):
            row = st.container(horizontal=True, wrap=False, gap="small", key=f"row-{first}")
            for code in range(first, min(first + across, len(classes))):
                name = classes[code]
                # a class called by its own key needs no second sign of it
                own = "own-" if keys.classes[code] == name.lower() else ""
                row.button(
                    verbatim(name, 34),
                    key=f"answer-{own}{ask.item}-{ask.id}-{code}",
                    shortcut=keys.classes[code] or None,
                    help=verbatim(name) if len(name) > 34 else None,
                    on_click=answer,
                    args=(session, ask.id, Event.label(name)),
                    width="stretch",
                )


def commands(session: Any, ask: Any, keys: Keys) -> None:
    state = session.state
    with st.container(horizontal=True, key="commands", gap="small"):
        if ask is not None:
            st.button(
                "Skip",
                key=f"skip-{ask.item}-{ask.id}",
                type="tertiary",
                icon=":material/skip_next:",
                shortcut=keys.commands["skip"],
                on_click=answer,
                args=(session, ask.id, Event.skip()),
                help="Set the item aside.",
            )
            st.button(
                "Unsure",
                key=f"unsure-{ask.item}-{ask.id}",
                type="tertiary",
                icon=":material/help:",
                shortcut=keys.commands["unsure"],
                on_click=answer,
                args=(session, ask.id, Event.unsure()),
                help="I cannot tell: keep the item, without a label.",
            )
        st.button(
            "Undo",
            key=f"undo-{state.last_event}",
            type="tertiary",
            icon=":material/undo:",
            shortcut=keys.commands["undo"],
            on_click=step,
            args=(session, True),
            disabled=session.annotator not in state.undoable,
        )
        st.button(
            "Redo",
            key=f"redo-{state.last_event}",
            type="tertiary",
            icon=":material/redo:",
            shortcut=keys.commands["redo"],
            on_click=step,
            args=(session, False),
            disabled=session.annotator not in state.redoable,
        )


def the_item(session: Any, ask: Any) -> None:
    where = mapping.layout(session) if session.pool.n_features == 2 else None
    if where is None:
        items.show(session.pool, ask.item, key=f"item-{ask.item}")
        return
    from workbench.figures.maps import pool_map

    codes = session.state.codes
    labels = np.full(len(session.pool), -1)
    labels[list(codes)] = list(codes.values())
    fig = pool_map(
        where.points,
        items=session.pool.trainable,
        classes=session.classes,
        labels=labels,
        asked=[ask.item],
        axes=where.axes,
        height=420,
        faint=True,
    )
    widgets.figure(fig, f"where-{ask.item}", "The pool on its plane; the item asked about is ringed.")


def why(session: Any, ask: Any, classes: tuple[str, ...]) -> None:
    reason = seeing.why(session, ask)
    with st.container(border=True, key="why"):
        st.markdown("## Why this one")
        st.markdown(verbatim(reason.words))
        if reason.rank:
            st.caption(
                f"The most wanted of {plural(reason.n_open, 'open item')}."
                if reason.rank == 1
                else f"Number {reason.rank:,} of {plural(reason.n_open, 'open item')} by now."
            )
        model = session.model
        if model is None or ask.role == "evaluation":
            if model is None:
                st.caption("The model speaks after labels of two classes.")
            return
        hidden = st.toggle(
            "Hide the model's guess",
            key="hide-guess",
            persist_state="session",
            help="So that it does not lead you.",
        )
        if hidden:
            return
        from workbench.figures.bars import class_probabilities

        fig = class_probabilities(model.probabilities[ask.item], model.classes)
        widgets.figure(
            fig,
            f"guess-{ask.item}-{model.number}",
            "What the model thinks the class is",
            config={"displayModeBar": False},
        )
        st.markdown("**Nearest labelled items**")
        items.neighbours(session.pool, seeing.nearest_labelled(session, ask.item), classes, str(ask.item))


def progress_line(session: Any) -> None:
    state, model = session.state, session.model
    learned = 0 if model is None else model.n_labelled
    mine = len(state.training)
    waiting = sum(1 for count in state.counts.values() if count) < 2
    parts = [f"Model: **{plural(learned, 'label')}**, you: **{mine:,}**"]
    if waiting:
        parts.append("the first fit comes with labels of two classes")
    elif session.stale:
        parts.append("refitting in the background")
    if state.evaluation:
        measured = len(state.codes) - mine
        parts.append(f"evaluation set: {measured:,} of {len(state.evaluation):,} answered")
    st.markdown(" · ".join(parts))


def oracle_controls(session: Any) -> None:
    job = manager().get(session.id, "oracle")
    with st.container(border=True, key="oracle"):
        st.markdown("## Let the known classes answer")
        st.caption("This pool knows its classes, so they can answer in your place.")
        busy = job is not None and job.active
        with st.container(horizontal=True, vertical_alignment="bottom", key="oracle-controls", gap="small"):
            for n, label in ((1, "Step"), (10, "Run 10")):
                if st.button(label, key=f"oracle-{n}", disabled=busy):
                    oracle.answer_by_oracle(session, n)
                    st.rerun()
        with st.container(horizontal=True, vertical_alignment="bottom", key="oracle-budget-row", gap="small"):
            budget = st.number_input(
                "Budget, labels",
                min_value=1,
                max_value=max(1, int(session.pool.trainable.size)),
                value=min(70, int(session.pool.trainable.size)),
                step=10,
                key="budget",
                width=130,
                persist_state="session",
            )
            left = int(budget) - len(session.state.codes)
            if st.button("Run to budget", key="oracle-budget", disabled=busy or left <= 0):
                oracle.answer_by_oracle(session, left)
                st.rerun()
        if job is not None and (job.active or job.status == "failed"):
            widgets.job_panel(job, "oracle-job", height=60)


def how_it_goes(session: Any) -> None:
    st.header("How well it goes")
    if not session.pool.has_truth or session.pool.test is None:
        found = session.evaluation
        st.info(
            "This pool has no known classes to measure on, so one question in ten is drawn at random into an "
            "evaluation set that the model never learns from. "
            + (
                f"Error there: {percent(found.error)} (95 % interval {percent(found.low)} to "
                f"{percent(found.high)}, n = {found.n})."
                if found.enough
                else f"It holds {plural(found.n, 'answered item')}: too few to tell before 20."
            ),
            icon=":material/info:",
        )
        return
    rounds = [r for r in session.rounds if r.n_test]
    if not rounds:
        st.caption("The error curve starts with the first fit, after labels of two classes.")
        return
    from workbench.figures.curves import learning_curve, summarise

    yours = summarise("you and the machine", [([r.n_labelled for r in rounds], [r.error for r in rounds])])
    reach = oracle.budget_for(rounds[-1].n_labelled, len(session.classes))
    runs, job = oracle.baseline(session, reach)
    curves = [yours, summarise("random questions", runs, baseline=True)]
    widgets.figure(
        learning_curve(curves, height=320),
        "error-curve",
        f"Test error against labels; now {percent(rounds[-1].error)} at {rounds[-1].n_labelled} labels.",
    )
    if job is not None:
        baseline_progress(job)


@st.fragment(run_every=1.5)
def baseline_progress(job: Any) -> None:
    st.caption(f"Random baseline: {job.fraction:.0%} done")
    if not job.active:
        st.rerun()


def classes_popover(session: Any) -> None:
    with st.popover("Classes", icon=":material/sell:"):
        counts = session.state.counts
        st.caption(" · ".join(f"{verbatim(name, 30)} {n:,}" for name, n in list(counts.items())[:60]))
        with st.form("add-class", border=False, clear_on_submit=True):
            name = st.text_input("A new class", max_chars=120)
            if st.form_submit_button("Add"):
                try:
                    session.add_class(name)
                except InputError as error:
                    st.error(verbatim(error))
                else:
                    st.rerun()


def nothing_left(session: Any) -> None:
    state = session.state
    with st.container(border=True, key="nothing-left"):
        st.markdown("## Nothing is left to ask")
        st.markdown(
            f"{plural(len(state.codes), 'item')} labelled, {len(state.skipped):,} skipped, "
            f"{len(state.unsure):,} unsure."
        )
        frame.link("history", "Look at the answers and export them", ":material/arrow_forward:")


widgets.style(
    "[class*=st-key-answer-own] kbd { display: none; }"
    ".st-key-answers button p { font-size: 1.05rem; }"
    ".st-key-answers button { min-height: 3rem; }"
)
session = frame.needed("label items", "Label")
current.keep_fitting(session)
head, tools = st.columns([4, 1], vertical_alignment="bottom", wrap=False)
with head:
    st.title("Label")
with tools, st.container(horizontal=True, horizontal_alignment="right"):
    classes_popover(session)
progress_line(session)
ask = next_ask(session)
classes = session.classes
keys = keys_for(classes)
left, right = widgets.split([1.35, 1], "item-and-why")
with left:
    if ask is None:
        nothing_left(session)
        commands(session, None, keys)
    else:
        with st.container(border=True, key="item", horizontal_alignment="center"):
            words, colour = ROLES.get(ask.role, (ask.role, "gray"))
            with st.container(horizontal=True, vertical_alignment="center", key="item-head"):
                st.markdown(f"Item **{verbatim(session.pool.items.ids[ask.item], 60)}**")
                st.badge(words, color=colour)  # type: ignore[arg-type]
            the_item(session, ask)
        answers(session, ask, classes, keys)
        commands(session, ask, keys)
        if any(key == name.lower() for key, name in zip(keys.classes, classes, strict=False)):
            st.caption("A class that is one letter or digit is its own key.")
with right:
    if ask is not None:
        why(session, ask, classes)
    if session.pool.has_truth:
        oracle_controls(session)
how_it_goes(session)
