"""Expected time of a study on this machine, from a few of its own rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

from workbench.pools.pool import Pool
from workbench.progress import OnProgress
from workbench.sessions.simulate import simulate_spec
from workbench.sessions.spec import RunSpec
from workbench.studies.spec import StudySpec

# a round of the study moves the model less than a leap of the probe, and the machine may be busier than now
FASTEST, SLOWEST = 0.4, 1.5


class Expected(NamedTuple):
    """Wall time of a study.

    Attributes:
        low: seconds, if rounds are as much quicker than those measured as warm starts can make them.
        high: seconds, with a busier machine than now.
        rounds: how many were measured.
    """

    low: float
    high: float
    rounds: int


def expected_time(
    spec: StudySpec,
    load: Callable[[RunSpec], Pool],
    report: OnProgress,
    *,
    workers: int = 1,
    clock: Callable[[], float] = perf_counter,
) -> Expected:
    """Run each policy in leaps to its last label, and reckon from the time of its rounds.

    Args:
        spec: of the study.
        load: gives the pool of a run.
        report: called with (fraction, what is being done); may raise `Cancelled`.
        workers: processes that share the runs.
        clock: seconds.

    Returns:
        A range: the rounds measured lie further apart than the study's.
    """
    first = [run for run in spec.runs() if run.seed == 0]
    total, measured = 0.0, 0
    for place, run in enumerate(first):
        report(place / len(first), f"timing {run.policy}")
        pool = load(run)
        leap = max(run.batch, -(-run.budget // 2))
        times, began = [], clock()
        for _ in simulate_spec(replace(run, batch=leap), pool):
            moment = clock()
            times.append(moment - began)
            began = moment
            report((place + min(len(times), 3) / 3) / len(first), f"timing {run.policy}")
        # what the first costs beyond the others is paid once: libraries, compiling
        rest = times[1:] or times
        total += sum(rest) / len(rest) * run.n_rounds * spec.seeds
        measured += len(rest)
    return Expected(FASTEST * total / workers, SLOWEST * total / workers, measured)
