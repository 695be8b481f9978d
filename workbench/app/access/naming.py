"""A first name, asked for before two browsers label under the name of one machine's user."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.access import current, login
from workbench.app.words.text import verbatim

if TYPE_CHECKING:
    from workbench.sessions import Session

_SEATED = "seated"
_NAME = "first-name"
_LONGEST = 12 * 3600.0  # seconds that a browser counts after it came

_LOCK = threading.Lock()
_SEATS: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
"""(project, name) -> browsers without a name of their own that sit there, and when they came."""


def is_open(session: Session) -> bool:
    """True if it is open who sits here: a browser without a name, where another one sits or labelled as that.

    A browser whose name was not asked for goes on as it began: what it labels itself is no other's.

    Args:
        session: of whoever sits here, under the name they would have.
    """
    if login.required() or current.is_named() or st.session_state.get(_SEATED) == session.id:
        return False
    # only what was done at a desk tells of a browser
    if any(event.operation and event.annotator == session.annotator for event in session.log.events):
        return True
    if another_sits(session.id, session.annotator, _browser(), time.monotonic()):
        return True
    st.session_state[_SEATED] = session.id
    return False


def another_sits(project: str, name: str, browser: tuple[str, str], now: float) -> bool:
    """True if another browser sits at a project under a name; if none does, this one does from now on.

    Args:
        project: its id.
        name: that both would label under.
        browser: what it tells of itself.
        now: seconds.
    """
    with _LOCK:
        seats = _SEATS.setdefault((project, name), {})
        for seat in [seat for seat, came in seats.items() if now - came > _LONGEST]:
            del seats[seat]
        if seats and browser not in seats:
            return True
        seats[browser] = now
        return False


def _browser() -> tuple[str, str]:
    """The address of a browser and its own name: two that are alike in both are taken for one."""
    return str(st.context.ip_address or ""), str(st.context.headers.get("User-Agent", ""))


def ask(session: Session) -> None:
    """The question, in the place of the desk."""
    name = verbatim(session.annotator, 30)
    with st.container(border=True, key="who-are-you"):
        st.markdown("## Who are you?")
        st.markdown(
            f"Somebody labels here as **{name}**, in another browser. Under a name of your own, your answers "
            "are yours: Undo takes back your last one, and agreement can be told."
        )
        with (
            st.form("first-name-form", border=False),
            st.container(horizontal=True, vertical_alignment="bottom", key="first-name-line"),
        ):
            st.text_input("Your first name", key=_NAME, max_chars=80, width=280)
            st.form_submit_button("Start labelling", type="primary", on_click=_take)
        st.button(
            f"I am {name}",
            key="same-person",
            type="tertiary",
            on_click=current.call_me,
            args=(session.annotator,),
        )


def _take() -> None:
    name = str(st.session_state[_NAME]).strip()
    if name:
        current.call_me(name)
