"""Operations of a person: what is accepted, and the events that record it."""

import operator
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.sessions.asking import LEASE_SECONDS, guess_of
from workbench.sessions.finish_state import certification, freezing
from workbench.sessions.fitting import Fits
from workbench.sessions.instruction_texts import has_read, picked, written
from workbench.sessions.operations import Acknowledgement, Operation, made_id, provenance, taken_id
from workbench.sessions.project import Transaction
from workbench.sessions.questions import NO, YES
from workbench.sessions.taxonomy import (
    CLASS_CHANGES,
    class_event,
    key_of,
    name_of,
    new_key,
    new_name,
    with_key,
)
from workbench.store import YES_NO, Ask, Event, FileVote, ProjectState
from workbench.store.events import UNDOABLE
from workbench.store.fold_items import FILE, PERSON, names_one_person, person_of, vote_of

CLOSING = ("label", "skip", "unsure")


class Conflict(Exception):
    """Somebody was faster.

    Args:
        why: a sentence.
        left_out: items of a grid that somebody else answered or holds.
    """

    def __init__(self, why: str, left_out: tuple[int, ...] = ()) -> None:
        super().__init__(why)
        self.left_out = left_out


class Answers:
    """Events that one annotator records, each within a transaction of the caller's.

    Args:
        fits: of the question, with its log and who is being asked.
        annotator: whose events these are.
    """

    def __init__(self, fits: Fits, annotator: str) -> None:
        self._project, self._questions, self._fits = fits.project, fits.questions, fits
        self.annotator = annotator

    def add(self, transaction: Transaction, event: Event) -> Event:
        """Record an event of the annotator's; what can be undone is of some operation."""
        if event.kind in UNDOABLE and event.act is None:
            event = replace(event, payload={**event.payload, "operation": made_id()})
        return transaction.add(replace(event, annotator=self.annotator))

    def lease(self, transaction: Transaction, asks: Sequence[Ask], moment: float, lease: float) -> list[Ask]:
        """Record the questions that are new or ran out; all of them, with their expiries."""
        renewed = [ask.document() for ask in asks if ask.expires <= moment]
        if renewed:
            self.add(transaction, Event.asked(renewed, moment + lease))
        return [transaction.state.asks[ask.id] for ask in asks]

    @property
    def _name(self) -> str:
        """Name of the question, as it is called now."""
        return self._project.store.project(self._project.id).question

    def asked(self, state: ProjectState, ask_id: str, item: int = -1) -> Ask:
        """The question of this id.

        Raises:
            InputError: there is none, or it is about another item than the one that is given.
        """
        ask = state.asks.get(ask_id)
        if ask is None:
            raise InputError(f"There is no question {ask_id!r} in project {self._project.record.name!r}.")
        if item not in (-1, ask.item):
            raise InputError(f"The question is about item {ask.item}, and the answer about item {item}.")
        return ask

    def _accepts(self, state: ProjectState, ask: Ask) -> bool:
        """True if an answer of this annotator to the question is taken."""
        if not self._questions.is_open(ask, state):
            return False
        if ask.role == "check":
            return True  # whoever answers first: an order that waited for a person would stand still
        moment = time.time()
        late = ask.expires <= moment or ask.annotator != self.annotator
        return not late or ask.item not in self._questions.leased(state, moment, self.annotator, but=ask.id)

    def _accepts_late(self, state: ProjectState, ask: Ask) -> bool:
        """True if an answer to a question that others were asked meanwhile is taken as one more vote.

        A person who pressed a key saw the item: what they say of it is not lost because the question had
        been given back under their eyes, or ran out while they were away.
        """
        return (
            ask.annotator == self.annotator
            and not ask.answered
            and ask.role not in ("second", "grid")
            and (ask.role != "check" or state.frozen[-1].id == ask.check)
            and self.annotator not in state.votes.get(ask.item, {})
            and (ask.role == "evaluation") == (ask.item in state.evaluation)
        )

    def reclaim(
        self, transaction: Transaction, asks: Sequence[str], moment: float, *, first: bool
    ) -> list[str]:
        """Ask questions again that were given back or ran out, while nobody else is being asked.

        With `first` also one that stands behind others.
        """
        state = transaction.state
        leased_items = self._questions.leased(state, moment, self.annotator)
        behind = first and self.stands_behind(state, asks, moment)
        records = [
            ask
            for ask in (state.asks[i] for i in asks if i in state.asks)
            if ask.annotator == self.annotator
            and (behind or ask.released or ask.expires <= moment)
            and ask.item not in leased_items
            and self._questions.is_open(ask, state)
        ]
        if records:
            documents = [ask.document() for ask in records]
            self.add(transaction, Event.asked(documents, moment + LEASE_SECONDS, first=behind))
        return [a.id for a in records]

    def stands_behind(self, state: ProjectState, asks: Sequence[str], moment: float) -> bool:
        """True if another question than the first of these would be shown first."""
        leased_items = self._questions.leased(state, moment, self.annotator)
        standing = self._questions.standing(state, self.annotator, leased_items)
        return bool(standing) and list(asks[:1]) != [standing[0].id]

    def answer(
        self,
        transaction: Transaction,
        item: int,
        event: Event,
        ask_id: str,
        operation: str,
        *,
        seen: bool = False,
        new: bool = False,
    ) -> bool:
        """Record an answer about an item where it is open: by what was asked, or where nobody has answered.

        Args:
            transaction: of the caller.
            item: index into the pool.
            event: the answer.
            ask_id: of the question that it answers; "" for whatever this annotator is asked about the item.
            operation: id of the operation.
            seen: the item was on screen: its answer is taken, as one more vote where others were asked.
            new: a label may bring a class that there is not yet.

        Returns:
            Whether it was recorded.

        Raises:
            InputError: no such question or class, or an item that is never labelled.
        """
        state = transaction.state
        if ask_id := ask_id or self._asked_about(state, item):
            self.asked(state, ask_id, item)
            try:
                events = self.answered(state, ask_id, event, late=seen, new=new)
            except Conflict:
                return False
        else:
            [checked] = self.to_label([item])
            if checked in state.answered:
                return False
            payload = {**event.payload, "item": checked, "role": "together"}
            events = with_key(state, replace(event, payload=payload), new)
        self.record(transaction, events, operation)
        return True

    def _asked_about(self, state: ProjectState, item: int) -> str:
        """Id of the question about an item that this annotator is asked; "" for none."""
        waiting = self._questions.waiting(state, self.annotator)
        ask_id = next((ask.id for ask in waiting if ask.item == item), "")
        if ask_id or item not in state.answered:
            return ask_id
        # given back while the person still looked at it: a second opinion, or a second look
        own_asks = (
            ask for ask in state.asks.values() if ask.item == item and ask.annotator == self.annotator
        )
        roles = ("grid", "check")
        return next(
            (ask.id for ask in own_asks if ask.role not in roles and self._questions.is_open(ask, state)), ""
        )

    def to_skip(self, state: ProjectState, item: int) -> str | None:
        """Id of the question about an item that a skip closes, "" for none; None where it stays open."""
        waiting = self._questions.waiting(state, self.annotator)
        ask = next((ask for ask in waiting if ask.item == item), None)
        if ask is None:
            # what is drawn to measure on is open for whoever is asked, and for who took an answer back
            again = item in state.reopened.get(self.annotator, ())
            return "" if again or self._questions.open_items(state)[item] else None
        return ask.id if self._accepts(state, ask) or self._accepts_late(state, ask) else None

    def stands(self, state: ProjectState, item: int, event: Event) -> bool:
        """Tell whether what an answer says of an item stands about it already."""
        if event.kind != "label":
            return item in (state.unsure if event.kind == "unsure" else state.skipped)
        standing = state.standing.get(item)
        if standing is None or item in state.undecided:
            return False
        return state.class_name(standing.key) == event.payload["class"]

    def answered(
        self, state: ProjectState, ask_id: str, event: Event, *, late: bool = False, new: bool = False
    ) -> list[Event]:
        """Events that record an answer to a question.

        Args:
            state: of the project.
            ask_id: of the question.
            event: the answer.
            late: take an answer of the person who was asked also where others were asked, or answered,
                meanwhile: it is one more vote.
            new: a label may bring a class that there is not yet.

        Raises:
            Conflict: it is answered, or somebody else is being asked.
            InputError: no such question or class.
        """
        ask = self.asked(state, ask_id)
        if not (self._accepts(state, ask) or (late and self._accepts_late(state, ask))):
            raise Conflict("Its question was answered before, or somebody else is being asked.")
        payload = {**event.payload, "item": ask.item, "ask": ask_id, **_provenance(ask)}
        if ask.role == "check":
            if event.kind == "skip":
                raise InputError("A check cannot be skipped, or the draw would not be fair: say unsure.")
            payload["check"] = ask.check
        return with_key(state, replace(event, payload=payload), new)

    def event_of(self, value: Any, *, new: bool = False) -> Event:
        """Answer of somebody to the question; with `new`, of a class that there may not be yet.

        Args:
            value: name of a class, True or False of a yes / no question, None for "cannot tell", or an event.
            new: the class may be one that there is not yet.

        Raises:
            InputError: no such class, or a value that answers nothing.
        """
        kind, state = self._project.record.kind, self._project.state()
        if value is None:
            return Event.unsure()
        if isinstance(value, bool):
            if kind != YES_NO:
                raise InputError(f"{self._name!r} has classes: {', '.join(state.classes)}; got {value}.")
            value = YES if value else NO
        if isinstance(value, str):
            if new and kind == YES_NO:
                raise InputError(f"{self._name!r} is answered by {YES} or {NO}: it gets no class.")
            return Event.label(new_name(state, value) if new else name_of(state, value))
        if isinstance(value, Event) and value.kind in CLOSING:
            provenance({key: of for key, of in value.payload.items() if key not in ("item", "class")})
            if value.kind != "label":
                return value
            fields = {"class": name_of(state, str(value.payload["class"]))}
            return replace(value, payload={**value.payload, **fields})
        raise InputError(
            f"{self._name!r} is answered with the name of a class, None or an event; got {value!r}."
        )

    def operate(self, transaction: Transaction, given: Operation) -> Acknowledgement:
        """Do one operation, unless it was done before."""
        event_id = transaction.state.operations.get(given.id)
        if event_id is not None:
            event = transaction.event(event_id)
            if event.annotator != self.annotator or event.payload.get("ask", "") != given.ask != "":
                return Acknowledgement(given.id, "refused", taken_id(given.id))
            return self._acknowledged(transaction, given, event)
        make = _EVENTS.get(given.kind)
        if make is None:
            return Acknowledgement(given.id, "refused", f"There is no operation of kind {given.kind!r}.")
        try:
            events = list(make(self, transaction.state, given))
        except Conflict as conflict:
            return Acknowledgement(given.id, "conflict", str(conflict), conflict.left_out)
        except InputError as error:
            return Acknowledgement(given.id, "refused", str(error))
        return self._acknowledged(transaction, given, self.record(transaction, events, given.id, given.more))

    def record(
        self,
        transaction: Transaction,
        events: Sequence[Event],
        operation: str,
        more: Mapping[str, Any] | None = None,
    ) -> Event | None:
        """Record what was done: the last of the events, and before it those that make room for it.

        Args:
            transaction: of the caller.
            events: in their order; none where there is nothing to record.
            operation: id of the operation, which the last one gets.
            more: further provenance of that one.
        """
        if not events:
            return None
        *before, last = events
        for event in before:  # an undo of the last one takes them, too
            self.add(transaction, replace(event, payload={**event.payload, "act": operation}))
        return self.add(
            transaction, replace(last, payload={**(more or {}), **last.payload, "operation": operation})
        )

    @staticmethod
    def _acknowledged(transaction: Transaction, operation: Operation, event: Event | None) -> Acknowledgement:
        if event is None:
            return Acknowledgement(operation.id, "saved")
        of = event.payload.get("of") if event.kind in ("undo", "redo") else None
        closed = {*event.payload["asks"]} if event.kind == "confirmed" else {*operation.asks}
        asks = transaction.state.asks
        left_out = tuple(asks[i].item for i in dict.fromkeys(operation.asks) if i not in closed and i in asks)
        about = None if of is None else transaction.event(of)
        return Acknowledgement(operation.id, "saved", "", left_out, about, event)

    # --- events of each kind of operation -----------------------------------------------------

    def _answer_of(self, state: ProjectState, of: Operation) -> list[Event]:
        self.asked(state, of.ask, of.item)
        more = dict(of.more)
        if of.kind == "label":
            more["class"] = of.label
        elif of.kind == "skip":
            asks, questions = of.value or ((), ())
            more |= {"asks": asks, "questions": [self._project.begun, *questions]}
        event = Event(of.kind, more)
        return self.answered(state, of.ask, event, late=of.seen, new=of.new)

    def _remark(self, state: ProjectState, of: Operation) -> list[Event]:
        items = self._distinct(of.items or (() if of.item == -1 else (of.item,)))
        about = items if of.items else items[0]
        return [Event.flag(about, of.on, of.text) if of.kind == "flag" else Event.note(about, of.text)]

    def _confirmation(self, state: ProjectState, of: Operation) -> list[Event]:
        """Label the items of a grid as one event; see `Session.queue.confirm`."""
        key = key_of(state, of.label)
        asks = [self.asked(state, i) for i in dict.fromkeys(of.asks)]
        rejected_asks = [self.asked(state, i) for i in dict.fromkeys(of.rejected)]
        accepted_asks = [
            a
            for a in asks
            if a not in rejected_asks and a.item not in state.evaluation and self._accepts(state, a)
        ]
        if not accepted_asks:
            left_out = tuple(a.item for a in asks if a not in rejected_asks)
            raise Conflict("All of its items were answered before, or somebody holds them.", left_out)
        published = self._fits.present
        about = {"round": -1 if published is None else published.model.number, "source": "grid"}
        about["classifier"] = self._project.settings(state)["classifier"]
        items, rejected = [a.item for a in accepted_asks], [a.item for a in rejected_asks]
        closed = [
            a.id
            for a in (*accepted_asks, *rejected_asks)
            if a in accepted_asks or a.annotator == self.annotator
        ]
        return [Event.confirmed(items, key, rejected, closed, **about)]

    def _choice(self, state: ProjectState, of: Operation) -> list[Event]:
        """Label items of one's own choosing."""
        items = self.to_label(of.items)
        key, published = key_of(state, of.label), self._fits.published(state)
        about: dict[str, Any] = {"round": -1 if published is None else published.model.number}
        about["classifier"] = self._project.settings(state)["classifier"]
        if len(items) > 1:
            return [Event.relabelled(items, key, of.text, **about)]
        if published is not None:
            about["guess"] = guess_of(published, items[0])
        return [Event.label(key, items[0], role=of.text, **about)]

    def _resolution(self, state: ProjectState, of: Operation) -> list[Event]:
        """End a disagreement about an item, or about each of several."""
        items = self._distinct(of.items)
        return [Event.resolved(items[0] if len(items) == 1 else items, key_of(state, of.label))]

    def _return(self, state: ProjectState, of: Operation) -> list[Event]:
        """Have items asked about again that were skipped or unsure; all of them where none is named."""
        aside = {*state.skipped, *state.unsure}
        items = sorted(aside.intersection(of.items) if of.items else aside)
        return [Event.requeued(items)] if items else []

    def correction(self, state: ProjectState, of: Operation) -> list[Event]:
        """Answer an item again that this annotator answered before; it stays in the role it came up in.

        Raises:
            InputError: they have no answer of the item, or there is no such class.
        """
        item = self.checked(of.item)
        vote = vote_of(state.votes.get(item, {}), self.annotator)
        if vote is None and item not in state.skipped and item not in state.unsure:
            raise InputError(f"There is no answer of yours to {self._name!r} about this item.")
        about: dict[str, Any] = {"corrected": True}
        if vote is not None:
            about |= {"role": vote.role, "was": vote.key}
        check = state.checks.get(item, {}).get(self.annotator)
        if check is not None and state.frozen[-1].id == check.started:
            about["check"] = check.started
        answer = Event.label(of.label, item, **about) if of.label else Event.unsure(item, **about)
        return with_key(state, answer, of.new)

    def _decision(self, state: ProjectState, of: Operation) -> list[Event]:
        """Decide the class of items in review, whatever was said about them before."""
        items = self.to_label(of.items)
        return [Event.relabelled(items, key_of(state, of.label), "review", final=True)]

    def _twins(self, state: ProjectState, of: Operation) -> list[Event]:
        """Give the copies of an item its class, those that nobody has labelled."""
        copies = self._questions.open_twins(state, self.checked(of.item))
        if not copies:
            raise InputError("It has no copy that is without a label.")
        return [Event.relabelled(copies, key_of(state, of.label), "twin", of=int(of.item))]

    def _clearing(self, state: ProjectState, of: Operation) -> list[Event]:
        """Take away whatever was decided about items."""
        items = [item for item in dict.fromkeys(of.items) if self.checked(item) in state.answered]
        if not items:
            raise InputError("Nothing is decided about these items.")
        return [Event.cleared(items)]

    def _wish(self, state: ProjectState, of: Operation) -> list[Event]:
        """Be asked about items before anything else; questions of this annotator that wait are given back."""
        items = [self.checked(item) for item in dict.fromkeys(of.items)]
        if of.second:
            items = [item for item in items if self.annotator in state.votes.get(item, {})]
        else:
            items = [item for item in items if item in of.value[0]]
        if not items:
            raise InputError(
                "You have labelled none of these items."
                if of.second
                else "None of these items can be asked about: they are answered, or kept to measure on."
            )
        waiting = of.value[1]
        events = [*([Event.released(waiting)] if waiting else []), Event.wanted(items, of.text, of.second)]
        if not of.every:
            return events
        # a question that comes later knows nothing of a wish
        about = {"questions": of.value[2]}
        return [replace(event, question=None, payload={**event.payload, **about}) for event in events]

    def _import(self, state: ProjectState, of: Operation) -> list[Event]:
        votes: list[FileVote] = []
        for vote in of.value:
            labelled = self.checked(vote.item) in state.votes
            decides = vote.final or (of.decides and not vote.person and labelled)
            votes.append(vote._replace(final=decides))
        return import_events(state, votes, of.text)

    def _settings(self, state: ProjectState, of: Operation) -> list[Event]:
        """Change settings; see `Part._change_settings`."""
        settings, event = of.value
        if state.model != settings:
            raise Conflict("Somebody changed the settings meanwhile.")
        return [event]

    def to_label(self, items: Iterable[int]) -> list[int]:
        """Items that may be labelled, each once.

        Raises:
            InputError: there are none, or the pool has one of them not, or keeps it to measure on.
        """
        indices = self._distinct(items)
        bad = np.asarray(indices, dtype=np.int64)[~np.isin(indices, self._project.pool.trainable)]
        if bad.size:
            raise InputError(
                f"Item {bad[0]} belongs to the test split: it is only measured on, never labelled."
            )
        return indices

    def _distinct(self, items: Iterable[int]) -> list[int]:
        """Items, each once; that there are none is refused."""
        indices = [self.checked(item) for item in dict.fromkeys(items)]
        if not indices:
            raise InputError("No item is chosen.")
        return indices

    def checked(self, item: int) -> int:
        """The item.

        Raises:
            InputError: the pool has none of this number.
        """
        if not (isinstance(item, int | np.integer) and 0 <= item < len(self._project.pool)):
            raise InputError(f"There is no item {item}; the pool has {len(self._project.pool)}.")
        return int(item)


def _provenance(ask: Ask) -> dict[str, Any]:
    details: dict[str, Any] = {"role": ask.role, "round": ask.round}
    if ask.utility is not None:
        details["utility"] = ask.utility
    if ask.role in ("chosen", "second"):
        details["policy"] = "chosen by person"
    # the fit that chose it, not the one that is there when the answer comes
    details |= {name: ask.details[name] for name in ("policy", "classifier") if ask.details.get(name)}
    return details | {"n_labelled": ask.details.get("n_labelled", 0)}


_EVENTS: dict[str, Callable[[Answers, ProjectState, Operation], Sequence[Event]]] = {
    **dict.fromkeys(CLOSING, Answers._answer_of),
    **dict.fromkeys(("flag", "note"), Answers._remark),
    **dict.fromkeys(CLASS_CHANGES, lambda my, state, of: [class_event(state, of, my._project.pool)]),
    "confirm": Answers._confirmation,
    "choose": Answers._choice,
    "correct": Answers.correction,
    "relabel": Answers._decision,
    "resolve": Answers._resolution,
    "twins": Answers._twins,
    "clear": Answers._clearing,
    "want": Answers._wish,
    "requeue": Answers._return,
    "import": Answers._import,
    "read": lambda my, state, of: has_read(state, my.annotator, of.version),
    "write": lambda my, state, of: written(state, of.text, of.value, of.version),
    "example": lambda my, state, of: picked(state, my._project.pool, my.checked(of.item), of.label, of.on),
    "settings": Answers._settings,
    "freeze": lambda my, state, of: freezing(state, my._project.pool.items.ids, *of.value),
    "certify": lambda my, state, of: certification(
        state, my._project.pool.items.ids, my._project.record.name
    ),
}


def file_vote(
    row: tuple[int, str] | FileVote, source: str, names: Mapping[str, str] | None = None
) -> FileVote:
    """A label of a file as a vote.

    Args:
        row: (item, class name), or a vote of a person in the file.
        source: name of the file.
        names: address -> the name by which that person labels here.

    Raises:
        InputError: it is neither.
    """
    try:
        vote = row if isinstance(row, FileVote) else FileVote(*row)
        name = (names or {}).get(vote.person.lower(), vote.person)
        person = f"{FILE}{source}{PERSON}{name}" if name else ""
        return vote._replace(item=operator.index(vote.item), label=str(vote.label), person=person)
    except TypeError:
        raise InputError(
            f"A label to take in is (item, name of its class), or a FileVote; got {row!r:.80}."
        ) from None


def import_events(state: ProjectState, votes: Sequence[FileVote], source: str) -> list[Event]:
    """Events that take the votes of a file in: the classes that are new, then the votes that are news.

    Args:
        state: of the project.
        votes: as `file_vote` makes them, of items that there are.
        source: name of the file.

    Returns:
        The events; none where all of the labels are there already.
    """
    keys, added = dict(zip(state.classes, state.keys, strict=True)), []
    for name in dict.fromkeys(vote.label for vote in votes):
        if name not in keys:
            keys[name] = new_key(state, name, keys.values())
            added.append(Event.class_added(keys[name], new_name(state, name)))
    raters = _known_raters(votes, state)
    keyed = [
        vote._replace(label=keys[vote.label], person=raters.get(vote.person, vote.person)) for vote in votes
    ]
    new = {vote.item for vote in keyed if not _stands(vote, state, source)}
    rows = [vote if any(vote[2:]) else vote[:2] for vote in keyed if vote.item in new]
    return [*added, Event.imported(rows, source)] if rows else []


def _known_raters(votes: Iterable[FileVote], state: ProjectState) -> dict[str, str]:
    """Person of a file -> the name that they have in the project from an earlier file.

    Programs name each export by its moment. Who gave an answer of an item at the same moment under the same
    name in another file is the same person, and so is who has the same address; a number alone may be another
    one's on another server.
    """
    raters: dict[str, str] = {}
    raters_now = dict.fromkeys(rater for votes_now in state.votes.values() for rater in votes_now)
    by_address = {person_of(rater): rater for rater in raters_now if rater.startswith(FILE) and "@" in rater}
    for vote in votes:
        if vote.person and "@" in (person := person_of(vote.person)) and person in by_address:
            raters[vote.person] = by_address[person]
        for rater, known in state.votes.get(vote.item, {}).items():
            is_same_moment = bool(vote.person) and rater.startswith(FILE) and known.time == vote.time
            if is_same_moment and person_of(rater) == person_of(vote.person):
                raters[vote.person] = rater
    return raters


def _stands(vote: FileVote, state: ProjectState, source: str) -> bool:
    """Tell whether a file's vote is nothing new: it is there, or is the file's and the item has its class."""
    votes = state.votes.get(vote.item, {})
    own_times = [vote_now.time for rater, vote_now in votes.items() if names_one_person(rater, vote.person)]
    if own_times and not vote.final and (not vote.time or max(own_times) >= vote.time):
        return True  # they said something here since; a file that tells no time tells of what was before
    own = votes.get(vote.person or f"{FILE}{source}")
    is_there = own is not None and (own.key, own.final) == (vote.label, vote.final)
    if is_there and (vote.person or not vote.final):
        return True
    standing = state.standing.get(vote.item)
    if vote.person or standing is None or vote.item in state.undecided:
        return False
    return state.resolve(standing.key) == state.resolve(vote.label)
