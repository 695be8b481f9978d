"""Projects and runs that begin with a guess: a model before any label, sources that come and go."""

import numpy as np
import pandas as pd
import pytest

from workbench.errors import InputError
from workbench.exchange.models import load_model
from workbench.exchange.projects import open_bundle, write_project_bundle
from workbench.exchange.rows import label_table
from workbench.sessions import RunSpec, Session, guessing
from workbench.sessions.guessing import said_of, weight_words
from workbench.sessions.operations import Operation
from workbench.store import Store
from workbench.studies import StudySpec

PETS = ["cat", "dog", "owl"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A table without a class for most rows, and a column of a language model that is mostly right."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=200)
    X = 1.2 * np.array([[0, 0], [2, 0], [0, 2]])[y] + rng.standard_normal((200, 2))
    said = np.where(rng.random(200) < 0.85, y, rng.integers(3, size=200))
    names = np.array(PETS)
    frame = pd.DataFrame(
        {"x": X[:, 0], "z": X[:, 1], "llm": names[said], "noise": names[rng.integers(3, size=200)]}
    )
    frame["truth"] = names[y]
    file = tmp_path_factory.mktemp("projects") / "pets.csv"
    frame.to_csv(file, index=False)
    return file


@pytest.fixture
def session(path, tmp_path):
    store = Store.open(tmp_path / "projects.sqlite")
    return Session.create(
        str(path),
        pool_options={"exclude": ["llm", "noise", "truth"]},
        classes=PETS,
        evaluation_share=0.0,
        uniform_share=0.0,
        guess=["column:llm"],
        annotator="ann",
        store=store,
    )


def truth_of(path):
    return pd.read_csv(path)["truth"].tolist()


def test_a_project_asks_from_its_guess_before_any_label(session, path):
    assert session.stale and session.refit() is not None and not session.stale
    truth = np.array([PETS.index(name) for name in truth_of(path)])
    model = session.model
    assert model.n_labelled == 0 and (model.probabilities.argmax(axis=1) == truth).mean() > 0.8
    [ask] = session.ask()
    assert ask.role == "policy" and ask.guess and ask.guess[0][0] in PETS
    assert session.predictions.grid("owl", 4)
    session.tell(ask.id, truth_of(path)[ask.item])  # one label, of one class
    assert session.refit().n_labelled == 1
    again = Session.open(session.id, annotator="ann", store=session.store)
    assert not again.stale
    np.testing.assert_array_equal(again.model.probabilities, session.model.probabilities)
    assert again.fits.made_with(0)["guess"] == {"sources": [{"source": "column:llm"}]}
    assert again.fits.model_at(0).probabilities.shape == (200, 3)


def test_sources_are_switched_off_and_on(session, path):
    session.refit()
    [before] = session.guesses.now()
    assert before.on and before.guess.codes.shape == (200,)
    event = session.guesses.change([{"source": "column:llm", "on": False}, "column:noise"])
    assert event.kind == "guesses-changed" and session.stale
    assert session.guesses.change([{"source": "column:llm", "on": False}, "column:noise"]) is None
    session.refit()
    off, on = session.guesses.now()
    assert (off.on, on.on) == (False, True)
    assert (session.model.mean[0] == on.guess.values).all()
    session.guesses.change([])
    assert not session.stale  # nothing to fit: no label, no guess
    assert session.model is None and session.ask()[0].role == "cold-start"
    with pytest.raises(InputError, match="no column 'gone'"):
        session.guesses.change(["column:gone"])
    with pytest.raises(InputError, match="given twice"):
        session.guesses.change(["column:llm", "column:llm"])


def test_predictions_taken_in_again_with_other_confidences_are_learnt_from(session):
    session.guesses.add("file:llm", [(item, PETS[item % 3], 0.99) for item in range(200)])
    session.refit()
    before = session.predictions.of(0)
    doubted = [(item, PETS[item % 3], 0.5 if item < 100 else 0.99) for item in range(200)]
    session.guesses.add("file:llm", doubted)
    assert session.stale and session.refit() is not None
    assert session.predictions.of(0) != before
    # a switch says the predictions no second time
    event = session.guesses.change([{"source": "file:llm", "on": False}])
    assert event.kind == "guesses-changed" and "said" not in event.payload["sources"][0]
    session.guesses.change(["file:llm"])
    [source] = session.guesses.now()
    assert source.on and (source.guess.codes >= 0).all()


def test_a_source_that_is_gone_lets_the_project_open(session, monkeypatch):
    session.refit()

    def gone(*given, **more):
        raise InputError("Pool 'pets' has no column 'llm'.")

    monkeypatch.setattr(guessing, "guess_of", gone)
    again = Session.open(session.id, store=session.store)
    [source] = again.guesses.now()
    assert source.guess is None and "no column 'llm'" in source.problem
    assert again.refit() is None and not again.stale
    assert again.ask()


def test_a_classifier_that_takes_none(session, path, tmp_path):
    with pytest.raises(InputError, match="'SVM, calibrated' cannot start from a guess"):
        Session.create(
            str(path),
            pool_options={"exclude": ["llm", "noise", "truth"]},
            classes=PETS,
            guess=["column:llm"],
            classifier="svm-platt",
            store=session.store,
        )
    session.change_model(classifier="svm-platt", policy="margin")
    assert not session.stale  # it waits for labels, as without a guess
    with pytest.raises(InputError, match="cannot start from a guess"):
        session.guesses.change(["column:noise"])


def test_guesses_of_runs_are_part_of_their_spec(path):
    spec = RunSpec(pool=str(path), target="truth", guess=("column:llm",), initial="none")
    document = spec.to_json()
    assert document["guess"] == ["column:llm"] and RunSpec.from_json(document) == spec
    assert RunSpec.from_json(RunSpec().to_json()).guess == ()
    assert StudySpec("", guess=("names",)).runs()[0].guess == ("names",)
    for bad, said in (
        ({"initial": "none"}, "needs a guess"),
        ({"guess": ("a", "a")}, "twice"),
        ({"guess": "names"}, "list"),
    ):
        with pytest.raises(InputError, match=said):
            RunSpec(**bad)
        with pytest.raises(InputError, match=said):
            StudySpec("", **bad)


def test_what_sources_are_worth(session, path):
    truth = truth_of(path)
    session.guesses.change(["column:llm", "column:noise"])
    session.items.label([i for i in range(120) if truth[i] == "cat"], "cat")
    session.items.label([i for i in range(120) if truth[i] == "dog"], "dog")
    session.items.label([i for i in range(120) if truth[i] == "owl"], "owl")
    session.refit()
    good, bad = session.guesses.report()
    assert good.agreement.n == 120 and good.n_drawn == 0 and good.agreement.low > bad.agreement.high
    assert good.weight > bad.weight and bad.weight < 0.3 and bad.confusions[0][2] > 5
    assert weight_words(good.weight, 120).startswith("counts")
    assert "outvoted" in weight_words(0.0, 120) and weight_words(None, 5) == "not used"
    assert weight_words(None, 5, on=True) == "from the next fit on"
    assert "on trust" in weight_words(0.5, 3)
    assert "column:llm" in session.guesses.offered() and "column:truth" in session.guesses.offered()
    item = next(i for i in range(200) if pd.read_csv(path)["llm"][i] != truth[i])
    said = said_of(session.guesses.now(), item, session.model, session.fits.fitted_with)
    assert said[0][:2] == ("column:llm", pd.read_csv(path)["llm"][item])


def test_exports_say_what_the_guess_was(session, path):
    session.refit()
    [ask] = session.ask()
    session.apply(
        [Operation("op1", "label", ask=ask.id, item=ask.item, label="owl", more={"guess_shown": False})]
    )
    session.items.label([3], "cat")
    rows = {row["item"]: row for row in label_table(session, "everything")}
    llm = pd.read_csv(path)["llm"]
    assert [rows[i]["guess"] for i in range(200)] == llm.tolist()
    assert {row["guess_source"] for row in rows.values()} == {"column:llm"}
    assert rows[ask.item]["guess_shown"] is False and rows[3]["guess_shown"] is None


def test_a_bundle_goes_on_with_the_guess(session, tmp_path):
    session.refit()
    session.guesses.change(["column:llm", "column:noise"])
    session.items.label([3], "cat")
    session.refit()
    write_project_bundle(tmp_path / "bundle", session)
    there = Store.open(tmp_path / "there.sqlite")
    again = Session.open(open_bundle(tmp_path / "bundle", store=there).id, store=there)
    assert [one["source"] for one in again.settings["guesses"]] == ["column:llm", "column:noise"]
    np.testing.assert_array_equal(again.model.probabilities, session.model.probabilities)
    rows = pd.read_csv(session.project.pool["name"])
    saved = load_model(tmp_path / "bundle")
    features = saved.features(rows)
    found = saved.probabilities(features, saved.mean(rows, features)[0])
    np.testing.assert_allclose(found, session.model.probabilities, atol=1e-9)


def test_names_that_are_no_class_are_mapped(session):
    said = [(0, "cat", None), (1, "hound", None), (2, "hound", None), (3, "kitten", None)]
    session.guesses.add("file:other.csv", said)
    kept = session.settings["guesses"][-1]["said"]
    assert session.settings["guesses"][-1]["said"] is kept  # not walked through at every look
    found = session.guesses.report()[-1]
    assert found.unknown == ("hound", "kitten") and found.n_known == 1
    now = [
        {**one, "mapping": {"hound": "dog"}} if one["source"] == "file:other.csv" else one
        for one in session.settings["guesses"]
    ]
    session.guesses.change(now)
    found = session.guesses.report()[-1]
    assert found.unknown == ("kitten",) and found.n_known == 3 and found.mapping == {"hound": "dog"}
    now[-1] = {**now[-1], "mapping": {}}
    session.guesses.change(now)
    assert session.guesses.report()[-1].n_known == 1
    session.refit()
    assert session.model.mean.shape == (2, 200, 3)


def test_the_guesses_own_probabilities_can_be_looked_at(session, path):
    from workbench.sessions import insight

    session.refit()
    before = session.model.probabilities.copy()
    truth = truth_of(path)
    for _ in range(12):
        [ask] = session.ask()
        session.tell(ask.id, truth[ask.item])
    session.refit()
    model, items = session.model, np.arange(200)
    assert list(insight.probability_versions(model))[-1] == "guess"
    alone = insight.probabilities_as(model, "guess", items)
    np.testing.assert_allclose(alone, before, atol=1e-12)
    assert not np.allclose(alone, model.probabilities, atol=0.05)
