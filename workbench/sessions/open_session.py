"""A project as one annotator has it open: a question of it, and the ways to the others."""

from collections.abc import Mapping
from typing import Any, Self

from workbench.errors import InputError
from workbench.pools.pool import Pool
from workbench.sessions.answering import Answers
from workbench.sessions.family import Family, Parts
from workbench.sessions.fitted_model import FittedModel
from workbench.sessions.published import Published
from workbench.sessions.questions import unknown_question
from workbench.sessions.rounds import Round
from workbench.store import ProjectRecord, ProjectState, Store
from workbench.store.events import SOURCE


class OpenSession:
    """A question of a project, as one annotator has it open.

    Args:
        family: the open project.
        parts: of the question.
        annotator: whose events are recorded.

    Attributes:
        annotator: whose events this session records.
        fits: the models of the question: that of each round, and what it was made with.
    """

    def __init__(self, family: Family, parts: Parts, annotator: str) -> None:
        self._family, self._parts, self.annotator = family, parts, _person(annotator)
        self._project, self._questions, self.fits = parts
        self._answers = Answers(self._project, self._questions, self.fits, self.annotator)

    def as_annotator(self, annotator: str) -> Self:
        """The session of somebody else on the same open project: pool, events and fits are shared."""
        return type(self)(self._family, self._parts, annotator)

    @property
    def id(self) -> str:
        """The project's id."""
        return self._project.id

    @property
    def store(self) -> Store:
        """The database."""
        return self._project.store

    @property
    def project(self) -> ProjectRecord:
        """As stored: id, name, pool reference, settings it began with."""
        return self._project.record

    @property
    def pool(self) -> Pool:
        """With its test split where there is one."""
        return self._project.pool

    @property
    def settings(self) -> Mapping[str, Any]:
        """Classifier, options, policy, seed, evaluation_share; what they name is not yet trusted."""
        return self._project.settings()

    @property
    def state(self) -> ProjectState:
        """The fold of all events so far, also those of other sessions."""
        return self._project.state()

    @property
    def rounds(self) -> list[Round]:
        """The finished fits, oldest first, without their posteriors."""
        return self._project.rounds()

    @property
    def model(self) -> FittedModel | None:
        """The last published fit, or None before the first."""
        published = self.fits.published()
        return None if published is None else published.model

    @property
    def stale(self) -> bool:
        """True if a refit would see labels, classes or settings that the published model has not seen."""
        return self.fits.is_stale()

    @property
    def question_name(self) -> str:
        """Name of the question that this session is of."""
        return next(q.question for q in self._family.listed() if q.id == self.id)

    def question(self, name: str) -> Self:
        """The session of a question of this project: its own answers, model, rounds and figures.

        Args:
            name: of the question, or its id.

        Raises:
            InputError: there is none; says which there are.
        """
        for is_fresh in (False, True):
            ids = [
                summary.id
                for summary in self._family.listed(now=is_fresh)
                if name in (summary.question, summary.id)
            ]
            if ids:
                return type(self)(self._family, self._family.parts(ids[0]), self.annotator)
        raise unknown_question(name, [summary.question for summary in self._family.listed()])

    def _asked(self) -> list[Self]:
        """The sessions of the questions that are asked, in their order."""
        every = self._family.listed()
        return [
            type(self)(self._family, self._family.parts(summary.id), self.annotator)
            for summary in every
            if not summary.aside
        ]

    def _others(self) -> list[Self]:
        """The sessions of the questions that are asked beside this one."""
        if len(self._family.listed()) < 2:
            return []
        return [session for session in self._asked() if session.id != self.id]

    def _prepare(self, state: ProjectState) -> Published | None:
        """The published fit; what takes a while is made, while nobody waits for it in a transaction."""
        published = self.fits.published(state)
        if published is None or len(state.trained_classes) < 2:
            self._questions.cold_items()  # k-means
        return published


def _person(name: str) -> str:
    """The name of somebody who labels.

    Raises:
        InputError: an empty one, or that of the pool's own labels.
    """
    cleaned = name.strip()
    if not cleaned:
        raise InputError("An annotator needs a name.")
    if cleaned == SOURCE:
        raise InputError(f"{SOURCE} is the name of what the pool brings; choose another one.")
    return cleaned
