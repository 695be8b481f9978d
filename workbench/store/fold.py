"""The state of a project as a pure function of its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from workbench.store.events import ANSWERS, UNDOABLE, Event


@dataclass(frozen=True)
class Vote:
    """One annotator's standing label of one item.

    Attributes:
        key: the class as it was given, before merges.
        annotator: who.
        event: id of the event.
        time: of the event.
        role: how the item came up: "policy", "evaluation", "cold-start", "map", "imported", ...
        final: True for the end of a disagreement ("resolved").
    """

    key: str
    annotator: str
    event: int
    time: str
    role: str = ""
    final: bool = False


@dataclass(frozen=True)
class Note:
    """A remark about an item."""

    text: str
    annotator: str
    time: str


@dataclass(frozen=True)
class AskRecord:
    """One question that was shown.

    Attributes:
        id: of the ask.
        item: asked about.
        role: why: "policy", "evaluation", "cold-start", "again" (after an undo).
        annotator: to whom.
        expires: epoch seconds; afterwards others may be asked about the item.
        event: id of the event that recorded it (first lease).
        answered: an answer was accepted (an undone one counts: the item is asked again under a new id).
        details: whatever else was recorded: utility, rank, round, policy.
    """

    id: str
    item: int
    role: str
    annotator: str
    expires: float
    event: int
    answered: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ProjectState:
    """Everything a project's events add up to. Treat the mappings as read-only.

    Attributes:
        class_names: key -> name of the classes that stand (added and not merged away), in order.
        merged: key -> key it was merged into.
        votes: item -> annotator -> standing vote.
        skipped: items set aside that nobody has labelled.
        unsure: items somebody could not tell and nobody has labelled.
        flagged: item -> reason.
        notes: item -> remarks, oldest first.
        evaluation: items drawn for measuring; never trained on.
        asks: id -> ask.
        rounds: payloads of the finished fits, oldest first.
        reopened: annotator -> items whose answer they took back and that have none now, latest first.
        undoable: annotator -> the event an undo of theirs would take back.
        redoable: annotator -> the event a redo of theirs would put back.
        n_events: how many events were folded.
        last_event: id of the last one.
    """

    class_names: Mapping[str, str]
    merged: Mapping[str, str]
    votes: Mapping[int, Mapping[str, Vote]]
    skipped: frozenset[int]
    unsure: frozenset[int]
    flagged: Mapping[int, str]
    notes: Mapping[int, tuple[Note, ...]]
    evaluation: frozenset[int]
    asks: Mapping[str, AskRecord]
    rounds: tuple[Mapping[str, Any], ...]
    reopened: Mapping[str, tuple[int, ...]]
    undoable: Mapping[str, Event]
    redoable: Mapping[str, Event]
    n_events: int
    last_event: int

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes that stand, in order; their positions are the int codes."""
        return tuple(self.class_names.values())

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Keys of the classes that stand, in the order of `classes`."""
        return tuple(self.class_names)

    @cached_property
    def standing(self) -> Mapping[int, Vote]:
        """Item -> the vote that counts: the end of a disagreement, else the latest."""
        return {item: max(votes.values(), key=lambda v: v.event) for item, votes in self.votes.items()}

    @cached_property
    def codes(self) -> Mapping[int, int]:
        """Item -> int code of its class, in the order of the items' first labels."""
        position = {key: code for code, key in enumerate(self.class_names)}
        return {item: position[self.resolve(vote.key)] for item, vote in self.standing.items()}

    @cached_property
    def labels(self) -> Mapping[int, str]:
        """Item -> name of its class."""
        return {item: self.classes[code] for item, code in self.codes.items()}

    @cached_property
    def training(self) -> Mapping[int, int]:
        """Item -> code of the labels a model may learn from: all but the evaluation set's."""
        return {item: code for item, code in self.codes.items() if item not in self.evaluation}

    @cached_property
    def answered(self) -> frozenset[int]:
        """Items that need not be asked again: labelled, skipped or unsure."""
        return frozenset(self.votes) | self.skipped | self.unsure

    @cached_property
    def conflicts(self) -> tuple[int, ...]:
        """Items on which annotators differ and nobody has decided."""
        return tuple(
            item
            for item, votes in self.votes.items()
            if len({self.resolve(v.key) for v in votes.values()}) > 1 and not self.standing[item].final
        )

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Class name -> number of labelled items."""
        counts = dict.fromkeys(self.classes, 0)
        for name in self.labels.values():
            counts[name] += 1
        return counts

    @property
    def n_labelled(self) -> int:
        """How many items have a label."""
        return len(self.votes)

    def resolve(self, key: str) -> str:
        """The class that labels of class `key` count as after merges."""
        while key in self.merged:
            key = self.merged[key]
        return key


class Folder:
    """Folds events one at a time; `state()` equals `fold` of everything pushed so far."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = []
        self._done: dict[str, list[int]] = {}
        self._undone: dict[str, list[int]] = {}
        self._inactive: set[int] = set()
        self._state: ProjectState | None = None
        self._clear()
        self.extend(events)

    def extend(self, events: Iterable[Event]) -> None:
        """Fold more events, oldest first."""
        stale = False
        for event in events:
            stale = self._push(event, apply=not stale) or stale
        if stale:
            self._replay()

    def state(self) -> ProjectState:
        """What the events so far add up to."""
        if self._state is None:
            self._state = self._freeze()
        return self._state

    @property
    def standing(self) -> set[int]:
        """Ids of the events that no undo has taken back."""
        return {e.id for p, e in enumerate(self.events) if p not in self._inactive}

    def _push(self, event: Event, apply: bool) -> bool:
        """Take in one event; True when what was applied before no longer stands."""
        self._state = None
        self.events.append(event)
        position = len(self.events) - 1
        done = self._done.setdefault(event.annotator, [])
        undone = self._undone.setdefault(event.annotator, [])
        if event.kind == "undo":
            if done:
                undone.append(done.pop())
                self._inactive.add(undone[-1])
                return True
            return False
        if event.kind == "redo":
            if undone:
                done.append(undone.pop())
                self._inactive.discard(done[-1])
                return True
            return False
        if event.kind in UNDOABLE:
            done.append(position)
            undone.clear()
        if apply:
            self._apply(position, event)
        return False

    def _clear(self) -> None:
        self._names: dict[str, str] = {}
        self._merged: dict[str, str] = {}
        self._votes: dict[int, dict[str, Vote]] = {}
        self._skipped: set[int] = set()
        self._unsure: set[int] = set()
        self._flagged: dict[int, str] = {}
        self._notes: dict[int, list[Note]] = {}
        self._evaluation: set[int] = set()
        self._asks: dict[str, AskRecord] = {}
        self._answered: set[str] = set()
        self._rounds: list[Mapping[str, Any]] = []

    def _replay(self) -> None:
        self._clear()
        for position, event in enumerate(self.events):
            if position not in self._inactive:
                self._apply(position, event)
            else:
                self._close(event)

    def _apply(self, position: int, event: Event) -> None:
        payload = event.payload
        self._close(event)
        match event.kind:
            case "label":
                self._vote(int(payload["item"]), str(payload["class"]), event, str(payload.get("role", "")))
            case "imported":
                for item, key in payload["labels"]:
                    self._vote(int(item), str(key), event, "imported")
            case "resolved":
                self._vote(int(payload["item"]), str(payload["class"]), event, "resolved", final=True)
            case "skip":
                if int(payload["item"]) not in self._votes:
                    self._skipped.add(int(payload["item"]))
            case "unsure":
                item = int(payload["item"])
                votes = self._votes.get(item, {})
                votes.pop(event.annotator, None)
                if not votes:
                    self._votes.pop(item, None)
                    self._skipped.discard(item)
                    self._unsure.add(item)
            case "flag":
                if payload.get("on", True):
                    self._flagged[int(payload["item"])] = str(payload.get("reason", ""))
                else:
                    self._flagged.pop(int(payload["item"]), None)
            case "note":
                note = Note(str(payload["text"]), event.annotator, event.time)
                self._notes.setdefault(int(payload["item"]), []).append(note)
            case "class-added":
                self._names.setdefault(str(payload["class"]), str(payload["name"]))
            case "class-renamed":
                self._ensure(str(payload["class"]))
                self._names[str(payload["class"])] = str(payload["name"])
            case "class-merged":
                self._merge(str(payload["class"]), str(payload["into"]))
            case "asked":
                self._ask(event)
            case "round":
                self._rounds.append(payload)

    def _close(self, event: Event) -> None:
        """An answer uses its ask up, also one that was taken back since."""
        if event.kind in ANSWERS and "ask" in event.payload:
            id_ = str(event.payload["ask"])
            self._answered.add(id_)
            if id_ in self._asks:
                self._asks[id_] = replace(self._asks[id_], answered=True)

    def _vote(self, item: int, key: str, event: Event, role: str, final: bool = False) -> None:
        self._ensure(key)
        votes = self._votes.setdefault(item, {})
        votes[event.annotator] = Vote(key, event.annotator, event.id, event.time, role, final)
        self._skipped.discard(item)
        self._unsure.discard(item)

    def _ensure(self, key: str) -> None:
        # A label of a class whose adding was undone keeps its class: labels are never lost.
        self._names.setdefault(key, key)

    def _merge(self, key: str, into: str) -> None:
        self._ensure(key)
        self._ensure(into)
        target = into
        while target in self._merged:
            target = self._merged[target]
        if target != key:
            self._merged.setdefault(key, target)

    def _ask(self, event: Event) -> None:
        expires = float(event.payload["expires"])
        for ask in event.payload["asks"]:
            details = {name: value for name, value in ask.items() if name not in ("id", "item", "role")}
            known = self._asks.get(str(ask["id"]))
            first = event.id if known is None else known.event
            role = str(ask.get("role", ""))
            record = AskRecord(
                id=str(ask["id"]),
                item=int(ask["item"]),
                role=role,
                annotator=event.annotator,
                expires=expires,
                event=first,
                answered=str(ask["id"]) in self._answered,
                details=details,
            )
            self._asks[record.id] = record
            if role == "evaluation":
                self._evaluation.add(record.item)

    def _freeze(self) -> ProjectState:
        answered = set(self._votes) | self._skipped | self._unsure
        reopened: dict[str, tuple[int, ...]] = {}
        for annotator, undone in self._undone.items():
            taken_back = [self.events[p].item for p in reversed(undone) if self.events[p].kind in ANSWERS]
            items = tuple(dict.fromkeys(i for i in taken_back if i is not None and i not in answered))
            if items:
                reopened[annotator] = items
        return ProjectState(
            class_names={k: n for k, n in self._names.items() if k not in self._merged},
            merged=dict(self._merged),
            votes={item: dict(votes) for item, votes in self._votes.items()},
            skipped=frozenset(self._skipped),
            unsure=frozenset(self._unsure),
            flagged=dict(self._flagged),
            notes={item: tuple(notes) for item, notes in self._notes.items()},
            evaluation=frozenset(self._evaluation),
            asks=dict(self._asks),
            rounds=tuple(self._rounds),
            reopened=reopened,
            undoable={a: self.events[p[-1]] for a, p in self._done.items() if p},
            redoable={a: self.events[p[-1]] for a, p in self._undone.items() if p},
            n_events=len(self.events),
            last_event=self.events[-1].id if self.events else 0,
        )


def fold(events: Iterable[Event]) -> ProjectState:
    """The state after `events`, oldest first; a pure function of them."""
    return Folder(events).state()
