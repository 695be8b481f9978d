"""What a person has set for themselves: their keys. Kept in the home folder, whatever browser they use."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path

from workbench.app.desk.keys import COMMANDS
from workbench.errors import InputError
from workbench.store.places import private_folder, workbench_home
from workbench.writing import write_whole

_FILE = "keys.json"
_LOCK = threading.Lock()
_NAMED = (
    "Enter",
    " ",
    "ArrowLeft",
    "ArrowRight",
    "ArrowUp",
    "ArrowDown",
    "Backspace",
    "Delete",
    "Home",
    "End",
)


def own_keys(person: str) -> dict[str, str]:
    """The commands that a person has given other keys: name -> key."""
    found = _read().get(person, {})
    return {name: key for name, key in found.items() if name in COMMANDS and _is_key(key)}


def keep_keys(person: str, keys: Mapping[str, object]) -> dict[str, str]:
    """Keep a person's keys; those that are as they come are not kept.

    Args:
        person: whose.
        keys: name of the command -> key.

    Returns:
        All their own keys.

    Raises:
        InputError: a command or key that is none, or one key for two commands.
    """
    chosen = dict(COMMANDS)
    for name, key in keys.items():
        if name not in COMMANDS:
            raise InputError(f"There is no command {name!r}.")
        if not isinstance(key, str) or not _is_key(key):
            raise InputError(
                "A key is one letter or sign, an arrow, Enter, Space or Backspace; digits are for classes."
            )
        chosen[name] = key
    if len(set(chosen.values())) < len(chosen):
        twice = next(k for k in chosen.values() if list(chosen.values()).count(k) > 1)
        names = [name for name, key in chosen.items() if key == twice]
        raise InputError(f"Key {twice} would be that of {' and '.join(names)}.")
    mine = {name: key for name, key in chosen.items() if key != COMMANDS[name]}
    with _LOCK:
        everybody = _read()
        everybody[person] = mine
        if not mine:
            del everybody[person]
        private_folder(workbench_home())
        write_whole(workbench_home() / _FILE, json.dumps(everybody, ensure_ascii=False), private=True)
    return mine


def _is_key(key: object) -> bool:
    return isinstance(key, str) and (
        key in _NAMED or (len(key) == 1 and key.isprintable() and key == key.lower() and not key.isdigit())
    )


def _read() -> dict[str, dict[str, str]]:
    """Everybody's; a file that was damaged counts as none."""
    place: Path = workbench_home() / _FILE
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(who): dict(keys) for who, keys in found.items() if isinstance(keys, dict)}
