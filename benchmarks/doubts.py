"""Doubt against error with few labels, for every classifier: does what a model says of new items come true?

`python -m benchmarks doubts [--quick] [--sets ...] [--classifiers ...] [--seeds N]`: ten tables of PMLB that
no constant was fitted to, labels drawn at random and labels that margin picked (by the large-margin model).
For each number of labels: the geometric mean of doubt / error (doubt is 1 - the largest probability, both
plus 0.01), how far the NLL lies above that with the best temperature (found on the truth, on log p), and the
share wrong of the items with a doubt below 10 %, all sets together. A line for each of the fifteen
classifiers in about ten minutes of one core; more seeds say it more exactly. Lines so far are said on stderr
after each set, and a run that was cut off goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from benchmarks.kept import UNSHARED, once
from workbench.arrays import Array, Floats, Ints
from workbench.classifiers import CLASSIFIERS, make_classifier
from workbench.classifiers.calibration import softmax
from workbench.errors import InputError
from workbench.pools import load_pool
from workbench.pools.building import number_pool
from workbench.sessions import simulate

SETS = (
    "vehicle",
    "phoneme",
    "car",
    "segmentation",
    "german",
    "optdigits",
    "magic",
    "ionosphere",
    "satimage",
    "spambase",
)
LABELS = {"random": (10, 20, 40, 80, 160), "margin": (10, 20, 40, 80)}
ABOVE = {"random": (0.05, 0.05, 0.025, 0.01, 0.01), "margin": (0.15, 0.08, 0.05, 0.05)}
"""At most so much above the best temperature's NLL."""
RATIO = (0.8, 1.25)
SURE_WRONG = 0.12
_ROWS = 1500
_TESTED = 400  # items at most, so that those whose probabilities are integrals are done in time
_TEST = 200  # the first item of the test part
LINES = UNSHARED / "doubts.jsonl"
"""Fits that the same code need not make again."""
_TEMPERATURES = np.exp(np.linspace(-3.0, 3.0, 61))


class Doubt(NamedTuple):
    """One fit on the items it did not see.

    Attributes:
        above: NLL above that with the best temperature.
        ratio: doubt / error.
        sure: items with a doubt below 10 %.
        wrong: of these, wrong ones.
    """

    above: float
    ratio: float
    sure: int
    wrong: int


def doubt_of(p: Floats, truth: Ints) -> Doubt:
    """The measures of probabilities.

    Args:
        p: [n, C].
        truth: [n] codes.
    """
    log_p = np.log(np.maximum(p, 1e-9))
    rows = np.arange(len(truth))

    def nll(q: Floats) -> float:
        return float(-np.log(np.maximum(q[rows, truth], 1e-9)).mean())

    best = min(nll(softmax(log_p, float(beta))) for beta in _TEMPERATURES)
    doubt, wrong = 1.0 - p.max(axis=1), p.argmax(axis=1) != truth
    sure = doubt < 0.1
    return Doubt(
        nll(p) - best,
        float((doubt.mean() + 0.01) / (wrong.mean() + 0.01)),
        int(sure.sum()),
        int((sure & wrong).sum()),
    )


def labelled(name: str, seed: int, kind: str) -> Iterator[tuple[int, Array, Ints, Array, Ints, int]]:
    """Labels and test items of a set, one after the other.

    Args:
        name: of PMLB.
        seed: of the draw.
        kind: "random" or "margin".

    Yields:
        Number of labels, their features and codes, features and codes of the test items, number of classes.
    """
    pool = load_pool(f"pmlb:{name}")
    order = np.random.default_rng(seed).permutation(len(pool))[:_ROWS]
    X, y = np.asarray(pool.features)[order], np.asarray(pool.truth)[order]
    C = len(pool.classes)
    if kind == "random":
        chosen, test = np.arange(_TEST), np.arange(min(_TEST, len(X) // 2), len(X))
    else:
        columns = tuple(f"x{i}" for i in range(X.shape[1]))
        drawn = number_pool(name, X, y, tuple(map(str, range(C))), columns).split(seed, 0.3)
        assert drawn.test is not None
        rounds = list(simulate(drawn, budget=max(LABELS[kind]), seed=seed, measured=50))
        asked = [int(item) for r in rounds if r.queried is not None for item in np.ravel(r.queried)]
        chosen = np.array(list(dict.fromkeys([*rounds[0].initial, *asked])))
        X, y, test = np.asarray(drawn.features), np.asarray(drawn.truth), np.asarray(drawn.test.test)
    for n in LABELS[kind]:
        few = chosen[:n]
        if len(few) == n and len(np.unique(y[few])) > 1 and not np.isin(test, few).any():
            yield n, X[few], y[few], X[test], y[test], C


def _line(name: str, kind: str, doubts: dict[int, list[Doubt]]) -> str:
    """One line of the table: a classifier, how labels came about, what was found at each number of labels."""
    cells = []
    for place, n in enumerate(LABELS[kind]):
        some = doubts.get(n, [])
        if not some:
            cells.append("-")
            continue
        ratio = float(np.exp(np.mean(np.log([one.ratio for one in some]))))
        above = float(np.mean([one.above for one in some]))
        sure = sum(one.sure for one in some)
        wrong = sum(one.wrong for one in some) / sure if sure else 0.0
        missed = [
            RATIO[0] <= ratio <= RATIO[1],
            above <= ABOVE[kind][place],
            wrong <= SURE_WRONG,
        ]
        marks = ["" if met else "*" for met in missed]
        cells.append(f"{ratio:.2f}{marks[0]} +{above:.3f}{marks[1]} {100 * wrong:.0f} %{marks[2]}")
    return f"| {name} | {kind} | " + " | ".join(cells) + " |"


def _fits(name: str, seed: int, kind: str, models: Sequence[str]) -> list[list[Any]]:
    """Classifier, number of labels, processor seconds and the figures, or the error, of each fit."""
    found: list[list[Any]] = []
    for n, X, y, test, truth, C in labelled(name, seed, kind):
        test, truth = test[:_TESTED], truth[:_TESTED]
        for model in models:
            began = time.process_time()
            made: Any = make_classifier(model, random_state=0, classes=range(C))
            try:
                p = np.asarray(made.fit(X, y).predict_proba(test))
                figures: Sequence[Any] = doubt_of(p, truth)
            except (InputError, ValueError) as error:
                figures = [str(error)]
            found.append([model, n, time.process_time() - began, *figures])
    return found


def report(sets: Sequence[str], models: Sequence[str], seeds: int) -> None:
    """Measure and print.

    Args:
        sets: names in PMLB.
        models: names of classifiers.
        seeds: draws of a set.
    """
    doubts: dict[tuple[str, str], dict[int, list[Doubt]]] = {}
    failed: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for name, kind, seed in product(sets, LABELS, range(seeds)):
        asked = {"set": name, "kind": kind, "seed": seed, "models": list(models)}
        for model, n, spent, *figures in once(LINES, asked, partial(_fits, name, seed, kind, models)):
            seconds[model] = seconds.get(model, 0.0) + spent
            if isinstance(figures[0], str):
                failed.setdefault(model, f"{name}: {figures[0]}")
            else:
                doubts.setdefault((model, kind), {}).setdefault(n, []).append(Doubt(*figures))
        if seed == seeds - 1:
            print(f"{name}, {kind}; with the sets before it:", file=sys.stderr)
            for model in models:
                print(_line(model, kind, doubts.get((model, kind), {})), file=sys.stderr, flush=True)
    print("\ndoubt / error, NLL above the best temperature, share wrong of items with a doubt below 10 %")
    print("| classifier | labels | 10 | 20 | 40 | 80 | 160 |\n|---|---|---|---|---|---|---|")
    for model, kind in product(models, LABELS):
        print(_line(model, kind, doubts.get((model, kind), {})))
    print(
        f"\nGoals: doubt / error {RATIO[0]} to {RATIO[1]}; NLL above at most {ABOVE['random']} (random) and "
        f"{ABOVE['margin']} (margin); at most {100 * SURE_WRONG:.0f} % wrong. * marks what misses its goal."
    )
    print("Processor seconds:", ", ".join(f"{model} {spent:.0f}" for model, spent in seconds.items()))
    for model, why in failed.items():
        print(f"{model} could not be fitted somewhere, first on {why}")


def main(arguments: Sequence[str] = ()) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks doubts", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two sets, one seed, the default classifier")
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--classifiers", nargs="*", default=tuple(CLASSIFIERS))
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args(arguments)
    for model in given.classifiers:
        if model not in CLASSIFIERS:
            parser.error(f"no classifier {model!r}")
    if given.quick:
        given.sets, given.seeds, given.classifiers = given.sets[:2], 1, ("large-margin",)
    report(given.sets, given.classifiers, given.seeds)
    return 0
