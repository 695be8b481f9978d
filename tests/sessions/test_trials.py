"""Short versions of the trials of sessions; the long ones are run by hand (docs/reliability.md)."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# a limit on the size of files stands for a full disk: a test mounts nothing
RUN = """
import sys
from benchmarks.trials import __main__, browsers, conditions
conditions.MOUNTS = False
browsers.PEOPLE = 2
sys.exit(__main__.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("names", "count"),
    [
        pytest.param(("crash_session", "reruns"), 2, marks=pytest.mark.slow),
        pytest.param(("programs",), 2, marks=pytest.mark.slow),
        pytest.param(("rows",), 160, marks=pytest.mark.slow),
        pytest.param(("copies",), 2, marks=pytest.mark.slow),
        pytest.param(("conditions",), 4, marks=pytest.mark.slow),
        pytest.param(("server",), 1, marks=pytest.mark.slow),
        pytest.param(("browsers",), 2, marks=pytest.mark.slow),
        pytest.param(("uploads",), 2, marks=pytest.mark.slow),
        pytest.param(("reloads",), 2, marks=pytest.mark.slow),
    ],
)
def test_a_trial_finds_nothing_wrong(names: tuple[str, ...], count: int) -> None:
    # in a process of its own: the trials make copies of theirs, which must hold no other library's threads
    done = subprocess.run(
        [sys.executable, "-c", RUN, *names, "--count", str(count)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = done.stdout.splitlines()[-len(names) :]
    assert [row.split("|")[3].strip() for row in rows] == ["0"] * len(names)
