"""Changes of another thread between two looks at one thing: a decision rests on one look."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.sessions.conftest import answer
from tests.sessions.fakes import FAKE
from workbench.exchange.rows import label_table
from workbench.pools.pool import Pool
from workbench.sessions import Session
from workbench.sessions.finishing import Checks
from workbench.sessions.fitted_model import FittedModel

Start = Callable[..., Session]
READS = pytest.mark.parametrize("reads", range(5))


def meanwhile(owner: Any, name: str, reads: int, other: Any) -> None:
    """After so many readings an attribute is what another thread has set it to, and stays so."""
    own, count = [getattr(owner, name)], iter(range(reads))

    def value(_: Any) -> Any:
        return own[-1] if next(count, None) is not None else other

    kind = type(owner)
    owner.__class__ = type(kind.__name__, (kind,), {name: property(value, lambda _, new: own.append(new))})


@READS
def test_a_fit_is_made_with_what_is_chosen_also_beside_a_look_at_an_earlier_one(
    start: Start, unknown: Pool, iris: Pool, reads: int
) -> None:
    session = start(unknown, classifier=FAKE, policy="random", evaluation_share=0.0)
    answer(session, iris, 12)
    session.refit()
    session.change_model(options={"sharpness": 2.0})
    session.fits.model_at(0)
    earlier = session.fits._learner
    assert earlier is not None
    session.refit()  # and the one that is chosen is kept
    session.items.label(session.ask()[0].item, session.classes[0])
    meanwhile(session.fits, "_learner", reads, earlier)
    session.refit()
    assert session.model is not None and session.model.estimator.sharpness == 2.0


@READS
def test_a_fit_learns_from_the_labels_that_its_round_names(
    start: Start, unknown: Pool, iris: Pool, reads: int
) -> None:
    session = start(unknown, classifier=FAKE, policy="random", evaluation_share=0.0)
    answer(session, iris, 12)
    session.refit()
    before = session.fits._learnt
    answer(session, iris, 3)
    meanwhile(session.fits, "_learnt", reads, before)
    finished = session.refit()
    assert finished is not None and finished.n_labelled == 15


@READS
def test_a_copy_of_a_measured_item_makes_the_fit_stale_whoever_looks_beside(
    start: Start, unknown: Pool, iris: Pool, reads: int
) -> None:
    session = start(unknown, classifier=FAKE, policy="random", evaluation_share=0.0)
    answer(session, iris, 12)
    session.refit()
    assert not session.stale
    meanwhile(session.fits, "_apart", reads, ((None, None), True))
    assert not session.stale


@READS
@pytest.mark.parametrize("overlap", [1.0, "worth"])
def test_second_opinions_are_weighed_over_the_classes_that_the_asker_knows(
    start: Start, unknown: Pool, iris: Pool, reads: int, overlap: Any
) -> None:
    session = start(
        unknown, classifier=FAKE, policy="random", evaluation_share=0.0, overlap=overlap, people=2
    )
    answer(session, iris, 12)
    session.refit()
    bob = session.as_annotator("bob")
    questions, state = session._questions, bob.state
    asked = [ask.item for ask in bob.ask(20)]
    session.classes.add("a fourth")
    session.as_annotator("eve").ask(1)  # somebody who knows it already
    meanwhile(questions, "_answer_model", reads, questions._answer_model)
    meanwhile(questions, "_consensus", reads, (-1, None))
    published = session.fits.published(state)
    fresh = questions.fresh(state, "bob", 20, set(), published)
    assert {ask.item for ask in fresh if ask.role == "overlap"} == {
        item for item in asked if item in state.labels
    }


@READS
def test_a_fit_is_stored_whatever_is_known_of_one_that_waits(
    start: Start, unknown: Pool, iris: Pool, reads: int
) -> None:
    session = start(unknown, classifier=FAKE, policy="random", evaluation_share=0.0)
    answer(session, iris, 12)
    meanwhile(session.fits, "_unsaved", reads, None)
    assert session.refit() is not None


# ------------------------------------------------------------------ one moment


def beside(work: Callable[[], Any]) -> None:
    """Have another thread do something, to its end."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def interrupted(monkeypatch: pytest.MonkeyPatch, kind: type, name: str, work: Callable[[], Any]) -> None:
    """Have another thread do something once, where a method was called the first time."""
    method, once = getattr(kind, name), iter([work])

    def called(*inputs: Any) -> Any:
        value = method(*inputs)
        if (further := next(once, None)) is not None:
            beside(further)
        return value

    monkeypatch.setattr(kind, name, called)


def merge_and_fit(session: Session) -> None:
    session.classes.merge(session.classes[0], session.classes[2])
    session.refit()


def label_and_fit(session: Session) -> None:
    session.items.label([ask.item for ask in session.as_annotator("eve").ask(5)], session.classes[0])
    session.refit()


def test_a_reader_of_one_moment_sees_one_fit_and_no_round_after_it(
    start: Start, unknown: Pool, iris: Pool
) -> None:
    session = start(unknown, classifier=FAKE, policy="random", evaluation_share=0.0)
    answer(session, iris, 12)
    with session.log.snapshot():
        beside(session.refit)
        assert session.model is not None  # where the events are read after it, its round is among them
    with session.log.snapshot():
        model, rounds = session.model, session.rounds
        assert model is not None and [fit.number for fit in rounds] == [model.number]
        beside(lambda: label_and_fit(session))
        assert session.model is model and session.rounds == rounds and not session.stale
        label_and_fit(session)  # what the thread itself does it sees
        assert session.model is not model and session.model.number == session.rounds[-1].number == 2
    assert session.model.number == 2
    again = Session.open(session.id, store=session.store, pool=session.pool)
    with again.log.snapshot():  # also where nothing was taken up yet
        assert again.model is not None and again.model.number == 2


def test_nothing_is_fitted_within_a_moment_of_before(start: Start, unknown: Pool, iris: Pool) -> None:
    session = start(unknown, classifier=FAKE, policy="random", evaluation_share=0.0)
    answer(session, iris, 12)
    with session.log.snapshot():
        assert session.stale
        beside(session.refit)
        assert session.model is None and not session.rounds and session.stale
    assert session.model is not None


def test_the_machine_is_judged_by_the_classes_of_one_fit(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = start(classifier=FAKE, policy="random")
    truth = session.pool.truth
    assert truth is not None
    for item in session.pool.trainable[::3].tolist():
        session.items.label(item, session.pool.classes[int(truth[item])])
    session.refit()
    sure, wrong = session.checks.candidates().held_out
    interrupted(monkeypatch, FittedModel, "probabilities_at", lambda: merge_and_fit(session))
    again = session.checks.candidates().held_out
    assert len(session.rounds) == 2
    assert np.array_equal(sure, again[0]) and np.array_equal(wrong, again[1])


def test_a_label_that_is_taken_back_beside_a_look_at_the_finished_set_is_in_the_next(
    start: Start, unknown: Pool, iris: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = start(unknown, classifier=FAKE, policy="random", evaluation_share=0.0)
    answer(session, iris, 30)
    session.refit()
    finish = session.checks.start(0.3, 0.8)
    item = int(finish.frozen.items[0])
    session.items.label(item, session.classes[0])
    interrupted(monkeypatch, Checks, "candidates", session.undo)
    assert item not in session.checks.relabelled(finish)


def test_the_classes_to_confirm_are_measured_on_the_fit_that_takes_items_for_them(
    start: Start, unknown: Pool, iris: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = start(classifier=FAKE, policy="random")
    truth = session.pool.truth
    assert truth is not None
    for item in session.pool.trainable[::3].tolist():
        session.items.label(item, session.pool.classes[int(truth[item])])
    session.refit()
    classes = session.predictions.classes()
    interrupted(monkeypatch, FittedModel, "probabilities_kept", lambda: merge_and_fit(session))
    assert session.predictions.classes() == classes


def test_an_export_holds_what_the_fit_says_that_it_names(
    start: Start, unknown: Pool, iris: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = start(unknown, classifier=FAKE, policy="random", evaluation_share=0.0)
    answer(session, iris, 12)
    session.refit()
    columns = ("model", "model_labels", "confidence", "probabilities_now")
    rows = [[row[name] for name in columns] for row in label_table(session, "predictions")]
    monkeypatch.setattr(
        type(session.fits),
        "fitted_with",
        property(lambda fits: [beside(lambda: label_and_fit(session)), fits.published().chosen][1]),
    )
    again = [[row[name] for name in columns] for row in label_table(session, "predictions")]
    assert again == rows
