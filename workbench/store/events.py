"""Events of a project; the only thing a project's state is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

ANSWERS = ("label", "skip", "unsure")
OF_ITEM = ("skip", "flag", "note")
"""Kinds of events about an item, whatever is asked of it."""
OF_ITEMS = (*OF_ITEM, "wanted", "released", "undo", "redo")
"""Kinds of events that may be about items, whatever is asked of them."""
GIVING = ("label", "resolved", "confirmed", "relabelled")
"""What gives items a class, beside an import."""
UNDOABLE = (
    *ANSWERS,
    "flag",
    "note",
    "class-added",
    "class-renamed",
    "class-merged",
    "class-removed",
    "class-described",
    "classes-ordered",
    "imported",
    "confirmed",
    "relabelled",
    "cleared",
    "requeued",
    "wanted",
    "resolved",
)
MADE = "."
"""Beginning of an id that was made here for an operation; no id of a client begins so."""
SOURCE = "source"
"""Whose the classes and labels are that a pool brings; no person is called so."""
KINDS = (
    *UNDOABLE,
    "undo",
    "redo",
    "asked",
    "released",
    "round",
    "model-changed",
    "guesses-changed",
    "question-changed",
    "names-hidden",
    "picture-kept",
    "instructions-written",
    "instructions-read",
    "example-picked",
    "checks-started",
    "certified",
)
STAGES = ("round", "checks-started", "certified")
"""Kinds of the events that say what comes next in a project."""
_KNOWN = frozenset(KINDS)
# What may be said of a class.
ABOUT = ("guidance", "shortcut", "colour")


class FileVote(NamedTuple):
    """A label in a file that names a person, or whose author had the last word.

    Attributes:
        item: index into the pool.
        label: name of the class; in an event, its key.
        person: whose vote it is; "" for the file itself, which is a rater of its own.
        time: when it was given, UTC, ISO 8601; "" for when it is taken in.
        final: it decides whatever others said.
    """

    item: int
    label: str
    person: str = ""
    time: str = ""
    final: bool = False


def now() -> str:
    """The present moment, UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened; build them with the constructors below.

    Classes are named by their key, which is the name the class had when it was added: a later
    renaming changes the name and not the key, so events never need rewriting.

    Attributes:
        kind: one of `KINDS`.
        payload: JSON; what each kind holds is said by its constructor.
        annotator: who did it.
        time: UTC, ISO 8601; set when recorded.
        id: its number within the project, from 1; 0 before it is recorded.
        question: id of the question that it answers; "" before it is recorded, None where it is about items
            whatever is asked of them. "questions" of the payload are then those that it counts in, each by
            its first event (0 for the first question); all of them where that is not said.
    """

    kind: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    annotator: str = ""
    time: str = ""
    id: int = 0
    question: str | None = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.kind in OF_ITEM:
            object.__setattr__(self, "question", None)
        if self.kind not in _KNOWN:
            raise ValueError(f"There is no event of kind {self.kind!r}. Known: {', '.join(KINDS)}.")

    @property
    def item(self) -> int | None:
        """The item it is about, where it is about one."""
        item = self.payload.get("item")
        return None if item is None else int(item)

    @property
    def said(self) -> list[tuple[int, str | None]]:
        """The items that a decision is about, each with the key of the class that it gives, if any."""
        if self.kind == "imported":
            return [(int(entry[0]), str(entry[1])) for entry in self.payload["labels"]]
        key = str(self.payload["class"]) if self.kind in GIVING else None
        items = self.payload["items"] if "items" in self.payload else (self.payload["item"],)
        return [(int(item), key) for item in items]

    @property
    def n_items(self) -> int:
        """The items that a pool must have for this event to mean something there."""
        payload = self.payload
        items = payload.get("item", -1), *payload.get("items", ()), *payload.get("rejected", ())
        if self.kind == "asked":
            items += tuple(ask["item"] for ask in payload["asks"])
        elif self.kind == "imported":
            items += tuple(entry[0] for entry in payload["labels"])
        return max(int(payload.get("n_items", 0)), 1 + max(items))

    def counts_in(self, begun: int) -> bool:
        """True if it is about items and counts in the question that began with this event."""
        return self.question is None and begun in self.payload.get("questions", (begun,))

    @property
    def act(self) -> str | None:
        """Id of the operation that it is part of; events that have one are one act."""
        act = self.payload.get("act", self.payload.get("operation"))
        return None if act is None else str(act)

    @property
    def operation(self) -> str | None:
        """Id of the operation of a client that it records, where the client gave one."""
        operation = self.payload.get("operation")
        return None if operation is None or str(operation).startswith(MADE) else str(operation)

    @classmethod
    def label(cls, key: str, item: int | None = None, **more: Any) -> Event:
        """The item belongs to class `key`; `more` is provenance (role, round, policy, ...)."""
        return cls("label", _about(item, {"class": key, **more}))

    @classmethod
    def skip(cls, item: int | None = None, **more: Any) -> Event:
        """Not now: the item is set aside."""
        return cls("skip", _about(item, more))

    @classmethod
    def unsure(cls, item: int | None = None, **more: Any) -> Event:
        """The annotator cannot tell; takes back the annotator's own label of the item."""
        return cls("unsure", _about(item, more))

    @classmethod
    def flag(cls, item: int | Sequence[int], on: bool = True, reason: str = "") -> Event:
        """The item needs attention, or (`on=False`) no longer does; of several, one undo takes all back."""
        return cls("flag", {**_items(item), "on": on, "reason": reason})

    @classmethod
    def note(cls, item: int | Sequence[int], text: str) -> Event:
        """A remark about the item, or one about several."""
        return cls("note", {**_items(item), "text": text})

    @classmethod
    def undo(cls, of: int | None = None) -> Event:
        """Take back the annotator's own last undoable event; with `of`, only if that is its id."""
        return cls("undo", {} if of is None else {"of": int(of)})

    @classmethod
    def redo(cls) -> Event:
        """Put back what the annotator's last undo took."""
        return cls("redo")

    @classmethod
    def class_added(cls, key: str, name: str | None = None) -> Event:
        """A class with a new key; its name is the key unless given."""
        return cls("class-added", {"class": key, "name": key if name is None else name})

    @classmethod
    def class_renamed(cls, key: str, name: str) -> Event:
        """Class `key` is called `name` from here on."""
        return cls("class-renamed", {"class": key, "name": name})

    @classmethod
    def class_merged(cls, key: str, into: str) -> Event:
        """All labels of class `key` count as class `into`."""
        return cls("class-merged", {"class": key, "into": into})

    @classmethod
    def class_removed(cls, key: str) -> Event:
        """Nobody needs class `key`: it is gone while no label names it, and back with the first that does."""
        return cls("class-removed", {"class": key})

    @classmethod
    def class_described(cls, key: str, **about: str) -> Event:
        """Description of class `key`: "guidance" (one line), "shortcut" and "colour"; "" takes it away."""
        return cls("class-described", {"class": key, **about})

    @classmethod
    def classes_ordered(cls, keys: Sequence[str]) -> Event:
        """The order in which the classes are shown; their codes stay."""
        return cls("classes-ordered", {"classes": list(keys)})

    @classmethod
    def imported(cls, labels: Sequence[tuple[int, str] | FileVote], source: str) -> Event:
        """Labels of a file (item, class key, maybe whose); one event, so that one undo takes all back."""
        return cls("imported", {"labels": [[int(i), *rest] for i, *rest in labels], "source": source})

    @classmethod
    def confirmed(
        cls,
        items: Sequence[int],
        key: str,
        rejected: Sequence[int] = (),
        asks: Sequence[str] = (),
        **more: Any,
    ) -> Event:
        """Many items shown together belong to class `key`, those of `rejected` do not.

        One event, so that one undo takes all back. The items are the model's surest: they are learnt
        from and never measured on. `asks` are the questions it closes.
        """
        payload = {"items": [int(i) for i in items], "class": key, "rejected": [int(i) for i in rejected]}
        return cls("confirmed", payload | {"asks": list(asks), "role": "confirmed", **more})

    @classmethod
    def relabelled(cls, items: Sequence[int], key: str, role: str, final: bool = False, **more: Any) -> Event:
        """Items of one's own choosing belong to class `key`; one event, so that one undo takes all back.

        A `final` one decides whatever others said about the items.
        """
        payload = {"items": [int(i) for i in items], "class": key, "role": role, **more}
        return cls("relabelled", payload | ({"final": True} if final else {}))

    @classmethod
    def cleared(cls, items: Sequence[int]) -> Event:
        """Whatever anybody decided about the items is taken away; they may be asked about again."""
        return cls("cleared", {"items": [int(i) for i in items]})

    @classmethod
    def wanted(cls, items: Sequence[int], how: str = "", second: bool = False) -> Event:
        """The annotator wants to be asked about these items, in this order.

        Args:
            items: indices.
            how: they were found, for the record.
            second: they have a label of the annotator's, who looks at them again without seeing it.
        """
        payload = {"items": [int(i) for i in items], "how": how}
        return cls("wanted", payload | ({"second": True} if second else {}))

    @classmethod
    def requeued(cls, items: Sequence[int]) -> Event:
        """Items that were skipped, or nobody could tell, are to be asked about again."""
        return cls("requeued", {"items": [int(i) for i in items]})

    @classmethod
    def resolved(cls, item: int | Sequence[int], key: str) -> Event:
        """A disagreement about the item, or about each of several, ends with class `key`."""
        return cls("resolved", {**_items(item), "class": key})

    @classmethod
    def asked(cls, asks: Sequence[Mapping[str, Any]], expires: float, *, first: bool = False) -> Event:
        """Questions shown: each {"id", "item", "role", ...}, leased until `expires` (epoch seconds).

        With `first` they stand before what else waits for the annotator: one of them is being looked at.
        """
        more = {"first": True} if first else {}
        return cls("asked", {"asks": [dict(ask) for ask in asks], "expires": float(expires), **more})

    @classmethod
    def released(cls, asks: Sequence[str]) -> Event:
        """Questions given back unanswered: their items are free for anybody."""
        return cls("released", {"asks": list(asks)})

    @classmethod
    def question_changed(cls, question: str) -> Event:
        """The question at the desk, in words; "" for the one that the project comes with."""
        return cls("question-changed", {"question": question})

    @classmethod
    def names_hidden(cls, on: bool) -> Event:
        """Setting: people are numbered, not named, where figures of each are shown."""
        return cls("names-hidden", {"on": bool(on)})

    @classmethod
    def picture_kept(cls, name: str, media: str, data: str) -> Event:
        """A picture of the instructions: its name, media type and bytes in base64."""
        return cls("picture-kept", {"picture": name, "media": media, "data": data})

    @classmethod
    def instructions_written(cls, text: str) -> Event:
        """The instructions from here on, in Markdown; "" for none. Pictures are named `picture:NAME`."""
        return cls("instructions-written", {"text": text})

    @classmethod
    def instructions_read(cls, version: int) -> Event:
        """The annotator has read the instructions up to this version."""
        return cls("instructions-read", {"version": int(version)})

    @classmethod
    def example_picked(cls, item: int, key: str, on: bool = True) -> Event:
        """The item shows what class `key` is, or (`on=False`) no longer does."""
        return cls("example-picked", {"item": int(item), "class": key, "on": bool(on)})

    @classmethod
    def model_changed(cls, classifier: str, options: Mapping[str, Any], policy: str) -> Event:
        """From here on this classifier learns and this policy chooses."""
        return cls("model-changed", {"classifier": classifier, "options": dict(options), "policy": policy})

    @classmethod
    def guesses_changed(cls, sources: Sequence[Mapping[str, Any]], n_items: int = 0) -> Event:
        """From here on fits start from these guesses, all of them: {"source", "on", ...} each.

        They are of a pool of `n_items`. A source that stands already is recorded without what it
        says of the items.
        """
        return cls("guesses-changed", {"sources": [dict(source) for source in sources], "n_items": n_items})

    @classmethod
    def checks_started(cls, plan: Mapping[str, Any]) -> Event:
        """Labels were frozen, and the order of their checks, as `sessions.checks.plan_of` has it."""
        return cls("checks-started", dict(plan))

    @classmethod
    def certified(
        cls, started: int, checks: Sequence[tuple[int, bool]], certificate: Mapping[str, Any]
    ) -> Event:
        """The checks that began with event `started` sufficed.

        Args:
            started: id of the event that froze the labels.
            checks: (item, whether its label is wrong) in the order of the draws.
            certificate: the whole document.
        """
        answers = [[int(item), bool(wrong)] for item, wrong in checks]
        return cls(
            "certified", {"started": int(started), "checks": answers, "certificate": dict(certificate)}
        )

    @classmethod
    def round(cls, record: Mapping[str, Any]) -> Event:
        """A fit was finished: its number, size of training set and figures."""
        return cls("round", dict(record))


def _items(item: int | Sequence[int]) -> dict[str, Any]:
    return {"items": [int(i) for i in item]} if isinstance(item, Sequence) else {"item": int(item)}


def _about(item: int | None, payload: Mapping[str, Any]) -> dict[str, Any]:
    return dict(payload) if item is None else {"item": int(item), **payload}
