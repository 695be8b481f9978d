"""Names of hosts that this server answers to."""

from __future__ import annotations

import re
from collections.abc import Iterable

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:/@\s]+)(?::[0-9]{1,5})?")


def hostname(host: str) -> str:
    """A Host header without its port, in small letters; "" where it is not a name and a port alone.

    Args:
        host: "labels.example:443", "[::1]:8501".
    """
    match = _HOST.fullmatch(host.lower())
    return match[1] if match else ""


def is_known(host: str | None, names: Iterable[str]) -> bool:
    """True if a request names this server by a name it is known by.

    Args:
        host: the Host header.
        names: the option `server.allowedHosts`; "*" for any.
    """
    known_names = {str(name).lower() for name in names}
    name = hostname(host or "")
    return "*" in known_names or (bool(name) and name in known_names)
