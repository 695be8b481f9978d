"""Log of a project: its events, read as of one moment, and several acts as one transaction."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from workbench.sessions.execution import Execution
from workbench.sessions.part import Part
from workbench.sessions.people import PeopleReport, people_report
from workbench.store import Event
from workbench.store.database_errors import retried


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
        if bool(on) == bool(self._session.state.model.get("names_hidden")):
            return None
        return self._event("hide-names", on=bool(on))


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
        """Within the block this thread reads the events once, at first need; a transaction reads as ever."""
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
