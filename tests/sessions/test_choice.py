"""The model chooses its geometry unless the options leave nothing to choose."""

import json

import numpy as np
import pytest

from tests.oracles import step
from workbench.pools import load_pool
from workbench.sessions import ArrayOracle, Checkpoint, RunSpec, Session, simulate
from workbench.sessions.spec import with_choice
from workbench.store import Store
from workbench.studies import StudySpec
from workbench.studies.study import load_study, study_from

SPEC = RunSpec("iris", policy="margin", budget=22, seed=1, options={"n_inducing": 16})


def test_a_run_chooses_and_its_document_says_so():
    assert SPEC.options["choice"] == "auto"
    assert SPEC.to_json()["options"] == {"n_inducing": 16, "choice": "auto"}
    assert RunSpec.from_json(SPEC.to_json()) == SPEC
    fixed = RunSpec("iris", options={"choice": "fixed"})
    assert RunSpec.from_json(fixed.to_json()) == fixed and fixed.to_json()["options"] == {"choice": "fixed"}
    assert RunSpec.from_json({"pool": "iris"}).options == {"choice": "auto"}
    assert RunSpec("iris", classifier="logistic-regression").options == {}


@pytest.mark.parametrize("name", ["kernel", "solver", "input_scaling", "hyperparameters", "calibration"])
def test_nothing_is_left_to_choose_where_options_say_it(name):
    assert with_choice("large-margin", {name: None})["choice"] == "fixed"


def test_studies_too(tmp_path):
    new = StudySpec("s", classifiers=("large-margin", "logistic-regression"), seeds=1)
    assert {run.classifier: run.options.get("choice") for run in new.runs()} == {
        "large-margin": "auto",
        "logistic-regression": None,
    }
    assert study_from(json.loads(json.dumps(new.to_json()))) == new
    fixed = StudySpec("s", seeds=1, options={"choice": "fixed"})
    assert study_from(fixed.to_json()) == fixed
    written = tmp_path / "mine.toml"
    written.write_text('pools = ["iris"]\n', encoding="utf-8")
    assert load_study(written).options == {"choice": "auto"}


def test_an_interrupted_run_goes_on_to_the_same_bytes():
    pool = SPEC.load_pool()
    arguments = (pool, "large-margin", "margin")
    options = {"options": SPEC.options, "budget": SPEC.budget, "seed": SPEC.seed}
    whole = list(simulate(*arguments, **options))
    assert json.loads(str(whole[-1].state["choices_"]))
    for at, cut in ((12, 13), (3, 14)):  # after a choice; before it, so that it is made again
        progress = Checkpoint(whole[:cut], whole[at].state, at)
        rest = list(simulate(*arguments, **options, progress=progress))
        assert [one.number for one in rest] == [one.number for one in whole[cut:]]
        for one, other in zip(rest, whole[cut:], strict=True):
            np.testing.assert_array_equal(one.queried, other.queried)
            assert all(one.state[k].tobytes() == other.state[k].tobytes() for k in other.state)


def test_a_project_stores_the_choice_and_opens_with_it(tmp_path):
    store = Store.open(tmp_path / "w.sqlite")
    pool = load_pool("iris")
    session = Session.create("iris", store=store, seed=1, options={"n_inducing": 16}, annotator="ann")
    assert session.settings["options"]["choice"] == "auto"
    oracle = ArrayOracle(session.pool)
    for _ in range(14):
        step(session, oracle)
    choice = session.model.estimator.choice_
    assert choice is not None
    signs = session.rounds[-1].signs
    assert signs.keys() == {"left_out_error", "uncertainty", "changed"}
    assert all(0.0 <= share <= 1.0 for share in signs.values())
    model = session.model
    assert signs["uncertainty"] == pytest.approx(1.0 - model.probabilities.max(axis=1).mean())
    assert "changed" not in session.rounds[0].signs
    again = Session.open(session.id, store=store, annotator="ann")
    assert again.model.estimator.choice_ == choice
    assert again.rounds[-1].signs == signs
    np.testing.assert_array_equal(again.model.probabilities, model.probabilities)
    assert len(again.model.probabilities) == len(pool)
    store.close()
