"""The process beside the server that makes the fits: the server keeps no engine and answers meanwhile.

`WORKBENCH_FIT=inline` makes fits in the server all the same.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from workbench.app.serving.beside import is_apart
from workbench.work.companion import Companion

if TYPE_CHECKING:
    from workbench.progress import FitCallback
    from workbench.sessions import Session


@cache
def fitter() -> Companion:
    """The process that fits, one a server; nobody waits for its end."""
    made = Companion("fits", {"WORKBENCH_FIT": "inline"})
    atexit.register(made.end)
    return made


def load_engine() -> None:
    """Have whoever makes fits, the other process or this one, import what they need.

    Raises:
        DiedError: the other process ended meanwhile.
        ImportError: something is not there.
    """
    if is_apart():
        fitter().call("workbench.sessions.apart:warm")
        return
    import gpflow  # noqa: F401
    import sklearn.cluster  # noqa: F401


def refit(
    session: Session, callback: FitCallback | None = None, tell: Callable[[str], None] | None = None
) -> bool:
    """As `Session.refit`, in the process that fits where there is one.

    Args:
        session: of the project.
        callback: as that of `Session.refit`.
        tell: called with a sentence where the process died and the fit is made again.

    Returns:
        Whether there is a new fit.

    Raises:
        InputError: as `Session.refit` and `refit_apart`.
    """
    if not is_apart():
        return session.refit(callback=callback) is not None
    from workbench.app.serving import seeing
    from workbench.sessions.apart import refit_apart

    return refit_apart(session, fitter(), callback, tell=tell, ready=partial(seeing.prepare, session))
