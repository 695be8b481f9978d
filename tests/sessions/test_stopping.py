"""Stopping advice: each rule on a history made for it; it advises and never stops."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from workbench.errors import InputError
from workbench.registry import CodeName
from workbench.sessions import Learner
from workbench.sessions.stopping import (
    STOPPING,
    Advice,
    History,
    Observation,
    advise,
    cohen_kappa,
    observe,
    replay,
    stop_set,
)


def history(
    changes: list[int], *, errors: list[float] | None = None, uncertainty: float = 0.3, n_test: int = 100
) -> list[Observation]:
    """Rounds in which so many of 200 watched items change class."""
    rng = np.random.default_rng(0)
    predicted = np.array(["a", "b", "c"])[rng.integers(3, size=200)]
    out = []
    for number, change in enumerate(changes):
        predicted = predicted.copy()
        predicted[:change] = np.where(predicted[:change] == "a", "b", "a")
        error = float("nan") if errors is None else errors[number]
        out.append(Observation(number, 10 + number, predicted, uncertainty / (1 + number), error, n_test))
    return out


def test_budget_counts_every_label() -> None:
    h = history([0] * 5)
    advice = advise(h, "budget", labels=13)
    assert advice.stop and advice.first == 3 and advice.values.tolist() == [3, 2, 1, 0, -1]
    assert not advise(h, "budget", labels=15).stop and "1 of 15" in advise(h, "budget", labels=15).reason


def test_overall_uncertainty() -> None:
    h = history([0] * 8, uncertainty=0.3)
    advice = advise(h, "overall-uncertainty", threshold=0.06)
    assert advice.first == 4 and advice.values[0] == 0.3


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


def test_kappa_is_cohens() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(4, size=300).astype(str), rng.integers(4, size=300).astype(str)
    b[:150] = a[:150]
    assert cohen_kappa(a, b) == pytest.approx(cohen_kappa_score(a, b))
    assert cohen_kappa(np.array(["x"] * 5), np.array(["x"] * 5)) == 1.0
    advice = advise(history([0, 60, 40, 0, 0, 0, 0]), "kappa")
    assert advice.first == 5 and advice.values[-1] == 1.0


def test_held_out_error_at_a_target_or_on_a_plain() -> None:
    falling = [0.5 - 0.02 * i for i in range(12)] + [0.27] * 12
    advice = advise(history([0] * 24, errors=falling), "held-out-error", rounds=5, gain=0.02)
    assert advice.first == 16  # the best of rounds 12 to 16 is no better than that of round 11
    assert advise(history([0] * 24, errors=falling), "held-out-error", target=0.3, rounds=50).first == 10
    few = advise(history([0] * 24, errors=falling, n_test=19), "held-out-error")
    assert not few.stop and "20 held-out items" in few.reason and np.isnan(few.values).all()


def own(h: History) -> Advice:
    return len(h) > 2, f"{len(h)} rounds"


def test_a_rule_of_ones_own() -> None:
    advice = advise(history([0] * 4), CodeName(f"{__name__}:own"))
    assert advice.stop and advice.first == 2 and advice.values.size == 0
    with pytest.raises(InputError, match=r"must answer \(stop, reason\)"):
        advise(history([0]), lambda h: True)  # type: ignore[arg-type, return-value]
    with pytest.raises(InputError, match=r"no stopping rule called 'kapa'.*Did you mean 'kappa'"):
        advise(history([0]), "kapa")
    with pytest.raises(InputError, match="cannot be made"):
        advise(history([0]), "kappa", rnds=3)


@pytest.mark.parametrize("name", list(STOPPING))
def test_no_rule_stumbles_over_the_first_rounds(name: str) -> None:
    assert advise([], name).stop is False
    one = [Observation(0, 3, np.empty(0, dtype="U1"), float("nan"))]
    assert advise(one, name).stop is False
    grown = [*one, Observation(1, 4, np.array(["a", "b"]), 0.4)]
    assert advise(grown, name).stop is False and len(advise(grown, name).values) == 2


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
    seen = observe(model, watched, error=0.1, n_test=30)
    assert seen.predicted.shape == watched.shape and set(seen.predicted) <= set(pool.classes)
    assert 0 <= seen.uncertainty < 1 and (seen.n_labelled, seen.error) == (3, 0.1)


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
        assert (one.error, one.n_test) == (r.error, r.n_test)


def test_a_rule_says_what_its_limit_is() -> None:
    h = history([0] * 3)
    limits = {name: advise(h, name).limit for name in STOPPING}
    assert limits == {
        "budget": 0.0,
        "overall-uncertainty": 0.05,
        "classification-change": 0.005,
        "kappa": 0.99,
        "held-out-error": None,
    }
