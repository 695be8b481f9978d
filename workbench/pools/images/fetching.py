"""Pictures from web addresses: only with a yes, within limits, from public hosts, kept on disk."""

import os
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, ProxyManager, Retry, make_headers
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from workbench.errors import InputError
from workbench.pools.images.decoding import is_image
from workbench.progress import tell
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
    """The path of an address's file once it was fetched."""
    setting = os.environ.get("WORKBENCH_MEDIA")
    if setting:
        folder = Path(setting).expanduser()
    else:
        from platformdirs import user_cache_path

        folder = Path(user_cache_path("workbench", appauthor=False)) / "media"
    digest = sha256(address.encode()).hexdigest()
    return folder / digest[:2] / digest


def fetch_all(addresses: Sequence[str]) -> dict[str, str]:
    """Fetch what is not on disk yet; tells how far it is (`workbench.progress`), and can be stopped there.

    Args:
        addresses: of pictures.

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
                tell(n / len(todo), f"Fetching the pictures: {n:,} of {len(todo):,}")
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
    except (OSError, InputError, ValueError, HTTPError) as error:
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
    try:
        return float(Retry().parse_retry_after(header or ""))
    except (HTTPError, ValueError, OverflowError):
        return _USUAL_WAIT


def _asked(address: str) -> bytes:
    for _ in range(_REDIRECTS + 1):
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"{cut(address)} is no web address")
        with closing(answer_of(address)) as answer:
            if location := answer.get_redirect_location():
                address = urljoin(address, location)
                continue
            words = f"the server says {answer.status} {answer.reason}"
            if answer.status in (429, 503):
                raise _BusyError(words, _wait_of(answer.headers.get("Retry-After")))
            if answer.status != 200:
                raise InputError(words)
            ends = monotonic() + _LONGEST
            data = bytearray()
            for block in answer.stream(_BLOCK, decode_content=False):
                data += block
                if len(data) > MAX_PICTURE:
                    raise InputError(f"it has more than {MAX_PICTURE >> 20} MB")
                if monotonic() > ends:
                    raise InputError(f"it did not come within {_LONGEST:.0f} seconds")
            if not is_image(bytes(data)):
                raise InputError("what came is no image")
            return bytes(data)
    raise InputError("it is moved on too often")


def answer_of(address: str) -> Any:
    """The answer to a request of an address that was looked up and checked once, so that it cannot change.

    Through the proxy that the environment names, where there is one: it is trusted as its owner trusts it,
    but not asked for a host that is known here as no public one.

    Args:
        address: with the name of a host.

    Returns:
        An answer of urllib3 whose body was not read.
    """
    parts = urlsplit(address)
    host, secure = str(parts.hostname), parts.scheme == "https"
    proxy = getproxies().get(parts.scheme, "") if not proxy_bypass(host) else ""
    addresses = _looked_up(host, parts.port or (443 if secure else 80), must=not proxy)
    # any of them: which one answers is not for the host to choose
    public = all(ip_address(place[0].partition("%")[0]).is_global for *_, place in addresses)
    if not public and os.environ.get("WORKBENCH_FETCH_LOCAL") != "1":
        raise InputError(f"{host} is no public address")
    headers = {"User-Agent": "workbench-labels", "Accept": "image/*"}
    how: dict[str, Any] = {"redirect": False, "retries": False, "preload_content": False}
    if proxy:
        proxy_url = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
        credentials = (
            f"{unquote(proxy_url.username)}:{unquote(proxy_url.password or '')}"
            if proxy_url.username
            else None
        )
        manager = ProxyManager(
            proxy_url.geturl(), proxy_headers=make_headers(proxy_basic_auth=credentials), timeout=SECONDS
        )
        return manager.request("GET", address, headers=headers, **how)
    last: Exception = OSError("it has no address")
    headers["Host"] = parts.netloc.rpartition("@")[2]
    target = parts._replace(scheme="", netloc="", fragment="", path=parts.path or "/").geturl()
    for *_, place in addresses:
        to = place[0], place[1]
        pool = (
            HTTPSConnectionPool(*to, timeout=SECONDS, server_hostname=host, assert_hostname=host)
            if secure
            else HTTPConnectionPool(*to, timeout=SECONDS)
        )
        try:
            return pool.request("GET", target, headers=headers, **how)
        except (NewConnectionError, ConnectTimeoutError) as error:
            last = error
    raise last


def _looked_up(host: str, port: int, *, must: bool = True) -> list[Any]:
    """All addresses of a host; none where it is unknown here and need not be known."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        if must:
            raise
        return []
