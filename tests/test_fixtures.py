"""What version 0.1.0 wrote opens, predicts the same and goes on."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from workbench.classifiers import CLASSIFIERS
from workbench.exchange import load_model, read_bundle
from workbench.pools import load_pool
from workbench.sessions import ArrayOracle, RunSpec, Session
from workbench.store import Store
from workbench.studies import StudySpec, run, run_study

OLD = Path(__file__).resolve().parent / "fixtures" / "v010"
EXPECTED = json.loads((OLD / "expected.json").read_text(encoding="utf-8"))
OPTIONS = {"n_inducing": 16, "choice": "fixed"}  # what documents of that version mean


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    shutil.copy(OLD / "workbench.sqlite", tmp_path / "workbench.sqlite")
    opened = Store.open(tmp_path / "workbench.sqlite")
    yield opened
    opened.close()


def test_an_old_project_opens_predicts_the_same_and_goes_on(store: Store) -> None:
    old = EXPECTED["project"]
    session = Session.open(old["id"], store=store, annotator="ann")
    assert session.project.name == old["name"]
    assert list(session.classes) == old["classes"]
    assert {str(item): code for item, code in session.state.codes.items()} == old["labels"]
    assert [r.number for r in session.rounds] == old["rounds"]
    np.testing.assert_allclose([r.error for r in session.rounds], old["errors"], atol=1e-9)
    assert session.model is not None
    np.testing.assert_allclose(session.model.probabilities[:10], old["probabilities"], atol=1e-6)
    before = len(session.state.codes)
    oracle = ArrayOracle(session.pool)
    names = {"setosa": "bristle"}
    session.step(lambda item: names.get(oracle(item), oracle(item)))
    assert len(session.state.codes) == before + 1
    assert session.undo() is not None
    assert len(session.state.codes) == before


def test_another_old_project_predicts_the_same(store: Store) -> None:
    old = EXPECTED["second"]
    session = Session.open(old["id"], store=store, annotator="ann")
    assert {str(item): code for item, code in session.state.codes.items()} == old["labels"]
    assert session.model is not None
    np.testing.assert_allclose(session.model.probabilities[:10], old["probabilities"], atol=1e-6)


def test_old_runs_of_the_store_are_read_and_gone_on_with(store: Store) -> None:
    found = {record.id: record for record in store.runs()}
    old = EXPECTED["runs"]
    assert found[old["finished"]].status == "finished"
    spec = RunSpec("iris", policy="margin", budget=8, seed=2, options=OPTIONS)
    result = run(spec, store=store, run_id=old["cut"])
    assert result.status == "finished"
    assert [r.number for r in result.rounds] == list(range(9))


def test_an_old_bundle_is_read_and_one_cut_short_goes_on(tmp_path: Path) -> None:
    whole = read_bundle(OLD / "run").rounds
    assert [r.number for r in whole] == list(range(9))
    shutil.copytree(OLD / "run-cut", tmp_path / "run")
    spec = RunSpec("iris", policy="variation-ratio", budget=8, seed=2, options=OPTIONS)
    result = run(spec, out=tmp_path / "run")
    assert [r.number for r in result.rounds] == list(range(9))
    np.testing.assert_allclose([r.error for r in result.rounds[:4]], [r.error for r in whole[:4]], atol=1e-9)
    assert abs(result.rounds[-1].error - whole[-1].error) < 0.1


@pytest.mark.parametrize("name", ["study", "study-cut"])
def test_old_studies_go_on(name: str, tmp_path: Path) -> None:
    shutil.copytree(OLD / name, tmp_path / name)
    spec = StudySpec(
        "study", pools=("iris",), policies=("margin", "random"), seeds=2, budget=4, options=OPTIONS
    )
    result = run_study(spec, out=tmp_path / name)
    assert [len(rounds) for _, rounds in result.runs] == [5, 5, 5, 5]


@pytest.mark.parametrize("name", list(EXPECTED["models"]))
def test_an_old_model_predicts_the_same(name: str) -> None:
    pool = load_pool("digits" if CLASSIFIERS[name].image_only else "iris")
    rows = np.asarray(pool.features[:: max(1, len(pool) // 12)][:12])
    model = load_model(OLD / "models" / name)
    np.testing.assert_allclose(model.probabilities(rows), EXPECTED["models"][name], atol=1e-5)
