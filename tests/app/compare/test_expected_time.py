"""Expected times, told before and while things run; previews of an empty page."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from benchmarks import examples as examples_drawn
from workbench.app.compare import comparison
from workbench.app.serving.jobs import Countdown, Job
from workbench.errors import Cancelled
from workbench.figures import parts
from workbench.figures.curves import SAVED, Saving, learning_curve, summarise
from workbench.pools import load_pool
from workbench.progress import duration
from workbench.studies import StudyResult, StudySpec
from workbench.studies.study import FASTEST, SLOWEST, expected_time, run_study

SPEC = StudySpec(
    name="app",
    pools=("three-gaussians",),
    classifiers=("logistic-regression",),
    policies=("margin", "random"),
    seeds=4,
    budget=20,
)


def test_a_time_is_said_as_people_say_it() -> None:
    assert [duration(s) for s in (3.4, 89, 720, 9000, 45000)] == ["3 s", "89 s", "12 min", "2.5 h", "12 h"]


def test_a_job_says_its_share_and_what_is_left() -> None:
    moments = iter((0.0, 1.0, 10.0))
    job = Job("a", "b", "Attack")
    told = Countdown(job, lambda: next(moments))
    told(0.0, "fitting")
    assert job.message == "0\u00a0% · fitting"
    told(0.1, "fitting")
    assert job.message == "10\u00a0% · fitting", "a second says nothing of the rest"
    told(0.25, "attacking")
    assert job.message == "25\u00a0% · attacking · about 30 s left" and job.fraction == 0.25
    job.cancel()
    with pytest.raises(Cancelled):
        Countdown(job)(0.5, "attacking")


def test_a_study_is_timed_by_rounds_of_each_policy() -> None:
    ticking = itertools.count()
    pools: dict[int, Any] = {}

    def clock() -> float:
        return float(next(ticking))

    def load(one: Any) -> Any:
        return pools.setdefault(one.seed, one.load_pool())

    told: list[float] = []
    found = expected_time(SPEC, load, lambda share, words: told.append(share), clock=clock)
    # a round takes one tick of this clock: two policies, four seeds, 21 rounds each
    ticks = 2 * 4 * 21
    assert (found.low, found.high) == pytest.approx((FASTEST * ticks, SLOWEST * ticks))
    assert found.rounds == 4 and told == sorted(told) and max(told) <= 1
    shared = expected_time(SPEC, load, lambda share, words: None, workers=2, clock=clock)
    assert shared.high == pytest.approx(found.high / 2)


@pytest.fixture(scope="module")
def result() -> StudyResult:
    return run_study(SPEC, load=lambda one: load_pool("three-gaussians").split(one.seed))


def test_what_is_drawn_is_what_the_table_says(result: StudyResult, monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.studies import statistics

    paired = comparison.paired_curves(result, "error")
    assert paired is not None
    # made curves: one policy is always 8 labels ahead
    labels = paired.n_labelled
    falls = np.tile(np.maximum(0.1, 0.9 - 0.04 * (labels - labels[0])), (12, 1))
    ahead = np.tile(np.maximum(0.1, 0.9 - 0.04 * (labels - labels[0] + 8)), (12, 1))
    values = {"margin": ahead, "random": falls}
    made = statistics.Curves("p", "c", "error", np.arange(12), labels, values)
    monkeypatch.setattr(comparison, "paired_curves", lambda found, measure: made)
    gap = comparison.saving(result)
    row = next(one for one in statistics.summarise(made) if one.policy == "margin")
    assert gap is not None and row.saved is not None
    assert gap.to_labels - gap.from_labels == pytest.approx(row.saved.mean) and "8 labels saved" in gap.words
    assert gap.height == pytest.approx(falls[0, -1])
    assert comparison.meaning(result).startswith("On items like these let Margin choose")
    # equal curves: nothing to draw, and no gain to speak of
    values["margin"] = falls
    assert comparison.saving(result) is None
    assert "No gain was shown" in comparison.meaning(result)
    values["margin"], values["random"] = falls, ahead
    assert comparison.saving(result) is None


def test_the_gap_is_drawn_between_the_curves() -> None:
    at = [10.0, 20.0, 30.0]
    curves = [
        summarise("Random", [(at, [0.5, 0.4, 0.3])], baseline=True),
        summarise("M", [(at, [0.4, 0.3, 0.2])]),
    ]
    fig = learning_curve(curves, saving=Saving(0.3, 20.0, 30.0, "10 labels saved"))
    drawn = fig.data[-1]
    assert list(drawn.x) == [20, 30] and list(drawn.y) == [0.3, 0.3] and drawn.line.color == SAVED
    assert fig.layout.annotations[-1].text == "10 labels saved"


def test_an_example_says_that_it_is_one_and_is_stored_as_it_is_drawn() -> None:
    for name, drawn in examples_drawn.figures().items():
        fig = parts.example(name)
        assert parts.WORDS in [words.text for words in fig.layout.annotations], name
        assert [trace.type for trace in fig.data] == [trace.type for trace in drawn.data], name
        for stored, trace in zip(fig.data, drawn.data, strict=True):
            np.testing.assert_allclose(
                np.asarray(stored.y, float),
                np.asarray(trace.y, float),
                atol=1e-9,
                equal_nan=True,
                err_msg=name,
            )
        assert all(trace.opacity < 1 for trace in fig.data), name
