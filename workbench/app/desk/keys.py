"""Keys of the classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
REVIEW = {"clear": ("Backspace",), "choose": ("x", "Shift+x")}
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
        moved = {n: f"Alt+{key}" if key.isalpha() and len(key) == 1 else key for n, key in COMMANDS.items()}
        return Keys((), moved | _of_review(moved, (), {"choose": ("Alt+x",)}))
    wanted = {name: key for name, key in (shortcuts or {}).items() if name in classes}
    own = [name.lower() if _is_key(name) else "" for name in classes]
    single = all(len(name) == 1 for name in classes) and len(set(own) - {""}) == sum(k != "" for k in own)
    if single and any(own):
        free = [k for k in _DIGITS + _LETTERS if k not in own]
        chosen = [k or (free.pop(0) if free else "") for k in own]
    else:
        chosen = list((_DIGITS + _LETTERS)[: len(classes)])
    if wanted:
        held = set(wanted.values())
        spare = [k for k in _DIGITS + _LETTERS if k not in held and k not in chosen]
        others = [
            key if key not in held else spare.pop(0) if spare else ""
            for key in (chosen[i] for i, name in enumerate(classes) if name not in wanted)
        ]
        chosen = [wanted.get(name) or others.pop(0) for name in classes]
    taken = set(chosen)
    commands = {name: key if key not in taken else f"Shift+{key}" for name, key in COMMANDS.items()}
    return Keys(tuple(chosen), commands | _of_review(commands, chosen))


def _of_review(
    commands: Mapping[str, str], classes: Sequence[str], others: Mapping[str, tuple[str, ...]] | None = None
) -> dict[str, str]:
    """The gallery's own commands: each has the first of its keys that nothing else has, "" with none left."""
    held = {*commands.values(), *classes}
    return {
        name: next((key for key in keys if key not in held), "")
        for name, keys in {**REVIEW, **(others or {})}.items()
    }


def _is_key(name: str) -> bool:
    return len(name) == 1 and name.isascii() and name.isalnum()
