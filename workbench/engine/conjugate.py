"""Sparse GPs whose local step is closed form: one loop for the Bayesian SVM and logistic-softmax.

A likelihood with auxiliary variables, or any differentiable bound, turns the moments of f_c(x_n)
into a slope g and a curvature theta per item and class. Everything after that is the same: the
target of q(v_c) in natural parameters is

    precision_c = I + s Phi' diag(theta_c) Phi,    linear_c = s Phi' (g_c + theta_c F_c - theta_c m0_c)

with F = Phi M + m0 (prior mean m0, a point estimate). For conjugate models a full step is
coordinate ascent; s = N/|S| and rho < 1 make it stochastic variational inference. Learning m0
maximises over (q(v_c), m0_c) together, with m0_c ~ N(m, s0^2).

The loops are module-level `tf.function`s with open shapes: one trace per likelihood and dtype in
a process, whatever the number of items, inducing points or classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from workbench.arrays import Floats, Ints
from workbench.engine.kernels import Kernel
from workbench.engine.projection import Basis, project

Local = Callable[[Any, Any, Any, Any], tuple[Any, Any, Any]]
Callback = Callable[[float, float], bool | None]


class Posterior(NamedTuple):
    """q(v_c) = N(mean_c, precision_c^-1) with its statistics; P inducing points, C functions.

    Attributes:
        mean: [P, C].
        root: [C, P, P] inverse Cholesky factor of the precision: covariance_c = root_c' root_c.
        prior_mean: [C] m0.
        precision: [C, P, P].
        linear: [C, P] precision_c mean_c + cross_c m0_c.
        cross: [C, P] s Phi' theta_c: how m0 and v_c interact.
        totals: [2, C] sums over items of (g + theta F) and of theta.
    """

    mean: Any
    root: Any
    prior_mean: Any
    precision: Any
    linear: Any
    cross: Any
    totals: Any


class Block(NamedTuple):
    """Some rows of the data, projected.

    Attributes:
        phi: [n, P] whitened features.
        rest: [n] prior variance the inducing points do not explain.
        targets: [n, C] what the likelihood wants: one-hot, or signs -1 and +1.
    """

    phi: Any
    rest: Any
    targets: Any


class Fit(NamedTuple):
    """What a fit ends with.

    Attributes:
        posterior: the best state met.
        objective: its objective.
        trace: [T] objectives along the way, the start included.
        steps: sweeps or epochs done.
        stopped: a callback asked to stop.
    """

    posterior: Posterior
    objective: float
    trace: Floats
    steps: int
    stopped: bool


class Prior(NamedTuple):
    """The prior of the prior mean.

    Attributes:
        mean: m0's centre, or its fixed value.
        variance: of m0 around it; None keeps m0 fixed.
    """

    mean: float = 0.0
    variance: float | None = None


def start(n_inducing: int, n_functions: int, prior: Prior, dtype: Any) -> Posterior:
    """Q = the prior.

    Args:
        n_inducing: P.
        n_functions: C.
        prior: of the prior mean.
        dtype: float32 or float64.
    """
    P, C = n_inducing, n_functions
    eye = np.broadcast_to(np.eye(P, dtype=dtype), (C, P, P)).copy()
    return Posterior(
        mean=np.zeros((P, C), dtype),
        root=eye,
        prior_mean=np.full(C, prior.mean, dtype),
        precision=eye.copy(),
        linear=np.zeros((C, P), dtype),
        cross=np.zeros((C, P), dtype),
        totals=np.zeros((2, C), dtype),
    )


# ---------------------------------------------------------------------------------- compiled parts


def _variances(phi: Any, root: Any) -> Any:
    """phi_n' S_c phi_n as [n, C], one class at a time: dense [C, n, P] batches are slower."""
    rows = tf.map_fn(
        lambda R: tf.reduce_sum(tf.square(tf.matmul(phi, R, transpose_b=True)), axis=1),
        root,
        parallel_iterations=1,
    )
    return tf.transpose(rows)


def _moments(phi: Any, rest: Any, mean: Any, root: Any, prior_mean: Any) -> tuple[Any, Any]:
    return tf.matmul(phi, mean) + prior_mean, rest[:, None] + _variances(phi, root)


def _sums(phi: Any, f: Any, g: Any, theta: Any) -> tuple[Any, Any, Any, Any]:
    """Phi' diag(theta_c) Phi [C, P, P], Phi'(g + theta F) [C, P], Phi' theta [C, P], totals [2, C]."""
    r = g + theta * f
    gram = tf.map_fn(
        lambda t: tf.matmul(phi, t[:, None] * phi, transpose_a=True),
        tf.transpose(theta),
        parallel_iterations=1,
    )
    linear = tf.matmul(r, phi, transpose_a=True)
    cross = tf.matmul(theta, phi, transpose_a=True)
    return gram, linear, cross, tf.stack([tf.reduce_sum(r, 0), tf.reduce_sum(theta, 0)])


def _solve(
    precision: Any, linear: Any, cross: Any, totals: Any, prior_mean: Any, learn: Any, prior: Any
) -> tuple[Any, Any, Any]:
    """Mean [P, C], root and prior mean of natural parameters; NaN where a precision is not positive."""
    eye = tf.eye(tf.shape(precision)[1], dtype=precision.dtype)
    root = tf.linalg.triangular_solve(
        tf.linalg.cholesky(precision), tf.broadcast_to(eye, tf.shape(precision)), lower=True
    )
    a = tf.linalg.matvec(root, linear)
    b = tf.linalg.matvec(root, cross)
    # the best m0 with v_c maximised out: a Schur complement
    best = (totals[0] - tf.reduce_sum(b * a, 1) + prior[0] * prior[1]) / (
        totals[1] - tf.reduce_sum(b * b, 1) + prior[1]
    )
    m0 = tf.where(learn, best, prior_mean)
    mean = tf.linalg.matvec(root, a - b * m0[:, None], transpose_a=True)
    return tf.transpose(mean), root, m0


def _penalty(mean: Any, root: Any, prior_mean: Any, learn: Any, prior: Any) -> Any:
    """KL(q || p) summed over classes, minus log N(m0) up to its constant where m0 is learned."""
    P = tf.cast(tf.shape(mean)[0] * tf.shape(mean)[1], mean.dtype)
    log_det = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(root)))
    kl = 0.5 * (tf.reduce_sum(tf.square(root)) + tf.reduce_sum(tf.square(mean)) - P - log_det)
    lean = 0.5 * prior[1] * tf.reduce_sum(tf.square(prior_mean - prior[0]))
    return kl + tf.where(learn, lean, tf.zeros_like(lean))


class Compiled(NamedTuple):
    """The compiled functions of one likelihood and dtype.

    Attributes:
        statistics: one pass over a block: gram, linear, cross, totals, value.
        value: the data's part of the objective alone.
        slopes: g [n, C], theta [n, C], value [n] at the given posterior.
        advance: a step of size rho towards sums over all data; also KL of what it gives.
        penalty: KL of a posterior.
        scheduled: minibatch steps with given rates.
        adaptive: minibatch steps with rates that adapt themselves.
    """

    statistics: Any
    value: Any
    slopes: Any
    advance: Any
    penalty: Any
    scheduled: Any
    adaptive: Any


@cache
def compiled(local: Local, dtype_name: str) -> Compiled:
    """Compile the loops for a likelihood; cached, so that a process traces each once.

    Args:
        local: (mean [n, C], variance [n, C], targets [n, C], factor) -> slope dE/dm [n, C],
            curvature theta = -2 dE/dv [n, C], value [n]. `factor` is (classes in all) / (classes
            given): above 1 when classes are subsampled.
        dtype_name: "float64" or "float32".
    """
    dtype = tf.as_dtype(dtype_name)

    def spec(*shape: int | None) -> tf.TensorSpec:
        return tf.TensorSpec(shape, dtype)

    block = [spec(None, None), spec(None), spec(None, None)]  # phi, rest, targets
    moments = [spec(None, None), spec(None, None, None), spec(None)]  # mean, root, prior mean
    natural = [spec(None, None, None), spec(None, None), spec(None, None), spec(2, None)]
    prior_spec = [tf.TensorSpec((), tf.bool), spec(2)]  # learn m0?, its mean and precision
    integers = tf.TensorSpec((None, None), tf.int32)
    one = tf.ones((), dtype)

    @tf.function(input_signature=[*block, *moments])
    def statistics(phi, rest, targets, mean, root, m0):  # type: ignore[no-untyped-def]
        f, v = _moments(phi, rest, mean, root, m0)
        g, theta, value = local(f, v, targets, one)
        return (*_sums(phi, f, g, theta), tf.reduce_sum(value))

    @tf.function(input_signature=[*block, *moments])
    def value(phi, rest, targets, mean, root, m0):  # type: ignore[no-untyped-def]
        f, v = _moments(phi, rest, mean, root, m0)
        return tf.reduce_sum(local(f, v, targets, one)[2])

    @tf.function(input_signature=[*block, *moments])
    def slopes(phi, rest, targets, mean, root, m0):  # type: ignore[no-untyped-def]
        f, v = _moments(phi, rest, mean, root, m0)
        return local(f, v, targets, one)

    @tf.function(input_signature=[*moments, *natural, *natural, spec(), *prior_spec])
    def advance(  # type: ignore[no-untyped-def]
        mean, root, m0, precision, linear, cross, totals, gram, u, b, t, rho, learn, prior
    ):
        precision = precision + rho * (_eye(gram) + gram - precision)
        linear = linear + rho * (u - linear)
        cross = cross + rho * (b - cross)
        totals = totals + rho * (t - totals)
        mean, root, m0 = _solve(precision, linear, cross, totals, m0, learn, prior)
        penalty = _penalty(mean, root, m0, learn, prior)
        return mean, root, m0, precision, linear, cross, totals, penalty

    @tf.function(input_signature=[*moments, *prior_spec])
    def penalty(mean, root, m0, learn, prior):  # type: ignore[no-untyped-def]
        return _penalty(mean, root, m0, learn, prior)

    def minibatch(phi, rest, targets, state, rows, some, scale):  # type: ignore[no-untyped-def]
        """Scaled sums of one minibatch, for the classes in `some`."""
        mean, root, m0 = state[:3]
        p = tf.gather(phi, rows)
        y = tf.gather(tf.gather(targets, rows), some, axis=1)
        C, K = tf.shape(root)[0], tf.shape(some)[0]
        f, v = _moments(
            p,
            tf.gather(rest, rows),
            tf.gather(mean, some, axis=1),
            tf.gather(root, some),
            tf.gather(m0, some),
        )
        g, theta, _ = local(f, v, y, tf.cast(C, dtype) / tf.cast(K, dtype))
        gram, u, b, t = _sums(p, f, g, theta)
        return _eye(gram) + scale * gram, scale * u, scale * b, scale * t

    def put(state, some, natural, learn, prior):  # type: ignore[no-untyped-def]
        """The state with the natural parameters of the classes in `some` replaced."""
        precision, linear, cross, totals = natural
        mean, root, m0 = _solve(precision, linear, cross, totals, tf.gather(state[2], some), learn, prior)
        at = some[:, None]
        return (
            tf.transpose(tf.tensor_scatter_nd_update(tf.transpose(state[0]), at, tf.transpose(mean))),
            tf.tensor_scatter_nd_update(state[1], at, root),
            tf.tensor_scatter_nd_update(state[2], at, m0),
            tf.tensor_scatter_nd_update(state[3], at, precision),
            tf.tensor_scatter_nd_update(state[4], at, linear),
            tf.tensor_scatter_nd_update(state[5], at, cross),
            tf.transpose(tf.tensor_scatter_nd_update(tf.transpose(state[6]), at, tf.transpose(totals))),
        )

    @tf.function(
        input_signature=[*block, *moments, *natural, integers, integers, spec(None), spec(), *prior_spec]
    )
    def scheduled(  # type: ignore[no-untyped-def]
        phi, rest, targets, mean, root, m0, precision, linear, cross, totals,
        rows, classes, rates, scale, learn, prior,
    ):  # fmt: skip
        state = (mean, root, m0, precision, linear, cross, totals)
        for t in tf.range(tf.shape(rows)[0]):  # type: ignore[attr-defined]
            some, rho = classes[t], rates[t]
            target = minibatch(phi, rest, targets, state, rows[t], some, scale)
            old = (*(tf.gather(a, some) for a in state[3:6]), tf.gather(state[6], some, axis=1))
            new = [a + rho * (b - a) for a, b in zip(old, target, strict=True)]
            state = put(state, some, new, learn, prior)
        return state

    @tf.function(
        input_signature=[
            *block,
            *moments,
            *natural,
            integers,
            integers,
            spec(),
            *prior_spec,
            spec(None, None),
            spec(None, None, None),
            spec(3, None),
            spec(),
        ]
    )
    def adaptive(  # type: ignore[no-untyped-def]
        phi, rest, targets, mean, root, m0, precision, linear, cross, totals,
        rows, classes, scale, learn, prior, drift_linear, drift_precision, pace, warm_up,
    ):  # fmt: skip
        state = (mean, root, m0, precision, linear, cross, totals)
        for t in tf.range(tf.shape(rows)[0]):  # type: ignore[attr-defined]
            some = classes[t]
            target = minibatch(phi, rest, targets, state, rows[t], some, scale)
            old = (*(tf.gather(a, some) for a in state[3:6]), tf.gather(state[6], some, axis=1))
            # natural gradient in (linear, -precision / 2), its moving mean and squared length
            slope, bend = target[1] - old[1], -0.5 * (target[0] - old[0])
            seen, power, window = tf.unstack(tf.gather(pace, some, axis=1))
            weight = 1.0 / window
            d1, d2 = tf.gather(drift_linear, some), tf.gather(drift_precision, some)
            d1 += weight[:, None] * (slope - d1)
            d2 += weight[:, None, None] * (bend - d2)
            power += weight * (tf.reduce_sum(slope**2, 1) + tf.reduce_sum(bend**2, [1, 2]) - power)
            rho = (tf.reduce_sum(d1**2, 1) + tf.reduce_sum(d2**2, [1, 2])) / power
            seen += 1.0
            warm = seen > warm_up  # until then the moving means are plain means and nothing moves
            window = tf.where(warm, window * (1.0 - rho) + 1.0, seen + 1.0)
            rho = tf.where(warm, rho, tf.zeros_like(rho))
            at = some[:, None]
            drift_linear = tf.tensor_scatter_nd_update(drift_linear, at, d1)
            drift_precision = tf.tensor_scatter_nd_update(drift_precision, at, d2)
            pace = tf.transpose(
                tf.tensor_scatter_nd_update(tf.transpose(pace), at, tf.stack([seen, power, window], 1))
            )
            new = [
                old[0] + rho[:, None, None] * (target[0] - old[0]),
                old[1] + rho[:, None] * (target[1] - old[1]),
                old[2] + rho[:, None] * (target[2] - old[2]),
                old[3] + rho * (target[3] - old[3]),
            ]
            state = put(state, some, new, learn, prior)
        return (*state, drift_linear, drift_precision, pace)

    return Compiled(statistics, value, slopes, advance, penalty, scheduled, adaptive)


BLOCK_ROWS = 16_384
KEPT_BYTES = 1 << 28
LONGEST_STEP = 8.0
WARM_UP = 10  # minibatches that only measure, before adaptive rates move anything


def _eye(gram: Any) -> Any:
    return tf.eye(tf.shape(gram)[1], dtype=gram.dtype)


# ------------------------------------------------------------------------------------------ drivers


def data_value(local: Local, blocks: Iterable[Block], posterior: Posterior) -> float:
    """The data's part of the objective.

    Args:
        local: the likelihood.
        blocks: the data.
        posterior: q.
    """
    value = compiled(local, _name(posterior)).value
    return float(sum(float(value(*block, *posterior[:3])) for block in blocks))


def objective(local: Local, blocks: Iterable[Block], posterior: Posterior, prior: Prior) -> float:
    """Data part - KL(q || p), plus log N(m0) up to its constant where the prior mean is learned.

    Args:
        local: the likelihood.
        blocks: the data.
        posterior: q.
        prior: of the prior mean.
    """
    penalty = compiled(local, _name(posterior)).penalty
    return data_value(local, blocks, posterior) - float(penalty(*posterior[:3], *_prior(prior, posterior)))


def full_batch(
    local: Local,
    blocks: Iterable[Block],
    posterior: Posterior,
    prior: Prior,
    *,
    sweeps: int,
    tol: float,
    callback: Callback | None = None,
    growth: float = 2.0,
) -> Fit:
    """Over-relaxed coordinate ascent in natural parameters; the objective never falls.

    A sweep is one pass over the data and one solve per class; the pass that judges a step is the
    next sweep's. Steps of size 1 are the papers' updates and cannot lower a conjugate model's
    objective; they converge linearly, so after each success the step is doubled (up to 8), and a
    longer step that lowers the objective is taken again with 1: a third of the passes. Should even
    that fail (a likelihood that is not conjugate, or rounding), it is halved.

    Args:
        local: the likelihood.
        blocks: the data.
        posterior: where to start.
        prior: of the prior mean.
        sweeps: at most this many passes over the data after the first.
        tol: end after two gains in a row below tol x |objective|.
        callback: (fraction, objective) -> True to stop.
        growth: of the step after each success; 1 gives the papers' updates.

    Returns:
        The fit.
    """
    run = compiled(local, _name(posterior))
    flags = _prior(prior, posterior)
    dtype = posterior.mean.dtype

    def judge(state: Posterior, penalty: Any) -> tuple[float, list[Any]]:
        total: list[Any] | None = None
        for block in blocks:
            part = run.statistics(*block, *state[:3])
            total = list(part) if total is None else [a + b for a, b in zip(total, part, strict=True)]
        assert total is not None
        return float(total[4]) - float(penalty), total[:4]

    best, sums = judge(posterior, run.penalty(*posterior[:3], *flags))
    trace = [best]
    rho, small, steps, stopped = 1.0, 0, 0, False
    while steps < sweeps:
        *state, penalty = run.advance(*posterior, *sums, dtype.type(rho), *flags)
        candidate = Posterior(*state)
        value, next_sums = judge(candidate, penalty)
        steps += 1
        if not value >= best:  # lower, or not a number: the step left the positive definite cone
            if rho <= 2.0**-10 or (rho == 1.0 and best - value <= 1e-12 * abs(best)):
                break  # a fixed point, up to rounding
            rho = 1.0 if rho > 1.0 else 0.5 * rho
            continue
        small = small + 1 if value - best < tol * abs(best) else 0
        posterior, best, sums = candidate, value, next_sums
        trace.append(best)
        rho = min(LONGEST_STEP, growth * rho)
        if callback is not None and callback(min(1.0, steps / sweeps), best):
            stopped = True
            break
        if small == 2:
            break
    return Fit(_numpy(posterior), best, np.asarray(trace), steps, stopped)


class Schedule(NamedTuple):
    """How minibatch steps shrink: rho_t = max(floor, rate (1 + delay t)^-decay).

    Attributes:
        rate: the first step.
        delay: how soon it shrinks.
        decay: in (.5, 1] for convergence.
        floor: the smallest step.
    """

    rate: float = 0.3
    delay: float = 0.2
    decay: float = 0.7
    floor: float = 0.02

    def rates(self, first: int, count: int, share: float = 1.0) -> Floats:
        """Step sizes of steps first .. first + count - 1; `share` is how often a class is in one."""
        t = share * np.arange(first, first + count)
        return np.maximum(self.floor, self.rate * (1.0 + self.delay * t) ** -self.decay)


def minibatches(
    n: int, size: int, n_classes: int, class_batch: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """One epoch of rows and classes, in random order.

    Args:
        n: items.
        size: items a step; capped at n.
        n_classes: C.
        class_batch: classes a step; capped at C.
        rng: source of randomness.

    Returns:
        rows [T, S] and classes [T, K], int32; T is such that every item meets every class about
        once. The last step of a pass is filled from its beginning.
    """
    size, some = min(size, n), min(class_batch, n_classes)
    per_pass = -(-n // size)
    passes = -(-n_classes // some)
    if per_pass == 1 and size == n:
        rows = np.tile(np.arange(n), (passes, 1))
    else:
        rows = np.concatenate(
            [np.resize(rng.permutation(n), per_pass * size).reshape(per_pass, size) for _ in range(passes)]
        )
    if some == n_classes:
        classes = np.tile(np.arange(n_classes), (len(rows), 1))
    else:
        classes = np.stack([rng.choice(n_classes, some, replace=False) for _ in rows])
    return rows.astype(np.int32), classes.astype(np.int32)


def stochastic(
    local: Local,
    blocks: Iterable[Block],
    n_items: int,
    posterior: Posterior,
    prior: Prior,
    *,
    epochs: int,
    batch_size: int,
    class_batch: int,
    schedule: Schedule | None,
    rng: np.random.Generator,
    callback: Callback | None = None,
    tol: float = 0.0,
) -> Fit:
    """Stochastic variational inference by natural gradients.

    Each epoch visits every block in minibatches; data sums are scaled by N/|S|, the factor missing
    in paper 001's algorithm 1. After an epoch the objective is taken on all data, and the best
    state so far is what the fit returns.

    Args:
        local: the likelihood.
        blocks: the data, each block a fair sample of the whole.
        n_items: N.
        posterior: where to start.
        prior: of the prior mean.
        epochs: passes over the data.
        batch_size: |S|.
        class_batch: classes updated a step (paper 002, algorithm 2).
        schedule: step sizes, or None for rates that adapt to the noise of the gradient (Ranganath
            et al. 2013, which paper 001 uses), one for each function.
        rng: source of randomness.
        callback: (fraction, objective) -> True to stop; called once an epoch.
        tol: end when ten epochs together gain less than tol x |objective|; 0 runs them all.

    Returns:
        The fit.
    """
    run = compiled(local, _name(posterior))
    flags = _prior(prior, posterior)
    dtype = posterior.mean.dtype
    C, P = posterior.linear.shape
    state: Sequence[Any] = posterior
    drift: Sequence[Any] = ()
    if schedule is None:
        visits = epochs * -(-n_items // min(batch_size, n_items))
        warm_up = dtype.type(max(1, min(WARM_UP, visits // 4)))
        pace = np.stack([np.zeros(C), np.zeros(C), np.ones(C)]).astype(dtype)
        drift = (np.zeros((C, P), dtype), np.zeros((C, P, P), dtype), pace)
    done = steps = 0
    best, best_value = posterior, -np.inf
    trace: list[float] = []
    stopped = False
    for epoch in range(epochs):
        for block in blocks:
            rows, classes = minibatches(int(block.phi.shape[0]), batch_size, C, class_batch, rng)
            scale = dtype.type(n_items / rows.shape[1])
            if schedule is None:
                out = run.adaptive(*block, *state, rows, classes, scale, *flags, *drift, warm_up)
                state, drift = out[:7], out[7:]
            else:
                rates = schedule.rates(done, len(rows), classes.shape[1] / C).astype(dtype)
                state = run.scheduled(*block, *state, rows, classes, rates, scale, *flags)
            done += len(rows)
        steps = epoch + 1
        current = Posterior(*state)
        value = objective(local, blocks, current, prior)
        trace.append(value)
        if value > best_value:
            best, best_value = current, value
        if callback is not None and callback(steps / epochs, value):
            stopped = True
            break
        if tol > 0 and len(trace) > 10 and max(trace[-10:]) - max(trace[:-10]) < tol * abs(best_value):
            break
    return Fit(_numpy(best), float(best_value), np.asarray(trace), steps, stopped)


def _prior(prior: Prior, posterior: Posterior) -> tuple[Any, Any]:
    dtype = posterior.mean.dtype
    precision = 0.0 if prior.variance is None else 1.0 / prior.variance
    return tf.constant(prior.variance is not None), tf.constant([prior.mean, precision], dtype)


def _name(posterior: Posterior) -> str:
    return np.dtype(tf.as_dtype(posterior.mean.dtype).as_numpy_dtype).name


def _numpy(posterior: Posterior) -> Posterior:
    return Posterior(*(np.asarray(a) for a in posterior))


class Rows:
    """The data in projected blocks: kept where they fit, else projected again at every pass.

    Args:
        X: [N, D] scaled features.
        targets: [N, C].
        basis: of the inducing points.
        kernel: covariance function.
        shuffle: a generator that puts the rows in random order, so that a block is a fair sample;
            needed for minibatches when there are several blocks.
    """

    def __init__(
        self,
        X: Floats,
        targets: Floats,
        basis: Basis,
        kernel: Kernel,
        shuffle: np.random.Generator | None = None,
    ) -> None:
        if shuffle is not None and len(X) > BLOCK_ROWS:
            order = shuffle.permutation(len(X))
            X, targets = X[order], targets[order]
        self._X, self._basis, self._kernel = X, basis, kernel
        self._targets = targets.astype(X.dtype, copy=False)
        small = len(X) * len(basis.points) * X.itemsize <= KEPT_BYTES
        self._kept = list(self._project()) if small else None

    def _project(self) -> Iterator[Block]:
        for first in range(0, len(self._X), BLOCK_ROWS):
            part = slice(first, first + BLOCK_ROWS)
            phi, rest = project(self._X[part], self._basis, self._kernel)
            arrays = (phi, rest, self._targets[part])
            tensors = [tf.convert_to_tensor(a) for a in arrays]
            yield Block(*tensors)

    def __iter__(self) -> Iterator[Block]:
        return iter(self._kept) if self._kept is not None else self._project()
