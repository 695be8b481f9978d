"""Fits in a process of their own: it opens the project itself, and stores what it made.

The process that asks takes the stored fit up as it takes up one of another program's, with the utilities of
all items, which are not stored.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any

from workbench.classifiers import CLASSIFIERS
from workbench.errors import InputError
from workbench.progress import FitCallback
from workbench.registry import trust_typed, typed
from workbench.sessions.published import Made, Published
from workbench.work.companion import Companion, DiedError

if TYPE_CHECKING:
    from workbench.sessions.fitted_model import Explained, FittedModel
    from workbench.sessions.session import Session

TRIES = 3
_MOST_OPEN = 3
_OPEN: OrderedDict[tuple[str, str], Session] = OrderedDict()
_OPENING = RLock()  # threads share these where the process that holds a project fits, too


def refit_in_process(
    session: Session,
    companion: Companion,
    callback: FitCallback | None = None,
    *,
    tell: Callable[[str], None] | None = None,
    ready: Callable[[FittedModel], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> bool:
    """As `Session.refit`, in another process.

    Args:
        session: of the project.
        companion: the process.
        callback: as that of `Session.refit`.
        tell: called with a sentence where the process died and the fit is made again.
        ready: called with the fitted model before anybody sees it.
        stop: asked again and again whether to stop, also of a fit that tells nothing.

    Returns:
        Whether there is a new fit; False where there are no labels of two classes yet and no guess, or where
        the newest one is all that can be made.

    Raises:
        InputError: the process died several times over, or what it stored cannot be read; and as
            `Session.refit`.
        Cancelled: `stop` said so, and the fit did not end by itself.
    """

    def hear(progress: Any) -> bool | None:
        return None if callback is None else callback(*progress)

    settings = session.settings
    model_settings = typed({name: settings[name] for name in ("classifier", "options", "policy")})
    arguments = (session.store.url, session.id, session.annotator, model_settings)
    for tried in range(1, TRIES + 1):
        try:
            with session.fits.made_elsewhere():
                fit = companion.call(f"{__name__}:fit_there", *arguments, hear=hear, stop=stop)
                return fit is not None and session.fits.take_up(fit, ready)
        except DiedError as died:
            if tried == TRIES:
                raise InputError(
                    f"The process that fits {died} {TRIES} times. Labels are kept, and the present model "
                    "goes on; another label is another try. See that there is memory enough."
                ) from died
            if tell is not None:
                tell(f"The process that fits {died}; the fit is made again.")
    raise AssertionError


def fit_there(
    say: Callable[[Any], bool], url: str, project: str, annotator: str, named: Mapping[str, Any]
) -> Made | None:
    """In the other process: fit a project on its labels as they are now, unless that was done already.

    Args:
        say: told how far the fit is, (fraction, objective); returns whether to stop it early.
        url: of the database.
        project: its id.
        annotator: whose round it is.
        named: classifier, options and policy that a person vouched for.

    Returns:
        What was stored; None where nothing can be fitted yet.
    """
    trust_typed(named)
    session = opened(url, project).as_annotator(annotator)
    if session.stale and session.refit(lambda fraction, objective: say((fraction, objective))) is None:
        return None
    return _made(session, session.fits.published())


def known_there(say: Callable[[Any], bool], url: str, project: str) -> Made | None:
    """In the other process: what is known of a project's newest stored fit; nothing is fitted.

    Args:
        say: not used.
        url: of the database.
        project: its id.

    Returns:
        It; None where there is none, or its classifier is no name of the registry: code that nobody vouched
        for in this process stays where it is.
    """
    session = opened(url, project)
    published = session.fits.published() if session.settings["classifier"] in CLASSIFIERS.own else None
    if published is not None and session.fits.scores_all:
        _ = published.model.probabilities  # one that was restored has scored nothing yet
    return _made(session, published)


def _made(session: Session, published: Published | None) -> Made | None:
    if published is None:
        return None
    model = published.model
    return Made(model.number, published.utilities, model.known_probabilities, explained(session, model))


def take_up_known(session: Session, made: Made, ready: Callable[[FittedModel], None] | None = None) -> None:
    """Take up what `known_there` gave of a project that was opened a moment ago.

    Args:
        session: of the project.
        made: what was given.
        ready: called with the model before anybody sees it.
    """
    with suppress(InputError):  # it says why where the fit is asked for
        session.fits.take_up(made, ready)


def explained(session: Session, model: FittedModel) -> Explained | None:
    """The utilities that cards give for a reason, of the policy that asks after a fit."""
    from workbench.policies import POLICIES
    from workbench.sessions import insight
    from workbench.sessions.fitted_model import Explained, asking_policy

    policy = asking_policy(model, str(session.settings["policy"])).policy
    if policy == "random" or policy not in POLICIES:
        return None
    return Explained(policy, model.among, insight.utilities_or_none(model, policy, model.among))


def warm(say: Callable[[Any], bool]) -> None:
    """In the other process: import what fits need."""
    import gpflow  # noqa: F401
    import sklearn.cluster  # noqa: F401


def keep(session: Session) -> None:
    """Have `opened` give this one, where the work is done in the process that holds it."""
    with _OPENING:
        _OPEN[session.store.url, session.id] = session
        while len(_OPEN) > _MOST_OPEN:
            _OPEN.popitem(last=False)


def opened(url: str, project: str) -> Session:
    """A project by its id, kept open for the next time.

    Args:
        url: of the database.
        project: its id.
    """
    from workbench.sessions.session import Session
    from workbench.store import Store

    with _OPENING:
        # the questions of a project are opened over one pool, and share what their models have in common
        keys = (
            key
            for key, candidate in _OPEN.items()
            if key[0] == url and project in (candidate.id, *candidate.questions.ids)
        )
        key = next(keys, None)
        if key is not None and _OPEN[key].log.outgrown:
            del _OPEN[key]
            key = None
        if key is None:
            key = url, project
            while len(_OPEN) >= _MOST_OPEN:
                _OPEN.popitem(last=False)
            _OPEN[key] = Session.open(project, store=Store.open(url))
        _OPEN.move_to_end(key)
        session = _OPEN[key]
    return session if session.id == project else session.question(project)
