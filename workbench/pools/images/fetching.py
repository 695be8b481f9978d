"""Pictures from web addresses: only with a yes, within limits, from public hosts, kept on disk."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from workbench.errors import InputError
from workbench.pools.images.decoding import is_image
from workbench.reading import cut, reason
from workbench.writing import write_whole

MAX_FETCHED = 10_000
"""Most addresses of one table."""
MAX_PICTURE = 25 << 20
MAX_TOGETHER = 2 << 30
SECONDS = 15.0
_LONGEST = 120.0  # seconds of one picture
_LONGEST_WAIT, _USUAL_WAIT = 30.0, 5.0  # seconds before a busy server is asked once more
_REDIRECTS = 3
_THREADS = 8
_BLOCK = 1 << 16


def is_address(text: str) -> bool:
    """True if a cell is a web address rather than the name of a file."""
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
    """A picture; a server that says when to come again is asked once more then."""
    try:
        return _asked(address)
    except _BusyError as busy:
        if busy.seconds > _LONGEST_WAIT:
            raise
        sleep(busy.seconds)
        return _asked(address)


class _BusyError(InputError):
    """The server wants to be asked later, in so many seconds."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


def _wait_of(header: str | None) -> float:
    """Seconds that a Retry-After header says; five where it says nothing that can be read."""
    given = (header or "").strip()
    if given.isdecimal():
        return float(given[:9])
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - time())
    except (TypeError, ValueError, IndexError, OverflowError):
        return _USUAL_WAIT


def _asked(address: str) -> bytes:
    for _ in range(_REDIRECTS + 1):
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"{cut(address)} is no web address")
        connection = connection_to(parts.scheme, parts.hostname, parts.port)
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            if parts.scheme == "http" and connection.through_proxy:
                path = f"http://{parts.netloc}{path}"
            connection.request("GET", path, headers={"User-Agent": "workbench-labels", "Accept": "image/*"})
            answer = connection.getresponse()
            if answer.status in (301, 302, 303, 307, 308):
                address = urljoin(address, answer.getheader("Location") or "")
                continue
            if answer.status in (429, 503):
                said = f"the server says {answer.status} {answer.reason}"
                raise _BusyError(said, _wait_of(answer.getheader("Retry-After")))
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


class _Connection(http.client.HTTPConnection):
    """A connection whose socket is open already.

    Attributes:
        through_proxy: whether a proxy passes the request on, which it reads the whole address for.
    """

    through_proxy = False


def connection_to(scheme: str, host: str, port: int | None) -> _Connection:
    """A connection to an address that was looked up and checked once, so that it cannot change in between.

    Through the proxy that the environment names, where there is one: it is trusted as its owner trusts it,
    but not asked for a host that is known here as no public one.
    """
    proxy = getproxies().get(scheme)
    through = bool(proxy) and not proxy_bypass(host)
    wanted = port or (443 if scheme == "https" else 80)
    if through:
        _check_public(host, _looked_up(host, wanted, must=False))
        given = urlsplit(proxy if "//" in str(proxy) else f"http://{proxy}")
        plain = _reached(_looked_up(str(given.hostname), given.port or 8080))
    else:
        found = _looked_up(host, wanted)
        _check_public(host, found)
        plain = _reached(found)
    try:
        if through and scheme == "https":
            _tunnel(plain, host, wanted, given)
        secure = (
            ssl.create_default_context().wrap_socket(plain, server_hostname=host)
            if scheme == "https"
            else plain
        )
    except BaseException:
        plain.close()
        raise
    connection = _Connection(host, port, timeout=SECONDS)
    connection.sock, connection.through_proxy = secure, through
    return connection


def _looked_up(host: str, port: int, *, must: bool = True) -> list[Any]:
    """All addresses of a host; none where it is unknown here and need not be known."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        if must:
            raise
        return []


def _check_public(host: str, found: Sequence[Any]) -> None:
    """Refuse a host any of whose addresses is not public: which one answers is not for it to choose."""
    if os.environ.get("WORKBENCH_FETCH_LOCAL") == "1":
        return
    if any(not ip_address(place[0].partition("%")[0]).is_global for *_, place in found):
        raise InputError(f"{host} is no public address")


def _reached(found: Sequence[Any]) -> socket.socket:
    """A socket to the first of some addresses that answers."""
    last: OSError | None = None
    for family, kind, proto, _, place in found:
        plain = socket.socket(family, kind, proto)
        plain.settimeout(SECONDS)
        try:
            plain.connect(place)
            return plain
        except OSError as error:
            plain.close()
            last = error
    raise last or OSError("it has no address")


def _tunnel(plain: socket.socket, host: str, port: int, proxy: Any) -> None:
    """Have a proxy connect a socket to a host, so that it sees none of what is said."""
    to = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {to} HTTP/1.1", f"Host: {to}"]
    if proxy.username is not None:
        known = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {b64encode(known.encode()).decode()}")
    plain.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
    answer = bytearray()
    while b"\r\n\r\n" not in answer:  # byte by byte: what follows is the host's
        one = plain.recv(1)
        if not one or len(answer) > _BLOCK:
            raise OSError("the proxy broke off")
        answer += one
    status = bytes(answer).partition(b"\r\n")[0].split(b" ", 2)
    if len(status) < 2 or status[1] != b"200":
        raise OSError(f"the proxy says {b' '.join(status[1:]).decode('latin-1') or 'nothing'}")
