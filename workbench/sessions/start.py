"""Questions that are asked before a model knows anything."""

from collections.abc import Sequence

import numpy as np

from workbench.arrays import Array, Ints, standardised
from workbench.errors import InputError
from workbench.pools.pool import Pool
from workbench.sessions.drawing import COLD_START, INITIAL, generator

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
    selection = np.asarray(list(items), dtype=np.int64)
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
