"""Workers in other processes: one that dies comes back, and a cluster nobody works in says so."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workbench import work
from workbench.errors import InputError


def dying_once(mark: str) -> int:
    """Kill the process it runs in, unless one has been killed before."""
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 7


def telling(stopped: Callable[..., bool], mark: str) -> Iterator[tuple[int, int]]:
    yield 0, dying_once(mark)


@pytest.mark.parametrize(
    "streams", [pytest.param(False, marks=pytest.mark.slow), True]
)  # alone: values at once
def test_a_worker_that_takes_long_to_come_back_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streams: bool
) -> None:
    """However slow its start: a cluster that gives up what it has lost would be left with nobody."""
    # no process begins within this, so what a busy machine does now and then happens each time
    monkeypatch.setenv("DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT", "1ms")
    mark = str(tmp_path / "mark")
    with work.cluster(1) as workers:
        if streams:
            heard = list(work.stream(workers, telling, [((mark,), 0)]))
            assert heard == [(0, 7), (0, None)]
        else:
            assert list(work.spread(workers, dying_once, [(mark,)])) == [(0, 7)]
    assert Path(mark).exists()


def test_work_that_nobody_is_left_to_do_ends_with_a_word() -> None:
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0") as all_of_them,
        work.cluster(1, all_of_them.scheduler_address) as workers,
    ):
        all_of_them.scale(0)
        while workers.client.nthreads():
            time.sleep(0.05)
        alone = work.workers.Cluster(workers.client, timeout=0.5)
        with pytest.raises(InputError, match="No worker has been there for"):
            list(work.spread(alone, abs, [(1,)]))
        with pytest.raises(InputError, match="No worker has been there for"):
            list(work.stream(alone, telling, [(("",), 0)]))
