"""The instructions at the desk: what is told, what of it is new to a person, and examples of the classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.app.desk import cards, markdown
from workbench.app.serving.caching import computed
from workbench.pools.instructions import KEPT
from workbench.sessions.instructions import examples_of_all

if TYPE_CHECKING:
    from workbench.sessions import Session

PLACE = "told"
"""The last part but one of the address of a picture of the instructions."""


def picture_addresses(session: Session, base: str, token: str) -> dict[str, str]:
    """Kept pictures: name in the text -> address from which it is fetched.

    Args:
        session: of the project.
        base: of the desk's routes.
        token: for the addresses of pictures.
    """
    names = session.state.pictures
    return {f"{KEPT}{name}": f"{base}/{session.id}/{PLACE}/{name}?k={token}" for name in names}


def blocks(session: Session, version: int, base: str, token: str) -> list[dict[str, Any]]:
    """A version as `markdown.nodes` has it; none of version 0."""
    if not version:
        return []
    text = session.state.instructions[version - 1].text
    return markdown.nodes(text, picture_addresses(session, base, token))


def numbers(session: Session) -> dict[str, int]:
    """The version in force, 0 where there are no instructions, and the one that the person has read."""
    instructions = session.instructions.latest
    version = 0 if instructions is None else instructions.version
    return {"told": version, "read": session.state.version_read(session.annotator)}


def sheet(session: Session, base: str, token: str, *, examples: bool = True) -> dict[str, Any]:
    """All that the panel at the desk shows.

    Args:
        session: of the person it is for.
        base: of the desk's routes.
        token: for the addresses of pictures.
        examples: False while labels are checked, which nothing may lead.

    Returns:
        version (0 for none), read (the version that the person has read), author, time, blocks (each with
        "fresh" where it was not in the version they read), and classes: name, help, colour and examples
        (item, id, face, picked).
    """
    state = session.state
    instructions = session.instructions.latest
    about = numbers(session)
    document: dict[str, Any] = {
        "version": about["told"],
        "read": about["read"],
        "author": "" if instructions is None else instructions.annotator,
        "time": "" if instructions is None else instructions.time,
        "blocks": blocks(session, about["told"], base, token),
    }
    if 0 < about["read"] < about["told"]:
        before = blocks(session, about["read"], base, token)
        document["blocks"] = [entry | {"fresh": entry not in before} for entry in document["blocks"]]
    at = session.annotator, state.last_event
    all_examples = computed(examples_of_all, session, at=at) if examples else {}
    picture = f"{base}/{session.id}/image/{{item}}?k={token}"
    keys = {name: key for key, name in state.class_names.items()}
    document["classes"] = [
        {
            "name": name,
            "help": state.class_about.get(keys[name], {}).get("guidance", ""),
            "colour": state.class_about.get(keys[name], {}).get("colour", ""),
            "examples": [
                {
                    "item": entry.item,
                    "id": str(session.pool.items.ids[entry.item]),
                    "face": cards.thumbnail_face(session.pool, entry.item, picture),
                    "picked": entry.picked,
                }
                for entry in all_examples.get(name, ())
            ],
        }
        for name in state.shown_classes[:MOST_CLASSES]
    ]
    document["more"] = len(state.shown_classes) - len(document["classes"])
    return document


MOST_CLASSES = 60
"""Classes whose examples are shown; nobody reads more."""
