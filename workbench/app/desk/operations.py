"""Operations that the desk, the gallery and a browser's outbox send: checked, done and acknowledged.

An operation has exactly the fields of its kind, each of its type, or it is refused by itself with a sentence
that names the field; nothing is guessed from what is malformed. It carries the person and the project it was
done in, so that what waited in a browser is never taken for somebody else's.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, create_model

from workbench.app.access import current
from workbench.app.words import acts
from workbench.documents.checking import Closed, Document, Item
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
M = TypeVar("M", bound=BaseModel)


def _valid(value: Any) -> Any:
    return valid_text(value) if isinstance(value, str) else value


def _is_whole(name: str) -> str:
    if valid_text(name) != name:
        raise ValueError("it has characters that are none")
    return name


def _text(most: int, *, least: int = 0) -> Any:
    words = f"a text of {least} to {most:,} characters"
    # what a person wrote is kept, whatever stands in it
    return Annotated[
        str, BeforeValidator(_valid), Field(min_length=least, max_length=most, description=words)
    ]


def _list(of: Any, most: int, words: str, *, least: int = 0) -> Any:
    words = f"a list of {least} to {most} {words}"
    return Annotated[list[of], Field(min_length=least, max_length=most, description=words)]


_LETTERS = "[A-Za-z0-9._:-]"
_ID_WORDS = f"an id of 1 to {MAX_ID} letters, digits, dots, colons and dashes"
# the words of a field, for who sent something else
Id = Annotated[str, Field(pattern=f"^{_LETTERS}{{1,{MAX_ID}}}$", description=_ID_WORDS)]
IdOrNone = Annotated[
    str,
    BeforeValidator(lambda value: "" if value is None else value),
    Field(pattern=f"^{_LETTERS}{{0,{MAX_ID}}}$", description=_ID_WORDS),
]
# JSON's true is no number, and 7.0, "7" or -5 is no item of a page's
Number = Annotated[int, Field(ge=0, lt=2**53, description="a whole number, 0 or more")]
Version = Annotated[Item, Field(description="a version of the instructions: a whole number, 0 or more")]
Milliseconds = Annotated[float | None, Field(ge=0, lt=2**53, description="milliseconds: a number, 0 or more")]
ClassName = Annotated[
    str,
    AfterValidator(_is_whole),
    Field(
        max_length=_LONGEST, description=f"the name of a class: a text of up to {_LONGEST:,} whole characters"
    ),
]
Answers = Annotated[
    dict[ClassName, ClassName | None],
    Field(
        max_length=MOST_QUESTIONS,
        description=f"up to {MOST_QUESTIONS} questions, each with the name of a class or null",
    ),
]
_EVERY_MODE = Annotated[Literal["every"], Field(description=f"{EVERY!r}, where all questions are asked")]
Switch = Annotated[bool, Field(description="true or false")]
_ITEMS = _list(Number, MOST_ITEMS, "numbers of items", least=1)
_ADDS = _list(ClassName, MOST_QUESTIONS, "names of questions")
_ASK: dict[str, Any] = {"ask": IdOrNone, "item": Number, "ms": Milliseconds}
_COMMON: dict[str, Any] = {"op": Id, "kind": str, "time": _text(40), "person": Any, "project": Any}
_OPTIONAL = frozenset({"time", "ms", "ask", "target", "new", "shown", "skip", "adds", "question", "mode"})


def _kind(name: str, **fields: Any) -> type[BaseModel]:
    """The shape of a kind of operation."""
    schema: dict[str, Any] = {
        field: (kind, None if field in _OPTIONAL else ...) for field, kind in (_COMMON | fields).items()
    }
    return create_model(name, __base__=Closed, **schema)


_KINDS = {
    kind: _kind(kind, **fields)
    for kind, fields in {
        "label": _ASK | {"class": ClassName, "new": Switch, "shown": Switch},
        "skip": _ASK,
        "unsure": _ASK,
        "flag": {"item": Number, "on": Switch},
        "note": {"item": Number, "text": _text(LONGEST_NOTE, least=1)},
        "correct": {"item": Number, "class": ClassName, "new": Switch},
        "relabel": {"items": _ITEMS, "class": ClassName, "question": ClassName},
        "choose": {"items": _ITEMS, "class": ClassName},
        "twins": {"item": Number, "class": ClassName},
        "clear": {"items": _ITEMS, "question": ClassName},
        "want": {"items": _ITEMS, "text": _text(_LONGEST), "mode": _EVERY_MODE},
        "grid": {
            "class": ClassName,
            "asks": _list(Id, MOST_IN_GRID, "ids", least=1),
            "rejected": _list(Id, MOST_IN_GRID, "ids"),
            "question": ClassName,
        },
        "read": {"version": Version},
        "example": {"item": Number, "class": ClassName, "on": Switch},
        "undo": {"target": IdOrNone},
        "redo": {"target": IdOrNone},
        "requeue": {},
        "answers": _ASK | {"answers": Answers, "skip": Switch, "adds": _ADDS},
        "amend": {"item": Number, "answers": Answers, "adds": _ADDS},
    }.items()
}
_OF_OPERATION = {"op": "id", "class": "label", "target": "takes"}
"""Field -> that of an `Operation`, where it is another."""


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
    schema = _KINDS.get(kind) if isinstance(kind, str) else None
    if schema is None:
        raise InputError(f"The field kind must be one of {', '.join(_KINDS)}; got {_shown(kind)}.")
    model = shaped(schema, document, f" of a {kind!r}")
    if document["person"] != person:
        who = _shown(document["person"])
        raise InputError(f"This was done by {who}, and {person} sends it: it is stored for nobody else.")
    if document["project"] != project:
        raise InputError("The field project names another project: this was not done here.")
    values: dict[str, Any] = {
        name: getattr(model, name) for name in model.model_fields_set - {"time", "person", "project"}
    }
    milliseconds, shown = values.pop("ms", None), values.pop("shown", None)
    more: dict[str, Any] = {"source": "grid" if kind == "grid" else "desk"}
    if milliseconds is not None:
        more["seconds"] = round(min(milliseconds, _DAY) / 1000.0, 3)
    if shown is not None:
        more["guess_shown"] = shown
    if values.pop("skip", False):
        values["text"] = SKIPPED
    elif kind == "choose":
        values["text"] = "map"
    values |= {"every": "mode" in values, "kind": "confirm" if kind == "grid" else kind}
    values.pop("mode", None)
    of_operation: dict[str, Any] = {
        _OF_OPERATION.get(name, name): tuple(value) if isinstance(value, list) else value
        for name, value in values.items()
    }
    return Operation(more=more, **of_operation)


class DeskRequest(Document):
    """Numbers and lists of a request; what else is in it is looked at where it is used."""

    ops: Annotated[list[Any], Field(default_factory=list, description="a list of operations")]
    have: Annotated[list[Id], Field(default_factory=list, description="a list of ids of questions")]
    want: Number = 0
    n: Number = 24
    item: Number = -1


def shaped(schema: type[M], document: Mapping[str, Any], of: str = " of a request") -> M:
    """A document that a browser sent, as its schema has it.

    Args:
        schema: each of its fields says in words what it takes.
        document: as it came out of JSON.
        of: words behind the name of a field that is missing or strange, for messages.

    Raises:
        InputError: what it lacks, has too much of or has wrong, by the field's name.
    """
    try:
        return schema.model_validate(document)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False)[0]
    if not problem["loc"]:  # the name of a field has half of a character
        name = next(name for name in document if valid_text(name) != name)
        raise InputError(f"The field {_shown(name)} is none{of}.")
    name = str(problem["loc"][0])
    if problem["type"] == "missing":
        raise InputError(f"The field {name}{of} is missing.")
    if problem["type"] == "extra_forbidden":
        raise InputError(f"The field {_shown(name)} is none{of}.")
    words = schema.model_fields[name].description or "what the page sends"
    raise InputError(f"The field {name} must be {words}; got {_shown(document[name])}.")


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
