"""Checks of frozen labels: what was frozen, in which order it is checked, and what the answers add up to."""

from __future__ import annotations

import base64
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.arrays import Array, Cache, Floats, Ints
from workbench.certificates import (
    Bound,
    Draws,
    Promise,
    SecondLooks,
    Tally,
    checksum_of,
    has_second_look,
    listed_order,
    seed_of,
)
from workbench.errors import InputError
from workbench.store import Check, Event, ProjectState

_FROZEN = Cache["Frozen"](32)


@dataclass(frozen=True, eq=False)
class Frozen:
    """Labels that were frozen to be checked, and all that fixes which are checked when.

    Attributes:
        started: id of the event.
        by: who started.
        time: when.
        promise: what is promised of them.
        seed: of the order, and of second looks.
        items: [N] indices into the pool, the surest first.
        ids: [N] of the items.
        codes: [N] their labels, by the places of their keys in `classes`.
        confidences: [N] the model's; NaN of a column that gives none.
        classes: keys.
        listing: [N] places in the order of the items' ids, of which draws are positions.
        checksum: of the labels by keys of classes.
        drawn_from: of the labels as classes were called when they were frozen; the seed is of it.
        round: number of the fit; -1 for a column.
    """

    started: int
    by: str
    time: str
    promise: Promise
    seed: int
    items: Ints
    ids: tuple[str, ...]
    codes: Ints
    confidences: Floats
    classes: tuple[str, ...]
    listing: Ints
    checksum: str
    drawn_from: str
    round: int

    @property
    def size(self) -> int:
        """N."""
        return int(self.items.size)

    @cached_property
    def _draws(self) -> Draws:
        return Draws(self.size, self.seed, self.promise.attempt)

    @cached_property
    def sums(self) -> dict[int, tuple[Any, list[Any]]]:
        """Sums with the answers in them: the tally (0), and the bound of each set that is shown, by size."""
        return {}

    @cached_property
    def place_of(self) -> Ints:
        """[M] place of each item among the frozen labels, -1 of one between them."""
        places = np.full(int(self.items.max()) + 1, -1)
        places[self.items] = np.arange(self.size)
        return places

    def order(self, count: int) -> Ints:
        """[n] places of the first `count` draws."""
        with _LOCK:
            return self.listing[self._draws.first(count)]

    def named(self, names: Mapping[str, str]) -> dict[str, str]:
        """Id -> frozen label, as people read it."""
        labels = [names.get(key, key) for key in self.classes]
        return {item: labels[c] for item, c in zip(self.ids, self.codes.tolist(), strict=True)}

    def key(self, place: int) -> str:
        """The class that was frozen at a place."""
        return self.classes[int(self.codes[place])]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Labels that could be frozen now.

    Attributes:
        of: "model", or the column they are of.
        items: [N] the surest first.
        codes: [N] places in `keys`.
        confidences: [N] NaN where none are given.
        keys: of the classes.
        round: number of the fit, -1 for a column.
        held_out: ([h] confidence, [h] whether wrong) of items whose answer is known, not learned from.
    """

    of: str
    items: Ints
    codes: Ints
    confidences: Floats
    keys: tuple[str, ...]
    round: int
    held_out: tuple[Floats, Array]

    def named(self, ids: Sequence[str], names: Mapping[str, str]) -> dict[str, str]:
        """Id -> label.

        Args:
            ids: [N] of the pool's items.
            names: key of a class -> its name; else its key.
        """
        labels = [names.get(key, key) for key in self.keys]
        return {str(ids[i]): labels[c] for i, c in zip(self.items.tolist(), self.codes.tolist(), strict=True)}


def plan_of(promise: Promise, candidates: Candidates, ids: Sequence[str], drawn_from: str) -> dict[str, Any]:
    """Payload of the event that freezes labels; `frozen_of` reads it.

    Args:
        promise: about them.
        candidates: the labels.
        ids: [N] of the pool's items.
        drawn_from: checksum of the labels as classes are called; the seed is of it.
    """
    return {
        "promise": promise.document(),
        "seed": seed_of(drawn_from),
        "classes": list(candidates.keys),
        "frozen": {
            "items": _packed(candidates.items, "<i8"),
            "codes": _packed(candidates.codes, "<i4"),
            "confidence": _packed(candidates.confidences, "<f4"),
        },
        "checksum": checksum_of(candidates.named(ids, {})),
        "round": int(candidates.round),
        "drawn_from": drawn_from,
        "n_items": len(ids),
    }


def frozen_of(event: Event, ids: Sequence[str]) -> Frozen:
    """The frozen labels that an event records.

    Args:
        event: "checks-started".
        ids: [N] of the pool's items.

    Raises:
        InputError: the record is damaged.
    """
    p = event.payload
    promise = Promise.from_document(p["promise"])
    key = (str(p["checksum"]), promise, event.id, event.time)
    return _FROZEN.ask(key, lambda: _decoded(event, promise, ids))


def _decoded(event: Event, promise: Promise, ids: Sequence[str]) -> Frozen:
    p = event.payload
    packed = p["frozen"]
    items, codes = frozen_items(p), _unpacked(packed["codes"], "<i4").astype(np.int64)
    confidences = _unpacked(packed["confidence"], "<f4").astype(float)
    if (
        {items.size, codes.size, confidences.size} != {promise.size}
        or items.view("u8").max() >= len(ids)  # what is negative is larger there
        or codes.view("u8").max() >= len(p["classes"])
    ):
        raise InputError("The record of the frozen labels is damaged: start the checks anew.")
    names = tuple(str(ids[item]) for item in items.tolist())
    return Frozen(
        event.id,
        event.annotator,
        event.time,
        promise,
        int(p["seed"]),
        items,
        names,
        codes,
        confidences,
        tuple(map(str, p["classes"])),
        _listing(names),
        str(p["checksum"]),
        str(p["drawn_from"]),
        int(p.get("round", -1)),
    )


def frozen_items(payload: Mapping[str, Any]) -> Ints:
    """[N] the items of an event's frozen labels.

    Raises:
        InputError: the record is damaged.
    """
    return _unpacked(payload["frozen"]["items"], "<i8")


def _listing(ids: Sequence[str]) -> Ints:
    place_of = {item_id: place for place, item_id in enumerate(ids)}
    if len(place_of) < len(ids):
        raise InputError("Two items have the same id, so a certificate could not tell them apart.")
    return np.array([place_of[item_id] for item_id in listed_order(ids)], dtype=np.int64)


def answers_of(frozen: Frozen, state: ProjectState, item: int) -> list[Check]:
    """Answers of people to an item in these checks, the first answer first."""
    return sorted(
        (check for check in state.checks.get(item, {}).values() if check.started == frozen.started),
        key=lambda check: check.first,
    )


def n_answered(frozen: Frozen, state: ProjectState) -> int:
    """Number of the frozen labels that were checked, in whatever order."""
    return sum(
        any(check.started == frozen.started for check in checks.values()) for checks in state.checks.values()
    )


def drawn(frozen: Frozen) -> Iterator[int]:
    """Places in the order of the draws, as far as they are asked for."""
    count = 0
    while count < frozen.size:
        chunk = frozen.order(max(64, 2 * count))
        yield from chunk[count:].tolist()
        count = len(chunk)


def decided_by(state: ProjectState, item: int, answers: Sequence[Check]) -> str:
    """Key of the class that somebody decided on after people disagreed about a check; "" where nobody did."""
    if len({check.key for check in answers}) < 2:
        return ""
    last = max(check.event for check in answers)
    votes = [vote for vote in state.votes.get(item, {}).values() if vote.final and vote.event > last]
    return max(votes, key=lambda vote: vote.event).key if votes else ""


def is_looked_at_again(frozen: Frozen, place: int, answers: Sequence[Check]) -> bool:
    """Tell whether a check is to be asked again of another person, or was."""
    return (
        bool(answers)
        and answers[0].key == frozen.key(place)
        and has_second_look(frozen.seed, frozen.ids[place])
    )


@dataclass(frozen=True, eq=False)
class Evidence:
    """The answers that count: those of the draws up to the first that nobody has answered.

    Attributes:
        places: [t] of the frozen labels.
        wrong: [t] whether the label counts as wrong: the answer is another class, or nobody can tell, or
            people disagree and nobody has decided.
        later: answers to draws after one that somebody still has before them.
        second_looks: drawn for a second person, made, where the two disagreed, and of these not decided.
    """

    places: Ints
    wrong: Array
    later: int
    second_looks: SecondLooks

    @property
    def checks(self) -> int:
        """Number of answers that count."""
        return len(self.places)

    def within(self, size: int) -> Array:
        """[t'] of `wrong`, of the draws that fell among the surest `size`."""
        inside: Array = self.wrong[self.places < size]
        return inside


def evidence(frozen: Frozen, state: ProjectState) -> Evidence:
    """Bounds by the answers so far."""
    places: list[int] = []
    wrong: list[bool] = []
    drawn_again = second_looks = disagreed = undecided = 0
    total = n_answered(frozen, state)
    for place in drawn(frozen):
        item = int(frozen.items[place])
        answers = answers_of(frozen, state, item)
        if not answers:
            break
        is_disputed = len({check.key for check in answers}) > 1
        key = decided_by(state, item, answers) if is_disputed else answers[0].key
        places.append(place)
        wrong.append(key != frozen.key(place))
        drawn_again += is_looked_at_again(frozen, place, answers)
        second_looks += len(answers) > 1
        disagreed += is_disputed
        undecided += is_disputed and not key
    return Evidence(
        np.asarray(places, dtype=np.int64),
        np.asarray(wrong, dtype=bool),
        total - len(places),
        SecondLooks(drawn_again, second_looks, disagreed, undecided),
    )


def bound_after(frozen: Frozen, size: int, found: Evidence) -> list[float]:
    """[t + 1] the upper bound on a set before its first check and after each, kept up to date."""
    promise, answers = frozen.promise, [(wrong,) for wrong in found.within(size).tolist()]
    with _LOCK:
        bound = _sum(frozen, size, answers, lambda: Bound(size, promise.confidence_here, [promise.error]))
        return list(bound.curve)


def certified_of(frozen: Frozen, found: Evidence) -> int:
    """Size of the largest set that is certified, 0 where none is; an answer adds to what is kept."""
    answers = list(zip(found.places.tolist(), found.wrong.tolist(), strict=True))
    with _LOCK:
        return int(_sum(frozen, 0, answers, lambda: Tally(frozen.promise)).delivered())


def _sum(frozen: Frozen, key: int, answers: list[Any], make: Callable[[], Any]) -> Any:
    """Sum that `make` begins, with all the answers added, each by its arguments."""
    total, added = frozen.sums.get(key, (None, []))
    if total is None or answers[: len(added)] != added:
        total, added = make(), []
    for answer in answers[len(added) :]:
        total.add(*answer)
    frozen.sums[key] = total, answers
    return total


def _packed(values: Array, kind: str) -> str:
    octets = np.ascontiguousarray(values, dtype=kind).tobytes()
    return base64.b64encode(zlib.compress(octets, 6)).decode("ascii")


def _unpacked(text: str, kind: str) -> Array:
    try:
        opener = zlib.decompressobj()
        octets = opener.decompress(base64.b64decode(text, validate=True), _MOST_OCTETS)
        return np.frombuffer(octets, dtype=kind).astype(np.dtype(kind).newbyteorder("="))
    except (ValueError, zlib.error) as error:
        raise InputError("The record of the frozen labels is damaged: start the checks anew.") from error


_MOST_OCTETS = 1 << 28
_LOCK = threading.RLock()
