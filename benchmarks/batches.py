"""Batches: how many labels k-means and BADGE save at the same budget, on sets of PMLB.

`python -m benchmarks batches [--quick]`: the mean test error over the rounds as a ratio to asking at random,
in batches of ten. Sets, seeds and selectors are options; all sides run in one process, paired by seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from workbench.pools import load_pool
from workbench.sessions import simulate

SETS = (
    "vehicle",
    "vowel",
    "car_evaluation",
    "german",
    "balance_scale",
    "mfeat_karhunen",
    "yeast",
    "optdigits",
)
SELECTORS = ("k-means", "badge", "covariance", "top")


def area(name: str, policy: str, selector: str, seed: int, batch: int, rounds: int) -> float:
    """Mean test error over the rounds after the first."""
    pool = load_pool(f"pmlb:{name}")
    done = simulate(
        pool, "large-margin", policy, budget=batch * rounds, batch=batch, seed=seed, selector=selector
    )
    return float(np.mean([r.error for r in done if r.number]))


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table; the geometric mean of the ratios is the last row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks batches", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two sets, one seed, five rounds")
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--selectors", nargs="*", default=SELECTORS)
    parser.add_argument("--policy", default="margin")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args(arguments)
    if given.quick:
        given.sets, given.seeds, given.rounds = given.sets[:2], 1, 5
    print("| set | random |", " | ".join(given.selectors), "|")
    print("|---" * (2 + len(given.selectors)) + "|")
    ratios = []
    for name in given.sets:
        seeds = range(given.seeds)
        base = [area(name, "random", "auto", s, given.batch, given.rounds) for s in seeds]
        mine = [
            [area(name, given.policy, one, s, given.batch, given.rounds) for s in seeds]
            for one in given.selectors
        ]
        ratios.append(np.mean(mine, axis=1) / np.mean(base))
        print(
            f"| {name} | {np.mean(base):.3f} |", " | ".join(f"{r:.3f}" for r in ratios[-1]), "|", flush=True
        )
    means = np.exp(np.log(ratios).mean(axis=0))
    print("| geometric mean | |", " | ".join(f"{m:.3f}" for m in means), "|")
    return 0
