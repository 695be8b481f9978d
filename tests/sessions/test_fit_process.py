"""Fits in a process of their own: the same fit, old questions meanwhile, and a process that dies."""

import os
import signal
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.sessions.conftest import answer
from tests.sessions.fakes import DYING, FAKE, HANGING
from workbench.errors import Cancelled, InputError
from workbench.pools.pool import Pool
from workbench.registry import trust
from workbench.sessions import Session, fit_process
from workbench.sessions.fit_process import refit_in_process, take_up_known
from workbench.store import Store
from workbench.work.companion import Companion, DiedError
from workbench.writing import alone_in

Start = Callable[..., Session]
CALLS = "tests.sessions.fakes:"


@pytest.fixture(scope="module")
def companion(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Companion]:
    place = tmp_path_factory.mktemp("deaths") / "left"
    place.write_text("0", encoding="utf-8")
    made = Companion("test", {"WORKBENCH_TEST_DEATHS": str(place)})
    yield made
    made.end()


def deaths(companion: Companion, n: int) -> None:
    Path(companion._environment["WORKBENCH_TEST_DEATHS"]).write_text(str(n), encoding="utf-8")


def test_calls_answer_raise_and_are_heard(companion: Companion) -> None:
    assert companion.call(CALLS + "added", 2, 3) == 5
    with pytest.raises(InputError, match="no such thing"):
        companion.call(CALLS + "refusing", "no such thing")
    heard: list[int] = []
    assert companion.call(CALLS + "counting", 3, hear=heard.append) == 3 and heard == [0, 1, 2]
    first = companion.call(CALLS + "pid")
    assert first == companion.pid != os.getpid()

    def stop(n: int) -> bool:
        return n >= 1

    assert companion.call(CALLS + "counting", 10**9, hear=stop) >= 1
    assert companion.call(CALLS + "pid") == first


def test_one_that_dies_is_told_and_started_again(companion: Companion) -> None:
    first = companion.call(CALLS + "pid")
    with pytest.raises(DiedError, match="ended with 7"):
        companion.call(CALLS + "dying")
    second = companion.call(CALLS + "pid")
    assert second != first

    def kill(n: int) -> None:
        os.kill(second, signal.SIGKILL)

    with pytest.raises(DiedError, match="signal 9"):
        companion.call(CALLS + "counting", 10**9, hear=kill)

    def cancel(n: int) -> None:
        raise Cancelled("enough")

    with pytest.raises(Cancelled):
        companion.call(CALLS + "counting", 10**9, hear=cancel)
    assert companion.call(CALLS + "added", 1, 1) == 2


def test_a_call_that_is_to_stop_is_told_and_one_that_does_not_hear_is_ended(
    companion: Companion, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, asked = companion.call(CALLS + "pid"), threading.Event()
    heard: list[int] = []

    def hear(n: int) -> None:
        heard.append(n)
        asked.set()

    assert companion.call(CALLS + "counting", 10**9, hear=hear, stop=asked.is_set) < 10**9
    assert companion.call(CALLS + "pid") == first
    # a stop that comes late is no other call's
    assert companion.call(CALLS + "counting", 3, hear=hear, stop=lambda: False) == 3
    monkeypatch.setattr("workbench.work.companion.PATIENCE", 0.01)
    asked.clear()
    with pytest.raises(Cancelled):
        companion.call(CALLS + "deaf", hear=hear, stop=asked.is_set)
    assert companion.call(CALLS + "pid") != first


def test_calls_follow_each_other_and_one_that_waits_can_be_given_up(companion: Companion) -> None:
    inside, leave, told = threading.Event(), threading.Event(), list[int]()

    def hear(n: int) -> bool:
        inside.set()
        return leave.is_set()

    first = threading.Thread(target=lambda: companion.call(CALLS + "counting", 10**9, hear=hear))
    first.start()
    assert inside.wait(600)
    with pytest.raises(Cancelled):
        companion.call(CALLS + "added", 1, 1, stop=lambda: True)
    second = threading.Thread(target=lambda: told.append(companion.call(CALLS + "added", 1, 1)))
    second.start()
    assert not told
    leave.set()
    for one in (first, second):
        one.join(600)
    assert told == [2]


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="POSIX")
def test_one_that_gives_no_sign_of_life_is_ended(
    companion: Companion, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = companion.call(CALLS + "pid")
    monkeypatch.setattr("workbench.work.companion.SILENCE", 0.5)
    with pytest.raises(DiedError, match="signal 9"):
        companion.call(CALLS + "stopped")
    monkeypatch.undo()
    assert companion.call(CALLS + "pid") != first


def test_one_that_does_not_read_its_call_is_ended(
    companion: Companion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.work.companion.PATIENCE", 0.1)
    much, looks = bytes(4_000_000), iter(range(100))
    os.kill(companion.call(CALLS + "pid"), signal.SIGSTOP)
    with pytest.raises(Cancelled):  # told to stop once it is at the call
        companion.call(CALLS + "added", much, b"", stop=lambda: next(looks) > 2)
    again = companion.call(CALLS + "pid")  # its start may take longer than the silence that follows
    monkeypatch.setattr("workbench.work.companion.SILENCE", 0.5)
    os.kill(again, signal.SIGSTOP)
    with pytest.raises(DiedError, match="signal 9"):
        companion.call(CALLS + "added", much, b"")


def test_a_process_that_nobody_calls_is_ended_for_its_memory() -> None:
    import psutil

    made = Companion("idle", idle=0.01)
    pid = made.call(CALLS + "pid")
    with suppress(psutil.NoSuchProcess):  # it may have ended before anybody looks
        psutil.wait_procs([psutil.Process(pid)], timeout=600)
    assert made.call(CALLS + "pid") != pid
    assert made.call(CALLS + "added", 1, 1) == 2
    made.end()


def test_one_timer_waits_however_often_it_is_called() -> None:
    made = Companion("often", idle=3_600.0)
    before = threading.active_count()
    assert [made.call(CALLS + "added", n, 1) for n in range(20)] == list(range(1, 21))
    timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    timers = [timer for timer in timers if getattr(timer.function, "__self__", None) is made]
    for timer in timers[:-1]:
        timer.join(60)  # one that was cancelled ends by itself
        assert not timer.is_alive()
    assert threading.active_count() <= before + 2
    timers[-1].cancel()
    made.end()


@pytest.mark.skipif(not hasattr(os, "getpgid"), reason="POSIX")
def test_it_ends_with_whoever_started_it() -> None:
    program = (
        "import sys; from workbench.work.companion import Companion\n"
        "c = Companion('orphan'); print(c.call('tests.sessions.fakes:pid'), flush=True); sys.stdin.read()"
    )
    root = Path(__file__).resolve().parents[2]
    parent = subprocess.Popen(
        [sys.executable, "-c", program], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None and parent.stdin is not None
    child = int(parent.stdout.readline())
    import psutil

    watched = psutil.Process(child)
    parent.kill()
    parent.wait()
    psutil.wait_procs([watched], timeout=600)
    assert not watched.is_running() or watched.status() == psutil.STATUS_ZOMBIE
    parent.stdout.close()
    parent.stdin.close()


def test_a_fit_apart_is_the_fit_that_is_made_here(
    start: Start, store: Store, iris: Pool, companion: Companion
) -> None:
    session = start()
    answer(session, iris, 8)
    copy = store.duplicate_project(session.id, "copy")
    here = Session.open(copy.id, pool=iris, store=store, annotator="ann")
    assert here.refit() is not None and here.model is not None
    told: list[tuple[float, float]] = []
    shown: list[Any] = []
    assert refit_in_process(
        session,
        companion,
        lambda *said: told.append(said),
        ready=lambda model: shown.append((model, session.model)),
    )
    assert told and session.model is not None and not session.stale and not session.fits.problem
    assert shown == [(session.model, None)]  # made ready before anybody saw it
    assert np.allclose(session.model.probabilities, here.model.probabilities)
    one, other = session.fits.published(), here.fits.published()
    assert one is not None and other is not None
    assert np.allclose(
        one.utilities, other.utilities, equal_nan=True
    )  # of all items, as questions are chosen
    assert one.queue.tolist() == other.queue.tolist() and one.is_of(session.state, one.chosen)
    assert [r.n_labelled for r in session.rounds] == [8]
    # nothing new: the newest one stands
    assert not refit_in_process(session, companion) and len(session.rounds) == 1
    # and the next starts from it
    answer(session, iris, 3)
    assert session.stale and refit_in_process(session, companion) and session.model.n_labelled == 11


def test_a_stored_fit_is_known_from_the_other_process_and_made_here_when_more_is_asked(
    start: Start, store: Store, iris: Pool, companion: Companion
) -> None:
    session = start(classifier="logistic-regression")
    answer(session, iris, 8)
    assert session.refit() is not None
    answer(session, iris, 2)  # nothing is fitted for these
    here, beside = (Session.open(session.id, pool=iris, store=store, annotator="bob") for _ in range(2))
    known = companion.call("workbench.sessions.fit_process:known_there", store.url, session.id)
    take_up_known(beside, known)
    one, other = beside.model, here.model
    assert one is not None and other is not None and len(beside.rounds) == 1 and beside.stale
    assert np.allclose(one.probabilities, other.probabilities) and one.n_labelled == 8
    assert "estimator" not in one.__dict__ and not beside.fits.problem
    published, restored = beside.fits.published(), here.fits.published()
    assert published is not None and restored is not None
    assert np.allclose(published.utilities, restored.utilities, equal_nan=True)
    assert published.queue.tolist() == restored.queue.tolist()
    assert np.allclose(one.estimator.predict_proba(iris.features), other.probabilities)
    assert beside.refit() is not None and beside.model is not None and beside.model.n_labelled == 10


def test_of_a_classifier_that_is_no_name_nothing_is_known_there(
    start: Start, store: Store, iris: Pool, companion: Companion
) -> None:
    session = start()
    assert companion.call("workbench.sessions.fit_process:known_there", store.url, session.id) is None
    answer(session, iris, 8)
    assert session.refit() is not None and FAKE in str(session.settings["classifier"])
    assert companion.call("workbench.sessions.fit_process:known_there", store.url, session.id) is None


def test_old_questions_serve_while_it_is_made(start: Start, iris: Pool, companion: Companion) -> None:
    session = start()
    answer(session, iris, 8)
    assert refit_in_process(session, companion)
    answer(session, iris, 2)
    before, during = session.model, []

    def ready(model: Any) -> None:  # the round is stored by now
        assert len(session.state.rounds) == 2

        def ask() -> None:
            during.append((session.model, session.as_annotator("bob").ask()[0].round))

        other = threading.Thread(target=ask)
        other.start()
        other.join(600)
        assert not other.is_alive(), "somebody who asks waits for a fit"

    assert refit_in_process(session, companion, ready=ready)
    assert [model is before for model, _ in during] == [True] and session.model is not before


def test_nothing_to_fit(start: Start, companion: Companion) -> None:
    session = start()
    session.items.label(int(session.pool.trainable[0]), session.classes[0])
    assert not refit_in_process(session, companion) and session.model is None


@pytest.mark.slow  # alone: a process that is killed in the middle of a fit, once and always
def test_a_fit_that_dies_is_told_and_made_again(
    start: Start, iris: Pool, companion: Companion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.sessions.fit_process.TRIES", 2)
    trust(DYING)
    session = start(classifier=DYING)
    answer(session, iris, 8)
    told: list[str] = []
    deaths(companion, 1)
    companion.end()
    assert refit_in_process(session, companion, tell=told.append)
    assert len(told) == 1 and "ended with 9" in told[0] and session.model is not None
    answer(session, iris, 2)
    deaths(companion, 9)
    with pytest.raises(InputError, match="2 times"):
        refit_in_process(session, companion)
    assert session.model.n_labelled == 8 and session.state.n_labelled == 10 and session.stale
    deaths(companion, 0)
    assert refit_in_process(session, companion) and session.model.n_labelled == 10


def test_one_that_waits_for_another_program_or_hangs_stops_when_it_is_told(
    start: Start, iris: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.work.companion.PATIENCE", 0.1)
    trust(HANGING)
    session = start(classifier=HANGING)
    answer(session, iris, 8)
    made = Companion("turn", turns=tmp_path)
    (tmp_path / "turn").mkdir()
    with alone_in(tmp_path / "turn"), pytest.raises(Cancelled):
        made.call(CALLS + "added", 1, 1, stop=lambda: True)
    assert made.pid is None and made.call(CALLS + "added", 1, 1) == 2
    with pytest.raises(Cancelled):
        refit_in_process(session, made, stop=lambda: True)
    assert made.pid is None and session.stale
    made.end()


def test_what_is_stored_and_cannot_be_read_is_said(
    start: Start, iris: Pool, companion: Companion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not made again and again."""
    session = start()
    answer(session, iris, 8)
    monkeypatch.setattr("workbench.sessions.fitting.STATE_FORMAT", 99)
    with pytest.raises(InputError, match="another version"):
        refit_in_process(session, companion)
    assert FAKE in str(session.settings["classifier"])


def test_threads_that_open_one_project_share_it(
    start: Start, iris: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = start(iris, classifier=FAKE)
    monkeypatch.setattr(fit_process, "_OPEN", OrderedDict())
    other = threading.Barrier(2)
    opened: list[str] = []

    def slowly(project: str, **options: Any) -> Session:
        opened.append(project)
        with suppress(threading.BrokenBarrierError):
            other.wait(0.5)  # for a second thread in here, which never comes
        return session

    monkeypatch.setattr(Session, "open", slowly)
    threads = [
        threading.Thread(target=fit_process.opened, args=(session.store.url, session.id)) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == [session.id]
