"""The machine misbehaves while a person labels: told in one sentence, nothing that was acknowledged is lost.

A full disk (a small one of its own where this user may mount one, else a limit on the size of files), a home
that cannot be written, a database that another program keeps locked, a clock that goes back and forth, a pool
whose file is gone or changed, a database of a newer version: each in turn.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import numpy as np

from benchmarks.trials import Row
from benchmarks.trials._sessions import CONSTANT, Child
from workbench.errors import InputError
from workbench.exchange.rows import StoredLabels, label_table
from workbench.registry import trust
from workbench.sessions import Operation, Session
from workbench.sessions.opening import relocate
from workbench.store import Store, database

Kind = Callable[[Path, np.random.Generator], list[str]]
_NOBODY = 65534
_LINE = 1500
MOUNTS = True
"""Whether a full disk is one of its own, where this user may mount one."""


def run(count: int = 60, seed: int = 0) -> Row:
    """Try `count` times, over the conditions in turn.

    Args:
        count: how often.
        seed: of the moments.
    """
    trust(CONSTANT)
    failures: list[str] = []
    counts: dict[str, int] = {}
    for number in range(count):
        name = list(KINDS)[number % len(KINDS)]
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)  # one of the children is another user
            try:
                wrong = KINDS[name](Path(folder), np.random.default_rng([seed, number]))
            except Exception as error:
                wrong = [f"{type(error).__name__}: {str(error)[:200]}"]
        counts[name] = counts.get(name, 0) + 1
        failures += [f"{number} {name}: {line}" for line in wrong]
    return Row.of(
        "full, read-only, locked, clock back, pool gone, newer database", count, failures, counts=counts
    )


# --------------------------------------------------------------------------- what they share


def _made(home: Path, n: int = 400) -> str:
    """A project in a database of its own."""
    home.mkdir(parents=True, exist_ok=True)
    store = Store.open(home / "w.sqlite")
    options = {"n_items": n, "seed": 0}
    made = Session.create(
        "three-gaussians",
        pool_options=options,
        classifier=CONSTANT,
        policy="margin",
        store=store,
        annotator="ann",
        evaluation_share=0.0,
    )
    store.close()
    return made.id


def _label(session: Session, say: Callable[[str], None], key: str, most: int) -> str:
    """Label until something is refused; the sentence, or "" where nothing was."""
    for step in range(most):
        try:
            (ask,) = session.ask()
            name = session.classes[step % len(session.classes)]
            (done,) = session.apply([Operation(f"{key}-{step}", "label", ask=ask.id, label=name)])
            if done.status == "saved":
                say(f"saved {key}-{step}")
            if step % 5 == 4:
                session.refit()
        except InputError as error:
            return str(error)
    return ""


def _worked(
    home: Path, project: str, key: str, most: int, before: Callable[[], None]
) -> tuple[set[str], str]:
    """Answers that a labelling child was told are saved, and the words at which it could go on no more."""

    def work(say: Callable[[str], None]) -> None:
        before()
        try:
            session = Session.open(project, store=Store.open(home / "w.sqlite"), annotator="ann")
            said = _label(session, say, key, most)
        except InputError as error:
            said = str(error)
        say("told " + " ".join(said.split()))

    child = Child(work)
    lines, status = child.end()
    saved = {line.partition(" ")[2] for line in lines if line.startswith("saved ")}
    told = [line.partition(" ")[2] for line in lines if line.startswith("told")]
    return saved, told[0] if told and status == 0 else f"(no sentence; the program ended with {status})"


def _after(home: Path, project: str, saved: set[str]) -> list[str]:
    """With everything as it was before: all that was acknowledged is there once, and labelling goes on."""
    store = Store.open(home / "w.sqlite")
    try:
        session = Session.open(project, store=store, annotator="ann")
        stored = [str(e.operation) for e in session.log.events if e.operation]
        lines = [f"{key} was acknowledged and is lost" for key in saved - set(stored)]
        lines += ["an operation is stored twice"] if len(stored) != len(set(stored)) else []
        n = session.state.n_labelled
        said = _label(session, lambda line: None, "after", 3)
        lines += [f"labelling does not go on: {said}"] if said or session.state.n_labelled <= n else []
        return lines
    finally:
        store.close()


def _sentence(said: str, *words: str) -> list[str]:
    """A line where what was said is no sentence with one of these words in it."""
    plain = said.endswith(".") and "Traceback" not in said and len(said) < _LINE
    return [] if plain and any(word in said for word in words) else [f"it said: {said[:200]!r}"]


@contextlib.contextmanager
def _small_disk(place: Path, megabytes: int) -> Iterator[bool]:
    """A disk of its own at a place, where this user may mount one."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", str(place)]
    try:
        mounted = MOUNTS and subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(place)], check=True)


# --------------------------------------------------------------------------- the conditions


def full(folder: Path, rng: np.random.Generator) -> list[str]:
    """No room left, at one moment or another."""
    home = folder / "home"
    with _small_disk(home, 4) as mounted:
        project = _made(home)
        if mounted:
            ballast = home / "ballast"
            room = os.statvfs(home).f_bavail * os.statvfs(home).f_frsize
            ballast.write_bytes(bytes(max(0, room - int(rng.integers(0, 200_000)))))
            saved, said = _worked(home, project, "k", 300, lambda: None)
            ballast.unlink()
            lines = _sentence(said, f"The disk of {home} is full")
        else:
            most = (home / "w.sqlite").stat().st_size + int(rng.integers(0, 100_000))

            def small() -> None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

            saved, said = _worked(home, project, "k", 300, small)
            lines = _sentence(said, "Make room", "is full")
        return lines + _after(home, project, saved)


def read_only(folder: Path, rng: np.random.Generator) -> list[str]:
    """A home that may be read and not written."""
    home = folder / "home"
    project = _made(home)
    whole = bool(rng.integers(2))
    before = (home / "w.sqlite").read_bytes()

    def other() -> None:
        if os.geteuid() == 0:
            os.setgid(_NOBODY)
            os.setuid(_NOBODY)

    for path in home.iterdir():
        path.chmod(0o444)
    home.chmod(0o555 if whole else 0o777)
    saved, said = _worked(home, project, "k", 3, other)
    home.chmod(0o700)
    for path in home.iterdir():
        path.chmod(0o600)
    lines = _sentence(said, "cannot be opened for writing", "cannot be made or written")
    lines += ["an answer was acknowledged"] if saved else []
    lines += ["the database has changed"] if (home / "w.sqlite").read_bytes() != before else []
    return lines + _after(home, project, saved)


def locked(folder: Path, rng: np.random.Generator) -> list[str]:
    """Another program that has begun to write and does not end."""
    home = folder / "home"
    project = _made(home)
    with mock.patch.object(database, "LOCKED_SECONDS", 0.2):
        store = Store.open(home / "w.sqlite")
        try:
            session = Session.open(project, store=store, annotator="ann")
            saved: set[str] = set()
            _label(session, lambda line: saved.add(line.split()[1]), "k", int(rng.integers(1, 12)))
            (ask,) = session.ask()
            late = Operation("late", "label", ask=ask.id, label=session.classes[0])
            holder = sqlite3.connect(home / "w.sqlite", isolation_level=None)
            holder.execute("BEGIN IMMEDIATE")
            try:
                session.apply([late])
                lines = ["an answer was taken that cannot be stored"]
            except InputError as error:
                lines = _sentence(str(error), "locked")
            holder.execute("ROLLBACK")
            holder.close()
            if session.apply([late])[0].status != "saved":
                lines.append("the same answer is not taken once the lock is gone")
        finally:
            store.close()
    return lines + _after(home, project, saved | {"late"})


def clock_back(folder: Path, rng: np.random.Generator) -> list[str]:
    """The clock jumps by up to two days, back and forth, while two people label."""
    home = folder / "home"
    project = _made(home)
    shift = [0.0]
    real = time.time

    def now() -> str:
        return datetime.fromtimestamp(real() + shift[0], UTC).isoformat(timespec="milliseconds")

    saved: set[str] = set()
    store = Store.open(home / "w.sqlite")
    try:
        shared = Session.open(project, store=store, annotator="ann")
        people = [shared, shared.as_annotator("bob")]
        with (
            mock.patch("time.time", lambda: real() + shift[0]),
            mock.patch("workbench.store.log.now", now),
        ):
            lines = []
            for step in range(40):
                shift[0] = float(rng.uniform(-172_800, 172_800)) if step % 4 == 0 else shift[0]
                who = people[step % 2]
                said = _label(who, lambda line: saved.add(line.split()[1]), f"k{step}", 1)
                lines += [f"refused: {said}"] if said else []
        votes = [len(votes) for votes in shared.state.votes.values()]
        lines += ["two people were asked about one item"] if max(votes, default=0) > 1 else []
        lines += [f"{len(saved)} of 40 answers were taken"] if len(saved) != 40 else []
    finally:
        store.close()
    return lines + _after(home, project, saved)


def pool_gone(folder: Path, rng: np.random.Generator) -> list[str]:
    """The pool's file is removed, cut, or changed, and comes back somewhere else."""
    home, file = folder / "home", folder / "rows.csv"
    rows = [f"r{i},{rng.normal():.4f},{rng.normal():.4f}" for i in range(60)]
    file.write_text("id,a,b\n" + "\n".join(rows) + "\n")
    home.mkdir()
    store = Store.open(home / "w.sqlite")
    try:
        session = Session.create(
            str(file),
            pool_options={"id_column": "id"},
            classes=["x", "y"],
            classifier=CONSTANT,
            policy="margin",
            annotator="ann",
            store=store,
        )
        saved: set[str] = set()
        _label(session, lambda line: saved.add(line.split()[1]), "k", int(rng.integers(1, 20)))
        n = session.state.n_labelled
        kept = folder / "elsewhere.csv"
        kept.write_bytes(file.read_bytes())
        how = int(rng.integers(3))
        if how == 0:
            file.unlink()
        else:
            file.write_text("id,a,b\n" + "\n".join(rows[:30] if how == 1 else ["r0,9,9", *rows[1:]]) + "\n")
        try:
            Session.open(session.id, store=store)
            lines = ["it opens on another pool"]
        except InputError as error:
            lines = _sentence(str(error), "rows.csv", "workbench relocate")
        given = [row for row in label_table(StoredLabels.of(session.id, store)) if row["label"]]
        lines += [f"{len(given)} of {n} labels are exported"] if len(given) != n else []
        relocate(session.id, kept, store=store)
    finally:
        store.close()
    return lines + _after(home, session.id, saved)


def newer(folder: Path, rng: np.random.Generator) -> list[str]:
    """The database was written by a version that is not there yet."""
    home = folder / "home"
    project = _made(home)
    known = _version(home / "w.sqlite", f"9{int(rng.integers(1000)):03}")
    lines = []
    try:
        Store.open(home / "w.sqlite").close()
        lines.append("it was opened")
    except InputError as error:
        lines += _sentence(str(error), "does not know")
    _version(home / "w.sqlite", known)
    return lines + _after(home, project, set())


def _version(path: Path, new: str) -> str:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (known,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        connection.execute("UPDATE alembic_version SET version_num = ?", (new,))
        connection.commit()
    return str(known)


KINDS: dict[str, Kind] = {
    "full": full,
    "read-only": read_only,
    "locked": locked,
    "clock": clock_back,
    "pool": pool_gone,
    "newer": newer,
}
