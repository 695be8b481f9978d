"""Content of a table and the obstacles to making a pool from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from workbench.pools.notebooks import counted
from workbench.pools.tables.uses import ColumnUse
from workbench.reading import ECHO, shortened

_OF_READING = ("ragged", "header", "quotes", "folder", "files")
_MOST_TOLD = 3  # guesses that a refusal tells
_LONGEST = 4 * ECHO  # what is longer than five is cut


@dataclass(frozen=True)
class Fix:
    """One way out of a problem.

    Attributes:
        label: a few words for a button.
        options: keyword arguments for `load_pool` and `inspect_table`.
    """

    label: str
    options: Mapping[str, Any]

    @classmethod
    def to_use(cls, label: str, use: str, *columns: str) -> Fix:
        """The way out that uses these columns so."""
        return cls(label, {"columns": {name: {"use": use} for name in columns}})


@dataclass(frozen=True)
class Problem:
    """Something about a table that a person should know or decide.

    Attributes:
        code: a stable short name ("missing", "text", ...).
        severity: "error" and "choice" stop a pool from being made ("choice" has fixes); a "guess" was taken
            and can be read in another way as well, which its fixes say; a "note" is to be known.
        message: what is wrong, with the column and the line.
        column: its name, or "".
        fixes: ways out.
    """

    code: str
    severity: Literal["error", "choice", "guess", "note"]
    message: str
    column: str = ""
    fixes: tuple[Fix, ...] = ()


@dataclass(frozen=True)
class ColumnReport:
    """Content of one column.

    Attributes:
        name: of the column.
        n_missing: empty cells.
        n_unique: different values.
        examples: a few of them.
        use: what it is used for; None where the table cannot be read to its end.
    """

    name: str
    n_missing: int
    n_unique: int
    examples: tuple[str, ...]
    use: ColumnUse | None = None


@dataclass(frozen=True)
class TableReport:
    """Content of a table and the obstacles to making a pool from it.

    Attributes:
        name: of the file.
        format: "csv" or "parquet"; "" when it could not be read.
        n_rows: rows, without lines left out.
        encoding: of a CSV.
        delimiter: of a CSV.
        columns: one report a column.
        classes: class -> how many items, when a target is named.
        problems: what a person should know or decide, worst first.
        preview: the first rows, column -> cell.
        votes: columns of the item, the person and the answer, where it was said to be a table of votes.
    """

    name: str
    format: str = ""
    n_rows: int = 0
    encoding: str = ""
    delimiter: str = ""
    columns: tuple[ColumnReport, ...] = ()
    classes: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    preview: tuple[Mapping[str, Any], ...] = ()
    votes: tuple[str, str, str] | None = None

    @property
    def columns_option(self) -> dict[str, dict[str, Any]]:
        """The option `columns` that says of every column what it is used for now, and what is a guess."""
        return {column.name: column.use.as_option() for column in self.columns if column.use is not None}

    @property
    def ready(self) -> bool:
        """True if `load_pool` with the same options would make a pool."""
        return not any(problem.severity in ("error", "choice") for problem in self.problems)


class Findings:
    """Problems as they are found; what is only noted goes into the pool's notes."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def error(self, code: str, message: str, column: str = "") -> None:
        """Something without a way out."""
        self._add(Problem(code, "error", message, column))

    def choice(self, code: str, message: str, column: str = "", fixes: tuple[Fix, ...] = ()) -> None:
        """Something a person must decide."""
        self._add(Problem(code, "choice", message, column, fixes))

    def guess(self, code: str, message: str, column: str = "", fixes: tuple[Fix, ...] = ()) -> None:
        """Something that was taken in one of two ways."""
        self._add(Problem(code, "guess", message, column, fixes))

    def note(self, code: str, message: str, column: str = "", fixes: tuple[Fix, ...] = ()) -> None:
        """Something a person should know."""
        self._add(Problem(code, "note", message, column, fixes))

    def _add(self, problem: Problem) -> None:
        self.problems.append(replace(problem, message=shortened(problem.message)))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes and guesses."""
        return tuple(problem.message for problem in self.problems if problem.severity in ("guess", "note"))

    def in_the_way(self, *, strict: bool = False) -> list[Problem]:
        """Problems that stop a pool from being made, or follow from one that does; strict counts guesses."""
        stops = ("error", "choice", "guess") if strict else ("error", "choice")
        return worst_first([problem for problem in self.problems if problem.severity in stops])


def worst_first(problems: Sequence[Problem]) -> list[Problem]:
    """Problems in the order to mend them: an error may follow from how it is read."""
    order = ("error", "choice", "guess", "note")
    reads = [problem.severity == "choice" and problem.code in _OF_READING for problem in problems]
    pairs = zip(problems, reads, strict=True)
    return [p for p, _ in sorted(pairs, key=lambda pair: (not pair[1], order.index(pair[0].severity)))]


def refusal(problems: Sequence[Problem]) -> str:
    """Words of a refusal: what is wrong, with the options that settle each of it, none of them cut.

    Args:
        problems: worst first, at least one.
    """
    told, more = "", len(problems)
    for problem in problems[: _MOST_TOLD if problems[0].severity == "guess" else 1]:
        words, say = f"{told} {problem.message}", " Say"
        for fix in problem.fixes:
            way = f"{words}{say} {_written(fix.options)} ({fix.label})"
            if len(way) < _LONGEST and way == shortened(way):
                words, say = way, ";"
        if told and len(words) > _LONGEST:
            break
        told, more = words + "." * (say == ";"), more - 1
    return told[1:] + (f" ({counted(more, 'further problem')} of this kind or another.)" * (more > 0))


def _written(options: Mapping[str, Any]) -> str:
    """Options as Python takes them, and the command line."""
    texts = {
        name: repr(value)
        if value is None or isinstance(value, bool)
        else json.dumps(value, ensure_ascii=False)
        for name, value in options.items()
    }
    return ", ".join(f"{name}={text}" for name, text in texts.items())
