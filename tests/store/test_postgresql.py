"""The same store on a PostgreSQL server: WORKBENCH_TEST_POSTGRESQL=postgresql://user@host/database."""

import os
import threading
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import pytest

from tests.sessions.fakes import FAKE
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
    store.delete_run(run)
    store.delete_project(session.id)


def test_writers_of_one_project_take_turns(store: Store) -> None:
    session = Session.create("iris", classifier=FAKE, policy="margin", store=store)
    start = len(session.events)

    def work() -> None:
        for i in range(10):
            with store.recording(session.id) as recorder:
                recorder.add(Event.note(i, str(len(recorder.seen))))

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = [e for e in session.events if e.kind == "note"]
    assert [int(e.payload["text"]) for e in told] == list(range(start, start + 50))
    store.delete_project(session.id)
