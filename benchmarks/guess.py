"""`python -m benchmarks guess`: what a guess is worth, from no labels on.

Eight tables with a column that is right in 60, 80 or 90 % of the rows (errors anywhere, and in a third of the
classes) or names a class at random; 77 classes of texts by the classes' own names. Questions by
margin, no first labels. Beside each error: its ratio to a run with a guess that says nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.guesses import Guess, guess_of, of_classes, standardised
from workbench.pools import load_pool
from workbench.pools.datasets.catalogue import find_file
from workbench.pools.pool import Pool
from workbench.sessions.simulate import simulate

TABLES = ("satimage", "segmentation", "vowel", "texture", "pendigits", "vehicle", "dna", "page_blocks")
RIGHT = (0.6, 0.8, 0.9)
LABELS = (0, 20, 100)
TEXT_LABELS = (0, 100, 300)
_MEASURED = 2500  # items that an error is measured on, at most
_AMONG = 3000  # items that questions are chosen among, at most


def column(pool: Pool, right: float, where: str, seed: int) -> Guess:
    """A column that names the class of a share of the rows.

    Args:
        pool: with truth.
        right: share of rows.
        where: its errors are: "anywhere", or in a "third" of the classes.
        seed: of the errors.
    """
    rng = np.random.default_rng([seed, int(100 * right)])
    truth, C = np.asarray(pool.truth), len(pool.classes)
    wrong = rng.random(len(truth)) >= right
    if where == "third":
        hard = np.isin(truth, rng.permutation(C)[: max(1, C // 3)])
        share = min(1.0, (1.0 - right) / max(float(hard.mean()), 1e-9))
        wrong = hard & (rng.random(len(truth)) < share)
    named = np.where(wrong, (truth + rng.integers(1, C, size=len(truth))) % C, truth)
    return of_classes(
        [pool.classes[code] for code in named], pool.classes, source=f"column right {right:.0%}"
    )


def errors(pool: Pool, guess: Guess, labels: Sequence[int], seed: int) -> tuple[Floats, float]:
    """Errors at some numbers of labels, and the area under the whole curve.

    Args:
        pool: with truth.
        guess: to start from.
        labels: numbers of labels, multiples of five.
        seed: of the run.
    """
    rounds = list(
        simulate(
            pool,
            policy="margin",
            guess=[guess],
            initial="none",
            budget=max(labels),
            batch=_batch(labels),
            seed=seed,
            test_fraction=0.3,
            measured=_MEASURED,
            asked_among=_AMONG,
        )
    )
    curve = {one.n_labelled: one.error for one in rounds}
    return np.array([curve[n] for n in labels]), float(np.mean(list(curve.values())))


def _batch(labels: Sequence[int]) -> int:
    return 5 if max(labels) <= 100 else 20


def silent(pool: Pool) -> Guess:
    """A guess that says nothing."""
    return Guess("none", np.zeros((len(pool), len(pool.classes))))


def tables(quick: bool = False, n_seeds: int = 3) -> None:
    """Columns of tables: median over the sets of errors and of their ratios to no guess.

    Args:
        quick: fewer sets and arms.
        n_seeds: runs of each.
    """
    names = TABLES[:3] if quick else TABLES
    seeds = range(1 if quick else n_seeds)
    arms: list[tuple[str, Any]] = [("none", None), *((f"right {q:.0%}", (q, "anywhere")) for q in RIGHT)]
    if not quick:
        arms += [(f"right {q:.0%}, errors in a third", (q, "third")) for q in RIGHT]
    arms.append(("at random", "random"))
    found: dict[str, list[Floats]] = {name: [] for name, _ in arms}
    areas: dict[str, list[float]] = {name: [] for name, _ in arms}
    for name in names:
        pool = load_pool(f"pmlb:{name}")
        for seed in seeds:
            for arm, what in arms:
                if what is None:
                    guess = silent(pool)
                elif what == "random":
                    guess = column(pool, 1.0 / len(pool.classes), "anywhere", seed)
                else:
                    guess = column(pool, what[0], what[1], seed)
                values, area = errors(pool, guess, LABELS, seed)
                found[arm].append(values)
                areas[arm].append(area)
        said = "  ".join(
            f"{arm} {' '.join(f'{v:.3f}' for v in np.mean(found[arm][-len(seeds) :], axis=0))}"
            for arm, _ in arms
        )
        print(f"{name}, error at {LABELS} labels: {said}", flush=True)
    base, base_area = np.array(found["none"]), np.array(areas["none"])
    print(f"\nMedian over {len(names)} tables, {len(seeds)} seeds: error (ratio to none) at {LABELS}; area")
    for arm, _ in arms:
        ratios = np.median(np.array(found[arm]) / np.maximum(base, 1e-3), axis=0)
        middle = np.median(found[arm], axis=0)
        said = "  ".join(f"{v:.3f} ({r:.2f})" for v, r in zip(middle, ratios, strict=True))
        print(f"{arm:>30}  {said}  {np.median(np.array(areas[arm]) / base_area):.2f}", flush=True)


def texts(quick: bool = False, features: str = "pieces", labels: Sequence[int] = TEXT_LABELS) -> None:
    """banking77 by the names of its 77 classes, and by names in another order.

    Args:
        quick: fewer labels.
        features: "pieces", or sets with an encoder, such as "pieces+wordllama".
        labels: numbers of labels, multiples of the batch.
    """
    file = find_file("text/banking77/train.csv")
    if file is None:
        print("banking77 lies in no data folder; WORKBENCH_DATA names one.")
        return
    made = {} if features == "pieces" else {"features": features}
    pool = load_pool(file, text_column="text", target="category", **made)
    labels = labels[:2] if quick else labels
    names = guess_of("names", pool)
    order: Ints = np.random.default_rng(0).permutation(len(pool.classes))
    arms = (silent(pool), names, Guess("names in another order", standardised(names.values[:, order])))
    base = None
    for guess in arms:
        values, area = errors(pool, guess, labels, 0)
        base = area if base is None else base
        said = " ".join(f"{v:.3f}" for v in values)
        print(
            f"banking77 ({features}), {guess.source}: error at {labels} labels {said}; "
            f"area {area / base:.2f}",
            flush=True,
        )


def main(arguments: list[str]) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks guess", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer sets, arms and seeds")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each column of a table; 3")
    parser.add_argument("--only", choices=("tables", "texts"), help="one of the two tables")
    parser.add_argument(
        "--features",
        nargs="+",
        default=["pieces"],
        help="of the texts: pieces, pieces+wordllama (extra `encoders`)",
    )
    parser.add_argument(
        "--labels", nargs="+", type=int, default=list(TEXT_LABELS), help="of the texts: 0 100 300"
    )
    options = parser.parse_args(arguments)
    if options.only != "texts":
        tables(options.quick, options.seeds)
    if options.only != "tables":
        for features in options.features:
            texts(options.quick, features, tuple(options.labels))
    return 0
