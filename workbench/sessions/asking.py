"""Items that are asked about next, of whom, and why."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Array, Ints
from workbench.certificates import has_second_look
from workbench.documents.projects import WORTH
from workbench.metrics.agreement import worth_asking
from workbench.pools.neighbours.twins import Twins
from workbench.pools.pool import Pool
from workbench.sessions.drawing import (
    COLD_START,
    EVALUATION,
    OVERLAP,
    QUERY,
    UNIFORM,
    diverse_items,
    generator,
)
from workbench.sessions.fitted_model import asking_policy
from workbench.sessions.people import AnswerModel, ItemConsensus, item_consensus
from workbench.store import Ask, ProjectState
from workbench.store.fold_items import person_of
from workbench.store.layered_mapping import changed_keys

if TYPE_CHECKING:
    from workbench.sessions.published import Published

LEASE_SECONDS = 600.0
COLD_ITEMS = 50
AMONG = 200  # second opinions that are compared, the oldest ones
WEIGHED = 2_000  # labelled items that are compared with new ones, the newest
LABEL_COUNTS = 4.0
"""A right label in place of a wrong one against one in place of none: the model learns from the wrong one."""
GUESSED = 5  # classes of which the model's probability is recorded with a question
EARLY_ANSWERS = 20  # to measure on, before which an error is not told


class Questions:
    """Chooses questions for the annotators of one project.

    Args:
        pool: with its test split, if any.
        settings: the question's (`workbench.documents.projects.QuestionSettings`); those that are read here
            never change.
        twins: items of which only one a group is asked about; none by default.
    """

    def __init__(self, pool: Pool, settings: Mapping[str, Any], twins: Twins | None = None) -> None:
        self.pool = pool
        self.twins = twins if twins is not None and twins.n_groups else None
        # copies for which the first of their group that may be asked about stands
        self._stood_for: Ints = np.empty(0, dtype=np.int64)
        self._kept_apart = np.ones(len(pool), dtype=bool)
        self._kept_apart[pool.trainable] = False
        if self.twins is not None:
            in_play = pool.trainable[np.isin(pool.trainable, np.concatenate(self.twins.groups))]
            order = np.argsort(self.twins.first[in_play], kind="stable")
            same = np.diff(self.twins.first[in_play][order]) == 0
            self._stood_for = in_play[order][1:][same]
        self.settings = settings
        self.seed = int(settings["seed"])
        self.evaluation_share = float(settings["evaluation_share"])
        self.early_share = max(float(settings["early_share"]), self.evaluation_share)
        self.uniform_share = float(settings["uniform_share"])
        overlap = settings["overlap"]
        self._by_worth = overlap == WORTH
        self.people = int(settings["people"]) if overlap else 1
        self._shared: Array | None = None
        if overlap:
            draws = generator(self.seed, 0, OVERLAP).random(len(pool))
            self._shared = draws < (1.0 if self._by_worth else overlap)
        self._answer_model = AnswerModel(0)
        self._cold: Ints | None = None
        self._spreading = Lock()
        self._consensus: tuple[int, ItemConsensus | None] | None = None
        self._unshared: dict[str, tuple[Any, dict[int, None]]] = {}
        self._done: dict[str, tuple[Any, set[str], set[int]]] = {}

    def unseen(self, state: ProjectState, annotator: str) -> set[int]:
        """Labelled items that somebody is still to be asked about without seeing what was said."""
        return {*self._unlabelled_by(annotator, state), *state.second.get(annotator, ())}

    def _unlabelled_by(self, annotator: str, state: ProjectState) -> Mapping[int, None]:
        """Labelled items that are `wanted` of an annotator; costs what changed since the last time."""
        if self._shared is None:
            return {}
        votes, items = self._unshared.get(annotator, (None, {}))
        changes = changed_keys(votes, state.votes)
        items = {} if changes is None else items.copy()
        for item in state.votes if changes is None else changes:
            if self.wanted(item, annotator, state):
                items[item] = None
            else:
                items.pop(item, None)
        self._unshared[annotator] = state.votes, items
        return items

    def _answered_by(self, annotator: str, state: ProjectState) -> set[int]:
        """Items about which an annotator answered a question; walks over what changed since the last time."""
        asks, ids, items = self._done.get(annotator, (None, set(), set()))
        changes = changed_keys(asks, state.asks)
        if changes is None or not ids.isdisjoint(changes):  # all is new, or an answer was taken back
            changes, ids, items = list(state.asks), set(), set()
        for ask in (state.asks.get(key) for key in changes):
            if ask is not None and ask.answered and ask.annotator == annotator:
                ids.add(ask.id)
                items.add(ask.item)
        self._done[annotator] = state.asks, ids, items
        return items

    # --- what is open -------------------------------------------------------------------------

    def open_items(self, state: ProjectState, *, measured: bool = False) -> Array:
        """[N] mask of the items nobody has answered and that are not kept for measuring.

        Args:
            state: of the project.
            measured: those of the evaluation set too, and of copies each one.
        """
        shut = self._kept_apart.copy()
        if not measured:
            shut[self._stood_for] = True
        for closed in (state.answered, () if measured else state.evaluation):
            shut[list(closed)] = True
            # what a person chooses may be a copy that is not of the same class after all
            if self.twins is not None and not measured:
                shut[list(self.twins.spread(closed))] = True
        return ~shut

    def askable(self, state: ProjectState, *, measured: bool = False) -> Ints:
        """[n] the same items, ascending."""
        return np.flatnonzero(self.open_items(state, measured=measured))

    def open_twins(self, state: ProjectState, item: int) -> list[int]:
        """Copies of an item that nobody has answered and that are not kept for measuring; ascending."""
        if self.twins is None:
            return []
        return [
            twin
            for twin in self.twins.of(item)
            if not self._kept_apart[twin] and twin not in state.answered and twin not in state.evaluation
        ]

    def wanted(self, item: int, annotator: str, state: ProjectState) -> bool:
        """True if an item that somebody has labelled is to get a label of this annotator too."""
        votes = state.votes.get(item)
        return (
            self._shared is not None
            and bool(self._shared[item])
            and votes is not None
            and annotator not in map(person_of, votes)
            and len(votes) < self.people
            and item not in state.evaluation
        )

    def is_open(self, ask: Ask, state: ProjectState) -> bool:
        """True if an answer to the question would still be accepted."""
        if ask.answered:
            return False
        if ask.role == "second":
            return ask.item in state.second.get(ask.annotator, ())
        if ask.role == "check":
            return is_unchecked(state, ask, str(self.pool.items.ids[ask.item]))
        return ask.item not in state.answered or self.wanted(ask.item, ask.annotator, state)

    def waiting(self, state: ProjectState, annotator: str) -> list[Ask]:
        """Questions an annotator was shown and has not answered, oldest first; no grids and no checks."""
        asks = (state.asks[id_] for id_ in state.waiting.get(annotator, ()))
        roles = ("grid", "check")
        return [a for a in asks if a.role not in roles and not a.released and self.is_open(a, state)]

    def leased(
        self, state: ProjectState, moment: float, annotator: str, but: str = "", role: str = ""
    ) -> set[int]:
        """Items somebody else is being asked about right now; in a role, where one is given."""
        return {
            ask.item
            for person, ids in state.waiting.items()
            if person != annotator
            for ask in (state.asks[id_] for id_ in ids)
            if ask.expires > moment and ask.id != but and role in ("", ask.role) and self.is_open(ask, state)
        }

    # --- what comes next ----------------------------------------------------------------------

    def standing(self, state: ProjectState, annotator: str, taken: set[int]) -> list[Ask]:
        """Questions that wait for this annotator: items whose answer they took back come first.

        An item that was taken back and has no question yet gets one, without an expiry.
        """
        own_asks = {a.item: a for a in self.waiting(state, annotator) if a.item not in taken}
        queue = []
        for item in state.reopened.get(annotator, ()):
            if item in own_asks:
                queue.append(own_asks.pop(item))
            elif item not in taken:
                queue.append(new_ask(item, "evaluation" if item in state.evaluation else "again"))
        return [*queue, *own_asks.values()]

    def fresh(
        self,
        state: ProjectState,
        annotator: str,
        k: int,
        taken: set[int],
        published: Published | None,
    ) -> list[Ask]:
        """Up to k new questions, best first, without an expiry; `taken` items are left alone."""
        free = self.open_items(state)
        free[list(taken)] = False
        if self.twins is not None:
            free[list(self.twins.spread(taken))] = False
        asks: list[Ask] = []

        def add(item: int, role: str, utility: float | None = None, number: int = -1) -> None:
            free[item] = False
            if self.twins is not None:
                free[list(self.twins.of(item))] = False
            asks.append(new_ask(item, role, utility=utility, round=number))

        for item in state.second.get(annotator, ()):
            if len(asks) < k and item not in taken:
                add(item, "second")
        for item in state.wanted.get(annotator, ()):
            # what is wished for all questions may be of the test split of one of them
            if len(asks) < k and item not in taken and not self._kept_apart[item]:
                add(item, "evaluation" if item in state.evaluation else "chosen")
        queued_items = {ask.item for ask in asks}
        for item in sorted(state.requeued - queued_items):
            if len(asks) < k and item not in taken:
                add(item, "evaluation" if item in state.evaluation else "again")
        for item in self._second_opinions(state, annotator):
            if len(asks) >= k:
                break
            if item not in taken:
                add(item, "overlap")
        if len(state.trained_classes) < 2 and (published is None or published.model.mean is None):
            published = None
        share = self.share_to_measure(state)
        unmeasured = self._left_to_measure(state, taken | {ask.item for ask in asks}) if share else []
        again = self._worth_again(state, annotator, taken | {ask.item for ask in asks}, published)
        place = state.places
        while len(asks) < k and free.any():
            count = len(state.asks) + len(asks)
            rng = generator(self.seed, place, EVALUATION)
            # A question that takes the place of one given back is not drawn for again: those for measuring
            # stay, so that of many draws a place ever more would be.
            is_evaluation = place >= state.most_places and share and rng.random() < share
            place += 1
            if is_evaluation and unmeasured:
                add(unmeasured.pop(0), "evaluation")
            elif is_evaluation:
                add(int(rng.choice(np.flatnonzero(free))), "evaluation")
            elif published is None:
                add(self._cold_item(free, count, len(state.trained_classes) < 2), "cold-start")
            elif generator(self.seed, count, UNIFORM).random() < self.uniform_share:
                rng = generator(self.seed, count, QUERY)
                add(int(rng.choice(np.flatnonzero(free))), "uniform", None, published.model.number)
            else:
                item = _best(published, free)
                if item < 0:
                    item = int(generator(self.seed, count, QUERY).choice(np.flatnonzero(free)))
                if again and again[0][0] > self._worth_of_new(published, item, annotator):
                    add(again.pop(0)[1], "overlap")
                    continue
                utility = float(published.utilities[item])
                add(item, "policy", None if np.isnan(utility) else utility, published.model.number)
        # nothing is new any more
        for _, item in again[: max(k - len(asks), 0)]:
            add(item, "overlap")
        return asks if published is None else [self.as_asked(ask, published) for ask in asks]

    def as_asked(self, ask: Ask, published: Published) -> Ask:
        """A question with what chose it, which is recorded whatever is fitted until the answer comes."""
        more: dict[str, Any] = {"n_labelled": published.model.n_labelled}
        if guess := guess_of(published, ask.item):
            more["guess"] = guess
        if ask.role == "policy":
            by = asking_policy(published.model, published.chosen["policy"]).policy
            more |= {"policy": str(by), "classifier": str(published.chosen["classifier"])}
        return replace(ask, details={**ask.details, **more})

    def grid(
        self, state: ProjectState, k: int, taken: set[int], published: Published, code: int
    ) -> list[Ask]:
        """The k items that the model is surest are of one class, the doubtful ones of them first."""
        is_open = self.open_items(state)
        is_open[list(taken)] = False
        free = published.model.in_time(np.flatnonzero(is_open))
        p = published.model.probabilities_kept(free)
        mask = p.argmax(axis=1) == code
        order = np.argsort(-p[mask, code], kind="stable")[:k][::-1]
        asks = [new_ask(int(i), "grid", round=published.model.number) for i in free[mask][order]]
        return [self.as_asked(ask, published) for ask in asks]

    def _left_to_measure(self, state: ProjectState, exclusions: set[int]) -> list[int]:
        """Items drawn for measuring that somebody was asked about and went away from."""
        closed_items = exclusions.union(state.answered, *state.reopened.values())
        return sorted(item for item in state.evaluation if item not in closed_items)

    def share_to_measure(self, state: ProjectState) -> float:
        """Of the questions now: more of them until so many are answered that an error can be told."""
        answered = sum(item in state.codes for item in state.evaluation)
        return self.early_share if answered < EARLY_ANSWERS else self.evaluation_share

    def _second_opinions(self, state: ProjectState, annotator: str) -> Iterator[int]:
        if self._by_worth or not (unlabelled := self._unlabelled_by(annotator, state)):
            return
        answered = self._answered_by(annotator, state)
        items = (item for item in unlabelled if item not in answered)
        first = list(islice(items, 3 * AMONG))
        among = first[:AMONG]
        if len(state.keys) > 1 and among:
            # where one more answer is worth most; of equal ones the oldest
            model = self._answer_model_of(state)
            q = model.posteriors(state, among, first)
            order = np.argsort(-worth_asking(q, model.confusion(annotator)).round(6), kind="stable")
            among = [among[place] for place in order.tolist()]
        yield from among
        yield from first[AMONG:]
        yield from items

    def _answer_model_of(self, state: ProjectState) -> AnswerModel:
        """Model of people's answers; what they say of an item is kept while it stays the same."""
        together, model = self._people(state), self._answer_model
        if model.n_classes != len(state.keys) or model.together is not together:
            model = self._answer_model = AnswerModel(len(state.keys), together)
        return model

    def _worth_again(
        self, state: ProjectState, annotator: str, exclusions: set[int], published: Published | None
    ) -> list[tuple[float, int]]:
        """Labelled items with what one more answer of a person is worth, the most first; those worth any."""
        if not self._by_worth or published is None:
            return []
        items = [i for i in self._unlabelled_by(annotator, state) if i not in exclusions][-WEIGHED:]
        if not items:
            return []
        model = self._answer_model_of(state)
        q = model.posteriors(state, items)
        doubtful = np.argsort(q.max(axis=1), kind="stable")[:AMONG]
        gain = LABEL_COUNTS * worth_asking(q[doubtful], model.confusion(annotator))
        order = np.argsort(-gain.round(6), kind="stable")
        return [(float(gain[at]), items[int(doubtful[at])]) for at in order.tolist() if gain[at] > 1e-6]

    def _worth_of_new(self, published: Published, item: int, annotator: str) -> float:
        """Value of a person's answer about an unlabelled item, in accuracy of what is known of it."""
        p = published.model.quick_probabilities(item)
        if p is None:
            p = np.full(len(published.keys), 1 / len(published.keys))
        model = self._answer_model
        if model.n_classes != len(p):
            model = AnswerModel(len(p))
        return float(worth_asking(p[None], model.confusion(annotator))[0])

    def _people(self, state: ProjectState) -> ItemConsensus | None:
        """Figures of people; of a while ago, as everybody waits for whoever asks."""
        n, known = state.n_shared, self._consensus
        if known is None or not known[0] <= n <= 1.1 * known[0] + 20:
            known = self._consensus = n, item_consensus(state)
        return known[1]

    def cold_items(self) -> Ints:
        """Items to be asked before a model can say better: spread over the pool, then apart from others."""
        with self._spreading:  # those who come first wait for one of them
            if self._cold is None:
                items = self.pool.trainable
                self._cold = diverse_items(self.pool, items, self._n_spread, self.seed, COLD_ITEMS)
            return self._cold

    @property
    def _n_spread(self) -> int:
        return min(COLD_ITEMS, max(8, 2 * len(self.pool.classes)))

    def _cold_item(self, free: Array, count: int, is_unlimited: bool) -> int:
        # Whoever asks has them computed before the transaction; where an undo made them needed within it,
        # one question at random costs less than everybody's waiting for k-means.
        if self._cold is not None:
            first = self._cold if is_unlimited else self._cold[: self._n_spread]
            waiting = first[free[first]]
            if waiting.size:
                return int(waiting[0])
        return int(generator(self.seed, count, COLD_START).choice(np.flatnonzero(free)))


def is_unchecked(state: ProjectState, ask: Ask, name: str) -> bool:
    """Tell whether the frozen label that a question checks is still frozen, and is open to its person.

    Args:
        state: of the project.
        ask: the question.
        name: id of its item.
    """
    started = ask.check
    if not state.frozen or state.frozen[-1].id != started:
        return False
    checkers = [who for who, check in state.checks.get(ask.item, {}).items() if check.started == started]
    if len(checkers) == 1 and has_second_look(int(state.frozen[-1].payload["seed"]), name):
        return ask.annotator not in checkers
    return not checkers


def guess_of(published: Published, item: int) -> tuple[tuple[str, float], ...]:
    """The likeliest classes of an item, as they are recorded with a question about it; none where not scored.

    Everybody waits for whoever asks: nothing is predicted here that a slow classifier had no time for.
    """
    p = published.model.quick_probabilities(item)
    if p is None:
        return ()
    best = np.argsort(-p, kind="stable")[:GUESSED]
    return tuple((published.keys[c], round(float(p[c]), 4)) for c in best.tolist())


def new_ask(item: int, role: str, **details: Any) -> Ask:
    """A question that was not asked before, without an expiry."""
    fields = {"utility": None, "round": -1, "n_labelled": 0, **details}
    return Ask(secrets.token_hex(8), int(item), role, details=fields)


def _best(published: Published, free: Array) -> int:
    """The first free item of the queue, else the free one of largest utility, else -1."""
    for order in (published.queue, published.ranked):
        waiting = order[free[order]]
        if waiting.size:
            return int(waiting[0])
    utilities = np.where(free, published.utilities, np.nan)
    return -1 if np.isnan(utilities).all() else int(np.nanargmax(utilities))
