"""The map under the hand: pictures of the items pointed at, and keys that walk, choose and label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.app.desk.component import picture_address
from workbench.app.desk.keys import MAX_BUTTONS
from workbench.app.desk.routes import class_keys

if TYPE_CHECKING:
    from workbench.sessions import Session

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


@cache
def _registered() -> Any:
    import streamlit as st

    folder = Path(__file__).resolve().parent
    scripts = [
        file.read_text(encoding="utf-8")
        for file in (folder.parent / "desk" / "keyboard.js", folder / "pointer.js")
    ]
    return st.components.v2.component("workbench_pointing", html=_HTML, css=_CSS, js="\n".join(scripts))


def mount(
    session: Session,
    *,
    chart: str,
    measure: str,
    chosen: Sequence[int],
    start: int,
    turn: int,
    answered: bool,
    act: Callable[[dict[str, Any]], None],
) -> None:
    """Listen to a chart whose points carry their item first in `customdata`.

    Args:
        session: of the project.
        chart: key of the chart.
        measure: its name, for what is read out.
        chosen: items that a class key labels.
        start: the item the keys start from when nothing is chosen.
        answered: whether these have just been labelled: no key labels them again, but undo takes it back.
        turn: another number after each thing done, so that a late key is dropped.
        act: called with what was done: {"kind": "pick", "items"}, {"kind": "label", "items", "class"},
            {"kind": "clear"}, {"kind": "undo"}; only with this turn's number.
    """
    import streamlit as st

    key = f"pointing-{chart}"

    def acted() -> None:
        state = st.session_state.get(key)
        event = getattr(state, "act", None)
        if isinstance(event, dict) and event.get("turn") == turn:
            act(event)

    classes, commands = class_keys(session)
    # where classes are searched by typing there is no key for each
    keyed = len(classes) <= MAX_BUTTONS
    labels = _spoken([class_key["key"] for class_key in classes if class_key["key"]]) if keyed else ""
    hint = "Keys: Tab to here, arrows walk, Enter chooses, Shift + arrows mark several"
    hint += (
        f"; {labels} label what is chosen, {_spoken([commands['undo']])} undoes, Esc clears."
        if labels
        else "."
    )
    _registered()(
        key=key,
        data={
            "chart": chart,
            "picture": picture_address(session) if session.pool.kind == "image" else "",
            "measure": measure.lower(),
            "classes": classes if keyed else [],
            "commands": {"undo": commands["undo"]},
            "chosen": [] if answered else [int(item) for item in chosen],
            "answered": answered,
            "start": int(start),
            "turn": turn,
            "hint": hint,
        },
        on_act_change=acted,
    )


def _spoken(keys: Sequence[str]) -> str:
    """Keys as people say them: "0 to 9", "A, B and C"."""
    key_names = [key.upper() for key in keys]
    if len(key_names) > 3:
        return f"{key_names[0]} to {key_names[-1]}"
    return " and ".join(filter(None, (", ".join(key_names[:-1]), key_names[-1]))) if key_names else ""
