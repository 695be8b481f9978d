"""Simulated runs: paired, repeatable, resumable."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from tests.sessions.fakes import FAKE, NearestMean
from workbench.errors import InputError
from workbench.pools import load_pool
from workbench.pools.pool import Pool
from workbench.sessions import Checkpoint, Round, RunSpec, labelled_at, simulate
from workbench.sessions.drawing import diverse_items, initial_items
from workbench.sessions.fitting import Turn, fit_measure_query
from workbench.sessions.simulate import drop_states


def rounds_of(pool: Pool, policy: object = "margin", **more: object) -> list[Round]:
    settings: dict[str, object] = {"budget": 12, "seed": 3}
    return list(simulate(pool, FAKE, policy, **(settings | more)))  # type: ignore[arg-type]


def same(a: Round, b: Round) -> bool:
    one, two = a.to_json(), b.to_json()
    one.pop("seconds"), two.pop("seconds")
    assert a.state is not None and b.state is not None
    return one == two and all(np.array_equal(a.state[k], b.state[k]) for k in a.state)


def test_a_run_asks_for_its_budget_and_ends_without_asking(iris: Pool) -> None:
    rounds = rounds_of(iris, budget=7, batch=3)
    assert [r.number for r in rounds] == [0, 1, 2, 3]
    assert [r.n_labelled for r in rounds] == [3, 6, 9, 10]
    assert [r.queried.size for r in rounds] == [3, 3, 1, 0]
    items, codes = labelled_at(rounds, 3)
    assert len(set(items.tolist())) == 10 and np.array_equal(codes, np.asarray(iris.truth)[items])
    assert rounds[0].initial.size == 3 and rounds[1].initial.size == 0
    assert all(np.isfinite(r.utilities).all() for r in rounds)


def test_measures_are_those_of_the_test_split(iris: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    split = iris.split(3)
    turns: list[Turn] = []
    module = import_module("workbench.sessions.simulate")  # the package's attribute is the function

    def recorded(*given: object, **named: object) -> Turn:
        turns.append(fit_measure_query(*given, **named))  # type: ignore[arg-type]
        return turns[-1]

    monkeypatch.setattr(module, "fit_measure_query", recorded)
    rounds = rounds_of(iris)
    assert split.test is not None and iris.truth is not None
    truth = iris.truth[split.test.test]
    for r, turn in zip(rounds, turns, strict=True):
        assert r.n_test == truth.size == 29  # two flowers are alike, and stay together
        p = np.asarray(turn.model.estimator.predict_proba(iris.features[split.test.test]))
        assert r.error == np.mean(p.argmax(axis=1) != truth)
        assert r.nll == pytest.approx(-np.log(p[np.arange(29), truth]).mean(), rel=1e-4)
        assert not set(labelled_at(rounds, r.number)[0].tolist()) & set(split.test.test.tolist())


def test_policies_are_paired_and_differ(iris: Pool) -> None:
    one, two = rounds_of(iris, "margin"), rounds_of(iris, "random")
    assert np.array_equal(one[0].initial, two[0].initial) and one[0].error == two[0].error
    assert labelled_at(one, 12)[0].tolist() != labelled_at(two, 12)[0].tolist()
    other = rounds_of(iris, "margin", seed=4)
    assert not np.array_equal(one[0].initial, other[0].initial)


def test_the_same_seed_gives_the_same_rounds(iris: Pool) -> None:
    for policy in ("margin", "random"):
        assert all(map(same, rounds_of(iris, policy, batch=2), rounds_of(iris, policy, batch=2)))


@pytest.mark.parametrize("stop", [1, 5, 12])
def test_a_resumed_run_gives_what_it_would_have_given(iris: Pool, stop: int) -> None:
    whole = rounds_of(iris, "random")
    begun = whole[:stop]
    state = begun[-1].state
    assert state is not None
    # as it comes back from where it was kept
    kept = [Round.from_json(r.to_json()) for r in begun]
    rest = rounds_of(iris, "random", progress=Checkpoint(kept, state))
    assert [r.number for r in rest] == list(range(stop, 13))
    assert all(map(same, rest, whole[stop:]))


@pytest.mark.parametrize("at", [0, 3, 6])
def test_fits_whose_posterior_was_not_kept_are_done_again(iris: Pool, at: int) -> None:
    whole = rounds_of(iris, "margin")
    state = whole[at].state
    assert state is not None
    kept = [Round.from_json(r.to_json()) for r in whole[:7]]
    rest = rounds_of(iris, "margin", progress=Checkpoint(kept, state, at))
    assert [r.number for r in rest] == list(range(7, 13))
    assert all(map(same, rest, whole[7:]))


def test_posteriors_are_kept_as_often_as_fits_are_dear(iris: Pool) -> None:
    whole = rounds_of(iris)

    def kept(seconds: float) -> list[int]:
        timed = (replace(r, seconds={"fit": seconds}) for r in whole)
        return [r.number for r in drop_states(iter(timed), every=1.0) if r.state is not None]

    assert kept(0.01) == [0, 12]
    assert kept(0.25) == [0, 4, 8, 12]
    assert kept(3.0) == list(range(13))
    assert all(map(same, drop_states(iter(whole), every=0.0), whole))


def test_a_finished_run_has_nothing_to_resume(iris: Pool) -> None:
    whole = rounds_of(iris)
    assert whole[-1].state is not None
    assert rounds_of(iris, progress=Checkpoint(whole, whole[-1].state)) == []


def test_each_round_starts_from_the_one_before(iris: Pool) -> None:
    """The fake's means move half of the way, so a warm fit is not a cold one."""
    warm, cold = rounds_of(iris), rounds_of(iris, options={"warm_start": False})
    assert same(warm[0], replace(cold[0], seconds=warm[0].seconds))
    assert warm[1].state is not None and cold[1].state is not None
    assert not np.array_equal(warm[1].state["means"], cold[1].state["means"])


def test_a_classifier_of_ones_own_as_an_object_and_a_policy_as_a_function(iris: Pool) -> None:
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Own(NearestMean, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        pass

    def last_first(belief: object, rng: object) -> object:
        return np.arange(150.0)

    rounds = list(simulate(iris, Own(), last_first, budget=3, seed=1))  # type: ignore[arg-type]
    trainable = iris.split(1).trainable.tolist()
    wanted = [i for i in reversed(trainable) if i not in rounds[0].initial][:3]
    assert [int(r.queried[0]) for r in rounds[:3]] == wanted


def test_the_budget_ends_with_the_pool(iris: Pool) -> None:
    rounds = rounds_of(iris, budget=500, batch=40)
    assert rounds[-1].n_labelled == 120


def test_items_without_truth_are_never_asked(iris: Pool) -> None:
    truth = np.array(iris.truth)
    truth[::3] = -1
    rounds = rounds_of(replace(iris, truth=truth), budget=200, batch=20)
    items, codes = labelled_at(rounds, rounds[-1].number)
    assert (codes >= 0).all() and (items % 3 > 0).all()
    assert rounds[-1].n_test == int((truth[iris.split(3).test.test] >= 0).sum()) or rounds[-1].n_test > 0  # type: ignore[union-attr]


def test_one_per_class_is_just_that(iris: Pool) -> None:
    pool = iris.split(0)
    items = initial_items(pool, "one-per-class", 0)
    assert np.asarray(iris.truth)[items].tolist() == [0, 1, 2]
    assert set(items.tolist()) <= set(pool.trainable.tolist())


@pytest.mark.parametrize(
    ("initial", "n"), [("random", 6), ("random:9", 9), ("diverse", 6), ("diverse:4", 4), ("random:5000", 119)]
)
def test_other_starts(iris: Pool, initial: str, n: int) -> None:
    pool = iris.split(0)
    items = initial_items(pool, initial, 5)
    assert len(set(items.tolist())) == n and set(items.tolist()) <= set(pool.trainable.tolist())
    assert items.tolist() == initial_items(pool, initial, 5).tolist()


def test_diverse_items_cover_the_pool(iris: Pool) -> None:
    spread = diverse_items(iris, np.arange(150), 6, 0)
    assert set(np.asarray(iris.truth)[spread].tolist()) == {0, 1, 2}
    X = iris.features

    def reach(items: object) -> float:
        return float(np.linalg.norm(X[:, None] - X[items][None], axis=2).min(axis=1).mean())  # type: ignore[index]

    rng = np.random.default_rng(0)
    assert reach(spread) < np.mean([reach(rng.choice(150, 6, replace=False)) for _ in range(20)])


def test_diverse_items_of_equal_rows(iris: Pool) -> None:
    pool = replace(iris, features=np.zeros((150, 4)))
    assert 1 <= diverse_items(pool, np.arange(150), 5, 0).size <= 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: rounds_of(replace(p, truth=None)), "no known classes, so no oracle can answer"),
        (lambda p: rounds_of(replace(p, truth=np.zeros(150, dtype=int))), "at least two"),
        (lambda p: rounds_of(p, budget=-1), "'budget' is -1: input should be greater than or equal to 0"),
        (lambda p: rounds_of(p, batch=0), "'batch' is 0: input should be greater than or equal to 1"),
        (lambda p: rounds_of(p, seed=-1), "'seed' is -1: input should be greater than or equal to 0"),
        (lambda p: rounds_of(p, seed=1.5), "'seed' is 1.5: input should be a valid integer"),
        (
            lambda p: rounds_of(p, measured_by=-1),
            "'measured_by' is -1: input should be greater than or equal",
        ),
        (lambda p: rounds_of(p, measured_by=1.5), "'measured_by' is 1.5: input should be a valid integer"),
        (
            lambda p: load_pool("poker", seed=-1),
            "Pool 'poker' cannot be read so: 'seed' is -1: input should be greater",
        ),
        (lambda p: p.split(-1), "seed of a split is a whole number from 0; got -1"),
        (lambda p: p.split(1.5), "seed of a split is a whole number from 0; got 1.5"),
        (lambda p: rounds_of(p, test_fraction=np.nan), "'test_fraction' is nan: input should be a finite"),
        (lambda p: rounds_of(p, bugdet=3), "no setting 'bugdet' .did you mean 'budget'"),
        (lambda p: rounds_of(p, initial=3), "a list of whole numbers; got 3"),
        (lambda p: rounds_of(p, ""), "no policy called ''. Known: "),
        (lambda p: RunSpec(policy=""), "'policy' is empty"),
        (lambda p: RunSpec(guess="names"), r"'guess' is 'names': give a list, such as \['names'\]"),  # type: ignore[arg-type]
        (lambda p: rounds_of(p, "nope"), "no policy called 'nope'"),
        (lambda p: rounds_of(p, initial="some"), "Unknown initial labels"),
        (lambda p: rounds_of(p, initial="random:0"), "at least 1"),
        (lambda p: rounds_of(p, options={"x": 1}), "no option 'x'"),
        (lambda p: list(simulate(p, "bayesian-svm-linear2")), "Did you mean 'bayesian-svm-linear'"),
        (lambda p: list(simulate(p, "large-margin-net")), "for images"),
        (lambda p: list(simulate(p, "svm-platt", "bald")), "needs latent functions"),
    ],
)
def test_what_cannot_be_run(iris: Pool, make: Callable[[Pool], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(iris)


def test_a_model_that_says_nan_is_an_error_that_names_the_item(iris: Pool) -> None:
    split = iris.split(0)
    bad = int(np.setdiff1d(split.trainable, initial_items(split, "one-per-class", 0))[50])

    class Lost(NearestMean):
        def predict_latent(self, X: object) -> object:  # type: ignore[override]
            found = super().predict_latent(X)
            if len(found.mean) == 150:
                found.mean[bad] = np.nan
            return found

        def predict_proba(self, X: object) -> object:
            return NearestMean.predict_proba(self, X) if len(X) < 150 else np.full((150, 3), 1 / 3)  # type: ignore[arg-type]

        def __sklearn_clone__(self) -> "Lost":
            return Lost(**self.get_params())

    with pytest.raises(InputError, match=f"item {bad} "):
        list(simulate(iris, Lost(), "variation-ratio", budget=2))


def test_a_spec_is_json_and_back() -> None:
    spec = RunSpec(
        "my.csv",
        target="label",
        pool_options={"delimiter": ";"},
        options={"n_inducing": 8},
        initial="random:4",
        batch=5,
    )
    assert RunSpec.from_json(spec.to_json()) == spec
    assert spec.n_rounds == 13
    for wrong, message in (
        ({"budgets": 3}, "no setting 'budgets'"),
        ({"budget": -3}, "budget"),
        ({"batch": 0}, "batch"),
        ({"seed": -1}, "seed"),
        ({"test_fraction": 0.0}, "test_fraction"),
        ({"options": {"x": object()}}, "numbers, texts"),
        ({"initial": "one-per-class:3"}, "Unknown initial"),
    ):
        with pytest.raises(InputError, match=message):
            RunSpec.from_json({**spec.to_json(), **wrong})


def test_a_pool_that_cannot_be_made_says_with_what() -> None:
    with pytest.raises(InputError, match="'three-gaussians'"):
        RunSpec("three-gaussians", pool_options={"noise": "abc"}).load_pool()
    with pytest.raises(InputError, match="no option"):
        RunSpec("iris", target="species").load_pool()


def test_a_round_is_json_and_back() -> None:
    r = Round(
        2, 12, queried=np.array([4]), labels=np.array([1]), utilities=np.array([np.nan]), seconds={"fit": 0.1}
    )
    back = Round.from_json(r.to_json())
    assert np.isnan(back.error) and np.isnan(back.utilities[0]) and back.queried.tolist() == [4]
    assert back.to_json() == r.to_json()
    with pytest.raises(InputError, match="not a saved round"):
        Round.from_json({"number": 1})


def test_a_share_of_the_questions_is_drawn_uniformly_whatever_the_policy(iris: Pool) -> None:
    plain = list(simulate(iris, FAKE, "margin", budget=30))
    mixed = list(simulate(iris, FAKE, "margin", budget=30, uniform_share=0.3))
    drawn = [bool(np.isnan(r.utilities).all()) for r in mixed if r.queried.size]
    assert 3 <= sum(drawn) <= 16 and len(drawn) == 30
    assert [r.uniform.size == 1 for r in mixed if r.queried.size] == drawn
    assert [Round.from_json(r.to_json()).uniform.tolist() for r in mixed] == [
        r.uniform.tolist() for r in mixed
    ]
    assert "uniform" not in plain[0].to_json()
    first = drawn.index(True)
    assert [r.queried.tolist() for r in plain[:first]] == [r.queried.tolist() for r in mixed[:first]]
    asked = np.concatenate([r.queried for r in mixed])
    assert len(set(asked.tolist())) == 30
    again = list(simulate(iris, FAKE, "margin", budget=30, uniform_share=0.3))
    assert [r.queried.tolist() for r in again] == [r.queried.tolist() for r in mixed]


def test_a_spec_keeps_its_share_and_reads_those_without() -> None:
    for spec in (RunSpec("iris"), RunSpec("iris", uniform_share=0.25)):
        assert RunSpec.from_json(spec.to_json()) == spec
    assert RunSpec.from_json({"pool": "iris", "policy": "entropy"}).uniform_share == 0
    for share in (-0.1, 2.0, float("nan")):
        with pytest.raises(InputError, match=r"'uniform_share' is .*: input should be"):
            RunSpec("iris", uniform_share=share)


def test_rounds_share_their_empty_arrays() -> None:
    plain, read = Round(3, 7), Round.from_json(Round(4, 8).to_json())
    assert plain.queried is read.queried and plain.initial is read.uniform and plain.queried.size == 0
    assert not plain.utilities.flags.writeable and not plain.queried.flags.writeable
