"""Names and keys of a project's classes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.pools.pool import Pool
from workbench.reading import letters, valid_text
from workbench.sessions.operations import Operation
from workbench.store import Event, ProjectState

LONGEST_GUIDANCE = 300
LONGEST_NAME = 300
CLASS_CHANGES = ("class-add", "class-rename", "class-merge", "class-remove", "class-describe", "class-order")
"""Kinds of operations on the classes."""
_COLOUR = re.compile(r"#[0-9a-f]{6}")


def key_of(state: ProjectState, name: str) -> str:
    """The key of the class that is called `name`, or has it as its key.

    Raises:
        InputError: there is none.
    """
    for key, title in state.class_names.items():
        if letters(title) == letters(name):
            return key
    if name in state.class_names:
        return name
    raise InputError(f"There is no class {name!r}. Classes: {', '.join(state.classes) or 'none yet'}.")


def name_of(state: ProjectState, name: str) -> str:
    """The name, as it is now, of the class that is called `name`, or has it as its key.

    Raises:
        InputError: there is none.
    """
    return state.class_names[key_of(state, name)]


def class_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names to begin with, without blanks around them.

    Raises:
        InputError: an empty name, one that is too long, or one that occurs twice.
    """
    cleaned = tuple(_clean_name(str(name)) for name in names)
    if len(set(map(letters, cleaned))) != len(cleaned):
        raise InputError("Two classes have the same name.")
    return cleaned


def new_name(state: ProjectState, name: str) -> str:
    """A name for a class, without blanks around it.

    Raises:
        InputError: an empty name, one that is too long, or one that exists.
    """
    cleaned = _clean_name(name)
    if letters(cleaned) in map(letters, state.classes):
        raise InputError(f"There is a class {cleaned!r} already.")
    return cleaned


def _clean_name(name: str) -> str:
    cleaned = valid_text(name).strip()
    if not cleaned:
        raise InputError("A class needs a name.")
    if len(cleaned) > LONGEST_NAME:
        raise InputError(
            f"The name of a class has at most {LONGEST_NAME} characters; this has {len(cleaned)}."
        )
    return cleaned


def new_key(state: ProjectState, name: str, also: Iterable[str] = ()) -> str:
    """The name itself, or where an earlier class took that as its key, the name with a number.

    A class that was removed under this very name gives its key back.
    """
    key, number = name.strip(), 2
    keys = {
        *state.class_names,
        *state.merged,
        *(k for k, last in state.removed.items() if last != key),
        *also,
    }
    while key in keys:
        key, number = f"{name.strip()}#{number}", number + 1
    return key


def renamed_meanwhile(state: ProjectState, name: str) -> None:
    """Refuse a name that is only a class's key any more: somebody else has renamed it.

    Raises:
        InputError: so it is; the message has the name it has now.
    """
    if name not in state.classes and name in state.class_names:
        raise InputError(
            f"Class {name!r} is called {state.class_names[name]!r} now: it was renamed meanwhile."
        )


def removable(state: ProjectState, name: str, pool: Pool) -> str:
    """The key of a class that can be taken away.

    Raises:
        InputError: there is none, labels name it, the pool knows items of it, or too few would be left.
    """
    key = key_of(state, name)
    n = sum(state.resolve(vote.key) == key for votes in state.votes.values() for vote in votes.values())
    if n:
        raise InputError(
            f"{n:,} {'label names' if n == 1 else 'labels name'} class {name!r}: merge it instead."
        )
    if pool.truth is not None:
        codes = [code for code, class_name in enumerate(pool.classes) if state.resolve(class_name) == key]
        n = int(np.isin(pool.truth, codes).sum())
        if n:
            raise InputError(f"The pool's own column knows {n:,} of class {name!r}: merge it instead.")
    if len(state.class_names) <= 2:
        raise InputError("Two classes must be left. Add the one you need first.")
    return key


def described(state: ProjectState, key: str, about: Mapping[str, str]) -> dict[str, str]:
    """Description of a class, cleaned.

    Raises:
        InputError: a line that is too long, or a key or colour that is none or another class's.
    """
    description = {name: " ".join(str(value).split()) for name, value in about.items()}
    if len(description.get("guidance", "")) > LONGEST_GUIDANCE:
        raise InputError(f"Guidance is one line of at most {LONGEST_GUIDANCE} characters.")
    if colour := description.get("colour", "").lower():
        if not _COLOUR.fullmatch(colour):
            raise InputError(f"A colour is written like #2a9d5c; got {colour!r}.")
        description["colour"] = colour
    if shortcut := description.get("shortcut", "").lower():
        if not (len(shortcut) == 1 and shortcut.isascii() and shortcut.isalnum()):
            raise InputError(f"The key of a class is one letter or digit; got {shortcut!r}.")
        for other_key, entry in state.class_about.items():
            if other_key != key and other_key in state.class_names and entry.get("shortcut") == shortcut:
                raise InputError(f"Key {shortcut} is that of class {state.class_names[other_key]!r}.")
        description["shortcut"] = shortcut
    return description


def with_key(state: ProjectState, answer: Event, new: bool) -> list[Event]:
    """An answer with the key of the class that it names, after the event that adds this class, if any.

    A new class comes with the label that names it, and goes with its undo.

    Args:
        state: of the project.
        answer: a label, of a class by its name; or another answer.
        new: the class may be one that there is not yet.

    Raises:
        InputError: there is no such class, or a new name that is none.
    """
    if answer.kind != "label":
        return [answer]
    name = str(answer.payload["class"])
    if not new or name in state.classes:
        return [replace(answer, payload={**answer.payload, "class": key_of(state, name)})]
    name, key = new_name(state, name), new_key(state, name)
    label = replace(answer, payload={**answer.payload, "class": key})
    return [Event.class_added(key, name), label] if key in state.removed or key != name else [label]


def class_event(state: ProjectState, given: Operation, pool: Pool) -> Event:
    """Event that an operation on the classes makes.

    Args:
        state: of the project.
        given: of one of `CLASS_CHANGES`.
        pool: of the project.

    Raises:
        InputError: there is no such class, or it cannot be changed so.
    """
    if given.kind == "class-add":
        return Event.class_added(new_key(state, given.label), new_name(state, given.label))
    if given.kind == "class-order":
        return Event.classes_ordered([key_of(state, name) for name in given.value])
    if given.kind == "class-remove":
        return Event.class_removed(removable(state, given.label, pool))
    if given.kind == "class-rename":
        renamed_meanwhile(state, given.label)
    key = key_of(state, given.label)
    if given.kind == "class-rename":
        return Event.class_renamed(key, new_name(state, given.text))
    if given.kind == "class-describe":
        return Event.class_described(key, **described(state, key, given.value))
    into = key_of(state, given.text)
    if key == into:
        raise InputError(f"Class {given.label!r} cannot be merged into itself.")
    return Event.class_merged(key, into)


def code_book(state: ProjectState) -> list[dict[str, Any]]:
    """The classes in the order in which people see them, for whoever reads the labels.

    Returns:
        For each: name, code (as exported), key (the name it began with), guidance, shortcut, colour, how many
        items it has, and what was merged into it.
    """
    position = {key: code for code, key in enumerate(state.keys)}
    by_name = {name: key for key, name in state.class_names.items()}
    rows = []
    for name in state.shown_classes:
        key = by_name[name]
        about = state.class_about.get(key, {})
        merged = [merged_key for merged_key in state.merged if state.resolve(merged_key) == key]
        rows.append(
            {
                "class": name,
                "code": position[key],
                "began_as": key,
                "guidance": about.get("guidance", ""),
                "shortcut": about.get("shortcut", ""),
                "colour": about.get("colour", ""),
                "items": state.counts[name],
                "merged": " | ".join(merged),
            }
        )
    return rows
