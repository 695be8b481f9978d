"""Checks of frozen labels: what was frozen, in which order it is checked, and what the answers add up to."""

from __future__ import annotations

import base64
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.certificates import (
    AuditDesign,
    Draws,
    Promise,
    SequentialBound,
    Tally,
    checksum_of,
    confidence_at,
    draws_of_strata,
    listed_order,
)
from workbench.certificates.certificate import BY_CLASS
from workbench.errors import InputError
from workbench.store import Check, Event, ProjectState

MODEL = "model"
"""What freezes the model's own labels; else a column of somebody's, "column:NAME"."""
BANDS = 5
"""Of confidence, that draws may be made within."""
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
        drawn_from: checksum of the labels as classes were called when they were frozen; the seed is of it.
        also: further errors with their sets.
        strata: "class" or "confidence", what draws are made within; "" for none.
        per_class: whether precision and recall of each class are stated.
        twice: whether two people answer each check.
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
    drawn_from: str = ""
    also: tuple[Promise, ...] = ()
    strata: str = ""
    per_class: bool = False
    twice: bool = False

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
    def design(self) -> AuditDesign:
        """What was promised, for the test."""
        return AuditDesign(
            self.size,
            self.error,
            self.sizes,
            self.confidence_here,
            self.also,
            {size: tuple(counts) for size, counts in self.strata_counts},
        )

    @cached_property
    def stratum(self) -> Ints:
        """[N] of each frozen label; all of one where draws are uniform over all."""
        if not self.strata:
            return np.zeros(self.size, dtype=np.int64)
        return self.codes if self.strata == BY_CLASS else np.arange(self.size) * BANDS // self.size

    @property
    def strata_counts(self) -> list[tuple[int, list[int]]]:
        """(size, labels in each stratum) of each set that is tested; none where draws are uniform."""
        if not self.strata:
            return []
        sizes = {size for one in ((self.error, self.sizes), *self.also) for size in one[1]}
        groups = len(self.classes) if self.strata == BY_CLASS else BANDS
        return [(size, np.bincount(self.stratum[:size], minlength=groups).tolist()) for size in sorted(sizes)]

    @cached_property
    def _draws(self) -> Draws:
        return Draws(self.size, self.seed, self.attempt)

    @cached_property
    def _within(self) -> list[Ints]:
        return [np.empty(0, dtype=np.int64)]  # drawn so far, within strata

    @cached_property
    def sofar(self) -> dict[int, _Kept]:
        """What answers add to: the tally (0), and the bound of each set that is shown, by its size."""
        return {}

    @cached_property
    def place_of(self) -> Mapping[int, int]:
        """Item -> its place among the frozen labels."""
        return {item: place for place, item in enumerate(self.items.tolist())}

    def order(self, count: int) -> Ints:
        """[n] places of the first `count` draws."""
        with _LOCK:
            if not self.strata:
                return self.listing[self._draws.first(count)]
            if len(self._within[0]) < min(count, self.size):
                more = max(64, 2 * count)
                self._within[0] = draws_of_strata(self.stratum[self.listing], self.seed, more, self.attempt)
            return self.listing[self._within[0][:count]]

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
    drawn_from: str,
    also: Sequence[Promise] = (),
    strata: str = "",
    per_class: bool = False,
    twice: bool = False,
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
        "drawn_from": drawn_from,
        "also": [{"error": one.error, "sizes": list(one.sizes)} for one in also],
        "strata": strata,
        "per_class": per_class,
        "twice": twice,
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
    key = (f"{p['checksum']} {p['error']} {p['confidence']}", event.id, event.time)
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
        str(p["drawn_from"]),
        tuple(Promise(float(one["error"]), tuple(map(int, one["sizes"]))) for one in p["also"]),
        str(p["strata"]),
        bool(p["per_class"]),
        bool(p["twice"]),
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
        strata: [t] that they were drawn within; 0 where draws are uniform over all.
        later: answers to draws after one that somebody still has before them.
        waits_for: item of that one; -1 where nothing waits.
        disagreements: checks that several people answered, differently.
    """

    places: Ints
    wrong: Array
    strata: Ints
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
        frozen.stratum[np.asarray(places, dtype=np.int64)],
        total - len(places),
        waits,
        disagreements,
    )


def bound_after(frozen: Frozen, size: int, found: Evidence) -> list[float]:
    """[t + 1] the upper bound on a set before its first check and after each, kept up to date."""
    inside = found.places < size
    given = list(zip(found.wrong[inside].tolist(), found.strata[inside].tolist(), strict=True))
    with _LOCK:
        kept = _kept(
            frozen,
            size,
            given,
            lambda: SequentialBound(frozen.design, size, frozen.confidence_here),
        )
        for wrong, stratum in given[len(kept.given) :]:
            kept.made.add(wrong, stratum)
        kept.given = given
        return list(kept.made.curve)


def tally_of(frozen: Frozen, found: Evidence) -> list[tuple[int, int, int]]:
    """What is certified: (promise, size, draws it took) each; an answer adds to what is kept."""
    given = list(zip(found.places.tolist(), found.wrong.tolist(), found.strata.tolist(), strict=True))
    with _LOCK:
        kept = _kept(frozen, 0, given, lambda: Tally(frozen.design))
        for place, wrong, stratum in given[len(kept.given) :]:
            kept.made.add(place, wrong, stratum)
        kept.given = given
        return list(kept.made.certified_at())


def _kept(frozen: Frozen, key: int, given: list[Any], make: Callable[[], Any]) -> _Kept:
    kept = frozen.sofar.get(key)
    if kept is None or given[: len(kept.given)] != kept.given:
        kept = frozen.sofar[key] = _Kept(make(), [])
    return kept


@dataclass
class _Kept:
    made: Any
    given: list[Any]


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
