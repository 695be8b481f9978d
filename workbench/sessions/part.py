"""Parts of a session: small objects, each with the methods about one matter; classes, log, people."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self, TypeVar

from workbench.sessions.execution import Execution
from workbench.sessions.open_session import OpenSession
from workbench.sessions.operations import Acknowledgement, Operation, made_id
from workbench.sessions.people import PeopleReport, people_report
from workbench.store import Event, ProjectState
from workbench.store.database_errors import retried


class Part:
    """Methods of a session about one matter.

    Args:
        session: of the annotator.
    """

    _session: Any

    def __init__(self, session: OpenSession) -> None:
        self._session = session

    def _do(self, kind: str, operation: str = "", **fields: Any) -> Acknowledgement:
        """Do one operation, under an id made for it unless it has one."""
        return Execution(self._session).do(Operation(operation or made_id(), kind, **fields))

    def _event(self, kind: str, **fields: Any) -> Event:
        """Do one operation; the event that records it."""
        recorded = self._do(kind, **fields).event
        assert recorded is not None
        return recorded

    def _change_settings(
        self, event_of: Callable[[ProjectState, Mapping[str, Any]], Event | None]
    ) -> Event | None:
        """Change settings by what they are, also where somebody else changes them at the same moment.

        Args:
            event_of: (state, its settings) -> the event, None where nothing changes; asked again where they
                are others by the time the event would be recorded. It may take a while.
        """
        operation = made_id()
        while True:
            state = self._session.state
            event = event_of(state, self._session._project.settings(state))
            if event is None:
                return None
            acknowledgement = self._do("settings", operation, value=(state.model, event))
            if acknowledgement.status == "saved":
                return acknowledgement.event


class Names(tuple[str, ...], Part):
    """Names of one moment, with methods of a session about them; in another process they are names alone."""

    def __new__(cls, names: Iterable[str], session: OpenSession | None = None) -> Self:
        """Those of a session."""
        self = super().__new__(cls, names)
        self._session = session
        return self

    def __init__(self, *_: Any) -> None:
        pass

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


class Classes(Names):
    """Names of the classes at one moment, places are the codes; and changing them: `Session.classes`."""

    def add(self, name: str) -> Event:
        """Add a class.

        Raises:
            InputError: an empty name, or one that exists.
        """
        return self._event("class-add", label=name)

    def rename(self, name: str, new: str) -> Event:
        """Give a class another name; its labels follow.

        Raises:
            InputError: no class is called so (any more), the new name is empty, or exists.
        """
        return self._event("class-rename", label=name, text=new)

    def merge(self, name: str, into: str) -> Event:
        """Count one class's labels as another's; the first disappears."""
        return self._event("class-merge", label=name, text=into)

    def remove(self, name: str) -> Event:
        """Take away a class that nobody needs; it is back with the first label that names it.

        Raises:
            InputError: there is none, labels name it, the pool knows items of it, or one class would be left.
        """
        return self._event("class-remove", label=name)

    def describe(
        self,
        name: str,
        *,
        guidance: str | None = None,
        shortcut: str | None = None,
        colour: str | None = None,
    ) -> Event:
        """Say what belongs to a class, and how it is shown.

        Args:
            name: of the class.
            guidance: one line; "" takes it away, None leaves it.
            shortcut: the key that gives it, a letter or digit.
            colour: "#rrggbb".

        Raises:
            InputError: no such class, a line that is too long, or a key or colour that is none or taken.
        """
        about = {"guidance": guidance, "shortcut": shortcut, "colour": colour}
        return self._event(
            "class-describe", label=name, value={key: v for key, v in about.items() if v is not None}
        )

    def order(self, names: Sequence[str]) -> Event:
        """Show the classes in this order; those not named follow. Codes and models stay as they are.

        Raises:
            InputError: a class that there is not.
        """
        return self._event("class-order", value=tuple(names))


class Team(Part):
    """People who label a project: `Session.people`."""

    def report(self) -> PeopleReport:
        """Agreement of the people of the project, their consensus, and each person's own figures."""
        return people_report(self._session.state, self._session._project.events())

    def hide_names(self, on: bool = True) -> Event | None:
        """Number people instead of naming them, where it is said how each of them does.

        Returns:
            The recorded event, or None when nothing changes.
        """
        return self._change_settings(
            lambda state, _: (
                None if bool(on) == bool(state.model.get("names_hidden")) else Event.names_hidden(bool(on))
            )
        )


T = TypeVar("T")


class Log(Part):
    """Everything that was done in a project: `Session.log`."""

    @property
    def events(self) -> list[Event]:
        """All events so far, oldest first."""
        return self._session._project.events()

    @property
    def last_acts(self) -> tuple[Event | None, Event | None]:
        """Events that an undo of this annotator takes back and that a redo puts back, of any question."""
        return Execution(self._session).last_acts()

    @property
    def outgrown(self) -> bool:
        """True if the pool has grown since it was opened here: then the project has to be opened again."""
        return self._session._project.log.outgrown

    def snapshot(self) -> AbstractContextManager[None]:
        """Within the block this thread sees one moment, events and fits; see `OpenProject.snapshot`."""
        return self._session._project.log.snapshot()

    @retried
    def together(self, work: Callable[[], T], *, whole: bool = False) -> T:
        """Do several things within one transaction, over all questions; on disk when it returns.

        Args:
            work: calls methods of this session; what of it was done counts also where it raises. It is done
                again where the database server cut it off, so its operations have ids. What takes time (a fit
                that is taken up, pictures) stays outside: others who write wait meanwhile.
            whole: nothing of it counts where it raises.
        """
        for session in (self._session, *self._session._others()):
            # the transaction begins with what others have stored: no need to look for it twice
            session._prepare(session._project.known())
        log = self._session._project.log
        with log.together(), log.whole() if whole else nullcontext():
            return work()
