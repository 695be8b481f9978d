"""Without a private part of Streamlit the app goes on with what is public, and nobody is let in for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import streamlit as st

from workbench.app.serving import streamlit_private as private

PARTS = (
    "streamlit.config",
    "streamlit.file_util",
    "streamlit.runtime.scriptrunner",
    "streamlit.runtime.secrets",
    "streamlit.web.server.starlette.starlette_server_config",
    "streamlit.web.server.starlette.starlette_websocket",
)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Streamlit in which all of them have moved."""
    for name in PARTS:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("streamlit.config", "streamlit.file_util", "streamlit.runtime.secrets"):
        parent, _, child = name.rpartition(".")
        monkeypatch.delattr(sys.modules[parent], child, raising=False)
    private._gone.cache_clear()


def test_every_part_is_there_in_the_version_that_is_pinned(caplog: pytest.LogCaptureFixture) -> None:
    private._gone.cache_clear()
    assert private.leave_keras_alone()
    assert private.signed_user({}) is None
    assert (private.static_folder() / "index.html").is_file()
    assert private.in_fragment() is False
    assert private.has_secrets() in (True, False)
    assert [one for one in caplog.records if one.name == private.__name__] == []


@pytest.mark.usefixtures("without")
def test_what_takes_their_place(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert private.leave_keras_alone() is False
    assert private.static_folder() == Path(st.__file__).parent / "static"
    assert (private.static_folder() / "index.html").is_file()
    assert private.in_fragment() is False and private.has_secrets() is True
    assert private.is_set("server.port") is False
    private.give_secrets({"auth": {}})
    assert "a log-in whose file goes ends with it" in caplog.text


@pytest.mark.usefixtures("without")
def test_nobody_is_known_by_a_cookie_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    assert private.signed_user({"_streamlit_user": "anything"}) is None
    assert "the desk stays closed" in caplog.text
