"""Geometry that a sparse model takes from the pool and keeps for a whole run.

Inducing points and scales come from the pool, not from the few labels: they stay where they are
while labels arrive, so a warm start continues exactly where the last fit ended.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from workbench.arrays import Array, Floats, column_moments, digest
from workbench.classifiers.representation import MAKERS, Representation
from workbench.engine.runtime import prepare
from workbench.errors import InputError

# k-means must give the same centres whether or not the engine was loaded before: same threads
prepare()

MAX_ROWS = 20_000  # k-means looks at no more rows than this
_MEDIAN_ROWS = 512
_WORTH = 1_000_000  # numbers looked at from which on centres are kept on disk
_LLOYD_STEPS = 15
_UNIT_SQUARED = 1.01  # pixels are far longer; projected vectors a little shorter


class Geometry(NamedTuple):
    """Scaling, inducing points and the natural length of a pool.

    Attributes:
        shift: [D] subtracted from raw features.
        scale: [D] then divided by; all equal for pixels.
        inducing: [P, D] k-means++ centres, in scaled units.
        mean_inducing: [Pm, D] further centres for the mean alone, in scaled units; may be empty.
        length_scale: median distance between items, in scaled units. Models multiply it by their
            own factor (`length_scale_factor`).
        clip: scaled features are cut at +-clip; infinite for pixels.
        representation: how the raw columns are written before that; None as they are.
        alternatives: the same pool in other representations.
    """

    shift: Floats
    scale: Floats
    inducing: Floats
    mean_inducing: Floats
    length_scale: float
    clip: float
    representation: Representation | None = None
    alternatives: tuple[Geometry, ...] = ()

    @property
    def n_features(self) -> int:
        """D, of raw features."""
        return len(self.shift) if self.representation is None else self.representation.n_features

    @property
    def common_scale(self) -> bool:
        """True if all features share one unit (pixels)."""
        return not np.isfinite(self.clip)

    @property
    def name(self) -> str:
        """Of the representation."""
        return "numbers" if self.representation is None else self.representation.name

    @property
    def names(self) -> tuple[str, ...]:
        """Of the representations at hand, the present one first."""
        return (self.name, *(geometry.name for geometry in self.alternatives))

    def select(self, name: str) -> Geometry:
        """The pool in another of its representations; this one is then among the alternatives.

        Args:
            name: one of `names`.
        """
        if name == self.name:
            return self
        (target,) = (alternative for alternative in self.alternatives if alternative.name == name)
        alternatives = (
            self._replace(alternatives=()),
            *(alternative for alternative in self.alternatives if alternative is not target),
        )
        return target._replace(alternatives=alternatives)

    @classmethod
    def of(
        cls,
        features: Array,
        n_inducing: int,
        seed: int,
        *,
        n_mean: int = 0,
        common_scale: bool = False,
        clip: float = 2.0,
        method: str = "k-means++",
        representations: bool = False,
    ) -> Geometry:
        """Measure a pool.

        Args:
            features: [N, D] raw features, N >= 1.
            n_inducing: P; a pool with fewer distinct rows gives fewer points.
            seed: same seed and rows, same geometry.
            n_mean: Pm, extra centres for the mean's basis.
            common_scale: one scale for all features (pixels) instead of a z-score for each.
            clip: z-scores are cut at +-clip; ignored with `common_scale`.
            method: "k-means++" (with Lloyd steps) or "random" (a subset of the rows).
            representations: measure the pool in other representations too, where it has columns for
                them and no common scale.

        Returns:
            The geometry.

        Raises:
            InputError: no rows, a number of points below 1, or an unknown method.
        """
        if n_inducing < 1:
            raise InputError(f"n_inducing must be at least 1; got {n_inducing}.")
        if n_mean < 0:
            raise InputError(f"n_mean must not be negative; got {n_mean}.")
        if not clip > 0:
            raise InputError(f"clip must be positive; got {clip}.")
        if method not in ("k-means++", "random"):
            raise InputError(f"Unknown inducing method {method!r}. Known: k-means++, random.")
        n = len(features)
        if n == 0:
            raise InputError("A geometry needs at least one row of features.")
        settings = seed, n_inducing, n_mean, common_scale, clip, method, representations
        rng = np.random.default_rng([seed, 0x6E0])
        rows = np.arange(n) if n <= MAX_ROWS else np.sort(rng.choice(n, MAX_ROWS, replace=False))
        sample = np.asarray(features[rows], dtype=np.float64)
        shift, scale = _common(sample) if common_scale else _z_score(sample)
        if sample.size < _WORTH:
            return cls._of(sample, shift, scale, rng, *settings)
        from workbench.pools.features.cache import kept_arrays

        # centres differ by the last bits with another library or number of threads
        libraries = *(version(name) for name in ("scikit-learn", "numpy")), os.environ.get("OMP_NUM_THREADS")
        key = digest(sample).hex(), n, settings, libraries
        return cls.from_arrays(
            kept_arrays("geometry", key, lambda: cls._of(sample, shift, scale, rng, *settings).to_arrays())
        )

    @classmethod
    def _of(
        cls,
        sample: Floats,
        shift: Floats,
        scale: Floats,
        rng: np.random.Generator,
        seed: int,
        n_inducing: int,
        n_mean: int,
        common_scale: bool,
        clip: float,
        method: str,
        representations: bool,
    ) -> Geometry:
        """Measures of the rows that are looked at."""
        limit = np.inf if common_scale else float(clip)

        def measured(rows: Floats, shift: Floats, scale: Floats, rng: np.random.Generator) -> Geometry:
            scaled = _scaled(rows, shift, scale, limit)
            inducing = _centres(scaled, n_inducing, rng, method)
            extra = _extra_centres(scaled, inducing, n_mean, rng, method)
            return cls(shift, scale, inducing, extra, _median_distance(scaled, rng), limit)

        first = measured(sample, shift, scale, rng)
        if common_scale or not representations:
            return first
        alternatives: list[Geometry] = []
        for number, make in enumerate(MAKERS.values(), start=1):
            representation = make(sample)
            if representation is None:
                continue
            features = representation.transform(sample)
            shift, scale = _z_score(features)
            alternative = measured(
                features, shift, representation.spread(scale), np.random.default_rng([seed, 0x6E0, number])
            )
            alternatives.append(alternative._replace(representation=representation))
        return first._replace(alternatives=tuple(alternatives))

    def transform(self, X: Array, dtype: type | np.dtype | str = np.float64) -> Floats:
        """Raw features [N, D] to scaled, clipped features [N, D].

        Args:
            X: [N, D] raw features.
            dtype: of the result.

        Raises:
            InputError: D is not the pool's.
        """
        if X.shape[1] != self.n_features:
            raise InputError(
                f"These features have {X.shape[1]} columns; the geometry was made from "
                f"{self.n_features}. Use the pool the geometry came from."
            )
        features: Floats = np.asarray(X, dtype=np.float64)
        if self.representation is not None:
            features = self.representation.transform(features)
        scaled = _scaled(features, self.shift, self.scale, self.clip)
        return scaled.astype(dtype, copy=False)

    def within_unit_ball(self, scaled: Floats) -> bool:
        """True if rows [N, D] in scaled units are no longer than 1 as raw features: learnt ones are not."""
        raw = scaled * self.scale + self.shift
        return bool((np.einsum("nd,nd->n", raw, raw) <= _UNIT_SQUARED).all())

    def to_arrays(self) -> dict[str, Array]:
        """Plain arrays, for saving; `from_arrays` is the way back."""
        arrays = {name: np.asarray(getattr(self, name)) for name in _ARRAYS}
        if self.representation is not None:
            arrays |= prefixed("representation", self.representation.to_arrays())
        for number, alternative in enumerate(self.alternatives):
            arrays |= prefixed(f"alternative{number}", alternative.to_arrays())
        return arrays

    @classmethod
    def of_state(cls, state: Mapping[str, Array]) -> Geometry | None:
        """The geometry in the state of a classifier (`get_state`); None where it has none."""
        arrays = within("geometry", state)
        return cls.from_arrays(arrays) if arrays else None

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Geometry:
        """The geometry that `to_arrays` took apart."""
        alternatives: list[Geometry] = []
        while part := within(f"alternative{len(alternatives)}", arrays):
            alternatives.append(cls.from_arrays(part))
        representation = within("representation", arrays)
        shift, scale, inducing, mean_inducing = (
            np.asarray(arrays[name], dtype=np.float64) for name in _ARRAYS[:4]
        )
        return cls(
            shift,
            scale,
            inducing,
            mean_inducing,
            float(arrays["length_scale"]),
            float(arrays["clip"]),
            Representation.from_arrays(representation) if representation else None,
            tuple(alternatives),
        )


_ARRAYS = ("shift", "scale", "inducing", "mean_inducing", "length_scale", "clip")


def prefixed(prefix: str, arrays: Mapping[str, Array] | Sequence[Array]) -> dict[str, Array]:
    """Arrays under names that begin with a prefix and a dot; those of a sequence under their numbers."""
    items = arrays.items() if isinstance(arrays, Mapping) else enumerate(arrays)
    return {f"{prefix}.{name}": value for name, value in items}


def within(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays whose names begin with a prefix and a dot, by the rest of their names."""
    start = f"{prefix}."
    return {name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)}


def in_order(prefix: str, arrays: Mapping[str, Array]) -> tuple[Array, ...]:
    """The sequence of arrays that `prefixed` wrote under their numbers."""
    numbered = within(prefix, arrays)
    return tuple(np.asarray(numbered[str(number)]) for number in range(len(numbered)))


def default_inducing(n: int) -> int:
    """Inducing points for n rows when nobody says: 64, 128 from 1,000, 256 from 4,000."""
    return 64 if n < 1000 else 128 if n < 4000 else 256


def with_points(geometry: Geometry, points: Floats) -> Geometry:
    """The geometry with further inducing points, those left out that are there already.

    Args:
        geometry: of a pool.
        points: [n, D] in scaled units.
    """
    more = _apart(_distinct(np.asarray(points, dtype=np.float64)), geometry.inducing)
    return geometry._replace(inducing=np.concatenate([geometry.inducing, more]))


def _scaled(X: Floats, shift: Floats, scale: Floats, clip: float) -> Floats:
    scaled = X - shift
    scaled /= scale
    if np.isfinite(clip):
        np.clip(scaled, -clip, clip, out=scaled)
    return scaled


def _z_score(X: Floats) -> tuple[Floats, Floats]:
    shift, scale = column_moments(X)
    # a constant column: its deviation is rounding, and dividing by that would make noise a feature
    scale[scale <= 1e-10 * np.maximum(np.abs(shift), 1e-300)] = 1.0
    return shift, scale


def _common(X: Floats) -> tuple[Floats, Floats]:
    low, high = float(X.min()), float(X.max())
    span = high - low if high > low else 1.0
    return np.full(X.shape[1], low), np.full(X.shape[1], span)


def _centres(X: Floats, k: int, rng: np.random.Generator, method: str) -> Floats:
    if len(X) <= k or method == "random":
        rows = _distinct(X)
        return rows if len(rows) <= k else rows[np.sort(rng.choice(len(rows), k, replace=False))]
    return _distinct(_k_means(X, k, rng, init="k-means++", steps=_LLOYD_STEPS))


def _extra_centres(X: Floats, inducing: Floats, k: int, rng: np.random.Generator, method: str) -> Floats:
    if k == 0:
        return np.empty((0, X.shape[1]))
    if len(X) <= k or method == "random":
        rows = _apart(_distinct(X), inducing)
        return rows if len(rows) <= k else rows[np.sort(rng.choice(len(rows), k, replace=False))]
    # with hundreds of centres a random start is as good as k-means++, at a tenth of its price
    return _apart(_distinct(_k_means(X, k, rng, init="random", steps=3)), inducing)


def _distinct(points: Floats) -> Floats:
    """Rows that differ by more than rounding, in lexical order of their rounded values."""
    _, first = np.unique(np.round(points, 9), axis=0, return_index=True)
    return points[first]


def _apart(points: Floats, centres: Floats) -> Floats:
    """Those points that are none of the taken ones, up to rounding."""
    keys = {row.tobytes() for row in np.round(centres, 9) + 0.0}
    return points[[row.tobytes() not in keys for row in np.round(points, 9) + 0.0]]


def _k_means(X: Floats, k: int, rng: np.random.Generator, init: str, steps: int) -> Floats:
    from warnings import catch_warnings, simplefilter

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    seed = int(rng.integers(2**31 - 1))
    with catch_warnings():
        # fewer distinct rows than clusters: the duplicates are dropped below
        simplefilter("ignore", ConvergenceWarning)
        means = KMeans(k, init=init, n_init=1, max_iter=steps, random_state=seed).fit(X)
    return means.cluster_centers_


def _median_distance(X: Floats, rng: np.random.Generator) -> float:
    rows = X if len(X) <= _MEDIAN_ROWS else X[rng.choice(len(X), _MEDIAN_ROWS, replace=False)]
    squares = (rows**2).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2.0 * rows @ rows.T
    pairs = distances[np.triu_indices(len(rows), 1)]
    # duplicates say nothing about the pool's extent
    pairs = pairs[pairs > 1e-12 * max(float(squares.max(initial=0.0)), 1.0)]
    return float(np.sqrt(np.median(pairs))) if pairs.size else 1.0
