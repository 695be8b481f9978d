"""The private parts of Streamlit that the app uses, each with what takes its place where it is gone.

Nothing else imports them (tests/test_architecture.py). On a version that is not known nothing of Streamlit is
replaced, and its files are its own affair: pages come later, and a slow connection may end one. A part that
moved is taken for gone: the app goes on with what is public, and where no public part tells who somebody is,
they are nobody.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

_log = logging.getLogger(__name__)


@cache
def _gone(part: str, instead: str) -> None:
    """Say once that this Streamlit has not what another version had."""
    _log.warning("Streamlit %s has no %s; %s", st.__version__, part, instead)


STATIC = Path(st.__file__).parent / "static"
"""Folder of Streamlit's own pages."""
KNOWN = "1.67."
"""Beginning of the versions whose inner parts are known."""


@cache
def is_known() -> bool:
    """True if the inner parts of this Streamlit are known."""
    known = st.__version__.startswith(KNOWN)
    if not known:
        _log.warning("Streamlit %s is not known: nothing of it is replaced.", st.__version__)
    return known


def leave_keras_alone() -> bool:
    """Keep Streamlit from resetting Keras after every run of a page.

    Once Keras is imported, the script runner calls `keras.backend.clear_session()` each time: a third of a
    second under the interpreter's lock, and it pulls the ground from under a network that is being trained.

    Returns:
        Whether it is done: on a version that is known.
    """
    if not is_known():
        return False
    from streamlit.runtime.scriptrunner import script_runner

    script_runner._clean_problem_modules = lambda: None
    return True


DELIVERY = 5.0
"""Seconds that a run may take to hand over what it sent, once it has ended."""


def deliver_before_the_next() -> bool:
    """Let what an ended run sent reach its page before a part of the page runs by itself again.

    A part's timer that ticks in the moment between the end of a run and the delivery of what it sent would
    begin a run of its own, and the session takes messages of the newest run alone: the rest of the page
    before would never come, and its end neither. A desk would go on under the name of the person before.

    Returns:
        Whether it is done: on a version that is known.
    """
    if not is_known():
        return False
    from streamlit.runtime.app_session import AppSession, AppSessionState

    create = AppSession._create_scriptrunner
    if hasattr(create, "streamlits"):
        return True

    def after_delivery(self: Any, data: Any, end: float | None = None) -> None:
        loop, now = self._event_loop, time.monotonic()
        end = now + DELIVERY if end is None else end
        if self._scriptrunner is None or now > end:
            create(self, data)
            return

        def again() -> None:
            closing = self._state == AppSessionState.SHUTDOWN_REQUESTED
            # another run may have begun meanwhile, and takes the part's turn into its own
            is_taken = self._scriptrunner is not None and self._scriptrunner.request_rerun(data)
            if not (closing or is_taken):
                after_delivery(self, data, end)

        loop.call_later(0.002, again)

    after_delivery.streamlits = create  # type: ignore[attr-defined]
    AppSession._create_scriptrunner = after_delivery  # type: ignore[assignment,method-assign]
    return True


def keep_to_what_the_browser_has() -> bool:
    """Keep account of the long messages that the browser has, and of the page that it shows.

    A browser keeps long messages, names those it has when it asks for a run, and is sent a name instead of
    what it named. Over a slow connection the end of another run may reach it in between, at which it lets go
    of what was not used of late; a name it no longer knows ends the page with "Connection error". What was
    sent by the last run of the page, or of the part that it belongs to, always stays: only that is named.

    A part's timer that ticks while another page is on its way asks for a run of the part on the page before.
    At such a run's beginning the browser would clear the page that it shows, and what comes next of it would
    have no place ("Bad delta path index"). Such a tick is let go of, and a part that runs all the same runs
    on the page that is shown.

    Returns:
        Whether it is done: on a version that is known.
    """
    if not is_known():
        return False
    from streamlit.runtime.app_session import AppSession

    enqueue, request = AppSession._enqueue_forward_msg, AppSession.request_rerun
    if hasattr(enqueue, "streamlits"):
        return True

    def enqueued(self: Any, message: Any) -> None:
        _note(self.__dict__.setdefault("_workbench_sent", _Sent()), message)
        enqueue(self, message)

    def requested(self: Any, client_state: Any) -> None:
        if client_state is not None:
            sent = self.__dict__.setdefault("_workbench_sent", _Sent())
            page = client_state.page_script_hash
            if not client_state.fragment_id:
                sent.page = page or sent.page
            elif client_state.is_auto_rerun and page and sent.page not in ("", page):
                return
            stays = [
                message_hash
                for message_hash in client_state.cached_message_hashes
                if message_hash in sent.now
            ]
            client_state.cached_message_hashes[:] = stays
        request(self, client_state)

    enqueued.streamlits = enqueue  # type: ignore[attr-defined]
    requested.streamlits = request  # type: ignore[attr-defined]
    AppSession._enqueue_forward_msg = enqueued  # type: ignore[assignment,method-assign]
    AppSession.request_rerun = requested  # type: ignore[method-assign]
    return True


@dataclass
class _Sent:
    """Account of the messages that a browser was sent.

    Attributes:
        now: hash of each long message of the last runs -> the part of the page that it belongs to, "" of the
            page itself.
        before: the same, as it was when the last run began.
        page: hash of the page that is shown, or was asked for since; "" before the first.
        shown: hash of the page that is shown.
    """

    now: dict[str, str] = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)
    page: str = ""
    shown: str = ""


def _note(sent: _Sent, message: Any) -> None:
    """Keep account of a message; one that begins a run of a part begins it on the page that is shown."""
    kind = message.WhichOneof("type")
    if kind == "new_session":
        parts = set(message.metadata.run.fragment_ids)
        sent.before = sent.now
        sent.now = (
            {message_hash: part for message_hash, part in sent.now.items() if part not in parts}
            if parts
            else {}
        )
        if parts and sent.shown:
            message.new_session.page_script_hash = sent.shown
        elif not parts:
            sent.page = sent.shown = message.new_session.page_script_hash
    elif kind == "navigation":
        sent.page = sent.shown = message.navigation.page_script_hash
    elif kind == "ref_hash":
        sent.now[message.ref_hash] = sent.before.get(message.ref_hash, "")
    elif message.metadata.cacheable and message.hash:
        sent.now[message.hash] = message.delta.fragment_id


def set_option(name: str, value: Any) -> None:
    """Set an option of this process, also one that a page may not set."""
    try:
        from streamlit import config
    except ImportError:
        st.set_option(name, value)
        return
    config.set_option(name, value)


def is_set(name: str) -> bool:
    """True if a person set an option, rather than Streamlit's default."""
    try:
        from streamlit.config import is_manually_set
    except ImportError:
        _gone("config.is_manually_set", "options of the app win over those of config.toml.")
        return False
    return bool(is_manually_set(name))


def give_secrets(secrets: Mapping[str, Any]) -> None:
    """Have Streamlit's own log-in use these secrets; without this part, it uses those of its files."""
    try:
        from streamlit.runtime.secrets import secrets_singleton

        give = secrets_singleton.merge_programmatic_secrets
    except (ImportError, AttributeError):
        _gone("runtime.secrets", "a log-in whose file goes ends with it.")
        return
    give(dict(secrets))


def has_secrets() -> bool:
    """True if Streamlit holds any secrets, also where it does not tell."""
    try:
        from streamlit.runtime.secrets import secrets_singleton

        load = secrets_singleton.load_if_toml_exists
    except (ImportError, AttributeError):
        return True
    return bool(load())


def signed_user(cookies: Mapping[str, str]) -> bytes | None:
    """Identity in the signed cookie of Streamlit's log-in; None where nothing is signed, or cannot be told.

    Args:
        cookies: of a request.
    """
    try:
        from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME
        from streamlit.web.server.starlette.starlette_websocket import _get_signed_cookie_with_chunks
    except ImportError:
        _gone("signed cookie of its log-in", "nobody is known outside the pages: the desk stays closed.")
        return None
    return _get_signed_cookie_with_chunks(dict(cookies), USER_COOKIE_NAME)
