"""Selection on the map of a project: by clicks, by keys, by buttons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.words.text import refused

if TYPE_CHECKING:
    from workbench.sessions import Session


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
    """These items are shown from now on, and the gallery beside the map is of them."""
    st.session_state["selected"] = list(dict.fromkeys(found))
    st.session_state["selected-in"] = session.id
    next_turn()


def next_turn() -> None:
    """A key that was pressed before this is too late."""
    st.session_state["map-turn"] = st.session_state.get("map-turn", 0) + 1


def act(session: Session, done: dict[str, Any]) -> None:
    """Acts by keys, taken in.

    Args:
        session: of the project.
        done: as `pointer.mount` has it.
    """
    next_turn()
    items = [i for i in done.get("items", []) if isinstance(i, int) and 0 <= i < len(session.pool)]
    if done["kind"] == "pick" and items:
        choose(session, items)
    elif done["kind"] == "clear":
        forget()


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


def ask_about(session: Session, chosen: tuple[int, ...]) -> None:
    """Be asked about what is selected, on Label."""
    with refused("map-problem"):
        session.items.want(chosen, "chosen on the map")
        forget()
        st.session_state["map-go"] = True
