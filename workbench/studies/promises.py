"""Number of checks for a promise: simulated projects, with and without looking after every answer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.certificates import first_reached, log_wealth
from workbench.progress import OnProgress, quiet

PROJECTS = 1_000
SIZE = 10_000
"""Labels of each project."""
ALLOWED, CONFIDENCE = 0.05, 0.95
LAST = 400
"""Checks at which a project ends."""


class Promises(NamedTuple):
    """Shares of simulated projects that have made their promise.

    Attributes:
        checks: [T] from 1 on.
        once: [T] by the fixed test, looked at once, after so many checks.
        peeked: [T] by the fixed test, looked at after every answer until then.
        anytime: [T] by the test that may be looked at.
        wrong: share of wrong labels.
        rule: checks that the fixed test needs where none is wrong.
        needed: the same of the other.
        fooled: projects of 1,000 with one wrong label too many that peeking lets pass.
    """

    checks: Ints
    once: Floats
    peeked: Floats
    anytime: Floats
    wrong: float
    rule: int
    needed: int
    fooled: int


def promises(wrong: float, report: OnProgress = quiet) -> Promises:
    """1,000 projects of 10,000 labels, each checked up to 400 times.

    Args:
        wrong: labels of 100 that are wrong; of 5, one more, so that the promise of 5 % is just broken.
        report: called with progress.
    """
    report(0.0, "drawing")
    max_wrong = _most_wrong()
    count = round(wrong / 100 * SIZE)
    answers = _drawn(count + (wrong / 100 == ALLOWED))
    passes = answers.cumsum(axis=1) <= max_wrong
    ever = np.logical_or.accumulate(passes, axis=1)
    reached = first_reached(log_wealth(answers, SIZE, ALLOWED), CONFIDENCE)
    checks = np.arange(1, LAST + 1)
    anytime = ((reached[:, None] > 0) & (reached[:, None] <= checks)).mean(axis=0)
    broken = _drawn(round(ALLOWED * SIZE) + 1).cumsum(axis=1) <= max_wrong
    none = np.zeros(LAST, dtype=bool)
    return Promises(
        checks,
        passes.mean(axis=0),
        ever.mean(axis=0),
        anytime,
        wrong / 100,
        int(np.argmax(max_wrong >= 0)) + 1,
        int(first_reached(log_wealth(none, SIZE, ALLOWED), CONFIDENCE)),
        int(broken.any(axis=1).sum()),
    )


def _most_wrong() -> Ints:
    """[T] wrong answers with which the fixed, exact binomial test still passes; -1 where none will do."""
    from scipy.stats import binom

    checks = np.arange(1, LAST + 1)[:, None]
    counts = np.arange(LAST // 8)
    return np.asarray((binom.cdf(counts, checks, ALLOWED) <= 1.0 - CONFIDENCE).sum(axis=1) - 1)


def _drawn(wrong: int) -> Array:
    """[projects, T] answers, drawn without replacement."""
    rng = np.random.default_rng(wrong)
    answers = np.zeros((PROJECTS, LAST), dtype=bool)
    remainder = np.full(PROJECTS, wrong)
    for t in range(LAST):
        answers[:, t] = rng.random(PROJECTS) < remainder / (SIZE - t)
        remainder -= answers[:, t]
    return answers
