"""Retry of work that a database server cut off, when nothing of it was stored."""

import time
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from workbench.errors import InputError
from workbench.reading import cut

P = ParamSpec("P")
T = TypeVar("T")

# Seconds between the tries; a server that is started anew is away for some of them.
PAUSES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)
# Connection gone, ended by the server, deadlock or clash of transactions, too many connections.
_STATES = ("08", "57", "40", "53300")


def retried(method: Callable[P, T]) -> Callable[P, T]:
    """Make a function of one transaction begin again when the database server cut that off.

    The transaction must have been rolled back: `Store` sees to that also for one that was cut off while
    it was committed, by asking the server what became of it.

    Raises:
        InputError: (the function does) the server is still out of reach after some 25 seconds.
    """

    @wraps(method)
    def again(*originals: P.args, **keywords: P.kwargs) -> T:
        # arguments are used again
        arguments: Any = [
            list(argument) if isinstance(argument, Iterator) else argument for argument in originals
        ]
        for pause in PAUSES:
            try:
                return method(*arguments, **keywords)
            except Exception as error:
                if not was_cut_off(error):
                    raise
            time.sleep(pause)
        try:
            return method(*arguments, **keywords)
        except Exception as error:
            if not was_cut_off(error):
                raise
            message = cut(" ".join(str(getattr(error, "orig", error)).split()))
            raise InputError(
                f"The database server does not answer ({message}). What was saved is kept; "
                "try again when it is back."
            ) from error

    return again


def was_cut_off(error: Exception) -> bool:
    """True if an error of SQLAlchemy's says that the server, not the statement, is to blame."""
    if getattr(error, "connection_invalidated", False):
        return True
    driver = getattr(error, "orig", None)
    if driver is None or not type(driver).__module__.startswith("psycopg"):
        return False
    state = getattr(driver, "sqlstate", None)
    if state is None:
        # told by the client's side: no connection could be made, or it broke
        return type(error).__name__ == "OperationalError"
    return str(state).startswith(_STATES)
