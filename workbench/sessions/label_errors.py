"""Labels of somebody's column that are most likely wrong: what models of the other labels say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.classifiers import make_classifier
from workbench.errors import InputError
from workbench.metrics import mistakes
from workbench.sessions.randomness import CHECKS, generator

if TYPE_CHECKING:
    from workbench.sessions.session import Session

FOLDS = 5
MOST = 200
"""Items of a queue."""
_LEARNED = 4_000
"""Labels that a model learns from at most, so that a queue takes seconds."""


def doubtful_labels(session: Session, of: str) -> Ints:
    """Items whose label in a column is likely wrong, the likeliest first.

    Each label is predicted by a logistic regression of the others (in five parts, copies in one) and weighed
    by `metrics.mistakes`; where people have labelled an item their label is learned from.

    Args:
        session: of the project.
        of: "column:NAME".

    Returns:
        [n] items that nobody has labelled, by the probability that the label is wrong.

    Raises:
        InputError: no such column, or labels of one class only.
    """
    candidates = session.checks.candidates(of)
    place_of = {key: code for code, key in enumerate(candidates.keys)}
    state = session.state
    people = {
        i: place_of[v.key] for i, v in state.standing.items() if v.key in place_of and i in state.training
    }
    items = np.concatenate([candidates.items, np.fromiter(people, dtype=np.int64, count=len(people))])
    codes = np.concatenate(
        [candidates.codes, np.fromiter(people.values(), dtype=np.int64, count=len(people))]
    )
    order = np.argsort(items, kind="stable")
    items, codes = items[order], codes[order]
    p = _foretold(session, items, codes, len(candidates.keys))
    open_ = ~np.isin(items, list(people))
    rank = np.argsort(-mistakes(codes, p).wrong, kind="stable")
    return items[rank[open_[rank]]][:MOST]


def _foretold(session: Session, items: Ints, codes: Ints, n_classes: int) -> Floats:
    """[n, C] probabilities by models that did not see the item's own label."""
    if len(np.unique(codes)) < 2:
        raise InputError("All of these labels are of one class: nothing tells which of them is wrong.")
    rng = generator(int(session.settings["seed"]), 0, CHECKS)
    groups, place = np.unique(session.items.twins.first[items], return_inverse=True)
    fold = rng.permutation(np.arange(len(groups)) % FOLDS)[place]
    p = np.empty((len(items), n_classes))
    X = session.pool.features
    for part in np.unique(fold):
        away = np.flatnonzero(fold == part)
        learned = np.flatnonzero(fold != part)
        if len(learned) > _LEARNED:
            learned = np.sort(rng.choice(learned, _LEARNED, replace=False))
        model = make_classifier("logistic-regression", classes=list(range(n_classes)))
        model.fit(np.asarray(X[items[learned]]), codes[learned])
        p[away] = model.predict_proba(np.asarray(X[items[away]]))
    return p
