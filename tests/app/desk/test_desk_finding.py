"""Find at the desk: columns whose names have spaces, and how many beyond those taken at once."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.app.desks import table
from workbench.app.desk import operations
from workbench.app.desk.finding import find
from workbench.app.desk.routes import look
from workbench.app.serving import explanations
from workbench.pools import load_pool
from workbench.sessions import Session


@pytest.mark.parametrize(
    "words",
    [
        "sepal length (cm):5.1",
        '"sepal length (cm)":5.1',
        'Sepal Length (CM):"5.1"',
        "petal width (cm):0. sepal length (cm):5.1",
    ],
)
def test_a_column_whose_name_has_spaces_is_searched(words: str) -> None:
    pool = load_pool("iris")
    found = find(pool, words)
    held = pool.items.values  # type: ignore[attr-defined]
    assert len(found) and set(held[found, 0].tolist()) == {5.1}
    if "petal" not in words:
        assert len(found) == (held[:, 0] == 5.1).sum()


def test_what_is_no_column_is_a_word() -> None:
    pool = load_pool("iris")
    assert not len(find(pool, "nonsense:5.1")) and not len(find(pool, "length (cm):5.1"))


def test_how_many_can_be_asked_about_is_told_beyond_those_taken_at_once(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session: Session = table(tmp_path, ["x", "y"])
    monkeypatch.setattr(operations, "MOST_ITEMS", 20)
    found = look(session.id, "ann", {"kind": "find", "words": "a:.5"}, "token")
    assert (found["total"], found["askable"], len(found["open"])) == (60, len(session.pool.trainable), 20)


def test_what_is_like_an_item_is_told_by_the_present_model() -> None:
    session: Any = SimpleNamespace(id="p", model=SimpleNamespace(scaled=np.zeros((3, 1))))
    assert explanations.space(session)[2, 0] == 0.0
    session.model = SimpleNamespace(scaled=np.ones((3, 1)))
    assert explanations.space(session)[2, 0] == 1.0
