"""What pages show about a project, computed once for a model and kept: reasons, neighbours, calibration."""

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
    from workbench.pools import Pool
    from workbench.sessions import Ask, ProjectState, Session
    from workbench.sessions.insight import Calibration
    from workbench.sessions.model import FittedModel

T = TypeVar("T")
_CACHE: OrderedDict[Hashable, Any] = OrderedDict()
_LOCK = threading.Lock()
_KEPT = 64


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


@dataclass(frozen=True)
class Reason:
    """Why an item is shown.

    Attributes:
        role: the ask's.
        words: a sentence for people.
        utility: the policy's now, or NaN.
        rank: place among the items still open, 1 = most wanted; 0 when there is no policy behind it.
        n_open: how many items are open.
        n_drawn: how many of them the policy looks at in a round, the rank is among these; 0 for all.
    """

    role: str
    words: str
    utility: float
    rank: int
    n_open: int
    n_drawn: int = 0


def why(session: Session, ask: Ask) -> Reason:
    """Why this item is asked about now."""
    from workbench.policies import POLICIES
    from workbench.policies.registry import title_of
    from workbench.sessions.model import asking_policy

    if ask.role == "evaluation":
        words = (
            "Drawn at random to measure the error. The model never learns from it, so its guess stays hidden."
        )
        return Reason(ask.role, words, float("nan"), 0, 0)
    if ask.role == "again":
        return Reason(ask.role, "You took its answer back.", float("nan"), 0, 0)
    if ask.role == "chosen":
        return Reason(ask.role, "You wanted to be asked about it.", float("nan"), 0, 0)
    if ask.role == "second":
        words = "A second look at a label of yours, without what you or the model said about it."
        return Reason(ask.role, words, float("nan"), 0, 0)
    policy = str(session.settings["policy"])
    model = session.model
    if ask.role == "uniform":
        share = float(session.settings.get("uniform_share", 0.0))
        words = f"Drawn at random, as {share:.0%} of the questions are whatever the policy. "
        words += "The model learns from it."
        return Reason(ask.role, words.replace("%", " %"), float("nan"), 0, 0)
    if ask.role == "cold-start" or model is None:
        words = "Nothing is known yet, so the first items are spread over the pool."
        if len(session.state.trained_classes) > 1:
            words = "Spread over the pool, as there was no model yet when it was chosen."
        return Reason(ask.role, words, float("nan"), 0, 0)
    policy, searching = asking_policy(model, policy, session.settings)
    entry = POLICIES.get(policy)
    if policy == "random":
        return Reason(ask.role, POLICIES[policy].says, float("nan"), 0, 0)
    from workbench.sessions import insight
    from workbench.sessions.drawing import drawn

    state, settings = session.state, session.settings
    most = int(settings.get("asked_among", 0))
    looked = cached(
        (session.id, model.number, "drawn", most),
        lambda: drawn(open_of(session.pool, state), int(settings["seed"]), model.number, most),
    )
    values = cached(
        (session.id, model.number, "utilities", policy),
        lambda: insight.utilities_or_none(model, policy, looked),
    )
    closed = np.array([*state.answered, *state.evaluation], dtype=np.int64)
    found = insight.why(model, ask.item, policy, closed=closed, values=values, drawn=looked)
    if not np.isfinite(found.utility):
        words = title_of(policy) + "."
    elif entry is None:
        words = f"{policy} is {found.utility:.3f}."
    else:
        words = entry.sentence(found.utility).replace("%", " %")
    if searching:
        words = f"{searching[0].upper()}{searching[1:]}. {words}"
    return Reason(ask.role, words, found.utility, found.rank, found.n_ranked, found.drawn)


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
    from workbench.sessions import insight

    codes = session.state.codes
    if not codes:
        return []
    items = np.fromiter(codes, dtype=np.int64, count=len(codes))
    places, distances = insight.nearest_among(space(session), items, item, k)
    return [
        (int(items[i]), int(codes[int(items[i])]), float(d)) for i, d in zip(places, distances, strict=True)
    ]


def space(session: Session) -> Array:
    """[N, D] the pool in the features that its model uses; standardised ones before there is a model."""
    model = session.model
    if model is not None:
        return cached((session.id, "space"), lambda: np.asarray(model.scaled))
    from workbench.sessions.start import standardised

    pool = session.pool
    return cached((session.id, "first space"), lambda: standardised(pool.features, pool.common_scale))


def probability_versions(model: FittedModel) -> dict[str, str]:
    """The ways this model's latents can be read as probabilities: name -> title."""
    from workbench.sessions import insight

    return insight.probability_versions(model)


def calibration(
    owner: str,
    model: FittedModel,
    items: Ints,
    codes: Ints,
    version: str,
    bins: int,
    code: int | None,
    crossed: Floats | None,
) -> Calibration:
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

    def make() -> Calibration:
        from workbench.sessions import insight

        return insight.calibration(
            model,
            n_bins=bins,
            class_name=None if code is None else model.classes[code],
            held_out=(items, codes),
            version=version,
            probabilities=crossed,
        )

    measured = (len(items), crossed is None, hash(codes.tobytes()))
    return cached((owner, model.number, "calibration", version, bins, code, *measured), make)


def cross_validation(session: Session, model: FittedModel, *, again: bool = False) -> Job:
    """Predictions for the labelled items by models that did not see them; one job a model.

    Args:
        session: of a project without test labels.
        model: whose training set is predicted.
        again: start it anew where it was cancelled.

    Returns:
        The job; its result is (items [n], codes [n], probabilities [n, C]).
    """
    kind = f"cross-validation-{model.number}"
    job = manager().get(session.id, kind)
    if job is None or (again and job.status == "cancelled"):

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
