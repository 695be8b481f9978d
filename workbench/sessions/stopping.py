"""Advice on when to stop asking. It advises; nothing here ever stops anything.

A rule looks at what was observed after each round and says (stop?, why), and it has a value for each
round that can be drawn. Your own: "package.module:function" of the history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.errors import InputError
from workbench.pools.pool import Pool
from workbench.progress import FitCallback
from workbench.registry import Entry, Registry, load_own
from workbench.sessions.fitted_model import FittedModel
from workbench.sessions.guessing import run_mean
from workbench.sessions.learner import Learner
from workbench.sessions.rounds import Round, labelled_at
from workbench.sessions.spec import RunSpec

STOP_SET = 1000
"""At most this many items are looked at after each round, the same ones all the time."""


@dataclass(frozen=True, eq=False)
class Observation:
    """What is known after a round.

    Attributes:
        number: of the round.
        n_labelled: labels so far.
        predicted: [M] class names of the stop set's items as the model sees them: names, as codes
            change when classes are added or merged.
        uncertainty: mean of 1 - max p over the stop set.
        error: on held-out items, NaN without any.
        n_test: how many those were.
    """

    number: int
    n_labelled: int
    predicted: Array
    uncertainty: float
    error: float = float("nan")
    n_test: int = 0


History = Sequence[Observation]
Advice = tuple[bool, str]


class Rule(Protocol):
    """A stopping rule; `limit`, where it has one, is the value at which it says stop."""

    def __call__(self, history: History) -> Advice:
        """Whether to stop, and why or why not."""

    def values(self, history: History) -> Floats:
        """[R] what the rule looks at, round by round; NaN where it cannot say."""


def stop_set(n_items: int, seed: int = 0, closed: Ints | None = None) -> Ints:
    """The items that are watched: a fixed random sample of the pool.

    Args:
        n_items: N.
        seed: of the run or project.
        closed: items left out, such as a test split.

    Returns:
        [M] sorted indices.
    """
    allowed = np.ones(n_items, dtype=bool)
    if closed is not None:
        allowed[closed] = False
    rows = np.flatnonzero(allowed)
    if rows.size <= STOP_SET:
        return rows
    return np.sort(np.random.default_rng([seed, 0x5709]).choice(rows, STOP_SET, replace=False))


def observe(
    model: FittedModel, watched: Ints, *, error: float = float("nan"), n_test: int = 0
) -> Observation:
    """What a round's model says of the watched items.

    Args:
        model: of the round.
        watched: as `stop_set` gives them.
        error: on held-out items.
        n_test: how many those were.
    """
    p = model.predict_proba(watched)
    names = np.asarray(model.classes)
    return Observation(
        model.number,
        model.n_labelled,
        names[p.argmax(axis=1)],
        float(1.0 - p.max(axis=1).mean()) if len(p) else float("nan"),
        error,
        n_test,
    )


def replay(
    spec: RunSpec, pool: Pool, rounds: Sequence[Round], callback: FitCallback | None = None
) -> Iterator[Observation]:
    """What was known after each round of a run: its models, fitted again on the labels they had.

    Args:
        spec: of the run.
        pool: with the split of the spec's seed.
        rounds: of the run, in order from 0.
        callback: as in `simulate`.

    Yields:
        A round's observation, of the same posterior as in the run.
    """
    mean = run_mean(pool, spec.guess)
    learner = Learner(pool, spec.classifier, spec.options, seed=spec.seed, mean=mean)
    watched = stop_set(len(pool), spec.seed, None if pool.test is None else pool.test.test)
    state = None
    for one in rounds:
        items, codes = labelled_at(rounds, one.number)
        model = learner.fit(items, codes, number=one.number, previous=state, callback=callback)
        state = model.state
        yield observe(model, watched, error=one.error, n_test=one.n_test)


@dataclass(frozen=True)
class Budget:
    """Stop when the labels are spent.

    Attributes:
        labels: how many there are to spend, the first ones counted.
    """

    labels: int = 100
    limit = 0.0

    def values(self, history: History) -> Floats:
        """Labels left."""
        return np.array([float(self.labels - o.n_labelled) for o in history])

    def __call__(self, history: History) -> Advice:
        """Stop at 0 labels left."""
        left = self.labels - history[-1].n_labelled if history else self.labels
        if left <= 0:
            return True, f"The budget of {self.labels} labels is spent."
        return False, f"{left} of {self.labels} labels are left."


@dataclass(frozen=True)
class OverallUncertainty:
    """Stop when the model is sure of nearly everything (Zhu, Wang and Hovy 2008).

    Attributes:
        threshold: of the mean of 1 - max p.
    """

    threshold: float = 0.05

    @property
    def limit(self) -> float:
        """The threshold."""
        return self.threshold

    def values(self, history: History) -> Floats:
        """The mean uncertainty."""
        return np.array([o.uncertainty for o in history])

    def __call__(self, history: History) -> Advice:
        """Stop below the threshold."""
        if not history or np.isnan(history[-1].uncertainty):
            return False, "No model yet."
        value = history[-1].uncertainty
        if value <= self.threshold:
            return True, f"Mean uncertainty {value:.3f} is at or below {self.threshold:g}."
        return False, f"Mean uncertainty {value:.3f} is above {self.threshold:g}."


@dataclass(frozen=True)
class ClassificationChange:
    """Stop when new labels no longer change predictions (Zhu, Wang and Hovy 2008).

    Attributes:
        share: of the watched items that may still change.
        rounds: in a row.
    """

    share: float = 0.005
    rounds: int = 5

    @property
    def limit(self) -> float:
        """The share."""
        return self.share

    def values(self, history: History) -> Floats:
        """Share of the watched items whose class differs from the round before."""
        return _against_last(history, _share_changed)

    def __call__(self, history: History) -> Advice:
        """Stop when the last rounds are all at or below the share."""
        last = self.values(history)[-self.rounds :]
        if len(history) <= self.rounds or not np.isfinite(last).all():
            return False, f"Fewer than {self.rounds} rounds to look back on."
        if (last <= self.share).all():
            return True, f"At most {last.max():.1%} of predictions changed in each of {self.rounds} rounds."
        return False, f"{last[-1]:.1%} of predictions changed in the last round."


@dataclass(frozen=True)
class Kappa:
    """Stop when consecutive models agree beyond chance (Bloodgood and Vijay-Shanker 2009).

    Attributes:
        threshold: of Cohen's kappa, averaged over the last rounds.
        rounds: how many.
    """

    threshold: float = 0.99
    rounds: int = 3

    @property
    def limit(self) -> float:
        """The threshold."""
        return self.threshold

    def values(self, history: History) -> Floats:
        """Cohen's kappa with the round before."""
        return _against_last(history, cohen_kappa)

    def __call__(self, history: History) -> Advice:
        """Stop when the mean reaches the threshold."""
        last = self.values(history)[-self.rounds :]
        if len(history) <= self.rounds or not np.isfinite(last).all():
            return False, f"Fewer than {self.rounds} rounds to look back on."
        mean = float(last.mean())
        if mean >= self.threshold:
            return True, f"Kappa between rounds is {mean:.3f} on average over {self.rounds} rounds."
        return False, f"Kappa between rounds is {mean:.3f}; {self.threshold:g} would do."


@dataclass(frozen=True)
class HeldOutError:
    """Stop when the error on held-out items is low enough, or no longer falls.

    Attributes:
        target: an error low enough, or 0.
        gain: an improvement worth having.
        rounds: over which it is looked for.
        min_items: fewer held-out items tell nothing.
    """

    target: float = 0.0
    gain: float = 0.005
    rounds: int = 20
    min_items: int = 20

    def values(self, history: History) -> Floats:
        """The error where it was measured on enough items."""
        return np.array([o.error if o.n_test >= self.min_items else np.nan for o in history])

    def __call__(self, history: History) -> Advice:
        """Stop at the target, or when the best of the last rounds gains too little on the best before."""
        values = self.values(history)
        if not len(values) or np.isnan(values[-1]):
            return False, f"Not enough to tell: the error needs {self.min_items} held-out items."
        if values[-1] <= self.target:
            return True, f"The error {values[-1]:.1%} is at or below {self.target:.1%}."
        earlier, last = values[: -self.rounds], values[-self.rounds :]
        if not np.isfinite(earlier).any():
            return False, f"Fewer than {self.rounds} rounds to look back on."
        gained = float(np.nanmin(earlier) - np.nanmin(last))
        if gained < self.gain:
            return True, f"The error fell by {max(gained, 0.0):.1%} in the last {self.rounds} rounds."
        return False, f"The error fell by {gained:.1%} in the last {self.rounds} rounds."


def cohen_kappa(a: Array, b: Array) -> float:
    """Agreement beyond chance of two labellings.

    Args:
        a: [M].
        b: [M].

    Returns:
        At most 1; 1 where both name one and the same class throughout.
    """
    classes, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    first, second = codes[: len(a)], codes[len(a) :]
    shares = [np.bincount(c, minlength=len(classes)) / max(len(a), 1) for c in (first, second)]
    chance = float(shares[0] @ shares[1])
    agreed = float(np.mean(first == second))
    return 1.0 if chance >= 1.0 else (agreed - chance) / (1.0 - chance)


def _against_last(history: History, measure: Callable[[Array, Array], float]) -> Floats:
    values = [float("nan")] if history else []
    values += [_between(measure, before, after) for before, after in pairwise(history)]
    return np.array(values)


# advice in hindsight looks at every beginning of a history, so at each pair many times
@lru_cache(maxsize=1024)
def _between(measure: Callable[[Array, Array], float], before: Observation, after: Observation) -> float:
    same = before.predicted.shape == after.predicted.shape and before.predicted.size > 0
    return measure(before.predicted, after.predicted) if same else float("nan")


def _share_changed(a: Array, b: Array) -> float:
    return float(np.mean(a != b))


STOPPING: Registry[Entry] = Registry(
    "stopping rule",
    [
        Entry("budget", f"{__name__}:Budget", "Budget", "The labels are spent."),
        Entry(
            "overall-uncertainty",
            f"{__name__}:OverallUncertainty",
            "Overall uncertainty",
            "The model is sure of nearly everything. Over-confident models say so too early.",
        ),
        Entry(
            "classification-change",
            f"{__name__}:ClassificationChange",
            "Changed predictions",
            "New labels no longer change what is predicted.",
        ),
        Entry(
            "kappa", f"{__name__}:Kappa", "Kappa between rounds", "Consecutive models agree beyond chance."
        ),
        Entry(
            "held-out-error",
            f"{__name__}:HeldOutError",
            "Held-out error",
            "The error on items never trained on is low enough, or no longer falls.",
        ),
    ],
)


class Advised(NamedTuple):
    """What a rule says of a history.

    Attributes:
        rule: its name.
        stop: what it advises now.
        reason: why.
        values: [R] what it looks at, round by round; empty for a plain function.
        first: number of the first round after which it advised to stop, or None.
        limit: the value at which it says stop, or None where it is not as simple.
    """

    rule: str
    stop: bool
    reason: str
    values: Floats
    first: int | None
    limit: float | None = None


def make_rule(name: str, **options: Any) -> Callable[[History], Advice]:
    """A stopping rule by name.

    Args:
        name: in `STOPPING`, or "package.module:function" of the history (a class is constructed).
        options: of the rule.

    Returns:
        The rule.

    Raises:
        InputError: no such rule, or an option it does not have.
    """
    target = load_own(name, "stopping rule") if ":" in name else STOPPING[name].load()
    if not isinstance(target, type):
        if options:
            raise InputError(f"{name} is a function and has no options.")
        return target
    try:
        return target(**options)
    except TypeError as error:
        raise InputError(f"The stopping rule {name!r} cannot be made: {error}.") from error


def advise(history: History, rule: str | Callable[[History], Advice], **options: Any) -> Advised:
    """What a rule says, now and in hindsight.

    Args:
        history: a round an entry, in order.
        rule: a name or a function.
        options: of a named rule.

    Returns:
        The advice.

    Raises:
        InputError: no such rule, or one that does not answer (bool, text).
    """
    function = make_rule(rule, **options) if isinstance(rule, str) else rule
    name = rule if isinstance(rule, str) else getattr(rule, "__name__", type(rule).__name__)
    first, stop, reason = None, False, "No round yet."
    for end in range(1, len(history) + 1):
        answer = function(history[:end])
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise InputError(f"The stopping rule {name!r} must answer (stop, reason); it said {answer!r}.")
        stop, reason = bool(answer[0]), str(answer[1])
        if stop and first is None:
            first = history[end - 1].number
    values = getattr(function, "values", None)
    given = np.empty(0) if values is None else values(history)
    return Advised(name, stop, reason, given, first, getattr(function, "limit", None))
