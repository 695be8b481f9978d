"""Measurement of a session: uniform questions, and the interval of an error."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.oracles import step
from tests.sessions.conftest import answer
from workbench.errors import InputError
from workbench.pools.pool import Pool
from workbench.sessions import ArrayOracle, Evaluation, Session, insight

Start = Callable[..., Session]


def test_a_share_of_the_questions_is_drawn_uniformly_and_trained_on(start: Start) -> None:
    session = start(uniform_share=0.5)
    oracle = ArrayOracle(session.pool)
    for _ in range(30):
        step(session, oracle)
    told = [e for e in session.log.events if e.kind == "label"]
    roles = [e.payload["role"] for e in told]
    uniform = [e.payload["item"] for e in told if e.payload["role"] == "uniform"]
    assert 6 <= len(uniform) <= 24 and "policy" in roles
    assert all("policy" not in e.payload for e in told if e.payload["role"] == "uniform")
    model = session.model
    assert model is not None and set(uniform) <= set(model.items.tolist())
    assert session.settings["uniform_share"] == 0.5 and start().settings["uniform_share"] == 0.1


def test_a_tenth_of_the_questions_measures_where_there_is_no_truth(
    start: Start, unknown: Pool, iris: Pool
) -> None:
    session = start(unknown, evaluation_share=0.25, seed=3)
    assert session.pool.test is None
    for _ in range(12):
        answer(session, iris, 5)
        session.refit()
    state = session.state
    assert 6 <= len(state.evaluation) <= 26
    assert session.model is not None
    assert not set(session.model.items.tolist()) & state.evaluation
    assert session.model.n_labelled == 60 - len(state.evaluation)
    measured = session.predictions.evaluation
    truth = np.asarray(iris.truth)
    held = sorted(state.evaluation)
    wrong = int((session.model.probabilities[held].argmax(axis=1) != truth[held]).sum())
    assert (measured.n, measured.wrong, measured.source) == (len(held), wrong, "evaluation set")
    assert session.rounds[-1].n_test == len(held) and session.rounds[-1].error == measured.error
    # the map's words and Calibration's compare the same two numbers, so they agree
    calibrated = insight.calibration(session.model, held_out=session.fits.held_out()).verdict
    assert session.predictions.verdict.doubt == pytest.approx(1.0 - calibrated.confidence)


def test_more_questions_measure_until_twenty_are_answered(start: Start, unknown: Pool, iris: Pool) -> None:
    session = start(unknown, evaluation_share=0.001, early_share=0.9)
    assert session.settings["early_share"] == 0.9
    while len(session.state.evaluation) < 20:
        answer(session, iris, 1)
    assert len(session.state.codes) < 30
    answer(session, iris, 20)
    assert len(session.state.evaluation) == 20
    without = start(unknown, evaluation_share=0.0)
    assert without.settings["early_share"] == 0.0


def test_no_share_no_evaluation(start: Start, unknown: Pool, iris: Pool) -> None:
    session = start(unknown, evaluation_share=0.0)
    answer(session, iris, 30)
    assert not session.state.evaluation
    assert session.predictions.evaluation.n == 0 and not session.predictions.evaluation.enough
    with pytest.raises(InputError, match=r"'evaluation_share' is 1\.0: input should be less than 1"):
        start(unknown, evaluation_share=1.0)


def test_a_change_of_classes_makes_no_error(start: Start, iris: Pool) -> None:
    """The model stays as it is until the next fit, so what it was measured to be does too."""
    session = start()
    answer(session, iris, 20)
    session.refit()
    measured, items = session.predictions.evaluation, session.fits.held_out()
    assert measured.n and measured.error == session.rounds[-1].error
    first, second, third = session.classes
    session.classes.merge(second, third)
    session.classes.rename(first, "other")
    for _ in range(2):
        assert session.stale and session.predictions.evaluation == measured
        assert all((a == b).all() for a, b in zip(session.fits.held_out(), items, strict=True))
        session = Session.open(session.id, store=session.store, annotator="ann")
    session.refit()
    merged = session.predictions.evaluation
    assert merged.error == session.rounds[-1].error and set(session.fits.held_out()[1].tolist()) == {
        0,
        1,
    }
    # back in its own class, it is one that the model does not know apart
    session.undo()
    session.undo()
    assert session.classes == (first, second, third) and session.predictions.evaluation == merged


def test_the_interval_of_an_error() -> None:
    few = Evaluation.of(10, 1, "evaluation set")
    many = Evaluation.of(100, 10, "evaluation set")
    assert not few.enough and many.enough
    # Wilson's interval of 10 in 100, as tabulated
    assert (round(many.low, 3), round(many.high, 3)) == (0.055, 0.174)
    assert few.low < many.low < 0.1 < many.high < few.high
    assert Evaluation.of(30, 0, "").low == 0.0 and Evaluation.of(30, 30, "").high == 1.0
