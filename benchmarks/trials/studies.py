"""Studies killed at any moment: the same command goes on, and every bundle and table is the same bytes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.trials import Row
from benchmarks.trials.runs import ROOT, differences

_ARGUMENTS = (
    "compare", "--pool", "iris", "--classifier", "logistic-regression", "--policy", "margin",
    "--policy", "random", "--budget", "20", "--seeds", "3", "--quiet", "--out",
)  # fmt: skip
WORKERS = (1, 1, 2)


def run(count: int = 20, seed: int = 0) -> Row:
    """Kill `count` studies of six runs, each when so and so many bytes of its rounds are written.

    Every third has two worker processes, which are killed with it.

    Args:
        count: kills.
        seed: of the moments.
    """
    rng = np.random.default_rng(seed)
    failures: list[str] = []
    killed = 0
    with tempfile.TemporaryDirectory() as folder:
        # a study is called as its folder is
        whole, cut = Path(folder) / "whole" / "study", Path(folder) / "cut" / "study"
        size = _study(whole, None, 1)
        if size == 0:
            return Row("studies killed outright, bytes compared", 0, 1, failures=("the whole study failed",))
        for tried in range(1, count + 1):
            workers = WORKERS[tried % len(WORKERS)]
            ended = _study(cut, int(rng.integers(1, size)), workers) > 0
            killed += not ended
            # one folder survives several kills, until it is finished
            if ended or tried % 3 == 0 or tried == count:
                if _study(cut, None, workers) == 0:
                    failures.append(f"{tried}: the command does not finish after kills")
                failures += [f"{tried}: {line}" for line in differences(whole, cut)]
                shutil.rmtree(cut, ignore_errors=True)
    return Row(
        "studies killed outright, bytes compared",
        count,
        len(failures),
        failures=tuple(failures[:20]),
        counts={"died in the middle of their rounds": killed},
    )


def _study(out: Path, limit: int | None, workers: int) -> int:
    """Run, or kill the study and its workers once its runs' rounds are longer than `limit` bytes together.

    Returns:
        The most bytes the rounds were seen to have; 0 where the study was killed, or failed.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench", *_ARGUMENTS, str(out), "--workers", str(workers)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    most, killed = 1, False
    while process.poll() is None:
        most = max(most, _written(out))
        if limit is not None and most > limit and not killed:
            killed = True
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.002)
    return most if process.returncode == 0 else 0


def _written(out: Path) -> int:
    """Bytes of the rounds of all runs, of those that are finished too."""
    total = 0
    for name in ("runs/*/.partial/rounds.jsonl", "runs/*/rounds.csv"):
        for path in out.glob(name):
            with contextlib.suppress(OSError):
                total += path.stat().st_size
    return total
