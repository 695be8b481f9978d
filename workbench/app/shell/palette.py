"""Ctrl+K: pages, projects, classes and actions by their words, on every page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.app.access import current, sharing

if TYPE_CHECKING:
    from workbench.sessions import Session

MOST_PROJECTS = 40
MOST_CLASSES = 200
CLASS = "palette-class"
"""State: the class that was gone to last, how many were, and the visit of the page that took it."""
NOWHERE = ("", 0, None)
ACTIONS = {"new": ("Start a project", "data"), "export": ("Download (export) or import labels", "history")}


@cache
def _registered() -> Any:
    import streamlit as st

    here = Path(__file__).resolve().parent
    files = (here.parent / "desk" / "keyboard.js", here / "palette.js", here / "palette.css")
    keyboard, script, style = (file.read_text(encoding="utf-8") for file in files)
    return st.components.v2.component(
        "workbench_palette", html="<div></div>", css=style, js=f"{keyboard}\n{script}"
    )


def entries(session: Session | None, pages: Mapping[str, Any]) -> list[dict[str, str]]:
    """Targets of the palette: id, kind and name of each.

    Args:
        session: the open project, whose classes are listed; None for none.
        pages: name in the address -> page.
    """
    from workbench.store import Store

    found = [{"id": f"page:{name}", "kind": "page", "name": str(one.title)} for name, one in pages.items()]
    found += [
        {"id": f"action:{key}", "kind": "action", "name": words}
        for key, (words, where) in ACTIONS.items()
        if where in pages
    ]
    records = [one for one in sharing.visible(Store.open().projects()) if not one.archived]
    found += [
        {"id": f"project:{one.id}", "kind": "project", "name": one.name} for one in records[:MOST_PROJECTS]
    ]
    classes = session.state.classes[:MOST_CLASSES] if session is not None and "history" in pages else ()
    return found + [{"id": f"class:{name}", "kind": "class", "name": str(name)} for name in classes]


def class_box(classes: Sequence[str], visit: int) -> tuple[str, int]:
    """The key of a box of classes, and where it begins: at what was gone to, while the visit lasts.

    The class is the box's beginning under a key of its own and no value that is set: a set value is told to
    the browser once, and lost when the next run of the page overtakes that one.

    Args:
        classes: that the box offers, after the choice of all of them.
        visit: number of the visit of the page with the box.
    """
    import streamlit as st

    name, n, taken = st.session_state.get(CLASS, NOWHERE)
    if n and taken is None:
        taken = visit
        st.session_state[CLASS] = (name, n, visit)
    if taken != visit or name not in classes:
        return "review-class", 0
    return f"review-class-{n}", 1 + list(classes).index(name)


def mount(session: Session | None, pages: Mapping[str, Any]) -> None:
    """Listen to Ctrl+K, and go where somebody chose.

    Args:
        session: the open project.
        pages: name in the address -> page; hidden ones are left out.
    """
    import streamlit as st

    offered = {name: one for name, one in pages.items() if name and one.title}
    # as a text: a list of entries would be looked at as a table, which imports pyarrow on the first page
    made = _registered()(
        key="palette", data=json.dumps(entries(session, offered)).encode(), on_go_change=lambda: None
    )
    chosen = getattr(made, "go", None)
    if not isinstance(chosen, str):
        return
    kind, _, what = chosen.partition(":")
    project = current.project_id()
    more = {}
    if kind == "help":
        target, more = "help", {"page": what}
    elif kind == "project":
        current.choose(what)
        project, target = what, "label"
    elif kind == "class":
        _, n, _ = st.session_state.get(CLASS, NOWHERE)
        st.session_state[CLASS] = (what, n + 1, None)
        target = "history"
    else:
        target = ACTIONS[what][1] if kind == "action" and what in ACTIONS else what
    if target in pages:
        in_it = {current.PARAMETER: project} if project else {}
        st.switch_page(pages[target], query_params=in_it | more or None)
