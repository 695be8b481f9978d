"""Responses of a person to what was asked, as operations and events."""

from collections.abc import Mapping
from typing import Any

from workbench.errors import InputError
from workbench.reading import listed
from workbench.sessions.answering import CLOSING
from workbench.sessions.asking import Ask
from workbench.sessions.asking_items import ItemAsk
from workbench.sessions.open_session import OpenSession
from workbench.sessions.operations import Operation
from workbench.store import Event

_REMARKS = ("flag", "note")


def operation_of(
    session: OpenSession, ask: ItemAsk | Ask | str, response: Event | str | Mapping[str, Any], id_: str
) -> tuple[Operation, list[OpenSession]]:
    """Operation that says what `Session.tell` is told, and the sessions of the questions that it names.

    Args:
        session: of whoever answers.
        ask: what was asked; its
        response: as `Session.tell` takes them.
        id_: of the operation.

    Raises:
        InputError: no such question or class, or a response that answers nothing.
    """
    if isinstance(response, Mapping):
        return _of_row(session, ask, response, id_)
    if not isinstance(ask, ItemAsk):
        return _of_one(session, ask, response, id_), []
    if isinstance(response, Event) and response.kind in _REMARKS:
        return _remark(ask.item, response, id_), []
    if not (isinstance(response, Event) and response.kind == "skip") and len(ask.asks) > 1:
        raise InputError(
            "This item has several questions: answer with the name of each, as "
            f'tell(item, {{"{next(iter(ask.asks))}": ...}}).'
        )
    return _of_row(session, ask, dict.fromkeys(ask.asks, response), id_)


def _of_one(session: OpenSession, ask: Ask | str, response: Event | str, id_: str) -> Operation:
    ask_id = ask.id if isinstance(ask, Ask) else ask
    event = Event.label(response) if isinstance(response, str) else response
    if not isinstance(ask_id, str) or not isinstance(event, Event):
        raise InputError(
            'A question is answered with the name of a class: tell(question, "pos"), where question is '
            "one of those that ask gave."
        )
    if event.kind in _REMARKS:
        return _remark(session._answers.asked(session.state, ask_id).item, event, id_)
    if event.kind not in CLOSING:
        raise InputError(f"A question cannot be answered with {event.kind!r}; use the session's method.")
    more = dict(event.payload)
    label, item = str(more.pop("class", "")), int(more.pop("item", -1))
    return Operation(id_, event.kind, ask=ask_id, label=label, item=item, seen=False, more=more)


def _remark(item: int, event: Event, id_: str) -> Operation:
    own_fields = ("on", "reason", "text", "item")
    more = {key: value for key, value in event.payload.items() if key not in own_fields}
    on, text = event.payload.get("on", True), event.payload.get("reason", event.payload.get("text", ""))
    return Operation(id_, event.kind, item=item, on=on, text=text, more=more)


def _of_row(
    session: OpenSession, ask: ItemAsk | Ask | str, answers: Mapping[str, Any], id_: str
) -> tuple[Operation, list[OpenSession]]:
    if not answers:
        raise InputError("No question is answered.")
    if isinstance(ask, ItemAsk):
        item, asks = ask.item, tuple(one.id for one in ask.asks.values())
    else:
        asks = (ask.id if isinstance(ask, Ask) else ask,)
        item = session._answers.asked(session.state, asks[0]).item
    questions = [session.question(str(name)) for name in answers]
    by_question = dict(zip([one.question_name for one in questions], answers.values(), strict=True))
    if len(by_question) < len(answers):
        raise InputError(f"A question is answered twice, by its name and by its id: {listed(answers)}.")
    return Operation(id_, "answers", item=item, answers=by_question, asks=asks, seen=False), questions
