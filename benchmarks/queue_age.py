"""Cost of a queue in labels: questions that were chosen some answers before they are answered."""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.kept import keep, lines

AGES = {0: "one at a time", 1: "the card on screen alone", 3: "4 cards ahead", 11: "12 cards ahead"}
POOLS = ("wine", "breast-cancer", "overlapping", "digits")
SEEDS = 5
BUDGET = 60
MORE = 0.002  # mean error over the run that a queue may cost
POINTS = (20, 30, 40, 50)  # answers, whose error, in the mean of both ways, is the error to reach
KEPT = Path(__file__).parent / "results" / "queue_age.jsonl"


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
    from workbench.sessions.learner import Learner
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


def share_of_labels(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Answers to an error, in shares of those that the other takes: exchanged sides give the inverse.

    The errors to reach are those of the mean of both curves after `POINTS` answers, so that neither side's
    noise sets them. A curve that is not there at the end counts with all its answers, on either side.

    Args:
        old: [..., seeds, answers + 1] errors one at a time.
        new: the same of another age.

    Returns:
        [...], the geometric mean over the errors.
    """
    means = [np.minimum.accumulate(curves.mean(axis=-2), axis=-1) for curves in (new, old)]
    both = np.minimum.accumulate((old.mean(axis=-2) + new.mean(axis=-2)) / 2, axis=-1)
    points = [n for n in POINTS if n < both.shape[-1]]
    there = [curve[..., None, :] <= both[..., points, None] for curve in means]
    one, other = (
        np.where(reached.any(axis=-1), np.maximum(reached.argmax(axis=-1), 1), both.shape[-1] - 1)
        for reached in there
    )
    share: np.ndarray = np.exp(np.log(one / other).mean(axis=-1))
    return share


def more_error(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Mean error over the run that the new way has more: the primary figure.

    Args:
        old: [..., seeds, answers + 1] errors.
        new: the same of the new way.
    """
    more: np.ndarray = (new.mean(axis=-1) - old.mean(axis=-1)).mean(axis=-1)
    return more


class Cost(NamedTuple):
    """Cost of each way over pools, each with its 95 % interval.

    Attributes:
        error: mean error more (less, below 0) over the run, with its ends.
        answers: answers to an error in shares (geometric mean), with its ends.
        met: whether the whole interval of the error's difference lies at or below `MORE`.
    """

    error: tuple[float, float, float]
    answers: tuple[float, float, float]

    @property
    def met(self) -> bool:
        """True if it is shown to cost no more than `MORE`."""
        return self.error[2] <= MORE

    def __str__(self) -> str:
        (more, low, high), (share, least, most) = self.error, self.answers
        return (
            f"{100 * more:+.2f} points of error over the run (95 % interval {100 * low:+.2f} to "
            f"{100 * high:+.2f}; goal: at most {100 * MORE:+.1f}, shown {'yes' if self.met else 'no'}); "
            f"{share:.3f} of the answers to an error ({least:.3f} to {most:.3f})"
        )


def interval(by_pool: list[tuple[np.ndarray, np.ndarray]], draws: int = 2000) -> Cost:
    """Cost of the new way over pools; intervals from seeds drawn with replacement.

    Args:
        by_pool: (one at a time, another age) of each pool, [seeds, answers + 1], seeds in one order.
        draws: how many.
    """
    rng = np.random.default_rng(0)
    # the same seeds of both ages; the first row of each pool is its seeds as they are
    drawn = [[rng.integers(0, len(old), len(old)) for old, _ in by_pool] for _ in range(draws)]
    more, logs = [], []
    for (old, new), rows in zip(by_pool, zip(*drawn, strict=True), strict=True):
        rows_of_all = np.stack([np.arange(len(old)), *rows])
        more.append(more_error(old[rows_of_all], new[rows_of_all]))
        logs.append(np.log(share_of_labels(old[rows_of_all], new[rows_of_all])))
    both = np.stack([np.mean(more, axis=0), np.exp(np.mean(logs, axis=0))], axis=1)
    ends = np.quantile(both[1:], [0.025, 0.975], axis=0)
    error, answers = ((float(both[0, i]), *map(float, ends[:, i])) for i in range(2))
    return Cost((error[0], error[1], error[2]), (answers[0], answers[1], answers[2]))


def scope(quick: bool, kept: Path, seeds: int) -> tuple[tuple[str, ...], int, int, dict[str, list[float]]]:
    """Pools, seeds, answers and the curves that are kept: of a quick run few, and nothing is kept."""
    if quick:
        return POOLS[:1], 2, 20, {}
    return POOLS, seeds, BUDGET, {line["curve"]: line["errors"] for line in lines(kept)}


def keep_curve(kept: Path, key: str, errors: list[float]) -> None:
    """Write a finished curve, so that an interrupted run goes on."""
    keep(kept, {"curve": key, "errors": errors})


def age_in_labels(
    *, quick: bool = False, kept: Path = KEPT, seeds: int = SEEDS, ages: Sequence[int] = tuple(AGES)
) -> bool:
    """Print the cost of each age: area under the error curve and answers to a given error.

    Args:
        quick: one pool, two seeds, twenty answers; nothing is kept.
        kept: where finished curves are kept, so that an interrupted run goes on.
        seeds: how many; 0 computes nothing and says what is kept.
        ages: of `AGES`, which are compared with 0, one at a time.

    Returns:
        Whether the card on screen alone is shown to cost no more error than `MORE` (True where not measured).
    """
    pools, seeds, budget, done = scope(quick, kept, seeds)
    for seed in range(seeds):
        for pool in pools:
            for age in sorted({0, *ages}):
                key = f"{pool}/{age}/{seed}"
                if key not in done or len(done[key]) != budget + 1:
                    done[key] = [round(e, 5) for e in curve(pool, age, seed, budget)]
                    if not quick:
                        keep_curve(kept, key, done[key])
    compared: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {age: [] for age in AGES if age}
    for pool in pools:
        base = _kept(done, pool, 0)
        if not base:
            continue
        target = float(np.array(list(base.values())).mean(axis=0)[budget // 2 :].mean())
        print(f"{pool}: error {target:.3f}, the mean of the second half one at a time")
        for age in AGES:
            mine = _kept(done, pool, age)
            both = [seed for seed in base if seed in mine]
            if not both:
                continue
            old, new = (np.array([curves[seed] for seed in both]) for curves in (base, mine))
            more = new.mean(axis=1) - old.mean(axis=1)
            spread = f", sd over seeds {100 * more.std(ddof=1):.2f}" if len(both) > 1 else ""
            reached = labels_to(new, target)
            print(
                f"  {AGES[age]:26s} {len(both)} seeds: mean error over {budget} answers {new.mean():.4f} "
                f"({100 * more.mean():+.2f} points{spread}); answers to that error {reached:.0f}"
            )
            if age and len(both) > 1:
                compared[age].append((old, new))
    met = True
    for age, by_pool in compared.items():
        if not by_pool:
            continue
        cost, n = interval(by_pool), sum(len(old) for old, _ in by_pool)
        print(f"{AGES[age]}: {cost}; {n} pairs of curves")
        met = met and (age != 1 or cost.met)
    return met or quick


def _kept(done: dict[str, list[float]], pool: str, age: int) -> dict[int, list[float]]:
    """Seed -> the curve of it."""
    found = {key.split("/")[2]: curve for key, curve in done.items() if key.startswith(f"{pool}/{age}/")}
    return {int(seed): found[seed] for seed in sorted(found, key=int)}


def main(arguments: list[str] | None = None) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks queue_age", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one pool, two seeds, twenty answers")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many; 0 says what is kept")
    parser.add_argument("--ages", default="0,1,3,11", help="of these ages alone")
    given = parser.parse_args(arguments)
    ages = [int(age) for age in given.ages.split(",")]
    return 0 if age_in_labels(quick=given.quick, seeds=given.seeds, ages=ages) else 1


if __name__ == "__main__":
    raise SystemExit(main())
