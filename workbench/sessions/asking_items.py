"""Items that are looked at next where several questions are asked about each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from workbench.arrays import Array
from workbench.sessions.asking import Ask, Questions, new_ask
from workbench.store import ProjectState

if TYPE_CHECKING:
    from workbench.sessions.published import Published

OVER = ("largest", "sum")
TOGETHER, EVALUATION = "together", "evaluation"
_BY_CHANCE = ("policy", "uniform", "cold-start")
"""Roles that stand for a draw that was not to measure; others are asked before any utility is looked at."""


@dataclass(frozen=True)
class ItemAsk:
    """An item to look at once, with every question that is open about it.

    Attributes:
        item: index into the pool.
        asks: name of a question -> what is asked, as `Session.tell` takes it.
    """

    item: int
    asks: Mapping[str, Ask]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A question as of one moment.

    Attributes:
        name: of the question.
        questions: chooses what it would ask by itself.
        state: its answers.
        published: its model; None before the first fit.
    """

    name: str
    questions: Questions
    state: ProjectState
    published: Published | None

    def expected_error(self, item: int) -> float:
        """Probability that the model's class of an item is wrong; of an even guess before the first fit."""
        if self.published is None:
            return 1.0 - 1.0 / max(2, len(self.state.classes))
        return 1.0 - float(self.published.model.probabilities_of(item).max())


def plan(candidates: Sequence[Candidate], annotator: str, k: int, moment: float, over: str) -> list[ItemAsk]:
    """Up to k items with their questions; new ones are without an expiry.

    Args:
        candidates: the questions that are asked.
        annotator: who is asked.
        k: how many items.
        moment: epoch seconds now.
        over: "largest" or "sum" of the expected errors of an item's open questions.
    """
    leased_items = {
        item
        for candidate in candidates
        for item in candidate.questions.leased(candidate.state, moment, annotator)
    }
    plans: dict[int, dict[str, Ask]] = {}
    for candidate in candidates:
        for ask in candidate.questions.standing(candidate.state, annotator, leased_items):
            plans.setdefault(ask.item, {})[candidate.name] = ask
    # what the person chose stays first, also where another question of theirs waits for other items
    plans = dict(sorted(plans.items(), key=lambda entry: not _chosen(entry[1]))[:k])
    is_open = {candidate.name: _open(candidate, leased_items) for candidate in candidates}
    exclusions = leased_items | set(plans)
    queues: dict[str, list[Ask]] = {candidate.name: [] for candidate in candidates}
    if len(plans) < k or any(_lacking(candidates, is_open, item, asks) for item, asks in plans.items()):
        for candidate in candidates:
            queues[candidate.name] = candidate.questions.fresh(
                candidate.state, annotator, k, exclusions, candidate.published
            )
    for item, asks in plans.items():
        _complete(candidates, is_open, queues, item, asks)
    while len(plans) < k:
        best_ask = _best(candidates, queues, is_open, over)
        if best_ask is None:
            break
        _complete(candidates, is_open, queues, best_ask.item, plans.setdefault(best_ask.item, {}))
    # in the order of the questions, whichever of them brought the item up: a browser calls it by the first
    names = [candidate.name for candidate in candidates]
    return [
        ItemAsk(item, {name: asks[name] for name in names if name in asks}) for item, asks in plans.items()
    ]


def _chosen(asks: Mapping[str, Ask]) -> bool:
    """True if the person asked for an item."""
    return any(ask.role == "chosen" for ask in asks.values())


def _open(candidate: Candidate, leased_items: set[int]) -> Array:
    """[N] whether an item may be asked about."""
    free = np.zeros(len(candidate.questions.pool), dtype=bool)
    free[candidate.questions.askable(candidate.state)] = True
    free[np.fromiter(leased_items, dtype=np.int64, count=len(leased_items))] = False
    return free


def _lacking(
    candidates: Sequence[Candidate], is_open: Mapping[str, Array], item: int, asks: Mapping[str, Ask]
) -> list[Candidate]:
    """The questions that are open about an item and not asked yet."""
    return [
        candidate for candidate in candidates if candidate.name not in asks and is_open[candidate.name][item]
    ]


def _complete(
    candidates: Sequence[Candidate],
    is_open: Mapping[str, Array],
    queues: Mapping[str, list[Ask]],
    item: int,
    asks: dict[str, Ask],
) -> None:
    """Ask every question that is open about an item, as it is looked at anyway.

    It takes the place of what chance or the model would have had the question ask next, never that of a
    draw to measure on: such a draw is still to come.
    """
    for candidate in candidates:  # what it would have asked of the item by itself, whatever else is open
        proposal = next((ask for ask in queues[candidate.name] if ask.item == item), None)
        if proposal is not None and candidate.name not in asks:
            queues[candidate.name].remove(proposal)
            asks[candidate.name] = proposal
    for candidate in _lacking(candidates, is_open, item, asks):
        queue = queues[candidate.name]
        place = next((ask for ask in queue if ask.role in (*_BY_CHANCE, EVALUATION)), None)
        ask = replace(new_ask(item, TOGETHER), counted=place is None or place.role != EVALUATION)
        if place is not None and ask.counted:
            queue.remove(place)
        if candidate.published is not None:
            ask = candidate.questions.as_asked(
                replace(ask, round=candidate.published.model.number), candidate.published
            )
        asks[candidate.name] = ask


def _best(
    candidates: Sequence[Candidate],
    queues: Mapping[str, list[Ask]],
    is_open: Mapping[str, Array],
    over: str,
) -> Ask | None:
    """Next question among what the questions propose."""
    heads = [queues[candidate.name][0] for candidate in candidates if queues[candidate.name]]
    first = next((ask for ask in heads if ask.role not in _BY_CHANCE), None)
    if first is not None or not heads:
        return first
    best, worth = heads[0], -1.0
    for ask in {ask.item: ask for ask in reversed(heads)}.values():
        errors = [
            candidate.expected_error(ask.item)
            for candidate in candidates
            if is_open[candidate.name][ask.item]
        ]
        value = max(errors, default=0.0) if over == "largest" else sum(errors)
        if value > worth:
            best, worth = ask, value
    return best
