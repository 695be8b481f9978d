"""The people of a project: how far they agree, and whether they are named."""

from __future__ import annotations

from workbench.sessions.people import PeopleReport, people_report
from workbench.sessions.several import Part
from workbench.store import Event


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
        return self._session._event("hide-names", on=bool(on))
