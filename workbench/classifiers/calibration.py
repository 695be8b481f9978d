"""One temperature for class probabilities, from predictions that did not see the point.

predict_proba = softmax(beta * mean). The argmax frequency of the latents is knowledge about f, not
a class probability; softmax(mean) is badly under-confident, because margins are about 1.
"""

from typing import NamedTuple

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.engine.wide_mean import Derivatives, by_class, leverages

SAMPLE = 600  # rows that decide the temperature
PRIOR_SPREAD = 0.5  # of log beta
# of tables, whose columns have scales of their own: from sets of PMLB, docs/math.md, 8
TABLE_CENTRE = 0.5  # times the prior's beta
OWN_CENTRE = 10.0  # times the former, of the power of probabilities that a likelihood of its own gives
TABLE_LABELS = 8.0  # beta times n / (n + this)
TABLE_ALONE = 1.75  # the former takes that much too much where all labels are alone in their classes
TABLE_TRUST = 20.0  # labels left out count n / (n + this): the spread of log beta is the root of that


def leave_one_out(
    Phi: Floats,
    mean: Floats,
    codes: Ints,
    rivals: Ints,
    derivatives: Derivatives,
    sample: Ints,
    weight: float = 1.0,
    at: Floats | None = None,
) -> Floats:
    """Latent means of rows as if each had not been in the data: one Newton step.

    F'_nc = F_nc - v_nc u_nc / max(1 - e k_nc v_nc, 0.1), docs/math.md, 8.

    Args:
        Phi: [N, B] whitened features of the basis that carries the mean.
        mean: [B, C] coefficients of the mean in that basis.
        codes: [N] true classes.
        rivals: [N, k] listed rivals.
        derivatives: of the objective in F, at the end of the fit.
        sample: [n] rows wanted.
        weight: how many rows of the data each of these N stands for.
        at: [n, B] the same items as they would be seen had they come later; as the rows are unless given.

    Returns:
        [n, C].
    """
    n_classes = mean.shape[1]
    k = by_class(derivatives.curvature, derivatives.own_curvature, rivals, codes, n_classes)
    slope = derivatives.slope[sample]
    u = by_class(slope, -slope.sum(axis=1), rivals[sample], codes[sample], n_classes)
    v, crossed = leverages(Phi, weight * k, sample, np.abs(u) > 1e-3, at)
    excess = n_classes / (n_classes - 1.0)
    features = Phi[sample] if at is None else at
    return features @ mean - crossed * u / np.maximum(1.0 - excess * k[sample] * v, 0.1)


def prior_log_beta(variance: float, spread: float = 1.0) -> float:
    """Centre of the prior on log beta: log(1.5 (v / 10)^-0.4 spread^-0.25).

    Args:
        variance: of the kernel.
        spread: share of the uncertainty a wide mean is fitted with: the sharper the margin, the
            larger beta (digits: 1.4 at 1, 2.4 at 0.1, 3.9 at 0.01).
    """
    return float(np.log(1.5) - 0.4 * np.log(variance / 10.0) - 0.25 * np.log(spread))


def fit_beta(
    F: Floats,
    codes: Ints,
    centre: float,
    *,
    spread: float = PRIOR_SPREAD,
    weights: Floats | None = None,
) -> float:
    """The most probable temperature.

    Args:
        F: [n, C] means that did not see their row.
        codes: [n] true classes.
        centre: mean of the normal prior on log beta.
        spread: its standard deviation.
        weights: [n] how much each row counts; 1 unless given.

    Returns:
        beta > 0.
    """
    from scipy.optimize import minimize_scalar

    F = np.asarray(F, dtype=np.float64)
    gap = F - F[np.arange(len(codes)), codes][:, None]  # [n, C], zero at the true class

    def loss(log_beta: float) -> float:
        z = np.exp(log_beta) * gap
        top = z.max(axis=1)
        nll = np.log(np.exp(z - top[:, None]).sum(axis=1)) + top
        total = nll.sum() if weights is None else weights @ nll
        return float(total) + 0.5 * ((log_beta - centre) / spread) ** 2

    optimum = minimize_scalar(
        loss, bounds=(centre - 4.0, centre + 4.0), method="bounded", options={"xatol": 1e-3}
    )
    return float(np.exp(optimum.x))


def softmax(F: Floats, beta: float = 1.0) -> Floats:
    """Class probabilities [..., C], float64, from values F [..., C] times beta."""
    z = beta * np.asarray(F, dtype=np.float64)
    z -= z.max(axis=-1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=-1, keepdims=True)
    return z


def powered(p: Floats, power: float) -> Floats:
    """Probabilities [N, C] to a power, as probabilities; to the first as they are."""
    return p if power == 1.0 else softmax(np.log(np.maximum(p, 1e-300)), power)


def own_power(p: Floats, codes: Ints, rows: Ints) -> float:
    """Power that a model's own probabilities are to be taken to, by the rule for tables.

    Args:
        p: [n, C] of rows that the fit did not see.
        codes: [N] classes of all rows of the fit.
        rows: [n] places of the rows among these.
    """
    log_p = np.log(np.maximum(p, 1e-12))
    return judge_table(log_p, codes, rows, float(np.log(OWN_CENTRE))).beta


class LeftOut(NamedTuple):
    """Scores of a fit on rows it did not see, by which kernels and geometries are compared.

    Attributes:
        rows: [n] positions among the rows of the fit.
        means: [n, C] latent means as if the row had not been there.
        beta: the temperature from these rows.
        log_likelihood: [n] log probability of each row's own label.
        brier: [n] Brier score of each row.
        wrong: [n] 1 where the most probable class is not the row's own, else 0.
    """

    rows: Ints
    means: Floats
    beta: float
    log_likelihood: Floats
    brier: Floats
    wrong: Floats


def judge(
    means: Floats,
    codes: Ints,
    rows: Ints,
    centre: float,
    *,
    spread: float = PRIOR_SPREAD,
    share: float = 1.0,
    weights: Floats | None = None,
) -> LeftOut:
    """Score means that did not see their rows.

    Args:
        means: [n, C].
        codes: [n] true classes.
        rows: [n] positions among the rows of the fit.
        centre: of the prior on log beta.
        spread: of the prior on log beta.
        share: of the most probable beta that is used.
        weights: [n] how much each row counts for beta.
    """
    beta = share * fit_beta(means, codes, centre, spread=spread, weights=weights)
    p = softmax(means, beta)
    p_true = p[np.arange(len(codes)), codes]
    return LeftOut(
        rows,
        means,
        beta,
        log_likelihood=np.log(np.maximum(p_true, 1e-12)),
        brier=(p * p).sum(axis=1) - 2.0 * p_true + 1.0,
        wrong=(p.argmax(axis=1) != codes).astype(np.float64),
    )


def judge_table(means: Floats, codes: Ints, rows: Ints, centre: float) -> LeftOut:
    """Scores at a temperature that holds for items outside the labels, on a table.

    Left out one by one, a handful of labels look surer than new items are: the columns, the length scale and
    the points were chosen beside them. A label alone in its class is then wrong whatever the model is
    worth: together such labels count as the classes without a label, and one more. What the others would say
    is missing: beta rises with their share.

    Args:
        means: [n, C] that did not see their rows.
        codes: [N] classes of all rows of the fit.
        rows: [n] places of the rows among these.
        centre: of the prior on log beta that holds for pools of one scale.
    """
    n = len(codes)
    labels = np.bincount(codes, minlength=means.shape[1])
    alone = labels == 1
    weight = min(1.0, (1 + (labels == 0).sum()) / max(1, alone.sum()))
    silent = (1.0 - weight) * alone.sum() / n  # share of the labels that does not count
    return judge(
        means,
        codes[rows],
        rows,
        centre + float(np.log(TABLE_CENTRE)),
        spread=float(np.sqrt(n / (n + TABLE_TRUST))),
        share=n / (n + TABLE_LABELS) * (1.0 + TABLE_ALONE * silent),
        weights=np.where(alone[codes[rows]], weight, 1.0),
    )


def clearly_less(a: Floats, b: Floats, errors: float) -> bool:
    """True if the mean of a is below that of b by more than so many standard errors.

    Args:
        a: [n] scores.
        b: [m] scores; of the same rows where n is m, and then compared row by row.
        errors: standard errors of the difference.
    """
    if len(a) == len(b):
        error = float(np.std(a - b)) / np.sqrt(len(a))
    else:
        error = float(np.sqrt(a.var() / len(a) + b.var() / len(b)))
    return float(b.mean() - a.mean()) > errors * error
