"""The questions of one project as a process has them open: one pool and one log, and a model each."""

import threading
import time
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from workbench.errors import InputError
from workbench.pools.pool import Pool
from workbench.sessions.asking import Questions
from workbench.sessions.fitting import Fits
from workbench.sessions.project import OpenProject, OpenQuestion
from workbench.sessions.published import Published
from workbench.sessions.sharing import Common
from workbench.store import YES_NO, ProjectRecord, ProjectSummary, Store

LOOK = 2.0
"""Seconds after which it is looked whether another program added a question."""


class Parts(NamedTuple):
    """Shared parts of the sessions of one question.

    Attributes:
        project: its part of the log.
        questions: chooses what is asked.
        fits: its models.
    """

    project: OpenQuestion
    questions: Questions
    fits: Fits


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
        self._open: dict[str, Parts] = {}
        self.project = OpenProject(store, record, len(pool))
        self.first = self._open[record.id] = self._opened(record, pool)

    def listed(self, *, now: bool = False) -> list[ProjectSummary]:
        """The questions in their order, also those put aside; as of some seconds ago unless `now`."""
        with self._lock:
            if now or self._listed is None or time.monotonic() - self._listed[0] > LOOK:
                self._listed = time.monotonic(), self.store.questions(self.id)
            return self._listed[1]

    def parts(self, question_id: str) -> Parts:
        """Those of a question, opened at its first use.

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

    def _opened(self, record: ProjectRecord, pool: Pool) -> Parts:
        project = OpenQuestion(self.project, record, pool)
        questions = Questions(pool, record.settings, project.twins)
        common = self._common.setdefault(id(pool), Common(pool))
        siblings = partial(self._beside, record.id) if record.kind == YES_NO else tuple
        return Parts(project, questions, Fits(project, questions, common, siblings))

    def _beside(self, question_id: str) -> list[Published | None]:
        """The newest fits in this process of the other yes / no questions that are asked over the same pool.

        One that nobody has opened here has none.
        """
        pool = self._open[question_id].project.pool if question_id in self._open else self._plain
        with self._lock:
            summaries = [summary for summary in self.listed() if summary.kind == YES_NO and not summary.aside]
            open_parts = {
                summary.id: self._open.get(summary.id) for summary in summaries if summary.id != question_id
            }
        return [
            None if parts is None else parts.fits.present
            for parts in open_parts.values()
            if parts is None or parts.project.pool is pool
        ]


def without_truth(pool: Pool) -> Pool:
    """The pool of a question that its source does not answer: no classes, no truth and no test split."""
    return replace(pool, classes=(), truth=None, test=None)
