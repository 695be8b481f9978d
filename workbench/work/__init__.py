"""Work on many cores or machines: threads of this process, processes, or a Dask cluster.

`spread` calls a function once for each job and gives results as they finish; `stream` also hears what jobs
have to say on the way. A job whose worker dies is done again by another. Workers compute; only the process
that called keeps or writes anything. Nothing here imports Dask before it is used.
"""

from workbench.work.distribution import spread, stream
from workbench.work.workers import (
    LOCAL,
    TIMEOUT,
    DiedError,
    check_workers,
    cluster,
    core_count,
    one_blas_thread,
    threads,
)

__all__ = [
    "LOCAL",
    "TIMEOUT",
    "DiedError",
    "check_workers",
    "cluster",
    "core_count",
    "one_blas_thread",
    "spread",
    "stream",
    "threads",
]
