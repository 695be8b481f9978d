"""Natural-gradient ascent for whitened sparse GPs: one solver for every likelihood with sites.

A likelihood turns the moments of f_c(x_n) into a slope g, a curvature theta and a value per item
and class (`workbench.engine.likelihoods`). Everything after that is the same: the target of q(v_c)
in natural parameters is (docs/math.md, 1 to 5)

    precision_c = I + s Phi' diag(theta_c) Phi,    linear_c = s Phi' (g_c + theta_c F_c - theta_c m0_c)

with F = Phi M + m0 (prior mean m0, a point estimate). For conjugate models a full step is
coordinate ascent; for the others it is a natural-gradient step, judged by the objective; s = N/|S|
and rho < 1 make it stochastic variational inference. Learning m0 maximises over (q(v_c), m0_c)
together, with m0_c ~ N(m, s0^2). Where the likelihood does not feel a shift common to all classes,
means are centred over classes after each step, which never lowers the objective and removes its one
slow direction.

`NaturalGradientAscent` is the solver for anybody's `gpflow.models.SVGP`. The compiled functions have
open shapes: one trace per likelihood object and dtype, whatever the number of items or inducing points.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import tensorflow as _tensorflow

from workbench.arrays import Floats, Ints
from workbench.engine.fitting import FitResult, minibatches
from workbench.engine.gaussian import State, q_sqrt_of, root_of
from workbench.engine.kernels import Kernel
from workbench.engine.likelihoods import SiteLikelihood
from workbench.engine.projection import Basis, project
from workbench.engine.whitened import grams, inverse_root, kl, variances
from workbench.progress import FitCallback

# its type stubs know neither AutoGraph's loops nor NumPy arrays as arguments
tf: Any = _tensorflow

BLOCK_ROWS = 16_384
HELD_BYTES = 1 << 28
LONGEST_STEP = 8.0
WARM_UP = 10  # minibatches that only measure, before adaptive rates move anything
_SLACK = {"float64": 1e-10, "float32": 1e-6}  # a fall below this share of the objective is rounding


class Block(NamedTuple):
    """Some rows of the data, projected.

    Attributes:
        phi: [n, P] whitened features.
        residual: [n] prior variance the inducing points do not explain.
        targets: [n, C] what the likelihood wants: one-hot, or signs -1 and +1.
    """

    phi: Any
    residual: Any
    targets: Any


class MeanPrior(NamedTuple):
    """The prior of the prior mean m0.

    Attributes:
        mean: m0's centre, or its fixed value.
        variance: of m0 around it; None keeps m0 fixed.
    """

    mean: float = 0.0
    variance: float | None = None

    def tensors(self, dtype: Any) -> tuple[Any, Any]:
        """Whether m0 is learned, and its centre and precision [2]."""
        precision = 0.0 if self.variance is None else 1.0 / self.variance
        return tf.constant(self.variance is not None), tf.constant([self.mean, precision], dtype)


ZERO_MEAN = MeanPrior()


class Sums(NamedTuple):
    """Sums over items that a step needs.

    Attributes:
        gram: [C, P, P] Phi' diag(theta_c) Phi.
        linear: [C, P] Phi' (g + theta F).
        cross: [C, P] Phi' theta.
        totals: [2, C] sums of g + theta F and of theta.
        value: the data's part of the objective.
    """

    gram: Any
    linear: Any
    cross: Any
    totals: Any
    value: Any


class Plan(NamedTuple):
    """Minibatch steps.

    Attributes:
        rows: [T, S] rows of each step.
        classes: [T, K] classes it updates.
        scale: N / S.
    """

    rows: Any
    classes: Any
    scale: Any


class Drift(NamedTuple):
    """Moving moments of the natural gradient, for rates that adapt themselves (Ranganath et al. 2013).

    Attributes:
        linear: [C, P] moving means.
        precision: [C, P, P] moving means.
        averaging: [3, C] steps taken, moving squared length, window.
    """

    linear: Any
    precision: Any
    averaging: Any


# ---------------------------------------------------------------------------------- compiled parts


def moments(block: Block, state: State) -> tuple[Any, Any]:
    """Mean and variance [n, C] of the latents of a block."""
    mean = tf.matmul(block.phi, state.mean) + state.prior_mean
    return mean, block.residual[:, None] + variances(block.phi, state.root)


def _sums(likelihood: SiteLikelihood, block: Block, state: State, first: Any, share: Any = 1.0) -> Sums:
    f, v = moments(block, state)
    g, theta, value = likelihood.sites(f, v, block.targets, first, share)
    r = g + theta * f
    return Sums(
        grams(block.phi, theta),
        tf.matmul(r, block.phi, transpose_a=True),
        tf.matmul(theta, block.phi, transpose_a=True),
        tf.stack([tf.reduce_sum(r, 0), tf.reduce_sum(theta, 0)]),
        tf.reduce_sum(value),
    )


def _solve(precision: Any, linear: Any, cross: Any, totals: Any, m0: Any, prior: Any) -> tuple[Any, Any, Any]:
    """Mean [P, C], root and m0 of natural parameters; NaN where a precision is not positive."""
    learn, (centre, tightness) = prior[0], tf.unstack(prior[1])
    root = inverse_root(precision)
    a = tf.linalg.matvec(root, linear)
    b = tf.linalg.matvec(root, cross)
    # the best m0 with v_c maximised out: a Schur complement
    best = (totals[0] - tf.reduce_sum(b * a, 1) + centre * tightness) / (
        totals[1] - tf.reduce_sum(b * b, 1) + tightness
    )
    m0 = tf.where(learn, best, m0)
    return tf.transpose(tf.linalg.matvec(root, a - b * m0[:, None], transpose_a=True)), root, m0


def _penalty(state: State, prior: Any) -> Any:
    """KL(q || p) summed over classes, minus log N(m0) up to its constant where m0 is learned."""
    pull = 0.5 * prior[1][1] * tf.reduce_sum(tf.square(state.prior_mean - prior[1][0]))
    return kl(state.mean, state.root) + tf.where(prior[0], pull, tf.zeros_like(pull))


def _identity(gram: Any) -> Any:
    return tf.eye(tf.shape(gram)[1], dtype=gram.dtype)


class Compiled(NamedTuple):
    """The compiled functions of one likelihood and dtype; each takes and gives the tuples above.

    Attributes:
        sums: (block, state) -> Sums.
        sites: (block, state) -> Sites.
        advance: (state, sums, rho, prior) -> state and penalty: a step towards sums over all data.
        penalty: (state, prior) -> KL of a state.
        scheduled: (block, state, plan, rates, prior) -> state after minibatch steps of these rates.
        adaptive: (block, state, plan, drift, warm_up, prior) -> state and drift.
    """

    sums: Any
    sites: Any
    advance: Any
    penalty: Any
    scheduled: Any
    adaptive: Any


@lru_cache(maxsize=64)
def compiled(likelihood: SiteLikelihood, dtype_name: str) -> Compiled:
    """Compile the loops for a likelihood object; cached, so that each is traced once.

    Args:
        likelihood: gives the sites.
        dtype_name: "float64" or "float32".
    """
    dtype = tf.as_dtype(dtype_name)

    def spec(*shape: int | None) -> Any:
        return tf.TensorSpec(shape, dtype)

    matrix, cube, number = spec(None, None), spec(None, None, None), spec()
    block_spec = Block(matrix, spec(None), matrix)
    state_spec = State(matrix, cube, spec(None), cube, matrix, matrix, spec(2, None))
    sums_spec = Sums(cube, matrix, matrix, spec(2, None), number)
    integers = tf.TensorSpec((None, None), tf.int32)
    plan_spec = Plan(integers, integers, number)
    prior_spec = (tf.TensorSpec((), tf.bool), spec(2))  # learn m0?, its mean and precision

    @tf.function(input_signature=[block_spec, state_spec])
    def sums(block, state):  # type: ignore[no-untyped-def]
        size = likelihood.chunk_rows
        if size is None:
            return _sums(likelihood, block, state, 0)
        n = tf.shape(block.phi)[0]
        total = _sums(likelihood, Block(*(part[:size] for part in block)), state, 0)
        for first in tf.range(size, n, size):
            rows = Block(*(part[first : first + size] for part in block))
            part = _sums(likelihood, rows, state, first)
            total = Sums(*(a + b for a, b in zip(total, part, strict=True)))
        return total

    @tf.function(input_signature=[block_spec, state_spec])
    def sites(block, state):  # type: ignore[no-untyped-def]
        return likelihood.sites(*moments(block, state), block.targets)

    @tf.function(input_signature=[state_spec, sums_spec, number, prior_spec])
    def advance(state, found, rho, prior):  # type: ignore[no-untyped-def]
        precision = state.precision + rho * (_identity(found.gram) + found.gram - state.precision)
        linear = state.linear + rho * (found.linear - state.linear)
        cross = state.cross + rho * (found.cross - state.cross)
        totals = state.totals + rho * (found.totals - state.totals)
        mean, root, m0 = _solve(precision, linear, cross, totals, state.prior_mean, prior)
        if likelihood.shift_invariant:
            mean -= tf.reduce_mean(mean, axis=1, keepdims=True)
            linear = tf.linalg.matvec(precision, tf.transpose(mean)) + cross * m0[:, None]
        moved = State(mean, root, m0, precision, linear, cross, totals)
        return moved, _penalty(moved, prior)

    @tf.function(input_signature=[state_spec, prior_spec])
    def penalty(state, prior):  # type: ignore[no-untyped-def]
        return _penalty(state, prior)

    def naturals(state, some):  # type: ignore[no-untyped-def]
        """Precision, linear, cross and totals of the classes in `some`."""
        return (*(tf.gather(a, some) for a in state[3:6]), tf.gather(state.totals, some, axis=1))

    def targets_of(block, state, rows, some, scale):  # type: ignore[no-untyped-def]
        """What a minibatch says the natural parameters of the classes in `some` should be."""
        few = Block(
            tf.gather(block.phi, rows),
            tf.gather(block.residual, rows),
            tf.gather(tf.gather(block.targets, rows), some, axis=1),
        )
        part = state._replace(
            mean=tf.gather(state.mean, some, axis=1),
            root=tf.gather(state.root, some),
            prior_mean=tf.gather(state.prior_mean, some),
        )
        share = tf.cast(tf.shape(state.root)[0], dtype) / tf.cast(tf.shape(some)[0], dtype)
        found = _sums(likelihood, few, part, 0, share)
        gram = _identity(found.gram) + scale * found.gram
        return gram, scale * found.linear, scale * found.cross, scale * found.totals

    def put(state, some, natural, prior):  # type: ignore[no-untyped-def]
        """The state with the natural parameters of the classes in `some` replaced."""
        precision, linear, cross, totals = natural
        solved = _solve(precision, linear, cross, totals, tf.gather(state.prior_mean, some), prior)
        at = some[:, None]

        def columns(old, new):  # type: ignore[no-untyped-def]
            return tf.transpose(tf.tensor_scatter_nd_update(tf.transpose(old), at, tf.transpose(new)))

        fresh = State(*solved, *natural)
        by_column = {"mean", "totals"}
        parts = {
            name: columns(old, new) if name in by_column else tf.tensor_scatter_nd_update(old, at, new)
            for name, old, new in zip(State._fields, state, fresh, strict=True)
        }
        return State(**parts)

    @tf.function(input_signature=[block_spec, state_spec, plan_spec, spec(None), prior_spec])
    def scheduled(block, state, plan, rates, prior):  # type: ignore[no-untyped-def]
        for t in tf.range(tf.shape(plan.rows)[0]):
            some, rho = plan.classes[t], rates[t]
            target = targets_of(block, state, plan.rows[t], some, plan.scale)
            old = naturals(state, some)
            state = put(state, some, [a + rho * (b - a) for a, b in zip(old, target, strict=True)], prior)
        return state

    drift_spec = Drift(matrix, cube, spec(3, None))

    @tf.function(input_signature=[block_spec, state_spec, plan_spec, drift_spec, number, prior_spec])
    def adaptive(block, state, plan, drift, warm_up, prior):  # type: ignore[no-untyped-def]
        for t in tf.range(tf.shape(plan.rows)[0]):
            some = plan.classes[t]
            target = targets_of(block, state, plan.rows[t], some, plan.scale)
            old = naturals(state, some)
            # natural gradient in (linear, -precision / 2), its moving mean and squared length
            slope, curvature = target[1] - old[1], -0.5 * (target[0] - old[0])
            steps, power, window = tf.unstack(tf.gather(drift.averaging, some, axis=1))
            weight = 1.0 / window
            d1, d2 = tf.gather(drift.linear, some), tf.gather(drift.precision, some)
            d1 += weight[:, None] * (slope - d1)
            d2 += weight[:, None, None] * (curvature - d2)
            power += weight * (tf.reduce_sum(slope**2, 1) + tf.reduce_sum(curvature**2, [1, 2]) - power)
            rho = (tf.reduce_sum(d1**2, 1) + tf.reduce_sum(d2**2, [1, 2])) / power
            steps += 1.0
            warm = steps > warm_up  # until then the moving means are plain means and nothing moves
            window = tf.where(warm, window * (1.0 - rho) + 1.0, steps + 1.0)
            rho = tf.where(warm, rho, tf.zeros_like(rho))
            at = some[:, None]
            averaging = tf.tensor_scatter_nd_update(
                tf.transpose(drift.averaging), at, tf.stack([steps, power, window], 1)
            )
            drift = Drift(
                tf.tensor_scatter_nd_update(drift.linear, at, d1),
                tf.tensor_scatter_nd_update(drift.precision, at, d2),
                tf.transpose(averaging),
            )
            sizes = rho[:, None, None], rho[:, None], rho[:, None], rho
            new = [a + size * (b - a) for size, a, b in zip(sizes, old, target, strict=True)]
            state = put(state, some, new, prior)
        return state, drift

    return Compiled(sums, sites, advance, penalty, scheduled, adaptive)


def trace_count(likelihood: SiteLikelihood, dtype: str = "float64") -> int:
    """How often the step was traced in this process for a likelihood object, for tests and the doctor."""
    run = compiled(likelihood, dtype)
    return max(f.experimental_get_tracing_count() for f in (run.sums, run.advance))


# ------------------------------------------------------------------------------------------ drivers


def objective(likelihood: SiteLikelihood, blocks: Iterable[Block], state: State, prior: MeanPrior) -> float:
    """Data part - KL(q || p), plus log N(m0) up to its constant where the prior mean is learned.

    Args:
        likelihood: of the data.
        blocks: the data.
        state: q.
        prior: of the prior mean.
    """
    run = compiled(likelihood, _dtype(state).name)
    return float(_pass(run.sums, blocks, state).value) - float(
        run.penalty(state, prior.tensors(_dtype(state)))
    )


def ascend(
    likelihood: SiteLikelihood,
    blocks: Iterable[Block],
    state: State,
    prior: MeanPrior = ZERO_MEAN,
    *,
    sweeps: int = 60,
    tol: float = 1e-4,
    rate: float = 1.0,
    growth: float = 2.0,
    longest: float = LONGEST_STEP,
    callback: FitCallback | None = None,
) -> FitResult:
    """Over-relaxed natural-gradient sweeps over all data; the objective never falls.

    A sweep is one pass over the data and one solve per class; the pass that judges a step is the
    next sweep's. Steps of size 1 are the papers' updates and cannot lower a conjugate model's
    objective; they converge linearly, so after each success the step grows, and a longer step that
    lowers the objective is taken again with 1: a third of the passes. Should even that fail (a
    likelihood that is not conjugate, or rounding), it is halved.

    Args:
        likelihood: gives the sites.
        blocks: the data.
        state: where to start.
        prior: of the prior mean.
        sweeps: at most this many passes over the data after the first.
        tol: end after two gains in a row below tol x |objective|.
        rate: the first step.
        growth: of the step after each success; 1 gives the papers' updates.
        longest: step.
        callback: reported to after each success.

    Returns:
        The fit; its posterior is a `State`.
    """
    dtype = _dtype(state)
    run, flags, slack = compiled(likelihood, dtype.name), prior.tensors(dtype), _SLACK[dtype.name]
    # traced functions themselves: calling them skips the matching of signatures, a tenth of a sweep
    sums, advance = run.sums.get_concrete_function(), run.advance.get_concrete_function()
    state = State(*(tf.convert_to_tensor(part) for part in state))
    found = _pass(sums, blocks, state)
    best = float(found.value) - float(run.penalty(state, flags))
    trace = [best]
    rho, small, steps, stopped = float(rate), 0, 0, False
    while steps < sweeps and small < 2:
        candidate, penalty = advance(state, found, tf.constant(rho, dtype), flags)
        found_there = _pass(sums, blocks, candidate)
        value = float(found_there.value) - float(penalty)
        steps += 1
        if not value >= best:  # lower, or not a number: the step left the positive definite cone
            if rho <= 2.0**-10 or (rho == 1.0 and best - value <= slack * abs(best)):
                break  # a fixed point, up to rounding
            rho = 1.0 if rho > 1.0 else 0.5 * rho
            continue
        small = small + 1 if value - best < tol * abs(best) else 0
        state, best, found = candidate, value, found_there
        trace.append(best)
        rho = min(longest, growth * rho)
        if callback is not None and callback(1.0 if small == 2 else min(1.0, steps / sweeps), best):
            stopped = True
            break
    return FitResult(State(*state).numpy(), best, np.asarray(trace), steps, stopped)


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


def class_minibatches(
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
        once.
    """
    some = min(class_batch, n_classes)
    steps = -(-n // min(size, n)) * -(-n_classes // some)
    rows = minibatches(n, size, steps, rng)
    if some == n_classes:
        return rows, np.tile(np.arange(n_classes, dtype=np.int32), (steps, 1))
    classes = np.stack([rng.choice(n_classes, some, replace=False) for _ in range(steps)])
    return rows, classes.astype(np.int32)


def ascend_stochastic(
    likelihood: SiteLikelihood,
    blocks: Iterable[Block],
    n_items: int,
    state: State,
    prior: MeanPrior = ZERO_MEAN,
    *,
    epochs: int,
    batch_size: int,
    class_batch: int,
    schedule: Schedule | None,
    rng: np.random.Generator,
    callback: FitCallback | None = None,
) -> FitResult:
    """Stochastic variational inference by natural gradients.

    Each epoch visits every block in minibatches; data sums are scaled by N/|S|, the factor missing
    in algorithm 1 of Wenzel et al. 2017. After an epoch the objective is taken on all data, and the
    best state so far is what the fit returns.

    Args:
        likelihood: gives the sites.
        blocks: the data, each block a fair sample of the whole.
        n_items: N.
        state: where to start.
        prior: of the prior mean.
        epochs: passes over the data.
        batch_size: |S|.
        class_batch: classes updated a step (Galy-Fajou et al. 2019, algorithm 2).
        schedule: step sizes, or None for rates that adapt to the noise of the gradient (Ranganath
            et al. 2013, which Wenzel et al. use), one for each function.
        rng: source of randomness.
        callback: reported to once an epoch.

    Returns:
        The fit; its posterior is a `State`.
    """
    dtype = _dtype(state)
    run, flags = compiled(likelihood, dtype.name), prior.tensors(dtype)
    C, P = state.linear.shape
    averaging = np.stack([np.zeros(C), np.zeros(C), np.ones(C)]).astype(dtype)
    drift = Drift(np.zeros((C, P), dtype), np.zeros((C, P, P), dtype), averaging)
    visits = epochs * -(-n_items // min(batch_size, n_items))
    warm_up = dtype.type(max(1, min(WARM_UP, visits // 4)))
    done = epoch = 0
    best, best_value = state, -np.inf
    trace: list[float] = []
    stopped = False
    while epoch < epochs and not stopped:
        for block in blocks:
            rows, classes = class_minibatches(int(block.phi.shape[0]), batch_size, C, class_batch, rng)
            plan = Plan(rows, classes, dtype.type(n_items / rows.shape[1]))
            if schedule is None:
                state, drift = run.adaptive(block, state, plan, drift, warm_up, flags)
            else:
                rates = schedule.rates(done, len(rows), classes.shape[1] / C).astype(dtype)
                state = run.scheduled(block, state, plan, rates, flags)
            done += len(rows)
        epoch += 1
        value = objective(likelihood, blocks, state, prior)
        trace.append(value)
        if value > best_value:
            best, best_value = state, value
        stopped = callback is not None and bool(callback(epoch / epochs, value))
    return FitResult(State(*best).numpy(), float(best_value), np.asarray(trace), epoch, stopped)


def _pass(sums: Any, blocks: Iterable[Block], state: State) -> Sums:
    """Sums over all blocks."""
    total: Sums | None = None
    for block in blocks:
        part = Sums(*sums(Block(*(tf.convert_to_tensor(a) for a in block)), state))
        total = part if total is None else Sums(*(a + b for a, b in zip(total, part, strict=True)))
    assert total is not None
    return total


def _dtype(state: State) -> np.dtype:
    return np.dtype(tf.as_dtype(state.mean.dtype).as_numpy_dtype)


class ProjectedRows:
    """The data in projected blocks: held where they fit, else projected again at every pass.

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
        small = len(X) * len(basis.points) * X.itemsize <= HELD_BYTES
        self._held = list(self._project()) if small else None

    def _project(self) -> Iterator[Block]:
        for first in range(0, len(self._X), BLOCK_ROWS):
            part = slice(first, first + BLOCK_ROWS)
            phi, residual = project(self._X[part], self._basis, self._kernel)
            yield Block(*(tf.convert_to_tensor(a) for a in (phi, residual, self._targets[part])))

    def __iter__(self) -> Iterator[Block]:
        return iter(self._held) if self._held is not None else self._project()


# ------------------------------------------------------------------------------ for GPflow's models


class NaturalGradientAscent:
    """The solver for anybody's whitened `gpflow.models.SVGP` whose likelihood is a `SiteLikelihood`.

    In the manner of `gpflow.optimizers.NaturalGradient`, without a step size to choose: a dozen
    sweeps, each of which raises the bound.

    Args:
        sweeps: at most this many passes over the data.
        tol: end after two gains in a row below this share of the bound.
        growth: of the step after each success; 1 takes plain steps.
    """

    def __init__(self, *, sweeps: int = 60, tol: float = 1e-4, growth: float = 2.0) -> None:
        self.sweeps, self.tol, self.growth = sweeps, tol, growth

    def maximize(self, model: Any, data: tuple[Any, Any], callback: FitCallback | None = None) -> FitResult:
        """Raise `model.elbo(data)` in q_mu and q_sqrt; kernel and inducing points stay.

        Args:
            model: a `gpflow.models.SVGP` with `whiten=True` and a mean function of zero.
            data: X [N, D] and Y as the likelihood wants it.
            callback: reported to after each sweep.

        Returns:
            The fit, also assigned to the model.

        Raises:
            InputError: a model the solver is not for.
        """
        import gpflow

        from workbench.errors import InputError

        if not isinstance(model, gpflow.models.SVGP) or not model.whiten or len(model.q_sqrt.shape) != 3:
            raise InputError("This solver is for a gpflow.models.SVGP with whiten=True and q_diag=False.")
        if not isinstance(model.likelihood, SiteLikelihood):
            raise InputError(
                f"{type(model.likelihood).__name__} has no sites; use a likelihood of "
                "workbench.engine.likelihoods, or a subclass of its SiteLikelihood."
            )
        if not isinstance(model.mean_function, gpflow.functions.Zero):
            raise InputError("This solver is for a mean function of zero.")
        X, Y = (tf.convert_to_tensor(part) for part in data)
        Kuu = gpflow.covariances.Kuu(
            model.inducing_variable, model.kernel, jitter=gpflow.config.default_jitter()
        )
        Kuf = gpflow.covariances.Kuf(model.inducing_variable, model.kernel, X)
        phi = tf.transpose(tf.linalg.triangular_solve(tf.linalg.cholesky(Kuu), Kuf))
        residual = tf.maximum(model.kernel(X, full_cov=False) - tf.reduce_sum(phi * phi, 1), 0.0)
        blocks = [
            Block(phi[i : i + BLOCK_ROWS], residual[i : i + BLOCK_ROWS], targets[i : i + BLOCK_ROWS])
            for targets in [model.likelihood.encode(Y, phi.dtype)]
            for i in range(0, len(phi), BLOCK_ROWS)
        ]
        start = State.of(model.q_mu.numpy(), root_of(model.q_sqrt.numpy()))
        fit = ascend(
            model.likelihood, blocks, start, sweeps=self.sweeps, tol=self.tol, growth=self.growth,
            callback=callback,
        )  # fmt: skip
        model.q_mu.assign(fit.posterior.mean)
        model.q_sqrt.assign(q_sqrt_of(fit.posterior.root))
        return fit
