"""Processes beside the server that compute what pages ask for: a long one, and one that people wait for.

So the server keeps no engine and answers meanwhile. `WORKBENCH_FIT=inline` does all of it in the server.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from workbench.errors import InputError
from workbench.work.companion import Companion, DiedError

if TYPE_CHECKING:
    from workbench.app.serving.jobs import Job
    from workbench.sessions import Session

TRIES = 2
"""How often a computation is begun whose process dies."""
IDLE = 120.0
"""Seconds after which a process that computes nothing is ended."""


def uses_processes() -> bool:
    """True if fits are made in a process of their own."""
    return os.environ.get("WORKBENCH_FIT") != "inline"


@cache
def long_work() -> Companion:
    """The process of what takes minutes: comparisons, attacks."""
    return _process("long")


@cache
def short_work() -> Companion:
    """The process of what somebody waits for: lessons, cross-validation, advice."""
    return _process("short")


@cache
def file_work() -> Companion:
    """The process of files: exports, bundles, tables and labels that are read."""
    return _process("files")


def _process(name: str) -> Companion:
    companion = Companion(name, {"WORKBENCH_FIT": "inline"}, idle=IDLE)
    atexit.register(companion.end)
    return companion


def compute(
    job: Job,
    target: str,
    *given: Any,
    where: Callable[[], Companion] = short_work,
    hear: Callable[[Any], None] | None = None,
    session: Session | None = None,
    tries: int = TRIES,
) -> Any:
    """Have a function of `workbench.studies.tasks` compute something for a job.

    Args:
        job: it is for; what it is told of cancelling, the computation is told.
        target: name of the function.
        given: its arguments after `say`.
        where: gives the process.
        hear: called with what the function says; `job.report` unless given.
        session: of the project that is among the arguments.
        tries: how often it is begun; once where it may have stored something when its process died.

    Returns:
        What the function returned.

    Raises:
        Cancelled: the job was.
        InputError: the process died each time; and whatever the function raised.
    """

    def heard(report: Any) -> bool:
        if report is not None and not job.should_stop():
            if hear is not None:
                hear(report)
            else:
                job.report(*report)
        return job.should_stop()

    if not uses_processes():
        from workbench.sessions.fit_process import keep
        from workbench.studies import tasks

        if session is not None:
            keep(session)
        return tasks.called(heard, (), target, given)
    from workbench.registry import typed

    settings = {} if session is None else session.settings
    call = typed({name: settings.get(name) for name in ("classifier", "options", "policy")}), target, given
    for tried in range(1, tries + 1):
        try:
            return where().call("workbench.studies.tasks:called", *call, hear=heard, stop=job.should_stop)
        except DiedError as died:
            if tried == tries:
                often = f", {tries} times" if tries > 1 else ""
                raise InputError(
                    f"The process that computes this {died}{often}. See that there is memory enough, "
                    "and try again."
                ) from died
            job.report(job.fraction, f"The process that computes this {died}; it begins again.")
    raise AssertionError
