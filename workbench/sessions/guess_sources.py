"""Sources of guesses that a project begins with: what each says now, and changing them."""

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.classifiers import title_of
from workbench.classifiers.protocols import NO_GUESS
from workbench.errors import InputError
from workbench.sessions.guessing import (
    SourceNow,
    SourceReport,
    as_said,
    checked_sources,
    offered,
    report,
    takes_guess,
)
from workbench.sessions.part import Part
from workbench.store import Event, ProjectState
from workbench.store.fold import predictions as predictions_in


class GuessSources(Part):
    """Guesses of a project: `Session.guesses`."""

    def now(self) -> list[SourceNow]:
        """The sources with what each says of the pool now."""
        session = self._session
        state = session.state
        return session.fits.guesses.now(session._project.settings(state), state)

    def offered(self) -> list[str]:
        """Sources that the project could begin with: class names, columns that name some."""
        return offered(self._session.pool, self._session.state.classes)

    def report(self) -> list[SourceReport]:
        """Value of each source: its weight, its accuracy on this project's labels, what it mixes up."""
        session = self._session
        with session.log.snapshot():
            return report(self.now(), session.state, session.model, session.fits.fitted_with)

    def change(self, sources: Sequence[str | Mapping[str, Any]]) -> Event | None:
        """Start from these guesses and no others, from the next refit on.

        Args:
            sources: all of them, as `guess` of `create`; {"source", "on": False} keeps one unused.

        Returns:
            The recorded event, or None when nothing changes.

        Raises:
            InputError: a source that says nothing of this pool, or a classifier that takes no guess.
        """
        return self._change_settings(lambda state, settings: self._started(state, settings, sources))

    def _started(
        self, state: ProjectState, settings: Mapping[str, Any], sources: Sequence[str | Mapping[str, Any]]
    ) -> Event | None:
        """Event of a start from these guesses; None where it is the present one."""
        pool, before = self._session.pool, list(settings.get("guesses") or ())
        entries = {source["source"]: source for source in before}
        arguments = [
            {**entries.get(source["source"], {}), **source}
            if isinstance(source, Mapping)
            else entries.get(source, {}) | {"source": source, "on": True}
            for source in sources
        ]
        guesses = checked_sources(arguments, pool, state.classes)
        if any(source["on"] for source in guesses) and not takes_guess(settings["classifier"]):
            raise InputError(NO_GUESS.format(title_of(str(settings["classifier"]))))
        if guesses == before:
            return None
        recorded = predictions_in(state.model.get("guesses", ()))
        news = [
            {
                name: value
                for name, value in source.items()
                if name != "said" or value != recorded.get(source["source"])
            }
            for source in guesses
        ]
        return Event.guesses_changed(news, len(pool))

    def add(
        self,
        source: str,
        predictions: Sequence[tuple[int, str, float | None]],
        mapping: Mapping[str, str] | None = None,
    ) -> Event | None:
        """Begin with what another tool or an older model says of the items; kept in the project.

        Args:
            source: its name: "file:NAME", "model:NAME" or "llm:MODEL@ADDRESS"; one of the same name is
                replaced.
            predictions: (item, class, confidence or None), as `exchange.read_predictions` gives them.
            mapping: names in them that are no class -> the classes they stand for; others say nothing.

        Returns:
            The recorded event, or None when nothing changes.

        Raises:
            InputError: predictions that name none of the classes, or a classifier that takes no guess.
        """
        if source.partition(":")[0] not in ("file", "model", "llm") or not source.partition(":")[2]:
            raise InputError(
                f"Predictions are called file:NAME, model:NAME or llm:MODEL@ADDRESS; got {source!r}."
            )
        entry: dict[str, Any] = {"source": source, "on": True, "said": as_said(predictions)}
        entry |= {"mapping": dict(mapping)} if mapping else {}

        def started(state: ProjectState, settings: Mapping[str, Any]) -> Event | None:
            others = [guess for guess in settings.get("guesses") or () if guess["source"] != source]
            return self._started(state, settings, [*others, entry])

        return self._change_settings(started)
