"""Other ways to train the large-margin GP: the papers' Adam, and learning the kernel."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from workbench.arrays import Floats, Ints
from workbench.engine.augmentation import augmented_hinge, rival_margins, tempered_maximum
from workbench.engine.kernels import StationaryKernel
from workbench.engine.large_margin import (
    TAU,
    Callback,
    Fit,
    Posterior,
    closing,
    epochs_of,
    prior,
    rival_count,
)
from workbench.engine.large_margin_parts import specs
from workbench.engine.projection import relative_jitter
from workbench.engine.whitened import project, variances


def fit_adam(
    Phi: Floats,
    kt: Floats,
    codes: Ints,
    n_classes: int,
    *,
    start: Posterior | None = None,
    tau: float = TAU,
    rivals: int = 1,
    learning_rate: float = 5e-4,
    batch_size: int = 256,
    epochs: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> Fit:
    """The papers' own training: Adam on minus the objective over (m, chol S).

    Args:
        Phi, kt, codes, n_classes, start, tau, callback: as in `fit`; the callback comes after
            every epoch.
        rivals: 1 is the papers' objective, the rival being the largest other mean at each step.
        learning_rate: of Adam.
        batch_size: B rows a step.
        epochs: passes over the rows.
        seed: of the batches.

    Returns:
        The fit; its trace holds the mean objective of each epoch.
    """
    dtype = Phi.dtype
    k = np.int32(max(1, min(rivals, n_classes - 1)))
    begin = start or prior(Phi.shape[1], n_classes, dtype)
    scale = np.linalg.cholesky(begin.covariance).astype(dtype)
    zeros = np.zeros_like(begin.mean), np.zeros_like(scale)
    parts = (begin.mean, scale, zeros[0], zeros[0], zeros[1], zeros[1], np.zeros(()))
    state = AdamState(*[tf.convert_to_tensor(np.asarray(part, dtype=dtype)) for part in parts])
    run = _adam(n_classes, dtype.name)
    data = (tf.convert_to_tensor(Phi), tf.convert_to_tensor(kt.astype(dtype, copy=False)),
            tf.convert_to_tensor(codes.astype(np.int32)))  # fmt: skip
    trace: list[float] = []
    stopped = False
    for epoch, batches in epochs_of(len(Phi), batch_size, epochs, seed):
        total, steps = 0.0, 0
        full = [rows for rows in batches if len(rows) == len(batches[0])]
        for block in (full, batches[len(full) :]):
            if block:
                state, G = run(*data, state, np.asarray(block, dtype=np.int32), dtype.type(learning_rate),
                               dtype.type(tau), k)  # fmt: skip
                total += float(G) * len(block)
                steps += len(block)
        trace.append(total / steps)
        if callback is not None and callback((epoch + 1) / epochs, trace[-1]):
            stopped = epoch + 1 < epochs
            break
    scale = state.scale.numpy().astype(np.float64)
    precision = np.linalg.inv(scale @ scale.transpose(0, 2, 1))
    precision = 0.5 * (precision + precision.transpose(0, 2, 1))
    root = np.linalg.inv(np.linalg.cholesky(precision))
    posterior = Posterior(state.mean.numpy(), precision.astype(dtype), np.tril(root).astype(dtype))
    return closing(posterior, trace, Phi, kt, codes, n_classes, tau, rivals, stopped)


def learn_kernel(
    X: Floats,
    Z: Floats,
    codes: Ints,
    posterior: Posterior,
    kernel: StationaryKernel,
    *,
    ard: bool = False,
    prior_spread: float | None = None,
    centre: StationaryKernel | None = None,
    tau: float = TAU,
    rivals: int | None = None,
    iterations: int = 10,
) -> StationaryKernel:
    """Raise G in the kernel's length scale and variance at fixed whitened q.

    Args:
        X: [N, D] scaled features.
        Z: [P, D] inducing points, scaled units.
        codes: [N] true classes.
        posterior: the present q.
        kernel: the present kernel.
        ard: one length scale for each feature.
        prior_spread: standard deviation of normal priors on the logarithms (MAP); None for none.
        centre: where those priors are centred; `kernel` unless given.
        tau, rivals: of the objective.
        iterations: of L-BFGS.

    Returns:
        The kernel with learnt values.
    """
    from scipy.optimize import minimize

    n_classes, dtype = posterior.mean.shape[1], X.dtype
    run = _kernel_gradient(n_classes, dtype.name, kernel.name)
    k = np.int32(rival_count(len(X), n_classes) if rivals is None else max(1, min(rivals, n_classes - 1)))
    fixed = [tf.convert_to_tensor(part) for part in
             (X, Z.astype(dtype), codes.astype(np.int32), posterior.mean, posterior.root)]  # fmt: skip
    size = X.shape[1] if ard else 1

    def logs(which: StationaryKernel) -> Floats:
        lengths = np.log(np.broadcast_to(np.asarray(which.length_scale, dtype=np.float64), (X.shape[1],)))
        return np.append(lengths if ard else lengths.mean(keepdims=True), np.log(which.variance))

    begin, middle = logs(kernel), logs(centre or kernel)
    jitter = dtype.type(relative_jitter(dtype))

    def value(at: Floats) -> tuple[float, Floats]:
        G, by_length, by_variance = run(
            *fixed, at[:size].astype(dtype), dtype.type(at[-1]), jitter, dtype.type(tau), k
        )
        slope = np.append(np.asarray(by_length, dtype=np.float64), float(by_variance))
        loss = -float(G)
        if prior_spread is not None:
            gap = (at - middle) / prior_spread
            loss += 0.5 * float(gap @ gap)
            slope = slope - gap / prior_spread
        return loss, -slope

    bounds = [(log - 4.0, log + 4.0) for log in begin]
    found = minimize(
        value, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations}
    )
    lengths = np.exp(found.x[:size])
    return StationaryKernel(kernel.name, lengths if ard else float(lengths[0]), float(np.exp(found.x[-1])))


# --------------------------------------------------------------------------- compiled


class AdamState(NamedTuple):
    """Parameters of gradient training and Adam's two moments of each.

    Attributes:
        mean: [P, C].
        scale: [C, P, P] lower triangular chol S_c.
        mean_1, mean_2, scale_1, scale_2: first and second moments.
        step: how many steps were taken.
    """

    mean: Any
    scale: Any
    mean_1: Any
    mean_2: Any
    scale_1: Any
    scale_2: Any
    step: Any


@cache
def _adam(C: int, dtype_name: str) -> Any:
    """An epoch of Adam on minus the objective, compiled."""
    dtype = tf.as_dtype(dtype_name)
    data, posterior, scalar, integer = specs(C, dtype)
    floor = 1e-12 if dtype == tf.float64 else 1e-6
    mean_spec, cube = posterior[0], posterior[1]
    state_spec = AdamState(mean_spec, cube, mean_spec, mean_spec, cube, cube, scalar)

    def loss_of(Phi, kt, y, M, L, scale, tau, k):  # type: ignore[no-untyped-def]
        F = Phi @ M
        own = tf.one_hot(y, C, on_value=True, off_value=False)
        # the rivals are fixed while the gradient is taken, as the papers do
        rivals = tf.math.top_k(tf.where(own, tf.cast(-np.inf, dtype), tf.stop_gradient(F)), k).indices
        V = tf.stack([tf.reduce_sum(tf.square(Phi @ L[c]), 1) for c in range(C)], 1)
        d = 1.0 + tf.gather(F, rivals, batch_dims=1) - tf.gather(F, y[:, None], batch_dims=1)
        V = tf.gather(V, rivals, batch_dims=1) + tf.gather(V, y[:, None], batch_dims=1)
        a = tf.maximum(d * d + 2.0 * kt[:, None] + V, tf.cast(floor, dtype))
        fit = tau * tf.reduce_sum(tf.reduce_logsumexp((d + tf.sqrt(a)) / tau, 1))
        log_det = tf.reduce_sum(tf.math.log(tf.square(tf.linalg.diag_part(L))))
        kl = 0.5 * (tf.reduce_sum(L * L) + tf.reduce_sum(M * M) - tf.cast(tf.size(M), dtype) - log_det)
        return scale * fit + kl

    @tf.function(
        input_signature=[*data, state_spec, tf.TensorSpec([None, None], tf.int32), scalar, scalar, integer]
    )
    def epoch(Phi, kt, y, state, batches, rate, tau, k):  # type: ignore[no-untyped-def]
        n = tf.cast(tf.shape(Phi)[0], dtype)
        total = tf.cast(0.0, dtype)
        for i in tf.range(tf.shape(batches)[0]):  # type: ignore[attr-defined]
            rows = batches[i]
            scale = n / tf.cast(tf.size(rows), dtype)
            with tf.GradientTape() as tape:
                tape.watch([state.mean, state.scale])
                loss = loss_of(
                    tf.gather(Phi, rows), tf.gather(kt, rows), tf.gather(y, rows),
                    state.mean, state.scale, scale, tau, k,
                )  # fmt: skip
            g_mean, g_scale = tape.gradient(loss, [state.mean, state.scale])
            g_scale = tf.linalg.band_part(g_scale, -1, 0)
            t = state.step + 1.0
            rate_t = rate * tf.sqrt(1.0 - 0.999**t) / (1.0 - 0.9**t)
            m1 = 0.9 * state.mean_1 + 0.1 * g_mean
            m2 = 0.999 * state.mean_2 + 0.001 * g_mean**2
            s1 = 0.9 * state.scale_1 + 0.1 * g_scale
            s2 = 0.999 * state.scale_2 + 0.001 * g_scale**2
            state = AdamState(
                state.mean - rate_t * m1 / (tf.sqrt(m2) + 1e-7),
                state.scale - rate_t * s1 / (tf.sqrt(s2) + 1e-7),
                m1, m2, s1, s2, t,
            )  # fmt: skip
            total -= loss
        return state, total / tf.cast(tf.shape(batches)[0], dtype)

    return epoch


@cache
def _kernel_gradient(C: int, dtype_name: str, kernel: str) -> Any:
    """G and its gradient in (log length scales, log variance) at fixed whitened q, compiled."""
    dtype = tf.as_dtype(dtype_name)
    data, posterior, scalar, integer = specs(C, dtype)
    matrix, vector = data[0], data[1]

    @tf.function(
        input_signature=[
            matrix,
            matrix,
            data[2],
            posterior[0],
            posterior[1],
            vector,
            scalar,
            scalar,
            scalar,
            integer,
        ]
    )
    def gradient(X, Z, y, M, R, log_length, log_variance, jitter, tau, k):  # type: ignore[no-untyped-def]
        with tf.GradientTape() as tape:
            tape.watch([log_length, log_variance])
            variance = tf.exp(log_variance)
            Phi, kt = project(kernel, X, Z, tf.exp(log_length), variance, jitter)
            F = Phi @ M
            own = tf.one_hot(y, C, on_value=True, off_value=False)
            rivals = tf.math.top_k(tf.where(own, tf.cast(-np.inf, dtype), tf.stop_gradient(F)), k).indices
            V = variances(Phi, R)
            d = rival_margins(tf.gather(F, rivals, batch_dims=1), tf.gather(F, y[:, None], batch_dims=1))
            V = tf.gather(V, rivals, batch_dims=1) + tf.gather(V, y[:, None], batch_dims=1)
            g = augmented_hinge(d, 2.0 * kt[:, None] + V, tf).bound
            data_term = -tf.reduce_sum(tempered_maximum(g, tau))
        slopes = tape.gradient(data_term, [log_length, log_variance])
        return data_term, slopes[0], slopes[1]

    return gradient
