"""Threads and processes that answer at once, and one that is killed."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from workbench.sessions import Session
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
    assert len([e for e in session.events if e.kind == "label"]) == 1


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
