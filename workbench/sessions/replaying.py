"""A history that was recorded elsewhere, recorded again in a project where nobody has done anything yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workbench.errors import InputError
from workbench.sessions.project import Transaction
from workbench.store import Event
from workbench.store.events import SOURCE, UNDOABLE

MAKING = SOURCE
"""Who adds the classes that a project starts with."""


def replay(transaction: Transaction, events: Sequence[Event], before: Sequence[Event]) -> int:
    """Record the events, each with its time and who did it.

    Args:
        transaction: of the caller.
        events: oldest first; "undo" names the ids that they have here.
        before: what the project holds.

    Returns:
        How many were recorded: classes that the project has already are not added again.

    Raises:
        InputError: somebody has worked in this project.
    """
    if any(event.kind in UNDOABLE and event.annotator != MAKING for event in before):
        raise InputError(
            "A history goes into a project where nobody has decided anything yet: start a new one on the "
            "same items, or import the labels alone."
        )
    there = {str(e.payload["class"]): e.id for e in before if e.kind == "class-added"}
    brought = [dict(e.payload) for e in before if e.kind == "imported"]
    told = [dict(e.payload) for e in before if e.kind == "instructions-written"]
    ids: dict[int, int] = {}
    n = 0
    for event in events:
        payload = dict(event.payload)
        if event.kind == "class-added" and str(payload.get("class")) in there:
            ids[event.id] = there[str(payload["class"])]
            continue
        if event.kind == "imported" and event.annotator == MAKING and payload in brought:
            continue  # labels that the pool brought here too
        if event.kind == "instructions-written" and event.annotator == MAKING and payload in told:
            continue  # as is what it says of how to label
        if event.kind in ("undo", "redo") and "of" in payload:
            payload["of"] = ids.get(int(payload["of"]), 0)
        ids[event.id] = transaction.add(replace(event, payload=payload, id=0)).id
        n += 1
    return n
