"""Models that lean on their items' neighbours: chosen from the labels, carried on, saved and replayed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from workbench.classifiers import protocols
from workbench.errors import InputError
from workbench.exchange.bundles import read_bundle, write_run_bundle
from workbench.exchange.models import load_model
from workbench.pools import load_pool
from workbench.pools.neighbours.graph import STRENGTHS
from workbench.pools.pool import ArrayItems, RowNumbers
from workbench.sessions.learner import Learner
from workbench.sessions.simulate import Checkpoint, simulate, simulate_spec
from workbench.sessions.smoothing import (
    MANY,
    NeighbourhoodBuild,
    Smoothing,
    at_first,
    choose,
    in_turn,
    is_due,
)
from workbench.sessions.spec import RunSpec


@pytest.fixture(scope="module")
def digits():
    return load_pool("digits").split(0)


@pytest.fixture(scope="module")
def rounds(digits):
    return list(simulate(digits, budget=14, seed=0))


def test_the_default_leans_on_neighbours_where_the_labels_say_so(digits, rounds):
    assert rounds[0].neighbours == "none"  # not before two labels a class
    assert rounds[-1].neighbours in ("medium", "strong", "both")
    smoothing = Smoothing.of_state(rounds[-1].state)
    assert smoothing.labels == 20 and smoothing.losses[smoothing.strength] < smoothing.losses["none"]
    assert "loss on labels it had not seen" in str(smoothing) and "without that" in str(smoothing)
    alone = list(simulate(digits, budget=14, seed=0, options={"neighbours": "none"}))
    assert alone[-1].neighbours == "none" and rounds[-1].error < alone[-1].error
    assert alone[3].queried.tolist() == rounds[3].queried.tolist()  # nothing else differs before


def test_a_run_goes_on_to_the_same_bytes(digits, rounds):
    stopped = Checkpoint(rounds[:12], rounds[11].state)
    rest = list(simulate(digits, budget=14, seed=0, progress=stopped))
    assert [r.number for r in rest] == [12, 13, 14]
    for again, one in zip(rest, rounds[12:], strict=True):
        assert again.to_json() | {"seconds": {}} == one.to_json() | {"seconds": {}}
        assert all(np.array_equal(again.state[name], one.state[name]) for name in one.state)


def test_a_saved_model_brings_new_rows_to_its_neighbours(digits, rounds, tmp_path):
    spec = RunSpec(budget=14, seed=0)
    write_run_bundle(tmp_path / "run", spec, digits, rounds, rounds[-1].state)
    saved = load_model(tmp_path / "run")
    assert saved.view is not None and saved.view.name == rounds[-1].neighbours
    assert (tmp_path / "run" / "model" / "neighbours.npz").stat().st_size < 1.2 * saved.view.nbytes + 10_000
    model = Learner(digits, options=spec.options).model(
        rounds[-1].state, 14, digits.trainable[:10], np.arange(10)
    )
    test = digits.test.test
    rows = np.asarray(digits.features[test])
    p = saved.probabilities(saved.as_seen(rows))
    np.testing.assert_allclose(p, model.predict_proba(test), atol=1e-5)
    # of the graph's own items it says what the run said, but for float16
    mine = digits.trainable[:200]
    p = saved.probabilities(saved.as_seen(np.asarray(digits.features[mine])))
    np.testing.assert_allclose(p, model.predict_proba(mine), atol=0.02)
    assert read_bundle(tmp_path / "run").rounds[-1].state.keys() == rounds[-1].state.keys()
    (tmp_path / "run" / "model" / "neighbours.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match="damaged"):
        load_model(tmp_path / "run")


def test_a_model_that_leans_on_none_stores_none(tmp_path):
    spec = RunSpec(pool="iris", options={"neighbours": "none"}, budget=2)
    pool = spec.load_pool()
    rounds = list(simulate_spec(spec, pool))
    write_run_bundle(tmp_path / "run", spec, pool, rounds, rounds[-1].state)
    assert load_model(tmp_path / "run").view is None
    assert not (tmp_path / "run" / "model" / "neighbours.npz").exists()


@pytest.mark.parametrize("name", ["logistic-regression", "bayesian-svm", "logistic-softmax"])
def test_other_classifiers_see_smoothed_features_too(name):
    pool = load_pool("iris").split(0)
    items = np.concatenate([np.flatnonzero(pool.truth[pool.trainable] == c)[:6] for c in range(2)])
    items = pool.trainable[items]
    codes = np.asarray(pool.truth)[items]
    classes = ("a", "b")
    for strength in ("strong", "both"):
        learner = Learner(pool, name, {"neighbours": strength}, classes=classes)
        model = learner.fit(items, codes, number=0)
        assert model.smoothing.strength == strength and model.seen is not None
        width = pool.n_features * (2 if strength == "both" else 1)
        assert protocols.n_features_of(model.estimator) == width
        assert model.predict_proba(pool.test.test).shape == (len(pool.test.test), 2)
        again = learner.model(model.state, 0, items, codes)
        np.testing.assert_allclose(again.probabilities, model.probabilities, atol=1e-6)
    chosen = Learner(pool, name, {"neighbours": "auto"}, classes=classes).fit(items, codes, number=0)
    assert chosen.smoothing.labels == 12 and set(chosen.smoothing.losses) > {"none", "strong"}


def test_no_label_of_a_test_item_is_used(digits):
    wrong = np.array(digits.truth)
    wrong[digits.test.test] = (wrong[digits.test.test] + 3) % 10
    one = list(simulate(digits, budget=12, batch=4, seed=0))[-1]
    two = list(simulate(replace(digits, truth=wrong), budget=12, batch=4, seed=0))[-1]
    assert all(np.array_equal(one.state[name], two.state[name]) for name in one.state)


def test_a_tiny_pool_falls_to_none():
    pool = load_pool("iris")
    rows = np.array([0, 1, 50, 51, 100, 101, 60])
    few = replace(
        pool,
        features=pool.features[rows],
        truth=pool.truth[rows],
        fingerprints=pool.fingerprints[rows],
        items=pool.items,
        test=None,
    )
    for wish in ("auto", "strong"):
        learner = Learner(few, "large-margin", {"choice": "auto", "neighbours": wish})
        model = learner.fit(np.arange(6), few.truth[:6], number=0)
        assert model.smoothing == Smoothing() and model.seen is None


def test_a_strength_is_chosen_only_where_it_is_clearly_better():
    rng = np.random.default_rng(0)
    base = rng.normal(-1.0, 0.3, size=40)
    scores = {
        "none": base,
        "weak": base + 0.1 * (-1.0) ** np.arange(40),
        "strong": base + 0.5,
        "both": base * np.nan,
    }

    def judge(name: str) -> np.ndarray:
        if name == "medium":
            raise np.linalg.LinAlgError("singular")
        return scores[name]

    found = choose(Smoothing(), ("none", "weak", "medium", "strong", "both"), judge, 40)
    assert found.strength == "strong" and set(found.failed) == {"medium", "both"}
    assert choose(Smoothing(), ("none", "weak"), judge, 40).strength == "none"
    assert choose(Smoothing("strong"), ("none", "weak"), judge, 40).strength == "strong"
    assert found.looks == 1 and in_turn(Smoothing(), STRENGTHS, 20) == list(STRENGTHS)
    assert in_turn(Smoothing("both", looks=2), STRENGTHS, 60) == ["none", "both", "weak", "strong"]
    assert in_turn(Smoothing("both", looks=3), STRENGTHS, 60) == ["none", "both", "medium"]
    assert Smoothing.of_state(found.to_state()) == found and Smoothing.of_state({}) == Smoothing()


def test_with_many_labels_an_items_own_features_always_count():
    assert in_turn(Smoothing("strong", looks=5, behind={"both": 9}), STRENGTHS, MANY) == ["none", "both"]
    assert in_turn(Smoothing("strong"), STRENGTHS, MANY - 1)[:2] == ["none", "strong"]
    # of a very large pool there is nothing else to choose from
    assert in_turn(Smoothing("strong"), ("none", "strong"), MANY) == ["none", "strong"]
    asked: list[str] = []

    def judge(name: str) -> np.ndarray:
        asked.append(name)
        return {"none": -1.0, "both": -1.0, "strong": -0.5}[name] * np.ones(MANY)

    moved = choose(Smoothing("strong", 190), ["none", "both"], judge, MANY)
    assert moved.strength == "both" and "strong" not in asked
    assert choose(Smoothing("none", 190), ["none", "both"], judge, MANY).strength == "none"


def test_what_was_chosen_of_the_kernel_holds_when_the_strength_changes(digits):
    rng = np.random.default_rng(0)
    items = np.sort(rng.permutation(digits.trainable)[:34])
    codes = np.asarray(digits.truth)[items]
    alone = Learner(digits, options={"choice": "auto", "neighbours": "none"})
    state = None
    for n in (20, 30):
        state = alone.fit(items[:n], codes[:n], number=n, previous=state).state
    learner = Learner(digits, options={"choice": "auto"})
    model = learner.fit(items, codes, number=34, previous=state)
    assert model.smoothing.strength != "none" and model.smoothing.labels == 34
    # the look at strengths fitted the chosen kernel on these features, and the fit goes on from that
    assert [one.labels for one in model.estimator.choices_] == [20, 30]
    again = learner.fit(items, codes, number=35, previous=model.state)
    # it goes on to within the tolerance, which one item on an edge between classes may feel
    assert np.mean(again.probabilities.argmax(axis=1) != model.probabilities.argmax(axis=1)) < 0.005
    assert np.abs(again.probabilities - model.probabilities).max() < 0.05
    fresh = Learner(digits, options={"choice": "auto", "neighbours": model.smoothing.strength})
    other = fresh.fit(items, codes, number=34)
    test = digits.test.test
    wrong = [np.mean(m.predict_proba(test).argmax(axis=1) != digits.truth[test]) for m in (model, other)]
    assert wrong[0] < wrong[1] + 0.05


def test_strengths_far_behind_wait_and_looks_lie_apart():
    base = np.random.default_rng(0).normal(-0.3, 0.1, size=40)
    near = base + 0.1 * (-1.0) ** np.arange(40)
    scores = {"none": base, "weak": base - 1.0, "medium": base - 1.0, "strong": near, "both": base}
    smoothing = Smoothing()
    for labels in (20, 32, 42):
        assert "weak" in in_turn(smoothing, STRENGTHS, labels)
        smoothing = choose(
            smoothing, in_turn(smoothing, STRENGTHS, labels), lambda name: scores[name], labels
        )
    assert (
        smoothing.behind == {"weak": 3, "medium": 3} and Smoothing.of_state(smoothing.to_state()) == smoothing
    )
    assert in_turn(smoothing, STRENGTHS, 45) == ["none", "strong", "both"]
    assert in_turn(replace(smoothing, looks=4), STRENGTHS, 45) == list(STRENGTHS)
    scores["weak"] = near
    again = choose(smoothing, STRENGTHS, lambda name: scores[name], 52)
    assert again.behind == {"medium": 4}
    assert (
        is_due(20, 10, Smoothing())
        and not is_due(29, 10, Smoothing(labels=20))
        and is_due(30, 10, Smoothing(labels=20))
    )
    assert not is_due(71, 10, Smoothing(labels=52)) and is_due(72, 10, Smoothing(labels=52))
    # where the geometry is looked at in the same round this one waits, but not for ever
    assert not is_due(30, 10, Smoothing(labels=20), looked=20) and is_due(
        31, 10, Smoothing(labels=20), looked=30
    )
    assert is_due(33, 10, Smoothing(labels=20), looked=20)


def test_until_the_graph_is_there_the_choice_is_among_what_exists(monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBENCH_FEATURES", str(tmp_path))
    monkeypatch.setattr("workbench.sessions.smoothing.AT_ONCE", 10)
    pool = load_pool("digits").split(0)
    items = np.concatenate([pool.trainable[pool.truth[pool.trainable] == c][:3] for c in range(10)])
    codes = np.asarray(pool.truth)[items]
    learner = Learner(
        pool, options={"choice": "auto"}, making=NeighbourhoodBuild(Learner(pool).neighbourhood)
    )
    assert learner._making.ready() is False
    learner._making.wait()
    assert learner._making.fraction > 0 and not learner._making.problem
    model = learner.fit(items, codes, number=0)
    assert model.smoothing.labels == 30
    monkeypatch.setenv("WORKBENCH_FEATURES", str(tmp_path / "other"))  # where nothing is kept yet
    ended = NeighbourhoodBuild(Learner(pool).neighbourhood)
    ended.cancel()
    assert not ended.ready()
    ended.wait()
    assert ended.problem == "cancelled" and not ended.ready()
    alone = Learner(pool, options={"choice": "auto"}, making=ended).fit(items, codes, number=0)
    assert alone.smoothing == Smoothing()


_ENDS_EARLY = """
from workbench.sessions import smoothing
from workbench.progress import tell

class Endless:
    def is_kept(self):
        return False

    def __len__(self):
        return smoothing.AT_ONCE + 1

    def make(self):
        try:
            while True:
                tell(0.5, "")
        finally:
            print("the graph was left in peace")

smoothing.NeighbourhoodBuild(Endless()).ready()
"""


def test_a_program_that_ends_lets_the_graph_come_to_its_next_step():
    # a thread that is cut short in a library's C++ takes the program down with "exception not rethrown"
    ended = subprocess.run([sys.executable, "-c", _ENDS_EARLY], capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout) == (0, "the graph was left in peace\n"), ended.stderr


def _noisy_units(rows=240):
    """A pool of unit rows around two centres, their classes, and one item of each."""
    rng = np.random.default_rng(0)
    y = np.arange(rows) % 2
    X = rng.normal(size=(2, 20))[y] + 1.6 * rng.normal(size=(rows, 20))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return replace(_of(X, y), common_scale=True), y, np.array([0, 1])


def test_learnt_features_lean_on_neighbours_before_labels_can_choose():
    pool, y, first = _noisy_units()
    learner = Learner(pool, options={"choice": "auto"}, classes=("a", "b"))
    model = learner.fit(first, y[first], number=0)
    assert model.smoothing == Smoothing("strong") and str(model.smoothing).endswith("strongly")
    alone = Learner(pool, options={"choice": "auto", "neighbours": "none"}, classes=("a", "b"))
    without = alone.fit(first, y[first], number=0)
    wrong = [np.mean(m.probabilities.argmax(axis=1) != y) for m in (model, without)]
    assert wrong[0] < wrong[1] - 0.1
    # it is carried on until labels choose
    again = learner.fit(np.arange(9), y[:9], number=1, previous=model.state)
    assert again.smoothing == Smoothing("strong")
    chosen = learner.fit(np.arange(10), y[:10], number=2, previous=again.state)
    assert chosen.smoothing.labels == 10 and "none" in chosen.smoothing.losses
    # of very many classes there are many labels before that, and own features count
    assert at_first(49, STRENGTHS) == "strong" and at_first(50, STRENGTHS) == "both"
    assert at_first(50, ("none", "strong")) == "strong"


def test_only_learnt_features_do_and_only_where_nobody_said_otherwise():
    pool, y, first = _noisy_units()

    def strength(pool, codes=y[first], **options):
        learner = Learner(pool, options={"choice": "auto"} | options, classes=("a", "b"))
        return learner.fit(first, codes, number=0).smoothing

    assert strength(pool).strength == "strong"
    assert strength(pool, neighbours="weak").strength == "weak"
    longer = _of(5.0 * np.asarray(pool.features), y)
    for other in (replace(longer, common_scale=True), replace(pool, common_scale=False)):
        assert strength(other) == Smoothing()
    assert strength(pool, codes=np.zeros(2, np.int64)) == Smoothing(), "one class is no boundary"
    assert Learner(pool, options={"choice": "fixed"}).neighbours == "none"


def test_bad_wishes_are_said(digits):
    with pytest.raises(InputError, match="neighbours must be one of"):
        Learner(digits, "large-margin", {"neighbours": "very"})
    with pytest.raises(InputError, match="Set neighbours to none"):
        Learner(digits, "large-margin-net", {"neighbours": "strong"})


def _of(X, y):
    iris = load_pool("iris")
    names = tuple(f"x{i}" for i in range(X.shape[1]))
    return replace(
        iris,
        features=X,
        truth=y,
        items=ArrayItems(RowNumbers(len(X)), X, names),
        test=None,
        fingerprints=np.arange(len(X), dtype=np.uint64),
    )


@pytest.mark.parametrize("wish", ["auto", "strong", "both"])
def test_copies_a_constant_column_and_a_far_cluster_make_a_model_all_the_same(wish, recwarn):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = rng.normal(size=(120, 4)) + 3.0 * rng.normal(size=(3, 4))[y]
    X[:45] = X[y[:45]]  # copies: distances of 0
    X[:, 2] = 7.0
    X[-9:] += 1e6
    pool = _of(X, y)
    learner = Learner(pool, "large-margin", {"choice": "auto", "neighbours": wish})
    model = learner.fit(np.arange(48), y[:48], number=0)
    assert np.isfinite(model.probabilities).all() and np.isfinite(list(model.smoothing.losses.values())).all()
    assert model.smoothing.strength in STRENGTHS and not model.smoothing.failed
    assert not [one for one in recwarn if issubclass(one.category, RuntimeWarning)]  # no division by 0


@pytest.mark.parametrize("wish", ["auto", "strong"])
def test_where_all_items_are_equal_the_choice_falls_to_none(wish):
    y = np.arange(90) % 3
    pool = _of(np.ones((90, 4)), y)
    learner = Learner(pool, "large-margin", {"choice": "auto", "neighbours": wish})
    model = learner.fit(np.arange(30), y[:30], number=0)
    assert model.smoothing == Smoothing() and model.seen is None and np.isfinite(model.probabilities).all()


def test_features_that_are_not_finite_are_refused_before_there_is_a_graph():
    X = np.random.default_rng(0).normal(size=(80, 3))
    X[4, 1] = np.nan
    with pytest.raises(InputError, match="holds nan"):
        load_pool(X)
