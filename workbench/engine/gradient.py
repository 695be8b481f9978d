"""Gradients of the whitened sparse bound by automatic differentiation, and Adam on them.

The bound is sum_n E[log p(y_n | f_n)] - KL(q || p) with the expectation of any
`SiteLikelihood` (docs/math.md, 5). `ascend_adam` moves q alone on projected data, `learn` moves q
with a stationary kernel's length scale and variance and the inducing points. `kernel_gradient` is
the gradient in those at fixed whitened q, where the KL does not depend on them: type-II learning
(Wenzel et al. 2017, section 4.3 and appendix A.3, without its algebra).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import tensorflow as _tensorflow

from workbench.arrays import Floats, slices
from workbench.engine.adam import AdamState, adam_step
from workbench.engine.fitting import FitResult, Hyper, minibatches
from workbench.engine.gaussian import State
from workbench.engine.likelihoods import SiteLikelihood
from workbench.engine.natural_steps import KEPT, Block
from workbench.engine.projection import relative_jitter
from workbench.engine.whitened import kl, project, variances
from workbench.progress import FitCallback

tf: Any = _tensorflow

REPORTS = 50  # a fit, at most


class Gaussian(NamedTuple):
    """q(v_c) as GPflow parametrises it.

    Attributes:
        mean: [P, C] q_mu.
        q_sqrt: [C, P, P]; the part above the diagonal is not read.
    """

    mean: Any
    q_sqrt: Any


class Rows(NamedTuple):
    """Data before the projection.

    Attributes:
        X: [N, D] scaled features.
        targets: [N, C].
    """

    X: Any
    targets: Any


def expected(likelihood: SiteLikelihood, block: Block, mean: Any, root: Any, m0: Any = 0.0) -> Any:
    """Sum over rows of E[log p(y | f)] under q; differentiable."""
    f = tf.matmul(block.phi, mean) + m0 + block.offset
    v = block.residual[:, None] + variances(block.phi, root)
    return tf.reduce_sum(likelihood.expectation(f, v, block.targets))


def _upper(q: Gaussian) -> Any:
    """The root of q that is the transpose of its q_sqrt."""
    return tf.linalg.matrix_transpose(tf.linalg.band_part(q.q_sqrt, -1, 0))


def _bound(likelihood: SiteLikelihood, block: Block, q: Gaussian, scale: Any) -> Any:
    upper = _upper(q)
    return scale * expected(likelihood, block, q.mean, upper) - kl(q.mean, upper)


def _projected(kernel: str, rows: Rows, hyper: Hyper) -> Block:
    """The rows under a kernel whose values are given as logarithms."""
    jitter = relative_jitter(rows.X.dtype.as_numpy_dtype)
    length, variance = tf.exp(hyper.length_scale), tf.exp(hyper.variance)
    projected = project(kernel, rows.X, hyper.inducing, length, variance, jitter)
    return Block(*projected, rows.targets, tf.zeros_like(rows.targets))


@lru_cache(maxsize=KEPT)
def _compiled(likelihood: SiteLikelihood, dtype_name: str, kernel: str | None) -> Any:
    """Adam steps: (data, variables, state, rows [T, B], rates, N / B) -> variables, state, last bound.

    Without a kernel the data are a `Block` and the variables a `Gaussian`; with one they are `Rows`
    and (`Gaussian`, `Hyper`).
    """
    dtype = tf.as_dtype(dtype_name)

    def spec(*shape: int | None) -> Any:
        return tf.TensorSpec(shape, dtype)

    matrix = spec(None, None)
    variables_spec: Any = Gaussian(matrix, spec(None, None, None))
    data_spec: Any = Block(matrix, spec(None), matrix, matrix)
    if kernel is not None:
        variables_spec = (*variables_spec, spec(), spec(), matrix)
        data_spec = Rows(matrix, matrix)

    def bound(data: Any, variables: Any, scale: Any) -> Any:
        block = data if kernel is None else _projected(kernel, data, Hyper(*variables[2:]))
        return _bound(likelihood, block, Gaussian(*variables[:2]), scale)

    @tf.function(
        input_signature=[
            data_spec,
            tuple(variables_spec),
            AdamState.spec(variables_spec),
            tf.TensorSpec((None, None), tf.int32),
            tf.TensorSpec((None,), tf.float32),
            spec(),
        ]
    )
    def run(data, variables, state, rows, rates, scale):  # type: ignore[no-untyped-def]
        value = tf.zeros((), dtype)
        for step in tf.range(tf.shape(rows)[0]):
            batch = type(data)(*(tf.gather(part, rows[step]) for part in data))
            with tf.GradientTape() as tape:
                tape.watch(variables)
                value = bound(batch, variables, scale)
            slopes = tape.gradient(value, variables)
            variables, state = adam_step(
                variables, [-g for g in slopes], state, tf.unstack(rates, num=len(slopes))
            )
        return variables, state, value

    return run


@lru_cache(maxsize=KEPT)
def _compiled_bound(likelihood: SiteLikelihood, dtype_name: str) -> tuple[Any, Any]:
    """The expectation of a block under a `Gaussian`, and its KL from the prior."""
    dtype = tf.as_dtype(dtype_name)
    matrix, q_spec = tf.TensorSpec((None, None), dtype), tf.TensorSpec((None, None, None), dtype)
    block_spec, spec = Block(matrix, tf.TensorSpec((None,), dtype), matrix, matrix), Gaussian(matrix, q_spec)

    @tf.function(input_signature=[block_spec, spec])
    def expectation(block, q):  # type: ignore[no-untyped-def]
        return expected(likelihood, block, q.mean, _upper(q))

    @tf.function(input_signature=[spec])
    def penalty(q):  # type: ignore[no-untyped-def]
        return kl(q.mean, _upper(q))

    return expectation, penalty


def _tensors(parts: Iterable[Any], dtype: Any) -> tuple[Any, ...]:
    return tuple(tf.convert_to_tensor(np.asarray(part, dtype)) for part in parts)


def _climb(
    run: Any,
    data: Any,
    variables: Any,
    rates: Floats,
    epochs: int,
    batch_size: int | None,
    rng: np.random.Generator,
) -> Iterator[tuple[Any, float, int]]:
    """Variables, the last batch's bound and the epochs done, at each report."""
    dtype, n = data[0].dtype, len(data.targets)
    tensors, state = type(data)(*_tensors(data, dtype)), AdamState.start(variables)
    size = min(batch_size or n, n)
    steps, every, epoch = max(1, n // size), max(1, epochs // REPORTS), 0
    while epoch < epochs:
        count = min(every, epochs - epoch)
        epoch += count
        rows = minibatches(n, size, steps * count, rng)
        variables, state, bound = run(
            tensors, variables, state, rows, np.float32(rates), dtype.type(n / rows.shape[1])
        )
        yield variables, float(bound), epoch


def ascend_adam(
    likelihood: SiteLikelihood,
    data: Block,
    start: Gaussian,
    *,
    rate: float,
    epochs: int,
    batch_size: int | None,
    rng: np.random.Generator,
    callback: FitCallback | None = None,
) -> FitResult:
    """Adam on q over projected data, keeping the best state met.

    Args:
        likelihood: of the data.
        data: N rows.
        start: where to start.
        rate: learning rate.
        epochs: passes over the data.
        batch_size: rows a step; None for all.
        rng: shuffles the rows.
        callback: reported to about fifty times a fit.

    Returns:
        The fit; its posterior is a `Gaussian`, its trace the bound on all data at each report.
    """
    dtype, n = data.phi.dtype, len(data.targets)
    run = _compiled(likelihood.for_any_classes(), dtype.name, None)
    expectation, penalty = _compiled_bound(likelihood.for_any_classes(), dtype.name)
    size = int(likelihood.chunk_rows(data.targets.shape[1]) or n)
    tensors = _tensors(data, dtype)
    parts = [Block(*(part[rows] for part in tensors)) for rows in slices(n, size)]

    def whole(q: Any) -> float:
        return sum(float(expectation(part, Gaussian(*q))) for part in parts) - float(penalty(Gaussian(*q)))

    keep: Any = _tensors(start, dtype)
    best = whole(keep)
    trace, epoch, stopped = [best], 0, False
    for variables, _, epoch in _climb(run, data, keep, np.full(2, rate), epochs, batch_size, rng):
        bound = whole(variables)
        trace.append(bound)
        if bound >= best:
            best, keep = bound, variables
        stopped = callback is not None and bool(callback(epoch / epochs, bound))
        if stopped:
            break
    return FitResult(Gaussian(*(v.numpy() for v in keep)), best, np.asarray(trace), epoch, stopped)


def learn(
    likelihood: SiteLikelihood,
    kernel: str,
    data: Rows,
    start: Gaussian,
    hyper: Hyper,
    *,
    rate: float,
    epochs: int,
    batch_size: int | None,
    move_inducing: bool,
    rng: np.random.Generator,
    callback: FitCallback | None = None,
) -> tuple[FitResult, Hyper]:
    """Adam on q together with a kernel's length scale, variance and, if wanted, inducing points.

    Args:
        likelihood: of the data.
        kernel: name of a stationary kernel.
        data: N rows.
        start: q to start from, whitened under `hyper`.
        hyper: where to start.
        rate: learning rate, of logarithms for length scale and variance.
        epochs: passes over the data.
        batch_size: rows a step; None for all.
        move_inducing: move the inducing points, too.
        rng: shuffles the rows.
        callback: reported to about fifty times a fit.

    Returns:
        The fit, whose posterior is a `Gaussian` and whose trace holds bounds estimated from the last
        minibatch at each report, and the hyperparameters. A fit that diverges ends at its last finite
        state.
    """
    dtype = data.X.dtype
    run = _compiled(likelihood.for_any_classes(), dtype.name, kernel)
    logs = np.log(hyper.length_scale), np.log(hyper.variance), hyper.inducing
    keep: Any = _tensors((*start, *logs), dtype)
    rates = np.array([rate] * 4 + [rate * move_inducing])
    trace: list[float] = []
    epoch, stopped = 0, False
    for variables, bound, epoch in _climb(run, data, keep, rates, epochs, batch_size, rng):
        if not all(np.isfinite(v.numpy()).all() for v in variables):
            break
        keep = variables
        trace.append(bound)
        stopped = callback is not None and bool(callback(epoch / epochs, bound))
        if stopped:
            break
    mean, q_sqrt, length, variance, inducing = (v.numpy() for v in keep)
    new_hyper = Hyper(float(np.exp(np.float64(length))), float(np.exp(np.float64(variance))), inducing)
    value = trace[-1] if trace else -np.inf
    return FitResult(Gaussian(mean, q_sqrt), value, np.asarray(trace), epoch, stopped), new_hyper


@lru_cache(maxsize=KEPT)
def _hyper_gradient(likelihood: SiteLikelihood, dtype_name: str, kernel: str) -> Any:
    dtype = tf.as_dtype(dtype_name)

    def spec(*shape: int | None) -> Any:
        return tf.TensorSpec(shape, dtype)

    matrix = spec(None, None)
    hyper_spec = Hyper(spec(None), spec(), matrix)

    @tf.function(
        input_signature=[Rows(matrix, matrix), hyper_spec, matrix, spec(None, None, None), spec(None)]
    )
    def gradient(data, logs, mean, root, m0):  # type: ignore[no-untyped-def]
        with tf.GradientTape() as tape:
            tape.watch(logs)
            value = expected(likelihood, _projected(kernel, data, logs), mean, root, m0)
        return tape.gradient(value, logs)

    return gradient


def kernel_gradient(likelihood: SiteLikelihood, kernel: str, data: Rows, logs: Hyper, state: State) -> Hyper:
    """D objective / d (log length scale, log variance, inducing points) from some rows, at fixed whitened q.

    Args:
        likelihood: of the data.
        kernel: name of a stationary kernel.
        data: n rows.
        logs: the present values: log length scale [1] or [D], log variance, inducing points.
        state: q.

    Returns:
        Gradients of the same shapes, float64; multiply by N/n for rows that stand for N.
    """
    dtype = data.X.dtype
    arrays = [np.asarray(part, dtype) for part in (*data, *logs, *state[:3])]
    run = _hyper_gradient(likelihood.for_any_classes(), np.dtype(dtype).name, kernel)
    gradients: Floats = run(Rows(*arrays[:2]), Hyper(*arrays[2:5]), *arrays[5:])
    return Hyper(*(np.asarray(part, dtype=np.float64) for part in gradients))
