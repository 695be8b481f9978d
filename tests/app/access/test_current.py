"""Sessions shared by the tabs of a process, and what a page run asks of the database."""

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from tests.sessions.fakes import FAKE, held_fits
from workbench.app import server
from workbench.app.access import current
from workbench.errors import StorageError
from workbench.sessions import Event, Session
from workbench.store import Store
from workbench.work import memory
from workbench.work.companion import Companion


@pytest.fixture
def made(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Session]:
    monkeypatch.setattr(current, "_OPEN", type(current._OPEN)())

    def make() -> Session:
        return Session.create("iris", classifier=FAKE, policy="margin", annotator="ann")

    return make


def test_a_server_that_comes_back_opens_the_project_where_people_are_at_work(
    made: Callable[[], Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    current.open_recent()
    assert not current._OPEN
    made()
    session = made()
    labelled(session, 1)
    with monkeypatch.context() as patch:
        patch.setattr(current, "RECENT", -1.0)
        current.open_recent()
        assert not current._OPEN
    current.open_recent()
    assert list(current._OPEN) == [session.id]
    assert current.opened(session.id)._questions._cold is not None


def test_what_opening_left_is_looked_through_before_anybody_waits(made: Callable[[], Session]) -> None:
    labelled(made(), 1)
    generations: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        generations.append(info["generation"])

    gc.callbacks.append(note)
    try:
        current.open_recent()
    finally:
        gc.callbacks.remove(note)
    assert generations[-1] == 2


def test_the_first_page_waits_for_the_project_where_people_are_at_work(
    made: Callable[[], Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_WARM", "1")
    monkeypatch.setattr(server.fit_process, "warm_up", lambda: None)
    monkeypatch.setattr(server, "start_log", lambda home: None)
    monkeypatch.setattr(server, "few_arenas", lambda: None)
    session = made()

    async def begin() -> None:
        await anext(server.lifespan.__wrapped__(None))
        assert list(current._OPEN) == [session.id]

    asyncio.run(begin())


@pytest.fixture
def counted(made: object) -> Iterator[list[str]]:
    """The statements sent to the database, as they are sent."""
    from sqlalchemy import event

    sent: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        sent.append(statement)

    engine = Store.open()._engine
    event.listen(engine, "before_cursor_execute", note)
    yield sent
    event.remove(engine, "before_cursor_execute", note)


def labelled(session: Session, n: int) -> None:
    for i in range(n):
        (ask,) = session.ask()
        session.tell(ask.id, session.classes[i % 3])


def test_a_session_that_is_fitted_is_not_let_go(
    made: Callable[[], Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "is_above", lambda octets: len(current._OPEN) > 2)
    first = made()
    labelled(first, 6)
    current.keep(first)
    fitting, go_on = held_fits(monkeypatch)
    job = current.keep_fitting(first)
    assert job is not None and fitting.wait(600)
    others = [made() for _ in range(4)]
    for other in others:
        current.keep(other)
    assert current.opened(first.id) is first
    assert others[0].id not in current._OPEN and others[-1].id in current._OPEN
    go_on.set()
    assert job.wait(600) and job.status == "done"
    assert first.model is not None and not first.stale
    current.keep(made())
    current.keep(made())
    assert first.id not in current._OPEN  # done, so it may go
    again = current.opened(first.id)
    assert again is not first and [r.number for r in again.rounds] == [0] and not again.stale


def test_as_many_projects_stay_open_as_memory_allows(
    made: Callable[[], Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "machine", lambda: 1 << 60)
    sessions = [made() for _ in range(20)]
    for one in sessions:
        current.keep(one)
    assert all(current.opened(one.id) is one for one in sessions)
    monkeypatch.setattr(memory, "machine", lambda: 4)  # a quarter of it is one byte
    last = made()
    current.keep(last)
    assert list(current._OPEN) == [last.id]


def test_an_answer_and_a_page_take_few_statements(made: Callable[[], Session], counted: list[str]) -> None:
    session = made()
    labelled(session, 8)
    session.refit()
    (ask,) = session.ask()
    labelled(session, 1)
    session.ask()
    counted.clear()
    # a click: the answer, then the page with everything that pages look at
    (ask,) = session.ask()
    assert session.tell(ask.id, Event.label("setosa"))
    with session.log.snapshot():
        session.ask()
        for _ in range(10):
            assert session.state.labels and session.classes and session.log.events and session.rounds
            assert session.model is not None and session.settings and session.queue.n_left
            assert session.stale and session.predictions.evaluation.n
            session.fits.held_out()
        assert session.ask()
    statements = [s for s in counted if not s.startswith(("BEGIN", "COMMIT", "ROLLBACK"))]
    assert len(statements) <= 12, "\n".join(statements)
    counted.clear()
    with session.log.snapshot():
        # nothing happened since: one look at the events
        assert session.state.labels and session.rounds and session.ask() and session.model is not None
    assert len([s for s in counted if s.startswith("SELECT")]) <= 2


def test_a_click_at_the_desk_is_two_transactions_and_nothing_beside(
    made: Callable[[], Session], counted: list[str]
) -> None:
    from workbench.app.desk.routes import sync

    session = made()
    labelled(session, 8)
    session.refit()
    current.keep(session)
    first = sync(session.id, "ann", {"want": 4}, "token")
    shown, *waiting = first["queue"]
    counted.clear()
    operation = {
        "op": "0" * 16,
        "kind": "label",
        "ask": shown["ask"],
        "item": shown["item"],
        "class": "setosa",
        "person": "ann",
        "project": session.id,
    }
    body = {
        "ops": [operation],
        "want": 1,
        "have": [c["ask"] for c in waiting],
        "model": first["numbers"]["model"],
    }
    reply = sync(session.id, "ann", body, "token")
    assert reply["acks"][0]["status"] == "saved" and len(reply["queue"]) == 1
    # the answer and the lease of the next card: lock, events since, insert, count of labels
    assert len(counted) <= 10, "\n".join(counted)


def test_a_snapshot_shows_what_its_own_thread_records(made: Callable[[], Session]) -> None:
    session = made()
    other = Session.open(session.id, annotator="bob")
    with session.log.snapshot():
        assert not session.state.labels
        item = int(session.pool.trainable[0])
        other.items.label(int(session.pool.trainable[1]), "setosa")
        assert not session.state.labels
        session.items.label(item, "setosa")
        assert item in session.state.labels
    assert session.state.n_labelled == 2


def test_a_list_of_projects_counts_nothing(made: Callable[[], Session], counted: list[str]) -> None:
    session = made()
    labelled(session, 5)
    session.undo()
    last = session.log.events[-1].time
    counted.clear()
    store = Store.open()
    (found,) = [p for p in store.projects() if p.id == session.id]
    assert (store.n_labelled(found), found.changed) == (4, last)
    assert len([s for s in counted if s.startswith("SELECT")]) == 1


def test_reading_one_run_looks_for_one_run(made: Callable[[], Session], counted: list[str]) -> None:
    store = Store.open()
    run = store.runs.start({"a": 1}, "print").id
    counted.clear()
    store.runs.get(run)
    store.runs.all()
    assert all("UPDATE" not in s for s in counted)
    assert "runs.id = " in next(s for s in counted if s.startswith("SELECT"))


@pytest.mark.slow  # TensorFlow is imported in two processes
def test_the_first_fit_of_the_default_model_leaves_no_engine_in_the_server(home: Path) -> None:
    """In a process of its own: this one has loaded the engine for other tests."""
    session = Session.create("iris", policy="margin", annotator="ann")
    labelled(session, 6)
    code = (
        "import sys; from workbench.app.serving import fit_process; "
        "from workbench.app.access import current; "
        "from workbench.app.desk.routes import sync; "
        f"one = current.opened({session.id!r}); job = current.keep_fitting(one); job.wait(); "
        "assert job.status == 'done', job.error or job.details; "
        "queue = sync(one.id, 'ann', {'want': 4, 'have': []}, '')['queue']; "
        "fit_process.page_shown(); fit_process.warm_up(); "
        "engines = [name for name in ('tensorflow', 'gpflow') if name in sys.modules]; "
        "print(one.model.n_labelled, len(queue[0]['guess']), fit_process.engine_state()[0], engines)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "WORKBENCH_FIT"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert done.stdout == "6 3 ready []\n", done.stderr


@pytest.mark.slow  # alone: what a server imports, in two processes of its own
def test_a_project_that_is_opened_again_brings_no_library_of_classifiers_into_the_server(home: Path) -> None:
    rows = [f"{i / 7:.3f},{(i * i) % 11},{'abc'[i % 3]}" for i in range(60)]
    table = home / "rows.csv"
    table.write_text("\n".join(["x,y,class", *rows]), encoding="utf-8")
    session = Session.create(
        str(table), pool_options={"target": "class"}, classifier="logistic-regression", annotator="ann"
    )
    labelled(session, 6)
    assert session.refit() is not None
    code = (
        "import sys; from workbench.app.serving import fit_process; fit_process.PATIENCE = 600.0; "
        "from workbench.app.access import current; "
        "from workbench.app.desk.routes import sync; "
        f"one = current.opened({session.id!r}); "
        "queue = sync(one.id, 'ann', {'want': 4, 'have': []}, '')['queue']; "
        "print(one.model.n_labelled, len(queue[0]['guess']), 'sklearn' in sys.modules)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "WORKBENCH_FIT"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert done.stdout == "6 3 False\n", done.stderr


def test_who_opens_a_project_waits_for_no_process_that_is_at_something_else(
    made: Callable[[], Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_FIT", "beside")
    # of its own: that of the server may have been started by whatever was tested before
    busy = Companion("busy")
    monkeypatch.setattr(current.fit_process, "fitter", lambda: busy)
    session = made()
    labelled(session, 6)
    assert session.refit() is not None
    with busy._turn:
        assert current.fit_process.ask_known(session.id) is None
        opened = current.opened(session.id)
    assert opened.model is not None and opened.model.n_labelled == 6
    assert busy.pid is None


def test_who_opens_a_project_without_a_fit_waits_for_nothing(made: Callable[[], Session]) -> None:
    answer = MagicMock()
    current.fit_process.take_up_known(made(), answer)
    answer.result.assert_not_called()


def test_a_table_that_grows_while_it_is_open_is_opened_again(made: object, home: Path) -> None:
    from workbench.app.desk.routes import sync

    table = home / "rows.csv"
    rows = [f"{i / 7:.3f},{(i * i) % 11},{i % 5}\n" for i in range(90)]
    table.write_text("x,y,z\n" + "".join(rows[:60]), encoding="utf-8")
    session = Session.create(
        str(table), classes=["a", "b"], classifier=FAKE, policy="margin", annotator="ann", early_share=0.0
    )
    current.keep(session)
    for i in range(4):
        session.items.label(i, "ab"[i % 2])
    with table.open("a", encoding="utf-8") as file:
        file.writelines(rows[60:])
    beside = Session.open(session.id, annotator="bob")  # as the process that fits opens it anew
    beside.items.label(80, "a")
    assert beside.refit() is not None
    with pytest.raises(StorageError):  # the browser keeps what it has and sends it again
        sync(session.id, "ann", {"want": 4}, "")
    assert sync(session.id, "ann", {"want": 4}, "")["queue"]
    again = current.opened(session.id)
    again.items.label(5, "b")
    job = current.keep_fitting(again)
    assert job is not None and job.wait(600) and job.status == "done"
    assert again is not session and len(again.pool) == 90
    assert again.ask(3) and again.model is not None and again.state.n_labelled == 6
