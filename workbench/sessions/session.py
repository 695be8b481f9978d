"""One person or oracle working on a project: ask, tell, undo, refit."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from workbench.arrays import Ints
from workbench.errors import InputError
from workbench.policies.effective import DEFAULT_POLICY, UNIFORM_SHARE
from workbench.pools.pool import Pool
from workbench.progress import FitCallback
from workbench.registry import trust
from workbench.sessions.answering import CLOSING, Answers, Conflict, checked_id
from workbench.sessions.asking import LEASE_SECONDS, Ask, Questions
from workbench.sessions.fitting import Fits, held_out
from workbench.sessions.measure import Evaluation
from workbench.sessions.model import FittedModel, Learner, check_policy
from workbench.sessions.opening import create_project, open_pool, relocate
from workbench.sessions.operations import Acknowledgement, Operation
from workbench.sessions.project import OpenProject, Transaction
from workbench.sessions.randomness import SECOND, generator
from workbench.sessions.rounds import Round
from workbench.sessions.spec import with_choice, without_fixed
from workbench.sessions.taxonomy import (
    described,
    key_of,
    new_key,
    new_name,
    removable,
    renamed_meanwhile,
)
from workbench.store import Event, ProjectRecord, ProjectState, Store
from workbench.store.retry import retried

EVALUATION_SHARE = 0.1
EARLY_SHARE = 0.25


class Session:
    """A project opened by one annotator.

    Safe to use from several threads; several sessions of one project, in one process or in many,
    see each other's events. Nothing here blocks on a fit but `refit` itself: call that in a
    background thread whenever `stale` is true; `ask` meanwhile serves from the queue of the last fit.

    Build with `Session.create` or `Session.open`; `as_annotator` gives the session of somebody else on
    the same open project.

    Attributes:
        annotator: whose events this session records.
    """

    def __init__(self, store: Store, project: ProjectRecord, pool: Pool, annotator: str) -> None:
        self.annotator = annotator
        self._project = OpenProject(store, project, pool)
        self._questions = Questions(pool, project.settings)
        self._fits = Fits(self._project, self._questions)
        self._answers = Answers(self._project, self._questions, self._fits, annotator)

    # --- opening ------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        pool: Pool | str,
        *,
        name: str | None = None,
        source: str | None = None,
        target: str | None = None,
        pool_options: Mapping[str, Any] | None = None,
        classifier: str = "large-margin",
        options: Mapping[str, Any] | None = None,
        policy: str = DEFAULT_POLICY,
        seed: int = 0,
        classes: Sequence[str] | None = None,
        test_fraction: float = 0.2,
        evaluation_share: float = EVALUATION_SHARE,
        early_share: float = EARLY_SHARE,
        uniform_share: float = UNIFORM_SHARE,
        overlap: float = 0.0,
        people: int = 2,
        owner: str = "",
        annotator: str | None = None,
        store: Store | None = None,
    ) -> Session:
        """Start a project.

        Args:
            pool: what `load_pool` takes; or a Pool that was loaded by its name (then `Session.open`
                loads it by that name again, with `target` and `pool_options`).
            name: what people call the project; the pool's name unless given.
            source: what `pool` was loaded from, where that is not its name.
            target: the column that holds the classes, for files.
            pool_options: further options of `load_pool`.
            classifier: a registry name or "package.module:Class".
            options: of the classifier.
            policy: a registry name or "package.module:function".
            seed: of everything random.
            classes: names of the classes to start with; the pool's unless given.
            test_fraction: share of items kept for measuring, where the pool has truth.
            evaluation_share: share of questions drawn uniformly for measuring, where it has none.
            early_share: the same until 20 of them are answered, where that is more; with an
                evaluation share of 0 there are none.
            uniform_share: share of the other questions drawn uniformly too, whatever the policy; these
                are trained on.
            overlap: share of items that several people label; else two are never asked about one.
            people: how many label each of these.
            owner: key of the person it belongs to, who alone may open it at first; open to all without.
            annotator: the user's login name unless given.
            store: the default database unless given.

        Raises:
            InputError: a pool, classifier, option or policy that cannot be used.
        """
        store = store or Store.open()
        record, loaded = create_project(
            pool,
            source=source,
            name=name,
            pool_options=dict(pool_options or {}) | ({} if target is None else {"target": target}),
            classifier=classifier,
            options=dict(options or {}),
            policy=policy,
            seed=seed,
            classes=classes,
            test_fraction=test_fraction,
            evaluation_share=evaluation_share,
            early_share=early_share,
            uniform_share=uniform_share,
            overlap=overlap,
            people=people,
            owner=owner,
            store=store,
        )
        trust(classifier, policy, dict(options or {}))
        return cls(store, record, loaded, annotator or _login())

    @classmethod
    def open(
        cls,
        project_id: str,
        *,
        pool: Pool | None = None,
        annotator: str | None = None,
        store: Store | None = None,
    ) -> Session:
        """Go on with a project.

        Args:
            project_id: of the project.
            pool: the pool, where it is at hand; else it is loaded again as it was when the project
                was made.
            annotator: the user's login name unless given.
            store: the default database unless given.

        Raises:
            InputError: no such project; or items of the pool were changed, removed or moved since
                (the message names them; nothing of the project is lost). Appended rows are taken in.
        """
        store = store or Store.open()
        record, loaded = open_pool(store, project_id, pool)
        return cls(store, record, loaded, annotator or _login())

    @staticmethod
    def relocate(project_id: str, path: str | Path, *, store: Store | None = None) -> ProjectRecord:
        """Point a project at the new place of its pool's file; see `opening.relocate`."""
        return relocate(project_id, path, store=store)

    def as_annotator(self, annotator: str) -> Session:
        """The session of somebody else on the same open project: pool, events and fits are shared."""
        if not annotator.strip():
            raise InputError("An annotator needs a name.")
        other = object.__new__(type(self))
        other.annotator = annotator.strip()
        other._project, other._questions, other._fits = self._project, self._questions, self._fits
        other._answers = Answers(other._project, other._questions, other._fits, other.annotator)
        return other

    # --- what is known ------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The project's id."""
        return self._project.id

    @property
    def store(self) -> Store:
        """The database."""
        return self._project.store

    @property
    def project(self) -> ProjectRecord:
        """As stored: id, name, pool reference, settings it began with."""
        return self._project.record

    @property
    def pool(self) -> Pool:
        """With its test split where there is one."""
        return self._project.pool

    @property
    def settings(self) -> Mapping[str, Any]:
        """Classifier, options, policy, seed, evaluation_share; what they name is not yet trusted."""
        return self._project.settings()

    def snapshot(self) -> AbstractContextManager[None]:
        """Within the block this thread reads the events once, at first need; a transaction reads as ever."""
        return self._project.snapshot()

    @property
    def state(self) -> ProjectState:
        """The fold of all events so far, also those of other sessions."""
        return self._project.state()

    @property
    def events(self) -> list[Event]:
        """All events so far, oldest first."""
        return self._project.events()

    @property
    def rounds(self) -> list[Round]:
        """The finished fits, oldest first, without their posteriors."""
        return self._project.rounds()

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the project's classes; positions are the codes."""
        return self.state.classes

    @property
    def n_left(self) -> int:
        """How many items could still be asked about."""
        return int(self._questions.askable(self.state).size)

    @property
    def model(self) -> FittedModel | None:
        """The last published fit, or None before the first."""
        published = self._fits.published()
        return None if published is None else published.model

    @property
    def fitted_with(self) -> Mapping[str, Any]:
        """Classifier, options and policy of the published fit; the present settings before the first."""
        published = self._fits.published()
        return self.settings if published is None else published.chosen

    @property
    def stale(self) -> bool:
        """Whether a refit would see labels, classes or settings that the published model has not seen."""
        return self._fits.is_stale()

    @property
    def fit_problem(self) -> str:
        """Why the last stored fit could not be taken up; "" where it could."""
        return self._fits.problem

    def model_at(self, number: int) -> FittedModel:
        """The model of an earlier round.

        As it was, for the last round; earlier ones are fitted again on the labels they had, from
        cold, which may differ from what was shown then in the last digits.

        Raises:
            InputError: there is no such round.
        """
        return self._fits.model_at(number)

    @property
    def evaluation(self) -> Evaluation:
        """The published model's error on items it never trained on, with its 95 % interval.

        On the test split where the pool has truth, else on the evaluation set; before 20 items
        `.enough` is False and the error says nothing.
        """
        source = "test split" if self.pool.test is not None else "evaluation set"
        model = self.model
        if model is None:
            return Evaluation.of(0, 0, source)
        items, truth = self.held_out()
        if not items.size:
            return Evaluation.of(0, 0, source)
        wrong = int((model.probabilities[items].argmax(axis=1) != truth).sum())
        return Evaluation.of(int(items.size), wrong, source)

    def held_out(self, state: ProjectState | None = None) -> tuple[Ints, Ints]:
        """Items to measure on and their codes among the project's classes; never trained on.

        Args:
            state: to take classes and evaluation set from; the present one unless given.
        """
        return held_out(self.pool, self.state if state is None else state)

    # --- ask and tell -------------------------------------------------------------------------

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
        published = self._fits.published()
        if published is None:
            # k-means takes a while: not inside a transaction that keeps others from writing.
            self._questions.cold_items()
        moment = time.time()
        with self._project.lock:
            # A reload asks for what it was shown: nothing to record.
            state = self.state
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
        """Items that the model takes for one class, surest first, to be confirmed together.

        Args:
            name: of the class.
            k: how many, at most.
            lease: seconds during which nobody else is asked about the items.

        Returns:
            Asks with the role "grid", recorded; for `confirm`.

        Raises:
            InputError: no such class, or no model that knows it yet.
        """
        published = self._fits.published()
        if published is None:
            raise InputError("There is no model yet: label items of two classes first.")
        moment = time.time()
        with self._project.recording() as transaction:
            state = transaction.state
            key = key_of(state, name)
            if key not in published.keys:
                raise InputError(f"The model does not know class {name!r} yet; it does after the next fit.")
            taken = self._questions.leased(state, moment, self.annotator)
            taken |= {a.item for a in self._questions.waiting(state, self.annotator)}
            code = published.keys.index(key)
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

    @retried
    def tell(self, ask_id: str, event: Event | str, *, operation: str | None = None) -> bool:
        """Answer a question; durable before it returns.

        Args:
            ask_id: from `ask`.
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
        if isinstance(event, str):
            event = Event.label(event)
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
    def tell_many(self, operations: Sequence[Operation]) -> list[Acknowledgement]:
        """What an annotator did, in one transaction; durable before it returns.

        Args:
            operations: in the order in which they were done.

        Returns:
            One acknowledgement each, in the same order. One that fails leaves the others as they are.
        """
        with self._project.recording() as transaction:
            return [self._answers.operate(transaction, operation) for operation in operations]

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
        model = self.model
        with self._project.recording() as transaction:
            key = key_of(transaction.state, name)
            more: dict[str, Any] = {"round": -1 if model is None else model.number}
            more["classifier"] = self._project.settings(transaction.state)["classifier"]
            if len(items) == 1:
                return [self._add(transaction, Event.label(key, int(items[0]), role=role, **more))]
            if not len(items):
                return []
            return [self._add(transaction, Event.relabelled(items, key, role, **more))]

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

    @retried
    def undo(self, of: int | None = None) -> Event | None:
        """Take back the annotator's own last event.

        Args:
            of: id of the event to take back; nothing happens when that is not their last any more, so
                that an undo sent twice takes one.

        Returns:
            What was taken back, or None.
        """
        with self._project.recording() as transaction:
            last = transaction.state.undoable.get(self.annotator)
            if last is None or (of is not None and last.id != of):
                return None
            self._add(transaction, Event.undo(last.id))
            return last

    @retried
    def redo(self) -> Event | None:
        """Put back what the annotator's last undo took; returns it, or None when there is nothing."""
        with self._project.recording() as transaction:
            last = transaction.state.redoable.get(self.annotator)
            if last is not None:
                self._add(transaction, Event.redo())
            return last

    def flag(self, item: int, on: bool = True, reason: str = "") -> Event:
        """Mark an item for attention, or (`on=False`) take the mark away."""
        return self._record(Event.flag(self._answers.checked(item), on, reason))

    def note(self, item: int, text: str) -> Event:
        """Keep a remark about an item."""
        return self._record(Event.note(self._answers.checked(item), text))

    def resolve(self, item: int, name: str) -> Event:
        """End a disagreement about an item."""
        return self._record(Event.resolved(self._answers.checked(item), key_of(self.state, name)))

    # --- classes, imports, settings -----------------------------------------------------------

    @retried
    def add_class(self, name: str) -> Event:
        """Add a class.

        Raises:
            InputError: an empty name, or one that exists.
        """
        with self._project.recording() as transaction:
            state = transaction.state
            return self._add(transaction, Event.class_added(new_key(state, name), new_name(state, name)))

    @retried
    def rename_class(self, name: str, new: str) -> Event:
        """Give a class another name; its labels follow.

        Raises:
            InputError: no class is called so (any more), the new name is empty, or exists.
        """
        with self._project.recording() as transaction:
            state = transaction.state
            renamed_meanwhile(state, name)
            return self._add(transaction, Event.class_renamed(key_of(state, name), new_name(state, new)))

    @retried
    def merge_class(self, name: str, into: str) -> Event:
        """Count one class's labels as another's; the first disappears."""
        with self._project.recording() as transaction:
            state = transaction.state
            key, target = key_of(state, name), key_of(state, into)
            if key == target:
                raise InputError(f"Class {name!r} cannot be merged into itself.")
            return self._add(transaction, Event.class_merged(key, target))

    @retried
    def remove_class(self, name: str) -> Event:
        """Take away a class that nobody needs; it is back with the first label that names it.

        Raises:
            InputError: there is none, labels name it, the pool knows items of it, or one class would be left.
        """
        with self._project.recording() as transaction:
            key = removable(transaction.state, name, self.pool)
            return self._add(transaction, Event.class_removed(key))

    @retried
    def describe_class(
        self,
        name: str,
        *,
        guidance: str | None = None,
        shortcut: str | None = None,
        colour: str | None = None,
    ) -> Event:
        """Say what belongs to a class, and how it is shown.

        Args:
            name: of the class.
            guidance: one line; "" takes it away, None leaves it.
            shortcut: the key that gives it, a letter or digit.
            colour: "#rrggbb".

        Raises:
            InputError: no such class, a line that is too long, or a key or colour that is none or taken.
        """
        with self._project.recording() as transaction:
            state = transaction.state
            key = key_of(state, name)
            given = {"guidance": guidance, "shortcut": shortcut, "colour": colour}
            about = described(state, key, {k: v for k, v in given.items() if v is not None})
            return self._add(transaction, Event.class_described(key, **about))

    @retried
    def order_classes(self, names: Sequence[str]) -> Event:
        """Show the classes in this order; those not named follow. Codes and models stay as they are.

        Raises:
            InputError: a class that there is not.
        """
        with self._project.recording() as transaction:
            state = transaction.state
            return self._add(transaction, Event.classes_ordered([key_of(state, name) for name in names]))

    @retried
    def import_labels(self, labels: Iterable[tuple[int, str]], source: str) -> Event:
        """Take in labels made elsewhere, as one event that one undo takes back.

        Args:
            labels: (item, class name) pairs; classes not there yet are added.
            source: where they come from, for the record.

        Raises:
            InputError: no such item. One of the test split is labelled and never learnt from.
        """
        pairs = [(self._answers.checked(item), str(name)) for item, name in labels]
        with self._project.recording() as transaction:
            state = transaction.state
            known = dict(zip(state.classes, state.keys, strict=True))
            for name in dict.fromkeys(name for _, name in pairs):
                if name not in known:
                    known[name] = new_key(state, name)
                    self._add(transaction, Event.class_added(known[name], new_name(state, name)))
            return self._add(
                transaction, Event.imported([(item, known[name]) for item, name in pairs], source)
            )

    def change_model(
        self,
        *,
        classifier: str | None = None,
        options: Mapping[str, Any] | None = None,
        policy: str | None = None,
    ) -> Event | None:
        """Go on with another classifier or policy; the project is stale until the next refit.

        Args:
            classifier: a registry name or "package.module:Class"; the present one unless given.
            options: of the classifier; the present ones where the classifier stays, else none.
            policy: a registry name or "package.module:function"; the present one unless given.

        Returns:
            The recorded event, or None when nothing changes.

        Raises:
            InputError: a classifier, option or policy that cannot be used here.
        """
        now = self.settings
        # What the project's record names stays marked: only what is given here is vouched for.
        name, chooses = classifier or now["classifier"], policy or now["policy"]
        same = name == now["classifier"]
        given = dict(now["options"]) if options is None and same else with_choice(name, options or {})
        if same and without_fixed(given) == without_fixed(now["options"]) and chooses == now["policy"]:
            return None
        check_policy(chooses, name)
        Learner(self.pool, name, given, seed=int(now["seed"]), classes=self.classes)
        trust(classifier or "", policy or "", dict(options or {}))
        return self._record(Event.model_changed(name, given, chooses))

    # --- fitting ------------------------------------------------------------------------------

    def refit(self, callback: FitCallback | None = None) -> Round | None:
        """Fit the model on the labels as they are now, score the pool and publish the result.

        Meant for a background thread. Works on a snapshot; what is told meanwhile is for the next
        refit. A second call at the same time waits for the first.

        Args:
            callback: (fraction, objective) -> True to stop the fit early.

        Returns:
            The round, or None when there are no labels of two classes yet. Its number is the next one
            at the moment it is stored, also when another program stored one during the fit.
        """
        return self._fits.refit(self.annotator, callback)

    def step(self, oracle: Callable[[int], str], k: int = 1) -> Round | None:
        """One round with an oracle in the person's place: ask, tell, refit.

        Args:
            oracle: item -> class name, such as `ArrayOracle(pool)`.
            k: how many questions before the refit.

        Returns:
            The round; None when there are not two classes yet or nothing is left to ask.
        """
        asks = self.ask(k)
        for ask in asks:
            self.tell(ask.id, oracle(ask.item))
        return self.refit() if asks else None

    # --- inside -------------------------------------------------------------------------------

    def _add(self, transaction: Transaction, event: Event) -> Event:
        return self._answers.add(transaction, event)

    @retried
    def _record(self, event: Event) -> Event:
        with self._project.recording() as transaction:
            return self._add(transaction, event)


class ArrayOracle:
    """Answers with the pool's own truth.

    Args:
        pool: with truth.
    """

    def __init__(self, pool: Pool) -> None:
        if pool.truth is None:
            raise InputError(f"Pool {pool.name!r} has no known classes, so no oracle can answer.")
        self._pool = pool
        self._truth = pool.truth

    def __call__(self, item: int) -> str:
        """The name of the item's class.

        Raises:
            InputError: the source does not know it.
        """
        code = int(self._truth[item])
        if code < 0:
            raise InputError(f"The class of item {item} is not known; a person must label it.")
        return self._pool.classes[code]


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "me"
