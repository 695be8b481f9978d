"""The same store on a PostgreSQL server: WORKBENCH_TEST_POSTGRESQL=postgresql://user@host/database."""

import os
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.sessions.fakes import FAKE
from workbench.errors import InputError
from workbench.sessions import ArrayOracle, Event, Session
from workbench.store import Store

URL = os.environ.get("WORKBENCH_TEST_POSTGRESQL", "")
pytestmark = pytest.mark.skipif(
    not URL or find_spec("psycopg") is None,
    reason="needs psycopg and a server's URL in WORKBENCH_TEST_POSTGRESQL",
)


@pytest.fixture
def store() -> Iterator[Store]:
    opened = Store.open(URL)
    yield opened
    opened.close()


def test_a_project_and_a_run_live_there(store: Store) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from workbench.store.schema import metadata

    with store._read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    session = Session.create("iris", classifier=FAKE, policy="margin", annotator="ann", store=store)
    for _ in range(4):
        session.step(ArrayOracle(session.pool))
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
    run = store.start_run({"a": 1}, "print").id
    store.save_round(run, 0, {"n": 0}, {"x": np.ones(3)})
    assert store.run(run).n_rounds == 1 and store.round_state(run) is not None
    store.delete_project(session.id)


def test_writers_of_one_project_take_turns(store: Store) -> None:
    session = Session.create("iris", classifier=FAKE, policy="margin", store=store)
    start = len(session.events)

    def work() -> None:
        for i in range(10):
            with store.recording(session.id) as recorder:
                recorder.add(Event.note(i, str(len(recorder.missed))))

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = [e for e in session.events if e.kind == "note"]
    assert [int(e.payload["text"]) for e in told] == list(range(start, start + 50))
    store.delete_project(session.id)


def test_refits_at_once_get_numbers_of_their_own(store: Store) -> None:
    first = Session.create("iris", classifier=FAKE, policy="margin", annotator="ann", store=store)
    for _ in range(5):
        first.step(ArrayOracle(first.pool))
    start = len(first.rounds)
    sessions = [Session.open(first.id, annotator=f"a{i}", store=store) for i in range(4)]
    problems: list[BaseException] = []
    acknowledged: list[tuple[int, int]] = []

    def work(session: Session) -> None:
        try:
            for _ in range(4):
                done = session.step(ArrayOracle(session.pool))
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
    assert len(acknowledged) == 16 and all(again.model_at(n).n_labelled == k for n, k in acknowledged)
    store.delete_project(first.id)


def test_a_connection_that_the_server_ended_is_made_again(store: Store) -> None:
    session = Session.create("iris", classifier=FAKE, policy="margin", annotator="ann", store=store)
    (ask,) = session.ask()
    with store._read() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    from sqlalchemy import create_engine

    other = create_engine(store._engine.url)
    with other.connect() as connection:
        connection.exec_driver_sql(f"SELECT pg_terminate_backend({int(pid)})")
    other.dispose()
    assert session.tell(ask.id, "setosa") and session.state.labels == {ask.item: "setosa"}
    store.delete_project(session.id)


def test_copies_are_the_servers_own_business(store: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pg_dump"):
        store.backup(tmp_path / "copy")
    with pytest.raises(InputError, match="pg_restore"):
        store.restore(tmp_path / "copy")
