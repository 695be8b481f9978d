"""Operations of a person become acknowledgements."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from workbench.app.access import current
from workbench.app.desk import operations
from workbench.app.words import acts
from workbench.errors import InputError
from workbench.sessions import Session
from workbench.sessions.operations import Acknowledgement, Operation

_log = logging.getLogger(__name__)
MOST_CARDS = 16
MOST_OPERATIONS = 200


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
            operation = operations.checked(document, session.annotator, session.id)
        except InputError as error:
            finish()
            acks.append({"op": operations.named(document), "status": "refused", "why": str(error)})
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
