"""Answers to several questions in one file: a column for each, yes / no ones also as a list of names."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np

from workbench.csv_writing import csv_lines
from workbench.errors import InputError
from workbench.exchange.answers import LABEL_STUDIO, LISTS, MAX_LABELS, TAGS, Places, Row, rows_of
from workbench.exchange.files import CARD, packed, put, put_parquet
from workbench.exchange.imports import file_votes
from workbench.exchange.pictures import SHOWN_BY, FileNames, data_url, picture_of
from workbench.exchange.rows import number_cells, own_cells
from workbench.pools.cells import plain_text
from workbench.pools.formats.annotations import By, Choice
from workbench.pools.labels import UNLABELLED
from workbench.reading import cut, listed, reading, valid_text
from workbench.sessions.operations import made_id
from workbench.sessions.questions import NO, YES
from workbench.store import YES_NO, Event, FileVote

if TYPE_CHECKING:
    from workbench.sessions.session import Session

QUESTIONS = "questions"
"""What an export holds that has a column for each question."""
CARRIED_BY = ("csv", "jsonl", "label-studio", "huggingface")
"""Formats of such exports."""
READ_FROM = ("csv", "xlsx", "jsonl", "parquet", "label-studio", "huggingface")
"""Formats of files that answer several questions."""
PICTURE = "image"
"""The column of pictures, for Hugging Face."""
_SAID_YES, _SAID_NO = ("yes", "true", "1", "1.0"), ("no", "false", "0", "0.0")


# --- out ------------------------------------------------------------------------------------------


def write_answers(out: IO[bytes], session: Session, format: str) -> int:
    """Write what is answered, a row an item and a column a question.

    Args:
        out: an open file.
        session: of any question of the project.
        format: one of `CARRIED_BY`. In CSV the column `tags` lists the yes / no questions that were answered
            with yes, with ";" between them; in JSON lines and Hugging Face it is a list, empty where all of
            them were answered with no, and missing where none was answered.

    Returns:
        How many rows: items with an answer to any question.

    Raises:
        InputError: another format.
    """
    if format not in CARRIED_BY:
        raise InputError(
            f"{format} holds one label an item; several questions go into {', '.join(CARRIED_BY)}."
        )
    table = _Table(session)
    writers = {
        "csv": _write_csv,
        "jsonl": _write_jsonl,
        "label-studio": _write_label_studio,
        "huggingface": _write_huggingface,
    }
    writers[format](out, table)
    return len(table.items)


class _Table:
    """The answers of a project, an item a row."""

    def __init__(self, session: Session) -> None:
        self.pool = session.pool
        questions = session.asked()
        self.labels = {question.question_name: question.state.decided for question in questions}
        self.classes = {question.question_name: question.classes for question in questions}
        self.switches = [question.question_name for question in questions if question.question_kind == YES_NO]
        self.others = [name for name in self.labels if name not in self.switches]
        self.items = sorted({item for labels in self.labels.values() for item in labels})
        reserved_names = {"id", "item", TAGS, PICTURE, *self.labels}
        self._own = {
            name if name not in reserved_names else f"item_{name}": cell
            for name, cell in own_cells(self.pool).items()
        }

    @property
    def numbers(self) -> frozenset[int]:
        """Places of the columns whose texts the pool takes as numbers, all of them."""
        places = {name: place for place, name in enumerate(own_cells(self.pool), start=1)}
        return frozenset(places[name] for name in number_cells(self.pool))

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return ["id", *self._own, *self.labels, *([TAGS] if self.switches else []), "item"]

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows; None where a question is not answered."""
        for item in self.items:
            answers = {name: labels.get(item) for name, labels in self.labels.items()}
            answered = [name for name in self.switches if answers[name] is not None]
            tags = [name for name in answered if answers[name] == YES] if answered else None
            row = {"id": str(self.pool.items.ids[item])} | {
                name: cell(item) for name, cell in self._own.items()
            }
            yield row | answers | ({TAGS: tags} if self.switches else {}) | {"item": item}


def _write_csv(out: IO[bytes], table: _Table) -> None:
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    text.writelines(csv_lines([table.columns]))
    numbers = table.numbers
    for row in table.rows():
        tags = row.get(TAGS)
        cells = row if tags is None else {**row, TAGS: ";".join(tags)}
        line = ["" if cells[name] is None else cells[name] for name in table.columns]
        text.writelines(csv_lines([line], numbers))
    text.detach()


def _write_jsonl(out: IO[bytes], table: _Table) -> None:
    for row in table.rows():
        answers = {name: None if row[name] is None else row[name] == YES for name in table.switches}
        out.write(json.dumps({**row, **answers}, ensure_ascii=False).encode() + b"\n")


def choices_config(kind: str, classes: Mapping[str, Sequence[str]], switches: Sequence[str]) -> str:
    """Labelling interface of Label Studio: a choice a question, yes / no ones as one choice of several."""

    def choices(name: str, names: Sequence[str], how: str) -> str:
        listed_ = "\n".join(f"    <Choice value={quoteattr(choice)}/>" for choice in names)
        return f'  <Choices name={quoteattr(name)} toName="item" choice="{how}">\n{listed_}\n  </Choices>\n'

    one_of = "".join(choices(name, names, "single") for name, names in classes.items())
    several_of = choices(TAGS, switches, "multiple") if switches else ""
    return f"<View>\n  {SHOWN_BY[kind]}\n{one_of}{several_of}</View>\n"


def _write_label_studio(out: IO[bytes], table: _Table) -> None:
    kind = table.pool.kind
    config = choices_config(kind, {name: table.classes[name] for name in table.others}, table.switches)
    tasks, names = [], FileNames(table.pool)
    columns = [name for name in table.columns if name not in (*table.labels, TAGS)]
    for row in table.rows():
        about: dict[str, Any] = {name: row[name] for name in columns}
        if kind == "table":
            about["row"] = {name: row[name] for name in columns if name not in ("id", "item")}
        if kind == "image":
            data, ending = picture_of(table.pool, row["item"])
            names.of(row["item"], ending)
            about["image"] = data_url(data, ending)
        if table.switches:
            # a choice that is not made may be a no or nothing at all: which, only this says
            about["answered"] = [name for name in table.switches if row[name] is not None]
        choices = {name: [row[name]] for name in table.others if row[name] is not None}
        choices |= {TAGS: row[TAGS]} if row.get(TAGS) else {}
        result = [
            {"from_name": name, "to_name": "item", "type": "choices", "value": {"choices": picked}}
            for name, picked in choices.items()
        ]
        tasks.append({"id": row["item"] + 1, "data": about, "annotations": [{"result": result}]})
    with packed(out) as archive:
        put(archive, "config.xml", config)
        put(archive, "tasks.json", json.dumps(tasks, ensure_ascii=False, indent=1))


def _write_huggingface(out: IO[bytes], table: _Table) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    features: dict[str, Any] = {"id": {"dtype": "string", "_type": "Value"}}
    rows = list(table.rows())
    columns: dict[str, Any] = {"id": pa.array([row["id"] for row in rows], pa.string())}
    for name in table.columns:
        values = [row[name] for row in rows]
        if name in table.labels:
            # yes is 1: what drops the names of the codes, as to_csv does, still says what was answered
            class_names = [NO, YES] if name in table.switches else list(table.classes[name])
            codes = {label: code for code, label in enumerate(class_names)}
            columns[name] = pa.array([None if v is None else codes[v] for v in values], pa.int64())
            features[name] = {"names": class_names, "_type": "ClassLabel"}
        elif name == TAGS:
            places = {label: code for code, label in enumerate(table.switches)}
            coded = [None if v is None else [places[label] for label in v] for v in values]
            columns[name] = pa.array(coded, pa.list_(pa.int64()))
            feature = {"names": list(table.switches), "_type": "ClassLabel"}
            features[name] = {"feature": feature, "_type": "Sequence"}
        elif name == "item":
            columns[name] = pa.array(values, pa.int64())
            features[name] = {"dtype": "int64", "_type": "Value"}
        elif name != "id":
            texts = [None if value is None else valid_text(str(value)) for value in values]
            columns[name] = pa.array(texts, pa.string())
            features[name] = {"dtype": "string", "_type": "Value"}
    if table.pool.kind == "image":
        names, pictures = FileNames(table.pool), []
        for row in rows:
            data, ending = picture_of(table.pool, row["item"])
            pictures.append({"bytes": data, "path": names.of(row["item"], ending)})
        columns[PICTURE] = pa.array(pictures, pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
        features[PICTURE] = {"_type": "Image"}
    described = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    arrow_table = pa.table(columns).replace_schema_metadata(described)
    buffer = io.BytesIO()
    pq.write_table(arrow_table, buffer)
    with packed(out) as archive:
        path = put_parquet(archive, buffer)
        put(archive, "README.md", CARD.format(path=path))


# --- in -------------------------------------------------------------------------------------------


@dataclass
class Answers:
    """Content of a file of answers to several questions.

    Attributes:
        labels: name of a question -> (item, class) pairs, or votes of persons.
        unknown: keys of rows whose item the pool does not have.
        strange: names in lists that no yes / no question has, in the order in which they came.
    """

    labels: dict[str, list[tuple[int, str] | FileVote]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)

    def words(self) -> str:
        """Changes that would be taken in, in a line for people."""
        parts = [f"{name}: {len(pairs):,}" for name, pairs in self.labels.items() if pairs]
        parts += [f"{len(self.unknown):,} of unknown items"] if self.unknown else []
        return ", ".join(parts) or "nothing"


def answers_several(data: bytes, session: Session, format: str) -> bool:
    """True if a file answers the questions of a project by their names, or lists several labels an item."""
    if format not in READ_FROM:
        return False
    with reading("The file", f"a file of labels ({format})", "Is it of another format?"):
        table = rows_of(data, format)
        # tasks say only what was chosen, so all of them are looked at
        rows = list(table.rows) if format == LABEL_STUDIO else []
    columns = {name for row in rows for name in row.cells} | set(table.columns)
    names = {question.question for question in session.every_question}
    if len(names) == 1 and ("label" in columns or not columns & set(LISTS)):
        return False
    if len(names) == 1 and format == LABEL_STUDIO:  # its one choice may be called as our lists are
        listed_tags = [
            _tags(row.cells[name], row.where, ()) or [] for row in rows for name in LISTS if name in row.cells
        ]
        return any(len(tags) > 1 or not names.isdisjoint(tags) for tags in listed_tags)
    return bool((names | set(LISTS)) & columns)


def read_answers(data: bytes, session: Session, format: str) -> Answers:
    """Answers to several questions out of a file, matched to the pool by id (or item).

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
    answers = Answers()
    kinds = {question.question: question.kind for question in session.every_question if not question.aside}
    switches = [name for name, kind in kinds.items() if kind == YES_NO]
    votes: dict[str, dict[int, list[Choice]]] = {name: {} for name in kinds}
    wheres: dict[int, str] = {}
    strange: dict[str, None] = {}
    offered: set[str] = set()
    unnamed: list[tuple[int, str, Row, set[str]]] = []

    def add(name: str, item: int, answer: str, key: str, row: Row) -> None:
        choices = votes[name].setdefault(item, [])
        if row.by is None and choices and choices[0].label != answer:
            raise InputError(f"{row.where} answers {name!r} of item {cut(key)} in two ways.")
        choices.append(Choice(answer, row.by or By()))
        wheres[item] = row.where

    with reading("The file", f"a file of labels ({format})", "Is it of another format?"):
        rows = rows_of(data, format)
        places = Places(session.pool, rows)
        for n, entry in enumerate(rows.rows):
            row, where = entry.cells, entry.where
            if n >= MAX_LABELS:
                raise InputError(f"The file holds more than {MAX_LABELS:,} rows; import it in parts.")
            if entry.by is not None and set(row).isdisjoint((*kinds, *LISTS)):
                continue
            item, key = places.item(entry)
            if item < 0:
                answers.unknown.append(key)
                continue
            row_answers = {
                name: _answer(row[name], kinds[name], name, where) for name in kinds if name in row
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
                    add(name, item, answer, key, entry)
        for item, key, entry, names in unnamed:
            for name in names & offered:
                add(name, item, NO, key, entry)
        phrases = {name: f", question {name!r}," for name in votes}
        answers.labels = {name: file_votes(of_item, wheres, phrases[name]) for name, of_item in votes.items()}
    answers.strange = list(strange)
    return answers


def take_answers(session: Session, answers: Answers, source: str) -> tuple[dict[str, int], Event | None]:
    """Take in what a file says of several questions: all of it, or nothing.

    Args:
        session: of any question of the project.
        answers: from `read_answers`.
        source: where they come from, for the record.

    Returns:
        Name of a question -> how many items got a label, and an event that an undo takes back with all of the
        import; None where the file says nothing new.

    Raises:
        InputError: names that no question has.
    """
    if answers.strange:
        switches = [question.question for question in session.every_question if question.kind == YES_NO]
        raise InputError(
            f"No yes / no question is called {listed(answers.strange)}, as the file lists. The project has: "
            f"{listed(switches) or 'none'}. Add them first, or mend the file. Nothing was imported."
        )
    if not any(answers.labels.values()):
        raise InputError("The file answers none of the project's questions.")

    operation = made_id()

    def work() -> tuple[dict[str, int], Event | None]:
        counts, last = {}, None
        for name, pairs in answers.labels.items():
            question = session.question(name)
            before = question.state.n_labelled
            if pairs:
                last = question.import_labels(pairs, source, operation=operation) or last
            counts[name] = question.state.n_labelled - before
        return counts, last

    return session.together(work, whole=True)


def _answer(cell: Any, kind: str, name: str, where: str) -> str | None:
    """The class that a cell says; None where it says nothing."""
    if isinstance(cell, bool):
        cell = YES if cell else NO
    if isinstance(cell, list) or not isinstance(cell, str | int | float | None):
        if isinstance(cell, list) and len(cell) == 1:
            return _answer(cell[0], kind, name, where)
        raise InputError(f"{where} says {cut(cell)} of {name!r}, which has one answer.")
    text = plain_text(cell).strip()
    if (
        not text
        or (not isinstance(cell, str) and text in UNLABELLED)
        or (kind == YES_NO and text in UNLABELLED)
    ):
        return None
    if kind != YES_NO:
        return text
    lower = text.lower()
    if lower in _SAID_YES or lower in _SAID_NO:
        return YES if lower in _SAID_YES else NO
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
