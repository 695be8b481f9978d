"""A model's doubts, in chances that a person can read, and which items to label for it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.sessions.fitted_model import FittedModel

DOUBT = "doubt"
"""The measure 1 - p of the best class: how probable it is to the model that its best class is wrong."""
UNSURE = 0.25
"""Doubt above which an item is called unsure: the model expects to be wrong on more than one in four."""


@dataclass(frozen=True)
class Group:
    """Open items between whose two best classes the model hesitates.

    Attributes:
        classes: the two, the more probable one of the whole group first.
        items: indices into the pool, the most doubtful first.
    """

    classes: tuple[str, str]
    items: tuple[int, ...]


@dataclass(frozen=True)
class UncertainItems:
    """Doubts of a model among some items.

    Attributes:
        n: how many it is unsure of.
        of: how many there are.
        groups: those most useful to label, the one with most doubt first.
    """

    n: int
    of: int
    groups: tuple[Group, ...]


def least_confidence(probabilities: Floats) -> Floats:
    """1 - p of the best class (Settles 2009, 3.1, "least confident").

    Args:
        probabilities: [n, C].

    Returns:
        [n], from 0 to 1 - 1/C.
    """
    return np.asarray(1.0 - probabilities.max(axis=1))


def uncertain_items(model: FittedModel, items: Ints, *, most: int = 3, size: int = 24) -> UncertainItems:
    """The items a model is unsure of, in groups of the same two best classes.

    With two classes a group is of items that it takes for the same one.

    Args:
        model: of the project.
        items: [n] that may be asked about.
        most: groups at most.
        size: items of a group at most.
    """
    if not len(items):
        return UncertainItems(0, 0, ())
    p = model.probabilities_at(items)
    away = least_confidence(p)
    unsure = np.flatnonzero(away > UNSURE)
    if not unsure.size or p.shape[1] < 2:
        return UncertainItems(int(unsure.size), len(items), ())
    two = np.argsort(-p[unsure], axis=1, kind="stable")[:, :2]
    pairs = two if p.shape[1] == 2 else np.sort(two, axis=1)
    class_pairs, which = np.unique(pairs, axis=0, return_inverse=True)
    weight = np.bincount(which.ravel(), weights=away[unsure], minlength=len(class_pairs))
    groups = []
    for number in np.argsort(-weight, kind="stable")[:most]:
        rows = unsure[which.ravel() == number]
        rows = rows[np.argsort(-away[rows], kind="stable")]
        groups.append(Group(_names(model.classes, class_pairs[number], p[rows]), _first(items, rows, size)))
    return UncertainItems(int(unsure.size), len(items), tuple(groups))


def _names(classes: Sequence[str], pair: Ints, p: Floats) -> tuple[str, str]:
    first, second = sorted(map(int, pair), key=lambda code: -float(p[:, code].sum()))
    return str(classes[first]), str(classes[second])


def _first(items: Ints, rows: Ints, size: int) -> tuple[int, ...]:
    return tuple(int(item) for item in items[rows[:size]])
