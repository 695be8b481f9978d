"""Questions whose answers stand in columns of a table: what they are, and what was answered."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from workbench.errors import InputError
from workbench.guesses import cells_of, is_empty
from workbench.pools.pool import Pool
from workbench.reading import cut
from workbench.sessions.questions import NO, YES, Question
from workbench.store import YES_NO

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
