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

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf

from workbench.engine.large_margin_parts import gram, half_squares, kl_of, row_squares, specs

_STEPS = 5  # of the means under one factor
_SHARE = 0.1  # a step that gains less than this share of its sweep's gain is the sweep's last
_HALVINGS = 10
_RATIO = 0.25  # gain of a sweep over that of the one before: no better is believed, a first drop is steep


@cache
def solver(C: int, dtype_name: str, blocked: bool) -> Any:
    """The compiled sweeps: one trace a process for C classes in one precision.

    Args:
        C: number of classes.
        dtype_name: "float64" or "float32".
        blocked: whether products with symmetric results are taken in blocks.
    """
    dtype = tf.as_dtype(dtype_name)
    floor = 1e-12 if dtype == tf.float64 else 1e-6
    data, posterior, _, integer = specs(C, dtype)

    @tf.autograph.experimental.do_not_convert
    def spread(Phi, kt2, own, R):  # type: ignore[no-untyped-def]
        """s_nt = V_nt + V_ny + 2 kt_n, so that a = d^2 + s."""
        if blocked:
            V = tf.stack([row_squares(Phi, R[c], blocked) for c in range(C)], 1)
        else:
            P = tf.shape(Phi)[1]
            V = tf.reshape(tf.square(tf.matmul(Phi, tf.reshape(R, [-1, P]), transpose_b=True)), [-1, C, P])
            V = tf.reduce_sum(V, 2)
        return V + (tf.reduce_sum(own * V, 1, keepdims=True) + kt2)

    @tf.autograph.experimental.do_not_convert
    def look(F, s, own, tau):  # type: ignore[no-untyped-def]
        """d, sqrt a, pi, and the data's share of G."""
        d = 1.0 + F - tf.reduce_sum(own * F, 1, keepdims=True)
        root = tf.sqrt(tf.maximum(d * d + s, tf.cast(floor, dtype)))
        g = tf.where(own > 0, tf.cast(-np.inf, dtype), (d + root) / tau)
        top = tf.reduce_max(g, 1, keepdims=True)
        weights = tf.exp(g - top)
        total = tf.reduce_sum(weights, 1, keepdims=True)
        return d, root, weights / total, -tau * tf.reduce_sum(tf.math.log(total) + top)

    @tf.autograph.experimental.do_not_convert
    def slope(Phi, M, d, root, pi, own):  # type: ignore[no-untyped-def]
        """dG/dM."""
        pull = pi * (1.0 + d / root)
        u = own * tf.reduce_sum(pull, 1, keepdims=True) - pull
        return tf.matmul(Phi, u, transpose_a=True) - M

    @tf.autograph.experimental.do_not_convert
    def bends(d, root, pi, own, tau):  # type: ignore[no-untyped-def]
        """-d2G/dF2, as `wide_mean.bends`."""
        ratio = d / root
        lean = 1.0 + ratio
        pull = pi * lean
        straight = pi * (1.0 - ratio * ratio) / root
        mean = tf.reduce_sum(pull, 1, keepdims=True)
        mine = tf.reduce_sum(straight + pull * lean / tau, 1, keepdims=True) - mean * mean / tau
        curvature = straight + pi * (1.0 - pi) * lean * lean / tau + own * mine
        return tf.maximum(curvature, tf.cast(0.0, dtype))  # the own class's may cancel to less

    @tf.autograph.experimental.do_not_convert
    def grams(Phi, weights):  # type: ignore[no-untyped-def]
        """I + Phi' diag(w_c) Phi for every class."""
        parts: list[Any] = []
        for c in range(C):
            with tf.control_dependencies(parts[-1:]):
                if blocked:
                    parts.append(gram(tf.sqrt(weights[:, c, None]) * Phi, blocked))
                else:
                    parts.append(tf.matmul(weights[:, c, None] * Phi, Phi, transpose_a=True))
        return tf.stack(parts) + tf.eye(tf.shape(Phi)[1], dtype=dtype)

    @tf.autograph.experimental.do_not_convert
    def direction(Phi, factor, gradient):  # type: ignore[no-untyped-def]
        """H^-1 dG/dM, centred, and what it does to F."""
        step = tf.linalg.cholesky_solve(factor, tf.transpose(gradient)[:, :, None])[:, :, 0]
        step = tf.transpose(step - tf.reduce_mean(step, 0, keepdims=True))
        return step, Phi @ step

    @tf.autograph.experimental.do_not_convert
    def root_of(Lam):  # type: ignore[no-untyped-def]
        return tf.linalg.triangular_solve(tf.linalg.cholesky(Lam), tf.eye(tf.shape(Lam)[1], dtype=dtype))

    pair, triple = tf.TensorSpec([2], dtype), tf.TensorSpec([3], dtype)

    @tf.function(input_signature=[*data, *posterior, triple, pair, integer])
    def solve(Phi, kt, y, M, Lam, R, pace, options, sweeps):  # type: ignore[no-untyped-def]
        rho, eta, last = tf.unstack(pace)
        tau, tolerance = tf.unstack(options)
        own = tf.one_hot(y, C, dtype=dtype)
        kt2 = 2.0 * kt[:, None]
        excess = tf.cast(C / (C - 1.0), dtype)
        one = tf.cast(1.0, dtype)
        # centring, which only the KL sees; a look alone leaves the start as it is
        M -= tf.cast(sweeps > 0, dtype) * tf.reduce_mean(M, 1, keepdims=True)
        F = Phi @ M
        s, kl = spread(Phi, kt2, own, R), kl_of(R)
        d, root, pi, value = look(F, s, own, tau)
        G = value - kl - half_squares(M)
        trace = tf.TensorArray(dtype, sweeps + 1, element_shape=[])
        trace = trace.write(0, G)
        done = 0
        ended: Any = tf.constant(False)
        while done < sweeps and not ended:
            before = G

            factor = tf.linalg.cholesky(grams(Phi, excess * bends(d, root, pi, own, tau)))
            step, lift = direction(Phi, factor, slope(Phi, M, d, root, pi, own))
            eta = tf.minimum(one, 2.0 * eta)
            steps, tries = 0, 0
            moving: Any = tf.constant(True)
            while moving:
                M2, F2 = M + eta * step, F + eta * lift
                d2, root2, pi2, value = look(F2, s, own, tau)
                G2 = value - kl - half_squares(M2)
                if G2 >= G:
                    steps += 1
                    moving = steps < _STEPS and _SHARE * (G2 - before) < G2 - G
                    M, F, d, root, pi, G = M2, F2, d2, root2, pi2, G2
                    if moving:
                        step, lift = direction(Phi, factor, slope(Phi, M, d, root, pi, own))
                else:
                    eta *= 0.5
                    tries += 1
                    moving = tries <= _HALVINGS

            W = pi / root
            target = grams(Phi, W + own * tf.reduce_sum(W, 1, keepdims=True))
            tries, moving = 0, tf.constant(True)
            while moving:
                Lam2 = Lam + rho * (target - Lam)
                R2 = root_of(Lam2)
                s2, kl2 = spread(Phi, kt2, own, R2), kl_of(R2)
                d2, root2, pi2, value = look(F, s2, own, tau)
                G2 = value - kl2 - half_squares(M)
                if G2 >= G:
                    moving = tf.constant(False)
                    rho = tf.where(tries == 0, tf.minimum(one, 1.5 * rho), rho)
                    Lam, R, s, kl, d, root, pi, G = Lam2, R2, s2, kl2, d2, root2, pi2, G2
                else:
                    rho *= 0.5
                    tries += 1
                    moving = tries <= _HALVINGS

            done += 1
            trace = trace.write(done, G)
            # gains shrink in a steady ratio: what is left is the rest of the geometric series
            gain = G - before
            ratio = tf.maximum(tf.where(last > 0.0, gain / last, tf.zeros_like(gain)), tf.cast(_RATIO, dtype))
            ended = gain <= 0.0 or (ratio < 1.0 and gain * ratio < tolerance * tf.abs(G) * (1.0 - ratio))
            last = gain
        return M, Lam, R, tf.stack([rho, eta, last]), ended, trace.stack()[: done + 1], d, root * root

    return solve
