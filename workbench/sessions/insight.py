"""Numbers that a page needs about one model: why this item, maps, regions, calibration, doubts.

NumPy in, plain records out; figures are drawn elsewhere. Everything takes a `FittedModel`: of a person's
session (`session.model`, `session.fits.model_at(n)`) or of a run (`run_model`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from workbench import metrics
from workbench.arrays import Array, Floats, Ints, items_and_codes
from workbench.classifiers import make_classifier, protocols
from workbench.errors import InputError
from workbench.metrics import mistakes
from workbench.policies import POLICIES, argmax_probabilities, utilities
from workbench.pools.pool import Pool
from workbench.pools.projection import Plane, project
from workbench.sessions.drawing import CHECKS, MEASURE, generator, spread
from workbench.sessions.fitted_model import FittedModel
from workbench.sessions.guessing import run_mean
from workbench.sessions.learner import Learner
from workbench.sessions.rounds import Round, labelled_at
from workbench.sessions.spec import RunSpec

if TYPE_CHECKING:
    from workbench.sessions.session import Session

T = TypeVar("T")


@dataclass(frozen=True)
class Explanation:
    """Why an item is worth asking about.

    Attributes:
        utility: the policy's, NaN for policies without one.
        rank: 1 for the best of the items that could be asked; 0 where it cannot be asked.
        n_ranked: how many items could be asked.
        drawn: how many of them the policy looked at, the rank is among these; 0 for all.
    """

    utility: float
    rank: int
    n_ranked: int
    drawn: int = 0


@dataclass(frozen=True, eq=False)
class PoolMap:
    """The pool on a plane, coloured by a measure.

    Attributes:
        plane: how items were laid out (`own` is False for a projection).
        items: [n] which items are drawn: all, or an even sample that keeps the labelled ones.
        points: [n, 2].
        values: [n] the measure; NaN where there is none.
        labels: [n] class codes of the training set, -1 elsewhere.
        test: [n] whether the item is in the test split.
        measure: its name.
        title: of the measure, for people.
    """

    plane: Plane
    items: Ints
    points: Floats
    values: Floats
    labels: Ints
    test: Array
    measure: str
    title: str


@dataclass(frozen=True, eq=False)
class DecisionRegions:
    """Predictions of the model over the plane of a pool with two features.

    Attributes:
        x: [G] of the grid.
        y: [G] of the grid.
        codes: [G, G] predicted class at (y, x).
        confidence: [G, G] probability of that class.
        probabilities: [G, G, C].
    """

    x: Floats
    y: Floats
    codes: Ints
    confidence: Floats
    probabilities: Floats


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibration of probabilities on items the model never saw; each measure is computed when looked at.

    Attributes:
        truth: [n] class codes.
        probabilities: [n, C].
        n_bins: B, of confidence.
        code: of the class whose probability is binned; None bins the largest probability.
    """

    truth: Ints
    probabilities: Floats
    n_bins: int = 10
    code: int | None = None

    @property
    def n(self) -> int:
        """Items measured on."""
        return len(self.truth)

    def _of(self, measure: Callable[..., T], **more: bool) -> T:
        """A measure of the probability that is binned."""
        return measure(self.truth, self.probabilities, self.n_bins, class_code=self.code, **more)

    @cached_property
    def table(self) -> metrics.ReliabilityTable:
        """Accuracy against confidence in bins."""
        return self._of(metrics.reliability_table)

    @cached_property
    def verdict(self) -> metrics.CalibrationVerdict:
        """Verdict whether its percentages can be taken at their word, and where not."""
        return metrics.calibration_verdict(self.table)

    @property
    def ece(self) -> metrics.Interval:
        """Expected calibration error with an interval for the error behind the sample."""
        return self.verdict.error

    @cached_property
    def maximum(self) -> float:
        """Largest gap of a bin."""
        return float(self.table.gap.max())

    @cached_property
    def adaptive(self) -> float:
        """Calibration error over bins of equal mass."""
        return self._of(metrics.reliability_table, equal_mass=True).error

    @cached_property
    def classwise(self) -> float:
        """Mean calibration error over classes."""
        return metrics.classwise_calibration_error(self.truth, self.probabilities, self.n_bins)

    @cached_property
    def nll(self) -> float:
        """Mean negative log-likelihood, nats."""
        return metrics.negative_log_likelihood(self.truth, self.probabilities)

    @cached_property
    def brier(self) -> float:
        """Brier score over all classes, 0 to 2."""
        return metrics.brier_score(self.truth, self.probabilities)

    @cached_property
    def parts(self) -> metrics.BrierParts:
        """Of the Brier score of this event."""
        return self._of(metrics.brier_parts)


def run_model(spec: RunSpec, pool: Pool, rounds: Sequence[Round], number: int) -> FittedModel:
    """The model of a round of a run.

    Args:
        spec: of the run.
        pool: with the split of the spec's seed.
        rounds: of the run, in order from 0.
        number: of the round.

    Returns:
        As it was where the round still has its posterior; else fitted again, from cold, on the labels
        it had, which may differ in the last digits.

    Raises:
        InputError: there is no such round.
    """
    fit_round = next((r for r in rounds if r.number == number), None)
    if fit_round is None:
        raise InputError(f"The run has no round {number}; it has {len(rounds)}.")
    mean = run_mean(pool, spec.guess)
    learner = Learner(pool, spec.classifier, spec.options, seed=spec.seed, mean=mean)
    items, codes = labelled_at(rounds, number)
    if fit_round.state is not None:
        return learner.model(fit_round.state, number, items, codes)
    return learner.fit(items, codes, number=number)


AGAINST_GUESS = "against-guess"
"""A measure of a model that began with a guess: how far it has left that."""


def measures_of(model: FittedModel) -> dict[str, str]:
    """The measures a map can be coloured by: name -> title; doubt first, then those of policies.

    Args:
        model: policies that need latents are left out where it has none.
    """
    latent = model.latent is not None
    measures = {DOUBT: "Doubt"} | (
        {} if model.mean is None else {AGAINST_GUESS: "Disagreement with the guess"}
    )
    return measures | {
        entry.name: entry.title
        for entry in POLICIES.values()
        if entry.kind == "policy"
        and entry.measure
        and not entry.broken
        and (latent or "latent" not in entry.needs)
    }


def measure(model: FittedModel, name: str) -> Floats:
    """A policy's utility of every item, also of those that may not be asked.

    Args:
        model: of the round.
        name: of a policy; "variance:CLASS" for the latent variance of one class; `DOUBT`; or
            `AGAINST_GUESS`, the probability that none of the classes is right which the guesses name.

    Returns:
        [N].

    Raises:
        InputError: no such measure, or one the model cannot serve.
    """
    if name == DOUBT:
        return least_confidence(model.probabilities)
    if name == AGAINST_GUESS:
        if model.mean is None:
            raise InputError("This model began with no guess.")
        prior = model.mean.sum(axis=0)  # of several alike: what they were before any label
        p = model.probabilities[np.arange(len(prior)), prior.argmax(axis=1)]
        return np.where((prior != 0).any(axis=1), 1.0 - p, 0.0)
    kind, colon, which = name.partition(":")
    if kind == "variance" and colon and which in model.classes:
        if model.latent is None:
            raise InputError("This model has no latent functions: it has no variance.")
        return np.asarray(model.latent.variance[:, model.classes.index(which)])
    return utilities(name, model.belief(), generator(0, model.number, MEASURE))


def utilities_or_none(model: FittedModel, policy: str, rows: Ints | None = None) -> Floats:
    """[N] a policy's utility of every item; all NaN for a selector, which gives batches and no utilities.

    Args:
        model: of the round.
        policy: a name or "package.module:function".
        rows: [m] ascending items to look at; the others are NaN. All unless given.
    """
    try:
        if rows is not None:
            rng = generator(0, model.number, MEASURE)
            return spread(utilities(policy, model.belief_at(rows), rng), rows, len(model.pool))
        return measure(model, policy)
    except InputError:
        return np.full(len(model.pool), np.nan)


def why(
    model: FittedModel,
    item: int,
    policy: str,
    *,
    closed: Ints | None = None,
    values: Floats | None = None,
    drawn: Ints | None = None,
) -> Explanation:
    """Why this item.

    Args:
        model: that chose it, or the present one.
        item: index into the pool.
        policy: a name or "package.module:function".
        closed: further items that cannot be asked (skipped, answered since).
        values: [N] the policy's utilities, where they were computed before (`utilities_or_none`).
        drawn: [m] items the policy looked at, where these are not all.
    """
    values = utilities_or_none(model, policy, drawn) if values is None else values
    utility = float(values[item])
    if drawn is not None and np.isnan(utility) and policy in POLICIES and POLICIES[policy].rowwise:
        utility = float(utilities_or_none(model, policy, np.array([item]))[item])
    # masks: this is asked for every card, also of a million items
    is_open = ~model.shut(closed)
    rows = slice(None) if drawn is None else drawn
    is_askable = np.isfinite(utility) and is_open[item]
    rank = 1 + int(((values[rows] > utility) & is_open[rows]).sum()) if is_askable else 0
    n_drawn = 0 if drawn is None else int(is_open[drawn].sum())
    return Explanation(utility, rank, int(is_open.sum()), n_drawn)


def nearest_among(points: Array, items: Ints, item: int, k: int) -> tuple[Ints, Floats]:
    """Nearest of some items to an item, itself left out.

    Args:
        points: [N, D] of all items.
        items: [n] indices to choose from.
        item: an index.
        k: how many, at most.

    Returns:
        Places in `items`, nearest first, and the distances.
    """
    distances = np.linalg.norm(points[items] - points[item], axis=1)
    best = np.argsort(distances, kind="stable")
    best = best[items[best] != item][:k]
    return best, distances[best]


def pool_map(model: FittedModel, name: str = "variation-ratio", *, limit: int = 20_000) -> PoolMap:
    """The pool on a plane, coloured by a measure.

    Args:
        model: of the round.
        name: as for `measure`.
        limit: most items; above it an even sample is drawn that keeps the labelled ones.
    """
    layout = project(model.pool)
    n = len(model.pool)
    items = np.arange(n)
    if n > limit:
        items = np.union1d(np.linspace(0, n - 1, limit).astype(np.int64), model.items)
    labels = np.full(n, -1, dtype=np.int64)
    labels[model.items] = model.codes
    test = np.zeros(n, dtype=bool)
    if model.pool.test is not None:
        test[model.pool.test.test] = True
    values = measure(model, name)
    title = POLICIES[name].title if name in POLICIES else name
    return PoolMap(
        layout, items, layout.points[items], values[items], labels[items], test[items], name, title
    )


def decision_regions(model: FittedModel, *, size: int = 120) -> DecisionRegions:
    """Predictions of the model over the plane of a pool with two features.

    Args:
        model: of the round.
        size: G, points along each side.

    Raises:
        InputError: the pool has not exactly two features.
    """
    pool = model.pool
    if pool.n_features != 2:
        raise InputError(
            f"Decision regions need a pool of two features; {pool.name!r} has {pool.n_features}."
        )
    low, high = np.min(pool.features, axis=0), np.max(pool.features, axis=0)
    pad = 0.05 * np.where(high > low, high - low, 1.0)
    x = np.linspace(low[0] - pad[0], high[0] + pad[0], size)
    y = np.linspace(low[1] - pad[1], high[1] + pad[1], size)
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(x, y)])
    p = np.asarray(model.estimator.predict_proba(model.as_seen(grid)))
    shape = (size, size)
    return DecisionRegions(
        x, y, p.argmax(axis=1).reshape(shape), p.max(axis=1).reshape(shape), p.reshape(*shape, -1)
    )


def calibration(
    model: FittedModel,
    *,
    n_bins: int = 10,
    class_name: str | None = None,
    held_out: tuple[Ints, Ints] | None = None,
    version: str = "own",
    probabilities: Floats | None = None,
) -> Calibration:
    """Calibration of the model's probabilities.

    Args:
        model: of the round.
        n_bins: of confidence.
        class_name: bins the probability of one class; None bins the largest probability.
        held_out: items [n] and class codes [n] to measure on, none of which were trained on, such as
            a project's evaluation set (`Session.fits.held_out`); None means the pool's test split.
        version: how the latents are read, of `probability_versions`.
        probabilities: [n, C] for `held_out` in place of the model's own, such as `cross_validated` gives.

    Raises:
        InputError: nothing to measure on.
    """
    pool = model.pool
    if held_out is None:
        if pool.test is None or pool.truth is None:
            raise InputError(
                f"Pool {pool.name!r} has no test labels. Label on: some questions are kept for measuring."
            )
        items = pool.test.test[pool.truth[pool.test.test] >= 0]
        truth = pool.truth[items]
    else:
        items, truth = held_out
    if not len(items):
        raise InputError("There is nothing to measure on yet.")
    p = probabilities_as(model, version, items) if probabilities is None else probabilities
    code = None if class_name is None else model.classes.index(class_name)
    return Calibration(truth, p, n_bins, code)


def probability_versions(model: FittedModel) -> dict[str, str]:
    """The ways this model's latents can be read as class probabilities: name -> title.

    Args:
        model: of the round; one without a temperature has its own likelihood alone.
    """
    versions = {"own": "As the model predicts"}
    if model.latent is not None:
        versions["argmax"] = "Argmax frequency"
        if protocols.temperature_of(model.estimator) is not None:
            versions["plain"] = "Softmax of the means"
    if model.begins_with_a_guess:
        versions["guess"] = "The guess alone"
    return versions


def probabilities_as(model: FittedModel, version: str, items: Ints) -> Floats:
    """Class probabilities of some items, read in one of the ways of `probability_versions`.

    Args:
        model: of the round.
        version: "own" is predict_proba; "plain" is softmax of the latent means, as if no temperature
            had been fitted; "argmax" is how often a draw of the latents is largest at each class,
            which speaks of the functions and not of the label (docs/math.md, 8); "guess" is what the
            model said before any label.
        items: [n] indices into the pool.

    Returns:
        [n, C].

    Raises:
        InputError: the model cannot be read so.
    """
    if version not in probability_versions(model):
        raise InputError(f"This model's probabilities cannot be read as {version!r}.")
    if version == "own":
        return np.asarray(model.probabilities[items])
    if version == "guess":
        return model.guess_alone(items)
    latent = model.latent
    assert latent is not None
    mean = np.asarray(latent.mean[items], dtype=np.float64)
    if version == "plain":
        z = np.exp(mean - mean.max(axis=1, keepdims=True))
        return np.asarray(z / z.sum(axis=1, keepdims=True))
    return np.asarray(argmax_probabilities(mean, np.asarray(latent.variance[items], dtype=np.float64)))


def cross_validated(model: FittedModel, learner: Learner) -> tuple[Ints, Ints, Floats]:
    """Predictions for the training set by models that did not see the item, where no test labels are.

    The labels were asked for because they were hard, so this looks worse than a uniform sample would.

    Args:
        model: whose training set is used.
        learner: fits like the model.

    Returns:
        items [n], class codes [n] and probabilities [n, C].

    Raises:
        InputError: fewer than two labels of each of two classes.
    """
    items, codes = np.asarray(model.items), np.asarray(model.codes)
    if (np.bincount(codes, minlength=2) >= 2).sum() < 2:
        raise InputError("Cross-validation needs two labels of each of two classes. Label some more items.")
    rng = generator(0, model.number, MEASURE)
    order = rng.permutation(len(items))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(items), dtype=np.int64)
    fold[order] = np.arange(len(items)) % 5  # dealt class by class
    p = np.empty((len(items), len(model.classes)))
    for part in np.unique(fold):
        away = fold == part
        fold_model = learner.fit(items[~away], codes[~away], number=model.number)
        p[away] = fold_model.predict_proba(items[away])
    return items, codes, p


FOLDS = 5
MOST_DOUBTFUL = 200
"""Items of a queue."""
_LEARNED = 4_000
"""Labels that a model learns from at most, so that a queue takes seconds."""


def doubtful_labels(session: Session, of: str) -> Ints:
    """Items whose label in a column is likely wrong, the likeliest first.

    Each label is predicted by a logistic regression of the others (in five parts, copies in one) and weighed
    by `metrics.mistakes`; where people have labelled an item their label is learned from.

    Args:
        session: of the project.
        of: "column:NAME".

    Returns:
        [n] items that nobody has labelled, by the probability that the label is wrong.

    Raises:
        InputError: no such column, or labels of one class only.
    """
    with session.log.snapshot():
        candidates, state = session.checks.candidates(of), session.state
    place_of = {key: code for code, key in enumerate(candidates.keys)}
    people = {
        i: place_of[v.key] for i, v in state.standing.items() if v.key in place_of and i in state.training
    }
    labelled, labels = items_and_codes(people)
    items = np.concatenate([candidates.items, labelled])
    codes = np.concatenate([candidates.codes, labels])
    order = np.argsort(items, kind="stable")
    items, codes = items[order], codes[order]
    p = _foretold(session, items, codes, len(candidates.keys))
    open_ = ~np.isin(items, labelled)
    rank = np.argsort(-mistakes(codes, p).wrong, kind="stable")
    return items[rank[open_[rank]]][:MOST_DOUBTFUL]


def _foretold(session: Session, items: Ints, codes: Ints, n_classes: int) -> Floats:
    """[n, C] probabilities by models that did not see the item's own label."""
    if len(np.unique(codes)) < 2:
        raise InputError("All of these labels are of one class: nothing tells which of them is wrong.")
    rng = generator(int(session.settings["seed"]), 0, CHECKS)
    groups, place = np.unique(session.items.twins.first[items], return_inverse=True)
    fold = rng.permutation(np.arange(len(groups)) % FOLDS)[place]
    p = np.empty((len(items), n_classes))
    X = session.pool.features
    for part in np.unique(fold):
        away = np.flatnonzero(fold == part)
        learned = np.flatnonzero(fold != part)
        if len(learned) > _LEARNED:
            learned = np.sort(rng.choice(learned, _LEARNED, replace=False))
        model = make_classifier("logistic-regression", classes=list(range(n_classes)))
        model.fit(np.asarray(X[items[learned]]), codes[learned])
        p[away] = model.predict_proba(np.asarray(X[items[away]]))
    return p


DOUBT = "doubt"
"""The measure 1 - p of the best class: how probable it is to the model that its best class is wrong."""
UNSURE = 0.25
"""Doubt above which an item is called unsure: the model expects to be wrong on more than one in four."""


@dataclass(frozen=True)
class Group:
    """Open items between whose two best classes the model hesitates.

    Attributes:
        classes: the two, the more probable one of the whole group first.
        items: indices into the pool, the most doubtful first.
    """

    classes: tuple[str, str]
    items: tuple[int, ...]


@dataclass(frozen=True)
class UncertainItems:
    """Doubts of a model among some items.

    Attributes:
        n: how many it is unsure of.
        of: how many there are.
        groups: those most useful to label, the one with most doubt first.
    """

    n: int
    of: int
    groups: tuple[Group, ...]


def least_confidence(probabilities: Floats) -> Floats:
    """1 - p of the best class (Settles 2009, 3.1, "least confident").

    Args:
        probabilities: [n, C].

    Returns:
        [n], from 0 to 1 - 1/C.
    """
    return np.asarray(1.0 - probabilities.max(axis=1))


def uncertain_items(model: FittedModel, items: Ints, *, most: int = 3, size: int = 24) -> UncertainItems:
    """The items a model is unsure of, in groups of the same two best classes.

    With two classes a group is of items that it takes for the same one.

    Args:
        model: of the project.
        items: [n] that may be asked about.
        most: groups at most.
        size: items of a group at most.
    """
    if not len(items):
        return UncertainItems(0, 0, ())
    p = model.probabilities_at(items)
    away = least_confidence(p)
    unsure = np.flatnonzero(away > UNSURE)
    if not unsure.size or p.shape[1] < 2:
        return UncertainItems(int(unsure.size), len(items), ())
    two = np.argsort(-p[unsure], axis=1, kind="stable")[:, :2]
    pairs = two if p.shape[1] == 2 else np.sort(two, axis=1)
    class_pairs, which = np.unique(pairs, axis=0, return_inverse=True)
    weight = np.bincount(which.ravel(), weights=away[unsure], minlength=len(class_pairs))
    groups = []
    for number in np.argsort(-weight, kind="stable")[:most]:
        rows = unsure[which.ravel() == number]
        rows = rows[np.argsort(-away[rows], kind="stable")]
        names = _names(model.classes, class_pairs[number], p[rows])
        groups.append(Group(names, tuple(items[rows[:size]].tolist())))
    return UncertainItems(int(unsure.size), len(items), tuple(groups))


def _names(classes: Sequence[str], pair: Ints, p: Floats) -> tuple[str, str]:
    first, second = sorted(map(int, pair), key=lambda code: -float(p[:, code].sum()))
    return str(classes[first]), str(classes[second])
