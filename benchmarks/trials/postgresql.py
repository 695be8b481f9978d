"""The database server ends the connections of people who label; what they were told is saved is there, once.

Needs a server to itself: WORKBENCH_TEST_POSTGRESQL=postgresql://user@host:port/database.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from typing import Any

import numpy as np

from benchmarks.trials import Row
from benchmarks.trials._sessions import CONSTANT
from workbench.errors import InputError
from workbench.pools import load_pool
from workbench.registry import trust
from workbench.sessions import Operation, Session
from workbench.store import Store

_PEOPLE = 3


def run(count: int = 100, seed: int = 0) -> Row:
    """End `count` connections that are in use while three people label and fit in one project.

    Args:
        count: how many.
        seed: of what they do and when the connections are ended.
    """
    import psycopg

    server = os.environ.get("WORKBENCH_TEST_POSTGRESQL", "")
    if not server:
        raise InputError("The trial needs a server of its own: WORKBENCH_TEST_POSTGRESQL=postgresql://...")
    trust(CONSTANT)
    schema = f"trial{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {schema}")
    # Named, so that nobody else's connection is ended.
    more = f"options=-csearch_path%3D{schema}&application_name={schema}"
    store = Store.open(f"{server}{'&' if '?' in server else '?'}{more}")
    pool = load_pool("three-gaussians", n_items=500 + 40 * count, seed=seed)
    first = Session.create(pool, classifier=CONSTANT, policy="random", store=store, annotator="p0")
    stop = threading.Event()
    told = _Told()
    people = [
        threading.Thread(target=_label, args=(first.as_annotator(f"p{i}"), told, stop, seed, i))
        for i in range(_PEOPLE)
    ]
    for person in people:
        person.start()
    ended = _end_connections(server, schema, count, np.random.default_rng(seed), told, people)
    stop.set()
    for person in people:
        person.join()
    session = Session.open(first.id, pool=pool, store=store, annotator="p0")
    failures = [*told.problems, *_compared(session, told)]
    operations, fits = len(told.operations), len(told.fits)
    store.close()
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"DROP SCHEMA {schema} CASCADE")
    within = ended["active"] + ended["idle in transaction"] + ended["idle in transaction (aborted)"]
    notes = (
        f"{within:,} of them in the middle of a transaction; "
        f"{operations:,} operations and {fits:,} fits acknowledged"
    )
    return Row.of(
        "PostgreSQL ends the connections of three people who label", sum(ended.values()), failures, notes
    )


class _Told:
    """Answers that people were told are saved, and answers that they should not have been shown."""

    def __init__(self) -> None:
        self.operations: dict[str, tuple[str, int, str]] = {}
        self.fits: dict[int, int] = {}
        self.problems: list[str] = []


def _end_connections(
    server: str,
    name: str,
    count: int,
    rng: np.random.Generator,
    told: _Told,
    people: list[threading.Thread],
) -> dict[str, int]:
    """End connections, most of them while they are at work; how often in which state."""
    import psycopg

    ended = dict.fromkeys(("active", "idle", "idle in transaction", "idle in transaction (aborted)"), 0)
    query = "SELECT pid, state FROM pg_stat_activity WHERE application_name = %s AND state IS NOT NULL"
    with psycopg.connect(server, autocommit=True) as admin:
        while sum(ended.values()) < count and any(person.is_alive() for person in people):
            found = admin.execute(query, [name]).fetchall()
            busy = [row for row in found if row[1] != "idle"]
            if not busy and rng.random() < 0.9:
                continue
            chosen: list[Any] = busy or found
            if not chosen:
                continue
            pid, state = chosen[int(rng.integers(len(chosen)))]
            done = admin.execute("SELECT pg_terminate_backend(%s)", [pid]).fetchone()
            if done is not None and done[0]:
                ended[state] = ended.get(state, 0) + 1
            # somebody must get something done in between, however busy the machine is
            before = len(told.operations)
            while len(told.operations) == before and any(person.is_alive() for person in people):
                time.sleep(0.005)
            time.sleep(float(rng.uniform(0.0, 0.1)))
    return ended


def _label(session: Session, told: _Told, stop: threading.Event, seed: int, number: int) -> None:
    """Acts of one person until told to stop; whatever is raised is a failure."""
    rng = np.random.default_rng([seed, number])
    step = 0
    try:
        while not stop.is_set():
            step += 1
            asks = session.ask(3)
            if not asks:
                return
            name = session.classes[int(rng.integers(len(session.classes)))]
            batch = [
                Operation(f"k{number}-{step}-{i}", "label", ask=ask.id, label=name)
                for i, ask in enumerate(asks[: int(rng.integers(1, 4))])
            ]
            items = {ask.id: ask.item for ask in asks}
            for operation, done in zip(batch, session.apply(batch), strict=True):
                if done.status == "saved":
                    told.operations[operation.id] = (session.annotator, items[operation.ask], name)
                else:
                    told.problems.append(f"{operation.id}: {done.status}: {done.why}")
            if step % 7 == 0:
                finished = session.refit()
                if finished is not None:
                    told.fits[finished.number] = finished.n_labelled
    except BaseException as error:
        told.problems.append(f"shown to {session.annotator}: {type(error).__name__}: {error}"[:300])


def _compared(session: Session, told: _Told) -> list[str]:
    """Comparison of what was acknowledged with what is stored."""
    events = [e for e in session.log.events if e.operation]
    stored = {str(e.operation): (e.annotator, e.item, str(e.payload["class"])) for e in events}
    failures = [f"{key} was acknowledged and is lost" for key in told.operations if key not in stored]
    failures += [
        f"{key} is not what was told" for key, what in told.operations.items() if stored.get(key) != what
    ]
    if len(stored) != len(events) or len(stored) != len(told.operations):
        failures.append(f"{len(told.operations)} acknowledged, {len(stored)} stored, {len(events)} events")
    items = [e.item for e in events]
    if len(items) != len(set(items)):
        failures.append("an item was labelled twice")
    rounds = {r.number: r.n_labelled for r in session.rounds}
    failures += [
        f"fit {n} was acknowledged and is not there" for n in told.fits if rounds.get(n) != told.fits[n]
    ]
    if len(rounds) != len(told.fits) or sorted(rounds) != list(range(len(rounds))):
        failures.append(f"{len(told.fits)} fits acknowledged, {len(rounds)} stored")
    return failures
