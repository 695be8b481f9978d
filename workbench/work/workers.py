"""Workers: threads of this process, or processes of a Dask cluster, started here or elsewhere."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import Any, Protocol

from workbench.errors import InputError, install_command

LOCAL = "processes"
TIMEOUT = 60.0
"""Seconds to wait for a scheduler and its first worker."""
POLL = 0.25
_LOOK = 2.0
MAX_WORKERS = 256
RETRIES = 2
"""A worker that dies takes this many further attempts of a job with it."""


class Workers(Protocol):
    """Something that calls functions elsewhere.

    Attributes:
        window: how many jobs are given out at a time.
    """

    window: int

    def submit(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Give out a call; returns its future."""

    def done(self, futures: Iterable[Any], seconds: float = POLL) -> list[Any]:
        """Those that are done, after waiting a while for a first one."""

    def result(self, future: Any, killed: str, lost: str) -> Any:
        """Result of a call.

        Raises:
            InputError: `killed` where it killed its workers, `lost` (with the reason put for "{error}")
                where the scheduler is gone; and whatever the call raised.
        """

    def cancel(self, futures: Iterable[Any]) -> None:
        """Give up what is not done."""


class DiedError(InputError):
    """A call killed its workers, several times."""


class Threads:
    """Threads of this process; one is the caller's own, which works when a call is given out."""

    def __init__(self, pool: ThreadPoolExecutor | None, n: int) -> None:
        self._pool = pool
        self.window = 1 if pool is None else n + 1

    def submit(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Future[Any]:
        """Give out a call; without a pool it is made here and now."""
        if self._pool is not None:
            return self._pool.submit(function, *arguments)
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:  # raised again where the result is asked for
            future.set_exception(error)
        return future

    def done(self, futures: Iterable[Any], seconds: float = POLL) -> list[Any]:
        """Those that are done."""
        return list(wait(list(futures), seconds, FIRST_COMPLETED).done)

    def result(self, future: Any, killed: str, lost: str) -> Any:
        """Result of a call, or its exception."""
        return future.result()

    def cancel(self, futures: Iterable[Any]) -> None:
        """Give up what has not begun."""
        for future in futures:
            future.cancel()


class Cluster:
    """Workers behind a Dask client.

    Args:
        client: of the scheduler.
        timeout: seconds it may be without any worker before the work is given up.
    """

    def __init__(self, client: Any, timeout: float = TIMEOUT) -> None:
        self.client = client
        self._timeout = timeout
        self._looked = monotonic()
        self._alone: float | None = None
        self.n_threads = max(1, sum(client.nthreads().values()))
        self.window = 2 * self.n_threads

    def submit(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Give out a call; it is made again where its worker dies."""
        return self.client.submit(function, *arguments, retries=RETRIES, pure=False)

    def done(self, futures: Iterable[Any], seconds: float = POLL) -> list[Any]:
        """Those that are done."""
        from distributed import wait

        self.check()
        waited = list(futures)
        try:
            with self.client.as_current():
                wait(waited, timeout=seconds, return_when="FIRST_COMPLETED")
        except TimeoutError:
            return []
        return [future for future in waited if future.done()]

    def result(self, future: Any, killed: str, lost: str) -> Any:
        """Result of a call, or its exception."""
        from distributed import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            raise DiedError(killed) from error
        except CancelledError as error:
            raise InputError(lost.format(error=error)) from error

    def check(self) -> None:
        """Look whether there is anybody who works; cheap enough to be asked a few times a second.

        Raises:
            InputError: there has been no worker for too long.
        """
        moment = monotonic()
        if moment - self._looked < min(_LOOK, self._timeout / 2):
            return
        self._looked = moment
        try:
            present = bool(self.client.nthreads())
        except (OSError, TimeoutError):
            return  # a scheduler that is gone is complained about where its results are asked for
        if present:
            self._alone = None
        elif self._alone is None:
            self._alone = moment
        elif moment - self._alone > self._timeout:
            raise InputError(
                f"No worker has been there for {self._timeout:.0f} seconds. Start some again and go on: "
                "finished work is kept."
            )

    def cancel(self, futures: Iterable[Any]) -> None:
        """Give up what is not done."""
        self.client.cancel(list(futures), force=True)


def check_workers(workers: int) -> None:
    """Refuse a number of processes that cannot be meant.

    Raises:
        InputError: below 1 or beyond reason.
    """
    if not 1 <= workers <= MAX_WORKERS:
        raise InputError(f"The number of workers lies between 1 and {MAX_WORKERS}; got {workers}.")


def core_count() -> int:
    """WORKBENCH_THREADS, or how many cores this process may use."""
    text = os.environ.get("WORKBENCH_THREADS", "").strip()
    if text.isdigit() and int(text) > 0:
        return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Linear algebra on one thread: where jobs run side by side, more only wait for each other."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield


@contextmanager
def threads(n: int) -> Iterator[Threads]:
    """Threads of this process.

    Args:
        n: how many.

    Yields:
        The workers.
    """
    if n == 1:
        yield Threads(None, 1)
        return
    with ThreadPoolExecutor(n) as pool:
        yield Threads(pool, n)


@contextmanager
def cluster(workers: int, scheduler: str = LOCAL, timeout: float = TIMEOUT) -> Iterator[Cluster]:
    """Processes on this machine, or the workers of a Dask scheduler.

    Args:
        workers: local processes, one thread each.
        scheduler: "processes" for local ones, or an address.
        timeout: seconds to wait for the scheduler and its first worker, and for another when none is left.

    Yields:
        The workers, of whom there is at least one.

    Raises:
        InputError: nobody answers, there is no worker, or Dask is not installed.
    """
    import asyncio

    client_of = _dask_client()
    # not above: the program in there says so when its own package has imported it before
    from workbench.work.hosts import hosts

    with ExitStack() as open_ones:
        address = scheduler
        if scheduler == LOCAL:
            check_workers(workers)
            address = open_ones.enter_context(hosts(workers))
        elif "://" not in scheduler:
            raise InputError(
                f"{scheduler!r} is not a scheduler's address; write it like tcp://host:8786, or 'processes' "
                "for local processes."
            )
        try:
            asyncio.run(_identify(address, timeout))
            client = client_of(address, timeout=timeout, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            why = str(error) or f"not within {timeout:g} s"
            raise InputError(
                f"The Dask scheduler at {address} does not answer ({why}). Start it with `dask scheduler`, "
                "or check the address."
            ) from error
        open_ones.callback(client.close)
        try:
            client.wait_for_workers(1, timeout=timeout)
        except TimeoutError as error:
            raise InputError(
                f"The Dask scheduler at {address} has no worker. Start some with `dask worker {address}`."
            ) from error
        yield Cluster(client, timeout)


def _dask_client() -> Callable[..., Any]:
    """Dask's client, an extra."""
    try:
        import dask  # noqa: F401
        from distributed import Client
    except ImportError as error:
        raise InputError(
            "More than one process needs the packages dask and distributed: "
            f"{install_command('dask', 'distributed')}. One process does without."
        ) from error
    return Client


async def _identify(scheduler: str, timeout: float) -> None:
    """Ask a scheduler who it is: a client would wait for ever on a port that listens and says nothing."""
    import asyncio

    from distributed.core import rpc
    from distributed.security import Security

    async with asyncio.timeout(timeout):
        arguments = Security().get_connection_args("client")
        async with rpc(scheduler, timeout=timeout, connection_args=arguments) as remote:
            await remote.identity()
