"""Second readings of a table: commas in numbers, and columns that say the class once more."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from workbench.pools.cells import AMBIGUOUS, BLANKS, decimal_of, read_dates, read_numbers, read_texts
from workbench.pools.tables.report import Fix
from workbench.pools.tables.suggestions import names_predictions
from workbench.pools.tables.uses import (
    CLASS_NAMES,
    CLASS_WORDS,
    ColumnUse,
    is_named_id,
    name_words,
    numbers_rows,
)
from workbench.reading import cut, listed

if TYPE_CHECKING:
    from pandas import DataFrame

    from workbench.arrays import Array, Ints
    from workbench.pools.tables.options import TableOptions
    from workbench.pools.tables.report import Findings
    from workbench.pools.tables.source_table import RawTable

_HEAD = 1_000
_MOST_CLASSES, _MOST_CODES = 50, 12
_WHY = {
    "leave out": ("is left out: nothing tells how to learn from its cells", "Leave it out"),
    "id": ("is taken as the items' ids: its cells are all different", "It names the items"),
    "shown": ("is shown and not learnt from: its cells are codes of many values", "Show it"),
}
_FEW = 10  # labels that a column can agree with by chance


_ITEM = re.compile(
    r".*(id|ids|task|hit|item|unit|subject|image|question|example|nr|nummer|aufgabe|frage|bild|beispiel)"
)
_PERSON = re.compile(
    r".*(worker|annotator|rater|coder|judge|labell?er|person|user|participant|arbeiter|nutzer|teilnehmer|bewerter)"
    r"( ?in)?"
)
_ANSWER = re.compile(
    r"(answer|output|response) .*"
    r"|.*(answer|vote|rating|choice|judge?ment|result|annotation|antwort|urteil|wertung)"
)


class VoteColumns(NamedTuple):
    """Columns of a table with a row for each answer of a person to an item.

    Attributes:
        item: the items' ids.
        person: who answered.
        answer: the class that they chose.
    """

    item: str
    person: str
    answer: str


class ExaminedTable(Protocol):
    """Table under examination.

    Attributes:
        raw: as it was read.
        options: under which it is looked at.
        frame: its cells.
        names: of its columns.
        found: what a person must know.
        truth: [N] codes of the classes, -1 unknown, or None.
        keep: [N] rows that stay.
    """

    raw: RawTable
    options: TableOptions
    frame: DataFrame
    names: list[str]
    found: Findings
    truth: Ints | None
    keep: Array


def decimal_signs(table: ExaminedTable, said: Mapping[str, ColumnUse]) -> dict[str, str]:
    """Column -> its decimal sign, said or found (`workbench.pools.cells.decimal_of`).

    What one column leaves open, the others tell: a table has one sign. Points between thousands are looked
    for where other columns have decimal commas, or where a semicolon stands between the cells.

    Args:
        table: under examination.
        said: uses that somebody said.
    """
    signs = {name: use.decimal for name, use in said.items() if use.decimal}
    names = [name for name in table.names if name not in signs]
    names = [name for name in names if name not in said or said[name].use == "number"]
    if table.options.decimal is not None:
        return signs | dict.fromkeys(names, table.options.decimal)
    candidates = {name: decimal_of(table.frame[name]) for name in names}
    certain = {sign for sign, _ in candidates.values() if sign and sign != AMBIGUOUS} | set(signs.values())
    the_one = min(certain) if len(certain) == 1 else AMBIGUOUS
    for name, (sign, cell) in candidates.items():
        if sign == AMBIGUOUS:
            points = "," not in cell and "," not in certain and (certain or table.raw.delimiter != ";")
            sign = "" if points else the_one
        elif sign == "." and "," not in cell:
            sign = ""
        signs[name] = sign
    return {name: sign for name, sign in signs.items() if sign}


def settle_decimals(table: ExaminedTable, uses: dict[str, ColumnUse], signs: Mapping[str, str]) -> None:
    """Write the decimal sign of every column of numbers into its use; ask where two ways read it.

    Args:
        table: under examination; is told.
        uses: of all columns; gets the signs.
        signs: of `decimal_signs`.
    """
    columns: dict[str, list[str]] = {}
    for name, sign in signs.items():
        use = uses[name]
        if use.use != "number" or (use.decimal and not use.guessed):
            continue
        if sign == AMBIGUOUS:
            _ask_decimal(table, name, use)
            uses[name] = replace(use, decimal=",")  # read in some way until then
            continue
        if table.options.decimal is None:
            points = sign == "," and "," not in decimal_of(table.frame[name])[1]
            columns.setdefault("points" if points else sign, []).append(name)
        uses[name] = replace(use, decimal=sign)
    if "," in columns:
        table.found.note("decimal", f"Commas are read as decimal points in {listed(columns[','])}.")
    for mark, sign in (("Commas", "."), ("Points", "points")):
        if sign in columns:
            table.found.note(
                "decimal", f"{mark} in {listed(columns[sign])} stand between thousands and are left out."
            )


def _ask_decimal(table: ExaminedTable, name: str, use: ColumnUse) -> None:
    series = table.frame[name]
    text = decimal_of(series)[1]
    mark, noun = (",", "comma") if "," in text else (".", "point")
    row = int(series.astype("str").str.strip().eq(text).to_numpy(dtype=bool, na_value=False).argmax())
    ways = {
        f"{text} is {text.replace(mark, '')}": replace(use, decimal="." if mark == "," else ","),
        f"{text} is {text.replace(mark, '.')}": replace(use, decimal=mark),
    }
    table.found.choice(
        "decimal",
        f"Column {name!r} holds {cut(text)} on {table.raw.locate(row)}: a {noun} between thousands, or a "
        f"decimal {noun}?",
        name,
        tuple(Fix(words, {"columns": {name: way.to_json()}}) for words, way in ways.items()),
    )


def leave_copies_out(
    table: ExaminedTable, target: str, uses: dict[str, ColumnUse], said: Mapping[str, ColumnUse]
) -> list[str]:
    """Leave out columns that stand one to one with the classes: they are the answer, not a feature.

    Args:
        table: under examination; is told.
        target: column of the classes.
        uses: of all columns; those that were guessed are changed.
        said: uses that somebody said.

    Returns:
        Their names.
    """
    copies = []
    for name in table.names:
        use = uses[name]
        unused = use.use == "leave out" and name not in said  # so by the guess before
        if not (unused or use.use in ("category", "number")) or not _copies_classes(table, name):
            continue
        copies.append(name)
        leave = Fix.to_use("Leave the column out", "leave out", name)
        one_to_one = f"Column {name!r} stands one to one with the classes in {target!r}"
        if name in said:
            table.found.note(
                "copy",
                f"{one_to_one}: a model that sees it is always right, and can say nothing without it.",
                name,
                (leave,),
            )
            continue
        back = {"use": "category"} if unused else use.to_json()
        uses[name] = ColumnUse("leave out", guessed=True)
        table.found.guess(
            "copy",
            f"{one_to_one} and is left out: a model would read the answers in it.",
            name,
            (leave, Fix("Use it as a feature", {"columns": {name: back}})),
        )
    return copies


def _copies_classes(table: ExaminedTable, name: str) -> bool:
    if table.truth is None:
        return False
    labelled = np.flatnonzero(table.truth >= 0)
    codes = table.truth[labelled].tolist()
    n_classes = len(set(codes))
    if len(codes) < _FEW or n_classes < 2:
        return False
    column = table.frame[name]
    # most are seen through by their head: more values than classes
    if n_classes <= 20 and len({column.array[row] for row in labelled[: n_classes + 1]}) > n_classes:
        return False
    met: dict[str, int] = {}
    for start, stop in ((0, 50), (50, _HEAD), (_HEAD, len(codes))):
        if start >= len(codes):
            break
        texts, blank = read_texts(column.iloc[labelled[start:stop]])
        for text, empty, code in zip(texts, blank, codes[start:stop], strict=True):
            if empty or met.setdefault(str(text), code) != code:
                return False
    return len(met) == n_classes


def say_what_is_lost(table: ExaminedTable, uses: Mapping[str, ColumnUse], known: Collection[str]) -> None:
    """Tell of every filled column that the guess leaves out, with a cell of it and its ways back.

    Args:
        table: under examination; is told.
        uses: of all columns.
        known: columns whose use somebody said, or of which something was told.
    """
    constant: list[str] = []
    boxes: list[str] = []
    has_class = any(use.use == "class" for use in uses.values())
    for name in [name for name in uses if uses[name].use in _WHY and name not in known]:
        current_use, column, is_id = uses[name].use, table.frame[name], is_named_id(name)
        labels = name.strip().lower() in CLASS_NAMES and not has_class
        if (current_use == "shown" and not labels) or (is_id and current_use == "id"):
            continue  # told elsewhere, or nothing to tell
        if not is_id and numbers_rows(table.frame, name):
            continue
        texts, blank = read_texts(column, ("",) if labels else BLANKS)
        values = list(dict.fromkeys(texts[~blank].tolist()))
        if len(values) < 2:
            if values and labels:
                _say_one_class(table, name, str(values[0]))
            else:
                (boxes if values and blank.any() else constant).append(name)
            continue
        row = int((~blank).argmax())
        why, keep = _WHY[current_use]
        number = bool(np.isfinite(read_numbers(column.iloc[:_HEAD]).values).any())
        reads = {
            "number": number,
            "date": not number and np.isfinite(read_dates(column.iloc[:_HEAD], "").values).any(),
            "category": len(values) <= table.options.max_categories,
        }
        ways = {
            **({"Use it as the classes": "class"} if labels else {}),
            keep: current_use,
            "Use it as text": "text",
            **{f"Use it as a {use}": use for use, reads_it in reads.items() if reads_it},
        }
        table.found.guess(
            "left out",
            f"Column {name!r} {why}, as {cut(str(texts[row]))} on {table.raw.locate(row)}.",
            name,
            tuple(Fix.to_use(words, use, name) for words, use in ways.items()),
        )
    if boxes:
        table.found.guess(
            "boxes",
            f"Left out, since each holds one value or nothing: {listed(boxes)}. Is nothing a no?",
            boxes[0],
            tuple(
                Fix.to_use(words, use, *boxes)
                for words, use in (("Leave them out", "leave out"), ("Use them as categories", "category"))
            ),
        )
    if constant:
        table.found.note(
            "constant", f"Left out, since each holds one value or nothing on every row: {listed(constant)}."
        )


def _say_one_class(table: ExaminedTable, name: str, label: str) -> None:
    other_label = "other" if label != "other" else "rest"  # a second class, which people rename
    keep = {"columns": {name: {"use": "class"}}, "classes": [label, other_label]}
    table.found.guess(
        "one class",
        f"All labels in {name!r} are {cut(label)}, and one class leaves nothing to tell apart: they are left "
        "out. Say which classes there are, with classes=, to keep them.",
        name,
        (
            Fix(f"Keep them, beside a class {other_label!r}", keep),
            Fix.to_use("Leave them out", "leave out", name),
        ),
    )


def ask_for_the_class(table: ExaminedTable, uses: Mapping[str, ColumnUse]) -> None:
    """Ask which column holds the classes: one that is called so, or the last, with few values that repeat.

    Args:
        table: under examination; is told.
        uses: of all columns.
    """
    named = [name for name in table.names if CLASS_WORDS.fullmatch(name_words(name))]
    names = [*(name for name in named if not names_predictions(name)), table.names[-1]]
    words = {name: _class_words(table.frame[name], uses[name]) for name in names}
    listing = [f"{name!r} ({listed(cells, 3)})" for name, cells in words.items() if cells]
    as_now = {name: uses[name].to_json() for name, cells in words.items() if cells}
    if as_now:
        table.found.guess(
            "class?",
            f"Is {' or '.join(listing)} the class? As it stands there is none.",
            next(iter(as_now)),
            (
                Fix("There is none", {"columns": as_now}),
                *(Fix.to_use(f"{name!r} is the class", "class", name) for name in as_now),
            ),
        )


def _class_words(column: Any, use: ColumnUse) -> list[str]:
    """Values of a column that may hold the classes; none of one that cannot."""
    if not use.guessed or use.use not in ("category", "number", "shown"):
        return []
    if use.use != "category" and column.nunique() > _MOST_CLASSES:
        return []  # before a large column becomes texts
    texts, blank = read_texts(column)
    words = Counter(map(str, texts[~blank].tolist()))
    whole = [word for word in words if word.removeprefix("-").removesuffix(".0").isdigit()]
    has_numbers = whole or (use.use == "number" and not words.keys() <= {"True", "False"})
    few = _MOST_CODES if len(whole) == len(words) else 0 if has_numbers else _MOST_CLASSES
    return list(words) if 2 <= len(words) <= few and min(words.values()) > (use.use != "category") else []


def names_person(name: str) -> bool:
    """True if a column says by its name that it holds whoever answered."""
    return _PERSON.fullmatch(re.sub(r" ?(id|name)s?$", "", name_words(name))) is not None


def vote_columns(frame: Any) -> VoteColumns | None:
    """The columns of a table of votes: an id that repeats, beside one of persons and one of answers.

    Args:
        frame: pandas DataFrame.
    """
    n = len(frame)
    persons = [name for name in frame if names_person(name) and 1 < frame[name].nunique() <= n / 2]
    answers = [name for name in frame if name not in persons and _answers(frame[name], name)]
    for person in persons[:1] if answers else ():
        for item in frame:
            if (
                item not in (person, answers[0])
                and _ITEM.fullmatch(name_words(item))
                and 1 < frame[item].nunique() <= n / 1.5
                and frame.duplicated([item, person]).mean() < 0.1
            ):
                return VoteColumns(item, person, answers[0])
    return None


def _answers(column: Any, name: str) -> bool:
    words = name_words(name)
    is_answer = bool(CLASS_WORDS.fullmatch(words) or _ANSWER.fullmatch(words))
    return is_answer and 1 < column.nunique() <= _MOST_CLASSES


def uses_of_items(frame: Any, votes: VoteColumns) -> dict[str, str]:
    """Uses under which a table of votes is one of its items: what differs between their rows is left out.

    Args:
        frame: pandas DataFrame.
        votes: its columns.
    """
    n_different = frame.groupby(votes.item, sort=False).nunique(dropna=False).max().reindex(frame.columns)
    differ = frame.columns[n_different > 1]
    return {**dict.fromkeys((*differ, votes.person, votes.answer), "leave out"), votes.item: "id"}


def ask_for_votes(table: ExaminedTable, uses: Mapping[str, ColumnUse]) -> VoteColumns | None:
    """Ask whether a table is one of votes, where nobody said what its ids are.

    Args:
        table: under examination; is told.
        uses: of all columns.

    Returns:
        The columns, where they were said to be votes.
    """
    votes = vote_columns(table.frame)
    if votes is None:
        return None
    item = uses[votes.item]
    if not item.guessed:
        decided = (item.use, uses[votes.answer].use, table.options.duplicate_ids)
        return votes if decided == ("id", "leave out", "first") else None
    n_items, n_persons = (int(table.frame[name].nunique()) for name in votes[:2])
    columns = uses_of_items(table.frame, votes)
    if {*columns} >= {*table.frame.columns}:
        return None
    items = {"columns": columns, "duplicate_ids": "first"}
    table.found.guess(
        "votes",
        f"Is this a table of votes: {len(table.frame):,} answers in {votes.answer!r} of {n_persons:,} "
        f"persons in {votes.person!r} to {n_items:,} items in {votes.item!r}? As it stands each row is an "
        "item. Their votes are kept by workbench new "
        f"--votes item={votes.item},person={votes.person},class={votes.answer}.",
        votes.item,
        (
            *([Fix("It is a table of votes", items)] if uses[votes.answer].guessed else ()),
            Fix("Each row is an item", {"columns": {votes.item: item.to_json()}}),
        ),
    )
    return None
