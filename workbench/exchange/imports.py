"""Labels out of files: the plan of an import, and the import, matched to a pool by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import InputError
from workbench.exchange.answers import MAX_LABELS, Places, Row, Rows, by_whom, rows_of
from workbench.exchange.auditing import column_of, table_of
from workbench.exchange.predictions import Prediction, read_predictions
from workbench.guesses import unknown_names
from workbench.pools.cells import plain_text
from workbench.pools.formats.label_studio import Choice, votes_of
from workbench.pools.labels import UNLABELLED
from workbench.pools.pool import Pool
from workbench.pools.tables.options import READING
from workbench.pools.tables.second_readings import VoteColumns, names_person, uses_of_items
from workbench.pools.tables.uses import CLASS_NAMES, is_exported, is_label, is_of_ours
from workbench.reading import cut, letters, reading
from workbench.reading import listed as quoted
from workbench.sessions.operations import made_id
from workbench.store import LABEL, YES_NO, Event, FileVote

if TYPE_CHECKING:
    from workbench.sessions import Session


class ColumnNeeded(InputError):
    """Nothing tells which column of a table holds the labels.

    Attributes:
        columns: those that may.
    """

    columns: tuple[str, ...] = ()


Labels = Sequence[tuple[int, str] | FileVote]
"""Labels of a question: (item, class name) pairs, or votes of persons."""
Votes = dict[tuple[str, str], str]
"""(id of an item, person) -> the class that the person chose."""


def import_labels(
    data: bytes,
    pool: Pool,
    format: str,
    classes: Sequence[str] = (),
    *,
    unknown: list[str] | None = None,
    column: str = "",
    question: str = "",
    notes: list[str] | None = None,
) -> list[tuple[int, str] | FileVote]:
    """Labels out of a file, matched to the pool by id, item number, or what a person sees of an item.

    Empty cells, null, NaN, the code -1 and what a model predicted are rows without a label. A text such as
    "None" or "nan" is the name of a class where the file can say otherwise that there is no label, or where a
    class is called so; else it is no label, and refused where the file's other labels are new classes too.

    Args:
        data: the file.
        pool: whose items they are of.
        format: one of csv, xlsx, parquet, jsonl, npz, label-studio, huggingface, coco.
        classes: names of the project's classes, beside the pool's.
        unknown: takes the ids that the pool does not have; without it they are an error.
        column: of the labels in a table, of Label Studio's tasks the name of a choice; "" takes the one that
            is called as the question, else as the pool's own column of classes or label, class, category,
            ..., which is no property of the items; of tasks any choice.
        question: its name.
        notes: takes what is to be told of how the file was read.

    Returns:
        (item, class name) pairs, for `Session.items.import_labels`. Rows without a label are left out. Of
        Label Studio, whose annotations name persons, a vote of each; where nothing decides, they differ.

    Raises:
        InputError: an unknown format, a file of another form, labels that are no names or codes of
            classes, ids the pool does not have, or an id with two different labels, which are not votes of
            persons.
    """
    with reading("The file", f"a file of labels ({format})", "Is it of another format?"):
        rows = rows_of(data, format)
        column = _class_column(rows.columns, pool, column, question) if rows.columns else column
        if notes is not None:
            notes.extend(rows.notes)
        return _matched(rows, pool, classes, unknown, column)


def _class_column(columns: Sequence[str], pool: Pool, column: str, question: str) -> str:
    """The column of the labels; the arguments are those of `import_labels`.

    Raises:
        ColumnNeeded: no such column, or more than one.
    """
    if is_exported(list(columns)) and not column:
        return "label"
    uses = {name: use["use"] for name, use in (pool.uses or {}).items()}
    own_names = _own_columns(pool)
    if not column and question != LABEL and question in columns:
        column = question
    candidates = [
        name
        for name in columns
        if (name == column if column else uses.get(name) == "class" or name.strip().lower() in CLASS_NAMES)
        and (column or len(columns) < 3 or name not in own_names)
    ]
    if len(candidates) == 1:
        return candidates[0]
    has = quoted(candidates or columns, 12, quote=False)
    error = ColumnNeeded(
        f"Several columns may hold the labels: {has}. Say which with --label COLUMN, or take the others out."
        if candidates
        else f"A file of labels has the columns id (or item) and {column or 'label'}; this one has {has}. "
        "Say which holds the labels with --label COLUMN."
    )
    error.columns = tuple(candidates or columns)
    raise error


def _own_columns(pool: Pool) -> set[str]:
    """Names of the columns that are properties of a pool's items."""
    names = {name for name, use in (pool.uses or {}).items() if use["use"] not in ("class", "leave out")}
    if not pool.uses and pool.kind == "table" and len(pool):
        names.update(pool.items.show(0).row or ())
    return names


def person_column(rows: Rows, pool: Pool, answers: Iterable[str]) -> str:
    """The column of a table that says who answered; "" for none.

    Args:
        rows: of the file.
        pool: of the items, whose own columns say nothing of who answered.
        answers: names of the columns of answers, likewise.
    """
    columns = [] if is_of_ours(list(rows.columns)) else rows.columns
    other_columns = {*answers, *_own_columns(pool)}
    persons = [name for name in columns if names_person(name) and name not in other_columns]
    return min(persons, key=lambda name: name != "annotator", default="")


def table_of_votes(
    path: Path | str, item: str, person: str, label: str, options: Mapping[str, Any]
) -> tuple[dict[str, Any], Votes, str]:
    """A table with a row for each answer of a person to an item, as crowd-sourcing writes it.

    Args:
        path: of the table.
        item: column of the items' ids.
        person: column of who answered; of a person's answers to one item the last counts.
        label: column of the answers.
        options: of the pool that somebody gave: how the file is read, and uses of columns, which go before.

    Returns:
        Options under which the table is a pool of its items: what differs between the rows of one item is no
        property of it. (id, person) -> answer. And a sentence about what is left out.

    Raises:
        InputError: no table, no such columns, or none about the items.
    """
    frame = table_of(path, {name: options[name] for name in READING if name in options})
    cells = [column_of(frame, name, path) for name in (item, person, label)]
    columns: dict[str, Any] = dict(uses_of_items(frame, VoteColumns(item, person, label)))
    if set(columns) >= {*frame.columns}:
        raise InputError(
            f"{path} says nothing of the items but {cut(item)}: there is nothing to learn from. Add a column "
            "with what people saw, or open the items as a pool and import their labels."
        )
    answers = [(key, who.strip(), answer.strip()) for key, who, answer in zip(*cells, strict=True)]
    votes = {(key, who): answer for key, who, answer in answers if answer and who}
    n_nobodys = sum(bool(answer and not who) for _, who, answer in answers)
    differ = [name for name in columns if name not in (item, person, label)]
    parts = [f"columns that differ between the rows of an item: {quoted(differ)}"] if differ else []
    parts += [f"{n_nobodys:,} answers without a {cut(person)}"] if n_nobodys else []
    notes = f"Left out: {'; '.join(parts)}." if parts else ""
    columns |= options.get("columns") or {}
    return {**options, "columns": columns, "duplicate_ids": "first"}, votes, notes


def take_votes(session: Session, votes: Votes, source: str) -> str:
    """Take the answers of a table of votes into a project of its items.

    Args:
        session: of the project.
        votes: of `table_of_votes`.
        source: the file's name.

    Returns:
        How many answers, and of how many persons, in words.
    """
    place = {str(key): item for item, key in enumerate(session.pool.items.ids)}
    rows = [FileVote(place[key], answer, who) for (key, who), answer in votes.items() if key in place]
    session.items.import_labels(rows, source)
    return f"{len(rows):,} answers of {len({row.person for row in rows}):,} persons"


def _matched(
    rows: Rows, pool: Pool, classes: Sequence[str], left_out: list[str] | None, column: str
) -> list[tuple[int, str] | FileVote]:
    person = person_column(rows, pool, (column,))
    labels = LabelsOfFile((*pool.classes, *classes), rows.marks, person=person)
    places = Places(pool, rows, column)
    unknown: list[str] = []
    for n, row in enumerate(rows.rows, start=1):
        if n > MAX_LABELS:
            raise InputError(f"The file holds more than {MAX_LABELS:,} labels; import it in parts.")
        name = labels.named(row.where, _said(row, column))
        if name is None:
            continue
        item, text = places.item(row)
        if item < 0:
            unknown.append(text)
        else:
            labels.add(item, text, row, name)
    if left_out is not None:
        left_out.extend(unknown)
    elif unknown:
        raise InputError(
            f"Pool {pool.name!r} has no item {quoted(unknown, 5, quote=False)}. Nothing was imported."
        )
    file_labels = labels.of_items()
    if not (file_labels or unknown):
        raise InputError("The file holds no labels.")
    return file_labels


class LabelsOfFile:
    """Labels of one question, as the rows of a file bring them.

    Args:
        classes: names of those that are known.
        marks: as of `Rows`.
        question: its name, for messages; "" where there is no other.
        person: column that says who answered, "" for none: rows of an item by several persons are votes.
    """

    def __init__(self, classes: Iterable[str], marks: bool, question: str = "", person: str = "") -> None:
        self._known = {letters(name): name for name in classes}
        self._marks, self._question, self._person = marks, question, person
        self._mark: tuple[str, str] | None = None
        self._rows: list[tuple[int, str, str, Choice]] = []
        self._labels: dict[int, str] = {}
        self._choices: dict[int, list[Choice]] = {}
        self._wheres: dict[int, str] = {}

    def named(self, where: str, cell: Any) -> str | None:
        """The class that a cell names, None where it names none; what may be either is looked at in the end.

        Args:
            where: what messages call its row.
            cell: what the file holds.

        Raises:
            InputError: what is no name of a class.
        """
        if isinstance(cell, bool) or not isinstance(cell, str | int | float | None):
            raise InputError(
                f"{where} has the label {cut(cell)}, which is no name of a class. Write the name as a text."
            )
        if isinstance(cell, float) and np.isinf(cell):
            raise InputError(f"{where} has the label {cell}, which is no name of a class.")
        name = plain_text(cell).strip()
        if (form := letters(name)) in self._known:
            return self._known[form]
        # a text "-1" is a name like any other while no class is known: the classes may be -1 and 1
        is_text = isinstance(cell, str)
        if not name or (is_text and not self._marks):
            return name or None
        if name == "-1" and (self._known or not is_text):
            return None
        if name not in UNLABELLED:
            return name
        if is_text:
            self._mark = self._mark or (where, name)
        return None

    def add(self, item: int, key: str, row: Row, name: str) -> None:
        """Take a label of an item.

        Args:
            item: its place.
            key: what messages call it.
            row: of the file.
            name: of the class.

        Raises:
            InputError: the item has another label, and no persons are named who differ.
        """
        if row.by is not None:
            self._choose(item, row.where, Choice(name, row.by))
        elif self._person and (by := by_whom(row.cells, self._person)) is not None:
            self._rows.append((item, key, row.where, Choice(name, by)))
        else:
            self._label(item, key, name)

    def _choose(self, item: int, where: str, choice: Choice) -> None:
        self._choices.setdefault(item, []).append(choice)
        self._wheres[item] = where

    def _label(self, item: int, key: str, name: str) -> None:
        if (label := self._labels.setdefault(item, name)) != name:
            of = f" of {self._question!r}" if self._question else ""
            raise InputError(f"Item {key} has two labels{of}: {cut(label)} and {cut(name)}.")

    def of_items(self) -> list[tuple[int, str] | FileVote]:
        """Labels that the rows add up to: (item, class) pairs, or votes where the file names persons.

        Raises:
            InputError: a text that may stand for no label, or be one of the new classes beside it.
            Disagreement: as `votes_of`.
        """
        persons = {(item, choice.by.person) for item, _, _, choice in self._rows}
        if len(persons) > len({item for item, _ in persons}):
            # of what a person says of an item at no other moment the last counts
            rows = {(item, choice.by): (where, choice) for item, _, where, choice in self._rows}
            for (item, _), (where, choice) in rows.items():
                self._choose(item, where, choice)
        else:
            for item, key, _, choice in self._rows:
                self._label(item, key, choice.label)
        names = {*self._labels.values(), *(c.label for choices in self._choices.values() for c in choices)}
        if self._mark is not None and not names <= {*self._known.values()}:
            raise InputError(
                f"{self._mark[0]} has the label {cut(self._mark[1])}, and no class is called so. Where it "
                "means that there is no label, leave the cell empty; where it is a class, add it to the "
                "project first. Nothing was imported."
            )
        question = f", question {self._question!r}," if self._question else ""
        votes = (
            FileVote(item, vote.label, *vote.by[:3])
            for item, choices in self._choices.items()
            for vote in votes_of(choices, f"{self._wheres[item]}{question}")
        )
        return [*self._labels.items(), *(vote if any(vote[2:]) else vote[:2] for vote in votes)]


def _said(row: Row, column: str) -> Any:
    """The class as the file holds it; None where there is none, or where it is a model's."""
    if column:
        label = row.cells.get(column) if is_label(row.cells.get("status")) else None
        return (label or [None])[0] if isinstance(label, list) and len(label) < 2 else label
    choices = [cell for name, cell in row.cells.items() if name != "answered"]
    labels = [label for cell in choices for label in (cell if isinstance(cell, list) else [cell])]
    if len(labels) > 1:
        raise InputError(f"{row.where} has several choices; one class an item is what we keep.")
    return labels[0] if labels else None


ALIKE = 0.66
"""Share of letters from which on a new class's name may be a slip of one that is there."""


@dataclass(frozen=True)
class ImportPlan:
    """Changes that the labels of a file would make in a project, of one question or of several.

    Attributes:
        labels: name of a question -> those of the rows whose item is known.
        unknown: keys of the rows that name no item of the pool.
        counts: name of a question -> how many labels.
        new: how many items have no label yet.
        same: how many have this label already.
        differ: (question, item) -> (its label now, the one of the file).
        undecided: how many items without a label have votes that differ.
        changed: how many get another label than theirs, or one of a new class.
        classes: new name of a class -> how many rows have it.
        alike: new name of a class -> the class it may be a slip of.
        strange: names in lists that no yes / no question has, in the order in which they came.
        notes: what is to be told of how the file was read.
    """

    labels: Mapping[str, Labels]
    unknown: tuple[str, ...]
    counts: Mapping[str, int]
    new: int
    same: int
    differ: Mapping[tuple[str, int], tuple[str, str]]
    undecided: int
    changed: int
    classes: Mapping[str, int]
    alike: Mapping[str, str]
    strange: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def several(self) -> bool:
        """True if the file answers several questions, or some that are still to be added."""
        return len(self.counts) > 1 or bool(self.strange)

    def chosen(
        self,
        *,
        leave_out_unknown: bool = False,
        keep_mine: bool = False,
        named: Mapping[str, str] | None = None,
    ) -> dict[str, Labels]:
        """Name of a question -> the labels to take in, as `Session.items.import_labels` takes them.

        Args:
            leave_out_unknown: go on without the rows whose item the pool does not have.
            keep_mine: leave items that have another label as they are.
            named: new name of a class -> the class its rows are to have.

        Raises:
            InputError: rows of unknown items that nobody said to leave out, or nothing left to take in.
        """
        if self.unknown and not leave_out_unknown:
            raise InputError(
                f"{len(self.unknown):,} rows name no item of the pool: leave them out, or mend them."
            )
        renames = named or {}
        labels: dict[str, Labels] = {
            question: [
                vote._replace(label=renames.get(vote.label, vote.label))
                for vote in (FileVote(*row) for row in rows)
                if not (keep_mine and (question, vote.item) in self.differ)
            ]
            for question, rows in self.labels.items()
        }
        if not any(labels.values()):
            raise InputError(
                "The file answers none of the project's questions."
                if self.several
                else "No label is left to take in."
            )
        return {question: rows for question, rows in labels.items() if rows}

    def words(self) -> str:
        """The plan in a line for people."""
        unknown = f"{len(self.unknown):,} of unknown items" if self.unknown else ""
        if self.several:
            parts = [f"{name}: {n:,}" for name, n in self.counts.items() if n]
            return ", ".join(filter(None, [*parts, unknown])) or "nothing"
        parts = [f"{self.new:,} new", f"{len(self.differ):,} differ" if self.differ else ""]
        parts += [f"{self.same:,} are there already" if self.same else ""]
        parts += [f"{self.undecided:,} on which people differ" if self.undecided else "", unknown]
        n = len(self.classes)
        parts += [
            f"{n:,} new class{'' if n == 1 else 'es'}: {', '.join(list(self.classes)[:5])}" if n else ""
        ]
        return ", ".join(filter(None, parts))


def plan_import(data: bytes, session: Session, format: str, column: str = "") -> ImportPlan:
    """Look through a file of labels of one question without taking anything in.

    Args:
        data: the file.
        session: of the project.
        format: as for `import_labels`.
        column: as for `import_labels`.

    Raises:
        InputError: as `import_labels`, but for rows whose item the pool does not have.
    """
    unknown: list[str] = []
    notes: list[str] = []
    labels = import_labels(
        data,
        session.pool,
        format,
        session.classes,
        unknown=unknown,
        column=column,
        question=session.project.question,
        notes=notes,
    )
    return plan_of(session, {session.question_name: labels}, unknown, notes=notes)


def plan_of(
    session: Session,
    labels: Mapping[str, Labels],
    unknown: Sequence[str],
    *,
    strange: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> ImportPlan:
    """Plan of an import of labels that were read; the arguments are those of `ImportPlan`."""
    differ: dict[tuple[str, int], tuple[str, str]] = {}
    changed: set[tuple[str, int]] = set()
    kinds, classes, alike = Counter[str](), Counter[str](), dict[str, str]()
    for name, rows in labels.items():
        question = session.question(name)
        state, known = question.state, {*question.classes}
        present = {**state.labels, **dict.fromkeys(state.undecided)}
        for item, label in _labels_brought(rows).items():
            if item not in present:
                kinds["undecided" if label is None else "new"] += 1
            elif present[item] == label:
                kinds["same"] += 1
            else:
                differ[name, item] = present[item] or "undecided", label or "people differ"
        new_classes = Counter(row[1] for row in rows if row[1] not in known)
        changed |= {(name, row[0]) for row in rows if known and row[1] in new_classes}
        classes += new_classes
        alike |= _slips(new_classes, state.classes)
    return ImportPlan(
        labels,
        tuple(unknown),
        {name: len(rows) for name, rows in labels.items()},
        kinds["new"],
        kinds["same"],
        differ,
        kinds["undecided"],
        len(changed | differ.keys()),
        classes,
        alike,
        tuple(strange),
        tuple(notes),
    )


def take_import(session: Session, plan: ImportPlan, source: str, **choices: Any) -> list[Event]:
    """Take in the labels of a file: all of them, or none; one undo takes all back.

    Args:
        session: of the question, or of any where the file answers several.
        plan: what it would change.
        source: the file's name, for the record.
        choices: about the odd rows, as `ImportPlan.chosen` takes them.

    Returns:
        The events of questions of which it says something new.

    Raises:
        InputError: as `ImportPlan.chosen`; or names in lists that no question has.
    """
    if plan.strange:
        switches = [question.question for question in session.questions.every if question.kind == YES_NO]
        raise InputError(
            f"No yes / no question is called {quoted(plan.strange)}, as the file lists. The project has: "
            f"{quoted(switches) or 'none'}. Add them first, or mend the file. Nothing was imported."
        )
    labels, operation = plan.chosen(**choices), made_id()

    def work() -> list[Event]:
        events = [
            session.question(name).items.import_labels(rows, source, corrects=True, operation=operation)
            for name, rows in labels.items()
        ]
        return [event for event in events if event is not None]

    return session.log.together(work, whole=True) if len(labels) > 1 else work()


def _labels_brought(rows: Labels) -> dict[int, str | None]:
    """Item -> the class that a file gives it; None where its people differ."""
    labels: dict[int, str | None] = {}
    final: dict[int, str] = {}
    for row in rows:
        if isinstance(row, FileVote) and row.final:
            final[row.item] = row.label
        labels[row[0]] = row[1] if labels.get(row[0], row[1]) == row[1] else None
    return labels | final


@dataclass(frozen=True)
class PredictionPlan:
    """Predictions of a file for a project's items.

    Attributes:
        said: (item, class name, confidence or None) of the rows whose item is known.
        unknown: keys of the rows that name no item of the pool; they are left out.
        matched: how many items have a prediction of one of the classes.
        classes: name that is no class -> how many items have it.
        alike: such a name -> the class it may be another spelling of.
        n_items: of the pool.
    """

    said: tuple[Prediction, ...]
    unknown: tuple[str, ...]
    matched: int
    classes: Mapping[str, int]
    alike: Mapping[str, str]
    n_items: int

    def words(self) -> str:
        """The plan in a line for people."""
        n, k = sum(self.classes.values()), len(self.classes)
        parts = [f"{self.matched:,} of {self.n_items:,} items matched"]
        if n:
            names = f"{', '.join(list(self.classes)[:5])}{', ...' if k > 5 else ''}"
            parts.append(f"{n:,} of {'a class' if k == 1 else f'{k:,} classes'} not here: {names}")
        if self.unknown:
            n = len(self.unknown)
            parts.append(f"{n:,} row{'' if n == 1 else 's'} of unknown items, left out")
        return ", ".join(parts)


def plan_predictions(data: bytes, name: str, session: Session) -> PredictionPlan:
    """Look through a file of predictions without taking anything in.

    Args:
        data: the file.
        name: its name, whose ending says what it is.
        session: of the project.

    Raises:
        InputError: as `read_predictions`.
    """
    unknown: list[str] = []
    predictions = read_predictions(data, name, session.pool, unknown=unknown)
    strange = unknown_names((label for _, label, _ in predictions), session.classes)
    return PredictionPlan(
        tuple(predictions),
        tuple(unknown),
        len(predictions) - sum(strange.values()),
        strange,
        _slips(strange, session.classes),
        len(session.pool),
    )


def _slips(names: Iterable[str], classes: Sequence[str]) -> dict[str, str]:
    """Name -> the class that it may be a slip of, of those that may be one."""
    plain = {title.casefold().strip(): title for title in classes}
    close = {name: get_close_matches(name.casefold().strip(), list(plain), 1, ALIKE) for name in names}
    return {name: plain[matches[0]] for name, matches in close.items() if matches}
