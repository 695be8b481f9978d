"""History: decisions to look at again, how far people agree, every fit, and the way out of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import streamlit as st

from workbench.app import desk
from workbench.app.access import auditing, current, login, presence
from workbench.app.compare import stopping
from workbench.app.history import (
    agreement,
    corrections,
    decision_tables,
    decisions,
    exports,
    history,
    judging,
    label_errors,
)
from workbench.app.history import people as people_part
from workbench.app.serving import evaluation
from workbench.app.shell import frame, labelling_speed, palette, widgets
from workbench.app.words import acts
from workbench.app.words.glossary import explain
from workbench.app.words.text import plural, verbatim
from workbench.errors import InputError
from workbench.exchange import label_table
from workbench.short_names import short_names

MOST = 5000
MOST_REVIEWED = 1000
MOST_IN_GALLERY = 120
MOST_PICTURES = 500
ROW = 60


def events_table(session: Any, state: Any) -> None:
    rows = history.event_rows(session, state, MOST)
    if len(rows) == MOST:
        st.caption(f"The newest {MOST:,}; the bundle has them all.")
    with st.container(key="events"):
        st.dataframe(
            history.whole_numbers(rows),
            hide_index=True,
            key="events-table",
            height=460,
            # in pixels: at 1,024 all up to the time are seen, on a phone who gave which class to what
            column_config={
                "What": st.column_config.TextColumn(width=88),
                "Class or change": st.column_config.TextColumn(width=190),
                "Item": st.column_config.TextColumn(width=64),
                "Who": st.column_config.TextColumn(width=64),
                "Why asked": st.column_config.TextColumn(width=135),
                "Time (UTC)": st.column_config.TextColumn(width=150),
                "Utility": st.column_config.NumberColumn(format="%.3f", width=70),
                "Model had": st.column_config.NumberColumn(
                    help="Labels the model had seen when the item was shown.", width=85
                ),
            },
            placeholder="",
            alt="Every decision, newest first",
        )


def labels_table(session: Any) -> None:
    rows = label_table(session)
    if not rows:
        st.markdown("No item is labelled yet.")
        frame.link("label", "Label the first one", ":material/arrow_forward:")
        return
    table = history.whole_numbers(rows[:MOST])
    if len(rows) > MOST:
        st.caption(f"The first {MOST:,} of {len(rows):,}.")
    with st.container(key="labels"):
        st.dataframe(table, hide_index=True, key="labels-table", height=460, alt="The labelled items")


def fits_table(session: Any) -> None:
    import pandas as pd

    if not session.rounds:
        st.markdown(frame.first_fit(session))
        return
    fits_curve(session)
    rows = history.fit_rows(session)
    # in pixels: beside the side bar at 1,024 every number has a place, the model's name what is left
    figures = {
        name: st.column_config.NumberColumn(format=form, width=width)
        for name, form, width in (
            ("Fit", "localized", 45),
            ("Labels", "localized", 62),
            ("Error", "%.1f %%", 68),
            ("NLL", "%.3f", 62),
            ("Brier", "%.3f", 62),
            ("ECE", "%.3f", 62),
            ("Seconds", "%.3f", 72),
        )
    }
    figures["Items"] = st.column_config.NumberColumn(
        format="localized",
        width=62,
        help="How many it was measured on; with fewer than 20 there is no figure",
    )
    with st.container(key="fits"):
        st.dataframe(
            pd.DataFrame(rows),
            hide_index=True,
            key="fits-table",
            height="content" if len(rows) <= 12 else 460,
            column_config=figures,
            alt="Every fit",
        )
    stopping.of_project(session)


def fits_curve(session: Any) -> None:
    from workbench.figures.curves import learning_curve

    measured = labelling_speed.measured_rounds(session.rounds)
    if len(measured) < 2:
        return
    fig = learning_curve([labelling_speed.error_curve("error", measured)], measure="Error", height=280)
    widgets.figure(fig, "fits-curve", "Error against labels, the last fit at each number of labels")


def remembered(key: str, stamp: Any, make: Callable[[], Any]) -> Any:
    """A value of this tab that is made anew when its stamp differs: a click on a row changes neither."""
    kept = st.session_state.get(key)
    if kept is None or kept[0] != stamp:
        kept = st.session_state[key] = (stamp, make())
    return kept[1]


def doubts(rows: list[decisions.Decision], state: Any, top: Any) -> dict[int, decisions.Opinion]:
    """Number of labels that look wrong to models that did not see them, and their opinion on each item.

    They are as the model was when the page was opened, until somebody wants a newer look.
    """
    current.keep_fitting(session)
    key = f"review-model-{session.id}"
    model = st.session_state.get(key)
    if model is None or model.classes != state.classes:
        model = st.session_state[key] = session.model
    if model is None or model.classes != state.classes:
        with top:
            st.markdown(f"**{counted}.** What a model thinks of them is said here after the next fit.")
        return {}
    job = evaluation.cross_validation(session, model)
    crossed = job.result if job.status == "done" else None
    found = remembered(
        f"review-found-{session.id}",
        (state.last_event, model.number, job.id, job.status),
        lambda: decisions.opinions(state, model, crossed),
    )
    newer = session.model is not None and session.model.number != model.number
    with top, st.container(horizontal=True, vertical_alignment="center", key="review-verdict"):
        if job.status == "done":
            first, _, rest = decisions.verdict(rows, found).partition(". ")
            words = f"**{first.rstrip('.')}.** {rest}".strip()
            st.markdown(words, help=explain("likely wrong"))
        elif job.active:
            st.markdown(f"**{counted}.** Each label is being compared with a model that did not see it.")
        else:
            st.markdown(verbatim(job.error or "The comparison with a model was cancelled."))
            widgets.try_again(job, "review-again-cross")
        if (
            not job.active
            and newer
            and st.button("Look again", key="review-newer", type="tertiary", icon=":material/refresh:")
        ):
            st.session_state[key] = session.model or model
            st.rerun()
    if job.active:
        widgets.job_panel(job, f"review-cross-{model.number}", height=64)
    return found


def filters(rows: list[decisions.Decision], found: Any, state: Any) -> list[decisions.Decision]:
    """The decisions to show, as chosen above the table."""
    # the chosen one stays when its last decision is dealt with
    here = st.session_state.get("review-kind", "all")
    kinds = [k for k in decisions.FILTERS if k in ("all", here) or decisions.chosen(rows, found, k)]
    people = sorted({person for row in rows for person in (row.who, *row.people) if person})
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="review-filters"):
        kind = st.pills(
            "Show",
            kinds,
            default="all",
            required=True,
            format_func=lambda kind: decisions.FILTERS[kind][0],
            key="review-kind",
            label_visibility="collapsed",
        )
        box, at = palette.class_box(state.classes, st.session_state[frame.VISIT])
        label = st.selectbox(
            "Label",
            [None, *state.classes],
            index=at,
            format_func=lambda name: "Every class" if name is None else name,
            key=box,
            label_visibility="collapsed",
            width=180,
        )
        person = None
        if len(people) > 1:
            person = st.selectbox(
                "Who",
                people,
                index=None,
                placeholder="Everybody",
                key="review-person",
                label_visibility="collapsed",
                width=180,
            )
        st.segmented_control(
            "As",
            ["Table", "Gallery"],
            # a phone has no room for a table's rows, and its agent says that it is one
            default="Gallery" if "Mobi" in (st.context.headers.get("User-Agent") or "") else "Table",
            required=True,
            key="review-as",
            label_visibility="collapsed",
        )
    return decisions.in_doubt_first(decisions.chosen(rows, found, kind or "all", label, person), found)


def of_rows(key: str, items: list[int]) -> str:
    """The key of a table with these rows in this order."""
    return f"{key}-{crc32(repr(items).encode()):x}"


def while_selected(items: list[int], key: str) -> list[int]:
    """The rows in the order in which they stand, as long as some of them are selected."""
    before = st.session_state.get(f"{key}-order", [])
    selected = st.session_state.get(of_rows(key, before))
    if selected and selected.selection.rows and sorted(before) == sorted(items):
        return list(before)
    st.session_state[f"{key}-order"] = items
    return items


def picked(items: list[int], table: Any, key: str) -> list[int]:
    """A table of items; the items of the rows that are selected.

    Args:
        items: in the order of the rows.
        table: (some of the items) -> their rows.
        key: of the table.
    """
    import pandas as pd

    limit = MOST_PICTURES if session.pool.kind == "image" else MOST_REVIEWED
    if len(items) > limit:
        st.caption(f"The first {limit:,} of {len(items):,}; narrow them down to see the others.")
        items = items[:limit]
    # A selection is kept by row number: when other rows stand there, it must not go on to them,
    # and what a model says of them later must not take it from under the pointer.
    items = while_selected(items, key)
    high = ROW if session.pool.kind == "image" else 35
    # a long name takes no more than that, or it would push what is in question out of sight
    wide = 185 if max(map(len, session.classes), default=0) > 20 else None
    made = st.dataframe(
        pd.DataFrame(table(items)),
        hide_index=True,
        key=of_rows(key, items),
        height=min(40 + high * len(items), 560),
        row_height=high,
        on_select="rerun",
        selection_mode="multi-row",
        placeholder="",
        alt="Decisions with what a model says about them",
        column_config={
            "Picture": st.column_config.ImageColumn(width=70),
            "Label": st.column_config.TextColumn(width=wide),
            "Model says": st.column_config.TextColumn(width=wide),
            "Shows": st.column_config.TextColumn(width="large"),
            "Chance it is right": st.column_config.ProgressColumn(
                help="By a model that did not see the label, weighed with its own error and people's.",
                format="percent",
                min_value=0,
                max_value=1,
                width=125,
            ),
            "Verdict": st.column_config.TextColumn(width=95),
            "Why asked": st.column_config.TextColumn(width=135),
            "Note": st.column_config.TextColumn(width="medium"),
            "Seconds": st.column_config.NumberColumn(format="%.1f", width="small"),
        },
    )
    return [items[i] for i in made.selection.rows if i < len(items)]


DONE = "review-done"
NAMES = ("Label", "Model says")
"""Columns of classes, whose names are cut so that they differ."""


def do(action: Any, *given: Any) -> None:
    """Do something; the run that follows says what was done, with an undo where there is one."""
    before = me.state.undoable.get(me.annotator)
    try:
        words = action(me, *given)
    except InputError as error:
        st.session_state["review-refused"] = str(error)
        return
    after = me.state.undoable.get(me.annotator)
    act = None if after is None or (before is not None and before.id == after.id) else after.id
    st.session_state[DONE] = (words, act, st.session_state[frame.VISIT])


def take_back(act: int) -> None:
    """Undo an act of this page, while it is the last thing that its person did anywhere."""
    _, words = acts.take_back(me, act)
    st.session_state[DONE] = (words, None, st.session_state[frame.VISIT])


def act(action: Any, *given: Any) -> None:
    """`do`, and run again."""
    do(action, *given)
    st.rerun()


def class_given(action: Any, items: list[int], key: str) -> None:
    """`do` with the class that was chosen, which must not wait chosen for the next items."""
    do(action, items, st.session_state[key])
    st.session_state[key] = None


def actions(items: list[int], state: Any) -> None:
    """Acts on the selected rows."""
    none = not items
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="review-actions"):
        label = st.selectbox(
            "Class",
            list(state.classes),
            index=None,
            placeholder="Give it the class",
            key="review-new",
            label_visibility="collapsed",
            width=200,
            disabled=none,
        )
        words = f"Relabel {plural(len(items), 'item')}" if items else "Relabel"
        st.button(
            words,
            key="review-relabel",
            type="primary",
            disabled=none or label is None,
            on_click=class_given,
            args=(corrections.relabel, items, "review-new"),
        )
        flagged = [item for item in items if item in state.flagged]
        if st.button("Flag", key="review-flag", icon=":material/flag:", disabled=len(flagged) == len(items)):
            act(corrections.set_flag, items, True)
        if st.button("Clear flag", key="review-unflag", disabled=not flagged):
            act(corrections.set_flag, items, False)
        with st.popover("Note", icon=":material/edit_note:", disabled=none, key="review-note-box"):
            text = st.text_input("Note", key="review-note", max_chars=500)
            if st.button("Keep the note", key="review-keep-note", disabled=none):
                act(corrections.add_note, items, text)
        aside = [item for item in items if item in state.skipped or item in state.unsure]
        if st.button("Ask again", key="review-again", icon=":material/replay:", disabled=not aside):
            act(corrections.ask_again, aside)
        if none:
            st.caption("Select rows at their left edge to change them.")
            return
        people = corrections.whose(state, items)
        words = f"Remove the labels of {plural(len(items), 'item')}"
        if st.button(
            f":red[{words if people else words.replace('labels', 'answers')}]",
            key="review-clear",
            icon=":material/delete:",
            help="The items may be asked about again; Undo gives the labels back",
        ):
            act(corrections.clear, items)
        if people:
            st.caption(f"given by {verbatim(people, 80)}")


def said() -> None:
    """Result of the last action of this visit, and the way back."""
    words, last, visit = st.session_state.get(DONE, ("", None, None))
    if words and visit == st.session_state[frame.VISIT]:
        with st.container(
            horizontal=True, vertical_alignment="center", gap="small", width="content", key="said"
        ):
            st.markdown(f":material/check: {verbatim(words)}", width="content")
            if last is not None:
                st.button(
                    "Undo",
                    key="review-undo",
                    icon=":material/undo:",
                    type="tertiary",
                    on_click=take_back,
                    args=(last,),
                )
    if "review-refused" in st.session_state:
        st.error(verbatim(st.session_state.pop("review-refused")), icon=":material/error:")


def decisions_view(rows: list[decisions.Decision], found: Any, state: Any) -> None:
    """Decisions, the most doubtful first, and what can be done about them."""
    shown = filters(rows, found, state)
    if not shown:
        st.caption("Nothing here.")
        return
    if st.session_state.get("review-as") == "Gallery":
        gallery_view(shown, found)
        return
    by_item = {row.item: row for row in shown}
    shown = judging.looked_at_last(shown, session.id, st.session_state[frame.VISIT])
    # a row of many cells takes more room beside the table than a picture does
    narrow = 900 if session.pool.kind == "image" else 1150
    short = dict(zip(state.classes, short_names(state.classes, 30), strict=True))
    widgets.style(
        # what is in question comes before the table of all on a phone
        f"@media (max-width: {narrow}px) {{"
        " .st-key-review-and-item [data-testid=stColumn]:has(.st-key-judged) { order: -1; } }"
    )
    left, right = widgets.split([2.1, 1], "review-and-item", below=narrow)
    with left:
        items = picked(
            [row.item for row in shown],
            lambda some: [
                row | {name: short.get(row[name], row[name]) for name in row if name in NAMES}
                for row in decision_tables.table(session.pool, [by_item[item] for item in some], found)
            ],
            "review-table",
        )
        actions(items, state)
    with right:
        judging.panel(
            session.pool,
            [by_item[item] for item in items] or shown[:1],
            found,
            lambda said: do(corrections.relabel_each, said),
            label_is_right,
        )


def label_is_right(rows: list[decisions.Decision]) -> None:
    """Go on to what is in doubt next."""
    visit = st.session_state[frame.VISIT]
    judging.keep(session.id, visit, rows)
    st.session_state[DONE] = (f"{plural(len(rows), 'label')} found right.", None, visit)


def gallery_view(shown: list[decisions.Decision], found: Any) -> None:
    """The decisions as pictures, texts or rows, with the desk's keys."""
    if len(shown) > MOST_IN_GALLERY:
        st.caption(f"The first {MOST_IN_GALLERY:,} of {len(shown):,}; narrow them down to see the others.")
        shown = shown[:MOST_IN_GALLERY]
    box, _ = palette.class_box(me.state.classes, st.session_state[frame.VISIT])
    chosen = [st.session_state.get(key) for key in ("review-kind", box, "review-person")]
    # which decisions these are does not follow what is changed in them: they stay where they are
    # while this visit lasts; the address of the pictures runs out with the desk's token
    picture = desk.picture_address(me)
    key = f"review-cards-{session.id}-{me.annotator}"
    stamp = repr((chosen, bool(found), st.session_state[frame.VISIT], crc32(picture.encode())))
    cards = remembered(key, stamp, lambda: decision_tables.gallery(session.pool, shown, found, picture))
    desk.mount_gallery(me, cards, stamp)


def look_twice(state: Any) -> None:
    """Agreement of somebody with themselves."""
    mine = sum(1 for votes in state.votes.values() if me.annotator in votes)
    found, differ = agreement.second_looks(state, me.annotator)
    st.subheader("A second look at your own labels")
    if found is not None:
        words = agreement.in_words("", found, oneself=True)
        st.markdown(f"**{verbatim(words)}**", help=explain("kappa"))
        if differ:
            st.caption(
                f"You differ from yourself on {plural(len(differ), 'item')}; the second answer counts."
            )
    said = agreement.anchoring_words(agreement.anchoring(session.events, state, me.annotator))
    if said:
        st.caption(said)
    waiting = len(state.second.get(me.annotator, ()))
    if waiting:
        st.caption(f"{plural(waiting, 'item')} wait on Label.")
    n = min(20, mine)
    if st.button(
        f"Ask me about {plural(n, 'label')} of mine again",
        key="look-again",
        disabled=n < 2 or waiting > 0,
        help="Drawn at random and shown without your answer or the model's.",
    ):
        act(corrections.look_again, n)


def people_view(shared: Any, state: Any, found: Any) -> None:
    """Agreement of people, and the items on which they differ."""
    import pandas as pd

    if not shared and not state.conflicts:
        st.markdown("Nobody has labelled an item that somebody else labelled too.")
        return
    together = agreement.group(shared, len(state.classes))
    pairs = agreement.pairs(shared)
    help_ = explain("kappa")
    if together is not None:
        n = len({person for given in shared.values() for person in given})
        st.markdown(f"**{verbatim(agreement.in_words(f'{n} people', together, together=True))}**", help=help_)
    for a, b, one in pairs[:1] if together is None else []:
        st.markdown(f"**{verbatim(agreement.in_words(f'{a} and {b}', one))}**", help=help_)
    if len(pairs) > 1:
        rows = [
            {
                "Two people": f"{a} and {b}",
                "Items": one.n_items,
                "Agree": 100 * one.observed,
                "Kappa": one.kappa if one.n_items >= agreement.ENOUGH else None,
            }
            for a, b, one in pairs
        ]
        st.dataframe(
            pd.DataFrame(rows),
            hide_index=True,
            key="agreement-pairs",
            alt="Agreement of each two people",
            column_config={
                "Agree": st.column_config.NumberColumn(format="%.0f %%"),
                "Kappa": st.column_config.NumberColumn(format="%.2f"),
            },
        )
    if not state.conflicts:
        st.markdown("Nobody differs on an item, or it is decided.")
        return
    st.markdown(
        f"People differ on {plural(len(state.conflicts), 'item')}. The majority is the label; the model "
        "learns what they mean together where that is sure (*People*). Deciding ends it."
    )
    bar = st.container()
    items = picked(
        list(state.conflicts),
        lambda some: decision_tables.disputes(session.pool, state, some, found),
        "disputes",
    )
    with bar, st.container(horizontal=True, vertical_alignment="center", gap="small", key="resolve"):
        label = st.selectbox(
            "Class",
            list(state.classes),
            index=None,
            placeholder="Decide for the class",
            key="resolve-class",
            label_visibility="collapsed",
            width=220,
            disabled=not items,
        )
        words = f"Resolve {plural(len(items), 'item')}" if items else "Resolve"
        st.button(
            words,
            key="resolve-button",
            type="primary",
            disabled=not items or label is None,
            on_click=class_given,
            args=(corrections.resolve, items, "resolve-class"),
        )
        if not items:
            st.caption("Select rows at their left edge to decide them.")


session = frame.needed("look at its labels again", "History", example="wrong_labels")
me = current.mine(session)
state = session.state
rows = remembered(f"review-rows-{session.id}", state.last_event, lambda: decisions.decisions(session))
# on a narrow screen the buttons wrap below the title
widgets.style(
    ".st-key-downloads { max-width: 100%; }"
    "@media (max-width: 640px) { .st-key-downloads { justify-content: flex-start !important; } }"
)
with st.container(
    horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", key="history-head"
):
    st.title("History", width="content", help=explain("pool", "policy"))
    exports.downloads(me, state)
if "imported" in st.session_state:
    n, last = st.session_state.pop("imported")
    st.session_state[DONE] = (f"Imported {plural(n, 'label')}.", last, st.session_state[frame.VISIT])
counted = plural(len(state.codes), "item") + " labelled"
parts = [f"{n:,} {word}" for n, word in ((len(state.skipped), "skipped"), (len(state.unsure), "unsure")) if n]
parts += [f"{len(state.conflicts):,} on which people differ"] if state.conflicts else []
top = st.container(key="history-top")
# on one line, so that nothing moves under the pointer when something was done
with st.container(
    horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", key="history-said"
):
    st.caption(" · ".join(parts), width="content")
    said()
people = agreement.shared_labels(state)
differ = bool(people or state.conflicts)
several = len({person for votes in state.votes.values() for person in votes}) > 1
titles = ["Review", *(["Agreement"] if differ or state.votes else []), *(["People"] if several else [])]
titles += ["All questions"] if len(session.questions) > 1 else []
titles += ["Labels", "Fits"]
views = dict(zip(titles, st.tabs(titles, key="history-tabs", on_change="rerun"), strict=True))
found: dict[int, decisions.Opinion] = {}
# what is not in sight is not drawn: it costs nothing, and hears no key
in_sight = next((title for title, view in views.items() if view.open), "Review")
with views["Review"]:
    if rows:
        found = doubts(rows, state, top)
        if in_sight == "Review":
            decisions_view(rows, found, state)
    else:
        with top:
            st.markdown("**Nothing is decided yet.** What you label stands here, the likeliest slips first.")
        frame.link("label", "Label the first item", ":material/arrow_forward:")
    if in_sight == "Review":
        with st.expander("Log: every event, newest first", icon=":material/list:", key="log"):
            events_table(session, state)
        if login.may_change(session.project):
            with st.expander("Who opened, exported and shared it", icon=":material/policy:", key="audit"):
                auditing.table(session.project)
with views[in_sight]:
    if in_sight == "Agreement":
        people_view(people, state, found)
        look_twice(state)
        presence.invite(session)
    elif in_sight == "People":
        people_part.part(me, state)
        if not session.state.model.get("names_hidden"):
            presence.table(session)
    elif in_sight == "All questions":
        label_errors.part(me)
    elif in_sight == "Labels":
        labels_table(session)
    elif in_sight == "Fits":
        fits_table(session)
        if session.rounds:
            exports.model_download(me)
