"""Runs from their specs to their rounds: kept as they finish, resumable, here or in other processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from workbench import work
from workbench.engine.runtime import prepare
from workbench.errors import Cancelled, InputError
from workbench.exchange.bundles import BundleFolder, read_bundle
from workbench.pools.pool import Pool
from workbench.progress import FitCallback
from workbench.sessions.rounds import Round
from workbench.sessions.simulate import Checkpoint, drop_states, simulate_spec
from workbench.sessions.spec import RunSpec
from workbench.store.records import RunRecord
from workbench.store.store import Store

OnRound = Callable[[Round], None]
ShouldStop = Callable[[], bool]


@dataclass(frozen=True)
class RunResult:
    """Result of a run.

    Attributes:
        spec: of the run.
        rounds: all finished rounds, also those of an earlier attempt; the last one has its posterior.
        status: "finished", or "cancelled" when `should_stop` said so.
        run_id: in the store, or None where it was kept in a folder or nowhere.
    """

    spec: RunSpec
    rounds: list[Round]
    status: Literal["finished", "cancelled"]
    run_id: str | None = None


class Sink:
    """A store of the rounds of one run, here nowhere: `progress`, `add` for each new round, then `end`."""

    run_id: str | None = None

    def progress(self) -> Checkpoint | None:
        """The progress of an earlier attempt."""
        return None

    def add(self, finished: Round) -> None:
        """Keep a round; durable when it returns."""

    def end(self, status: str, message: str, rounds: list[Round]) -> None:
        """The run is over, or stops here."""


def run(
    spec: RunSpec,
    on_round: OnRound | None = None,
    should_stop: ShouldStop | None = None,
    *,
    pool: Pool | None = None,
    store: Store | None = None,
    run_id: str | None = None,
    project: str | None = None,
    study: str | None = None,
    out: Path | str | None = None,
    on_fit: Callable[[float], None] | None = None,
) -> RunResult:
    """Run, or go on with, one simulated run.

    Kept in a folder (`out`), in the database (`store`), or nowhere. Each round is durable before
    `on_round` hears of it. When the program dies, the run goes on where it stood: in a folder by the
    same call, in the database by the same call with its `run_id`; its rounds are the same bytes then.

    Args:
        spec: of the run.
        on_round: called with every new round, in this thread.
        should_stop: asked during fits and between rounds; True ends the run as "cancelled". A fit
            that was cut short is thrown away.
        pool: the pool of the spec with the split of its seed, where it is at hand.
        store: the database to keep the run in.
        run_id: of an earlier attempt in `store`.
        project: the project the run belongs to, in `store`.
        study: the study it belongs to, in `store`.
        out: folder of the bundle.
        on_fit: called during fits with the share of the present one that is done; 0 when it begins.

    Returns:
        The result.

    Raises:
        InputError: what cannot be run; a folder that holds another run; a run that is running.
    """
    if store is None and (run_id or project or study):
        raise InputError("run_id, project and study go with a store.")
    loaded = pool if pool is not None else spec.load_pool()
    sink = open_sink(spec, loaded, store=store, run_id=run_id, project=project, study=study, out=out)
    if sink is None:
        assert out is not None
        return RunResult(spec, read_bundle(out).rounds, "finished")
    rounds: list[Round] = []

    def heard(_: RunSpec, finished: Round) -> None:
        rounds.append(finished)
        if on_round is not None:
            on_round(finished)

    try:
        failures = carry_out(
            [(0, spec)],
            lambda _: sink,
            lambda jobs: stream_runs_here(jobs, lambda _: loaded, should_stop=should_stop, on_fit=on_fit),
            {},
            heard,
            lambda _, earlier: rounds.append(earlier),
        )
    except Cancelled:
        return RunResult(spec, rounds, "cancelled", sink.run_id)
    for failure in failures.values():
        assert failure.error is not None
        raise failure.error
    return RunResult(spec, rounds, "finished", sink.run_id)


def carry_out(
    todo: Sequence[tuple[int, RunSpec]],
    open_one: Callable[[RunSpec], Sink],
    stream: Callable[[Iterator[RunJob]], Generator[tuple[int, Told], None, None]],
    all_rounds: dict[int, list[Round]],
    tell: Callable[[RunSpec, Round], None],
    tell_earlier: Callable[[RunSpec, Round], None],
) -> dict[int, Failure]:
    """Write what a stream of rounds brings, and nobody else writes.

    Args:
        todo: runs by their index.
        open_one: the sink of a run.
        stream: rounds of jobs.
        all_rounds: index of a run -> its rounds, without their posteriors, which are added.
        tell: called with every new round.
        tell_earlier: called with every round of an earlier attempt.

    Returns:
        Index of each run that failed -> why; what it had finished is kept.
    """
    failures: dict[int, Failure] = {}
    sinks: dict[int, Sink] = {}
    # the last round with its posterior, which the bundle needs
    last: dict[int, Round] = {}

    def jobs() -> Iterator[RunJob]:
        for index, run in todo:
            sinks[index] = open_one(run)
            progress = sinks[index].progress()
            for old in progress.rounds if progress is not None else []:
                all_rounds.setdefault(index, []).append(old)
                tell_earlier(run, old)
            yield run, progress

    streaming = stream(jobs())
    status, message = "interrupted", "Stopped from outside."
    try:
        for position, finished in streaming:
            index, run = todo[position]
            if isinstance(finished, Failure):
                failures[index] = finished
                sinks.pop(index).end("failed", finished.message, all_rounds.pop(index, []))
                continue
            if finished is None:
                rounds = list(all_rounds[index])
                if index in last:
                    rounds[-1] = last.pop(index)
                sinks.pop(index).end("finished", "", rounds)
                continue
            sinks[index].add(finished)
            last[index] = finished
            all_rounds.setdefault(index, []).append(without_state(finished))
            tell(run, finished)
        return failures
    except Cancelled:
        status, message = "cancelled", ""
        raise
    except Exception as error:
        status, message = "failed", Failure.of(error).message
        raise
    finally:
        streaming.close()
        for index, sink in sinks.items():
            sink.end(status, message, all_rounds.get(index, []))


def without_state(finished: Round) -> Round:
    """A round without what only its sink needs; a study has thousands of them."""
    return replace(finished, state=None)


def open_sink(
    spec: RunSpec,
    pool: Pool,
    *,
    store: Store | None = None,
    run_id: str | None = None,
    project: str | None = None,
    study: str | None = None,
    out: Path | str | None = None,
) -> Sink | None:
    """The store of a run's rounds: a folder, the database, or nowhere.

    Args:
        spec: of the run.
        pool: with its split.
        store: the database to keep the run in.
        run_id: of an earlier attempt in `store`.
        project: the project the run belongs to, in `store`.
        study: the study it belongs to, in `store`.
        out: folder of the bundle.

    Returns:
        The sink, or None where the folder holds the finished run already.

    Raises:
        InputError: both places at once, or a place that holds something else.
    """
    if out is not None and store is not None:
        raise InputError("A run is kept in a folder or in the database, not in both.")
    if out is not None:
        folder = BundleFolder(out, spec, pool)
        if folder.finished:
            return None
        folder.begin()
        return _FolderSink(folder)
    if store is not None:
        return _StoreSink(store, spec, pool, run_id, project, study)
    return Sink()


def pool_of_run(record: RunRecord) -> Pool:
    """The pool of a stored run, with its split.

    Args:
        record: of the run.

    Raises:
        InputError: the pool has changed since, so that the run cannot be looked at with it.
    """
    pool = RunSpec.from_json(record.spec).load_pool()
    _check_same_data(record, pool)
    return pool


def stored_rounds(store: Store, run_id: str) -> list[Round]:
    """The rounds of a stored run, in order, without their posteriors.

    Args:
        store: the database.
        run_id: of the run.
    """
    return [Round.from_json(record.record) for record in store.rounds.all(run_id)]


def _check_same_data(record: RunRecord, pool: Pool) -> None:
    if record.fingerprint != pool.fingerprint:
        raise InputError(
            f"Pool {record.spec['pool']!r} has changed since run {record.id} was started. "
            "Put the old file back, or run it again."
        )


class _FolderSink(Sink):
    def __init__(self, folder: BundleFolder) -> None:
        self._folder = folder
        self._resumed: Checkpoint | None = None

    def progress(self) -> Checkpoint | None:
        self._resumed = self._folder.progress()
        return self._resumed

    def add(self, finished: Round) -> None:
        self._folder.add(finished)

    def end(self, status: str, message: str, rounds: list[Round]) -> None:
        if status == "finished":
            state = rounds[-1].state
            if state is None:
                assert self._resumed is not None
                state = self._resumed.state
            self._folder.finish(rounds, state)
        else:
            self._folder.release()


class _StoreSink(Sink):
    def __init__(
        self,
        store: Store,
        spec: RunSpec,
        pool: Pool,
        run_id: str | None,
        project: str | None,
        study: str | None,
    ) -> None:
        self._store = store
        if run_id is None:
            run_id = store.runs.start(spec.to_json(), pool.fingerprint, project=project, study=study).id
        else:
            present = store.runs.get(run_id)
            if RunSpec.from_json(present.spec) != spec:
                raise InputError(f"Run {run_id} has another specification.")
            _check_same_data(present, pool)
            if not store.runs.claim(run_id):
                raise InputError(f"Run {run_id} is running already.")
        self.run_id = self._id = run_id

    def progress(self) -> Checkpoint | None:
        entry = self._store.rounds.state(self._id)
        return None if entry is None else Checkpoint(stored_rounds(self._store, self._id), entry[1], entry[0])

    def add(self, finished: Round) -> None:
        self._store.rounds.save(self._id, finished.number, finished.to_json(), finished.state)

    def end(self, status: str, message: str, rounds: list[Round]) -> None:
        self._store.runs.end(self._id, status, message)


LOST = "Lost the Dask scheduler ({error}). Start it again; finished rounds are kept."


def _died(job: str) -> str:
    return f"The workers died over {job}, several times. Look at their memory, or take fewer."


RunJob = tuple[RunSpec, Checkpoint | None]
"""A run, and where it stands; None for the beginning."""


@dataclass(frozen=True)
class Failure:
    """The end of a run that could not go on.

    Attributes:
        message: the reason, for people.
        error: the exception, where it was raised in this process.
    """

    message: str
    error: Exception | None = field(default=None, compare=False)

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """That of an exception; the program's own say what to do, others have a name."""
        words = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        return cls(words, error)

    def __reduce__(self) -> tuple[type[Failure], tuple[str]]:
        """A pickle of the message alone: an exception of somebody else's may have none."""
        return Failure, (self.message,)


Told = Round | Failure | None
"""Message of a run: a round, or None at its end, or why it has none."""


def stream_runs(
    jobs: Iterator[RunJob],
    workers: int,
    scheduler: str = work.LOCAL,
    *,
    should_stop: Callable[[], bool] | None = None,
) -> Generator[tuple[int, Told], None, None]:
    """Simulate runs in other processes and hear of each round as it finishes.

    A run whose worker dies is done again by another from where the job said; rounds that were told
    before are not told again. They are the same, as all randomness comes from the spec.

    Args:
        jobs: taken one by one as workers become free.
        workers: local processes, one thread each.
        scheduler: "processes", or the address of a Dask scheduler.
        should_stop: asked a few times a second; True ends the fits that are running, too.

    Yields:
        (position of the job, round, with its posterior where it is to be kept), rounds of a job in
        order; (position, None) when a job is finished, (position, `Failure`) when it cannot go on.

    Raises:
        Cancelled: told to stop.
        InputError: no scheduler or no worker.
    """
    work.check_workers(workers)
    prepare()
    specs: list[RunSpec] = []
    failed: set[int] = set()

    def arguments() -> Iterator[tuple[tuple[RunSpec, Checkpoint | None, int], int]]:
        for spec, progress in jobs:
            specs.append(spec)
            first = 0 if progress is None else progress.rounds[-1].number + 1
            yield (spec, progress, first), first

    with work.cluster(workers, scheduler) as them:
        for index, event in work.stream(
            them,
            simulate_remotely,
            arguments(),
            should_stop=should_stop,
            killed=lambda index: _died(named(specs[index])),
            lost=LOST,
        ):
            if isinstance(event, work.DiedError):
                yield index, Failure.of(event)
            elif index not in failed:
                if isinstance(event, Failure):
                    failed.add(index)
                yield index, event


def stream_runs_here(
    jobs: Iterator[RunJob],
    load: Callable[[RunSpec], Pool],
    *,
    should_stop: Callable[[], bool] | None = None,
    on_fit: Callable[[float], None] | None = None,
) -> Generator[tuple[int, Told], None, None]:
    """The same in this thread, one run after the other.

    Args:
        jobs: in order.
        load: opens a run's pool.
        should_stop: asked between rounds and during fits.
        on_fit: called during fits with the share of the present one that is done; 0 when it begins.

    Yields:
        As `stream_runs`.

    Raises:
        Cancelled: told to stop.
        InputError: a pool that cannot be opened.
    """
    stop = should_stop or (lambda: False)
    tell = on_fit or (lambda fraction: None)

    # always: a fit that is watched differs from one that is not in its last digits, and a worker's is
    def callback(fraction: float, objective: float) -> bool:
        tell(fraction)
        return stop()

    for index, (spec, progress) in enumerate(jobs):
        if stop():
            raise Cancelled("the study")
        tell(0.0)
        for event in events_of(spec, load(spec), progress, callback):
            if stop():
                raise Cancelled("the study")
            yield index, event
            tell(0.0)
            if isinstance(event, Failure):
                break
        else:
            yield index, None


def named(spec: RunSpec) -> str:
    """A run of a study in words: its pool, classifier, policy and seed."""
    return f"{spec.pool}, {spec.classifier}, {spec.policy}, seed {spec.seed}"


def simulate_remotely(
    stopped: Callable[..., bool], spec: RunSpec, progress: Checkpoint | None, first: int
) -> Iterator[tuple[int, Round | Failure]]:
    """The rounds of one run in a worker.

    Args:
        stopped: whether to end early; fits ask too.
        spec: of the run.
        progress: where it stands, or None for the beginning.
        first: number of the next round.

    Yields:
        (number of the round, the round); the last one may be why there are no more.
    """
    prepare()
    yield from enumerate(events_of(spec, pool_of(spec), progress, stopped), first)


def events_of(
    spec: RunSpec, pool: Pool, progress: Checkpoint | None, callback: FitCallback | None
) -> Iterator[Round | Failure]:
    """The rounds a spec has left, with the posteriors that going on needs, and what ended them too early."""
    try:
        yield from drop_states(simulate_spec(spec, pool, progress, callback))
    except Cancelled:
        raise
    except Exception as error:  # a classifier or policy of somebody else may raise anything
        yield Failure.of(error)


def pool_of(spec: RunSpec) -> Pool:
    """The pool of a run with its split; the source is read once a process, not once a seed."""
    options = json.dumps(spec.read_with(), sort_keys=True)
    source = spec.pool, options, _version(spec.pool)
    pool = _source(*source)
    if pool.test is not None and pool.test.given:
        return pool
    return _split(*source, spec.seed, spec.test_fraction)


def _version(pool: str) -> tuple[int, int]:
    """When a pool's file was last changed and its size; zeros where it is no file."""
    try:
        status = Path(pool).expanduser().stat()
    except (OSError, ValueError):
        return 0, 0
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4)
def _source(pool: str, options: str, version: tuple[int, int]) -> Pool:
    return RunSpec(pool, pool_options=json.loads(options)).load_pool()


@lru_cache(maxsize=4)
def _split(pool: str, options: str, version: tuple[int, int], seed: int, fraction: float) -> Pool:
    return replace(_source(pool, options, version), test=None).split(seed, fraction)
