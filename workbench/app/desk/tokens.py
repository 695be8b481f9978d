"""Signed tokens of the desk: whose answers these are, in which project, and until when."""

import hashlib
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from itsdangerous import BadData, URLSafeSerializer

from workbench.errors import InputError
from workbench.writing import private_folder, workbench_home, write_whole

HOURS = 12
_FILE = "desk.key"
_BYTES = 32
_HOW: dict[str, Any] = {"digest_method": hashlib.sha256, "key_derivation": "hmac"}
_USES = ("desk", "pictures")


@dataclass(frozen=True)
class Bearer:
    """Content of a token.

    Attributes:
        project: id of the project it is for.
        person: whose answers these are.
        expires: epoch seconds.
        use: "desk" for all that the desk does, "pictures" for reading pictures alone.
    """

    project: str
    person: str
    expires: float
    use: str = "desk"


def issue(project: str, person: str, *, now: float | None = None) -> str:
    """A token for one person on one project, good for 12 hours.

    The key lies in the home folder, so that answers kept in a browser can still be delivered after
    the server was started anew.

    Args:
        project: id of the project.
        person: whose answers it will send.
        now: epoch seconds, the clock's unless given.

    Returns:
        The token, safe in a header or an address.
    """
    expires = (time.time() if now is None else now) + 3600.0 * HOURS
    return _signed(Bearer(project, person, round(expires)))


def for_pictures(holder: Bearer) -> str:
    """The token that stands in the addresses of pictures: it ends with the desk's and reads pictures alone.

    Args:
        holder: of the desk's token; the same one gives the same token, so that browsers keep the pictures.
    """
    return _signed(replace(holder, use="pictures"))


def _signed(holder: Bearer) -> str:
    return str(_signer().dumps([holder.project, holder.person, holder.expires, holder.use]))


def bearer(token: str, *, use: str = "desk", now: float | None = None) -> Bearer | None:
    """The person a token was made for; None for one that is forged, damaged, expired or for another use.

    Args:
        token: from `issue` or `for_pictures`.
        use: what it is wanted for: one of a picture's address opens pictures alone.
        now: epoch seconds, the clock's unless given.
    """
    try:
        project, person, expires, made_for = _signer().loads(token)
    except (BadData, ValueError, TypeError):
        return None
    if made_for != use or use not in _USES or (time.time() if now is None else now) >= expires:
        return None
    return Bearer(str(project), str(person), expires, use)


def _signer() -> URLSafeSerializer:
    """Signer with this server's own key."""
    return URLSafeSerializer(_key(str(workbench_home())), salt="workbench.desk", signer_kwargs=_HOW)


@cache
def _key(folder: str) -> bytes:
    path = Path(folder) / _FILE
    if not path.exists():
        private_folder(path.parent)
        # whole under another name first: of two servers that start at once one names it, and both read it
        draft = path.with_name(f".{_FILE}.{secrets.token_hex(8)}")
        write_whole(draft, secrets.token_bytes(_BYTES), private=True)
        with suppress(FileExistsError):
            try:
                os.link(draft, path)
            except FileExistsError:
                raise
            except OSError:  # a disk without links
                draft.replace(path)
        draft.unlink(missing_ok=True)
    key = path.read_bytes()
    if len(key) < _BYTES:
        raise InputError(
            f"The key of the desk, {path}, is cut short: anybody could sign with it. Delete it; pages that "
            "are open then ask to be opened anew."
        )
    return key
