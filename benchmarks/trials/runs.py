"""Runs killed at any moment: the same command goes on, and the bundle is the same bytes."""

from __future__ import annotations

import contextlib
import filecmp
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.trials import Row

ROOT = Path(__file__).resolve().parents[2]
_VARY = {"timings.csv", "environment.json"}
_ARGUMENTS = (
    "run", "--pool", "iris", "--classifier", "logistic-regression", "--policy", "margin",
    "--budget", "30", "--seed", "3", "--quiet", "--out",
)  # fmt: skip


def run(count: int = 50, seed: int = 0) -> Row:
    """Kill `count` processes of runs, each when so and so much of the rounds' file is written."""
    rng = np.random.default_rng(seed)
    failures: list[str] = []
    killed = 0
    with tempfile.TemporaryDirectory() as folder:
        whole, cut = Path(folder) / "whole", Path(folder) / "cut"
        size = _run(whole, None)
        if size == 0:
            return Row("runs killed outright, bytes compared", 0, 1, failures=("the whole run failed",))
        for tried in range(1, count + 1):
            ended = _run(cut, int(rng.integers(1, size))) > 0
            killed += not ended
            # one bundle survives several kills, until it is finished
            if ended or tried % 3 == 0 or tried == count:
                if _run(cut, None) == 0:
                    failures.append(f"{tried}: the command does not finish after kills")
                failures += [f"{tried}: {line}" for line in differences(whole, cut)]
                shutil.rmtree(cut, ignore_errors=True)
    return Row(
        "runs killed outright, bytes compared",
        count,
        len(failures),
        failures=tuple(failures[:20]),
        counts={"died in the middle of their rounds": killed},
    )


def differences(whole: Path, other: Path) -> list[str]:
    """Files of two bundles that are not the same bytes, but for times and the environment."""
    names = {p.relative_to(whole).as_posix() for p in whole.rglob("*") if p.is_file()}
    found = {p.relative_to(other).as_posix() for p in other.rglob("*") if p.is_file()}
    lines = [f"{name} is there once" for name in sorted(names ^ found)]
    differ = filecmp.cmpfiles(whole, other, sorted(names & found), shallow=False)
    return lines + [f"{name} differs" for name in [*differ[1], *differ[2]] if Path(name).name not in _VARY]


def _run(out: Path, limit: int | None) -> int:
    """Run, or kill the run once its file of rounds is longer than `limit` bytes.

    Returns:
        The most bytes the file was seen to have; 0 where the run was killed, or failed.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench", *_ARGUMENTS, str(out)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    rounds, most = out / ".partial" / "rounds.jsonl", 1
    while process.poll() is None:
        with contextlib.suppress(OSError):
            most = max(most, rounds.stat().st_size)
        if limit is not None and most > limit:
            process.kill()
        time.sleep(0.001)
    return most if process.returncode == 0 else 0
