"""State of a project by its events, as read-only records."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from workbench.store.events import Event

REVIEW = "review"
"""The role of labels that were given in review."""


@dataclass(frozen=True, slots=True)
class Vote:
    """One annotator's standing label of one item.

    Attributes:
        key: the class as it was given, before merges.
        annotator: who.
        event: id of the event.
        time: of the event.
        role: how the item came up: "policy", "evaluation", "cold-start", "map", "review", ...
        final: True for the end of a disagreement ("resolved", or relabelled in review).
        first: the key they gave before, where they looked at the item a second time; else "".
        own: the key they gave by themselves, where this one decides a disagreement or was given in review,
            with a label in sight; else "".
    """

    key: str
    annotator: str
    event: int
    time: str
    role: str = ""
    final: bool = False
    first: str = ""
    own: str = ""

    @property
    def by_themselves(self) -> str:
        """The key they gave without a label in sight; "" where they gave none."""
        return self.own if self.final or self.role == REVIEW else self.key


@dataclass(frozen=True, slots=True)
class Check:
    """One annotator's standing answer to a check of an item's frozen label.

    Attributes:
        started: id of the event that froze the labels.
        key: the class as it was given; "" where the annotator could not tell.
        annotator: who.
        event: id of the event.
        time: of the event.
        first: id of the event of their first answer in these checks: its place among those of others stays,
            whatever they say later, and where they take it back and answer again.
    """

    started: int
    key: str
    annotator: str
    event: int
    time: str
    first: int


@dataclass(frozen=True)
class Note:
    """A remark about an item."""

    text: str
    annotator: str
    time: str


@dataclass(frozen=True)
class Instructions:
    """A version of the instructions.

    Attributes:
        version: from 1.
        text: Markdown; "" where they were taken away.
        annotator: who wrote it.
        time: UTC, ISO 8601.
        event: id of the event that recorded it.
    """

    version: int
    text: str
    annotator: str
    time: str
    event: int


@dataclass(frozen=True, slots=True)
class Ask:
    """A question: which class is this item?

    Attributes:
        id: give it back to `Session.tell`.
        item: index into the pool.
        role: why it is asked: "policy", "evaluation" (drawn uniformly, never trained on), "cold-start"
            (spread over the pool, before two classes are known), "again" (its answer was taken back, or
            it was skipped and asked for anew), "overlap" (somebody else labelled it, and several people
            are to), "chosen" (by the person), "second" (a label of theirs that they look at again),
            "uniform" (drawn uniformly whatever the policy, and trained on), "grid" (one of many shown
            together), "together" (another question about its item is asked), "check" (of a frozen label,
            drawn uniformly and answered without seeing it).
        expires: epoch seconds; until then nobody else is asked about the item.
        details: what else is recorded of it: "policy" (whose utility it is; while a class is looked for that
            nobody has seen, not the project's), "classifier" (whose fit chose it), "n_labelled" (labels which
            that fit, or the one published then, had learnt from), and what the properties say.
        annotator: to whom; "" before it is recorded.
        event: id of the event that recorded it (first lease).
        answered: an answer was accepted (an undone one counts: the item is asked again under a new id).
        released: given back unanswered.
    """

    id: str
    item: int
    role: str
    expires: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)
    annotator: str = ""
    event: int = 0
    answered: bool = False
    released: bool = False

    @property
    def utility(self) -> float | None:
        """The policy's; None where it was not chosen by one."""
        utility = self.details.get("utility")
        return None if utility is None else float(utility)

    @property
    def round(self) -> int:
        """Number of the fit that chose it; -1 for none."""
        return int(self.details.get("round", -1))

    @property
    def guess(self) -> Sequence[tuple[str, float]]:
        """(key of a class, its probability) of the likeliest classes then, best first."""
        return self.details.get("guess") or ()

    @property
    def check(self) -> int:
        """Event that froze the label which is checked; 0 for none."""
        return int(self.details.get("check", 0))

    @property
    def counted(self) -> bool:
        """True if it takes one of the places of which some are drawn to measure on.

        One asked together with another's draw, where this question's own draw is still to come, takes none.
        """
        return bool(self.details.get("counted", True))

    def document(self) -> dict[str, Any]:
        """Fields of the question that are recorded."""
        return {**self.details, "id": self.id, "item": self.item, "role": self.role}


@dataclass(frozen=True)
class ProjectState:
    """Everything a project's events add up to. Treat the mappings as read-only.

    Attributes:
        class_names: key -> name of the classes that stand (added, not merged away and not removed), in order.
        removed: key -> the last name of the classes that were removed and are not back.
        class_about: key -> what is said of the class: "guidance", "shortcut", "colour".
        class_order: keys in the order in which they are shown, as far as somebody chose one.
        merged: key -> key it was merged into.
        votes: item -> annotator -> standing vote, in the order in which the items got their labels.
        standing: item -> the vote that counts: the latest end of a disagreement, else the latest of the
            majority's; of a tie the latest, which nothing learns from.
        undecided: items whose votes tie.
        codes: item -> int code of its class.
        training: item -> code of the labels a model may learn from: all but the evaluation set's and the
            undecided ones.
        skipped: items set aside that nobody has labelled.
        unsure: items somebody could not tell and nobody has labelled.
        requeued: items that were one of these and are to be asked about again.
        answered: items that need not be asked again: labelled, skipped or unsure.
        flagged: item -> reason.
        notes: item -> remarks, oldest first.
        evaluation: items drawn for measuring; never trained on.
        asks: id -> ask.
        waiting: annotator -> ids of their asks that no answer closed, oldest first.
        operations: id of a client's operation -> id of the event that records it.
        rounds: payloads of the finished fits, oldest first.
        checks: item -> annotator -> their answer to a check, whatever was said of the item since.
        frozen: the events that froze labels to be checked, oldest first.
        certified: the events that recorded a certificate, oldest first.
        model: classifier, options, policy and guesses where they were changed since the project was made.
        instructions: all their versions, oldest first; the last one is in force.
        pictures: name -> the event that holds a picture of the instructions.
        read: annotator -> (event, version) each time they read the instructions, oldest first.
        examples: key of a class -> items that people picked to show what it is.
        wanted: annotator -> items they want to be asked about and nobody has answered, in order.
        second: annotator -> items of theirs they want to look at again.
        reopened: annotator -> items whose answer they took back and that have none now, latest first.
        undoable: annotator -> the event an undo of theirs would take back.
        redoable: annotator -> the event a redo of theirs would put back.
        newest: annotator -> id of their newest event that can be undone, or was.
        undone_by: annotator -> id of the undo that took the event of `redoable` back.
        learnable: a text that is the same only for the same votes on items that are not measured on.
        places: questions that were drawn, or might have been, for measuring and were not given back.
        most_places: the most that these have been: so many draws were made.
        n_shared: how many items several people labelled.
        n_events: how many events were folded.
        last_event: id of the last one.
    """

    class_names: Mapping[str, str]
    removed: Mapping[str, str]
    class_about: Mapping[str, Mapping[str, str]]
    class_order: tuple[str, ...]
    merged: Mapping[str, str]
    votes: Mapping[int, Mapping[str, Vote]]
    standing: Mapping[int, Vote]
    undecided: AbstractSet[int]
    codes: Mapping[int, int]
    training: Mapping[int, int]
    skipped: AbstractSet[int]
    unsure: AbstractSet[int]
    requeued: AbstractSet[int]
    answered: AbstractSet[int]
    flagged: Mapping[int, str]
    notes: Mapping[int, tuple[Note, ...]]
    evaluation: AbstractSet[int]
    asks: Mapping[str, Ask]
    waiting: Mapping[str, Sequence[str]]
    operations: Mapping[str, int]
    rounds: Sequence[Mapping[str, Any]]
    checks: Mapping[int, Mapping[str, Check]]
    frozen: Sequence[Event]
    certified: Sequence[Event]
    model: Mapping[str, Any]
    instructions: tuple[Instructions, ...]
    pictures: Mapping[str, Event]
    read: Mapping[str, tuple[tuple[int, int], ...]]
    examples: Mapping[str, tuple[int, ...]]
    wanted: Mapping[str, tuple[int, ...]]
    second: Mapping[str, tuple[int, ...]]
    reopened: Mapping[str, tuple[int, ...]]
    undoable: Mapping[str, Event]
    redoable: Mapping[str, Event]
    newest: Mapping[str, int]
    undone_by: Mapping[str, int]
    learnable: str
    places: int
    most_places: int
    n_shared: int
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
    def shown_classes(self) -> tuple[str, ...]:
        """Names of the classes in the order in which people see them; `classes` is that of the codes."""
        first = [key for key in self.class_order if key in self.class_names]
        return tuple(self.class_names[key] for key in dict.fromkeys((*first, *self.class_names)))

    @cached_property
    def labels(self) -> Mapping[int, str]:
        """Item -> name of its class."""
        names = self.classes
        return {item: names[code] for item, code in self.codes.items()}

    @cached_property
    def decided(self) -> Mapping[int, str]:
        """Item -> name of its class, of the items on which people agree or somebody decided."""
        return {item: name for item, name in self.labels.items() if item not in self.undecided}

    @cached_property
    def conflicts(self) -> tuple[int, ...]:
        """Items on which annotators differ and nobody has decided."""
        return tuple(
            item
            for item, votes in self.votes.items()
            if len(votes) > 1
            and len({self.resolve(v.key) for v in votes.values()}) > 1
            and not self.standing[item].final
        )

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Class name -> number of labelled items."""
        counter = Counter(self.codes.values())
        return {name: counter[code] for code, name in enumerate(self.classes)}

    @cached_property
    def trained_classes(self) -> AbstractSet[int]:
        """Codes of the classes that some label of the training set names."""
        return frozenset(self.training.values())

    def version_at(self, event: int) -> int:
        """The version of the instructions in force when an event was recorded; 0 before the first."""
        return bisect_left(self.instructions, event, key=lambda version: version.event)

    def version_read(self, annotator: str, event: int | None = None) -> int:
        """The latest version that a person has read, or had read before an event; 0 for none."""
        readings = self.read.get(annotator, ())
        if event is not None:
            readings = readings[: bisect_left(readings, (event, 0))]
        return max((version for _, version in readings), default=0)

    @property
    def n_labelled(self) -> int:
        """Number of items with a label."""
        return len(self.votes)

    def resolve(self, key: str) -> str:
        """The class that labels of class `key` count as after merges."""
        while key in self.merged:
            key = self.merged[key]
        return key

    def class_name(self, key: str) -> str:
        """Name of the class that labels of class `key` count as, its last where it is gone; else its key."""
        root = self.resolve(key)
        return self.class_names.get(root) or self.removed.get(root, root)
