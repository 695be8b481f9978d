"""Long work tells its time before and its progress while it runs; time here is a number the test sets."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.desks import desk_sync
from tests.sessions.fakes import FAKE, NearestMean
from workbench.app.access import current
from workbench.app.label.oracle import answer_by_oracle
from workbench.app.serving.jobs import Job
from workbench.cli import runs
from workbench.progress import TimeLeft, _rounded_up
from workbench.sessions import RunSpec, Session
from workbench.studies import run


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_first_steps_tell_how_long_the_whole_is(clock: Clock) -> None:
    timing = TimeLeft(clock)
    assert timing.words(0.0) == "" and timing.seconds_left(0.0) is None
    clock.now = 8.0
    assert timing.words(0.01) == ""  # it loaded libraries and compiled: no measure of the others
    clock.now = 13.0
    assert timing.seconds_left(0.02) == pytest.approx(490)
    assert timing.words(0.02) == "at most 9 min left"
    clock.now = 400.0
    assert timing.words(0.98) == "at most 10 s left"  # it stays told, also when little is left


def test_what_is_short_is_not_told_and_the_first_moments_are_no_measure(clock: Clock) -> None:
    timing = TimeLeft(clock)
    clock.now = 1.0
    assert timing.words(0.001) == "" and timing.words(0.001) == ""
    clock.now = 20.0
    assert timing.words(0.5) == ""
    clock.now = 45.0
    assert timing.words(0.5) == "at most 50 s left"


def test_a_first_step_that_does_not_end_is_told_too(clock: Clock) -> None:
    timing = TimeLeft(clock)
    clock.now = 61.0
    assert timing.words(0.0) == "the first step takes 70 s so far"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (11, "20 s"), (79, "80 s"), (90, "2 min"), (3601, "61 min"), (9e3, "2.5 h")],
)
def test_durations(seconds: float, words: str) -> None:
    assert _rounded_up(seconds) == words


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Callable[[Any, Any, Any], None]:
    """Fits that say four steps of forty seconds each; every timing is told by the test's clock."""
    for place in (runs, current, "workbench.app.label.oracle"):
        name = place if isinstance(place, str) else place.__name__
        monkeypatch.setattr(f"{name}.TimeLeft", lambda: TimeLeft(clock))
    plain = NearestMean.fit

    def fit(self: NearestMean, X: Any, y: Any, callback: Any = None) -> NearestMean:
        for step in range(4):
            clock.now += 40.0
            if callback is not None:
                callback((step + 1) / 4, 0.0)
        return plain(self, X, y)

    monkeypatch.setattr(NearestMean, "fit", fit)
    return fit


def test_the_command_line_tells_a_long_fit_in_lines(slow: Any, capsys: pytest.CaptureFixture[str]) -> None:
    told = runs._Progress()
    spec = RunSpec("iris", classifier=FAKE, policy="margin", budget=1)
    run(spec, on_round=told.round, on_fit=told.fit)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "This fit takes long: 50 % done, at most 80 s left. Ctrl-C stops it."
    assert len(lines) == 6  # all but the first step of each of the two rounds


def test_on_a_terminal_it_stands_beside_the_bar(slow: Any) -> None:
    shown: list[str] = []
    told = runs._Progress(lambda _, words: shown.append(words))
    run(RunSpec("iris", classifier=FAKE, policy="margin", budget=1), on_round=told.round, on_fit=told.fit)
    assert shown[:2] == ["loading the model's libraries", "loading; this fit: 50 %, at most 80 s left"]
    assert shown[-1].startswith("4 labels, error ") and "this fit" not in shown[-1]


def started() -> Session:
    session = Session.create("iris", classifier=FAKE, policy="margin", annotator="ann")
    for i in range(6):
        (ask,) = session.ask()
        session.tell(ask.id, session.classes[i % 3])
    return session


def test_a_long_fit_is_told_on_pages_and_a_cancelled_one_is_not_begun_again(
    home: Any, slow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = started()
    there, go_on = threading.Event(), threading.Event()
    plain = NearestMean.fit

    def fit(self: NearestMean, X: Any, y: Any, callback: Any = None) -> NearestMean:
        def hold(fraction: float, objective: float) -> Any:
            result = callback(fraction, objective)
            if fraction >= 0.5:
                there.set()
                assert go_on.wait(600)
            return result

        return plain(self, X, y, hold)

    monkeypatch.setattr(NearestMean, "fit", fit)
    job = current.keep_fitting(session)
    assert job is not None and there.wait(600)
    assert job.active and job.fraction == 0.5 and job.about == "at most 80 s left"
    job.cancel()
    go_on.set()
    assert job.wait(600) and job.status == "cancelled" and session.model is None
    assert current.keep_fitting(session) is None
    # the desk looks again only while a fit is on its way
    assert session.stale and not desk_sync(session)["numbers"]["fitting"]
    (ask,) = session.ask()
    session.tell(ask.id, session.classes[0])
    assert desk_sync(session)["numbers"]["fitting"]
    again = current.keep_fitting(session)
    assert again is not None and again.wait(600) and again.status == "done" and not session.stale


def test_the_fits_between_an_oracles_answers_are_told_and_cancelled(
    home: Any, slow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = started()
    messages: list[str] = []
    plain = current.Job.report

    def report(self: Any, fraction: float, message: str = "", partial: Any = None) -> None:
        messages.append(message)
        if len(messages) == 3:
            self.cancel()
        plain(self, fraction, message, partial)

    monkeypatch.setattr(current.Job, "report", report)
    job = answer_by_oracle(session, 2)
    assert job.wait(600) and job.status == "cancelled"
    told = "1 of 2 answered; this fit: at most 80 s left"
    assert messages == ["0 of 2 answered", "1 of 2 answered", told]


def sidebar() -> None:
    import streamlit as st

    from workbench.app.shell import frame

    frame._fitting(st.session_state["job"])


def test_the_sidebar_shows_how_far_a_long_fit_is_and_ends_it() -> None:
    job = Job("p", "refit", "Refitting the model")
    job.status, job.fraction = "running", 0.25
    page = AppTest.from_function(sidebar)
    page.session_state["job"] = job
    assert page.run().caption[0].value.endswith("Fitting in the background") and not page.button
    job.about = "at most 9 min left"
    shown = page.run()
    assert not shown.caption and shown.get("progress")[0].proto.value == 25
    assert shown.get("progress")[0].proto.text == "Fitting, at most 9 min left"
    shown.button[0].click().run()
    assert job.cancelling and page.button[0].disabled
