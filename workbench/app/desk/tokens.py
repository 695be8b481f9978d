"""Who may speak with the desk's routes: signed, short-lived tokens made by the page's script."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import secrets
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from workbench.store.places import workbench_home

HOURS = 12
_FILE = "desk.key"


@dataclass(frozen=True)
class Bearer:
    """What a token says.

    Attributes:
        project: id of the project it is for.
        person: whose answers these are.
        expires: epoch seconds.
    """

    project: str
    person: str
    expires: float


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
    body = _packed(json.dumps([project, person, round(expires)]).encode())
    return f"{body}.{_signature(body)}"


def bearer(token: str, *, now: float | None = None) -> Bearer | None:
    """Who holds a token; None for one that is forged, damaged or expired.

    Args:
        token: from `issue`.
        now: epoch seconds, the clock's unless given.
    """
    body, _, signature = token.partition(".")
    if not hmac.compare_digest(_signature(body).encode(), signature.encode("utf-8", "replace")):
        return None
    try:
        project, person, expires = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (ValueError, TypeError):
        return None
    if (time.time() if now is None else now) >= expires:
        return None
    return Bearer(str(project), str(person), float(expires))


def _signature(body: str) -> str:
    return _packed(
        hmac.new(_key(str(workbench_home())), body.encode("utf-8", "replace"), hashlib.sha256).digest()
    )


def _packed(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@cache
def _key(folder: str) -> bytes:
    path = Path(folder) / _FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        # exclusive: of two servers that start at once one writes, the other reads
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        deadline = time.monotonic() + 5.0
        while len(found := path.read_bytes()) < 32 and time.monotonic() < deadline:
            time.sleep(0.01)
        return found
    with os.fdopen(handle, "wb") as file:
        file.write(made := secrets.token_bytes(32))
    return made
