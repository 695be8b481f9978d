"""The component on its page."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.app import login
from workbench.app.current import PERSON_COOKIE
from workbench.app.desk import tokens
from workbench.app.desk.routes import BASE, class_keys
from workbench.app.keys import MAX_BUTTONS

if TYPE_CHECKING:
    from workbench.sessions import Session

_HERE = Path(__file__).resolve().parent
AHEAD = 4  # cards in the browser: more make the policy's choices old, fewer run dry


@cache
def _registered() -> Any:
    import streamlit as st

    return st.components.v2.component(
        "workbench_desk",
        html='<div class="desk-place"></div>',
        css=(_HERE / "desk.css").read_text(encoding="utf-8"),
        js=(_HERE / "desk.js").read_text(encoding="utf-8"),
    )


def mount(session: Session, on_renew: Callable[[], None] | None = None) -> Any:
    """Show the desk of a project.

    Its data changes with the classes, the person and the token, not with answers: a rerun of the page
    leaves the item on screen alone.

    Args:
        session: of the person who labels.
        on_renew: called when the token has run out; the script then runs and gives a new one.
    """
    import streamlit as st

    key = f"desk-token-{session.id}-{session.annotator}"
    held = tokens.bearer(st.session_state.get(key, ""))
    if held is None:
        st.session_state[key] = tokens.issue(session.id, session.annotator)
    classes, commands = class_keys(session, session.annotator)
    person = login.of_page() if login.required() else None
    account = "" if person is None else person.account
    data = {
        "project": session.id,
        "person": session.annotator,
        "cookie": PERSON_COOKIE,
        # what this browser keeps of one account is not sent as another's
        "account": account,
        "token": st.session_state[key],
        "base": BASE,
        "ahead": AHEAD,
        "classes": classes,
        "commands": commands,
        "most_buttons": MAX_BUTTONS,
    }
    return _registered()(key=f"desk-{session.id}", data=data, on_renew_change=on_renew or (lambda: None))
