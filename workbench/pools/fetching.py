"""Pictures from web addresses: only with a yes, within limits, from public hosts, kept on disk."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from time import monotonic
from urllib.parse import urljoin, urlsplit

from workbench.errors import InputError
from workbench.pools.decoding import is_image
from workbench.reading import cut, reason
from workbench.writing import write_whole

MAX_FETCHED = 10_000
"""Most addresses of one table."""
MAX_PICTURE = 25 << 20
MAX_TOGETHER = 2 << 30
SECONDS = 15.0
_LONGEST = 120.0  # seconds of one picture
_REDIRECTS = 3
_THREADS = 8
_BLOCK = 1 << 16


def is_address(text: str) -> bool:
    """Whether a cell is a web address rather than the name of a file."""
    return text[:8].lower().startswith(("http://", "https://"))


def kept(address: str) -> Path:
    """Where the file of an address lies once it was fetched."""
    given = os.environ.get("WORKBENCH_MEDIA")
    if given:
        folder = Path(given).expanduser()
    else:
        from platformdirs import user_cache_path

        folder = Path(user_cache_path("workbench", appauthor=False)) / "media"
    digest = sha256(address.encode()).hexdigest()
    return folder / digest[:2] / digest


def fetch_all(addresses: Sequence[str], report: Callable[[int, int], None] | None = None) -> dict[str, str]:
    """Fetch what is not on disk yet.

    Args:
        addresses: of pictures.
        report: told (fetched, of how many) as it goes; may raise to stop.

    Returns:
        Address -> why it could not be fetched, for those that could not.

    Raises:
        InputError: more addresses than allowed.
    """
    todo = [address for address in dict.fromkeys(addresses) if not kept(address).is_file()]
    if len(todo) > MAX_FETCHED:
        raise InputError(
            f"{len(todo):,} pictures would have to be fetched; the limit is {MAX_FETCHED:,}. Download them "
            "yourself, and name their files in the column."
        )
    failed: dict[str, str] = {}
    together = 0
    with ThreadPoolExecutor(_THREADS) as threads:
        try:
            for n, (address, result) in enumerate(
                zip(todo, threads.map(_kept_or_why, todo), strict=True), start=1
            ):
                if isinstance(result, str):
                    failed[address] = result
                else:
                    together += result
                if together > MAX_TOGETHER:
                    raise InputError(
                        f"The pictures have more than {MAX_TOGETHER >> 20:,} MB together. Download them "
                        "yourself, smaller, and name their files in the column."
                    )
                if report is not None:
                    report(n, len(todo))
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise
    return failed


def _kept_or_why(address: str) -> int | str:
    """Bytes of a picture that is on disk now, or why it is not."""
    try:
        data = _fetched(address)
        place = kept(address)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, data, private=True, synced=False)
    except (OSError, InputError, ValueError, http.client.HTTPException) as error:
        return reason(error)
    return len(data)


def _fetched(address: str) -> bytes:
    for _ in range(_REDIRECTS + 1):
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"{cut(address)} is no web address")
        connection = _connection(parts.scheme, parts.hostname, parts.port)
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("GET", path, headers={"User-Agent": "workbench-labels", "Accept": "image/*"})
            answer = connection.getresponse()
            if answer.status in (301, 302, 303, 307, 308):
                address = urljoin(address, answer.getheader("Location") or "")
                continue
            if answer.status != 200:
                raise InputError(f"the server says {answer.status} {answer.reason}")
            promised, ends = answer.length, monotonic() + _LONGEST
            data = bytearray()
            while block := answer.read(_BLOCK):
                data += block
                if len(data) > MAX_PICTURE:
                    raise InputError(f"it has more than {MAX_PICTURE >> 20} MB")
                if monotonic() > ends:
                    raise InputError(f"it did not come within {_LONGEST:.0f} seconds")
            if promised is not None and len(data) < promised:
                raise InputError(f"it broke off after {len(data):,} of {promised:,} bytes")
            if not is_image(bytes(data)):
                raise InputError("what came is no image")
            return bytes(data)
        finally:
            connection.close()
    raise InputError("it is moved on too often")


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    """A connection to an address that was looked up and checked once, so that it cannot change in between."""
    found = socket.getaddrinfo(host, port or (443 if scheme == "https" else 80), type=socket.SOCK_STREAM)
    family, kind, proto, _, place = found[0]
    if not ip_address(place[0]).is_global and os.environ.get("WORKBENCH_FETCH_LOCAL") != "1":
        raise InputError(f"{host} is no public address")
    plain = socket.socket(family, kind, proto)
    plain.settimeout(SECONDS)
    try:
        plain.connect(place)
        secure = (
            ssl.create_default_context().wrap_socket(plain, server_hostname=host)
            if scheme == "https"
            else plain
        )
    except BaseException:
        plain.close()
        raise
    connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
    connection.sock = secure
    return connection
