"""Cost of a study over its rounds run bare, and the parts of a round's time.

    python -m benchmarks.studies [--quick] [--workers 2] [--profile]

Bare: `simulate` and nothing else, in this process or in as many others as the study has workers, each
with one thread and its share of the runs. Kept: `run_study` with its folder, each round durable. The two
take turns, two seeds at a time, and are compared by the processor time of all processes together, as the
machine may be busy with other things. What each process imports and compiles first is paid once a study
and printed by itself.
"""

from __future__ import annotations

import argparse
import cProfile
import multiprocessing
import os
import pstats
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import psutil

from workbench.engine.runtime import prepare
from workbench.sessions import simulate
from workbench.sessions.spec import RunSpec
from workbench.studies import StudySpec, run_study
from workbench.studies.workers import pool_of
from workbench.work.hosts import hosts

POLICIES = ("variation-ratio", "margin", "entropy-of-means", "random")


def bare(runs: list[RunSpec]) -> tuple[float, Counter[str]]:
    """Process seconds of the rounds themselves, and wall seconds of their parts."""
    parts: Counter[str] = Counter()
    began = process_time()
    for one in runs:
        for r in simulate(pool_of(one), one.classifier, one.policy, budget=one.budget, seed=one.seed):
            parts.update(r.seconds)
    return process_time() - began, parts


def kept(spec: StudySpec) -> float:
    """Process seconds of the study in a folder, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        began = process_time()
        run_study(spec, out=Path(folder) / "s")
        return process_time() - began


def _ready(runs: list[RunSpec], together: Any) -> None:
    prepare()
    bare(runs)
    together.wait()


def _cpu(process: psutil.Process) -> float:
    """Processor seconds of a process and its children."""
    return sum(sum(p.cpu_times()[:2]) for p in (process, *process.children(recursive=True)))


@dataclass(frozen=True)
class SomeSeeds(StudySpec):
    """A study without its first seeds: a turn of its own, in a folder of its own."""

    first: int = 0

    def runs(self) -> list[RunSpec]:
        """The runs from seed `first` on."""
        return [one for one in super().runs() if one.seed >= self.first]


def in_turns(spec: StudySpec, small: StudySpec, workers: int) -> Iterator[tuple[float, float, float, float]]:
    """Processor and wall seconds of both sides with the same workers: bare, kept, bare, kept, ...

    The first turn is `small`, the start-up of each side; then two more seeds at a time.
    """
    context = multiprocessing.get_context("spawn")
    start = (small.runs(), context.Barrier(workers))
    with (
        ProcessPoolExecutor(workers, context, initializer=_ready, initargs=start) as pool,
        tempfile.TemporaryDirectory() as folder,
        ExitStack() as later,
    ):
        list(pool.map(abs, range(workers)))
        before, began = process_time(), perf_counter()
        address = later.enter_context(hosts(workers))
        holder = next(p for p in psutil.Process().children() if "workbench.work.hosts" in p.cmdline())
        run_study(small, out=Path(folder) / "small", scheduler=address)
        yield 0.0, 0.0, process_time() - before + _cpu(holder), perf_counter() - began
        for first in range(0, spec.seeds, 2):
            turn = SomeSeeds(**vars(replace(spec, seeds=min(first + 2, spec.seeds))), first=first)
            runs = turn.runs()
            began = perf_counter()
            plain = sum(s for s, _ in pool.map(bare, [runs[i::workers] for i in range(workers)]))
            middle, before, others = perf_counter(), process_time(), _cpu(holder)
            run_study(turn, out=Path(folder) / f"from-{first}", scheduler=address)
            kept = process_time() - before + _cpu(holder) - others
            yield plain, middle - began, kept, perf_counter() - middle


def _room(file: str, name: str) -> str:
    """The package a function belongs to."""
    parts = Path(file).parts
    if "TFE_Py_Execute" in name:
        return "TensorFlow's graph"
    if "site-packages" in parts:
        return parts[parts.index("site-packages") + 1]
    if "workbench" in parts:
        return "/".join(parts[parts.index("workbench") :][:2])
    return "built in" if file == "~" else "Python's library"


def profile(spec: StudySpec, shown: int = 14) -> None:
    """Own time of the functions a round spends most in, in this process."""
    one = replace(spec, seeds=1).runs()[0]
    # of all threads: TensorFlow computes in its own
    profiler = cProfile.Profile(process_time)
    profiler.enable()
    n = sum(1 for _ in simulate(pool_of(one), one.classifier, one.policy, budget=one.budget, seed=one.seed))
    profiler.disable()
    stats = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    total = sum(own for _, _, own, _, _ in stats.values())
    rooms: Counter[str] = Counter()
    for (file, _, name), (_, _, own, _, _) in stats.items():
        rooms[_room(file, name)] += own / total
    print(f"profile of {n} rounds of {one.policy}: processor time by where it is spent")
    print("  " + ", ".join(f"{room} {100 * share:.0f} %" for room, share in rooms.most_common(8)))
    print(f"own time of {shown} functions")
    ordered = sorted(stats.items(), key=lambda entry: -entry[1][2])
    for (file, line, name), (_, calls, own, _, _) in ordered[:shown]:
        where = "/".join(Path(file).parts[-2:]) if line else "built in"
        print(
            f"  {100 * own / total:5.1f} %  {1e3 * own / n:6.3f} ms  {calls / n:7.1f} calls  {where}: {name}"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks studies", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 seeds and 20 labels")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--profile", action="store_true", help="only where a round's time goes")
    parser.add_argument("--only-workers", action="store_true", help="leave out the part in one process")
    given = parser.parse_args(arguments)
    prepare()
    seeds, budget = (2, 20) if given.quick else (10, 60)
    spec = StudySpec("bench", policies=POLICIES, seeds=seeds, budget=budget)
    small = StudySpec("warm", policies=POLICIES, seeds=1, budget=3)
    bare(small.runs())  # compiles
    if given.profile:
        profile(spec)
        return
    rounds = sum(one.n_rounds for one in spec.runs())
    print(f"{rounds} rounds of {spec.pools[0]}, {len(POLICIES)} policies, {seeds} seeds, {budget} labels")
    if not given.only_workers:
        here(spec, rounds)
    there(spec, small, given.workers)


def here(spec: StudySpec, rounds: int) -> None:
    """Print what a study costs in this process."""
    plain, parts = bare(spec.runs())
    whole = kept(spec)
    print(f"bare, in this process       {plain:7.2f} CPU s  {1e3 * plain / rounds:6.2f} ms a round")
    print(f"kept, in this process       {whole:7.2f} CPU s  overhead {100 * (whole / plain - 1):+.1f} %")
    total = sum(parts.values())
    for name, seconds in parts.most_common():
        print(f"  {name:6s} {100 * seconds / total:5.1f} % of a round's wall time")


def there(spec: StudySpec, small: StudySpec, workers: int) -> None:
    """Print what it costs with workers."""
    start, *turns = in_turns(spec, small, workers)
    print(f"{workers} workers, start-up         {start[2]:7.2f} CPU s  {start[3]:6.1f} s by the clock")
    spent, wall, beyond, beyond_wall = np.sum(turns, axis=0)
    print(f"{workers} workers, bare             {spent:7.2f} CPU s  {wall:6.1f} s by the clock")
    print(
        f"{workers} workers, driver and all   {beyond:7.2f} CPU s  {beyond_wall:6.1f} s by the clock, "
        f"overhead {100 * (beyond / spent - 1):+.1f} % and {100 * (beyond_wall / wall - 1):+.1f} %"
    )
    print("  turn by turn " + ", ".join(f"{100 * (k / b - 1):+.0f} %" for b, _, k, _ in turns))


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    main()
