"""Give out jobs, a window at a time, and hear of what becomes of them."""

import pickle
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any
from uuid import uuid4

from workbench.errors import Cancelled, InputError
from workbench.work.workers import POLL, Cluster, DiedError, Workers

LOST = "Lost the Dask scheduler ({error}). Start it again; finished work is kept."
TELL = 1.0
"""Seconds a worker gathers messages before it sends them."""

Stopped = Callable[..., bool]
Talking = Callable[..., Iterator[tuple[int, Any]]]


def _died(index: int) -> str:
    return f"The workers died over job {index}, several times. Look at their memory, or take fewer."


def spread(
    workers: Workers,
    function: Callable[..., Any],
    jobs: Iterable[tuple[Any, ...]],
    *,
    should_stop: Callable[[], bool] | None = None,
    killed: Callable[[int], str] = _died,
    lost: str = LOST,
) -> Generator[tuple[int, Any], None, None]:
    """Call a function once for each job.

    Args:
        workers: who calls it.
        function: at module level, where the workers are other processes.
        jobs: its arguments; each is taken when a worker is about to be free.
        should_stop: asked a few times a second.
        killed: position of a job -> what to say if it keeps killing its workers.
        lost: what to say if the scheduler is gone; "{error}" stands for the reason.

    Yields:
        (position of the job, result), as they finish.

    Raises:
        Cancelled: told to stop.
        InputError: a job that kept killing its workers, or a scheduler that is gone, or workers.
    """
    numbered_jobs = enumerate(jobs)
    running: dict[Any, int] = {}

    def submit() -> None:
        for index, arguments in numbered_jobs:
            running[workers.submit(function, arguments)] = index
            return

    try:
        for _ in range(workers.window):
            submit()
        while running:
            if should_stop is not None and should_stop():
                raise Cancelled("the work")
            for future in workers.done(running):
                index = running.pop(future)
                yield index, workers.result(future, killed(index), lost)
                submit()
    finally:
        workers.cancel(running)


def stream(
    workers: Cluster,
    function: Talking,
    jobs: Iterable[tuple[tuple[Any, ...], int]],
    *,
    should_stop: Callable[[], bool] | None = None,
    killed: Callable[[int], str] = _died,
    lost: str = LOST,
) -> Generator[tuple[int, Any], None, None]:
    """Run jobs that have something to say on the way, and hear it as it is said.

    A job whose worker dies begins again; what it had said before is not heard twice.

    Args:
        workers: of a cluster.
        function: at module level, (stopped, *arguments) -> (number, message) one after the other; the
            numbers rise by one. `stopped(...)` tells whether to end early.
        jobs: (arguments, number of the first message).
        should_stop: asked a few times a second; True ends what is running, too.
        killed, lost: as for `spread`.

    Yields:
        (position of the job, message), those of a job in order; (position, None) when it is finished, or
        (position, `DiedError`) when it killed its workers.

    Raises:
        Cancelled: told to stop.
        InputError: as `spread`.
    """
    from distributed import Event, Queue

    client, token = workers.client, f"workbench-{uuid4().hex}"
    queue = Queue(f"{token}-messages", client=client, maxsize=4 * workers.n_threads)
    arrived: SimpleQueue[Any] = SimpleQueue()
    # a get with a timeout makes the scheduler log an error each time, so one thread waits for good
    listener = Thread(target=_listen, args=(queue, arrived), daemon=True)
    listener.start()
    stop = Event(f"{token}-stop", client=client)
    numbered_jobs = enumerate(jobs)
    running: dict[int, Any] = {}
    heard: dict[int, int] = {}

    def submit() -> None:
        for index, (arguments, first) in numbered_jobs:
            heard[index] = first - 1
            running[index] = workers.submit(run_remotely, (token, index, function, arguments, first))
            return

    try:
        for _ in range(workers.window):
            submit()
        while running:
            if should_stop is not None and should_stop():
                raise Cancelled("the work")
            workers.check()
            finished_jobs = [index for index, future in running.items() if future.done()]
            for message in _take(arrived, POLL if not finished_jobs else 0.02):
                if isinstance(message, BaseException):
                    raise InputError(lost.format(error=message))
                index, several = message
                for number, content in pickle.loads(several):
                    if index in running and number == heard[index] + 1:
                        heard[index] = number
                        yield index, content
            for index in finished_jobs:
                try:
                    last = workers.result(running[index], killed(index), lost)
                except DiedError as error:
                    del running[index]
                    submit()
                    yield index, error
                    continue
                if heard[index] < last:
                    continue  # its last messages are still on their way
                del running[index]
                submit()
                yield index, None
    finally:
        # a generator that is dropped half way must not leave workers waiting
        try:
            stop.set()
            workers.cancel(running.values())
            # a bounded queue may be full of messages nobody wants: the listener takes them first
            queue.put(None, timeout=10 * POLL)
            listener.join(timeout=10 * POLL)
            queue.close()
        except (OSError, TimeoutError, CancelledError):
            pass  # the scheduler is gone, and has been complained about


def run_remotely(token: str, index: int, function: Talking, arguments: tuple[Any, ...], first: int) -> int:
    """One job of `stream` in a worker: messages go to the queue, about once a second.

    Args:
        token: of the stream.
        index: of the job.
        function: to call.
        arguments: its own.
        first: number of its first message.

    Returns:
        The number of the last message; `first - 1` where there was none.
    """
    from distributed import Event, Queue

    queue, stop = Queue(f"{token}-messages"), Event(f"{token}-stop")
    asked, answer = monotonic(), False

    def stopped(*progress: float) -> bool:
        nonlocal asked, answer
        # asking costs a journey to the scheduler, so not after every sweep of a fit
        if not answer and monotonic() - asked > 2 * POLL:
            asked, answer = monotonic(), bool(stop.is_set())
        return answer

    last = first - 1
    # a journey costs as much for one short message as for several; the first is sent at once
    waiting: list[tuple[int, Any]] = []
    sent = monotonic() - TELL
    try:
        for number, message in function(stopped, *arguments):
            if stopped():
                return last
            waiting.append((number, message))
            last = number
            if monotonic() - sent > TELL:
                queue.put((index, pickle.dumps(waiting)))
                waiting, sent = [], monotonic()
    finally:
        if waiting and not answer:
            queue.put((index, pickle.dumps(waiting)))
    return last


def _listen(queue: Any, arrived: SimpleQueue[Any]) -> None:
    """Hand on what workers send, until sent None."""
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
    """Messages that have arrived, after waiting a while for a first one."""
    messages = []
    try:
        messages.append(arrived.get(timeout=seconds))
        while True:
            messages.append(arrived.get_nowait())
    except Empty:
        return messages
