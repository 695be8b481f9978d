"""Questions of very large pools are chosen among some of the open items; what is older looks at all."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from tests.sessions.conftest import answer
from tests.sessions.fakes import FAKE
from workbench.app.serving import explanations
from workbench.errors import InputError
from workbench.pools.building import number_pool
from workbench.pools.pool import Pool
from workbench.sessions import RunSpec, Session, simulate
from workbench.sessions.drawing import answerable, diverse_items, drawn


def test_each_round_draws_other_items_and_the_same_ones_again() -> None:
    open_ = np.arange(100, 400)
    some = drawn(open_, 3, 5, 40)
    assert some is not None and some.size == 40 and np.isin(some, open_).all() and (np.diff(some) > 0).all()
    assert np.array_equal(some, drawn(open_, 3, 5, 40))
    for other in (drawn(open_, 3, 6, 40), drawn(open_, 4, 5, 40)):
        assert other is not None and not np.array_equal(some, other)
    assert drawn(open_, 3, 5, 0) is None and drawn(open_, 3, 5, 300) is None


def test_a_run_asks_the_best_of_what_is_drawn(iris: Pool) -> None:
    rounds = list(simulate(iris, FAKE, "margin", budget=12, batch=3, asked_among=20, seed=1))
    pool = iris.split(1, 0.2)
    asked = rounds[0].initial
    for one in rounds[:-1]:
        some = drawn(np.setdiff1d(answerable(pool, asked), asked), 1, one.number, 20)
        assert some is not None and np.isin(one.queried, some).all() and np.isfinite(one.utilities).all()
        asked = np.concatenate([asked, one.queried])
    assert len(set(asked.tolist())) == 15
    everything = [list(simulate(iris, FAKE, "margin", budget=4, asked_among=n)) for n in (0, 500)]
    assert [r.queried.tolist() for r in everything[0]] == [r.queried.tolist() for r in everything[1]]
    (one, *_) = simulate(iris, FAKE, "margin", budget=4, uniform_share=1.0, asked_among=20)
    assert one.uniform.size and np.isin(one.queried, pool.trainable).all()


@pytest.mark.parametrize("policy", ["margin", "expected-error-reduction"])
def test_the_default_model_answers_for_some_items(iris: Pool, policy: str) -> None:
    (first, *_) = simulate(iris, policy=policy, budget=2, batch=2, asked_among=100)
    pool = iris.split(0, 0.2)
    some = drawn(np.setdiff1d(answerable(pool, first.initial), first.initial), 0, 0, 100)
    assert some is not None and np.isin(first.queried, some).all() and len(set(first.queried.tolist())) == 2


def test_documents_say_it() -> None:
    for spec in (RunSpec("iris"), RunSpec("iris", asked_among=50)):
        assert RunSpec.from_json(spec.to_json()) == spec
    with pytest.raises(InputError, match="'asked_among' is -1"):
        RunSpec("iris", asked_among=-1)


def test_a_project_of_a_very_large_pool_says_how_many_it_looked_at(
    start: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "asked_among" not in start().settings
    opening = import_module("workbench.sessions.opening")
    monkeypatch.setattr(opening, "MANY", 100)
    monkeypatch.setattr(opening, "ASKED_AMONG", 25)
    monkeypatch.setattr(import_module("workbench.sessions.fitted_model"), "MANY", 100)
    session = start()
    assert session.settings["asked_among"] == 25
    answer(session, session.pool, 12)
    found = session.refit()
    model = session.model
    assert found is not None and model is not None and "probabilities" not in model.__dict__
    (ask,) = [one for one in session.ask(6) if one.role == "policy"][:1]
    open_ = np.setdiff1d(session.pool.trainable, model.items)
    some = drawn(open_, int(session.settings["seed"]), model.number, 25)
    assert some is not None and ask.item in some
    reason = explanations.why(session, ask)
    assert reason.utility == ask.utility and (reason.n_drawn, reason.n_open) == (25, open_.size)
    assert 1 <= reason.rank <= 25 and "probabilities" not in model.__dict__
    missed = next(int(item) for item in open_ if item not in some)
    other = explanations.why(session, replace(ask, item=missed))
    assert np.isfinite(other.utility) and 1 <= other.rank <= 26
    policy = str(session.settings["policy"])
    before = explanations.utilities_now(session, model, policy)
    session.tell(ask, session.classes[0])  # what is open by now is another set
    again = Session.open(session.id, store=session.store)
    assert again.model is not None and again.model.uid != model.uid
    after = explanations.utilities_now(again, again.model, policy)
    assert before[1] is not None and after[1] is not None
    np.testing.assert_array_equal(after[1], before[1])
    np.testing.assert_allclose(after[0], before[0])


def test_items_that_lie_apart_follow_those_spread_over_the_pool() -> None:
    X = np.vstack([np.random.default_rng(0).normal(size=(200, 2)), [[9.0, -9.0]]])
    pool = number_pool("apart", X, None, (), ("x", "z"))
    spread = diverse_items(pool, pool.trainable, 8, 0)
    longer = diverse_items(pool, pool.trainable, 8, 0, 5)
    assert longer[:8].tolist() == spread.tolist() and 200 not in spread and 200 in longer[8:]
    assert len(set(longer.tolist())) == 13
