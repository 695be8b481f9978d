"""How few labels: the geometry chosen from the labels, today's fixed one, and rivals, on sets of PMLB.

`python -m benchmarks.label_efficiency [--quick] [--sets ...] [--sides ...] [--seeds N] [--questions N]`:
one label a class, then single questions; every side has the same split and first labels. Area is the mean
test error over the questions, final that of the last ten. Results are kept in a file, one line a run, and
what is there is not run again: `--report` only prints the tables.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.metrics import wilcoxon_p
from workbench.pools import load_pool
from workbench.pools.pool import Pool
from workbench.sessions import simulate
from workbench.sessions.start import initial_items

# the geometry's candidates were tried on these
TUNING = (
    "car_evaluation", "cmc", "german", "letter", "mfeat_karhunen", "mushroom", "optdigits", "page_blocks",
    "satimage", "spambase", "splice", "vehicle", "vowel", "waveform_21", "yeast", "balance_scale",
    "australian", "phoneme", "led24", "soybean",
)  # fmt: skip
# not these, drawn in this order from sets that are no copies of those above, of 500 to 20,000 rows
OTHERS = (
    "monk2", "threeOf9", "allrep", "solar_flare_2", "tic_tac_toe", "profb", "coil2000", "xd6",
    "mfeat_zernike", "churn", "pima", "pendigits", "ann_thyroid", "led7", "clean2", "mofn_3_7_10", "ring",
    "banana", "mfeat_pixel", "tokyo1", "mfeat_factors", "breast", "magic", "kr_vs_kp",
)  # fmt: skip
OURS: dict[str, tuple[str, str]] = {
    "random": ("random", "fixed"),
    "fixed": ("margin", "fixed"),
    "auto": ("margin", "auto"),
    "foresight": ("expected-error-reduction", "auto"),
}
RIVALS = ("extra-trees", "forest", "logistic", "svc")
LAST = 10
RESULTS = Path(__file__).resolve().parent / "results" / "label_efficiency.jsonl"


def our_errors(pool: Pool, side: str, seed: int, questions: int) -> list[float]:
    """Test errors after each question."""
    policy, choice = OURS[side]
    done = simulate(pool, "large-margin", policy, options={"choice": choice}, budget=questions, seed=seed)
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
        "svc": SVCWithChosenC,
    }
    return made[side]()


def rival_features(X: Any, side: str) -> Any:
    """[N, D'] standardised over the pool; codes as indicators for the logistic regression."""
    from sklearn.preprocessing import StandardScaler

    X = np.asarray(X, dtype=np.float64)
    if side in ("extra-trees", "forest"):
        return X
    if side == "logistic":
        parts = []
        for column in X.T:
            found = np.unique(column)
            codes = 3 <= len(found) <= 12 and (found == np.round(found)).all()
            parts.append(column[:, None] == found[None, :] if codes else column[:, None])
        X = np.concatenate(parts, axis=1).astype(np.float64)
    return StandardScaler().fit_transform(X)


def rival_errors(pool: Pool, side: str, seed: int, questions: int) -> list[float]:
    """Test errors after each question, asked by margin."""
    split = pool if pool.test is not None else pool.split(seed, 0.2)
    assert split.truth is not None and split.test is not None
    X, y, test = rival_features(split.features, side), np.asarray(split.truth), split.test.test
    items = initial_items(split, "one-per-class", seed)
    errors, rng = [], np.random.default_rng(seed)
    for number in range(questions + 1):
        model = rival_model(side, seed).fit(X[items], y[items])
        classes = np.unique(y[items])
        errors.append(float(np.mean(classes[model.predict_proba(X[test]).argmax(axis=1)] != y[test])))
        free = np.setdiff1d(split.trainable, items)
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
                if key in measured(given.out):
                    continue
                pool = load_pool(f"pmlb:{name}") if pool is None else pool
                began = time.process_time()
                work = our_errors if side in OURS else rival_errors
                errors = work(pool, side, seed, given.questions)
                line = dict(zip(("set", "side", "seed", "questions"), key, strict=True))
                errors = [round(error, 5) for error in errors]
                line |= {"cpu": round(time.process_time() - began, 2), "errors": errors}
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


def figures(given: argparse.Namespace) -> dict[str, dict[str, dict[str, float]]]:
    """Set -> side -> area, final and processor seconds, over the seeds; of sets where no side is missing."""
    kept = measured(given.out)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name in given.sets:
        sides = {}
        for side in given.sides:
            keys = [
                (name, side, s, given.questions)
                for s in range(given.first_seed, given.first_seed + given.seeds)
            ]
            if all(key in kept for key in keys):
                errors = [kept[key]["errors"] for key in keys]
                sides[side] = {
                    "area": float(np.mean([np.mean(e[1:]) for e in errors])),
                    "final": float(np.mean([np.mean(e[-LAST:]) for e in errors])),
                    "cpu": float(np.mean([kept[key]["cpu"] for key in keys])),
                }
        if len(sides) == len(given.sides):
            found[name] = sides
    return found


def report(given: argparse.Namespace) -> None:
    """Print the tables."""
    from scipy.stats import rankdata

    found = figures(given)
    if not found:
        print("Nothing was measured yet.")
        return
    sides = list(given.sides)
    at = {side: i for i, side in enumerate(sides)}
    for what in ("area", "final"):
        values = np.array([[found[name][side][what] for side in sides] for name in found])
        print(f"\n{what} of the test error, {given.questions} questions, {given.seeds} seed(s)\n")
        print("| set |", " | ".join(sides), "|")
        print("|---" * (len(sides) + 1) + "|")
        for name, row in zip(found, values, strict=True):
            print(f"| {name} |", " | ".join(f"{v:.3f}" for v in row), "|")
        safe = np.maximum(values, 1e-3)
        for base in ("random", "fixed"):
            if base in at:
                ratios = np.exp(np.log(safe / safe[:, [at[base]]]).mean(axis=0))
                print(f"| ratio to {base} |", " | ".join(f"{v:.3f}" for v in ratios), "|")
        compared = [s for s in sides if s in ("auto", "foresight", *RIVALS)]
        ranks = rankdata(values[:, [at[s] for s in compared]], axis=1).mean(axis=0)
        print("\nmean ranks:", ", ".join(f"{s} {r:.2f}" for s, r in zip(compared, ranks, strict=True)))
        for ours in ("auto", "foresight"):
            if ours not in at:
                continue
            mine = values[:, at[ours]]
            for base in ("random", "fixed"):
                if base in at and len(found) > 1:
                    theirs = values[:, at[base]]
                    p, below = wilcoxon_p(mine, theirs), int((mine < theirs).sum())
                    print(f"{ours} below {base} on {below} of {len(found)} sets, p = {p:.2g}")
            rivals = [at[s] for s in sides if s in RIVALS]
            if rivals:
                behind = mine > 1.1 * values[:, rivals].min(axis=1)
                print(
                    f"{ours} more than 10 % behind the best rival on {int(behind.sum())} of {len(found)} sets"
                )
            if "random" in at:
                worse = int((mine > 1.1 * values[:, at["random"]]).sum())
                print(f"{ours} more than 10 % above random on {worse} of {len(found)} sets")
    seconds = {side: np.mean([found[name][side]["cpu"] for name in found]) for side in sides}
    print("\nprocessor seconds a run:", ", ".join(f"{s} {v:.1f}" for s, v in seconds.items()))


def rounds(quick: bool = False) -> None:
    """Print what a round (fit and question) costs on 10,000 items of 10 features and 4 classes, and a peer's.

    In process time; ours with the scoring of 2,000 test items. The peer is scikit-activeml's entropy sampling
    over scikit-learn's GP, at six numbers of labels between which its cost is taken to be linear.
    """
    from sklearn.datasets import make_classification

    from workbench.pools.building import number_pool

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
    parser.add_argument("--sets", nargs="*", default=TUNING, help="`others`: those not tuned on")
    parser.add_argument("--sides", nargs="*", default=("random", "fixed", "auto", *RIVALS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="print what the file has, run nothing")
    given = parser.parse_args(arguments)
    if list(given.sets) == ["others"]:
        given.sets = OTHERS
    unknown = [side for side in given.sides if side not in (*OURS, *RIVALS)]
    if unknown:
        parser.error(f"no side {unknown[0]!r}; there are {', '.join((*OURS, *RIVALS))}")
    if given.quick:
        given.sets, given.sides, given.seeds = given.sets[:2], ("random", "fixed", "auto"), 1
        given.questions = 20
    if not given.report:
        run(given)
    report(given)
    return 0


if __name__ == "__main__":
    import sys

    raise SystemExit(main(sys.argv[1:]))
