"""Operations that a client sends in batches, and the answer to each."""

import json
import operator
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.errors import InputError
from workbench.reading import valid_text
from workbench.store import Event
from workbench.store.events import MADE

Status = Literal["saved", "conflict", "refused"]
MAX_ID = 64
SKIPPED = "skip"
"""Text of "answers" that set the item aside instead."""
RESERVED = frozenset(
    (
        "item",
        "items",
        "labels",
        "class",
        "ask",
        "asks",
        "rejected",
        "n_items",
        "check",
        "final",
        "of",
        "act",
        "questions",
    )
)
"""Fields of events that no provenance of a client may have."""


@dataclass(frozen=True)
class Operation:
    """One thing an annotator did, under an id of the client's making.

    The id is stored in the event, so that an operation that is sent again is acknowledged and not
    repeated.

    Attributes:
        id: up to 64 characters, unique in the project.
        kind: "label", "skip" or "unsure" (of a question), "flag" or "note" (of an item), "confirm" (of
            the questions of a grid), "correct" (one's own earlier answer: a class, or "" for unsure),
            "relabel" or "clear" (items in review), "twins" (the copies of an item get its
            class), "choose" (items of one's own choosing get a class), "resolve" (a disagreement),
            "requeue" (items that were set aside), "want" (to be asked about items), "read" (the
            instructions), "example" (of a class), "answers" (to several questions about an item),
            "amend" (one's own earlier answers to several), "undo" or "redo"; "class-add", "class-rename",
            "class-merge", "class-remove", "class-describe" and "class-order" (of classes), "import" (labels
            of a file), "write" (the instructions), "settings" (of the project); "freeze" or "certify"
            (labels that are checked).
        ask: id of the question.
        item: index into the pool, for "flag", "note", "correct", "twins", "example", "answers" and
            "amend"; with a question, the item it must be of.
        items: indices, for "relabel", "clear", "want", "choose", "resolve" and "requeue"; for "flag" and
            "note", where they are about several.
        label: name of the class, for "label", "confirm", "correct", "relabel", "twins", "choose", "resolve"
            and "example".
        new: for "label" and "correct", the class may be one that there is not yet: the label brings it.
        text: of a note, of the instructions or a question; the reason of a flag, how wanted items were found,
            or how items were chosen; the new name of a class, or the one it is merged into; name of a file.
        on: False for a flag or an example that is taken away.
        version: of the instructions that was read, or that was there before what is written; -1 for the one
            in force.
        asks: ids of the questions that are confirmed, or that a row answers.
        rejected: ids of the questions of the grid that are not of the class.
        answers: for "answers" and "amend", name of a question -> class, None for unsure, True or False of a
            yes / no question, or an event.
        adds: for these, the questions whose class may be one that there is not yet.
        question: for "confirm", the name of the question that the grid was of; "" for the session's own.
        seen: the item was on screen: its answer is taken, as one more vote where others were asked.
        second: for "want", a second look at labels of one's own.
        every: for "want", whether every question that is open about the items is asked.
        takes: for "undo" and "redo", id of the operation it takes back or puts back; refused when that is
            not the annotator's last any more.
        decides: for "import", whether the file decides where an item has another label.
        value: what a change of classes says, the votes of an import, pictures, the labels to freeze with
            their promise; of settings those that are changed, and the event that does it.
        more: further provenance, such as {"milliseconds": 812}.
    """

    id: str
    kind: str
    ask: str = ""
    item: int = -1
    label: str = ""
    new: bool = False
    text: str = ""
    items: Sequence[int] = ()
    on: bool = True
    version: int = 0
    asks: Sequence[str] = ()
    rejected: Sequence[str] = ()
    takes: str = ""
    answers: Mapping[str, Any] = field(default_factory=dict)
    adds: Sequence[str] = ()
    question: str = ""
    seen: bool = True
    second: bool = False
    every: bool = False
    decides: bool = False
    value: Any = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check each field.

        Raises:
            InputError: one is of another type, by its name; or provenance has a field of events.
        """
        for names, (check, requirement) in _FIELDS.items():
            for name in names:
                value = getattr(self, name)
                try:
                    object.__setattr__(self, name, check(value))
                except InputError:
                    raise
                except (TypeError, ValueError):
                    raise InputError(
                        f"The field {name} of an operation is {requirement}; got {value!r:.80}."
                    ) from None


def _of(*types: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, types):
            raise TypeError
        return value

    return check


def _number(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise TypeError
    return tuple(_of(str)(text) for text in value)


def _numbers(value: Any) -> tuple[int, ...]:
    return tuple(map(_number, value))


def provenance(value: Any) -> Any:
    """Provenance of a client: no field of an event, and what JSON can hold.

    Raises:
        InputError: it has a field of events.
    """
    if stray := RESERVED & _of(Mapping)(value).keys():
        raise InputError(f"The field {min(stray)!r} of more is none of provenance: an operation has its own.")
    json.dumps(dict(value), allow_nan=False)
    return value


_FIELDS: dict[tuple[str, ...], tuple[Callable[[Any], Any], str]] = {
    ("id", "kind", "ask", "label", "text", "takes", "question"): (_of(str), "a text"),
    ("item", "version"): (_number, "a whole number"),
    ("items",): (_numbers, "a list of whole numbers"),
    ("asks", "rejected", "adds"): (_texts, "a list of texts"),
    ("on", "new", "seen", "second", "every", "decides"): (_of(bool), "True or False"),
    ("answers",): (_of(Mapping), "a mapping"),
    ("more",): (provenance, "a mapping that JSON can hold"),
}


@dataclass(frozen=True)
class Acknowledgement:
    """Outcome of an operation.

    Attributes:
        operation: its id.
        status: "saved" (also when it had been saved before), "conflict" (somebody was faster: its
            question was answered, or an undo came too late), "refused" (it cannot be done).
        why: a sentence, for all but "saved"; of a row, the questions that were left out.
        left_out: items of a "confirm" that somebody else answered or holds.
        about: what an "undo" took back or a "redo" put back.
        event: that records it in the session's question; None for a row, a step back, and for nothing.
    """

    operation: str
    status: Status
    why: str = ""
    left_out: tuple[int, ...] = ()
    about: Event | None = None
    event: Event | None = None


def made_id() -> str:
    """An id for an operation that no client gave one."""
    return f"{MADE}{secrets.token_hex(8)}"


def given_id(operation: str | None) -> str:
    """The id that a client gave an operation, or one that is made.

    Raises:
        InputError: as `checked_id`.
    """
    return made_id() if operation is None else checked_id(operation)


def checked_id(operation: str) -> str:
    """The id of an operation of a client.

    Raises:
        InputError: it is empty or too long, or begins as those that are made here.
    """
    if not isinstance(operation, str) or valid_text(operation) != operation:
        raise InputError(f"The id of an operation is a text of whole characters; got {operation!r:.80}.")
    if operation.startswith(MADE):
        raise InputError(f"The id of an operation begins with no {MADE!r}; got {operation[:80]!r}.")
    if not operation or len(operation) > MAX_ID:
        raise InputError(f"An operation needs an id of 1 to {MAX_ID} characters; got {operation[:80]!r}.")
    return operation


def taken_id(operation: str) -> str:
    """Sentence that an id is of something else that was done."""
    return f"Operation {operation!r} is something else that was done: give this one an id of its own."


INNER = frozenset(("import", "write", "settings", "freeze", "certify"))
"""Kinds that `Session` has methods for, which check what they say."""


def check_of_client(operation: Operation) -> None:
    """Check that an operation is one of a client.

    Raises:
        InputError: its id is none of a client's, or `Session` has a method for it.
    """
    checked_id(operation.id)
    if operation.kind in INNER:
        raise InputError(f"Session has a method of its own for {operation.kind!r}: call that.")
