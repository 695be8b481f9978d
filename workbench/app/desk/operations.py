"""Operations that the desk, the gallery and a browser's outbox send: checked, done and acknowledged.

An operation has exactly the fields of its kind, each of its type, or it is refused by itself with a sentence
that names the field; nothing is guessed from what is malformed. It carries the person and the project it was
done in, so that what waited in a browser is never taken for somebody else's.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.app.access import current
from workbench.app.words import acts
from workbench.errors import InputError
from workbench.reading import cut, valid_text
from workbench.sessions import Session
from workbench.sessions.operations import MAX_ID, SKIPPED, Acknowledgement, Operation
from workbench.sessions.questions import MOST_QUESTIONS

_log = logging.getLogger(__name__)
EVERY = "every"
"""What a desk that asks all questions about an item calls itself."""
MOST_CARDS = 16
MOST_OPERATIONS = 200
MOST_IN_GRID = 48
MOST_ITEMS = 500
LONGEST_NOTE = 2000
_LONGEST = 4000  # of names and of what was searched for
_DAY = 86_400_000.0  # milliseconds: longer than that nobody looks at an item
_ID = re.compile(rf"[A-Za-z0-9._:-]{{1,{MAX_ID}}}")
_UNSAID: Any = object()


class _WrongError(Exception):
    """Type of a field."""


_Check = Callable[[Any], Any]


def _field(words: str, test: Callable[[Any], bool], kept: _Check = lambda value: value) -> _Check:
    """A check of a field.

    Args:
        words: its type, for who sent another one.
        test: tells whether a value is of it.
        kept: gives what is kept of a value.
    """

    def check(value: Any) -> Any:
        if not test(value):
            raise _WrongError(words)
        return kept(value)

    return check


def _whole(words: str, end: int) -> _Check:
    # JSON's true is no number, and 7.0, "7" or -5 is no item of a page's
    return _field(
        f"{words}: a whole number, 0 or more", lambda value: type(value) is int and 0 <= value < end
    )


def _text(most: int, *, least: int = 0) -> _Check:
    words = f"a text of {least} to {most:,} characters"
    # what a person wrote is kept, whatever stands in it
    return _field(words, lambda value: isinstance(value, str) and least <= len(value) <= most, valid_text)


_id = _field(
    f"an id of 1 to {MAX_ID} letters, digits, dots, colons and dashes",
    lambda value: isinstance(value, str) and _ID.fullmatch(value) is not None,
)
_item = _whole("the number of an item", 2**53)
_version = _whole("a version of the instructions", 2**31)
_on = _field("true or false", lambda value: isinstance(value, bool))
_mode = _field(f"{EVERY!r}, where all questions are asked", lambda value: value == EVERY)


def _id_or_none(value: Any) -> str:
    return "" if value is None or value == "" else _id(value)


def _milliseconds(value: Any) -> float | None:
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value < 2**53 or not math.isfinite(value):
        raise _WrongError("milliseconds: a number, 0 or more")
    return round(min(float(value), _DAY) / 1000.0, 3)


def _name(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise _WrongError(f"the name of a class: a text of up to {_LONGEST:,} characters")
    if valid_text(value) != value:
        raise _WrongError("the name of a class, of whole characters")
    return value


def _answers(value: Any) -> dict[str, str | None]:
    if not isinstance(value, dict) or len(value) > MOST_QUESTIONS:
        raise _WrongError(f"up to {MOST_QUESTIONS} questions, each with the name of a class or null")
    return {_name(name): None if answer is None else _name(answer) for name, answer in value.items()}


def _list(of: _Check, most: int, *, least: int = 0) -> _Check:
    def check(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise _WrongError(f"a list of {least} to {most}")
        try:
            return tuple(of(element) for element in value)
        except _WrongError as wrong:
            raise _WrongError(f"a list, each of it {wrong}") from None

    return check


_ASK: dict[str, _Check] = {"ask": _id_or_none, "item": _item, "ms": _milliseconds}
_COMMON: dict[str, _Check] = {"op": _id, "kind": str, "time": _text(40), "person": str, "project": str}
_KINDS: dict[str, dict[str, _Check]] = {
    "label": {**_ASK, "class": _name, "new": _on, "shown": _on},
    "skip": _ASK,
    "unsure": _ASK,
    "flag": {"item": _item, "on": _on},
    "note": {"item": _item, "text": _text(LONGEST_NOTE, least=1)},
    "correct": {"item": _item, "class": _name, "new": _on},
    "relabel": {"items": _list(_item, MOST_ITEMS, least=1), "class": _name, "question": _name},
    "choose": {"items": _list(_item, MOST_ITEMS, least=1), "class": _name},
    "twins": {"item": _item, "class": _name},
    "clear": {"items": _list(_item, MOST_ITEMS, least=1), "question": _name},
    "want": {"items": _list(_item, MOST_ITEMS, least=1), "text": _text(_LONGEST), "mode": _mode},
    "grid": {
        "class": _name,
        "asks": _list(_id, MOST_IN_GRID, least=1),
        "rejected": _list(_id, MOST_IN_GRID),
        "question": _name,
    },
    "read": {"version": _version},
    "example": {"item": _item, "class": _name, "on": _on},
    "undo": {"target": _id_or_none},
    "redo": {"target": _id_or_none},
    "requeue": {},
    "answers": {**_ASK, "answers": _answers, "skip": _on, "adds": _list(_name, MOST_QUESTIONS)},
    "amend": {"item": _item, "answers": _answers, "adds": _list(_name, MOST_QUESTIONS)},
}
_OF_OPERATION = {"op": "id", "class": "label", "target": "takes"}
"""Field -> that of an `Operation`, where it is another."""
_OPTIONAL = frozenset({"time", "ms", "ask", "target", "new", "shown", "skip", "adds", "question", "mode"})


def checked(document: Any, person: str, project: str) -> Operation:
    """The operation that a browser sent.

    Args:
        document: as it came out of JSON.
        person: who sends it, by their token.
        project: the project whose route it came to.

    Returns:
        It, as `Session.apply` takes it.

    Raises:
        InputError: what it lacks, has too much of or has wrong, by the field's name; or it was done by
            somebody else, or in another project.
    """
    if not isinstance(document, Mapping):
        raise InputError("An operation is an object with the fields op, kind, person and project.")
    kind = document.get("kind")
    fields = _KINDS.get(kind) if isinstance(kind, str) else None
    if not isinstance(kind, str) or fields is None:
        raise InputError(f"The field kind must be one of {', '.join(_KINDS)}; got {_shown(kind)}.")
    checks = _COMMON | fields
    strange = [name for name in document if name not in checks]
    if strange:
        raise InputError(f"The field {_shown(strange[0])} is none of a {kind!r}.")
    values: dict[str, Any] = {}
    for name, check in checks.items():
        value = document.get(name, _UNSAID)
        if value is _UNSAID:
            if name not in _OPTIONAL:
                raise InputError(f"The field {name} of a {kind!r} is missing.")
            continue
        if check is str:
            continue
        try:
            values[name] = check(value)
        except _WrongError as wrong:
            raise InputError(f"The field {name} must be {wrong}; got {_shown(value)}.") from None
    if document["person"] != person:
        who = _shown(document["person"])
        raise InputError(f"This was done by {who}, and {person} sends it: it is stored for nobody else.")
    if document["project"] != project:
        raise InputError("The field project names another project: this was not done here.")
    seconds, shown = values.pop("ms", None), values.pop("shown", None)
    more: dict[str, Any] = {"source": "grid" if kind == "grid" else "desk"}
    if seconds is not None:
        more["seconds"] = seconds
    if shown is not None:
        more["guess_shown"] = shown
    if values.pop("skip", False):
        values["text"] = SKIPPED
    elif kind == "choose":
        values["text"] = "map"
    values["every"] = values.pop("mode", "") == EVERY
    values.pop("time", None)
    of_operation = {_OF_OPERATION.get(name, name): value for name, value in values.items()}
    return Operation(kind="confirm" if kind == "grid" else kind, more=more, **of_operation)


def field(body: Mapping[str, Any], name: str, *, most: int, default: int | None = None) -> int:
    """A whole number of a request.

    Args:
        body: of the request.
        name: of the field.
        most: larger ones are this.
        default: where it is missing.

    Raises:
        InputError: it is none, by the field's name.
    """
    value = body.get(name, default)
    try:
        return min(_item(value), most)
    except _WrongError:
        raise InputError(
            f"The field {name} must be a whole number, 0 or more; got {_shown(value)}."
        ) from None


def ids(body: Mapping[str, Any], name: str, *, most: int) -> list[str]:
    """Ids of questions in a request; at most so many of them.

    Raises:
        InputError: something else than a list of ids, by the field's name.
    """
    value = body.get(name, [])
    try:
        return list(_list(_id, 1 << 20)(value))[:most]
    except _WrongError as wrong:
        raise InputError(f"The field {name} must be {wrong}; got {_shown(value)}.") from None


def named(document: Any) -> Any:
    """Name of an operation in an acknowledgement, also where it is no operation: its id, if it has one."""
    op_id = document.get("op") if isinstance(document, Mapping) else None
    return op_id if isinstance(op_id, str) else None


def _shown(value: Any) -> str:
    if isinstance(value, list | Mapping):
        return "a list" if isinstance(value, list) else "an object"
    return "a number of many digits" if type(value) is int and abs(value) >= 10**30 else cut(value)


# --------------------------------------------------------------------------- done and acknowledged


def session_of(project: str, person: str) -> Session:
    """The session of a person on a project that is open in this process."""
    return current.opened(project).as_annotator(person)


def keep_fitting(project: str, person: str) -> None:
    """See that a model which knows more is on its way, after somebody's answers."""
    session = session_of(project, person)
    with session.log.snapshot():
        current.keep_fitting_all(session)


def perform(session: Session, documents: Sequence[Any], *, check: bool = False) -> list[dict[str, Any]]:
    """Acknowledgements of operations, in their order; runs of them go into one transaction each."""
    acks: list[dict[str, Any]] = []
    run: list[Operation] = []

    def finish() -> None:
        acks.extend(_told(session, run))
        run.clear()

    for document in documents:
        try:
            operation = checked(document, session.annotator, session.id)
        except InputError as error:
            finish()
            acks.append({"op": named(document), "status": "refused", "why": str(error)})
            continue
        if operation.kind in ("label", "skip", "unsure") and not operation.ask:
            # an item that was taken back and answered before its new question arrived
            finish()
            operation = replace(operation, ask=_question_of(session, operation.item, check))
        run.append(operation)
    finish()
    return acks


def _told(session: Session, run: Sequence[Operation]) -> list[dict[str, Any]]:
    """Acknowledgements of operations that go into one transaction; one that breaks it is refused alone."""
    if not run:
        return []
    try:
        acks = session.apply(run)
    except InputError:
        raise
    except (ValueError, TypeError, ArithmeticError, LookupError) as error:
        # not the place where things are kept, which is tried again, but what is to be kept there
        if len(run) > 1:
            return [ack for entry in run for ack in _told(session, [entry])]
        _log.exception("An operation could not be done")
        why = f"It could not be stored ({type(error).__name__})."
        return [{"op": run[0].id, "status": "refused", "why": why}]
    return [_acknowledged(session, entry) for entry in acks]


def _acknowledged(session: Session, ack: Acknowledgement) -> dict[str, Any]:
    more: dict[str, Any] = {"left_out": len(ack.left_out)} if ack.left_out else {}
    if ack.about is not None:
        more["about"] = acts.about(session, ack.about)
    return {"op": ack.operation, "status": ack.status, "why": ack.why, **more}


def _question_of(session: Session, item: int, check: bool = False) -> str:
    asks = session.checks.ask(MOST_CARDS) if check else session.ask(MOST_CARDS)
    waiting = [ask.id for ask in asks if ask.item == item]
    return waiting[0] if waiting else ""
