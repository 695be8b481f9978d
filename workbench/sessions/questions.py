"""Start of a question about the items of a pool, also of one that a column of a table answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from workbench.errors import InputError
from workbench.guesses import cells_of, is_empty
from workbench.pools.pool import Pool
from workbench.reading import cut, listed, valid_text
from workbench.sessions.taxonomy import class_names
from workbench.store import ONE_CLASS, QUESTION_KINDS, YES_NO

YES, NO = "yes", "no"
MOST_QUESTIONS = 300
"""Most questions of one project."""
LONGEST_NAME = 100
TAKEN = ("id", "item", "tags", "image")
"""What columns of files are called beside those of the questions."""


@dataclass(frozen=True)
class Question:
    """A question that is asked about every item of a pool.

    Attributes:
        name: of the question; no other of its project has it. Exports call a column so.
        classes: names of the classes that an item has one of; a yes / no question has its own two.
        kind: "one class", or "yes / no".
        words: how it is put at the desk; "" for the words that the pool suggests.
        classifier: of this question; the project's unless given.
        options: of that classifier.
        policy: of this question; the project's unless given.
    """

    name: str
    classes: Sequence[str] = ()
    kind: str = ""
    words: str = ""
    classifier: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    policy: str | None = None

    @classmethod
    def of(cls, given: Question | str | Sequence[Any] | Mapping[str, Any]) -> Question:
        """A question, checked.

        Args:
            given: one; or its name, which makes it a yes / no question; or (name, classes); or its fields.

        Raises:
            InputError: no name, no classes, a kind there is not, or something else than a question.
        """
        if isinstance(given, str):
            return cls(given, kind=YES_NO)._checked()
        if isinstance(given, Question):
            return given._checked()
        try:
            question = cls(**given) if isinstance(given, Mapping) else cls(*tuple(given))
        except TypeError:
            raise InputError(
                'A question is a name, as "fraud" (yes or no), or a name with classes, as '
                f'("topic", ["refund", "other"]); got {cut(given)}.'
            ) from None
        return question._checked()

    def _checked(self) -> Question:
        name = question_name(str(self.name))
        if isinstance(self.classes, str):
            raise InputError(f"The classes of {name!r} are a list of names; got {cut(self.classes)}.")
        names = class_names(self.classes)
        kind = self.kind or ONE_CLASS
        if kind not in QUESTION_KINDS:
            raise InputError(f"A question is {' or '.join(map(repr, QUESTION_KINDS))}; got {cut(self.kind)}.")
        if kind == YES_NO:
            if names and names != (YES, NO):
                raise InputError(f"{name!r} is answered by {YES} or {NO}, and has no classes of its own.")
            names = (YES, NO)
        return replace(self, name=name, classes=names, kind=kind)


def question_name(given: str) -> str:
    """A name for a question, without blanks around it.

    Raises:
        InputError: an empty or a long one, or one that files need for something else.
    """
    name = valid_text(given).strip()
    if not name or len(name) > LONGEST_NAME:
        raise InputError(f"A question needs a name of 1 to {LONGEST_NAME} characters; got {cut(name)}.")
    if name in TAKEN:
        raise InputError(f"Files call another column {name!r}: give the question another name.")
    return name


def several(given: Sequence[Any], there: Sequence[str] = ()) -> list[Question]:
    """The questions that a project begins with, or gets.

    Args:
        given: each as `Question.of` takes it.
        there: names that are taken.

    Raises:
        InputError: two of one name, too many, or one that is none.
    """
    if isinstance(given, str):
        raise InputError(f"Questions are a list; got the text {cut(given)}.")
    questions = [Question.of(question) for question in given]
    names = [*there, *(question.name for question in questions)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"Two questions are called {twice[0]!r}; each needs a name of its own.")
    if len(names) > MOST_QUESTIONS:
        raise InputError(f"A project has at most {MOST_QUESTIONS} questions; these are {len(names)}.")
    return questions


def unknown_question(name: str, names: Sequence[str]) -> InputError:
    """That a project asks no question of this name."""
    return InputError(f"There is no question {name!r}. Questions: {listed(names)}.")


PREFIX = "column:"
MOST_CLASSES = 200
"""Different values of a column from which on it is no question but a text or a number."""
MOST_TAGS = 200
SAID_YES = ("yes", "true", "1", "1.0", "y", "x")
SAID_NO = ("no", "false", "0", "0.0", "n")
TAGS = ("tags", "labels")


class Answered(NamedTuple):
    """A question and what a column answers of it.

    Attributes:
        question: of that column.
        labels: (item, class) pairs.
    """

    question: Question
    labels: list[tuple[int, str]]


def is_column(given: Any) -> bool:
    """True if a question as `Session.create` takes it is that of a column."""
    return isinstance(given, str) and given.startswith(PREFIX)


def columns_in(given: Sequence[Any]) -> list[str]:
    """Names of the columns among questions as `Session.create` takes them."""
    return [question.removeprefix(PREFIX) for question in given if is_column(question)]


def with_columns(given: Sequence[Any], pool: Pool) -> tuple[list[Any], dict[str, list[tuple[int, str]]]]:
    """Questions with those of columns in their places.

    Args:
        given: as `Session.create` takes them; "column:NAME" stands for the questions of a column.
        pool: of the table.

    Returns:
        The questions, and name of a question -> (item, class) pairs that its column answers.

    Raises:
        InputError: no such column, or one that answers no question.
    """
    questions: list[Any] = []
    answers: dict[str, list[tuple[int, str]]] = {}
    for question in given:
        if not is_column(question):
            questions.append(question)
            continue
        for answered in questions_of(question.removeprefix(PREFIX), pool):
            questions.append(answered.question)
            answers[answered.question.name] = answered.labels
    return questions, answers


def questions_of(column: str, pool: Pool) -> list[Answered]:
    """The questions that a column answers.

    One with yes and no, true and false, 1 and 0, or x and nothing, is a switch. One of lists, or of names
    with ";" between them, has a switch for each name: a filled cell answers those it does not list with no.
    Any other is a question with the names in it as its classes. Empty cells answer nothing.

    Args:
        column: its name.
        pool: of the table.

    Raises:
        InputError: no such column, an empty one, or one of too many different values.
    """
    cells = {
        item: cell for item, cell in enumerate(cells_of(pool, [column])[column]) if not _says_nothing(cell)
    }
    if not cells:
        raise InputError(f"The column {column!r} is empty: nothing tells which question it answers.")
    texts = {item: _text(cell) for item, cell in cells.items() if not _is_list(cell)}
    if len(texts) == len(cells) and {text.lower() for text in texts.values()} <= {*SAID_YES, *SAID_NO}:
        labels = [(item, YES if text.lower() in SAID_YES else NO) for item, text in texts.items()]
        return [Answered(Question(column, kind=YES_NO), labels)]
    if len(texts) < len(cells) or column.lower() in TAGS or any(";" in text for text in texts.values()):
        return _of_tags(column, {item: _tags(cell) for item, cell in cells.items()})
    classes = list(dict.fromkeys(texts.values()))
    if len(classes) > MOST_CLASSES:
        raise InputError(
            f"The column {column!r} has {len(classes):,} different values, such as {cut(classes[0])}: a "
            f"question has at most {MOST_CLASSES} classes. Use the column another way."
        )
    return [Answered(Question(column, classes), list(texts.items()))]


def _of_tags(column: str, tags: dict[int, list[str]]) -> list[Answered]:
    names = list(dict.fromkeys(tag for item_tags in tags.values() for tag in item_tags))
    if not 1 <= len(names) <= MOST_TAGS:
        raise InputError(
            f"The column {column!r} lists {len(names):,} different names; as questions these are 1 to "
            f"{MOST_TAGS}."
        )
    return [
        Answered(
            Question(name, kind=YES_NO),
            [(item, YES if name in item_tags else NO) for item, item_tags in tags.items()],
        )
        for name in names
    ]


def _says_nothing(cell: Any) -> bool:
    return not _is_list(cell) and is_empty(cell)


def _is_list(cell: Any) -> bool:
    return isinstance(cell, list | tuple) or type(cell).__name__ == "ndarray"


def _text(cell: Any) -> str:
    return " ".join(str(cell).split())


def _tags(cell: Any) -> list[str]:
    parts = list(cell) if _is_list(cell) else str(cell).split(";")
    return [text for text in map(_text, parts) if text]
