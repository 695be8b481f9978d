"""Random draws: their streams, items to begin with and to choose among, and the oracle."""

import operator
from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np
from numpy.random import Generator

from workbench.arrays import Array, Floats, Ints, standardised
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


_MAX_ROWS = 20_000


def initial_items(pool: Pool, initial: str, seed: int) -> Ints:
    """The items labelled before round 0; a function of (pool, seed) alone, so that policies are paired.

    Args:
        pool: with truth.
        initial: as in `RunSpec`.
        seed: of the run.

    Returns:
        [n] indices of trainable items whose truth is known.

    Raises:
        InputError: no truth to start from, or fewer than two classes in it.
    """
    kind, number = parse_initial(initial)
    candidates = answerable(pool)
    assert pool.truth is not None
    present = np.unique(pool.truth[candidates])
    if present.size < 2:
        raise InputError(
            f"Pool {pool.name!r} has {present.size} class(es) among the items that may be asked; "
            "a run needs at least two."
        )
    if kind == "none":
        return np.empty(0, dtype=np.int64)
    rng = generator(seed, 0, INITIAL)
    if kind == "one-per-class":
        return np.asarray(
            [rng.choice(candidates[pool.truth[candidates] == code]) for code in present], dtype=np.int64
        )
    n = min(number or 2 * present.size, candidates.size)
    if kind == "random":
        return rng.choice(candidates, n, replace=False).astype(np.int64)
    return diverse_items(pool, candidates, n, seed)


def given_items(items: Sequence[int], pool: Pool) -> Ints:
    """[n] the items to start from.

    Args:
        items: as given.
        pool: with truth.

    Raises:
        InputError: one of them cannot be answered or is a copy of another, or none is given.
    """
    try:
        selection = np.asarray([operator.index(item) for item in items], dtype=np.int64)
    except TypeError:
        raise InputError(f"The items to start from are a list of whole numbers; got {items!r:.80}.") from None
    known = selection[np.isin(selection, _known(pool))]
    bad = selection[~np.isin(selection, answerable(pool, known))]
    if bad.size or not selection.size:
        problem = f"item {bad[0]} is not among those" if bad.size else "no item is given"
        raise InputError(
            "A run starts from items whose class is known and that may be asked, of copies from one: "
            f"{problem}."
        )
    return selection


def answerable(pool: Pool, start: Sequence[int] | Ints = ()) -> Ints:
    """[n] trainable items an oracle can answer, ascending; of copies one.

    Args:
        pool: with truth.
        start: items that stand for their groups; the lowest ones do elsewhere.

    Raises:
        InputError: the pool has no truth.
    """
    if pool.truth is None or not pool.has_truth:
        raise InputError(
            f"Pool {pool.name!r} has no known classes, so no oracle can answer. Name the column that holds "
            "them (--target COLUMN), or label it as a person in the app."
        )
    items = np.concatenate([np.asarray(start, dtype=np.int64), _known(pool)])
    return np.sort(items[np.unique(pool.groups[items], return_index=True)[1]])


def _known(pool: Pool) -> Ints:
    truth = np.asarray(pool.truth)
    return pool.trainable[truth[pool.trainable] >= 0]


def diverse_items(pool: Pool, rows: Ints, n: int, seed: int, further: int = 0) -> Ints:
    """Items spread over the pool: the item nearest to each of n k-means centres, big clusters first.

    Items that lie apart follow them, since a rare class is met among these sooner than at random.

    Args:
        pool: gives the features.
        rows: [m] items in the running; at most 20,000 of them, drawn by the seed, are looked at.
        n: how many.
        seed: of the run or project.
        further: items more, each the farthest from all before it.

    Returns:
        [n + further] indices (fewer where the pool has fewer distinct items).
    """
    rng = generator(seed, 0, COLD_START)
    if rows.size > _MAX_ROWS:
        rows = np.sort(rng.choice(rows, _MAX_ROWS, replace=False))
    X = standardised(pool.features[rows], pool.common_scale)
    places = diverse_rows(X, n, int(rng.integers(2**31 - 1))).tolist()
    if further and places:
        gaps = np.min([((X - X[row]) ** 2).sum(axis=1) for row in places], axis=0)
        while further and gaps.max() > 0:
            further -= 1
            places.append(int(gaps.argmax()))
            gaps = np.minimum(gaps, ((X - X[places[-1]]) ** 2).sum(axis=1))
    return rows[np.asarray(places, dtype=np.int64)]


def diverse_rows(X: Array, n: int, seed: int) -> Ints:
    """The rows of features [m, D] nearest to each of n k-means centres, big clusters first: [n] places."""
    from warnings import catch_warnings, simplefilter

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    n = min(n, len(X))
    if n == 0:
        return np.empty(0, dtype=np.int64)
    with catch_warnings():
        # Duplicates can leave clusters empty; the distinct ones are all that is wanted.
        simplefilter("ignore", ConvergenceWarning)
        means = KMeans(n, n_init=1, random_state=seed).fit(X)
    distances = means.transform(X)
    sizes = np.bincount(means.labels_, minlength=n)
    places: list[int] = []
    for cluster in np.argsort(-sizes, kind="stable"):
        members = np.flatnonzero(means.labels_ == cluster)
        if members.size:
            places.append(int(members[np.argmin(distances[members, cluster])]))
    return np.asarray(places, dtype=np.int64)


def parse_initial(initial: str) -> tuple[str, int | None]:
    """Split "random:20" into its kind and number.

    Raises:
        InputError: an unknown kind, or a number below 1.
    """
    kind, colon, number = initial.partition(":")
    if kind not in ("one-per-class", "none", "diverse", "random") or (
        colon and kind in ("one-per-class", "none")
    ):
        raise InputError(
            f"Unknown initial labels {initial!r}. Known: one-per-class, diverse, diverse:N, random, "
            "random:N; and none, with a guess."
        )
    if not colon:
        return kind, None
    if not number.isdecimal() or int(number) < 1:
        raise InputError(f"{initial!r}: the number of initial labels must be at least 1.")
    return kind, int(number)
