"""Corrections of the papers' printed formulas (docs/math.md, 9): printed, right, and a number."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, expit, ndtr
from scipy.stats import poisson

from workbench.arrays import Floats
from workbench.papers.reproduce import Report
from workbench.registry import written_entries

Shown = tuple[str, bool]
"""The numbers that show a correction, and whether they do."""


class Erratum(NamedTuple):
    """One formula.

    Attributes:
        check: the function here that gives its numbers.
        where: paper and equation.
        printed: the printed side.
        right: the right side.
    """

    check: str
    where: str
    printed: str
    right: str

    def shown(self) -> Shown:
        """Result of the check."""
        outcome: Shown = globals()[self.check]()
        return outcome


ERRATA = written_entries(Path(__file__).with_name("errata.toml"), Erratum)


def errata(report: Report) -> None:
    """Corrections that change a number, each checked by it."""
    for erratum in ERRATA:
        numbers, holds = erratum.shown()
        report.claim(
            f"{erratum.where}: {erratum.right}",
            paper=erratum.printed,
            ours=numbers,
            holds={"the number tells the right side from the printed one": holds},
        )
    report.notes = [
        '"Reproduced" means here: the correction is confirmed by its number.',
        "Wistuba & Rawat 2018, eq. 12 drops log |K_PP|, algorithms 1 and 2 of Galy-Fajou et al. 2019 must "
        "average natural parameters, and in the GWI notes the sum over n goes around both terms: slips "
        "without a single number, listed for completeness.",
    ]


def bound_in_alpha() -> Shown:
    """Wistuba & Rawat 2018, eq. 12, 14, 33 and 2019, eq. 17: the sign before 1/4 log alpha + log B."""
    eb2 = 2.0

    def value(alpha: float, sign: float) -> float:
        root = alpha**0.5
        # log K_{1/2}(x) = log sqrt(pi / 2x) - x
        bessel = 0.5 * np.log(np.pi / (2 * root)) - root
        return float(-eb2 / (2 * root) + root / 2 + sign * (0.25 * np.log(alpha) + bessel))

    at, far = value(eb2, 1.0), value(1e4 * eb2, 1.0)
    printed_at, printed_far = value(eb2, -1.0), value(1e4 * eb2, -1.0)
    shown = (
        f"from alpha = E b^2 to 10^4 times that the bound goes from {at:.2f} to {far:.2f}; as printed from "
        f"{printed_at:.2f} to {printed_far:.2f}, without limit"
    )
    return shown, far < at and printed_far > printed_at


def mean_signs() -> Shown:
    """Wistuba & Rawat 2018, eq. 42-45: the signs of the two means."""

    def loss(latent: float) -> float:
        """Twice the hinge and the prior's part, of one item whose rival's latent is 0."""
        return 2 * max(0.0, 1 - latent) + latent**2 / 2

    weight, rival = 1.0, 0.0
    mean = (1 + weight * (1 + rival)) / (1 + weight)
    shown = (
        f"one item, first update of its class: the loss goes from {loss(0.0):.1f} to {loss(mean):.1f}; "
        f"with the printed sign to {loss(-mean):.1f}"
    )
    return shown, loss(mean) < loss(0.0) < loss(-mean)


def scaled_sums() -> Shown:
    """Wenzel et al. 2017, algorithm 1: the factor n / |S| of a minibatch."""
    rng = np.random.default_rng(1)
    traces = rng.uniform(0.5, 2.0, 400) * (rng.standard_normal((400, 5)) ** 2).sum(axis=1)
    full, batch = traces.sum(), traces.reshape(40, 10).sum(axis=1).mean()
    shown = (
        f"trace that 400 points add to the posterior precision, mean of batches of 10: {40 * batch:.0f} with "
        f"the factor, {batch:.0f} without; all data at once {full:.0f}"
    )
    return shown, bool(abs(40 * batch - full) < 1e-6 * full and batch < 0.2 * full)


def _expected(function: Callable[[Floats], Floats], mean: float, variance: float) -> float:
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    return float((function(mean + variance**0.5 * nodes) * weights).sum() / weights.sum())


def probit_denominator() -> Shown:
    """Wenzel et al. 2017, eq. 13: sqrt(1 + variance)."""
    mean, variance = 1.0, 3.0
    truth = _expected(ndtr, mean, variance)
    right, printed = float(ndtr(mean / (1 + variance) ** 0.5)), float(ndtr(mean / (1 + variance)))
    shown = f"mean 1, variance 3: quadrature {truth:.5f}, right side {right:.5f}, printed {printed:.5f}"
    return shown, abs(right - truth) < 1e-8 < abs(printed - truth)


def entropy_of_softmax() -> Shown:
    """Wistuba & Rawat 2019, eq. 19: entropy of softmax(f), not of f."""
    f = np.array([1.2, -0.4, -0.9])
    p = np.exp(f) / np.exp(f).sum()
    right = float(-(p * np.log(p)).sum())
    with np.errstate(invalid="ignore"):
        printed = float(-(f * np.log(f)).sum())
    shown = f"f = (1.2, -0.4, -0.9): {right:.4f}; as printed {printed}"
    return shown, np.isfinite(right) and not np.isfinite(printed)


def gamma_factor() -> Shown:
    """Galy-Fajou et al. 2019, eq. 12: the factor 1/2."""
    C = 4
    m, c = np.zeros(C), np.full(C, 1e-6)

    def iterate(factor: float) -> float:
        S = float(np.sum(factor * np.exp(-m / 2) / np.cosh(c / 2)) / C)
        alpha = 1.0
        for _ in range(3000):
            alpha = 1.0 + S * np.exp(digamma(alpha))
        return float(alpha)

    right, printed = iterate(0.5), iterate(1.0)
    shown = (
        f"alpha after 3,000 steps at the prior: {right:.3f} (converged); as printed {printed:.0f}, growing"
    )
    return shown, right < 10 and printed > 500


def mean_update() -> Shown:
    """Galy-Fajou et al. 2019, eq. 15: the mean takes the covariance, not its inverse."""
    rng = np.random.default_rng(3)
    kappa = rng.standard_normal((40, 3))
    theta, half = rng.uniform(0.1, 0.25, 40), 0.5 * rng.choice([-1.0, 1.0], 40)
    precision = np.eye(3) + (kappa * theta[:, None]).T @ kappa
    covariance = np.linalg.inv(precision)
    slope = kappa.T @ half

    def bound(mean: Floats) -> float:
        """Part of the bound that depends on the mean, at fixed local parameters."""
        return float(mean @ slope - 0.5 * mean @ precision @ mean)

    right, printed = bound(covariance @ slope), bound(precision @ slope)
    shown = (
        f"the bound's part in mu, random problem: {right:.2f}, its maximum; at the printed mean "
        f"{printed:.0f}; 0 at mu = 0"
    )
    return shown, printed < 0 < right


def poisson_rate() -> Shown:
    """Galy-Fajou et al. 2019, Gibbs sampler: n ~ Poisson(lambda sigma(-f))."""
    lam, f = 1.7, 0.8
    goal = float(np.exp(-lam * expit(f)))
    n = np.arange(60)
    # e^-lam sum_n rate^n / n! is what the augmentation integrates to
    right, printed = (
        float(np.exp(-lam) * np.sum(poisson.pmf(n, rate)) * np.exp(rate))
        for rate in (lam * expit(-f), lam * expit(f))
    )
    shown = (
        f"lambda 1.7, f 0.8: exp(-lambda sigma(f)) = {goal:.5f}; summed over n: {right:.5f}, "
        f"printed {printed:.5f}"
    )
    return shown, abs(right - goal) < 1e-10 < abs(printed - goal)


def two_classes() -> Shown:
    """Galy-Fajou et al. 2019: C = 2 is the logistic only if f2 = -f1."""
    f1 = 0.7

    def p(f2: float) -> float:
        return float(expit(f1) / (expit(f1) + expit(f2)))

    shown = (
        f"f1 = 0.7: p = {p(-f1):.4f} at f2 = -f1, sigma(f1) = {float(expit(f1)):.4f}; at f2 = 0 {p(0.0):.4f}"
    )
    return shown, abs(p(-f1) - float(expit(f1))) < 1e-12 and abs(p(0.0) - float(expit(f1))) > 0.05


def _robust_max(n_classes: int, epsilon: float) -> Floats:
    """[C] probabilities of the program's robust-max where the first latent is surely the largest."""
    from workbench.classifiers.svgp import likelihood_probabilities

    latent = np.eye(1, n_classes) * 9.0
    return likelihood_probabilities("robust-max", latent, np.zeros_like(latent), epsilon=epsilon)[0]


def robust_max_share() -> Shown:
    """Galy-Fajou et al. 2019, eq. 3: 1 - eps for the largest, eps / (C - 1) for each other class."""
    C, eps = 4, 0.1
    printed = (1 - eps) + eps / C
    right = float(_robust_max(C, eps)[0])
    shown = (
        f"C = 4, eps = 0.1: the share of wrong labels is {1 - right:.3f} = eps; as printed {1 - printed:.3f}"
    )
    return shown, abs(1 - right - eps) < 1e-9 < abs(1 - printed - eps)


def robust_max_sum() -> Shown:
    """The GWI notes: eps / (J - 1) for each other class, not eps."""
    J, eps = 4, 0.1
    right, printed = (1 - eps) + (J - 1) * float(_robust_max(J, eps)[1]), (1 - eps) + (J - 1) * eps
    shown = f"J = 4, eps = 0.1: probabilities sum to {right:.3f}; as printed to {printed:.3f}"
    return shown, abs(right - 1) < 1e-9 < abs(printed - 1)
