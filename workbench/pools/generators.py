"""Pools drawn from known distributions, with the exact probabilities the best model could give."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Array, Floats
from workbench.errors import InputError
from workbench.pools.features import NumberMap
from workbench.pools.fingerprints import fingerprint_rows
from workbench.pools.items import ArrayItems, RowNumbers
from workbench.pools.pool import Pool

THREE_CENTRES = np.array([[1.0, 0.0], [0.0, 1.0], [(1.0 + 3.0**0.5) / 2.0] * 2]) / 2.0**0.5
"""[3, 2] centres of paper 002's toy: an equilateral triangle of side 1."""


def sample_three_gaussians(n_items: int, noise: float, seed: int) -> tuple[Floats, Array]:
    """Draw from paper 002's mixture: a class at random, then its centre plus Gaussian noise.

    Args:
        n_items: N.
        noise: sigma^2, the variance of each coordinate; 0 gives the bare centres, 1 overlaps nearly wholly.
        seed: of the draw.

    Returns:
        Points [N, 2] and class codes [N].

    Raises:
        InputError: fewer than 3 items or a negative noise.
    """
    _at_least(n_items, 3)
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


def three_gaussians(*, n_items: int = 2500, noise: float = 0.5, seed: int = 0) -> Pool:
    """Paper 002's toy of three overlapping Gaussians as a pool.

    Args:
        n_items: N; the paper's 500 to train and 2,000 to test by `split(seed, .8)`.
        noise: sigma^2.
        seed: of the draw.

    Returns:
        A pool of points in the plane.

    Raises:
        InputError: as `sample_three_gaussians`.
    """
    X, codes = sample_three_gaussians(n_items, noise, seed)
    return numeric_pool(
        "three-gaussians",
        X,
        codes,
        classes=("A", "B", "C"),
        names=("x1", "x2"),
        title="Three Gaussians",
        description=f"Points around the corners of a triangle with noise {noise:g}: "
        "the best possible probabilities are known.",
        plane=True,
    )


def numeric_pool(
    name: str,
    X: Array,
    codes: Array | None,
    *,
    classes: tuple[str, ...],
    names: tuple[str, ...],
    title: str,
    description: str,
    plane: bool = False,
    common_scale: bool = False,
) -> Pool:
    """A table pool from numbers in memory.

    Args:
        name: of the pool.
        X: [N, D].
        codes: [N] class codes, -1 unknown, or None.
        classes: names of the classes.
        names: [D] of the columns.
        title: one line.
        description: a sentence.
        plane: whether the two columns are a plane worth drawing.
        common_scale: whether all columns share a unit.

    Returns:
        The pool.
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    return Pool(
        name=name,
        kind="table",
        features=X,
        classes=classes,
        truth=None if codes is None else np.asarray(codes, dtype=np.int64),
        items=ArrayItems(RowNumbers(len(X)), X, names),
        feature_map=NumberMap(names),
        fingerprints=fingerprint_rows(X),
        title=title,
        description=description,
        plane=plane,
        common_scale=common_scale,
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


def _at_least(n_items: int, least: int, most: int = 20_000_000) -> None:
    if not least <= n_items <= most:
        raise InputError(f"The number of items must lie between {least:,} and {most:,}; got {n_items:,}.")
