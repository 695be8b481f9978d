"""Numbers that pages compute about one model."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.sessions.fakes import FAKE
from workbench.arrays import Ints
from workbench.errors import InputError
from workbench.pools import load_pool
from workbench.pools.pool import Pool
from workbench.sessions import Round, RunSpec, insight
from workbench.sessions.fitted_model import FittedModel
from workbench.sessions.learner import Learner
from workbench.studies import run

SPEC = RunSpec("three-gaussians", pool_options={"n_items": 200}, classifier=FAKE, policy="margin", budget=10)


@pytest.fixture(scope="module")
def pool() -> Pool:
    return SPEC.load_pool()


@pytest.fixture(scope="module")
def rounds(pool: Pool) -> list[Round]:
    return run(SPEC, pool=pool).rounds


@pytest.fixture(scope="module")
def model(pool: Pool, rounds: list[Round]) -> FittedModel:
    return insight.run_model(SPEC, pool, rounds, 10)


def test_the_model_of_a_round_is_the_one_that_was_measured(pool: Pool, rounds: list[Round]) -> None:
    for number in (0, 10):
        found = insight.run_model(SPEC, pool, rounds, number)
        assert found.n_labelled == rounds[number].n_labelled
        assert pool.test is not None and pool.truth is not None
        p = found.probabilities[pool.test.test]
        assert np.mean(p.argmax(axis=1) != pool.truth[pool.test.test]) == rounds[number].error
    cold = insight.run_model(SPEC, pool, [replace(r, state=None) for r in rounds], 4)
    assert cold.n_labelled == 7
    with pytest.raises(InputError, match="no round 11"):
        insight.run_model(SPEC, pool, rounds, 11)


def test_why_ranks_what_the_policy_would_ask_first(model: FittedModel) -> None:
    askable = model.belief().askable
    values = insight.measure(model, "margin")
    best = int(askable[np.argmax(values[askable])])
    said = insight.why(model, best, "margin")
    assert said.rank == 1 and said.n_ranked == askable.size and said.utility == values[best]
    # another item is first once that one is closed
    second = insight.why(model, best, "margin", closed=np.array([best]))
    assert second.rank == 0 and second.n_ranked == askable.size - 1


def test_neighbours_are_labelled_and_near(model: FittedModel, pool: Pool) -> None:
    item = int(pool.trainable[0])
    X = model.scaled
    places, found = insight.nearest_among(X, model.items, item, 4)
    distances = {int(i): float(np.linalg.norm(X[i] - X[item])) for i in model.items if i != item}
    assert found.tolist() == sorted(distances.values())[:4]
    assert [distances[int(i)] for i in model.items[places]] == found.tolist()
    assert 0 not in insight.nearest_among(X, model.items, int(model.items[0]), 99)[0]


def test_a_selector_has_no_utilities_but_the_rest_holds(model: FittedModel, pool: Pool) -> None:
    said = insight.why(model, int(pool.trainable[0]), "k-means")
    assert np.isnan(said.utility) and said.rank == 0


def test_maps_hold_every_item_or_an_even_sample_with_the_labelled(model: FittedModel) -> None:
    whole = insight.pool_map(model, "margin")
    assert whole.items.size == 200 and whole.plane.own and np.isfinite(whole.values).all()
    assert (whole.labels >= 0).sum() == model.n_labelled and whole.test.sum() == model.pool.test.test.size  # type: ignore[union-attr]
    part = insight.pool_map(model, "margin", limit=50)
    assert set(model.items.tolist()) <= set(part.items.tolist()) and part.items.size <= 50 + model.n_labelled
    np.testing.assert_allclose(part.values, whole.values[part.items], rtol=1e-9)


def test_measures_by_name(model: FittedModel) -> None:
    names = insight.measures_of(model)
    assert {"variation-ratio", "entropy", "margin"} <= set(names) and "random" not in names
    for name in names:
        assert insight.measure(model, name).shape == (200,)
    of_class = insight.measure(model, f"variance:{model.classes[1]}")
    assert model.latent is not None and np.array_equal(of_class, model.latent.variance[:, 1])
    with pytest.raises(InputError):
        insight.measure(model, "variance:nobody")


def test_regions_are_the_models_predictions(model: FittedModel) -> None:
    found = insight.decision_regions(model, size=15)
    assert found.codes.shape == (15, 15) and found.probabilities.shape == (15, 15, 3)
    there = np.array([[found.x[4], found.y[9]]])
    p = model.estimator.predict_proba(there)[0]
    assert found.codes[9, 4] == p.argmax() and found.confidence[9, 4] == pytest.approx(p.max())


def test_regions_need_two_features() -> None:
    spec = RunSpec("iris", classifier=FAKE, policy="margin", budget=1)
    pool = spec.load_pool()
    flat = insight.run_model(spec, pool, run(spec, pool=pool).rounds, 1)
    with pytest.raises(InputError, match="two features; 'iris' has 4"):
        insight.decision_regions(flat)
    assert not insight.pool_map(flat, "margin").plane.own


def test_calibration_is_measured_on_the_test_split_or_what_is_given(model: FittedModel, pool: Pool) -> None:
    assert pool.test is not None and pool.truth is not None
    found = insight.calibration(model, n_bins=5)
    assert found.n == pool.test.test.size == found.table.count.sum()
    hits = found.probabilities.argmax(axis=1) == found.truth
    weighted = np.nansum(found.table.count * found.table.accuracy) / found.n
    assert weighted == pytest.approx(hits.mean())
    some = pool.test.test[:7]
    assert insight.calibration(model, held_out=(some, pool.truth[some])).n == 7
    one = insight.calibration(model, class_name=pool.classes[0])
    assert one.table.count.sum() == found.n
    nobody = replace(model, pool=replace(load_pool("iris"), truth=None))
    with pytest.raises(InputError, match="no test labels"):
        insight.calibration(nobody)
    with pytest.raises(InputError, match="nothing to measure"):
        insight.calibration(model, held_out=(some[:0], some[:0]))


def test_readings_of_the_latents_differ_as_their_definitions_say() -> None:
    spec = RunSpec("wine", budget=3, seed=1)
    pool = spec.load_pool()
    model = insight.run_model(spec, pool, run(spec, pool=pool).rounds, 3)
    assert pool.test is not None and model.latent is not None
    items = pool.test.test
    assert list(insight.probability_versions(model)) == ["own", "argmax", "plain"]
    own, plain, argmax = (insight.probabilities_as(model, v, items) for v in ("own", "plain", "argmax"))
    assert np.array_equal(own, model.probabilities[items])
    sharpened = plain**model.estimator.beta_
    assert np.allclose(sharpened / sharpened.sum(axis=1, keepdims=True), own, atol=1e-9)
    rng = np.random.default_rng(0)
    draws = (
        rng.normal(size=(20_000, 3)) * np.sqrt(model.latent.variance[items[0]]) + model.latent.mean[items[0]]
    )
    assert np.allclose(np.bincount(draws.argmax(axis=1), minlength=3) / 20_000, argmax[0], atol=0.02)
    with pytest.raises(InputError, match="cannot be read"):
        insight.probabilities_as(model, "tea-leaves", items)


def test_cross_validation_predicts_each_label_by_a_model_that_did_not_see_it(
    model: FittedModel, pool: Pool
) -> None:
    seen: list[set[int]] = []

    class Watched(Learner):
        def fit(self, items: Ints, codes: Ints, **more: Any) -> FittedModel:
            seen.append(set(items.tolist()))
            return super().fit(items, codes, **more)

    rng = np.random.default_rng(2)
    items = rng.choice(pool.trainable, 25, replace=False)
    assert pool.truth is not None
    trained = Learner(pool, FAKE).fit(items, pool.truth[items], number=0)
    found, codes, p = insight.cross_validated(trained, Watched(pool, FAKE))
    assert np.array_equal(found, items) and np.array_equal(codes, pool.truth[items])
    assert np.allclose(p.sum(axis=1), 1) and len(seen) == 5
    left_out = [set(items.tolist()) - part for part in seen]
    assert set().union(*left_out) == set(items.tolist()) and sum(map(len, left_out)) == 25
    few = Learner(pool, FAKE).fit(items[:2], np.array([0, 1]), number=0)
    with pytest.raises(InputError, match="two labels"):
        insight.cross_validated(few, Learner(pool, FAKE))
