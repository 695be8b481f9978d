"""Which features the labels prefer: the leave-one-out score of the default model on each set there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.classifiers import LargeMarginClassifier
from workbench.errors import InputError
from workbench.pools.encoders import ENCODERS, open_encoder
from workbench.pools.features.encoded import EncoderFeatureMap, JoinedFeatureMap
from workbench.pools.features.pieces import PiecesFeatureMap
from workbench.pools.features.pixels import ImageFeatureMap
from workbench.pools.features.shapes import SMALLEST, ShapesFeatureMap, small_copies
from workbench.pools.features.texts import TextFeatureMap
from workbench.pools.features.vectors import VectorFeatureMap
from workbench.pools.pool import FeatureMap, Pool
from workbench.progress import OnProgress

LEAST_LABELS = 20
MOST_ITEMS = 1000
_STEP = 50  # items between two reports


class Scored(NamedTuple):
    """One set of features under the leave-one-out score.

    Attributes:
        features: its name, as `features=` takes it.
        in_use: whether it is what the project's model sees now.
        error: share of labels whose class the model, without that label, gets wrong; NaN where it failed.
        log_likelihood: mean log probability of each label without that label.
        seconds: of processor that it took.
        problem: why it has no score; "" where it has.
    """

    features: str
    in_use: bool
    error: float
    log_likelihood: float
    seconds: float
    problem: str = ""


@dataclass(frozen=True)
class Preference:
    """Sets of features, the one with the highest leave-one-out likelihood first.

    Attributes:
        scores: of each set that could be made.
        n_labels: how many labels decided.
        n_items: how many items the features were made from.
    """

    scores: tuple[Scored, ...]
    n_labels: int
    n_items: int

    @property
    def best(self) -> Scored | None:
        """The first that has a score."""
        return next((one for one in self.scores if not one.problem), None)

    def __str__(self) -> str:
        """The errors in one line: "shapes 0.19, pixels 0.31"."""
        said = [f"{one.features} {one.error:.2f}" for one in self.scores if not one.problem]
        return ", ".join(said) or "no set has a score"


def name_of(feature_map: FeatureMap) -> str:
    """What `features=` calls the set that a map makes; "in use" where it has no such name."""
    if isinstance(feature_map, JoinedFeatureMap):
        return "+".join(name_of(part) for part in feature_map.parts)
    if isinstance(feature_map, ImageFeatureMap):
        return "pixels" if feature_map.axes is None else "pca"
    if isinstance(feature_map, EncoderFeatureMap):
        return feature_map.encoder
    if isinstance(feature_map, VectorFeatureMap):
        return feature_map.source or "vectors"
    names: tuple[tuple[type, str], ...] = (
        (ShapesFeatureMap, "shapes"),
        (PiecesFeatureMap, "pieces"),
        (TextFeatureMap, "topics"),
    )
    return next((name for kind, name in names if isinstance(feature_map, kind)), "in use")


def prefer(
    pool: Pool,
    labels: Mapping[int, int],
    n_classes: int,
    *,
    sets: Sequence[str] | None = None,
    seed: int = 0,
    report: OnProgress | None = None,
) -> Preference:
    """Score every set of features that these items can have, without asking for a label more.

    Each set is made from the labelled items and others up to 1,000 together, so that an encoder costs
    minutes at most; the set in use is taken as it is. The default model is then fitted on the labels and
    judged on each of them as if that one had not been there. Labels were asked for where the set in use
    is in doubt, which makes the others look a little better than they are.

    Args:
        pool: of images or texts.
        labels: item -> class code, of the items the model learns from.
        n_classes: C.
        sets: names to score beside the one in use; all that are installed unless given.
        seed: of the items drawn and of the fits.
        report: told how far it is; may raise to stop.

    Returns:
        The sets, best first.

    Raises:
        InputError: a table, fewer than 20 labels, labels of one class, or no such set.
    """
    if pool.kind == "table":
        raise InputError(
            "Only images and texts have several sets of features; these items are rows of a table."
        )
    if len(labels) < LEAST_LABELS or len(set(labels.values())) < 2:
        raise InputError(
            f"The leave-one-out score needs at least {LEAST_LABELS} labels of two classes; there are "
            f"{len(labels)} of {len(set(labels.values()))}."
        )
    tell = report or (lambda fraction, message: None)
    rows, codes, n_labels = _rows(pool, labels, seed)
    present = "pixels" if pool.image_shape is not None else name_of(pool.feature_map)
    names = list(dict.fromkeys([present, *(_sets(pool) if sets is None else sets)]))
    tell(0.0, "Loading the engine")  # else the first set would be said to cost it
    import_module("workbench.engine.large_margin")
    scores = []
    for number, name in enumerate(names):
        low, span = number / len(names), 1.0 / len(names)

        def report_part(fraction: float, words: str, low: float = low, span: float = span) -> None:
            tell(low + span * fraction, words)

        began = process_time()
        try:
            report_part(0.0, f"Features: {name}")
            X = np.asarray(pool.features)[rows] if name == present else _made(pool, name, rows, report_part)
            report_part(0.8, f"Scoring {name}")
            common = pool.common_scale if name == present else True
            error, likelihood = _left_out(X, codes, n_labels, n_classes, common, seed)
        except InputError as problem:
            nan = float("nan")
            scores.append(Scored(name, name == present, nan, nan, process_time() - began, str(problem)))
            continue
        scores.append(Scored(name, name == present, error, likelihood, process_time() - began))
    tell(1.0, "Done")
    scores.sort(key=lambda one: (bool(one.problem), -one.log_likelihood if not one.problem else 0.0))
    return Preference(tuple(scores), n_labels, len(rows))


def _rows(pool: Pool, labels: Mapping[int, int], seed: int) -> tuple[Ints, Ints, int]:
    """[m] items, the labelled ones first; the codes of those; how many."""
    rng = np.random.default_rng([seed, 0x5E7])
    items = np.fromiter(labels, dtype=np.int64, count=len(labels))
    if len(items) > MOST_ITEMS:
        items = np.sort(rng.choice(items, MOST_ITEMS, replace=False))
    others = np.setdiff1d(pool.trainable, np.fromiter(labels, dtype=np.int64, count=len(labels)))
    more = rng.permutation(others)[: max(0, MOST_ITEMS - len(items))]
    codes = np.array([labels[int(item)] for item in items], dtype=np.int64)
    return np.concatenate([items, np.sort(more)]), codes, len(items)


def _sets(pool: Pool) -> list[str]:
    """Names of the sets that can be made of these items here."""
    own = ["shapes", "pixels"] if pool.kind == "image" else ["pieces", "topics"]
    encoders = [
        e.name for e in ENCODERS.values() if e.kind == pool.kind and e.installed and e.name[-1] != ":"
    ]
    return [*own, *encoders]


def _made(pool: Pool, name: str, rows: Ints, tell: OnProgress) -> Array:
    """[m, D] a set of features of these items, learnt from them alone."""
    shown: list[Any] = []
    for place, row in enumerate(rows):
        if place % _STEP == 0:
            tell(0.2 * place / len(rows), f"Reading the items for {name}")
        one = pool.items.show(int(row))
        shown.append(one.text if one.image is None else one.image)
    makers: dict[tuple[str, str], Callable[[Sequence[Any]], Array]] = {
        ("image", "shapes"): lambda images: ShapesFeatureMap.learn(images)[1],
        ("image", "pixels"): lambda images: small_copies(images).reshape(len(images), -1),
        ("text", "pieces"): lambda texts: PiecesFeatureMap.of(texts).transform(texts),
        ("text", "topics"): lambda texts: TextFeatureMap.of(texts).transform(texts),
    }
    make = makers.get((pool.kind, name))
    if make is not None:
        tell(0.2, f"Making {name}")
        if name == "shapes" and max(max(image.shape[:2]) for image in shown) < SMALLEST:
            raise InputError(f"Images below {SMALLEST} pixels a side have no shapes.")
        return make(shown)
    encode = open_encoder(name, pool.kind)
    parts = []
    for start in range(0, len(shown), _STEP):
        tell(0.2 + 0.6 * start / len(shown), f"The encoder {name} reads item {start + 1:,} of {len(shown):,}")
        parts.append(encode(shown[start : start + _STEP]))
    vectors = np.concatenate(parts)
    return VectorFeatureMap.of(vectors, name).transform(vectors)


def _left_out(
    X: Array, codes: Ints, n_labels: int, n_classes: int, common_scale: bool, seed: int
) -> tuple[float, float]:
    """Leave-one-out error and mean log-likelihood of the default model on the first rows."""
    X = np.asarray(X, dtype=np.float32)
    classes = np.arange(n_classes)
    model = LargeMarginClassifier(classes=classes, choice="auto", random_state=seed)  # as in a project
    model.set_params(geometry=model.measure(X, seed, common_scale=common_scale))
    model.fit(X[:n_labels], codes)
    left_out = model.left_out_
    means: Floats = left_out.means
    wrong = means.argmax(axis=1) != codes[left_out.rows]
    return float(np.mean(wrong)), float(np.mean(left_out.log_likelihood))
