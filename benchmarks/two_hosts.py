"""Work on a Dask cluster of two hosts, one of which is lost in the middle: the same tables, nothing lost.

The hosts are two network namespaces of this machine, joined by a cable of their own: the scheduler, a worker
and the program in one, a worker in the other. The other host is killed (its processes are gone at once), or
its cable is pulled (nothing comes from it any more, and nobody says so), while it works at a study, a scan of
a table and attacks. Makes namespaces, so it needs root and Linux's `ip`.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
HEAD, OTHER = "10.203.77.1", "10.203.77.2"
PORT = 8786
PROCESS = ("-m", "dask")
NOT_TABLES = {"timings.csv", "environment.json"}
WAYS = ("killed", "cable pulled")
WORKS = ("study", "scan", "attacks")
SCAN_ROWS = 2_000_000
WORKS_ROWS = tuple(f"| {name} |" for name in WORKS)


def why_not() -> str:
    """Reason why this machine cannot be two hosts; "" where it can."""
    if shutil.which("ip") is None:
        return "there is no `ip` on the PATH"
    name = f"wb-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"no network namespace can be made: {made.stderr.strip()}"
    _ip("netns", "del", name)
    return ""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@dataclass
class Hosts:
    """Two hosts: a scheduler and a worker in the namespace `head`, a worker in `other`.

    Attributes:
        head, other: names of the namespaces.
        log: file that Dask's processes write to.
    """

    head: str
    other: str
    log: Path
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The scheduler's."""
        return f"tcp://{HEAD}:{PORT}"

    def start(self, name: str, host: str, *words: str) -> None:
        """Start a process of Dask in a namespace."""
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        with self.log.open("ab") as log:
            self._processes[name] = subprocess.Popen(
                ["ip", "netns", "exec", host, sys.executable, *PROCESS, *words, "--no-dashboard"],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def work_at(self, name: str) -> None:
        """Start a worker on the host of this name."""
        where, host = (HEAD, self.head) if name == "head" else (OTHER, self.other)
        self.start(name, host, "worker", self.address, "--nthreads", "1", "--host", where)

    def kill(self, name: str) -> None:
        """End a process and all that it started, as a power cut would."""
        process = self._processes.pop(name, None)
        if process is None:
            return
        pids = [process.pid]
        if name == "other":  # a nanny's workers are sessions of their own
            listed = subprocess.run(
                ["ip", "netns", "pids", self.other], capture_output=True, text=True, check=True
            )
            pids += map(int, listed.stdout.split())
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def lose(self, way: str) -> None:
        """Lose the other host."""
        if way == "killed":
            self.kill("other")
        else:
            _ip("-n", self.other, "link", "set", "cable", "down")

    def mend(self) -> None:
        """Plug the cable in, and start the other host anew."""
        self.kill("other")
        _ip("-n", self.other, "link", "set", "cable", "up")
        self.work_at("other")

    def end(self) -> None:
        """End all processes."""
        for name in list(self._processes):
            self.kill(name)


@contextmanager
def namespaces() -> Iterator[tuple[str, str]]:
    """Two network namespaces with a cable between them."""
    head, other = f"wb-head-{os.getpid()}", f"wb-other-{os.getpid()}"
    try:
        for name in (head, other):
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", head, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", other)
        for name, address in ((head, HEAD), (other, OTHER)):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", "cable")
            _ip("-n", name, "link", "set", "cable", "up")
        yield head, other
    finally:
        for name in (head, other):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


# --------------------------------------------------------------------------- the works


def attacked(seed: int) -> str:
    """Table of the attacks on a model of its own, as CSV; called by the workers."""
    from workbench.studies.attacks import AttackSpec, attack_experiment

    spec = AttackSpec(
        n_train=150, n_test=30, strengths=(0.0, 0.1, 0.2), attacks=("fgsm", "noise"), steps=5, seed=seed
    )
    return str(attack_experiment(spec).robustness.table().to_csv(index=False))


Begun = Callable[[], None]
"""Told again and again that some of the work is done."""


def study(folder: Path, scheduler: str | None, begun: Begun) -> Any:
    """A comparison of two policies: the tables it wrote."""
    from workbench.studies import StudySpec, run_study

    spec = StudySpec("two hosts", pools=("iris", "wine"), policies=("margin", "random"), seeds=3, budget=8)
    n_rounds = 0

    def told(run: Any, finished: Any) -> None:
        nonlocal n_rounds
        n_rounds += 1
        if n_rounds > 4:
            begun()

    run_study(spec, told, out=folder, scheduler=scheduler)
    return folder


def scan(folder: Path, scheduler: str | None, begun: Begun) -> Any:
    """The rows of a table that a policy would ask about first."""
    from workbench.classifiers import make_classifier
    from workbench.policies.scan import score_pool

    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 10))
    codes = rng.integers(0, 4, size=80)
    labelled = centres[codes] + rng.normal(size=(80, 10))
    model = make_classifier("large-margin", random_state=0, n_inducing=32).fit(labelled, codes)
    place = folder.parent / "rows.npy"
    if not place.exists():
        np.save(place, rng.normal(size=(SCAN_ROWS, 10)))

    def progress(fraction: float) -> bool:
        if fraction > 0.1:
            begun()
        return False

    return score_pool(
        place, model, "margin", 50, chunk_rows=4_000, threads=1, scheduler=scheduler, progress=progress
    )


def attacks(folder: Path, scheduler: str | None, begun: Begun) -> Any:
    """Tables of attacks on six models."""
    from workbench import work

    jobs = [(seed,) for seed in range(6)]
    tables: dict[int, str] = {}
    with work.cluster(1, scheduler) if scheduler else work.threads(1) as workers:
        for index, table in work.spread(workers, attacked, jobs):
            tables[index] = table
            begun()
    return tables


def differing(one: Any, other: Any) -> list[str]:
    """Tables of two results that are not the same."""
    if isinstance(one, Path):
        names = [
            {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} for folder in (one, other)
        ]
        differ = filecmp.cmpfiles(one, other, names[0] & names[1], shallow=False)
        return sorted(
            name
            for name in (names[0] ^ names[1]) | {*differ[1], *differ[2]}
            if Path(name).name not in NOT_TABLES
        )
    if isinstance(one, dict):
        return [f"attacks {key}" for key in {*one, *other} if one.get(key) != other.get(key)]
    same = np.array_equal(one.indices, other.indices) and np.array_equal(one.utilities, other.utilities)
    return [] if same and one.n_scored == other.n_scored else ["scan"]


# --------------------------------------------------------------------------- the measurement


def measure(hosts: Hosts, ways: tuple[str, ...], works: tuple[str, ...]) -> None:
    """Print a row for each work and way of loss, in the head's namespace.

    Tables are compared with those of the undisturbed cluster, and these with those of this process alone.
    """
    from distributed import Client

    hosts.start("scheduler", hosts.head, "scheduler", "--host", HEAD, "--port", str(PORT))
    hosts.work_at("head")
    hosts.work_at("other")
    print("| work | other host | jobs it had | differ by the loss | from one process | s whole | s with it |")
    print("|---|---|---|---|---|---|---|")
    try:
        with Client(hosts.address, timeout=60, set_as_default=False) as client, _folder() as folder:
            client.wait_for_workers(2, timeout=120)
            for name in works:
                work = globals()[name]
                alone = work(folder / f"{name}-alone", None, _nothing)
                client.wait_for_workers(2, timeout=120)
                began = time.monotonic()
                whole = work(folder / f"{name}-both", hosts.address, _nothing)
                undisturbed = time.monotonic() - began
                n_alone = len(differing(alone, whole))
                for way in ways:
                    client.wait_for_workers(2, timeout=120)
                    n_had: list[int] = []

                    def lose(way: str = way, n_had: list[int] = n_had) -> None:
                        had = sum(len(keys) for at, keys in client.processing().items() if OTHER in at)
                        if had and not n_had:
                            n_had.append(had)
                            hosts.lose(way)

                    began = time.monotonic()
                    result = work(folder / f"{name}-{way}", hosts.address, lose)
                    seconds = time.monotonic() - began
                    n, had = len(differing(whole, result)), str(n_had[0]) if n_had else "never lost"
                    print(
                        f"| {name} | {way} | {had} | {n} | {n_alone} | {undisturbed:.0f} | {seconds:.0f} |",
                        flush=True,
                    )
                    hosts.mend()
    finally:
        hosts.end()


def _nothing() -> None:
    """Nobody is lost."""


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def tables_that_differ() -> int:
    """Number of tables that a loss changed.

    Raises:
        RuntimeError: this machine cannot be two hosts, or the work failed.
    """
    reason = why_not()
    if reason:
        raise RuntimeError(f"Not measured: {reason}.")
    return n_differing(on_two_hosts([]))


def n_differing(printed: str) -> int:
    """Tables that a loss changed in the rows of a measurement; a loss that never came counts as one."""
    rows = [line.split("|") for line in printed.splitlines() if line.startswith(WORKS_ROWS)]
    return sum(int(row[4]) + ("never" in row[3]) for row in rows)


def on_two_hosts(words: list[str]) -> str:
    """Rows of a measurement, whose program is on the first host.

    Raises:
        RuntimeError: it failed.
    """
    with namespaces() as (head, other):
        here = [sys.executable, "-m", "benchmarks.two_hosts", *words, "--hosts", head, other]
        done = subprocess.run(
            ["ip", "netns", "exec", head, *here], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
        )
    if done.returncode:
        raise RuntimeError(f"The work on two hosts ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def main(arguments: list[str]) -> int:
    """Print what came of each loss; 1 where a table differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks two_hosts", description=__doc__)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--hosts", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.hosts:
        with _folder() as folder:
            head, other = given.hosts
            hosts = Hosts(head, other, folder / "dask.log")
            try:
                measure(hosts, tuple(given.ways), tuple(given.works))
            except Exception:
                print(hosts.log.read_text(errors="replace")[-5000:], file=sys.stderr)
                raise
        return 0
    reason = why_not()
    if reason:
        print(f"Not measured: {reason}.")
        return 0
    printed = on_two_hosts(arguments)
    print(printed, end="")
    return int(n_differing(printed) > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
