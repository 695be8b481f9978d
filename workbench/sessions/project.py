"""A project as one process has it open: its pool, its events so far, and transactions on them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workbench.arrays import Array
from workbench.errors import OutgrownError, StorageError
from workbench.pools.neighbours.twins import Twins, twins_from
from workbench.pools.pool import Pool
from workbench.registry import from_file
from workbench.sessions.groups import Group, Part, TogetherError
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

    Readers take the view that is published and no lock, so nobody who reads waits for somebody who writes.
    Writers follow each other; those who come at the same moment share a transaction, whose last one commits
    it and publishes the next view. Whoever is alone commits at once.

    Args:
        store: the database.
        record: the project as stored.
        pool: with its test split where there is one.
        twins: of the pool; those of the record's settings unless given.

    Attributes:
        outgrown: whether something is stored that was made on a longer pool than this one. From then on
            whoever reads gets an `OutgrownError`; the project has to be opened again.
    """

    def __init__(self, store: Store, record: ProjectRecord, pool: Pool, twins: Twins | None = None) -> None:
        self._twins = twins
        self.store = store
        self.record = record
        self.pool = pool
        self.outgrown = False
        # of those who write, or fold what another program wrote
        self.lock = threading.RLock()
        self._fold = EventFold()
        self._epoch = 0
        self._writer = 0
        self._group: Group | None = None
        self._part: Part | None = None
        self._ending: Group | None = None
        self._coming = 0
        self._counting = threading.Lock()
        self._alone = 0
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

    @cached_property
    def twins(self) -> Twins:
        """The pool's copies and near-copies, as they were found when the project was made."""
        if self._twins is not None:
            return self._twins
        return twins_from(self.record.settings.get("twins"), len(self.pool))

    @property
    def epoch(self) -> int:
        """Number of times another log was found in the place of the one that was known."""
        return self._epoch

    def check_length(self, n_items: int) -> None:
        """Refuse what another process has made on a longer pool.

        Args:
            n_items: that the pool has there.

        Raises:
            OutgrownError: the pool here has fewer.
        """
        if n_items > len(self.pool):
            self.outgrown = True
        if self.outgrown:
            raise OutgrownError(
                f"The pool of project {self.record.name!r} has grown since it was opened here, where it has "
                f"{len(self.pool):,} items. Nothing is lost: open the project again."
            )

    def settings(self, state: ProjectState | None = None) -> Mapping[str, Any]:
        """Classifier, options, policy, seed, evaluation_share; as changed since the project was made.

        What they name is not yet trusted.
        """
        state = self.state() if state is None else state
        where = f"Project {self.record.name!r}"
        now = {**self.record.settings, **state.model}
        # what is said of the items names no code, and may hold a number for each of them
        of_items = ("guesses", "test", "twins")
        return {k: v if k in of_items else from_file(v, where) for k, v in now.items()}

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

    def known(self) -> ProjectState:
        """The state as this process read or stored it last; the database is not asked."""
        view = self._view
        return self.state() if view is None else view.state

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
        """A block that alone may add events to the project; on disk when it ends.

        Nothing of it is stored where it raises. Within `together` it is on disk when that ends.
        """
        with self.together() as group, self.whole():
            yield Transaction(group.recorder, self)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """A block within `together` of which nothing counts where it raises, whatever ended within it."""
        inside = self._part or self._group
        assert inside is not None and self.is_writing
        recorder = inside.recorder
        before, n = recorder.mark, len(self._fold.events)
        try:
            yield
        except BaseException:
            if not recorder.failed and recorder.mark != before:
                recorder.back_to(before)
                if len(self._fold.events) != n:
                    self._fold = EventFold(self._fold.events[:n])
            raise

    @contextmanager
    def together(self) -> Iterator[Group | Part]:
        """A block whose transactions are one, on disk when it ends; those that ended count if it raises."""
        inside = self._part or self._group
        if inside is not None and self._writer == threading.get_ident():
            yield inside
            return
        group = self._join()
        try:
            yield group
        except BaseException as error:
            self._leave(group, error if group.recorder.failed else None)
            if group.recorder.failed and group.error is not None:
                raise group.error from error
            group.passed(self._settle)  # this thread has a turn to write until then
            raise
        self._leave(group)
        group.wait(self._settle)
        if getattr(self._pinned, "on", False):  # what this thread has recorded it sees
            self._pinned.view = self._view

    @property
    def is_writing(self) -> bool:
        """True if this thread is within `recording` or `together`."""
        return self._writer == threading.get_ident()

    def _join(self) -> Group:
        """Take the lock and come into the open transaction, or begin one."""
        with self._counting:
            self._coming += 1
        try:
            self.lock.acquire()
        finally:
            with self._counting:
                self._coming -= 1
        try:
            if self._group is None:
                group = Group(self.store, self.id, self._known)
                self._group = group
                self._learn(group.recorder.missed)
            self._group.members += 1
            self._writer = threading.get_ident()
            return self._group
        except BaseException as error:
            if self._group is not None:
                self._end(self._group, error)
            self.lock.release()
            raise

    def _begin(self, part: Part) -> None:
        """Have this thread add to a transaction over several projects; it has the lock."""
        self._part = part
        self._writer = threading.get_ident()
        self._learn(part.recorder.missed)

    def _leave(self, group: Group, error: BaseException | None = None) -> None:
        """Let the next one in; where nobody comes, or enough did, commit."""
        self._writer = 0
        try:
            if error is not None or self._alone or not self._coming or group.full:
                self._end(group, error)
        finally:
            self.lock.release()

    def _end(self, group: Group, error: BaseException | None = None) -> None:
        self._group, self._ending = None, group
        recorder = group.recorder
        try:
            if recorder.added and error is None:
                recorder.n_labelled = self._fold.state().n_labelled
        except BaseException as found:
            error = found
        group.end(error)
        if group.error is None:
            self._alone = max(0, self._alone - 1)
            self._publish()
        elif recorder.added:
            # What was folded was not committed: begin again from what is stored.
            self._fold = EventFold()
        if isinstance(group.error, TogetherError):
            self._alone = group.members
        self._ending = None
        group.tell()

    def _settle(self) -> None:
        """Commit what is open: for whoever has, or takes, the lock and adds nothing."""
        with self.lock:
            if self._group is not None and not self._writer:
                self._end(self._group)

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
        self.check_length(max((event.n_items for event in news.events), default=0))
        self._fold.extend(news.events)

    @staticmethod
    def _goes_on(before: View, news: News) -> bool:
        """True if a whole log that was read begins with what was known, as after a failed transaction."""
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
            if not news.afresh and (ours := self._with(news.events[-1])) is not None:
                return ours
        with self.lock:
            self._settle()
            return self._read()

    def _with(self, event: Event) -> View | None:
        """The view that holds an event which this process has stored a moment ago; None where it has not."""
        ending = self._ending
        if ending is not None:
            ending.passed()
        view = self._view
        if view is None or view.state.n_events < event.id or view.log[event.id - 1] != event:
            return None
        return view

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


@contextmanager
def all_together(projects: Sequence[OpenProject]) -> Iterator[None]:
    """A block whose transactions on several projects of one database are one, on disk when it ends.

    As in `OpenProject.together`, those that ended count also where it raises.

    Args:
        projects: those that the block may add to; others it must leave alone.

    Raises:
        StorageError: this thread writes already, and not to all of them.
    """
    ordered = sorted({one.id: one for one in projects}.values(), key=lambda one: one.id)
    writing = [one.is_writing for one in ordered]
    if all(writing):
        yield
        return
    if any(writing):  # it would wait for its own turn to end
        raise StorageError("A question was added meanwhile. Nothing was saved: do it again.")
    raised: BaseException | None = None
    with ExitStack() as locks:
        for one in ordered:  # in one order, so that two who come for the same do not wait for each other
            locks.enter_context(one.lock)
            one._settle()
        recorders: Mapping[str, Recorder] = {}
        try:
            known = {one.id: one._known for one in ordered}
            with ordered[0].store.recording_in(known) as recorders:
                try:
                    for one in ordered:
                        one._begin(Part(recorders[one.id]))
                    yield
                except BaseException as error:
                    if any(one.failed for one in recorders.values()):
                        raise
                    raised = error
                finally:
                    for one in ordered:
                        one._part, one._writer = None, 0
                for one in ordered:
                    if recorders[one.id].added:
                        recorders[one.id].n_labelled = one._fold.state().n_labelled
        except BaseException:
            for one in ordered:
                if one.id in recorders and recorders[one.id].added:
                    one._fold = EventFold()  # what was folded was not committed
            raise
        for one in ordered:
            one._pinned.view = one._publish()
    if raised is not None:
        raise raised


class Transaction:
    """Adds events to a project; `state` shows what they change at once."""

    def __init__(self, recorder: Recorder, project: OpenProject) -> None:
        self._recorder = recorder
        self._project = project

    @property
    def _fold(self) -> EventFold:
        return self._project._fold  # another one after a block within was given up

    @property
    def state(self) -> ProjectState:
        """The project's state after all that was added so far."""
        return self._fold.state()

    def event(self, number: int) -> Event:
        """The event of this number."""
        return self._fold.events[number - 1]

    def add(self, event: Event) -> Event:
        """Record an event; returns it with id and time."""
        recorded = self._recorder.add(event)
        self._fold.extend([recorded])
        return recorded

    def add_round(self, record: Mapping[str, Any], state: Mapping[str, Array]) -> int:
        """Store a finished round; returns the number it gets."""
        return self._recorder.add_round(record, state)
