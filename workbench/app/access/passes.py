"""What guests show: signed texts, in a project's link and in their browser's cookie."""

from __future__ import annotations

from collections.abc import Mapping

from itsdangerous import BadData

COOKIE = "workbench-guest"
_SALT = "workbench.guests"


def signed(given: list[str]) -> str:
    """Texts as one that only this server can have made."""
    from workbench.app.access import tokens

    return str(tokens.signer(_SALT).dumps(given))


def read(text: str, n: int) -> list[str] | None:
    """The n texts that were signed; None for what is forged, damaged, or of another number.

    Args:
        text: from `signed`.
        n: how many.
    """
    from workbench.app.access import tokens

    try:
        found = tokens.signer(_SALT).loads(text)
    except (BadData, ValueError, TypeError):
        return None
    good = isinstance(found, list) and len(found) == n and all(isinstance(one, str) for one in found)
    return found if good else None


def of_cookies(cookies: Mapping[str, str]) -> list[str] | None:
    """A guest's project, what it said of guests, their key and their name; None for nobody's cookie."""
    given = str(cookies.get(COOKIE, ""))
    return read(given, 4) if given else None
