"""Why an item is asked about, and which labelled items are like it, as the present model sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import proxy

import numpy as np

from workbench.app.serving.caching import computed, kept
from workbench.app.words.text import PER_CENT, percent, words_of
from workbench.arrays import Array, Floats, Ints, standardised

if TYPE_CHECKING:
    from workbench.pools import Pool
    from workbench.sessions import Ask, Session
    from workbench.sessions.fitted_model import FittedModel

SAYS_SOMETHING = 0.15
"""Probability of the best class from which the percentages of the best two say something."""
_MOST_NEAR = 8_000_000
"""Numbers of labelled items' features that are kept for a model, for its cards: 32 MB."""


@dataclass(frozen=True)
class Reason:
    """Why an item is shown.

    Attributes:
        words: a sentence for people.
        utility: the policy's now, or NaN.
        rank: place among the items still open, 1 = most wanted; 0 when there is no policy behind it.
        n_open: how many items are open.
        n_drawn: how many of them the policy looks at in a round, the rank is among these; 0 for all.
    """

    words: str
    utility: float = float("nan")
    rank: int = 0
    n_open: int = 0
    n_drawn: int = 0


def why(session: Session, ask: Ask) -> Reason:
    """Why this item is asked about now."""
    from workbench.policies import POLICIES
    from workbench.policies.registry import title_of
    from workbench.sessions.fitted_model import asking_policy

    if words_of_role := words_of("roles").get(ask.role, {}).get("why"):
        return Reason(words_of_role)
    policy = str(session.settings["policy"])
    model = session.model
    if ask.role == "uniform":
        share = float(session.settings["uniform_share"])
        words = f"Drawn at random, as {percent(share, 0)} of the questions are whatever the policy. "
        words += "The model learns from it."
        return Reason(words)
    if ask.role == "cold-start" or model is None:
        words = "Nothing is known yet, so the first items are spread over the pool."
        if len(session.state.trained_classes) > 1:
            words = "Spread over the pool, as there was no model yet when it was chosen."
        return Reason(words)
    policy, searching = asking_policy(model, policy)
    entry = POLICIES.get(policy)
    if policy == "random":
        return Reason(POLICIES[policy].says)
    from workbench.sessions import insight

    state = session.state
    values, candidates = utilities_now(session, model, policy)
    closed = np.array([*state.answered, *state.evaluation], dtype=np.int64)
    explanation = insight.why(model, ask.item, policy, closed=closed, values=values, drawn=candidates)
    if not np.isfinite(explanation.utility):
        words = title_of(policy) + "."
    elif entry is None:
        words = f"{policy} is {explanation.utility:.3f}."
    else:
        two = np.sort(model.probabilities_of(ask.item))[-2:]
        best = (float(two[1]), float(two[0])) if two.size == 2 else None
        if best is not None and entry.shares and best[0] < SAYS_SOMETHING:
            words = none_stands_out(best[0], len(model.classes), len(state.trained_classes))
        else:
            words = entry.sentence(explanation.utility, best).replace("%", PER_CENT)
    if searching:
        words = f"{searching[0].upper()}{searching[1:]}. {words}"
    return Reason(words, explanation.utility, explanation.rank, explanation.n_ranked, explanation.drawn)


def none_stands_out(best: float, n_classes: int, n_labelled: int) -> str:
    """Words for an item none of whose many classes is probable: the figures themselves would not help.

    Args:
        best: the largest class probability.
        n_classes: that the model has.
        n_labelled: how many of them have a label it could learn from.
    """
    words = f"No class stands out yet: the likeliest of {n_classes:,} gets {percent(best, 0)}. "
    if missing := n_classes - n_labelled:
        words += f"{missing:,} of them {'has' if missing == 1 else 'have'} no label so far. "
    return words + "Go by what you see, not by its guess."


def utilities_now(session: Session, model: FittedModel, policy: str) -> tuple[Floats, Ints | None]:
    """A policy's utility of every item that it looks at in this round, and which these are.

    Args:
        session: of the project.
        model: its present one.
        policy: that asks now.

    Returns:
        [N] utilities, NaN where it does not look; the items, None for all.
    """
    from workbench.sessions import insight

    explanation = model.explained
    if explanation is not None and explanation.policy == policy:
        return explanation.utilities, explanation.looked
    return computed(insight.utilities_or_none, model, policy, model.among), model.among


def prepare(session: Session, model: FittedModel) -> None:
    """Make what every card of a model needs, before the first one waits for it.

    Args:
        session: of the project.
        model: that is about to be published.
    """
    from workbench.policies import POLICIES
    from workbench.sessions.fitted_model import asking_policy

    policy, _ = asking_policy(model, str(session.settings["policy"]))
    if policy != "random" and policy in POLICIES:
        utilities_now(session, model, policy)


def nearest_labelled(session: Session, item: int, k: int = 5) -> list[tuple[int, int, float]]:
    """Labelled items most like this one.

    Args:
        session: of the project.
        item: index into the pool.
        k: how many.

    Returns:
        (item, class code, distance) triples, nearest first; distances in the space the model uses.
    """
    from workbench.sessions import insight

    codes = session.state.codes
    if not codes:
        return []
    items = np.array([*codes])
    model = session.model

    def points(of: Ints) -> Array:
        # of a million items nobody needs the others
        return space(session)[of] if model is None else model.scaled_at(of)

    if model is not None and items.size * session.pool.n_features <= _MOST_NEAR:
        items = items[_nearby(model).likely(items, item, k + 1)]
    of_them = points(np.append(items, item))
    places, distances = insight.nearest_among(of_them, np.arange(len(items)), len(items), k + 1)
    mask = items[places] != item
    places, distances = places[mask][:k], distances[mask][:k]
    return [
        (int(items[i]), int(codes[int(items[i])]), float(d)) for i, d in zip(places, distances, strict=True)
    ]


@kept
def _nearby(model: FittedModel) -> Nearby:
    weak = proxy(model)  # what is kept for a model must not keep it alive
    return Nearby(lambda items: weak.scaled_at(items))


def space(session: Session) -> Array:
    """[N, D] the pool in the features that its model uses; standardised ones before there is a model."""
    model = session.model
    if model is not None:
        return np.asarray(model.scaled)
    return _standardised(session.pool)


@kept
def _standardised(pool: Pool) -> Array:

    return standardised(pool.features, pool.common_scale)


_ROUNDING = 1e-4
"""Of the squares that single precision adds up, more than it may be wrong by."""
_FIRST = 256


class Nearby:
    """Items that may be among the nearest; safe to use from several threads.

    Rows are kept in single precision, which says who may be near: whoever asks measures those few exactly.

    Args:
        points: gives the features [n, D] of items [n].
    """

    def __init__(self, points: Callable[[Ints], Array]) -> None:
        self._points = points
        self._lock = threading.Lock()
        self._place: dict[int, int] = {}
        self._rows = np.empty((0, 0), dtype=np.float32)
        self._squares = np.empty(0, dtype=np.float32)

    def likely(self, items: Ints, item: int, k: int) -> Ints:
        """Places of the items among which the k nearest are.

        Args:
            items: [n] to choose from.
            item: near to which.
            k: how many.

        Returns:
            [m] ascending places in `items`, m >= min(k, n).
        """
        if items.size <= k:
            return np.arange(items.size)
        # what has no number, or is too large for single precision, is measured by whoever asks
        with np.errstate(over="ignore", invalid="ignore"):
            rows, squares, places = self._known(items)
            row = np.asarray(self._points(np.array([item])), dtype=np.float32)[0]
            square = row @ row
            distances = (squares - 2.0 * (rows @ row) + square)[places]
            threshold = np.partition(distances, k - 1)[k - 1]
            wrong = _ROUNDING * float(squares.max() + square)
            candidates: Ints = np.flatnonzero(~(distances > threshold + 2.0 * wrong))
        return candidates

    def _known(self, items: Ints) -> tuple[Floats, Floats, Ints]:
        """All rows [N, D] that are kept, their squares [N], and where those of the items [n] are."""
        with self._lock:
            place = self._place
            new = [i for i in items.tolist() if i not in place]
            if new:
                self._add(new)
            n, rows, squares = len(place), self._rows, self._squares
            places = np.fromiter((place[i] for i in items.tolist()), dtype=np.int64, count=items.size)
            return rows[:n], squares[:n], places

    def _add(self, new: list[int]) -> None:
        points = np.asarray(self._points(np.array(new)), dtype=np.float32)
        n = len(self._place)
        if n + len(new) > len(self._rows):
            room = max(_FIRST, 2 * (n + len(new)))
            rows = np.zeros((room, points.shape[1]), dtype=np.float32)
            squares = np.zeros(room, dtype=np.float32)
            if n:
                rows[:n], squares[:n] = self._rows[:n], self._squares[:n]
            self._rows, self._squares = rows, squares
        # beyond what anybody who is reading looks at
        self._rows[n : n + len(new)] = points
        self._squares[n : n + len(new)] = np.einsum("nd,nd->n", points, points)
        self._place.update(zip(new, range(n, n + len(new)), strict=True))
