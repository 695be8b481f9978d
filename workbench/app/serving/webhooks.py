"""Webhooks: telling an address what happened, in a thread of its own, never in the way of a label."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import queue
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from workbench.errors import InputError
from workbench.reading import cut, reason
from workbench.store.events import now

if TYPE_CHECKING:
    from workbench.store import Store

SECONDS = 5.0
WAITS = (0.0, 2.0, 10.0)
"""Seconds before each try."""
MOST_WAITING = 200
SIGNATURE = "X-Workbench-Signature"
_log = logging.getLogger(__name__)


def checked_url(url: str) -> str:
    """The address of a webhook.

    Raises:
        InputError: no web address, one with a password, or one that is too long.
    """
    given = url.strip()
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.hostname or len(given) > 1000:
        raise InputError(f"{cut(given)} is no web address; it begins with https://.")
    if parts.username or parts.password:
        raise InputError(
            "The address may hold no password: what is sent is signed, check the signature instead."
        )
    return given


def signature(secret: str, body: bytes) -> str:
    """What `SIGNATURE` says of a body: HMAC of SHA-256 with the webhook's secret."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def tell(store: Store, project: str, event: str, about: Mapping[str, Any]) -> None:
    """Tell the project's address, if it has one, soon; nothing is waited for, and nothing raised.

    Args:
        store: of the project.
        project: its id.
        event: "fit" or "finish".
        about: further facts.
    """
    try:
        _QUEUE.put_nowait(
            (store, project, event, {"event": event, "project": project, "time": now(), **about})
        )
    except queue.Full:
        _log.warning("A webhook of %s was not told of %s: too many wait", project, event)
        return
    _start()


def post(url: str, secret: str, body: bytes) -> str:
    """Post once; what the server said, as "204 No Content".

    Raises:
        InputError: an address that is not public (unless WORKBENCH_FETCH_LOCAL is 1).
        OSError: nobody answers, or not in time.
        HTTPException: what answers speaks no HTTP.
    """
    from workbench.pools.images.fetching import connection_to

    parts = urlsplit(url)
    connection = connection_to(parts.scheme, str(parts.hostname), parts.port)
    # a socket's timeout is of each read: one byte a second would hold the thread for ever
    end = threading.Timer(SECONDS, _hang_up, (connection.sock,))
    end.daemon = True
    end.start()
    try:
        connection.sock.settimeout(SECONDS)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if parts.scheme == "http" and connection.through_proxy:
            path = f"http://{parts.netloc}{path}"
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "workbench-labels",
            SIGNATURE: signature(secret, body),
        }
        connection.request("POST", path, body=body, headers=headers)
        answer = connection.getresponse()
        return f"{answer.status} {answer.reason}"
    finally:
        end.cancel()
        connection.close()


def _hang_up(open_socket: socket.socket) -> None:
    with suppress(OSError):
        open_socket.shutdown(socket.SHUT_RDWR)


# --------------------------------------------------------------------------- the thread

_QUEUE: queue.Queue[tuple[Store, str, str, dict[str, Any]]] = queue.Queue(MOST_WAITING)
_LOCK = threading.Lock()
_THREAD: threading.Thread | None = None


def _start() -> None:
    global _THREAD
    with _LOCK:
        if _THREAD is None or not _THREAD.is_alive():
            _THREAD = threading.Thread(target=_run, name="webhooks", daemon=True)
            _THREAD.start()


def _run() -> None:
    while True:
        store, project, event, document = _QUEUE.get()
        try:
            _deliver(store, project, event, document)
        except Exception:  # whatever it was, the next one is told
            _log.exception("A webhook of %s failed", project)
        finally:
            _QUEUE.task_done()


def _deliver(store: Store, project: str, event: str, document: Mapping[str, Any]) -> None:
    said = ""
    here = store.summary(project)
    project = project if here is None else here.family  # of whichever question something is told
    for wait in WAITS:
        time.sleep(wait)
        hook = store.webhook(project)  # it may have been taken away meanwhile
        if hook is None:
            return
        try:
            said = post(hook.url, hook.secret, json.dumps(document, separators=(",", ":")).encode())
        except InputError as error:
            said = str(error)
            break
        except (OSError, HTTPException) as error:
            said = reason(error)
            continue
        if said[:1] in "234":  # moved addresses are not followed, and what was refused is refused again
            break
    store.note_try(project, event, said)


def wait() -> None:
    """Until all that was to be told has been tried; for tests."""
    _QUEUE.join()
