"""What a queue costs in labels: questions that were chosen some answers before they are answered."""

from __future__ import annotations

import argparse
import json
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

AGES = {0: "one at a time", 1: "the card on screen alone", 3: "4 cards ahead", 11: "12 cards ahead"}
POOLS = ("wine", "breast-cancer", "overlapping", "digits")
SEEDS = 5
BUDGET = 60
KEPT = Path(__file__).parent / "results" / "queue_age.json"


def curve(pool_name: str, age: int, seed: int, budget: int = BUDGET) -> list[float]:
    """Test error after each answer when every question was chosen `age` answers earlier.

    The model is fitted after each answer; what is asked next was the best when it joined the queue.

    Args:
        pool_name: of a bundled pool.
        age: how many answers came between choosing and answering.
        seed: of the split, the first labels and everything random.
        budget: answers.
    """
    from workbench.policies import query
    from workbench.policies.effective import DEFAULT_POLICY
    from workbench.pools import load_pool
    from workbench.sessions.model import Learner
    from workbench.sessions.randomness import QUERY, generator
    from workbench.sessions.spec import with_choice
    from workbench.sessions.start import initial_items

    pool = load_pool(pool_name).split(seed, 0.2)
    assert pool.truth is not None and pool.test is not None
    truth = np.asarray(pool.truth)
    test = pool.test.test
    learner = Learner(pool, "large-margin", with_choice("large-margin", {}), seed=seed)
    items = initial_items(pool, "one-per-class", seed)
    waiting: deque[int] = deque()
    state: Any = None
    errors = []
    for number in range(budget + 1):
        model = learner.fit(items, truth[items], number=number, previous=state)
        state = model.state
        wrong = model.estimator.predict_proba(pool.features[test]).argmax(axis=1) != truth[test]
        errors.append(float(wrong.mean()))
        if number == budget:
            break
        while len(waiting) <= age:  # at first all of them come from the first model
            belief = model.belief(np.asarray(waiting, dtype=np.int64))
            found = query(DEFAULT_POLICY, belief, 1, generator(seed, number, QUERY))
            waiting.append(int(found.indices[0]))
        items = np.append(items, waiting.popleft())
    return errors


def labels_to(curves: np.ndarray, target: float) -> float:
    """Answers after which the mean error first is at most the target; NaN where it never is."""
    reached = np.flatnonzero(np.minimum.accumulate(curves.mean(axis=0)) <= target)
    return float(reached[0]) if reached.size else float("nan")


def age_in_labels(*, quick: bool = False, kept: Path = KEPT) -> bool:
    """Print the cost of each age: area under the error curve and answers to a given error.

    Args:
        quick: one pool, two seeds, twenty answers; nothing is kept.
        kept: where finished curves are kept, so that an interrupted run goes on.
    """
    pools, seeds, budget = (POOLS[:1], 2, 20) if quick else (POOLS, SEEDS, BUDGET)
    done: dict[str, list[float]] = {}
    if not quick and kept.exists():
        done = json.loads(kept.read_text())
    for seed in range(seeds):
        for pool in pools:
            for age in AGES:
                key = f"{pool}/{age}/{seed}"
                if key not in done or len(done[key]) != budget + 1:
                    done[key] = [round(e, 5) for e in curve(pool, age, seed, budget)]
                    if not quick:
                        kept.parent.mkdir(exist_ok=True)
                        kept.write_text(json.dumps(done, indent=0) + "\n")
    for pool in pools:
        by_age = {age: np.array([done[f"{pool}/{age}/{s}"] for s in range(seeds)]) for age in AGES}
        target = float(by_age[0].mean(axis=0)[budget // 2 :].mean())
        base = by_age[0].mean(axis=1)
        print(f"{pool}: error {target:.3f}, the mean of the second half one at a time")
        for age, curves in by_age.items():
            more = curves.mean(axis=1) - base
            print(
                f"  {AGES[age]:26s} mean error over {budget} answers {curves.mean():.4f} "
                f"({100 * more.mean():+.2f} points, sd over seeds {100 * more.std(ddof=1):.2f}); "
                f"answers to that error {labels_to(curves, target):.0f}"
            )
    return True


def main(arguments: list[str] | None = None) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks queue_age", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one pool, two seeds, twenty answers")
    return 0 if age_in_labels(quick=parser.parse_args(arguments).quick) else 1


if __name__ == "__main__":
    raise SystemExit(main())
