"""Database servers: writers at once, and connections that the server ends."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event as happening
from sqlalchemy.exc import OperationalError

from tests.databases import SERVER, address, database, new_project, written_meanwhile
from tests.oracles import step
from workbench.errors import InputError
from workbench.sessions import ArrayOracle, Event, Session
from workbench.store import Store, database_errors
from workbench.store import database as storing


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with database("postgresql", tmp_path) as opened:
        yield opened


def end(connection: Any) -> None:
    """Have the server end a connection, and wait until it has."""
    import psycopg

    driver = connection.connection.driver_connection
    with psycopg.connect(SERVER, autocommit=True) as other:
        # with a time-out it returns when the backend is gone
        assert other.execute("SELECT pg_terminate_backend(%s, 10000)", [driver.info.backend_pid]).fetchone()


@contextmanager
def ended_at(store: Store, statement: int) -> Iterator[list[str]]:
    """The server ends the connection before the n-th statement from here, once; the list says which."""
    seen: list[str] = []
    ended: list[str] = []

    def before(connection: Any, _cursor: Any, text: str, *_: Any) -> None:
        seen.append(text)
        if len(seen) == statement:
            ended.append(text)
            end(connection)

    happening.listen(store._engine, "before_cursor_execute", before)
    try:
        yield ended
    finally:
        happening.remove(store._engine, "before_cursor_execute", before)


def test_a_project_and_a_run_live_there(store: Store) -> None:
    session = new_project(store)
    for _ in range(4):
        step(session, ArrayOracle(session.pool))
    other = Session.open(session.id, annotator="ann", store=store)
    assert other.state == session.state and other.model is not None
    ask = session.ask()[0]
    answers: list[bool] = []
    tellers = [
        threading.Thread(target=lambda s=s: answers.append(s.tell(ask.id, "setosa")))
        for s in (session, other) * 4
    ]
    for teller in tellers:
        teller.start()
    for teller in tellers:
        teller.join()
    assert sorted(answers) == [False] * 7 + [True]
    run = store.runs.start({"a": 1}, "print").id
    store.rounds.save(run, 0, {"n": 0}, {"x": np.ones(3)})
    assert store.runs.get(run).n_rounds == 1 and store.rounds.state(run) is not None


def test_refits_at_once_get_numbers_of_their_own(store: Store) -> None:
    first = new_project(store)
    for _ in range(5):
        step(first, ArrayOracle(first.pool))
    start = len(first.rounds)
    sessions = [Session.open(first.id, annotator=f"a{i}", store=store) for i in range(4)]
    problems: list[BaseException] = []
    acknowledged: list[tuple[int, int]] = []

    def work(session: Session) -> None:
        try:
            for _ in range(4):
                done = step(session, ArrayOracle(session.pool))
                assert done is not None
                acknowledged.append((done.number, done.n_labelled))
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(s,)) for s in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    again = Session.open(first.id, store=store)
    assert [(r.number, r.n_labelled) for r in again.rounds[start:]] == sorted(acknowledged)
    assert len(acknowledged) == 16 and all(again.fits.model_at(n).n_labelled == k for n, k in acknowledged)


def test_connections_ended_while_nobody_uses_them_are_made_again(store: Store) -> None:
    session = new_project(store)
    (ask,) = session.ask()
    with store._read() as connection:
        pass
    with store._read() as connection:
        end(connection)
    assert session.tell(ask.id, "setosa") and session.state.labels == {ask.item: "setosa"}


def test_a_connection_that_lay_idle_is_tried_before_it_is_used(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "IDLE_SECONDS", 0.0)
    with store._read() as connection:
        end(connection)
    with store._engine.connect() as fresh:  # nothing of this is done again
        assert fresh.exec_driver_sql("SELECT 1").scalar_one() == 1


def test_an_answer_is_five_ways_to_the_server_and_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    session = new_project(store)
    (ask,) = session.ask()
    sent: list[str] = []
    happening.listen(store._engine, "before_cursor_execute", lambda *given: sent.append(given[2]))
    session.log.together(lambda: session.tell(ask.id, "setosa"))
    # and the beginning and the end of the transaction; which questions there are is looked up now and then
    assert [s.split()[0] for s in sent if "FROM questions" not in s] == ["SELECT", "INSERT", "UPDATE"]


def test_whatever_statement_it_is_ended_at_an_answer_is_stored_once(store: Store) -> None:
    session = new_project(store)
    answered, n = {}, 0
    while True:
        n += 1
        (ask,) = session.ask()
        with ended_at(store, n) as ended:
            assert session.tell(ask.id, "setosa")
        answered[ask.item] = "setosa"
        assert dict(session.state.labels) == answered
        if not ended:
            break
    # its lock, the answer, how far the project is
    assert n > 3
    again = Session.open(session.id, annotator="ann", store=store)
    assert [e.item for e in again.log.events if e.kind == "label"] == list(answered)


def test_whatever_statement_it_is_ended_at_a_fit_is_stored_once(store: Store) -> None:
    session = new_project(store)
    for _ in range(6):
        step(session, ArrayOracle(session.pool))
    n, fitted = 0, len(session.rounds)
    while True:
        n += 1
        with ended_at(store, n) as ended:
            done = session.refit()
        assert done is not None and done.number == fitted
        fitted += 1
        assert [r.number for r in session.rounds] == list(range(fitted))
        if not ended:
            break
    assert n > 6
    assert [r.number for r in store.rounds.all(session.id)] == list(range(fitted))
    assert sum(e.kind == "round" for e in session.log.events) == fitted


@pytest.mark.parametrize("stored", [True, False])
def test_ended_while_it_commits_the_server_is_asked_what_became_of_it(
    store: Store, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    session = new_project(store)
    (ask,) = session.ask()
    commit, ended = store._engine.dialect.do_commit, []

    def cut(driver: Any) -> None:
        if ended:
            commit(driver)
            return
        ended.append(True)
        if stored:
            commit(driver)
        import psycopg

        with psycopg.connect(SERVER, autocommit=True) as other:
            pid = driver.driver_connection.info.backend_pid
            other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
        driver.driver_connection.execute("SELECT 1")

    before = len(session.log.events)
    monkeypatch.setattr(store._engine.dialect, "do_commit", cut)
    assert session.tell(ask.id, "setosa")
    assert ended and len(session.log.events) == before + 1
    assert len(store.events(session.id)) == before + 1


def test_lists_and_copies_are_read_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))  # no uploads of somebody's
    session = new_project(store)
    run = store.runs.start({"a": 1}, "print").id
    for work in (
        lambda: [p.id for p in store.projects()] == [session.id],
        lambda: store.project(session.id).name == session.project.name,
        lambda: [r.id for r in store.runs.all()] == [run],
        lambda: len(store.events(session.id)) == len(session.log.events),
        lambda: store.backup(tmp_path / "copy.sqlite") == 0,
    ):
        with ended_at(store, 1) as ended:
            assert work()
        assert ended


def test_a_server_that_stays_away_is_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_errors, "PAUSES", (0.0, 0.0))
    dropped: list[Any] = []

    def before(connection: Any, *_: Any) -> None:
        dropped.append(connection)
        end(connection)

    happening.listen(store._engine, "before_cursor_execute", before)
    with pytest.raises(InputError, match=r"does not answer .*try again"):
        store.projects()
    assert len(dropped) == 3
    happening.remove(store._engine, "before_cursor_execute", before)
    assert store.projects() == []


def test_what_the_server_refuses_is_not_tried_again(store: Store) -> None:
    calls: list[int] = []

    @database_errors.retried
    def wrong() -> None:
        calls.append(1)
        with store._read() as connection:
            connection.exec_driver_sql("SELECT * FROM nowhere")

    with pytest.raises(Exception, match="nowhere") as caught:
        wrong()
    assert calls == [1] and not isinstance(caught.value, InputError | OperationalError)


def test_a_project_deleted_while_somebody_labels_leaves_nothing(store: Store) -> None:
    session = new_project(store)
    held, go = threading.Event(), threading.Event()

    def label() -> None:
        with store.recording(session.id) as recorder:
            held.set()
            assert go.wait(600)
            recorder.add(Event.note(1, "late"))

    def delete() -> None:
        store.delete_project(session.id)

    threads = [threading.Thread(target=label), threading.Thread(target=delete)]
    threads[0].start()
    assert held.wait(600)
    threads[1].start()
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    with store._engine.connect() as connection:
        while not connection.exec_driver_sql(waiting).scalar_one():
            connection.rollback()
    go.set()
    for thread in threads:
        thread.join()
    assert store.projects() == [] and store.events(session.id) == []


def test_a_copy_of_a_server_opens_as_a_file_and_goes_back(store: Store, tmp_path: Path) -> None:
    session = new_project(store)
    for _ in range(5):
        step(session, ArrayOracle(session.pool))
    with written_meanwhile(store, session.id):
        store.backup(tmp_path / "copy.sqlite")
    events = store.events(session.id)
    file = Store.open(tmp_path / "copy.sqlite")
    copied = file.events(session.id)
    notes = sum(e.kind == "note" for e in copied)
    assert notes % 2 == 0 and copied == events[: len(copied)]
    opened = Session.open(session.id, store=file)
    assert opened.model is not None and len(opened.rounds) == len(session.rounds)
    assert [(r.number, r.error) for r in opened.rounds] == [(r.number, r.error) for r in session.rounds]
    file.close()
    with pytest.raises(InputError, match="holds 1 project"):
        store.restore(tmp_path / "copy.sqlite")
    with address("postgresql", tmp_path) as url:
        other = Store.open(url)
        assert other.restore(tmp_path / "copy.sqlite") is None
        assert other.events(session.id) == copied
        # new events go on after those restored
        with other.recording(session.id) as recorder:
            assert recorder.add(Event.note(2, "later")).id > copied[-1].id
        other.close()


def test_a_server_restored_over_puts_aside_what_it_held(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    first = new_project(store)
    store.backup(tmp_path / "copy.sqlite")
    second = new_project(store, "wine")
    aside = store.restore(tmp_path / "copy.sqlite", replace=True)
    assert [p.id for p in store.projects()] == [first.id]
    assert aside is not None and aside.parent == tmp_path / "home"
    before = Store.open(aside)
    assert {p.id for p in before.projects()} == {first.id, second.id}
    before.close()
