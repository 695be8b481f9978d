"""Natural-gradient ascent for whitened sparse GPs: one solver for every likelihood with sites.

A likelihood turns the moments of f_c(x_n) into a slope g, a curvature theta and a value per item
and class (`workbench.engine.likelihoods`). Everything after that is the same: the target of q(v_c)
in natural parameters is (docs/math.md, 1 to 5)

    precision_c = I + s Phi' diag(theta_c) Phi
    linear_c = s Phi' (g_c + theta_c (F_c - o_c) - theta_c m0_c)

with F = Phi M + m0 + o (prior mean m0, a point estimate; o a guess at every row, docs/math.md, 13).
For conjugate models a full step is coordinate ascent; for the others it is a natural-gradient step,
judged by the objective; s = N/|S| and rho < 1 make it stochastic variational inference. Learning m0
maximises over (q(v_c), m0_c) together, with m0_c ~ N(m, s0^2). Where the likelihood does not feel a
shift common to all classes, means are centred over classes after each step, which never lowers the
objective and removes its one slow direction.

The compiled steps are in `workbench.engine.natural_steps`; `NaturalGradientAscent` is the solver for
anybody's `gpflow.models.SVGP`.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as _tensorflow

from workbench.arrays import Floats, Ints, slices
from workbench.engine.fitting import FitResult, minibatches
from workbench.engine.gaussian import State, q_sqrt_of, root_of
from workbench.engine.kernels import Kernel
from workbench.engine.likelihoods import SiteLikelihood
from workbench.engine.natural_steps import (
    ZERO_MEAN,
    Block,
    Drift,
    MeanPrior,
    Plan,
    Sums,
    compiled,
)
from workbench.engine.projection import Basis, project
from workbench.progress import FitCallback

# its type stubs know neither AutoGraph's loops nor NumPy arrays as arguments
tf: Any = _tensorflow

BLOCK_ROWS = 16_384
HELD_BYTES = 1 << 28
LONGEST_STEP = 8.0
WARM_UP = 10  # minibatches that only measure, before adaptive rates move anything
_SLACK = {"float64": 1e-10, "float32": 1e-6}  # a fall below this share of the objective is rounding


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
    run, flags = compiled(likelihood, dtype.name), prior.tensors(dtype)
    slack = _SLACK[dtype.name]
    totals = _pass(run.sums, blocks, state)
    best = float(totals.value) - float(run.penalty(state, flags))
    trace = [best]
    rho, small, steps, stopped = float(rate), 0, 0, False
    while steps < sweeps and small < 2:
        candidate, penalty = run.advance(state, totals, dtype.type(rho), flags)
        found_there = _pass(run.sums, blocks, candidate)
        value = float(found_there.value) - float(penalty)
        steps += 1
        if not value >= best:  # lower, or not a number: the step left the positive definite cone
            if rho <= 2.0**-10 or (rho == 1.0 and best - value <= slack * abs(best)):
                break  # a fixed point, up to rounding
            rho = 1.0 if rho > 1.0 else 0.5 * rho
            continue
        small = small + 1 if value - best < tol * abs(best) else 0
        state, best, totals = candidate, value, found_there
        trace.append(best)
        rho = min(longest, growth * rho)
        if callback is not None and callback(1.0 if small == 2 else min(1.0, steps / sweeps), best):
            stopped = True
            break
    return FitResult(State(*state).numpy(), best, np.asarray(trace), steps, stopped)


class Schedule(NamedTuple):
    """Step sizes of minibatches: rho_t = max(floor, rate (1 + delay t)^-decay).

    Attributes:
        rate: the first step.
        delay: how soon it shrinks.
        decay: in (0.5, 1] for convergence.
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
    class_count = min(class_batch, n_classes)
    steps = -(-n // min(size, n)) * -(-n_classes // class_count)
    rows = minibatches(n, size, steps, rng)
    if class_count == n_classes:
        return rows, np.tile(np.arange(n_classes, dtype=np.int32), (steps, 1))
    classes = np.stack([rng.choice(n_classes, class_count, replace=False) for _ in range(steps)])
    return rows, classes.astype(np.int32)


def ascend_stochastic(
    likelihood: SiteLikelihood,
    blocks: Iterable[Block],
    n_items: int,
    state: State,
    prior: MeanPrior,
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
    steps = epoch = 0
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
                rates = schedule.rates(steps, len(rows), classes.shape[1] / C).astype(dtype)
                state = run.scheduled(block, state, plan, rates, flags)
            steps += len(rows)
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
        part = Sums(*sums(block, state))
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
        offset: [N, C] a prior mean at every row, or None.
    """

    def __init__(
        self,
        X: Floats,
        targets: Floats,
        basis: Basis,
        kernel: Kernel,
        shuffle: np.random.Generator | None = None,
        offset: Floats | None = None,
    ) -> None:
        by_class = [targets, np.zeros_like(targets) if offset is None else offset]
        if shuffle is not None and len(X) > BLOCK_ROWS:
            order = shuffle.permutation(len(X))
            X, by_class = X[order], [part[order] for part in by_class]
        self._X, self._basis, self._kernel = X, basis, kernel
        self._by_class = [part.astype(X.dtype, copy=False) for part in by_class]
        small = len(X) * len(basis.points) * X.itemsize <= HELD_BYTES
        self._held = list(self._project()) if small else None

    def _project(self) -> Iterator[Block]:
        for part in slices(len(self._X), BLOCK_ROWS):
            phi, residual = project(self._X[part], self._basis, self._kernel)
            arrays = (phi, residual, *(values[part] for values in self._by_class))
            yield Block(*(tf.convert_to_tensor(a) for a in arrays))

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
            model: a `gpflow.models.SVGP` with `whiten=True`; its mean function stays as it is.
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
        X, Y = (tf.convert_to_tensor(part) for part in data)
        Kuu = gpflow.covariances.Kuu(
            model.inducing_variable, model.kernel, jitter=gpflow.config.default_jitter()
        )
        Kuf = gpflow.covariances.Kuf(model.inducing_variable, model.kernel, X)
        phi = tf.transpose(tf.linalg.triangular_solve(tf.linalg.cholesky(Kuu), Kuf))
        residual = tf.maximum(model.kernel(X, full_cov=False) - tf.reduce_sum(phi * phi, 1), 0.0)
        targets = model.likelihood.encode(Y, phi.dtype)
        offset = tf.cast(tf.broadcast_to(model.mean_function(X), tf.shape(targets)), phi.dtype)
        parts = phi, residual, targets, offset
        blocks = [Block(*(part[rows] for part in parts)) for rows in slices(len(phi), BLOCK_ROWS)]
        start = State.of(model.q_mu.numpy(), root_of(model.q_sqrt.numpy()))
        fit = ascend(
            model.likelihood,
            blocks,
            start,
            sweeps=self.sweeps,
            tol=self.tol,
            growth=self.growth,
            callback=callback,
        )
        model.q_mu.assign(fit.posterior.mean)
        model.q_sqrt.assign(q_sqrt_of(fit.posterior.root))
        return fit
