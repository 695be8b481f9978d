"""Errors by labels on features as they were (pixels) and as they are learnt (shapes, pieces)."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.default import default
from benchmarks.kept import UNSHARED, once
from workbench.arrays import Array, Ints
from workbench.classifiers import LargeMarginClassifier
from workbench.pools import load_pool
from workbench.pools.building import image_pool
from workbench.pools.datasets.catalogue import find_file
from workbench.pools.encoders import ENCODERS, open_encoder
from workbench.pools.features.encoded import joined
from workbench.pools.features.pieces import PiecesFeatureMap
from workbench.pools.features.vectors import VectorFeatureMap
from workbench.pools.items import ArrayItems, ImageItems, RowNumbers, TextItems
from workbench.pools.pool import Pool, TestSplit
from workbench.sessions.learner import Learner
from workbench.sessions.start import diverse_rows, standardised

MARKS = (50, 100, 200, 500, 1000)
PENALTIES = {"logistic": [0.01, 0.1, 1.0, 10.0], "svm": [0.001, 0.01, 0.1, 1.0]}
_FOLDS = 5
_OPTIONS = {"length": "length_scale_factor", "rare": "rare_margin"}
CURVES = UNSHARED / "curves.jsonl"
"""Curves as soon as they are drawn: the same code does not draw them again."""
SETS = ("mnist", "fashion_mnist", "cifar10_jpeg", "banking77")


def features_of(
    name: str, n: int, seed: int, encoders: Sequence[str] = ()
) -> tuple[dict[str, Array], Ints, dict[str, float]]:
    """Old and new features of n items drawn from a set, their classes, and the seconds each took."""
    rng = np.random.default_rng([seed, n])
    found, seconds = {}, {}
    if name == "banking77":
        file = find_file("text/banking77/train.csv")
        if file is None:
            raise SystemExit("banking77 lies in no data folder; WORKBENCH_DATA names one.")
        pool = load_pool(file, text_column="text", target="category")
        assert isinstance(pool.items, TextItems) and pool.truth is not None
        rows = np.sort(rng.permutation(len(pool))[:n])
        texts = [pool.items.texts[row] for row in rows]
        makers: dict[str, Any] = {
            "pieces": lambda: PiecesFeatureMap.of(texts, n_classes=77).transform(texts),
        }
        encoded = {
            name: partial(_by, name, "text", texts) for name in encoders if ENCODERS[name].kind == "text"
        }
    else:
        pool = load_pool(f"images:{name}", features="pixels")
        assert isinstance(pool.items, ImageItems) and pool.truth is not None
        rows = np.sort(rng.permutation(len(pool))[:n])
        images = np.asarray(pool.items.images[rows])
        makers = {
            kind: lambda kind=kind: image_pool(name, images, None, (), features=kind).features
            for kind in ("pixels", "shapes")
        }
        encoded = {n: partial(_by, n, "image", images) for n in encoders if ENCODERS[n].kind == "image"}
    truth = np.asarray(pool.truth)[rows]
    del pool
    for kind, make in makers.items():
        began = time.process_time()
        found[kind] = make()
        seconds[kind] = time.process_time() - began
    learnt = list(makers)[-1]
    for kind, make in encoded.items():
        began = time.process_time()
        found[kind] = make()
        seconds[kind] = time.process_time() - began
        found[f"{learnt}+{kind}"] = joined([found[learnt], found[kind]])
        seconds[f"{learnt}+{kind}"] = seconds[learnt] + seconds[kind]
    return found, truth, seconds


def _by(encoder: str, kind: str, items: Sequence[Any]) -> Array:
    vectors = open_encoder(encoder, kind)(items)
    return VectorFeatureMap.of(vectors, encoder).transform(vectors)


def rival(side: str, scale: float, n: int) -> Any:
    """A linear model as whoever takes one has it: inputs over one number, the penalty by cross-validation.

    Args:
        side: "logistic" or "svm".
        scale: standard deviation of all columns of the pool together, about their means.
        n: labels it will have; below twice the folds the penalty is the default one.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer
    from sklearn.svm import LinearSVC

    model = LinearSVC() if side == "svm" else LogisticRegression(max_iter=500)
    made = make_pipeline(FunctionTransformer(partial(_divided, by=scale)), model)
    if n < 2 * _FOLDS:
        return made
    folds = KFold(_FOLDS, shuffle=True, random_state=0)
    return GridSearchCV(made, {f"{made.steps[-1][0]}__C": PENALTIES[side]}, cv=folds, scoring="accuracy")


def smoothed(X: Array, train: Ints, strength: str) -> Array:
    """[N, D'] features that lean on neighbours, the test items outside the graph.

    Args:
        X: [N, D].
        train: [n] items of the graph.
        strength: of `pools.neighbours.graph.STRENGTHS`.
    """
    from workbench.pools.neighbours.graph import Neighbourhood

    return np.asarray(Neighbourhood(pool_of(X, np.zeros(len(X), np.int64), train)).seen(strength).features)


def pool_of(X: Array, y: Ints, train: Ints) -> Pool:
    """A pool of these features whose other items are for testing."""
    test = np.setdiff1d(np.arange(len(X)), train)
    names = tuple(f"f{d}" for d in range(X.shape[1]))
    return replace(
        load_pool("digits"),
        name="features",
        kind="table",
        features=X,
        truth=y,
        classes=tuple(f"c{c:03d}" for c in range(int(y.max()) + 1)),
        items=ArrayItems(RowNumbers(len(X)), X, names),
        fingerprints=np.arange(len(X), dtype=np.uint64),
        common_scale=True,
        test=TestSplit(0, len(test) / len(X), np.sort(train), test, given=True),
    )


def _divided(X: Any, by: float) -> Any:
    return X / by


def common_scale(X: Any) -> float:
    """Root mean variance of the columns of [N, D], dense or sparse: one number, so that their shape stays."""
    square, mean = X.multiply(X) if hasattr(X, "multiply") else np.square(X), X.mean(axis=0)
    return float(np.sqrt(max(float(np.mean(square.mean(axis=0) - np.square(mean))), 1e-300)))


def term_weights(name: str, n: int, seed: int) -> Any:
    """[n, terms] sparse sublinear TF-IDF of words and pairs of words, as the rivals have it of texts."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    file = find_file(f"text/{name}/train.csv")
    assert file is not None
    pool = load_pool(file, text_column="text", target="category")
    assert isinstance(pool.items, TextItems)
    rows = np.sort(np.random.default_rng([seed, n]).permutation(len(pool))[:n])
    texts = [pool.items.texts[row] for row in rows]
    return TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2).fit_transform(texts)


def curve(
    X: Any,
    y: Ints,
    marks: tuple[int, ...],
    policy: str,
    seed: int,
    side: str = "default",
    inside: bool = False,
) -> list[float]:
    """Error on the last third of the items at each number of labels.

    Args:
        X: [N, D] features.
        y: [N] classes.
        marks: numbers of labels.
        policy: "margin" or "random".
        seed: of the order of items.
        side: "default" (what a new project has: geometry and neighbours chosen from the labels), "alone"
            (the same without neighbours), "length:F" (the default with F median distances as its length
            scale), "rare:F" (with such a wider margin of classes with few labels), "leaning:S" (leaning on
            neighbours as strongly as S), "fixed" (geometry of the pool), "svm", "logistic";
            these two with a strength behind a colon ("svm:strong") see features that lean on neighbours.
        inside: measured on the pool's items without a label, which are in the graph, instead.
    """
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(len(y))
    test, open_ = order[: len(y) // 3], list(order[len(y) // 3 :])
    y = np.unique(y, return_inverse=True)[1]
    side, _, strength = side.partition(":")
    ours = side in ("default", "alone", "fixed", "leaning", *_OPTIONS)
    if strength and not ours:
        X = smoothed(X, np.sort(order[len(y) // 3 :]), strength)
    learner: Any = None
    if ours:  # as in a project
        options = dict(default().options) if side == "default" else {"choice": "auto", "neighbours": "none"}
        if side == "fixed":
            options = {"choice": "fixed"}
        if side in _OPTIONS:
            options = dict(default().options) | {_OPTIONS[side]: float(strength)}
        if side == "leaning":
            options = dict(default().options) | {"neighbours": strength}
        pool = pool_of(X, y, np.sort(order[len(y) // 3 :]))
        learner = Learner(pool, "large-margin", options, seed=seed)
    scale = 1.0 if ours else common_scale(X)
    labelled: list[int] = []
    errors = []
    # margin asks in batches of a quarter of what is labelled, as a person in a hurry would
    steps = [min(marks)]
    while steps[-1] < max(marks):
        larger = min(mark for mark in marks if mark > steps[-1])
        steps.append(min(larger, int(steps[-1] * 1.25)) if policy == "margin" else larger)
    model: Any = None
    for step in steps:
        wanted = step - len(labelled)
        if policy == "margin" and model is not None:
            if ours:
                scores = model.predict_proba(np.asarray(open_))
            else:
                scores = (model.decision_function if side == "svm" else model.predict_proba)(X[open_])
            top = np.sort(_columns(scores), axis=1)[:, -2:]
            chosen = np.argsort(top[:, 1] - top[:, 0], kind="stable")[:wanted].tolist()
        else:
            chosen = list(range(wanted))
        taken = {open_[place] for place in chosen}
        labelled += sorted(taken)
        open_ = [row for row in open_ if row not in taken]
        if ours:
            state = None if model is None else model.state
            items = np.asarray(labelled)
            model = learner.fit(items, y[items], number=step, previous=state)
        else:
            model = rival(side, scale, len(labelled)).fit(X[labelled], y[labelled])
        if step in marks:
            rows = np.asarray(open_) if inside else test
            predicted = model.predict_proba(rows).argmax(axis=1) if ours else model.predict(X[rows])
            errors.append(float(np.mean(predicted != y[rows])))
    return errors


def uneven(y: Ints, seed: int) -> Ints:
    """Items of a set that is left with classes of unequal size, each a part smaller than the last.

    Args:
        y: [N] classes of equal size.
        seed: of which class is large and which items stay.

    Returns:
        [n] items; the smallest class has a twentieth of the largest.
    """
    rng = np.random.default_rng([seed, 0x0DD])
    classes, codes = np.unique(y, return_inverse=True)
    share = np.geomspace(1.0, 0.05, len(classes))[rng.permutation(len(classes))]
    return np.flatnonzero(rng.random(len(y)) < share[codes])


def start(X: Array, y: Ints, n: int, seed: int) -> tuple[float, float]:
    """Error after n first labels: of items spread over the pool by k-means, and of random ones."""
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(len(y))
    test, open_ = order[: len(y) // 3], order[len(y) // 3 :]
    classes = np.unique(y)
    geometry = LargeMarginClassifier(classes=classes).measure(X, seed, common_scale=True)
    errors = []
    for chosen in (open_[diverse_rows(standardised(X[open_], True), n, seed)], open_[:n]):
        model = LargeMarginClassifier(classes=classes, choice="fixed", geometry=geometry, random_state=seed)
        model.fit(X[chosen], y[chosen])
        errors.append(float(np.mean(model.predict(X[test]) != y[test])))
    return errors[0], errors[1]


def _columns(scores: Array) -> Array:
    return scores if scores.ndim == 2 else np.stack([-scores, scores], axis=1)  # of two classes


def labels_to_reach(marks: tuple[int, ...], errors: list[float], target: float) -> float:
    """Labels at which the error first is the target, between marks on a log scale; infinite if never."""
    if errors[0] <= target:
        return float(marks[0])
    for i in range(1, len(marks)):
        if errors[i] <= target:
            part = (errors[i - 1] - target) / max(errors[i - 1] - errors[i], 1e-12)
            return float(np.exp(np.log(marks[i - 1]) + part * np.log(marks[i] / marks[i - 1])))
    return float("inf")


def _print_start(name: str, arguments: argparse.Namespace) -> None:
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(arguments.seeds):
        features, truth, _ = features_of(name, arguments.items, seed, arguments.encoders)
        for kind, X in features.items():
            found.setdefault(kind, []).append(start(X, truth, arguments.start, seed))
    for kind, errors in found.items():
        spread, drawn = np.mean(errors, axis=0)
        words = f"{spread:.3f} by k-means, {drawn:.3f} at random"
        print(f"{name:14} {kind:8} {arguments.start} first labels: {words}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--items", type=int, default=12_000)
    parser.add_argument("--labels", nargs="+", type=int, default=list(MARKS))
    parser.add_argument("--policy", choices=("margin", "random"), default="margin")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rivals", action="store_true", help="linear models on the same features, too")
    parser.add_argument("--alone", action="store_true", help="the default without neighbours, too")
    parser.add_argument(
        "--leaning", nargs="*", default=[], help="strengths of neighbours that rivals see, too"
    )
    parser.add_argument(
        "--set-by-hand", nargs="*", default=[], help="the default with these strengths of neighbours"
    )
    parser.add_argument("--uneven", action="store_true", help="classes of unequal size")
    parser.add_argument("--inside", action="store_true", help="measure on the pool's unlabelled items")
    parser.add_argument("--fixed", action="store_true", help="the fixed geometry, too")
    parser.add_argument("--lengths", nargs="*", default=[], help="the default with these length scales, too")
    parser.add_argument(
        "--rare", nargs="*", default=[], help="the default with these margins of rare classes"
    )
    parser.add_argument("--kinds", nargs="*", default=[], help="only these features (shapes, pieces, ...)")
    parser.add_argument("--encoders", nargs="*", default=[], help="names of encoders to measure beside them")
    parser.add_argument("--start", type=int, default=0, help="only the error after so many first labels")
    return parser


def sides_of(arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Sides beside the default that were asked for, and those of them that are linear models."""
    rivals = ["svm", "logistic"] if arguments.rivals else []
    mine = [name for name in ("alone", "fixed") if getattr(arguments, name)]
    mine += [f"length:{float(length):g}" for length in arguments.lengths]
    mine += [f"rare:{float(margin):g}" for margin in arguments.rare]
    mine += [f"leaning:{strength}" for strength in arguments.set_by_hand]
    leaning = [f"{side}:{strength}" for side in rivals for strength in arguments.leaning]
    return [*mine, *rivals, *leaning], rivals


def curves_of(
    arguments: argparse.Namespace, name: str, seed: int, place: Path = CURVES
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Every curve of one set and seed, each said on stderr and kept when it is there.

    Args:
        arguments: of the command.
        name: of the set.
        seed: of items and questions.
        place: where curves are kept that need not be drawn again.

    Returns:
        "kind" or "kind, side" -> errors at the numbers of labels; the seconds their features took.
    """
    marks = tuple(sorted(arguments.labels))
    found, truth, seconds = features_of(name, arguments.items, seed, arguments.encoders)
    found = {kind: X for kind, X in found.items() if kind in (arguments.kinds or found)}
    if arguments.uneven:
        kept = uneven(truth, seed)
        found, truth = {kind: X[kept] for kind, X in found.items()}, truth[kept]
    others, rivals = sides_of(arguments)
    wanted = [(kind, "default") for kind in found]
    if rivals and name == "banking77" and not arguments.kinds and not arguments.uneven:
        found["tf-idf"], seconds["tf-idf"] = term_weights(name, arguments.items, seed), 0.0
    wanted += [(kind, side) for kind in found for side in (others if kind != "tf-idf" else rivals)]
    asked = {
        "set": name,
        "seed": seed,
        "labels": list(marks),
        "items": arguments.items,
        "policy": arguments.policy,
        "uneven": arguments.uneven,
        "inside": arguments.inside,
        "by": hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12],
    }
    curves: dict[str, list[float]] = {}
    for kind, side in wanted:
        draw = partial(curve, found[kind], truth, marks, arguments.policy, seed, side, arguments.inside)
        title = kind if side == "default" else f"{kind}, {side}"
        curves[title] = once(place, asked | {"kind": kind, "side": side}, draw)
        said = f"{name:14} {title:8} seed {seed}  {_listed(marks, curves[title])}"
        print(said, file=sys.stderr, flush=True)
        seconds[title] = seconds[kind]
    return curves, seconds


def paired(mine: Sequence[list[float]], base: Sequence[list[float]]) -> list[tuple[float, float]]:
    """Ratio of errors to those of the default, and the standard error over seeds.

    Args:
        mine: errors of each seed at each number of labels.
        base: of the default, of the same seeds.

    Returns:
        (mean difference, its standard error) at each number of labels.
    """
    differences = np.asarray(mine) - np.asarray(base)
    errors = differences.std(axis=0, ddof=1) / np.sqrt(len(differences))
    return list(zip(differences.mean(axis=0).tolist(), errors.tolist(), strict=True))


def _listed(marks: Sequence[int], errors: Sequence[float]) -> str:
    return " ".join(f"{mark}: {error:.3f}" for mark, error in zip(marks, errors, strict=True))


def main(flags: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(flags)
    marks = tuple(sorted(arguments.labels))
    if arguments.start:
        for name in arguments.sets:
            _print_start(name, arguments)
        return 0
    for name in arguments.sets:
        curves: dict[str, list[list[float]]] = {}
        for seed in range(arguments.seeds):
            drawn, seconds = curves_of(arguments, name, seed)
            for title, errors in drawn.items():
                curves.setdefault(title, []).append(errors)
        means = {title: np.mean(several, axis=0).tolist() for title, several in curves.items()}
        for title, errors in means.items():
            said = f"{name:14} {title:8} {_listed(marks, errors)}"
            print(f"{said}  ({seconds[title]:.0f} s of processor)", flush=True)
        for title, several in curves.items():
            kind, _, side = title.partition(", ")
            if side and kind in curves and arguments.seeds > 1:
                more = zip(marks, paired(several, curves[kind]), strict=True)
                said = " ".join(f"{mark}: {mean:+.4f} ± {error:.4f}" for mark, (mean, error) in more)
                print(f"{name:14} {title:8} less the default of the same seed: {said}", flush=True)
        old = next(iter(means.values()))
        for kind, new in [(kind, new) for kind, new in means.items() if "," not in kind][1:]:
            needed = labels_to_reach(marks, new, old[-1])
            bound = "at least " if needed == marks[0] else ""
            print(
                f"{name:14} {marks[-1]} labels on the old are {needed:.0f} on {kind}: {bound}"
                f"{marks[-1] / needed:.1f} times fewer",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
