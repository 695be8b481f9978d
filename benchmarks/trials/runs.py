"""Runs killed at any moment: the same command goes on, and the bundle is the same bytes."""

from __future__ import annotations

import filecmp
import shutil
import subprocess
import sys
import tempfile
import threading
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
    """Kill `count` processes of runs, each after a random share of the time a whole one takes."""
    rng = np.random.default_rng(seed)
    failures: list[str] = []
    resumed = landed = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        whole, cut = place / "whole", place / "cut"
        took = _run(whole, None)
        tried = 0
        while tried < count:
            # one bundle survives several kills, until it is finished
            tried += 1
            share = float(rng.uniform(0.3, 1.1))
            done = _run(cut, share * took) is not None
            landed += not done
            resumed += (cut / ".partial" / "rounds.jsonl").exists()
            if done or tried % 4 == 0 or tried == count:
                if _run(cut, None) is None:
                    failures.append(f"{tried}: the command does not finish after kills")
                failures += [f"{tried}: {line}" for line in differences(whole, cut)]
                shutil.rmtree(cut, ignore_errors=True)
    notes = f"{landed:,} were killed before they ended, {resumed:,} of them in the middle of the rounds"
    return Row("runs killed outright, bytes compared", count, len(failures), notes, tuple(failures[:20]))


def differences(whole: Path, other: Path) -> list[str]:
    """Files of two bundles that are not the same bytes, but for times and the environment."""
    names = {p.relative_to(whole).as_posix() for p in whole.rglob("*") if p.is_file()}
    found = {p.relative_to(other).as_posix() for p in other.rglob("*") if p.is_file()}
    lines = [f"{name} is there once" for name in sorted(names ^ found)]
    differ = filecmp.cmpfiles(whole, other, sorted(names & found), shallow=False)
    return lines + [f"{name} differs" for name in [*differ[1], *differ[2]] if name not in _VARY]


def _run(out: Path, seconds: float | None) -> float | None:
    """Seconds a run took; None where it was killed, or failed."""
    from time import perf_counter

    began = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench", *_ARGUMENTS, str(out)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    timer = None
    if seconds is not None:
        timer = threading.Timer(seconds, process.kill)
        timer.start()
    code = process.wait()
    if timer is not None:
        timer.cancel()
    return perf_counter() - began if code == 0 else None
