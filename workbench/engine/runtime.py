"""Process-wide settings that must stand before TensorFlow is imported."""

from __future__ import annotations

import os
import warnings
from functools import cache


def thread_count() -> int:
    """Threads for linear algebra: WORKBENCH_THREADS, by default 1.

    One, because fits run beside a page that must stay quick, and because two OpenBLAS threads
    spin against each other on a busy machine.
    """
    text = os.environ.get("WORKBENCH_THREADS", "").strip()
    return max(1, int(text)) if text.isdigit() else 1


@cache
def prepare() -> None:
    """Set thread counts and quieten libraries, once a process. Imports no TensorFlow.

    Variables a user has set are left alone.
    """
    threads = thread_count()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # convolutions in a third to two thirds of the time; as repeatable at one thread count
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    # libraries that are not loaded yet read these; those that are get limited below
    for name in ("TF_NUM_INTRAOP_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, str(threads))
    # several sessions may fit at once, each on a thread of its own
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", str(max(threads, os.cpu_count() or 1)))
    warnings.filterwarnings("ignore", message="pkg_resources is deprecated", category=UserWarning)
    limit_blas_threads(threads)


def limit_blas_threads(threads: int) -> None:
    """Limit BLAS and OpenMP threads of libraries loaded so far, for the rest of the process.

    Args:
        threads: at least 1.
    """
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=threads)
