"""A project as one annotator has it open: what is known, and recording an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from workbench.errors import InputError
from workbench.pools.pool import Pool
from workbench.sessions.answering import Answers
from workbench.sessions.family import Family, Parts
from workbench.sessions.fitted_model import FittedModel
from workbench.sessions.project import Transaction
from workbench.sessions.rounds import Round
from workbench.store import Event, ProjectRecord, ProjectState, Store
from workbench.store.events import SOURCE


class Opened:
    """Shared parts of `Session`.

    Attributes:
        annotator: whose events this session records.
        fits: the models of the question: that of each round, and what it was made with.
    """

    def __init__(self, store: Store, project: ProjectRecord, pool: Pool, annotator: str) -> None:
        self._family = Family(store, project, pool)
        self._take(self._family.first, annotator)

    def as_annotator(self, annotator: str) -> Self:
        """The session of somebody else on the same open project: pool, events and fits are shared."""
        return self._on(Parts(self._project, self._questions, self.fits), annotator)

    def _on(self, parts: Parts, annotator: str) -> Self:
        """A session of a question of this project."""
        session = object.__new__(type(self))
        session._family = self._family
        session._take(parts, annotator)
        return session

    def _take(self, parts: Parts, annotator: str) -> None:
        self.annotator = _person(annotator)
        self._project, self._questions, self.fits = parts
        self._answers = Answers(self._project, self._questions, self.fits, self.annotator)

    # --- what is known ------------------------------------------------------------------------

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

    # --- inside -------------------------------------------------------------------------------

    def _add(self, transaction: Transaction, event: Event) -> Event:
        return self._answers.add(transaction, event)


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
