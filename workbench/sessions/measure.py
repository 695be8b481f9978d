"""Quality of a model on items it was never trained on, and the verdict on it in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.classifiers.protocols import left_out_of
from workbench.metrics import (
    balanced_error_rate,
    brier_score,
    checks,
    error_rate,
    expected_calibration_error,
    macro_f1,
    negative_log_likelihood,
    share_interval,
)
from workbench.sessions.drawing import MEASURE, generator
from workbench.shares import in_percent

if TYPE_CHECKING:
    from workbench.pools.pool import Pool
    from workbench.sessions.fitted_model import FittedModel
    from workbench.sessions.published import Published
    from workbench.store import ProjectState

ENOUGH = checks.ENOUGH
HINTED = 10
"""Items from which on the interval is shown, though not yet the error."""


@dataclass(frozen=True)
class Evaluation:
    """An error with its 95 % interval (Wilson).

    Attributes:
        n: items it was measured on.
        wrong: how many predictions were wrong.
        error: wrong / n; NaN for n = 0.
        low: lower end.
        high: upper end.
        source: "test split" or "evaluation set".
        among: how many items there are to measure on, where n of them were drawn; else n.
    """

    n: int
    wrong: int
    error: float
    low: float
    high: float
    source: str
    among: int = 0

    @property
    def where(self) -> str:
        """Items that it was measured on, in words."""
        of = f" of {self.among:,}" if self.among > self.n else ""
        return f"{self.n:,}{of} items of the {self.source}"

    @property
    def enough(self) -> bool:
        """True if n allows to tell anything (20 or more)."""
        return self.n >= ENOUGH

    @property
    def hinted(self) -> bool:
        """True if n allows to tell the interval (10 or more)."""
        return self.n >= HINTED

    @classmethod
    def of(cls, n: int, wrong: int, source: str, among: int = 0) -> Evaluation:
        """From counts."""
        if n == 0:
            return cls(0, 0, math.nan, 0.0, 1.0, source)
        share = share_interval(wrong, n)
        return cls(n, wrong, share[0], share[1], share[2], source, max(n, among))


def measured_items(items: Ints, seed: int, most: int) -> Ints:
    """Those of the test items that an error is measured on: the same ones in every round.

    Args:
        items: [n] of the test split.
        seed: of the run or project.
        most: how many at most; 0 takes all.

    Returns:
        [min(n, most)] of them, in their order; a function of the arguments alone.
    """
    if not most or items.size <= most:
        return items
    return items[np.sort(generator(seed, 0, MEASURE).choice(items.size, most, replace=False))]


def held_out(
    pool: Pool, state: ProjectState, settings: Mapping[str, Any], published: Published | None = None
) -> tuple[Ints, Ints]:
    """Items of a project to measure on and the codes of their classes; never trained on.

    Those of the pool's test split (where it is large, a sample drawn by the project's seed), else of the
    evaluation set. Items that were confirmed in a grid are the model's surest, so they are not among them.

    Args:
        pool: of the project.
        state: of the project.
        settings: of the project.
        published: the fit that is measured: codes are its own, whatever became of the classes since, and
            items of classes that it does not know are left out. None means the codes of `state`.
    """
    position = {key: code for code, key in enumerate(state.keys)}

    def code_of(key: str) -> int:
        return position.get(state.resolve(key), -1) if published is None else published.code_of(key, state)

    if pool.test is not None and pool.truth is not None:
        by_code = [code_of(name) for name in pool.classes]
        items = measured_items(pool.test.test, int(settings["seed"]), int(settings.get("measured", 0)))
        truth = pool.truth[items]
        codes = np.where(truth >= 0, np.asarray([*by_code, -1])[truth], -1)
    else:
        pairs = [(item, code_of(state.standing[item].key)) for item in measured_on(state)]
        items, codes = np.asarray(sorted(pairs), dtype=np.int64).reshape(-1, 2).T
    mask = codes >= 0
    if published is not None:
        mask &= np.isin(items, published.model.in_time(items))
    return items[mask], codes[mask]


def measured_on(state: ProjectState) -> list[int]:
    """Items of the evaluation set that count: labelled, agreed on, and not confirmed in a grid.

    Args:
        state: of a project.
    """
    return [
        item
        for item in state.evaluation
        if item in state.codes and item not in state.undecided and state.standing[item].role != "confirmed"
    ]


def signs_of(
    model: FittedModel, before: FittedModel | None = None, items: Ints | None = None
) -> dict[str, float]:
    """Quality of a fit, from the pool and its labels alone.

    Args:
        model: the fitted one.
        before: the fit before it, of the same classes.
        items: of the pool to look at; all unless given.

    Returns:
        `rounds.SIGNS`: mean of 1 - max p over the pool; the leave-one-out error, where the model has one;
        the share of predictions that differ from those before, where more than one class is named.
    """
    p = model.probabilities if items is None else model.probabilities_at(items)
    signs = {"uncertainty": float(np.mean(1.0 - p.max(axis=1)))}
    left_out = left_out_of(model.estimator)
    if left_out is not None:
        wrong = left_out.means.argmax(axis=1) != model.codes[left_out.rows]
        signs["left_out_error"] = float(np.mean(wrong))
    codes = p.argmax(axis=1)
    # a model that names one class for everything has not begun to learn, so its standing still says nothing
    if before is not None and before.classes == model.classes and (codes != codes[:1]).any():
        rows = np.arange(len(p)) if items is None else items
        both = np.isin(rows, before.in_time(rows))
        old = before.probabilities if items is None and both.all() else before.probabilities_at(rows[both])
        if both.any():
            signs["changed"] = float(np.mean(codes[both] != old.argmax(axis=1)))
    return signs


def metrics_of(truth: Ints, probabilities: Floats) -> dict[str, Any]:
    """The figures of a `Round`.

    Args:
        truth: [n] class codes.
        probabilities: [n, C].

    Returns:
        n_test, error, nll, brier, ece, balanced_error, macro_f1; only n_test for n = 0.
    """
    if truth.size == 0:
        return {"n_test": 0}
    predicted = np.asarray(probabilities).argmax(axis=1)
    return {
        "n_test": int(truth.size),
        "error": error_rate(truth, predicted),
        "nll": negative_log_likelihood(truth, probabilities),
        "brier": brier_score(truth, probabilities),
        "ece": expected_calibration_error(truth, probabilities),
        "balanced_error": balanced_error_rate(truth, predicted),
        "macro_f1": macro_f1(truth, predicted),
    }


SURE = 0.25
"""Doubt above which an item is in doubt, and error above which no model is called sure."""
TOLD = 100
"""Measured items from which on a sentence may say that a model is good."""

RARE = 0.1
"""Share of the labels below which a class is rare: an error over all items says little of it."""
_LABELS = 30  # from which on a class can be called rare
ASKED_LATELY = 50
"""Questions of which the share of a class is told."""
_NAMED = 3  # classes that a sentence names


@dataclass(frozen=True)
class ClassRecall:
    """A class in the labels, among the measured items and in the questions.

    Attributes:
        name: of the class.
        labels: labels of it.
        of: labels of all classes.
        n_classes: that there are.
        measured: measured items of it.
        found: of these, those that the model gives that class.
        asked: questions that the policy chose lately.
        hits: of these, those that were of the class.
        sample: measured items of all classes.
    """

    name: str
    labels: int
    of: int
    n_classes: int
    measured: int
    found: int
    asked: int = 0
    hits: int = 0
    sample: int = 0

    @property
    def is_rare(self) -> bool:
        """True where it is under 10 % of the labels, and under half of what each of equal classes has.

        A policy may ask little about a class that is frequent, and much about one that is rare; the measured
        items are drawn at random. So a class is not called rare where it has that share of 100 of them or
        more, and it is where they tell that it has less than twice that share.
        """
        few = min(RARE, 0.5 / self.n_classes)
        is_frequent = self.sample >= TOLD and self.measured >= few * self.sample
        is_seldom = Evaluation.of(self.sample, self.measured, "").high < 2 * few
        return self.of >= _LABELS and (self.labels < few * self.of or is_seldom) and not is_frequent

    @property
    def line(self) -> str:
        """Its line: "8 labels of 260, 0 of 2 measured found, 21 of your last 50 questions"."""
        recall_words = (
            f"{self.found:,} of {self.measured:,} measured found" if self.measured else "none measured yet"
        )
        line = f"{self.labels:,} of {self.of:,} labels, {recall_words}"
        return f"{line}, {self.hits:,} of the last {self.asked:,} questions" if self.asked else line


def class_recalls(
    classes: Sequence[str],
    labels: Iterable[str],
    measured: Iterable[tuple[str, str]],
    asked: Sequence[str] = (),
) -> tuple[ClassRecall, ...]:
    """Every class in the labels, among the measured items and in the questions.

    Args:
        classes: their names.
        labels: class of each label.
        measured: (its class, the model's class) of each measured item.
        asked: classes of the questions that the policy chose lately.

    Returns:
        One a class, in their order.
    """
    label_counts, hits, pairs = Counter(labels), Counter(asked), list(measured)
    measured_counts, found_counts = Counter(name for name, _ in pairs), Counter(a for a, b in pairs if a == b)
    of = sum(label_counts.values())
    return tuple(
        ClassRecall(
            name,
            label_counts[name],
            of,
            len(classes),
            measured_counts[name],
            found_counts[name],
            len(asked),
            hits[name],
            len(pairs),
        )
        for name in classes
    )


@dataclass(frozen=True)
class ModelVerdict:
    """Verdict on a model: every sentence that judges one comes from here.

    Below `TOLD` measured items none promises anything; from there on none promises more than the upper end of
    what was measured.

    Attributes:
        measured: its error on items that it never learnt from.
        doubt: the share of the measured items that the model itself expects to be wrong; NaN without any.
        classes: each in labels, measured items and questions; empty where it is not known.
    """

    measured: Evaluation
    doubt: float = math.nan
    classes: tuple[ClassRecall, ...] = ()

    @property
    def rare(self) -> tuple[ClassRecall, ...]:
        """Classes that are rare in the labels."""
        return tuple(recall for recall in self.classes if recall.is_rare)

    @property
    def balanced_error(self) -> float:
        """Mean over the measured classes of the share that was not found; NaN where none is measured."""
        missed = [1.0 - recall.found / recall.measured for recall in self.classes if recall.measured]
        return sum(missed) / len(missed) if missed else math.nan

    @property
    def unseen(self) -> str:
        """A few words on the classes of which nothing was found, or nothing measured; "" without any."""
        missed = [
            f"{recall.name} (0 of {recall.measured:,})"
            for recall in self.classes
            if recall.measured and not recall.found
        ]
        unknown = [recall.name for recall in self.classes if not recall.measured]
        parts = [f"it found none of {_named(missed)}"] if missed else []
        parts += [f"nothing of {_named(unknown)} is measured yet"] if unknown else []
        return ", and ".join(parts)

    @property
    def told(self) -> bool:
        """True where enough is measured to say that a model is good (100 items or more)."""
        return self.measured.n >= TOLD

    @property
    def boasts(self) -> bool:
        """True where the model expects less to be wrong than chance allows for what was measured."""
        return self.measured.hinted and self.doubt < self.measured.low

    @property
    def between(self) -> str:
        """The measured interval: "of 30 measured, between 4 and 31 % are wrong"."""
        interval = self.measured
        if not interval.n:
            return "nothing is measured yet"
        ends = f"{100 * interval.low:.0f} and {in_percent(interval.high, 0)}"
        return f"of {interval.n:,} measured, between {ends} are wrong"

    @property
    def at_most(self) -> str:
        """The upper end, which is all that is promised: "at most 8 % wrong, as 150 measured items tell"."""
        interval = self.measured
        return f"at most {_upwards(interval.high)} % wrong, as {interval.n:,} measured items tell"

    @property
    def caution(self) -> str:
        """Sentence where less was measured than tells, or more was wrong than the model expects; else ""."""
        if self.boasts:
            sentence = f"It expects {in_percent(self.doubt, 0)} to be wrong"
            return f"{sentence}, but {self.between}: do not trust its doubts yet."
        return "" if self.told else f"Too few to tell whether that is so: {self.between}."

    def of_no_doubt(self, n: int) -> str:
        """A sentence for a model that doubts no open item.

        Args:
            n: open items.
        """
        if self.told and not self.boasts and not self.unseen and self.measured.high <= SURE:
            return (
                f"The model is sure of all {n:,} open items: none has a doubt above 25 %, and {self.at_most}."
            )
        of_classes = f"; {self.unseen}" if self.unseen else ""
        why = self.caution or f"As far as measured: {self.between}{of_classes}."
        return f"The model has no doubt above 25 % about any of {n:,} open items. {why}"

    def of_no_change(self, fits: int, changed: float) -> str:
        """A few words for fits that changed hardly a prediction, so that labelling may end.

        Args:
            fits: number of fits.
            changed: the largest share of predictions that one of them changed.
        """
        sentence = f"the last {fits} fits changed at most {math.ceil(1_000 * changed)} of 1,000 predictions"
        if self.told and self.unseen:
            return f"{sentence}, and {self.at_most}, but {self.unseen}: go on"
        if self.told:
            return f"{sentence}, and {self.at_most}: this may be enough"
        return f"{sentence}; {self.between}: too few to tell"

    def of_the_rest(self, n: int) -> str:
        """A few words on the number of wrong labels among those that the machine would give.

        Args:
            n: of the labels.
        """
        interval = self.measured
        if not interval.n:
            return "but nobody has measured how many of them are wrong"
        low, high = math.floor(interval.low * n), math.ceil(interval.high * n)
        if self.told:
            return f"at most about {high:,} of them wrong, as {interval.n:,} measured items tell"
        return f"between {low:,} and {high:,} of them wrong ({interval.n:,} measured: too few to tell)"


def _named(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    further = f" and {more:,} more {'class' if more == 1 else 'classes'}" if more > 0 else ""
    return ", ".join(names[:_NAMED]) + further


def _upwards(share: float) -> str:
    """A share in per cent, rounded up, so that no sentence promises more than was measured."""
    up = math.ceil(100 * share - 1e-9) if share >= 0.1 else math.ceil(1_000 * share - 1e-9) / 10
    return f"{up:g}"
