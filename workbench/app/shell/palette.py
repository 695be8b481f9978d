"""Ctrl+K: pages, projects, classes and actions by their words, on every page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app.access import current, sharing
from workbench.app.serving.frontend import component
from workbench.store import Store

if TYPE_CHECKING:
    from workbench.sessions import Session

_HERE = Path(__file__).resolve().parent
MOST_PROJECTS = 40
MOST_CLASSES = 200
CLASS = "palette-class"
"""State: the class that was gone to last, how many were, and the visit of the page that took it."""
NOWHERE = ("", 0, None)
ACTIONS = {"new": ("Start a project", "data"), "export": ("Download (export) or import labels", "history")}


def entries(session: Session | None, pages: Mapping[str, Any]) -> list[dict[str, str]]:
    """Targets of the palette: id, kind and name of each.

    Args:
        session: the open project, whose classes are listed; None for none.
        pages: name in the address -> page.
    """
    rows = [
        {"id": f"page:{name}", "kind": "page", "name": str(target.title)} for name, target in pages.items()
    ]
    rows += [
        {"id": f"action:{key}", "kind": "action", "name": words}
        for key, (words, where) in ACTIONS.items()
        if where in pages
    ]
    records = [target for target in sharing.visible(Store.open().projects()) if not target.archived]
    rows += [
        {"id": f"project:{target.id}", "kind": "project", "name": target.name}
        for target in records[:MOST_PROJECTS]
    ]
    classes = session.state.classes[:MOST_CLASSES] if session is not None and "history" in pages else ()
    return rows + [{"id": f"class:{name}", "kind": "class", "name": str(name)} for name in classes]


def class_box(classes: Sequence[str], visit: int) -> tuple[str, int]:
    """The key of a box of classes, and where it begins: at what was gone to, while the visit lasts.

    The class is the box's beginning under a key of its own and no value that is set: a set value is told to
    the browser once, and lost when the next run of the page overtakes that one.

    Args:
        classes: that the box offers, after the choice of all of them.
        visit: number of the visit of the page with the box.
    """
    name, n, first_visit = st.session_state.get(CLASS, NOWHERE)
    if n and first_visit is None:
        first_visit = visit
        st.session_state[CLASS] = (name, n, visit)
    if first_visit != visit or name not in classes:
        return "review-class", 0
    return f"review-class-{n}", 1 + list(classes).index(name)


def mount(session: Session | None, pages: Mapping[str, Any]) -> None:
    """Listen to Ctrl+K, and go where somebody chose.

    Args:
        session: the open project.
        pages: name in the address -> page; hidden ones are left out.
    """
    offered = {name: page for name, page in pages.items() if name and page.title}
    scripts = _HERE.parent / "desk" / "keyboard.js", _HERE / "palette.js"
    # as a text: a list of entries would be looked at as a table, which imports pyarrow on the first page
    state = component("palette", *scripts, style=_HERE / "palette.css")(
        key="palette", data=json.dumps(entries(session, offered)).encode(), on_go_change=lambda: None
    )
    choice = getattr(state, "go", None)
    if not isinstance(choice, str):
        return
    kind, _, identifier = choice.partition(":")
    more = {}
    if kind == "help":
        target, more = "help", {"page": identifier}
    elif kind == "project":
        current.choose(identifier)
        target = "label"
    elif kind == "class":
        _, n, _ = st.session_state.get(CLASS, NOWHERE)
        st.session_state[CLASS] = (identifier, n + 1, None)
        target = "history"
    else:
        target = ACTIONS[identifier][1] if kind == "action" and identifier in ACTIONS else identifier
    if target in pages:
        st.switch_page(pages[target], query_params=current.in_address(**more))
