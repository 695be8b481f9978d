"""Pages of a project that begins with a guess and has no label yet, and what cards say of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.app.pages import PAGES, open_page, texts
from workbench.app.access import current
from workbench.app.desk import cards
from workbench.app.history import people
from workbench.app.serving import evaluation
from workbench.app.uncertainty import mapping
from workbench.sessions import Session, insight
from workbench.sessions.asking_items import ItemAsk
from workbench.sessions.operations import Operation

PETS = ["cat", "dog", "owl"]


@pytest.fixture(scope="module")
def begun(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A project on two features and a column of a language model, fitted without a label."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=90)
    X = 1.2 * np.array([[0, 0], [2, 0], [0, 2]])[y] + rng.standard_normal((90, 2))
    said = np.where(rng.random(90) < 0.8, y, rng.integers(3, size=90))
    frame = pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "llm_label": np.array(PETS)[said]})
    path = tmp_path_factory.mktemp("pets") / "pets.csv"
    frame.to_csv(path, index=False)
    session = Session.create(
        str(path),
        pool_options={"exclude": ["llm_label"]},
        classes=PETS,
        guess=["column:llm_label"],
        evaluation_share=0.0,
        uniform_share=0.0,
        annotator="ann",
    )
    session.refit()
    current.keep(session)
    return session


@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens_on_a_model_without_a_label(begun: Session, name: str) -> None:
    test = open_page(name, begun.id)
    assert test.title[0].value.lower() == name
    if name == "label":
        assert "beginning with a guess" in texts(test)


def test_a_card_says_what_the_guess_says_and_hides_its_column(begun: Session) -> None:
    [ask] = begun.ask()
    card = cards.card([begun], ItemAsk(ask.item, {begun.question_name: ask}), "/{item}")
    says = pd.read_csv(begun.project.pool["name"])["llm_label"][ask.item]
    assert card["early"] and card["guess"] and card["differs"] == ""
    assert card["sources"] == [["column llm_label", says, "taken on trust: too few labels to judge it"]]
    assert "llm_label" not in [row[0] for row in card["face"]["rows"]]


def test_made_up_rows_look_like_their_item(begun: Session) -> None:
    model = begun.model
    assert model is not None
    found = insight.decision_regions(model, size=8)
    assert found.probabilities.shape == (8, 8, 3)
    view = mapping.View(model, "")
    item = 7
    line = mapping.line_through(view.model, item, 0, 401)
    at = int(np.abs(line.grid - line.at).argmin())
    own = model.probabilities_of(item)
    np.testing.assert_allclose(line.probabilities[at], own, atol=0.02)


def test_cross_validation_and_disagreement(begun: Session) -> None:
    frame = pd.read_csv(begun.project.pool["name"])
    other = begun.as_annotator("ben")
    said: Any = frame["llm_label"]
    for name in PETS:
        other.items.label([i for i in range(36) if said[i] == name], name)
    other.refit()
    model = other.model
    assert model is not None and model.n_labelled == 36
    job = evaluation.cross_validation(other, model)
    assert job.wait(600) and job.status == "done", job.error
    _, codes, p = job.result
    assert (p.argmax(axis=1) == codes).mean() > 0.9  # as it begins with what it is trained to trust
    wrong = [("column:llm_label", "cat", 0.7)]
    assert cards._disagreement(wrong, "dog", 36) == "Column llm_label says cat; 36 labels say dog."
    names = [("names", "cat", 0.7)]
    assert cards._disagreement(names, "dog", 36) == "The classes' names say cat; 36 labels say dog."
    assert cards._disagreement(wrong, "cat", 36) == "" == cards._disagreement(wrong, "cat", 0)
    # a first guess that names another class than what it began with says why
    few = "Column llm_label says cat; together with 5 labels so far dog is likelier."
    assert cards._disagreement(wrong, "dog", 5) == few
    assert "taken together, makes dog likelier" in cards._disagreement(wrong, "dog", 0)


def test_maps_show_where_the_model_left_its_guess(begun: Session) -> None:
    model = begun.model
    assert model is not None and model.mean is not None
    assert mapping.measures_for(model)[insight.AGAINST_GUESS] == "Disagreement with the guess"
    assert "0 to 1" in mapping.words_of(insight.AGAINST_GUESS)
    found = insight.measure(model, insight.AGAINST_GUESS)
    said = model.mean[0].argmax(axis=1)
    np.testing.assert_allclose(found, 1 - model.probabilities[np.arange(90), said])
    bare = Session.create("iris", annotator="ann")
    bare.items.label([int(i) for i in bare.pool.trainable[:3]], bare.classes[0])
    bare.items.label([int(i) for i in bare.pool.trainable[3:6]], bare.classes[1])
    bare.refit()
    assert bare.model is not None and insight.AGAINST_GUESS not in mapping.measures_for(bare.model)


def test_who_is_led_by_the_guess_is_said_after_ten_labels_of_each(begun: Session) -> None:
    me = begun.as_annotator("cat")
    for number in range(24):
        [ask] = me.ask()
        shown = number % 2 == 0
        guessed = me.state.class_names[ask.guess[0][0]]
        label = guessed if shown or number % 4 == 1 else next(name for name in PETS if name != guessed)
        made = Operation(
            f"led{number}", "label", ask=ask.id, item=ask.item, label=label, more={"guess_shown": shown}
        )
        [done] = me.apply([made])
        assert done.status == "saved"
    found = people.anchoring(me.log.events, me.state, "cat")
    assert found == ((12, 12), (6, 12))
    words = people.anchoring_words(found)
    assert "12 of 12 (100 %), with it hidden in 6 of 12 (50 %)" in words.replace("\u00a0", " ")
    assert people.anchoring_words(people.Anchoring((9, 9), (6, 12))) == ""
    assert people.anchoring(me.log.events, me.state, "ann") == ((0, 0), (0, 0))
    me.undo()
    assert people.anchoring(me.log.events, me.state, "cat") == ((12, 12), (6, 11))


def test_the_calibration_page_reads_the_guess_alone_beside_the_model(home: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=80)
    rows = {"x": y + rng.standard_normal(80), "p_cat": np.where(y, 0.3, 0.8), "p_dog": np.where(y, 0.7, 0.2)}
    path = tmp_path / "told.csv"
    pd.DataFrame(rows | {"class": np.array(["cat", "dog"])[y]}).to_csv(path, index=False)
    session = Session.create(
        str(path),
        pool_options={"target": "class", "exclude": ["p_cat", "p_dog"]},
        guess=["columns:p_*"],
        annotator="ann",
    )
    session.refit()
    current.keep(session)
    test = open_page("calibration", session.id)
    test.session_state["cal-readings"] = True
    test.run()
    [notes] = [t.value["What it is"] for t in test.table if "The guess alone" in t.value.to_numpy()]
    assert notes.str.contains("known before any label").any()
