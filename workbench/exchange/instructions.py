"""Instructions as files that other programs read."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from workbench.errors import InputError
from workbench.pools.instructions import FILE, KEPT, PICTURE, PICTURES, read_instructions
from workbench.store import ProjectState

if TYPE_CHECKING:
    from workbench.sessions.session import Session

_ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg"}


def instruction_files(state: ProjectState, version: int | None = None) -> dict[str, bytes]:
    """A version as Markdown with its pictures beside it.

    Args:
        state: of the project.
        version: the one in force unless given.

    Returns:
        Path -> content: instructions.md, then pictures/NAME.png; empty where there are none.
    """
    number = len(state.instructions) if version is None else version
    text = state.instructions[number - 1].text if number else ""
    if not text:
        return {}
    files: dict[str, bytes] = {}
    for match in PICTURE.finditer(text):
        event = state.pictures.get(match[2].removeprefix(KEPT)) if match[2].startswith(KEPT) else None
        if event is not None:
            path = f"{PICTURES}/{event.payload['picture']}{_ENDINGS[str(event.payload['media'])]}"
            files[path] = base64.b64decode(event.payload["data"])
            text = text.replace(f"({match[2]})", f"({path})")
    return {FILE: f"{text}\n".encode(), **files}


def take_instructions(session: Session, data: bytes, format: str) -> bool:
    """Begin with what a file of labels says of how to label, where the project has no instructions yet.

    Args:
        session: of the person who imports.
        data: the file.
        format: of the labels: those of Label Studio and Hugging Face may say something.

    Returns:
        Whether instructions were taken over; what cannot be shown is left out, as the labels are what was
        asked for.
    """
    if format not in ("label-studio", "huggingface") or session.state.instructions:
        return False
    try:
        instructions = read_instructions(data, "labels.zip" if data.startswith(b"PK") else "labels.json")
        return session.instructions.write(instructions.text, instructions.pictures) is not None
    except InputError:
        return False
