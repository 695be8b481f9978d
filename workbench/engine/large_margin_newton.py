"""The sweeps where every rival is listed: Newton steps for the means, natural-gradient steps for the rest.

With all pairs (row, class) at hand the objective G of `large_margin` is worked on as dense [N, C]
arrays, in NumPy: of a few dozen rows the steps of a graph cost more than their work. A sweep climbs it twice:

- means, the covariances held: the curvature of G in F, tempering included, factored once a sweep as
  H_c = I + e Phi' diag(k_c) Phi with e = C / (C - 1) for what couples the classes, and a few steps
  M + eta H^-1 dG/dM under that one factor;
- covariances, the means held: Lam + rho (I + Phi' diag(W_c) Phi - Lam), a natural-gradient step.

A trial that lowers G is halved, so G never falls. The plain natural-gradient step moves the mean by
Lam^-1 dG/dM, and Lam knows nothing of the tempering, which bends G up to 1 / tau as much: it must be
damped to a quarter, and takes two to four times the work for the same G.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import get_lapack_funcs

from workbench.arrays import Floats
from workbench.engine.augmentation import (
    AugmentedHinge,
    augmented_hinge,
    own_curvature,
    rival_curvature,
    rival_margins,
    rival_pull,
    rival_weight,
    tempered_shares,
    without_own,
)
from workbench.engine.large_margin_state import Data, factors, inverse_roots

_STEPS = 5  # of the means under one factor
_SHARE = 0.1  # a step that gains less than this share of its sweep's gain is the sweep's last
_HALVINGS = 10
_RATIO = 0.25  # gain of a sweep over that of the one before: no better is believed, a first drop is steep


class _Rows(NamedTuple):
    """G at some F, row by row: its hinges, their shares [N, C] and the sum of their values."""

    hinge: AugmentedHinge
    share: Floats
    value: float


def _spread(data: Data, one_hot: Floats, root: Floats) -> Floats:
    """s_nt = V_nt + V_ny + 2 r_n, so that a = d^2 + s."""
    V = np.empty_like(one_hot)
    for c, R in enumerate(root):
        B = data.phi @ R.T
        V[:, c] = np.einsum("np,np->n", B, B)
    return V + ((one_hot * V).sum(axis=1, keepdims=True) + 2.0 * data.residual[:, None])


def _rows(F: Floats, spread: Floats, one_hot: Floats, tau: float) -> _Rows:
    hinge = augmented_hinge(rival_margins(F, (one_hot * F).sum(axis=1, keepdims=True)), spread)
    share, value = tempered_shares(without_own(hinge.bound, one_hot), tau)
    return _Rows(hinge, share, float(value.sum()))


def _gradient(data: Data, M: Floats, at: _Rows, one_hot: Floats) -> Floats:
    """dG/dM."""
    pull = rival_pull(at.hinge, at.share)
    u = one_hot * pull.sum(axis=1, keepdims=True) - pull
    return data.phi.T @ u - M


def _precisions(phi: Floats, weights: Floats) -> Floats:
    """I + Phi' diag(w_c) Phi [C, P, P] for weights [N, C] of at least 0."""
    roots = np.sqrt(weights)
    matrices = np.empty((weights.shape[1], phi.shape[1], phi.shape[1]), phi.dtype)
    for c, H in enumerate(matrices):
        A = roots[:, c, None] * phi
        np.matmul(A.T, A, out=H)
    places = np.arange(phi.shape[1])
    matrices[:, places, places] += 1.0
    return matrices


def _curvature_factor(data: Data, at: _Rows, one_hot: Floats, tau: float) -> list[Floats]:
    """Chol H_c, H_c = I + e Phi' diag(k_c) Phi."""
    C = one_hot.shape[1]
    k = rival_curvature(at.hinge, at.share, tau) + one_hot * own_curvature(at.hinge, at.share, tau)
    k *= C / (C - 1.0)
    return factors(_precisions(data.phi, np.maximum(k, 0.0, out=k)))  # the own class's may cancel to less


def _direction(phi: Floats, factor: list[Floats], gradient: Floats) -> tuple[Floats, Floats]:
    """H^-1 dG/dM, centred, and what it does to F."""
    (potrs,) = get_lapack_funcs(("potrs",), (gradient,))
    step = np.stack([potrs(L, g, lower=1)[0] for L, g in zip(factor, gradient.T, strict=True)], axis=1)
    step -= step.mean(axis=1, keepdims=True)
    return step, phi @ step


def _target(data: Data, at: _Rows, one_hot: Floats) -> Floats:
    """The precisions that a full natural-gradient step lands on."""
    W = rival_weight(at.hinge, at.share)
    return _precisions(data.phi, W + one_hot * W.sum(axis=1, keepdims=True))


def _kl_of_roots(root: Floats) -> float:
    """The covariances' share of KL(q || N(0, I)), summed over the classes."""
    log_det = np.log(np.square(np.diagonal(root, axis1=1, axis2=2))).sum()
    return 0.5 * float(np.vdot(root, root) - root.shape[0] * root.shape[1] - log_det)


def climb(
    data: Data,
    M: Floats,
    Lam: Floats,
    R: Floats,
    rho: float,
    eta: float,
    last: float,
    tau: float,
    tolerance: float,
    sweeps: int,
) -> tuple[Any, ...]:
    """Sweep, at most so many times.

    Args:
        data: labelled rows.
        M, Lam, R: the posterior to start from.
        rho: share of the natural-gradient step.
        eta: share of the Newton step.
        last: gain of the last sweep; 0 before the first.
        tau: temperature over rivals.
        tolerance: the sweeps end when they expect to gain less than this share of |G|.
        sweeps: at most this many; 0 for a look alone.

    Returns:
        The posterior; rho, eta and last for the next call; whether little is left to gain; [sweeps + 1] G;
        d and a [N, C].
    """
    one_hot = np.eye(len(R), dtype=data.phi.dtype)[data.codes]
    if sweeps:  # centring, which only the KL sees; a look alone leaves the start as it is
        M = M - M.mean(axis=1, keepdims=True)
    F = data.phi @ M + data.offset
    s, kl = _spread(data, one_hot, R), _kl_of_roots(R)
    at = _rows(F, s, one_hot, tau)
    G = at.value - kl - 0.5 * float(np.vdot(M, M))
    trace, ended = [G], False
    while len(trace) <= sweeps and not ended:
        before = G
        factor = _curvature_factor(data, at, one_hot, tau)
        step, lift = _direction(data.phi, factor, _gradient(data, M, at, one_hot))
        eta = min(1.0, 2.0 * eta)
        steps = tries = 0
        while steps < _STEPS and tries <= _HALVINGS:
            M2, F2 = M + eta * step, F + eta * lift
            at2 = _rows(F2, s, one_hot, tau)
            G2 = at2.value - kl - 0.5 * float(np.vdot(M2, M2))
            if not G2 >= G:
                eta *= 0.5
                tries += 1
                continue
            steps += 1
            small = _SHARE * (G2 - before) >= G2 - G
            M, F, at, G = M2, F2, at2, G2
            if small:
                break
            if steps < _STEPS:
                step, lift = _direction(data.phi, factor, _gradient(data, M, at, one_hot))

        target = _target(data, at, one_hot)
        for tries in range(_HALVINGS + 1):
            Lam2 = Lam + rho * (target - Lam)
            R2 = inverse_roots(Lam2)
            s2, kl2 = _spread(data, one_hot, R2), _kl_of_roots(R2)
            at2 = _rows(F, s2, one_hot, tau)
            G2 = at2.value - kl2 - 0.5 * float(np.vdot(M, M))
            if G2 >= G:
                rho = rho if tries else min(1.0, 1.5 * rho)
                Lam, R, s, kl, at, G = Lam2, R2, s2, kl2, at2, G2
                break
            rho *= 0.5

        trace.append(G)
        # gains shrink in a steady ratio: what is left is the rest of the geometric series
        gain = G - before
        ratio = max(gain / last if last > 0.0 else 0.0, _RATIO)
        ended = gain <= 0.0 or (ratio < 1.0 and gain * ratio < tolerance * abs(G) * (1.0 - ratio))
        last = gain
    traces = np.asarray(trace, dtype=data.phi.dtype)
    return (M, Lam, R), (rho, eta, last), ended, traces, at.hinge.margin, at.hinge.root**2
