"""Manifests: JSON documents, the same way every time, that say what the files beside them should be."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from workbench.errors import InputError
from workbench.members import MAX_MEMBER, FolderMembers, Members, member_name
from workbench.reading import cut, parse_json
from workbench.writing import write_whole

ADVICE = "Copy the folder again from where it was made, or delete it and run the command that made it again."
MAX_DOCUMENT = 64 << 20
"""Most bytes of a JSON document."""
_FILES, _OWN = "files", "sha256"
_BLOCK = 1 << 20


def json_text(document: Any) -> str:
    """A JSON document the same way every time: sorted keys, two spaces, a newline at the end."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def read_json(path: Path) -> Any:
    """A JSON file.

    Raises:
        InputError: not there, no plain file, or not JSON.
    """
    return parse_json(FolderMembers(path.parent).read(path.name), str(path))


def write_files(place: Path, files: Mapping[str, bytes | str]) -> list[str]:
    """Write files that a manifest is to list, each whole or not there.

    Args:
        place: their folder.
        files: name -> content; folders in the names are made.

    Returns:
        Their names.
    """
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(place / name, content)
    return list(files)


def sealed(document: Mapping[str, Any], folder: Path, names: Iterable[str]) -> dict[str, Any]:
    """A document that says what the files beside it, and itself, should be.

    Args:
        document: JSON.
        folder: of the files.
        names: of the files, relative to the folder; they are there already.

    Returns:
        The document with "files" (name -> SHA-256) and "sha256" (of all the rest of it).
    """
    members = FolderMembers(folder)
    body = dict(document) | {_FILES: {name: _digest_of(members, name) for name in sorted(names)}}
    return body | {_OWN: _own(body)}


@dataclass(frozen=True)
class Sealed:
    """A document with the files that it lists.

    Attributes:
        document: JSON, as it was written.
        members: of the folder or the zip that holds it.
        what: the whole, for messages ("The bundle in runs/a").
    """

    document: Mapping[str, Any]
    members: Members
    what: str

    def __contains__(self, name: object) -> bool:
        """True if the document lists a file."""
        return name in self.document[_FILES]

    def read(self, name: str, most: int = MAX_MEMBER) -> bytes:
        """A file as it was written.

        Args:
            name: of it.
            most: bytes.

        Raises:
            InputError: the document does not list it, or it is missing, damaged or larger than allowed.
        """
        if name not in self:
            raise InputError(f"{self.what} is damaged: it does not list {cut(name)}. {ADVICE}")
        if name not in self.members:
            raise self._broken([name])
        data = self.members.read(name, most)
        if sha256(data).hexdigest() != self.document[_FILES][name]:
            raise self._broken([name])
        return data

    def json(self, name: str) -> Any:
        """A JSON file as it was written.

        Raises:
            InputError: as `read`, or no JSON.
        """
        return parse_json(self.read(name, MAX_DOCUMENT), f"{self.what}: {name}", advice=ADVICE, finite=True)

    def damaged(self) -> tuple[str, ...]:
        """Names of the files that are missing or not what was written."""
        return tuple(name for name in sorted(self.document[_FILES]) if not self._is_whole(name))

    def check(self) -> None:
        """Refuse what is not whole.

        Raises:
            InputError: names what is missing or not what was written.
        """
        if broken := self.damaged():
            raise self._broken(broken)

    def _is_whole(self, name: str) -> bool:
        try:
            return _digest_of(self.members, name) == self.document[_FILES][name]
        except InputError:
            return False

    def _broken(self, names: Iterable[str]) -> InputError:
        listing = ", ".join(cut(name)[1:-1] for name in list(names)[:4])
        return InputError(f"{self.what} is damaged: {listing} is not what was written. {ADVICE}")


def read_sealed(members: Members, head: str, what: str, format: int) -> Sealed:
    """The document that `sealed` made, whole and of a format that is read.

    Args:
        members: of the folder or the zip.
        head: its name in it.
        what: the whole, for messages ("The bundle in runs/a").
        format: that it must have.

    Returns:
        It, with the files that it lists.

    Raises:
        InputError: no such document, one without checksums, changed, or of another format.
    """
    document = parse_json(members.read(head, MAX_DOCUMENT), f"{what}: {head}", advice=ADVICE, finite=True)
    if not isinstance(document, dict):
        raise InputError(f"{what} is damaged: {head} is no document of ours. {ADVICE}")
    if document.get("format") != format or isinstance(document["format"], bool):
        raise InputError(
            f"{what} is of another version of Workbench: it has format {cut(document.get('format'))}, this "
            f"version reads format {format}. It is left as it is; open it with the version that wrote it."
        )
    content = {name: value for name, value in document.items() if name != _OWN}
    digests = document.get(_FILES)
    if not isinstance(digests, dict) or not isinstance(document.get(_OWN), str):
        raise InputError(f"{what} has no checksums, so nobody can tell whether it is whole. {ADVICE}")
    try:
        same = document[_OWN] == _own(content)
    except (ValueError, RecursionError):  # NaN, or half of a character
        same = False
    if not same:
        raise InputError(f"{what} is damaged: {head} is not what was written. {ADVICE}")
    for name, digest in digests.items():
        member_name(name, what)
        if not isinstance(digest, str):
            raise InputError(f"{what} is damaged: the checksum of {cut(name)} is none. {ADVICE}")
    return Sealed(document, members, what)


def _own(document: Mapping[str, Any]) -> str:
    return sha256(json_text(document).encode()).hexdigest()


def _digest_of(members: Members, name: str) -> str:
    hasher = sha256()
    with members.opened(name) as file:
        while block := file.read(_BLOCK):
            hasher.update(block)
    return hasher.hexdigest()
