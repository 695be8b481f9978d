"""Other ways to train the large-margin GP: the papers' Adam, and learning the kernel."""

from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf

from workbench.arrays import Floats, Ints
from workbench.engine.adam import AdamState, adam_step
from workbench.engine.augmentation import augmented_hinge, rival_margins, tempered_maximum
from workbench.engine.kernels import StationaryKernel
from workbench.engine.large_margin import TAU, LargeMarginFit, closing, in_epochs, rival_count
from workbench.engine.large_margin_state import Data, Posterior, signature
from workbench.engine.projection import relative_jitter
from workbench.engine.whitened import kl, project, variances_at_once
from workbench.progress import FitCallback


def fit_adam(
    data: Data,
    *,
    start: Posterior | None = None,
    tau: float = TAU,
    rivals: int = 1,
    learning_rate: float = 5e-4,
    batch_size: int = 256,
    epochs: int = 1000,
    seed: int = 0,
    callback: FitCallback | None = None,
) -> LargeMarginFit:
    """The papers' own training: Adam on minus the objective over (m, chol S).

    Args:
        data, start, tau, callback: as in `large_margin.fit`; the callback comes after every epoch.
        rivals: 1 is the papers' objective, the rival being the largest other mean at each step.
        learning_rate: of Adam.
        batch_size: B rows a step.
        epochs: passes over the rows.
        seed: of the batches.

    Returns:
        The fit; its trace holds the mean objective of each epoch.
    """
    (n, P), dtype, n_classes = data.phi.shape, data.phi.dtype, data.offset.shape[1]
    k = np.int32(rival_count(n, n_classes, rivals))
    begin = start or Posterior.prior(P, n_classes, dtype)
    moving: Any = (begin.mean.astype(dtype), np.linalg.cholesky(begin.covariance).astype(dtype))
    state = AdamState.start(moving)
    run = _adam(dtype.name)
    tensors = tf.nest.map_structure(tf.convert_to_tensor, data)

    def epoch(batches: Ints) -> float:
        nonlocal moving, state
        moving, state, G = run(tensors, moving, state, batches, np.float32(learning_rate), dtype.type(tau), k)
        return float(G)

    trace, stopped = in_epochs(epoch, n, batch_size, epochs, seed, callback)
    mean, lower = (part.numpy() if hasattr(part, "numpy") else part for part in moving)
    lower = lower.astype(np.float64)
    posterior = Posterior.of_covariance(mean, lower @ lower.transpose(0, 2, 1))
    return closing(posterior, trace, data, tau, rivals, stopped)


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
    offset: Floats | None = None,
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
        offset: [N, C] mean function at the rows; none unless given.
        iterations: of L-BFGS.

    Returns:
        The kernel with learnt values.
    """
    from scipy.optimize import minimize

    n_classes, dtype = posterior.mean.shape[1], X.dtype
    run = _kernel_gradient(dtype.name, kernel.name)
    k = np.int32(rival_count(len(X), n_classes, rivals))
    offsets = np.zeros((len(X), n_classes), dtype) if offset is None else offset.astype(dtype, copy=False)
    fixed = [
        tf.convert_to_tensor(part)
        for part in (X, Z.astype(dtype), codes.astype(np.int32), offsets, posterior.mean, posterior.root)
    ]
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
    optimum = minimize(
        value, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations}
    )
    lengths = np.exp(optimum.x[:size])
    return StationaryKernel(kernel.name, lengths if ard else float(lengths[0]), float(np.exp(optimum.x[-1])))


# --------------------------------------------------------------------------- compiled


def _objective(data: Data, M: Any, R: Any, tau: Any, k: Any) -> Any:
    """The data term of G against the k largest other means, differentiable in everything but the choice."""
    F, codes = data.phi @ M + data.offset, data.codes[:, None]
    is_own = tf.one_hot(data.codes, tf.shape(R)[0], on_value=True, off_value=False)
    # the rivals are fixed while the gradient is taken, as the papers do
    fixed = tf.where(is_own, tf.cast(-np.inf, F.dtype), tf.stop_gradient(F))
    rivals = tf.math.top_k(fixed, k).indices
    V = variances_at_once(data.phi, R)
    d = rival_margins(tf.gather(F, rivals, batch_dims=1), tf.gather(F, codes, batch_dims=1))
    V = tf.gather(V, rivals, batch_dims=1) + tf.gather(V, codes, batch_dims=1)
    hinge = augmented_hinge(d, 2.0 * data.residual[:, None] + V, tf)
    return -tf.reduce_sum(tempered_maximum(hinge.bound, tau))


@cache
def _adam(dtype_name: str) -> Any:
    """An epoch of Adam on minus the objective, compiled."""
    dtype = tf.as_dtype(dtype_name)
    data_spec, posterior, scalar, integer = signature(dtype)
    moving_spec = (posterior.mean, posterior.root)
    batches_spec, rate_spec = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([], tf.float32)

    @tf.function(
        input_signature=[
            data_spec,
            moving_spec,
            AdamState.spec(moving_spec),
            batches_spec,
            rate_spec,
            scalar,
            integer,
        ]
    )
    def epoch(data, moving, state, batches, rate, tau, k):  # type: ignore[no-untyped-def]
        total = tf.cast(0.0, dtype)
        scale = tf.cast(tf.shape(data.phi)[0], dtype) / tf.cast(tf.shape(batches)[1], dtype)
        for i in tf.range(tf.shape(batches)[0]):  # type: ignore[attr-defined]
            rows = Data(*(tf.gather(part, batches[i]) for part in data))
            with tf.GradientTape() as tape:
                tape.watch(moving)
                roots = tf.linalg.matrix_transpose(moving[1])
                loss = kl(moving[0], roots) - scale * _objective(rows, moving[0], roots, tau, k)
            by_mean, by_lower = tape.gradient(loss, moving)
            gradients = by_mean, tf.linalg.band_part(by_lower, -1, 0)
            moving, state = adam_step(moving, gradients, state, [rate, rate])
            total -= loss
        return moving, state, total / tf.cast(tf.shape(batches)[0], dtype)

    return epoch


@cache
def _kernel_gradient(dtype_name: str, kernel: str) -> Any:
    """G and its gradient in (log length scales, log variance) at fixed whitened q, compiled."""
    dtype = tf.as_dtype(dtype_name)
    data_spec, posterior, scalar, integer = signature(dtype)
    matrix, vector, codes, offsets = data_spec
    numbers = (vector, scalar, scalar, scalar, integer)

    @tf.function(input_signature=[matrix, matrix, codes, offsets, posterior.mean, posterior.root, *numbers])
    def gradient(X, Z, y, m, M, R, log_length, log_variance, jitter, tau, k):  # type: ignore[no-untyped-def]
        with tf.GradientTape() as tape:
            tape.watch([log_length, log_variance])
            phi, residual = project(kernel, X, Z, tf.exp(log_length), tf.exp(log_variance), jitter)
            value = _objective(Data(phi, residual, y, m), M, R, tau, k)
        slopes = tape.gradient(value, [log_length, log_variance])
        return value, slopes[0], slopes[1]

    return gradient
