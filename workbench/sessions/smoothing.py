"""Strength with which a model leans on its items' neighbours, chosen from labels and kept between rounds."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from threading import Event, Lock, Thread, main_thread
from typing import Any

import numpy as np

from workbench.arrays import Array, Floats
from workbench.classifiers.calibration import clearly_less
from workbench.classifiers.choice import IN_TURNS, ONE_FACTOR, due
from workbench.errors import InputError
from workbench.pools.neighbours.graph import COLUMN, STRENGTHS, Neighbourhood, Seen
from workbench.pools.pool import Pool
from workbench.progress import watched

AT_ONCE = 5_000  # items up to which nobody notices the making of a graph
_STANDARD_ERRORS = 0.5  # as for the other choices of a geometry
_OF_COLUMNS = 3.0  # a column that nobody said to learn from must pay for certain
_LEAST_FOR_COLUMNS = 30  # with fewer labels noise looks as if it paid
_WAITS = 3  # labels that a look at strengths waits for one at the geometry, at most
_SELDOM = 2.0  # times as many labels lie between looks once there are many: each fits every strength anew
_FAR_BEHIND = 3.0  # standard errors
_HOPELESS = 3  # looks in a row at which a strength was far behind
_AGAIN = 4  # one look in so many has them again
MANY = 200  # labels from which on an item's own features always count
_OURS = "neighbours."
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Smoothing:
    """Strength with which a model leans on neighbours, and why.

    Attributes:
        strength: one of `STRENGTHS`, or of a pool's `Neighbourhood.columns`.
        labels: how many there were when that was chosen; 0 where a person chose, or labels did not yet.
        losses: strength -> minus the mean leave-one-out log-likelihood, of those tried.
        looks: taken so far.
        failed: strengths that could not be tried, and why.
        behind: strength -> looks in a row at which it was far behind the best.
    """

    strength: str = "none"
    labels: int = 0
    losses: Mapping[str, float] = field(default_factory=dict)
    looks: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    behind: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        column = self.strength.removeprefix(COLUMN)
        sentence = f"learns from the column {column!r}, too"
        if column == self.strength:
            sentence = f"leans on neighbours: {STRENGTHS[column].said}"
        own_loss, alone = self.losses.get(self.strength), self.losses.get("none")
        if own_loss is None or alone is None:
            return sentence
        if self.strength == "none":
            best = min((loss for name, loss in self.losses.items() if name != "none"), default=None)
            otherwise = "" if best is None else f", otherwise at best {best:.2f}"
            return f"{sentence}; loss on labels it had not seen {alone:.2f}{otherwise}"
        return f"{sentence}; loss on labels it had not seen {own_loss:.2f}, without that {alone:.2f}"

    def to_state(self) -> dict[str, Array]:
        """Strength in a round's state; nothing where nothing was ever chosen."""
        if self == Smoothing():
            return {}
        return {f"{_OURS}smoothing": np.asarray(json.dumps(asdict(self), sort_keys=True))}

    @classmethod
    def of_state(cls, state: Mapping[str, Array] | None) -> Smoothing:
        """That of a round's state."""
        if state is None or f"{_OURS}smoothing" not in state:
            return cls()
        smoothing = cls(**json.loads(str(state[f"{_OURS}smoothing"])))
        if smoothing.strength not in STRENGTHS and not smoothing.strength.startswith(COLUMN):
            raise InputError(
                f"This state leans on neighbours by {smoothing.strength!r}, which is no strength."
            )
        return smoothing


def without_smoothing(state: Mapping[str, Array]) -> dict[str, Array]:
    """The estimator's own part of a round's state."""
    return {name: value for name, value in state.items() if not name.startswith(_OURS)}


def at_first(labels: int, strengths: Sequence[str]) -> str:
    """Strength with which a model of learnt features leans on neighbours until labels can choose.

    Few labels gain most by the strongest smoothing; of many classes there are more labels before the first
    look, and an item's own features count (docs/results.md).

    Args:
        labels: how many there are.
        strengths: of the pool's graph.
    """
    return "both" if labels >= IN_TURNS and "both" in strengths else "strong"


def is_due(labels: int, n_classes: int, before: Smoothing, looked: int | None = None) -> bool:
    """True if it is time for a search.

    Args:
        labels: how many there are.
        n_classes: declared.
        before: what is in use.
        looked: labels at the model's last look at its geometry: where that is due as well, this one waits a
            little, since both in one round would be the longest of all. None where there was none.
    """
    if not due(labels, n_classes, before.labels, _SELDOM):
        return False
    waited = due(labels - _WAITS, n_classes, before.labels, _SELDOM)
    return waited or looked is None or not due(labels, n_classes, looked, ONE_FACTOR)


def in_turn(before: Smoothing, strengths: Sequence[str], labels: int) -> list[str]:
    """The strengths of this look: all while labels are few; later "none", the present and every other one.

    Those that were far behind three times in a row wait for every fourth look. With many labels it is "none"
    or "both": others make labelled items alike that new ones are not, and leaving out does not see it.
    """
    if labels < _LEAST_FOR_COLUMNS:
        strengths = [name for name in strengths if not name.startswith(COLUMN)]
    if labels >= MANY and "both" in strengths:
        return [name for name in strengths if name not in ("weak", "medium", "strong")]
    alternatives = [name for name in strengths if name not in ("none", before.strength)]
    if labels >= IN_TURNS:
        alternatives = alternatives[before.looks % 2 :: 2]
    if before.looks % _AGAIN:
        alternatives = [name for name in alternatives if before.behind.get(name, 0) < _HOPELESS]
    return list(dict.fromkeys(("none", before.strength, *alternatives)))


def choose(
    before: Smoothing, strengths: Sequence[str], judge: Callable[[str], Floats], labels: int
) -> Smoothing:
    """Compare strengths on the same labels, and move only where one is clearly better.

    Args:
        before: what is in use.
        strengths: to try; `in_turn`.
        judge: strength -> [n] leave-one-out log-likelihoods.
        labels: how many there are.
    """
    trials: dict[str, Floats] = {}
    failed: dict[str, str] = {}
    stands = labels < MANY or before.strength in strengths
    present = before.strength if stands else "both"
    for name in dict.fromkeys((present, *strengths)):
        try:
            losses = -judge(name)
        except (InputError, ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            failed[name] = str(error) or type(error).__name__
            continue
        if np.isfinite(losses).all():
            trials[name] = losses
        else:
            failed[name] = "its likelihood is not finite"
    best = present if present in trials else "none"
    for name in (name for name in strengths if name in trials):
        errors = _OF_COLUMNS if name.startswith(COLUMN) else _STANDARD_ERRORS
        if best not in trials or clearly_less(trials[name], trials[best], errors):
            best = name
    behind = dict(before.behind)
    for name, losses in trials.items():
        far = best in trials and clearly_less(trials[best], losses, _FAR_BEHIND)
        behind[name] = behind.get(name, 0) + 1 if far else 0
    losses_of = {name: float(losses.mean()) for name, losses in trials.items()}
    return Smoothing(
        best, labels, losses_of, before.looks + 1, failed, {k: n for k, n in behind.items() if n}
    )


class NeighbourhoodBuild:
    """A neighbourhood that is made beside the work, once.

    Args:
        neighbourhood: of the pool.

    Attributes:
        fraction: made so far.
        problem: why it was not made; "" where it was, or still is being made.
    """

    def __init__(self, neighbourhood: Neighbourhood) -> None:
        self.neighbourhood = neighbourhood
        self.fraction = 0.0
        self.problem = ""
        self._lock = Lock()
        self._begun: Thread | None = None
        self._ended = Event()

    def ready(self) -> bool:
        """True if everything is at hand; begins the work where nobody has, and does not wait for much."""
        if self.neighbourhood.is_kept() or len(self.neighbourhood) <= AT_ONCE:
            return True
        with self._lock:
            if self._begun is None and not self.problem:
                self._begun = Thread(target=self._make, name="neighbours")
                self._begun.start()
        return False

    @property
    def at_hand(self) -> bool:
        """True if a graph is there, or is made in no time; nothing is begun."""
        graph = self.neighbourhood
        return not graph.too_few and (len(graph) <= AT_ONCE or graph.is_kept())

    @property
    def running(self) -> bool:
        """True if it is being made."""
        return self._begun is not None and self._begun.is_alive()

    def cancel(self) -> None:
        """End the work at its next step; the pool is then without neighbours until it is opened again."""
        self._ended.set()

    def wait(self) -> None:
        """Until the work has ended."""
        if self._begun is not None:
            self._begun.join()

    def _make(self) -> None:
        try:
            with watched(self._report):
                self.neighbourhood.make()
        except _Cancelled:
            self.problem = "cancelled"
        except InputError as error:
            self.problem = str(error)
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"
            _log.exception("The graph of neighbours cannot be made")

    def _report(self, fraction: float, message: str) -> None:
        self.fraction = fraction
        # a program that ends waits for this thread, which a library's C++ must not be cut short in
        if self._ended.is_set() or not main_thread().is_alive():
            raise _Cancelled


class _Cancelled(Exception):
    pass


def seen_of(pool: Pool, state: Mapping[str, Array]) -> Seen | None:
    """The pool as the model of a round's state sees it; None where that is as it is.

    Args:
        pool: of the round, with its split.
        state: of the round.
    """
    strength = Smoothing.of_state(state).strength
    return None if strength == "none" else Neighbourhood(pool).seen(strength)


def leans_by_itself(classifier: Any, options: Mapping[str, Any]) -> str:
    """The option `neighbours` where nothing is said: a model that chooses its geometry chooses this too."""
    return "auto" if classifier == "large-margin" and options.get("choice") == "auto" else "none"
