"""Many yes / no questions: they share what one of them has chosen."""

import numpy as np
import pytest

from tests.sessions.several import begun
from workbench.sessions import Session
from workbench.store import Store


@pytest.mark.parametrize("n", [40, pytest.param(200, marks=pytest.mark.slow)])  # alone: so many
def test_many_switches_are_answered_in_one_act(store, n):
    session = begun(store, [f"tag {i}" for i in range(n)])
    ask = session.queue.items()[0]
    assert len(ask.asks) == n
    assert session.tell(ask, {name: name.endswith("7") for name in ask.asks})
    assert sum(one.state.codes[ask.item] == 0 for one in session.questions.sessions()) == n // 10


SWITCHES = [f"over {i}" for i in range(6)]


def switched(store, questions=SWITCHES, upto=30, **more):
    """A project whose switches ask whether sums of two columns are positive, answered and fitted."""
    X = np.random.default_rng(1).normal(size=(80, 6))
    session = Session.create(
        X,
        questions=questions,
        store=store,
        name="many",
        annotator="ann",
        policy="margin",
        guess=(),
        evaluation_share=0.0,
        early_share=0.0,
        uniform_share=0.0,
        twins=False,
        **more,
    )
    answer(session, X, range(upto))
    return session, X


def answer(session, X, items):
    for item in items:
        for i, one in enumerate(session.questions.sessions()):
            one.items.label(item, "yes" if X[item, i] + X[item, (i + 1) % 6] > 0 else "no")
    session.questions.refit()


def test_many_switches_see_the_pool_as_one_of_them_chose(store):
    session, X = switched(store)
    models = [one.model for one in session.questions.sessions()]
    first = models[0].estimator
    assert len({id(model.latents) for model in models}) == 1
    for model in models[1:]:
        assert model.smoothing == models[0].smoothing and model.estimator.choices_ == first.choices_
        assert np.array_equal(model.estimator.geometry_.inducing, first.geometry_.inducing)
        assert model.estimator.kernel_.to_arrays().keys() == first.kernel_.to_arrays().keys()
    assert first.choice_.candidate.stretch == 0.0
    for i, model in enumerate(models):
        right = (model.probabilities.argmax(axis=1) == 0) == (X[:, i] + X[:, (i + 1) % 6] > 0)
        assert right[30:].mean() > 0.7
        assert np.allclose(model.probabilities, model.predict_proba(np.arange(80)), atol=1e-4)


def test_the_choice_is_made_again_once_and_survives_a_restart(store):
    session, X = switched(store)
    before = session.model.estimator.choice_.labels
    answer(session, X, range(30, 60))
    labels = [one.model.estimator.choice_.labels for one in session.questions.sessions()]
    assert before == 30 and labels == [60] * 6
    again = Session.open("many", store=store)
    for one, other in zip(session.questions.sessions(), again.questions.sessions(), strict=True):
        assert np.allclose(one.model.probabilities, other.model.probabilities, atol=1e-6)
    answer(again, X, range(60, 62))
    assert [one.model.estimator.choice_.labels for one in again.questions.sessions()] == [60] * 6


def test_few_switches_choose_for_themselves_as_one_alone_does(store, tmp_path):
    session, _ = switched(store, SWITCHES[:3])
    other = Store.open(tmp_path / "alone.sqlite")
    alone, _ = switched(other, SWITCHES[:1])
    assert np.array_equal(session.model.probabilities, alone.model.probabilities)
    assert session.question(SWITCHES[1]).model.latents is not session.model.latents
    other.close()
