"""Answers to several questions in one file: a column for each, yes / no ones also as a list of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import InputError
from workbench.exchange.answers import LABEL_STUDIO, LISTS, MAX_LABELS, TAGS, Places, Row, rows_of
from workbench.exchange.imports import ImportPlan, LabelsOfFile, person_column, plan_import, plan_of
from workbench.exchange.rows import RowsOut, own_cells, remarks
from workbench.pools.cells import plain_text
from workbench.pools.labels import UNLABELLED
from workbench.pools.tables.uses import COLUMNS
from workbench.reading import cut, listed, reading, valid_texts
from workbench.sessions.questions import NO, YES
from workbench.store import YES_NO

if TYPE_CHECKING:
    from workbench.sessions.session import Session

QUESTIONS = "questions"
"""What an export holds that has a column for each question."""
PREDICTED = "questions-predictions"
"""The same of every item, with prediction and confidence of each question that has a model."""
_TABLES = ("csv", "csv-bom", "xlsx", "parquet")
CARRIED_BY = (*_TABLES, "jsonl", "label-studio", "huggingface")
"""Formats of such exports."""
READ_FROM = ("csv", "xlsx", "jsonl", "parquet", "label-studio", "huggingface")
"""Formats of files that answer several questions."""
_SAID_YES, _SAID_NO = ("yes", "true", "1", "1.0"), ("no", "false", "0", "0.0")


# --- out ------------------------------------------------------------------------------------------


class AnswerRows(RowsOut):
    """The answers of a project, a row an item and a column a question, as the writers of labels take them.

    A column NAME_person says who gave the answer to the question NAME that counts; notes and flags are the
    item's.

    Args:
        session: of any question of the project.
        format: one of `CARRIED_BY`. In tables the column `tags` lists the yes / no questions that were
            answered with yes, with ";" between them; in the others it is a list, empty where all of them were
            answered with no, and missing where none was answered. JSON lines say true and false.
        predicted: whether every item has a row, with the predictions of the questions that have a model.

    Attributes:
        items: those with an answer to any question, or all.
        classes: names of the classes, by the column of a question.
        switches: names of the yes / no questions.

    Raises:
        InputError: another format, or predictions where no question has a model.
    """

    finished = False

    def __init__(self, session: Session, format: str, predicted: bool = False) -> None:
        if format not in CARRIED_BY:
            raise InputError(
                f"{format} holds one label an item; several questions go into {', '.join(CARRIED_BY)}."
            )
        self.state, self.pool, self._format = session.state, session.pool, format
        questions = session.questions.sessions()
        states = {question.question_name: question.state for question in questions}
        self._labels = {name: state.decided for name, state in states.items()}
        self._standing = {name: state.standing for name, state in states.items()}
        kinds = {question.question_name: question.project.kind for question in questions}
        self.switches = [name for name, kind in kinds.items() if kind == YES_NO]
        # yes is 1: what drops the names of the codes, as to_csv does, still says what was answered
        self.classes: dict[str, Sequence[str]] = {
            question.question_name: (NO, YES) if question.project.kind == YES_NO else question.classes
            for question in questions
        }
        every = range(len(self.pool))
        predictors = {q.question_name: q.predictions.predictor(every) for q in questions if predicted}
        self._predictors = {name: predict for name, predict in predictors.items() if predict is not None}
        if predicted and not self._predictors:
            raise InputError(
                "There is no model to predict with yet: the first fit comes with labels of two classes."
            )
        labelled = sorted({item for labels in self._labels.values() for item in labels})
        self.items = every if predicted else labelled
        predictions = [f"{name}_{part}" for name in self._predictors for part in ("prediction", "confidence")]
        about = [*(f"{name}_person" for name in self._labels), "note", "flag", *predictions]
        if taken := [name for name in about if name in self._labels]:
            raise InputError(
                f"A question is called {listed(taken)}, as another column of the file: rename it."
            )
        reserved_names = {*COLUMNS, "id", TAGS, "image", *self._labels, *about}
        self.take_cells(own_cells(self.pool), reserved_names)
        self.of_labels = (*self._labels, *([TAGS] if self.switches else []))
        self.columns = ["id", *self.own, *self.of_labels, *about, "item"]

    def row(self, item: int) -> dict[str, Any]:
        """Facts about one item; None where a question is not answered."""
        answers: dict[str, Any] = {name: labels.get(item) for name, labels in self._labels.items()}
        answered = [name for name in self.switches if answers[name] is not None]
        tags: Any = [name for name in answered if answers[name] == YES] if answered else None
        if self._format in _TABLES and answered:
            tags = ";".join(tags)
        if self._format == "jsonl":
            answers |= {name: answers[name] == YES for name in answered}
        row = {"id": str(self.pool.items.ids[item]), **self.own_row(item)}
        for name, predict in self._predictors.items():
            label, share = max(predict(item).items(), key=lambda pair: pair[1])
            row |= {f"{name}_prediction": label, f"{name}_confidence": round(share, 6)}
        for name, label in answers.items():
            row[f"{name}_person"] = None if label is None else self._standing[name][item].annotator
        row |= answers | ({TAGS: tags} if self.switches else {}) | remarks(self.state, item) | {"item": item}
        return {name: valid_texts(value) for name, value in row.items()}

    def choices(self, row: Mapping[str, Any]) -> dict[str, list[str]]:
        """Names of the choices of Label Studio that a row makes, each with what is chosen."""
        chosen = {name: [row[name]] for name in self._labels if name not in self.switches and row[name]}
        return chosen | ({TAGS: row[TAGS]} if row.get(TAGS) else {})


# --- in -------------------------------------------------------------------------------------------


def answers_several(data: bytes, session: Session, format: str) -> bool:
    """True if a file answers the questions of a project by their names, or lists several labels an item."""
    if format not in READ_FROM:
        return False
    with reading("The file", f"a file of labels ({format})", "Is it of another format?"):
        table = rows_of(data, format)
        # tasks say only what was chosen, so all of them are looked at
        rows = list(table.rows) if format == LABEL_STUDIO else []
    columns = {name for row in rows for name in row.cells} | set(table.columns)
    names = {question.question for question in session.questions.every}
    if len(names) == 1 and ("label" in columns or not columns & set(LISTS)):
        return False
    if len(names) == 1 and format == LABEL_STUDIO:  # its one choice may be called as our lists are
        listed_tags = [
            _tags(row.cells[name], row.where, ()) or [] for row in rows for name in LISTS if name in row.cells
        ]
        return any(len(tags) > 1 or not names.isdisjoint(tags) for tags in listed_tags)
    return bool((names | set(LISTS)) & columns)


def read_answers(data: bytes, session: Session, format: str) -> ImportPlan:
    """Answers to several questions in a file, matched to the pool by id (or item); nothing is taken in.

    A column that is called like a question holds its answers: names of classes, or yes and no, true and
    false, 1 and 0. A column `tags` or `labels` lists the yes / no questions of which the answer is yes, as a
    list or with ";" between them. Those it does not name are answered with no where the file shows that they
    were asked: `answered` of the row lists them, another row's list names them, or they are among the names
    that a Parquet file gives for the list. What was never offered is not answered. An empty cell answers
    nothing.

    Args:
        data: the file.
        session: of any question of the project.
        format: one of `READ_FROM`; of Label Studio every `Choices` is a question by its name, and one of
            several choices lists yes / no questions; tasks without id and item are found by their data.

    Raises:
        InputError: a file of another form, or a cell that is no answer.
    """
    unknown: list[str] = []
    kinds = {question.question: question.kind for question in session.questions.every if not question.aside}
    switches = [name for name, kind in kinds.items() if kind == YES_NO]
    strange: dict[str, None] = {}
    offered: set[str] = set()
    unnamed: list[tuple[int, str, Row, set[str]]] = []
    with reading("The file", f"a file of labels ({format})", "Is it of another format?"):
        rows = rows_of(data, format)
        places = Places(session.pool, rows)
        person = person_column(rows, session.pool, kinds)
        labels = {
            name: LabelsOfFile(session.question(name).classes, rows.marks, name, person) for name in kinds
        }
        for n, entry in enumerate(rows.rows):
            row, where = entry.cells, entry.where
            if n >= MAX_LABELS:
                raise InputError(f"The file holds more than {MAX_LABELS:,} rows; import it in parts.")
            if entry.by is not None and set(row).isdisjoint((*kinds, *LISTS)):
                continue
            item, key = places.item(entry)
            if item < 0:
                unknown.append(key)
                continue
            row_answers = {
                name: _yes_or_no(row[name], name, where)
                if name in switches
                else labels[name].named(where, _alone(row[name], name, where))
                for name in kinds
                if name in row
            }
            for column in (name for name in LISTS if name in row and name not in kinds):
                tags = _tags(row[column], where, switches)
                if tags is None:
                    continue
                strange |= dict.fromkeys(tag for tag in tags if tag not in switches)
                # an empty cell of its own says nothing
                free_switches = {name for name in switches if name not in row}
                row_answers |= dict.fromkeys(free_switches.intersection(tags), YES)
                offered.update(tags)
                if isinstance(row.get("answered"), list):
                    row_answers |= dict.fromkeys(
                        free_switches.intersection(row["answered"]).difference(tags), NO
                    )
                else:
                    unnamed.append((item, key, entry, free_switches.difference(tags)))
            for name, answer in row_answers.items():
                if answer is not None:
                    labels[name].add(item, key, entry, answer)
        for item, key, entry, names in unnamed:
            for name in names & offered:
                labels[name].add(item, key, entry, NO)
        file_labels = {name: of_question.of_items() for name, of_question in labels.items()}
    return plan_of(session, file_labels, unknown, strange=list(strange))


def plan_of_file(data: bytes, session: Session, format: str, column: str = "") -> ImportPlan:
    """Changes that the labels of a file would make, be they of one question or of several.

    Args:
        data: the file.
        session: of the question, or of any where the file answers several.
        format: as for `import_labels`.
        column: as for `import_labels`; where it is said, the file is of one question.

    Raises:
        InputError: as `plan_import` and `read_answers`.
    """
    if not column and answers_several(data, session, format):
        return read_answers(data, session, format)
    return plan_import(data, session, format, column)


def _alone(cell: Any, name: str, where: str) -> Any:
    """The one answer of a cell, also of a list of one."""
    if isinstance(cell, bool):
        return YES if cell else NO
    if isinstance(cell, list) and len(cell) == 1:
        return _alone(cell[0], name, where)
    if isinstance(cell, list) or not isinstance(cell, str | int | float | None):
        raise InputError(f"{where} says {cut(cell)} of {name!r}, which has one answer.")
    return cell


def _yes_or_no(cell: Any, name: str, where: str) -> str | None:
    """The answer of a cell to a yes / no question; None where it says nothing."""
    text = plain_text(_alone(cell, name, where)).strip()
    lower = text.lower()
    if lower in _SAID_YES or lower in _SAID_NO:
        return YES if lower in _SAID_YES else NO
    if not text or text in UNLABELLED:
        return None
    raise InputError(f"{where} says {cut(text)} of {name!r}, which is answered by yes or no.")


def _tags(cell: Any, where: str, switches: Sequence[str]) -> list[str] | None:
    """The names that a cell lists; None where it says nothing.

    Args:
        cell: a list, or a text with ";" between names; one of `switches` may have that sign within.
        where: what messages call its row.
        switches: names of the yes / no questions.
    """
    if isinstance(cell, np.ndarray):
        cell = cell.tolist()
    if isinstance(cell, list):
        if not all(isinstance(tag, str) for tag in cell):
            raise InputError(
                f"{where} lists {cut(cell)}; names are texts. Where these are codes, the file that has their "
                "names is Parquet: `to_parquet` of datasets writes it."
            )
        return [tag.strip() for tag in cell]
    if cell is None or (isinstance(cell, float) and np.isnan(cell)) or not str(cell).strip():
        return None
    if not isinstance(cell, str):
        raise InputError(f"{where} lists {cut(cell)}; names are texts, with ; between them.")
    return _parted(cell, [name for name in switches if ";" in name])


def _parted(cell: str, compounds: Sequence[str]) -> list[str]:
    """The names between ";", those of `compounds` in one piece."""
    parts, rest = [], cell.split(";")
    while rest:
        sizes = [name.count(";") + 1 for name in compounds]
        joined = [";".join(rest[:size]).strip() for size in sizes]
        size = max(
            (n for n, name, text in zip(sizes, compounds, joined, strict=True) if name == text), default=1
        )
        parts.append(";".join(rest[:size]).strip())
        rest = rest[size:]
    return [name for name in parts if name]
