"""The project a person is in: named in the address, mirrored for page changes, opened once a process."""

from __future__ import annotations

import gc
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import streamlit as st

from workbench.app.access import login
from workbench.app.serving import fit_process
from workbench.app.serving.jobs import DAY, Job, manager
from workbench.errors import InputError, OutgrownError
from workbench.progress import TimeLeft
from workbench.store import Store
from workbench.work import memory
from workbench.work.memory import give_back

if TYPE_CHECKING:
    from workbench.sessions import Session

PARAMETER = "project"
PERSON_COOKIE = "workbench-person"
RECENT = 600.0
"""Seconds since the last record of a project within which people may still be at work in it."""
_MIRROR = "current-project"
_PERSON = "person-name"
_OPEN: OrderedDict[str, Session] = OrderedDict()
_OPENING: dict[str, threading.Lock] = {}
_LOCK = threading.Lock()


def project_id() -> str | None:
    """The id in the address; after a page change, which drops it from there, the mirrored one."""
    project = st.query_params.get(PARAMETER)
    if project:
        st.session_state[_MIRROR] = project
        return str(project)
    mirrored = st.session_state.get(_MIRROR)
    if mirrored:
        st.query_params[PARAMETER] = mirrored
    return mirrored


def in_address(**more: str) -> dict[str, str] | None:
    """Parameters of an address of another page that keep the project in it; None for none."""
    project = project_id()
    return ({PARAMETER: project} if project else {}) | more or None


def family_id() -> str | None:
    """The id that the open project is known by, whichever of its questions the pages show."""
    question = project_id()
    summary = None if question is None else Store.open().summary(question)
    return None if summary is None else summary.family


def choose(project: str | None) -> None:
    """Make a project the current one, or leave it with None."""
    _keep_in_address(PARAMETER, _MIRROR, project)


def show(parameter: str, token: str | None) -> None:
    """Have a page show something by its id in the address; None goes back to its form."""
    _keep_in_address(parameter, parameter, token)


def _keep_in_address(parameter: str, key: str, value: str | None) -> None:
    if value is None:
        st.query_params.pop(parameter, None)
        st.session_state.pop(key, None)
    else:
        st.query_params[parameter] = value
        st.session_state[key] = value


def shown(parameter: str) -> str | None:
    """The id of what a page shows, if anything; after a page change the address has it again."""
    token = st.query_params.get(parameter) or st.session_state.get(parameter)
    if token:
        show(parameter, token)
    return token


def session() -> Session | None:
    """The current project's session, shared by every tab of this process.

    Raises:
        InputError: the address names a project that is not there, is not this person's to open, or whose
            pool has changed.
    """
    project = project_id()
    return None if project is None else entered(project)


def entered(project: str) -> Session:
    """The session of a project for whoever the page's script runs for.

    Raises:
        InputError: as `session`.
    """
    login.admit(project, login.of_page())
    return opened(project)


def person(fallback: str) -> str:
    """The person at this browser: the one who logged in, else the name they gave, else the machine's user.

    Args:
        fallback: the machine's user.
    """
    if login.required():
        logged_in = login.of_page()
        return fallback if logged_in is None else logged_in.name
    name = st.session_state.get(_PERSON)
    if name:
        return str(name)
    return unquote(str(st.context.cookies.get(PERSON_COOKIE, ""))).strip()[:80] or fallback


def is_named() -> bool:
    """True if somebody gave a name in this tab or, before, in this browser."""
    return bool(st.session_state.get(_PERSON) or st.context.cookies.get(PERSON_COOKIE, ""))


def call_me(name: str) -> None:
    """Use this name from now on; the desk keeps it in a cookie of this browser."""
    st.session_state[_PERSON] = name.strip()[:80]


def mine(shared: Session) -> Session:
    """The session of whoever sits at this browser, on the same open project."""
    return shared.as_annotator(person(shared.annotator))


def opened(project: str) -> Session:
    """The session of a project, whoever asks; opening it loads the pool and the last fit.

    Raises:
        InputError: as `Session.open`.
    """
    from workbench.sessions import Session

    with _LOCK:
        # Nobody waits for a pool that somebody else's project loads.
        opening = _OPENING.setdefault(project, threading.Lock())
    with opening:
        with _LOCK:
            for outgrown in [id_ for id_, open_session in _OPEN.items() if open_session.log.outgrown]:
                del _OPEN[outgrown]  # the pool is opened again, as long as it is now
            present = _OPEN.get(project)
            if present is not None:
                _OPEN.move_to_end(project)
                return present
            # of its questions one pool is loaded, and one log is open
            sibling = next((session for session in _OPEN.values() if project in session.questions.ids), None)
        if sibling is None:
            last_fit = fit_process.ask_known(project)
            session = Session.open(project)
            fit_process.take_up_known(session, last_fit)
        else:
            session = sibling.question(project)
        give_back()  # what reading a table took, and a first fit would not
        with _LOCK:
            _keep(session)
        return session


def open_recent() -> None:
    """Open the project where people were at work a moment ago: they wait for a server that comes back."""
    with suppress(Exception):  # whoever opens it hears what is wrong
        recent = max(Store.open().projects(), key=attrgetter("changed"))
        if time.time() - datetime.fromisoformat(recent.changed).timestamp() < RECENT:
            opened(recent.id).log.together(lambda: None)
    gc.collect()  # a tenth of a second, before anybody waits for it


@contextmanager
def page_run() -> Iterator[None]:
    """While a page is drawn it sees one state of its project, and the database is read once for it.

    What the page itself records it sees at once. A project that cannot be opened is said elsewhere.
    """
    try:
        opened_now = session()
    except InputError:
        opened_now = None
    if opened_now is None:
        yield
    else:
        with opened_now.log.snapshot():
            yield


def keep(session: Session) -> None:
    """Remember a session that was just created, so that its pool is not loaded twice."""
    with _LOCK:
        _keep(session)


def forget(project: str) -> None:
    """Let go of the sessions of a project, so that it is opened anew."""
    with _LOCK:
        for key in [id_ for id_, session in _OPEN.items() if project in (id_, *session.questions.ids)]:
            del _OPEN[key]


def _keep(session: Session) -> None:
    _OPEN[session.id] = session
    _OPEN.move_to_end(session.id)
    # One that is fitted stays: its job publishes to it, and a second one would be fitted beside it.
    idle = [p for p in _OPEN if p != session.id and not manager().active(p)]
    while idle and memory.is_above(memory.machine() // 4):
        del _OPEN[idle.pop(0)]  # the one that was used longest ago
        give_back()


def keep_fitting_all(current: Session) -> None:
    """Refit one question after the other in the background, this one first; with one it is `keep_fitting`."""
    sessions = [current, *(session for session in current.questions.sessions() if session.id != current.id)]
    jobs = [manager().get(session.id, "refit") for session in sessions]
    if not any(job is not None and job.active for job in jobs):
        waiting = (session for session in sessions if session.stale and fit_comes(session))
        keep_fitting(next(waiting, current))


def keep_fitting(current: Session) -> Job | None:
    """Refit in the background when there are labels the model has not seen.

    Returns:
        The job that is running, or None when the model is up to date.
    """
    job = manager().get(current.id, "refit")
    if job is not None and job.active:
        return job
    if not fit_comes(current):
        return None
    oracle = manager().get(current.id, "oracle")
    if (oracle is not None and oracle.active) or not current.stale:
        # an oracle refits after each answer by itself
        return None

    def work(job: Job) -> int:
        try:
            return _fit_what_is_new(current, job)
        except OutgrownError:
            return _fit_what_is_new(opened(current.id), job)

    try:
        return manager().submit(
            current.id, "refit", work, title="Refitting the model", lane="refit", limit=DAY
        )
    except InputError:
        return None


def _fit_what_is_new(current: Session, job: Job) -> int:
    """Fit until no label is left that the model has not seen; returns how many it has learnt from."""
    while current.stale:
        # a stored fit that could not be taken up is made again, and the reason stands beside the bar
        message = "fitting" + (f" again: {current.fits.problem}" if current.fits.problem else "")
        timing, job.about = TimeLeft(), ""
        job.report(0.0, message, partial=_fitted_on(current))

        def watch(fraction: float, _objective: float, message: str = message, t: TimeLeft = timing) -> bool:
            job.about = t.words(fraction)
            job.report(fraction, message)
            return False

        is_new = fit_process.refit(current, watch, partial(setattr, job, "about"), job.should_stop)
        if not is_new:
            break
    model = current.model
    return 0 if model is None else model.n_labelled


def fit_comes(current: Session) -> bool:
    """True if labels that the model has not seen are being fitted, or will be without a further one.

    After a fit that failed or was cancelled the same labels would fail the same way, or take as long: another
    label is another chance.
    """
    job = manager().get(current.id, "refit")
    ended = job is not None and job.status in ("failed", "cancelled")
    return job is None or not ended or job.partial != _fitted_on(current)


def _fitted_on(current: Session) -> tuple[Any, Any, Any]:
    """Inputs of a fit."""
    state = current.state
    return state.training, state.keys, state.model
