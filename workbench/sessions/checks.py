"""Checks of frozen labels: what was frozen, in which order it is checked, and what the answers add up to."""

from __future__ import annotations

import base64
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.certificates import (
    Bound,
    Draws,
    checksum_of,
    confidence_at,
    first_reached,
    listed_order,
    log_wealth,
)
from workbench.errors import InputError
from workbench.store import Check, Event, ProjectState

MODEL = "model"
"""What freezes the model's own labels; else a column of somebody's, "column:NAME"."""
LOOKED_AHEAD = 3_000
"""Further checks that a forecast of how many are to go looks at."""
ENOUGH_TO_DOUBT = 20
"""Checks before which nothing is said of whether the promise will be kept."""
_FEW = 30
_KEPT = 32


@dataclass(frozen=True, eq=False)
class Frozen:
    """Labels that were frozen to be checked, and all that fixes which are checked when.

    Attributes:
        started: id of the event.
        by: who started.
        time: when.
        of: "model", or the column the labels are of.
        error: the share of wrong labels that is allowed.
        confidence: of all attempts together.
        attempt: from 1 on; what each spends is `delta_of`.
        seed: of the order.
        items: [N] indices into the pool, the surest first.
        codes: [N] their labels, by the places of their keys in `classes`.
        confidences: [N] the model's; NaN of a column that gives none.
        sizes: sets to be certified, in the order of the test: so many of the surest.
        classes: keys.
        listing: [N] places in the order of the items' ids, of which draws are positions.
        round: number of the fit; -1 for a column.
        n_labelled: labels that people had given.
    """

    started: int
    by: str
    time: str
    of: str
    error: float
    confidence: float
    attempt: int
    seed: int
    items: Ints
    codes: Ints
    confidences: Floats
    sizes: tuple[int, ...]
    classes: tuple[str, ...]
    listing: Ints
    checksum: str
    round: int
    n_labelled: int

    @property
    def size(self) -> int:
        """N."""
        return int(self.items.size)

    @property
    def spent(self) -> float:
        """The part of 1 - confidence that this attempt spends."""
        return 1.0 - self.confidence_here

    @property
    def confidence_here(self) -> float:
        """What this attempt has to reach, that all attempts together keep `confidence`."""
        return confidence_at(self.confidence, self.attempt)

    @cached_property
    def _draws(self) -> Draws:
        return Draws(self.size, self.seed, self.attempt)

    @cached_property
    def place_of(self) -> Mapping[int, int]:
        """Item -> its place among the frozen labels."""
        return {item: place for place, item in enumerate(self.items.tolist())}

    def order(self, count: int) -> Ints:
        """[n] places of the first `count` draws."""
        with _LOCK:
            return self.listing[self._draws.first(count)]

    def named(self, ids: Sequence[str], names: Mapping[str, str]) -> dict[str, str]:
        """Id -> frozen label, as people read it."""
        labels = [names.get(key, key) for key in self.classes]
        return {str(ids[i]): labels[c] for i, c in zip(self.items.tolist(), self.codes.tolist(), strict=True)}

    def key(self, place: int) -> str:
        """The class that was frozen at a place."""
        return self.classes[int(self.codes[place])]


def plan_of(
    of: str,
    error: float,
    confidence: float,
    attempt: int,
    seed: int,
    items: Ints,
    codes: Ints,
    confidences: Floats,
    sizes: Sequence[int],
    classes: Sequence[str],
    ids: Sequence[str],
    number: int,
    n_labelled: int,
) -> dict[str, Any]:
    """What is recorded of labels that are frozen; `frozen_of` reads it."""
    return {
        "of": of,
        "error": float(error),
        "confidence": float(confidence),
        "attempt": int(attempt),
        "seed": int(seed),
        "size": len(items),
        "sizes": [int(size) for size in sizes],
        "classes": list(classes),
        "frozen": {
            "items": _packed(items, "<i8"),
            "codes": _packed(codes, "<i4"),
            "confidence": _packed(confidences, "<f4"),
        },
        "checksum": checksum_of(
            {str(ids[i]): classes[c] for i, c in zip(items.tolist(), codes.tolist(), strict=True)}
        ),
        "round": int(number),
        "n_labelled": int(n_labelled),
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
    key = (str(p["checksum"]), event.id, event.time)
    with _LOCK:
        found = _FROZEN.get(key)
    if found is not None:
        return found
    packed = p["frozen"]
    items, codes = frozen_items(p), _unpacked(packed["codes"], "<i4").astype(np.int64)
    confidences = _unpacked(packed["confidence"], "<f4").astype(float)
    n = items.size
    if not n or not n == codes.size == confidences.size == int(p["size"]) or codes.max() >= len(p["classes"]):
        raise InputError("The record of the frozen labels is damaged: start the checks anew.")
    made = Frozen(
        event.id,
        event.annotator,
        event.time,
        str(p["of"]),
        float(p["error"]),
        float(p["confidence"]),
        int(p["attempt"]),
        int(p["seed"]),
        items,
        codes,
        confidences,
        tuple(map(int, p["sizes"])),
        tuple(map(str, p["classes"])),
        _listing([str(ids[item]) for item in items.tolist()]),
        str(p["checksum"]),
        int(p.get("round", -1)),
        int(p.get("n_labelled", 0)),
    )
    with _LOCK:
        while len(_FROZEN) >= _KEPT:
            _FROZEN.popitem(last=False)
        _FROZEN[key] = made
    return made


def frozen_items(payload: Mapping[str, Any]) -> Ints:
    """[N] the items of an event's frozen labels.

    Raises:
        InputError: the record is damaged.
    """
    return _unpacked(payload["frozen"]["items"], "<i8")


def _listing(ids: list[str]) -> Ints:
    place_of = {one: place for place, one in enumerate(ids)}
    if len(place_of) < len(ids):
        raise InputError("Two items have the same id, so a certificate could not tell them apart.")
    return np.array([place_of[one] for one in listed_order(ids)], dtype=np.int64)


def answers_of(frozen: Frozen, state: ProjectState, item: int) -> list[Check]:
    """What people said of an item in these checks, the first answer first."""
    given = (check for check in state.checks.get(item, {}).values() if check.started == frozen.started)
    return sorted(given, key=lambda check: check.event)


def n_answered(frozen: Frozen, state: ProjectState) -> int:
    """How many of the frozen labels were checked, in whatever order."""
    return sum(
        any(check.started == frozen.started for check in checks.values()) for checks in state.checks.values()
    )


def drawn(frozen: Frozen) -> Iterator[int]:
    """Places in the order of the draws, as far as they are asked for."""
    known = 0
    while known < frozen.size:
        chunk = frozen.order(max(64, 2 * known))
        yield from chunk[known:].tolist()
        known = len(chunk)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The answers that count: those of the draws up to the first that nobody has answered.

    Attributes:
        places: [t] of the frozen labels.
        wrong: [t] whether the answer is another class, or that nobody can tell.
        later: answers to draws after one that somebody still has before them.
        waits_for: item of that one; -1 where nothing waits.
        disagreements: checks that several people answered, differently.
    """

    places: Ints
    wrong: Array
    later: int
    waits_for: int
    disagreements: int

    @property
    def checks(self) -> int:
        """How many count."""
        return len(self.places)

    def within(self, size: int) -> Array:
        """[t'] of `wrong`, of the draws that fell among the surest `size`."""
        found: Array = self.wrong[self.places < size]
        return found


def evidence(frozen: Frozen, state: ProjectState) -> Evidence:
    """What the answers so far are worth."""
    places: list[int] = []
    wrong: list[bool] = []
    disagreements = 0
    total = n_answered(frozen, state)
    waits = -1
    for place in drawn(frozen):
        item = int(frozen.items[place])
        given = answers_of(frozen, state, item)
        if not given:
            waits = item if len(places) < total else -1
            break
        places.append(place)
        wrong.append(given[0].key != frozen.key(place))
        disagreements += len({check.key for check in given}) > 1
    return Evidence(
        np.asarray(places, dtype=np.int64),
        np.asarray(wrong, dtype=bool),
        total - len(places),
        waits,
        disagreements,
    )


def bound_after(frozen: Frozen, size: int, wrong: Array) -> list[float]:
    """[t + 1] the upper bound before the first check and after each; an answer adds to what is kept."""
    key = (frozen.checksum, frozen.started, size)
    given = wrong.tolist()
    with _LOCK:
        kept = _BOUNDS.pop(key, None)
        if kept is None or given[: len(kept.given)] != kept.given:
            kept = _Bounding(Bound(size, frozen.confidence_here, [frozen.error]), [], [1.0])
        for one in given[len(kept.given) :]:
            kept.curve.append(kept.bound.add(one))
        kept.given = given
        while len(_BOUNDS) >= _KEPT:
            _BOUNDS.popitem(last=False)
        _BOUNDS[key] = kept
        return list(kept.curve)


def to_go(wrong: Array, size: int, error: float, confidence: float) -> int | None:
    """About how many checks are to go, if the share of wrong ones stays what it is.

    Args:
        wrong: [t] so far, within the set.
        size: of the set.
        error: allowed share.
        confidence: of this attempt.

    Returns:
        0 where the checks suffice; None where they would not at this rate.
    """
    t = len(wrong)
    n = min(size - t, LOOKED_AHEAD)
    rate = float(wrong.sum()) / max(t, _FEW)  # one wrong label among a few tells little
    ahead = np.arange(1, n + 1)
    after = np.floor(rate * (ahead + 0.5)).astype(np.int64)  # evenly spread
    future = np.diff(after, prepend=0) > 0
    reached = int(first_reached(log_wealth(np.concatenate([wrong, future]), size, error), confidence))
    return max(0, reached - t) if reached else None


@dataclass
class _Bounding:
    bound: Bound
    given: list[bool]
    curve: list[float]


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
_FROZEN: OrderedDict[tuple[str, int, str], Frozen] = OrderedDict()
_BOUNDS: OrderedDict[tuple[str, int, int], _Bounding] = OrderedDict()
