"""People who answer at the same moment share a transaction: who waits, who commits, what a failure takes."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import IntegrityError

from workbench.errors import StorageError
from workbench.sessions import Session
from workbench.sessions.operations import Operation
from workbench.sessions.project import Group
from workbench.store import Event, Store
from workbench.store.database_errors import retried
from workbench.store.log import Recorder

Start = Callable[..., Session]
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def _however_busy_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.sessions.project.SECONDS", 600.0)


class Door:
    """A lock that tells how many have come to it."""

    def __init__(self) -> None:
        self._lock, self.came = threading.RLock(), threading.Semaphore(0)

    def acquire(self) -> bool:
        self.came.release()
        return self._lock.acquire()

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


@contextmanager
def commits(store: Store) -> Iterator[list[int]]:
    """Writing transactions that were committed."""
    found: list[int] = []

    def count(connection: Any) -> None:
        if connection.get_execution_options().get("workbench_write"):
            found.append(1)

    event.listen(store._engine, "commit", count)
    try:
        yield found
    finally:
        event.remove(store._engine, "commit", count)


def at_once(session: Session, first: Callable[[], Any], others: list[Callable[[], Any]]) -> list[Any]:
    """Result or exception of each call, where all others come while the first is in its block."""
    project, door = session._project.log, Door()
    project.lock = door  # type: ignore[assignment]
    inside, go = threading.Event(), threading.Event()
    found: dict[int, Any] = {}

    def begin() -> Any:
        with project.together():
            inside.set()
            assert go.wait(600)
            return first()

    def do(place: int, work: Callable[[], Any]) -> None:
        try:
            found[place] = work()
        except Exception as error:
            found[place] = error

    threads = [threading.Thread(target=do, args=(i, w)) for i, w in enumerate([begin, *others])]
    threads[0].start()
    assert inside.wait(600)
    for thread in threads[1:]:
        thread.start()
    for _ in threads:
        assert door.came.acquire(timeout=600)
    go.set()
    for thread in threads:
        thread.join(600)
        assert not thread.is_alive()
    return [found[i] for i in range(len(threads))]


def label(session: Session, item: int) -> Callable[[], Any]:
    return lambda: session.items.label(item, session.classes[0])


def test_those_who_come_at_once_share_a_commit(start: Start, store: Store) -> None:
    session = start()
    items = session.pool.trainable[:6].tolist()
    people = [session.as_annotator(f"person {i}") for i in range(6)]
    with commits(store) as counted:
        found = at_once(
            session,
            label(people[0], items[0]),
            [label(p, i) for p, i in zip(people[1:], items[1:], strict=True)],
        )
    assert len(counted) == 1 and [e.item for e in found] == items
    there = Session.open(session.id, store=store)
    assert set(there.state.labels) == set(items) and there.state == session.state
    assert [e.id for e in there.log.events] == list(range(1, len(there.log.events) + 1))


def test_whoever_is_alone_commits_at_once(start: Start, store: Store) -> None:
    session = start()
    with commits(store) as counted:
        for item in session.pool.trainable[:3].tolist():
            session.items.label(item, session.classes[0])
            assert session._project.log._group is None
    assert len(counted) == 3


def test_nobody_is_told_before_the_commit(
    start: Start, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also whose answer was there already: what it is a repetition of may yet not be stored."""
    session = start()
    item, flush = int(session.pool.trainable[0]), Recorder.flush
    session.ask()
    note = Operation("one", "note", item=item, text="x")
    told: list[int] = []

    def tell() -> Any:
        found = session.apply([note])
        told.append(1)
        return found

    def flushed(self: Recorder) -> None:
        assert not told
        flush(self)

    monkeypatch.setattr(Recorder, "flush", flushed)
    found = at_once(session, label(session, item), [tell, tell])
    assert [a.status for f in found[1:] for a in f] == ["saved", "saved"] and len(told) == 2
    assert sum(e.operation == "one" for e in store.events(session.id)) == 1


def test_a_block_that_fails_takes_its_own_events_and_no_others(start: Start, store: Store) -> None:
    session = start()
    one, two, three = session.pool.trainable[:3].tolist()

    def fail() -> None:
        with session._project.recording() as transaction:
            transaction.add(Event.label(session.state.keys[0], two))
            raise RuntimeError("no")

    with commits(store) as counted:
        found = at_once(session, label(session, one), [fail, label(session, three)])
    assert len(counted) == 1 and isinstance(found[1], RuntimeError)
    assert set(session.state.labels) == {one, three}
    assert Session.open(session.id, store=store).state == session.state
    session.items.label(two, session.classes[0])
    assert [e.id for e in store.events(session.id)] == list(range(1, session.state.n_events + 1))


def test_a_commit_that_fails_is_told_to_all_and_nothing_is_stored(
    start: Start, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = start()
    before, items = store.events(session.id), session.pool.trainable[:3].tolist()

    def full(self: Recorder) -> None:
        raise StorageError("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "flush", full)
        found = at_once(session, label(session, items[0]), [label(session, i) for i in items[1:]])
    assert all(isinstance(one, StorageError) for one in found)
    assert store.events(session.id) == before and not session.state.labels
    session.items.label(items[0], session.classes[0])
    assert set(Session.open(session.id, store=store).state.labels) == {items[0]}


def test_what_the_database_refuses_of_one_is_stored_of_the_others(start: Start, store: Store) -> None:
    session = start()
    first, second = session.ask(2)
    session.tell(first.id, session.classes[0])

    @retried
    def poison() -> None:
        with session._project.recording() as transaction:  # a second answer to one question
            transaction.add(Event.label(session.state.keys[0], first.item, ask=first.id))

    other = session.as_annotator("bob")
    item = int(session.pool.trainable[-1])
    found = at_once(session, lambda: None, [poison, label(other, item)])
    assert isinstance(found[1], IntegrityError) and found[2].item == item
    assert item in Session.open(session.id, store=store).state.labels
    assert session.tell(second.id, session.classes[0])
    assert Session.open(session.id, store=store).state == session.state


def test_what_is_done_together_is_one_commit_and_stays_where_the_rest_fails(
    start: Start, store: Store
) -> None:
    session = start()
    ask, *_ = session.ask(2)
    operation = Operation("a", "label", ask=ask.id, label=session.classes[0])
    with commits(store) as counted:
        acks, asks = session.log.together(lambda: (session.apply([operation]), session.ask(2)))
    assert len(counted) == 1 and acks[0].status == "saved" and ask.id not in [a.id for a in asks]

    def stop() -> None:
        session.apply([Operation("b", "label", ask=asks[0].id, label=session.classes[0])])
        raise LookupError

    with pytest.raises(LookupError):
        session.log.together(stop)
    assert Session.open(session.id, store=store).state.labels.keys() == {ask.item, asks[0].item}
    assert session.state.labels.keys() == {ask.item, asks[0].item}


def test_a_reader_sees_no_event_that_is_not_stored(
    start: Start, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads between two blocks of one transaction, which then is committed for them."""
    session = start()
    project = session._project.log
    item, theirs = session.pool.trainable[:2].tolist()
    # somebody else's, of which the transaction knows and no view yet
    Session.open(session.id, store=store, annotator="bob").items.label(theirs, session.classes[0])
    left, wait = threading.Event(), Group.wait

    def waiting(self: Group, settle: Callable[[], None]) -> None:
        left.set()
        wait(self, settle)

    def write() -> None:
        with project.recording(session.id) as transaction:
            transaction.add(Event.label(transaction.state.keys[0], item))

    monkeypatch.setattr(Group, "wait", waiting)
    project._coming += 1  # somebody is on the way, so the transaction stays open
    writer = threading.Thread(target=write)
    writer.start()
    assert left.wait(600) and project._group is not None
    assert set(session.state.labels) == {item, theirs} and project._group is None
    assert {e.item for e in store.events(session.id)} >= {item, theirs}
    writer.join(600)
    assert not writer.is_alive()
