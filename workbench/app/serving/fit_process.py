"""The process beside the server that makes the fits, and the state of the engine while people read."""

from __future__ import annotations

import atexit
import gc
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache, partial
from typing import TYPE_CHECKING, Literal

from workbench.app.serving.jobs import uses_processes
from workbench.progress import FitCallback
from workbench.work.companion import Companion, DiedError
from workbench.writing import workbench_home

if TYPE_CHECKING:
    from workbench.sessions import Session
    from workbench.sessions.published import Made

_log = logging.getLogger(__name__)
PATIENCE = 5.0
"""Seconds that a project which is open waits for what the other process knows of its last fit."""


@cache
def fitter() -> Companion:
    """The process that fits, one a server; nobody waits for its end."""
    companion = Companion("fits", {"WORKBENCH_FIT": "inline"}, turns=workbench_home() / "turns")
    atexit.register(companion.end)
    return companion


def load_engine() -> None:
    """Have whoever makes fits, the other process or this one, import what they need.

    Raises:
        DiedError: the other process ended meanwhile.
        ImportError: something is not there.
    """
    if uses_processes():
        fitter().call("workbench.sessions.fit_process:warm")
        return
    import gpflow  # noqa: F401
    import sklearn.cluster  # noqa: F401


def ask_known(project: str) -> Future[Made | None] | None:
    """Have the process that fits say what is known of a project's last fit, while this one opens its pool.

    So the server needs no classifier, and none of the libraries behind it, to show what a model says.

    Args:
        project: its id.

    Returns:
        What it will say; None where fits are made here, or the process is at something else: then nobody
        waits for it.
    """
    if not uses_processes() or fitter().busy:
        return None
    answer: Future[Made | None] = Future()

    def ask() -> None:
        from workbench.store import Store

        try:
            url = Store.open().url
            answer.set_result(fitter().call("workbench.sessions.fit_process:known_there", url, project))
        except Exception:  # this process takes the fit up by itself, and says then what is wrong
            _log.debug("What is known of a fit was not told", exc_info=True)
            answer.set_result(None)

    threading.Thread(target=ask, name="known", daemon=True).start()
    return answer


def take_up_known(session: Session, answer: Future[Made | None] | None) -> None:
    """Take up what was asked for, if it comes in time.

    Args:
        session: of the project, opened meanwhile.
        answer: of `ask_known`.
    """
    if answer is None or not session.rounds:  # without a fit there is nothing to wait for
        return
    try:
        fit = answer.result(PATIENCE)
    except TimeoutError:
        return
    if fit is not None:
        from workbench.app.serving.explanations import prepare
        from workbench.sessions.fit_process import take_up_known

        take_up_known(session, fit, partial(prepare, session))


def refit(
    session: Session,
    callback: FitCallback | None = None,
    tell: Callable[[str], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> bool:
    """As `Session.refit`, in the process that fits where there is one.

    Args:
        session: of the project.
        callback: as that of `Session.refit`.
        tell: called with a sentence where the process died and the fit is made again.
        stop: as that of `refit_in_process`.

    Returns:
        Whether there is a new fit.

    Raises:
        Cancelled: as `refit_in_process`.
        InputError: as `Session.refit` and `refit_in_process`.
    """
    if not uses_processes():
        return session.refit(callback=callback) is not None
    from workbench.app.serving.explanations import prepare
    from workbench.sessions.fit_process import refit_in_process

    ready = partial(prepare, session)
    return refit_in_process(session, fitter(), callback, tell=tell, ready=ready, stop=stop)


State = Literal["cold", "loading", "ready", "failed"]

_lock = threading.Lock()
_state: State = "cold"
_reason = ""
_shown = threading.Event()
_PATIENCE = 3.0


def engine_state() -> tuple[State, str]:
    """The state of the engine, and why when it failed.

    Returns:
        ("cold" | "loading" | "ready" | "failed", reason). "cold" means it loads with the next fit.
    """
    with _lock:
        if _state == "cold" and "gpflow" in sys.modules and "tensorflow" in sys.modules:
            return "ready", ""
        return _state, _reason


def page_shown() -> None:
    """A page has been drawn: from here on the import is in nobody's way."""
    _shown.set()


def warm_up() -> None:
    """Have what a fit needs imported where fits are made; safe to call more than once and from any thread.

    Waits for the first page, up to three seconds: both would compete for the interpreter.
    """
    global _state, _reason
    _shown.wait(_PATIENCE)
    with _lock:
        if _state in ("loading", "ready"):
            return
        _state = "loading"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # GPflow 2.9 imports pkg_resources; nothing a person labelling can do about it
    warnings.filterwarnings("ignore", message="pkg_resources is deprecated")
    try:
        load_engine()
    except DiedError:  # the first fit starts the process again
        with _lock:
            _state = "cold"
        return
    except Exception as error:  # the page says so; labelling by other models still works
        with _lock:
            _state, _reason = "failed", f"{type(error).__name__}: {error}"
        return
    # half a million objects that live as long as the process: no collection need look at them again
    gc.collect()
    gc.freeze()
    with _lock:
        _state = "ready"
