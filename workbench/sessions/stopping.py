"""Advice on when to stop asking. It advises; nothing here ever stops anything.

A rule looks at what was observed after each round and says (stop?, why), and it has a value for each
round that can be drawn. Your own: "package.module:function" of the history.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

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
from workbench.shares import in_percent

STOP_SET = 1000
"""At most this many items are looked at after each round, the same ones all the time."""


@dataclass(frozen=True, eq=False)
class Observation:
    """Facts after a round.

    Attributes:
        number: of the round.
        n_labelled: labels so far.
        predicted: [M] class names of the stop set's items as the model sees them: names, as codes
            change when classes are added or merged.
    """

    number: int
    n_labelled: int
    predicted: Array


History = Sequence[Observation]
Advice = tuple[bool, str]


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


def observe(model: FittedModel, watched: Ints) -> Observation:
    """Predictions of a round's model for the watched items.

    Args:
        model: of the round.
        watched: as `stop_set` gives them.
    """
    codes = model.predict_proba(watched).argmax(axis=1)
    return Observation(model.number, model.n_labelled, np.asarray(model.classes)[codes])


def replay(
    spec: RunSpec, pool: Pool, rounds: Sequence[Round], callback: FitCallback | None = None
) -> Iterator[Observation]:
    """Facts after each round of a run: its models, fitted again on the labels they had.

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
    for fit_round in rounds:
        items, codes = labelled_at(rounds, fit_round.number)
        model = learner.fit(items, codes, number=fit_round.number, previous=state, callback=callback)
        state = model.state
        yield observe(model, watched)


@dataclass(frozen=True)
class ClassificationChange:
    """Stop when new labels no longer change predictions (Zhu, Wang and Hovy 2008).

    It never speaks while the model names one class for everything: such a model has not begun to learn.

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
        """Share of the watched items whose class differs from the round before; NaN with one class alone."""
        shares = [_changed(before, after) for before, after in pairwise(history)]
        return np.array([float("nan")] * bool(history) + shares)

    def __call__(self, history: History) -> Advice:
        """Stop when the last rounds are all at or below the share."""
        # of every beginning of a history in hindsight: the end of each is enough
        last = self.values(history[-self.rounds - 1 :])[-self.rounds :]
        if len(history) <= self.rounds or not np.isfinite(last).all():
            return (
                False,
                f"Fewer than {self.rounds} rounds to look back on in which more than one class is named.",
            )
        if (last <= self.share).all():
            return (
                True,
                f"At most {in_percent(last.max())} of predictions changed in each of {self.rounds} rounds.",
            )
        return False, f"{in_percent(last[-1])} of predictions changed in the last round."


def _changed(before: Observation, after: Observation) -> float:
    same = before.predicted.shape == after.predicted.shape and before.predicted.size > 0
    if not same or (after.predicted == after.predicted[0]).all():
        return float("nan")
    return float(np.mean(before.predicted != after.predicted))


STOPPING: Registry[Entry] = Registry(
    "stopping rule",
    [
        Entry(
            "classification-change",
            f"{__name__}:ClassificationChange",
            "Changed predictions",
            "New labels no longer change what is predicted.",
        ),
    ],
)


class Advised(NamedTuple):
    """Verdict of a rule on a history.

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
    """Verdict of a rule, now and in hindsight.

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
    series = np.empty(0) if values is None else values(history)
    return Advised(name, stop, reason, series, first, getattr(function, "limit", None))
