"""Of a pool too large to score whole in every round: the open items that questions are chosen among."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.policies.belief import Belief, Query
from workbench.sessions.fitted_model import FittedModel
from workbench.sessions.randomness import DRAWN, generator

ASKED_AMONG = 20_000
"""How many open items a new project of more than `latents.MANY` chooses its questions among."""


def drawn(askable: Ints, seed: int, number: int, most: int) -> Ints | None:
    """The items that one round's questions are chosen among.

    Args:
        askable: [n] ascending items that may be asked about.
        seed: of the run or project.
        number: of the round: each has a draw of its own, so every item has its chances.
        most: how many, at most; 0 for all.

    Returns:
        [most] ascending items; None where all are looked at.
    """
    if not most or askable.size <= most:
        return None
    places = generator(seed, number, DRAWN).choice(askable.size, most, replace=False, shuffle=False)
    return askable[np.sort(places)]


def query_among(model: FittedModel, rows: Ints | None, closed: Ints, ask: Callable[[Belief], Query]) -> Query:
    """Answer of a policy that looks at some items of the pool only.

    Args:
        model: fitted.
        rows: of `drawn`; None for all.
        closed: items of the pool that must not be asked about.
        ask: from a belief to an answer.

    Returns:
        The answer in items of the pool; utilities [N] are NaN where nobody looked.
    """
    if rows is None:
        return ask(model.belief(closed))
    items = np.union1d(rows, model.items)  # some policies want the labelled ones beside them
    answer = ask(model.belief_at(items))
    return answer._replace(
        indices=items[answer.indices], utilities=spread(answer.utilities, items, len(model.pool))
    )


def without(items: Ints, others: Ints, n: int) -> Ints:
    """Ascending items that are not among others.

    Args:
        items: ascending, of n.
        others: of n.
        n: how many items there are in all; for a million, a mask is far quicker than a set.
    """
    mask = np.zeros(n, dtype=bool)
    mask[items] = True
    mask[others] = False
    return np.flatnonzero(mask)


def spread(values: Floats, rows: Ints, n: int) -> Floats:
    """Values [m] of some items as values [n] of all, NaN elsewhere."""
    vector: Floats = np.full(n, np.nan)
    vector[rows] = values
    return vector
