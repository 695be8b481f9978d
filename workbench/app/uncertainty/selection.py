"""Selection on the map of a project, and its uses: by clicks, by keys, by buttons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.words import acts
from workbench.app.words.text import one_line, plural, verbatim
from workbench.errors import InputError
from workbench.short_names import short_names

if TYPE_CHECKING:
    from workbench.sessions import Session

BUTTONS = 12
"""Classes up to which each has a button."""


def remember(session: Session, key: str) -> None:
    """Keep what was clicked or circled; a new figure clears the selection itself."""
    event = st.session_state.get(key)
    items = []
    for point in event["selection"]["points"] if event else []:
        data = point.get("customdata")
        first = data[0] if isinstance(data, (list, tuple)) and data else None
        first = data.get("0") if isinstance(data, dict) else first
        if first is not None:
            items.append(int(first))
    if items:
        choose(session, items)


def choose(session: Session, found: list[int]) -> None:
    """These items are shown and labelled from now on."""
    st.session_state["selected"] = list(dict.fromkeys(found))
    st.session_state["selected-in"] = session.id
    st.session_state["answered"] = False
    next_turn()


def next_turn() -> None:
    """A key that was pressed before this is too late."""
    st.session_state["map-turn"] = st.session_state.get("map-turn", 0) + 1


def act(session: Session, last: int | None, done: dict[str, Any]) -> None:
    """Acts by keys, taken in.

    Args:
        session: of the project.
        last: the person's last act when the keys were drawn; undo takes back no other.
        done: as `pointing.mount` has it.
    """
    next_turn()
    items = [i for i in done.get("items", []) if isinstance(i, int) and 0 <= i < len(session.pool)]
    if done["kind"] == "pick" and items:
        choose(session, items)
    elif done["kind"] == "label" and items == selected(session):
        give(session, tuple(items), str(done.get("class", "")))
    elif done["kind"] == "clear":
        forget()
    elif done["kind"] == "undo":
        take_back(session, last)


def selected(session: Session) -> list[int]:
    """The items that are selected, of this project."""
    if st.session_state.get("selected-in") != session.id:
        return []
    return [i for i in st.session_state.get("selected", []) if 0 <= i < len(session.pool)]


def forget() -> None:
    """Take the selection back, on the map too."""
    next_turn()
    st.session_state["selected"] = []
    st.session_state["revision"] = st.session_state.get("revision", 0) + 1


def give(session: Session, chosen: tuple[int, ...], name: str) -> None:
    """Label what is selected."""
    try:
        session.label_items(chosen, name)
    except InputError as error:
        st.session_state["label-problem"] = str(error)
        return
    # the item stays in sight, but a second key does not label it again
    st.session_state["answered"] = True
    next_turn()
    amount = plural(len(chosen), "item")
    st.session_state["label-done"] = f"{amount} labelled {verbatim(name, 40)}."
    if len(chosen) > 1:
        forget()
    else:
        st.session_state["revision"] = st.session_state.get("revision", 0) + 1


def ask_about(session: Session, chosen: tuple[int, ...]) -> None:
    """Be asked about what is selected, on Label."""
    try:
        session.want(chosen, "chosen on the map")
    except InputError as error:
        st.session_state["label-problem"] = str(error)
        return
    forget()
    st.session_state["map-go"] = True


def last_act(session: Session) -> int | None:
    """Id of what the person did last and may take back."""
    event = session.state.undoable.get(session.annotator)
    return None if event is None else event.id


def take_back(session: Session, last: int | None) -> None:
    """Undo what was done last when the button was drawn; what was done since stays."""
    event, words = acts.take_back(session, last)
    if event is not None:
        st.session_state["answered"] = False
    st.session_state["label-done"] = verbatim(words)


def label_buttons(session: Session, chosen: tuple[int, ...]) -> None:
    """One button a class; the items are in the keys, so that a late click cannot hit others."""
    mark = f"{chosen[0]}-{len(chosen)}"
    phrase = "this item" if len(chosen) == 1 else f"these {len(chosen):,} items"
    with st.container(horizontal=True, key="map-answers", gap="small"):
        if len(session.classes) <= BUTTONS:
            short = short_names(session.classes, 28)
            for code, name in enumerate(session.classes):
                st.button(
                    verbatim(short[code]),
                    key=f"give-{mark}-{code}",
                    on_click=give,
                    args=(session, chosen, name),
                    help=f"Label {phrase} {verbatim(name, 80)}",
                )
        else:
            picked = st.selectbox(
                "Class",
                session.classes,
                index=None,
                placeholder="Choose a class",
                key=f"class-{mark}",
                label_visibility="collapsed",
                format_func=lambda name: one_line(name, 40),
            )
            st.button(
                "Label",
                key=f"give-{mark}",
                disabled=picked is None,
                on_click=give,
                args=(session, chosen, str(picked)),
            )
        last = last_act(session)
        st.button(
            "Undo",
            key=f"map-undo-{last}",
            disabled=last is None,
            icon=":material/undo:",
            type="tertiary",
            on_click=take_back,
            args=(session, last),
        )
    if "label-done" in st.session_state:
        st.caption(st.session_state.pop("label-done"))
    if "label-problem" in st.session_state:
        st.error(verbatim(st.session_state.pop("label-problem")), icon=":material/error:")
