"""A column shown beside a text: learnt from only where labels left out say that it clearly pays."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from workbench.exchange.bundles import write_run_bundle
from workbench.exchange.models import load_model
from workbench.exchange.predictor import write_predictor
from workbench.pools import load_pool
from workbench.sessions import Session
from workbench.sessions.learner import Learner
from workbench.sessions.simulate import simulate_spec
from workbench.sessions.smoothing import Smoothing, in_turn
from workbench.sessions.spec import RunSpec

WORDS = {
    "pay": ["salary", "bonus", "raise", "overtime", "pension", "contract", "money", "wage"],
    "work": ["deadline", "project", "weekend", "shift", "meeting", "task", "hours", "rota"],
}
DEPARTMENTS, REGIONS = ("sales", "lab", "legal"), ("north", "south", "east")


def _rows(n: int, decides: bool, seed: int) -> list[dict[str, str]]:
    """Comments whose class is their topic, turned round in sales where the department decides."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        topic = str(rng.choice(sorted(WORDS)))
        department = str(rng.choice(DEPARTMENTS))
        text = " ".join(rng.choice(WORDS[topic], 6)) + " and then again"
        answer = (topic == "pay") ^ (decides and department == "sales")
        region = str(rng.choice(REGIONS))
        row = {"comment": text, "department": department, "region": region, "topic": "AB"[answer]}
        rows.append(row)
    return rows


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return _written(tmp_path_factory.mktemp("beside") / "decides.csv", _rows(240, True, 0))


def _written(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def pool(path):
    return load_pool(str(path), target="topic")


def _fitted(pool, n, seed, **options):
    items = np.sort(np.random.default_rng(seed).choice(pool.trainable, n, replace=False))
    learner = Learner(pool, "large-margin", {"choice": "auto", **options}, seed=seed)
    return learner, learner.fit(items, pool.truth[items], number=0)


def test_a_column_that_decides_is_brought_in_and_the_page_says_so(pool):
    assert pool.items.beside == ("department", "region")
    learner, model = _fitted(pool, 60, 0)
    assert model.smoothing.strength == "column:department"
    told = str(model.smoothing)
    assert told.startswith("learns from the column 'department', too; loss on labels it had not seen")
    assert "without that" in told
    _, alone = _fitted(pool, 60, 0, neighbours="none")
    rest = np.setdiff1d(np.arange(len(pool)), model.items)
    errors = [(m.probabilities[rest].argmax(axis=1) != pool.truth[rest]).mean() for m in (model, alone)]
    assert errors[0] < 0.6 * errors[1]
    again = learner.model(model.state, 0, model.items, model.codes)
    assert np.array_equal(again.probabilities, model.probabilities)
    # lines along one feature know no cell: the column's mean stands for it
    assert model.as_seen(pool.features[:3]).shape == model.features[:3].shape


def test_it_is_dropped_where_it_pays_no_longer(pool):
    items = pool.trainable[:60]
    learner = Learner(pool, "large-margin", {"choice": "auto"})
    before = learner.fit(items, pool.truth[items], number=0)
    assert before.smoothing.strength == "column:department"
    by_text = np.array(["salary bonus" in t or any(w in t for w in WORDS["pay"]) for t in pool.items.texts])
    more = pool.trainable[:120]
    moved = learner.fit(more, by_text[more].astype(np.int64), number=1, previous=before.state)
    assert not moved.smoothing.strength.startswith("column:")


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_never_brought_in(tmp_path, seed):
    noise = load_pool(str(_written(tmp_path / "noise.csv", _rows(160, False, 100 + seed))), target="topic")
    for n in (30, 60):
        _, model = _fitted(noise, n, seed)
        assert not model.smoothing.strength.startswith("column:")
        assert any(name.startswith("column:") for name in model.smoothing.losses)  # they were tried


def test_few_labels_try_no_column():
    strengths = ("none", "strong", "both", "column:department")
    assert "column:department" not in in_turn(Smoothing(), strengths, 29)
    assert "column:department" in in_turn(Smoothing(), strengths, 30)
    assert in_turn(Smoothing(), strengths, 500) == ["none", "both", "column:department"]


def test_a_saved_model_reads_the_column_of_new_rows(path, pool, tmp_path):
    options = {"target": "topic"}
    spec = RunSpec(pool=str(path), pool_options=options, budget=45, batch=5, initial="random", seed=1)
    rounds = list(simulate_spec(spec, pool))
    assert rounds[-1].neighbours == "column:department"
    write_run_bundle(tmp_path / "run", spec, pool, rounds, rounds[-1].state)
    saved = load_model(tmp_path / "run")
    own = _rows(240, True, 0)
    last = Learner(pool, options=spec.options).model(rounds[-1].state, 45, pool.trainable[:2], np.arange(2))
    p = saved.probabilities(saved.features(own))
    np.testing.assert_allclose(p, last.probabilities, atol=1e-5)
    elsewhere = [row | {"department": "lab"} for row in own]
    assert saved.predict(elsewhere) != saved.predict(own)
    folder = write_predictor(tmp_path / "numpy", saved)
    assert "department" in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "department",
    [
        pytest.param("other", id="a value comes"),
        pytest.param("lab", id="one value is left", marks=pytest.mark.slow),  # an edit of another kind
    ],
)
def test_a_project_whose_column_was_edited_is_fitted_anew(tmp_path, store, department):
    rows = [row | {"id": f"i{i}"} for i, row in enumerate(_rows(240, True, 0))]
    truth = [row.pop("topic") for row in rows]
    path = _written(tmp_path / "edited.csv", rows)
    session = Session.create(str(path), classes=["A", "B"], store=store, seed=0)
    session.items.import_labels([(i, truth[i]) for i in range(0, 160, 2)], "own")
    session.refit()
    assert session.model.smoothing.strength == "column:department"
    edited = [
        row | {"department": department if i in (7, 9) or department == "lab" else row["department"]}
        for i, row in enumerate(rows)
    ]
    _written(path, edited)
    again = Session.open(session.id, store=store)
    again.items.import_labels([(1, truth[1])], "more")
    assert again.refit() is not None
    assert again.model.probabilities.shape == (240, 2) and again.ask(1)
