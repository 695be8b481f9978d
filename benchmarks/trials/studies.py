"""Studies killed at any moment: the same command goes on, and every bundle and table is the same bytes."""

from __future__ import annotations

from pathlib import Path

from benchmarks.trials import Row
from benchmarks.trials._killed import killed

_ARGUMENTS = (
    "compare",
    "--pool",
    "iris",
    "--classifier",
    "logistic-regression",
    "--policy",
    "margin",
    "--policy",
    "random",
    "--budget",
    "20",
    "--seeds",
    "3",
    "--quiet",
    "--out",
)
WORKERS = (1, 1, 2)
_ROUNDS = ("runs/*/.partial/rounds.jsonl", "runs/*/rounds.csv")


def run(count: int = 20, seed: int = 0) -> Row:
    """Kill `count` studies of six runs, each when so and so many bytes of its rounds are written.

    Every third has two worker processes, which are killed with it.

    Args:
        count: kills.
        seed: of the moments.
    """

    def command(out: Path, number: int) -> tuple[str, ...]:
        return (*_ARGUMENTS, str(out), "--workers", str(WORKERS[number % len(WORKERS)]))

    return killed("studies", count, seed, command, _ROUNDS)
