"""A project as one annotator has it open: what is known, and recording an event."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from heapq import nlargest
from typing import Any, NamedTuple, Self

import numpy as np

from workbench.arrays import Ints
from workbench.errors import InputError
from workbench.pools.neighbours.twins import Twins
from workbench.pools.pool import Pool
from workbench.sessions.answering import Answers
from workbench.sessions.family import Family, Parts
from workbench.sessions.fitted_model import FittedModel
from workbench.sessions.fitting import held_out
from workbench.sessions.measure import ENOUGH, Evaluation
from workbench.sessions.project import Transaction
from workbench.sessions.published import Published
from workbench.sessions.rounds import Round
from workbench.sessions.verdict import ASKED_LATELY, ModelVerdict, class_recalls
from workbench.store import Event, ProjectRecord, ProjectState, Store
from workbench.store.events import SOURCE

LEAST_PRECISION = 0.9
"""Measured precision below which no items of a class are shown to be confirmed together."""


class Taken(NamedTuple):
    """Open items that a model takes for one class.

    Attributes:
        name: of the class.
        n_items: how many.
        sure: the sum of the fourth powers of their probabilities.
        precision: of the model where it says this class, on measured items.
    """

    name: str
    n_items: int
    sure: float
    precision: Precision


class Precision(NamedTuple):
    """Share of the measured items that a model takes for a class and that are of it.

    Attributes:
        n: how many it takes for the class.
        right: how many of them are of the class.
    """

    n: int
    right: int

    @property
    def told(self) -> bool:
        """True where n allows to tell (20 or more)."""
        return self.n >= ENOUGH

    @property
    def bears(self) -> bool:
        """True where many items of the class may be confirmed at once."""
        return not self.told or self.right >= LEAST_PRECISION * self.n

    def words(self, name: str) -> str:
        """Sentence on what was measured.

        Args:
            name: of the class.
        """
        if not self.told:
            return (
                f"How often the model is right about {name} is not measured yet "
                f"({self.n} of the {ENOUGH} items that it takes)."
            )
        return f"Of {self.n:,} measured items that the model takes for {name}, {self.right:,} are."


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
    def outgrown(self) -> bool:
        """True if the pool has grown since it was opened here: then the project has to be opened again."""
        return self._project.log.outgrown

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
    def twins(self) -> Twins:
        """Items that are copies of each other; none where the project does not look for them."""
        return self._project.twins

    @property
    def settings(self) -> Mapping[str, Any]:
        """Classifier, options, policy, seed, evaluation_share; what they name is not yet trusted."""
        return self._project.settings()

    def snapshot(self) -> AbstractContextManager[None]:
        """Within the block this thread reads the events once, at first need; a transaction reads as ever."""
        return self._project.log.snapshot()

    @property
    def state(self) -> ProjectState:
        """The fold of all events so far, also those of other sessions."""
        return self._project.state()

    @property
    def events(self) -> list[Event]:
        """All events so far, oldest first."""
        return self._project.events()

    @property
    def rounds(self) -> list[Round]:
        """The finished fits, oldest first, without their posteriors."""
        return self._project.rounds()

    @property
    def n_left(self) -> int:
        """Number of items that could still be asked about."""
        return int(self._questions.askable(self.state).size)

    @property
    def model(self) -> FittedModel | None:
        """The last published fit, or None before the first."""
        published = self.fits.published()
        return None if published is None else published.model

    def predict_item(self, item: int) -> dict[str, float]:
        """Predictions of the published fit for an item: name of a class as it is now -> probability."""
        predictor = self.item_predictor()
        return {} if predictor is None else predictor(item)

    def item_predictor(self, *, all_items: bool = False) -> Callable[[int], dict[str, float]] | None:
        """`predict_item` of the fit and the classes as they are at this moment; None before the first fit.

        Args:
            all_items: most items are asked about, so their probabilities are made at once.
        """
        published, state = self.fits.published(), self.state
        if published is not None and all_items:
            published.model.probabilities  # noqa: B018  kept with the model
        return None if published is None else partial(published.predict_item, state)

    def _precisions(self) -> dict[str, Precision]:
        """Class, as it is called now -> how often the published fit was right where it said so."""
        published, state = self.fits.published(), self.state
        if published is None:
            return {}
        items, truth = held_out(self.pool, state, self._project.record.settings, published)
        if not items.size:
            return {}
        names = np.asarray(published.names(state), dtype=object)
        says, true = names[published.model.probabilities_at(items).argmax(axis=1)], names[truth]
        return {
            name: Precision(int((says == name).sum()), int((true[says == name] == name).sum()))
            for name in dict.fromkeys(names.tolist())
        }

    def precision_of(self, name: str) -> Precision:
        """Share of the measured items that the published fit takes for a class and that are of it.

        Args:
            name: of the class, as it is called now.
        """
        return self._precisions().get(name, Precision(0, 0))

    def grid_classes(self) -> list[Taken]:
        """The classes of which the published fit takes open items to be, as they are called now.

        A class of which the measured precision is below 90 % is none of them.

        Raises:
            InputError: there is no fit, nothing is left to ask, or the fit is too often wrong of every class.
        """
        published, state = self.fits.published(), self.state
        if published is None:
            two = len(state.trained_classes) > 1 or self.stale
            wait = "the first fit is under way." if two else "label items of two classes first."
            raise InputError(f"There is no model yet: {wait}")
        p = published.model.probabilities_kept(published.model.in_time(self._questions.askable(state)))
        if not len(p):
            raise InputError("Nothing is left to ask.")
        n_classes, code = p.shape[1], p.argmax(axis=1)
        counts = np.bincount(code, minlength=n_classes)
        sure = np.bincount(code, weights=p.max(axis=1) ** 4, minlength=n_classes)
        rows = zip(published.names(state), counts, sure, strict=True)
        precisions = self._precisions()
        classes = [
            Taken(name, int(n), float(worth), precisions.get(name, Precision(0, 0)))
            for name, n, worth in rows
            if n
        ]
        bearing = [candidate for candidate in classes if candidate.precision.bears]
        if not bearing:
            raise InputError(
                f"Of what the model takes for a class, fewer than {LEAST_PRECISION:.0%} of the measured "
                "items are of it: label more before many are confirmed at once."
            )
        return bearing

    @property
    def fitted_with(self) -> Mapping[str, Any]:
        """Classifier, options and policy of the published fit; the present settings before the first."""
        published = self.fits.published()
        return self.settings if published is None else published.chosen

    @property
    def stale(self) -> bool:
        """True if a refit would see labels, classes or settings that the published model has not seen."""
        return self.fits.is_stale()

    @property
    def evaluation(self) -> Evaluation:
        """The published model's error on items it never trained on, with its 95 % interval.

        On the test split where the pool has truth, else on the evaluation set; before 20 items
        `.enough` is False and the error says nothing.
        """
        return self._evaluation(*self._measured_codes(self.fits.published()))

    def _measured_codes(self, published: Published | None) -> tuple[Ints, Ints]:
        """[n] codes of the measured items, and those that a published model gives them."""
        none = np.empty(0, dtype=np.int64)
        if published is None:
            return none, none
        model = published.model
        items, truth = held_out(self.pool, self.state, self._project.record.settings, published)
        if not items.size:
            return none, none
        p = model.probabilities_at(items) if self._is_drawn else model.probabilities_kept(items)
        return truth, p.argmax(axis=1)

    @property
    def _is_drawn(self) -> bool:
        """True where an error is measured on some of the test split only."""
        return self.pool.test is not None and "measured" in self._project.record.settings

    def _evaluation(self, truth: Ints, codes: Ints) -> Evaluation:
        source = "test split" if self.pool.test is not None else "evaluation set"
        among = 0 if self.pool.test is None or not self._is_drawn else int(self.pool.test.test.size)
        return Evaluation.of(int(truth.size), int((codes != truth).sum()), source, among)

    @property
    def verdict(self) -> ModelVerdict:
        """Verdict on the published model, by its measured error, its own doubt and its classes."""
        rounds, state, published = self.rounds, self.state, self.fits.published()
        truth, codes = self._measured_codes(published)
        keys = () if published is None else published.keys
        names = [state.class_names.get(state.resolve(key), key) for key in keys]
        event_ids = (vote.event for vote in state.standing.values() if vote.role == "policy")
        lately = set(nlargest(ASKED_LATELY, event_ids))
        recent_labels = [
            state.labels[i] for i, v in state.standing.items() if v.event in lately and i in state.labels
        ]
        return ModelVerdict(
            self._evaluation(truth, codes),
            rounds[-1].signs.get("uncertainty", math.nan) if rounds else math.nan,
            class_recalls(
                state.classes,
                state.labels.values(),
                [(names[a], names[b]) for a, b in zip(truth.tolist(), codes.tolist(), strict=True)],
                recent_labels,
            ),
        )

    def held_out(self, state: ProjectState | None = None) -> tuple[Ints, Ints]:
        """Items to measure on and their codes among the classes of `model`; never trained on.

        A merge or a new class since the fit changes none of the codes; items of classes that the model does
        not know are left out until it does. Before the first fit they are the project's codes.

        Args:
            state: to take the evaluation set from; the present one unless given.
        """
        state = self.state if state is None else state
        return held_out(self.pool, state, self._project.record.settings, self.fits.published(state))

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
