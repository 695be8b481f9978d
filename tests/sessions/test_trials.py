"""Short versions of the trials of sessions; the long ones are run by hand (docs/reliability.md)."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("name", "count"), [("crash_session", 4), ("programs", 2), ("reruns", 5)])
def test_a_trial_finds_nothing_wrong(name: str, count: int) -> None:
    # in a process of its own: the trials make copies of theirs, which must hold no other library's threads
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.trials", name, "--count", str(count)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].split("|")[3].strip() == "0"
