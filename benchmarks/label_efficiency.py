"""Label efficiency: margin against random questions, a chosen geometry against a fixed one, and rivals.

`python -m benchmarks.label_efficiency [--quick] [--sets ...] [--sides ...] [--seeds N] [--questions N]`:
one label a class of a set of PMLB, then single questions; every side has the same split and first labels.
Area is the mean test error over the questions, early over the first 30, final that of the last ten; fall is
the largest share of the error, mean of the seeds, that goes in one step. Two sides are compared where one
thing differs, which the line says: areas as ratios, final errors, of which some are 0, as differences.
Results are kept in a file, one line a run with the code it is of, and what is there is not run again:
`--report` only prints the tables. `--sets held-out --sides auto early --questions 60 --rows 1500 --out FILE`
compares a first choice of questions with margin in half an hour of one core.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import end, kept
from workbench.arrays import Floats, Ints
from workbench.metrics import gaps_of, wilcoxon_p
from workbench.policies import Belief, utilities
from workbench.pools import load_pool
from workbench.pools.building import number_pool
from workbench.pools.neighbours.graph import Neighbourhood
from workbench.pools.pool import Pool
from workbench.sessions import simulate
from workbench.sessions.drawing import answerable, initial_items

# the geometry's candidates were tried on these
TUNING = (
    "car_evaluation",
    "cmc",
    "german",
    "letter",
    "mfeat_karhunen",
    "mushroom",
    "optdigits",
    "page_blocks",
    "satimage",
    "spambase",
    "splice",
    "vehicle",
    "vowel",
    "waveform_21",
    "yeast",
    "balance_scale",
    "australian",
    "phoneme",
    "led24",
    "soybean",
)
# not these, drawn in this order from sets that are no copies of those above, of 500 to 20,000 rows
OTHERS = (
    "monk2",
    "threeOf9",
    "allrep",
    "solar_flare_2",
    "tic_tac_toe",
    "profb",
    "coil2000",
    "xd6",
    "mfeat_zernike",
    "churn",
    "pima",
    "pendigits",
    "ann_thyroid",
    "led7",
    "clean2",
    "mofn_3_7_10",
    "ring",
    "banana",
    "mfeat_pixel",
    "tokyo1",
    "mfeat_factors",
    "breast",
    "magic",
    "kr_vs_kp",
)
# the second, fourth, ... of the papers' 68: nothing about asking was chosen on these
HELD_OUT = (
    "allhyper",
    "allrep",
    "analcatdata_dmft",
    "ann_thyroid",
    "balance_scale",
    "car",
    "cars",
    "cleveland",
    "cmc",
    "connect_4",
    "dermatology",
    "ecoli",
    "flags",
    "hayes_roth",
    "led24",
    "letter",
    "mfeat_factors",
    "mfeat_karhunen",
    "mfeat_pixel",
    "movement_libras",
    "nursery",
    "page_blocks",
    "prnn_fglass",
    "schizo",
    "shuttle",
    "solar_flare_1",
    "soybean",
    "tae",
    "vehicle",
    "waveform_21",
    "wine_quality_red",
    "wine_recognition",
)
# side -> policy, choice of the geometry and leaning on neighbours, None for what follows from the choice;
# "auto" is what a new project has (`benchmarks/default.py`)
OURS: dict[str, tuple[str, str, str | None]] = {
    "random": ("random", "auto", None),
    "random-fixed": ("random", "fixed", None),
    "fixed": ("margin", "fixed", None),
    "auto": ("margin", "auto", None),
    "alone": ("margin", "auto", "none"),
    "foresight": ("expected-error-reduction", "auto", None),
    "early": ("benchmarks.label_efficiency:early", "auto", None),
}
RIVALS = ("extra-trees", "forest", "logistic", "svc", "smoothed", "catboost")
USUAL_RIVALS = RIVALS[:4]  # CatBoost is of the extra `rivals`, and takes a second a fit
# two sides and the one thing in which they differ
PAIRS: tuple[tuple[str, str, str], ...] = (
    ("auto", "random", "the default: margin against random questions, both to the chosen geometry"),
    ("fixed", "random-fixed", "margin against random questions, both to the fixed geometry"),
    ("auto", "fixed", "chosen against fixed geometry, both asked by margin"),
    ("auto", "alone", "the default: leaning on neighbours as the labels say, or on none"),
    ("random", "random-fixed", "chosen against fixed geometry, both asked at random"),
    ("foresight", "auto", "expected error reduction against margin, both with the chosen geometry"),
    ("early", "auto", "expected error reduction up to 40 labels, then margin, against margin throughout"),
    ("foresight", "random", "expected error reduction against random questions, both to the chosen geometry"),
)
LAST, FIRST, EARLY = 10, 30, 40
RESULTS = Path(__file__).resolve().parent / "results" / "label_efficiency.jsonl"


def early(belief: Belief, rng: np.random.Generator) -> Floats:
    """Expected error reduction up to 40 labels, margin from then on [N]."""
    few = (belief.labels >= 0).sum() < EARLY
    return utilities("expected-error-reduction" if few else "margin", belief, rng)


def rows_of(pool: Pool, items: Ints) -> Pool:
    """Some rows of a table of numbers as a pool of their own."""
    X = np.asarray(pool.features)[items]
    columns = tuple(f"x{column}" for column in range(X.shape[1]))
    return number_pool(pool.name, X, np.asarray(pool.truth)[items], tuple(map(str, pool.classes)), columns)


def capped(pool: Pool, rows: int, seed: int) -> Pool:
    """So many rows of a pool, drawn by the seed; 0: all."""
    if not 0 < rows < len(pool):
        return pool
    return rows_of(pool, np.sort(np.random.default_rng([seed, 11]).permutation(len(pool))[:rows]))


def our_errors(pool: Pool, side: str, seed: int, questions: int) -> list[float]:
    """Test errors after each question."""
    policy, choice, neighbours = OURS[side]
    options = {"choice": choice} | ({} if neighbours is None else {"neighbours": neighbours})
    done = simulate(pool, "large-margin", policy, options=options, budget=questions, seed=seed)
    return [float(one.error) for one in done]


class SVCWithChosenC:
    """An RBF SVC whose C is chosen by cross-validation once every class has three labels."""

    def fit(self, X: Any, y: Any) -> SVCWithChosenC:
        """Fit on [N, D] and [N]."""
        from sklearn.model_selection import GridSearchCV
        from sklearn.svm import SVC

        smallest = int(np.unique(y, return_counts=True)[1].min())
        if smallest >= 3:
            search = GridSearchCV(SVC(decision_function_shape="ovr"), {"C": [1.0, 10.0, 100.0]}, cv=3)
            self.model = search.fit(X, y).best_estimator_
        else:
            self.model = SVC(C=10.0, decision_function_shape="ovr").fit(X, y)
        return self

    def predict_proba(self, X: Any) -> Any:
        """[N, C] a softmax of decision values: only their order counts here."""
        values = self.model.decision_function(X)
        if values.ndim == 1:
            values = np.stack([-values, values], axis=1)
        values = np.exp(values - values.max(axis=1, keepdims=True))
        return values / values.sum(axis=1, keepdims=True)


def rival_model(side: str, seed: int) -> Any:
    """An unfitted rival."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    made: dict[str, Callable[[], Any]] = {
        "extra-trees": lambda: ExtraTreesClassifier(100, random_state=seed),
        "forest": lambda: RandomForestClassifier(100, random_state=seed),
        "logistic": lambda: LogisticRegression(max_iter=300),
        "smoothed": lambda: LogisticRegression(max_iter=300),
        "svc": SVCWithChosenC,
        "catboost": lambda: _catboost(seed),
    }
    return made[side]()


def _catboost(seed: int) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        iterations=200, random_seed=seed, thread_count=1, verbose=False, allow_writing_files=False
    )


def rival_features(pool: Pool, side: str) -> Any:
    """[N, D'] standardised over the pool; codes as indicators for the logistic regressions.

    The smoothed one sees them beside their means over the neighbours of our own graph of the pool, as the
    default does where the pool has one.
    """
    from sklearn.preprocessing import StandardScaler

    X = np.asarray(pool.features, dtype=np.float64)
    if side in ("extra-trees", "forest", "catboost"):
        return X
    if side in ("logistic", "smoothed"):
        parts = []
        for column in X.T:
            found = np.unique(column)
            codes = 3 <= len(found) <= 12 and (found == np.round(found)).all()
            parts.append(column[:, None] == found[None, :] if codes else column[:, None])
        X = np.concatenate(parts, axis=1).astype(np.float64)
    if side == "smoothed":
        neighbourhood = Neighbourhood(pool)
        if len(neighbourhood.strengths) > 1:
            X = np.hstack([X, np.asarray(neighbourhood.seen(neighbourhood.strengths[-1]).features)])
    return StandardScaler().fit_transform(X)


def rival_errors(pool: Pool, side: str, seed: int, questions: int) -> list[float]:
    """Test errors after each question, asked by margin."""
    split = pool if pool.test is not None else pool.split(seed, 0.2)
    assert split.truth is not None and split.test is not None
    X, y, test = rival_features(split, side), np.asarray(split.truth), split.test.test
    items = initial_items(split, "one-per-class", seed)
    errors, rng = [], np.random.default_rng(seed)
    for number in range(questions + 1):
        model = rival_model(side, seed).fit(X[items], y[items])
        classes = np.unique(y[items])
        errors.append(float(np.mean(classes[model.predict_proba(X[test]).argmax(axis=1)] != y[test])))
        free = np.setdiff1d(answerable(split, items), items)
        if number == questions or not len(free):
            break
        top = np.sort(model.predict_proba(X[free]), axis=1)
        gap = top[:, -1] - top[:, -2]
        items = np.append(items, free[rng.choice(np.flatnonzero(gap == gap.min()))])
    return errors


def measured(place: Path) -> dict[tuple[str, str, int, int], dict[str, Any]]:
    """Kept results by set, side, seed and questions."""
    if not place.exists():
        return {}
    lines = [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()]
    return {(line["set"], line["side"], line["seed"], line["questions"]): line for line in lines}


def run(given: argparse.Namespace) -> None:
    """Run what the results file has not."""
    for name in given.sets:
        pool = None
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            for side in given.sides:
                key = (name, side, seed, given.questions)
                if key in measured(given.out):  # whatever the code was: `--report` says so
                    continue
                pool = load_pool(f"pmlb:{name}") if pool is None else pool
                began = time.process_time()
                work = our_errors if side in OURS else rival_errors
                errors = work(capped(pool, given.rows, seed), side, seed, given.questions)
                line = dict(zip(("set", "side", "seed", "questions"), key, strict=True))
                errors = [round(error, 5) for error in errors]
                line |= {"cpu": round(time.process_time() - began, 2), "errors": errors} | kept.stamp()
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


def figures(given: argparse.Namespace) -> dict[str, dict[str, dict[str, float]]]:
    """Set -> side -> area, early, final, fall and processor seconds; of sets where no side is missing."""
    lines = measured(given.out)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name in given.sets:
        sides = {}
        for side in given.sides:
            keys = _keys(given, name, side)
            if all(key in lines for key in keys):
                errors = [lines[key]["errors"] for key in keys]
                sides[side] = {
                    "area": float(np.mean([np.mean(e[1:]) for e in errors])),
                    "early": float(np.mean([np.mean(e[1 : FIRST + 1]) for e in errors])),
                    "fall": largest_fall(errors),
                    "final": float(np.mean([np.mean(e[-LAST:]) for e in errors])),
                    "cpu": float(np.mean([lines[key]["cpu"] for key in keys])),
                }
        if len(sides) == len(given.sides):
            found[name] = sides
    return found


def largest_class() -> None:
    """Print the default's error on `OTHERS` beside that of naming the largest class, and where it is above.

    From kept lines of 100 questions, all seeds.
    """
    runs: dict[str, list[list[float]]] = {}
    for (name, side, _, questions), line in measured(RESULTS).items():
        if side == "auto" and questions == 100 and name in OTHERS:
            runs.setdefault(name, []).append(line["errors"])
    pairs: dict[int, dict[str, tuple[float, float]]] = {n: {} for n in (10, 15, 20, 30, 40)}
    for name, errors in runs.items():
        pool = load_pool(f"pmlb:{name}")
        rest = 1.0 - float(np.bincount(pool.truth).max()) / len(pool)
        for n, table in pairs.items():
            table[name] = float(np.mean(errors, axis=0)[max(n - len(pool.classes), 0)]), rest
    print(
        kept.origins(line for key, line in measured(RESULTS).items() if key[0] in runs and key[1] == "auto")
    )
    for n, table in pairs.items():
        ours, theirs = np.mean(list(table.values()), axis=0)
        above = [f"{name} {error:.2f} / {rest:.2f}" for name, (error, rest) in table.items() if error >= rest]
        print(f"{n} labels: error {ours:.3f}, naming the largest class {theirs:.3f}; not below on: ", end="")
        print(", ".join(above) or "none")


def largest_fall(errors: Sequence[Sequence[float]]) -> float:
    """The largest share of the mean error (a hundredth is added) that goes in one step.

    Args:
        errors: of each run, after each question.
    """
    curve = np.mean([e[: min(map(len, errors))] for e in errors], axis=0) + 0.01
    return float((1.0 - curve[1:] / curve[:-1]).max(initial=0.0))


def _print_labels_needed(given: argparse.Namespace, names: Sequence[str]) -> None:
    """Labels, those of the start among them, at which the mean error of the seeds is first 10 and 5 %."""
    lines = measured(given.out)
    columns = [(side, level) for side in given.sides for level in (0.1, 0.05)]
    print("\nlabels until the mean test error of the seeds is at most so much\n")
    print("| set |", " | ".join(f"{side} {level:.0%}" for side, level in columns), "|")
    print("|---" * (len(columns) + 1) + "|")
    for name in names:
        start = len(load_pool(f"pmlb:{name}").classes)
        cells = []
        for side, level in columns:
            errors = [lines[key]["errors"] for key in _keys(given, name, side)]
            curve = np.mean([e[: min(map(len, errors))] for e in errors], axis=0)
            rows = np.flatnonzero(curve <= level)
            cells.append(str(start + rows[0]) if len(rows) else f"above {start + len(curve) - 1}")
        print(f"| {name} |", " | ".join(cells), "|")


def _keys(given: argparse.Namespace, name: str, side: str) -> list[tuple[str, str, int, int]]:
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    return [(name, side, seed, given.questions) for seed in seeds]


class Compared(NamedTuple):
    """Two sides over sets, exchanged sides give the inverse and the negative.

    Attributes:
        ratio: geometric mean of the ratios of areas, over the sets where neither side has an area of 0.
        difference: median difference of the final errors.
        mean: mean difference of the final errors.
        below: sets on which the first side has the smaller area, and the smaller final error.
        above: sets on which it has the larger one.
        p: Wilcoxon's, of areas and of final errors.
    """

    ratio: float
    difference: float
    mean: float
    below: tuple[int, int]
    above: tuple[int, int]
    p: tuple[float, float]


def compared(one: Mapping[str, Floats], other: Mapping[str, Floats]) -> Compared:
    """Two sides, paired by set.

    Args:
        one: "area" and "final" -> [M] values, a set each.
        other: likewise, of the same sets.
    """
    both = [(np.asarray(one[what]), np.asarray(other[what])) for what in ("area", "final")]
    (a, b), (last, base) = both
    some = (a > 0) & (b > 0)
    gaps = [gaps_of(x, y) for x, y in both]
    return Compared(
        float(np.exp(np.log(a[some] / b[some]).mean())) if some.any() else float("nan"),
        float(np.median(gaps[1])),
        float(gaps[1].mean()),
        (int((gaps[0] < 0).sum()), int((gaps[1] < 0).sum())),
        (int((gaps[0] > 0).sum()), int((gaps[1] > 0).sum())),
        (wilcoxon_p(a, b), wilcoxon_p(last, base)),
    )


def report(given: argparse.Namespace) -> None:
    """Print the tables."""
    from scipy.stats import rankdata

    found = figures(given)
    if not found:
        print("Nothing was measured yet.")
        return
    sides = list(given.sides)
    at = {side: i for i, side in enumerate(sides)}
    table = {
        what: np.array([[found[name][side][what] for side in sides] for name in found])
        for what in ("area", "early", "final", "fall")
    }
    for what, values in table.items():
        print(f"\n{what} of the test error, {given.questions} questions, {given.seeds} seed(s)\n")
        print("| set |", " | ".join(sides), "|")
        print("|---" * (len(sides) + 1) + "|")
        for name, row in zip(found, values, strict=True):
            print(f"| {name} |", " | ".join(f"{v:.3f}" for v in row), "|")
        print("| mean |", " | ".join(f"{v:.3f}" for v in values.mean(axis=0)), "|")
        print(f"the lowest side of each set, in hindsight: {values.min(axis=1).mean():.3f}")
        if what == "fall":
            lines = measured(given.out)
            keys = {side: [key for name in found for key in _keys(given, name, side)] for side in sides}
            falls = (largest_fall([lines[key]["errors"] for key in keys[side]]) for side in sides)
            print("| of the mean curve |", " | ".join(f"{v:.3f}" for v in falls), "|")
            continue
        ranked = [s for s in sides if s in ("auto", "foresight", *RIVALS)]
        if len(ranked) > 1:
            ranks = rankdata(np.round(values[:, [at[s] for s in ranked]], 12), axis=1).mean(axis=0)
            print("\nmean ranks:", ", ".join(f"{s} {r:.2f}" for s, r in zip(ranked, ranks, strict=True)))
    _print_labels_needed(given, list(found))
    rivals = [(ours, rival, f"{ours} against {rival}") for ours in ("auto",) for rival in RIVALS]
    print()
    for one, other, what in (*PAIRS, *rivals):
        if one in at and other in at and len(found) > 1:
            c = compared(*({k: values[:, at[side]] for k, values in table.items()} for side in (one, other)))
            print(
                f"{what}: {c.ratio:.3f} of the area (below on {c.below[0]} of {len(found)} sets, p = "
                f"{c.p[0]:.2g}); final error {100 * c.difference:+.1f} points in the median, "
                f"{100 * c.mean:+.1f} in the mean (below on {c.below[1]}, above on {c.above[1]}, "
                f"p = {c.p[1]:.2g})"
            )
    if "auto" in at:
        for what, values in ((what, table[what]) for what in ("area", "final")):
            mine = values[:, at["auto"]]
            others = [at[s] for s in sides if s in RIVALS]
            if others:
                behind = int((mine > 1.1 * values[:, others].min(axis=1)).sum())
                print(f"{what}: auto more than 10 % behind the best rival on {behind} of {len(found)} sets")
            if "random" in at:
                worse = [
                    n for n, v in zip(found, values, strict=True) if v[at["auto"]] > 1.1 * v[at["random"]]
                ]
                print(
                    f"{what}: auto more than 10 % above random on {len(worse)}: {', '.join(worse) or 'none'}"
                )
    seconds = {side: np.mean([found[name][side]["cpu"] for name in found]) for side in sides}
    print("\nprocessor seconds a run:", ", ".join(f"{s} {v:.1f}" for s, v in seconds.items()))
    out = [name for name in given.sets if name not in found]
    if out:
        print(f"Left out, as a side was not run on every seed: {', '.join(out)}.")
    print(kept.origins(lines[key] for side in sides for key in keys[side]))


def rounds(quick: bool = False) -> None:
    """Print what a round (fit and question) costs on 10,000 items of 10 features and 4 classes, and a peer's.

    In process time; ours with the scoring of 2,000 test items. The peer is scikit-activeml's entropy sampling
    over scikit-learn's GP, at six numbers of labels between which its cost is taken to be linear.
    """
    from sklearn.datasets import make_classification

    X, y = make_classification(10_000, 10, n_informative=6, n_classes=4, random_state=0)
    pool = number_pool("made", X, y, tuple("abcd"), tuple(f"x{i}" for i in range(10)))
    found: dict[str, Any] = {}
    for warm in (True, False):  # the first time compiles
        for choice in ("fixed", "auto"):
            run = simulate(pool, options={"choice": choice}, budget=20 if quick or warm else 100, seed=0)
            found[choice] = 1e3 * np.diff([time.process_time() for _ in run])[:-1]
    for choice, spent in found.items():
        mean, median, most = spent.mean(), np.median(spent), spent.max()
        print(f"{choice}: {mean:.1f} ms in the mean, {median:.1f} in the median, {most:.0f} at most")
    print(f"auto / fixed: {found['auto'].mean() / found['fixed'].mean():.2f} in the mean (goal at most 3)")
    sizes = np.linspace(5, 104, 2 if quick else 6).astype(int)
    peer = np.interp(np.arange(5, 104), sizes, [_peer_round(X, y, int(n)) for n in sizes])
    theirs, mine = float(peer.mean()), found["auto"]
    without = float(np.median(mine))
    print(
        f"scikit-activeml over scikit-learn's GP: {theirs:.0f} ms in the mean, {theirs / mine.mean():.1f} x "
        f"ours (goal 5); rounds without a choice: {np.median(peer) / without:.1f} x (goal 10)"
    )


def _peer_round(X: Any, y: Any, n: int) -> float:
    """Milliseconds of one question of scikit-activeml at n labels, fit included."""
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import UncertaintySampling
    from sklearn.gaussian_process import GaussianProcessClassifier

    items = np.random.default_rng(0).permutation(len(X))[:n]
    labels = np.full(len(X), np.nan)
    labels[items] = y[items]
    model = SklearnClassifier(GaussianProcessClassifier(random_state=0), classes=np.unique(y))
    strategy = UncertaintySampling(method="entropy", random_state=0)
    spent = []
    for _ in range(3):
        began = time.process_time()
        strategy.query(X=X, y=labels, clf=model)
        spent.append(1e3 * (time.process_time() - began))
    return float(np.median(spent))


def main(arguments: Sequence[str] = ()) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.label_efficiency", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two sets, one seed, 20 questions, ours only")
    parser.add_argument("--sets", nargs="*", default=TUNING, help="`others`: those not tuned on; `held-out`")
    parser.add_argument(
        "--sides", nargs="*", default=("random", "random-fixed", "fixed", "auto", *USUAL_RIVALS)
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--rows", type=int, default=0, help="of a set at most, drawn by the seed; 0: all")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="print what the file has, run nothing")
    given = parser.parse_args(arguments)
    if len(given.sets) == 1:
        given.sets = {"others": OTHERS, "held-out": HELD_OUT}.get(given.sets[0], given.sets)
    unknown = [side for side in given.sides if side not in (*OURS, *RIVALS)]
    if unknown:
        parser.error(f"no side {unknown[0]!r}; there are {', '.join((*OURS, *RIVALS))}")
    if given.quick:
        given.sets, given.sides, given.seeds = given.sets[:2], ("random", "random-fixed", "fixed", "auto"), 1
        given.questions = 20
    if not given.report:
        run(given)
    report(given)
    return 0


if __name__ == "__main__":
    end(main)
