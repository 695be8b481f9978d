"""Values that the lessons show: plain functions of a few numbers, seeded, seconds at most."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Array, Floats, Ints, unmirrored
from workbench.certificates import first_reached, log_wealth
from workbench.classifiers import make_classifier
from workbench.errors import InputError
from workbench.figures.records import CalibrationReport, SweepCurve, TradeCurve
from workbench.metrics import error_rate, negative_log_likelihood
from workbench.pools import load_pool
from workbench.pools.neighbours.graph import STRENGTHS, Neighbourhood
from workbench.pools.pool import ArrayItems, Pool, RowNumbers
from workbench.progress import OnProgress, quiet
from workbench.studies.calibration import (
    INFERENCES,
    KERNEL,
    KERNELS,
    LIKELIHOODS,
    NOISES,
    OWN,
    SWEPT,
    Inference,
    calibration_report,
    fitted,
    probabilities,
    scores_of,
    toy,
    trade_curves,
    trade_fit,
)
from workbench.studies.fits import opened, split_arrays

PROJECTS = 1_000
LABELS_EACH = 10_000
"""Labels of each project."""
ALLOWED, CONFIDENCE = 0.05, 0.95
LAST = 400
"""Checks at which a project ends."""


class Promises(NamedTuple):
    """Shares of simulated projects that have made their promise.

    Attributes:
        checks: [T] from 1 on.
        once: [T] by the fixed test, looked at once, after so many checks.
        peeked: [T] by the fixed test, looked at after every answer until then.
        anytime: [T] by the test that may be looked at.
        wrong: share of wrong labels.
        rule: checks that the fixed test needs where none is wrong.
        needed: the same of the other.
        fooled: projects of 1,000 with one wrong label too many that peeking lets pass.
    """

    checks: Ints
    once: Floats
    peeked: Floats
    anytime: Floats
    wrong: float
    rule: int
    needed: int
    fooled: int


def promises(wrong: float, report: OnProgress = quiet) -> Promises:
    """1,000 projects of 10,000 labels, each checked up to 400 times.

    Args:
        wrong: labels of 100 that are wrong; of 5, one more, so that the promise of 5 % is just broken.
        report: called with progress.
    """
    report(0.0, "drawing")
    max_wrong = _most_wrong()
    count = round(wrong / 100 * LABELS_EACH)
    answers = _drawn(count + (wrong / 100 == ALLOWED))
    passes = answers.cumsum(axis=1) <= max_wrong
    ever = np.logical_or.accumulate(passes, axis=1)
    reached = first_reached(log_wealth(answers, LABELS_EACH, ALLOWED), CONFIDENCE)
    checks = np.arange(1, LAST + 1)
    anytime = ((reached[:, None] > 0) & (reached[:, None] <= checks)).mean(axis=0)
    broken = _drawn(round(ALLOWED * LABELS_EACH) + 1).cumsum(axis=1) <= max_wrong
    none = np.zeros(LAST, dtype=bool)
    return Promises(
        checks,
        passes.mean(axis=0),
        ever.mean(axis=0),
        anytime,
        wrong / 100,
        int(np.argmax(max_wrong >= 0)) + 1,
        int(first_reached(log_wealth(none, LABELS_EACH, ALLOWED), CONFIDENCE)),
        int(broken.any(axis=1).sum()),
    )


def _most_wrong() -> Ints:
    """[T] wrong answers with which the fixed, exact binomial test still passes; -1 where none will do."""
    from scipy.stats import binom

    checks = np.arange(1, LAST + 1)[:, None]
    counts = np.arange(LAST // 8)
    return np.asarray((binom.cdf(counts, checks, ALLOWED) <= 1.0 - CONFIDENCE).sum(axis=1) - 1)


def _drawn(wrong: int) -> Array:
    """[projects, T] answers, drawn without replacement."""
    rng = np.random.default_rng(wrong)
    answers = np.zeros((PROJECTS, LAST), dtype=bool)
    remainder = np.full(PROJECTS, wrong)
    for t in range(LAST):
        answers[:, t] = rng.random(PROJECTS) < remainder / (LABELS_EACH - t)
        remainder -= answers[:, t]
    return answers


DATA = ("digits", "moons", "rule")
LABELS = (4, 6, 10, 20, 50, 100, 200)
_DRAWS = 5
_SHOWN = 400  # items in the pictures


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """Errors by labels and strength, and the pool as each strength sees it.

    Attributes:
        labels: [L] how many.
        strengths: [S] names.
        error: [S, L] on test items outside the graph, mean over draws of the labels.
        places: [S, n, 2] some items on a plane, as seen.
        codes: [n] their classes.
        classes: names.
        n_test: how many test items.
    """

    labels: Ints
    strengths: tuple[str, ...]
    error: Floats
    places: Floats
    codes: Ints
    classes: tuple[str, ...]
    n_test: int


def moons(n: int, seed: int) -> tuple[Floats, Ints]:
    """Two half circles that reach into each other: [n, 2] and classes [n]."""
    rng = np.random.default_rng([seed, 0x300])
    y = rng.integers(2, size=n)
    angle = np.pi * rng.random(n)
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X[y == 1] = np.array([1.0, 0.5]) - X[y == 1]
    return X + 0.12 * rng.standard_normal((n, 2)), y


def rule(n: int, seed: int) -> tuple[Floats, Ints]:
    """Eight columns of three values; the class says whether the first two are equal: close items differ."""
    rng = np.random.default_rng([seed, 0x301])
    X = rng.integers(3, size=(n, 8)).astype(np.float64)
    return X, (X[:, 0] == X[:, 1]).astype(np.int64)


def unlabelled(data: str, seed: int, report: OnProgress) -> Unlabelled:
    """The large-margin GP on each strength's features, at ever more random labels.

    Args:
        data: one of `DATA`: two moons, digits, or a rule on columns.
        seed: of the items and the labels.
        report: called with progress.
    """
    pool = _pool(data, seed).split(seed, 0.25)
    assert pool.test is not None and pool.truth is not None
    truth, neighbourhood = np.asarray(pool.truth), Neighbourhood(pool)
    test, C = pool.test.test, len(pool.classes)
    counts = [n for n in LABELS if n >= 2 * min(C, 5)]
    orders = [
        _order(truth[pool.test.train], pool.test.train, np.random.default_rng([seed, d]))
        for d in range(_DRAWS)
    ]
    error, places = np.zeros((len(STRENGTHS), len(counts))), []
    selection = pool.test.train[:_SHOWN]
    for s, name in enumerate(STRENGTHS):
        report(s / len(STRENGTHS), f"leaning on neighbours: {STRENGTHS[name].said}")
        X = np.asarray(
            pool.features if name == "none" else neighbourhood.seen(name).features, dtype=np.float64
        )
        model = make_classifier("large-margin", classes=np.arange(C), choice="fixed", random_state=seed)
        geometry = model.measure(X[pool.test.train], seed, pool.common_scale)
        for at, n in enumerate(counts):
            for order in orders:
                model.set_params(geometry=geometry).fit(X[order[:n]], truth[order[:n]])
                error[s, at] += error_rate(truth[test], model.predict(X[test])) / len(orders)
        places.append(_plane(X[pool.test.train], X[selection]))
    return Unlabelled(
        np.array(counts),
        tuple(STRENGTHS),
        error,
        np.stack(places),
        truth[selection],
        tuple(map(str, pool.classes)),
        len(test),
    )


def _order(codes: Ints, items: Ints, rng: np.random.Generator) -> Ints:
    """Items in random order, one of each class first."""
    order = rng.permutation(len(items))
    first = np.sort([int(np.flatnonzero(codes[order] == c)[0]) for c in np.unique(codes)])
    return items[np.concatenate([order[first], np.delete(order, first)])]


def _plane(X: Array, rows: Array) -> Floats:
    """Rows on the first two principal axes, which are turned the same way every time."""
    centre = X.mean(axis=0)
    if X.shape[1] == 2:
        return np.asarray(rows - centre)
    axes = unmirrored(np.linalg.svd(X - centre, full_matrices=False)[2][:2])
    return np.asarray((rows - centre) @ axes.T)


def _pool(data: str, seed: int) -> Pool:
    digits = load_pool("digits")
    if data == "digits":
        return digits
    X, y = moons(300, seed) if data == "moons" else rule(1200, seed)
    names = ("upper", "lower") if data == "moons" else ("differ", "equal")
    columns = tuple(f"x{d + 1}" for d in range(X.shape[1]))
    return replace(
        digits,
        name=data,
        kind="table",
        features=X,
        classes=names,
        truth=y,
        test=None,
        common_scale=False,
        items=ArrayItems(RowNumbers(len(X)), X, columns),
        fingerprints=np.arange(len(X), dtype=np.uint64),
    )


SIZE = 90
"""Points along each side of a map."""
OUTVOTED_AT = (0, 5, 10, 15, 20, 30, 40, 60, 80, 120, 160)
"""Labels that guesses are weighed against."""
_OUTVOTED = 160
TRADED = 600
"""Items of a pool, at most, for the trade-offs."""


class Grid(NamedTuple):
    """A grid over the plane.

    Attributes:
        x: [G].
        y: [G].
        points: [G * G, 2], rows of y first.
    """

    x: Floats
    y: Floats
    points: Floats


def grid_over(X: Array, pad: float = 0.08) -> Grid:
    """A grid over the points' bounding box and a margin.

    Args:
        X: [N, 2].
        pad: margin as a share of each side.
    """
    low, high = np.min(X, axis=0), np.max(X, axis=0)
    edge = pad * np.where(high > low, high - low, 1.0)
    x = np.linspace(low[0] - edge[0], high[0] + edge[0], SIZE)
    y = np.linspace(low[1] - edge[1], high[1] + edge[1], SIZE)
    return Grid(x, y, np.column_stack([a.ravel() for a in np.meshgrid(x, y)]))


def over_confident(
    likelihood: str, noise: float, report: OnProgress = quiet
) -> tuple[CalibrationReport, ...]:
    """Robust-max, another likelihood and the exact probabilities on the same points.

    Args:
        likelihood: the one beside robust-max, of `calibration.LIKELIHOODS`.
        noise: sigma^2.
        report: called with progress.
    """
    return _compared(("robust-max", likelihood, "bayes"), noise, report)


def useless(noise: float, report: OnProgress = quiet) -> tuple[CalibrationReport, ...]:
    """A collapsed model, a sound one and the exact probabilities.

    Args:
        noise: sigma^2.
        report: called with progress.
    """
    return _compared(("collapsed", "logistic-softmax", "bayes"), noise, report)


def likelihoods(
    draws: int,
    report: OnProgress = quiet,
    names: Sequence[str] = (*SWEPT, "collapsed"),
    noises: Sequence[float] = NOISES,
) -> Iterator[tuple[SweepCurve, ...]]:
    """Error, NLL and calibration error against the noise (Galy-Fajou et al. 2019, figure 4).

    Args:
        draws: of the data, by the seeds from 0 on.
        report: called with progress after each fit.
        names: in `calibration.LIKELIHOODS`.
        noises: sigma^2.

    Yields:
        The curves, one a likelihood, as far as they are finished.

    Raises:
        InputError: no such likelihood.
    """
    curves: tuple[SweepCurve, ...] = ()
    total, count = len(names) * draws * len(noises), 0
    for name in names:
        values = np.empty((3, draws, len(noises)))
        for seed in range(draws):
            for k, noise in enumerate(noises):
                values[:, seed, k] = scores_of(name, noise, seed)
                count += 1
                report(count / total, f"{LIKELIHOODS[name].title}, noise {noise:g}")
        curve = SweepCurve(name, LIKELIHOODS[name].title, np.asarray(noises, dtype=np.float64), *values)
        curves = (*curves, curve)
        yield curves


def gibbs(samples: int, seed: int = 0, report: OnProgress = quiet) -> Iterator[tuple[Inference, ...]]:
    """Gibbs sampling, then variational inference with and without augmentation (the paper's figure 5).

    Args:
        samples: of Gibbs, over all chains.
        seed: of the split, the chains and the fits.
        report: called with progress before each fit.

    Yields:
        The inferences as far as they are finished, Gibbs sampling first.
    """
    X, y, X_test, y_test = split_arrays(opened("wine", None, seed))
    shared: dict[str, Any] = {
        "classes": np.arange(int(max(y.max(), y_test.max())) + 1),
        "prior_mean": 0.0,
        "random_state": seed,
        **KERNEL,
        **OWN,
    }

    def measured(title: str, fraction: float, name: str, **options: Any) -> Inference:
        report(fraction, title)
        model = make_classifier(name, **shared, **options).fit(X, y)
        p = np.asarray(model.predict_proba(X_test))
        latent = model.predict_latent(X_test)
        return Inference(
            title, error_rate(y_test, p), p, np.asarray(latent.mean), np.asarray(latent.variance)
        )

    inferences: tuple[Inference, ...] = (measured("Gibbs", 0.0, "logistic-softmax-gibbs", n_samples=samples),)
    yield inferences
    for place, (bound, title) in enumerate(INFERENCES.items()):
        # no approximation by inducing points: one at every item
        options = {"bound": bound, "n_inducing": len(X)}
        inferences = (*inferences, measured(title, 0.6 + 0.13 * place, "logistic-softmax", **options))
        yield inferences


def inducing_trade(
    pool: str,
    seed: int = 0,
    report: OnProgress = quiet,
    points: Sequence[int] = (5, 10, 20, 40, 80),
    rows: int = TRADED,
) -> Iterator[tuple[TradeCurve, ...]]:
    """Inducing points, and shared against own hyperparameters (Galy-Fajou et al. 2019, figure 6).

    Args:
        pool: with known classes.
        seed: of cut, split and fits.
        report: called with progress before each fit.
        points: inducing points, few to many.
        rows: of the pool, at most.

    Yields:
        The curves as far as they are fitted, after each fit; the shared kernel first.
    """
    fits: list[dict[str, float]] = []
    for shared, title in KERNELS.items():
        for n in points:
            report(len(fits) / (2 * len(points)), f"{title}, {n} inducing points")
            fits.append(trade_fit(pool, n, shared, rows, seed))
            yield trade_curves(points, fits)


def _compared(names: tuple[str, ...], noise: float, report: OnProgress) -> tuple[CalibrationReport, ...]:
    out = []
    for place, name in enumerate(names):
        report(place / len(names), LIKELIHOODS[name].title)
        out.append(calibration_report(LIKELIHOODS[name].title, *probabilities(name, noise)))
    return tuple(out)


def argmax_frequency(noise: float, n_train: int, report: OnProgress = quiet) -> tuple[CalibrationReport, ...]:
    """The large-margin GP read in three ways: argmax frequency, softmax of the means, tempered.

    Args:
        noise: sigma^2.
        n_train: labels.
        report: called with progress.
    """
    from workbench.classifiers.calibration import softmax
    from workbench.policies import argmax_probabilities

    report(0.0, "Fitting")
    data = toy(noise, 0, n_train)
    model = fitted("large-margin", data)
    latent = model.predict_latent(data.X_test)
    mean = np.asarray(latent.mean, dtype=np.float64)
    readings = (
        ("Argmax frequency", argmax_probabilities(mean, np.asarray(latent.variance, dtype=np.float64))),
        ("Softmax of the means", softmax(mean)),
        (f"Tempered softmax, β = {float(model.beta_):.2f}", model.predict_proba(data.X_test)),
    )
    return tuple(calibration_report(title, data.y_test, np.asarray(p)) for title, p in readings)


def spirals() -> tuple[Floats, Ints]:
    """Three arms of a spiral: a border too long for a few inducing points.

    Returns:
        Points [N, 2] and codes [N].
    """
    rng = np.random.default_rng([0, 0, 0x591])
    codes = rng.integers(0, 3, 900)
    t = np.sqrt(rng.uniform(0.02, 1.0, 900))
    angle = 2 * np.pi * (1.4 * t + codes / 3)
    X = t[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + 0.05 * rng.standard_normal((900, 2)), codes


@dataclass(frozen=True, eq=False)
class Inducing:
    """One sparse model of the spirals.

    Attributes:
        grid: of the map.
        probabilities: [G, G, 3].
        centres: [P, 2] inducing points.
        X: [N, 2] training points.
        y: [N].
        error: on the test points.
        nll: nats.
        n_test: test points.
    """

    grid: Grid
    probabilities: Floats
    centres: Floats
    X: Floats
    y: Ints
    error: float
    nll: float
    n_test: int


def inducing_points(n_inducing: int, report: OnProgress = quiet) -> Inducing:
    """The large-margin GP with so many inducing points (no wide mean) on three spirals.

    Args:
        n_inducing: P.
        report: called with progress.
    """
    report(0.0, "Fitting")
    X, y = spirals()
    X, y, X_test, y_test = X[:300], y[:300], X[300:], y[300:]
    model = make_classifier(
        "large-margin",
        choice="fixed",
        classes=np.arange(3),
        n_inducing=n_inducing,
        n_mean=0,
        length_scale_factor=0.3,
        random_state=0,
    ).fit(X, y)
    grid = grid_over(X)
    p = np.asarray(model.predict_proba(X_test))
    geometry = model.geometry_
    return Inducing(
        grid,
        np.asarray(model.predict_proba(grid.points)).reshape(SIZE, SIZE, 3),
        np.asarray(geometry.inducing) * geometry.scale + geometry.shift,
        X,
        y,
        error_rate(y_test, p),
        negative_log_likelihood(y_test, p),
        len(y_test),
    )


@dataclass(frozen=True, eq=False)
class Measures:
    """Two measures over the plane from one model.

    Attributes:
        grid: of the maps.
        variation_ratio: [G, G].
        entropy: [G, G] nats.
        X: [n, 2] labelled points.
        y: [n].
    """

    grid: Grid
    variation_ratio: Floats
    entropy: Floats
    X: Floats
    y: Ints


def two_measures(n_train: int, noise: float, report: OnProgress = quiet) -> Measures:
    """Variation ratio and entropy of the large-margin GP over the plane.

    Args:
        n_train: labels.
        noise: sigma^2.
        report: called with progress.
    """
    from workbench.policies import variation_ratio
    from workbench.policies.rowwise import entropy_of

    report(0.0, "Fitting")
    data = toy(noise, 0, n_train)
    # clipped z-scores would draw straight bands beyond two standard deviations; the plane has one scale
    model = fitted("large-margin", data, clip=np.inf)
    # one frame for every number of labels
    grid = grid_over(toy(noise, 0).X, pad=0.02)
    latent = model.predict_latent(grid.points)
    p = np.asarray(model.predict_proba(grid.points))
    ratio = variation_ratio(np.asarray(latent.mean), np.asarray(latent.variance))
    shape = (SIZE, SIZE)
    return Measures(grid, np.asarray(ratio).reshape(shape), entropy_of(p).reshape(shape), data.X, data.y)


@dataclass(frozen=True, eq=False)
class Looked:
    """Items that policies asked about.

    Attributes:
        points: [N, 2] the pool.
        codes: [N].
        classes: names.
        initial: items labelled at the start.
        asked: policy -> items in the order they were asked about.
        error: policy -> [R] test error after each round.
        n_test: test items.
    """

    points: Floats
    codes: Ints
    classes: tuple[str, ...]
    initial: Ints
    asked: dict[str, Ints]
    error: dict[str, Floats]
    n_test: int


def looked(policy: str, seed: int, budget: int = 40, report: OnProgress = quiet) -> Looked:
    """A policy and random asking on the same pool, from the same start.

    Args:
        policy: a registry name.
        seed: of pool, split and start.
        budget: questions.
        report: called with progress.
    """
    from workbench.sessions import simulate

    pool = load_pool("three-gaussians", n_items=600, noise=0.12, seed=seed)
    questions: dict[str, Ints] = {}
    errors: dict[str, Floats] = {}
    initial: Ints = np.empty(0, dtype=np.int64)
    names = tuple(dict.fromkeys((policy, "random")))
    for place, name in enumerate(names):
        items: list[int] = []
        error: list[float] = []
        options = {"length_scale_factor": 1.0, "variance": 1.0, "choice": "fixed"}
        for record in simulate(pool, "large-margin", name, options=options, budget=budget, seed=seed):
            if record.number == 0:
                initial = record.initial
            items += record.queried.tolist()
            error.append(record.error)
            share = len(items) / max(budget, 1)
            report(
                (place + share) / len(names),
                f"{name}: {len(items)} of {budget} questions",
            )
        questions[name], errors[name] = np.array(items, dtype=np.int64), np.array(error)
    assert pool.truth is not None
    n_test = round(0.2 * len(pool))
    return Looked(
        np.asarray(pool.features), np.asarray(pool.truth), pool.classes, initial, questions, errors, n_test
    )


@dataclass(frozen=True, eq=False)
class Outvoted:
    """Two guesses at the classes, weighed against ever more labels.

    Attributes:
        labels: [L] how many.
        weights: [L, 2] of the guess that is mostly right and of the one that is mostly wrong.
        error: [L] test error of the model that begins with both.
        without: [L] of the one that begins with neither; NaN where it has no label.
        alone: [2] test error of each guess by itself.
    """

    labels: Ints
    weights: Floats
    error: Floats
    without: Floats
    alone: Floats


def outvoted(seed: int, report: OnProgress = quiet) -> Outvoted:
    """Labels of three overlapping classes, given to a model that begins with a good and a wrong guess.

    The good one names the class of four items in five, and another of the rest at random; the wrong one takes
    each class for the next in four of five.

    Args:
        seed: of the points, the labels' order and the guesses' mistakes.
        report: called with progress.
    """
    from workbench.guesses import of_classes

    rng = np.random.default_rng(seed)
    names = ["A", "B", "C"]
    y = rng.integers(3, size=_OUTVOTED + 1_000)
    X = 1.8 * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.87]])[y] + 0.7 * rng.standard_normal((len(y), 2))
    sure = rng.random((2, len(y))) < 0.8
    guesses = np.where(sure, [y, (y + 1) % 3], rng.integers(3, size=(2, len(y))))
    mean = np.stack([of_classes(np.array(names)[guess], names).values for guess in guesses])
    test = np.arange(_OUTVOTED, len(y))
    weights, errors, without = [], [], []

    def model() -> Any:
        return make_classifier("large-margin", classes=[0, 1, 2], choice="fixed", random_state=seed)

    for place, n in enumerate(OUTVOTED_AT):
        report(place / len(OUTVOTED_AT), f"{n} labels")
        rows = np.arange(n)
        begun = model().fit(X[rows], y[rows], mean=mean[:, rows])
        weights.append(begun.mean_weights_)
        errors.append(error_rate(y[test], begun.predict(X[test], mean=mean[:, test])))
        without.append(
            error_rate(y[test], model().fit(X[rows], y[rows]).predict(X[test])) if n else float("nan")
        )
    alone = [error_rate(y[test], guess[test]) for guess in guesses]
    return Outvoted(
        np.array(OUTVOTED_AT), np.array(weights), np.array(errors), np.array(without), np.array(alone)
    )


@dataclass(frozen=True, eq=False)
class Rivals:
    """The hard rival beside the tempered ones.

    Attributes:
        hard: [T + 1] the papers' objective when the rival is chosen anew before each sweep.
        tempered: [S + 1] the same objective along the tempered solver's sweeps.
        switched: [T] share of rows whose rival changed before each sweep.
        n: rows.
        n_classes: C.
    """

    hard: Floats
    tempered: Floats
    switched: Floats
    n: int
    n_classes: int


def hard_objective(
    Phi: Floats, residual: Floats, y: Ints, mean: Floats, covariance: Floats
) -> tuple[float, Ints, Floats]:
    """The papers' objective with the worst rival of each row (docs/math.md, 2).

    Args:
        Phi: [N, P] whitened features.
        residual: [N] what they leave of the kernel's variance.
        y: [N] codes.
        mean: [P, C] of q(v).
        covariance: [C, P, P] of q(v).

    Returns:
        sum_n [-E b - sqrt(E b^2)] - KL at the rival of largest mean, those rivals [N] and E b^2 [N].
    """
    rows = np.arange(len(y))
    F = Phi @ mean
    rival_means = F.copy()
    rival_means[rows, y] = -np.inf
    rival = rival_means.argmax(axis=1)
    V = np.einsum("np,cpq,nq->nc", Phi, covariance, Phi, optimize=True)
    margin = 1 + F[rows, rival] - F[rows, y]
    second = np.maximum(margin**2 + 2 * residual + V[rows, rival] + V[rows, y], 1e-12)
    P = Phi.shape[1]
    log_det = np.linalg.slogdet(covariance)[1]
    kl = 0.5 * (np.einsum("cpp->c", covariance) + (mean**2).sum(axis=0) - P - log_det).sum()
    return float(-(margin + np.sqrt(second)).sum() - kl), rival, second


def rivals(n_classes: int, report: OnProgress = quiet, sweeps: int = 40) -> Rivals:
    """The rule "the rival is whoever leads now" against the tempered rivals, on one problem.

    Args:
        n_classes: C; with two there is one rival and nothing to cycle.
        report: called with progress.
        sweeps: of the hard rule.

    Raises:
        InputError: fewer than two classes.
    """
    from workbench.pools.datasets.generators import overlapping

    if n_classes < 2:
        raise InputError(f"A rival needs two classes; got {n_classes}.")
    pool = overlapping(n_items=600, n_classes=n_classes, n_features=2, overlap=1.0, seed=1)
    X, y = np.asarray(pool.features), np.asarray(pool.truth)
    soft = make_classifier(
        "large-margin",
        choice="fixed",
        classes=np.arange(n_classes),
        n_inducing=32,
        n_mean=0,
        variance=1.0,
        length_scale_factor=1.0,
        calibration=None,
        random_state=0,
        max_sweeps=1,
        tol=1e-9,
        warm_start=True,
    )
    tempered: list[float] = []
    Phi, residual = np.empty((0, 0)), np.empty(0)
    for sweep in range(sweeps):
        report(0.5 * sweep / sweeps, f"tempered, sweep {sweep + 1}")
        soft.fit(X, y)
        if not tempered:
            Phi = np.asarray(soft.predictor_.project(X), dtype=np.float64)
            residual = np.maximum(1.0 - (Phi**2).sum(axis=1), 0.0)
            zero = np.zeros((Phi.shape[1], n_classes))
            tempered.append(
                hard_objective(Phi, residual, y, zero, np.tile(np.eye(Phi.shape[1]), (n_classes, 1, 1)))[0]
            )
        root = np.asarray(soft.root_)
        tempered.append(hard_objective(Phi, residual, y, soft.mean_, np.swapaxes(root, 1, 2) @ root)[0])
    # the rule of the papers' algorithm: choose the rival, then update every class in closed form
    P = Phi.shape[1]
    mean, covariance = np.zeros((P, n_classes)), np.tile(np.eye(P), (n_classes, 1, 1))
    value, rival, second = hard_objective(Phi, residual, y, mean, covariance)
    hard, switched = [value], []
    for sweep in range(sweeps):
        report(0.5 + 0.5 * sweep / sweeps, f"hard rival, sweep {sweep + 1}")
        weight = second**-0.5
        F = Phi @ mean
        for c in range(n_classes):
            is_own, against = y == c, rival == c
            rows = is_own | against
            A, w = Phi[rows], weight[rows]
            # with the other side held: rows of c are pushed above their rival, rival rows below their class
            opponent = np.where(is_own[rows], F[rows, rival[rows]], F[rows, y[rows]])
            sign = np.where(is_own[rows], 1.0, -1.0)
            precision = np.eye(P) + A.T @ (A * w[:, None])
            covariance[c] = np.linalg.inv(precision)
            mean[:, c] = covariance[c] @ (A.T @ (sign * (1 + w) + w * opponent))
            F[:, c] = Phi @ mean[:, c]
        before = rival
        value, rival, second = hard_objective(Phi, residual, y, mean, covariance)
        hard.append(value)
        switched.append(float((rival != before).mean()))
    return Rivals(np.array(hard), np.array(tempered), np.array(switched), len(y), n_classes)
