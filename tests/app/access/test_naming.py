"""A name is asked for where another browser labelled under the same one."""

import pytest
import streamlit as st

from tests.app.pages import open_page, texts
from workbench.app.access import current
from workbench.sessions import Session
from workbench.sessions.operations import Operation


def labelled(*, at_a_desk: bool) -> Session:
    session = Session.create("iris", annotator="root")
    ask = session.ask(1)[0]
    if at_a_desk:
        session.apply([Operation("one", "label", ask=ask.id, label=session.classes[0])])
    else:
        session.tell(ask.id, session.classes[0])
    assert session.state.n_labelled == 1
    current.keep(session)
    return session


def without_cookies(patch: pytest.MonkeyPatch) -> None:
    """A new browser: only this tab may know a name."""
    patch.setattr(current, "is_named", lambda: bool(st.session_state.get("person-name")))
    patch.setattr(current, "person", lambda fallback: str(st.session_state.get("person-name") or fallback))


def test_a_browser_without_a_name_is_asked_once(home: object, monkeypatch: pytest.MonkeyPatch) -> None:
    session = labelled(at_a_desk=True)
    without_cookies(monkeypatch)
    test = open_page("label", session.id)
    assert "Who are you?" in texts(test)
    assert not test.main.get("bidi_component"), "no desk takes a key before"
    test.text_input(key="first-name").set_value("Bea")
    next(one for one in test.button if one.label == "Start labelling").click().run()
    assert not test.exception and "Who are you?" not in texts(test)
    assert test.session_state["person-name"] == "Bea"
    assert "Who are you?" not in texts(open_page("history", session.id))


def test_the_same_person_goes_on(home: object, monkeypatch: pytest.MonkeyPatch) -> None:
    session = labelled(at_a_desk=True)
    without_cookies(monkeypatch)
    test = open_page("label", session.id)
    test.button(key="same-person").click().run()
    assert "Who are you?" not in texts(test) and test.session_state["person-name"] == "root"


def test_what_no_browser_did_asks_nobody(home: object, monkeypatch: pytest.MonkeyPatch) -> None:
    session = labelled(at_a_desk=False)
    without_cookies(monkeypatch)
    test = open_page("label", session.id)
    assert "Who are you?" not in texts(test)
    # its own first answers at the desk do not make it another browser
    ask = session.ask(1)[0]
    session.apply([Operation("two", "label", ask=ask.id, label=session.classes[1])])
    assert "Who are you?" not in texts(test.run())
