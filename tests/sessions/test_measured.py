"""Large test splits are measured on a sample, always the same one; what is older is measured as it was."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from tests.sessions.conftest import answer
from tests.sessions.fakes import FAKE
from workbench.errors import InputError
from workbench.exchange.bundles import read_bundle, write_run_bundle
from workbench.pools import load_pool
from workbench.pools.pool import Pool
from workbench.sessions import RunSpec, Session, simulate
from workbench.sessions import fitted_model as latents_module
from workbench.sessions.learner import Learner
from workbench.sessions.measure import measured_items
from workbench.sessions.spec import MEASURED
from workbench.studies.study import StudySpec, study_from


def test_the_sample_is_a_function_of_items_seed_and_size() -> None:
    items = np.arange(100, 400)
    some = measured_items(items, 3, 40)
    assert some.size == 40 and np.isin(some, items).all() and (np.diff(some) > 0).all()
    assert np.array_equal(some, measured_items(items, 3, 40))
    assert not np.array_equal(some, measured_items(items, 4, 40))
    assert measured_items(items, 3, 0) is items and measured_items(items, 3, 300) is items


def test_runs_are_measured_on_the_same_sample_whatever_the_policy(iris: Pool, tmp_path: Path) -> None:
    of = {p: list(simulate(iris, FAKE, p, budget=3, measured=12)) for p in ("margin", "random")}
    assert {r.n_test for rounds in of.values() for r in rounds} == {12}
    assert of["margin"][0].nll == of["random"][0].nll
    everything = list(simulate(iris, FAKE, "margin", budget=3, measured=0))
    assert {r.n_test for r in everything} == {30}
    assert [r.queried.tolist() for r in everything] == [r.queried.tolist() for r in of["margin"]]
    spec = RunSpec("iris", classifier=FAKE, budget=3, measured=12)
    state = of["margin"][-1].state
    assert state is not None
    write_run_bundle(tmp_path / "run", spec, spec.load_pool(), of["margin"], state)
    bundle = read_bundle(tmp_path / "run", trust_code=True)
    assert [r.n_test for r in bundle.rounds] == [12] * 4 and bundle.spec == spec


def test_a_document_that_does_not_say_means_all_test_items() -> None:
    for spec in (RunSpec("iris"), RunSpec("iris", measured=MEASURED)):
        assert RunSpec.from_json(spec.to_json()) == spec
    assert RunSpec.from_json({"pool": "iris"}).measured == 0
    for study in (StudySpec("a"), StudySpec("a", measured=50)):
        assert study_from(study.to_json()) == study
        assert {run.measured for run in study.runs()} == {study.measured}
    with pytest.raises(InputError, match="'measured' is -1"):
        RunSpec("iris", measured=-1)


def test_a_new_project_of_a_large_pool_says_what_it_is_measured_on(
    start: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = start()
    assert "measured" not in before.settings
    monkeypatch.setattr(import_module("workbench.sessions.opening"), "MEASURED", 20)
    session = start()
    assert session.settings["measured"] == 20
    for one in (before, session):
        answer(one, one.pool, 12)
        assert one.refit() is not None
    assert [one.rounds[-1].n_test for one in (before, session)] == [30, 20]
    assert set(session.rounds[-1].signs) >= {"uncertainty"}
    items, _ = session.fits.held_out()
    test = session.pool.test
    assert test is not None and items.size == 20 and np.isin(items, test.test).all()
    assert session.predictions.evaluation.where == "20 of 30 items of the test split"
    assert before.predictions.evaluation.where == "30 items of the test split"
    assert session.predictions.evaluation.error == session.rounds[-1].error


@pytest.mark.parametrize("n", [60, 400])  # the second with the mean's own points
def test_a_large_pool_is_kept_in_less_memory_and_says_the_same(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latents_module, "CACHED_BYTES", 1000)
    pool = load_pool("overlapping", n_items=2000)
    assert pool.truth is not None
    items = np.random.default_rng(0).permutation(len(pool))[:n]
    large, little = (Learner(pool, "large-margin", seed=0, cached=c) for c in (10**8, None))
    expected = little.fit(items, pool.truth[items], number=0)
    assert little.latents.of(expected.estimator) is None
    exact = expected.estimator.predict_latent(pool.features)
    assert np.array_equal(expected.latent_mean, exact.mean)
    model = large.fit(items, pool.truth[items], number=0)
    kept = large.latents.of(model.estimator)
    assert kept is not None and kept.mean.dtype == np.float32
    mean = model.latent_mean
    assert mean is not None and np.abs(mean - exact.mean).max() < 1e-3
