"""The state of a project as a pure function of its events."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from workbench.store.events import ABOUT, ANSWERS, UNDOABLE, Event
from workbench.store.fold_items import ItemFold, digest, standing_vote
from workbench.store.layered_mapping import another
from workbench.store.project_state import Ask, Instructions, ProjectState, Vote


class ClassFold:
    """The classes that events name and change; keys are what labels are stored under."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.merged: dict[str, str] = {}
        self.removed: set[str] = set()
        self.about: dict[str, dict[str, str]] = {}
        self.order: tuple[str, ...] = ()

    def apply(self, event: Event) -> None:
        """One more event that changes classes."""
        if event.kind == "classes-ordered":
            self.order = tuple(map(str, event.payload["classes"]))
            return
        key = str(event.payload["class"])
        if event.kind == "class-added":
            if key in self.removed:  # as if it had never been there
                self.removed.discard(key)
                self.names[key] = str(event.payload["name"])
                self.about = {k: details for k, details in self.about.items() if k != key}
            self.names.setdefault(key, str(event.payload["name"]))
        elif event.kind == "class-removed":
            self.removed.add(key)
        elif event.kind == "class-described":
            description = {k: str(event.payload[k]) for k in ABOUT if k in event.payload}
            about = {**self.about.get(key, {}), **description}
            self.about = {**self.about, key: {k: v for k, v in about.items() if v}}
        elif event.kind == "class-renamed":
            self.names[key] = str(event.payload["name"])
        else:
            into = str(event.payload["into"])
            self.names.setdefault(key, key)
            self.names.setdefault(into, into)
            while into in self.merged:
                into = self.merged[into]
            if into != key:
                self.merged.setdefault(key, into)

    def root(self, key: str) -> str:
        """The class that a class was merged into in the end, or itself."""
        while key in self.merged:
            key = self.merged[key]
        return key

    def standing(self, gone: frozenset[str]) -> dict[str, str]:
        """Key -> name of the classes that are neither merged into another nor gone."""
        return {k: n for k, n in self.names.items() if k not in self.merged and k not in gone}

    def code_of(self, gone: frozenset[str]) -> dict[str, int]:
        """Key -> code of every class that stands, merged ones among them; `gone` are removed for good."""
        position = {key: code for code, key in enumerate(self.standing(gone))}
        roots = {key: self.root(key) for key in self.names}
        return {key: position[root] for key, root in roots.items() if root in position}


def distinct_names(names: dict[str, str]) -> dict[str, str]:
    """The names of classes, each once: an undone renaming may give one back that another took meanwhile."""
    if len(set(names.values())) == len(names):
        return names
    titles: set[str] = set()
    unique_names = {}
    for key, name in names.items():
        title, number = name, 2
        while title in titles:
            title, number = f"{name} ({number})", number + 1
        unique_names[key] = title
        titles.add(title)
    return unique_names


class InstructionFold:
    """Versions of the instructions, their readers, pictures, examples; what a state holds never changes."""

    def __init__(self) -> None:
        self.versions: tuple[Instructions, ...] = ()
        self.pictures: dict[str, Event] = {}
        # person -> (event, version) of each version they read
        self.read: dict[str, tuple[tuple[int, int], ...]] = {}
        self.examples: dict[str, tuple[int, ...]] = {}

    def apply(self, event: Event) -> None:
        """One more event; those about something else change nothing."""
        payload = event.payload
        if event.kind == "instructions-written":
            version = len(self.versions) + 1
            instructions = Instructions(version, str(payload["text"]), event.annotator, event.time, event.id)
            self.versions = (*self.versions, instructions)
            # whoever writes a version knows it
            self._reads(event, version)
        elif event.kind == "instructions-read":
            self._reads(event, min(int(payload["version"]), len(self.versions)))
        elif event.kind == "picture-kept":
            self.pictures = {**self.pictures, str(payload["picture"]): event}
        elif event.kind == "example-picked":
            item, key = int(payload["item"]), str(payload["class"])
            # an item is an example of one class at most
            self.examples = {k: tuple(i for i in items if i != item) for k, items in self.examples.items()}
            if payload["on"]:
                self.examples[key] = (*self.examples.get(key, ()), item)

    def _reads(self, event: Event, version: int) -> None:
        readings = (*self.read.get(event.annotator, ()), (event.id, version))
        self.read = {**self.read, event.annotator: readings}


_UNDOABLE = frozenset(UNDOABLE)
_CLASS_KINDS = frozenset(
    ("class-added", "class-renamed", "class-merged", "class-removed", "class-described", "classes-ordered")
)


class EventFold:
    """Folds events one at a time; `state()` equals `fold` of everything pushed so far.

    An event costs what it touches, an undo replays the history of the items it touches, and a state
    shares with the one before whatever did not change.

    Args:
        events: oldest first.
        begun: the first event of the question (0 for the first question), where events about items that do
            not count in it may be among these.
    """

    def __init__(self, events: Iterable[Event] = (), begun: int | None = None) -> None:
        self.events: list[Event] = []
        self.begun = begun
        self._done: dict[str, list[int]] = {}
        self._undone: dict[str, list[int]] = {}
        self._inactive: set[int] = set()
        # Of each annotator, the newest event that can be undone; of what is taken back, the undo that did it.
        self._newest: dict[str, int] = {}
        self._undone_by: dict[int, int] = {}
        self._items: dict[int, ItemFold] = {}
        self._history: dict[int, list[tuple[int, str | None]]] = {}
        # Positions of the events that change classes, and for each class those that mention it.
        self._class_events: list[int] = []
        self._mentions: dict[str, list[int]] = {}
        # The name that each class was added with, also where that is taken back and a label keeps the class.
        self._named: dict[str, str] = {}
        self._classes = ClassFold()
        # How many votes name a class; those removed that none does are gone.
        self._uses: Counter[str] = Counter()
        self._gone: frozenset[str] = frozenset()
        # Of the votes that a model may learn from; see `ProjectState.learnable`.
        self._learnable = 0
        # Items with several votes: a merge may decide or undo their majority.
        self._several: set[int] = set()
        self._wanted: list[int] = []
        # What of it is left, and the items that were ever wanted; None after one more event of this kind.
        self._left: tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]] | None = None
        self._ever_wanted: set[int] = set()
        self._answered_asks: set[str] = set()
        self._model: dict[str, Any] = {}
        self._instructions = InstructionFold()
        # Questions drawn and not given back, and the most that these have been.
        self._places = self._most_places = 0
        # What states hold; copied before it changes when a state has it.
        self._maps: dict[str, Any] = {
            "votes": {},
            "standing": {},
            "codes": {},
            "training": {},
            "undecided": set(),
            "skipped": set(),
            "unsure": set(),
            "requeued": set(),
            "answered": {},  # of a large dictionary a version costs less than of a set
            "flagged": {},
            "notes": {},
            "evaluation": set(),
            "asks": {},
            "waiting": {},
            "operations": {},
            "rounds": [],
            "checks": {},
            "frozen": [],
            "certified": [],
        }
        self._shared: set[str] = set()
        self._touched: dict[int, None] = {}
        # Labelled items in the order of the maps, with where their label began.
        self._placed: dict[int, int] = {}
        self._recode = True
        self._state: ProjectState | None = None
        self.extend(events)

    @property
    def last_event(self) -> int:
        """Id of the last event, 0 before there is one."""
        return self.events[-1].id if self.events else 0

    @property
    def standing(self) -> set[int]:
        """Ids of the events that no undo has taken back."""
        return {e.id for p, e in enumerate(self.events) if p not in self._inactive}

    def extend(self, events: Iterable[Event]) -> None:
        """Fold more events, oldest first."""
        for event in events:
            if event.question is not None or self.begun is None or event.counts_in(self.begun):
                self._push(event)

    def state(self) -> ProjectState:
        """State that the events so far add up to."""
        if self._state is None:
            self._state = self._freeze()
        return self._state

    # --- one event ----------------------------------------------------------------------------

    def _push(self, event: Event) -> None:
        self._state = None
        position = len(self.events)
        self.events.append(event)
        kind = event.kind
        operation = event.operation
        if operation is not None:
            self._own("operations")[operation] = event.id
        if kind in _UNDOABLE:
            self._done.setdefault(event.annotator, []).append(position)
            self._newest[event.annotator] = event.id
            undone = self._undone.setdefault(event.annotator, [])
            if undone:
                undone.clear()
            self._close(event)
            if kind in _CLASS_KINDS:
                self._class_events.append(position)
                if kind == "class-added" and event.payload["class"] not in self._classes.names:
                    self._named[str(event.payload["class"])] = str(event.payload["name"])
                self._classes.apply(event)
                self._recode = True
            elif kind == "wanted":
                self._wanted.append(position)
                self._ever_wanted.update(map(int, event.payload["items"]))
                self._left = None
            else:
                self._about_items(position, event)
        elif kind == "asked":
            self._ask(event)
        elif kind == "round":
            self._own("rounds").append(event.payload)
        elif kind == "checks-started":
            self._own("frozen").append(event)
        elif kind == "certified":
            self._own("certified").append(event)
        elif kind == "undo":
            self._step(self._done, event)
        elif kind == "redo":
            self._step(self._undone, event)
        elif kind == "released":
            asks = self._own("asks")
            for id_ in event.payload["asks"]:
                if id_ in asks:
                    self._places -= _is_drawn(asks[id_])
                    asks[id_] = replace(asks[id_], released=True, expires=0.0)
                    self._unwait(asks[id_])
        elif kind == "model-changed":
            names = ("classifier", "options", "policy")
            settings = {name: event.payload[name] for name in names if name in event.payload}
            self._model = {**self._model, **settings}
        elif kind == "question-changed":
            self._model = {**self._model, "question": str(event.payload["question"])}
        elif kind == "names-hidden":
            self._model = {**self._model, "names_hidden": bool(event.payload["on"])}
        elif kind == "guesses-changed":
            recorded = predictions(self._model.get("guesses", ()))  # a change does not repeat them
            sources = [
                {"said": recorded[source["source"]], **source} if source["source"] in recorded else source
                for source in event.payload["sources"]
            ]
            self._model = {**self._model, "guesses": sources}
        else:
            self._instructions.apply(event)

    def _about_items(self, position: int, event: Event) -> None:
        for index, (item, key) in enumerate(event.said):
            if key is not None:
                if key not in self._classes.names:
                    self._classes.names[key] = self._named.get(
                        key, key
                    )  # a label of a class nobody added brings it
                    self._recode = True
                mentions = self._mentions.setdefault(key, [])
                if not mentions or mentions[-1] != position:
                    mentions.append(position)
            item_fold = self._items.get(item)
            if item_fold is None:
                item_fold = self._items[item] = ItemFold()
                self._history[item] = []
            # The second of two items of one event comes after the first.
            place = position << 32 | index
            self._history[item].append((place, key))
            item_fold.apply(place, event, key)
            self._touched[item] = None

    def _step(self, stacks: Mapping[str, list[int]], event: Event) -> None:
        """Take back, or put back, the last act: an event with those that made room for it."""
        stack, of = stacks.get(event.annotator), event.payload.get("of")
        if not stack or of not in (None, self.events[stack[-1]].id):
            return
        act = self.events[stack[-1]].act
        positions = [stack.pop()]
        while act is not None and stack and self.events[stack[-1]].act == act:
            positions.append(stack.pop())
        for position in reversed(positions):
            self._toggle(position, event.annotator, event.kind == "undo")

    def _toggle(self, position: int, annotator: str, undo: bool) -> None:
        """Take an event back, or put it back: replay what it touched."""
        if undo:
            self._undone.setdefault(annotator, []).append(position)
            self._undone_by[position] = self.last_event
            self._inactive.add(position)
        else:
            self._done.setdefault(annotator, []).append(position)
            self._inactive.discard(position)
        event = self.events[position]
        if event.kind in _CLASS_KINDS:
            self._rebuild_classes()
            return
        if event.kind == "wanted":
            self._left = None
            return
        keys = set()
        for item, key in event.said:
            fresh = ItemFold(self._items[item])
            for place, k in self._history[item]:
                p = place >> 32
                if p not in self._inactive:
                    fresh.apply(place, self.events[p], k)
            self._items[item] = fresh
            self._touched[item] = None
            if key is not None:
                keys.add(key)
        if any(position <= self._first_mention(key, position) for key in keys):
            self._rebuild_classes()

    def _first_mention(self, key: str, otherwise: int) -> int:
        """The first standing event that says an item belongs to `key`."""
        return next((p for p in self._mentions[key] if p not in self._inactive), otherwise)

    # --- classes ------------------------------------------------------------------------------

    def _rebuild_classes(self) -> None:
        steps = {p: "" for p in self._class_events if p not in self._inactive}
        firsts = [(self._first_mention(key, -1), key) for key in self._mentions]
        before, classes = self._classes, ClassFold()
        self._classes = classes
        for position, key in sorted([*steps.items(), *(f for f in firsts if f[0] >= 0)]):
            if position in steps:
                classes.apply(self.events[position])
            else:
                # An import may bring several classes: in the order in which it names them.
                keys = [k for _, k in self.events[position].said if k is not None]
                for k in dict.fromkeys(keys) if len(keys) > 1 else (key,):
                    classes.names.setdefault(k, self._named.get(k, k))
        if (list(before.names.items()), before.merged) != (list(classes.names.items()), classes.merged):
            self._recode = True

    # --- questions ----------------------------------------------------------------------------

    def _close(self, event: Event) -> None:
        """An answer uses its asks up, also one that is taken back later."""
        if event.kind not in (*ANSWERS, "confirmed"):
            return
        own = [event.payload["ask"]] if "ask" in event.payload else ()
        for id_ in map(str, (*own, *event.payload.get("asks", ()))):
            self._answered_asks.add(id_)
            ask = self._maps["asks"].get(id_)
            if ask is not None:
                self._own("asks")[id_] = replace(ask, answered=True)
                self._unwait(ask)

    def _unwait(self, ask: Ask) -> None:
        waiting = self._maps["waiting"].get(ask.annotator, ())
        if ask.id in waiting:
            self._own("waiting")[ask.annotator] = tuple(i for i in waiting if i != ask.id)

    def _ask(self, event: Event) -> None:
        expires = float(event.payload["expires"])
        asks = self._own("asks")
        fresh: list[str] = []
        reclaimed: list[str] = []
        for ask in event.payload["asks"]:
            id_ = str(ask["id"])
            previous = asks.get(id_)
            record = Ask(
                id=id_,
                item=int(ask["item"]),
                role=str(ask.get("role", "")),
                annotator=event.annotator,
                expires=expires,
                event=event.id if previous is None else previous.event,
                answered=id_ in self._answered_asks,
                details=ask,
            )
            if previous is not None and previous.annotator != record.annotator:
                self._unwait(previous)
            asks[id_] = record
            self._places += _is_drawn(record) - (previous is not None and _is_drawn(previous))
            if not record.answered:
                # looked at by the person: it stands before what was asked meanwhile
                looked_at = previous is not None and (previous.released or event.payload.get("first", False))
                (reclaimed if looked_at else fresh).append(id_)
            if record.role == "evaluation" and record.item not in self._maps["evaluation"]:
                self._own("evaluation").add(record.item)
                self._learnable -= digest(record.item, self._maps["votes"].get(record.item, {}))
                if record.item in self._items:
                    self._touched[record.item] = None
        self._most_places = max(self._most_places, self._places)
        if fresh or reclaimed:
            waiting = self._maps["waiting"].get(event.annotator, ())
            self._own("waiting")[event.annotator] = tuple(dict.fromkeys((*reclaimed, *waiting, *fresh)))

    # --- states -------------------------------------------------------------------------------

    def _chosen(self) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
        """Wishes of each annotator: items to be asked about, and to look at again."""
        if self._left is not None:
            return self._left
        answered = self._maps["answered"]
        wishes: tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]] = ({}, {})
        for position in self._wanted:
            if position in self._inactive:
                continue
            event = self.events[position]
            who, items = event.annotator, map(int, event.payload["items"])
            if event.payload.get("second"):
                open_items = (i for i in items if self._looks_again(i, who, event.id))
            else:
                open_items = (i for i in items if i not in answered)
            kind = wishes[1 if event.payload.get("second") else 0]
            if more := tuple(dict.fromkeys((*kind.get(who, ()), *open_items))):
                kind[who] = more
        self._left = wishes
        return wishes

    def _looks_again(self, item: int, annotator: str, event_id: int) -> bool:
        about = self._items.get(item)
        return (
            about is not None
            and annotator in about.votes
            and (about.seconds or {}).get(annotator, 0) < event_id
        )

    def _own(self, name: str) -> Any:
        """The map of this name, which no state holds."""
        if name in self._shared:
            self._maps[name] = another(self._maps[name])
            self._shared.discard(name)
        return self._maps[name]

    def _member(self, name: str, item: int, inside: bool) -> None:
        if (item in self._maps[name]) != inside:
            members = self._own(name)
            members.add(item) if inside else members.discard(item)

    def _value(self, name: str, item: int, value: Any) -> None:
        if value is None:
            if item in self._maps[name]:
                del self._own(name)[item]
        elif self._maps[name].get(item) != value:
            self._own(name)[item] = value

    def _settle(self) -> None:
        """Bring the maps up to the items that were touched.

        However often a state was looked at, what it maps is in one order: labelled items in that of the
        events that their labels began with, a model's training set among them. The order of remarks says
        nothing.
        """
        items = list(self._touched)
        if self._ever_wanted and not self._ever_wanted.isdisjoint(self._touched):
            self._left = None
        if len(items) > 1:
            items.sort(key=lambda i: self._items[i].since)
        self._count_uses(items)
        last = next(reversed(self._placed.values())) if self._placed else -1
        sort = mixed = False
        code_of = self._classes.code_of(self._gone)
        for item in items:
            item_fold = self._items[item]
            self._member("skipped", item, item_fold.skipped)
            self._member("unsure", item, item_fold.unsure)
            self._member("requeued", item, item_fold.requeued)
            is_answered = bool(item_fold.votes) or item_fold.skipped or item_fold.unsure
            self._value("answered", item, is_answered or None)
            self._value("flagged", item, item_fold.flag)
            self._value("notes", item, item_fold.notes or None)
            self._value("checks", item, item_fold.checks or None)
            if self._placed.get(item, item_fold.since) != item_fold.since or not item_fold.votes:
                self._placed.pop(item, None)
                for name in ("votes", "standing", "codes", "training"):
                    self._value(name, item, None)
            if not item_fold.votes:
                self._member("undecided", item, False)
                continue
            if item not in self._placed:
                self._placed[item] = item_fold.since
                sort = sort or item_fold.since < last
                last = max(last, item_fold.since)
            if self._maps["votes"].get(item) != item_fold.votes:
                self._own("votes")[item] = item_fold.votes
            standing = self._stand(item, item_fold.votes)
            if not self._recode:
                code = code_of[standing.key]
                self._value("codes", item, code)
                learnt = item not in self._maps["evaluation"] and item not in self._maps["undecided"]
                if learnt and item not in self._maps["training"]:
                    # one that was a tie, or came back: its place may be before others
                    mixed = mixed or item_fold.since < last
                self._value("training", item, code if learnt else None)
        self._touched.clear()
        if self._recode:
            for item in self._several:
                self._stand(item, self._maps["votes"][item])
        if sort:
            self._placed = dict(sorted(self._placed.items(), key=lambda p: p[1]))
            for name in ("votes", "standing"):
                present = self._maps[name]
                self._maps[name] = {item: present[item] for item in self._placed}
                self._shared.discard(name)
        if self._recode or sort or mixed:
            closed = self._maps["evaluation"] | self._maps["undecided"]
            codes = {item: code_of[vote.key] for item, vote in self._maps["standing"].items()}
            self._maps["codes"] = codes
            self._maps["training"] = {i: c for i, c in codes.items() if i not in closed}
            self._shared -= {"codes", "training"}
            self._recode = False

    def _count_uses(self, items: Iterable[int]) -> None:
        """Count the votes for each class, and drop classes without any; before the items' maps change."""
        for item in items:
            votes, before = self._items[item].votes, self._maps["votes"].get(item, {})
            if item not in self._maps["evaluation"]:
                self._learnable += digest(item, votes) - digest(item, before)
            for vote in before.values():
                self._uses[vote.key] -= 1
            for vote in votes.values():
                self._uses[vote.key] += 1
            (self._several.add if len(votes) > 1 else self._several.discard)(item)
        gone = frozenset(self._classes.removed)
        if gone:
            gone -= {self._classes.root(key) for key, n in self._uses.items() if n}
        if gone != self._gone:
            self._gone = gone
            self._recode = True

    def _stand(self, item: int, votes: Mapping[str, Vote]) -> Vote:
        """Settle which vote of an item counts, and whether it is decided."""
        standing, tie = standing_vote(list(votes.values()), self._classes.root)
        self._value("standing", item, standing)
        self._member("undecided", item, tie)
        return standing

    def _freeze(self) -> ProjectState:
        self._settle()
        answered = self._maps["answered"]
        reopened: dict[str, tuple[int, ...]] = {}
        for annotator, undone in self._undone.items():
            if undone:
                events = [self.events[p] for p in reversed(undone)]
                # a check comes up again where checks are answered, and nowhere else
                back = [e.item for e in events if e.kind in ANSWERS and "check" not in e.payload]
                items = tuple(dict.fromkeys(i for i in back if i is not None and i not in answered))
                if items:
                    reopened[annotator] = items
        self._shared = set(self._maps)
        wishes, second = self._chosen()
        classes = self._classes
        return ProjectState(
            class_names=distinct_names(classes.standing(self._gone)),
            removed={key: classes.names.get(key, key) for key in sorted(self._gone)},
            class_about=classes.about,
            class_order=classes.order,
            merged=dict(classes.merged),
            **{**self._maps, "answered": answered.keys()},
            model=self._model,
            instructions=self._instructions.versions,
            pictures=self._instructions.pictures,
            read=self._instructions.read,
            examples=self._instructions.examples,
            wanted=wishes,
            second=second,
            reopened=reopened,
            undoable={a: self.events[p[-1]] for a, p in self._done.items() if p},
            redoable={a: self.events[p[-1]] for a, p in self._undone.items() if p},
            newest=dict(self._newest),
            undone_by={a: self._undone_by[p[-1]] for a, p in self._undone.items() if p},
            learnable=f"{self._learnable % 2**64:016x}",
            places=self._places,
            most_places=self._most_places,
            n_shared=len(self._several),
            n_events=len(self.events),
            last_event=self.last_event,
        )


def _is_drawn(ask: Ask) -> bool:
    """True if a question stands that was drawn for measuring, or might have been."""
    return (
        ask.counted
        and not ask.released
        and ask.role in ("policy", "uniform", "cold-start", "evaluation", "together")
    )


def fold(events: Iterable[Event]) -> ProjectState:
    """The state after `events`, oldest first; a pure function of them."""
    return EventFold(events).state()


def predictions(sources: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Source of a guess -> what it says of the items, where that lies in the project."""
    return {source["source"]: source["said"] for source in sources if "said" in source}
