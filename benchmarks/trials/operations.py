"""Operations of every shape, posted to the desk: each is stored once as it is meant, or refused in words.

Over SQLite, and over PostgreSQL where WORKBENCH_TEST_POSTGRESQL names a server (postgresql://user@host/database).
"""

from __future__ import annotations

import itertools
import json
import os
import random
import tempfile
from typing import Any

from benchmarks.driving import own_home
from benchmarks.trials import Row
from benchmarks.trials._sessions import CONSTANT, database

PERSON = "ann"
# Texts of JSON, so that what Python would not write is tried, too.
VALUES = (
    *("null", "true", "false", "0", "3", "-1", "-5", "7.0", "2.5", "NaN", "Infinity", "-Infinity", "1e400"),
    *(
        "1" + "0" * 400,
        "-1" + "0" * 30,
        "9007199254740993",
        '"7"',
        '""',
        '" "',
        '"NaN"',
        '"setosa"',
        '"None"',
    ),
    *(
        '"\\ud800"',
        '"a\\udc00b"',
        '"\\u0000"',
        '"a\\u0000b"',
        '"\\ufeff"',
        '"\\u202e"',
        '"=1+1"',
        '"<b>"',
        '"\\ud83d\\ude00"',
    ),
    *('"' + "x" * 65 + '"', '"' + "x" * 3000 + '"', '"' + "\\u4e2d" * 2000 + '"'),
    *("[]", "[1]", "[-5]", '["7"]', "[NaN]", "[null]", "[[]]", "{}", '{"item": 0}', "[" * 30 + "]" * 30),
    *("[" + ", ".join(map(str, range(600))) + "]", '["a", "b"]', "[1, 1, 2]", "[0, 149]", "[150]"),
)
_OURS = ("asked", "released", "round")  # what the server records by itself
STRANGE = ("__proto__", "Item", "items ", "query", "source", "round")


def run(count: int = 500, seed: int = 0) -> Row:
    """Post `count` shapes to a project over each database, each between two notes that must be stored.

    Args:
        count: shapes a database.
        seed: of the shapes.
    """
    counts: dict[str, int] = {}
    failures: list[str] = []
    tried = 0
    kinds = ["sqlite"] + (["postgresql"] if os.environ.get("WORKBENCH_TEST_POSTGRESQL") else [])
    with tempfile.TemporaryDirectory() as folder, own_home(folder):
        for kind in kinds:
            with database(kind, folder) as url:
                found, said = _posted(url, count, seed)
            failures += [f"{kind}: {line}" for line in found]
            tried += count
            for words, number in said.items():
                counts[words] = counts.get(words, 0) + number
    return Row.of(
        "operations of every shape, posted to the desk", tried, failures, " and ".join(kinds), counts=counts
    )


def _posted(url: str, count: int, seed: int) -> tuple[list[str], dict[str, int]]:
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

    from workbench.app.access import current
    from workbench.app.desk import requests, routes, tokens
    from workbench.app.serving.jobs import manager
    from workbench.registry import trust
    from workbench.sessions import Session
    from workbench.store import Store

    trust(CONSTANT)
    requests.LIMITS = requests.Limits(
        itertools.count().__next__
    )  # each request comes a second after the last
    rng = random.Random(seed)
    store = Store.open(url)
    session = Session.create("iris", classifier=CONSTANT, policy="random", store=store, annotator=PERSON)
    current.keep(session)
    client = TestClient(Starlette(routes=routes()), base_url="http://localhost:8501")
    headers = {"x-desk-token": tokens.issue(session.id, PERSON), "content-type": "application/json"}
    failures: list[str] = []
    said = {"stored": 0, "refused by a sentence": 0, "come too late": 0}
    for number in range(count):
        op, shape = f"op-{number}", _shape(rng, session, number)
        before = [_plain(f"{op}-{end}", session.id, 10) for end in "ab"]
        body = f'{{"ops": [{before[0]}, {shape}, {before[1]}], "want": 0, "have": []}}'
        last, known = session.state.last_event, session.state.operations
        answer = client.post(f"/api/desk/{session.id}/sync", content=body.encode(), headers=headers)
        shown = shape if len(shape) < 200 else f"{shape[:150]} ... {shape[-40:]}"
        if answer.status_code != 200:
            failures.append(f"{answer.status_code} {answer.text[:120]}: {shown}")
            continue
        first, ack, second = answer.json()["acks"]
        if (first["status"], second["status"]) != ("saved", "saved"):
            failures.append(f"a good note beside it was {first['status']} and {second['status']}: {shown}")
        new = [event for event in session.log.events if event.id > last and event.kind not in _OURS]
        own = [event for event in new if event.payload.get("text") != "beside"]
        if ack["status"] == "saved":
            said["stored"] += 1
            sent = json.loads(shape)
            # one of an id that was stored before is acknowledged, and not stored again
            repeated = sent["op"] in known and not own
            wrong = "" if repeated else _wrong(sent, own, session)
        else:
            said["come too late" if ack["status"] == "conflict" else "refused by a sentence"] += 1
            wrong = "" if ack["why"] and not own else f"{ack['status']}, and {len(own)} events were stored"
        if wrong:
            failures.append(f"{wrong}: {shown}")
    # what was stored opens again, and says the same
    again = Session.open(session.id, store=store, pool=session.pool)
    if again.state.labels != session.state.labels or again.state.notes.keys() != session.state.notes.keys():
        failures.append("the project says something else when it is opened again")
    fit = manager().get(session.id, "refit")
    if fit is not None:
        fit.wait(600)
    current.forget(session.id)
    store.close()
    return failures, said


def _plain(op: str, project: str, item: int) -> str:
    """A good note."""
    note = {"op": op, "kind": "note", "item": item, "text": "beside", "person": PERSON, "project": project}
    return json.dumps(note)


def _shape(rng: random.Random, session: Any, number: int) -> str:
    """A good operation of some kind with one or two things changed: a value, a name, too much, too little."""
    asks = [ask.id for ask in session.ask(3)]
    ask = session.state.asks[asks[0]]
    item, name = int(rng.choice(session.pool.trainable)), rng.choice(session.classes)
    good: dict[str, dict[str, Any]] = {
        "label": {"ask": ask.id, "item": ask.item, "class": name, "ms": 900},
        "skip": {"ask": ask.id, "item": ask.item, "ms": 1.5},
        "unsure": {"ask": ask.id, "item": ask.item, "ms": None},
        "flag": {"item": item, "on": True},
        "note": {"item": item, "text": "a remark"},
        "correct": {"item": item, "class": name},
        "relabel": {"items": [item, 3], "class": name},
        "clear": {"items": [item]},
        "want": {"items": [item], "text": "search: x"},
        "grid": {"class": name, "asks": asks[:2], "rejected": asks[2:]},
        "undo": {"target": None},
        "redo": {},
        "requeue": {},
    }
    kind = rng.choice(list(good))
    fields = {"op": f"op-{number}", "kind": kind, "person": PERSON, "project": session.id} | good[kind]
    written = {key: json.dumps(value) for key, value in fields.items()}
    for _ in range(rng.choice((0, 1, 1, 1, 1, 2))):
        how = rng.random()
        if how < 0.75:
            written[rng.choice(list(written))] = rng.choice(VALUES)
        elif how < 0.85:
            written.pop(rng.choice(list(written)), None)
        elif how < 0.95:
            written[rng.choice(STRANGE)] = rng.choice(VALUES)
        else:
            return rng.choice(VALUES)
    return "{" + ", ".join(f"{json.dumps(key)}: {value}" for key, value in written.items()) + "}"


def _wrong(given: Any, own: list[Any], session: Any) -> str:
    """Faults of the events that an operation was stored as; "" for none."""
    if not isinstance(given, dict) or given.get("person") != PERSON or given.get("project") != session.id:
        return "stored although it is nobody's here"
    if given["kind"] == "requeue":
        return ""
    if len(own) != 1:
        return f"stored as {len(own)} events"
    event = own[0]
    items = given.get("items", [given["item"]] if "item" in given else None)
    stored = event.payload.get("items", [event.payload["item"]] if "item" in event.payload else None)
    if items is not None and given["kind"] != "want" and not {*(stored or ())} <= {*items}:
        return f"stored about {stored}, given about {items}"
    if items is not None and any(type(one) is not int or not 0 <= one < len(session.pool) for one in items):
        return f"stored although {items} are no items"
    return "" if event.annotator == PERSON else f"stored as {event.annotator}'s"
