"""Acts of a person, in words: for what an undo took back, wherever it was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.app.words.text import plural, words_of

if TYPE_CHECKING:
    from workbench.pools import Pool
    from workbench.sessions import Session
    from workbench.store import Event, ProjectState

MOST_ITEMS = 60


def class_name(state: ProjectState, key: Any) -> str:
    """The name that a class of an event has now."""
    return state.name_of(str(key))


def items_of(event: Event) -> list[int]:
    """The items that an act was about."""
    payload = event.payload
    if event.item is not None:
        return [event.item]
    return [int(i) for i in payload.get("items", [pair[0] for pair in payload.get("labels", ())])]


def in_words(session: Session, event: Event) -> str:
    """An act in a few words, such as "52 labelled setosa" or "labels of 3 items removed".

    Args:
        session: of the project.
        event: one of a kind that can be undone.
    """
    return phrase(session.pool, session.state, event, "undo") or event.kind


def phrase(pool: Pool, state: ProjectState, event: Event, use: str) -> str:
    """Words of acts.toml for an act; "" where it has none.

    Args:
        pool: of the project.
        state: of it, for the names that classes have now.
        event: the act.
        use: "undo" or "change".
    """
    payload: dict[str, Any] = {"source": "a file", **event.payload}
    kind = event.kind if payload.get("on", True) else f"{event.kind}-off"
    now, items = class_name(state, payload.get("class")), items_of(event)
    template = str(words_of("acts").get(kind, {}).get(use, ""))
    return template.format(
        raw=payload,
        subject=str(pool.items.ids[items[0]]) if len(items) == 1 else plural(len(items), "item"),
        items=plural(len(payload.get("items", ())), "item"),
        labels=plural(len(payload.get("labels", ())), "label"),
        now=now,
        into=class_name(state, payload.get("into")),
        name=payload.get("name") or now,
    )


def taken_back(session: Session, event: Event | None) -> str:
    """Effect of an undo, in a sentence."""
    if event is None:
        return "There is nothing to take back."
    return f"Taken back: {in_words(_of(session, event), event)}."


def take_back(session: Session, act: int | None) -> tuple[Event | None, str]:
    """Undo an act, while it is the last thing that its person did anywhere.

    Args:
        session: of the person.
        act: id of the event that stood beside the button; None for none.

    Returns:
        The event that was taken back, if any, and a sentence.
    """
    last, _ = session.log.last_acts
    event = None if act is None else session.undo(of=act)
    if event is None and last is not None:
        since = in_words(_of(session, last), last)
        return None, f"Not taken back, as you did something else since: {since}."
    return event, taken_back(session, event)


def operation(event: Event | None) -> str | None:
    """The operation that recorded an act; "" for one done past a desk, None where there is no act."""
    return None if event is None else event.operation or ""


def steps(session: Session) -> dict[str, Any]:
    """Last acts of a person in a whole project, so that a tab knows whether it did them.

    Args:
        session: of the person.

    Returns:
        undoable and redoable (whether there is one), last and put (`operation` of what an undo takes back and
        of what a redo puts back).
    """
    last, put = session.log.last_acts
    return {
        "undoable": last is not None,
        "redoable": put is not None,
        "last": operation(last),
        "put": operation(put),
    }


def about(session: Session, event: Event) -> dict[str, Any]:
    """An act: op, words, and how its items stand now (item, kind, class, flag), some of them."""
    items = items_of(event)[:MOST_ITEMS]
    return {
        "op": event.operation or "",
        "words": in_words(_of(session, event), event),
        "items": [stands(session.state, item) for item in items],
    }


def stands(state: ProjectState, item: int) -> dict[str, Any]:
    """Decision about an item, in words."""
    label = state.labels.get(item, "")
    kind = "label" if label else "unsure" if item in state.unsure else "skip" if item in state.skipped else ""
    return {"item": item, "kind": kind, "class": label, "flag": item in state.flagged}


def _of(session: Session, event: Event) -> Session:
    """The session of the question that an act was of; of what is about items the one that is there."""
    return session if event.question is None else session.question(event.question)
