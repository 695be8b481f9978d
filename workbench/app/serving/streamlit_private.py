"""The private parts of Streamlit that the app uses, each with what takes its place where it is gone.

Nothing else imports them (tests/test_architecture.py). A part that moved is taken for gone: the app goes on
with what is public, and where no public part tells who somebody is, they are nobody.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

_log = logging.getLogger(__name__)


@cache
def _gone(part: str, instead: str) -> None:
    """Say once that this Streamlit has not what another version had."""
    _log.warning("Streamlit %s has no %s; %s", st.__version__, part, instead)


def leave_keras_alone() -> bool:
    """Keep Streamlit from resetting Keras after every run of a page.

    Once Keras is imported, the script runner calls `keras.backend.clear_session()` each time: a third of a
    second under the interpreter's lock, and it pulls the ground from under a network that is being trained.

    Returns:
        Whether there was anything to keep it from.
    """
    try:
        from streamlit.runtime.scriptrunner import script_runner
    except ImportError:
        return False
    if not hasattr(script_runner, "_clean_problem_modules"):
        return False
    script_runner._clean_problem_modules = lambda: None
    return True


def set_option(name: str, value: Any) -> None:
    """Set an option of this process, also one that a page may not set."""
    try:
        from streamlit import config
    except ImportError:
        st.set_option(name, value)
        return
    config.set_option(name, value)


def is_set(name: str) -> bool:
    """Whether a person set an option, rather than Streamlit's default."""
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
    """Whether Streamlit holds any secrets; True where it does not tell."""
    try:
        from streamlit.runtime.secrets import secrets_singleton

        found = secrets_singleton.load_if_toml_exists
    except (ImportError, AttributeError):
        return True
    return bool(found())


def signed_user(cookies: Mapping[str, str]) -> bytes | None:
    """What Streamlit's log-in signed into its cookie; None where nothing is signed, or cannot be told.

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


def static_folder() -> Path:
    """Where Streamlit's own pages lie."""
    try:
        from streamlit.file_util import get_static_dir
    except ImportError:
        return Path(st.__file__).parent / "static"
    return Path(get_static_dir())


def in_fragment() -> bool:
    """Whether a part of the page runs by itself; False where Streamlit does not tell."""
    try:
        from streamlit.runtime.scriptrunner import get_script_run_ctx
    except ImportError:
        return False
    context = get_script_run_ctx()
    return context is not None and bool(getattr(context, "fragment_ids_this_run", None))
