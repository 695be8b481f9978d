"""Selection on the map of a project: by clicks, keys and buttons, with pictures of the items pointed at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from workbench.app.desk.component import picture_address
from workbench.app.serving.frontend import component
from workbench.app.words.text import refused
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


def choose(session: Session, items: list[int]) -> None:
    """These items are shown from now on, and the gallery beside the map is of them."""
    st.session_state["selected"] = list(dict.fromkeys(items))
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


_HERE = Path(__file__).resolve().parent
_HTML = (
    '<div class="walk" tabindex="0" role="application" aria-label="Items of the map: arrow keys walk from '
    'one to the next, Enter chooses, Shift and an arrow mark several"><span class="hint"></span> '
    '<span class="said" aria-live="polite"></span></div>'
)
_CSS = (
    ".walk { color: var(--st-text-color); font-family: var(--st-font); font-size: .875rem; line-height: 1.5;"
    " border-radius: 6px; padding: .15rem .4rem; margin-left: -.4rem; opacity: .85; }"
    ".walk:focus { outline: 2px solid var(--st-primary-color); opacity: 1; } .said { font-weight: 600; }"
)


HINT = "Keys: Tab to here, arrows walk, Enter chooses, Shift + arrows mark several; Esc clears."


def mount_pointer(
    session: Session,
    *,
    chart: str,
    measure: str,
    chosen: Sequence[int],
    start: int,
    turn: int,
    act: Callable[[dict[str, Any]], None],
) -> None:
    """Listen to a chart whose points carry their item first in `customdata`.

    Args:
        session: of the project.
        chart: key of the chart.
        measure: its name, for what is read out.
        chosen: items that are selected.
        start: the item the keys start from when nothing is chosen.
        turn: another number after each thing done, so that a late key is dropped.
        act: called with what was done: {"kind": "pick", "items"} or {"kind": "clear"}; only with this turn's
            number.
    """
    key = f"pointing-{chart}"

    def acted() -> None:
        state = st.session_state.get(key)
        event = getattr(state, "act", None)
        if isinstance(event, dict) and event.get("turn") == turn:
            act(event)

    scripts = _HERE.parent / "desk" / "keyboard.js", _HERE / "pointer.js"
    component("pointing", *scripts, style=_CSS, html=_HTML)(
        key=key,
        data={
            "chart": chart,
            "picture": picture_address(session) if session.pool.kind == "image" else "",
            "measure": measure.lower(),
            "chosen": [int(item) for item in chosen],
            "start": int(start),
            "turn": turn,
            "hint": HINT,
        },
        on_act_change=acted,
    )
