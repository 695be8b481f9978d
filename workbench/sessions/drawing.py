"""Random draws: their streams, the items that questions are chosen among, and the oracle."""

from collections.abc import Callable
from time import perf_counter

import numpy as np
from numpy.random import Generator

from workbench.arrays import Floats, Ints
from workbench.errors import InputError
from workbench.policies.belief import Belief, Query
from workbench.pools.pool import Pool
from workbench.sessions.fitted_model import FittedModel, Scored

ASKED_AMONG = 20_000
"""How many open items a new project of more than `latents.MANY` chooses its questions among."""
ANSWER_SECONDS = 5.0
"""The time in which somebody else's classifier scores a pool; what it has not scored by then waits."""
_FIRST = 16  # items scored at first; a further block has at most four times as many as the one before


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


def scored_in_time(model: FittedModel, seed: int, open_items: Ints, measured: Ints) -> Scored | None:
    """The items that a classifier scores in the time of an answer.

    Args:
        model: fitted.
        seed: of the run or project; each round has an order of its own.
        open_items: [n] items that may be asked about; they,
        measured: [m] those that its error is measured on, and the labelled ones are scored first, by turns.

    Returns:
        They and their probabilities; None where there is time for the whole pool.
    """
    rng, n_items = generator(seed, model.number, DRAWN), len(model.pool)
    turn = np.full(n_items, n_items)
    for group in (open_items, measured, model.items):
        turn[rng.permutation(group)] = np.arange(group.size)
    order = np.argsort(turn, kind="stable")
    blocks: list[Floats] = []
    n, size, left = 0, _FIRST, ANSWER_SECONDS
    a_row = last = 0.0
    while n < n_items:
        block, began = order[n : n + size], perf_counter()
        blocks.append(model.predict_proba(block))
        spent = perf_counter() - began
        # a call may take its time whatever it is of; what the second takes more is its rows
        more = block.size - len(blocks[-2]) if len(blocks) > 1 else block.size
        a_row = (spent - last) / more if more > 0 and spent >= last else spent / block.size
        n, left, last = n + block.size, left - spent, spent
        room = left - max(spent - a_row * block.size, 0.0)
        if a_row * (n_items - n) <= room:
            return None
        size = min(4 * block.size, int(room / a_row)) if a_row and room > 0 else 0
        if not size:
            break
    sort = np.argsort(order[:n])
    return Scored(order[:n][sort], np.concatenate(blocks)[sort])


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
    items = np.union1d(rows, model.in_time(model.items))  # some policies want the labelled ones beside them
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


INITIAL = 1
QUERY = 2
FIT = 3
EVALUATION = 4
COLD_START = 5
MEASURE = 6
OVERLAP = 7
UNIFORM = 8
SECOND = 9
DRAWN = 10
CHECKS = 11


def generator(seed: int, number: int, stream: int) -> Generator:
    """The generator of one stream in one round.

    Args:
        seed: of the run or project.
        number: of the round (or of the question).
        stream: one of this module's constants.
    """
    return np.random.default_rng([seed, number, stream])


class ArrayOracle:
    """Answers with the pool's own truth.

    Args:
        pool: with truth.
    """

    def __init__(self, pool: Pool) -> None:
        if pool.truth is None:
            raise InputError(f"Pool {pool.name!r} has no known classes, so no oracle can answer.")
        self._pool = pool
        self._truth = pool.truth

    def __call__(self, item: int) -> str:
        """The name of the item's class.

        Raises:
            InputError: the source does not know it.
        """
        code = int(self._truth[item])
        if code < 0:
            raise InputError(f"The class of item {item} is not known; a person must label it.")
        return self._pool.classes[code]
