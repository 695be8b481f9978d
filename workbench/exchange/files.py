"""Files of exports: JSON, packed files, pictures of items, and the checksums of what was written."""

import base64
import hashlib
import io
import json
import re
import shutil
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from workbench.errors import InputError
from workbench.members import MAX_MEMBER, FolderMembers, Members, member_name
from workbench.pools.images.decoding import opened
from workbench.pools.images.photos import PhotoItems
from workbench.reading import cut, letters, parse_json
from workbench.writing import short_name

CARD = """\
---
configs:
- config_name: default
  data_files:
  - split: train
    path: {path}
---
"""
"""Head of the README.md of a Hugging Face folder."""


def json_text(document: Any) -> str:
    """A JSON document the same way every time: sorted keys, two spaces, a newline at the end."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def packed(out: IO[bytes]) -> zipfile.ZipFile:
    """A zip to write into, an open file."""
    return zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED)


def put(archive: zipfile.ZipFile, path: str, data: bytes | str | IO[bytes], *, squeeze: bool = True) -> None:
    """Write one file into a zip, the same bytes every time.

    Args:
        archive: of `packed`.
        path: of the file in it.
        data: what it holds, an open file from its beginning on.
        squeeze: False for what is squeezed already, such as pictures.
    """
    info = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
    info.external_attr = 0o644 << 16
    info.compress_type = zipfile.ZIP_DEFLATED if squeeze else zipfile.ZIP_STORED
    if isinstance(data, bytes | str):
        archive.writestr(info, data)
        return
    data.seek(0)
    with archive.open(info, "w", force_zip64=True) as member:
        shutil.copyfileobj(data, member, 1 << 20)


def put_parquet(archive: zipfile.ZipFile, parquet: Any) -> str:
    """Write the Parquet file of a Hugging Face folder into a zip.

    `datasets` keeps what it read by the folder's name and this path, whatever the file holds: another export
    in a folder of the same name would be answered with the first one.

    Returns:
        Its path, with a digest of what it holds.
    """
    parquet.seek(0)
    path = f"data/train-00000-of-00001-{hashlib.file_digest(parquet, 'sha256').hexdigest()[:16]}.parquet"
    put(archive, path, parquet, squeeze=False)
    return path


def read_json(path: Path) -> Any:
    """A JSON file.

    Raises:
        InputError: not there, no plain file, or not JSON.
    """
    return parse_json(FolderMembers(path.parent).read(path.name), str(path))


ADVICE = "Copy the folder again from where it was made, or delete it and run the command that made it again."
MAX_DOCUMENT = 64 << 20
"""Most bytes of a JSON document."""
_FILES, _OWN = "files", "sha256"
_BLOCK = 1 << 20


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


SHOWN_BY = {
    "image": '<Image name="item" value="$image" zoom="true"/>',
    "text": '<Text name="item" value="$text"/>',
    "table": '<Table name="item" value="$row"/>',
}
"""Kind of a pool -> what shows an item of it in Label Studio."""


def picture_of(pool: Any, item: int) -> tuple[bytes, str]:
    """The file of an image and its ending: as the source has it, else a PNG of what is shown."""
    from PIL import Image

    if isinstance(pool.items, PhotoItems):
        photos = pool.items.photos
        data = photos.folder.read(photos.paths[item])
        with opened(data, str(pool.items.ids[item])) as picture:
            # a phone's JPEG with a second picture inside is MPO
            endings = {"JPEG": "jpg", "MPO": "jpg", "TIFF": "tif"}
            ending = endings.get(str(picture.format), str(picture.format).lower())
        return data, f".{ending}"
    stream = io.BytesIO()
    Image.fromarray(np.asarray(pool.items.show(item).image)).save(stream, "PNG")
    return stream.getvalue(), ".png"


def data_url(data: bytes, ending: str) -> str:
    """A picture's file as an address that holds it."""
    mime = {".jpg": "jpeg", ".tif": "tiff"}.get(ending, ending.removeprefix("."))
    return f"data:image/{mime};base64,{base64.b64encode(data).decode()}"


class FileNames:
    """Names for the files of items: the last part of an item's id, each once.

    Args:
        pool: of the items.
    """

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._taken: set[str] = set()

    def of(self, item: int, ending: str) -> str:
        """A name that no other item has; asked for once an item."""
        stem = PurePosixPath(str(self._pool.items.ids[item]).replace("\\", "/")).name
        stem = plain_name(re.sub(r"\.(png|jpe?g|bmp|gif|webp|tiff?|p[gp]m)$", "", stem, flags=re.I))
        return not_taken(stem, ending, item, self._taken)


def not_taken(stem: str, ending: str, number: int, taken: set[str]) -> str:
    """A name that differs from the others also where capitals do not count; it is taken then."""
    name = f"{stem}{ending}"
    while letters(name).casefold() in taken:
        name, number = f"{stem}-{number}{ending}", number + 1
    taken.add(letters(name).casefold())
    return name


def plain_name(text: str, most: int = 80) -> str:
    """A name that every file system takes, of at most so many bytes."""
    plain = short_name(re.sub(r"[^\w.-]+", "-", text).strip(".-"), most).rstrip(".-")
    # names of devices on Windows, whatever their ending
    device = re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", plain, flags=re.I)
    return f"{plain}-" if device else plain or "item"


def octets_of(pool: Any, item: int) -> int:
    """Bytes of an image's file, without reading it; at most so many where it is made of numbers."""
    if isinstance(pool.items, PhotoItems):
        return pool.items.photos.folder.size(pool.items.photos.paths[item])
    image = pool.items.show(item).image
    assert image is not None
    return image.size
