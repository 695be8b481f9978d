"""A pool that a class labels together: everybody at their own desk, one curve beside random's."""

from __future__ import annotations

import secrets
from typing import Any

import streamlit as st

from workbench.app import desk
from workbench.app.access import auditing, current, login
from workbench.app.access.joining import ROOM
from workbench.app.label import oracle
from workbench.app.shell import labelling_speed, missing_pool, widgets
from workbench.app.words.text import percent, plural
from workbench.errors import InputError
from workbench.figures import parts
from workbench.figures.curves import learning_curve, summarise
from workbench.sessions import Session
from workbench.sessions.people import labelled_here
from workbench.store import Store

NAME = "together"
TITLE = "Label a pool together"
QUESTION = "Can a class that answers the machine's questions beat one that labels at random?"
MINUTES = 10
POOL = "digits"
HEIGHT = 420  # of the curve, in pixels
LOOK = (
    "The machine asks each of you about another digit: those it is least sure of.",
    "The curve falls faster than random's at first; near the end both run out of surprises.",
    "Somebody will press the wrong key. Does the model notice? History shows labels that look wrong.",
)
STEPS = (
    "Press **Begin**: a project of handwritten digits is made, and a QR code comes.",
    "Everybody points a phone at it, or types its address, and labels at a desk of their own.",
    "Leave this page on the wall: one curve for all of you, beside three runs that ask at random.",
)


def before() -> None:
    """Introduction: what is done here, the button that begins, and what will be seen."""
    st.markdown("\n".join(f"{n}. {step}" for n, step in enumerate(STEPS, 1)))
    st.button("Begin", key="begin-room", type="primary", icon=":material/play_arrow:", on_click=begin)
    example()
    st.caption(
        "What you will see: how fast the error falls, and how many labels the machine's questions save."
    )


def example() -> None:
    """Preview of the curve, while there is none."""
    widgets.figure(
        parts.example("class"),
        "together-example",
        "An example: the error of a class beside random questions",
    )


def begin() -> None:
    """A new room, for a button: a project of handwritten digits, in the address from now on.

    Whoever may use this server may join; with a log-in it belongs to whoever began it.

    Raises:
        InputError: they have as many projects as one person may have.
    """
    auditing.room_for_project()
    owner = login.key_of_page()
    session = Session.create(POOL, name="A class labels digits", owner=owner)
    if owner:
        Store.open().share_project(session.id, owner, "open")
    auditing.record("made", session.id, session.project.name, "a room of a class")
    current.keep(session)
    st.query_params[ROOM] = session.id


def shared_project() -> Session | None:
    """The room in the address.

    Raises:
        InputError: there is no such project, or its classes are not known.
    """
    project_id = st.query_params.get(ROOM)
    if not project_id:
        return None
    try:
        is_kept = missing_pool.is_kept(project_id)
        session = current.entered(project_id) if is_kept else None
    except login.NotYoursError:
        session = None  # said as if there were none
    if session is None:
        raise InputError(
            "This room is not here any more, or its address was cut. Ask for it anew, or begin a room."
        )
    if not session.pool.has_truth or session.pool.test is None:
        raise InputError("A class needs a pool whose classes are known, so that the error can be measured.")
    return session


def student(shared: Session) -> Session:
    """The session of one browser; one without a name is given one, kept in its cookie by the desk."""
    if not current.person(""):
        current.call_me(f"student {secrets.token_hex(2)}")
    return current.mine(shared)


def label(shared: Session) -> None:
    """The desk of whoever sits here."""
    own_session = student(shared)
    st.caption(
        f"You are {own_session.annotator}. A key or a click answers; nobody else is asked about your item."
    )
    with st.popover("Your name", icon=":material/person:", type="tertiary", key="student-name-box"):
        st.text_input(
            "Your name, as whoever teaches shall read it", key="student-name", max_chars=30, on_change=_named
        )
    desk.mount(own_session)


def _named() -> None:
    if name := str(st.session_state["student-name"]).strip():
        # two of a class may be called alike
        current.call_me(f"{name} {secrets.token_hex(2)}")


@st.fragment(run_every=2.0)
def curve(shared: Session) -> None:
    """Labels of the class, its error and its curve beside random's; looks again by itself.

    Args:
        shared: the room.
    """
    current.keep_fitting(shared)
    with shared.log.snapshot():
        state, rounds = shared.state, labelling_speed.measured_rounds(shared.rounds)
        people = labelled_here(state)
        words = f"**{plural(len(state.codes), 'label')}**"
        words += f" of {plural(len(people), 'person', 'people')}" if people else ""
        if not rounds:
            two = sum(1 for count in state.counts.values() if count) > 1
            soon = "The first fit is on its way." if two else "The curve starts with labels of two classes."
            st.markdown(f"{words}. {soon}")
            example()
            return
        runs, job = oracle.baseline(shared, oracle.reach_for(rounds[-1].n_labelled))
    st.markdown(f"{words}; error **{percent(rounds[-1].error)}**{random_words(runs, rounds[-1].n_labelled)}.")
    fig = drawn(rounds, runs)
    # it is read from the last row of a class
    fig.update_layout(font_size=18, legend_font_size=17)
    widgets.figure(fig, "together-curve", "Test error against labels: the class beside random questions")
    oracle.baseline_line(job)


def random_words(runs: Any, labels: int) -> str:
    """Result of random questions with as many labels, in words; "" while it is not known."""
    reached = [
        min((abs(n - labels), e) for n, e in zip(at, errors, strict=True))[1]
        for at, errors in runs
        if at and at[-1] >= labels
    ]
    return f"; random questions: {percent(sum(reached) / len(reached))}" if reached else ""


def drawn(rounds: Any, runs: Any) -> Any:
    """The class's curve beside random's."""
    class_curve = labelling_speed.error_curve("this class", labelling_speed.measured_rounds(rounds))
    return learning_curve([class_curve, summarise("random questions", runs, baseline=True)], height=HEIGHT)
