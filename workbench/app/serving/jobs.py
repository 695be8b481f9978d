"""Long work outside the script thread: started once, watched from any tab, cancelled from any tab.

What takes long is computed by processes beside the server: one for minutes, one that people wait for, one
of files. So the server keeps no engine and answers meanwhile. `WORKBENCH_FIT=inline` does all of it in the
server.
"""

from __future__ import annotations

import atexit
import itertools
import os
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from workbench.app.words.text import percent
from workbench.errors import Cancelled, InputError
from workbench.progress import duration
from workbench.registry import typed
from workbench.work.companion import Companion, DiedError, function_at

if TYPE_CHECKING:
    from workbench.sessions import Session

Status = Literal["waiting", "running", "done", "failed", "cancelled"]
Lane = Literal["refit", "oracle", "short", "study", "baseline", "map", "open", "file", "guess"]
"""Queues of jobs: fits of what people labelled, answers of a pool's own truth, what somebody waits for
(advice, cross-validation, other models, lessons), studies, lines of random questions, maps and forecasts,
projects that open, files, language models."""
_PLACES: dict[Lane, int] = {
    "refit": 2,
    "oracle": 2,
    "short": 2,
    "study": 1,
    "baseline": 1,
    "map": 1,
    "open": 2,
    "file": 4,
    "guess": 2,
}
HOUR = 3600.0
"""Seconds."""
DAY = 24 * HOUR
_ACTIVE = ("waiting", "running")
_TASKS = "workbench.studies.tasks:called"
_MAX_ENDED = 200


class Job:
    """One piece of work.

    Attributes:
        id: unique in this process.
        owner: whose it is (a project or session id).
        kind: what it does; one active job per (owner, kind).
        title: for people.
        limit: seconds that it may run; then it fails at its next report, or is stopped as by a cancel.
        status: "waiting", "running", "done", "failed" or "cancelled".
        fraction: done so far, 0 to 1.
        message: what it is doing.
        result: what the work returned.
        partial: what the work has published so far, if it does.
        waits_for: title of the job that the process beside the server is at, while this one waits for it.
        error: a sentence for people when it failed.
        details: the traceback, for the log.
        about: whatever who submitted it wants to find again.
    """

    _numbers = itertools.count(1)

    def __init__(self, owner: str, kind: str, title: str, limit: float = float("inf")) -> None:
        self.id = f"{kind}-{next(self._numbers)}"
        self.owner, self.kind, self.title, self.limit = owner, kind, title, limit
        self.status: Status = "waiting"
        self.fraction, self.message = 0.0, ""
        self.result: Any = None
        self.partial: Any = None
        self.error = self.details = self.waits_for = ""
        self.about: Any = None
        self.started = self.ended = 0.0
        self._cancel = threading.Event()
        self._ended = threading.Event()

    @property
    def active(self) -> bool:
        """True if it waits or runs."""
        return self.status in _ACTIVE

    @property
    def cancelling(self) -> bool:
        """True if it was told to stop and has not stopped yet."""
        return self.active and self._cancel.is_set()

    @property
    def seconds(self) -> float:
        """Seconds that it has run, or ran."""
        if not self.started:
            return 0.0
        return (self.ended or time.monotonic()) - self.started

    def report(self, fraction: float, message: str = "", partial: Any = None) -> None:
        """Called by the work: how far it is.

        Args:
            fraction: done so far, 0 to 1.
            message: what it is doing.
            partial: a result so far, published in one assignment.

        Raises:
            Cancelled: the person stopped it, or it is over its limit.
        """
        if self.should_stop():
            raise Cancelled(self.title)
        self.fraction = min(max(float(fraction), 0.0), 1.0)
        self.message = message
        if partial is not None:
            self.partial = partial

    def should_stop(self) -> bool:
        """Called by work that stops at a place of its own choosing."""
        return self._cancel.is_set() or self.seconds > self.limit

    def cancel(self) -> None:
        """Ask it to stop; it does at its next report."""
        self._cancel.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Block until it has ended.

        Returns:
            False when `timeout` seconds passed first.
        """
        return self._ended.wait(timeout)


class Countdown:
    """Reports of a work with its share and the time that is left, at the pace of the last half minute.

    Args:
        job: that is told.
        clock: seconds.
    """

    def __init__(self, job: Job, clock: Callable[[], float] = time.monotonic) -> None:
        self._job, self._clock = job, clock
        self._marks: deque[tuple[float, float]] = deque()

    def __call__(self, fraction: float, message: str, partial: Any = None) -> None:
        """As `Job.report`."""
        now = self._clock()
        if self._marks and fraction < self._marks[-1][1]:
            self._marks.clear()
        self._marks.append((now, fraction))
        while now - self._marks[0][0] > 30:
            self._marks.popleft()
        start, before = self._marks[0]
        words = [percent(fraction, 0), message]
        # two seconds of work say something of the rest
        if now - start >= 2 and fraction > before:
            words.append(f"about {duration((1 - fraction) * (now - start) / (fraction - before))} left")
        self._job.report(fraction, " · ".join(words), partial)


class JobManager:
    """Runs jobs in daemon threads, a few at a time in each lane.

    Args:
        lanes: lane -> how many of its jobs run at once; a refit never waits behind anything else.
    """

    def __init__(self, lanes: dict[Lane, int] | None = None) -> None:
        self._slots = {name: threading.Semaphore(n) for name, n in (lanes or _PLACES).items()}
        self._jobs: dict[tuple[str, str], Job] = {}
        self._lock = threading.Lock()
        self._closed = False

    def submit(
        self, owner: str, kind: str, work: Callable[[Job], Any], *, lane: Lane, limit: float, title: str = ""
    ) -> Job:
        """Start work, or return the job of this owner and kind that is already active.

        Args:
            owner: whose it is.
            kind: what it does.
            work: called with the job in another thread; must not call Streamlit.
            lane: the queue that it waits in.
            limit: seconds that it may run.
            title: for people.

        Returns:
            The job.

        Raises:
            InputError: the server is shutting down.
        """
        with self._lock:
            if self._closed:
                raise InputError("The server is shutting down; start it again to go on.")
            present = self._jobs.get((owner, kind))
            if present is not None and present.active and not present.cancelling:
                return present
            job = Job(owner, kind, title or kind, limit)
            self._jobs.pop((owner, kind), None)
            self._jobs[(owner, kind)] = job
            self._forget()
        threading.Thread(
            target=self._run, args=(job, work, present, self._slots[lane]), name=job.id, daemon=True
        ).start()
        return job

    def compute(
        self, owner: str, inputs: object, work: Callable[[Job], Any], *, lane: Lane, limit: float, title: str
    ) -> Job:
        """The job that computes a value from its inputs and from nothing else; found again by them.

        One that failed or was cancelled is a state that stays until it is let go of (`forget`), which
        *Try again* of its panel does.

        Args:
            owner: whose it is.
            inputs: all that the value depends on. Their printed form is the key, with the title, so what
                something else stands for (a pool, of its fingerprint) is left out.
            work: called with the job.
            lane: the queue that it waits in.
            limit: seconds that it may run.
            title: for people.

        Returns:
            The job, running or ended.
        """
        kind = f"{title}-{sha256(repr(inputs).encode()).hexdigest()[:16]}"
        present = self.get(owner, kind)
        return present or self.submit(owner, kind, work, title=title, lane=lane, limit=limit)

    def get(self, owner: str, kind: str) -> Job | None:
        """The newest job of this owner and kind, running or ended."""
        with self._lock:
            return self._jobs.get((owner, kind))

    def forget(self, job: Job) -> None:
        """Let go of a job that has ended, so that the same work can be asked for anew."""
        with self._lock:
            if not job.active and self._jobs.get((job.owner, job.kind)) is job:
                del self._jobs[(job.owner, job.kind)]

    def active(self, owner: str | None = None) -> list[Job]:
        """Jobs that wait or run, oldest first."""
        with self._lock:
            return [j for j in self._jobs.values() if j.active and owner in (None, j.owner)]

    def shutdown(self, timeout: float = 5.0) -> None:
        """Refuse new work, cancel what runs and wait up to `timeout` seconds for it."""
        with self._lock:
            self._closed = True
            running = [j for j in self._jobs.values() if j.active]
        for job in running:
            job.cancel()
        end = time.monotonic() + timeout
        for job in running:
            job.wait(max(0.0, end - time.monotonic()))

    def _forget(self) -> None:
        ended = [key for key, job in self._jobs.items() if not job.active]
        for key in ended[: max(0, len(ended) - _MAX_ENDED)]:
            del self._jobs[key]

    def _run(
        self, job: Job, work: Callable[[Job], Any], previous: Job | None, slot: threading.Semaphore
    ) -> None:
        if previous is not None:
            # a cancelled predecessor may still hold what this one needs
            previous.wait()
        while not slot.acquire(timeout=0.1):
            if job.should_stop():
                break
        else:
            try:
                self._work(job, work)
            finally:
                slot.release()
        if job.active:
            job.status = "cancelled"
        job.ended = time.monotonic()
        job._ended.set()

    @staticmethod
    def _work(job: Job, work: Callable[[Job], Any]) -> None:
        if job.should_stop():
            return
        job.started = time.monotonic()
        job.status = "running"
        try:
            job.result = work(job)
        except Cancelled:
            cancelled = job.cancelling
            job.error = "" if cancelled else f"It took longer than {duration(job.limit)}, its limit."
            job.status = "cancelled" if cancelled else "failed"
        except InputError as error:
            job.error, job.status = str(error), "failed"
        except BaseException as error:  # a thread of its own: code of a person's may end by SystemExit
            job.details = traceback.format_exc()
            job.error = f"{type(error).__name__}: {error}"
            job.status = "failed"
        else:
            job.fraction = 1.0
            job.status = "done"


@cache
def manager() -> JobManager:
    """The process-wide manager; modules outlive reruns, so every tab and user sees the same one."""
    return JobManager()


# --- processes beside the server ------------------------------------------------------------------

TRIES = 2
"""Attempts at a computation whose process dies."""
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
    *arguments: Any,
    where: Callable[[], Companion] = short_work,
    hear: Callable[[Any], None] | None = None,
    session: Session | None = None,
    tries: int = TRIES,
) -> Any:
    """Have a function of `workbench.studies.tasks` compute something for a job.

    Args:
        job: it is for; what it is told of cancelling, the computation is told.
        target: name of the function.
        arguments: its arguments after `say`.
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

    def begin() -> str:
        job.waits_for = ""
        return job.title

    if not uses_processes():
        from workbench.sessions.fit_process import keep

        if session is not None:
            keep(session)
        return function_at(_TASKS)(heard, (), target, arguments)

    settings = {} if session is None else session.settings
    call = (
        typed({name: settings.get(name) for name in ("classifier", "options", "policy")}),
        target,
        arguments,
    )
    for tried in range(1, tries + 1):
        process = where()
        job.waits_for = process.task if process.busy else ""
        try:
            return process.call(_TASKS, *call, hear=heard, stop=job.should_stop, begin=begin)
        except DiedError as died:
            if tried == tries:
                often = f", {tries} times" if tries > 1 else ""
                raise InputError(
                    f"The process that computes this {died}{often}. See that there is memory enough, "
                    "and try again."
                ) from died
            job.report(job.fraction, f"The process that computes this {died}; it begins again.")
    raise AssertionError
