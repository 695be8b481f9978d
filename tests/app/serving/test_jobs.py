import threading

import pytest

from workbench.app.access import current
from workbench.app.label.oracle import answer_by_oracle
from workbench.app.serving import fit_process
from workbench.app.serving.jobs import Job, JobManager
from workbench.errors import Cancelled, InputError
from workbench.sessions import Session
from workbench.sessions.drawing import ArrayOracle


def blocked(gate: threading.Event):
    def work(job: Job) -> str:
        while not gate.wait(0.01):
            job.report(0.5, "half way", partial=[1])
        return "finished"

    return work


def test_a_double_click_returns_the_running_job() -> None:
    manager, gate = JobManager(), threading.Event()
    first = manager.submit("p", "refit", blocked(gate), lane="refit", limit=600)
    assert manager.submit("p", "refit", blocked(gate), lane="refit", limit=600) is first
    assert manager.submit("other", "refit", blocked(gate), lane="refit", limit=600) is not first
    gate.set()
    assert first.wait(600)
    assert (first.status, first.result, first.fraction) == ("done", "finished", 1.0)
    assert manager.submit("p", "refit", blocked(gate), lane="refit", limit=600) is not first


def test_cancelling_stops_at_the_next_report_and_keeps_what_was_published() -> None:
    manager, gate = JobManager(), threading.Event()
    job = manager.submit("p", "study", blocked(gate), lane="study", limit=600)
    while job.partial is None:
        assert not job.wait(0.01)
    job.cancel()
    assert job.wait(600)
    assert (job.status, job.error) == ("cancelled", "")
    assert job.partial == [1]
    assert not job.active and not manager.active()


@pytest.mark.parametrize("asks", [False, True])
def test_a_job_that_is_over_its_limit_fails_and_says_so(asks: bool) -> None:
    def work(job: Job) -> None:
        assert job.started
        if asks:  # as a process beside the server does, which is ended then
            while not job.should_stop():
                assert not job.wait(0.001)
            raise Cancelled
        blocked(threading.Event())(job)

    job = JobManager().submit("p", "opening", work, lane="open", limit=0.001, title="Opening")
    assert job.wait(600) and job.status == "failed"
    assert job.error == "It took longer than 0 s, its limit."


def test_a_new_job_waits_for_its_cancelled_predecessor() -> None:
    manager, gate = JobManager(), threading.Event()
    running = threading.Event()
    overlaps: list[bool] = []

    def stubborn(job: Job) -> None:
        running.set()
        gate.wait(600)

    first = manager.submit("p", "study", stubborn, lane="study", limit=600)
    assert running.wait(600)
    first.cancel()
    second = manager.submit("p", "study", lambda job: overlaps.append(first.active), lane="study", limit=600)
    assert second is not first
    gate.set()
    assert second.wait(600)
    assert overlaps == [False]


def test_a_job_cancelled_while_it_waits_never_runs() -> None:
    manager, gate = JobManager({"study": 1}), threading.Event()
    ran: list[int] = []
    first = manager.submit("a", "study", blocked(gate), lane="study", limit=600)
    waiting = manager.submit("b", "study", lambda job: ran.append(1), lane="study", limit=600)
    waiting.cancel()
    assert waiting.wait(600)
    assert (waiting.status, ran, waiting.seconds) == ("cancelled", [], 0.0)
    gate.set()
    assert first.wait(600)


def test_a_refit_waits_behind_no_oracle(flowers: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: they answer in a lane of their own."""
    gate, others = threading.Event(), [Session.create("iris", annotator="ann") for _ in range(3)]
    slow = {one.id for one in others}
    made: list[str] = []

    def refit(session: Session, *given: object, **named: object) -> bool:
        if session.id in slow:
            return not gate.wait(600)
        made.append(session.id)
        return False

    monkeypatch.setattr(fit_process, "refit", refit)
    oracles = [answer_by_oracle(one, 3) for one in others]
    for item in flowers.pool.trainable[::12]:
        flowers.items.label(int(item), ArrayOracle(flowers.pool)(int(item)))
    fit = current.keep_fitting(flowers)
    assert fit is not None and fit.wait(600) and made == [flowers.id]
    assert {one.status: one.error for one in oracles if not one.active} == {}
    for one in oracles:
        one.cancel()
    gate.set()
    assert all(one.wait(600) for one in oracles)


@pytest.mark.parametrize(
    ("error", "message"),
    [(InputError("Too few classes."), "Too few classes."), (KeyError("x"), "KeyError: 'x'")],
)
def test_a_failure_is_told_and_ends_nothing_else(error: Exception, message: str) -> None:
    manager = JobManager()

    def fails(job: Job) -> None:
        raise error

    job = manager.submit("p", "refit", fails, lane="refit", limit=600)
    assert job.wait(600)
    assert (job.status, job.error) == ("failed", message)
    after = manager.submit("p", "refit", lambda job: 1, lane="refit", limit=600)
    assert after.wait(600) and after.status == "done"


def test_shutdown_cancels_and_refuses() -> None:
    manager, gate = JobManager(), threading.Event()
    job = manager.submit("p", "study", blocked(gate), lane="study", limit=600)
    manager.shutdown(timeout=600)
    assert job.status == "cancelled"
    with pytest.raises(InputError, match="shutting down"):
        manager.submit("p", "study", blocked(gate), lane="study", limit=600)


def test_only_so_many_ended_jobs_are_remembered() -> None:
    manager = JobManager()
    for i in range(260):
        assert manager.submit(str(i), "refit", lambda job: None, lane="refit", limit=600).wait(600)
    assert len(manager._jobs) <= 201
    assert manager.get("259", "refit") is not None
