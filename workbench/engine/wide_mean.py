"""A larger basis for the mean alone, and the curvature of the objective in F (NumPy).

Covariances, variances and rivals stay with the small basis; the mean gets more centres
(docs/math.md, 2; decoupled bases: Cheng & Boots 2017, Salimbeni et al. 2018). With the spread
s_nt = V_nt + V_ny + 2 r_n held, d = 1 + F_t - F_y and a = d^2 + s, it maximises the concave
-sum_n tau log sum_t exp((d + sqrt a) / tau) - |M|^2 / 2 over M, F = Phi M.
"""

from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Array, Floats, Ints, slices
from workbench.engine.augmentation import (
    AugmentedHinge,
    augmented_hinge,
    own_curvature,
    rival_curvature,
    rival_pull,
    tempered_shares,
)
from workbench.engine.projection import CHUNK
from workbench.progress import FitCallback

ITERATIONS = 80
TOLERANCE = 1e-4  # at 1e-3 warm and cold fits of 400 digits differ by 0.12 in a probability
LABELS = 200  # from here on the mean gets its wide basis
LABELS_A_CLASS = 20
LABELS_OF_UNITS = 100  # the same for features of unit length
LABELS_A_CLASS_OF_UNITS = 2
_MEMORY = 10
_BLOCK = 16_384
_LEAST_CURVATURE = 1e-3  # rows with less are left out of the leverages
_SINGLE_FROM = 128  # wider bases are factored in float32 there


def enough_labels(n: int, n_classes: int, unit_length: bool = False) -> bool:
    """True if n labels carry a wide mean, and a choice of the kernel.

    Args:
        n: labels.
        n_classes: C.
        unit_length: whether the features are learnt ones of one scale and length 1, in which classes
            overlap less: there 100 labels and 2 a class were enough on photos and on 77 classes of texts.
    """
    least, a_class = (LABELS_OF_UNITS, LABELS_A_CLASS_OF_UNITS) if unit_length else (LABELS, LABELS_A_CLASS)
    return n >= max(least, a_class * n_classes)


class Derivatives(NamedTuple):
    """First and second derivatives of the data term in F, entries for (row, listed class).

    Attributes:
        slope: [N, k] u_t = dG/dF_t for the rivals; the true class's is minus their sum.
        curvature: [N, k] -d2G/dF_t2 for the rivals.
        own_curvature: [N] for the true class.
    """

    slope: Floats
    curvature: Floats
    own_curvature: Floats


def derivatives(margin: Floats, second: Floats, tau: float) -> Derivatives:
    """Derivatives of the tempered objective (docs/math.md, 8).

    Args:
        margin: [N, k] d.
        second: [N, k] a.
        tau: temperature.
    """
    hinge = AugmentedHinge(margin, np.sqrt(second))
    share = tempered_shares(hinge.bound, tau).share
    return Derivatives(
        -rival_pull(hinge, share), rival_curvature(hinge, share, tau), own_curvature(hinge, share, tau)[:, 0]
    )


def by_class(values: Floats, own: Floats | float, rivals: Ints, codes: Ints, n_classes: int) -> Floats:
    """[N, C] with `values` at the rivals, `own` at the true class and zero elsewhere."""
    dense = np.zeros((len(codes), n_classes), dtype=values.dtype)
    np.put_along_axis(dense, rivals, values, axis=1)
    dense[np.arange(len(codes)), codes] = own
    return dense


def others(codes: Ints, n_classes: int) -> Ints:
    """[N, C - 1] every class but the row's own, ascending."""
    steps = np.arange(n_classes - 1)[None, :]
    return steps + (steps >= codes[:, None])


def variances(phi: Floats, roots: Floats) -> Floats:
    """V_nc = phi_n' S_c phi_n, for rows [N, P] and roots R_c [C, P, P]: [N, C]."""
    C, P = roots.shape[:2]
    stacked = roots.reshape(C * P, P).T.astype(phi.dtype, copy=False)
    V = np.empty((len(phi), C), dtype=phi.dtype)
    for rows in slices(len(phi), CHUNK):
        half = (phi[rows] @ stacked).reshape(-1, C, P)
        V[rows] = np.einsum("ncp,ncp->nc", half, half)
    return V


class WideFit(NamedTuple):
    """A mean in its wide basis.

    Attributes:
        mean: [B, C].
        rivals: [N, C - 1] every other class.
        margin: [N, C - 1] d.
        second: [N, C - 1] a.
    """

    mean: Floats
    rivals: Ints
    margin: Floats
    second: Floats


def widen(
    phi: Floats,
    residual: Floats,
    codes: Ints,
    small: Any,
    tau: float,
    share: float,
    callback: FitCallback | None = None,
    offset: Floats | None = None,
) -> WideFit:
    """The mean in a wide basis, from the small one's, against every rival.

    Args:
        phi: [N, B] whitened features of the wide basis; its first P columns are the small one's.
        residual: [N] of the small basis.
        codes: [N] true classes.
        small: `workbench.engine.large_margin.LargeMarginFit` of the small basis on these rows.
        tau: temperature.
        share: of the small basis's spread that the mean is fitted with.
        callback: as in `fit_mean`.
        offset: [N, C] mean function at the rows; none unless given.
    """
    C, rows = small.posterior.mean.shape[1], np.arange(len(codes))
    # float32 is enough for steps that stop at a ten-thousandth, and takes half the time
    phi, residual, mean, roots, margin, second = (
        part.astype(np.float32, copy=False)
        for part in (phi, residual, small.posterior.mean, small.posterior.root, small.margin, small.second)
    )
    P = len(mean)
    if small.rivals.shape[1] == C - 1:  # the small fit has the spread of every rival
        spread = by_class(np.maximum(second - margin * margin, 1e-12), 1.0, small.rivals, codes, C)
    else:
        V = variances(phi[:, :P], roots)
        spread = V + V[rows, codes][:, None] + 2.0 * residual[:, None]
    spread = np.maximum(spread * np.float32(share), 1e-6).astype(np.float32)
    rivals = others(codes, C)
    F = phi[:, :P] @ mean
    if offset is not None:
        offset = offset.astype(np.float32, copy=False)
        F += offset
    d, s = (np.take_along_axis(part, rivals, axis=1) for part in (1.0 + F - F[rows, codes][:, None], spread))
    at = derivatives(d, d * d + s, tau)
    curvature = by_class(at.curvature, at.own_curvature, rivals, codes, C)
    start = np.zeros((phi.shape[1], C), dtype=phi.dtype)
    start[:P] = mean
    new_mean, d = fit_mean(phi, codes, spread, start, roots, curvature, tau, callback=callback, offset=offset)
    d = np.take_along_axis(d, rivals, axis=1)
    return WideFit(new_mean, rivals, d, d * d + s)


def fit_mean(
    phi: Floats,
    codes: Ints,
    spread: Floats,
    start: Floats,
    roots: Floats,
    curvature: Floats,
    tau: float,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
    callback: FitCallback | None = None,
    offset: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Maximise over the mean in the wide basis by preconditioned L-BFGS, against every rival.

    Args:
        phi: [N, B] whitened features of the wide basis; its first P columns are the small one's.
        codes: [N] true classes.
        spread: [N, C] s; the true class's entries are not used but must be positive.
        start: [B, C].
        roots: [C, P, P] R_c of the small basis: the preconditioner of its P rows.
        curvature: [N, C] -d2G/dF2: scales the other rows.
        tau: temperature.
        iterations: at most this many.
        tolerance: an iteration that gains less than this share of the objective is the last.
        callback: called with (fraction, objective) after each iteration; True stops.
        offset: [N, C] mean function at the rows, added to F; none unless given.

    Returns:
        The mean [B, C] and d [N, C] there.
    """
    from scipy.optimize import minimize

    n_classes, small = roots.shape[0], roots.shape[1]
    squares = phi[:, small:] ** 2
    scales = 1.0 / np.sqrt(1.0 + squares.T @ curvature.astype(phi.dtype, copy=False))  # [B - P, C]
    rows = np.arange(len(codes))
    shape = start.shape

    def mean_of(A: Floats) -> Floats:
        head = np.einsum("cqp,qc->pc", roots, A[:small])
        return np.concatenate([head, A[small:] * scales])

    def margins(M: Floats) -> Floats:
        d = phi @ M
        if offset is not None:
            d += offset
        d += 1.0 - d[rows, codes][:, None]
        return d

    def loss(flat: Floats) -> tuple[float, Floats]:
        M = mean_of(flat.reshape(shape).astype(phi.dtype, copy=False))
        hinge = augmented_hinge(margins(M), spread)
        bound = hinge.bound
        bound[rows, codes] = -np.inf
        share, value = tempered_shares(bound, tau)
        pull = rival_pull(hinge, share)  # minus the slope in F, 0 at the true class
        pull[rows, codes] = -pull.sum(axis=1)
        slope = phi.T @ pull + M
        head = np.einsum("cqp,pc->qc", roots, slope[:small])
        total = 0.5 * float((M * M).sum(dtype=np.float64)) - float(value.sum(dtype=np.float64))
        return total, np.concatenate([head, slope[small:] * scales]).astype(np.float64).ravel()

    # R_c' A_c = M_c  =>  A_c = R_c^-T M_c
    head = np.stack([np.linalg.solve(roots[c].T, start[:small, c]) for c in range(n_classes)], axis=1)
    initial = np.concatenate([head, start[small:] / scales]).astype(np.float64).ravel()
    count = 0

    def after(intermediate_result: Any) -> None:
        nonlocal count
        count += 1
        if callback is not None and callback(min(count / iterations, 1.0), -float(intermediate_result.fun)):
            raise StopIteration

    optimum = minimize(
        loss,
        initial,
        jac=True,
        method="L-BFGS-B",
        callback=after,
        options={"maxiter": iterations, "maxcor": _MEMORY, "maxfun": 2 * iterations, "ftol": tolerance},
    )
    M = mean_of(optimum.x.reshape(shape).astype(phi.dtype, copy=False))
    M -= M.mean(axis=1, keepdims=True)
    return M, margins(M)


def leverages(
    phi: Floats, curvature: Floats, sample: Ints, wanted: Array, at: Floats | None = None
) -> tuple[Floats, Floats]:
    """v_nc = phi_n' H_c^-1 phi_n with H_c = I + e sum_n k_nc phi_n phi_n', e = C / (C - 1).

    Args:
        phi: [N, B] whitened features; a wide basis is worked on in float32, which is enough for a
            temperature and takes half the time.
        curvature: [N, C] k.
        sample: [n] rows wanted.
        wanted: [n, C] which entries matter; the others are 0.
        at: [n, B] features of the same items seen another way; those of the rows unless given.

    Returns:
        v [n, C], and at_n' H_c^-1 phi_n [n, C].
    """
    from scipy.linalg import LinAlgError, get_lapack_funcs

    n_classes = curvature.shape[1]
    excess = n_classes / (n_classes - 1.0)
    if phi.shape[1] > _SINGLE_FROM:
        phi = phi.astype(np.float32, copy=False)
    curvature = curvature.astype(phi.dtype, copy=False)
    at = None if at is None else at.astype(phi.dtype, copy=False)
    result = np.zeros((len(sample), n_classes), dtype=phi.dtype)
    crossed = result if at is None else np.zeros_like(result)
    # LAPACK itself: scipy's checks cost as much as factors of this size
    potrf, trtrs = get_lapack_funcs(("potrf", "trtrs"), (phi,))

    def whitened(H: Floats, columns: Floats) -> Floats:
        """L^-1 columns with L L' = H; H is written over."""
        factor, info = potrf(H.T, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            raise LinAlgError("the curvature of the objective is not positive")
        return trtrs(factor, columns, lower=1)[0]

    for c in range(n_classes):
        places = np.flatnonzero(wanted[:, c])
        if places.size == 0:
            continue
        columns = phi[sample[places]].T
        if at is not None:
            columns = np.concatenate([columns, at[places].T], axis=1)
        # rows far from every margin bend next to nothing
        rows = np.flatnonzero(curvature[:, c] > _LEAST_CURVATURE)
        root = np.sqrt(phi.dtype.type(excess) * curvature[rows, c])[:, None]
        if not rows.size:  # a class far from every margin; LAPACK complains of empty factors
            products = _products(columns, places.size)
        elif len(rows) < phi.shape[1]:
            A = root * phi[rows]
            # Woodbury: phi'phi - |L^-1 A phi|^2 with L L' = I + A A'
            solved = whitened(np.eye(len(rows), dtype=A.dtype) + A @ A.T, A @ columns)
            products = _products(columns, places.size) - _products(solved, places.size)
        else:
            H = np.eye(phi.shape[1], dtype=phi.dtype)
            for part in slices(len(rows), _BLOCK):
                A = root[part] * phi[rows[part]]
                H += A.T @ A
            products = _products(whitened(H, columns), places.size)
        result[places, c] = np.maximum(products[0], 0.0)
        if at is not None:
            crossed[places, c] = products[1]
    return result, crossed


def _products(columns: Floats, n: int) -> Floats:
    """[1 or 2, n] of the first n columns with themselves, and with the n that may follow."""
    blocks = [columns[:, i : i + n] for i in range(0, columns.shape[1], n)]
    return np.stack([np.einsum("bn,bn->n", columns[:, :n], block) for block in blocks])
