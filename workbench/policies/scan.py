"""Score a pool of any size and keep the best: features in chunks, a running top k, a histogram.

Nothing here grows with the pool, and nothing here imports TensorFlow. The same units of rows are
scored by threads of this process, by local processes or by a Dask cluster, with the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np

from workbench import work
from workbench.classifiers.argmax import check_moments
from workbench.classifiers.latent import Latent
from workbench.errors import Cancelled, InputError
from workbench.policies.belief import PolicyFn, ScoredModel, Shipped, as_scored_model, belief_of, unpacked
from workbench.policies.registry import POLICIES, PolicyEntry, find, is_selector
from workbench.policies.variation import smallest_margin, top_rows
from workbench.pools.loading import open_source
from workbench.pools.sources import ArraySource, Source, Unit
from workbench.registry import typed

if TYPE_CHECKING:
    from workbench.arrays import Array, Floats, Ints
    from workbench.pools.pool import FeatureMap, Pool

CHUNK_CELLS = 1 << 21  # features at a time: 16 MB, however many columns there are
CHUNK_ROWS = 1 << 14
OnFraction = Callable[[float], "bool | None"]

# Utilities may be of any size and sign: ten bins a decade, down to 1e-9.
_DECADES = np.logspace(-9, 9, 181)
_EDGES = np.concatenate([-_DECADES[::-1], [0.0], _DECADES])


@dataclass(frozen=True)
class Histogram:
    """Distribution of utilities over the scored rows.

    Attributes:
        edges: [B + 1] of the bins, ascending.
        counts: [B] rows in each bin; the outer bins take what lies beyond.
        of: what was counted, in words.
    """

    edges: Floats
    counts: Ints
    of: str


@dataclass(frozen=True)
class ScanResult:
    """Result of a scan.

    Attributes:
        indices: [k] row numbers in the source, best first.
        utilities: [k].
        histogram: of all scored rows.
        n_rows: rows in the source.
        n_scored: rows that were not excluded.
        where: [k] where each row lies: its id, or the part and the row within it.
        warnings: what a person should know.
    """

    indices: Ints
    utilities: Floats
    histogram: Histogram
    n_rows: int
    n_scored: int
    where: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())


def score_pool(
    source: Pool | Source | Array | str | Path,
    predictor: Any,
    policy: str | PolicyFn = "variation-ratio",
    top: int = 100,
    *,
    chunk_rows: int | None = None,
    threads: int | None = None,
    scheduler: str | None = None,
    seed: int = 0,
    exclude: Ints | Sequence[int] | None = None,
    feature_map: FeatureMap | None = None,
    columns: Sequence[str] | None = None,
    read: Mapping[str, Any] | None = None,
    temperature: float | None = None,
    timeout: float = work.TIMEOUT,
    progress: OnFraction | None = None,
) -> ScanResult:
    """The rows a policy would ask about first, from a pool that need not fit in memory.

    Args:
        source: a Pool, an array or memory map [N, D], or the path of an NPY, NPZ or Parquet file or of
            a folder of Parquet parts.
        predictor: a Predictor (X [n, D] -> Latent), a fitted classifier, or any function X -> Latent.
        policy: a registry name, "package.module:function", an entry point's name or a function
            (belief, rng) -> utilities, that looks at each row by itself.
        top: how many rows to keep; more than there are gives all of them.
        chunk_rows: rows in memory at a time, for each thread; None: 16,384, fewer of wide rows.
        threads: threads of this process, or local processes; None: WORKBENCH_THREADS, or one per core.
            Linear algebra runs on one thread in each.
        scheduler: None for threads of this process; "processes" for local Dask processes; or a Dask
            scheduler's address ("tcp://host:8786"), whose workers must see the same path.
        seed: breaks ties and drives policies that draw.
        exclude: row numbers that may not be asked (labelled, skipped, test).
        feature_map: from raw rows to features, for files; pools hold features already.
        columns: of Parquet parts, in place of a feature map.
        read: how the pool was read whose rows a file holds (`Pool.reading`).
        temperature: beta of softmax(beta f) for policies that need class probabilities when
            `predictor` is no classifier; None: the predictor's own `temperature`, if it has one. A classifier
            has its own.
        timeout: seconds to wait for a scheduler and its first worker, and for another when none is left.
        progress: called with the share done; returning True stops the scan.

    Returns:
        ScanResult.

    Raises:
        InputError: nothing to score, a policy that cannot stream, a model that says NaN about a row
            (named), features the model was not fitted on, Parquet parts that differ, a scheduler that
            does not answer, or workers that keep dying.
        Cancelled: `progress` returned True.
    """
    if top < 1:
        raise InputError(f"At least one item must be asked for; got top={top}.")
    rows = open_source(source, feature_map, columns, read)
    if chunk_rows is None:
        chunk_rows = int(np.clip(CHUNK_CELLS // max(rows.n_columns, 1), 256, CHUNK_ROWS))
    if chunk_rows < 1:
        raise InputError(f"A chunk holds at least one row; got chunk_rows={chunk_rows}.")
    model = as_scored_model(predictor, temperature)
    entry, function = _streaming_policy(policy)
    if entry is not None and "probabilities" in entry.needs:
        model.require_probabilities(entry.name)
    if entry is not None and "latent" in entry.needs:
        model.require_latent(entry.name)
    excluded = _excluded(exclude, rows.n_rows)
    n_left = rows.n_rows - excluded.size
    warnings = list(rows.notes) if isinstance(rows, ArraySource) else []
    warnings += [entry.warning] if entry is not None and entry.warning else []
    if top > n_left:
        warnings.append(f"Asked for {top} items; only {n_left} are left, so all of them are given.")

    units = [unit for unit in rows.units() if unit.n_rows]
    for _, features in rows.chunks(units[0], 1):  # one row tells what the model gives
        model.check_width(features)
        model.latent(features)
        break
    edges, of = _edges(entry, model.n_classes)
    task = Task(
        typed(policy) if isinstance(policy, str) else function,
        min(top, n_left),
        chunk_rows,
        seed,
        excluded,
        edges,
    )
    best = RunningTop(task.top, seed)
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    n_done = 0
    n_workers = threads or work.core_count()
    if scheduler is None:
        answers = _by_threads(rows, model, task, units, n_workers, best)
    else:
        answers = _by_cluster(rows, model, task, units, n_workers, scheduler, timeout, best)
    with closing(answers):
        for answer in answers:
            best.add(answer.indices, answer.utilities)
            counts += answer.counts
            n_done += answer.n_rows
            if progress is not None and progress(n_done / rows.n_rows):
                raise Cancelled(f"Stopped after {n_done} of {rows.n_rows} rows.")
    indices, utilities = best.result()
    bins = np.flatnonzero(counts)
    if of == _ANY:  # keep the bins between the first and the last that hold anything
        edges, counts = edges[bins[0] : bins[-1] + 2], counts[bins[0] : bins[-1] + 1]
    return ScanResult(
        indices,
        utilities,
        Histogram(edges, counts, of),
        rows.n_rows,
        n_left,
        tuple(rows.name_of(int(row)) for row in indices),
        tuple(warnings),
    )


def _excluded(exclude: Ints | Sequence[int] | None, n_rows: int) -> Ints:
    """Row numbers that may not be asked, ascending.

    Raises:
        InputError: there are no such rows, or none is left.
    """
    excluded = np.unique(np.asarray([] if exclude is None else exclude, dtype=np.int64))
    if excluded.size and (excluded[0] < 0 or excluded[-1] >= n_rows):
        raise InputError(f"Excluded rows must lie in 0..{n_rows - 1}.")
    if not n_rows:
        raise InputError("There are no rows to score.")
    if excluded.size == n_rows:
        raise InputError(f"All {n_rows} items are labelled or set aside; there is nothing left to ask.")
    return excluded


@dataclass(frozen=True)
class Task:
    """Task for each unit, the same for every worker.

    Attributes:
        policy: as given to `score_pool`.
        top: how many rows to keep.
        chunk_rows: rows at a time.
        seed: of policies that draw.
        exclude: [E] row numbers, ascending.
        edges: of the histogram.
    """

    policy: str | PolicyFn
    top: int
    chunk_rows: int
    seed: int
    exclude: Ints
    edges: Floats


class Found(NamedTuple):
    """Result of one unit.

    Attributes:
        indices: rows that may be among the best.
        utilities: theirs.
        counts: of the histogram.
        n_rows: how many rows were looked at, excluded ones and all.
    """

    indices: Ints
    utilities: Floats
    counts: Ints
    n_rows: int


class _Chunk(NamedTuple):
    first: int
    features: Array
    keep: Array | None  # [n] False for excluded rows


def _chunks_of(task: Task, source: Source, unit: Unit) -> Iterator[_Chunk]:
    for first, features in source.chunks(unit, task.chunk_rows):
        span = np.searchsorted(task.exclude, [first, first + len(features)])
        keep = None
        if span[1] > span[0]:
            keep = np.ones(len(features), dtype=bool)
            keep[task.exclude[span[0] : span[1]] - first] = False
        yield _Chunk(first, features, keep)


def score_unit(task: Task, model: ScoredModel, source: Source, unit: Unit, threshold: float) -> Found:
    """Score the rows of one unit, chunk by chunk.

    Args:
        task: what to do.
        model: the model.
        source: where the rows are.
        unit: which rows.
        threshold: utility that as many rows as are wanted already reach elsewhere.

    Returns:
        Found.

    Raises:
        InputError: a row about which the model or the policy says NaN.
    """
    best = RunningTop(task.top, task.seed, threshold)
    counts = np.zeros(len(task.edges) - 1, dtype=np.int64)
    for chunk in _chunks_of(task, source, unit):
        answer = score_chunk(task, model, source, chunk, best.threshold)
        best.add(answer.indices, answer.utilities)
        counts += answer.counts
    return Found(*best.result(), counts, unit.n_rows)


def score_chunk(task: Task, model: ScoredModel, source: Source, chunk: _Chunk, threshold: float) -> Found:
    """Candidates among the rows of a chunk, their utilities, and the histogram of all of them.

    Raises:
        InputError: a row about which the model or the policy says NaN.
    """
    first, features, keep = chunk
    entry, function = _streaming_policy(task.policy)
    rows = np.arange(len(features)) if keep is None else np.flatnonzero(keep)
    model.check_width(features)
    if keep is not None and not np.isfinite(features[~keep]).all():  # what is not scored may be anything
        features = np.where(keep[:, None], features, 0.0)

    def believe() -> Latent | None:
        latent = model.latent(features)
        if latent is not None and not (np.isfinite(latent.mean.sum()) and np.isfinite(latent.variance.sum())):
            fine = np.isfinite(latent.mean) & np.isfinite(latent.variance)
            _refuse(
                ~np.asarray(fine.all(axis=1)), "the model's latent functions are not finite", source, chunk
            )
        return latent

    if entry is POLICIES["variation-ratio"]:
        latent = believe()
        assert latent is not None  # require_latent was asked
        mean, variance = check_moments(*latent, first=first)
        if keep is not None:
            mean, variance = mean[rows], variance[rows]
        squared = smallest_margin(mean, variance)
        # falling margins are rising bounds: bins of the bound are bins of the margin, turned round
        counts = _histogram(squared, _squared_edges(task.edges))[::-1]
        if not len(rows):
            return Found(rows, np.empty(0), counts, len(features))
        selection, utilities = top_rows(mean, variance, task.top, threshold=threshold, squared=squared)
        return Found(rows[selection] + first, utilities, counts, len(features))
    belief = belief_of(model, features, latent=believe)
    shared = entry is not None and entry.shared_draws
    rng = np.random.default_rng([task.seed] if shared else [task.seed, first])
    values = np.asarray(function(belief, rng), dtype=np.float64)
    if values.shape != (len(features),):
        raise InputError(f"The policy gave {values.shape} utilities for {len(features)} rows.")
    _refuse(
        np.asarray(np.isnan(values) & (True if keep is None else keep)),
        "its utility is not a number",
        source,
        chunk,
    )
    values = values[rows]
    counts = _histogram(values, task.edges)
    if len(rows) > task.top:
        threshold = max(threshold, float(np.partition(values, len(rows) - task.top)[len(rows) - task.top]))
    reached = values >= threshold
    return Found(rows[reached] + first, values[reached], counts, len(features))


def _refuse(bad: Array, problem: str, source: Source, chunk: _Chunk) -> None:
    """Name the first bad row, and the cause if it lies in its features."""
    if not bad.any():
        return
    row = int(bad.argmax())
    fine = np.isfinite(np.asarray(chunk.features[row], dtype=np.float64)).all()
    cause = "Fit the model again." if fine else "Its features hold empty or infinite values."
    raise InputError(f"Cannot score {source.name_of(chunk.first + row)}: {problem}. {cause}")


class RunningTop:
    """The running top k, ties by a hash of seed and row number: the same however rows are divided."""

    def __init__(self, k: int, seed: int, threshold: float = -np.inf) -> None:
        self.k, self.seed = k, seed
        self.threshold = threshold  # what a row must reach to be among the best
        self._indices: list[Ints] = []
        self._utilities: list[Floats] = []
        self._held = 0

    def add(self, indices: Ints, utilities: Floats) -> None:
        """Rows that may be among the best."""
        if not len(indices):
            return
        self._indices.append(indices)
        self._utilities.append(utilities)
        self._held += len(indices)
        if self._held >= self.k:
            self._trim()

    def _trim(self) -> None:
        indices, utilities = np.concatenate(self._indices), np.concatenate(self._utilities)
        order = np.lexsort((_hash(indices, self.seed), -utilities))[: self.k]
        self._indices, self._utilities = [indices[order]], [utilities[order]]
        self._held = len(order)
        if self._held == self.k:
            self.threshold = max(self.threshold, float(utilities[order[-1]]))

    def result(self) -> tuple[Ints, Floats]:
        """Rows and utilities, best first."""
        if not self._indices:
            return np.empty(0, dtype=np.int64), np.empty(0)
        self._trim()
        return self._indices[0], self._utilities[0]


def _hash(rows: Ints, seed: int) -> Array:
    """Splitmix64 of the row number under the seed: [n] uint64."""
    start = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    with np.errstate(over="ignore"):
        x = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(start)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        result: Array = x ^ (x >> np.uint64(31))
    return result


_ANY = "utility"


def _edges(entry: PolicyEntry | None, n_classes: int) -> tuple[Floats, str]:
    """Bins of the histogram: of the policy's range where it has one."""
    ends = None if entry is None else entry.range_for(n_classes)
    edges = _EDGES if ends is None else np.linspace(*ends, 41)
    if entry is POLICIES["variation-ratio"]:
        return edges, "lower bound of the variation ratio (from the runner-up alone)"
    return edges, _ANY


def _histogram(values: Floats, edges: Floats) -> Ints:
    """Counts [B]; what lies outside goes to the outer bins."""
    bins = np.searchsorted(edges[1:-1], values, side="right")
    return np.bincount(bins, minlength=len(edges) - 1)


def _squared_edges(edges: Floats) -> Floats:
    """Bins of the variation ratio's lower bound as bins of the squared margin, ascending."""
    from scipy.special import ndtri

    inner = ndtri(np.minimum(edges[1:-1], 0.5)) ** 2
    return np.concatenate([[0.0], inner[::-1], [np.inf]])


def _streaming_policy(policy: str | PolicyFn) -> tuple[PolicyEntry | None, Any]:
    entry, function = find(policy)
    if (entry is not None and not entry.rowwise) or is_selector(function):
        raise InputError(
            f"{policy!r} compares items with each other, so it cannot stream over a pool. Score with a "
            "policy, then spread a batch over the best rows."
        )
    return entry, function


def _by_threads(
    source: Source, model: ScoredModel, task: Task, units: list[Unit], n_threads: int, best: RunningTop
) -> Generator[Found, None, None]:
    """Results of threads of this process, which share every chunk that this one reads."""
    calls = (
        (task, model, source, chunk, best.threshold)
        for unit in units
        for chunk in _chunks_of(task, source, unit)
    )
    with work.one_blas_thread(), work.threads(n_threads) as workers:
        for _, answer in work.spread(workers, score_chunk, calls):
            yield answer


def _by_cluster(
    source: Source,
    model: ScoredModel,
    task: Task,
    units: list[Unit],
    n_workers: int,
    scheduler: str,
    timeout: float,
    best: RunningTop,
) -> Generator[Found, None, None]:
    """Results of processes, which read their units themselves; paths must be visible to them."""
    shipped, token = model.ship(), uuid4().hex
    calls = ((token, shipped, task, source.portable(unit), unit, best.threshold) for unit in units)

    def killed(index: int) -> str:
        unit = units[index]
        return (
            f"Rows {unit.first} to {unit.first + unit.n_rows - 1} kept killing their workers. "
            "Look at the workers' memory, or take smaller chunk_rows."
        )

    lost = "Lost the Dask scheduler in mid-scan ({error}). Start it again and score again."
    with work.cluster(n_workers, scheduler, timeout) as workers:
        for _, answer in work.spread(workers, _score_remotely, calls, killed=killed, lost=lost):
            yield answer


def _score_remotely(
    token: str, shipped: Shipped, task: Task, source: Source, unit: Unit, threshold: float
) -> Found:
    """One unit, in a worker; the model is unpacked once a scan."""
    with work.one_blas_thread():
        return score_unit(task, unpacked(token, shipped), source, unit, threshold)
