"""The desk's queue against one question at a time, in labels: answers at a pace, fits that take time."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.queue_age import BUDGET, SEEDS, interval, keep_curve, labels_to, scope

AHEAD = 4  # cards in the browser, the one on screen among them
POLL = 0.5  # seconds between two looks of a page while a fit is under way
ORDERED = 200  # of a model's order, more than are ever asked from one model
WAYS = {
    "waits": "one at a time, each waiting for the fit",
    "page": "one at a time, nobody waits (the page before the desk)",
    "desk": "the desk: four cards, replaced behind the one on screen",
}
KEPT = Path(__file__).parent / "results" / "queue_pace.jsonl"


@dataclass(frozen=True)
class Pace:
    """Pace of a person, and the time of a fit.

    Attributes:
        answer: seconds an answer takes in the mean; they vary as people's do (lognormal, sigma 0.4).
        fit: seconds.
    """

    answer: float
    fit: float

    def __str__(self) -> str:
        return f"an answer every {self.answer:g} s, fits of {self.fit:g} s"


PACES = (Pace(1.0, 0.4), Pace(0.5, 1.0))


class Run:
    """One pool and seed: the models of every set of labels that was met, fitted once.

    Args:
        pool_name: of a bundled pool.
        seed: of the split, the first labels and everything random.
    """

    def __init__(self, pool_name: str, seed: int) -> None:
        from workbench.pools import load_pool
        from workbench.sessions.learner import Learner
        from workbench.sessions.spec import with_choice
        from workbench.sessions.start import initial_items

        self.seed = seed
        self.pool = load_pool(pool_name).split(seed, 0.2)
        self.learner = Learner(self.pool, "large-margin", with_choice("large-margin", {}), seed=seed)
        self.first = tuple(int(i) for i in initial_items(self.pool, "one-per-class", seed))
        self._known: dict[tuple[int, ...], tuple[Any, float, list[int]]] = {}

    def after(self, items: tuple[int, ...]) -> tuple[float, list[int]]:
        """Test error, and the order in which the model would ask, after these answers."""
        return self._fitted(items)[1:]

    def _fitted(self, items: tuple[int, ...]) -> tuple[Any, float, list[int]]:
        from workbench.policies import query
        from workbench.policies.effective import DEFAULT_POLICY
        from workbench.sessions.randomness import QUERY, generator

        if items in self._known:
            return self._known[items]
        before = self._fitted(items[:-1])[0] if items else None  # warm, as a session's fits are
        pool, number = self.pool, len(items)
        assert pool.truth is not None and pool.test is not None
        at = np.array([*self.first, *items], dtype=np.int64)
        model = self.learner.fit(at, np.asarray(pool.truth)[at], number=number, previous=before)
        test = pool.test.test
        found = model.estimator.predict_proba(pool.features[test]).argmax(axis=1)
        error = float((found != np.asarray(pool.truth)[test]).mean())
        belief = model.belief(np.empty(0, dtype=np.int64))
        k = min(ORDERED, pool.trainable.size - at.size)
        order = query(DEFAULT_POLICY, belief, k, generator(self.seed, number, QUERY)).indices
        self._known[items] = (model.state, error, [int(i) for i in order])
        return self._known[items]


def asked(run: Run, way: str, pace: Pace, budget: int = BUDGET) -> tuple[int, ...]:
    """The items in the order in which they are answered.

    Args:
        run: pool and seed.
        way: of `WAYS`.
        pace: of whoever answers; the same gaps for every way.
        budget: answers.
    """
    gaps = np.random.default_rng([run.seed, 7]).lognormal(np.log(pace.answer) - 0.08, 0.4, budget)
    clock = 0.0
    items: tuple[int, ...] = ()
    published = 0  # answers that the newest model knows
    fitting: tuple[float, int] | None = None  # when it ends, answers it knows
    queue: list[int] = []
    seen = 0  # the model of the cards behind the screen
    looked = 0.0  # when the page looked last

    def advance(now: float) -> None:
        """The server until then: fits one after the other, each of all that is known when it begins."""
        nonlocal published, fitting
        while fitting is not None and fitting[0] <= now:
            ended, published = fitting
            fitting = (ended + pace.fit, answers_at(ended)) if answers_at(ended) > published else None

    times: list[float] = []

    def answers_at(moment: float) -> int:
        return sum(t <= moment for t in times)

    def chosen(n: int) -> Iterator[int]:
        """Questions of the newest model among what is neither answered nor waiting."""
        order = run.after(items[:published])[1]
        shut = {*items, *queue, *run.first}
        yield from [item for item in order if item not in shut][:n]

    def look(now: float) -> None:
        """A request of the page: what a newer model chose replaces what waits behind the screen."""
        nonlocal seen, looked
        advance(now)
        if published != seen:
            del queue[1:]
            seen = published
        queue.extend(chosen(AHEAD - len(queue)))
        looked = now

    queue.extend(chosen(AHEAD if way == "desk" else 1))
    for gap in gaps:
        then = clock + gap
        if way == "desk":
            while fitting is not None and looked + POLL < then:
                look(looked + POLL)
        clock = then
        advance(clock)
        items = (*items, queue.pop(0))
        times.append(clock)
        if way == "waits":
            published, fitting = len(items), None
        elif fitting is None:
            fitting = (clock + pace.fit, len(items))
        if way == "desk":
            look(clock)
        else:
            queue.extend(chosen(1))
    return items


def compared(*, quick: bool = False, kept: Path = KEPT, seeds: int = SEEDS) -> bool:
    """Print what each way costs in labels, at each pace.

    Args:
        quick: one pool, two seeds, twenty answers; nothing is kept.
        kept: where finished curves are kept, so that an interrupted run goes on.
        seeds: how many; 0 computes nothing and says what is kept.

    Returns:
        Whether the desk is shown to cost no more error than `queue_age.MORE` against the page before it, at
        every pace.
    """
    pools, seeds, budget, done = scope(quick, kept, seeds)
    for seed in range(seeds):
        for pool in pools:
            _fill(done, pool, seed, budget, lambda key: None if quick else keep_curve(kept, key, done[key]))
    met = True
    for name, words in WAYS.items():
        print(f"{name}: {words}")
    for pace in PACES:
        print(f"{pace}:")
        for other, base in (("desk", "page"), ("desk", "waits"), ("page", "waits")):
            by_pool = []
            for pool in pools:
                both = [s for s in range(max(seeds, SEEDS)) if _key(pool, base, pace, s) in done]
                old, new = (np.array([done[_key(pool, way, pace, s)] for s in both]) for way in (base, other))
                by_pool.append((old, new))
                if base == "page":
                    target = float(old.mean(axis=0)[budget // 2 :].mean())
                    same = sum(bool((a == b).all()) for a, b in zip(old, new, strict=True))
                    print(
                        f"  {pool}: mean error {old.mean():.4f} as before, {new.mean():.4f} at the desk, "
                        f"{same} of {len(both)} curves the same; answers to {target:.3f}: "
                        f"{labels_to(old, target):.0f} and {labels_to(new, target):.0f}"
                    )
            cost = interval(by_pool)
            print(f"  {other} against {base}: {cost}; {sum(len(o) for o, _ in by_pool)} pairs")
            met = met and (base != "page" or cost.met)
    return met or quick


def _fill(
    done: dict[str, list[float]], pool: str, seed: int, budget: int, keep: Callable[[str], None]
) -> None:
    """The curves of a pool and a seed that are not there yet."""
    wanted = [(way, pace) for pace in PACES for way in WAYS]
    missing = [(w, p) for w, p in wanted if len(done.get(_key(pool, w, p, seed), ())) != budget + 1]
    run = Run(pool, seed) if missing else None
    for way, pace in missing:
        assert run is not None
        items = asked(run, way, pace, budget)
        key = _key(pool, way, pace, seed)
        done[key] = [round(run.after(items[:n])[0], 5) for n in range(budget + 1)]
        keep(key)


def _key(pool: str, way: str, pace: Pace, seed: int) -> str:
    return f"{pool}/{way}/{pace.answer:g}/{pace.fit:g}/{seed}"


def main(arguments: list[str] | None = None) -> int:
    """Run it; the exit code says whether the desk is shown to cost next to nothing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks queue_pace", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one pool, two seeds, twenty answers")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many; 0 says what is kept")
    given = parser.parse_args(arguments)
    return 0 if compared(quick=given.quick, seeds=given.seeds) else 1


if __name__ == "__main__":
    raise SystemExit(main())
