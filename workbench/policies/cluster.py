"""The same scan on Dask: local processes, or a scheduler's address."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from workbench.errors import InputError

if TYPE_CHECKING:
    from workbench.policies.models import Model, Shipped
    from workbench.policies.scan import Best, Found, Job
    from workbench.policies.sources import Source, Unit

# A worker that dies takes at most this many attempts of a unit with it.
RETRIES = 3

_models: dict[str, Model] = {}


def by_dask(
    source: Source,
    model: Model,
    job: Job,
    units: list[Unit],
    n_workers: int,
    scheduler: str,
    timeout: float,
    best: Best,
) -> Generator[tuple[int, Found], None, None]:
    """(rows, Found) of each unit as it finishes; units lost with their worker are tried again.

    Args:
        source: where the rows are; paths must be visible to the workers.
        model: shipped as arrays.
        job: what to do.
        units: which rows.
        n_workers: local processes.
        scheduler: "processes" or an address.
        timeout: seconds to wait for the scheduler and its first worker.
        best: what is known so far, which prunes later units.

    Yields:
        rows of the unit and what was found.

    Raises:
        InputError: no scheduler, no worker, or a unit that kept killing its workers.
    """
    from distributed import KilledWorker, as_completed

    shipped, token = model.ship(), uuid4().hex
    with connect(scheduler, n_workers, timeout) as client:
        left = iter(units)

        def submit(unit: Unit) -> Any:
            return client.submit(
                work,
                job,
                token,
                shipped,
                source.portable(unit),
                unit,
                best.threshold,
                retries=RETRIES,
                pure=False,
            )

        in_flight = 2 * sum(client.nthreads().values()) + 1
        running = {}
        for unit in left:
            running[submit(unit)] = unit
            if len(running) >= in_flight:
                break
        tasks = as_completed(list(running), loop=client.loop)
        try:
            for task in tasks:
                unit = running.pop(task)
                try:
                    found = task.result()
                except KilledWorker as error:
                    raise InputError(
                        f"Rows {unit.first} to {unit.first + unit.n_rows - 1} kept killing their workers. "
                        "Look at the workers' memory, or take smaller chunk_rows."
                    ) from error
                except CancelledError as error:
                    raise InputError(
                        f"Lost the Dask scheduler in mid-scan ({error}). Start it again and score again."
                    ) from error
                yield unit.n_rows, found
                following = next(left, None)
                if following is not None:
                    task = submit(following)
                    running[task] = following
                    tasks.add(task)
        finally:
            client.cancel(list(running), force=True)


def work(job: Job, token: str, shipped: Shipped, source: Source, unit: Unit, threshold: float) -> Found:
    """One unit, in a worker; the model is unpacked once a scan.

    Args:
        job: what to do.
        token: of the scan.
        shipped: the model.
        source: where the rows are.
        unit: which rows.
        threshold: see `score_unit`.

    Returns:
        Found.
    """
    from workbench.policies.scan import one_blas_thread, score_unit

    model = _models.get(token)
    if model is None:
        _models.clear()  # a worker keeps the model of one scan
        model = _models[token] = shipped.unpack()
    with one_blas_thread():
        return score_unit(job, model, source, unit, threshold)


async def _knock(scheduler: str, timeout: float) -> None:
    """Ask a scheduler who it is: a client would wait for ever on a port that listens and says nothing."""
    from distributed.core import rpc
    from distributed.security import Security

    async with asyncio.timeout(timeout):
        arguments = Security().get_connection_args("client")
        async with rpc(scheduler, timeout=timeout, connection_args=arguments) as remote:
            await remote.identity()


@contextmanager
def connect(scheduler: str, n_workers: int, timeout: float) -> Iterator[Any]:
    """A Dask client, with at least one worker behind it.

    Args:
        scheduler: "processes" for local ones, or an address.
        n_workers: local processes.
        timeout: seconds.

    Yields:
        The client.

    Raises:
        InputError: nobody answers, or there is no worker.
    """
    from distributed import Client, LocalCluster

    if scheduler == "processes":
        with (
            LocalCluster(
                n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    if "://" not in scheduler:
        raise InputError(
            f"{scheduler!r} is not a scheduler's address; write it like tcp://host:8786, or 'processes' for "
            "local processes."
        )
    try:
        asyncio.run(_knock(scheduler, timeout))
        client = Client(scheduler, timeout=timeout, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"The Dask scheduler at {scheduler} does not answer ({error}). Start it with `dask scheduler`, "
            "or check the address."
        ) from error
    try:
        try:
            client.wait_for_workers(1, timeout=timeout)
        except TimeoutError as error:
            raise InputError(
                f"The Dask scheduler at {scheduler} has no worker. Start some with `dask worker {scheduler}`."
            ) from error
        yield client
    finally:
        client.close()
