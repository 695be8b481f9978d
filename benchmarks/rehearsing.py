"""A whole finish where the answers are known: what it delivers and what it costs.

Attempts, sets, and when to stop follow rules that look only at what a person would have seen by then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Array, Floats, Ints
from workbench.certificates import Draws, Promise, confidence_at, plan, tally
from workbench.certificates.wealth import checks_of, checks_to_go, confidence_of, error_of, looks_broken
from workbench.errors import InputError

MOST_ATTEMPTS = 4
_LOOK = 50  # checks after which one asks again whether going on is worth it


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A finish that was played through.

    Attributes:
        machine: [n] items of the certified set, checked ones included; empty where nothing was certified.
        checks: answers to draws of the certified set.
        drawn: all draws, of all attempts.
        attempt: the one that was certified; 0 where none was.
        answers: human answers in all: draws, and every item beyond the certified set.
    """

    machine: Ints
    checks: int
    drawn: int
    attempt: int
    answers: int


def rehearse(
    wrong: ArrayLike,
    confidences: ArrayLike,
    error: float,
    confidence: float,
    *,
    seed: int = 0,
    attempts: int = MOST_ATTEMPTS,
    held_out: tuple[ArrayLike, ArrayLike] | None = None,
) -> Rehearsal:
    """Plan, draw, check and stop, with the truth as the oracle; labels are frozen once.

    Args:
        wrong: [N] whether each machine label is wrong.
        confidences: [N] of the machine, from 0 to 1.
        error: allowed share of wrong labels in the machine's part.
        confidence: of all attempts together.
        seed: of draws and forecasts.
        attempts: at most so many.
        held_out: as in `plan`.

    Returns:
        What was delivered, and the human answers that it took.

    Raises:
        InputError: values outside their range.
    """
    error_of(error), confidence_of(confidence)
    risk = 1.0 - np.asarray(confidences, dtype=float)
    if np.shape(wrong) != risk.shape or not risk.size:
        raise InputError("Give as many confidences as labels, and at least one.")
    truth = checks_of(wrong, len(risk))
    left: Ints = np.arange(len(risk))
    known: tuple[Floats, Array] = (np.empty(0), np.empty(0, dtype=bool))
    if held_out is not None:
        known = (np.asarray(held_out[0], dtype=float), np.asarray(held_out[1], dtype=bool))
    drawn = 0
    for attempt in range(1, attempts + 1):
        ranking = left[np.argsort(risk[left], kind="stable")]
        here = confidence_at(confidence, attempt)
        forecast = plan(risk[ranking], error, here, held_out=known if len(known[0]) else None, seed=seed)
        if forecast.chosen is None:
            break
        sizes = forecast.sizes()
        places = Draws(len(ranking), seed, attempt).first(len(ranking))

        further = None if attempt == attempts else confidence_at(confidence, attempt + 1)
        better = partial(
            _another_is_better,
            risk[ranking],
            truth[ranking],
            places,
            int(sizes[0]),
            known,
            error,
            further,
            seed,
        )
        promise = Promise(len(ranking), error, confidence, tuple(map(int, sizes)), attempt)
        found, t = _attempt(truth[ranking][places], places, promise, better)
        drawn += t
        if found is not None:
            size = int(sizes[found])
            inside = int((places[:t] < size).sum())
            rest = len(ranking) - size - (t - inside)
            return Rehearsal(ranking[:size], inside, drawn, attempt, drawn + rest)
        seen = ranking[places[:t]]
        known = (np.append(known[0], risk[seen]), np.append(known[1], truth[seen]))
        left = np.setdiff1d(left, seen)
        if not len(left):
            break
    return Rehearsal(left[:0], 0, drawn, 0, len(risk))


def _another_is_better(
    risk: Floats,
    wrong: Array,
    places: Ints,
    size: int,
    known: tuple[Floats, Array],
    error: float,
    confidence: float | None,
    seed: int,
    t: int,
    to_go: int | None,
) -> bool:
    """True if another attempt, by what t checks taught, is likely to cost less than `to_go` more of them."""
    if confidence is None:
        return False
    seen, rest = places[:t], places[t:]
    learned = (np.append(known[0], risk[seen]), np.append(known[1], wrong[seen]))
    again = plan(risk[rest], error, confidence, held_out=learned, seed=seed).choice
    if again is None:
        return False
    return to_go is None or again.cost < to_go + int((rest >= size).sum())


def _attempt(
    wrong: Array, places: Ints, promise: Promise, better: Callable[[int, int | None], bool]
) -> tuple[int | None, int]:
    """The set that is certified, and the draws until then or until it is given up."""
    sizes, error, confidence = promise.sizes, promise.error, promise.confidence_here
    first = sizes[0]
    reached_at = dict(tally(promise, wrong, places).certified_at())
    certified = [reached_at.get(size, 0) for size in sizes]
    inside = places < first
    last, t = int(certified[0]) or len(wrong), _LOOK
    while t < last:
        found = wrong[:t][inside[:t]]
        to_go = checks_to_go(found, first, error, confidence)
        doubtful = to_go is None or to_go > 2 * _LOOK or looks_broken(int(found.sum()), len(found), error)
        if doubtful and better(t, to_go):
            return None, t
        t += max(_LOOK, t // 3)
    if not certified[0]:
        return None, len(wrong)
    k, t = 0, int(certified[0])
    while k + 1 < len(sizes):
        following = int(sizes[k + 1])
        member = places[:t] < following
        to_go = checks_to_go(wrong[:t][member], following, error, confidence)
        # what is checked within the larger set is what it costs, what need not be labelled what it saves
        if to_go is None or to_go >= following - int(sizes[k]):
            break
        patience = t + math.ceil(2 * (to_go + 1) * len(wrong) / following)
        reached = int(certified[k + 1])
        if not reached or reached > patience:
            return k, min(patience, len(wrong))
        k, t = k + 1, max(t, reached)
    return k, t
