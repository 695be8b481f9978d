"""`python -m benchmarks finish [--quick] [--only PART] [--report]`: what a certificate is worth.

checks: how many draws a certificate takes where little is wrong. coverage: simulated projects whose
certificate is false, of all, where models say the truth of themselves, too much, too little, or are surest
where they are wrong; looked at after every answer, sets within sets. cost: human answers until a set is
delivered and certified, beside other ways to ask; labelling stops when the forecast rises, for all sides.
Results of the last two are kept, a line a run; `--report` prints the tables, `--picture FILE` draws the cost.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import end, kept
from benchmarks.finish_picture import cost_svg
from benchmarks.label_efficiency import rival_model
from benchmarks.rehearsing import rehearse
from workbench.arrays import Array, Floats, Ints
from workbench.certificates import Draws, Promise, Tally, confidence_at, first_reached, log_wealth, plan
from workbench.certificates.promise import FIRST_SHARE
from workbench.pools import load_pool
from workbench.pools.building import image_pool
from workbench.pools.datasets.catalogue import find_file
from workbench.pools.pool import Pool
from workbench.sessions.fitted_model import FittedModel

ERROR, CONFIDENCE = 0.05, 0.95
POOLS = ("digits", "satimage", "pendigits", "banking77", "mnist", "noisy")
COST_POOLS = ("digits", "satimage", "pendigits", "banking77", "mnist", "segmentation")
"""Of the noisy pool no model labels 95 % as it is: nobody would finish there."""
MODELS = ("calibrated", "over-confident", "under-confident", "adversarial", "guess")
STARTS = ("planned", "just broken")
PROJECTS = 200
FITS = 20
DRAWS = 800
"""Checks after which a simulated project of the coverage ends."""
SIDES = ("ours", "random", "extra-trees")
LABELS = (60, 120, 180, 240, 320)
RESULTS = Path(__file__).resolve().parent / "results" / "finish.jsonl"


@cache
def pool_of(name: str) -> Pool:
    """A pool with truth.

    Raises:
        SystemExit: it lies in no data folder.
    """
    if name in ("digits", "noisy"):
        return load_pool("digits")
    if name == "banking77":
        file = _file("text/banking77/train.csv")
        return load_pool(file, text_column="text", target="category")
    if name == "mnist":
        held = np.load(_file("images/mnist.npz"))
        digits = tuple(map(str, range(10)))
        return image_pool(name, held["x_test"], held["y_test"].astype(np.int64), digits, features="shapes")
    return load_pool(f"pmlb:{name}")


def _file(name: str) -> Path:
    found = find_file(name)
    if found is None:
        raise SystemExit(f"{name} lies in no data folder; WORKBENCH_DATA names one.")
    return found


def truth_of(name: str) -> Ints:
    """[N] classes; of the noisy pool 30 % are another one."""
    pool = pool_of(name)
    truth = np.array(pool.truth)
    if name == "noisy":
        rng = np.random.default_rng(30)
        wrong = rng.random(len(truth)) < 0.3
        truth = np.where(wrong, (truth + rng.integers(1, len(pool.classes), len(truth))) % 10, truth)
    return truth


# --- checks ---------------------------------------------------------------------------------------


def checks(quick: bool = False) -> None:
    """Print the median number of checks at small true errors, 10,000 labels, alpha and delta 0.05."""
    rng = np.random.default_rng(0)
    size, projects = 10_000, 200 if quick else 4_000
    goals = {0.0: 83, 0.005: 85, 0.01: 135, 0.025: None}
    for true_error, goal in goals.items():
        for confidence, what in ((CONFIDENCE, "delta 0.05"), (confidence_at(CONFIDENCE), "first attempt")):
            wrong = _drawn(size, round(true_error * size), projects, 2_500, rng)
            needed = first_reached(log_wealth(wrong, size, ERROR), confidence)
            needed = np.where(needed == 0, size, needed)
            low, median, high = np.quantile(needed, (0.1, 0.5, 0.9))
            said = f" (goal {goal})" if goal and confidence == CONFIDENCE else ""
            print(
                f"true error {true_error:.1%}, {what}: median {median:.0f} checks{said}, "
                f"{low:.0f} to {high:.0f} in four of five"
            )


def _drawn(size: int, wrong: int, projects: int, draws: int, rng: np.random.Generator) -> Array:
    """[projects, draws] answers, drawn without replacement."""
    found = np.zeros((projects, draws), dtype=bool)
    left = np.full(projects, wrong)
    for t in range(draws):
        found[:, t] = rng.random(projects) < left / (size - t)
        left -= found[:, t]
    return found


# --- coverage -------------------------------------------------------------------------------------


def frozen(name: str, model: str, seed: int) -> tuple[Array, Floats]:
    """Labels of a model that has seen a few hundred items: whether each is wrong, and its confidence.

    Args:
        name: of the pool.
        model: how it sees itself; "guess" is a column of somebody's labels.
        seed: of the items it has seen.
    """
    rng = np.random.default_rng([seed, len(name)])
    truth = truth_of(name)
    X = np.asarray(pool_of(name).features, dtype=np.float32)
    if model == "guess":
        right = 0.93 + 0.05 * rng.random()
        return rng.random(len(truth)) >= right, rng.random(len(truth))
    wrong, sure = _fitted(name, seed, X, truth)
    if model == "over-confident":
        sure = sure**0.2
    elif model == "under-confident":
        sure = sure**3
    elif model == "adversarial":
        sure = np.where(wrong, 0.9 + 0.1 * rng.random(len(wrong)), 0.95 * sure)
    return wrong, sure


@cache
def _fitted_at(name: str, seed: int) -> tuple[Array, Floats]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng([seed, 1])
    X, truth = np.asarray(pool_of(name).features, dtype=np.float32), truth_of(name)
    share = 0.5 if name == "banking77" else 0.2
    seen = rng.permutation(len(truth))[: min(1_500, int(share * len(truth)))]
    X = StandardScaler().fit_transform(X)
    fitted = LogisticRegression(C=0.05, max_iter=60).fit(X[seen], truth[seen])
    left = np.setdiff1d(np.arange(len(truth)), seen)
    p = fitted.predict_proba(X[left])
    return fitted.classes_[p.argmax(axis=1)] != truth[left], p.max(axis=1)


def _fitted(name: str, seed: int, X: Floats, truth: Ints) -> tuple[Array, Floats]:
    wrong, sure = _fitted_at(name, seed)
    return wrong, sure.copy()


def sets_of(wrong: Array, sure: Floats, start: str) -> list[int]:
    """Sizes to be tested, in order: what a plan chooses, or from the first that just breaks the promise."""
    if start == "planned":
        found = plan(1.0 - sure, ERROR, confidence_at(CONFIDENCE)).sizes().tolist()
        return [int(size) for size in found]
    share = wrong.cumsum() / np.arange(1, len(wrong) + 1)
    least = len(wrong) // 5
    broken = np.flatnonzero((share > ERROR) & (np.arange(len(wrong)) >= least))
    first = int(broken[0]) + 1 if len(broken) else len(wrong)
    return sorted({first, *np.linspace(first, len(wrong), 5).astype(int).tolist()})


def false_certificates(wrong: Array, sure: Floats, start: str, projects: int, seed: int) -> tuple[int, int]:
    """(false certificates, certificates) of simulated projects, looked at after every answer.

    Args:
        wrong: [N] of the frozen labels.
        sure: [N] their confidences.
        start: a name of `STARTS`.
        projects: how many orders of draws.
        seed: of these.
    """
    ranking = np.argsort(-sure, kind="stable")
    wrong = wrong[ranking]
    sizes = sets_of(wrong, sure[ranking], start)
    rng = np.random.default_rng(seed)
    # a first attempt that spends the whole of delta, which none does: the harder case
    confidence = 1.0 - (1.0 - CONFIDENCE) / FIRST_SHARE
    promise = Promise(len(wrong), ERROR, confidence, tuple(dict.fromkeys(sizes)))
    broken_sets = {size for size in sizes if wrong[:size].sum() >= promise.forbidden(size)}
    false = certificates = 0
    for _ in range(projects):
        places = rng.permutation(len(wrong))[:DRAWS]
        certified = certified_sets(promise, places, wrong[places])
        certificates += bool(certified)
        false += not broken_sets.isdisjoint(certified)
    return false, certificates


def certified_sets(promise: Promise, places: Ints, wrong: Array) -> list[int]:
    """Sizes of the sets that are certified at any time, looked at until nothing can change any more.

    Args:
        promise: what is promised.
        places: [t] ranks of the labels that are drawn.
        wrong: [t] whether each is.
    """
    evidence, first, lost = Tally(promise), promise.sizes[0], 0
    for place, is_wrong in zip(places.tolist(), wrong.tolist(), strict=True):
        evidence.add(place, is_wrong)
        lost += is_wrong and place < first
        if evidence.at.all() or (not evidence.at[0] and lost >= promise.forbidden(first)):
            break
    return [size for size, _ in evidence.certified_at()]


def coverage(place: Path, names: Sequence[str], projects: int, fits: int) -> None:
    """Run what is not kept."""
    done = {(line["pool"], line["model"], line["start"]) for line in lines_of(place, "coverage")}
    for name in names:
        for model in MODELS:
            for start in STARTS:
                if (name, model, start) in done:
                    continue
                found = np.zeros(2, dtype=int)
                for seed in range(fits):
                    wrong, sure = frozen(name, model, seed)
                    found += false_certificates(wrong, sure, start, projects // fits, seed)
                _keep(
                    place,
                    {
                        "what": "coverage",
                        "pool": name,
                        "model": model,
                        "start": start,
                        "projects": projects // fits * fits,
                        "false": int(found[0]),
                        "certificates": int(found[1]),
                    },
                )


# --- cost -----------------------------------------------------------------------------------------


class Stage(NamedTuple):
    """The state of a side after some labels.

    Attributes:
        items: labelled.
        wrong: [n] of the model's labels of the others.
        sure: [n] its confidence in them.
        known: ([h] predicted errors, [h] whether wrong) on items the model has not learned from, or None.
    """

    items: Ints
    wrong: Array
    sure: Floats
    known: tuple[Floats, Array] | None


def asked(name: str, side: str, seed: int, labels: Sequence[int]) -> list[Stage]:
    """Knowledge of a side at some numbers of labels.

    Args:
        name: of the pool.
        side: ours, ours with random questions, or extra trees asked by margin.
        seed: of the run.
        labels: numbers of labels, rising.
    """
    work = _trees if side == "extra-trees" else _ours
    return work(name, side, seed, labels)


def _steps(labels: Sequence[int]) -> list[int]:
    """Numbers of labels at which a model is fitted: ten to a doubling."""
    found, n = [], 20
    while n < labels[-1]:
        found.append(n)
        n += max(10, n // 8)
    return sorted({*found, *labels})


def _begun(pool: Pool, truth: Ints, seed: int) -> Ints:
    """Twenty random items, and one of every class that these lack, as a person knows what is missing."""
    order = np.random.default_rng([seed, 5]).permutation(len(truth))
    first = order[:20]
    lacking = [order[np.flatnonzero(truth[order] == c)[0]] for c in np.setdiff1d(truth, truth[first])]
    return np.array([*first.tolist(), *map(int, lacking)])


def _ours(name: str, side: str, seed: int, labels: Sequence[int]) -> list[Stage]:
    from workbench.policies import query
    from workbench.sessions.learner import Learner
    from workbench.sessions.spec import with_choice

    pool, truth = pool_of(name), truth_of(name)
    learner = Learner(pool, "large-margin", with_choice("large-margin", {}), seed=seed)
    items = _begun(pool, truth, seed)
    model: FittedModel | None = None
    out = []
    for number, n in enumerate([s for s in _steps(labels) if s >= len(items)]):
        rng = np.random.default_rng([seed, number])
        open_ = np.setdiff1d(np.arange(len(truth)), items)
        if model is None or side == "random":
            more = rng.permutation(open_)[: n - len(items)]
        elif n > len(items):
            more = query("margin", model.belief(items), n - len(items), rng).indices
        else:
            more = open_[:0]
        items = np.append(items, more)
        state = None if model is None else model.state
        model = learner.fit(items, truth[items], number=number, previous=state)
        if n in labels:
            left = np.setdiff1d(np.arange(len(truth)), items)
            p = model.probabilities[left]
            out.append(Stage(items, p.argmax(axis=1) != truth[left], p.max(axis=1), None))
    return out


def _trees(name: str, side: str, seed: int, labels: Sequence[int]) -> list[Stage]:
    pool, truth = pool_of(name), truth_of(name)
    X = np.asarray(pool.features)
    items, out = _begun(pool, truth, seed), []
    rng = np.random.default_rng([seed, 6])
    for n in [s for s in _steps(labels) if s >= len(items)]:
        fitted = rival_model(side, seed).fit(X[items], truth[items])
        left = np.setdiff1d(np.arange(len(truth)), items)
        top = np.sort(fitted.predict_proba(X[left]), axis=1)
        gap = top[:, -1] - top[:, -2] + 1e-9 * rng.random(len(left))
        items = np.append(items, left[np.argsort(gap)[: n - len(items)]])
        if n in labels:
            fitted = rival_model(side, seed).fit(X[items], truth[items])
            left = np.setdiff1d(np.arange(len(truth)), items)
            p = fitted.predict_proba(X[left])
            known = _out_of_fold(side, seed, X[items], truth[items])
            wrong = fitted.classes_[p.argmax(axis=1)] != truth[left]
            out.append(Stage(items, wrong, p.max(axis=1), known))
    return out


def _out_of_fold(side: str, seed: int, X: Floats, y: Ints) -> tuple[Floats, Array]:
    """A rival's predicted errors and errors on labels that were left out: its shares are no probabilities."""
    folds = np.random.default_rng(seed).integers(5, size=len(y))
    risk, wrong = np.ones(len(y)), np.ones(len(y), dtype=bool)
    for fold in range(5):
        held = folds == fold
        fitted = rival_model(side, seed).fit(X[~held], y[~held])
        p = fitted.predict_proba(X[held])
        risk[held], wrong[held] = 1.0 - p.max(axis=1), fitted.classes_[p.argmax(axis=1)] != y[held]
    return risk, wrong


def answers_needed(stages: Sequence[Stage], seed: int) -> dict[str, Any]:
    """Human answers in all: labels until the forecast rises, checks and the rest.

    Args:
        stages: of `asked`.
        seed: of the draws.

    Returns:
        With "hindsight", the answers at the number of labels that turned out cheapest, with the forecast's
        sets or with everything at once.
    """
    best, chosen = np.inf, 0
    for place, stage in enumerate(stages):
        known = stage.known
        forecast = plan(1.0 - stage.sure, ERROR, confidence_at(CONFIDENCE), held_out=known).choice
        if forecast is None:
            continue  # nobody would stop labelling here
        total = len(stage.items) + forecast.cost
        if total >= best:
            break
        best, chosen = total, place
    if not np.isfinite(best):
        chosen = len(stages) - 1
    found = [_finished(stage, seed) for stage in stages]
    hindsight = min(*(int(line["answers"]) for line in found), *(_all_at_once(one, seed) for one in stages))
    more = {"hindsight": hindsight}
    return found[chosen] | (more | {"forecast": round(float(best))} if np.isfinite(best) else more)


def _all_at_once(stage: Stage, seed: int) -> int:
    """Answers where all that is left is frozen and checked as one set, whatever the model says of itself."""
    size = len(stage.wrong)
    draws = Draws(size, seed).first(min(size, 3_000))
    evidence = log_wealth(stage.wrong[draws], size, ERROR)
    reached = int(first_reached(evidence, confidence_at(CONFIDENCE)))
    return len(stage.items) + (reached or size)


def _finished(stage: Stage, seed: int) -> dict[str, Any]:
    wrong = stage.wrong
    done = rehearse(wrong, stage.sure, ERROR, CONFIDENCE, seed=seed, held_out=stage.known)
    return {
        "labels": len(stage.items),
        "checks": done.drawn,
        "answers": len(stage.items) + done.answers,
        "machine": len(done.machine),
        "error": round(float(wrong[done.machine].mean()), 4) if len(done.machine) else 0.0,
        "attempt": done.attempt,
    }


def cost(place: Path, names: Sequence[str], seeds: int) -> None:
    """Run what is not kept."""
    done = {(line["pool"], line["side"], line["seed"]) for line in lines_of(place, "cost")}
    for name in names:
        labels = [n * (3 if name == "banking77" else 1) for n in LABELS]
        for seed in range(seeds):
            for side in SIDES:
                if (name, side, seed) in done:
                    continue
                stages = asked(name, side, seed, labels)
                found = answers_needed(stages, seed)
                size = len(truth_of(name))
                line = {"what": "cost", "pool": name, "side": side, "seed": seed, "size": size}
                _keep(place, line | found)


# --- results --------------------------------------------------------------------------------------


def lines_of(place: Path, what: str) -> list[dict[str, Any]]:
    """Kept lines of a part."""
    if not place.exists():
        return []
    lines = [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["what"] == what]


def _keep(place: Path, line: dict[str, Any]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line | kept.stamp()) + "\n")
    print(line, flush=True)


def report(place: Path = RESULTS, drawn: Path | None = None) -> bool:
    """Print the tables; whether every share of false certificates lies within its goal.

    Args:
        place: of the kept lines.
        drawn: write the picture of the cost there, an SVG.
    """
    shares: dict[str, dict[str, float]] = {}
    lines = lines_of(place, "coverage")
    delta, held = 1.0 - CONFIDENCE, True
    print("\nfalse certificates, of all projects (and certificates), at alpha 0.05 and delta 0.05\n")
    print("| pool | sets begin |", " | ".join(MODELS), "|")
    print("|---" * (len(MODELS) + 2) + "|")
    for name in POOLS:
        for start in STARTS:
            here = {line["model"]: line for line in lines if (line["pool"], line["start"]) == (name, start)}
            cells = []
            for model in MODELS:
                if model not in here:
                    cells.append("")
                    continue
                n, false = here[model]["projects"], here[model]["false"]
                most = delta + 1.645 * np.sqrt(delta * (1 - delta) / n)
                held &= false / n <= most
                cells.append(f"{false / n:.4f} ({here[model]['certificates'] / n:.2f})")
            if here:
                print(f"| {name} | {start} |", " | ".join(cells), "|")
    print(f"\nEvery share is at most {delta:.2f}, within its binomial error: {'yes' if held else 'NO'}.")
    costs = lines_of(place, "cost")
    print("\nhuman answers until a set certified at 5 % is delivered, median over the seeds\n")
    print(
        "| pool | items | seeds |",
        " | ".join(SIDES),
        "| ours / best other | the others in hindsight | share of the pool |",
    )
    print("|---" * (len(SIDES) + 6) + "|")
    for name in COST_POOLS:
        medians = {
            side: float(np.median(found))
            for side in SIDES
            if (found := [c["answers"] for c in costs if (c["pool"], c["side"]) == (name, side)])
        }
        if len(medians) < len(SIDES):
            continue
        runs = [c for c in costs if c["pool"] == name]
        size, seeds = runs[0]["size"], len({c["seed"] for c in runs})
        others = [side for side in SIDES if side != "ours"]
        best = min(size, *(medians[side] for side in others))
        seen = min(float(np.median([c["hindsight"] for c in runs if c["side"] == side])) for side in others)
        shown = " | ".join(f"{medians[side]:,.0f}" for side in SIDES)
        ours = medians["ours"]
        shares[name] = {side: medians[side] / size for side in SIDES}
        print(
            f"| {name} | {size:,} | {seeds} | {shown} | {ours / best:.2f} | {ours / min(seen, size):.2f} | "
            f"{ours / size:.2f} |"
        )
    if drawn is not None:
        drawn.write_text(cost_svg(shares, SIDES), encoding="utf-8")
    print()
    print(kept.origins([*lines, *costs]))
    return bool(held)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 where a share of false certificates is too large."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks finish", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few projects, the small pool")
    parser.add_argument("--only", choices=("checks", "coverage", "cost"), default=None)
    parser.add_argument("--report", action="store_true", help="print the tables of what is kept")
    parser.add_argument("--pools", nargs="+", default=None, choices=sorted({*POOLS, *COST_POOLS}))
    parser.add_argument("--picture", type=Path, default=None, help="write the cost as an SVG")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)

    def names(default: Sequence[str]) -> Sequence[str]:
        return ["digits"] if given.quick else [name for name in default if name in (given.pools or default)]

    work: dict[str, Callable[[], None]] = {
        "checks": lambda: checks(given.quick),
        "coverage": lambda: coverage(
            given.out, names(POOLS), 100 if given.quick else PROJECTS, 2 if given.quick else FITS
        ),
        "cost": lambda: cost(given.out, names(COST_POOLS), 1 if given.quick else given.seeds),
    }
    if not given.report:
        for what, run in work.items():
            if given.only in (None, what):
                run()
    return 0 if report(given.out, given.picture) else 1


if __name__ == "__main__":
    end(main)
