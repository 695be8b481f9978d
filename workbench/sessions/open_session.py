"""A project as a process, and one annotator, has it open: its questions, with a model each."""

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

from workbench.errors import InputError
from workbench.pools.pool import Pool
from workbench.sessions.answering import Answers
from workbench.sessions.asking import Questions
from workbench.sessions.fitted_model import FittedModel
from workbench.sessions.fitting import Fits
from workbench.sessions.project import OpenProject, OpenQuestion
from workbench.sessions.published import Published
from workbench.sessions.questions import unknown_question
from workbench.sessions.rounds import Round
from workbench.sessions.sharing import Common
from workbench.store import YES_NO, ProjectRecord, ProjectState, ProjectSummary, Store
from workbench.store.events import SOURCE

LOOK = 2.0
"""Seconds after which it is looked whether another program added a question."""


class Family:
    """Safe to use from several threads.

    Args:
        store: the database.
        record: of the first question.
        pool: with the test split of the first question, where there is one.

    Attributes:
        project: the log of all of them.
        first: the question that the project is known by.
    """

    def __init__(self, store: Store, record: ProjectRecord, pool: Pool) -> None:
        self.store = store
        self.id = record.family
        self._lock = threading.RLock()
        self._pool = pool
        self._plain: Pool | None = None
        self._listed: tuple[float, list[ProjectSummary]] | None = None
        self._common: dict[int, Common] = {}
        self._open: dict[str, Fits] = {}
        self.project = OpenProject(store, record, len(pool))
        self.first = self._open[record.id] = self._opened(record, pool)

    def listed(self, *, now: bool = False) -> list[ProjectSummary]:
        """The questions in their order, also those put aside; as of some seconds ago unless `now`."""
        with self._lock:
            if now or self._listed is None or time.monotonic() - self._listed[0] > LOOK:
                self._listed = time.monotonic(), self.store.questions(self.id)
            return self._listed[1]

    def fits(self, question_id: str) -> Fits:
        """The models of a question, with its log and what chooses its asks, opened at its first use.

        Raises:
            InputError: it is none of this project's.
        """
        with self._lock:
            if question_id not in self._open:
                record = self.store.project(question_id)
                if record.family != self.id:
                    raise InputError(f"{question_id!r} is no question of this project.")
                if self._plain is None:
                    same = self._pool.truth is None and self._pool.test is None and not self._pool.classes
                    self._plain = self._pool if same else without_truth(self._pool)
                self._open[question_id] = self._opened(record, self._plain)
            return self._open[question_id]

    def _opened(self, record: ProjectRecord, pool: Pool) -> Fits:
        project = OpenQuestion(self.project, record, pool)
        questions = Questions(pool, record.settings, project.twins)
        common = self._common.setdefault(id(pool), Common(pool))
        siblings = partial(self._beside, record.id) if record.kind == YES_NO else tuple
        return Fits(project, questions, common, siblings)

    def _beside(self, question_id: str) -> list[Published | None]:
        """The newest fits in this process of the other yes / no questions that are asked over the same pool.

        One that nobody has opened here has none.
        """
        pool = self._open[question_id].project.pool if question_id in self._open else self._plain
        with self._lock:
            others = [
                self._open.get(summary.id)
                for summary in self.listed()
                if summary.kind == YES_NO and not summary.aside and summary.id != question_id
            ]
        return [
            None if fits is None else fits.present
            for fits in others
            if fits is None or fits.project.pool is pool
        ]


def without_truth(pool: Pool) -> Pool:
    """The pool of a question that its source does not answer: no classes, no truth and no test split."""
    return replace(pool, classes=(), truth=None, test=None)


class OpenSession:
    """A question of a project, as one annotator has it open.

    Args:
        family: the open project.
        fits: of the question.
        annotator: whose events are recorded.

    Attributes:
        annotator: whose events this session records.
        fits: the models of the question: that of each round, and what it was made with.
    """

    def __init__(self, family: Family, fits: Fits, annotator: str) -> None:
        self._family, self.fits, self.annotator = family, fits, _person(annotator)
        self._project, self._questions = fits.project, fits.questions
        self._answers = Answers(fits, self.annotator)

    def as_annotator(self, annotator: str) -> Self:
        """The session of somebody else on the same open project: pool, events and fits are shared."""
        return type(self)(self._family, self.fits, annotator)

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
        """Name of the question that this session is of.

        Raises:
            InputError: the project was deleted.
        """
        names = (summary.question for summary in self._family.listed() if summary.id == self.id)
        return next(names, None) or self.store.project(self.id).question

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
                return type(self)(self._family, self._family.fits(ids[0]), self.annotator)
        raise unknown_question(name, [summary.question for summary in self._family.listed()])

    def _asked(self) -> list[Self]:
        """The sessions of the questions that are asked, in their order."""
        return [
            type(self)(self._family, self._family.fits(summary.id), self.annotator)
            for summary in self._family.listed()
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
