"""Pools drawn from known distributions, with the exact probabilities the best model could give."""

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Array, Floats
from workbench.documents.checking import Seed
from workbench.errors import InputError
from workbench.pools.building import number_pool
from workbench.pools.pool import Pool

_CHUNK = 100_000  # rows drawn from one generator, so that a longer pool begins with a shorter one

THREE_CENTRES = np.array([[1.0, 0.0], [0.0, 1.0], [(1.0 + 3.0**0.5) / 2.0] * 2]) / 2.0**0.5
"""[3, 2] centres of the toy of Galy-Fajou et al. 2019: an equilateral triangle of side 1."""


def sample_three_gaussians(n_items: int, noise: float, seed: int) -> tuple[Floats, Array]:
    """Draw from the mixture of Galy-Fajou et al. 2019: a class at random, its centre plus Gaussian noise.

    Args:
        n_items: N.
        noise: sigma^2, the variance of each coordinate; 0 gives the bare centres, 1 overlaps nearly wholly.
        seed: of the draw.

    Returns:
        Points [N, 2] and class codes [N].

    Raises:
        InputError: fewer than 4 items or a negative noise.
    """
    _between("number of items", n_items, 4, 20_000_000)
    if not (np.isfinite(noise) and noise >= 0.0):
        raise InputError(f"The noise (a variance) must be 0 or more; got {noise}.")
    rng = np.random.default_rng([seed, 0, 0x3CA5])
    codes = rng.integers(0, 3, size=n_items)
    codes[rng.permutation(n_items)[:3]] = np.arange(3)  # every class is met, also in a tiny pool
    return THREE_CENTRES[codes] + np.sqrt(noise) * rng.standard_normal((n_items, 2)), codes


def three_gaussians_probabilities(X: ArrayLike, noise: float) -> Floats:
    """The generator's exact class probabilities (Bayes' rule with equal shares).

    Args:
        X: [N, 2] points.
        noise: sigma^2 the points were drawn with; 0 gives certainty of the nearest centre.

    Returns:
        [N, 3] probabilities: what a perfect model of this pool would say.

    Raises:
        InputError: points that are not two coordinates, or a negative noise.
    """
    return _mixture_probabilities(X, THREE_CENTRES, noise)


def three_gaussians(*, n_items: int = 2500, noise: float = 0.5, seed: Seed = 0) -> Pool:
    """The toy of Galy-Fajou et al. 2019 of three overlapping Gaussians as a pool.

    Args:
        n_items: N; the paper's 500 to train and 2,000 to test by `split(seed, 0.8)`.
        noise: sigma^2.
        seed: of the draw.

    Returns:
        A pool of points in the plane.

    Raises:
        InputError: as `sample_three_gaussians`.
    """
    X, codes = sample_three_gaussians(n_items, noise, seed)
    return number_pool(
        "three-gaussians",
        X,
        codes,
        ("A", "B", "C"),
        ("x1", "x2"),
        title="Three Gaussians",
        description=f"Points around the corners of a triangle with noise {noise:g}: "
        "the best possible probabilities are known.",
    )


def overlapping_centres(n_classes: int, n_features: int, overlap: float, seed: int) -> Floats:
    """Centres of the overlapping classes: random directions, 2 / overlap from the origin.

    Args:
        n_classes: C.
        n_features: D.
        overlap: 1 mixes neighbours well, 0.3 hardly at all.
        seed: of the directions.

    Returns:
        [C, D] centres; every class is a unit Gaussian around its own.
    """
    directions = np.random.default_rng([seed, 0, 0x0E2]).standard_normal((n_classes, n_features))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * (2.0 / overlap)


def overlapping(
    *, n_items: int = 20_000, n_classes: int = 4, n_features: int = 10, overlap: float = 1.0, seed: Seed = 0
) -> Pool:
    """Gaussian classes that overlap, as many and as large as you like.

    Args:
        n_items: N.
        n_classes: C.
        n_features: D.
        overlap: 1 mixes neighbours well, 0.3 hardly at all.
        seed: of centres and points.

    Returns:
        The pool; the first rows do not depend on N (unless N is so small that a class would be missing).

    Raises:
        InputError: a number out of range.
    """
    _between("number of classes", n_classes, 2, 1000)
    _between("number of features", n_features, 1, 10_000)
    _between("number of items", n_items, n_classes + 1, 20_000_000)
    if not (np.isfinite(overlap) and overlap > 0.0):
        raise InputError(f"The overlap must be above 0; got {overlap}.")
    centres = overlapping_centres(n_classes, n_features, overlap, seed)
    codes = np.empty(n_items, dtype=np.int64)
    X = np.empty((n_items, n_features))
    for part, start in enumerate(range(0, n_items, _CHUNK)):
        rng = np.random.default_rng([seed, part, 0x0E3])
        draws = rng.integers(0, n_classes, size=_CHUNK)
        points = rng.standard_normal((_CHUNK, n_features))
        stop = min(start + _CHUNK, n_items)
        codes[start:stop] = draws[: stop - start]
        X[start:stop] = centres[codes[start:stop]] + points[: stop - start]
    codes_met = np.unique(codes)
    if len(codes_met) < n_classes:  # a tiny pool: one item of every class, at the front
        codes[:n_classes] = np.arange(n_classes)
        X[:n_classes] = centres
    return number_pool(
        "overlapping",
        X,
        codes,
        tuple(f"class {i + 1}" for i in range(n_classes)),
        tuple(f"x{i + 1}" for i in range(n_features)),
        title="Overlapping classes",
        description=f"{n_classes} Gaussian classes in {n_features} dimensions, overlap {overlap:g}: "
        "the best possible probabilities are known.",
    )


POKER_HANDS = (
    "nothing",
    "one pair",
    "two pairs",
    "three of a kind",
    "straight",
    "flush",
    "full house",
    "four of a kind",
    "straight flush",
    "royal flush",
)
POKER_ITEMS = 1_025_010
"""Rows of the papers' poker set: 25,010 to train and 1,000,000 to test."""


def name_hands(suits: ArrayLike, ranks: ArrayLike) -> Array:
    """The exact rule: what five cards are called.

    Args:
        suits: [N, 5] from 1 to 4.
        ranks: [N, 5] from 1 (ace) to 13 (king); an ace may also end a straight.

    Returns:
        [N] codes into `POKER_HANDS`.
    """
    suit, rank = np.asarray(suits), np.sort(np.asarray(ranks), axis=1)
    flush = (suit == suit[:, :1]).all(axis=1)
    # equal pairs among the 10 of five cards: 1 a pair, 2 two pairs, 3 three, 4 full house, 6 four
    equal = sum((rank[:, i] == rank[:, j]).astype(np.int64) for i in range(5) for j in range(i + 1, 5))
    high = (rank == np.array([1, 10, 11, 12, 13])).all(axis=1)
    straight = (equal == 0) & ((rank[:, 4] - rank[:, 0] == 4) | high)
    codes = np.array([0, 1, 2, 3, 6, 0, 7])[equal]
    codes[straight] = 4
    codes[flush] = 5
    codes[flush & straight] = 8
    codes[flush & high] = 9
    return codes


def deal_poker(n_items: int, seed: int) -> Array:
    """Deal five-card hands.

    Args:
        n_items: N.
        seed: of the dealing; the first hands do not depend on N.

    Returns:
        [N, 10] int8: suit and rank of each card, in the order dealt.
    """
    out = np.empty((n_items, 10), dtype=np.int8)
    for part, start in enumerate(range(0, n_items, _CHUNK)):
        rng = np.random.default_rng([seed, part, 0x9013])
        cards = rng.integers(0, 52 - np.arange(5), size=(_CHUNK, 5))[: n_items - start]
        for i in range(1, 5):
            # the i-th number counts cards still in the deck: step over those dealt, smallest first
            for dealt in np.sort(cards[:, :i], axis=1).T:
                cards[:, i] += cards[:, i] >= dealt
        stop = start + len(cards)
        out[start:stop, 0::2] = cards // 13 + 1
        out[start:stop, 1::2] = cards % 13 + 1
    return out


def poker(*, n_items: int = POKER_ITEMS, seed: Seed = 0) -> Pool:
    """Dealt poker hands, each called by the exact rule: the papers' largest set, for anyone to make.

    Args:
        n_items: N.
        seed: of the dealing.

    Returns:
        A pool of 10 features: suit (1-4) and rank (1-13) of five cards.

    Raises:
        InputError: a number of items out of range.
    """
    _between("number of items", n_items, len(POKER_HANDS) + 1, 20_000_000)
    hands = deal_poker(n_items, seed)
    names = tuple(f"{field}_{i}" for i in range(1, 6) for field in ("suit", "rank"))
    return number_pool(
        "poker",
        hands.astype(np.float32),
        name_hands(hands[:, 0::2], hands[:, 1::2]),
        POKER_HANDS,
        names,
        raw=hands,
        title="Poker hands",
        description=f"{n_items:,} hands of five cards; what is each one called?",
    )


def _mixture_probabilities(X: ArrayLike, centres: Floats, noise: float) -> Floats:
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != centres.shape[1]:
        raise InputError(f"Points must be [N, {centres.shape[1]}]; got shape {list(points.shape)}.")
    if not (np.isfinite(noise) and noise >= 0.0):
        raise InputError(f"The noise (a variance) must be 0 or more; got {noise}.")
    squared = ((points[:, None, :] - centres[None]) ** 2).sum(axis=2)  # [N, C]
    if noise == 0.0:
        return np.eye(len(centres))[squared.argmin(axis=1)]
    logits = -squared / (2.0 * noise)
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def _between(quantity: str, value: int, minimum: int, maximum: int) -> None:
    if not minimum <= value <= maximum:
        raise InputError(f"The {quantity} must lie between {minimum:,} and {maximum:,}; got {value:,}.")
