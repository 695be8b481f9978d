"""A table of which some rows have a class: these are learnt from, the others are asked about."""

from pathlib import Path

import numpy as np
import pytest

from workbench.pools.tables import uses
from workbench.sessions import Session
from workbench.store import Store


def half_labelled(tmp_path: Path, n_known: int, n_unknown: int) -> Path:
    rng = np.random.default_rng(0)
    lines = ["a,b,class"]
    for i in range(n_known + n_unknown):
        a, b = rng.normal(size=2) + 2.0 * (i % 2)
        lines.append(f"{a:.4f},{b:.4f},{'xy'[i % 2] if i < n_known else ''}")
    path = tmp_path / "half.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_every_row_without_a_class_can_be_asked_about_and_none_is_measured_on(
    tmp_path: Path, store: Store
) -> None:
    path = half_labelled(tmp_path, 300, 700)
    session = Session.create(str(path), target="class", annotator="ann", store=store)
    pool = session.pool
    assert pool.truth is not None and pool.test is not None
    unknown = np.flatnonzero(pool.truth < 0)
    assert len(unknown) == 700
    assert (pool.truth[pool.test.test] >= 0).all() and len(pool.test.test) == 60
    assert set(unknown) <= set(pool.trainable)
    assert session.queue.n_left == 700
    assert len(session.state.codes) == 240
    measured, codes = session.fits.held_out()
    assert len(measured) == 60 and set(codes) == {0, 1}


def test_few_labels_are_all_for_learning_and_the_error_is_measured_on_questions(
    tmp_path: Path, store: Store
) -> None:
    path = half_labelled(tmp_path, 40, 200)
    session = Session.create(str(path), target="class", annotator="ann", store=store)
    assert session.pool.test is None and session.queue.n_left == 200
    assert len(session.state.codes) == 40
    assert session.settings["evaluation_share"] == pytest.approx(0.1)
    roles = {ask.role for ask in session.ask(60)}
    assert "evaluation" in roles


def test_what_was_guessed_of_columns_stays_with_the_project(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{i % 7},{'red' if i % 3 else 'blue'},{'yn'[i % 2] if i < 20 else ''}" for i in range(40)]
    path.write_text("a,b,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    said = {"columns": {"b": "leave out"}}
    made = [
        Session.create(str(path), pool_options=given, store=store) for given in ({"columns": "auto"}, said)
    ]
    kept = [one.project.pool["options"]["columns"] for one in made]
    assert kept[0] == {
        "a": {"use": "number", "empty": "median", "guessed": True},
        "b": {"use": "category", "empty": "own", "guessed": True},
        "label": {"use": "class", "guessed": True},
    }
    assert kept[1] == {**kept[0], "b": {"use": "leave out"}}, "what somebody said stays as it was said"

    # another version guesses otherwise
    monkeypatch.setattr(uses, "guessed", lambda *_: uses.ColumnUse("leave out"))
    for one in made:
        again = Session.open(one.id, store=store)
        assert again.pool.features.tolist() == one.pool.features.tolist()
        assert again.state.n_labelled == one.state.n_labelled > 0
