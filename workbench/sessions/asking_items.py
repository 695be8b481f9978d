"""Items that are looked at next where several questions are asked about each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from workbench.arrays import Array
from workbench.sessions.asking import Questions, new_ask
from workbench.store import Ask, ProjectState

if TYPE_CHECKING:
    from workbench.sessions.published import Published

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


@dataclass(eq=False)
class Candidate:
    """A question as of one moment.

    Attributes:
        name: of the question.
        questions: chooses what it would ask by itself.
        state: its answers.
        published: its model; None before the first fit.
        leased: items that somebody else is being asked about.
        queue: what it would ask next, best first.
    """

    name: str
    questions: Questions
    state: ProjectState
    published: Published | None
    leased: set[int] = field(default_factory=set)
    queue: list[Ask] = field(default_factory=list)

    @cached_property
    def is_open(self) -> Array:
        """[N] mask of the items that may be asked about."""
        mask = self.questions.open_items(self.state)
        mask[list(self.leased)] = False
        return mask

    def expected_error(self, item: int) -> float:
        """Probability that the model's class of an item is wrong; of an even guess where it has none."""
        p = None if self.published is None else self.published.model.quick_probabilities(item)
        return 1.0 - (1.0 / max(2, len(self.state.classes)) if p is None else float(p.max()))

    def complete(self, item: int, asks: dict[str, Ask]) -> None:
        """Ask the question about an item that is looked at anyway, where it is open.

        What it would have asked of the item by itself comes first. Another question takes the place of what
        chance or the model would have had it ask next, never that of a draw to measure on: such a draw is
        still to come.
        """
        ask = next((ask for ask in self.queue if ask.item == item), None)
        if self.name in asks or (ask is None and not self.is_open[item]):
            return
        if ask is not None:
            self.queue.remove(ask)
        else:
            place = next((ask for ask in self.queue if ask.role in (*_BY_CHANCE, EVALUATION)), None)
            more = {"counted": False} if place is not None and place.role == EVALUATION else {}
            if place is not None and not more:
                self.queue.remove(place)
            number = -1 if self.published is None else self.published.model.number
            ask = new_ask(item, TOGETHER, round=number, **more)
            if self.published is not None:
                ask = self.questions.as_asked(ask, self.published)
        asks[self.name] = ask


def plan(
    candidates: Sequence[Candidate], annotator: str, k: int, moment: float, *, new: bool = True
) -> list[ItemAsk]:
    """Up to k items with their questions; new ones are without an expiry.

    Args:
        candidates: the questions that are asked.
        annotator: who is asked.
        k: how many items.
        moment: epoch seconds now.
        new: False gives what is asked already, where nothing is to be added to it.
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
        candidate.leased = leased_items
    entries = list(plans.items())
    if len(candidates) > 1:
        # what the person chose stays first, also where another question of theirs waits for other items
        entries.sort(key=lambda entry: all(ask.role != "chosen" for ask in entry[1].values()))
    plans = dict(entries[:k])
    if len(plans) < k or any(
        candidate.name not in asks and candidate.is_open[item]
        for item, asks in plans.items()
        for candidate in candidates
    ):
        if not new:
            return []
        exclusions = leased_items | set(plans)
        for candidate in candidates:
            candidate.queue = candidate.questions.fresh(
                candidate.state, annotator, k, exclusions, candidate.published
            )
    for item, asks in plans.items():
        for candidate in candidates:
            candidate.complete(item, asks)
    while len(plans) < k and (best := _best(candidates)) is not None:
        for candidate in candidates:
            candidate.complete(best.item, plans.setdefault(best.item, {}))
    # in the order of the questions, whichever of them brought the item up: a browser calls it by the first
    names = [candidate.name for candidate in candidates]
    return [
        ItemAsk(item, {name: asks[name] for name in names if name in asks}) for item, asks in plans.items()
    ]


def _best(candidates: Sequence[Candidate]) -> Ask | None:
    """Next question among what the questions propose."""
    heads = [candidate.queue[0] for candidate in candidates if candidate.queue]
    first = next((ask for ask in heads if ask.role not in _BY_CHANCE), None)
    if first is not None or len(heads) < 2:
        return first or next(iter(heads), None)

    def worth(ask: Ask) -> float:
        errors = (c.expected_error(ask.item) for c in candidates if c.is_open[ask.item])
        return max(errors, default=0.0)

    return max(reversed(heads), key=worth)
