"""Files that people bring: checked, kept where the project finds them again, never trusted."""

from hashlib import sha256
from pathlib import Path

import streamlit as st

from workbench.app.access import auditing, login
from workbench.errors import InputError
from workbench.pools.formats import endings_of
from workbench.pools.formats.files import File
from workbench.store import Store
from workbench.store.pool_files import keep_upload


def most_bytes() -> int:
    """Largest upload: what the server was started with (`--max-upload-mb`)."""
    return int(st.get_option("server.maxUploadSize")) << 20


def check(name: str, data: bytes) -> None:
    """Checks that the browser makes too, and cannot be trusted to.

    Args:
        name: as the browser gave it.
        data: the file.

    Raises:
        InputError: too big, empty, or of a kind no pool is made of.
    """
    if not File(data, name).plain_name.endswith(endings_of()):
        kinds = ", ".join(ending.removeprefix(".") for ending in endings_of())
        raise InputError(f"{name!r} is not one of the kinds that can be read: {kinds}.")
    limit = most_bytes()
    if len(data) > limit:
        raise InputError(
            f"{name!r} has {len(data) / 2**20:.0f} MB; at most {limit >> 20} MB can be uploaded."
        )
    if not data:
        raise InputError(f"{name!r} is empty.")


def keep(name: str, data: bytes) -> Path:
    """Store an upload under the home folder, by its content; with a log-in it is recorded and has a limit.

    Args:
        name: as the browser gave it; only letters, digits, dots, dashes and underscores of it are kept.
        data: the file.

    Returns:
        Its path; the same bytes under the same name give the same path.

    Raises:
        InputError: it cannot be used, or is more than whoever sits here may have.
    """
    check(name, data)
    person = login.of_page()
    if person is None:
        return keep_upload(name, data)
    entries = Store.open().audit.entries(person=person.key, what="uploaded")
    # what is gone does not count
    sizes = {Path(entry.detail): entry.octets or 0 for entry in entries if Path(entry.detail).is_file()}
    digest = sha256(data).hexdigest()
    if any(digest.startswith(file.parent.name) for file in sizes):
        return keep_upload(name, data)
    see_room(sum(sizes.values()), len(data))
    place = keep_upload(name, data)
    auditing.record("uploaded", detail=str(place), octets=len(data), by=person)
    return place


def see_room(usage: int, octets: int) -> None:
    """See that one person may upload so many more bytes.

    Args:
        usage: bytes that they have uploaded.
        octets: bytes of another file.

    Raises:
        InputError: together they are more than the file of the log-in says.
    """
    quota = login.limit("uploads_mb")
    if quota is not None and usage + octets > quota << 20:
        mb, total = usage / 2**20, (usage + octets) / 2**20
        raise InputError(
            f"You have uploaded {mb:.1f} MB, and with this file it would be {total:.1f}: one person may have "
            f"{quota} MB on this server. Ask whoever runs it ([workbench] uploads_mb)."
        )
