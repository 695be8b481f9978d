"""One answer however it is reached: fits gone on with beside fits begun anew, and rows in another order.

`python -m benchmarks warm [--quick] [--classifiers ...] [--labels N] [--step N]`: digits of 8 x 8 and the
table `texture` of PMLB, one geometry of the pool. A fit that grew from ten labels on, a few at a time, and
one of the same rows in another order, each beside one begun anew: the largest difference in a probability of
500 items, the items whose class differs, and the errors. Goal of the default: 0.035 in every probability (*
misses it). What it chooses depends on the labels that it had when it looked, so it is there twice, once
without a choice.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.classifiers import CLASSIFIERS, make_classifier
from workbench.classifiers.geometry import Geometry
from workbench.classifiers.protocols import options_of
from workbench.errors import InputError
from workbench.pools import load_pool

SETS = ("digits", "pmlb:texture")
GOAL = 0.035
_TESTED = 500


def differences(
    name: str, X: Floats, y: Ints, n: int, step: int, options: Mapping[str, Any] | None = None
) -> str:
    """One line's figures: warm against cold, another order against this one.

    Args:
        name: of the classifier.
        X: [N, D] rows, the first n of them labelled.
        y: [N] codes.
        n: labels.
        step: labels between two warm fits.
        options: of the classifier.
    """
    C, test, truth = int(y.max()) + 1, X[-_TESTED:], y[-_TESTED:]
    shared: dict[str, Any] = {"random_state": 0, "classes": range(C), **(options or {})}
    taken = options_of(make_classifier(name))
    if "geometry" in taken:
        measuring: Any = make_classifier(name, **shared)
        pool = X[:-_TESTED]
        has_own = hasattr(measuring, "measure")
        shared["geometry"] = measuring.measure(pool, 0) if has_own else Geometry.of(pool, 64, 0)

    def fitted(rows: Ints, warm: bool = False) -> Floats:
        model: Any = make_classifier(name, **shared | ({"warm_start": True} if warm else {}))
        for m in range(10 + (n - 10) % step, n, step) if warm else ():
            model.fit(X[rows[:m]], y[rows[:m]])
        p: Floats = np.asarray(model.fit(X[rows], y[rows]).predict_proba(test))
        return p

    rows = np.arange(n)
    cold = fitted(rows)
    cells = []
    for other in (
        fitted(rows, warm=True) if "warm_start" in taken else None,
        fitted(np.random.default_rng(1).permutation(n)),
    ):
        if other is None:
            cells.append("no warm start")
            continue
        moved = int((other.argmax(axis=1) != cold.argmax(axis=1)).sum())
        gap, error = float(np.abs(other - cold).max()), float((other.argmax(axis=1) != truth).mean())
        mark = "*" if gap > GOAL else ""
        cells.append(f"{gap:.3f}{mark}, {moved} moved, error {error:.3f}")
    return f"error {float((cold.argmax(axis=1) != truth).mean()):.3f} | " + " | ".join(cells)


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks warm", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the default, 30 labels")
    parser.add_argument("--classifiers", nargs="*", default=tuple(CLASSIFIERS))
    parser.add_argument("--labels", type=int, default=100)
    parser.add_argument("--step", type=int, default=10, help="labels between two warm fits")
    given = parser.parse_args(arguments)
    if given.quick:
        given.classifiers, given.labels = ("large-margin",), 30
    print("| set | classifier | begun anew | gone on with | another order | s |\n|---|---|---|---|---|---|")
    for name in SETS:
        pool = load_pool(name)
        order = np.random.default_rng(0).permutation(len(pool))[:1500]
        X, y = np.asarray(pool.features, dtype=np.float64)[order], np.asarray(pool.truth)[order]
        lines: list[tuple[str, dict[str, Any]]] = [(classifier, {}) for classifier in given.classifiers]
        if "large-margin" in given.classifiers:  # of the default alone, without what it chooses on its way
            lines.insert(0, ("large-margin", {"choice": "fixed"}))
        for classifier, options in lines:
            began = time.process_time()
            try:
                said = differences(classifier, X, y, given.labels, given.step, options)
            except (InputError, ValueError) as error:
                said = f"not possible: {error} | |"
            called = ", ".join([classifier, *(f"{key}={value}" for key, value in options.items())])
            print(f"| {name} | {called} | {said} | {time.process_time() - began:.0f} |", flush=True)
    return 0
