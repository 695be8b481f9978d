"""Predictions of other tools and of older models become guesses of a project, never labels."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from workbench.errors import InputError
from workbench.exchange.models import load_model
from workbench.exchange.predictions import predictions_of, read_predictions
from workbench.exchange.projects import open_bundle, write_project_bundle
from workbench.pools import load_pool
from workbench.sessions import RunSpec, Session
from workbench.store import Store
from workbench.studies import run


@pytest.fixture(scope="module")
def pool():
    return load_pool("iris")


def truth(pool):
    return [pool.classes[code] for code in pool.truth]


def test_tables_and_tasks_are_read(pool):
    ids = [str(key) for key in pool.items.ids]
    table = f"id,Prediction,score\n{ids[3]},setosa,0.9\n{ids[1]},virginica,0.4\n{ids[5]},,0.2\n".encode()
    assert read_predictions(table, "a.csv", pool) == [(1, "virginica", 0.4), (3, "setosa", 0.9)]
    ours = f"id,label,status\n{ids[0]},setosa,labelled\n{ids[2]},setosa,predicted\n".encode()
    assert read_predictions(ours, "ours.csv", pool) == [(2, "setosa", None)]
    book = io.BytesIO()
    pd.DataFrame({"id": ids[3:5], "Class": ["setosa", None], "P": [0.5, 1]}).to_excel(book, index=False)
    assert read_predictions(book.getvalue(), "a.xlsx", pool) == [(3, "setosa", 0.5)]
    assert read_predictions(f"id\tpred\n{ids[3]}\tsetosa\n".encode("utf-16"), "a.tsv", pool)
    named = f"id,llm_kind,llm_confidence\n{ids[3]},setosa,0.7\n".encode()
    assert read_predictions(named, "llm.csv", pool) == [(3, "setosa", 0.7)]
    tasks = [
        {
            "id": 7,
            "data": {"id": ids[4]},
            "predictions": [
                {"score": 0.8, "result": [{"type": "choices", "value": {"choices": ["setosa"]}}]}
            ],
        },
        {"id": 8, "data": {"id": ids[6]}, "predictions": []},
    ]
    assert read_predictions(json.dumps(tasks).encode(), "tasks.json", pool) == [(4, "setosa", 0.8)]
    written = b"item;pred;p\n1;setosa;0,93\n2;setosa;93 %\n3;setosa;n/a\n"
    assert [sure for *_, sure in read_predictions(written, "p.csv", pool)] == [0.93, 0.93, None]
    by_number = b'{"item": 9, "suggestion": "setosa"}\n{"item": 9, "suggestion": "virginica"}\n'
    assert read_predictions(by_number, "s.jsonl", pool) == [(9, "virginica", None)]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"name,weight\n1,2\n", "has the columns id"),
        (b"id,prediction\nnobody,setosa\n", "Not in this pool: nobody"),
        (b"item,prediction,confidence\n1,setosa,-3\n", "a confidence of -3"),
        (b"item,prediction,confidence\n1,setosa,high\n", "Row 1 of the file has the confidence 'high'"),
    ],
)
def test_bad_files_are_one_sentence(pool, data, said):
    with pytest.raises(InputError, match=said):
        read_predictions(data, "bad.csv", pool)


def test_a_running_project_takes_them_and_keeps_them(pool, tmp_path):
    session = Session.create("iris", store=Store.open(tmp_path / "one.sqlite"), annotator="ann")
    names = truth(session.pool)
    rng = np.random.default_rng(0)
    said = [(i, names[i] if rng.random() < 0.9 else "setosa", 0.8) for i in range(0, 150, 2)]
    before = session.state.n_labelled
    event = session.guesses.add("file:old.csv", said)
    assert event.kind == "guesses-changed" and session.state.n_labelled == before
    assert session.refit().error < 0.5 and session.model.n_labelled == 0
    [source] = session.guesses.report()
    assert (source.source, source.n_known) == ("file:old.csv", 75)
    # the same name again replaces it; each round says which it had
    assert session.guesses.add("file:old.csv", said) is None
    session.guesses.add("file:old.csv", said[:40])
    assert session.stale and session.refit().number == 1
    assert [one.n_known for one in session.guesses.report()] == [40]
    assert "said" not in session.fits.made_with(1)["guess"]["sources"][0]
    # a switch does not record what is said of the items again, and loses nothing of it
    for on in (False, True):
        event = session.guesses.change([{"source": "file:old.csv", "on": on}])
        assert "said" not in event.payload["sources"][0]
    assert [report.n_known for report in session.guesses.report()] == [40]
    assert not session.stale
    # it travels, and is there after a restart
    write_project_bundle(tmp_path / "bundle", session)
    there = Store.open(tmp_path / "two.sqlite")
    for again in (
        Session.open(session.id, store=session.store),
        Session.open(open_bundle(tmp_path / "bundle", store=there).id, store=there),
    ):
        assert not again.stale
        np.testing.assert_array_equal(again.model.probabilities, session.model.probabilities)
    for name, rows, problem in (
        ("old.csv", said, "file:NAME"),
        ("file:x", [(0, "rose", None)], "none of the classes"),
    ):
        with pytest.raises(InputError, match=problem):
            session.guesses.add(name, rows)


def test_an_older_model_is_a_guess(pool, tmp_path):
    run(RunSpec(pool="iris", budget=10, batch=5), out=tmp_path / "run")
    said = predictions_of(tmp_path / "run", pool)
    own = load_model(tmp_path / "run").predict(pd.DataFrame(pool.features, columns=pool.feature_map.columns))
    assert [name for _, name, _ in said] == own and all(1 / 3 <= sure <= 1 for _, _, sure in said)
    with pytest.raises(InputError):
        predictions_of(tmp_path / "run", load_pool("digits"))
