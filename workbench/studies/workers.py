"""Runs of a study in other processes: local ones, or those of a Dask cluster.

Workers compute and tell; only the process that called writes anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from workbench import work
from workbench.engine.runtime import prepare
from workbench.errors import Cancelled, InputError
from workbench.progress import FitCallback
from workbench.sessions.rounds import Round
from workbench.sessions.simulate import Checkpoint, drop_states, simulate_spec
from workbench.sessions.spec import RunSpec

if TYPE_CHECKING:
    from workbench.pools.pool import Pool

LOST = "Lost the Dask scheduler ({error}). Start it again; finished rounds are kept."


def _died(job: str) -> str:
    return f"The workers died over {job}, several times. Look at their memory, or take fewer."


@dataclass(frozen=True)
class RunJob:
    """One run for a worker.

    Attributes:
        spec: of the run.
        progress: where it stands, or None for the beginning.
    """

    spec: RunSpec
    progress: Checkpoint | None = None


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


Told = Round | Failure | None
"""Message of a run: a round, or None at its end, or why it has none."""


def stream_runs(
    jobs: Iterator[RunJob],
    workers: int,
    scheduler: str = work.LOCAL,
    *,
    should_stop: Callable[[], bool] | None = None,
    timeout: float = work.TIMEOUT,
) -> Generator[tuple[int, Told], None, None]:
    """Simulate runs in other processes and hear of each round as it finishes.

    A run whose worker dies is done again by another from where the job said; rounds that were told
    before are not told again. They are the same, as all randomness comes from the spec.

    Args:
        jobs: taken one by one as workers become free.
        workers: local processes, one thread each.
        scheduler: "processes", or the address of a Dask scheduler.
        should_stop: asked a few times a second; True ends the fits that are running, too.
        timeout: seconds to wait for the first worker.

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

    def given() -> Iterator[tuple[tuple[RunJob], int]]:
        for job in jobs:
            specs.append(job.spec)
            yield (job,), 0 if job.progress is None else job.progress.rounds[-1].number + 1

    with work.cluster(workers, scheduler, timeout) as them:
        for index, message in work.stream(
            them,
            simulate_remotely,
            given(),
            should_stop=should_stop,
            killed=lambda index: _died(named(specs[index])),
            lost=LOST,
        ):
            if isinstance(message, work.DiedError):
                yield index, Failure.of(message)
            elif index not in failed:
                event = None if message is None else unpacked(*message)
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

    for index, job in enumerate(jobs):
        if stop():
            raise Cancelled("the study")
        tell(0.0)
        rounds = or_failure(rounds_of(job.spec, load(job.spec), job.progress, callback))
        for event in rounds:
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


def simulate_remotely(stopped: Callable[..., bool], job: RunJob) -> Iterator[tuple[int, tuple[str, bytes]]]:
    """The rounds of one run in a worker, as they travel.

    Args:
        stopped: whether to end early; fits ask too.
        job: the run.

    Yields:
        (number of the round, the round); the last one may be why there are no more.
    """
    prepare()
    number = -1 if job.progress is None else job.progress.rounds[-1].number
    for event in or_failure(rounds_of(job.spec, pool_of(job.spec), job.progress, stopped)):
        number += 1
        yield number, _pack(event)


def or_failure(rounds: Iterator[Round]) -> Iterator[Round | Failure]:
    """Rounds, and what ended them before their time as the last one."""
    try:
        yield from rounds
    except Cancelled:
        raise
    except Exception as error:  # a classifier or policy of somebody else may raise anything
        yield Failure.of(error)


def rounds_of(
    spec: RunSpec, pool: Pool, progress: Checkpoint | None, callback: FitCallback | None
) -> Iterator[Round]:
    """The rounds a spec has left, with the posteriors that going on needs."""
    return drop_states(simulate_spec(spec, pool, progress, callback))


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


def _pack(finished: Round | Failure) -> tuple[str, bytes]:
    from workbench.pools.formats.npy_files import arrays_to_bytes

    if isinstance(finished, Failure):
        return json.dumps({"failed": finished.message}), b""
    state = b"" if finished.state is None else arrays_to_bytes(finished.state)
    return json.dumps(finished.to_json(), allow_nan=False), state


def unpacked(record: str, state: bytes) -> Round | Failure:
    """A round, or why there are no more, as a worker sent it."""
    from workbench.pools.formats.npy_files import bytes_to_arrays

    document = json.loads(record)
    if "failed" in document:
        return Failure(document["failed"])
    return Round.from_json(document, bytes_to_arrays(state) if state else None)
