"""A project as one process has it open: its pool, its events so far, and transactions on them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from workbench.arrays import Array
from workbench.pools.pool import Pool
from workbench.registry import from_file
from workbench.sessions.rounds import Round
from workbench.store import Event, EventFold, ProjectRecord, ProjectState, Store
from workbench.store.log import News, Recorder


@dataclass(frozen=True, eq=False)
class View:
    """A project as of one moment; what a reader holds, and nobody changes.

    Attributes:
        state: what the events add up to.
        epoch: how many times another log was found in the place of the one that was known.
        log: the events, oldest first; those after the state's are somebody's who is not done yet.
    """

    state: ProjectState
    epoch: int
    log: Sequence[Event]

    @property
    def events(self) -> list[Event]:
        """All events of the state, oldest first."""
        return list(self.log[: self.state.n_events])

    @property
    def last(self) -> Event | None:
        """The last event of the state."""
        return self.log[self.state.n_events - 1] if self.state.n_events else None


class OpenProject:
    """Shared by the sessions of all annotators of a process; safe to use from several threads.

    Readers take the view that is published and no lock, so nobody who reads waits for somebody who writes;
    writers follow each other, and publish the next view after their commit.

    Args:
        store: the database.
        record: the project as stored.
        pool: with its test split where there is one.
    """

    def __init__(self, store: Store, record: ProjectRecord, pool: Pool) -> None:
        self.store = store
        self.record = record
        self.pool = pool
        # of those who write, or fold what another program wrote
        self.lock = threading.RLock()
        self._fold = EventFold()
        self._epoch = 0
        self._writer = 0
        self._view: View | None = None
        self._rounds: tuple[int, tuple[Round, ...]] = (0, ())
        self._reading_rounds = threading.Lock()
        self._pinned = threading.local()
        state = self.state()
        if record.n_labelled is None:
            store.count_labelled(record.id, state.n_labelled)

    @property
    def id(self) -> str:
        """The project's id."""
        return self.record.id

    @property
    def epoch(self) -> int:
        """How many times another log was found in the place of the one that was known."""
        return self._epoch

    def settings(self, state: ProjectState | None = None) -> Mapping[str, Any]:
        """Classifier, options, policy, seed, evaluation_share; as changed since the project was made.

        What they name is not yet trusted.
        """
        state = self.state() if state is None else state
        where = f"Project {self.record.name!r}"
        now = {**self.record.settings, **state.model}
        # guesses name no code, and may hold a prediction of every item
        return {k: v if k == "guesses" else from_file(v, where) for k, v in now.items()}

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Within the block this thread reads the events once, at first need; a transaction reads as ever."""
        outer = getattr(self._pinned, "on", False)
        if not outer:
            self._pinned.on, self._pinned.view = True, None
        try:
            yield
        finally:
            self._pinned.on = outer
            if not outer:
                self._pinned.view = None

    def view(self) -> View:
        """The project now, also what other processes recorded; within `snapshot`, as it was at first need.

        Whoever is recording sees what they have added.
        """
        if self._writer == threading.get_ident():
            return View(self._fold.state(), self._epoch, self._fold.events)
        if not getattr(self._pinned, "on", False):
            return self._newest()
        if self._pinned.view is None:
            self._pinned.view = self._newest()
        found: View = self._pinned.view
        return found

    def state(self) -> ProjectState:
        """The fold of all events so far, also those of other processes."""
        return self.view().state

    def events(self) -> list[Event]:
        """All events so far, oldest first."""
        return self.view().events

    def rounds(self) -> list[Round]:
        """The finished fits, oldest first, without their posteriors."""
        view = self.view()
        n = len(view.state.rounds)
        epoch, known = self._rounds
        if epoch != view.epoch or len(known) < n:
            with self._reading_rounds:
                epoch, known = self._rounds
                if epoch != view.epoch:
                    known = ()
                if len(known) < n:
                    last = known[-1].number if known else -1
                    read = self.store.rounds(self.id, last)
                    known += tuple(Round.from_json(r.record) for r in read)
                    self._rounds = (view.epoch, known)
        return list(known[:n])

    @contextmanager
    def recording(self) -> Iterator[Transaction]:
        """A transaction that alone may add events to the project; committed when the block ends."""
        with self.lock:
            transaction = None
            outer, self._writer = self._writer, threading.get_ident()
            try:
                with self.store.recording(self.id, self._known) as recorder:
                    self._learn(recorder.missed)
                    transaction = Transaction(recorder, self._fold)
                    yield transaction
                    if recorder.added:
                        recorder.n_labelled = self._fold.state().n_labelled
            except BaseException:
                if transaction is not None and transaction.written:
                    # What was folded was not committed: begin again from what is stored.
                    self._fold = EventFold()
                raise
            finally:
                self._writer = outer
            # what this thread has recorded it sees, also within `snapshot`
            self._pinned.view = self._publish()

    @property
    def _known(self) -> Event | None:
        return self._fold.events[-1] if self._fold.events else None

    def _learn(self, news: News) -> None:
        before = self._view
        if news.afresh and before is not None and before.last is not None and not self._goes_on(before, news):
            # Another database was put in the place of this one: nothing that was known counts.
            self.record = self.store.project(self.id)
            self._epoch += 1
        if news.afresh and self._fold.events:
            self._fold = EventFold()
        self._fold.extend(news.events)

    @staticmethod
    def _goes_on(before: View, news: News) -> bool:
        """Whether a whole log that was read begins with what was known, as after a failed transaction."""
        n = before.state.n_events
        return len(news.events) >= n and news.events[n - 1] == before.last

    def _publish(self) -> View:
        self._view = View(self._fold.state(), self._epoch, self._fold.events)
        return self._view

    def _newest(self) -> View:
        view = self._view
        if view is not None:
            news = self.store.news(self.id, view.last)
            if not news.events and not (news.afresh and view.last is not None):
                return view
        with self.lock:
            return self._read()

    def _read(self) -> View:
        first = not self._fold.events
        collecting = gc.isenabled()
        if first and collecting:
            gc.disable()  # nothing of what is read is garbage, and looking for it takes a third of the time
        try:
            self._learn(self.store.news(self.id, self._known))
            return self._publish()
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

    def event(self, number: int) -> Event:
        """The event of this number."""
        return self._fold.events[number - 1]

    def add(self, event: Event) -> Event:
        """Record an event; returns it with id and time."""
        self.written = True
        recorded = self._recorder.add(event)
        self._fold.extend([recorded])
        return recorded

    def add_round(self, record: Mapping[str, Any], state: Mapping[str, Array]) -> int:
        """Store a finished round; returns the number it gets."""
        return self._recorder.add_round(record, state)
