"""Trials of robustness: each does something hard many times and counts how often it went wrong.

A trial is a module here with `run(count, seed) -> Row`. `python -m benchmarks.trials NAME --count N`
runs one and prints its row of the table in docs/reliability.md; without a name it lists what there is.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """What a trial found.

    Attributes:
        trial: what was tried, in a few words.
        tried: how often.
        failed: how often it went wrong.
        notes: figures worth printing beside (slowest, most memory).
        failures: a line for each of the first things that went wrong.
    """

    trial: str
    tried: int
    failed: int
    notes: str = ""
    failures: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return f"| {self.trial} | {self.tried:,} | {self.failed:,} | {self.notes} |"
