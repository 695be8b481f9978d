"""When to stop: labels spent and error given up by each stopping rule, beside the best moment in hindsight.

`python -m benchmarks.stopping [--quick] [--sets ...] [--seeds N] [--questions N]`: one label a class of a set
of PMLB, then single questions by the default model and policy; every rule looks at the same rounds. The best
moment in hindsight is the first round whose test error is within half a point of the end's, which is the mean
of the last ten; what a rule gives up is the error at its first advice to stop less the end's. Three of the
four rules in the lines that are kept are gone. Results are kept in a file, one line a run, and what is there
is not run again: `--report` only prints the table.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import end, kept
from benchmarks.label_efficiency import OTHERS
from workbench.arrays import Floats
from workbench.pools import load_pool
from workbench.sessions import RunSpec, simulate
from workbench.sessions.spec import with_choice
from workbench.sessions.stopping import STOPPING, advise, replay

HINDSIGHT = "the best moment in hindsight"
NEAR = 0.005
LAST = 10
RESULTS = Path(__file__).resolve().parent / "results" / "stopping.jsonl"


def one_run(name: str, seed: int, questions: int) -> dict[str, Any]:
    """Labels and errors of every round, and the round at which each rule first says stop (None: never).

    Args:
        name: of a set of PMLB.
        seed: of split, first labels and questions.
        questions: after the first labels.
    """
    pool = load_pool(f"pmlb:{name}").split(seed, 0.2)
    options = with_choice("large-margin", {})
    rounds = list(simulate(pool, options=options, budget=questions, seed=seed))
    spec = RunSpec(pool=f"pmlb:{name}", options=options, budget=questions, seed=seed)
    history = list(replay(spec, pool, rounds))
    return {
        "set": name,
        "seed": seed,
        "questions": questions,
        "labels": history[0].n_labelled,
        "errors": [round(float(one.error), 5) for one in rounds],
        "stops": {rule: advise(history, rule).first for rule in STOPPING},
    } | kept.stamp()


def hindsight(errors: Floats) -> int:
    """The first round whose error is within half a point of the end's.

    Args:
        errors: [R] after each round.
    """
    return int(np.argmax(errors <= errors[-LAST:].mean() + NEAR))


def judged(line: dict[str, Any], rule: str) -> tuple[float, float, bool]:
    """Labels asked for until a rule says stop, the error it gives up, and whether it ever did.

    Args:
        line: of a run.
        rule: of the line, `HINDSIGHT`, or a number of questions.
    """
    errors = np.array(line["errors"])
    if rule == HINDSIGHT:
        at: int | None = hindsight(errors)
    elif rule.isdecimal():
        at = min(int(rule), len(errors) - 1)
    else:
        at = line["stops"][rule]
    stop = len(errors) - 1 if at is None else at
    given_up = 0.0 if at is None else float(errors[stop] - errors[-LAST:].mean())
    return float(stop), given_up, at is not None


def report(lines: Sequence[dict[str, Any]]) -> None:
    """Print a row a rule: medians over the runs, and how often a rule was early, late or never.

    Args:
        lines: kept runs of one length.
    """
    questions = int(lines[0]["questions"])
    print(f"{len(lines)} runs of {len({line['set'] for line in lines})} sets, {questions} questions each\n")
    print(
        "| stop at | says stop in | questions asked, median (quarters) | against hindsight, median "
        "| error given up in points, median (mean, worst) | more than 2 points given up |"
    )
    print("|---|---|---|---|---|---|")
    best = np.array([judged(line, HINDSIGHT)[0] for line in lines])
    # as many questions of every set as the program's rules ask in the median
    spent = [str(round(np.median([judged(line, rule)[0] for line in lines]))) for rule in STOPPING]
    for rule in (HINDSIGHT, *lines[0]["stops"], *spent, str(questions // 4), str(questions // 2)):
        asked, lost, said = (
            np.array(column) for column in zip(*(judged(x, rule) for x in lines), strict=True)
        )
        low, middle, high = np.quantile(asked, [0.25, 0.5, 0.75])
        lost = 100 * lost
        title = f"{rule} questions" if rule.isdecimal() else rule
        print(
            f"| {title} | {said.sum()} of {len(lines)} | {middle:.0f} ({low:.0f} to {high:.0f}) "
            f"| {np.median(asked - best):+.0f} | {np.median(lost):+.1f} ({lost.mean():+.1f}, "
            f"{lost.max():+.1f}) | {(lost > 2).sum()} of {len(lines)} |"
        )
    print(f"\n{kept.origins(lines)}")


def main(arguments: Sequence[str] = ()) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stopping", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two sets, one seed, 30 questions")
    parser.add_argument("--sets", nargs="*", default=OTHERS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="print what the file has, run nothing")
    given = parser.parse_args(arguments)
    if given.quick:
        given.sets, given.seeds, given.questions = given.sets[:2], 1, 30
    there = {}
    if given.out.exists():
        lines = [json.loads(line) for line in given.out.read_text(encoding="utf-8").splitlines()]
        there = {(line["set"], line["seed"], line["questions"]): line for line in lines}
    keys = [(name, seed, given.questions) for name in given.sets for seed in range(given.seeds)]
    for key in keys:
        if key in there or given.report:
            continue
        there[key] = one_run(*key)
        with given.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(there[key]) + "\n")
    found = [there[key] for key in keys if key in there]
    if not found:
        print("Nothing was measured yet.")
        return 0
    report(found)
    return 0


if __name__ == "__main__":
    end(main)
