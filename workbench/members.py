"""The files that a document names: members of one folder or one archive, and nothing else on the machine.

A name that stands in a file somebody sent is never a path. It names a member of the folder or the zip that
holds the document, by one function (`member_name`), and a member is read by one class (`Members`): its size
is known before its bytes are, and a link, a device or a pipe is none.
"""

from __future__ import annotations

import os
import stat
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import IO

from workbench.errors import InputError
from workbench.reading import cut, reading

MAX_MEMBER = 2 << 30
"""Most bytes of one member, unless its reader allows fewer."""
_LONGEST = 1_000
# a pipe is not waited for, a link is not followed
_READ = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


def member_name(name: object, label: str) -> str:
    """A name in a document as the path of a member: below the folder or the archive that holds the document.

    Args:
        name: what the document says.
        label: of the document, for the message.

    Returns:
        The same name.

    Raises:
        InputError: no text, an absolute path, one with "..", or characters that no name has.
    """
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST:
        raise InputError(f"{label} names {cut(name)} as a file, which is no name.")
    foreign = os.name == "nt" and ("\\" in name or ":" in name)
    odd = "\0" in name or any(0xD800 <= ord(sign) <= 0xDFFF for sign in name)
    if foreign or odd or any(part in ("", ".", "..") for part in name.split("/")):
        raise InputError(f"{label} names a file outside of it, {cut(name)}.")
    return name


class Members(ABC):
    """The files of a folder or an archive, by their paths in it, with slashes.

    Attributes:
        label: what messages call it.
    """

    label: str

    @property
    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """Bytes of all members, by path, in order."""

    @abstractmethod
    def size(self, name: str) -> int:
        """Bytes of a member.

        Raises:
            InputError: there is none of this name, or it is no plain file.
        """

    @abstractmethod
    def stream(self, name: str) -> IO[bytes]:
        """A member, open for reading.

        Raises:
            InputError: as `size`.
        """

    def __contains__(self, name: object) -> bool:
        """True if a name is one of a plain file here."""
        try:
            self.size(str(name))
        except InputError:
            return False
        return True

    def read(self, name: str, most: int = MAX_MEMBER) -> bytes:
        """A member whole.

        Args:
            name: of it.
            most: bytes.

        Raises:
            InputError: none of this name, no plain file, larger than allowed, or it cannot be read.
        """
        with self.opened(name, most) as file:
            size = self.size(name)
            data = file.read(size + 1)
            if len(data) > size:
                raise InputError(f"{self.label}: {cut(name)} holds more than it says it does.")
            return data

    def text(self, name: str, most: int = MAX_MEMBER) -> str:
        """A member as text; the arguments are those of `read`.

        Raises:
            InputError: as `read`, or it is no UTF-8.
        """
        with reading(f"{self.label}: {cut(name)}", "text in UTF-8"):
            return self.read(name, most).decode("utf-8")

    @contextmanager
    def opened(self, name: str, most: int = MAX_MEMBER) -> Iterator[IO[bytes]]:
        """A member to read piece by piece, its size checked; what goes wrong meanwhile is one sentence."""
        size = self.size(name)
        if size > most:
            raise InputError(
                f"{self.label}: {cut(name)} has {size:,} bytes; the limit is {most:,}. Leave it out, or make "
                "it smaller."
            )
        with reading(f"{self.label}: {cut(name)} is damaged or locked; it"), self.stream(name) as file:
            yield file

    def below(self, folder: str) -> Members:
        """The members of a folder among these; "" is this."""
        return _Below(self, folder.rstrip("/") + "/") if folder else self

    def _none(self, name: object) -> InputError:
        return InputError(f"{self.label} has no file {cut(name)}.")


class FolderMembers(Members):
    """The files below a folder.

    Args:
        root: the folder; it may be a link itself.
        label: what messages call it; the folder's name unless given.
    """

    def __init__(self, root: Path | str, label: str = "") -> None:
        self.root = Path(root)
        self.label = label or self.root.name or str(self.root)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of all files below, links and what is no file left out; looked up once."""
        sizes: dict[str, int] = {}

        def refused(error: OSError) -> None:
            raise error

        with reading(self.label):
            for folder, _, names in os.walk(self.root, onerror=refused):
                for name in names:
                    path = os.path.join(folder, name)  # noqa: PTH118 - a folder may hold 200,000 files
                    about = os.lstat(path)
                    if stat.S_ISREG(about.st_mode):
                        sizes[Path(path).relative_to(self.root).as_posix()] = about.st_size
        return dict(sorted(sizes.items()))

    def size(self, name: str) -> int:
        """Bytes of a file; every folder on the way is one, and no link."""
        path, about = self.root, None
        with reading(f"{self.label}: {cut(name)}"):
            for part in member_name(name, self.label).split("/"):
                path = path / part
                try:
                    about = path.lstat()
                except (FileNotFoundError, NotADirectoryError):
                    raise self._none(name) from None
                if stat.S_ISLNK(about.st_mode):
                    raise InputError(
                        f"{self.label}: {cut(name)} is a link, which is not followed. Put the file itself "
                        "there."
                    )
        assert about is not None
        if not stat.S_ISREG(about.st_mode):
            raise InputError(f"{self.label}: {cut(name)} is no file.")
        return about.st_size

    def stream(self, name: str) -> IO[bytes]:
        """A file, open for reading."""
        self.size(name)
        with reading(f"{self.label}: {cut(name)}"):
            file = os.fdopen(os.open(self.root / name, _READ), "rb")
            # between the look and the opening it may have become something else
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                file.close()
                raise InputError(f"{self.label}: {cut(name)} is no file.")
        return file


def _name_of(info: zipfile.ZipInfo) -> str:
    """A member's name as it was meant: macOS does not say that it is UTF-8, Windows may write backslashes."""
    name = info.filename
    if not info.flag_bits & 0x800:
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return name.replace("\\", "/")


class ZipMembers(Members):
    """The files in a zip.

    Args:
        packed: the open archive.
        label: what messages call it.
    """

    def __init__(self, packed: zipfile.ZipFile, label: str) -> None:
        self.packed, self.label = packed, label
        infos = {_name_of(info): info for info in packed.infolist()}
        self._infos = {name: info for name, info in infos.items() if not name.endswith("/")}

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of all files once unpacked, as the archive's directory says; links are left out."""
        return {name: info.file_size for name, info in sorted(self._infos.items()) if _is_plain(info)}

    def size(self, name: str) -> int:
        """Bytes of a file once unpacked; no more of it is read."""
        info = self._infos.get(member_name(name, self.label))
        if info is None:
            raise self._none(name)
        if not _is_plain(info):
            raise InputError(f"{self.label}: {cut(name)} is a link or a device, and no file.")
        return info.file_size

    def stream(self, name: str) -> IO[bytes]:
        """A file, open for reading."""
        self.size(name)
        return self.packed.open(self._infos[name])


class _Below(Members):
    """Those of other members that lie in one folder."""

    def __init__(self, whole: Members, prefix: str) -> None:
        self._whole, self._prefix, self.label = whole, prefix, whole.label

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        n = len(self._prefix)
        return {k[n:]: size for k, size in self._whole.sizes.items() if k.startswith(self._prefix)}

    def size(self, name: str) -> int:
        return self._whole.size(self._prefix + member_name(name, self.label))

    def stream(self, name: str) -> IO[bytes]:
        return self._whole.stream(self._prefix + member_name(name, self.label))


def _is_plain(info: zipfile.ZipInfo) -> bool:
    """True if an archive's entry is a file; an entry without a type is one."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    return kind in (0, stat.S_IFREG)
