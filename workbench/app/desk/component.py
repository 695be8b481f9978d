"""The component on its page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from workbench.app.access import login
from workbench.app.access.current import PERSON_COOKIE
from workbench.app.desk import instruction_sheet, questions, tokens
from workbench.app.desk.cards import CHECK_MODE
from workbench.app.desk.keys import MAX_BUTTONS, class_keys
from workbench.app.desk.operations import EVERY
from workbench.app.desk.requests import ADDRESS
from workbench.app.serving import frontend
from workbench.sessions import Session

_HERE = Path(__file__).resolve().parent
AHEAD = 4  # cards in the browser: more make the policy's choices old, fewer run dry


def _registered(name: str) -> Any:
    """The component whose own script is `name`.js, after what they share."""
    scripts = [_HERE / f"{part}.js" for part in ("keyboard", "parts", "told", "checks", name)]
    html = '<div class="desk-place"></div>'
    return frontend.component(name, *scripts, style=_HERE / "desk.css", html=html)


def _held(session: Session) -> tuple[str, tokens.Bearer]:
    """The token of whoever sits here, which this tab keeps while it is good."""
    key = f"desk-token-{session.id}-{session.annotator}"
    bearer = tokens.bearer(st.session_state.get(key, ""))
    if bearer is None:
        st.session_state[key] = tokens.issue(session.id, session.annotator)
        bearer = tokens.bearer(st.session_state[key])
        assert bearer is not None
    return st.session_state[key], bearer


def _common(session: Session) -> dict[str, Any]:
    """Inputs of both components: who sits here, where to send, classes and keys."""
    token, _ = _held(session)
    classes, commands = class_keys(session)
    person = login.of_page()
    return {
        "project": session.id,
        "person": session.annotator,
        # what this browser keeps of one account is not sent as another's
        "account": "" if person is None else person.account,
        "token": token,
        "base": ADDRESS,
        "classes": classes,
        "commands": commands,
        "most_buttons": MAX_BUTTONS,
    }


def picture_address(session: Session) -> str:
    """The address of a project's pictures, with {item} in it, for the person at this page."""
    return f"{ADDRESS}/{session.id}/image/{{item}}?k={tokens.for_pictures(_held(session)[1])}"


def mount_gallery(
    session: Session,
    cards: list[dict[str, Any]],
    stamp: str,
    *,
    everywhere: bool = False,
    beside: bool = False,
    offered: bool = False,
) -> Any:
    """Show decisions as pictures, texts or rows that keys act on.

    Args:
        session: of the person who reviews.
        cards: as `decisions.tiles` gives them.
        stamp: of the choice they are; while it stays, what was changed in the browser stays too.
        everywhere: whether they are of several questions, each card with the name of its own.
        beside: whether they are a selection beside a map, which is drawn anew after an answer: of several all
            are chosen, and a class is one's own choice, not a review.
        offered: whether the page chose what stands beside the map: keys wait until somebody clicks it.
    """
    question_classes = (
        {question.question_name: class_keys(question)[0] for question in session.questions.sessions()}
        if everywhere
        else {}
    )
    data = _common(session) | {"cards": cards, "stamp": stamp, "asked": question_classes}
    data |= {"beside": beside, "offered": offered}
    return _registered("review")(key=f"gallery-{session.id}", data=data, on_renew_change=lambda: None)


def told_pictures(session: Session) -> dict[str, str]:
    """Kept pictures of the instructions: name in the text -> address, for whoever sits here."""
    return instruction_sheet.picture_addresses(session, ADDRESS, tokens.for_pictures(_held(session)[1]))


def mount_told(blocks: list[dict[str, Any]], key: str) -> Any:
    """Show instructions as the desk does.

    Args:
        blocks: as `markdown.nodes` gives them.
        key: of the element.
    """
    return _registered("preview")(key=key, data={"blocks": blocks})


def mount(
    session: Session,
    on_renew: Callable[[], None] | None = None,
    on_mode: Callable[[], None] | None = None,
    *,
    every: bool = False,
    checks: str = "",
    on: bool = False,
    figures: bool = False,
) -> Any:
    """Show the desk of a project.

    Its data changes with the classes, the person and the token, not with answers: a rerun of the page
    leaves the item on screen alone.

    Args:
        session: of the person who labels.
        on_renew: called when the token has run out; the script then runs and gives a new one.
        on_mode: called when the person wants the other way of asking several questions; None where there is
            one question.
        every: whether all questions are asked about the item on screen, and not the session's alone.
        checks: phase of the checks as the page shows it, where frozen labels are checked: blind, in their
            order; the script runs when it is another.
        on: whether checks go on although it is decided.
        figures: whether the page will draw some below.
    """
    mode = CHECK_MODE if checks else EVERY if every else ""
    documents, commands = questions.Desk.of(session, {"mode": mode}).asked()
    data = _common(session) | {
        "cookie": PERSON_COOKIE,
        "ahead": AHEAD,
        "question": questions.words(session) if every else questions.question(session),
        "mode": mode,
        "asked": documents,
        "classes": [] if every else documents[0]["classes"],
        "commands": commands,
        "several": on_mode is not None,
        # what the browser fetches while the first item is looked at
        "below": frontend.address_of(*frontend.FIGURES) if figures else "",
        "phase": checks,
        "on": on,
    }
    return _registered("desk")(
        key=f"desk-{mode}-{session.id}",
        data=data,
        on_renew_change=on_renew or (lambda: None),
        on_mode_change=on_mode or (lambda: None),
    )
