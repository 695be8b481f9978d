"""A saved model begins on new rows where it began on its pool: names are compared again, columns read."""

import numpy as np
import pandas as pd
import pytest

from workbench import registry
from workbench.exchange.models import load_model
from workbench.guesses import guesses_of, stacked
from workbench.sessions import RunSpec
from workbench.studies import run

SAID = {
    "card_lost": ("I lost my card", "my card was stolen", "please block the lost card"),
    "refund_request": ("a refund please", "when will the refund arrive", "my request for money back"),
    "password_reset": ("I forgot my password", "reset it, cannot log in", "the password is gone"),
}


ENCODER = "tests.exchange.test_models_with_guesses:word_counts"


def word_counts(texts):
    """[n, 4] an encoder of one's own: how often each of some words stands in a text."""
    return np.array([[text.count(word) for word in ("card", "refund", "password", " ")] for text in texts])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run on texts that began with their classes' names and a column with its confidence; its rows."""
    rng, rows = np.random.default_rng(0), []
    for i in range(120):
        name = list(SAID)[int(rng.integers(3))]
        says = name if rng.random() < 0.7 else list(SAID)[int(rng.integers(3))]
        text = f"{SAID[name][int(rng.integers(3))]} on day {i}"
        rows.append({"text": text, "llm": says, "sure": round(float(rng.uniform(0.5, 0.99)), 2), "y": name})
    folder = tmp_path_factory.mktemp("saved")
    path = folder / "tickets.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    spec = RunSpec(
        pool=str(path),
        target="y",
        pool_options={"text_column": "text", "exclude": ["llm", "sure"]},
        guess=("names", "column:llm:sure"),
        initial="none",
        budget=5,
        batch=5,
    )
    run(spec, out=folder / "run")
    return spec, folder / "run", pd.DataFrame(rows)


def test_new_rows_begin_with_the_guess(made):
    spec, folder, rows = made
    pool, saved = spec.load_pool(), load_model(folder)
    features = saved.features(rows)
    mean, notes = saved.mean(rows, features)
    assert notes == ()
    np.testing.assert_allclose(mean, stacked(guesses_of(spec.guess, pool)), atol=1e-9)
    # a few rows, as they come, stand on the pool's scale
    few, _ = saved.mean(rows.iloc[:4], features[:4])
    np.testing.assert_allclose(few, mean[:, :4], atol=1e-9)
    truth = np.array([saved.classes.index(name) for name in rows["y"]])
    wrong = (saved.probabilities(features, mean).argmax(axis=1) != truth).mean()
    assert wrong < (saved.probabilities(features).argmax(axis=1) != truth).mean()
    assert saved.predict(rows) == [
        saved.classes[c] for c in saved.probabilities(features, mean).argmax(axis=1)
    ]


def test_a_column_that_new_rows_lack_is_said(made):
    _, folder, rows = made
    saved = load_model(folder)
    lacking = rows[["text"]]
    mean, notes = saved.mean(lacking, saved.features(lacking))
    assert (mean[1] == 0).all() and (mean[0] != 0).any()
    assert len(notes) == 1 and "column:llm:sure counts nothing for these rows" in notes[0]
    empty = rows.assign(llm=["", *rows["llm"][1:]])
    assert "says nothing of 1 rows" in saved.mean(empty, saved.features(empty))[1][0]


def test_a_pool_that_begins_with_nothing_saves_none(tmp_path):
    run(RunSpec(pool="iris", budget=2), out=tmp_path / "run")
    assert load_model(tmp_path / "run").guesses is None
    assert not (tmp_path / "run" / "model" / "guess.json").exists()


@pytest.mark.parametrize(
    "features",
    [None, ENCODER, pytest.param(f"pieces+{ENCODER}", marks=pytest.mark.slow)],  # both of them together
)
def test_the_texts_of_new_rows_stand_in_the_column_where_the_pool_has_them(
    tmp_path, monkeypatch, made, features
):
    monkeypatch.setattr(registry, "_trusted", {ENCODER})
    rows = made[2].rename(columns={"text": "Kommentar"})[["y", "Kommentar"]]
    rows.to_csv(tmp_path / "tickets.csv", index=False)
    options = {"text_column": "Kommentar"} | ({"features": features} if features else {})
    spec = RunSpec(
        pool=str(tmp_path / "tickets.csv"),
        target="y",
        pool_options=options,
        guess=("names",),
        initial="none",
        budget=5,
        batch=5,
    )
    run(spec, out=tmp_path / "run")
    pool, saved = spec.load_pool(), load_model(tmp_path / "run")
    np.testing.assert_allclose(saved.feature_map.transform(rows), pool.features, atol=1e-5)
    mean, notes = saved.mean(rows, saved.features(rows))
    assert notes == ()
    np.testing.assert_allclose(mean, stacked(guesses_of(spec.guess, pool)), atol=1e-5)
    of_texts = rows["Kommentar"].tolist()  # without a table around them, as a program may send them
    np.testing.assert_allclose(saved.mean(of_texts, saved.features(of_texts))[0], mean, atol=1e-9)
