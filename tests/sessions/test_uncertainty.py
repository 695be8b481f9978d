"""Doubts of a model, in chances, and the groups worth labelling."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from workbench.sessions import insight
from workbench.sessions.insight import DOUBT, uncertain_items


def model(p: list[list[float]], classes: tuple[str, ...]) -> Any:
    probabilities = np.array(p)
    return SimpleNamespace(
        classes=classes,
        probabilities=probabilities,
        probabilities_at=lambda items: probabilities[items],
        mean=None,
    )


def test_doubt_is_what_the_best_class_leaves() -> None:
    sure = model([[1.0, 0.0, 0.0], [0.5, 0.3, 0.2], [1 / 3] * 3], ("a", "b", "c"))
    assert insight.measure(sure, DOUBT) == pytest.approx([0.0, 0.5, 2 / 3]), "an item at 100 % has none"


def test_groups_are_items_between_the_same_two_classes_the_heaviest_first() -> None:
    rows = [[0.5, 0.4, 0.1], [0.35, 0.6, 0.05], [0.0, 0.0, 1.0], [0.1, 0.5, 0.4], [0.48, 0.5, 0.02]]
    found = uncertain_items(model(rows, ("a", "b", "c")), np.array([0, 1, 2, 3, 4]))
    assert (found.n, found.of) == (4, 5)
    first, second = found.groups
    assert set(first.classes) == {"a", "b"} and first.items == (0, 4, 1), "most doubtful first"
    assert first.classes[0] == "b", "the more probable one of the group"
    assert second.classes == ("b", "c") and second.items == (3,)
    (only,) = uncertain_items(model(rows, ("a", "b", "c")), np.array([0, 1, 2, 3, 4]), most=1, size=2).groups
    assert only.items == (0, 4)


def test_two_classes_make_two_groups_and_nothing_open_makes_none() -> None:
    two = model([[0.6, 0.4], [0.45, 0.55], [0.99, 0.01]], ("a", "b"))
    found = uncertain_items(two, np.array([0, 1, 2]))
    assert sorted(group.classes for group in found.groups) == [("a", "b"), ("b", "a")]
    assert uncertain_items(two, np.array([], dtype=np.int64)).of == 0
    assert uncertain_items(two, np.array([2])).groups == ()
