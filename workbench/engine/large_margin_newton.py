"""The sweeps where every rival is listed: Newton steps for the means, natural-gradient steps for the rest.

With all pairs (row, class) at hand the objective G of `large_margin` is worked on as dense [N, C]
arrays. A sweep climbs it twice:

- means, the covariances held: the curvature of G in F, tempering included, factored once a sweep as
  H_c = I + e Phi' diag(k_c) Phi with e = C / (C - 1) for what couples the classes, and a few steps
  M + eta H^-1 dG/dM under that one factor;
- covariances, the means held: Lam + rho (I + Phi' diag(W_c) Phi - Lam), a natural-gradient step.

A trial that lowers G is halved, so G never falls. The plain natural-gradient step moves the mean by
Lam^-1 dG/dM, and Lam knows nothing of the tempering, which bends G up to 1 / tau as much: it must be
damped to a quarter, and takes two to four times the work for the same G.
"""

from functools import cache
from typing import Any, NamedTuple

import tensorflow as tf

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
from workbench.engine.large_margin_state import Data, Posterior, compiled, signature
from workbench.engine.whitened import (
    grams,
    half_squares,
    inverse_root,
    kl_of_roots,
    variances,
    variances_at_once,
)

_STEPS = 5  # of the means under one factor
_SHARE = 0.1  # a step that gains less than this share of its sweep's gain is the sweep's last
_HALVINGS = 10
_RATIO = 0.25  # gain of a sweep over that of the one before: no better is believed, a first drop is steep


class NewtonState(NamedTuple):
    """State for the next call.

    Attributes:
        rho: share of the natural-gradient step.
        eta: share of the Newton step.
        gain: of the last sweep; 0 before the first.
    """

    rho: Any
    eta: Any
    gain: Any


class _Rows(NamedTuple):
    """G at some F, row by row: its hinges, their shares [N, C] and the sum of their values."""

    hinge: AugmentedHinge
    share: Any
    value: Any


_plain = tf.autograph.experimental.do_not_convert


@_plain
def _spread(data: Data, one_hot: Any, root: Any, blocked: bool) -> Any:
    """s_nt = V_nt + V_ny + 2 r_n, so that a = d^2 + s."""
    V = variances(data.phi, root, blocked) if blocked else variances_at_once(data.phi, root)
    return V + (tf.reduce_sum(one_hot * V, 1, keepdims=True) + 2.0 * data.residual[:, None])


@_plain
def _rows(F: Any, spread: Any, one_hot: Any, tau: Any) -> _Rows:
    hinge = augmented_hinge(rival_margins(F, tf.reduce_sum(one_hot * F, 1, keepdims=True)), spread, tf)
    share, value = tempered_shares(without_own(hinge.bound, one_hot, tf), tau, tf)
    return _Rows(hinge, share, tf.reduce_sum(value))


@_plain
def _gradient(data: Data, M: Any, at: _Rows, one_hot: Any) -> Any:
    """dG/dM."""
    pull = rival_pull(at.hinge, at.share)
    u = one_hot * tf.reduce_sum(pull, 1, keepdims=True) - pull
    return tf.matmul(data.phi, u, transpose_a=True) - M


@_plain
def _precisions(phi: Any, weights: Any, blocked: bool) -> Any:
    """I + Phi' diag(w_c) Phi for every class."""
    return grams(phi, weights, blocked) + tf.eye(tf.shape(phi)[1], dtype=phi.dtype)


@_plain
def _curvature_factor(data: Data, at: _Rows, one_hot: Any, tau: Any, blocked: bool) -> Any:
    """Chol H_c, H_c = I + e Phi' diag(k_c) Phi."""
    C = tf.cast(tf.shape(one_hot)[1], one_hot.dtype)
    k = rival_curvature(at.hinge, at.share, tau) + one_hot * own_curvature(at.hinge, at.share, tau, tf)
    k = tf.maximum(k, tf.zeros([], k.dtype))  # the own class's may cancel to less
    return tf.linalg.cholesky(_precisions(data.phi, C / (C - 1.0) * k, blocked))


@_plain
def _direction(phi: Any, factor: Any, gradient: Any) -> tuple[Any, Any]:
    """H^-1 dG/dM, centred, and what it does to F."""
    step = tf.linalg.cholesky_solve(factor, tf.transpose(gradient)[:, :, None])[:, :, 0]
    step = tf.transpose(step - tf.reduce_mean(step, 0, keepdims=True))
    return step, phi @ step


@_plain
def _target(data: Data, at: _Rows, one_hot: Any, blocked: bool) -> Any:
    """The precisions that a full natural-gradient step lands on."""
    W = rival_weight(at.hinge, at.share)
    return _precisions(data.phi, W + one_hot * tf.reduce_sum(W, 1, keepdims=True), blocked)


@cache
def solver(dtype_name: str, blocked: bool) -> Any:
    """The compiled sweeps: one trace a process in one precision, whatever the number of classes.

    Args:
        dtype_name: "float64" or "float32".
        blocked: whether products with symmetric results are taken in blocks.
    """
    dtype = tf.as_dtype(dtype_name)
    data_spec, posterior_spec, scalar, integer = signature(dtype)
    sizes_spec = NewtonState(scalar, scalar, scalar)

    @compiled(data_spec, posterior_spec, sizes_spec, scalar, scalar, integer)
    def solve(data, q, sizes, tau, tolerance, sweeps):  # type: ignore[no-untyped-def]
        M, Lam, R = q
        rho, eta, last = sizes
        one_hot = tf.one_hot(data.codes, tf.shape(R)[0], dtype=dtype)
        one = tf.cast(1.0, dtype)
        # centring, which only the KL sees; a look alone leaves the start as it is
        M -= tf.cast(sweeps > 0, dtype) * tf.reduce_mean(M, 1, keepdims=True)
        F = data.phi @ M + data.offset
        s, kl = _spread(data, one_hot, R, blocked), kl_of_roots(R)
        at = _rows(F, s, one_hot, tau)
        G = at.value - kl - half_squares(M)
        trace = tf.TensorArray(dtype, sweeps + 1, element_shape=[])
        trace = trace.write(0, G)
        count = 0
        ended: Any = tf.constant(False)
        while count < sweeps and not ended:
            before = G

            factor = _curvature_factor(data, at, one_hot, tau, blocked)
            step, lift = _direction(data.phi, factor, _gradient(data, M, at, one_hot))
            eta = tf.minimum(one, 2.0 * eta)
            steps, tries = 0, 0
            moving: Any = tf.constant(True)
            while moving:
                M2, F2 = M + eta * step, F + eta * lift
                at2 = _rows(F2, s, one_hot, tau)
                G2 = at2.value - kl - half_squares(M2)
                if G2 >= G:
                    steps += 1
                    moving = steps < _STEPS and _SHARE * (G2 - before) < G2 - G
                    M, F, at, G = M2, F2, at2, G2
                    if moving:
                        step, lift = _direction(data.phi, factor, _gradient(data, M, at, one_hot))
                else:
                    eta *= 0.5
                    tries += 1
                    moving = tries <= _HALVINGS

            target = _target(data, at, one_hot, blocked)
            tries, moving = 0, tf.constant(True)
            while moving:
                Lam2 = Lam + rho * (target - Lam)
                R2 = inverse_root(Lam2)
                s2, kl2 = _spread(data, one_hot, R2, blocked), kl_of_roots(R2)
                at2 = _rows(F, s2, one_hot, tau)
                G2 = at2.value - kl2 - half_squares(M)
                if G2 >= G:
                    moving = tf.constant(False)
                    rho = tf.where(tries == 0, tf.minimum(one, 1.5 * rho), rho)
                    Lam, R, s, kl, at, G = Lam2, R2, s2, kl2, at2, G2
                else:
                    rho *= 0.5
                    tries += 1
                    moving = tries <= _HALVINGS

            count += 1
            trace = trace.write(count, G)
            # gains shrink in a steady ratio: what is left is the rest of the geometric series
            gain = G - before
            ratio = tf.maximum(tf.where(last > 0.0, gain / last, tf.zeros_like(gain)), tf.cast(_RATIO, dtype))
            ended = gain <= 0.0 or (ratio < 1.0 and gain * ratio < tolerance * tf.abs(G) * (1.0 - ratio))
            last = gain
        values = trace.stack()[: count + 1]
        return (
            Posterior(M, Lam, R),
            NewtonState(rho, eta, last),
            ended,
            values,
            at.hinge.margin,
            at.hinge.root**2,
        )

    return solve
