"""What pages show about a project, computed once for a model and kept: measures, maps, reasons."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from workbench.app.jobs import Job, manager
from workbench.arrays import Array, Floats, Ints

if TYPE_CHECKING:
    from workbench.figures.maps import Regions
    from workbench.pools import Pool
    from workbench.sessions import Ask, ProjectState, Session
    from workbench.sessions.model import Model

T = TypeVar("T")
_CACHE: OrderedDict[Hashable, Any] = OrderedDict()
_LOCK = threading.Lock()
_KEPT = 64

# name -> (title, unit or range, what a high value means)
MEASURES = {
    "variation-ratio": ("Variation ratio", "how often the model's own draws disagree about the class"),
    "entropy": ("Entropy", "nats; of the calibrated class probabilities"),
    "margin": ("Margin", "closeness of the two best classes; higher is closer"),
    "variance": ("Variance", "of the latent functions; where the model has seen little"),
}
GRID = 120
# what a policy's utility says about one item
TELLING = {
    "variation-ratio": "{0:.0%} of the model's draws name another class than the usual one.",
    "variation-ratio-mc": "{0:.0%} of the model's draws name another class than the usual one.",
    "entropy": "The entropy of its class probabilities is {0:.2f} nats.",
    "least-confident": "The model is wrong about it with probability {0:.0%}, by its own account.",
    "variance": "The model has seen little like it: its latent variance is {0:.2f}.",
    "bald": "Its label would tell {0:.2f} nats about the model.",
}


def cached(key: Hashable, make: Callable[[], T]) -> T:
    """A value made once for a key; the newest 64 are kept.

    Args:
        key: must name everything the value depends on.
        make: computes it; may run twice when two threads ask at once.
    """
    with _LOCK:
        if key in _CACHE:
            _CACHE.move_to_end(key)
            return _CACHE[key]
    value = make()
    with _LOCK:
        _CACHE[key] = value
        while len(_CACHE) > _KEPT:
            _CACHE.popitem(last=False)
    return value


def measure(session: Session, name: str) -> Floats | None:
    """[N] a policy's utility of every item under the published model, or None without a model.

    Args:
        session: of the project.
        name: of a policy that is no selector.

    Raises:
        InputError: the model cannot serve this measure.
    """
    model = session.model
    return None if model is None else measure_of(session.id, model, name)


def measure_of(owner: str, model: Model, name: str) -> Floats:
    """[N] a policy's utility of every item under this model."""

    def make() -> Floats:
        from workbench.policies import utilities

        values = utilities(name, model.belief(), np.random.default_rng(0))
        return np.asarray(values, dtype=np.float64)

    return cached((owner, model.number, "measure", name), make)


@dataclass(frozen=True)
class Reason:
    """Why an item is shown.

    Attributes:
        role: the ask's.
        words: a sentence for people.
        utility: the policy's now, or NaN.
        rank: place among the items still open, 1 = most wanted; 0 when there is no policy behind it.
        n_open: how many items are open.
    """

    role: str
    words: str
    utility: float
    rank: int
    n_open: int


def why(session: Session, ask: Ask) -> Reason:
    """Why this item is asked about now."""
    from workbench.policies import POLICIES

    if ask.role == "evaluation":
        words = (
            "Drawn at random to measure the error. The model never learns from it, so its guess stays hidden."
        )
        return Reason(ask.role, words, float("nan"), 0, 0)
    if ask.role == "again":
        return Reason(ask.role, "You took its answer back.", float("nan"), 0, 0)
    policy = str(session.settings["policy"])
    model = session.model
    if ask.role == "cold-start" or model is None:
        words = "Nothing is known yet, so the first items are spread over the pool."
        return Reason(ask.role, words, float("nan"), 0, 0)
    title = POLICIES[policy].title if policy in POLICIES else policy
    if policy == "random":
        return Reason(ask.role, "Drawn at random, as the random policy does.", float("nan"), 0, 0)
    values = cached_utilities(session, policy)
    open_items = open_of(session.pool, session.state)
    rank = 1 + int((values[open_items] > values[ask.item]).sum())
    words = TELLING.get(policy, title + " is {0:.3f}.").format(float(values[ask.item]))
    words = words.replace("%", " %")
    return Reason(ask.role, words, float(values[ask.item]), rank, int(open_items.size))


def cached_utilities(session: Session, policy: str) -> Floats:
    """[N] the policy's utilities under the published model."""
    values = measure(session, policy)
    assert values is not None
    return values


def open_of(pool: Pool, state: ProjectState) -> Ints:
    """[n] items that may still be asked about."""
    shut = np.zeros(len(pool), dtype=bool)
    for closed in (state.answered, state.evaluation):
        shut[np.fromiter(closed, dtype=np.int64, count=len(closed))] = True
    return pool.trainable[~shut[pool.trainable]]


def nearest_labelled(session: Session, item: int, k: int = 5) -> list[tuple[int, int, float]]:
    """Labelled items most like this one.

    Args:
        session: of the project.
        item: index into the pool.
        k: how many.

    Returns:
        (item, class code, distance) triples, nearest first; distances in the space the model uses.
    """
    codes = {i: c for i, c in session.state.codes.items() if i != item}
    if not codes:
        return []
    scaled = _space(session)
    items = np.fromiter(codes, dtype=np.int64, count=len(codes))
    distance = np.linalg.norm(scaled[items] - scaled[item], axis=1)
    best = np.argsort(distance, kind="stable")[:k]
    return [(int(items[i]), int(codes[int(items[i])]), float(distance[i])) for i in best]


def _space(session: Session) -> Array:
    model = session.model
    if model is not None:
        return cached((session.id, "space"), lambda: np.asarray(model.scaled))
    from workbench.sessions.start import standardised

    pool = session.pool
    return cached((session.id, "first space"), lambda: standardised(pool.features, pool.common_scale))


@dataclass(frozen=True)
class Plane:
    """Where items lie on a plane.

    Attributes:
        points: [N, 2].
        axes: titles.
        own: True when these are the pool's own two coordinates, False for a projection.
        note: what a person must know about it.
    """

    points: Floats
    axes: tuple[str, str]
    own: bool
    note: str


def plane(session: Session) -> Plane:
    """The pool on a plane: its own when it has two features, else its two principal components."""
    pool = session.pool

    def make() -> Plane:
        features = np.asarray(pool.features, dtype=np.float64)
        names = pool.feature_map.columns
        if features.shape[1] == 2:
            return Plane(features, (names[0], names[1]), True, "")
        if features.shape[1] == 1:
            flat = np.column_stack([features[:, 0], np.zeros(len(features))])
            return Plane(flat, (names[0], ""), False, "The pool has one feature; the second axis is empty.")
        from workbench.sessions.start import standardised

        scaled = standardised(features, pool.common_scale)
        scaled = scaled - scaled.mean(axis=0)
        # the covariance is small where the pool is tall
        values, vectors = np.linalg.eigh(scaled.T @ scaled)
        best = vectors[:, ::-1][:, :2]
        # a fixed sign, so that the map does not flip from one machine to another
        best = best * np.sign(best[np.abs(best).argmax(axis=0), [0, 1]])
        share = values[::-1][:2] / max(values.sum(), 1e-300)
        return Plane(
            scaled @ best,
            (f"principal component 1 ({share[0]:.0%})", f"principal component 2 ({share[1]:.0%})"),
            False,
            f"A projection: the two directions of largest spread hold {share.sum():.0%} of the variance, "
            "so items that look close may be far apart.",
        )

    return cached((session.id, "plane"), make)


def regions(session: Session, size: int = GRID) -> Regions | None:
    """What the published model predicts over the plane of a pool with two features, else None."""
    model, where = session.model, plane(session)
    if model is None or not where.own:
        return None

    def make() -> Regions:
        from workbench.figures.maps import Regions

        low, high = where.points.min(axis=0), where.points.max(axis=0)
        pad = 0.05 * np.where(high > low, high - low, 1.0)
        x = np.linspace(low[0] - pad[0], high[0] + pad[0], size)
        y = np.linspace(low[1] - pad[1], high[1] + pad[1], size)
        grid = np.column_stack([a.ravel() for a in np.meshgrid(x, y)])
        p = np.asarray(model.estimator.predict_proba(grid))
        return Regions(x, y, p.argmax(axis=1).reshape(size, size), p.max(axis=1).reshape(size, size))

    return cached((session.id, model.number, "regions", size), make)


@dataclass(frozen=True, eq=False)
class Honesty:
    """Everything the Calibration page shows about one reading of a model's probabilities.

    Attributes:
        table: accuracy against confidence in bins.
        band: ends [B] of a bootstrap interval for the accuracies.
        histogram: of confidence.
        ece: with its bootstrap interval.
        maximum: largest gap of a bin.
        adaptive: ECE over bins of equal mass.
        classwise: mean ECE over classes.
        nll: mean negative log-likelihood, nats.
        brier: over all classes, 0 to 2.
        parts: of the Brier score of this event.
    """

    table: Any
    band: tuple[Floats, Floats]
    histogram: Any
    ece: Any
    maximum: float
    adaptive: float
    classwise: float
    nll: float
    brier: float
    parts: Any


def probability_versions(model: Model) -> dict[str, str]:
    """The ways this model's latents can be read as probabilities: name -> title."""
    from workbench.sessions import insight

    return insight.probability_versions(model)


def calibration(
    owner: str,
    model: Model,
    items: Ints,
    codes: Ints,
    version: str,
    bins: int,
    code: int | None,
    crossed: Floats | None,
) -> Honesty:
    """How honest a model's probabilities are, kept for the next look.

    Args:
        owner: id of the project.
        model: to measure.
        items: [n] it never trained on.
        codes: [n] their classes.
        version: of `probability_versions`.
        bins: B.
        code: the class whose probability is binned, or None for the prediction.
        crossed: [n, C] probabilities from cross-validation, which then replace the model's.
    """

    def make() -> Honesty:
        from workbench import metrics as m
        from workbench.sessions import insight

        p = insight.probabilities_as(model, version, items) if crossed is None else crossed
        return Honesty(
            m.reliability_table(codes, p, bins, class_code=code),
            m.reliability_band(codes, p, bins, class_code=code),
            m.confidence_histogram(codes, p, bins, class_code=code),
            m.bootstrap_interval(
                lambda y, q: m.expected_calibration_error(y, q, bins, class_code=code), codes, p, unbias=True
            ),
            m.maximum_calibration_error(codes, p, bins, class_code=code),
            m.adaptive_calibration_error(codes, p, bins, class_code=code),
            m.classwise_calibration_error(codes, p, bins),
            m.negative_log_likelihood(codes, p),
            m.brier_score(codes, p),
            m.brier_parts(codes, p, bins, class_code=code),
        )

    key = (
        owner,
        model.number,
        "honesty",
        version,
        bins,
        code,
        len(items),
        crossed is None,
        hash(codes.tobytes()),
    )
    return cached(key, make)


def cross_validation(session: Session, model: Model) -> Job:
    """Predictions for the labelled items by models that did not see them; one job a model.

    Args:
        session: of a project without test labels.
        model: whose training set is predicted.

    Returns:
        The job; its result is (items [n], codes [n], probabilities [n, C]).
    """
    kind = f"cross-validation-{model.number}"
    job = manager().get(session.id, kind)
    if job is None:

        def work(job: Job) -> Any:
            from workbench.sessions import insight
            from workbench.sessions.model import Learner

            s = session.settings
            learner = Learner(
                session.pool, s["classifier"], s["options"], seed=s["seed"], classes=model.classes
            )
            return insight.cross_validated(model, learner)

        job = manager().submit(session.id, kind, work, title="Cross-validation")
    return job
