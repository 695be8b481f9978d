"""Predictions of the newest fit, and what they are worth by items that it never learnt from."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from heapq import nlargest
from typing import NamedTuple

import numpy as np

from workbench.arrays import Ints
from workbench.errors import InputError
from workbench.sessions.asking import LEASE_SECONDS
from workbench.sessions.measure import (
    ASKED_LATELY,
    ENOUGH,
    Evaluation,
    ModelVerdict,
    class_recalls,
    held_out,
)
from workbench.sessions.part import Part
from workbench.sessions.published import Published
from workbench.sessions.taxonomy import key_of
from workbench.shares import in_percent
from workbench.store import Ask, Event, ProjectState
from workbench.store.database_errors import retried

LEAST_PRECISION = 0.9
"""Measured precision below which no items of a class are shown to be confirmed together."""


class Taken(NamedTuple):
    """Open items that a model takes for one class.

    Attributes:
        name: of the class.
        n_items: how many; where a slow classifier has not scored the whole pool, of those that it has.
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

    n: int = 0
    right: int = 0

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


class Predictions(Part):
    """The published fit as it speaks of items: `Session.predictions`."""

    def of(self, item: int) -> dict[str, float]:
        """Predictions of the published fit for an item: name of a class as it is now -> probability.

        Raises:
            InputError: there is no such item.
        """
        index, predictor = self._session._answers.checked(item), self.predictor()
        return {} if predictor is None else predictor(index)

    def predictor(self, items: Sequence[int] | None = None) -> Callable[[int], dict[str, float]] | None:
        """`of` by the fit and the classes as they are at this moment; None before the first fit.

        Args:
            items: ascending, those that it will be asked about: their probabilities are made at once.
        """
        published, state = self._session.fits.published(), self._session.state
        if published is None:
            return None
        if items is None:
            return lambda item: published.named(state, published.model.probabilities_of(item))
        rows = np.asarray(items, dtype=np.int64)
        probabilities = published.model.probabilities_kept(rows)
        return lambda item: published.named(state, probabilities[np.searchsorted(rows, item)])

    def _precisions(self, published: Published | None, state: ProjectState) -> dict[str, Precision]:
        """Class, as it is called in a state -> how often a published fit was right where it said so."""
        if published is None:
            return {}
        items, truth = self._held_out(state, published)
        if not items.size:
            return {}
        names = np.asarray(published.names(state), dtype=object)
        says, true = names[published.model.probabilities_at(items).argmax(axis=1)], names[truth]
        return {
            name: Precision(int((says == name).sum()), int((true[says == name] == name).sum()))
            for name in dict.fromkeys(names.tolist())
        }

    def precision(self, name: str) -> Precision:
        """Share of the measured items that the published fit takes for a class and that are of it.

        Args:
            name: of the class, as it is called now.
        """
        precisions = self._precisions(self._session.fits.published(), self._session.state)
        return precisions.get(name, Precision())

    def classes(self) -> list[Taken]:
        """The classes of which the published fit takes open items to be, as they are called now.

        A class of which the measured precision is below 90 % is none of them.

        Raises:
            InputError: there is no fit, nothing is left to ask, or the fit is too often wrong of every class.
        """
        session = self._session
        published, state = session.fits.published(), session.state
        if published is None:
            two = len(state.trained_classes) > 1 or session.stale
            wait = "the first fit is under way." if two else "label items of two classes first."
            raise InputError(f"There is no model yet: {wait}")
        askable = session._questions.askable(state)
        p = published.model.probabilities_kept(published.model.in_time(askable))
        if not len(p):
            raise InputError(
                "The model has scored no open item in its time: wait for the next fit."
                if askable.size
                else "Nothing is left to ask."
            )
        n_classes, code = p.shape[1], p.argmax(axis=1)
        counts = np.bincount(code, minlength=n_classes)
        sure = np.bincount(code, weights=p.max(axis=1) ** 4, minlength=n_classes)
        rows = zip(published.names(state), counts, sure, strict=True)
        precisions = self._precisions(published, state)
        classes = [
            Taken(name, int(n), float(worth), precisions.get(name, Precision()))
            for name, n, worth in rows
            if n
        ]
        bearing = [candidate for candidate in classes if candidate.precision.bears]
        if not bearing:
            raise InputError(
                f"Of what the model takes for a class, fewer than {in_percent(LEAST_PRECISION)} of the "
                "measured items are of it: label more before many are confirmed at once."
            )
        return bearing

    @retried
    def grid(self, name: str, k: int = 24) -> list[Ask]:
        """The surest items that the model takes for one class, to be confirmed together; doubtful ones first.

        Args:
            name: of the class.
            k: how many, at most.

        Returns:
            Asks with the role "grid", recorded; for `queue.confirm`.

        Raises:
            InputError: no such class, no model that knows it yet, or one that is too often wrong about it.
        """
        session = self._session
        published = session.fits.published()
        if published is None:
            raise InputError("There is no model yet: label items of two classes first.")
        precision = self._precisions(published, session.state).get(name, Precision())
        if not precision.bears:
            raise InputError(
                f"{precision.words(name)} Many are confirmed at once where {in_percent(LEAST_PRECISION)} "
                "or more are."
            )
        moment = time.time()
        with session._project.recording() as transaction:
            state = transaction.state
            key = key_of(state, name)
            if key not in published.keys:
                raise InputError(f"The model does not know class {name!r} yet; it does after the next fit.")
            exclusions = session._questions.leased(state, moment, session.annotator)
            exclusions |= {a.item for a in session._questions.waiting(state, session.annotator)}
            code = published.keys.index(key)
            waiting = (state.asks[i] for i in state.waiting.get(session.annotator, ()))
            before = [a.id for a in waiting if a.role == "grid" and not a.released]
            if before:  # an earlier grid that was left; what is confirmed in it all the same is taken
                session._answers.add(transaction, Event.released(before))
            asks = session._questions.grid(state, k, exclusions, published, code)
            return session._answers.lease(transaction, asks, moment, LEASE_SECONDS)

    @property
    def evaluation(self) -> Evaluation:
        """The published model's error on items it never trained on, with its 95 % interval.

        On the test split where the pool has truth, else on the evaluation set; before 20 items
        `.enough` is False and the error says nothing.
        """
        published, state = self._session.fits.published(), self._session.state
        return self._evaluation(*self._measured(published, state)[:2])

    def _measured(self, published: Published | None, state: ProjectState) -> tuple[Ints, Ints, float]:
        """[n] codes of the measured items, those that a published model gives them, and its mean doubt."""
        none = np.empty(0, dtype=np.int64)
        if published is None:
            return none, none, math.nan
        model = published.model
        items, truth = self._held_out(state, published)
        if not items.size:
            return none, none, math.nan
        p = model.probabilities_at(items) if self._is_drawn else model.probabilities_kept(items)
        return truth, p.argmax(axis=1), 1.0 - float(p.max(axis=1).mean())

    @property
    def _is_drawn(self) -> bool:
        """True where an error is measured on some of the test split only."""
        return self._session.pool.test is not None and "measured" in self._session.project.settings

    def _evaluation(self, truth: Ints, codes: Ints) -> Evaluation:
        test = self._session.pool.test
        among = 0 if test is None or not self._is_drawn else int(test.test.size)
        source = "evaluation set" if test is None else "test split"
        return Evaluation.of(int(truth.size), int((codes != truth).sum()), source, among)

    @property
    def verdict(self) -> ModelVerdict:
        """Verdict on the published model, by its measured error, its own doubt and its classes."""
        session = self._session
        published, state = session.fits.published(), session.state
        truth, codes, doubt = self._measured(published, state)
        names = () if published is None else published.names(state)
        event_ids = (vote.event for vote in state.standing.values() if vote.role == "policy")
        lately = set(nlargest(ASKED_LATELY, event_ids))
        recent_labels = [
            state.labels[i] for i, v in state.standing.items() if v.event in lately and i in state.labels
        ]
        return ModelVerdict(
            self._evaluation(truth, codes),
            doubt,
            class_recalls(
                state.classes,
                state.labels.values(),
                [(names[a], names[b]) for a, b in zip(truth.tolist(), codes.tolist(), strict=True)],
                recent_labels,
            ),
        )

    def _held_out(self, state: ProjectState, published: Published | None) -> tuple[Ints, Ints]:
        return held_out(self._session.pool, state, self._session.project.settings, published)
