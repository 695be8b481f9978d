"""Features smoothed over the pool's own graph of nearest neighbours, so that unlabelled items count.

No label is used, and no test item: the graph is of the items that may be asked about, and every other row is
smoothed hop by hop by its neighbours among these (docs/math.md, 15; Zhou et al. 2003, Wu et al. 2019,
Klicpera et al. 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush
from threading import RLock
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Array, Floats, Ints, column_moments, digest
from workbench.errors import InputError
from workbench.pools.cells import read_texts
from workbench.pools.features.pieces import PiecesFeatureMap
from workbench.pools.features.table import CategoryColumn, TableFeatureMap, TextColumn
from workbench.pools.neighbours.nearest import K, Nearest, nearest, nearest_among, way
from workbench.pools.pool import FeatureMap, Pool, TextItems
from workbench.progress import part, tell

VERSION = 2
FEWEST = 50  # items from which on a graph says anything
MOST_ROWS = 20_000  # of the pool that new rows are smoothed by
MOST_BYTES = 64_000_000  # of their layers
LARGE = 200_000  # items from which on only the strongest smoothing is tried
_CLIP = 2.0  # of z-scores, as models cut theirs
_SHARP = 2.0
_UNIT = 1.01  # squared length that learnt features do not exceed
_CHUNK = 4096
_WALKED, _LEAST_WALKED = 4, 64  # as many items are looked at for each that is wanted, and at least
_WORTH = 100_000  # numbers from which on keeping them saves time


class Strength(NamedTuple):
    """Strength with which an item leans on its neighbours.

    Attributes:
        hops: steps through the graph.
        stay: share of its own features at each step, in (0, 1].
        beside: the item's own features stand beside the smoothed ones.
        said: in words, after "leans on neighbours: ".
    """

    hops: int
    stay: float
    beside: bool
    said: str


STRENGTHS = {
    "none": Strength(0, 1.0, False, "not at all"),
    "weak": Strength(2, 0.3, False, "a little"),
    "medium": Strength(4, 0.2, False, "clearly"),
    "strong": Strength(8, 0.1, False, "strongly"),
    "both": Strength(8, 0.1, True, "strongly, beside its own features"),
}
"""From leaning on nothing to leaning most; "both" is the safe one where labels are many."""


def edge_weights(distances: Floats) -> Floats:
    """[n, k] weights exp(-2 (d / d_k)^2) of neighbours at ascending distances; 1 where all are copies."""
    distances = np.asarray(distances, dtype=np.float64)
    furthest = distances[:, -1:]
    ratio = np.divide(distances, furthest, out=np.zeros_like(distances), where=furthest > 0)
    weights: Floats = np.exp(-_SHARP * ratio**2)
    return weights


class Operator(NamedTuple):
    """Factor of one hop.

    Attributes:
        matrix: S = D^-1/2 A D^-1/2, sparse [n, n] float32.
        degrees: [n] sums of the rows of A.
    """

    matrix: Any
    degrees: Floats


def operator(found: Nearest) -> Operator:
    """S of a graph: A symmetric by the larger of two weights, plus the identity."""
    from scipy import sparse

    n, k = found.rows.shape
    starts = np.arange(0, n * k + 1, k)
    A = sparse.csr_matrix((edge_weights(found.distances).ravel(), found.rows.ravel(), starts), shape=(n, n))
    A = A.maximum(A.T) + sparse.identity(n, format="csr")
    degrees: Floats = np.asarray(A.sum(axis=1)).ravel()
    scale = sparse.diags(1.0 / np.sqrt(degrees))
    return Operator((scale @ A @ scale).tocsr().astype(np.float32), degrees)


def hops(S: Any, Z: Floats, strength: Strength) -> Iterator[Floats]:
    """Z_0, ..., Z_h, each hop (1 - a) S Z + a Z_0.

    Args:
        S: of `operator`.
        Z: [n, D] scaled features.
        strength: how many, and a.
    """
    layer = Z
    yield layer
    for hop in range(strength.hops):
        tell(hop / strength.hops, "Leaning on neighbours")
        layer = np.float32(1.0 - strength.stay) * (S @ layer) + np.float32(strength.stay) * Z
        yield layer


class View(NamedTuple):
    """Smoothing of new rows with the pool: everything that a saved model needs.

    Attributes:
        name: of the strength.
        shift: [D] taken from raw features.
        scale: [D] they are then divided by.
        clip: they are cut at, infinite where all share one unit.
        size: [2] what own and smoothed features are then divided by.
        layers: [h + 1, m, D] float16: Z_0 to Z_h of m rows of the pool.
        degrees: [m] of these rows in the graph: a hub says less to each of its neighbours.
    """

    name: str
    shift: Floats
    scale: Floats
    clip: float
    size: Floats
    layers: Array
    degrees: Floats

    @property
    def n_features(self) -> int:
        """Columns that a model sees."""
        return len(self.shift) * (2 if STRENGTHS[self.name].beside else 1)

    @property
    def nbytes(self) -> int:
        """Bytes that a saved model needs more for it."""
        return sum(np.asarray(value).nbytes for value in self.to_arrays().values())

    def scaled(self, X: Array) -> Floats:
        """[n, D] raw features as the graph measures them."""
        if X.ndim != 2 or X.shape[1] != len(self.shift):
            raise InputError(
                f"These rows have {X.shape[-1]} features; the neighbours that the model leans on have "
                f"{len(self.shift)}. Give it rows of the pool it was fitted on."
            )
        Z = (np.asarray(X, dtype=np.float64) - self.shift) / self.scale
        return np.clip(Z, -self.clip, self.clip).astype(np.float32)

    def seen(self, own: Floats, smoothed: Floats) -> Floats:
        """Input of a model: the smoothed features, or both beside each other, on their scale."""
        if not STRENGTHS[self.name].beside:
            return (smoothed / self.size[1]).astype(np.float32)
        return np.hstack([own / self.size[0], smoothed / self.size[1]]).astype(np.float32)

    def transform(self, X: Array) -> Floats:
        """New rows, hop by hop by their neighbours in the pool; a copy of one of these is seen as it is.

        Args:
            X: [n, D] raw features.

        Returns:
            [n, n_features] float32.

        Raises:
            InputError: another number of features.
        """
        X = np.asarray(X)
        return np.concatenate(
            [self._moved(self.scaled(X[i : i + _CHUNK])) for i in range(0, max(len(X), 1), _CHUNK)]
        )

    def without_self(self, X: Array, found: Nearest | None = None) -> Floats:
        """Rows of the pool as they would be seen had they come later: not among their own neighbours.

        Args:
            X: [n, D] raw features.
            found: their neighbours among the layers' rows, where they are known.

        Returns:
            [n, n_features] float32.
        """
        Z = self.scaled(np.asarray(X))
        if found is None and len(Z):
            among = nearest_among(Z, self.layers[0].astype(np.float32), K + 1)
            # the nearest is the row itself, unless it was thinned away
            first = self._copies(Z, among.rows[:, 0]).astype(np.int64)[:, None]
            places = first + np.arange(among.rows.shape[1] - 1)
            found = Nearest(
                np.take_along_axis(among.rows, places, 1), np.take_along_axis(among.distances, places, 1)
            )
        return self._moved(Z, found)

    def _copies(self, Z: Floats, rows: Ints) -> Array:
        """[n] whether these rows of the layers are copies; float16 moves a row by a two-thousandth."""
        near = np.abs(Z - self.layers[0][rows].astype(np.float32)).max(axis=1)
        return near <= 1e-3 * np.maximum(np.abs(Z).max(axis=1), 1e-6)

    def _moved(self, Z: Floats, neighbours: Nearest | None = None) -> Floats:
        if not len(Z):
            return np.empty((0, self.n_features), np.float32)
        stay = np.float32(STRENGTHS[self.name].stay)
        if neighbours is None:
            neighbours = nearest_among(Z, self.layers[0].astype(np.float32), K)
        weights = edge_weights(neighbours.distances)
        degree = 1.0 + weights.sum(axis=1, keepdims=True)
        # a row of S, as if the new one were among the pool's: divided by the sum alone it would not be of
        # their size, and models know the pool's
        share = (weights / np.sqrt(degree * self.degrees[neighbours.rows])).astype(np.float32)
        own_share = (1.0 / degree).astype(np.float32)
        layer = Z
        for pool in self.layers[:-1]:
            around = np.einsum("mk,mkd->md", share, pool[neighbours.rows].astype(np.float32))
            layer = (1 - stay) * (own_share * layer + around) + stay * Z
        copies = self._copies(Z, neighbours.rows[:, 0])
        layer[copies] = self.layers[-1][neighbours.rows[copies, 0]]
        return self.seen(Z, layer)

    def to_arrays(self) -> dict[str, Array]:
        """Plain arrays; `from_arrays` is the way back."""
        return {name: np.asarray(value) for name, value in self._asdict().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> View:
        """The view that `to_arrays` took apart.

        Raises:
            ValueError: arrays that are none.
        """
        name, layers = str(arrays["name"]), np.asarray(arrays["layers"])
        shift, scale, size, degrees = (
            np.asarray(arrays[key], dtype=np.float64) for key in ("shift", "scale", "size", "degrees")
        )
        if name not in STRENGTHS or layers.ndim != 3 or layers.shape[2] != len(shift) or not layers.shape[1]:
            raise ValueError("its layers are not those of a strength")
        if len(layers) != STRENGTHS[name].hops + 1 or len(scale) != len(shift) or size.shape != (2,):
            raise ValueError("its layers are not those of a strength")
        if degrees.shape != (layers.shape[1],) or not (degrees >= 1.0).all():
            raise ValueError("its degrees are not those of its rows")
        if not all(np.isfinite(part).all() for part in (shift, scale, size, layers, degrees)):
            raise ValueError("it holds numbers that are not finite")
        return cls(name, shift, scale, float(arrays["clip"]), size, layers, degrees)


@dataclass(frozen=True, eq=False)
class SmoothedFeatureMap:
    """A feature map whose rows then lean on neighbours in the pool.

    Attributes:
        base: of the pool.
        view: of the neighbours.
    """

    base: FeatureMap
    view: View

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of what a model sees."""
        if not STRENGTHS[self.view.name].beside:
            return self.base.columns
        return (*self.base.columns, *(f"{name} around" for name in self.base.columns))

    def transform(self, rows: Any) -> Array:
        """Raw rows to what a model sees, [n, D']."""
        return self.view.transform(np.asarray(self.base.transform(rows)))

    def to_json(self) -> dict[str, Any]:
        """The document of the map alone; a saved model holds the neighbours beside it."""
        return self.base.to_json()


class Seen(NamedTuple):
    """A pool as a model sees it that leans on neighbours, or learns from a column beside the text.

    Attributes:
        features: [N, D'] of every item.
        view: of new rows.
    """

    features: Array
    view: View | WithColumn


def saved_way(pool: Pool, seen: Seen | None) -> dict[str, Any]:
    """Way of new rows to what a model sees, as saved models keep it: `feature_map` and `view`."""
    view = None if seen is None else seen.view
    if isinstance(view, WithColumn):
        return {"feature_map": view.feature_map, "view": None}
    return {"feature_map": pool.feature_map, "view": view}


class Neighbourhood:
    """The graph of one pool, and its features at each strength; made when asked for, kept on disk.

    Args:
        pool: with its test split, whose items stay outside the graph.
        begun: items that the pool had when its project began: those that came later lean on these, and what
            models saw of these stays. None: all of them.
    """

    def __init__(self, pool: Pool, begun: int | None = None) -> None:
        self._pool, self._features = pool, pool.features
        self._rows = pool.trainable if begun is None else pool.trainable[pool.trainable < begun]
        self._common = pool.common_scale
        self._seen: dict[str, Seen] = {}
        self._as_new: dict[str, dict[int, Floats]] = {}
        self._lock = RLock()  # one writer; whoever else asks meanwhile waits for it

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, item: int) -> bool:
        at = int(np.searchsorted(self._rows, item))
        return at < len(self._rows) and int(self._rows[at]) == item

    @property
    def too_few(self) -> str:
        """Why there is no graph of this pool, for people; "" where there is one."""
        n, D = len(self._rows), self._features.shape[1]
        if n < FEWEST:
            return f"{n} items are too few for a graph of neighbours"
        if 4 * D * n > 16 * MOST_ROWS * MOST_ROWS:
            return f"{D:,} features of {n:,} items are too many for a graph of neighbours"
        how = way(n)
        return "" if how in ("exact", "faiss") else how

    @cached_property
    def strengths(self) -> tuple[str, ...]:
        """Those that are tried for this pool."""
        if self.too_few or not self._scale[0]:
            return ("none",)
        return ("none", "strong") if len(self._rows) > LARGE else tuple(STRENGTHS)

    @cached_property
    def columns(self) -> dict[str, WithColumn]:
        """Columns shown beside a text that a model may learn from, too."""
        return with_columns(self._pool, self._rows)

    @cached_property
    def key(self) -> str:
        """Of the content: equal features and rows, equal key."""
        sample = np.asarray(self._features[self._rows])
        return digest(sample, self._rows, np.asarray([self._common])).hex() + way(len(self._rows))

    @property
    def rows(self) -> Ints:
        """[n] items that the graph is of."""
        return self._rows

    @cached_property
    def _scale(self) -> tuple[bool, Floats, Floats, float]:
        """True if anything differs, shift, scale and clip."""
        X = np.asarray(self._features[self._rows], dtype=np.float64)
        shift, spread = column_moments(X)
        spread[spread <= 1e-10 * np.maximum(np.abs(shift), 1e-300)] = 0.0
        if not spread.any():
            return False, shift, np.ones_like(shift), np.inf
        if self._common:
            common_scale = float(np.sqrt((spread**2).mean()))
            return True, shift, np.full_like(shift, common_scale), np.inf
        return True, shift, np.where(spread > 0, spread, 1.0), _CLIP

    @cached_property
    def graph(self) -> Nearest:
        """Of the rows that may be asked about, by their places among these."""
        with self._lock:
            arrays = self._kept("neighbours-graph", (VERSION, K, self.key), lambda: self._found()._asdict())
        return Nearest(arrays["rows"], arrays["distances"])

    def _found(self) -> Nearest:
        with part(0.0, 0.6):
            return nearest(self._base(), K)

    @property
    def _plain(self) -> View:
        """Of features that lean on nothing."""
        _, shift, scale, clip = self._scale
        return View("none", shift, scale, clip, np.ones(2), np.empty((1, 0, 0)), np.empty(0))

    def _base(self) -> Floats:
        return self._plain.scaled(np.asarray(self._features[self._rows]))

    def seen(self, strength: str) -> Seen:
        """The pool as a model sees it.

        Args:
            strength: one of `STRENGTHS` but "none", or of `columns`.
        """
        with self._lock:
            if strength not in self._seen and strength in self.columns:
                both = self.columns[strength]
                self._seen[strength] = Seen(both.transform(self._features, both.indicators), both)
            if strength not in self._seen:
                key = VERSION, K, MOST_ROWS, MOST_BYTES, self.key, strength
                arrays = self._kept("neighbours", key, lambda: self._made(strength))
                view = View.from_arrays({k: v for k, v in arrays.items() if k != "features"})
                self._seen[strength] = Seen(self._whole(arrays["features"], view, key), view)
            return self._seen[strength]

    def as_new(self, strength: str, items: Ints) -> Floats:
        """Items as a model would see them had they come later; the labels judge a strength by these.

        In the graph an item and its neighbours have moved towards each other, which a new row has not done.

        Args:
            strength: as of `seen`.
            items: [n] of the pool.

        Returns:
            [n, D'].
        """
        pool_view = self.seen(strength)
        view = pool_view.view
        if isinstance(view, WithColumn):
            return pool_view.features[items]
        with self._lock:
            memo = self._as_new.setdefault(strength, {})
            missing = np.array([item for item in items.tolist() if item not in memo], dtype=np.int64)
            inside = np.isin(missing, self._rows)
            memo.update((item, pool_view.features[item]) for item in missing[~inside].tolist())
            missing = missing[inside]
            neighbours = None
            if view.layers.shape[1] == len(self._rows):  # none were thinned away
                at = np.searchsorted(self._rows, missing)
                neighbours = Nearest(self.graph.rows[at], self.graph.distances[at])
            new_rows = view.without_self(self._features[missing], neighbours)
            memo.update(zip(missing.tolist(), new_rows, strict=True))
            return np.stack([memo[item] for item in items.tolist()])

    def _whole(self, inside: Array, view: View, key: tuple[Any, ...]) -> Array:
        """[N, D'] of every item, those outside the graph as new rows are."""
        N = len(self._features)
        outside = np.setdiff1d(np.arange(N), self._rows)
        if not len(outside):
            return inside

        def make() -> dict[str, Array]:
            features = np.empty((N, view.n_features), np.float32)
            features[self._rows] = inside
            for i in range(0, len(outside), _CHUNK):
                batch = outside[i : i + _CHUNK]
                features[batch] = view.transform(np.asarray(self._features[batch]))
            return {"features": features}

        beyond = digest(np.asarray(self._features[outside]), outside).hex()
        return self._kept("neighbours-whole", (*key, beyond), make)["features"]

    def _kept(
        self, kind: str, key: tuple[Any, ...], make: Callable[[], dict[str, Array]]
    ) -> dict[str, Array]:
        """Arrays kept on disk, those of a small pool made again each time."""
        if self._features.size < _WORTH:
            return make()
        from workbench.pools.features.cache import kept_arrays

        return kept_arrays(kind, key, make)

    def around(self, item: int, k: int) -> Ints:
        """Items nearest to one of the graph's, nearest first, itself left out.

        Up to `K` of them are the graph's own. More are found by walking along it, from the nearest that was
        not looked at, until a few times as many are known that are all nearer than what is left.

        Args:
            item: one of `rows`.
            k: how many, at most.

        Raises:
            InputError: an item outside the graph.
        """
        if item not in self:
            raise InputError(f"Item {item} is not in the graph of neighbours.")
        at = int(np.searchsorted(self._rows, item))
        graph = self.graph
        if k <= graph.rows.shape[1]:
            return self._rows[graph.rows[at, :k].astype(np.int64)]
        origin = self._plain.scaled(np.asarray(self._features[[item]]))
        wide = max(_WALKED * k, _LEAST_WALKED)
        distances, waiting, looked_at = {at: 0.0}, [(0.0, at)], 0
        while waiting:
            distance, place = heappop(waiting)
            looked_at += 1
            if looked_at > wide and distance > sorted(distances.values())[wide - 1]:
                break
            new = np.array(
                [row for row in graph.rows[place].tolist() if row not in distances], dtype=np.int64
            )
            if not len(new):
                continue
            rows = self._plain.scaled(np.asarray(self._features[self._rows[new]]))
            for neighbour, gap in zip(
                new.tolist(), np.linalg.norm(rows - origin, axis=1).tolist(), strict=True
            ):
                distances[neighbour] = gap
                heappush(waiting, (gap, neighbour))
        nearest_first = sorted((gap, place) for place, gap in distances.items() if place != at)[:k]
        return self._rows[np.array([place for _, place in nearest_first], dtype=np.int64)]

    def is_kept(self) -> bool:
        """True if every strength that is tried is at hand, so that nobody has to wait for one."""
        return all(name in self._seen for name in self.strengths if name != "none")

    def make(self) -> None:
        """Everything that a choice needs; says how far it is and ends where its watcher ends it."""
        tried = [name for name in self.strengths if name != "none"]
        if tried:
            _ = self.graph
        for number, name in enumerate(tried):
            with part(0.6 + 0.4 * number / len(tried), 0.6 + 0.4 * (number + 1) / len(tried)):
                self.seen(name)

    def _made(self, name: str) -> dict[str, Array]:
        strength = STRENGTHS[name]
        _, shift, scale, clip = self._scale
        Z = self._base()
        n, D = Z.shape
        limit = min(MOST_ROWS, max(1, MOST_BYTES // (2 * D * (strength.hops + 1))))
        rows = np.arange(n)
        if n > limit:
            rows = np.sort(np.random.default_rng([n, 0x4E1]).choice(n, limit, replace=False))
        layers = np.empty((strength.hops + 1, len(rows), D), np.float16)
        last = Z
        smoother = operator(self.graph)
        for hop, layer in enumerate(hops(smoother.matrix, Z, strength)):
            layers[hop] = layer[rows]
            last = layer
        size = self._size(strength, Z, last)
        view = View(name, shift, scale, clip, size, layers, smoother.degrees[rows])
        return {"features": view.seen(Z, last)} | view.to_arrays()

    def _size(self, strength: Strength, raw: Floats, smoothed: Floats) -> Floats:
        """Divisors of blocks: their own spread; learnt features stay within the unit ball."""
        size = np.array([1.0, 1.0])
        if strength.beside:
            size = np.array([max(float(raw.std()), 1e-12), max(float(smoothed.std()), 1e-12)])
        if self.learnt:
            squares = np.square(smoothed / size[1]).sum(axis=1)
            if strength.beside:
                squares = squares + np.square(raw / size[0]).sum(axis=1)
            size = size * max(float(np.sqrt(squares.max())), 1e-12)
        return size

    @cached_property
    def learnt(self) -> bool:
        """True if the pool's features are learnt ones: of one scale, their rows no longer than 1."""
        X = np.asarray(self._features[self._rows[:1000]], dtype=np.float64)
        return self._common and bool((np.square(X).sum(axis=1) <= _UNIT).all())


def checked_strength(value: Any) -> str:
    """The option `neighbours` of every classifier.

    Args:
        value: "auto", or one of `STRENGTHS`.

    Raises:
        InputError: anything else.
    """
    if value not in ("auto", *STRENGTHS):
        raise InputError(f"neighbours must be one of {', '.join(('auto', *STRENGTHS))}; got {value!r}.")
    return str(value)


def lines(graph: Nearest, rows: Ints, items: Ints) -> Ints:
    """[e, 2] some items of a pool and their neighbours, whichever these are; each pair once.

    Args:
        graph: of `Neighbourhood.graph`.
        rows: [n] items that it is of.
        items: whose neighbours are wanted; those outside the graph have none.
    """
    at = np.flatnonzero(np.isin(rows, items))
    ends = np.stack([np.repeat(at, graph.rows.shape[1]), graph.rows[at].ravel()], axis=1)
    return rows[np.unique(np.sort(ends.astype(np.int64), axis=1), axis=0)]


COLUMN = "column:"
_MOST = 20  # values; more are codes


class WithColumn(NamedTuple):
    """Features of a text and of a column, each of variance 1 and both scaled to at most unit length.

    Attributes:
        feature_map: of both.
        text_scale: that the text's features are divided by.
        indicators: [N, d] features of the column.
    """

    feature_map: TableFeatureMap
    text_scale: float
    indicators: Floats

    def transform(self, X: Array, indicators: Floats | None = None) -> Array:
        """[n, D + d] of texts X [n, D]; the column's mean stands for indicators [n, d] that are not known."""
        if indicators is None:
            indicators = np.tile(self.indicators.mean(axis=0), (len(X), 1))
        return np.hstack([X / self.text_scale, indicators]).astype(np.float32)


def with_columns(pool: Pool, rows: Ints) -> dict[str, WithColumn]:
    """A text together with each column shown beside it that holds few values, by "column:" and its name.

    Args:
        pool: empty unless it is one of texts by words and pieces.
        rows: [n] items that values and scales are taken from.
    """
    import pandas as pd

    items, text_map = pool.items, pool.feature_map
    if not isinstance(items, TextItems) or not isinstance(text_map, PiecesFeatureMap):
        return {}
    spread = _spread(np.asarray(pool.features[rows]))
    sets: dict[str, WithColumn] = {}
    for name in items.beside:
        cells = pd.Series((items.cells or {})[name])
        texts, blank = read_texts(cells.iloc[rows])
        values = tuple(sorted(set(texts[~blank].tolist())))
        if not 2 <= len(values) <= _MOST:
            continue
        column = CategoryColumn(name, values, blank=True)
        indicators = column.read_known(cells)[0]
        own_spread = _spread(indicators[rows])
        # rows of both sets are no longer than 1 before they are divided by their spreads
        length = float(np.hypot(1.0 / spread, 1.0 / own_spread))
        own_spread *= length
        text = TextColumn(text_map.column, text_map, spread * length)
        feature_map = TableFeatureMap((text, replace(column, scale=own_spread)))
        sets[f"{COLUMN}{name}"] = WithColumn(feature_map, text.scale, indicators / own_spread)
    return sets


def _spread(X: Array) -> float:
    return float(np.sqrt(X.var(axis=0, dtype=np.float64).sum())) or 1.0
