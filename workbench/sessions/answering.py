"""Answers to questions: what is accepted, what is recorded with it, and operations in batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.sessions.asking import Ask, Questions, guess_of, leased_until
from workbench.sessions.examples import has_read, picked
from workbench.sessions.fitting import Fits
from workbench.sessions.operations import Acknowledgement, Operation
from workbench.sessions.project import OpenProject, Transaction
from workbench.sessions.taxonomy import key_of, new_key, new_name
from workbench.store import AskRecord, Event, ProjectState

CLOSING = ("label", "skip", "unsure")


class Conflict(Exception):
    """Somebody was faster."""


class Answers:
    """What one annotator records, each within a transaction of the caller's.

    Args:
        project: as this process has it open.
        questions: says what is open and who is being asked.
        fits: for the record of what the model knew.
        annotator: whose events these are.
    """

    def __init__(self, project: OpenProject, questions: Questions, fits: Fits, annotator: str) -> None:
        self._project = project
        self._questions = questions
        self._fits = fits
        self.annotator = annotator

    def add(self, transaction: Transaction, event: Event) -> Event:
        """Record an event of the annotator's."""
        return transaction.add(replace(event, annotator=self.annotator))

    def lease(self, transaction: Transaction, asks: Sequence[Ask], moment: float, lease: float) -> list[Ask]:
        """Record the questions that are new or ran out; all of them, with their expiries."""
        renewed = leased_until((a for a in asks if a.expires <= moment), moment + lease)
        if renewed:
            self.add(transaction, Event.asked([a.document() for a in renewed], moment + lease))
        by_id = {a.id: a for a in renewed}
        return [by_id.get(a.id, a) for a in asks]

    def asked(self, state: ProjectState, ask_id: str) -> AskRecord:
        """The question of this id.

        Raises:
            InputError: there is none.
        """
        ask = state.asks.get(ask_id)
        if ask is None:
            raise InputError(f"There is no question {ask_id!r} in project {self._project.record.name!r}.")
        return ask

    def _accepts(self, state: ProjectState, ask: AskRecord) -> bool:
        """Whether an answer of this annotator to the question is taken."""
        if not self._questions.is_open(ask, state):
            return False
        if ask.role == "check":
            return True  # whoever answers first: an order that waited for a person would stand still
        moment = time.time()
        late = ask.expires <= moment or ask.annotator != self.annotator
        return not late or ask.item not in self._questions.leased(state, moment, self.annotator, but=ask.id)

    def _accepts_late(self, state: ProjectState, ask: AskRecord) -> bool:
        """Whether an answer to a question that others were asked meanwhile is taken as one more vote.

        A person who pressed a key saw the item: what they say of it is not lost because the question had
        been given back under their eyes, or ran out while they were away.
        """
        return (
            ask.annotator == self.annotator
            and not ask.answered
            and ask.role not in ("second", "grid")
            and self.annotator not in state.votes.get(ask.item, {})
            and (ask.role == "evaluation") == (ask.item in state.evaluation)
        )

    def reclaim(
        self, transaction: Transaction, asks: Sequence[str], moment: float, lease: float, *, first: bool
    ) -> list[str]:
        """Ask questions again that were given back or ran out, while nobody else is being asked.

        With `first` also one that stands behind others.
        """
        state = transaction.state
        taken = self._questions.leased(state, moment, self.annotator)
        behind = first and self.stands_behind(state, asks, moment)
        found = [
            ask
            for ask in (state.asks[i] for i in asks if i in state.asks)
            if ask.annotator == self.annotator
            and (behind or ask.released or ask.expires <= moment)
            and ask.item not in taken
            and self._questions.is_open(ask, state)
        ]
        if found:
            renewed = leased_until((Ask.of(a) for a in found), moment + lease)
            documents = [a.document() for a in renewed]
            self.add(transaction, Event.asked(documents, moment + lease, first=behind))
        return [a.id for a in found]

    def stands_behind(self, state: ProjectState, asks: Sequence[str], moment: float) -> bool:
        """Whether another question than the first of these would be shown first."""
        taken = self._questions.leased(state, moment, self.annotator)
        standing = self._questions.standing(state, self.annotator, taken)
        return bool(standing) and list(asks[:1]) != [standing[0].id]

    def answer(
        self,
        transaction: Transaction,
        item: int,
        event: Event,
        ask_id: str,
        operation: str | None,
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
            operation: id of the caller's, for the record.
            seen: the item was on screen: its answer is taken, as one more vote where others were asked.
            new: a label may bring a class that there is not yet.

        Returns:
            Whether it was recorded.

        Raises:
            InputError: no such question or class, or an item that is never labelled.
        """
        state = transaction.state
        if ask_id := ask_id or self._asked_about(state, item):
            try:
                self.tell(transaction, ask_id, event, operation, late=seen, new=new)
            except Conflict:  # nothing was added
                return False
            return True
        [checked] = self.to_label([item])
        if checked in state.answered:
            return False
        payload = {**event.payload, "item": checked, "role": "together"}
        if event.kind == "label":
            payload["class"] = self.key(transaction, str(event.payload["class"]), new)
        if operation is not None:
            payload["operation"] = operation
        self.add(transaction, replace(event, payload=payload))
        return True

    def _asked_about(self, state: ProjectState, item: int) -> str:
        """Id of the question about an item that this annotator is asked; "" for none."""
        waiting = self._questions.waiting(state, self.annotator)
        asked = next((ask.id for ask in waiting if ask.item == item), "")
        if asked or item not in state.answered:
            return asked
        # given back while the person still looked at it: a second opinion, or a second look
        mine = (ask for ask in state.asks.values() if ask.item == item and ask.annotator == self.annotator)
        apart = ("grid", "check")
        return next(
            (ask.id for ask in mine if ask.role not in apart and self._questions.is_open(ask, state)), ""
        )

    def stands(self, state: ProjectState, item: int, event: Event) -> bool:
        """Tell whether what an answer says of an item stands about it already."""
        if event.kind != "label":
            return item in (state.unsure if event.kind == "unsure" else state.skipped)
        standing, said = state.standing.get(item), str(event.payload["class"])
        if standing is None or item in state.undecided:
            return False
        key = state.resolve(standing.key)
        return said in (key, state.class_names.get(key))

    def tell(
        self,
        transaction: Transaction,
        ask_id: str,
        event: Event,
        operation: str | None,
        *,
        late: bool = False,
        new: bool = False,
    ) -> Event:
        """Record an answer to a question, or a remark about its item.

        Args:
            transaction: of the caller.
            ask_id: of the question.
            event: the answer.
            operation: id of the caller's, for the record.
            late: take an answer of the person who was asked also where others were asked, or answered,
                meanwhile: it is one more vote.
            new: a label may bring a class that there is not yet.

        Raises:
            Conflict: it is answered, or somebody else is being asked.
            InputError: no such question or class.
        """
        state = transaction.state
        ask = self.asked(transaction.state, ask_id)
        if not (self._accepts(state, ask) or (late and self._accepts_late(state, ask))):
            raise Conflict("Its question was answered before, or somebody else is being asked.")
        payload: dict[str, Any] = {**event.payload, "item": ask.item}
        if operation is not None:
            payload["operation"] = operation
        if event.kind in CLOSING:
            payload |= {"ask": ask_id, **self._provenance(state, ask)}
            if ask.role == "check":
                if event.kind == "skip":
                    raise InputError("A check cannot be skipped, or the draw would not be fair: say unsure.")
                payload["check"] = int(ask.details["check"])
        if event.kind == "label":
            payload["class"] = self.key(transaction, str(event.payload["class"]), new)
        return self.add(transaction, replace(event, payload=payload))

    def key(self, transaction: Transaction, name: str, new: bool) -> str:
        """The key of a class; a new one comes with the label that names it, and goes with its undo."""
        state = transaction.state
        if not new or name in state.classes:
            return key_of(state, name)
        name, key = new_name(state, name), new_key(state, name)
        if key in state.removed or key != name:
            self.add(transaction, Event.class_added(key, name))
        return key

    def confirm(self, transaction: Transaction, given: Operation) -> Acknowledgement:
        """Record the items of a grid as one event; see `Session.confirm`."""
        state = transaction.state
        key = key_of(state, given.label)
        asks = [self.asked(transaction.state, i) for i in dict.fromkeys(given.asks)]
        others = [self.asked(transaction.state, i) for i in dict.fromkeys(given.rejected)]
        taken = [
            a for a in asks if a not in others and a.item not in state.evaluation and self._accepts(state, a)
        ]
        left_out = tuple(a.item for a in asks if a not in taken and a not in others)
        if not taken:
            return Acknowledgement(
                given.id,
                "conflict",
                "All of its items were answered before, or somebody holds them.",
                left_out,
            )
        published = self._fits.present
        more = dict(given.more) | {"round": -1 if published is None else published.model.number}
        more |= {"source": "grid", "classifier": self._project.settings(state)["classifier"]}
        more["operation"] = given.id
        event = Event.confirmed(
            [a.item for a in taken], key, [a.item for a in others], [a.id for a in (*taken, *others)], **more
        )
        recorded = self.add(transaction, event)
        return Acknowledgement(given.id, "saved", "", left_out, event=recorded)

    def operate(self, transaction: Transaction, given: Operation) -> Acknowledgement:
        """Do one operation, unless it was done before."""
        known = transaction.state.operations.get(given.id)
        if known is not None:
            done = transaction.event(known)
            if done.kind not in ("undo", "redo"):
                return Acknowledgement(given.id, "saved", event=done)
            of = done.payload.get("of")
            return Acknowledgement(given.id, "saved", about=None if of is None else transaction.event(of))
        try:
            return self._operated(transaction, given)
        except Conflict as conflict:
            return Acknowledgement(given.id, "conflict", str(conflict))
        except InputError as error:
            return Acknowledgement(given.id, "refused", str(error))

    def _operated(self, transaction: Transaction, given: Operation) -> Acknowledgement:
        if given.kind == "confirm":
            return self.confirm(transaction, given)
        if given.kind in ("undo", "redo"):
            return Acknowledgement(given.id, "saved", about=self._step(transaction, given))
        do = _DOING.get(given.kind)
        if do is None:
            raise InputError(f"There is no operation of kind {given.kind!r}.")
        more = {**given.more, "operation": given.id}
        return Acknowledgement(given.id, "saved", event=do(self, transaction, given, more))

    def _answered(self, transaction: Transaction, given: Operation, more: Mapping[str, Any]) -> Event:
        about = self.asked(transaction.state, given.ask).item
        if given.item not in (-1, about):
            raise InputError(f"The question is about item {about}, and the answer about item {given.item}.")
        payload = {**given.more, "class": given.label} if given.kind == "label" else dict(given.more)
        event = Event(given.kind, payload)
        return self.tell(transaction, given.ask, event, given.id, late=given.seen, new=given.new)

    def _remarked(self, transaction: Transaction, given: Operation, more: Mapping[str, Any]) -> Event:
        items = [self.checked(item) for item in dict.fromkeys(given.items)]
        about = items or self.checked(given.item)
        event = (
            Event.flag(about, given.on, given.text) if given.kind == "flag" else Event.note(about, given.text)
        )
        return self.add(transaction, replace(event, payload={**event.payload, **more}))

    def _chosen(self, transaction: Transaction, given: Operation, more: Mapping[str, Any]) -> Event:
        """Label items of one's own choosing; one event."""
        items, state = self.to_label(given.items), transaction.state
        if not items:
            raise InputError("No item is chosen.")
        key, published = key_of(state, given.label), self._fits.published(state)
        about: dict[str, Any] = {"round": -1 if published is None else published.model.number}
        if published is not None and len(items) == 1:
            about["guess"] = guess_of(published, items[0])
        about["classifier"] = self._project.settings(state)["classifier"]
        if len(items) == 1:
            return self.add(transaction, Event.label(key, items[0], role=given.text, **about, **more))
        return self.add(transaction, Event.relabelled(items, key, given.text, **about, **more))

    def _resolved(self, transaction: Transaction, given: Operation, more: Mapping[str, Any]) -> Event:
        """End a disagreement about an item, or about each of several."""
        items = [self.checked(item) for item in dict.fromkeys(given.items)]
        event = Event.resolved(items[0] if len(items) == 1 else items, key_of(transaction.state, given.label))
        return self.add(transaction, replace(event, payload={**event.payload, **more}))

    def _requeued(self, transaction: Transaction, given: Operation, more: Mapping[str, Any]) -> Event | None:
        """Have items asked about again that were skipped or unsure; all of them where none is named."""
        state = transaction.state
        aside = {*state.skipped, *state.unsure}
        items = sorted(aside.intersection(given.items) if given.items else aside)
        if not items:
            return None
        event = Event.requeued(items)
        return self.add(transaction, replace(event, payload={**event.payload, **more}))

    def _with(self, transaction: Transaction, event: Event | None, more: Mapping[str, Any]) -> Event | None:
        """Record an event, where there is one, with further provenance."""
        if event is None:
            return None
        return self.add(transaction, replace(event, payload={**event.payload, **more}))

    def _step(self, transaction: Transaction, given: Operation) -> Event:
        state = transaction.state
        stack = state.undoable if given.kind == "undo" else state.redoable
        last = stack.get(self.annotator)
        if last is None:
            raise Conflict(f"There is nothing to {given.kind}.")
        if given.takes and state.operations.get(given.takes) != last.id:
            raise Conflict(f"You did something else since: {given.kind} once more is about that.")
        payload = {**given.more, "operation": given.id, "of": last.id}
        self.add(transaction, Event(given.kind, payload))
        return last

    def correct(
        self,
        transaction: Transaction,
        item: int,
        label: str,
        more: Mapping[str, Any] | None = None,
        *,
        new: bool = False,
    ) -> Event:
        """Answer an item again that this annotator answered before; it stays in the role it came up in.

        Args:
            transaction: of the caller.
            item: index into the pool.
            label: name of the class; "" for unsure.
            more: further provenance.
            new: the class may be one that there is not yet.

        Raises:
            InputError: they have no answer of the item, or there is no such class.
        """
        state = transaction.state
        vote = state.votes.get(self.checked(item), {}).get(self.annotator)
        if vote is None and item not in state.skipped and item not in state.unsure:
            raise InputError("There is no answer of yours about this item.")
        about: dict[str, Any] = {**(more or {}), "corrected": True}
        if vote is not None:
            about |= {"role": vote.role, "was": vote.key}
        check = state.checks.get(item, {}).get(self.annotator)
        if check is not None and state.frozen[-1].id == check.started:
            about["check"] = check.started
        if not label:
            return self.add(transaction, Event.unsure(item, **about))
        return self.add(transaction, Event.label(self.key(transaction, label, new), item, **about))

    def relabel(
        self,
        transaction: Transaction,
        items: Sequence[int],
        label: str,
        more: Mapping[str, Any] | None = None,
    ) -> Event:
        """Decide the class of items in review, whatever was said about them before; one event.

        Raises:
            InputError: no items, no such item or class.
        """
        found = self.to_label(dict.fromkeys(int(item) for item in items))
        if not found:
            raise InputError("No item is chosen.")
        key = key_of(transaction.state, label)
        return self.add(transaction, Event.relabelled(found, key, "review", final=True, **(more or {})))

    def label_twins(
        self, transaction: Transaction, item: int, label: str, more: Mapping[str, Any] | None = None
    ) -> Event:
        """The copies of an item get its class, those that nobody has labelled; one event.

        Raises:
            InputError: no such item or class, or no copy without a label.
        """
        found = self._questions.open_twins(transaction.state, self.checked(item))
        if not found:
            raise InputError("It has no copy that is without a label.")
        key = key_of(transaction.state, label)
        return self.add(transaction, Event.relabelled(found, key, "twin", of=int(item), **(more or {})))

    def clear(
        self, transaction: Transaction, items: Sequence[int], more: Mapping[str, Any] | None = None
    ) -> Event:
        """Take away whatever was decided about items; one event.

        Raises:
            InputError: no item of them is decided, or there is no such item.
        """
        answered = transaction.state.answered
        found = [item for item in dict.fromkeys(items) if self.checked(item) in answered]
        if not found:
            raise InputError("Nothing is decided about these items.")
        event = Event.cleared(found)
        return self.add(transaction, replace(event, payload={**event.payload, **(more or {})}))

    def want(
        self,
        transaction: Transaction,
        items: Sequence[int],
        how: str,
        *,
        second: bool = False,
        more: Mapping[str, Any] | None = None,
    ) -> Event:
        """Be asked about items before anything else; questions of this annotator that wait are given back.

        Raises:
            InputError: none of them can be asked about.
        """
        state = transaction.state
        given = [self.checked(item) for item in dict.fromkeys(items)]
        if second:
            found = [item for item in given if self.annotator in state.votes.get(item, {})]
        else:
            open_ = set(self._questions.askable(state, measured=True).tolist())
            found = [item for item in given if item in open_]
        if not found:
            raise InputError(
                "You have labelled none of these items."
                if second
                else "None of these items can be asked about: they are answered, or kept to measure on."
            )
        event = Event.wanted(found, how, second)
        recorded = self.add(transaction, replace(event, payload={**event.payload, **(more or {})}))
        waiting = [a.id for a in self._questions.waiting(state, self.annotator) if a.role != "evaluation"]
        if waiting:
            self.add(transaction, Event.released(waiting))
        return recorded

    def to_label(self, items: Iterable[int]) -> list[int]:
        """Items that may be labelled.

        Raises:
            InputError: the pool has one of them not, or keeps it to measure on.
        """
        found = [self.checked(item) for item in items]
        bad = np.asarray(found, dtype=np.int64)[~np.isin(found, self._project.pool.trainable)]
        if bad.size:
            raise InputError(
                f"Item {bad[0]} belongs to the test split: it is only measured on, never labelled."
            )
        return found

    def checked(self, item: int) -> int:
        """The item.

        Raises:
            InputError: the pool has none of this number.
        """
        if not 0 <= int(item) < len(self._project.pool):
            raise InputError(f"There is no item {item}; the pool has {len(self._project.pool)}.")
        return int(item)

    def _provenance(self, state: ProjectState, ask: AskRecord) -> dict[str, Any]:
        details = {"role": ask.role, "round": ask.details.get("round", -1)}
        if ask.details.get("utility") is not None:
            details["utility"] = ask.details["utility"]
        if ask.role in ("chosen", "second"):
            details["policy"] = "chosen by person"
        # the fit that chose it, not the one that is there when the answer comes
        details |= {name: ask.details[name] for name in ("policy", "classifier") if ask.details.get(name)}
        return details | {"n_labelled": ask.details.get("n_labelled", 0)}


Doing = Callable[[Answers, Transaction, Operation, Mapping[str, Any]], Event | None]
_DOING: dict[str, Doing] = {
    **dict.fromkeys(("label", "skip", "unsure"), Answers._answered),
    **dict.fromkeys(("flag", "note"), Answers._remarked),
    "correct": lambda my, t, of, more: my.correct(t, of.item, of.label, more, new=of.new),
    "relabel": lambda my, t, of, more: my.relabel(t, of.items, of.label, more),
    "twins": lambda my, t, of, more: my.label_twins(t, of.item, of.label, more),
    "clear": lambda my, t, of, more: my.clear(t, of.items, more),
    "want": lambda my, t, of, more: my.want(t, of.items, of.text, second=of.second, more=more),
    "choose": Answers._chosen,
    "resolve": Answers._resolved,
    "requeue": Answers._requeued,
    "read": lambda my, t, of, more: my._with(t, has_read(t.state, my.annotator, of.version), more),
    "example": lambda my, t, of, more: my._with(
        t, picked(t.state, my._project.pool, my.checked(of.item), of.label, of.on), more
    ),
}
