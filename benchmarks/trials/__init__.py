"""Trials of robustness: each does something hard many times and counts how often it went wrong.

A trial is a module here with `run(count, seed) -> Row`. `python -m benchmarks.trials NAME --count N`
runs one and prints its row of the table in docs/reliability.md; without a name it lists what there is.
A long one is run in parts with seeds of their own, whose rows add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

FIRST = 40
"""How many lines of failures a row keeps."""


@dataclass(frozen=True)
class Row:
    """Result of a trial.

    Attributes:
        trial: what was tried, in a few words.
        tried: how often.
        failed: how often it went wrong.
        notes: figures worth printing beside that do not add up over parts.
        failures: a line for each of the first things that went wrong.
        counts: what was counted beside, by its words; parts add up.
        most: largest values with the words behind each ("s the slowest"); the largest of all parts counts.
    """

    trial: str
    tried: int
    failed: int
    notes: str = ""
    failures: tuple[str, ...] = field(default=())
    counts: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        said = [f"{number:,} {words}" for words, number in self.counts.items()]
        said += [f"{value:,.1f} {words}" for words, value in self.most.items()]
        said += [self.notes] if self.notes else []
        return f"| {self.trial} | {self.tried:,} | {self.failed:,} | {', '.join(said)} |"

    @classmethod
    def of(cls, trial: str, tried: int, failures: Sequence[str], notes: str = "", **more: Any) -> Row:
        """A row that has a failure for each line, and keeps the first of them."""
        return cls(trial, tried, len(failures), notes, tuple(failures[:FIRST]), **more)

    def to_json(self) -> dict[str, Any]:
        """Everything, as a line of a file of parts."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Row:
        """The row that `to_json` wrote."""
        return cls(**{**document, "failures": tuple(document["failures"])})


def added(rows: Sequence[Row]) -> Row:
    """The row of all parts of one trial; notes that differ stand beside each other.

    Raises:
        ValueError: no rows, or rows of several trials.
    """
    if len({row.trial for row in rows}) != 1:
        raise ValueError(f"These are not parts of one trial: {sorted({row.trial for row in rows})}.")
    counts: dict[str, int] = {}
    most: dict[str, float] = {}
    for row in rows:
        for words, number in row.counts.items():
            counts[words] = counts.get(words, 0) + number
        for words, value in row.most.items():
            most[words] = max(most.get(words, value), value)
    return Row(
        rows[0].trial,
        sum(row.tried for row in rows),
        sum(row.failed for row in rows),
        "; ".join(dict.fromkeys(row.notes for row in rows if row.notes)),
        tuple(line for row in rows for line in row.failures)[:100],
        counts,
        most,
    )
