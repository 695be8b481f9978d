"""Sentences on a model against truth: is what is called sure, or enough, as right as it says?

`python -m benchmarks verdicts [--quick] [--sets ...] [--seeds N]`: twelve sets of PMLB that nothing was tuned
on, the default model and policy, one label a class, then 200 labels, four to a fit. After every 20 labels the
sentences of `sessions.verdict` are made from the first measured items of a test part: as many as questions
would have drawn by then, 100, 150 or 300. A sentence is wrong where more of the open items are wrong than the
upper end that it names. It would be true where its premise holds (no open item in doubt; the last fits
changed hardly a prediction) and the truth is not above that end. About seven minutes of one core.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from workbench.app.shell.labelling_speed import advice
from workbench.arrays import Floats
from workbench.documents.projects import QuestionSettings
from workbench.policies.belief import Belief
from workbench.policies.rowwise import margin
from workbench.pools import load_pool
from workbench.pools.building import number_pool
from workbench.pools.pool import Pool
from workbench.sessions import simulate
from workbench.sessions.asking import EARLY_ANSWERS
from workbench.sessions.measure import SURE, Evaluation, ModelVerdict, class_recalls
from workbench.sessions.rounds import Round

SETS = (
    "allrep",
    "tic_tac_toe",
    "coil2000",
    "xd6",
    "mfeat_zernike",
    "churn",
    "pendigits",
    "ann_thyroid",
    "led7",
    "clean2",
    "ring",
    "banana",
)
SENTENCES = {"sure": re.compile(r"\bis sure of\b"), "enough": re.compile(r"\bmay be enough$")}
MEASURED = (0, 100, 150, 300)
"""Measured items; 0: as many as questions would have drawn."""
EVERY, LABELS, BATCH = 20, 200, 4
ROWS, TEST = 1500, 300
WRONG, SHOWN = 0.05, 0.5
"""Goals: at most so many of those shown are wrong, at least so many of those that would be true are shown."""


class Look(NamedTuple):
    """One sentence at one number of labels and measured items.

    Attributes:
        sentence: "sure" or "enough".
        measured: of `MEASURED`.
        premise: whether what it says of the model itself holds.
        is_shown: whether it is.
        is_true: whether at most the upper end of the measured interval of the open items is wrong.
    """

    sentence: str
    measured: int
    premise: bool
    is_shown: bool
    is_true: bool


def looks(pool: Pool, seed: int, labels: int = LABELS) -> Iterator[Look]:
    """Sentences of one run.

    Args:
        pool: with a test part.
        seed: of the run.
        labels: at its end.
    """
    assert pool.test is not None and pool.truth is not None
    truth, names = np.asarray(pool.truth), list(pool.classes)
    test = np.random.default_rng([seed, 1]).permutation(pool.test.test)
    predictions: list[Floats] = []

    def watched(belief: Belief, rng: Generator) -> Floats:
        predictions.append(belief.probabilities)
        return margin(belief, rng)

    budget, due = labels + BATCH - len(names), EVERY
    rounds: list[Round] = []
    labelled = np.empty(0, dtype=np.int64)
    for fit in simulate(pool, policy=watched, budget=budget, batch=BATCH, seed=seed, measured=1):
        if not fit.queried.size:
            break
        labelled = fit.initial if not fit.number else labelled
        p = predictions[-1]
        codes = p.argmax(axis=1)
        signs = {"uncertainty": float((1.0 - p.max(axis=1)).mean())}
        if len(predictions) > 1 and (codes != codes[0]).any():
            signs["changed"] = float((codes != predictions[-2].argmax(axis=1)).mean())
        rounds.append(replace(fit, signs=signs))
        if labelled.size >= due:
            due += EVERY
            open_items = np.setdiff1d(pool.trainable, labelled)
            rate = float((codes[open_items] != truth[open_items]).mean())
            undoubted = bool((1.0 - p[open_items].max(axis=1) <= SURE).all())
            for n in MEASURED:
                items = test[: n or drawn_by(labelled.size)]
                wrong = int((codes[items] != truth[items]).sum())
                pairs = [(names[truth[i]], names[codes[i]]) for i in items.tolist()]
                recalls = class_recalls(names, [names[c] for c in truth[labelled].tolist()], pairs)
                measured = Evaluation.of(len(items), wrong, "test split")
                verdict = ModelVerdict(measured, signs["uncertainty"], recalls)
                hint = advice(rounds, verdict)
                is_true = rate <= measured.high
                sure = undoubted and bool(SENTENCES["sure"].search(verdict.of_no_doubt(open_items.size)))
                yield Look("sure", n, undoubted, sure, is_true)
                is_quiet = hint.startswith("the last 5 fits")
                yield Look("enough", n, is_quiet, bool(SENTENCES["enough"].search(hint)), is_true)
        labelled = np.concatenate([labelled, fit.queried])


def drawn_by(labels: int) -> int:
    """Measured items of a project at a number of labels that are learnt from, in the mean."""
    shares = QuestionSettings()
    early = int(EARLY_ANSWERS * (1.0 / shares.early_share - 1.0))
    if labels <= early:
        return round(labels * shares.early_share / (1.0 - shares.early_share))
    later = shares.evaluation_share / (1.0 - shares.evaluation_share)
    return EARLY_ANSWERS + round((labels - early) * later)


def pool_of(name: str, seed: int) -> Pool:
    """Some rows of a set, with a test part.

    Args:
        name: in PMLB.
        seed: of rows and split.
    """
    pool = load_pool(f"pmlb:{name}")
    rows = np.random.default_rng(seed).permutation(len(pool))[:ROWS]
    X, codes = np.asarray(pool.features)[rows], np.asarray(pool.truth)[rows]
    known, codes = np.unique(codes, return_inverse=True)
    columns = tuple(f"x{column}" for column in range(X.shape[1]))
    names = tuple(str(pool.classes[code]) for code in known)
    return number_pool(name, X, codes.astype(np.int64), names, columns).split(seed, TEST / len(rows))


def report(seen: Sequence[Look]) -> bool:
    """Print a row a sentence and number of measured items; whether both goals are met.

    Args:
        seen: of all runs.
    """
    print(
        "| sentence | measured | looks | premise holds | would be true | of these shown "
        "| shown | of these wrong |"
    )
    print("|---|---|---|---|---|---|---|---|")
    is_met = True
    for sentence in SENTENCES:
        for n in (*MEASURED, -1):
            some = [
                look
                for look in seen
                if look.sentence == sentence and (look.measured == n or n < 0 < look.measured)
            ]
            would = [look for look in some if look.premise and look.is_true]
            shown = [look for look in some if look.is_shown]
            told, wrong = sum(look.is_shown for look in would), sum(not look.is_true for look in shown)
            words = {0: "as questions draw", -1: "100 or more"}.get(n, str(n))
            premise = sum(look.premise for look in some)
            counts = (len(some), premise, len(would), told, len(shown), wrong)
            print(f"| {sentence} | {words} | {' | '.join(map(str, counts))} |")
            if n < 0:
                is_met &= wrong <= WRONG * len(shown) and told >= SHOWN * len(would)
    print(
        f"\nGoals with 100 measured items or more: at most {100 * WRONG:.0f} % of those shown are wrong, at "
        f"least {100 * SHOWN:.0f} % of those that would be true are shown: {'met' if is_met else 'missed'}."
    )
    return is_met


def main(arguments: Sequence[str] = ()) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks verdicts", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two sets, 60 labels")
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args(arguments)
    sets, labels = (options.sets[:2], 60) if options.quick else (options.sets, LABELS)
    seen: list[Look] = []
    for name in sets:
        for seed in range(options.seeds):
            seen += looks(pool_of(name, seed), seed, labels)
        mine = [look for look in seen if look.is_shown]
        print(f"{name} done: {len(mine)} sentences shown so far", flush=True)
    return 0 if report(seen) else 1


if __name__ == "__main__":
    import sys

    raise SystemExit(main(sys.argv[1:]))
