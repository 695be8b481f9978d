"""A project as one process has it open: its pool, its events so far, and transactions on them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from workbench.arrays import Array
from workbench.pools.pool import Pool
from workbench.registry import from_file
from workbench.sessions.rounds import Round
from workbench.store import Event, EventFold, ProjectRecord, ProjectState, Store
from workbench.store.log import News, Recorder


class OpenProject:
    """Shared by the sessions of all annotators of a process; safe to use from several threads.

    Args:
        store: the database.
        record: the project as stored.
        pool: with its test split where there is one.

    Attributes:
        epoch: how many times another log was found in the place of the one that was known.
    """

    def __init__(self, store: Store, record: ProjectRecord, pool: Pool) -> None:
        self.store = store
        self.record = record
        self.pool = pool
        self.epoch = 0
        self.lock = threading.RLock()
        self._fold = EventFold()
        self._rounds: list[Round] = []
        self._rounds_read = 0
        self._pinned = threading.local()
        state = self.state()
        if record.n_labelled is None:
            store.count_labelled(record.id, state.n_labelled)

    @property
    def id(self) -> str:
        """The project's id."""
        return self.record.id

    def settings(self, state: ProjectState | None = None) -> Mapping[str, Any]:
        """Classifier, options, policy, seed, evaluation_share; as changed since the project was made.

        What they name is not yet trusted.
        """
        state = self.state() if state is None else state
        where = f"Project {self.record.name!r}"
        return {k: from_file(v, where) for k, v in {**self.record.settings, **state.model}.items()}

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Within the block this thread reads the events once, at first need; a transaction reads as ever."""
        outer = getattr(self._pinned, "on", False)
        if not outer:
            self._pinned.on, self._pinned.read = True, False
        try:
            yield
        finally:
            self._pinned.on = outer

    def state(self) -> ProjectState:
        """The fold of all events so far, also those of other processes."""
        with self.lock:
            self._sync()
            return self._fold.state()

    def events(self) -> list[Event]:
        """All events so far, oldest first."""
        with self.lock:
            self._sync()
            return list(self._fold.events)

    def rounds(self) -> list[Round]:
        """The finished fits, oldest first, without their posteriors."""
        with self.lock:
            self._sync()
            finished = len(self._fold.state().rounds)
            if finished != self._rounds_read:
                last = self._rounds[-1].number if self._rounds else -1
                self._rounds += [Round.from_json(r.record) for r in self.store.rounds(self.id, last)]
                self._rounds_read = finished
            return list(self._rounds)

    @contextmanager
    def recording(self) -> Iterator[Transaction]:
        """A transaction that alone may add events to the project; committed when the block ends."""
        with self.lock:
            transaction = None
            try:
                with self.store.recording(self.id, self._known) as recorder:
                    self._learn(recorder.missed)
                    self._pinned.read = True
                    transaction = Transaction(recorder, self._fold)
                    yield transaction
                    if recorder.added:
                        recorder.n_labelled = self._fold.state().n_labelled
            except BaseException:
                if transaction is not None and transaction.written:
                    # What was folded was not committed: begin again from what is stored.
                    self._fold = EventFold()
                raise

    @property
    def _known(self) -> Event | None:
        return self._fold.events[-1] if self._fold.events else None

    def _learn(self, news: News) -> None:
        if news.afresh and self._fold.events:
            # Another database was put in the place of this one: nothing that was known counts.
            self._fold, self._rounds, self._rounds_read = EventFold(), [], 0
            self.record = self.store.project(self.id)
            self.epoch += 1
        self._fold.extend(news.events)

    def _sync(self) -> None:
        first = not self._fold.events
        if getattr(self._pinned, "on", False) and self._pinned.read and not first:
            return
        self._pinned.read = True
        collecting = gc.isenabled()
        if first and collecting:
            gc.disable()  # nothing of what is read is garbage, and looking for it takes a third of the time
        try:
            self._learn(self.store.news(self.id, self._known))
            if first:
                self._fold.state()
        finally:
            if first and collecting:
                gc.enable()


class Transaction:
    """Adds events to a project; `state` shows what they change at once.

    Attributes:
        written: whether anything was added.
    """

    def __init__(self, recorder: Recorder, fold: EventFold) -> None:
        self._recorder = recorder
        self._fold = fold
        self.written = False

    @property
    def state(self) -> ProjectState:
        """The project's state after all that was added so far."""
        return self._fold.state()

    def add(self, event: Event) -> Event:
        """Record an event; returns it with id and time."""
        self.written = True
        recorded = self._recorder.add(event)
        self._fold.extend([recorded])
        return recorded

    def add_round(self, record: Mapping[str, Any], state: Mapping[str, Array]) -> int:
        """Store a finished round; returns the number it gets."""
        return self._recorder.add_round(record, state)
