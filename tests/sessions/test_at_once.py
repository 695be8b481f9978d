"""Threads and processes that answer at once, and one that is killed."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from workbench.sessions import Session, asking
from workbench.store import Store

ROOT = Path(__file__).resolve().parents[2]
Start = Callable[..., Session]


def test_ten_fast_keys_in_threads_store_one_answer(start: Start) -> None:
    session = start()
    ask = session.ask()[0]
    accepted: list[bool] = []
    keys = [
        threading.Thread(target=lambda: accepted.append(session.tell(ask.id, "setosa"))) for _ in range(10)
    ]
    for key in keys:
        key.start()
    for key in keys:
        key.join()
    assert sorted(accepted) == [False] * 9 + [True]
    assert len([e for e in session.log.events if e.kind == "label"]) == 1


# A pool that a fresh process opens without importing scikit-learn.
SMALL = {"pool": "three-gaussians", "pool_options": {"n_items": 40}}

_TELLER = """
import sys
from workbench.sessions import Session
from workbench.store import Store
session = Session.open(sys.argv[2], annotator="ann", store=Store.open(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
print(*(session.tell(ask, sys.argv[3]) for ask in sys.argv[4:]), flush=True)
"""


def test_two_processes_answering_one_question_exactly_one_is_accepted(start: Start, store: Store) -> None:
    session = start(**SMALL)
    asks = session.ask(4)
    names = session.classes[:2]
    ids = [ask.id for ask in asks]
    tellers = [
        subprocess.Popen(
            [sys.executable, "-c", _TELLER, store.url, session.id, name, *ids],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for teller in tellers:
        assert teller.stdout is not None and teller.stdout.readline() == "ready\n"
    for teller in tellers:
        assert teller.stdin is not None
        teller.stdin.write("go\n")
        teller.stdin.flush()
    said = [teller.communicate(timeout=600)[0].split() for teller in tellers]
    for ask, answers in zip(asks, zip(*said, strict=True), strict=True):
        assert sorted(answers) == ["False", "True"]
        assert session.state.labels[ask.item] == names[answers.index("True")]


_ANSWERER = """
import sys
from workbench.sessions import Session
from workbench.store import Store
session = Session.open(sys.argv[2], annotator="ann", store=Store.open(sys.argv[1]))
ask = session.ask()[0]
if session.tell(ask.id, session.classes[1]):
    print(ask.item, flush=True)
sys.stdin.read()
"""


def test_an_acknowledged_answer_survives_a_kill(start: Start, store: Store) -> None:
    session = start(**SMALL)
    process = subprocess.Popen(
        [sys.executable, "-c", _ANSWERER, store.url, session.id],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    item = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=600)
    process.stdout.close()
    assert process.stdin is not None
    process.stdin.close()
    url = store.url
    store.close()
    reopened = Session.open(session.id, annotator="ann", store=Store.open(url))
    assert reopened.state.labels == {item: session.pool.classes[1]}
    assert reopened.ask()[0].item != item


def test_nobody_who_reads_waits_for_somebody_who_writes(start: Start) -> None:
    """Also not for the commit: what a page shows is the view before it, whole."""
    session = start()
    other = session.as_annotator("bob")
    mine = other.ask()  # a question that is open needs nothing recorded
    begun, end, read = threading.Event(), threading.Event(), threading.Event()

    def write() -> None:
        with session._project.recording():
            session.items.relabel([int(session.pool.trainable[0])], session.classes[0])
            assert len(session.state.labels) == 1  # whoever writes sees it
            begun.set()
            assert end.wait(600)

    def look() -> None:
        state = other.state
        assert not state.labels and not other.rounds and other.model is None and not other.stale
        assert len(other.log.events) == state.n_events and other.settings and other.classes == state.classes
        assert [a.id for a in other.ask()] == [a.id for a in mine]
        read.set()

    writer, reader = threading.Thread(target=write), threading.Thread(target=look)
    writer.start()
    assert begun.wait(600)
    reader.start()
    assert read.wait(600), "a reader waits for the writer"
    end.set()
    writer.join()
    reader.join()
    assert len(other.state.labels) == 1


def test_a_view_stays_as_it_is(start: Start, store: Store) -> None:
    session = start()
    with session.log.snapshot():
        before, events = session.state, session.log.events
        other = Session.open(session.id, store=store, annotator="bob")
        other.items.label(int(other.pool.trainable[1]), other.classes[0])
        assert session.state is before and session.log.events == events
        # what the thread itself records it sees, and with it what came before
        session.items.label(int(session.pool.trainable[0]), session.classes[0])
        assert len(session.state.labels) == 2 and session.log.events[: len(events)] == events
    assert not before.labels and session.state.n_labelled == 2
    session.items.note(0, "and no thread keeps a view of its own for good")
    assert session._project.log._pinned.moment is None
    with pytest.raises(RuntimeError), session._project.recording():
        session.items.relabel([int(session.pool.trainable[2])], session.classes[0])
        raise RuntimeError
    assert session.state.n_labelled == 2 and session._project.log.epoch == 0
    session.items.label(int(session.pool.trainable[2]), session.classes[1])
    assert Session.open(session.id, store=store).state.labels == session.state.labels


def test_those_who_come_first_spread_the_first_questions_once(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = start()
    spread, begun, end = asking.diverse_items, threading.Semaphore(0), threading.Event()

    def slowly(*arguments: Any) -> Any:
        begun.release()
        end.wait()
        return spread(*arguments)

    monkeypatch.setattr(asking, "diverse_items", slowly)
    with ThreadPoolExecutor(2) as people:
        asks = [people.submit(session.as_annotator(name).ask) for name in ("ann", "ben")]
        begun.acquire()
        is_second = begun.acquire(timeout=0.2)  # it would begin at once
        end.set()
        items = {ask.result()[0].item for ask in asks}
    assert len(items) == 2  # one for each
    assert not is_second
