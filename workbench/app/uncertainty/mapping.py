"""Parts of the Uncertainty page: planes, models of other rounds and kinds, maps, lines through the pool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.app.serving import jobs
from workbench.app.serving.caching import computed, kept
from workbench.app.serving.explanations import utilities_now
from workbench.app.serving.jobs import DAY, Job, manager
from workbench.app.words.text import percent
from workbench.arrays import Array, Floats, Ints
from workbench.classifiers import title_of
from workbench.classifiers.protocols import geometry_of
from workbench.progress import watched
from workbench.writing import workbench_home

if TYPE_CHECKING:
    from workbench.figures.maps import Regions
    from workbench.pools import Pool
    from workbench.sessions import Session
    from workbench.sessions.embedding import NeighbourMap
    from workbench.sessions.fitted_model import FittedModel
    from workbench.sessions.insight import UncertainItems

CLASS_VARIANCE = "class-variance"
NEIGHBOURS = "neighbour-map"
HOVERED = 20_000
"""Items, at most, whose text or row the hover shows."""
LATENT_ONLY = "This model offers fewer measures: the others need class functions, which it does not have."
MOST_COLUMNS = 200
"""Features that are tried for the one that changes a prediction most."""
MOST_LINES = 300
"""Items of a pool up to which all neighbours are joined; of a larger one those of some items."""


WIDEST = "widest spread of the items"
"""Title of an axis along the first principal component, with its share of the variance behind it."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The pool on a plane.

    Attributes:
        points: [N, 2].
        axes: titles.
        own: whether the plane is all there is, so that a model can be drawn over it.
        note: what a person must know about it.
        place: raw features [n, D] -> [n, 2]; None where that is no formula.
    """

    points: Floats
    axes: tuple[str, str]
    own: bool
    note: str
    place: Callable[[Array], Floats] | None


@dataclass(frozen=True, eq=False)
class View:
    """A model and its title for people."""

    model: FittedModel
    title: str


def measures_for(model: FittedModel) -> dict[str, str]:
    """The measures this model can serve: name -> title; a policy's utility, or the variance of a class."""
    from workbench.sessions import insight

    latent_measures = {} if model.latent is None else {CLASS_VARIANCE: "Variance of a class"}
    return insight.measures_of(model) | latent_measures


def shown_as(measure: str, value: float) -> str:
    """A value of a measure for people: doubt in per cent."""
    from workbench.figures.parts import whole_percent
    from workbench.sessions.insight import DOUBT

    return whole_percent(value) if measure == DOUBT else f"{value:.3f}"


def uncertain_items(view: View, open_items: Ints) -> UncertainItems:
    """Doubts of a model among the open items, and the groups worth labelling."""
    from workbench.sessions import insight

    return computed(insight.uncertain_items, view.model, open_items)


def next_question(session: Session, view: View, open_items: Ints) -> int | None:
    """The open item that the policy wants most under a model; None where it tells no item from another."""
    from workbench.sessions.fitted_model import asking_policy

    model = session.model
    if model is None or model.uid != view.model.uid:
        return None
    policy = str(asking_policy(model, str(session.settings["policy"]))[0])
    if policy == "random" or not len(open_items):
        return None
    rest = utilities_now(session, model, policy)[0][open_items]
    return int(open_items[np.nanargmax(rest)]) if np.isfinite(rest).any() else None


def words_of(measure: str) -> str:
    """Meaning of a high value of a measure, with its unit."""
    from workbench.policies import POLICIES
    from workbench.sessions.insight import AGAINST_GUESS, DOUBT

    if measure == DOUBT:
        return "how probable the model finds it that its best class is wrong"
    if measure == CLASS_VARIANCE:
        return "of one class's latent function"
    if measure == AGAINST_GUESS:
        return "the model's probability that what it began with is wrong, 0 to 1"
    entry = POLICIES[measure]
    return "; ".join(filter(None, (entry.unit, f"high: {entry.high}" if entry.high else entry.summary)))


@kept
def layout(pool: Pool, columns: tuple[int, int] | None = None) -> Layout:
    """The pool on a plane that costs nothing.

    Args:
        pool: of the project.
        columns: two features to draw, or None for the pool's own plane or its principal components.
    """
    names = pool.feature_map.columns
    if columns is not None:
        pair = list(columns)
        few = "items that look close may differ in the others."
        return Layout(
            np.asarray(pool.features[:, pair], dtype=np.float64),
            (str(names[pair[0]]), str(names[pair[1]])),
            pool.n_features == 2 and columns == (0, 1),
            f"Two of {pool.n_features} features: {few}" if pool.n_features > 2 else "",
            lambda X: np.asarray(X, dtype=np.float64)[:, pair],
        )
    if pool.n_features == 1:

        def beside_nothing(X: Array) -> Floats:
            return np.column_stack([np.asarray(X, dtype=np.float64)[:, 0], np.zeros(len(X))])

        note = "The pool has one feature; the second axis is empty. See Class functions."
        return Layout(beside_nothing(pool.features), (str(names[0]), ""), False, note, beside_nothing)
    from workbench.pools.projection import project

    plane = project(pool)
    if plane.explained is None:
        return Layout(plane.points, plane.names, True, "", plane.place)
    share = plane.explained
    axes = (f"{WIDEST} ({percent(share[0], 0)})", f"the next widest ({percent(share[1], 0)})")
    if share.sum() > 0:
        note = (
            f"A projection: the two directions of largest spread hold {percent(share.sum(), 0)} of the "
            "variance, so items that look close may be far apart."
        )
    else:
        note = "All items have the same values, so they lie on one point: no model can tell them apart."
    return Layout(plane.points, axes, False, note, plane.place)


def neighbours(session: Session, *, again: bool = False) -> tuple[NeighbourMap | None, Job | None, str]:
    """The pool's neighbour map, or the job that computes it, or why there is none.

    Args:
        session: of the project.
        again: start a job anew that was cancelled or failed.

    Returns:
        (map, None, ""), (None, job, "") or (None, None, a sentence; "" for a pool that needs none).
    """
    from workbench.sessions import embedding

    pool = session.pool
    if pool.n_features <= 2:
        return None, None, ""
    name = computed(embedding.name_of, pool)
    job = manager().get(name, NEIGHBOURS)
    if job is not None and job.status == "done":
        return job.result, None, ""
    if job is not None and (job.active or not again):
        return None, job, ""
    reason = computed(embedding.worthwhile, pool)
    if reason:
        return None, None, reason
    folder = workbench_home() / "maps"
    neighbour_map = computed(embedding.kept_map, pool, folder)
    if neighbour_map is not None:
        return neighbour_map, None, ""
    if not embedding.available():
        return None, None, embedding.MISSING

    def make(job: Job) -> NeighbourMap:
        with watched(job.report):
            return embedding.neighbour_map(pool, folder)

    return None, manager().submit(name, NEIGHBOURS, make, title="Neighbour map", lane="map", limit=DAY), ""


def neighbour_layout(neighbour_map: NeighbourMap) -> Layout:
    """The plane of a neighbour map."""
    n, laid = len(neighbour_map.points), len(neighbour_map.landmarks)
    placed = "" if laid == n else f" {laid:,} items were laid out together, the others placed among them."
    note = (
        f"Neighbours stay neighbours (t-SNE): trustworthiness {neighbour_map.trust:.3f} of 1, where two "
        f"principal components have {neighbour_map.trust_of_components:.3f} (on {neighbour_map.n_judged:,} "
        f"items). How far apart the groups lie means little.{placed}"
    )
    return Layout(neighbour_map.points, ("", ""), False, note, None)


def with_trust(where: Layout, neighbour_map: NeighbourMap | None) -> Layout:
    """The principal components with what they keep, where that was measured."""
    if neighbour_map is None or where.own:
        return where
    return replace(
        where,
        note=f"{where.note} Trustworthiness {neighbour_map.trust_of_components:.3f} of 1; "
        f"the neighbour map has {neighbour_map.trust:.3f}.",
    )


def at_round(session: Session, number: int) -> tuple[View | None, Job | None]:
    """The model of a round, or the job that fits it again."""
    present = session.model
    if present is not None and present.number == number:
        return View(present, f"{present.n_labelled} labels"), None

    def make(job: Job) -> FittedModel:
        if not jobs.uses_processes():
            return session.fits.model_at(number)
        arguments = session.store.url, session.id, number
        return session.fits.model_at(number, jobs.compute(job, "state_at", *arguments, session=session))

    return _made(
        session,
        ("round", number),
        make,
        "An earlier model",
        lambda m: f"{m.n_labelled} labels",
    )


def other_kind(session: Session, base: View, classifier: str) -> tuple[View | None, Job | None]:
    """Another classifier on the same labels, or the job that fits it.

    Args:
        session: of the project.
        base: whose labels are taken.
        classifier: a registry name.
    """
    title = title_of(classifier)

    def make(job: Job) -> FittedModel:
        from workbench.sessions.learner import Learner

        model = base.model
        learner = Learner(session.pool, classifier, seed=int(session.settings["seed"]), classes=model.classes)
        if not jobs.uses_processes():
            return learner.fit(model.items, model.codes, number=model.number)
        arguments = session.store.url, session.id, model.number, classifier
        state = jobs.compute(job, "state_at", *arguments, session=session)
        return learner.model(state, model.number, model.items, model.codes)

    return _made(session, ("kind", classifier, base.model.uid), make, title, lambda m: title)


def _made(
    session: Session,
    key: tuple[Any, ...],
    make: Callable[[Job], FittedModel],
    title: str,
    name: Callable[[FittedModel], str],
) -> tuple[View | None, Job | None]:

    def work(job: Job) -> FittedModel:
        job.report(0.1, "fitting on its labels")
        return make(job)

    # the newest models are kept with their jobs
    job = manager().compute(session.id, key, work, title=title, lane="short", limit=DAY)
    return (View(job.result, name(job.result)), None) if job.status == "done" else (None, job)


@kept
def values_of(model: FittedModel, measure: str) -> Floats:
    """[N] a measure of every item under a model.

    Args:
        model: of a view.
        measure: as `insight.measure` takes it.

    Raises:
        InputError: the model cannot serve it.
    """
    from workbench.sessions import insight

    return np.asarray(insight.measure(model, measure), dtype=np.float64)


@kept
def over_plane(model: FittedModel) -> tuple[Regions, Floats]:
    """Predictions of a model over the pool's own plane, and its probabilities [G, G, C]."""
    from workbench.figures.maps import Regions
    from workbench.sessions import insight

    regions = insight.decision_regions(model)
    return Regions(regions.x, regions.y, regions.codes, regions.confidence), regions.probabilities


def inducing_points(view: View, where: Layout) -> Floats | None:
    """[P, 2] where the model's inducing points lie on the plane; None for a model without any."""
    geometry = geometry_of(view.model.estimator)
    if (
        where.place is None
        or geometry is None
        or not len(geometry.inducing)
        or geometry.representation is not None
        or view.model.seen is not None
    ):
        return None  # points among categories, ranks or smoothed features have no place among the raw ones
    return where.place(np.asarray(geometry.inducing) * geometry.scale + geometry.shift)


def neighbour_lines(session: Session, chosen: list[int], shown: int) -> Ints | None:
    """[e, 2] neighbours to draw lines between: of the chosen items, else all of a small pool.

    Args:
        session: of the project.
        chosen: selected items.
        shown: the item that the page shows: of a pool whose lines would hide its items, its lines alone.

    Returns:
        Pairs of items; None where there is no graph yet.
    """
    if not session.fits.making.at_hand:
        return None
    neighbourhood = session.fits.making.neighbourhood
    if not chosen and len(neighbourhood) > MOST_LINES:
        chosen = [shown]
    from workbench.pools.neighbours.graph import lines

    graph, rows = neighbourhood.graph, neighbourhood.rows
    return lines(graph, rows, np.asarray(chosen) if chosen else rows)


@dataclass(frozen=True, eq=False)
class Line:
    """Latent functions along one feature, the others held at an item's values.

    Attributes:
        grid: [G] values of the feature.
        mean: [G, C].
        variance: [G, C].
        probabilities: [G, C].
        axis: the feature.
        at: the item's own value.
    """

    grid: Floats
    mean: Floats
    variance: Floats
    probabilities: Floats
    axis: str
    at: float


def open_items(session: Session) -> Ints:
    """[n] items that may still be asked about."""
    state, trainable = session.state, session.pool.trainable
    shut = np.zeros(len(session.pool), dtype=bool)
    for closed in (state.answered, state.evaluation):
        shut[np.fromiter(closed, dtype=np.int64, count=len(closed))] = True
    return trainable[~shut[trainable]]


def is_constant(session: Session, column: int) -> bool:
    """True if every item has the same value of a feature."""
    values = session.pool.features[:, column]
    return float(np.min(values)) == float(np.max(values))


@kept
def line_through(model: FittedModel, item: int, column: int, size: int = 161) -> Line:
    """The class GPs along one feature through an item.

    Args:
        model: one with latents.
        item: index into the pool.
        column: of the feature.
        size: G.
    """
    pool = model.pool
    features = pool.features
    values = np.asarray(features[:, column], dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    pad = 0.15 * (high - low if high > low else 1.0)
    grid = np.linspace(low - pad, high + pad, size)
    rows = np.repeat(np.asarray(features[item], dtype=np.float64)[None], size, axis=0)
    rows[:, column] = grid
    guess = model.guess_of(item, len(rows))
    rows = model.as_seen(rows)
    latent = model.estimator.predict_latent(rows, **guess)
    p = np.asarray(model.estimator.predict_proba(rows, **guess))
    name = str(pool.feature_map.columns[column])
    return Line(grid, np.asarray(latent.mean), np.asarray(latent.variance), p, name, float(values[item]))


@kept
def strongest_feature(model: FittedModel, item: int) -> int:
    """The column along which the model's class probabilities change most at an item, others held.

    Columns of the largest spread are tried.
    """
    pool = model.pool
    features = np.asarray(pool.features[pool.trainable[:5000]], dtype=np.float64)
    low, high = np.quantile(features, [0.05, 0.95], axis=0)
    tried = np.argsort(low - high, kind="stable")[:MOST_COLUMNS]
    rows = np.repeat(np.asarray(pool.features[item], dtype=np.float64)[None], 2 * len(tried), axis=0)
    places = np.arange(len(tried))
    rows[2 * places, tried], rows[2 * places + 1, tried] = low[tried], high[tried]
    guess = model.guess_of(item, len(rows))
    rows = model.as_seen(rows)
    p = np.asarray(model.estimator.predict_proba(rows, **guess)).reshape(len(tried), 2, -1)
    return int(tried[np.abs(p[:, 1] - p[:, 0]).sum(axis=1).argmax()])


@kept
def hover_words(model: FittedModel) -> list[str]:
    """[N] what the hover says of each item: its text or first columns, and what the model predicts."""
    from workbench.figures import theme

    pool, p = model.pool, np.asarray(model.probabilities)
    best = p.argmax(axis=1)
    classes = [theme.text(name, 24) for name in model.classes]
    predictions = [f"predicted {classes[c]} ({percent(p[i, c], 0)})" for i, c in enumerate(best)]
    if pool.kind == "image" or len(pool) > HOVERED:
        return predictions
    if pool.kind == "text":
        contents = [theme.text(pool.items.show(i).text or "", 90) for i in range(len(pool))]
    else:
        names = [theme.text(name, 20) for name in pool.feature_map.columns[:3]]
        X = np.asarray(pool.features[:, : len(names)], dtype=np.float64)
        contents = [" · ".join(f"{a} {v:.3g}" for a, v in zip(names, row, strict=True)) for row in X]
    return [f"{a}<br>{b}" for a, b in zip(contents, predictions, strict=True)]


def labels_at(view: View, n: int) -> Ints:
    """[N] codes of the labels a model was trained on, -1 elsewhere."""
    labels = np.full(n, -1, dtype=np.int64)
    labels[view.model.items] = view.model.codes
    return labels
