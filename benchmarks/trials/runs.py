"""Runs killed at any moment: the same command goes on, and the bundle is the same bytes."""

from __future__ import annotations

from benchmarks.trials import Row
from benchmarks.trials._killed import killed

_ARGUMENTS = (
    "run",
    "--pool",
    "iris",
    "--classifier",
    "logistic-regression",
    "--policy",
    "margin",
    "--budget",
    "30",
    "--seed",
    "3",
    "--quiet",
    "--out",
)


def run(count: int = 50, seed: int = 0) -> Row:
    """Kill `count` processes of runs, each when so and so much of the rounds' file is written.

    Args:
        count: kills.
        seed: of the moments.
    """
    return killed("runs", count, seed, lambda out, _: (*_ARGUMENTS, str(out)), (".partial/rounds.jsonl",))
