"""Which names of hosts this server answers to."""

from __future__ import annotations

from collections.abc import Iterable


def hostname(host: str) -> str:
    """A Host header without its port, in small letters.

    Args:
        host: "labels.example:443", "[::1]:8501".
    """
    host = host.lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def is_known(host: str | None, names: Iterable[str]) -> bool:
    """Whether a request names this server by a name it is known by.

    Args:
        host: the Host header.
        names: the option `server.allowedHosts`; "*" for any.
    """
    known = {str(name).lower() for name in names}
    return "*" in known or (bool(host) and hostname(host or "") in known)
