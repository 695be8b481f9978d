"""A larger basis for the mean alone, and the curvature of the objective in F (NumPy).

Covariances, variances and rivals stay with the small basis; the mean gets more centres
(MATH.md section 2; decoupled bases: Cheng & Boots 2017, Salimbeni et al. 2018). With the spread
s_nt = V_nt + V_ny + 2 kt_n held, d = 1 + F_t - F_y and a = d^2 + s, it maximises the concave
-sum_n tau log sum_t exp((d + sqrt a) / tau) - |M|^2 / 2 over M, F = Phi M.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.engine.projection import CHUNK

ITERATIONS = 80
TOLERANCE = 1e-3
_MEMORY = 10
_BLOCK = 16_384
_BENDS = 1e-3  # rows with less curvature are left out of the leverages
_SINGLE_FROM = 128  # wider bases are factored in float32 there


class Bends(NamedTuple):
    """First and second derivatives of the data term in F, entries for (row, listed class).

    Attributes:
        slope: [N, k] u_t = dG/dF_t for the rivals; the true class's is minus their sum.
        curvature: [N, k] -d2G/dF_t2 for the rivals.
        own_curvature: [N] for the true class.
    """

    slope: Floats
    curvature: Floats
    own_curvature: Floats


def bends(margin: Floats, second: Floats, tau: float) -> Bends:
    """Derivatives of the tempered objective (MATH.md section 8).

    Args:
        margin: [N, k] d.
        second: [N, k] a.
        tau: temperature.

    Returns:
        The derivatives.
    """
    root = np.sqrt(second)
    pi = _softmax((margin + root) / tau)
    ratio = margin / root  # w d
    lean = 1.0 + ratio
    straight = pi * (1.0 - ratio * ratio) / root
    weighted = pi * lean
    mean = weighted.sum(axis=1)
    curvature = straight + pi * (1.0 - pi) * lean * lean / tau
    own = straight.sum(axis=1) + ((weighted * lean).sum(axis=1) - mean * mean) / tau
    return Bends(-weighted, curvature, own)


def by_class(values: Floats, own: Floats, rivals: Ints, codes: Ints, n_classes: int) -> Floats:
    """[N, C] with `values` at the rivals, `own` at the true class and zero elsewhere."""
    dense = np.zeros((len(codes), n_classes), dtype=values.dtype)
    np.put_along_axis(dense, rivals, values, axis=1)
    dense[np.arange(len(codes)), codes] = own
    return dense


def others(codes: Ints, n_classes: int) -> Ints:
    """[N, C - 1] every class but the row's own, ascending."""
    steps = np.arange(n_classes - 1)[None, :]
    return steps + (steps >= codes[:, None])


def variances(Phi: Floats, roots: Floats) -> Floats:
    """V_nc = phi_n' S_c phi_n, for rows [N, P] and roots R_c [C, P, P]: [N, C]."""
    C, P = roots.shape[:2]
    stacked = roots.reshape(C * P, P).T.astype(Phi.dtype, copy=False)
    V = np.empty((len(Phi), C), dtype=Phi.dtype)
    for start in range(0, len(Phi), CHUNK):
        half = (Phi[start : start + CHUNK] @ stacked).reshape(-1, C, P)
        V[start : start + CHUNK] = np.einsum("ncp,ncp->nc", half, half)
    return V


def fit_mean(
    Phi: Floats,
    codes: Ints,
    spread: Floats,
    start: Floats,
    roots: Floats,
    curvature: Floats,
    tau: float,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
    report: Callable[[float, float], Any] | None = None,
) -> tuple[Floats, Floats]:
    """Maximise over the mean in the wide basis by preconditioned L-BFGS, against every rival.

    Args:
        Phi: [N, B] whitened features of the wide basis; its first P columns are the small one's.
        codes: [N] true classes.
        spread: [N, C] s; the true class's entries are not used but must be positive.
        start: [B, C].
        roots: [C, P, P] R_c of the small basis: the preconditioner of its P rows.
        curvature: [N, C] -d2G/dF2: scales the other rows.
        tau: temperature.
        iterations: at most this many.
        tolerance: an iteration that gains less than this share of the objective is the last.
        report: called with (fraction, objective) after each iteration; True stops.

    Returns:
        The mean [B, C] and d [N, C] there.
    """
    from scipy.optimize import minimize

    n_classes, small = roots.shape[0], roots.shape[1]
    squares = Phi[:, small:] ** 2
    rest = 1.0 / np.sqrt(1.0 + squares.T @ curvature.astype(Phi.dtype, copy=False))  # [B - P, C]
    rows = np.arange(len(codes))
    shape = start.shape

    def mean_of(A: Floats) -> Floats:
        head = np.einsum("cqp,qc->pc", roots, A[:small])
        return np.concatenate([head, A[small:] * rest])

    def margins(M: Floats) -> Floats:
        d = Phi @ M
        d += 1.0 - d[rows, codes][:, None]
        return d

    def value(flat: Floats) -> tuple[float, Floats]:
        M = mean_of(flat.reshape(shape).astype(Phi.dtype, copy=False))
        d = margins(M)
        root = np.sqrt(d * d + spread)
        pi = (d + root) / tau
        pi[rows, codes] = -np.inf
        top = pi.max(axis=1, keepdims=True)
        pi -= top
        np.exp(pi, out=pi)
        total = pi.sum(axis=1, keepdims=True)
        data = tau * float((np.log(total) + top).sum(dtype=np.float64))
        d /= root
        d += 1.0
        d *= pi
        d /= total  # now pi (1 + w d) = -u, zero at the true class
        d[rows, codes] = -d.sum(axis=1)
        slope = Phi.T @ d + M  # of the loss
        head = np.einsum("cqp,pc->qc", roots, slope[:small])
        loss = data + 0.5 * float((M * M).sum(dtype=np.float64))
        return loss, np.concatenate([head, slope[small:] * rest]).astype(np.float64).ravel()

    # R_c' A_c = M_c  =>  A_c = R_c^-T M_c
    head = np.stack([np.linalg.solve(roots[c].T, start[:small, c]) for c in range(n_classes)], axis=1)
    initial = np.concatenate([head, start[small:] / rest]).astype(np.float64).ravel()
    count = 0

    def after(intermediate_result: Any) -> None:
        nonlocal count
        count += 1
        if report is not None and report(min(count / iterations, 1.0), -float(intermediate_result.fun)):
            raise StopIteration

    found = minimize(
        value, initial, jac=True, method="L-BFGS-B", callback=after,
        options={"maxiter": iterations, "maxcor": _MEMORY, "maxfun": 2 * iterations, "ftol": tolerance},
    )  # fmt: skip
    M = mean_of(found.x.reshape(shape).astype(Phi.dtype, copy=False))
    M -= M.mean(axis=1, keepdims=True)
    return M, margins(M)


def leverages(Phi: Floats, curvature: Floats, sample: Ints, wanted: Array) -> Floats:
    """v_nc = phi_n' H_c^-1 phi_n with H_c = I + e sum_n k_nc phi_n phi_n', e = C / (C - 1).

    Args:
        Phi: [N, B] whitened features; a wide basis is worked on in float32, which is enough for a
            temperature and takes half the time.
        curvature: [N, C] k.
        sample: [n] rows wanted.
        wanted: [n, C] which entries matter; the others are 0.

    Returns:
        [n, C].
    """
    from scipy.linalg import LinAlgError, get_lapack_funcs

    n_classes = curvature.shape[1]
    excess = n_classes / (n_classes - 1.0)
    if Phi.shape[1] > _SINGLE_FROM:
        Phi = Phi.astype(np.float32, copy=False)
    curvature = curvature.astype(Phi.dtype, copy=False)
    result = np.zeros((len(sample), n_classes), dtype=Phi.dtype)
    # LAPACK itself: scipy's checks cost as much as factors of this size
    potrf, trtrs = get_lapack_funcs(("potrf", "trtrs"), (Phi,))

    def whitened(H: Floats, columns: Floats) -> Floats:
        """L^-1 columns with L L' = H; H is written over."""
        factor, info = potrf(H.T, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            raise LinAlgError("the curvature of the objective is not positive")
        solved: Floats = trtrs(factor, columns, lower=1)[0]
        return solved

    for c in range(n_classes):
        asked = np.flatnonzero(wanted[:, c])
        if asked.size == 0:
            continue
        columns = Phi[sample[asked]].T
        # rows far from every margin bend next to nothing
        rows = np.flatnonzero(curvature[:, c] > _BENDS)
        root = np.sqrt(Phi.dtype.type(excess) * curvature[rows, c])[:, None]
        if len(rows) < Phi.shape[1]:
            A = root * Phi[rows]
            # Woodbury: phi'phi - |L^-1 A phi|^2 with L L' = I + A A'
            solved = whitened(np.eye(len(rows), dtype=A.dtype) + A @ A.T, A @ columns)
            left = np.einsum("bn,bn->n", columns, columns) - np.einsum("rn,rn->n", solved, solved)
        else:
            H = np.eye(Phi.shape[1], dtype=Phi.dtype)
            for begin in range(0, len(rows), _BLOCK):
                part = slice(begin, begin + _BLOCK)
                A = root[part] * Phi[rows[part]]
                H += A.T @ A
            solved = whitened(H, columns)
            left = np.einsum("bn,bn->n", solved, solved)
        result[asked, c] = left
    return np.maximum(result, 0.0, out=result)


def _softmax(x: Floats) -> Floats:
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p


def spread_of(margin: Floats, second: Floats) -> Array:
    """[N, k] s = a - d^2, from a fit of the small basis."""
    result: Any = second - margin * margin
    return np.maximum(result, 1e-12, out=result)
