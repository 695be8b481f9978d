"""Files are made and read by a process beside the server, which streams them and stays small."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from tests.app.pages import open_page, texts
from tests.sessions.fakes import FAKE
from workbench.app.access import current
from workbench.app.serving import jobs
from workbench.app.serving.jobs import Job, manager
from workbench.app.shell import background_files, downloads
from workbench.errors import Cancelled, InputError
from workbench.exchange.labels import export_labels
from workbench.exchange.rows import LabelRows
from workbench.progress import watched
from workbench.sessions import Session
from workbench.store import Store
from workbench.studies import tasks
from workbench.work.companion import DiedError


@pytest.fixture
def apart(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORKBENCH_FIT")


@pytest.fixture(scope="module", autouse=True)
def ended() -> Iterator[None]:
    yield
    jobs.file_work().end()


class Dies:
    """A process that ends at its first calls."""

    busy = False

    def __init__(self, times: int) -> None:
        self.left, self.calls = times, 0

    def call(self, target: str, *given: Any, hear: Any = None, stop: Any = None, begin: Any = None) -> Any:
        self.calls += 1
        if self.calls <= self.left:
            raise DiedError("ended by signal 9")
        return tasks.called(hear, *given)


@pytest.fixture
def session(home: Path) -> Session:
    made = Session.create("iris", classifier=FAKE, policy="margin", annotator="ann")
    assert made.pool.truth is not None
    for item in made.pool.trainable[::9].tolist():
        made.items.label(item, made.pool.classes[int(made.pool.truth[item])])
    made.refit()
    return made


def written(making: background_files.Making) -> bytes:
    with making.made(Job("a", "b", "")) as file:
        return file.read()


def labels(session: Session, format: str, what: str = "labels", **more: Any) -> background_files.Making:
    return background_files.of_project("labels_written", session, "The labels", format, what, **more)


@pytest.mark.usefixtures("apart")
def test_a_file_that_is_made_beside_is_that_made_here(session: Session) -> None:
    for format, what in (("csv", "everything"), ("parquet", "predictions"), ("jsonl", "history")):
        assert written(labels(session, format, what)) == export_labels(session, format, what), format
    first = jobs.file_work().pid
    assert first is not None and first != os.getpid()
    session.items.label(int(session.pool.trainable[1]), session.classes[0])
    assert written(labels(session, "csv")) == export_labels(session, "csv"), (
        "a label that came since is in it"
    )
    packed = written(background_files.of_project("bundle_written", session, "The project"))
    assert packed.startswith(b"PK")
    with pytest.raises(InputError, match="COCO is for images"):
        written(labels(session, "coco"))
    assert jobs.file_work().pid == first


def test_a_file_of_many_rows_says_how_far_it_is_and_ends_where_it_is_told_to(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bar stood still for minutes over a million rows, and a cancel changed nothing."""
    monkeypatch.setattr(LabelRows.chunks, "__defaults__", (50,))
    shares: list[float] = []
    with watched(lambda share, words: shares.append(share)):
        export_labels(session, "csv", "everything")
    assert shares == [0.0, 50 / 150, 100 / 150]

    def cancelled(share: float, words: str) -> None:
        if share:
            raise Cancelled(words)

    with watched(cancelled), pytest.raises(Cancelled):
        export_labels(session, "csv", "everything")


def test_a_process_that_dies_is_started_again_and_an_import_is_not_made_twice(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORKBENCH_FIT")
    dies = Dies(1)
    monkeypatch.setattr(jobs, "file_work", lambda: dies)
    job = Job("a", "b", "")
    with labels(session, "csv").made(job) as file:
        assert file.read() == export_labels(session, "csv")
    assert dies.calls == 2
    dies.left = 4
    with pytest.raises(InputError, match="ended by signal 9, 2 times"):
        written(labels(session, "csv"))
    n, dies.left = session.state.n_events, 9
    given = session.store.url, session.id, "ann", "csv", "l.csv", {}
    with pytest.raises(InputError, match=r"ended by signal 9\. See"):
        background_files.read(
            "a", "take", "labels_taken_in", *given, title="", data=b"item,label\n1,setosa\n", tries=1
        )
    assert dies.calls == 5 and session.state.n_events == n
    assert manager().get("a", "take") is None, "the next press tries again"


def endless(report: tasks.Report, *given: Any) -> None:
    while True:
        report(0.5, "on and on")


class Gone:
    """A request whose browser went away."""

    async def is_disconnected(self) -> bool:
        return True


def test_a_browser_that_goes_away_ends_the_work(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "labels_written", endless)
    with pytest.raises(Cancelled):
        asyncio.run(downloads._made_beside(labels(session, "csv"), downloads._Offer(), Gone()))  # type: ignore[arg-type]
    assert not [job for job in manager().active(session.id) if job.title == "The labels"]


def long_one() -> None:
    import streamlit as st

    from workbench.app.access import current
    from workbench.app.shell.background_files import of_project
    from workbench.app.shell.downloads import button

    session = current.opened(st.session_state["of"])
    format = st.session_state.get("format", "csv")
    making = of_project("labels_written", session, "The labels", format, "labels", rows=60_000)
    button("Labels", making, "labels.csv", "labels")


def address(shown: AppTest) -> str:
    bodies = "".join(element.proto.body for element in shown.get("html"))
    found = re.findall(r'href="([^"]*)"', bodies)
    return found[0] if found else ""


def test_a_large_file_is_made_with_a_bar_and_then_fetched(session: Session) -> None:
    current.keep(session)
    client = TestClient(Starlette(routes=downloads.routes()))
    shown = AppTest.from_function(long_one)
    shown.session_state["of"] = session.id
    shown.run()
    assert not address(shown)
    shown.button(key="labels-make").click().run()
    for job in manager().active(session.id):
        assert job.wait(600)
    shown.run()
    assert not shown.exception and "Labels, 0.0 MB" in "".join(e.proto.body for e in shown.get("html"))
    expected = export_labels(session, "csv")
    assert client.get(address(shown)).content == expected
    assert client.get(address(shown)).content == expected, "as often as it is pressed"
    shown.run()
    assert not address(shown), "fetched: the next one is made of what is there then"
    shown.button(key="labels-make").click().run()
    shown.session_state["format"] = "jsonl"
    shown.run()
    assert not address(shown), "another file is wanted by now"


def test_a_large_file_can_be_cancelled(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "labels_written", endless)
    current.keep(session)
    shown = AppTest.from_function(long_one)
    shown.session_state["of"] = session.id
    shown.run()
    shown.button(key="labels-make").click().run()
    (job,) = [one for one in manager().active(session.id) if one.title == "The labels"]
    shown.button(key="labels-job-cancel").click().run()
    assert job.wait(600) and job.status == "cancelled"
    shown.run()
    assert "cancelled" in shown.info[0].value
    shown.button(key="labels-job-again").click().run()
    assert [button.key for button in shown.button] == ["labels-make"]


@pytest.mark.usefixtures("apart")
def test_labels_are_looked_at_and_taken_in_beside(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,x\n" + "".join(f"{name},{i}\n" for i, name in enumerate("abcdef")), encoding="utf-8")
    session = Session.create(str(path), pool_options={"id_column": "id"}, classes=["low", "high"])
    current.keep(session)
    test = open_page("history", session.id)
    upload = ("labels.csv", b"id,label\na,low\nb,high\n", "text/csv")

    def until(done: Callable[[], bool]) -> None:
        for _ in range(20):
            if done():
                return
            for job in manager().active(session.id):
                job.wait(600)
            test.run()
        raise AssertionError(texts(test))

    test.file_uploader(key="import-file").set_value(upload).run()
    until(lambda: "It would bring: 2 new" in texts(test))
    test.button(key="import").click().run()
    until(lambda: session.state.labels == {0: "low", 1: "high"})
    assert not test.exception
    assert session.as_annotator(list(session.log.events)[-1].annotator).undo() is not None
    assert session.state.labels == {}, "one undo takes back what the other process took in"


def test_a_bundle_that_was_brought_is_opened_once_at_a_press(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert background_files.read.__kwdefaults__ is not None
    monkeypatch.setitem(background_files.read.__kwdefaults__, "patience", 600.0)  # no bar, however slow
    bundle = tmp_path / "b.zip"
    bundle.write_bytes(written(background_files.of_project("bundle_written", session, "")))
    n = len(Store.open().projects())
    test = open_page("data")
    test.session_state["brought"] = str(bundle)
    test.run()
    assert len(Store.open().projects()) == n, "nothing is opened before somebody presses"
    test.button(key="open-bundle").click().run()
    assert not test.exception and len(Store.open().projects()) == n + 1
    (made,) = [one for one in Store.open().projects() if one.id == test.session_state["current-project"]]
    assert Store.open().events(made.id) == session.store.events(session.id)


@pytest.mark.slow  # alone: a process that answers for every kind of file, without the engine
def test_the_server_needs_no_engine_for_files(session: Session, tmp_path: Path) -> None:
    """In a process of its own: this one has imported everything for other tests."""
    bundle = tmp_path / "b.zip"
    bundle.write_bytes(written(background_files.of_project("bundle_written", session, "")))
    table = tmp_path / "t.parquet"
    table.write_bytes(export_labels(session, "parquet", "everything"))
    n = len(Store.open().projects())
    code = f"""
import os, sys
from workbench.app.serving import jobs
from workbench.app.access import current
from workbench.app.shell import background_files
from workbench.app.serving.jobs import Job
os.environ.pop("WORKBENCH_FIT")
one = current.opened({session.id!r})
before = set(sys.modules)
for more in (("parquet", "everything"), ("huggingface", "labels")):
    background_files.of_project("labels_written", one, "", *more).made(Job("a", "b", "")).close()
background_files.of_project("bundle_written", one, "").made(Job("a", "b", "")).close()
def wait(kind, target, *given, **more):
    from workbench.app.serving.jobs import manager
    from workbench.app.shell import widgets
    widgets.job_panel = lambda *a, **k: None
    while (found := background_files.read("a", kind, target, *given, title="", **more)) is None:
        manager().get("a", kind).wait()
    return found
report, chosen = wait("table", "table_looked_at", {str(table)!r}, None)
assert report.columns and chosen, report
data = open({str(table)!r}, "rb").read()
looked = wait("look", "labels_looked_at", one.store.url, one.id, "parquet", data=data)
assert looked.plan is not None and looked.plan.same, looked
said = b"item,prediction\\n0,setosa\\n"
plan = wait("guess", "predictions_looked_at", one.store.url, one.id, "p.csv", data=said)
assert plan.matched == 1, plan
assert wait("bundle", "bundle_opened", {str(bundle)!r}, one.store.url, None, {{}}, "")[1]
new = set(sys.modules) - before
print(sorted(n for n in ("pandas", "pyarrow", "sklearn", "scipy", "tensorflow", "gpflow") if n in new))
jobs.file_work().end()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.stdout == "[]\n", done.stderr
    assert len(Store.open().projects()) == n + 1
