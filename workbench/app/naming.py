"""A first name, asked for before two browsers label under the name of one machine's user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app import current, login
from workbench.app.text import verbatim

if TYPE_CHECKING:
    from workbench.sessions import Session

_SEATED = "seated"
_NAME = "first-name"


def is_open(session: Session) -> bool:
    """Whether it is open who sits here: a browser without a name, where another one labelled under that name.

    A browser whose name was not asked for goes on as it began: what it labels itself is no other's.

    Args:
        session: of whoever sits here, under the name they would have.
    """
    if login.required() or current.is_named() or st.session_state.get(_SEATED) == session.id:
        return False
    # only what was done at a desk tells of a browser
    if any(event.operation and event.annotator == session.annotator for event in session.events):
        return True
    st.session_state[_SEATED] = session.id
    return False


def ask(session: Session) -> None:
    """The question, in the place of the desk."""
    here = verbatim(session.annotator, 30)
    with st.container(border=True, key="who-are-you"):
        st.markdown("## Who are you?")
        st.markdown(
            f"Somebody labels here as **{here}**, in another browser. Under a name of your own, your answers "
            "are yours: Undo takes back your last one, and agreement can be told."
        )
        with (
            st.form("first-name-form", border=False),
            st.container(horizontal=True, vertical_alignment="bottom", key="first-name-line"),
        ):
            st.text_input("Your first name", key=_NAME, max_chars=80, width=280)
            st.form_submit_button("Start labelling", type="primary", on_click=_take)
        st.button(
            f"I am {here}", key="same-person", type="tertiary", on_click=current.call_me,
            args=(session.annotator,),
        )  # fmt: skip


def _take() -> None:
    name = str(st.session_state[_NAME]).strip()
    if name:
        current.call_me(name)
