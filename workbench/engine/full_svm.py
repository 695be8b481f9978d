"""The Bayesian SVM without inducing points, and its competitor ECM; NumPy only (docs/math.md, 3).

Wenzel et al. 2017, section 4.1; Henao et al. 2014 for expectation conditional maximisation, which is the
same sweep with point estimates of f inside the expectations.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from workbench.arrays import Floats
from workbench.engine.augmentation import augmented_hinge
from workbench.engine.fitting import FitResult
from workbench.errors import InputError
from workbench.progress import FitCallback


class FullGP(NamedTuple):
    """q(f) of a Bayesian SVM at the training points, in the form predictions need.

    mean(x) = k(x, X) weights;  variance(x) = k(x, x) - |k(x, X) factor|^2.

    Attributes:
        weights: [N] (K + diag r)^-1 y (1 + r).
        factor: [N, N] transposed inverse Cholesky factor of K + diag r.
        r: [N] 1 / E[1 / lambda]: what a warm start needs.
    """

    weights: Floats
    factor: Floats
    r: Floats


def full_gp(
    K: Floats,
    signs: Floats,
    *,
    point_estimate: bool = False,
    r: Floats | None = None,
    sweeps: int = 200,
    tol: float = 1e-5,
    growth: float = 2.0,
    callback: FitCallback | None = None,
) -> FitResult:
    """Coordinate ascent on the full GP (Wenzel et al. 2017, section 4.1): O(N^3) a sweep.

    With B = K + diag r everything follows from B's Cholesky factor: E f = y (1 + r) - r B^-1 y (1 + r)
    and var f_n = r_n - r_n^2 (B^-1)_nn. Steps are over-relaxed as in `natural_gradient.ascend`, in
    the natural parameter 1 / r.

    Args:
        K: [N, N] kernel matrix, float64.
        signs: [N], -1 or +1.
        point_estimate: forget the variance of f in E[(1 - y f)^2]: the E-step then uses f's current
            mode, which is ECM, and the objective is the SVM's own, its log posterior.
        r: [N] to start from.
        sweeps: at most this many.
        tol: end after two gains in a row below tol x |objective|.
        growth: of the step after each success; 1 gives the published updates.
        callback: (fraction, objective) -> True to stop.

    Returns:
        The fit of the best sweep: its posterior is a `FullGP`, its objective the bound, for ECM the log
        posterior of f.

    Raises:
        InputError: K is not positive semi-definite.
    """
    if r is None:
        r = np.ones(len(K)) if point_estimate else np.sqrt(1.0 + np.diagonal(K))
    best, value, weight = _state(K, signs, 1.0 / r, point_estimate)
    trace = [value]
    rho, small, steps, stopped = 1.0, 0, 1, False
    while steps < sweeps:
        w = 1.0 / best.r
        trial = w + rho * (weight - w)
        steps += 1
        candidate = _state(K, signs, trial, point_estimate) if (trial > 0).all() else None
        if candidate is None or not candidate[1] >= value:
            if rho <= 1.0:
                break  # a fixed point, up to rounding
            rho = 1.0
            continue
        small = small + 1 if candidate[1] - value < tol * abs(value) else 0
        best, value, weight = candidate
        trace.append(value)
        rho = min(8.0, growth * rho)
        if callback is not None and callback(steps / sweeps, value):
            stopped = True
            break
        if small == 2:
            break
    return FitResult(best, value, np.asarray(trace), steps, stopped)


def _state(K: Floats, signs: Floats, w: Floats, point_estimate: bool) -> tuple[FullGP, float, Floats]:
    """q(f) for given E[1 / lambda] = w [N], its objective, and the next w."""
    r = 1.0 / w
    try:
        lower = cholesky(K + np.diag(r), lower=True)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise InputError("The kernel matrix is not positive semi-definite.") from error
    root = solve_triangular(lower, np.eye(len(K)), lower=True)
    weights = cho_solve((lower, True), signs * (1.0 + r))
    mean = signs * (1.0 + r) - r * weights
    inverse = np.einsum("ij,ij->j", root, root)  # diagonal of B^-1
    fit = float(weights @ mean)  # f' K^-1 f
    if point_estimate:
        hinge = augmented_hinge(1.0 - signs * mean, 0.0)
        value = -2.0 * float(np.maximum(hinge.margin, 0.0).sum()) - 0.5 * fit
    else:
        hinge = augmented_hinge(1.0 - signs * mean, np.maximum(r - r * r * inverse, 0.0))
        # tr(K^-1 S) = sum r_n B^-1_nn,  log |K| / |S| = log |B| - sum log r
        log_det = 2.0 * float(np.log(np.diagonal(lower)).sum()) - float(np.log(r).sum())
        value = -float(hinge.bound.sum()) - 0.5 * (float(r @ inverse) + fit - len(K) + log_det)
    return FullGP(weights, root.T, r), value, hinge.weight
