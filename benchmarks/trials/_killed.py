"""A command that writes a folder, killed at any moment: it goes on, and the folder is the same bytes."""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.trials import Row

ROOT = Path(__file__).resolve().parents[2]
_VARY = {"timings.csv", "environment.json"}


def killed(
    what: str, count: int, seed: int, command: Callable[[Path, int], Sequence[str]], patterns: Sequence[str]
) -> Row:
    """Kill `count` processes of a command, each when so and so much of its rounds is written.

    Args:
        what: what the command makes, in the plural.
        count: kills.
        seed: of the moments.
        command: folder and number of the kill (0 for the whole one) -> arguments of the program.
        patterns: files of the folder that hold its rounds, finished or not.
    """
    rng = np.random.default_rng(seed)
    title = f"{what} killed outright, bytes compared"
    failures: list[str] = []
    in_the_middle = 0
    with tempfile.TemporaryDirectory() as folder:
        # the folder's name is written in it
        whole, cut = Path(folder) / "whole" / "out", Path(folder) / "cut" / "out"
        size = _start(command(whole, 0), whole, patterns, None)
        if size == 0:
            return Row.of(title, 0, ["the command fails when nobody kills it"])
        for number in range(1, count + 1):
            arguments = command(cut, number)
            ended = _start(arguments, cut, patterns, int(rng.integers(1, size))) > 0
            in_the_middle += not ended
            # one folder survives several kills, until it is finished
            if ended or number % 3 == 0 or number == count:
                if _start(arguments, cut, patterns, None) == 0:
                    failures.append(f"{number}: the command does not finish after kills")
                failures += [f"{number}: {line}" for line in differences(whole, cut)]
                shutil.rmtree(cut, ignore_errors=True)
    return Row.of(title, count, failures, counts={"died in the middle of their rounds": in_the_middle})


def differences(whole: Path, other: Path) -> list[str]:
    """Files of two folders that are not the same bytes, but for times and the environment."""
    names = {p.relative_to(whole).as_posix() for p in whole.rglob("*") if p.is_file()}
    found = {p.relative_to(other).as_posix() for p in other.rglob("*") if p.is_file()}
    lines = [f"{name} is there once" for name in sorted(names ^ found)]
    differ = filecmp.cmpfiles(whole, other, sorted(names & found), shallow=False)
    return lines + [f"{name} differs" for name in [*differ[1], *differ[2]] if Path(name).name not in _VARY]


def _start(arguments: Sequence[str], out: Path, patterns: Sequence[str], limit: int | None) -> int:
    """Run, or kill the program and its workers once its rounds are longer than `limit` bytes together.

    Returns:
        The most bytes the rounds were seen to have; 0 where the program was killed, or failed.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench", *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    most, done = 1, False
    while process.poll() is None:
        most = max(most, _written(out, patterns))
        if limit is not None and most > limit and not done:
            done = True
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.001)
    return most if process.returncode == 0 else 0


def _written(out: Path, patterns: Sequence[str]) -> int:
    """Bytes of the files of rounds."""
    total = 0
    for pattern in patterns:
        for path in out.glob(pattern):
            with contextlib.suppress(OSError):
                total += path.stat().st_size
    return total
