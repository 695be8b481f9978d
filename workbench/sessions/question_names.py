"""The questions of a project: which there are, and changing them."""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from workbench.errors import InputError
from workbench.progress import FitCallback
from workbench.sessions.open_session import OpenSession
from workbench.sessions.opening import further_question
from workbench.sessions.part import Names
from workbench.sessions.questions import Question, question_name, several
from workbench.sessions.rounds import Round
from workbench.sessions.sharing import rarer
from workbench.store import Event, ProjectSummary

S = TypeVar("S", bound=OpenSession)
MOST_ASKED = 200  # characters of the question at the desk


class QuestionNames(Names, Generic[S]):
    """Names of the questions that are asked, in their order; and changing them: `Session.questions`."""

    _session: S

    @property
    def every(self) -> list[ProjectSummary]:
        """The questions as they are listed, also those put aside."""
        return self._session._family.listed()

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all questions of the project."""
        return tuple(summary.id for summary in self.every)

    @property
    def first(self) -> S:
        """The session of the question that the project is known by."""
        return self._session.question(self._session._family.id)

    def sessions(self) -> list[S]:
        """The sessions of the questions that are asked, in their order."""
        return self._session._asked()

    def add(self, question: Question | str | Sequence[Any] | Mapping[str, Any]) -> S:
        """Ask one more question; all items are open to it, what was answered before rests.

        Args:
            question: as `Session.create` takes each of its `questions`.

        Returns:
            The session of the new question.

        Raises:
            InputError: a name that is taken, no classes, or a model that cannot be used here.
        """
        family = self._session._family
        [parsed_question] = several([question], [summary.question for summary in family.listed(now=True)])
        first = family.first.project
        new_question = further_question(
            parsed_question, first.pool, {**first.record.settings, **first.state().model}
        )
        added = family.store.add_question(family.id, new_question)
        family.listed(now=True)
        return self._session.question(added)

    def rename(self, name: str, to: str) -> None:
        """Give a question another name.

        Raises:
            InputError: there is none of this name, or one that has the other.
        """
        self._change(name, name=question_name(to))

    def archive(self, name: str, on: bool = True) -> None:
        """Ask a question no more, or again; its answers and its model stay.

        Raises:
            InputError: there is none of this name, or it is the last one that is asked.
        """
        self._change(name, aside=on)

    def reword(self, question: str) -> Event | None:
        """Put the question of the session in other words at the desk.

        Args:
            question: of 200 characters at most; "" for the one that the project comes with.

        Returns:
            The recorded event, or None when nothing changes.

        Raises:
            InputError: a longer one.
        """
        words = " ".join(question.split())
        if len(words) > MOST_ASKED:
            raise InputError(f"The question is {len(words)} characters long; {MOST_ASKED} can be shown.")
        return self._change_settings(
            lambda _, settings: (
                None if words == str(settings.get("question") or "") else Event.question_changed(words)
            )
        )

    def refit(self, callback: FitCallback | None = None) -> dict[str, Round]:
        """Fit the model of each question that has new labels; their rounds by the question's name.

        Of yes / no questions that share a geometry the one that chooses it comes first.
        """
        waiting = [session for session in self.sessions() if session.stale]
        waiting.sort(key=lambda session: -rarer(session.fits.present))
        rounds = {
            session.question_name: session.fits.refit(session.annotator, callback) for session in waiting
        }
        return {name: round_or_none for name, round_or_none in rounds.items() if round_or_none is not None}

    def _change(self, question: str, **fields: Any) -> None:
        session = self._session
        session.store.change_question(session.question(question).id, **fields)
        session._family.listed(now=True)
