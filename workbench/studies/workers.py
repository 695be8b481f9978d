"""Work in other processes: local ones, or those of a Dask cluster.

Workers compute and tell; only the process that called writes anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import starmap
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from workbench.errors import Cancelled, InputError
from workbench.sessions.rounds import Round
from workbench.sessions.simulate import Progress, simulate_spec, sparse
from workbench.sessions.spec import RunSpec

if TYPE_CHECKING:
    from workbench.pools.pool import Pool

LOCAL = "processes"
TIMEOUT = 60.0
RETRIES = 2
POLL = 0.25
TELL = 1.0
"""Seconds a worker gathers rounds before it tells them; as long as fits that a posterior is kept for."""
MAX_WORKERS = 256


def check_workers(workers: int) -> None:
    """Refuse a number of processes that cannot be meant.

    Raises:
        InputError: below 1 or beyond reason.
    """
    if not 1 <= workers <= MAX_WORKERS:
        raise InputError(f"The number of workers lies between 1 and {MAX_WORKERS}; got {workers}.")


def spread(
    function: Callable[..., Any],
    jobs: Sequence[Mapping[str, Any]],
    workers: int,
    scheduler: str = LOCAL,
    *,
    should_stop: Callable[[], bool] | None = None,
    timeout: float = TIMEOUT,
) -> Iterator[tuple[int, Any]]:
    """Call a function once for each job, in other processes.

    Args:
        function: at module level, of keyword arguments.
        jobs: the arguments.
        workers: local processes, one thread each.
        scheduler: "processes", or the address of a Dask scheduler.
        should_stop: asked a few times a second.
        timeout: seconds to wait for the first worker.

    Yields:
        (position of the job, result), as they finish.

    Raises:
        Cancelled: told to stop.
        InputError: no scheduler, no worker, or a job that kept killing its workers.
    """
    from distributed import wait

    check_workers(workers)
    prepare_process()
    with _connect(scheduler, min(workers, max(len(jobs), 1)), timeout) as client:
        left = iter(enumerate(jobs))
        running: dict[Any, int] = {}

        def submit() -> None:
            for index, job in left:
                future = client.submit(_call, function, dict(job), retries=RETRIES, pure=False)
                running[future] = index
                return

        for _ in range(2 * sum(client.nthreads().values())):
            submit()
        try:
            while running:
                if should_stop is not None and should_stop():
                    raise Cancelled("the work")
                try:
                    with client.as_current():
                        wait(list(running), timeout=POLL, return_when="FIRST_COMPLETED")
                except TimeoutError:
                    continue
                for future in [f for f in running if f.done()]:
                    index = running.pop(future)
                    yield index, _result(future, str(dict(jobs[index])))
                    submit()
        finally:
            client.cancel(list(running), force=True)


@contextmanager
def _connect(scheduler: str, workers: int, timeout: float) -> Iterator[Any]:
    """A Dask client of local workers, or of a scheduler's."""
    from workbench.policies.cluster import connect

    # not above: the program in there says so when its own package has imported it before
    from workbench.studies.hosts import hosts

    with ExitStack() as open_ones:
        address = open_ones.enter_context(hosts(workers)) if scheduler == LOCAL else scheduler
        yield open_ones.enter_context(connect(address, workers, timeout))


def _call(function: Callable[..., Any], job: Mapping[str, Any]) -> Any:
    prepare_process()
    return function(**job)


def prepare_process() -> None:
    """One thread for linear algebra and TensorFlow, here and in processes started from here."""
    import os

    from workbench.engine.runtime import prepare, thread_count

    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, str(thread_count()))
    prepare()


def _result(future: Any, what: str) -> Any:
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise InputError(
            f"The workers died over {what}, several times. Look at their memory, or take fewer."
        ) from error
    except CancelledError as error:
        raise InputError(
            f"Lost the Dask scheduler ({error}). Start it again; finished work is kept."
        ) from error


@dataclass(frozen=True)
class RunJob:
    """One run for a worker.

    Attributes:
        spec: of the run.
        progress: where it stands, or None for the beginning.
    """

    spec: RunSpec
    progress: Progress | None = None


def stream_runs(
    jobs: Iterator[RunJob],
    workers: int,
    scheduler: str = LOCAL,
    *,
    should_stop: Callable[[], bool] | None = None,
    timeout: float = TIMEOUT,
) -> Generator[tuple[int, Round | None], None, None]:
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
        order; (position, None) when a job is finished.

    Raises:
        Cancelled: told to stop.
        InputError: no scheduler, no worker, what cannot be run, or a run that kept killing workers.
    """
    from distributed import Event, Queue

    check_workers(workers)
    prepare_process()
    token = f"workbench-{uuid4().hex}"
    with _connect(scheduler, workers, timeout) as client:
        queue = Queue(f"{token}-rounds", client=client, maxsize=4 * max(1, sum(client.nthreads().values())))
        arrived: SimpleQueue[Any] = SimpleQueue()
        # a get with a timeout makes the scheduler log an error each time, so one thread waits for good
        listener = Thread(target=_listen, args=(queue, arrived), daemon=True)
        listener.start()
        stop = Event(f"{token}-stop", client=client)
        left = enumerate(jobs)
        running: dict[int, Any] = {}
        specs: dict[int, RunSpec] = {}
        heard: dict[int, int] = {}

        def submit() -> None:
            for index, job in left:
                first = 0 if job.progress is None else job.progress.rounds[-1].number + 1
                heard[index], specs[index] = first - 1, job.spec
                running[index] = client.submit(
                    simulate_remotely, token, index, job, retries=RETRIES, pure=False
                )
                return

        try:
            for _ in range(2 * max(1, sum(client.nthreads().values()))):
                submit()
            while running:
                if should_stop is not None and should_stop():
                    stop.set()
                    raise Cancelled("the study")
                done = [index for index, future in running.items() if future.done()]
                for message in _take(arrived, POLL if not done else 0.02):
                    if isinstance(message, BaseException):
                        raise InputError(
                            f"Lost the Dask scheduler ({message}). Start it again; finished rounds are kept."
                        )
                    index, several = message
                    for finished in starmap(_unpack, several):
                        if index in running and finished.number == heard[index] + 1:
                            heard[index] = finished.number
                            yield index, finished
                for index in done:
                    last = _result(running[index], _named(specs[index]))
                    if heard[index] < last:
                        continue  # its last rounds are still on their way
                    del running[index]
                    submit()
                    yield index, None
        finally:
            # a generator that is dropped half way must not leave workers waiting
            try:
                stop.set()
                client.cancel(list(running.values()), force=True)
                # a bounded queue may be full of rounds nobody wants: the listener takes them first
                queue.put(None, timeout=10 * POLL)
                listener.join(timeout=10 * POLL)
                queue.close()
            except (OSError, TimeoutError, CancelledError):
                pass  # the scheduler is gone, and has been complained about


def stream_runs_here(
    jobs: Iterator[RunJob],
    load: Callable[[RunSpec], Pool],
    *,
    should_stop: Callable[[], bool] | None = None,
) -> Generator[tuple[int, Round | None], None, None]:
    """The same in this thread, one run after the other.

    Args:
        jobs: in order.
        load: opens a run's pool.
        should_stop: asked between rounds and during fits.

    Yields:
        As `stream_runs`.

    Raises:
        Cancelled: told to stop.
        InputError: what cannot be run.
    """
    stop = should_stop or (lambda: False)
    for index, job in enumerate(jobs):
        if stop():
            raise Cancelled("the study")
        callback = None if should_stop is None else lambda fraction, objective: stop()
        for finished in rounds_of(job.spec, load(job.spec), job.progress, callback):
            if stop():
                raise Cancelled("the study")
            yield index, finished
        yield index, None


def _named(spec: RunSpec) -> str:
    return f"{spec.pool}, {spec.classifier}, {spec.policy}, seed {spec.seed}"


def _listen(queue: Any, arrived: SimpleQueue[Any]) -> None:
    """Hand on what workers tell, until told None."""
    while True:
        try:
            message = queue.get()
        except Exception as error:
            arrived.put(error)
            return
        if message is None:
            return
        arrived.put(message)


def _take(arrived: SimpleQueue[Any], seconds: float) -> list[Any]:
    """What has arrived, after waiting a while for a first message."""
    taken = []
    try:
        taken.append(arrived.get(timeout=seconds))
        while True:
            taken.append(arrived.get_nowait())
    except Empty:
        return taken


def simulate_remotely(token: str, index: int, job: RunJob) -> int:
    """One run in a worker: rounds go to the queue of the study, about once a second.

    Args:
        token: of the study.
        index: of the run in it.
        job: the run.

    Returns:
        The number of the last round; that of the job's progress where nothing was left.
    """
    from distributed import Event, Queue

    prepare_process()
    queue, stop = Queue(f"{token}-rounds"), Event(f"{token}-stop")
    asked, answer = monotonic(), False

    def stopped(fraction: float = 0.0, objective: float = 0.0) -> bool:
        nonlocal asked, answer
        # asking costs a journey to the scheduler, so not after every sweep
        if not answer and monotonic() - asked > 2 * POLL:
            asked, answer = monotonic(), bool(stop.is_set())
        return answer

    last = -1 if job.progress is None else job.progress.rounds[-1].number
    # a journey costs as much for one short round as for several; the first is told at once
    waiting: list[tuple[str, bytes]] = []
    told = monotonic() - TELL
    try:
        for finished in rounds_of(job.spec, pool_of(job.spec), job.progress, stopped):
            if stopped():
                return last
            waiting.append(_pack(finished))
            last = finished.number
            if monotonic() - told > TELL:
                queue.put((index, waiting))
                waiting, told = [], monotonic()
    finally:
        if waiting and not answer:
            queue.put((index, waiting))
    return last


def rounds_of(
    spec: RunSpec, pool: Pool, progress: Progress | None, callback: Callable[[float, float], bool] | None
) -> Iterator[Round]:
    """The rounds a spec has left, with the posteriors that going on needs."""
    return sparse(simulate_spec(spec, pool, progress, callback))


def pool_of(spec: RunSpec) -> Pool:
    """The pool of a run with its split; the source is read once a process, not once a seed."""
    given = json.dumps(dict(spec.pool_options), sort_keys=True)
    pool = _source(spec.pool, spec.target, given)
    if pool.test is not None and pool.test.given:
        return pool
    return _split(spec.pool, spec.target, given, spec.seed, spec.test_fraction)


@lru_cache(maxsize=4)
def _source(pool: str, target: str | None, options: str) -> Pool:
    return RunSpec(pool, target=target, pool_options=json.loads(options)).load_pool()


@lru_cache(maxsize=4)
def _split(pool: str, target: str | None, options: str, seed: int, fraction: float) -> Pool:
    return replace(_source(pool, target, options), test=None).split(seed, fraction)


def _pack(finished: Round) -> tuple[str, bytes]:
    from workbench.store.state import arrays_to_bytes

    state = b"" if finished.state is None else arrays_to_bytes(finished.state)
    return json.dumps(finished.to_json(), allow_nan=False), state


def _unpack(record: str, state: bytes) -> Round:
    from workbench.store.state import bytes_to_arrays

    return Round.from_json(json.loads(record), bytes_to_arrays(state) if state else None)
