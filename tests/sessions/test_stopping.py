"""Stopping advice: each rule on a history made for it; it advises and never stops."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.registry import CodeName
from workbench.sessions import Learner
from workbench.sessions.measure import signs_of
from workbench.sessions.stopping import (
    STOPPING,
    Advice,
    History,
    Observation,
    advise,
    observe,
    replay,
    stop_set,
)


def history(changes: list[int]) -> list[Observation]:
    """Rounds in which so many of 200 watched items change class."""
    rng = np.random.default_rng(0)
    predicted = np.array(["a", "b", "c"])[rng.integers(3, size=200)]
    out = []
    for number, change in enumerate(changes):
        predicted = predicted.copy()
        predicted[:change] = np.where(predicted[:change] == "a", "b", "a")
        out.append(Observation(number, 10 + number, predicted))
    return out


def test_changed_predictions_must_stay_few_for_some_rounds() -> None:
    h = history([0, 20, 20, 1, 0, 30, 1, 0, 1])
    advice = advise(h, "classification-change", share=0.005, rounds=3)
    assert np.isnan(advice.values[0]) and advice.values[1:].tolist() == [
        0.1,
        0.1,
        0.005,
        0,
        0.15,
        0.005,
        0,
        0.005,
    ]
    assert advice.first == 8 and "3 rounds" in advice.reason
    assert advise(h[:3], "classification-change", rounds=3).reason.startswith("Fewer")


def test_a_model_that_names_one_class_for_everything_is_never_told_to_stop() -> None:
    same = [Observation(i, 2 + i, np.array(["a"] * 200)) for i in range(30)]
    advice = advise(same, "classification-change")
    assert not advice.stop and advice.first is None and "more than one class" in advice.reason
    some = [Observation(30 + i, 32 + i, np.array(["a"] * 150 + ["b"] * 50)) for i in range(7)]
    later = advise([*same, *some], "classification-change")
    assert later.stop and later.first == 35, "five rounds after the first change"


def test_the_line_under_the_desk_does_not_count_rounds_of_one_class() -> None:
    def model(*codes: int) -> Any:
        return SimpleNamespace(
            probabilities=np.eye(2)[list(codes)],
            classes=("a", "b"),
            estimator=None,
            in_time=lambda items: items,
        )

    assert "changed" not in signs_of(model(0, 0, 0), model(0, 0, 0))
    assert signs_of(model(0, 1, 0), model(0, 0, 0))["changed"] == pytest.approx(1 / 3)


def own(h: History) -> Advice:
    return len(h) > 2, f"{len(h)} rounds"


def test_a_rule_of_ones_own() -> None:
    advice = advise(history([0] * 4), CodeName(f"{__name__}:own"))
    assert advice.stop and advice.first == 2 and advice.values.size == 0
    with pytest.raises(InputError, match=r"must answer \(stop, reason\)"):
        advise(history([0]), lambda h: True)  # type: ignore[arg-type, return-value]
    with pytest.raises(InputError, match=r"no stopping rule called 'clasification-change'.*Did you mean"):
        advise(history([0]), "clasification-change")
    with pytest.raises(InputError, match="cannot be made"):
        advise(history([0]), "classification-change", rnds=3)


def test_the_rule_does_not_stumble_over_the_first_rounds() -> None:
    [name] = STOPPING
    assert advise([], name).stop is False
    one = [Observation(0, 3, np.empty(0, dtype="U1"))]
    assert advise(one, name).stop is False
    grown = [*one, Observation(1, 4, np.array(["a", "b"]))]
    assert advise(grown, name).stop is False and len(advise(grown, name).values) == 2
    assert advise(grown, name).limit == 0.005


def test_what_a_model_says_of_the_watched_items() -> None:
    from tests.sessions.fakes import FAKE
    from workbench.pools import load_pool

    pool = load_pool("iris").split(0)
    assert pool.test is not None and pool.truth is not None
    watched = stop_set(len(pool), 0, pool.test.test)
    assert watched.size == pool.test.train.size and stop_set(5000, 1).size == 1000
    assert (stop_set(5000, 1) == stop_set(5000, 1)).all() and (stop_set(5000, 1) != stop_set(5000, 2)).any()
    items = pool.trainable[[0, 45, 90]]
    model = Learner(pool, FAKE).fit(items, np.asarray(pool.truth)[items], number=0)
    seen = observe(model, watched)
    assert seen.predicted.shape == watched.shape and set(seen.predicted) <= set(pool.classes)
    assert seen.n_labelled == 3


def test_a_replayed_run_is_seen_as_it_was() -> None:
    from tests.sessions.fakes import FAKE
    from workbench.sessions import RunSpec, simulate

    spec = RunSpec("iris", classifier=FAKE, policy="margin", budget=6)
    pool = spec.load_pool()
    assert pool.test is not None
    rounds = list(simulate(pool, FAKE, "margin", budget=6))
    watched = stop_set(len(pool), 0, pool.test.test)
    learner = Learner(pool, FAKE)
    seen = list(replay(spec, pool, rounds))
    assert [o.n_labelled for o in seen] == [r.n_labelled for r in rounds]
    for one, r in zip(seen, rounds, strict=True):
        assert r.state is not None
        as_it_was = learner.model(r.state, r.number, np.empty(0), np.empty(0))
        assert (one.predicted == observe(as_it_was, watched).predicted).all()


def test_every_beginning_of_a_long_history_costs_its_last_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.sessions import stopping

    compared, changed = [], stopping._changed
    monkeypatch.setattr(stopping, "_changed", lambda *pair: compared.append(0) or changed(*pair))
    rounds = 1_500
    assert advise(history([30] * rounds), "classification-change").first is None
    assert len(compared) <= 6 * rounds
