"""The map under the hand: pictures of the items pointed at, and keys that walk and choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.app.desk.component import picture_address
from workbench.app.serving.frontend import component

if TYPE_CHECKING:
    from workbench.sessions import Session

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


def mount(
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
    import streamlit as st

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
