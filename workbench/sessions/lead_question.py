"""Question of several yes / no questions that chooses a geometry for all."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from workbench.classifiers import protocols
from workbench.classifiers.choice import ONE_FACTOR, due
from workbench.sessions.published import Published
from workbench.sessions.sharing import Beside

SHARED_FROM = 4
"""Yes / no questions from which on one chooses for all; three choose for themselves, at thrice the cost."""


def rarer(published: Published | None) -> int:
    """Number of labels of a fit of the class that has the fewest: what a choice by it rests on."""
    return 0 if published is None else fewest(published.training)


def fewest(training: Mapping[int, int]) -> int:
    """Number of some items' codes of the rarer of two classes."""
    counts = np.bincount(np.fromiter(training.values(), dtype=np.int64, count=len(training)), minlength=2)
    return int(counts.min())


def led_by(
    training: Mapping[int, int],
    chosen: Mapping[str, Any],
    own: Published | None,
    others: Iterable[Published | None],
) -> Beside:
    """Model whose geometry a question takes that is about to be fitted.

    The newest choice, until it is time for the next; then who has most labels of the rarer answer chooses.

    Args:
        training: item -> code, of this one.
        chosen: classifier and options of this one.
        own: its newest fit.
        others: those of the others, as they are in use in this process.
    """
    able = [candidate for candidate in others if candidate is not None and _may_lead(candidate, chosen)]
    own_choice = None if own is None else protocols.choice_of(own.model.estimator)
    n_labels = 0 if own_choice is None or own_choice.own else own_choice.labels
    fresh = max(able, key=lambda candidate: (_labels(candidate), rarer(candidate)), default=None)
    if (
        fresh is not None
        and _labels(fresh) >= n_labels
        and not due(len(training), 2, _labels(fresh), ONE_FACTOR)
    ):
        same = _labels(fresh) == n_labels and fewest(training) >= rarer(fresh)
        return Beside(None if same else fresh.model)
    best = max(able, key=rarer, default=None)
    return Beside(best.model if best is not None and rarer(best) > fewest(training) else None)


def _labels(published: Published) -> int:
    choice = protocols.choice_of(published.model.estimator)
    return 0 if choice is None else choice.labels


def _may_lead(published: Published, inputs: Mapping[str, Any]) -> bool:
    """True if it is a model of the same kind, and has chosen something that others can use."""
    choice = protocols.choice_of(published.model.estimator)
    same = all(published.chosen[name] == inputs[name] for name in ("classifier", "options"))
    return same and choice is not None and not choice.own
