"""The files that people uploaded, inside a copy of a database."""

import json
import re
import shutil
import sqlite3
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from workbench.errors import InputError
from workbench.reading import with_texts
from workbench.writing import private_folder, short_name, whole_file, workbench_home, write_whole

FOLDER = "uploads"
PIECE = 2**26
"""Bytes of a file in one row of a copy; SQLite takes no row above a gigabyte."""
_LONGEST = 100  # bytes
_UPLOAD = re.compile(
    r"(?P<before>(?:embeddings:)?)"
    rf"(?P<path>.*[/\\]{FOLDER}[/\\](?P<hash>[0-9a-f]{{16}})[/\\](?P<name>[^/\\#]+))(?P<after>#.*)?",
    re.DOTALL,
)
_HASH = re.compile(r"[0-9a-f]{16}")
# JSON of these columns may name the files; what a run was is part of its record and stays.
_NAMED_IN = (("projects", "pool"), ("studies", "spec"))


def keep_upload(name: str, data: bytes) -> Path:
    """Store a file that somebody brought under the home folder, by its content; only its owner may read it.

    Args:
        name: as it was called; only letters, digits, dots, dashes and underscores of it are kept.
        data: the file.

    Returns:
        Its path; the same bytes under the same name give the same path.
    """
    plain = re.sub(r"[^\w.-]+", "-", Path(name.replace("\\", "/")).name).strip(".-") or "upload"
    if len(plain.encode()) > _LONGEST:
        stem, _, ending = plain.rpartition(".")
        ending = f".{ending}" if len(ending.encode()) < 20 else ""
        plain = short_name(stem, _LONGEST - len(ending.encode())) + ending
    folder = workbench_home() / FOLDER / sha256(data).hexdigest()[:16]
    for directory in (workbench_home(), folder.parent, folder):
        private_folder(directory)
    path = folder / plain
    if not path.is_file() or path.stat().st_size != len(data):
        write_whole(path, data, private=True)
    return path


def found_here(document: Any) -> Any:
    """A stored document whose texts name uploads of another home, naming those of this one.

    A home that was copied or moved holds the same files under another path.

    Args:
        document: such as a project's pool; what it names is looked for only where it is not there.
    """
    return with_texts(document, _found_here)


def _found_here(text: str) -> str:
    parts = _UPLOAD.fullmatch(text) if FOLDER in text else None
    if parts is None or Path(parts["path"]).exists():
        return text
    path = workbench_home() / FOLDER / parts["hash"] / parts["name"]
    return f"{parts['before']}{path}{parts['after'] or ''}" if path.is_file() else text


def put_in(copy: sqlite3.Connection) -> int:
    """Add every upload of this home to a copy that lies in a file; returns how many.

    Args:
        copy: of a database, whose rows were written before: what they name is there.
    """
    home = workbench_home() / FOLDER
    copy.execute("CREATE TABLE pool_files (folder TEXT, name TEXT, data BLOB)")
    copy.execute("CREATE TABLE pool_files_home (path TEXT)")
    copy.executemany("INSERT INTO pool_files_home VALUES (?)", [(path,) for path in _spellings(home)])
    count = 0
    for path in sorted(home.glob("*/*")):
        # half of a file that is being uploaded has another name and other contents
        if not (_HASH.fullmatch(path.parent.name) and path.is_file() and _is_whole(path.parent.name, path)):
            continue
        with path.open("rb") as file:
            for piece in iter(partial(file.read, PIECE), b""):
                copy.execute("INSERT INTO pool_files VALUES (?, ?, ?)", (path.parent.name, path.name, piece))
        count += 1
    copy.commit()
    return count


def take_out(copy: sqlite3.Connection) -> None:
    """Put the files of a copy into this home, and have its projects find them there.

    The copy is left as one without files.

    Raises:
        InputError: a file that is damaged, or whose name is none; nothing was written then.
    """
    tables = {row[0] for row in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "pool_files" not in tables:
        return
    files = copy.execute("SELECT DISTINCT folder, name FROM pool_files").fetchall()
    with TemporaryDirectory() as spare:
        written = []
        for number, (folder, name) in enumerate(files):
            plain = isinstance(name, str) and name == Path(name).name and name not in ("", ".", "..")
            path = Path(spare) / str(number)
            if plain and "\\" not in name and _HASH.fullmatch(str(folder)):
                written.append((path, folder, name))
                _write_pieces(copy, folder, name, path)
            if not path.is_file() or not _is_whole(folder, path):
                raise InputError("The copy is damaged: a pool's file in it is not what was put there.")
        home = workbench_home() / FOLDER
        for directory in (workbench_home(), home, *(home / folder for folder, _ in files)):
            private_folder(directory)
        for path, folder, name in written:
            place = home / folder / name
            if not place.is_file():
                with path.open("rb") as source, whole_file(place, private=True) as target:
                    shutil.copyfileobj(source, target)
    old = [str(path) for (path,) in copy.execute("SELECT path FROM pool_files_home")]
    for table, column in _NAMED_IN:
        for row, text in copy.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
            document = json.dumps(with_texts(json.loads(text), partial(_moved, old=old, new=str(home))))
            copy.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (document, row))
    copy.execute("DROP TABLE pool_files")
    copy.execute("DROP TABLE pool_files_home")
    copy.commit()
    copy.execute("VACUUM")


def _write_pieces(copy: sqlite3.Connection, folder: str, name: str, path: Path) -> None:
    pieces = copy.execute(
        "SELECT data FROM pool_files WHERE folder = ? AND name = ? AND typeof(data) = 'blob' ORDER BY rowid",
        (folder, name),
    )
    with path.open("wb") as file:
        for (piece,) in pieces:
            file.write(piece)


def _is_whole(folder: str, path: Path) -> bool:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:16] == folder


def _spellings(path: Path) -> list[str]:
    return list(dict.fromkeys((str(path), str(path.resolve()))))


def _moved(text: str, old: list[str], new: str) -> str:
    """A text that names a file of another home, naming that of this one."""
    for folder in old:
        at = text.find(folder)
        rest = text[at + len(folder) :].replace("\\", "/")
        if at >= 0 and rest.startswith("/"):
            return text[:at] + new + rest
    return text
