"""A hall full of people at one desk: from the answer sent to its acknowledgement, and what became of each.

The clients speak as the desk's page does, from this process; the server has its own. Each person thinks for a
while (exponential times of a given mean), answers the card on screen and asks for the next one. The server
fits while they answer. `--kills` and `--fit-kills` end the server, or its process that fits, again and again
meanwhile; `--servers 2` has two servers on one PostgreSQL database, each with people of every project.
`--cold` has all of them come at one moment to a server that was started a moment ago, at a project without a
label, and counts their first request too; classes are drawn at random, as a new hall's are.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import secrets
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.driving import Server, own_home

PATIENCE = 180.0  # seconds that a person tries again: a server that was killed takes some to come back
AHEAD = 4  # cards in a browser, the one on screen among them
ANSWERED, P50, P95, P99 = 0.97, 30.0, 150.0, 400.0
"""Wanted: the share of what was offered, and milliseconds."""
FEATURES, CLASSES = 10, "abcd"
WINDOW = 5.0  # seconds
LONGEST = 500.0
"""Milliseconds that nobody is to wait for longer, at a server that was just started."""


@dataclass
class Person:
    """Record of one person's work.

    Attributes:
        name: theirs.
        waited: milliseconds from each answer to its acknowledgement.
        moments: seconds from the begin to each of these answers.
        said: id of each operation -> (item, class, what became of it).
        offered: answers that they would have given, had none waited.
        ages: labels given since the fit of the model that each question was chosen by.
    """

    name: str
    waited: list[float] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)
    said: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    offered: int = 0
    ages: list[int] = field(default_factory=list)


def _table(path: Path, n: int) -> None:
    """A table of n rows of four classes."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, len(CLASSES), n)
    rows = rng.normal(size=(n, FEATURES)) + 1.5 * rng.normal(size=(len(CLASSES), FEATURES))[codes]
    head = ",".join(f"x{i}" for i in range(FEATURES))
    lines = [f"{','.join(f'{v:.3f}' for v in row)},{CLASSES[c]}" for row, c in zip(rows, codes, strict=True)]
    path.write_text("\n".join([f"{head},class", *lines]))


def _made(folder: Path, n_items: int, classifier: str, name: str, cold: bool) -> tuple[str, dict[int, str]]:
    """A project with a first model, or a cold one without a label; its id and what is said of its items."""
    from workbench.pools.datasets.catalogue import find_file
    from workbench.sessions import ArrayOracle, Session

    options: dict[str, Any] = {}
    if name == "banking77":
        file = find_file("text/banking77/train.csv")
        if file is None:
            raise SystemExit("banking77 lies in no data folder; WORKBENCH_DATA names one.")
        name, options = str(file), {"text_column": "text", "target": "category"}
    elif not name:
        name, options = str(folder / "table.csv"), {"target": "class"}
        _table(Path(name), n_items)
    session = Session.create(
        name, pool_options=options, classifier=classifier, policy="margin", annotator="host"
    )
    pool = session.pool
    if cold:
        codes = np.random.default_rng(0).integers(0, len(pool.classes), len(pool)).tolist()
        return session.id, {i: pool.classes[code] for i, code in enumerate(codes)}
    oracle = ArrayOracle(pool)
    for item in pool.trainable[:40].tolist():
        session.items.label(item, oracle(item))
    session.refit()
    assert pool.truth is not None
    return session.id, {i: pool.classes[int(c)] for i, c in enumerate(pool.truth.tolist())}


def _sit(
    person: Person,
    url: str,
    project: str,
    token: str,
    truth: dict[int, str],
    times: tuple[float, float],
    rate: float,
    cold: bool,
) -> None:
    """Answer at a rate from one moment to another; where it is cold the first request comes at the begin."""
    begin, end = times
    rng = random.Random(person.name)
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
    model: Any = None
    queue: list[dict[str, Any]] = []

    def sync(body: dict[str, Any]) -> dict[str, Any]:
        nonlocal connection
        headers = {"content-type": "application/json", "x-desk-token": token}
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            reused = connection.sock is not None
            try:
                connection.request("POST", f"/api/desk/{project}/sync", json.dumps(body), headers)
                answer = connection.getresponse()
                document: dict[str, Any] = json.loads(answer.read())
                if answer.status == 200:
                    return document
            except (OSError, http.client.HTTPException, ValueError):
                connection.close()
                connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
                if reused:  # the server lets go of one after five idle seconds: browsers open another at once
                    continue
            time.sleep(0.2)
        raise RuntimeError(f"the desk did not answer {person.name}")

    def taken(reply: dict[str, Any]) -> None:
        nonlocal queue, model
        away = {*reply["gone"], *reply["released"]}
        queue = [card for card in queue if card["ask"] not in away] + reply["queue"]
        model = reply["numbers"]["model"]
        person.ages.append(reply["numbers"]["labelled"] - reply["numbers"]["learned"])

    def timed(body: dict[str, Any]) -> dict[str, Any]:
        struck = time.monotonic()
        reply = sync(body)
        person.waited.append(1000 * (time.monotonic() - struck))
        person.moments.append(struck - begin)
        return reply

    if cold:
        time.sleep(max(0.0, begin - time.monotonic()))
    taken((timed if cold else sync)({"want": AHEAD, "have": [], "model": None}))
    person.ages.clear()
    due = begin + rng.expovariate(rate)
    while due < end:
        time.sleep(max(0.0, due - time.monotonic()))
        person.offered += 1
        if time.monotonic() >= end:
            due += rng.expovariate(rate)
            continue
        if not queue:
            taken(sync({"want": AHEAD, "have": [], "model": model}))
        else:
            card = queue.pop(0)
            one = {
                "op": secrets.token_hex(8),
                "kind": "label",
                "ask": card["ask"],
                "item": card["item"],
                "class": truth[card["item"]],
                "person": person.name,
                "project": project,
            }
            body = {
                "ops": [one],
                "want": max(0, AHEAD - len(queue)),
                "have": [c["ask"] for c in queue],
                "screen": queue[0]["ask"] if queue else "",
                "model": model,
            }
            reply = timed(body)
            (ack,) = reply["acks"]
            person.said[one["op"]] = (card["item"], truth[card["item"]], ack["status"])
            taken(reply)
        due += rng.expovariate(rate)
    connection.close()


def _begun(url: str, project: str, truth: dict[int, str]) -> None:
    """Wait until the server has learnt from a first label, with its libraries loaded."""
    from workbench.app.desk import tokens

    headers = {"content-type": "application/json", "x-desk-token": tokens.issue(project, "host")}

    def sync(**body: Any) -> dict[str, Any]:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
        connection.request("POST", f"/api/desk/{project}/sync", json.dumps({"have": [], **body}), headers)
        found: dict[str, Any] = json.loads(connection.getresponse().read())
        connection.close()
        return found

    card = sync(want=1)["queue"][0]
    whose = {"person": "host", "project": project, "op": secrets.token_hex(8)}
    about = {"kind": "label", "ask": card["ask"], "item": card["item"], "class": truth[card["item"]]}
    sync(want=0, ops=[whose | about])
    until = time.monotonic() + PATIENCE
    while sync(want=0)["numbers"]["fitting"] and time.monotonic() < until:
        time.sleep(0.5)


def _wrong(projects: list[str], people: list[Person]) -> tuple[int, int, int]:
    """Answers that were acknowledged and are not there, are there twice, or say something else."""
    from workbench.store import Store

    store = Store.open()
    found: dict[str, list[tuple[int | None, str, str]]] = {}
    for project in projects:
        for event in store.events(project):
            if event.operation is not None:
                found.setdefault(event.operation, []).append(
                    (event.item, str(event.payload.get("class")), event.annotator)
                )
    lost = doubled = wrong = 0
    for person in people:
        for operation, (item, label, status) in person.said.items():
            there = found.get(operation, [])
            lost += status == "saved" and not there
            doubled += len(there) > 1
            wrong += any(one != (item, label, person.name) for one in there)
    store.close()
    return lost, doubled, wrong


@contextmanager
def _without_database() -> Iterator[None]:
    before = os.environ.pop("WORKBENCH_DATABASE_URL", None)
    try:
        yield
    finally:
        if before is not None:
            os.environ["WORKBENCH_DATABASE_URL"] = before


@dataclass
class Killing:
    """Ends processes at moments spread over a time, and counts how often it did.

    Attributes:
        servers: of the hall.
        kills: of a server, in turns; each is started again at once.
        fit_kills: of the process that fits.
        done: kills of each sort that met a process.
    """

    servers: list[Server]
    kills: int
    fit_kills: int
    done: list[int] = field(default_factory=lambda: [0, 0])

    def run(self, begin: float, seconds: float) -> None:
        """Kill between two moments."""
        rng = random.Random(0)
        moments = [(rng.random(), 0) for _ in range(self.kills)] + [
            (rng.random(), 1) for _ in range(self.fit_kills)
        ]
        for share, sort in sorted(moments):
            time.sleep(max(0.0, begin + share * seconds - time.monotonic()))
            server = self.servers[sum(self.done) % len(self.servers)]
            if not sort:
                server.kill()
                server.start()
                self.done[0] += 1
            else:
                self.done[1] += any(_kill(one) for one in _fitting(server))


def _fitting(server: Server) -> list[Any]:
    import psutil

    assert server.process is not None
    found = []
    for child in psutil.Process(server.process.pid).children():
        try:
            if any("work.companion" in word for word in child.cmdline()):
                found.append(child)
        except psutil.Error:  # one that was killed a moment ago
            continue
    return found


def _kill(process: Any) -> bool:
    import psutil

    try:
        process.kill()
    except psutil.NoSuchProcess:
        return False
    return True


def _megabytes(server: Server) -> tuple[float, float]:
    """Of the server, and of its process that fits."""
    return server.megabytes, sum(one.memory_info().rss / 2**20 for one in _fitting(server))


def hall(
    n_people: int = 50,
    rate: float = 1.0,
    seconds: float = 60.0,
    n_items: int = 20_000,
    classifier: str = "logistic-regression",
    database: str = "",
    n_servers: int = 1,
    kills: int = 0,
    fit_kills: int = 0,
    fit: str = "",
    pool: str = "",
    cold: bool = False,
    apart: bool = False,
) -> dict[str, Any]:
    """One hall.

    Args:
        n_people: who sit in it.
        rate: answers a second and person, as offered.
        seconds: how long.
        n_items: of the table.
        classifier: that learns from them.
        database: URL of an empty PostgreSQL database; "" is SQLite.
        n_servers: that share the database, and as many projects, each with people at every server.
        kills: how often a server is killed meanwhile.
        fit_kills: how often the process that fits is.
        fit: WORKBENCH_FIT of the servers, "inline" or nothing.
        pool: "banking77", or a name of the catalogue, in place of the table.
        cold: all come at one moment to a server that was started a moment ago.
        apart: servers with their fits on the last core of this process, the clients on the others.

    Returns:
        What was measured: windows (`windows_of`), answers, offered, p50, p95, p99 (ms), lost, doubled, wrong,
        age (median), megabytes and fit_megabytes (of all servers), cpu (processors that the servers took; 0
        where one was killed), killed, and what was asked for.
    """
    with tempfile.TemporaryDirectory() as name, _without_database(), own_home(Path(name)):
        if database:
            os.environ["WORKBENCH_DATABASE_URL"] = database
        made = [_made(Path(name), n_items, classifier, pool, cold) for _ in range(n_servers)]
        environment = {"WORKBENCH_WARM": "1"} if fit or cold else {}
        environment |= {"WORKBENCH_FIT": fit} if fit else {}
        environment |= {"WORKBENCH_DATABASE_URL": database} if database else {}
        cores = sorted(os.sched_getaffinity(0))
        if apart:
            os.sched_setaffinity(0, cores[-1:])  # what is started has its begetter's cores
        servers = [Server(Path(name), environment).start() for _ in range(n_servers)]
        os.sched_setaffinity(0, cores[:-1] if apart else cores)
        try:
            from workbench.app.desk import tokens

            for server, (project, truth) in zip(servers, made, strict=True):
                if not cold:
                    _begun(server.url, project, truth)
            people = [Person(f"person {i}") for i in range(n_people)]
            begin = time.monotonic() + (0.5 if cold else 3.0 + 0.05 * n_people)
            times = (begin, begin + seconds)
            killing = Killing(servers, kills, fit_kills)
            with ThreadPoolExecutor(n_people) as seats:
                sitting = []
                for i, one in enumerate(people):
                    project, truth = made[i % n_servers]
                    url = servers[i // n_servers % n_servers].url
                    token = tokens.issue(project, one.name)
                    sitting.append(seats.submit(_sit, one, url, project, token, truth, times, rate, cold))
                time.sleep(max(0.0, begin - time.monotonic()))
                busy = sum(one.seconds for one in servers)
                killing.run(begin, seconds)
                for seat in sitting:
                    seat.result()
            busy = 0.0 if kills else sum(one.seconds for one in servers) - busy
            memory = [_megabytes(one) for one in servers]
        finally:
            for server in servers:
                server.stop()
            os.sched_setaffinity(0, cores)
        lost, doubled, wrong = _wrong([project for project, _ in made], people)
    waited = np.array([ms for one in people for ms in one.waited] or [np.nan])
    n = sum(len(one.waited) for one in people)
    p50, p95, p99 = np.percentile(waited, [50, 95, 99])
    return {
        "windows": windows_of(people, seconds),
        "people": n_people,
        "pool": pool or f"{n_items:,} rows",
        "rate": rate,
        "seconds": seconds,
        "database": "PostgreSQL" if database else "SQLite",
        "offered": sum(one.offered for one in people),
        "answers": n,
        "a second": n / seconds,
        "p50": float(p50),
        "p95": float(p95),
        "p99": float(p99),
        "lost": lost,
        "doubled": doubled,
        "wrong": wrong,
        "age": float(np.median([float(age) for one in people for age in one.ages] or [np.nan])),
        "megabytes": sum(server for server, _ in memory),
        "fit megabytes": sum(fits for _, fits in memory),
        "killed": killing.done,
        "cpu": busy / seconds,
    }


def windows_of(people: list[Person], seconds: float) -> list[tuple[int, float, float, float]]:
    """Waits by the five seconds that they began in: how many, their median, 95th of 100, and longest (ms).

    Args:
        people: who waited.
        seconds: from the begin.
    """
    moments = np.array([moment for person in people for moment in person.moments])
    waits = np.array([ms for person in people for ms in person.waited])
    windows = []
    for start in np.arange(0.0, seconds, WINDOW):
        of_window = waits[(moments >= start) & (moments < start + WINDOW)]
        p50, p95, most = np.percentile(of_window, [50, 95, 100]) if of_window.size else [np.nan] * 3
        windows.append((int(of_window.size), float(p50), float(p95), float(most)))
    return windows


def line(found: dict[str, Any]) -> str:
    """A row of the table."""
    return (
        f"| {found['people']} x {found['rate']:g}/s | {found['pool']} | {found['database']} | "
        f"{found['a second']:.1f} of {found['offered'] / found['seconds']:.1f} | "
        f"{found['p50']:.0f} | {found['p95']:.0f} | {found['p99']:.0f} | "
        f"{found['lost']}, {found['doubled']}, {found['wrong']} | {found['age']:.0f} | "
        f"{found['megabytes']:.0f} + {found['fit megabytes']:.0f} | {found['cpu']:.2f} | "
        f"{found['killed'][0]}, {found['killed'][1]} |"
    )


def cold() -> list[tuple[str, float, float]]:
    """(title, measured, goal) of fifty people at a server that was just started, for lists of waits."""
    result = hall(50, seconds=20.0, pool="overlapping", cold=True)
    rows = []
    for number, (_, _, p95, most) in enumerate(result["windows"]):
        title = f"fifty people, seconds {number * WINDOW:.0f} to {(number + 1) * WINDOW:.0f}"
        rows += [(f"{title}, p95 ms", p95, P95), (f"{title}, longest ms", most, LONGEST)]
    return rows


def hundred() -> list[tuple[str, float, float]]:
    """(title, measured, goal) of a hundred people with the server on one core, for lists of waits."""
    result = hall(100, seconds=30.0, apart=True)
    waiting = 100 * (1.0 - result["answers"] / result["offered"])
    return [
        ("a hundred people, p95 ms", result["p95"], P95),
        ("a hundred people, % of answers not taken in time", waiting, 100 * (1.0 - ANSWERED)),
    ]


def _cold(options: argparse.Namespace) -> int:
    """Print the windows of cold halls; 1 where an answer was lost, doubled or wrong, or a goal was missed."""
    print(
        "| people | seconds | requests | p50 ms | p95 ms | longest ms |",
        "|---|---|---|---|---|---|",
        sep="\n",
    )
    missed = False
    for n_people in options.people:
        result = hall(
            n_people,
            options.rate,
            options.seconds,
            classifier=options.classifier,
            pool=options.pool or "overlapping",
            cold=True,
        )
        for number, (n, p50, p95, most) in enumerate(result["windows"]):
            start = number * WINDOW
            span = f"{start:.0f} to {start + WINDOW:.0f}"
            print(f"| {n_people} | {span} | {n} | {p50:.0f} | {p95:.0f} | {most:.0f} |", flush=True)
            missed |= not (p95 <= P95 and most <= LONGEST)
        missed |= bool(result["lost"] or result["doubled"] or result["wrong"])
    return int(missed)


def main(arguments: list[str]) -> int:
    """Print a row for each hall; 1 where an answer was lost, doubled or wrong, or a goal was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks hall", description=__doc__)
    parser.add_argument("--people", type=int, nargs="+", default=[1, 20, 50])
    parser.add_argument("--rate", type=float, default=1.0, help="answers a second and person")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument(
        "--pool", default="", help="banking77, or one of the catalogue, in place of the table"
    )
    parser.add_argument("--classifier", default="logistic-regression")
    parser.add_argument("--database", default="", help="URL of an empty PostgreSQL database; SQLite without")
    parser.add_argument("--servers", type=int, default=1, help="on one PostgreSQL database")
    parser.add_argument("--kills", type=int, default=0, help="of a server, while people answer")
    parser.add_argument("--fit-kills", type=int, default=0, help="of the process that fits")
    parser.add_argument("--fit", choices=["", "inline"], default="", help="WORKBENCH_FIT")
    parser.add_argument(
        "--apart", action="store_true", help="server and fits on one core, clients on the others"
    )
    parser.add_argument("--cold", action="store_true", help="windows of a server that was just started")
    parser.add_argument("--quick", action="store_true", help="five people for five seconds")
    given = parser.parse_args(arguments)
    if given.servers > 1 and not given.database:
        parser.error("several servers need --database")
    if given.quick:
        given.people, given.seconds, given.items = [5], 5.0, 2_000
    if given.cold:
        return _cold(given)
    print(
        "| people | pool | database | answers a second of those offered | p50 ms | p95 ms | p99 ms | "
        "lost, doubled, wrong | labels since the model's fit, median | MB of servers + of fits | "
        "processors | kills of the server, of fits |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        sep="\n",
    )
    missed = False
    for people in given.people:
        found = hall(
            people,
            given.rate,
            given.seconds,
            given.items,
            given.classifier,
            given.database,
            given.servers,
            given.kills,
            given.fit_kills,
            given.fit,
            given.pool,
            apart=given.apart,
        )
        print(line(found), flush=True)
        missed |= bool(found["lost"] or found["doubled"] or found["wrong"])
        missed |= found["answers"] < ANSWERED * found["offered"]
        missed |= found["p50"] > P50 or found["p95"] > P95 or found["p99"] > P99
    return 1 if missed else 0
