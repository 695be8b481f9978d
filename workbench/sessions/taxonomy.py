"""Names and keys of a project's classes."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.errors import InputError
from workbench.store import ProjectState


def key_of(state: ProjectState, name: str) -> str:
    """The key of the class that is called `name`, or has it as its key.

    Raises:
        InputError: there is none.
    """
    for key, shown in state.class_names.items():
        if shown == name:
            return key
    if name in state.class_names:
        return name
    raise InputError(f"There is no class {name!r}. Classes: {', '.join(state.classes) or 'none yet'}.")


def class_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names to begin with, without blanks around them.

    Raises:
        InputError: an empty name, or one that occurs twice.
    """
    cleaned = tuple(str(name).strip() for name in names)
    if any(not name for name in cleaned):
        raise InputError("A class needs a name.")
    if len(set(cleaned)) != len(cleaned):
        raise InputError("Two classes have the same name.")
    return cleaned


def new_name(state: ProjectState, name: str) -> str:
    """A name for a class, without blanks around it.

    Raises:
        InputError: an empty name, or one that exists.
    """
    cleaned = name.strip()
    if not cleaned:
        raise InputError("A class needs a name.")
    if cleaned in state.classes:
        raise InputError(f"There is a class {cleaned!r} already.")
    return cleaned


def new_key(state: ProjectState, name: str) -> str:
    """The name itself, or where an earlier class took that as its key, the name with a number."""
    taken = {*state.class_names, *state.merged}
    key, number = name.strip(), 2
    while key in taken:
        key, number = f"{name.strip()}#{number}", number + 1
    return key
