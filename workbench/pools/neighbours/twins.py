"""Twins: items of a pool that a person cannot tell apart, so that asking about both says nothing new.

Rows of a table are twins when every cell that is shown agrees after trimming and folding of case; columns
that number the rows do not count. Texts are twins when they agree in letters and digits, or share most of
their runs of five characters and all numbers (Broder 1997). Pictures are twins when their thumbnails hardly
differ for the contrast they have: the same picture saved again, or at another size. No label is looked at.
"""

import base64
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.errors import InputError
from workbench.pools.features.cache import kept_arrays
from workbench.pools.neighbours.graph import Neighbourhood
from workbench.pools.neighbours.nearest import EXACT, Nearest, nearest
from workbench.pools.pool import ImageItems, Pool
from workbench.progress import tell

VERSION = 1
MOST = 50_000
"""Items up to which their contents are read; of larger pools, twins are those whose source is the same."""
_ALIKE = 0.8  # Jaccard similarity of runs of characters
_RUN = 5
_NEAR = 10  # neighbours that are looked at
_THUMB = 16
_DIFFERENCE = 0.1  # length of the difference of two thumbnails, for that of the picture's contrast
_FLAT = 0.02  # contrast below which a picture is one of a single shade
_PROMISING = 0.6  # of the usual distance to the nearest photo
_BY_NATURE = 0.5  # share of rows or texts with a twin from which on equal ones are different items


@dataclass(frozen=True, eq=False)
class Twins:
    """Twins among the items.

    Attributes:
        first: [N] the lowest item of each one's group, itself where it has no twin.
    """

    first: Ints

    @cached_property
    def _groups(self) -> dict[int, tuple[int, ...]]:
        size = np.bincount(self.first, minlength=len(self.first))
        inside = np.flatnonzero(size[self.first] > 1)
        order = inside[np.argsort(self.first[inside], kind="stable")]
        cuts = np.flatnonzero(np.diff(self.first[order])) + 1
        parts = np.split(order, cuts) if order.size else []
        return {int(part[0]): tuple(map(int, part)) for part in parts}

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """Items of each group of two or more, ascending."""
        return list(self._groups.values())

    @property
    def n_groups(self) -> int:
        """Number of groups of two or more."""
        return len(self._groups)

    @property
    def n_items(self) -> int:
        """Number of items with a twin."""
        return sum(map(len, self._groups.values()))

    def of(self, item: int) -> tuple[int, ...]:
        """The other items of its group."""
        return tuple(i for i in self._groups.get(int(self.first[item]), ()) if i != item)

    def spread(self, items: Iterable[int]) -> Iterator[int]:
        """The twins of items; items without one are passed over at the cost of a look."""
        for item in items:
            if item < len(self.first):
                for twin in self._groups.get(int(self.first[item]), ()):
                    if twin != item:
                        yield twin

    def once(self, labels: Mapping[int, int], is_persons: Callable[[int], bool]) -> Mapping[int, int]:
        """Labels in which a group counts once: by the one that most of its items have, on a tie not at all.

        Args:
            labels: item -> code.
            is_persons: tells whether an item's label is a person's; these go before others.
        """
        items = np.fromiter(labels, dtype=np.int64, count=len(labels))
        groups, counts = np.unique(self.first[items], return_counts=True)
        left_out = set[int]()
        for first in groups[counts > 1].tolist():
            members = [item for item in self._groups[first] if item in labels]
            decisive = list(filter(is_persons, members)) or members
            (code, n), *others = Counter(labels[item] for item in decisive).most_common(2)
            left_out.update(members)
            if not others or others[0][1] < n:
                left_out.remove(next(item for item in decisive if labels[item] == code))
        return {item: code for item, code in labels.items() if item not in left_out} if left_out else labels

    def say(self) -> str:
        """Number of them, for people."""
        if not self.n_groups:
            return "No two items are copies of each other."
        groups = "1 group" if self.n_groups == 1 else f"{self.n_groups:,} groups"
        return f"{self.n_items:,} items are copies or near-copies of others, in {groups}."

    def document(self) -> dict[str, Any]:
        """As JSON, small; `twins_from` reads it."""
        sizes = [len(group) for group in self.groups]
        steps = [np.diff([0, *group]) for group in self.groups]
        octets = np.concatenate([np.empty(0), *steps]).astype("<i4").tobytes()
        packed = base64.b64encode(zlib.compress(octets)).decode()
        return {"n": len(self.first), "sizes": sizes, "items": packed}


def twins_from(document: Mapping[str, Any] | None, n: int) -> Twins:
    """Arrays that `Twins.document` gave.

    Args:
        document: None for no twins.
        n: items of the pool now; those that came later have no twin.

    Raises:
        InputError: no such document, or one of a larger pool.
    """
    first = np.arange(n)
    if document is None:
        return Twins(first)
    try:
        sizes = [int(size) for size in document["sizes"]]
        total = sum(sizes)
        octets = zlib.decompressobj().decompress(base64.b64decode(document["items"]), 4 * total + 4)
        steps = np.frombuffer(octets, "<i4").astype(np.int64)
        if len(steps) != total or int(document["n"]) > n or min(sizes, default=2) < 2:
            raise ValueError("sizes and items do not fit each other")
        for part in np.split(steps, np.cumsum(sizes)[:-1]) if sizes else []:
            group = np.cumsum(part)
            if group[0] < 0 or group[-1] >= n or (np.diff(group) <= 0).any():
                raise ValueError("no items of the pool")
            first[group] = group[0]
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise InputError(f"What the project says of its near-copies cannot be read: {error}.") from None
    return Twins(first)


def twins_of(pool: Pool) -> Twins:
    """The groups of items that a person cannot tell apart; kept, so that a pool is looked through once.

    Args:
        pool: any.

    Returns:
        The groups, the same for the same pool. Tables and texts more than half of which have an equal one
        have none: there equal ones are different items.
    """
    n = len(pool)
    if n < 2:
        return Twins(np.arange(n))
    key = (VERSION, pool.kind, n, pool.fingerprint)
    first = kept_arrays("twins", key, lambda: {"first": _first_of(pool)})["first"]
    twins = Twins(np.asarray(first, dtype=np.int64))
    return Twins(np.arange(n)) if pool.kind != "image" and twins.n_items > _BY_NATURE * n else twins


def groups_of(pool: Pool) -> Ints:
    """[N] the lowest item of each one's group, as `twins_of` finds them."""
    return twins_of(pool).first


def _first_of(pool: Pool) -> Ints:
    n = len(pool)
    if n > MOST:
        return _lowest(_equal(pool.fingerprints.tolist()), n)
    if pool.kind == "text":
        return _of_texts([str(pool.items.show(i).text) for i in _told(n, "texts")])
    if pool.kind == "image":
        if pool.image_shape is None and not isinstance(pool.items, ImageItems):
            return _of_photos(pool)
        return _of_pictures(np.stack([thumbnail(pool.items.show(i).image) for i in _told(n, "pictures")]))
    sources = getattr(pool.feature_map, "sources", None)
    return _of_rows([pool.items.show(i).row or {} for i in _told(n, "rows")], sources)


def _told(n: int, noun: str) -> Iterator[int]:
    for i in range(n):
        if i % 1000 == 0:
            tell(i / n, f"Looking for copies: {i:,} of {n:,} {noun}")
        yield i


# --- by kind ----------------------------------------------------------------------------------


def _of_rows(rows: Sequence[Mapping[str, Any]], sources: Iterable[str] | None) -> Ints:
    columns = {name: [_plain(row.get(name)) for row in rows] for name in rows[0]}
    # of what the model does not see, a column in which no two rows agree numbers them
    looked_at = set(columns) if sources is None else set(sources)
    counted = [cells for name, cells in columns.items() if name in looked_at or len(set(cells)) < len(rows)]
    if not counted:
        return np.arange(len(rows))
    return _lowest(_equal(zip(*counted, strict=True)), len(rows))


def _plain(value: Any) -> str:
    return unicodedata.normalize("NFKC", str(value)).strip().casefold()


def _of_texts(texts: Sequence[str]) -> Ints:
    plain = ["".join(ch if ch.isalnum() else " " for ch in _plain(text)) for text in texts]
    plain = [" ".join(text.split()) for text in plain]
    # one without a letter says what its signs say
    pairs = _equal(text or f"\0{raw.strip()}" for text, raw in zip(plain, texts, strict=True))
    originals = np.flatnonzero(_lowest(pairs, len(plain)) == np.arange(len(plain)))
    if len(originals) > _NEAR and len(originals) <= EXACT:
        sets = [_runs(plain[i]) for i in originals]
        numbers = [re.findall(r"\d+", plain[i]) for i in originals]
        for a, b in _near(_words_of([plain[i] for i in originals]), 0.75):
            if numbers[a] == numbers[b] and _jaccard(sets[a], sets[b]) >= _ALIKE:
                pairs.append((int(originals[a]), int(originals[b])))
    return _lowest(pairs, len(plain))


def _words_of(texts: Sequence[str]) -> Floats:
    """[n, D] unit vectors in which texts that share most of their runs of characters are near."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.random_projection import GaussianRandomProjection

    counts = HashingVectorizer(
        analyzer="char", ngram_range=(_RUN, _RUN), n_features=1 << 18, binary=True, norm="l2"
    )
    projected = GaussianRandomProjection(128, random_state=0).fit_transform(counts.transform(texts))
    length = np.linalg.norm(projected, axis=1, keepdims=True)
    unit: Floats = (projected / np.where(length > 0, length, 1.0)).astype(np.float32)
    return unit


def _runs(text: str) -> frozenset[str]:
    return frozenset(text[i : i + _RUN] for i in range(max(1, len(text) - _RUN + 1)))


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    overlap = len(a & b)
    return overlap / (len(a) + len(b) - overlap)


def thumbnail(image: Array | None) -> Floats:
    """[768] colours in [0, 1] of a picture of any size, each the mean of its part of the picture."""
    if image is None:
        raise InputError("An item of this pool has no picture to look at.")
    values = np.asarray(image, dtype=np.float32) / 255.0
    if values.ndim == 2:
        values = np.repeat(values[:, :, None], 3, axis=2)
    return _means(_means(values, 0), 1).ravel()


def _means(values: Floats, axis: int) -> Floats:
    """Means of `_THUMB` equal parts along an axis; a cell that two share counts in both by its share."""
    n = values.shape[axis]
    edges = np.linspace(0.0, n, _THUMB + 1)
    cells = np.arange(n)
    weights = np.clip(np.minimum(edges[1:, None], cells + 1) - np.maximum(edges[:-1, None], cells), 0.0, 1.0)
    weights = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    out: Floats = np.moveaxis(np.tensordot(weights, values, (1, axis)), 0, axis)
    return out


def _of_pictures(thumbs: Floats) -> Ints:
    n = len(thumbs)
    pairs = _equal(thumb.tobytes() for thumb in thumbs)
    originals = np.flatnonzero(_lowest(pairs, n) == np.arange(n))
    if _NEAR < len(originals) <= EXACT:
        pictures = thumbs[originals]
        for a, b in _near(pictures, max(map(_allowed, pictures))):
            if _same_picture(pictures[a], pictures[b]):
                pairs.append((int(originals[a]), int(originals[b])))
    return _lowest(pairs, n)


def _of_photos(pool: Pool) -> Ints:
    """As `_of_pictures`, of photos that take long to open: only those with near features are looked at."""
    n = len(pool)
    pairs = _equal(pool.fingerprints.tolist())
    originals = np.flatnonzero(_lowest(pairs, n) == np.arange(n))
    if not _NEAR < len(originals) <= EXACT:
        return _lowest(pairs, n)
    graph = _graph_of(pool, originals)
    within = _PROMISING * float(np.median(graph.distances[:, 0]))
    opened: dict[int, Floats] = {}
    for a, b in ((int(originals[a]), int(originals[b])) for a, b in _pairs(graph, within)):
        for i in (a, b):
            if i not in opened:
                opened[i] = thumbnail(pool.items.show(i).image)
        if _same_picture(opened[a], opened[b]):
            pairs.append((a, b))
    return _lowest(pairs, n)


def _graph_of(pool: Pool, items: Ints) -> Nearest:
    """Neighbours of some photos: where it is of these, the pool's own graph, on which models lean later."""
    if pool.common_scale and np.array_equal(items, pool.trainable):
        neighbourhood = Neighbourhood(pool)
        if not neighbourhood.too_few:
            return neighbourhood.graph
    features = np.asarray(pool.features[items], dtype=np.float32)
    features = (features - features.mean(axis=0)) / max(float(features.std()), 1e-12)
    return nearest(features, min(_NEAR, len(items) - 1))


def _same_picture(a: Floats, b: Floats) -> bool:
    allowed = min(_allowed(a), _allowed(b))
    return bool(np.linalg.norm(a - b) <= allowed)


def _allowed(thumb: Floats) -> float:
    contrast = float(np.linalg.norm(thumb - thumb.mean()))
    return _DIFFERENCE * max(contrast, _FLAT * float(np.sqrt(thumb.size)))


# --- pairs and groups -------------------------------------------------------------------------


def _equal(keys: Iterable[Hashable]) -> list[tuple[int, int]]:
    """Pairs of an item and the first one with the same key."""
    firsts: dict[Hashable, int] = {}
    pairs = []
    for i, key in enumerate(keys):
        first = firsts.setdefault(key, i)
        if first != i:
            pairs.append((first, i))
    return pairs


def _near(X: Floats, within: float) -> list[tuple[int, int]]:
    """Pairs of rows one of which is among the other's nearest, no further apart than this."""
    return _pairs(nearest(X, min(_NEAR, len(X) - 1)), within)


def _pairs(graph: Nearest, within: float) -> list[tuple[int, int]]:
    at, place = np.nonzero(graph.distances <= within)
    neighbours = graph.rows[at, place]
    keep = np.unique(np.sort(np.stack([at, neighbours], axis=1), axis=1), axis=0)
    return [(int(a), int(b)) for a, b in keep]


def _lowest(pairs: Sequence[tuple[int, int]], n: int) -> Ints:
    """[n] the lowest item that each is connected with."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    first: Ints = np.arange(n)
    if not pairs:
        return first
    at = np.asarray(pairs, dtype=np.int64)
    graph = coo_matrix((np.ones(len(at), dtype=bool), (at[:, 0], at[:, 1])), shape=(n, n))
    count, part = connected_components(graph, directed=False)
    lowest = np.full(count, n)
    np.minimum.at(lowest, part, first)
    minima: Ints = lowest[part]
    return minima
