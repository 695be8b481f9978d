"""History: decisions to look at again, how far people agree, every fit, and the way out of the program."""

from typing import Any
from zlib import crc32

import streamlit as st

from workbench.app import desk
from workbench.app.access import auditing, current, joining, login
from workbench.app.compare import stopping
from workbench.app.history import decisions, exports, label_errors, tables
from workbench.app.history import people as people_part
from workbench.app.serving import evaluation
from workbench.app.serving.caching import computed
from workbench.app.shell import frame, labelling_speed, palette, widgets
from workbench.app.words import acts
from workbench.app.words.text import explain, plural, verbatim
from workbench.documents.checking import settings_of
from workbench.documents.projects import ProjectSettings
from workbench.exchange.rows import label_table
from workbench.figures.curves import learning_curve
from workbench.metrics.agreement import ENOUGH

MOST = 5000
MOST_IN_GALLERY = 200


def events_table(session: Any, state: Any) -> None:
    rows = tables.event_rows(session, state, MOST)
    if len(rows) == MOST:
        st.caption(f"The newest {MOST:,}; the bundle has them all.")
    with st.container(key="events"):
        widgets.grid(
            tables.whole_numbers(rows),
            "events-table",
            "Every decision, newest first",
            height=460,
            # in pixels: at 1,024 all up to the time are seen, on a phone who gave which class to what
            column_config={
                "What": {"width": 88},
                "Class or change": {"width": 190},
                "Item": {"width": 64},
                "Who": {"width": 64},
                "Why asked": {"width": 135},
                "Time (UTC)": {"width": 150},
                "Utility": st.column_config.NumberColumn(format="%.3f", width=70),
                "Model had": st.column_config.NumberColumn(
                    help="Labels the model had seen when the item was shown.", width=85
                ),
            },
        )


def labels_table(session: Any) -> None:
    rows = label_table(session)
    if not rows:
        st.markdown("No item is labelled yet.")
        frame.link("label", "Label the first one", ":material/arrow_forward:")
        return
    if len(rows) > MOST:
        st.caption(f"The first {MOST:,} of {len(rows):,}.")
    with st.container(key="labels"):
        widgets.grid(tables.whole_numbers(rows[:MOST]), "labels-table", "The labelled items", height=460)


def fits_table(session: Any) -> None:
    if not session.rounds:
        st.markdown(labelling_speed.first_fit(session))
        return
    fits_curve(session)
    rows = tables.fit_rows(session)
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
        height: Any = "content" if len(rows) <= 12 else 460
        widgets.grid(rows, "fits-table", "Every fit", height=height, column_config=figures)
    stopping.of_project(session)


def fits_curve(session: Any) -> None:

    measured = labelling_speed.measured_rounds(session.rounds)
    if len(measured) < 2:
        return
    fig = learning_curve([labelling_speed.error_curve("error", measured)], measure="Error", height=280)
    widgets.figure(fig, "fits-curve", "Error against labels, the last fit at each number of labels")


def doubts(rows: list[decisions.Decision], state: Any, top: Any) -> tuple[dict[int, decisions.Opinion], str]:
    """Opinions on each item of models that did not see its label, and the version of the comparison.

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
        return {}, ""
    job = evaluation.cross_validation(session, model)
    # read once: of a job that ends while this is drawn, the panel runs the page again
    active = job.active
    opinions = computed(decisions.opinions_of, session, model, job, at=(state.last_event, active))
    newer = session.model is not None and session.model.number != model.number
    with top, widgets.row("review-verdict"):
        if active:
            st.markdown(f"**{counted}.** Each label is being compared with a model that did not see it.")
        elif job.status == "done":
            first, _, rest = decisions.verdict(rows, opinions).partition(". ")
            words = f"**{first.rstrip('.')}.** {rest}".strip()
            st.markdown(words, help=explain("likely wrong"))
        else:
            st.markdown(verbatim(job.error or "The comparison with a model was cancelled."))
            widgets.try_again(job, "review-again-cross")
        if (
            not active
            and newer
            and st.button("Look again", key="review-newer", type="tertiary", icon=":material/refresh:")
        ):
            st.session_state[key] = session.model or model
            st.rerun()
    if active:
        with top:  # the gallery keeps its place below when this goes
            widgets.job_panel(job, f"review-cross-{model.number}", height=64)
    return opinions, f"{model.uid} {active}"


QUESTIONS = "questions"
"""Filter: what looks wrong in any question of the project."""


def filters(rows: list[decisions.Decision], opinions: Any, state: Any) -> list[decisions.Decision]:
    """The decisions to show, as chosen above the gallery."""
    # the chosen one stays when its last decision is dealt with
    current_kind = st.session_state.get("review-kind", "all")
    titles = {kind: title for kind, (title, _) in decisions.FILTERS.items()}
    kinds = [k for k in titles if k in ("all", current_kind) or decisions.chosen(rows, opinions, k)]
    if len(session.questions) > 1:
        titles[QUESTIONS] = "All questions"
        kinds.append(QUESTIONS)
    people = sorted({person for row in rows for person in (row.who, *row.people) if person})
    with widgets.row("review-filters"):
        kind = st.pills(
            "Show",
            kinds,
            default="all",
            required=True,
            format_func=titles.__getitem__,
            key="review-kind",
            label_visibility="collapsed",
        )
        if kind == QUESTIONS:
            return []
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
    return decisions.in_doubt_first(decisions.chosen(rows, opinions, kind or "all", label, person), opinions)


DONE = "review-done"


def take_back(act: int) -> None:
    """Undo an act of this page, while it is the last thing that its person did anywhere."""
    _, words = acts.take_back(me, act)
    st.session_state[DONE] = (words, None, st.session_state[frame.VISIT])


def said() -> None:
    """Result of the last action of this visit, and the way back."""
    words, last, visit = st.session_state.get(DONE, ("", None, None))
    if words and visit == st.session_state[frame.VISIT]:
        with widgets.row("said", width="content"):
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


def decisions_view(rows: list[decisions.Decision], opinions: Any, compared: str, state: Any) -> None:
    """Decisions, the most doubtful first, with the desk's keys."""
    entries: list[Any] = filters(rows, opinions, state)
    box, _ = palette.class_box(me.state.classes, st.session_state[frame.VISIT])
    choices = [st.session_state.get(key) for key in ("review-kind", box, "review-person")]
    everywhere = choices[0] == QUESTIONS
    if everywhere:
        entries, compared = label_errors.part(me)
    # which decisions these are does not follow what is changed in them: they stay where they are
    # while this visit lasts; the address of the pictures runs out with the desk's token
    picture = desk.picture_address(me)
    stamp = repr((choices, compared, st.session_state[frame.VISIT], crc32(picture.encode())))
    key = f"review-cards-{session.id}-{me.annotator}"
    old_stamp, order, old_page, cards = st.session_state.get(key, ("", (), 1, []))
    fresh = {(row.question, row.decision.item) if everywhere else row.item: row for row in entries}
    if old_stamp != stamp:
        order, st.session_state["review-page"] = tuple(fresh), 1
    if not order:
        if not everywhere:
            st.caption("Nothing here.")
        return
    n_pages = -(-len(order) // MOST_IN_GALLERY)
    page = st.pagination(n_pages, key="review-page") if n_pages > 1 else 1
    if (old_stamp, old_page) != (stamp, page):
        names = order[(page - 1) * MOST_IN_GALLERY : page * MOST_IN_GALLERY]
        excerpt = [fresh[name] for name in names if name in fresh]
        cards = (
            label_errors.tiles(me, excerpt, picture)
            if everywhere
            else decisions.tiles(session.pool, excerpt, opinions, picture)
        )
        st.session_state[key] = stamp, order, page, cards
    desk.mount_gallery(me, cards, f"{stamp} {page}", everywhere=everywhere)


def look_twice(state: Any) -> None:
    """Agreement of somebody with themselves."""
    n_own = sum(1 for votes in state.votes.values() if me.annotator in votes)
    own_agreement, differ = people_part.second_looks(state, me.annotator)
    st.subheader("A second look at your own labels")
    if own_agreement is not None:
        words = people_part.in_words("", own_agreement, oneself=True)
        st.markdown(f"**{verbatim(words)}**", help=explain("kappa"))
        if differ:
            st.caption(
                f"You differ from yourself on {plural(len(differ), 'item')}; the second answer counts."
            )
    sentence = people_part.anchoring_words(people_part.anchoring(session.log.events, state, me.annotator))
    if sentence:
        st.caption(sentence)
    waiting = len(state.second.get(me.annotator, ()))
    if waiting:
        st.caption(f"{plural(waiting, 'item')} wait on Label.")
    n = min(20, n_own)
    if st.button(
        f"Ask me about {plural(n, 'label')} of mine again",
        key="look-again",
        disabled=n < 2 or waiting > 0,
        help="Drawn at random and shown without your answer or the model's.",
    ):
        event = me.items.look_again(n)
        words = f"{plural(len(event.payload['items']), 'label')} of yours will be asked about again on Label."
        st.session_state[DONE] = (words, event.id, st.session_state[frame.VISIT])
        st.rerun()


def people_view(shared: Any, state: Any) -> None:
    """Agreement of people, and the items on which they differ."""
    if not shared and not state.conflicts:
        st.markdown("Nobody has labelled an item that somebody else labelled too.")
        if not session.settings["overlap"]:
            setting = settings_of(ProjectSettings)["overlap"].title
            st.caption(
                f"This project asks about every item once. How many are asked of several people is set where "
                f"a project begins: Data, Options, More settings, *{setting}*."
            )
        return
    together = people_part.group(shared, len(state.classes))
    pairs = people_part.pairs(shared)
    help_ = explain("kappa")
    if together is not None:
        n = len({person for codes in shared.values() for person in codes})
        st.markdown(
            f"**{verbatim(people_part.in_words(f'{n} people', together, together=True))}**", help=help_
        )
    for a, b, pair_agreement in pairs[:1] if together is None else []:
        st.markdown(f"**{verbatim(people_part.in_words(f'{a} and {b}', pair_agreement))}**", help=help_)
    if len(pairs) > 1:
        rows = [
            {
                "Two people": f"{a} and {b}",
                "Items": pair_agreement.n_items,
                "Agree": 100 * pair_agreement.observed,
                "Kappa": pair_agreement.kappa if pair_agreement.n_items >= ENOUGH else None,
            }
            for a, b, pair_agreement in pairs
        ]
        widgets.grid(
            rows,
            "agreement-pairs",
            "Agreement of each two people",
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
    st.button("Decide", key="decide", icon=":material/arrow_forward:", on_click=decide)


def decide() -> None:
    """Show in the gallery what people differ on."""
    st.session_state.update({"review-kind": "disputed", "history-tabs": "Review"})


session = frame.needed("look at its labels again", "History", example="wrong_labels")
me = current.mine(session)
state = session.state
rows = computed(decisions.decisions, session, at=state.last_event)
# on a narrow screen the buttons wrap below the title
widgets.style(
    ".st-key-downloads { max-width: 100%; }"
    "@media (max-width: 640px) { .st-key-downloads { justify-content: flex-start !important; } }"
)
with widgets.row("history-head", horizontal_alignment="distribute"):
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
with widgets.row("history-said", horizontal_alignment="distribute"):
    st.caption(" · ".join(parts), width="content")
    said()
people = people_part.shared_labels(state)
differ = bool(people or state.conflicts)
several = len({person for votes in state.votes.values() for person in votes}) > 1
titles = ["Review", *(["Agreement"] if differ or state.votes else []), *(["People"] if several else [])]
titles += ["Labels", "Fits"]
views = dict(zip(titles, st.tabs(titles, key="history-tabs", on_change="rerun"), strict=True))
# what is not in sight is not drawn: it costs nothing, and hears no key
in_sight = next((title for title, view in views.items() if view.open), "Review")
with views["Review"]:
    if rows:
        opinions, compared = doubts(rows, state, top)
        if in_sight == "Review":
            decisions_view(rows, opinions, compared, state)
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
        people_view(people, state)
        look_twice(state)
        joining.invite(session)
    elif in_sight == "People":
        people_part.part(me, state)
        if not session.state.model.get("names_hidden"):
            joining.presence_table(session)
    elif in_sight == "Labels":
        labels_table(session)
    elif in_sight == "Fits":
        fits_table(session)
        if session.rounds:
            exports.model_download(me)
