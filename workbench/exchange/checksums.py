"""Checksums of a folder's files, kept in the document that is written last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from workbench.errors import InputError
from workbench.exchange.files import json_text
from workbench.reading import cut

_FILES, _OWN = "files", "sha256"


def sealed(document: Mapping[str, Any], folder: Path, names: Iterable[str]) -> dict[str, Any]:
    """A document that says what the files beside it, and itself, should be.

    Args:
        document: JSON.
        folder: of the files.
        names: of the files, relative to the folder; they are there already.

    Returns:
        The document with "files" (name -> SHA-256) and "sha256" (of all the rest of it).
    """
    whole = dict(document) | {_FILES: {name: _digest((folder / name).read_bytes()) for name in sorted(names)}}
    return whole | {_OWN: _digest(json_text(whole).encode())}


def check_own(document: Mapping[str, Any], path: Path) -> None:
    """Refuse a document that is not what was written; one without a checksum (version 0.1.0) passes.

    Args:
        document: as read from `path`.
        path: for the message.

    Raises:
        InputError: it was changed.
    """
    if _OWN not in document:
        return
    content = {name: value for name, value in document.items() if name != _OWN}
    if document[_OWN] != _digest(json_text(content).encode()):
        raise InputError(f"{path} is damaged: it is not what was written. {ADVICE}")


def damaged(document: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
    """Names of files that are missing or not what was written.

    Args:
        document: what `sealed` gave; one without checksums names nothing.
        folder: of the files.

    Raises:
        InputError: the checksums themselves make no sense.
    """
    found: list[str] = []
    listed = document.get(_FILES, {})
    if not isinstance(listed, dict):
        raise InputError(f"The checksums in {folder} are damaged. {ADVICE}")
    for name, digest in sorted(listed.items()):
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise InputError(f"The checksums in {folder} name a file outside of it, {cut(name)}. {ADVICE}")
        try:
            whole = path.is_file() and _digest(path.read_bytes()) == digest
        except OSError:
            whole = False
        if not whole:
            found.append(name)
    return tuple(found)


ADVICE = "Copy the folder again from where it was made, or delete it and run the command that made it again."


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
