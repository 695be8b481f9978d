"""Weights of guesses: weights of prior means, from predictions that did not see the point.

f_c(x) = sum_j a_j g_jc(x) + GP_c(x), a_j >= 0 (docs/math.md, 13). A weight is judged together with the
temperature: with that held, weights run away; by hits or by least squares they come out too small.
"""

from collections.abc import Callable

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.classifiers.calibration import PRIOR_SPREAD, LeftOut, clearly_less, judge

FACTORS = (0.0, 0.2, 0.4, 0.7, 1.0, 1.5, 2.5, 5.0, 10.0)  # times the prior weight
FIRST = 5  # labels before the weights are looked at
FOLDS = 5
ENTRIES = 20_000  # rows times classes that a weight is judged on: every fit is then against every rival
_STANDARD_ERRORS = 1.0  # that a guess must be better than none by


def prior_weight(n_classes: int) -> float:
    """The weight of a guess that no label has spoken about: 0.5 up to 6 classes, 0.14 for 77.

    A standardised guess that names one of C classes sets it sqrt(C) above the others, so that its margin
    is much the same for every C.

    Args:
        n_classes: C.
    """
    return 0.5 * min(1.0, float(np.sqrt(6.0 / n_classes)))


def due(n: int, last: int) -> bool:
    """True if it is time to weigh again.

    Args:
        n: labels.
        last: labels when the weights were last chosen, 0 for never.
    """
    return n >= FIRST and n >= last + max(FIRST, last // 10)


def out_of_fold(
    n: int, n_classes: int, seed: int, predict: Callable[[Ints, Ints], Floats], folds: int = FOLDS
) -> Floats:
    """Predictions [n, C] of rows that the fit did not see, fold by fold.

    Args:
        n: rows.
        n_classes: C.
        seed: of the folds.
        predict: (rows to fit, rows to predict) -> [m, C] of the latter.
        folds: parts of the rows.
    """
    fold = np.random.default_rng([seed, 3]).permutation(n) % folds
    values = np.zeros((n, n_classes))
    for number in range(min(folds, n)):
        outside = np.flatnonzero(fold == number)
        values[outside] = predict(np.flatnonzero(fold != number), outside)
    return values


def judged_by_folds(
    codes: Ints, n_classes: int, seed: int, predict: Callable[[Ints, Ints], Floats]
) -> LeftOut:
    """Score of a model with a scale of its own on labels it did not see, at its best temperature.

    The prior on log beta is centred on 0: the model's own probabilities. With beta held there, a model that
    doubts too much would give a guess weight until its probabilities are sharp, and do nothing itself.

    Args:
        codes: [n] true classes.
        n_classes: C.
        seed: of the folds.
        predict: (rows to fit, rows to predict) -> [m, C] class probabilities of the latter.
    """
    p = out_of_fold(len(codes), n_classes, seed, predict)
    log_p: Floats = np.log(np.maximum(p, 1e-12))
    return judge(log_p, codes, np.arange(len(codes)), 0.0)


def weigh(judge: Callable[[Floats], LeftOut], start: Floats, unit: float, centre: float) -> Floats:
    """Weights by the likelihood of labels left out, one guess after the other.

    Args:
        judge: fits with given weights [J] and says how well that predicts labels it did not see.
        start: [J] where to begin.
        unit: the weight of a guess that no label has spoken about.
        centre: of the prior on log beta.

    Returns:
        [J], each a `FACTORS` of the prior weight; 0 drops a guess. A weight at which clearly more labels
        left out are wrong than without the guess is not taken, however likely the labels are.
    """

    def by_weight(factors: Floats) -> float:
        # above the prior weight by its logarithm: scores that differ little between classes need a large one
        above = np.log(np.maximum(factors, 1.0))
        return 0.5 * float((np.where(factors > 1.0, above, factors - 1.0) ** 2).sum())

    def loss(left_out: LeftOut, weights: Floats) -> float:
        by_beta = 0.5 * ((np.log(max(left_out.beta, 1e-12)) - centre) / PRIOR_SPREAD) ** 2
        return float(-left_out.log_likelihood.sum()) + by_beta + by_weight(weights / unit)

    weights = np.array(start, dtype=np.float64)
    for source in range(len(weights)):
        tried: list[tuple[float, float, LeftOut]] = []
        for factor in FACTORS:
            candidate = weights.copy()
            candidate[source] = factor * unit
            left_out = judge(candidate)
            tried.append((loss(left_out, candidate), factor * unit, left_out))
        none = tried[0][2]
        allowed = [trial for trial in tried if not clearly_less(none.wrong, trial[2].wrong, _STANDARD_ERRORS)]
        _, best, left_out = min(allowed, key=lambda trial: trial[:2])
        # a guess that is right by chance in a few places is not kept for that
        better = clearly_less(-left_out.log_likelihood, -none.log_likelihood, _STANDARD_ERRORS)
        weights[source] = best if better else 0.0
    return weights
