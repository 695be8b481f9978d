"""What a table's columns are for where nobody said: one guess for page, command line and Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.pools.tables.options import TableOptions
from workbench.pools.tables.report import ColumnReport, TableReport

LIKELY_CLASSES = 200
MOST_CODES = 12
"""Different whole numbers of a column up to which they may be codes."""
PREDICTIONS = ("prediction", "predicted", "pred", "llm_label", "suggestion", "suggested", "guess")
"""Names of columns that say what somebody or something takes the class for."""


def names_predictions(column: str) -> bool:
    """Whether a column's name says that it holds predictions: a guess, never the truth."""
    return "_".join(str(column).replace("_", " ").split()).casefold() in PREDICTIONS


def guessed_options(
    given: Mapping[str, Any], look: Callable[[Mapping[str, Any]], TableReport]
) -> dict[str, Any]:
    """Options of `load_pool` with a use for every column, so that the guess stays when the table grows.

    Args:
        given: what a person said; a target and an id column are uses, the other columns are guessed.
        look: options -> the table under them.

    Returns:
        The options. Those that say in another way what columns are for come back as they are; so do those
        of a table that cannot be read.

    Raises:
        InputError: an option there is not.
    """
    elsewhere = {name: value for name, value in given.items() if name not in ("features", "exclude")}
    if given.get("columns") is None and TableOptions.of(elsewhere).says_columns:
        return dict(given)
    options = _as_uses(given)
    report = look(options)
    if not report.columns_option:
        return options
    said = options["columns"] if isinstance(options["columns"], Mapping) else {}
    likely = {name: use | {"guessed": True} for name, use in likely_uses(report).items() if name not in said}
    # a column that is said and not there stays, to be refused where the table is opened
    return options | {"columns": {**said, **report.columns_option, **likely}}


def _as_uses(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options with target, id column and columns to leave out among the uses."""
    options, said = dict(given), given.get("columns")
    uses = dict(said) if isinstance(said, Mapping) else {}
    if said is None and options.get("exclude"):
        out = options.pop("exclude")
        uses |= {str(name): {"use": "leave out"} for name in ((out,) if isinstance(out, str) else out)}
    for name, use in (("id_column", "id"), ("target", "class")):
        column = options.pop(name, None)
        if column not in (None, "auto"):
            uses[str(column)] = {"use": use}
    return options | {"columns": uses or "auto"}


def likely_uses(report: TableReport) -> dict[str, dict[str, str]]:
    """Uses that are likelier than those guessed column by column, seen in the whole table.

    Often some of a table's rows have their labels already: a last column of few values, half of its cells
    empty and twice as many as of any other, or a quarter and far more, holds the classes. A first column of
    words that are all different names the rows, but where nothing else could be learnt from: then it holds
    the texts, however short they are, and a second column of few values beside it their classes.
    """
    found: dict[str, dict[str, str]] = {}
    columns = report.columns
    uses = [column.use.use if column.use is not None else "" for column in columns]
    # what is only shown beside a text may be its classes
    few = [
        2 <= column.n_unique <= LIKELY_CLASSES
        and not all(re.fullmatch(r"[\d\s.,/:-]+", one) for one in column.examples)  # numbers and dates
        for column in columns
    ]
    uses = ["category" if use == "shown" and n else use for use, n in zip(uses, few, strict=True)]
    if len(columns) > 1 and "class" not in uses and uses[-1] == "category":
        last, others = columns[-1], max(column.n_missing for column in columns[:-1])
        mostly = last.n_missing >= report.n_rows / 2 and last.n_missing > 2 * others
        clearly = last.n_missing >= max(report.n_rows / 4, 10 * others)
        if (mostly or clearly) and not names_predictions(last.name) and 2 <= last.n_unique <= LIKELY_CLASSES:
            found[last.name] = {"use": "class"}
    first = columns[0]
    if alone := _texts_alone(columns, uses, report.n_rows):
        return found | alone
    unused = first.use is not None and first.use.use in ("shown", "leave out")
    words = first.type == "text" or uses[0] == "leave out"
    if "id" not in uses and unused and words and first.n_unique == report.n_rows > 1:
        found[first.name] = {"use": "id"}
    return found


def _texts_alone(
    columns: Sequence[ColumnReport], uses: Sequence[str], n_rows: int
) -> dict[str, dict[str, str]]:
    """Of a table of texts and their classes alone: its texts, its classes; {} for another table."""
    texts = [one for one, use in zip(columns, uses, strict=True) if use in ("text", "leave out")]
    texts = [one for one in texts if one.type == "text" and one.n_unique > max(1, n_rows // 2)]
    texts = [one for one in texts if any(" " in cell.strip() for cell in one.examples)]  # words, no codes
    others = [name for one, name in zip(columns, uses, strict=True) if one not in texts]
    if len(texts) != 1 or not set(others) <= {"class", "category", "id"} or others.count("category") > 1:
        return {}
    if "class" in others and "category" in others:
        return {}
    found = {texts[0].name: {"use": "text"}}
    return found | {
        one.name: {"use": "class"}
        for one, use in zip(columns, uses, strict=True)
        if use == "category" and not names_predictions(one.name)
    }


def codes(report: TableReport) -> list[str]:
    """Columns used as numbers that may be codes: few whole numbers, each in many rows.

    A code says which, not how much: as a number, 3 lies between 2 and 4, as a category it does not.
    """
    found = []
    for column in report.columns:
        few = 2 < column.n_unique <= min(MOST_CODES, report.n_rows // 10)
        if column.use is not None and column.use.use == "number" and few:
            whole = all(re.fullmatch(r"-?\d+(\.0+)?", one.strip()) for one in column.examples)
            found += [column.name] if whole else []
    return found
