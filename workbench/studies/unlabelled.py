"""Use of the unlabelled items: error against labels at each strength of leaning on neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.metrics import error_rate
from workbench.pools import load_pool
from workbench.pools.items import ArrayItems, RowNumbers
from workbench.pools.neighbours.graph import STRENGTHS, Neighbourhood
from workbench.pools.pool import Pool
from workbench.progress import OnProgress

DATA = ("digits", "moons", "rule")
LABELS = (4, 6, 10, 20, 50, 100, 200)
_DRAWS = 5
_SHOWN = 400  # items in the pictures


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """Errors by labels and strength, and the pool as each strength sees it.

    Attributes:
        labels: [L] how many.
        strengths: [S] names.
        error: [S, L] on test items outside the graph, mean over draws of the labels.
        places: [S, n, 2] some items on a plane, as seen.
        codes: [n] their classes.
        classes: names.
        n_test: how many test items.
    """

    labels: Ints
    strengths: tuple[str, ...]
    error: Floats
    places: Floats
    codes: Ints
    classes: tuple[str, ...]
    n_test: int


def moons(n: int, seed: int, noise: float = 0.12) -> tuple[Floats, Ints]:
    """Two half circles that reach into each other: [n, 2] and classes [n]."""
    rng = np.random.default_rng([seed, 0x300])
    y = rng.integers(2, size=n)
    angle = np.pi * rng.random(n)
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X[y == 1] = np.array([1.0, 0.5]) - X[y == 1]
    return X + noise * rng.standard_normal((n, 2)), y


def rule(n: int, seed: int) -> tuple[Floats, Ints]:
    """Eight columns of three values; the class says whether the first two are equal: close items differ."""
    rng = np.random.default_rng([seed, 0x301])
    X = rng.integers(3, size=(n, 8)).astype(np.float64)
    return X, (X[:, 0] == X[:, 1]).astype(np.int64)


def unlabelled(data: str, seed: int, report: OnProgress) -> Unlabelled:
    """The large-margin GP on each strength's features, at ever more random labels.

    Args:
        data: one of `DATA`: two moons, digits, or a rule on columns.
        seed: of the items and the labels.
        report: called with progress.
    """
    from workbench.classifiers import make_classifier

    pool = _pool(data, seed).split(seed, 0.25)
    assert pool.test is not None and pool.truth is not None
    truth, neighbourhood = np.asarray(pool.truth), Neighbourhood(pool)
    test, C = pool.test.test, len(pool.classes)
    counts = [n for n in LABELS if n >= 2 * min(C, 5)]
    orders = [
        _order(truth[pool.test.train], pool.test.train, np.random.default_rng([seed, d]))
        for d in range(_DRAWS)
    ]
    error, places = np.zeros((len(STRENGTHS), len(counts))), []
    selection = pool.test.train[:_SHOWN]
    for s, name in enumerate(STRENGTHS):
        report(s / len(STRENGTHS), f"leaning on neighbours: {STRENGTHS[name].said}")
        X = np.asarray(
            pool.features if name == "none" else neighbourhood.seen(name).features, dtype=np.float64
        )
        model = make_classifier("large-margin", classes=np.arange(C), choice="fixed", random_state=seed)
        geometry = model.measure(X[pool.test.train], seed, pool.common_scale)
        for at, n in enumerate(counts):
            for order in orders:
                model.set_params(geometry=geometry).fit(X[order[:n]], truth[order[:n]])
                error[s, at] += error_rate(truth[test], model.predict(X[test])) / len(orders)
        places.append(_plane(X[pool.test.train], X[selection]))
    return Unlabelled(
        np.array(counts),
        tuple(STRENGTHS),
        error,
        np.stack(places),
        truth[selection],
        tuple(map(str, pool.classes)),
        len(test),
    )


def _order(codes: Ints, items: Ints, rng: np.random.Generator) -> Ints:
    """Items in random order, one of each class first."""
    order = rng.permutation(len(items))
    first = np.sort([int(np.flatnonzero(codes[order] == c)[0]) for c in np.unique(codes)])
    return items[np.concatenate([order[first], np.delete(order, first)])]


def _plane(X: Array, rows: Array) -> Floats:
    """Rows on the first two principal axes, which are turned the same way every time."""
    centre = X.mean(axis=0)
    if X.shape[1] == 2:
        return np.asarray(rows - centre)
    axes = np.linalg.svd(X - centre, full_matrices=False)[2][:2]
    axes *= np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])[:, None]
    return np.asarray((rows - centre) @ axes.T)


def _pool(data: str, seed: int) -> Pool:
    digits = load_pool("digits")
    if data == "digits":
        return digits
    X, y = moons(300, seed) if data == "moons" else rule(1200, seed)
    names = ("upper", "lower") if data == "moons" else ("differ", "equal")
    columns = tuple(f"x{d + 1}" for d in range(X.shape[1]))
    return replace(
        digits,
        name=data,
        kind="table",
        features=X,
        classes=names,
        truth=y,
        test=None,
        common_scale=False,
        items=ArrayItems(RowNumbers(len(X)), X, columns),
        fingerprints=np.arange(len(X), dtype=np.uint64),
    )
