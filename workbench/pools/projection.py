"""A plane to draw a pool on: its own when it has two features, principal components otherwise."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Array, Floats, column_moments, unmirrored
from workbench.errors import InputError
from workbench.pools.pool import Pool

_FIT_ROWS = 20_000
_FIT_NUMBERS = 20_000_000
_EXACT = 1_000
_CHUNK = 8_192


class PrincipalAxes(NamedTuple):
    """Directions of largest variance.

    Attributes:
        mean: [D].
        axes: [n, D], orthonormal, by falling variance; the largest entry of each is positive, so that
            the same data never come out mirrored.
        explained: [n] shares of the total variance.
    """

    mean: Floats
    axes: Floats
    explained: Floats


class Plane(NamedTuple):
    """A pool laid out in two dimensions.

    Attributes:
        points: [N, 2].
        names: of the two axes.
        explained: [2] shares of the features' variance the axes show, or None for a pool's own plane.
        own: whether the plane is the pool's own; otherwise it is a projection, and near points may
            be far apart.
        mean: [D] of the projection; zeros for an own plane.
        axes: [2, D] of the projection.
        scale: [D] the features are divided by before projecting.
    """

    points: Floats
    names: tuple[str, str]
    explained: Floats | None
    own: bool
    mean: Floats
    axes: Floats
    scale: Floats

    def place(self, features: ArrayLike) -> Floats:
        """Places of new rows.

        Args:
            features: [n, D].

        Returns:
            [n, 2] points.
        """
        return on_axes(np.asarray(features), self.mean, self.axes, self.scale)


def principal_axes(X: ArrayLike, n_components: int = 2) -> PrincipalAxes:
    """Principal components by a singular value decomposition.

    Args:
        X: [N, D], held in memory.
        n_components: how many; missing ones (fewer rows or features) come out as zeros.

    Returns:
        Mean, axes and explained shares.
    """
    values = np.asarray(X, dtype=np.float64)
    n, d = values.shape
    mean = values.mean(axis=0)
    centred = values - mean
    squares: Array
    rows: Array
    if n >= d:
        # the D x D side is the smaller one; its eigenvectors are the right singular vectors
        squares, vectors = np.linalg.eigh(centred.T @ centred)
        squares, rows = np.clip(squares[::-1], 0.0, None), vectors.T[::-1]
    else:
        _, singular, rows = np.linalg.svd(centred, full_matrices=False)
        squares = singular**2
    take = min(n_components, len(rows))
    axes = np.zeros((n_components, d))
    axes[:take] = rows[:take]
    explained = np.zeros(n_components)
    total = float(squares.sum())
    if total > 0:
        explained[:take] = squares[:take] / total
    return PrincipalAxes(mean, unmirrored(axes), explained)


def leading_axes(X: ArrayLike, n_components: int = 2) -> PrincipalAxes:
    """Principal components of any number of rows and features, by a randomised decomposition of many.

    Args:
        X: [N, D], held in memory.
        n_components: how many.

    Returns:
        As `principal_axes`, which serves up to 1,000 rows or features; above it the axes of
        a fixed random range (Halko, Martinsson & Tropp 2011), whose first ones agree with it closely.
    """
    values = np.asarray(X, dtype=np.float64)
    if min(values.shape) <= _EXACT or n_components >= min(values.shape) // 4:
        return principal_axes(values, n_components)
    from sklearn.utils.extmath import randomized_svd

    mean = values.mean(axis=0)
    centred = values - mean
    total = float((centred**2).sum())
    _, singular, axes = randomized_svd(centred, n_components, n_iter=4, random_state=0)
    return PrincipalAxes(mean, unmirrored(axes), singular**2 / total if total > 0 else singular**2)


def scaled_axes(pool: Pool, n_components: int, *, most: int, stream: int) -> tuple[PrincipalAxes, Floats]:
    """The leading directions of a pool's scaled features, from a sample of its items.

    Args:
        pool: any pool.
        n_components: how many directions.
        most: items of the sample; fewer of very many features.
        stream: number of the random stream that draws it.

    Returns:
        The axes, and the scale [D] that features are divided by before.
    """
    n, d = len(pool), pool.n_features
    most = min(most, max(2_000, _FIT_NUMBERS // d))
    rows = np.arange(n)
    if n > most:
        rows = np.sort(np.random.default_rng([0, 0, stream]).choice(n, most, replace=False))
    sample = np.asarray(pool.features[rows], dtype=np.float64)
    scale = np.ones(d)
    if not pool.common_scale:
        _, spread = column_moments(sample)
        scale[spread > 0] = spread[spread > 0]
    return leading_axes(sample / scale, n_components), scale


def project(pool: Pool) -> Plane:
    """Lay a pool out in the plane.

    Args:
        pool: any pool; one with two features keeps them, others are projected on the two directions
            of largest variance (after z-scores, unless its features share one scale).

    Returns:
        The plane; the same pool always gives the same one.

    Raises:
        InputError: a pool without items.
    """
    n, d = len(pool), pool.n_features
    if n == 0:
        raise InputError(f"Pool {pool.name!r} has no items to draw.")
    if d == 2:
        columns = pool.feature_map.columns
        points = np.asarray(pool.features[:], dtype=np.float64)
        return Plane(points, (columns[0], columns[1]), None, True, np.zeros(2), np.eye(2), np.ones(2))
    fitted, scale = scaled_axes(pool, 2, most=_FIT_ROWS, stream=0x9CA)
    laid = on_axes(pool.features, fitted.mean, fitted.axes, scale)
    return Plane(
        laid,
        ("first component", "second component"),
        fitted.explained,
        False,
        fitted.mean,
        fitted.axes,
        scale,
    )


def on_axes(features: Array, mean: Floats, axes: Floats, scale: Floats, dtype: Any = np.float64) -> Array:
    """Rows on axes, a part of them at a time.

    Args:
        features: [N, D].
        mean: [D] of the scaled features.
        axes: [n, D].
        scale: [D] that the features are divided by.
        dtype: of the result.

    Returns:
        [N, n].
    """
    out = np.empty((len(features), len(axes)), dtype)
    for start in range(0, len(features), _CHUNK):
        part = np.asarray(features[start : start + _CHUNK], dtype=np.float64)
        out[start : start + _CHUNK] = (part / scale - mean) @ axes.T
    return out
