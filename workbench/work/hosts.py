"""Worker processes on this machine, behind a process of their own.

Processes that Python starts from here begin by importing this program's main script. In the app that is
a page, and a page is not to be run by a worker. So a small program starts them; it ends them when the
one that started it closes the pipe between them, or dies.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from workbench.errors import InputError
from workbench.work.companion import child

_PATIENCE = 10.0
# workers that watch themselves as closely as is usual: it costs more than it tells here
_SETTINGS = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "1s",
    # a worker that died is started again by its nanny; the cluster must not end the nanny while it does so,
    # which on a busy machine takes longer than the usual 15 seconds: nobody would be left to work
    "distributed.deploy.lost-worker-timeout": "365d",
    # else memory goes back to the system after every array, and half as many page faults come on top
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
}


@contextmanager
def hosts(workers: int) -> Iterator[str]:
    """Start local workers of one thread each.

    Args:
        workers: how many.

    Yields:
        The address of their Dask scheduler.

    Raises:
        InputError: they could not be started.
    """
    program = child(__name__, str(workers))
    assert program.stdin is not None and program.stdout is not None
    try:
        address = program.stdout.readline().decode().strip()
        if not address:
            raise InputError("The worker processes could not be started; what they said stands above.")
        yield address
    finally:
        program.stdin.close()
        try:
            program.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
        program.stdout.close()


def dask_setup(worker: Any) -> None:
    """Let a worker end without taking TensorFlow down, which takes seconds; Dask calls this in each.

    Args:
        worker: not needed.
    """
    import atexit

    # results are with the driver before workers are ended: nothing is left to be tidied up
    atexit.register(os._exit, 0)


def main() -> None:
    """Hold as many workers as the first argument says until standard input ends."""
    # the pipe is for the address alone: what workers print goes where errors go
    stdout = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    import dask
    from distributed import LocalCluster

    with (
        dask.config.set(_SETTINGS),
        LocalCluster(
            n_workers=int(sys.argv[1]),
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            preload=["workbench.work.hosts"],
        ) as cluster,
    ):
        os.write(stdout, f"{cluster.scheduler_address}\n".encode())
        os.close(stdout)
        sys.stdin.read()


if __name__ == "__main__":
    main()
