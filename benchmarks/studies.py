"""What a study costs over its rounds run bare, and where a round's time goes.

    python -m benchmarks.studies [--quick] [--workers 2] [--repeats 1]

Bare: `simulate` and nothing else, in this process or in as many others as the study has workers, each
with one thread and its share of the runs. Kept: `run_study` with its folder, each round durable. Both
are compared by processor time, of all processes together, after each process has imported and compiled
what it needs; that start-up is paid once a study and printed by itself. With workers the time by the
clock is printed, too.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from workbench.sessions import simulate
from workbench.sessions.spec import RunSpec
from workbench.studies import StudySpec, run_study
from workbench.studies.workers import pool_of, prepare_process

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
    prepare_process()
    bare(runs)
    together.wait()


def bare_elsewhere(spec: StudySpec, small: StudySpec, workers: int) -> tuple[float, float]:
    """Processor and wall seconds of the rounds in as many processes, after their start-up."""
    shares = [spec.runs()[i::workers] for i in range(workers)]
    context = multiprocessing.get_context("spawn")
    start = (small.runs(), context.Barrier(workers))
    with ProcessPoolExecutor(workers, context, initializer=_ready, initargs=start) as pool:
        list(pool.map(abs, range(workers)))
        began = perf_counter()
        spent = sum(seconds for seconds, _ in pool.map(bare, shares))
        return spent, perf_counter() - began


def kept_elsewhere(spec: StudySpec, workers: int) -> tuple[float, float]:
    """Processor and wall seconds of the study with workers, driver and start-up included."""
    before, began = all_processor_seconds(), perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run_study(spec, out=Path(folder) / "s", workers=workers)
    return all_processor_seconds() - before, perf_counter() - began


def all_processor_seconds() -> float:
    """Of this process and its ended children."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 seeds and 20 labels")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1)
    given = parser.parse_args()
    prepare_process()
    seeds, budget = (2, 20) if given.quick else (10, 60)
    spec = StudySpec("bench", policies=POLICIES, seeds=seeds, budget=budget)
    small = StudySpec("warm", policies=POLICIES, seeds=1, budget=3)
    bare(small.runs())  # compiles
    rounds = sum(one.n_rounds for one in spec.runs())
    here, parts = [], Counter[str]()
    for _ in range(given.repeats):
        plain, parts = bare(spec.runs())
        here.append((plain, kept(spec)))
    plain, whole = np.median(np.asarray(here), axis=0)
    print(f"{rounds} rounds of {spec.pools[0]}, {len(POLICIES)} policies, {seeds} seeds, {budget} labels")
    print(f"bare, in this process       {plain:7.2f} CPU s  {1e3 * plain / rounds:6.2f} ms a round")
    print(f"kept, in this process       {whole:7.2f} CPU s  overhead {100 * (whole / plain - 1):+.1f} %")
    total = sum(parts.values())
    for name, seconds in parts.most_common():
        print(f"  {name:6s} {100 * seconds / total:5.1f} % of a round's wall time")
    there = []
    for _ in range(given.repeats):
        spent, wall = bare_elsewhere(spec, small, given.workers)
        started, started_wall = kept_elsewhere(small, given.workers)
        all_spent, all_wall = kept_elsewhere(spec, given.workers)
        there.append((spent, wall, started, started_wall, all_spent - started, all_wall - started_wall))
    spent, wall, started, started_wall, beyond, beyond_wall = np.median(np.asarray(there), axis=0)
    over, over_wall = 100 * (beyond / spent - 1), 100 * (beyond_wall / wall - 1)
    print(
        f"{given.workers} workers, start-up         {started:7.2f} CPU s  {started_wall:6.2f} s by the clock"
    )
    print(f"{given.workers} workers, bare             {spent:7.2f} CPU s  {wall:6.2f} s by the clock")
    print(
        f"{given.workers} workers, driver and all   {beyond:7.2f} CPU s  {beyond_wall:6.2f} s by the clock, "
        f"overhead {over:+.1f} % and {over_wall:+.1f} %"
    )


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    main()
