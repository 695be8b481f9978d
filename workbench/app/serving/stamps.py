"""Stamp of what is read from a path, of names, sizes and times: another stamp means that it is read anew."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any


def stamp(path: str, options: Mapping[str, Any] | None = None) -> str:
    """Of a file, or of a folder with all files below it, and of the files that options of reading name.

    Args:
        path: what `load_pool` takes; a name of a pool has no file, and one stamp.
        options: of `load_pool`; a folder of pictures and a file of vectors count as well.
    """
    digest = sha256()
    for place in (path, *_named(options or {})):
        digest.update(repr(_files(place)).encode("utf-8", "replace"))
    return digest.hexdigest()[:16]


def _named(options: Mapping[str, Any]) -> list[str]:
    """Texts of the options that may be paths, after what stands before a colon too."""
    texts = [value for value in options.values() if isinstance(value, str)]
    return [part for text in texts for part in {text, text.partition(":")[2]} if Path(part).is_absolute()]


def _files(place: str) -> list[tuple[str, int, int]]:
    """(Path, size, time) of every file, in one order; nothing where nothing can be read."""
    try:
        if not Path(place).is_dir():
            return [_facts(Path(place), "")]
    except (OSError, ValueError):
        return []
    facts = []
    for folder, _, names in os.walk(place):
        for name in names:
            with suppress(OSError):
                facts.append(_facts(Path(folder, name), os.path.relpath(folder, place) + "/" + name))
    return sorted(facts)


def _facts(path: Path, name: str) -> tuple[str, int, int]:
    facts = path.stat()
    return name, facts.st_size, facts.st_mtime_ns
