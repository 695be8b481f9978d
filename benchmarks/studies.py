"""What a study costs over its rounds run bare, and where a round's time goes.

    python -m benchmarks.studies [--quick]

Both sides run the same rounds in this process, alternated, and are compared by process time; the
second part counts the processor time of the driver and its workers against the bare rounds.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from workbench.sessions import simulate
from workbench.studies import StudySpec, run_study
from workbench.studies.workers import pool_of

POLICIES = ("variation-ratio", "margin", "entropy-of-means", "random")


def bare(spec: StudySpec) -> tuple[float, Counter[str]]:
    """Process seconds of the rounds themselves, and of their parts."""
    parts: Counter[str] = Counter()
    began = process_time()
    for one in spec.runs():
        for r in simulate(pool_of(one), one.classifier, one.policy, budget=one.budget, seed=one.seed):
            parts.update(r.seconds)
    return process_time() - began, parts


def kept(spec: StudySpec) -> float:
    """Process seconds of the study in a folder, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        began = process_time()
        run_study(spec, out=Path(folder) / "s")
        return process_time() - began


def all_processor_seconds() -> float:
    """Of this process and its ended children."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 seeds and 20 labels, once")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    seeds, budget, repeats = (2, 20, 2) if given.quick else (10, 60, 2)
    spec = StudySpec("bench", policies=POLICIES, seeds=seeds, budget=budget)
    small = StudySpec("warm", policies=POLICIES, seeds=1, budget=3)
    bare(small)  # compiles
    rounds = sum(one.n_rounds for one in spec.runs())
    pairs, parts = [], Counter[str]()
    for _ in range(repeats):
        plain, parts = bare(spec)
        pairs.append((plain, kept(spec)))
    plain, whole = np.median(np.asarray(pairs), axis=0)
    print(f"{rounds} rounds of {spec.pools[0]}, {len(POLICIES)} policies, {seeds} seeds, {budget} labels")
    print(f"bare, in this process          {plain:7.2f} CPU s  {1e3 * plain / rounds:6.2f} ms a round")
    print(f"kept in a folder, this process {whole:7.2f} CPU s  overhead {100 * (whole / plain - 1):+.1f} %")
    total = sum(parts.values())
    for name, seconds in parts.most_common():
        print(f"  {name:6s} {100 * seconds / total:5.1f} % of a round's wall time")
    # starting processes and importing TensorFlow there is paid once a study: measured by a tiny one
    before = all_processor_seconds()
    with tempfile.TemporaryDirectory() as folder:
        run_study(small, out=Path(folder) / "s", workers=given.workers)
    started = all_processor_seconds() - before
    before, clock = all_processor_seconds(), perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run_study(spec, out=Path(folder) / "s", workers=given.workers)
    spent, wall = all_processor_seconds() - before, perf_counter() - clock
    beyond = spent - started
    print(f"{given.workers} workers, start-up                {started:6.2f} CPU s, once a study")
    print(
        f"{given.workers} workers, driver and all          {beyond:6.2f} CPU s without start-up, overhead "
        f"{100 * (beyond / plain - 1):+.1f} %; {wall:.1f} s by the clock"
    )


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    main()
