"""What guests show: signed texts, in a project's link and in their browser's cookie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from itsdangerous import BadData

COOKIE = "workbench-guest"
DAYS = 30
"""Of how much use a guest's cookie is, whether or not their browser forgets it."""
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

    return _texts(lambda: tokens.signer(_SALT).loads(text), n)


def cookie(given: list[str]) -> str:
    """What a guest's browser keeps; see `of_cookies`."""
    from workbench.app.access import tokens

    return str(tokens.dated_signer(_SALT).dumps(given))


def of_cookies(cookies: Mapping[str, str]) -> list[str] | None:
    """A guest's project, what it said of guests, their key and their name.

    None for nobody's cookie, and for one that is older than `DAYS`.
    """
    from workbench.app.access import tokens

    given = str(cookies.get(COOKIE, ""))
    if not given:
        return None
    return _texts(lambda: tokens.dated_signer(_SALT).loads(given, max_age=86_400 * DAYS), 4)


def _texts(loaded: Callable[[], Any], n: int) -> list[str] | None:
    try:
        found = loaded()
    except (BadData, ValueError, TypeError):
        return None
    good = isinstance(found, list) and len(found) == n and all(isinstance(one, str) for one in found)
    return found if good else None
