"""Before the first check: what a certificate is likely to cost, by what the model says of its own errors.

A forecast, never evidence: the checks decide, whatever was forecast.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Array, Floats, Ints
from workbench.certificates.wealth import BETS, WEIGHTS, confidence_of, error_of, threshold, too_many
from workbench.errors import InputError
from workbench.shares import in_percent

STEPS = 24
"""Sizes of sets that a plan compares."""
_TRIALS = 300
_MOST_CHECKS = 3_000
_SPREAD = (0.1, 0.9)  # quantiles of a range
_PRIOR = (0.5, 0.25)  # deviations of intercept and slope: a model may be wrong about itself
_POINTS = 512
_LIKELY = 0.75
_GIVEN_UP = 200  # checks after which a set that is too large is given up


@dataclass(frozen=True)
class OperatingPoint:
    """One threshold: the machine labels the surest `size` items, people label the rest."""

    size: int
    """Items in the machine's part."""
    threshold: float
    """Predicted error of the least sure of them."""
    error: float
    """Share of them that is wrong, by the forecast."""
    success: float
    """Chance that it is certified at a cost below looking at all of it."""
    rest: int
    """Items that are left to people."""
    answers: float
    """Human answers from now on, checks and the rest, where it is certified; the median."""
    answers_range: tuple[float, float]
    """Of 8 of 10 of these cases."""
    cost: float
    """Answers in the mean over all cases, with another attempt where it fails; options are compared by it."""

    def in_answers(self, strong: str = "") -> str:
        """Cost in words, "60 checks (50 to 80)" or "160 answers (150 to 180): 60 checks, 100 labels by hand".

        Args:
            strong: put around the number, such as "**" in Markdown.
        """
        low, high = (f"{end:,.0f}" for end in self.answers_range)
        between = f" ({low} to {high})" if low != high else ""
        noun = "answers" if self.rest else "checks"
        words = f"{strong}{self.answers:,.0f} {noun}{strong}{between}"
        if not self.rest:
            return words
        checks = round(self.answers) - self.rest
        by_hand = f"{self.rest:,} {'label' if self.rest == 1 else 'labels'} by hand"
        return f"{words}: {checks:,.0f} checks and {by_hand}"


@dataclass(frozen=True)
class Plan:
    """Thresholds and the one that costs fewest human answers, a forecast."""

    size: int
    error: float
    confidence: float
    options: tuple[OperatingPoint, ...]
    """Rising in size."""
    chosen: int | None
    """Place of the cheapest that is likely to be certified; None where labelling everything is as cheap."""

    @property
    def choice(self) -> OperatingPoint | None:
        """The cheapest option."""
        return None if self.chosen is None else self.options[self.chosen]

    def sizes(self) -> Ints:
        """Sets to test, in order: the chosen one, and those beyond it; [K]."""
        if self.chosen is None:
            return np.array([self.size])
        return np.array([option.size for option in self.options[self.chosen :]])

    def sentence(self) -> str:
        """The forecast in words."""
        if self.choice is None:
            return (
                f"By the forecast no certificate at {in_percent(self.error)} costs fewer answers than "
                f"labelling all {self.size:,} items."
            )
        best = self.choice
        return (
            f"Forecast: the machine labels {best.size:,} of {self.size:,} for about {best.in_answers()}; "
            f"certified in {100 * best.success:.0f} of 100 cases."
        )


def plan(
    predicted_error: ArrayLike,
    error: float,
    confidence: float,
    *,
    held_out: tuple[ArrayLike, ArrayLike] | None = None,
    seed: int = 0,
) -> Plan:
    """Threshold on the confidence that costs fewest human answers, checks and the rest together.

    Args:
        predicted_error: [N], chance that each machine label is wrong, as 1 - confidence.
        error: allowed share of wrong labels in the machine's part.
        confidence: of this attempt (`confidence_at`).
        held_out: ([h] predicted errors, [h] whether wrong) of items whose answer is known and that the model
            has not learned from: the forecast is recalibrated by them, and its range narrows.
        seed: of the simulation.

    Returns:
        Options and the choice.

    Raises:
        InputError: no items, or values outside their range.
    """
    risk = _risk(predicted_error, "predicted errors")
    error, confidence = error_of(error), confidence_of(confidence)
    if not len(risk):
        raise InputError("There is no item left to plan for.")
    rng = np.random.default_rng([seed, len(risk)])
    order = np.sort(risk)
    sizes = _sizes(len(order))
    shares = _shares(order, sizes, held_out, rng)
    checks = np.array(
        [
            checks_needed(int(k), error, confidence, rates, rng)
            for k, rates in zip(sizes, shares.T, strict=True)
        ]
    ).T
    answers = checks + (len(order) - sizes)
    # a set that is not certified is given up, and another attempt is made at what would have been best
    again = np.minimum(answers, answers.min(axis=1, keepdims=True) + _GIVEN_UP)
    answers = np.where(checks < sizes, answers, again)
    options = tuple(
        _option(int(k), len(order), float(order[k - 1]), shares[:, i], checks[:, i], answers[:, i])
        for i, k in enumerate(sizes)
    )
    best = _cheapest(options)
    hopeful = options[best].success >= 0.5 and options[best].cost < len(order)
    choice = best if hopeful else None
    return Plan(len(order), error, confidence, options, choice)


def checks_needed(
    size: int, error: float, confidence: float, true_error: float | Floats, rng: np.random.Generator
) -> Ints:
    """Simulated numbers of checks until a certificate.

    Args:
        size: N.
        error: allowed share.
        confidence: of this attempt.
        true_error: share of wrong labels, one or one a trial.
        rng: of the simulation.

    Returns:
        [trials], N where it takes all of them or more than a forecast looks at.
    """
    shares = np.broadcast_to(np.asarray(true_error, dtype=float), (_TRIALS,))
    needed = _boundary(int(size), float(error), float(confidence))
    limit = min(size, _MOST_CHECKS)
    gaps = rng.geometric(np.clip(shares, 1e-12, 1.0)[:, None], size=(_TRIALS, len(needed)))
    positions = np.minimum(gaps, limit + 1).cumsum(axis=1)  # when the next wrong one turns up
    passed = (needed <= limit) & (positions > needed)
    return np.where(passed.any(axis=1), needed[passed.argmax(axis=1)], size)


@lru_cache(maxsize=256)
def _boundary(size: int, error: float, confidence: float) -> Ints:
    """[k], draws that suffice with k wrong ones among them, those first; more than N where none do."""
    from scipy.special import gammaln, logsumexp

    forbidden = too_many(size, error)
    wrong = np.arange(min(forbidden, 60))
    never = size + 1
    right = np.unique(np.geomspace(1, min(size, _MOST_CHECKS), 160).astype(np.int64))
    k, n = wrong[:, None, None], right[:, None]
    rest = size - k
    with np.errstate(divide="ignore", invalid="ignore"):

        def product(missing: Array) -> Array:
            # sum over j < n of log(left - j - missing)
            return gammaln(rest - missing + 1) - gammaln(rest - n - missing + 1)

        grown = product((1.0 - BETS) * (forbidden - k)) - product(np.asarray(forbidden - k, dtype=float))
        evidence = logsumexp(np.log(WEIGHTS) + k * np.log1p(-BETS) + grown, axis=2)
    enough = (evidence >= threshold(confidence)) | (
        size - wrong[:, None] - right < forbidden - wrong[:, None]
    )
    enough &= ~((right > rest[:, :, 0]) | np.isnan(evidence)) | (right >= size - forbidden + 1)
    first = np.where(enough.any(axis=1), right[enough.argmax(axis=1)] + wrong, never)
    return np.minimum(np.maximum.accumulate(first), never)


def _option(
    size: int, n_items: int, least: float, shares: Floats, checks: Ints, answers: Ints
) -> OperatingPoint:
    certified = checks < size
    needed = (checks[certified] if certified.any() else checks) + (n_items - size)
    low, high = np.quantile(needed, _SPREAD).tolist()
    return OperatingPoint(
        size,
        least,
        float(np.median(shares)),
        float(certified.mean()),
        n_items - size,
        float(np.median(needed)),
        (low, high),
        float(answers.mean()),
    )


def _cheapest(options: tuple[OperatingPoint, ...]) -> int:
    """Place of the cheapest option among those that are likely to be certified at the first attempt."""
    likely = [i for i, option in enumerate(options) if option.success >= _LIKELY]
    if not likely:
        return int(np.argmax([option.success for option in options]))
    return min(likely, key=lambda i: options[i].cost)


def _sizes(total: int) -> Ints:
    """Sizes to compare, from a twentieth on, all of them at the end."""
    least = max(1, min(total, total // 20))
    return np.unique(np.linspace(least, total, STEPS).astype(np.int64))


def _shares(
    order: Floats, sizes: Ints, held_out: tuple[ArrayLike, ArrayLike] | None, rng: np.random.Generator
) -> Floats:
    """[trials, K] shares of wrong labels among the surest, as they may be: draws of the recalibration."""
    grid = np.linspace(0, len(order) - 1, min(len(order), _POINTS))
    x = _logit(order[grid.astype(np.int64)])
    lines = _lines(held_out, rng)
    chances = 1.0 / (1.0 + np.exp(-(lines[:, :1] + lines[:, 1:] * x)))
    mean = chances.cumsum(axis=1) / np.arange(1, len(grid) + 1)
    return np.array([np.interp(sizes - 1, grid, row) for row in mean])


def _lines(held_out: tuple[ArrayLike, ArrayLike] | None, rng: np.random.Generator) -> Floats:
    """[trials, 2] intercept and slope of the logit of an error over the logit of the predicted one.

    A logistic regression on the held-out items with a Gaussian prior around "the model is right about
    itself", at its mode and with its curvature there (Platt, "Probabilistic outputs for support vector
    machines", 1999).
    """
    prior, precision = np.array([0.0, 1.0]), np.diag(1.0 / np.array(_PRIOR) ** 2)
    at, curvature = prior.copy(), precision
    if held_out is not None:
        risk, outcomes = (
            _risk(values, f"held-out {name}")
            for values, name in zip(held_out, ("predicted errors", "answers"), strict=True)
        )
        if risk.shape != outcomes.shape:
            raise InputError("Held-out predictions and answers are as many.")
        X = np.column_stack([np.ones(len(risk)), _logit(risk)])
        for _ in range(30):
            p = 1.0 / (1.0 + np.exp(-X @ at))
            slope = X.T @ (p - outcomes) + precision @ (at - prior)
            curvature = (X * (p * (1 - p))[:, None]).T @ X + precision
            step = np.linalg.solve(curvature, slope)
            at = at - step * min(1.0, 2.0 / max(1e-12, float(np.abs(step).max())))
    lines: Floats = rng.multivariate_normal(at, np.linalg.inv(curvature), size=_TRIALS)
    lines[:, 1] = np.maximum(lines[:, 1], 0.0)  # the surest are never the worst, by forecast
    return lines


def _logit(risk: Floats) -> Floats:
    p = np.clip(risk, 1e-4, 1.0 - 1e-4)
    return np.log(p) - np.log1p(-p)


def _risk(values: ArrayLike, name: str) -> Floats:
    chances = np.asarray(values, dtype=float).ravel()
    if not np.isfinite(chances).all() or (len(chances) and (chances.min() < 0.0 or chances.max() > 1.0)):
        raise InputError(f"The {name} are chances from 0 to 1, without NaN.")
    return chances
