"""A project as one process has it open: its log, and transactions on it, which several threads share."""

from __future__ import annotations

import gc
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from workbench.arrays import Array
from workbench.errors import InputError, OutgrownError
from workbench.pools.neighbours.twins import Twins
from workbench.pools.pool import Pool
from workbench.registry import from_file
from workbench.sessions.rounds import Round
from workbench.store import Event, EventFold, ProjectRecord, ProjectState, Store
from workbench.store.database_errors import was_cut_off
from workbench.store.log import News, Recorder

if TYPE_CHECKING:
    from workbench.sessions.published import Published


@dataclass(frozen=True, eq=False)
class View:
    """A question as of one moment; what a reader holds, and nobody changes.

    Attributes:
        state: what its events add up to.
        log: its events, oldest first; those after the state's are somebody's who is not done yet.
    """

    state: ProjectState
    log: Sequence[Event]

    @property
    def events(self) -> list[Event]:
        """All events of the state, oldest first."""
        return list(self.log[: self.state.n_events])


@dataclass(frozen=True, eq=False)
class Moment:
    """A project as of one moment.

    Attributes:
        views: of its questions, by their ids.
        last: the last event of any.
    """

    views: Mapping[str, View]
    last: Event | None


def numbered(log: Sequence[Event], number: int) -> Event | None:
    """The event of a number among some that are ordered by it; None where it is not among them."""
    place = bisect_left(log, number, key=attrgetter("id"))
    return log[place] if place < len(log) and log[place].id == number else None


class OpenProject:
    """Shared by the sessions of all annotators and questions of a process; safe to use from several threads.

    Readers take the moment that is published and no lock, so nobody who reads waits for somebody who writes.
    Writers follow each other; those who come at the same moment share a transaction, whose last one commits
    it and publishes the next moment. Whoever is alone commits at once.

    Args:
        store: the database.
        record: of its first question.
        n_items: of its pool.

    Attributes:
        outgrown: whether something is stored that was made on a longer pool than this one. From then on
            whoever reads gets an `OutgrownError`; the project has to be opened again.
        epoch: how many times another log was found in the place of the one that was known.
        fits: question -> its newest fit that this process has taken up; None where what it was is gone.
    """

    def __init__(self, store: Store, record: ProjectRecord, n_items: int) -> None:
        self.store = store
        self.id = record.family
        self.outgrown = False
        self.epoch = 0
        self.fits: dict[str, Published | None] = {}
        # of those who write, or fold what another program wrote
        self.lock = threading.RLock()
        self._name, self._n_items = record.name, n_items
        self._folds: dict[str, EventFold] = {}
        self._last: Event | None = None
        self._writer = 0
        self._group: Group | None = None
        self._ending: Group | None = None
        self._coming = 0
        self._counting = threading.Lock()
        self._alone = 0
        self._moment: Moment | None = None
        self._pinned = threading.local()
        self._newest()

    def check_length(self, n_items: int) -> None:
        """Refuse what another process has made on a longer pool.

        Args:
            n_items: that the pool has there.

        Raises:
            OutgrownError: the pool here has fewer.
        """
        if n_items > self._n_items:
            self.outgrown = True
        if self.outgrown:
            raise OutgrownError(
                f"The pool of project {self._name!r} has grown since it was opened here, where it has "
                f"{self._n_items:,} items. Nothing is lost: open the project again."
            )

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Within the block this thread sees one moment; a transaction reads the events as ever.

        It sees the fits that are there when it begins, and the events as they are at first need; what these
        fits were made from is among them.
        """
        outer = getattr(self._pinned, "on", False)
        if not outer:
            self._pinned.on, self._pinned.moment, self._pinned.fits = True, None, self.fits.copy()
        try:
            yield
        finally:
            self._pinned.on = outer
            if not outer:
                self._pinned.moment = self._pinned.fits = None

    def fit(self, question: str) -> Published | None:
        """The newest fit of a question; within `snapshot`, as it was when that began."""
        pinned = getattr(self._pinned, "on", False)
        fits: Mapping[str, Published | None] = self._pinned.fits if pinned else self.fits
        return fits.get(question)

    def take_up(self, question: str, fit: Published | None) -> None:
        """Have everybody see a fit of a question from now on, this thread also within `snapshot`."""
        self.fits[question] = fit
        if getattr(self._pinned, "on", False):
            self._pinned.fits[question] = fit

    def fold(self, question: str, begun: int = 0) -> EventFold:
        """The fold of a question's events; for whoever writes.

        Args:
            question: its id.
            begun: its first event; 0 of the first question.
        """
        if question not in self._folds:
            of_items = [e for e in self.fold(self.id).events if e.question is None] if begun else ()
            self._folds[question] = EventFold(of_items, begun)
        return self._folds[question]

    def view(self, question: str, *, known: bool = False) -> View:
        """A question now, also what other processes recorded; within `snapshot`, as it was at first need.

        Whoever is recording sees what they have added.

        Args:
            question: its id.
            known: as this process read or stored it last; the database is not asked.
        """
        if self.is_writing:
            fold = self.fold(question)
            return View(fold.state(), fold.events)
        moment = self._moment if known and self._moment is not None else self._now()
        if question not in moment.views:  # it was added since
            moment = self._newest()
        return moment.views.get(question) or View(EventFold().state(), ())

    def recorded(self, operation: str) -> dict[str, Event]:
        """Events that record an operation of a client, by the questions they count in; for whoever writes."""
        numbers = {id_: fold.state().operations.get(operation, 0) for id_, fold in self._folds.items()}
        events = {id_: numbered(self._folds[id_].events, number) for id_, number in numbers.items()}
        return {id_: event for id_, event in events.items() if event is not None}

    def states(self) -> dict[str, ProjectState]:
        """States of all questions in the log, whether or not they are listed or asked; as `view`."""
        if self.is_writing:
            return {id_: fold.state() for id_, fold in self._folds.items()}
        return {id_: view.state for id_, view in self._now().views.items()}

    def _now(self) -> Moment:
        pinned = self._pinned
        if not getattr(pinned, "on", False):
            return self._newest()
        moment: Moment = pinned.moment or self._newest()
        pinned.moment = moment
        return moment

    @contextmanager
    def recording(self, question: str) -> Iterator[Transaction]:
        """A block that alone may add events to the project; on disk when it ends.

        Nothing of it is stored where it raises. Within `together` it is on disk when that ends.

        Args:
            question: that its events answer.
        """
        with self.together() as group, self.whole():
            yield Transaction(group.recorder, self, question)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """A block within `together` of which nothing counts where it raises, whatever ended within it."""
        assert self._group is not None and self.is_writing
        recorder, last, before = self._group.recorder, self._last, self._group.recorder.mark
        try:
            yield
        except BaseException:
            if not recorder.failed and recorder.mark != before:
                recorder.back_to(before)
                known = 0 if last is None else last.id
                for id_, fold in self._folds.items():
                    if fold.last_event > known:
                        events = (event for event in fold.events if event.id <= known)
                        self._folds[id_] = EventFold(events, fold.begun)
                self._last = last
            raise

    @contextmanager
    def together(self) -> Iterator[Group]:
        """A block whose transactions are one, on disk when it ends; those that ended count if it raises."""
        if self._group is not None and self.is_writing:
            yield self._group
            return
        group = self._join()
        try:
            yield group
        except BaseException as error:
            self._leave(group, error if group.recorder.failed else None)
            if not group.recorder.failed:
                group.passed(self._settle)  # this thread has a turn to write until then
            if group.error is not None:  # what ended within the block was not stored
                raise group.error from error
            raise
        self._leave(group)
        group.wait(self._settle)
        if getattr(self._pinned, "on", False):  # what this thread has recorded it sees
            self._pinned.moment = self._moment

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
                group = Group(self.store, self.id, self._last)
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
        if error is None and recorder.failed:  # whoever caught it went on without what was folded
            error = RuntimeError("Something within the transaction failed: nothing of it is stored.")
        try:
            if error is None:
                added = {event.question for event in recorder.added if event.question is not None}
                recorder.n_labelled = {id_: self.fold(id_).state().n_labelled for id_ in added}
        except BaseException as failure:
            error = failure
        try:
            group.end(error)
            if group.error is None:
                self._alone = max(0, self._alone - 1)
                self._publish()
            elif recorder.added:
                # What was folded was not committed: begin again from what is stored.
                self._folds, self._last = {}, None
            if isinstance(group.error, TogetherError):
                self._alone = group.members
        finally:  # nobody waits for what is over, however it ended
            self._ending = None
            group.tell()

    def _settle(self) -> None:
        """Commit what is open: for whoever has, or takes, the lock and adds nothing."""
        with self.lock:
            if self._group is not None and not self._writer:
                self._end(self._group)

    def add(self, events: Sequence[Event]) -> None:
        """Fold events that were stored, or are being stored by this thread, in their order."""
        self.fold(self.id)
        try:
            for event in events:
                of, folds = event.question, self._folds.values()
                for fold in folds if of is None else (self.fold(of, event.id),):
                    fold.extend((event,))
                self._last = event
        except BaseException:  # interrupted half-way: begin again from what is stored
            self._folds, self._last = {}, None
            if self._group is not None:
                self._group.recorder.failed = True
            raise

    def _learn(self, news: News) -> None:
        last = None if self._moment is None else self._moment.last
        # a whole log that was read begins with what was known, as after a failed transaction
        if news.afresh and last is not None and numbered(news.events, last.id) != last:
            self.epoch += 1  # another database was put in the place of this one
        if news.afresh:
            self._folds, self._last = {}, None
        self.check_length(max((event.n_items for event in news.events), default=0))
        self.add(news.events)

    def _publish(self) -> Moment:
        views = {id_: View(fold.state(), fold.events) for id_, fold in self._folds.items()}
        self._moment = Moment(views, self._last)
        return self._moment

    def _newest(self) -> Moment:
        moment = self._moment
        if moment is not None:
            news = self.store.news(self.id, moment.last)
            if not news.events and not (news.afresh and moment.last is not None):
                return moment
            if not news.afresh and (new_moment := self._with(news.events[-1])) is not None:
                return new_moment
        with self.lock:
            self._settle()
            return self._read()

    def _with(self, event: Event) -> Moment | None:
        """The moment that holds an event which this process has stored just now; None where it has not."""
        ending = self._ending
        if ending is not None:
            ending.passed()
        moment = self._moment
        if moment is None or moment.last is None or moment.last.id < event.id:
            return None
        known = (numbered(view.log, event.id) for view in moment.views.values())
        return moment if event in known else None

    def _read(self) -> Moment:
        first = not self._folds
        collecting = gc.isenabled()
        if first and collecting:
            gc.disable()  # nothing of what is read is garbage, and looking for it takes a third of the time
        try:
            self._learn(self.store.news(self.id, self._last))
            return self._publish()
        finally:
            if first and collecting:
                gc.enable()


class OpenQuestion:
    """A question of a project as a process has it open: its pool and its part of the log.

    Args:
        project: with the log.
        record: of the question, as stored.
        pool: with its test split where there is one.
    """

    def __init__(self, project: OpenProject, record: ProjectRecord, pool: Pool) -> None:
        self.log = project
        self.store = project.store
        self.pool = pool
        self._record, self._recorded = record, project.epoch
        self._rounds: tuple[int, tuple[Round, ...]] = (0, ())
        self._reading_rounds = threading.Lock()

    @property
    def id(self) -> str:
        """The question's id; of the first one it is the project's."""
        return self._record.id

    @property
    def record(self) -> ProjectRecord:
        """The question as stored."""
        if self._recorded != self.log.epoch:
            self._record, self._recorded = self.store.project(self.id), self.log.epoch
        return self._record

    @cached_property
    def twins(self) -> Twins:
        """The pool's copies and near-copies, as they were found when the project was made."""
        return Twins(self.pool.groups)

    def settings(self, state: ProjectState | None = None) -> Mapping[str, Any]:
        """Classifier, options, policy, seed, evaluation_share; as changed since the project was made.

        What they name is not yet trusted.
        """
        state = self.state() if state is None else state
        where = f"Project {self.record.name!r}"
        settings = {**self.record.settings, **state.model}
        # what is said of the items names no code, and may hold a number for each of them
        of_items = ("guesses", "test", "twins")
        return {k: v if k in of_items else from_file(v, where) for k, v in settings.items()}

    @property
    def begun(self) -> int:
        """The question's first event; 0 of the project's first question."""
        return self.log.fold(self.id).begun or 0

    def view(self) -> View:
        """The question now; see `OpenProject.view`."""
        return self.log.view(self.id)

    def state(self) -> ProjectState:
        """The fold of all events so far, also those of other processes."""
        return self.view().state

    def known(self) -> ProjectState:
        """The state as this process read or stored it last; the database is not asked."""
        return self.log.view(self.id, known=True).state

    def events(self) -> list[Event]:
        """All events so far, oldest first."""
        return self.view().events

    def rounds(self) -> list[Round]:
        """The finished fits, oldest first, without their posteriors."""
        n = len(self.state().rounds)
        epoch, rounds = self._rounds
        if epoch != self.log.epoch or len(rounds) < n:
            with self._reading_rounds:
                epoch, rounds = self._rounds
                if epoch != self.log.epoch:
                    rounds = ()
                if len(rounds) < n:
                    last = rounds[-1].number if rounds else -1
                    rows = self.store.rounds.all(self.id, last)
                    rounds += tuple(Round.from_json(r.record) for r in rows)
                    self._rounds = (self.log.epoch, rounds)
        return list(rounds[:n])

    def recording(self) -> AbstractContextManager[Transaction]:
        """A transaction for events of this question; see `OpenProject.recording`."""
        return self.log.recording(self.id)


class Transaction:
    """Adds events of a question to its project; `state` shows what they change at once."""

    def __init__(self, recorder: Recorder, project: OpenProject, question: str) -> None:
        self._recorder = recorder
        self._project = project
        self._question = question

    @property
    def state(self) -> ProjectState:
        """The question's state after all that was added so far."""
        return self._project.fold(self._question).state()

    def event(self, number: int) -> Event:
        """The question's event of this number.

        Raises:
            InputError: it has none.
        """
        event = numbered(self._project.fold(self._question).events, number)
        if event is None:
            raise InputError(f"There is no event {number}.")
        return event

    def add(self, event: Event) -> Event:
        """Record an event of the question, or of none; returns it with id and time."""
        question = None if event.question is None else self._question
        recorded = self._recorder.add(replace(event, question=question))
        self._project.add([recorded])
        return recorded

    def add_round(self, record: Mapping[str, Any], state: Mapping[str, Array]) -> int:
        """Store a finished round; returns the number it gets."""
        return self._recorder.add_round(record, state, self._question)


MOST_TOGETHER = 64
"""Blocks that share a transaction."""
SECONDS = 0.05
"""Seconds that a transaction is kept open for others who come."""


class TogetherError(Exception):
    """A transaction of several was refused for what one of them had added: each does it again, alone."""

    connection_invalidated = True  # as what a server cut off, it is done again (`store.retry`)


class Group:
    """One database transaction, and those who wait for its commit.

    Args:
        store: the database.
        project_id: of the project.
        known: the last event that the caller knows.

    Attributes:
        recorder: what its blocks add to, one after another.
        members: how many blocks there were.
        error: why nothing of it is stored; None while it is open, and where all of it is.
    """

    def __init__(self, store: Store, project_id: str, known: Event | None) -> None:
        self._transaction = store.recording(project_id, known)
        self.recorder = self._transaction.__enter__()
        self.members = 0
        self.error: BaseException | None = None
        self._begun = time.monotonic()
        self._ended = threading.Event()

    @property
    def full(self) -> bool:
        """True if nobody else may come in."""
        return self.members >= MOST_TOGETHER or time.monotonic() - self._begun > SECONDS

    def end(self, error: BaseException | None = None) -> None:
        """Commit; or, where a block broke the transaction, let all of it go. Does not raise."""
        try:
            if error is None:
                self._transaction.__exit__(None, None, None)
            else:
                self._transaction.__exit__(type(error), error, error.__traceback__)
                self.error = error
        except BaseException as failure:
            # whose fault it was nobody knows; what a cut connection or a full disk refused is all of it
            shared = self.members > 1 and type(failure).__module__.startswith("sqlalchemy")
            cut_off = isinstance(failure, Exception) and was_cut_off(failure)
            self.error = TogetherError(str(failure)) if shared and not cut_off else failure

    def tell(self) -> None:
        """Wake those who wait."""
        self._ended.set()

    def passed(self, settle: Callable[[], None] | None = None) -> None:
        """Wait until it has ended, however.

        Args:
            settle: ends it, if it is still open; called where whoever was to do so does not come.
        """
        while not self._ended.wait(1.0):
            if settle is not None:
                settle()

    def wait(self, settle: Callable[[], None]) -> None:
        """Wait until it is on disk.

        Args:
            settle: as `passed` takes it.

        Raises:
            BaseException: nothing of it was stored; why.
        """
        self.passed(settle)
        if self.error is not None:
            raise self.error
