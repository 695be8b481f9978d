"""Quality of a model on items it was never trained on."""

from __future__ import annotations

import math
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

if TYPE_CHECKING:
    from workbench.sessions.fitted_model import FittedModel

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
