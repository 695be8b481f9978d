"""A plane on which neighbours of a pool stay neighbours (t-SNE), kept on disk, and new rows placed on it."""

import os
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.errors import InputError, install_command
from workbench.metrics.scores import trustworthiness
from workbench.pools.neighbours.nearest import nearest_among
from workbench.pools.pool import Pool
from workbench.pools.projection import on_axes, scaled_axes
from workbench.progress import part, tell
from workbench.writing import whole_file

LANDMARKS = 20_000
"""Items that are laid out together; further ones are placed among them."""
COMPONENTS = 50
FEWEST = 12
"""Different items below which there are no neighbourhoods to keep."""
MISSING = (
    f"The neighbour map needs the package openTSNE: {install_command('openTSNE')}, then start the app again."
)
VERSION = 2
_JUDGED = 500
_KEPT = 40
_TOGETHER = 10_000
"""Rows placed at once: each batch goes over all landmarks again."""
_PERPLEXITY = 30
_NEAREST = 25
_NUMBERS = 20_000_000
"""Features held at once, in double precision."""
_ARRAYS = ("points", "landmarks", "reference", "shift", "axes", "scale")
_EVERY = 25
# iterations of early exaggeration and after it; more moves items little
_EARLY, _LATER = 250, 500
_SETTLING = 80
"""Iterations a placed row takes."""


@dataclass(frozen=True, eq=False)
class NeighbourMap:
    """A pool laid out so that neighbours stay neighbours.

    Attributes:
        points: [N, 2].
        landmarks: [L] items that were laid out together; the others were placed among them.
        reference: [L, P] the landmarks in the space distances are taken in.
        shift: [D] subtracted from features, after `scale` divided them.
        axes: [P, D] of that space.
        scale: [D].
        trust: trustworthiness of the points.
        trust_of_components: of the first two principal components, on the same items.
        n_judged: items both were computed on.
    """

    points: Floats
    landmarks: Ints
    reference: Array
    shift: Floats
    axes: Floats
    scale: Floats
    trust: float
    trust_of_components: float
    n_judged: int

    def place(self, features: Array) -> Floats:
        """Places of new rows; none of the points moves.

        Args:
            features: [n, D].

        Returns:
            [n, 2].

        Raises:
            InputError: openTSNE is not installed.
        """
        openTSNE = _library()
        distinct, first = np.unique(self.reference, axis=0, return_index=True)
        places = np.ascontiguousarray(self.points[self.landmarks][first], dtype=np.float64)
        laid = openTSNE.TSNEEmbedding(places, _Nearest(distinct), n_jobs=1, random_state=0)
        return _placed(laid, on_axes(features, self.shift, self.axes, self.scale, np.float32))


def available() -> bool:
    """True if openTSNE is installed."""
    from importlib.util import find_spec

    return find_spec("openTSNE") is not None


def worthwhile(pool: Pool) -> str:
    """Why a pool has no neighbour map, in a sentence; "" where it has one."""
    if pool.n_features <= 2:
        return "A pool of one or two features is drawn on its own plane."
    if len(np.unique(pool.fingerprints)) < FEWEST:
        return f"Fewer than {FEWEST} different items have no neighbourhoods to keep."
    return ""


def neighbour_map(pool: Pool, folder: Path) -> NeighbourMap:
    """The neighbour map of a pool: read, or computed; it tells how far it is (`progress.tell`).

    Args:
        pool: with more than two features.
        folder: where maps are kept.

    Returns:
        The map. A pool that has grown is laid out anew.

    Raises:
        InputError: openTSNE is not installed, or the pool is too small.
    """
    reason = worthwhile(pool)
    if reason:
        raise InputError(reason)
    stored_map = kept_map(pool, folder)
    if stored_map is not None:
        return stored_map
    new_map = _computed(pool)
    _write(folder / name_of(pool), new_map)
    return new_map


def kept_map(pool: Pool, folder: Path) -> NeighbourMap | None:
    """The neighbour map of a pool as it was stored, None where there is none."""
    return _read(folder / name_of(pool), len(pool))


def _library() -> Any:
    try:
        import openTSNE
    except ImportError:
        raise InputError(MISSING) from None
    return openTSNE


def _affinities(rows: Array) -> Any:
    from openTSNE.affinity import PerplexityBasedNN
    from openTSNE.nearest_neighbors import PrecomputedNeighbors

    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    # exact, and of as many rows as are laid out together in half the time of the library's own index
    neighbours = nearest_among(rows, rows, int(3 * perplexity), own=True)
    index = PrecomputedNeighbors(neighbours.rows.astype(np.int64), neighbours.distances.astype(np.float64))
    return PerplexityBasedNN(perplexity=perplexity, knn_index=index, n_jobs=1, random_state=0)


class _Nearest:
    """Affinities of further rows to those that are laid out, as openTSNE asks for them.

    Nothing is needed of the laid out rows among themselves, whose index takes ten seconds for 20,000.
    """

    def __init__(self, rows: Array) -> None:
        from scipy.sparse import csr_matrix

        self.rows = rows
        # its shape alone is looked at
        self.P = csr_matrix((len(self.rows), len(self.rows)))

    def to_new(
        self, data: Array, perplexity: float, return_distances: bool = False, k_neighbors: int = 0
    ) -> Any:
        """Row-normalised probabilities, and the exact neighbours by their distance."""
        from openTSNE.affinity import joint_probabilities_nn

        rows, distances = nearest_among(data, self.rows, k_neighbors or int(3 * perplexity))
        near, far, k = rows.astype(np.int64), distances.astype(np.float64), rows.shape[1]
        effective = perplexity if perplexity <= k else k / 3
        P = joint_probabilities_nn(
            near,
            far,
            [effective],
            symmetrize=False,
            normalization="point-wise",
            n_reference_samples=len(self.rows),
            n_jobs=1,
        )
        return (P, near, far) if return_distances else P


def _computed(pool: Pool) -> NeighbourMap:
    openTSNE = _library()
    n = len(pool)
    landmarks = np.arange(n)
    if n > LANDMARKS:
        landmarks = np.sort(np.random.default_rng([0, 0, 0x75E]).choice(n, LANDMARKS, replace=False))
    share = 0.9 if n <= LANDMARKS else 0.6  # of the time, for the landmarks
    tell(0.01, "principal components")
    shift, axes, scale = _space(pool)
    rows = on_axes(pool.features, shift, axes, scale, np.float32)
    reference = rows[landmarks]
    # equal rows lie on each other; laid out one by one they would push each other apart
    distinct, back = np.unique(reference, axis=0, return_inverse=True)
    if len(distinct) < FEWEST:
        raise InputError(f"Fewer than {FEWEST} different items have no neighbourhoods to keep.")
    with part(0.03, 0.1):
        affinities = _affinities(distinct)
    done = 0

    def watch(_iteration: int, _error: float, _points: Any) -> bool:
        nonlocal done
        done += _EVERY
        tell(0.1 + (share - 0.1) * done / (_EARLY + _LATER), "laying the items out")
        return False

    method = openTSNE.TSNE(
        n_jobs=1,
        random_state=0,
        early_exaggeration_iter=_EARLY,
        n_iter=_LATER,
        callbacks=watch,
        callbacks_every_iters=_EVERY,
    )
    laid = method.fit(affinities=affinities, initialization=_start(distinct))
    places = np.asarray(laid, dtype=np.float64)[back.reshape(-1)]
    points = np.empty((n, 2))
    points[landmarks] = places
    remainder = np.setdiff1d(np.arange(n), landmarks)
    if remainder.size:
        fixed = openTSNE.TSNEEmbedding(
            np.asarray(laid, dtype=np.float64), _Nearest(distinct), n_jobs=1, random_state=0
        )
        with part(share, 0.95):
            points[remainder] = _placed(fixed, rows[remainder])
    tell(0.96, "measuring what it keeps")
    return _judged(pool, NeighbourMap(points, landmarks, reference, shift, axes, scale, 0.0, 0.0, 0))


def _space(pool: Pool) -> tuple[Floats, Floats, Floats]:
    """Shift, axes and scale of the space distances are taken in, from a sample of the pool."""
    components, scale = scaled_axes(pool, min(COMPONENTS, pool.n_features), most=len(pool), stream=0x75F)
    return components.mean, components.axes, scale


def _start(rows: Array) -> Floats:
    """[n, 2] the first two components, small, and no two of them equal."""
    start = np.asarray(rows[:, :2], dtype=np.float64)
    spread = float(start[:, 0].std()) or 1.0
    start = start / spread + np.random.default_rng([0, 0, 0x760]).normal(0.0, 1e-2, start.shape)
    return start * 1e-4


def _placed(laid: Any, rows: Array) -> Floats:
    """[n, 2] where further rows settle among those that are laid out, which stay."""
    out = np.empty((len(rows), 2))
    for start in range(0, len(rows), _TOGETHER):
        with part(start / len(rows), min(start + _TOGETHER, len(rows)) / len(rows)):
            tell(0.0, "placing the other items")
            embedding = laid.prepare_partial(rows[start : start + _TOGETHER], k=_NEAREST, perplexity=5)
        embedding = embedding.optimize(_SETTLING, learning_rate=0.1, exaggeration=1.5, momentum=0.8, n_jobs=1)
        out[start : start + _TOGETHER] = np.asarray(embedding)
    return out


def _judged(pool: Pool, layout: NeighbourMap) -> NeighbourMap:
    """The map with what it keeps, and what two components keep, on the same items."""
    n = len(pool)
    limit = min(LANDMARKS, max(2_000, _NUMBERS // pool.n_features))
    items = np.arange(n)
    if n > limit:
        items = np.sort(np.random.default_rng([0, 0, 0x761]).choice(n, limit, replace=False))
    near = np.asarray(pool.features[items], dtype=np.float64) / layout.scale
    flat = on_axes(pool.features[items], layout.shift, layout.axes[:2], layout.scale, np.float32)
    judged = min(_JUDGED, len(items))
    return replace(
        layout,
        trust=trustworthiness(near, layout.points[items], judged=judged),
        trust_of_components=trustworthiness(near, flat, judged=judged),
        n_judged=judged,
    )


def _features_name(pool: Pool) -> str:
    """12 hex digits of the columns and of the first rows: other features make another map."""
    digest = sha256("\x1f".join(map(str, pool.feature_map.columns)).encode())
    first = np.ascontiguousarray(pool.features[:20], dtype=np.float32)
    digest.update(repr((VERSION, first.shape, pool.common_scale)).encode())
    digest.update(first.tobytes())
    return digest.hexdigest()[:12]


def name_of(pool: Pool) -> str:
    """Of the file that holds a pool's map: its features, then its items."""
    digest = sha256(np.ascontiguousarray(pool.fingerprints, dtype="<u8").tobytes())
    return f"{_features_name(pool)}-{digest.hexdigest()[:20]}.npz"


def _read(path: Path, n: int) -> NeighbourMap | None:
    """A stored map of n items; None where it is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in (*_ARRAYS, "measured")}
        os.utime(path)
        trust, of_components, judged = map(float, arrays["measured"])
        layout = NeighbourMap(
            **{name: arrays[name] for name in _ARRAYS},
            trust=trust,
            trust_of_components=of_components,
            n_judged=int(judged),
        )
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
    is_whole = (
        layout.points.shape == (n, 2)
        and np.isfinite(layout.points).all()
        and layout.reference.shape == (len(layout.landmarks), len(layout.axes))
    )
    return layout if is_whole else None


def _write(path: Path, layout: NeighbourMap) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with whole_file(path, private=True, synced=False) as file:
            np.savez_compressed(
                file,
                **{entry: getattr(layout, entry) for entry in _ARRAYS},
                measured=np.array([layout.trust, layout.trust_of_components, layout.n_judged]),
            )
        for old in sorted(path.parent.glob("*.npz"), key=lambda entry: -entry.stat().st_mtime)[_KEPT:]:
            old.unlink(missing_ok=True)
    except OSError:  # a full or read-only disk: it is computed again next time
        return
