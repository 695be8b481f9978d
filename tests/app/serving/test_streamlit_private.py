"""Without a private part of Streamlit the app goes on with what is public, and nobody is let in for it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar, cast
from unittest.mock import MagicMock

import pytest
import streamlit as st

from tests.app.serving.test_frontend import ENTRY, INNER, STATIC, asked, inner
from workbench.app.serving import frontend
from workbench.app.serving import streamlit_private as private
from workbench.app.serving.frontend import backend_of

PARTS = (
    "streamlit.config",
    "streamlit.runtime.secrets",
    "streamlit.web.server.starlette.starlette_server_config",
    "streamlit.web.server.starlette.starlette_websocket",
)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Streamlit in which all of them have moved."""
    for name in PARTS:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("streamlit.config", "streamlit.runtime.secrets"):
        parent, _, child = name.rpartition(".")
        monkeypatch.delattr(sys.modules[parent], child, raising=False)
    private._gone.cache_clear()


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Streamlit of a version that is not known."""
    kept = (private.is_known, frontend._files, frontend._needed, frontend._little)
    monkeypatch.setattr(st, "__version__", "1.68.0")
    for function in kept:
        function.cache_clear()
    yield
    for function in kept:
        function.cache_clear()


@pytest.mark.usefixtures("unknown")
def test_of_a_version_that_is_not_known_nothing_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    from streamlit.runtime.app_session import AppSession
    from streamlit.runtime.scriptrunner import script_runner

    def parts() -> list[Any]:
        names = ("_create_scriptrunner", "_enqueue_forward_msg", "request_rerun")
        return [*(getattr(AppSession, name) for name in names), script_runner._clean_problem_modules]

    before = parts()
    assert not private.leave_keras_alone() and not private.deliver_before_the_next()
    assert not private.keep_to_what_the_browser_has() and parts() == before
    assert "Streamlit 1.68.0 is not known" in caplog.text
    # its files come as it sends them, and a page asks for none of them by name
    script = "/" + ENTRY.relative_to(STATIC).as_posix()
    assert asked(frontend.FrontEnd(inner), script) == INNER
    assert frontend.prepared("<head></head>") == "<head></head>"
    assert frontend.address_of("PlotlyChart") == backend_of("/label") == ""


def test_every_part_is_there_in_the_version_that_is_pinned(caplog: pytest.LogCaptureFixture) -> None:
    private._gone.cache_clear()
    assert private.leave_keras_alone()
    assert private.signed_user({}) is None
    assert private.has_secrets() in (True, False)
    assert [one for one in caplog.records if one.name == private.__name__] == []


@pytest.mark.usefixtures("without")
def test_what_takes_their_place(caplog: pytest.LogCaptureFixture) -> None:
    assert private.has_secrets() is True
    assert private.is_set("server.port") is False
    private.give_secrets({"auth": {}})
    assert "a log-in whose file goes ends with it" in caplog.text


@pytest.mark.usefixtures("without")
def test_nobody_is_known_by_a_cookie_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    assert private.signed_user({"_streamlit_user": "anything"}) is None
    assert "the desk stays closed" in caplog.text


def test_a_long_message_is_named_only_while_the_browser_keeps_it() -> None:
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

    sent = private._Sent()

    def run(*messages: ForwardMsg, parts: tuple[str, ...] = ()) -> set[str]:
        began = ForwardMsg()
        began.new_session.name = "page"
        began.metadata.run.fragment_ids.extend(parts)
        for message in (began, *messages):
            private._note(sent, message)
        return set(sent.now)

    def whole(name: str, part: str = "", *, long: bool = True) -> ForwardMsg:
        message = ForwardMsg(hash=name)
        message.delta.fragment_id = part
        message.metadata.cacheable = long
        return message

    both = {"desk of Ann", "curve"}
    assert run(whole("desk of Ann"), whole("curve", "f"), whole("line", long=False)) == both
    # a part that runs by itself lets go of its own alone
    assert run(parts=("g",)) == both
    assert run(ForwardMsg(ref_hash="curve"), parts=("f",)) == both
    assert run(whole("curve 2", "f"), parts=("f",)) == {"desk of Ann", "curve 2"}
    # a name counts as what it stands for, also for the part that it belongs to
    named = [ForwardMsg(ref_hash=one) for one in ("desk of Ann", "curve 2")]
    assert run(*named) == {"desk of Ann", "curve 2"}
    assert run(parts=("f",)) == {"desk of Ann"}
    assert run(whole("desk of Bob")) == {"desk of Bob"}


def test_a_part_begins_on_the_page_that_is_shown() -> None:
    """The browser clears its page where a run begins on another, also a run of a part."""
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

    sent = private._Sent()

    def began(page: str, *parts: str) -> str:
        message = ForwardMsg()
        message.new_session.page_script_hash = page
        message.metadata.run.fragment_ids.extend(parts)
        private._note(sent, message)
        return message.new_session.page_script_hash

    # an address without a page begins with the main script; then the browser is told what it shows
    assert began("main") == "main"
    told = ForwardMsg()
    told.navigation.page_script_hash = "label"
    private._note(sent, told)
    assert sent.page == "label" and began("label", "progress") == "label"
    assert began("history") == "history"
    # asked for on the page before, while the other one was on its way
    assert began("label", "progress") == "history"
    assert began("label") == "label"


def test_a_tick_of_the_page_before_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamlit.proto.ClientState_pb2 import ClientState
    from streamlit.runtime.app_session import AppSession

    asked: list[tuple[str, str]] = []

    def request(self: Any, state: Any) -> None:
        asked.append((state.page_script_hash, state.fragment_id))

    monkeypatch.setattr(AppSession, "_enqueue_forward_msg", lambda self, message: None)
    monkeypatch.setattr(AppSession, "request_rerun", request)
    assert private.keep_to_what_the_browser_has() and private.keep_to_what_the_browser_has()
    session = SimpleNamespace()

    def ask(page: str, part: str = "", *, tick: bool = False) -> None:
        state = ClientState(page_script_hash=page, fragment_id=part, is_auto_rerun=tick)
        AppSession.request_rerun(cast(Any, session), state)

    ask("label")
    ask("label", "progress", tick=True)
    ask("history")
    ask("label", "progress", tick=True)
    assert asked == [("label", ""), ("label", "progress"), ("history", "")]
    # what a person pressed is never let go of, and the new page's own ticks are its own
    ask("label", "form")
    ask("history", "progress", tick=True)
    assert asked[3:] == [("label", "form"), ("history", "progress")]


class Runner:
    """A script's run as the session sees it: it has ended, and what it sent is on its way."""

    started: ClassVar[list[Any]] = []

    def __init__(self, **given: Any) -> None:
        self.asked = given.get("initial_rerun_data")
        self.on_event = SimpleNamespace(connect=lambda receiver: None)

    def start(self) -> None:
        Runner.started.append(self.asked)

    def request_rerun(self, data: Any) -> bool:
        return False

    def request_stop(self) -> None:
        pass


def ticked(monkeypatch: pytest.MonkeyPatch, *, delivers: bool) -> tuple[list[str], int]:
    """Words on the page of a run that ended just before a tick, and the runs that the tick began."""
    from streamlit.proto.ClientState_pb2 import ClientState
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
    from streamlit.runtime import app_session
    from streamlit.runtime.app_session import AppSession
    from streamlit.runtime.script_data import ScriptData
    from streamlit.runtime.scriptrunner import ScriptRunnerEvent

    now = AppSession._create_scriptrunner
    monkeypatch.setattr(AppSession, "_create_scriptrunner", getattr(now, "streamlits", now))
    if delivers:
        assert private.deliver_before_the_next() and private.deliver_before_the_next()
    monkeypatch.setattr(app_session, "ScriptRunner", Runner)
    monkeypatch.setattr(Runner, "started", [])
    # a session that is thrown away asks its server, which is not there, to forget its files
    monkeypatch.setattr("streamlit.runtime.get_instance", MagicMock())
    sent: list[str] = []

    async def session() -> None:
        one = AppSession(ScriptData("app.py", is_hello=False), MagicMock(), MagicMock(), lambda: None, {})
        monkeypatch.setattr(one, "_enqueue_forward_msg", lambda message: sent.append(message.ref_hash))
        monkeypatch.setattr(one, "has_fragment", lambda fragment: True)
        one._scriptrunner = run = cast(Any, Runner())
        one._on_scriptrunner_event(
            run, ScriptRunnerEvent.ENQUEUE_FORWARD_MSG, forward_msg=ForwardMsg(ref_hash="the desk of Ann")
        )
        one._on_scriptrunner_event(run, ScriptRunnerEvent.SHUTDOWN, client_state=ClientState())
        one.request_rerun(ClientState(fragment_id="progress", is_auto_rerun=True))
        for _ in range(500):
            await asyncio.sleep(0.001)
            if Runner.started:
                break
        await asyncio.sleep(0)

    asyncio.run(session())
    return [one for one in sent if one], len(Runner.started)


def test_a_tick_waits_for_what_the_run_before_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ticked(monkeypatch, delivers=True) == (["the desk of Ann"], 1)


def test_streamlit_by_itself_loses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # when it no longer does, `deliver_before_the_next` can go
    assert ticked(monkeypatch, delivers=False) == ([], 1)
