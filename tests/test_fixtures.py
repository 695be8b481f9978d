"""What version 0.1.0 wrote opens, predicts the same and goes on."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from workbench.sessions import ArrayOracle, RunSpec, Session
from workbench.store import Store
from workbench.studies import run

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
