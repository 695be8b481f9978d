"""Keys of the desk and the gallery: those of the commands, and those of the classes around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from workbench.sessions import Session

COMMANDS = {
    "skip": "s",
    "unsure": "u",
    "undo": "z",
    "redo": "y",
    "flag": "f",
    "note": "n",
    "grid": "g",
    "accept": "Enter",
    "back": "ArrowLeft",
    "forward": "ArrowRight",
    "zoom": " ",
    "find": "/",
    "like": "m",
    "twins": "=",
    "instructions": "h",
    "name": "+",
    "questions": "q",
    "help": "?",
}
# what the gallery does beside: they make room for the classes
REVIEW = {"clear": ("Backspace",), "choose": ("x", "Shift+x"), "keep": ("k", "Shift+k")}
_DIGITS = "1234567890"
_LETTERS = "abcdefghijklmnopqrtvwx"
MAX_BUTTONS = len(_DIGITS) + len(_LETTERS)


class Keys(NamedTuple):
    """Keys of the classes and of the commands.

    Attributes:
        classes: one key a class, in their order, "" where none is left; empty when there are too many
            classes for buttons and a searchable list is the better way.
        commands: name of the command -> key; those of `REVIEW` are the gallery's alone.
    """

    classes: tuple[str, ...]
    commands: dict[str, str]


def keys_for(
    classes: Sequence[str],
    shortcuts: Mapping[str, str] | None = None,
) -> Keys:
    """Choose keys.

    A class whose name is one letter or digit has that key. Otherwise the first ten have 1 to 9 and
    0, the rest letters. A command whose letter is taken moves to Shift and that letter; where classes are
    searched by typing, to Alt.

    Args:
        classes: names, in order.
        shortcuts: name of a class -> the key the project gives it; others make room.

    Returns:
        The keys.
    """
    if len(classes) > MAX_BUTTONS:
        alt_keys = {
            n: f"Alt+{key}" if key.isalpha() and len(key) == 1 else key for n, key in COMMANDS.items()
        }
        return Keys((), alt_keys | _of_review(alt_keys, (), {"choose": ("Alt+x",), "keep": ("Alt+k",)}))
    class_shortcuts = {name: key for name, key in (shortcuts or {}).items() if name in classes}
    own_keys = [name.lower() if _is_key(name) else "" for name in classes]
    single = all(len(name) == 1 for name in classes) and len(set(own_keys) - {""}) == sum(
        k != "" for k in own_keys
    )
    if single and any(own_keys):
        free = [k for k in _DIGITS + _LETTERS if k not in own_keys]
        keys = [k or (free.pop(0) if free else "") for k in own_keys]
    else:
        keys = list((_DIGITS + _LETTERS)[: len(classes)])
    if class_shortcuts:
        shortcut_keys = set(class_shortcuts.values())
        spare = [k for k in _DIGITS + _LETTERS if k not in shortcut_keys and k not in keys]
        other_keys = [
            key if key not in shortcut_keys else spare.pop(0) if spare else ""
            for key in (keys[i] for i, name in enumerate(classes) if name not in class_shortcuts)
        ]
        keys = [class_shortcuts.get(name) or other_keys.pop(0) for name in classes]
    class_keys = set(keys)
    commands = {name: key if key not in class_keys else f"Shift+{key}" for name, key in COMMANDS.items()}
    return Keys(tuple(keys), commands | _of_review(commands, keys))


def class_keys(session: Session) -> tuple[list[dict[str, str]], dict[str, str]]:
    """The classes with their keys, and the commands' keys, as the component takes them."""
    state = session.state
    about = {
        state.class_names[key]: details
        for key, details in state.class_about.items()
        if key in state.class_names
    }
    names = state.shown_classes
    shortcuts = {name: details["shortcut"] for name, details in about.items() if "shortcut" in details}
    keys = keys_for(names, shortcuts)
    letters = keys.classes or ("",) * len(names)
    classes = [
        {
            "name": name,
            "key": key,
            "help": about.get(name, {}).get("guidance", ""),
            "colour": about.get(name, {}).get("colour", ""),
        }
        for name, key in zip(names, letters, strict=True)
    ]
    return classes, dict(keys.commands)


def _of_review(
    commands: Mapping[str, str],
    classes: Sequence[str],
    other_commands: Mapping[str, tuple[str, ...]] | None = None,
) -> dict[str, str]:
    """The gallery's own commands: each has the first of its keys that nothing else has, "" with none left."""
    used_keys = {*commands.values(), *classes}
    return {
        name: next((key for key in keys if key not in used_keys), "")
        for name, keys in {**REVIEW, **(other_commands or {})}.items()
    }


def _is_key(name: str) -> bool:
    return len(name) == 1 and name.isascii() and name.isalnum()
