"""Ask and tell: what one annotator does with the items of a project."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.sessions.answering import CLOSING, Conflict
from workbench.sessions.asking import LEASE_SECONDS, Ask, guess_of
from workbench.sessions.opened import LEAST_PRECISION, Opened
from workbench.sessions.operations import Acknowledgement, Operation, checked_id
from workbench.sessions.published import Published
from workbench.sessions.randomness import SECOND, generator
from workbench.sessions.taxonomy import key_of
from workbench.store import Event, ProjectState
from workbench.store.retry import retried


class Labelling(Opened):
    """Questions, answers, and labels of one's own choosing."""

    def _prepare(self, state: ProjectState) -> Published | None:
        """The published fit; what takes a while is made, while nobody waits for it in a transaction."""
        published = self._fits.published(state)
        if published is None or len(state.trained_classes) < 2:
            self._questions.cold_items()  # k-means
        return published

    # --- questions ----------------------------------------------------------------------------

    @retried
    def ask(self, k: int = 1, *, lease: float = LEASE_SECONDS) -> list[Ask]:
        """Questions for this annotator, best first.

        Items whose answer they took back come first, then questions of theirs that are still open (so
        a reload or a second tab shows the same item), then items that were set aside and asked for
        anew, then new ones. Never waits for a fit.

        Args:
            k: how many.
            lease: seconds during which nobody else is asked about the items.

        Returns:
            At most k asks, recorded; fewer, or none, when little is left.
        """
        if k < 1:
            raise InputError(f"At least one item must be asked for; got k={k}.")
        state = self.state
        published = self._prepare(state)
        moment = time.time()
        # A reload asks for what it was shown: nothing to record.
        taken = self._questions.leased(state, moment, self.annotator)
        asks = self._questions.standing(state, self.annotator, taken)[:k]
        if len(asks) == k and all(a.expires > moment for a in asks):
            return asks
        with self._project.recording() as transaction:
            state = transaction.state
            taken = self._questions.leased(state, moment, self.annotator)
            asks = self._questions.standing(state, self.annotator, taken)[:k]
            if len(asks) < k:
                held = taken | {a.item for a in asks}
                asks += self._questions.fresh(state, self.annotator, k - len(asks), held, published)
            return self._answers.lease(transaction, asks, moment, lease)

    @retried
    def ask_grid(self, name: str, k: int = 24, *, lease: float = LEASE_SECONDS) -> list[Ask]:
        """The surest items that the model takes for one class, to be confirmed together; doubtful ones first.

        Args:
            name: of the class.
            k: how many, at most.
            lease: seconds during which nobody else is asked about the items.

        Returns:
            Asks with the role "grid", recorded; for `confirm`.

        Raises:
            InputError: no such class, no model that knows it yet, or one that is too often wrong about it.
        """
        published = self._fits.published()
        if published is None:
            raise InputError("There is no model yet: label items of two classes first.")
        precision = self.precision_of(name)
        if not precision.bears:
            raise InputError(
                f"{precision.words(name)} Many are confirmed at once where {LEAST_PRECISION:.0%} or more are."
            )
        moment = time.time()
        with self._project.recording() as transaction:
            state = transaction.state
            key = key_of(state, name)
            if key not in published.keys:
                raise InputError(f"The model does not know class {name!r} yet; it does after the next fit.")
            taken = self._questions.leased(state, moment, self.annotator)
            taken |= {a.item for a in self._questions.waiting(state, self.annotator)}
            code = published.keys.index(key)
            waiting = (state.asks[i] for i in state.waiting.get(self.annotator, ()))
            before = [a.id for a in waiting if a.role == "grid" and not a.released]
            if before:  # an earlier grid that was left; what is confirmed in it all the same is taken
                self._add(transaction, Event.released(before))
            asks = self._questions.grid(state, k, taken, published, code)
            return self._answers.lease(transaction, asks, moment, lease)

    def still_open(self, ask_ids: Iterable[str]) -> list[str]:
        """Those of some questions whose answer would be taken: also second opinions and second looks.

        Args:
            ask_ids: of any questions; unknown ones are not open.
        """
        state = self.state
        return [i for i in ask_ids if i in state.asks and self._questions.is_open(state.asks[i], state)]

    @retried
    def release(self, ask_ids: Iterable[str]) -> list[str]:
        """Give questions back unanswered, so that their items are free for anybody.

        Those of the evaluation set are kept: they were drawn at random and do not grow old.

        Args:
            ask_ids: of questions of this annotator.

        Returns:
            The ids that were given back; ones that are answered, unknown or somebody else's are not
            among them. An answer that comes for one all the same is taken while its item is free.
        """
        with self._project.recording() as transaction:
            asks = transaction.state.asks
            mine = [asks[i] for i in dict.fromkeys(ask_ids) if i in asks]
            given = [
                a.id
                for a in mine
                if a.annotator == self.annotator
                and a.role != "evaluation"
                and not a.released
                and self._questions.is_open(a, transaction.state)
            ]
            if given:
                self._add(transaction, Event.released(given))
            return given

    @retried
    def reclaim(
        self, ask_ids: Iterable[str], *, lease: float = LEASE_SECONDS, first: bool = False
    ) -> list[str]:
        """Take questions back that were given back, or ran out, while somebody still looks at them.

        They come first again, before what was asked meanwhile.

        Args:
            ask_ids: of questions of this annotator.
            lease: seconds during which nobody else is asked about the items.
            first: put them first also where they were not given back and stand behind others.

        Returns:
            The ids that were taken back; ones that are answered, still held, unknown, somebody else's, or
            whose item somebody else is being asked about are not among them.
        """
        asks, moment = list(dict.fromkeys(ask_ids)), time.time()
        state = self.state
        known = state.asks
        behind = first and self._answers.stands_behind(state, asks, moment)
        held = (i in known and not known[i].released and known[i].expires > moment for i in asks)
        if not behind and all(held):
            return []
        with self._project.recording() as transaction:
            return self._answers.reclaim(transaction, asks, moment, lease, first=first)

    @retried
    def ask_again(self, items: Iterable[int] | None = None) -> list[int]:
        """Have items that were skipped or unsure asked about again.

        Args:
            items: which; all of them unless given.

        Returns:
            The items, one event for all; those that are neither are not among them.
        """
        with self._project.recording() as transaction:
            state = transaction.state
            aside = set(state.skipped) | set(state.unsure)
            chosen = sorted(aside if items is None else aside & {int(i) for i in items})
            if chosen:
                self._add(transaction, Event.requeued(chosen))
            return chosen

    # --- answers ------------------------------------------------------------------------------

    @retried
    def tell(self, ask: Ask | str, event: Event | str, *, operation: str | None = None) -> bool:
        """Answer a question; durable before it returns.

        Args:
            ask: from `ask`, or its id.
            event: a class name; or `Event.label(class)`, `Event.skip()`, `Event.unsure()`; or
                `Event.flag(...)` or `Event.note(...)` about the item, which leave the question open.
            operation: an id of the caller's, stored in the event: told again it is True, and
                nothing is repeated.

        Returns:
            True when it was recorded. False, and nothing recorded, when the question was answered
            before, its item was answered some other way since, or its lease ran out and somebody
            else was asked.

        Raises:
            InputError: no such question or class, or an event that answers nothing.
        """
        ask_id = ask.id if isinstance(ask, Ask) else ask
        if isinstance(event, str):
            event = Event.label(event)
        if not isinstance(ask_id, str) or not isinstance(event, Event):
            raise InputError(
                'A question is answered with the name of a class: tell(question, "pos"), where question is '
                "one of those that ask gave."
            )
        if event.kind not in (*CLOSING, "flag", "note"):
            raise InputError(f"A question cannot be answered with {event.kind!r}; use the session's method.")
        with self._project.recording() as transaction:
            if operation is not None and checked_id(operation) in transaction.state.operations:
                return True
            try:
                self._answers.tell(transaction, ask_id, event, operation)
            except Conflict:
                return False
            return True

    @retried
    def confirm(
        self,
        ask_ids: Sequence[str],
        name: str,
        rejected: Sequence[str] = (),
        *,
        operation: str | None = None,
    ) -> Acknowledgement:
        """Label the items of a grid as one event, which one undo takes back.

        Args:
            ask_ids: questions from `ask_grid` whose items are of the class.
            name: of the class.
            rejected: the questions whose items are not; these items stay open.
            operation: an id of the caller's, as in `tell`.

        Returns:
            What became of it; items that somebody else answered or holds are left out and named.

        Raises:
            InputError: no such question or class.
        """
        given = Operation(operation or "", "confirm", label=name, asks=ask_ids, rejected=rejected)
        with self._project.recording() as transaction:
            if operation is not None and checked_id(operation) in transaction.state.operations:
                return Acknowledgement(operation, "saved")
            return self._answers.confirm(transaction, given)

    def label_item(self, item: int, name: str, *, role: str = "map") -> Event:
        """Label an item of one's own choosing, such as a point clicked on a map.

        Args:
            item: index into the pool.
            name: of the class.
            role: how it was chosen: "map", or "review" for a label that is looked at again.

        Returns:
            The recorded event. An earlier label of this annotator is replaced.

        Raises:
            InputError: no such item or class, or an item of the test split.
        """
        return self.label_items([item], name, role=role)[0]

    @retried
    def label_items(self, items: Sequence[int], name: str, *, role: str = "map") -> list[Event]:
        """Label several items at once (a lasso): all or none, and one undo takes all back.

        Returns:
            The recorded events: one.

        Raises:
            InputError: as `label_item`.
        """
        items = self._answers.to_label(int(item) for item in items)
        published = self._fits.published()
        with self._project.recording() as transaction:
            key = key_of(transaction.state, name)
            more: dict[str, Any] = {"round": -1 if published is None else published.model.number}
            if published is not None and len(items) == 1:
                more["guess"] = guess_of(published, int(items[0]))
            more["classifier"] = self._project.settings(transaction.state)["classifier"]
            if len(items) == 1:
                return [self._add(transaction, Event.label(key, int(items[0]), role=role, **more))]
            if not len(items):
                return []
            return [self._add(transaction, Event.relabelled(items, key, role, **more))]

    def open_twins(self, item: int) -> list[int]:
        """Copies of an item that wait for a label; `label_twins` gives them one."""
        return self._questions.open_twins(self.state, item)

    @retried
    def label_twins(self, item: int, name: str) -> Event:
        """The copies of an item get a class, those that nobody has labelled; one undo takes all back.

        Args:
            item: index into the pool.
            name: of the class.

        Raises:
            InputError: no such item or class, or no copy without a label.
        """
        with self._project.recording() as transaction:
            return self._answers.label_twins(transaction, item, name)

    @retried
    def correct(self, item: int, name: str) -> Event:
        """Answer an item again that this annotator answered before.

        Args:
            item: index into the pool.
            name: of the class; "" for unsure.

        Raises:
            InputError: they have no answer of it, or no such class.
        """
        with self._project.recording() as transaction:
            return self._answers.correct(transaction, item, name)

    @retried
    def relabel(self, items: Sequence[int], name: str) -> Event:
        """Decide the class of items in review, whatever was said before; one undo takes all back.

        Raises:
            InputError: no items, no such item or class.
        """
        with self._project.recording() as transaction:
            return self._answers.relabel(transaction, items, name)

    @retried
    def clear(self, items: Sequence[int]) -> Event:
        """Take away whatever anybody decided about items, so that they may be asked about again.

        Raises:
            InputError: nothing is decided about any of them.
        """
        with self._project.recording() as transaction:
            return self._answers.clear(transaction, items)

    @retried
    def want(self, items: Sequence[int], how: str = "") -> Event:
        """Be asked about these items before anything else, in their order.

        They are recorded as chosen by a person; those that are answered or kept to measure on are left out.

        Args:
            items: indices into the pool.
            how: they were found, for the record.

        Raises:
            InputError: none of them can be asked about.
        """
        with self._project.recording() as transaction:
            return self._answers.want(transaction, items, how)

    @retried
    def look_again(self, n: int = 20, *, items: Sequence[int] | None = None) -> Event:
        """Be asked a second time about labels of one's own, without seeing them.

        How far the two agree is in `Vote.first` and `Vote.key`; the second counts from then on.

        Args:
            n: how many, drawn at random from those not looked at twice yet.
            items: which, instead.

        Raises:
            InputError: there is no such label.
        """
        with self._project.recording() as transaction:
            state = transaction.state
            if items is None:
                mine = [
                    item
                    for item, votes in state.votes.items()
                    if self.annotator in votes
                    and not votes[self.annotator].first
                    and not votes[self.annotator].final
                    and votes[self.annotator].role != "imported"
                ]
                rng = generator(int(self.settings["seed"]), state.n_events, SECOND)
                items = rng.permutation(np.asarray(mine, dtype=np.int64))[:n].tolist()
            return self._answers.want(transaction, items, "a second pass", second=True)

    def resolve(self, item: int | Sequence[int], name: str) -> Event:
        """End a disagreement about an item, or about each of several at once."""
        return self._record(Event.resolved(self._one_or_more(item), key_of(self.state, name)))

    def _one_or_more(self, item: int | Sequence[int]) -> int | list[int]:
        if isinstance(item, Sequence):
            return [self._answers.checked(one) for one in dict.fromkeys(item)]
        return self._answers.checked(int(item))
