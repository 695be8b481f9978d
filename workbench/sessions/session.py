"""One person or oracle working on a project: ask, tell, undo, refit."""

from __future__ import annotations

import base64
import getpass
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.errors import InputError
from workbench.policies import query
from workbench.pools import compare_fingerprints, load_pool
from workbench.pools.pool import Pool, TestSplit
from workbench.registry import from_file, trust
from workbench.sessions.measure import Evaluation, measures
from workbench.sessions.model import Callback, Learner, Model, check_policy
from workbench.sessions.randomness import COLD_START, EVALUATION, QUERY, generator
from workbench.sessions.rounds import Round
from workbench.sessions.start import diverse_items
from workbench.store import AskRecord, Event, EventFold, ProjectRecord, ProjectState, Store
from workbench.store.store import Recorder

LEASE_SECONDS = 600.0
QUEUE = 10
EVALUATION_SHARE = 0.1
COLD_ITEMS = 50

_CLOSING = ("label", "skip", "unsure")
# What a classifier makes of a state that it does not know.
_UNREADABLE = (KeyError, IndexError, AttributeError, TypeError, ValueError)


@dataclass(frozen=True)
class Ask:
    """A question: which class is this item?

    Attributes:
        id: give it back to `Session.tell`.
        item: index into the pool.
        expires: epoch seconds; until then nobody else is asked about the item.
        role: why it is asked: "policy", "evaluation" (drawn uniformly, never trained on), "cold-start"
            (spread over the pool, before two classes are known), "again" (its answer was taken back).
        utility: the policy's, None where it was not chosen by one.
        round: number of the fit that chose it, -1 for none.
    """

    id: str
    item: int
    expires: float
    role: str
    utility: float | None
    round: int


@dataclass(frozen=True)
class _Published:
    """What one refit made; replaced as a whole, never changed."""

    model: Model
    training: Mapping[int, int]
    keys: tuple[str, ...]
    queue: Ints
    utilities: Floats


class Session:
    """A project opened by one annotator.

    Safe to use from several threads; several sessions of one project, in one process or in many,
    see each other's events. Nothing here blocks on a fit but `refit` itself: call that in a
    background thread whenever `stale` is true; `ask` meanwhile serves from the queue of the last fit.

    Build with `Session.create` or `Session.open`.

    Attributes:
        project: as stored (id, name, pool reference, settings).
        pool: with its test split where there is one.
        annotator: whose events this session records.
        store: the database.
    """

    def __init__(self, store: Store, project: ProjectRecord, pool: Pool, annotator: str) -> None:
        self.store = store
        self.project = project
        self.pool = pool
        self.annotator = annotator
        self._lock = threading.RLock()
        self._refitting = threading.Lock()
        self._folder = EventFold()
        self._published: _Published | None = None
        self._learner: Learner | None = None
        self._cold: Ints | None = None
        self._sync()
        self._restore()

    # --- opening ------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        pool: Pool | str,
        *,
        name: str | None = None,
        target: str | None = None,
        pool_options: Mapping[str, Any] | None = None,
        classifier: str = "large-margin",
        options: Mapping[str, Any] | None = None,
        policy: str = "variation-ratio",
        seed: int = 0,
        classes: Sequence[str] | None = None,
        test_fraction: float = 0.2,
        evaluation_share: float = EVALUATION_SHARE,
        annotator: str | None = None,
        store: Store | None = None,
    ) -> Session:
        """Start a project.

        Args:
            pool: what `load_pool` takes; or a Pool that was loaded by its name (then `Session.open`
                loads it by that name again, with `target` and `pool_options`).
            name: what people call the project; the pool's name unless given.
            target: the column that holds the classes, for files.
            pool_options: further options of `load_pool`.
            classifier: a registry name or "package.module:Class".
            options: of the classifier.
            policy: a registry name or "package.module:function".
            seed: of everything random.
            classes: names of the classes to start with; the pool's unless given.
            test_fraction: share of items kept for measuring, where the pool has truth.
            evaluation_share: share of questions drawn uniformly for measuring, where it has none.
            annotator: the user's login name unless given.
            store: the default database unless given.

        Raises:
            InputError: a pool, classifier, option or policy that cannot be used.
        """
        reference: dict[str, Any] = {"name": pool if isinstance(pool, str) else pool.name}
        loading = dict(pool_options or {}) | ({} if target is None else {"target": target})
        reference["options"] = loading
        loaded = load_pool(pool, **loading) if isinstance(pool, str) else pool
        if not 0.0 <= evaluation_share < 1.0:
            raise InputError(f"The evaluation share must lie in [0, 1); got {evaluation_share}.")
        if loaded.has_truth and loaded.test is None:
            loaded = loaded.split(seed, test_fraction)
        check_policy(policy, classifier)
        names = _class_names(loaded.classes if classes is None else classes)
        Learner(loaded, classifier, options, seed=seed, classes=names)
        trust(classifier, policy, options)
        settings: dict[str, Any] = {
            "classifier": classifier,
            "options": dict(options or {}),
            "policy": policy,
            "seed": seed,
            "evaluation_share": 0.0 if loaded.has_truth else evaluation_share,
            "test": None if loaded.test is None else _pack(loaded.test, len(loaded)),
        }
        events = [replace(Event.class_added(c), annotator="source") for c in names]
        if loaded.truth is not None and (loaded.truth < 0).any() and loaded.has_truth:
            # Rows that come with a class need not be asked about: the person labels the others.
            known = loaded.trainable[loaded.truth[loaded.trainable] >= 0]
            labels = [(int(i), loaded.classes[loaded.truth[i]]) for i in known]
            events.append(replace(Event.imported(labels, "the pool's own column"), annotator="source"))
        store = store or Store.open()
        record = store.create_project(
            name or loaded.name,
            reference,
            settings,
            loaded.fingerprints,
            loaded.feature_map.to_json(),
            events,
        )
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
        record = store.project(project_id)
        loaded = pool or load_pool(record.pool["name"], **record.pool.get("options", {}))
        change = compare_fingerprints(record.fingerprints, loaded.fingerprints, name=record.pool["name"])
        if change.n_appended:
            store.update_project(project_id, fingerprints=loaded.fingerprints)
            record = store.project(project_id)
        packed = record.settings.get("test")
        loaded = replace(loaded, test=None if packed is None else _unpack(packed, len(loaded)))
        return cls(store, record, loaded, annotator or _login())

    # --- what is known ------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The project's id."""
        return self.project.id

    @property
    def settings(self) -> Mapping[str, Any]:
        """Classifier, options, policy, seed, evaluation_share; what they name is not yet trusted."""
        where = f"Project {self.project.name!r}"
        return {k: from_file(v, where) for k, v in self.project.settings.items()}

    @property
    def state(self) -> ProjectState:
        """The fold of all events so far, also those of other sessions."""
        with self._lock:
            self._sync()
            return self._folder.state()

    @property
    def events(self) -> list[Event]:
        """All events so far, oldest first."""
        with self._lock:
            self._sync()
            return list(self._folder.events)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the project's classes; positions are the codes."""
        return self.state.classes

    @property
    def n_left(self) -> int:
        """How many items could still be asked about."""
        return int(self._askable(self.state).size)

    @property
    def model(self) -> Model | None:
        """The last published fit, or None before the first."""
        published = self._published
        return None if published is None else published.model

    @property
    def stale(self) -> bool:
        """Whether a refit would see labels or classes that the published model has not seen."""
        state = self.state
        published = self._published
        if not _ready(state):
            return False
        if published is None or published.model.classes != state.classes:
            return True
        return published.keys != state.keys or published.training != state.training

    @property
    def rounds(self) -> list[Round]:
        """The finished fits, oldest first, without their posteriors."""
        return [Round.from_json(r.record) for r in self.store.rounds(self.id)]

    def model_at(self, number: int) -> Model:
        """The model of an earlier round.

        As it was, for the last round; earlier ones are fitted again on the labels they had, from
        cold, which may differ from what was shown then in the last digits.

        Raises:
            InputError: there is no such round.
        """
        records = [r.record for r in self.store.rounds(self.id) if r.number <= number]
        if not records or records[-1]["number"] != number:
            raise InputError(f"Project {self.project.name!r} has no round {number}.")
        items, codes = _training_of(records)
        learner = self._learner_for(tuple(records[-1]["classes"]))
        found = self.store.round_state(self.id, number)
        if found is not None:
            try:
                return learner.model(found[1], number, items, codes)
            except _UNREADABLE:
                pass
        return learner.fit(items, codes, number=number)

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
        items, truth = self.held_out(self.state)
        if not items.size:
            return Evaluation.of(0, 0, source)
        wrong = int((model.probabilities[items].argmax(axis=1) != truth).sum())
        return Evaluation.of(int(items.size), wrong, source)

    def held_out(self, state: ProjectState | None = None) -> tuple[Ints, Ints]:
        """Items to measure on and their codes among the project's classes; never trained on.

        Args:
            state: to take classes and evaluation set from; the present one unless given.
        """
        state = self.state if state is None else state
        if self.pool.test is not None and self.pool.truth is not None:
            position = {key: code for code, key in enumerate(state.keys)}
            by_code = [position.get(state.resolve(name), -1) for name in self.pool.classes]
            items = self.pool.test.test
            truth = self.pool.truth[items]
            codes = np.where(truth >= 0, np.asarray([*by_code, -1])[truth], -1)
            return items[codes >= 0], codes[codes >= 0]
        pairs = [(item, code) for item, code in state.codes.items() if item in state.evaluation]
        both = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    # --- ask and tell -------------------------------------------------------------------------

    def ask(self, k: int = 1, *, lease: float = LEASE_SECONDS) -> list[Ask]:
        """Questions for this annotator, best first.

        Questions of theirs that are still open come first (so a reload or a second tab shows the
        same item), then items whose answer they took back, then new ones. Never waits for a fit.

        Args:
            k: how many.
            lease: seconds during which nobody else is asked about the items.

        Returns:
            At most k asks, recorded; fewer, or none, when little is left.
        """
        if k < 1:
            raise InputError(f"At least one item must be asked for; got k={k}.")
        if self._published is None:
            # k-means takes a while: not inside a transaction that keeps others from writing.
            self._cold_items()
        with self._lock, self._recording() as recorder:
            state = self._folder.state()
            moment = time.time()
            taken = self._leased(state, moment)
            mine = [a for a in state.asks.values() if a.annotator == self.annotator and _open(a, state)]
            mine = [a for a in mine if a.item not in taken]
            asks = [_as_ask(a) for a in mine][:k]
            late = [a for a in asks if a.expires <= moment]
            held = {a.item for a in asks}
            fresh = self._choose(state, k - len(asks), taken | held) if len(asks) < k else []
            expires = moment + lease
            made = [replace(a, expires=expires) for a in fresh]
            renewed = [replace(a, expires=expires) for a in late]
            if made or renewed:
                documents = [_document(a) for a in (*renewed, *made)]
                recorder.add(replace(Event.asked(documents, expires), annotator=self.annotator))
            kept = {a.id: a for a in renewed}
            return [kept.get(a.id, a) for a in asks] + made

    def tell(self, ask_id: str, event: Event | str) -> bool:
        """Answer a question; durable before it returns.

        Args:
            ask_id: from `ask`.
            event: a class name; or `Event.label(class)`, `Event.skip()`, `Event.unsure()`; or
                `Event.flag(...)` or `Event.note(...)` about the item, which leave the question open.

        Returns:
            True when it was recorded. False, and nothing recorded, when the question was answered
            before, its item was answered some other way since, or its lease ran out and somebody
            else was asked.

        Raises:
            InputError: no such question or class, or an event that answers nothing.
        """
        if isinstance(event, str):
            event = Event.label(event)
        if event.kind not in (*_CLOSING, "flag", "note"):
            raise InputError(f"A question cannot be answered with {event.kind!r}; use the session's method.")
        with self._lock, self._recording() as recorder:
            state = self._folder.state()
            ask = state.asks.get(ask_id)
            if ask is None:
                raise InputError(f"There is no question {ask_id!r} in project {self.project.name!r}.")
            if not _open(ask, state):
                return False
            moment = time.time()
            if ask.expires <= moment and ask.item in self._leased(state, moment, but=ask_id):
                return False
            payload = {**event.payload, "item": ask.item}
            if event.kind in _CLOSING:
                payload |= {"ask": ask_id, **self._provenance(ask)}
            if event.kind == "label":
                payload["class"] = _key_of(state, str(event.payload["class"]))
            recorder.add(replace(event, payload=payload, annotator=self.annotator))
            return True

    def label_item(self, item: int, name: str) -> Event:
        """Label an item of one's own choosing, such as a point clicked on a map.

        Args:
            item: index into the pool.
            name: of the class.

        Returns:
            The recorded event. An earlier label of this annotator is replaced.

        Raises:
            InputError: no such item or class, or an item of the test split.
        """
        return self.label_items([item], name)[0]

    def label_items(self, items: Sequence[int], name: str) -> list[Event]:
        """Label several items at once (a lasso): one event each, all or none.

        Raises:
            InputError: as `label_item`.
        """
        trainable = np.isin(items, self.pool.trainable)
        if not trainable.all():
            bad = int(np.asarray(items)[~trainable][0])
            if 0 <= bad < len(self.pool):
                raise InputError(
                    f"Item {bad} belongs to the test split: it is only measured on, never labelled."
                )
            raise InputError(f"There is no item {bad}; the pool has {len(self.pool)}.")
        with self._lock, self._recording() as recorder:
            state = self._folder.state()
            key = _key_of(state, name)
            model = self.model
            more = {"role": "map", "round": -1 if model is None else model.number}
            more["classifier"] = self.settings["classifier"]
            return [
                recorder.add(replace(Event.label(key, int(i), **more), annotator=self.annotator))
                for i in items
            ]

    def undo(self) -> Event | None:
        """Take back the annotator's own last event; returns it, or None when there is none."""
        return self._step(Event.undo())

    def redo(self) -> Event | None:
        """Put back what the annotator's last undo took; returns it, or None when there is nothing."""
        return self._step(Event.redo())

    def flag(self, item: int, on: bool = True, reason: str = "") -> Event:
        """Mark an item for attention, or (`on=False`) take the mark away."""
        return self._record(Event.flag(self._checked(item), on, reason))

    def note(self, item: int, text: str) -> Event:
        """Keep a remark about an item."""
        return self._record(Event.note(self._checked(item), text))

    def resolve(self, item: int, name: str) -> Event:
        """End a disagreement about an item."""
        return self._record(Event.resolved(self._checked(item), _key_of(self.state, name)))

    # --- classes and imports ------------------------------------------------------------------

    def add_class(self, name: str) -> Event:
        """Add a class.

        Raises:
            InputError: an empty name, or one that exists.
        """
        with self._lock, self._recording() as recorder:
            state = self._folder.state()
            event = Event.class_added(_new_key(state, name), _new_name(state, name))
            return recorder.add(replace(event, annotator=self.annotator))

    def rename_class(self, name: str, new: str) -> Event:
        """Give a class another name; its labels follow."""
        with self._lock, self._recording() as recorder:
            state = self._folder.state()
            event = Event.class_renamed(_key_of(state, name), _new_name(state, new))
            return recorder.add(replace(event, annotator=self.annotator))

    def merge_class(self, name: str, into: str) -> Event:
        """Count one class's labels as another's; the first disappears."""
        with self._lock, self._recording() as recorder:
            state = self._folder.state()
            key, target = _key_of(state, name), _key_of(state, into)
            if key == target:
                raise InputError(f"Class {name!r} cannot be merged into itself.")
            return recorder.add(replace(Event.class_merged(key, target), annotator=self.annotator))

    def import_labels(self, labels: Iterable[tuple[int, str]], source: str) -> Event:
        """Take in labels made elsewhere, as one event that one undo takes back.

        Args:
            labels: (item, class name) pairs; classes not there yet are added.
            source: where they come from, for the record.

        Raises:
            InputError: no such item, or one of the test split.
        """
        pairs = [(self._checked(item), str(name)) for item, name in labels]
        with self._lock, self._recording() as recorder:
            state = self._folder.state()
            known = dict(zip(state.classes, state.keys, strict=True))
            for name in dict.fromkeys(name for _, name in pairs):
                if name not in known:
                    known[name] = _new_key(state, name)
                    added = Event.class_added(known[name], _new_name(state, name))
                    recorder.add(replace(added, annotator=self.annotator))
            event = Event.imported([(item, known[name]) for item, name in pairs], source)
            return recorder.add(replace(event, annotator=self.annotator))

    # --- fitting ------------------------------------------------------------------------------

    def refit(self, callback: Callback | None = None) -> Round | None:
        """Fit the model on the labels as they are now, score the pool and publish the result.

        Meant for a background thread. Works on a snapshot; what is told meanwhile is for the next
        refit. A second call at the same time waits for the first.

        Args:
            callback: (fraction, objective) -> True to stop the fit early.

        Returns:
            The round, or None when there are no labels of two classes yet.
        """
        with self._refitting:
            state = self.state
            if not _ready(state):
                return None
            training = dict(state.training)
            items = np.fromiter(training, dtype=np.int64, count=len(training))
            codes = np.fromiter(training.values(), dtype=np.int64, count=len(training))
            records = [r.record for r in self.store.rounds(self.id)]
            number = records[-1]["number"] + 1 if records else 0
            before = self._published
            same = before is not None and before.keys == state.keys
            model = self._learner_for(state.classes).fit(
                items,
                codes,
                number=number,
                previous=before.model.state if before is not None and same else None,
                callback=callback,
            )
            began = time.perf_counter()
            held_out, truth = self.held_out(state)
            figures = measures(truth, model.probabilities[held_out] if held_out.size else np.empty((0, 0)))
            scored = time.perf_counter()
            queue, utilities = self._queue_of(model, state)
            seconds = {
                "fit": model.seconds,
                "score": scored - began,
                "query": time.perf_counter() - scored,
            }
            old = {} if before is None else before.training
            new = np.asarray([i for i in items.tolist() if i not in old], dtype=np.int64)
            finished = Round(
                number=number,
                n_labelled=model.n_labelled,
                queried=new,
                labels=np.asarray([training[i] for i in new.tolist()], dtype=np.int64),
                utilities=np.full(new.size, np.nan),
                seconds=seconds,
                state=model.state,
                **figures,
            )
            keyed = {i: state.keys[c] for i, c in training.items()}
            known = _standing_of(records)
            delta = {
                "set": [[i, key] for i, key in keyed.items() if known.get(i) != key],
                "removed": [i for i in known if i not in keyed],
            }
            self._publish(finished, _Published(model, training, state.keys, queue, utilities), state, delta)
            return finished

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

    def _sync(self) -> None:
        last = self._folder.events[-1].id if self._folder.events else 0
        self._folder.extend(self.store.events(self.id, last))

    def _recording(self) -> _Recording:
        return _Recording(self)

    def _record(self, event: Event) -> Event:
        with self._lock, self._recording() as recorder:
            return recorder.add(replace(event, annotator=self.annotator))

    def _step(self, event: Event) -> Event | None:
        with self._lock, self._recording() as recorder:
            state = self._folder.state()
            stack = state.undoable if event.kind == "undo" else state.redoable
            moved = stack.get(self.annotator)
            if moved is not None:
                recorder.add(replace(event, annotator=self.annotator))
            return moved

    def _checked(self, item: int) -> int:
        if not 0 <= int(item) < len(self.pool):
            raise InputError(f"There is no item {item}; the pool has {len(self.pool)}.")
        return int(item)

    def _learner_for(self, classes: tuple[str, ...]) -> Learner:
        if self._learner is None or self._learner.classes != classes:
            s = self.settings
            self._learner = Learner(self.pool, s["classifier"], s["options"], seed=s["seed"], classes=classes)
        return self._learner

    def _restore(self) -> None:
        """Publish the last stored fit, so that nobody waits after a restart."""
        found = self.store.round_state(self.id)
        if found is None:
            return
        number, arrays = found
        records = [r.record for r in self.store.rounds(self.id) if r.number <= number]
        record = records[-1]
        items, codes = _training_of(records)
        try:
            model = self._learner_for(tuple(record["classes"])).model(arrays, number, items, codes)
        except _UNREADABLE:
            # Written by another version of the classifier: the labels are what matters, and `stale`
            # now asks for a fit on them.
            return
        training = dict(zip(items.tolist(), codes.tolist(), strict=True))
        queue = np.asarray(record["queue"], dtype=np.int64)
        utilities = np.full(len(self.pool), np.nan)
        utilities[queue] = np.asarray(
            [np.nan if u is None else u for u in record["queue_utilities"]], dtype=np.float64
        )
        self._published = _Published(model, training, tuple(record["keys"]), queue, utilities)

    def _publish(
        self, finished: Round, published: _Published, state: ProjectState, delta: Mapping[str, Any]
    ) -> None:
        queue = published.queue
        utilities = published.utilities[queue].tolist()
        record = finished.to_json() | {
            "classes": list(state.classes),
            "keys": list(state.keys),
            "delta": dict(delta),
            "queue": queue.tolist(),
            "queue_utilities": [None if np.isnan(u) else u for u in utilities],
        }
        self.store.save_round(self.id, finished.number, record, finished.state)
        shown = ("number", "n_labelled", "n_test", "error", "nll", "brier", "ece")
        self._record(Event.round({name: record[name] for name in shown}))
        self._published = published

    def _queue_of(self, model: Model, state: ProjectState) -> tuple[Ints, Floats]:
        askable = self._askable(state)
        empty = np.empty(0, dtype=np.int64)
        if not askable.size:
            return empty, np.full(len(self.pool), np.nan)
        closed = np.setdiff1d(self.pool.trainable, askable)
        rng = generator(self.settings["seed"], model.number, QUERY)
        answer = query(self.settings["policy"], model.belief(closed), min(QUEUE, askable.size), rng)
        return answer.indices, answer.utilities

    def _askable(self, state: ProjectState) -> Ints:
        shut = np.zeros(len(self.pool), dtype=bool)
        for closed in (state.answered, state.evaluation):
            shut[np.fromiter(closed, dtype=np.int64, count=len(closed))] = True
        trainable = self.pool.trainable
        return trainable[~shut[trainable]]

    def _leased(self, state: ProjectState, moment: float, but: str = "") -> set[int]:
        """Items somebody else is being asked about right now."""
        return {
            a.item
            for a in state.asks.values()
            if a.expires > moment and a.annotator != self.annotator and a.id != but and _open(a, state)
        }

    def _choose(self, state: ProjectState, k: int, taken: set[int]) -> list[Ask]:
        """New questions, best first; `taken` items are left alone."""
        free = np.zeros(len(self.pool), dtype=bool)
        free[self._askable(state)] = True
        free[np.fromiter(taken, dtype=np.int64, count=len(taken))] = False
        chosen: list[Ask] = []

        def add(item: int, role: str, utility: float | None = None, number: int = -1) -> None:
            free[item] = False
            chosen.append(Ask(secrets.token_hex(8), int(item), 0.0, role, utility, number))

        for item in state.reopened.get(self.annotator, ()):
            if len(chosen) < k and item not in taken:
                add(item, "evaluation" if item in state.evaluation else "again")
        seed, share = int(self.settings["seed"]), float(self.settings["evaluation_share"])
        published = self._published if len(set(state.training.values())) >= 2 else None
        while len(chosen) < k and free.any():
            asked = len(state.asks) + len(chosen)
            rng = generator(seed, asked, EVALUATION)
            if share and rng.random() < share:
                add(int(rng.choice(np.flatnonzero(free))), "evaluation")
            elif published is None:
                add(self._cold_item(free, asked), "cold-start")
            else:
                item = _next(published, free)
                if item < 0:
                    item = int(generator(seed, asked, QUERY).choice(np.flatnonzero(free)))
                utility = float(published.utilities[item])
                add(item, "policy", None if np.isnan(utility) else utility, published.model.number)
        return chosen

    def _cold_items(self) -> Ints:
        """Items spread over the pool, to be asked before a model can say better."""
        with self._lock:
            if self._cold is None:
                n = min(COLD_ITEMS, max(8, 2 * len(self.pool.classes)))
                self._cold = diverse_items(self.pool, self.pool.trainable, n, int(self.settings["seed"]))
            return self._cold

    def _cold_item(self, free: Array, asked: int) -> int:
        cold = self._cold_items()
        waiting = cold[free[cold]]
        if waiting.size:
            return int(waiting[0])
        rng = generator(int(self.settings["seed"]), asked, COLD_START)
        return int(rng.choice(np.flatnonzero(free)))

    def _provenance(self, ask: AskRecord) -> dict[str, Any]:
        details = {"role": ask.role, "round": ask.details.get("round", -1)}
        if ask.details.get("utility") is not None:
            details["utility"] = ask.details["utility"]
        if ask.role == "policy":
            details["policy"] = self.settings["policy"]
            details["classifier"] = self.settings["classifier"]
        model = self.model
        details["n_labelled"] = 0 if model is None else model.n_labelled
        return details


class _Recording:
    """A transaction on the session's project that keeps the session's fold in step."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> Recorder:
        folder = self._session._folder
        last = folder.events[-1].id if folder.events else 0
        self._context = self._session.store.recording(self._session.id, last)
        self._recorder = self._context.__enter__()
        folder.extend(self._recorder.seen)
        return self._recorder

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)
        # Only what was committed is folded: an exception above has left by now.
        if error[0] is None:
            self._session._folder.extend(self._recorder.added)


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


def _ready(state: ProjectState) -> bool:
    return len(set(state.training.values())) >= 2


def _open(ask: AskRecord, state: ProjectState) -> bool:
    return not ask.answered and ask.item not in state.answered


def _next(published: _Published, free: Array) -> int:
    """The first free item of the queue, else the free one of largest utility, else -1."""
    waiting = published.queue[free[published.queue]]
    if waiting.size:
        return int(waiting[0])
    utilities = np.where(free, published.utilities, np.nan)
    return -1 if np.isnan(utilities).all() else int(np.nanargmax(utilities))


def _as_ask(record: AskRecord) -> Ask:
    utility = record.details.get("utility")
    return Ask(
        record.id,
        record.item,
        record.expires,
        record.role,
        None if utility is None else float(utility),
        int(record.details.get("round", -1)),
    )


def _document(ask: Ask) -> dict[str, Any]:
    return {"id": ask.id, "item": ask.item, "role": ask.role, "utility": ask.utility, "round": ask.round}


def _standing_of(records: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Item -> class key of the training set of the last of these rounds: what each changed, added up."""
    standing: dict[int, str] = {}
    for record in records:
        for item in record["delta"]["removed"]:
            standing.pop(int(item), None)
        standing.update((int(item), str(key)) for item, key in record["delta"]["set"])
    return standing


def _training_of(records: Sequence[Mapping[str, Any]]) -> tuple[Ints, Ints]:
    standing = _standing_of(records)
    position = {key: code for code, key in enumerate(records[-1]["keys"])}
    items = np.fromiter(standing, dtype=np.int64, count=len(standing))
    return items, np.asarray([position[key] for key in standing.values()], dtype=np.int64)


def _key_of(state: ProjectState, name: str) -> str:
    for key, shown in state.class_names.items():
        if shown == name:
            return key
    if name in state.class_names:
        return name
    raise InputError(f"There is no class {name!r}. Classes: {', '.join(state.classes) or 'none yet'}.")


def _class_names(names: Sequence[str]) -> tuple[str, ...]:
    cleaned = tuple(str(name).strip() for name in names)
    if any(not name for name in cleaned):
        raise InputError("A class needs a name.")
    if len(set(cleaned)) != len(cleaned):
        raise InputError("Two classes have the same name.")
    return cleaned


def _new_name(state: ProjectState, name: str) -> str:
    cleaned = name.strip()
    if not cleaned:
        raise InputError("A class needs a name.")
    if cleaned in state.classes:
        raise InputError(f"There is a class {cleaned!r} already.")
    return cleaned


def _new_key(state: ProjectState, name: str) -> str:
    """The name itself, or where an earlier class took that as its key, the name with a number."""
    taken = {*state.class_names, *state.merged}
    key, number = name.strip(), 2
    while key in taken:
        key, number = f"{name.strip()}#{number}", number + 1
    return key


def _pack(split: TestSplit, n: int) -> dict[str, Any]:
    """The test split itself: rows appended later must not reshuffle it."""
    mask = np.zeros(n, dtype=bool)
    mask[split.test] = True
    bits = base64.b64encode(np.packbits(mask).tobytes()).decode()
    return {"seed": split.seed, "fraction": split.fraction, "n": n, "bits": bits}


def _unpack(document: Mapping[str, Any], n: int) -> TestSplit:
    bits = np.frombuffer(base64.b64decode(document["bits"]), dtype=np.uint8)
    mask = np.zeros(n, dtype=bool)
    mask[: document["n"]] = np.unpackbits(bits, count=int(document["n"])).astype(bool)
    return TestSplit(
        int(document["seed"]), float(document["fraction"]), np.flatnonzero(~mask), np.flatnonzero(mask)
    )
