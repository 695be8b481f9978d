"""The large-margin GP (multi-class Bayesian SVM, papers 000 and 003) with tempered rivals.

Notation of MATH.md section 2. For a rival t of the true class y:
d = 1 + F_t - F_y,  a = d^2 + 2 kt + V_t + V_y,  w = a^-1/2,  g = d + sqrt a,
and the objective is  G = -sum_n tau log sum_t exp(g_nt / tau) - sum_c KL(q(v_c) || N(0, I)).
G is concave while the rivals are fixed; a step in natural parameters that does not raise it is
halved, so it never falls. Where every rival of every row is listed, `large_margin_newton` climbs
the same G faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from workbench.arrays import Floats, Ints
from workbench.engine import large_margin_newton as newton
from workbench.engine.large_margin_parts import gram, kl, row_squares, specs
from workbench.engine.projection import ALIGNMENT
from workbench.engine.wide_mean import others

TAU = 0.1
SWEEPS = 60
TOLERANCE = 1e-4
ALL_RIVALS = 20_000  # every rival is listed while N (C - 1) stays below this
FEW_RIVALS = 3
_CHUNK = 8192
_ONE_CHUNK = 16_384
_HALVINGS = 10
_FIRST = 4  # sweeps against every rival before the few
_SHARED_FROM = 1 << 20  # bytes
_BLOCKED = 128  # from here on 2 x 2 blocks pay

Callback = Callable[[float, float], bool | None]


class Posterior(NamedTuple):
    """q(v_c) = N(mean_c, precision_c^-1), whitened. A warm start is just this.

    Attributes:
        mean: [P, C].
        precision: [C, P, P].
        root: [C, P, P] R_c = chol(precision_c)^-1, so that S_c = R_c' R_c.
    """

    mean: Floats
    precision: Floats
    root: Floats

    @property
    def covariance(self) -> Floats:
        """[C, P, P] S_c."""
        return np.matmul(self.root.transpose(0, 2, 1), self.root)


class Fit(NamedTuple):
    """What a fit returns.

    Attributes:
        posterior: where it ended.
        trace: [sweeps + 1] the objective G, from the start on.
        rivals: [N, k] the rivals listed for each row at the end.
        margin: [N, k] d.
        second: [N, k] a.
        stopped: whether a callback asked to stop.
    """

    posterior: Posterior
    trace: Floats
    rivals: Ints
    margin: Floats
    second: Floats
    stopped: bool


def prior(n_inducing: int, n_classes: int, dtype: Any = np.float64) -> Posterior:
    """The cold start: q is the prior."""
    eye = np.broadcast_to(np.eye(n_inducing, dtype=dtype), (n_classes, n_inducing, n_inducing))
    return Posterior(np.zeros((n_inducing, n_classes), dtype=dtype), eye.copy(), eye.copy())


def rival_count(n: int, n_classes: int) -> int:
    """Rivals listed for each row: all, or a few when the data are large."""
    return n_classes - 1 if n * (n_classes - 1) <= ALL_RIVALS else min(FEW_RIVALS, n_classes - 1)


def fit(
    Phi: Floats,
    kt: Floats,
    codes: Ints,
    n_classes: int,
    *,
    start: Posterior | None = None,
    tau: float = TAU,
    rivals: int | None = None,
    sweeps: int = SWEEPS,
    tolerance: float = TOLERANCE,
    callback: Callback | None = None,
    sweeps_per_call: int = 1,
) -> Fit:
    """Maximise G.

    Args:
        Phi: [N, P] whitened features; their precision is the computation's.
        kt: [N] variance the inducing points leave open.
        codes: [N] true classes.
        n_classes: C >= 2.
        start: of a warm start; the prior otherwise.
        tau: temperature over rivals; 0.03 brings G within half a per cent of the hard objective.
        rivals: k rivals a row; None chooses by size, 1 is the papers' hard objective.
        sweeps: at most this many.
        tolerance: the fit ends when it expects to gain less than this share of |G|; with few rivals,
            after two sweeps in a row that gain less.
        callback: called with (fraction, G) every `sweeps_per_call` sweeps; True stops.
        sweeps_per_call: between two callbacks.

    Returns:
        The fit.
    """
    dtype = Phi.dtype
    k = rival_count(len(Phi), n_classes) if rivals is None else max(1, min(rivals, n_classes - 1))
    if start is None and rivals != 1 and k < n_classes - 1:
        start = _first_look(Phi, kt, codes, n_classes, tau)
    key = n_classes, dtype.name, Phi.shape[1] >= _BLOCKED
    every = k == n_classes - 1 and len(Phi) * k <= ALL_RIVALS
    run = _concrete(newton.solver if every else _solver, *key)
    fixed = _tensors(Phi, kt.astype(dtype, copy=False), codes.astype(np.int32))
    state = start or prior(Phi.shape[1], n_classes, dtype)
    moving = [tf.convert_to_tensor(np.asarray(part, dtype=dtype)) for part in state]
    if every:
        moving += _tensors(np.array([1.0, 1.0, 0.0], dtype))
        options = _tensors(np.array([tau, tolerance], dtype))
    else:
        moving += _tensors(dtype.type(1.0), np.int32(0))
        options = _tensors(dtype.type(tau), np.int32(k), dtype.type(tolerance))
    traces: list[Floats] = []
    done, stopped = 0, False
    while True:
        share = sweeps - done if callback is None else min(sweeps_per_call, sweeps - done)
        found = run(*fixed, *moving, *options, *_tensors(np.int32(share)))
        moving, (ended, trace, *rest) = found[: len(moving)], found[len(moving) :]
        values = trace.numpy()
        traces.append(values if not traces else values[1:])
        done += share
        finished = bool(ended) or done >= sweeps
        if callback is not None and callback(1.0 if finished else done / sweeps, float(values[-1])):
            stopped = not finished
            break
        if finished:
            break
    posterior = Posterior(*(part.numpy() for part in moving[:3]))
    if every:
        listed = others(codes, n_classes)
        d, a = (np.take_along_axis(part.numpy(), listed, axis=1) for part in rest)
    else:
        listed, d, a = (part.numpy() for part in rest)
    return Fit(posterior, np.concatenate(traces), listed, d, a, stopped)


def _first_look(Phi: Floats, kt: Floats, codes: Ints, n_classes: int, tau: float) -> Posterior:
    """A posterior from a part of the rows against every rival.

    At the prior all rivals tie, and a step against the few that happen to be listed only makes the
    others the largest: the objective cannot rise, and the fit would end where it began.
    """
    n = max(ALL_RIVALS // (n_classes - 1), 1)
    rows = np.sort(np.random.default_rng(0).choice(len(Phi), min(n, len(Phi)), replace=False))
    part = fit(Phi[rows], kt[rows], codes[rows], n_classes, tau=tau, rivals=n_classes - 1, sweeps=_FIRST)
    return part.posterior


def fit_minibatch(
    Phi: Floats,
    kt: Floats,
    codes: Ints,
    n_classes: int,
    *,
    start: Posterior | None = None,
    tau: float = TAU,
    rivals: int | None = None,
    batch_size: int = 256,
    epochs: int = 20,
    rho_start: float = 0.3,
    rho_end: float = 0.02,
    seed: int = 0,
    callback: Callback | None = None,
) -> Fit:
    """Stochastic natural-gradient ascent, for data that come in pieces.

    The step is max(rho_end, rho_start (1 + .2 t)^-.7), as in MATH.md section 4. With one batch that
    holds every row and rho_start = 1 the first step is a sweep of `fit`.

    Args:
        Phi, kt, codes, n_classes, start, tau, rivals, callback: as in `fit`; the callback comes
            after every epoch.
        batch_size: B rows a step.
        epochs: passes over the rows.
        rho_start: first step size, in (0, 1].
        rho_end: steps do not get smaller than this.
        seed: of the batches.

    Returns:
        The fit; its trace holds the mean objective of each epoch.
    """
    dtype = Phi.dtype
    n = len(Phi)
    step = _concrete(_stochastic, n_classes, dtype.name, Phi.shape[1] >= _BLOCKED)
    k = rival_count(min(n, batch_size), n_classes) if rivals is None else max(1, min(rivals, n_classes - 1))
    M, Lam, R = (
        tf.convert_to_tensor(np.asarray(part, dtype=dtype))
        for part in (start or prior(Phi.shape[1], n_classes, dtype))
    )
    trace: list[float] = []
    t, stopped = 0, False
    for epoch, batches in epochs_of(n, batch_size, epochs, seed):
        total = 0.0
        for rows in batches:
            rho = max(rho_end, rho_start * (1.0 + 0.2 * t) ** -0.7)
            M, Lam, R, G = step(
                *_tensors(Phi[rows], kt[rows].astype(dtype, copy=False), codes[rows].astype(np.int32)),
                M, Lam, R,
                *_tensors(dtype.type(rho), dtype.type(n / len(rows)), dtype.type(tau), np.int32(k)),
            )  # fmt: skip
            total += float(G) / len(batches)
            t += 1
        trace.append(total)
        if callback is not None and callback((epoch + 1) / epochs, total):
            stopped = epoch + 1 < epochs
            break
    posterior = Posterior(M.numpy(), Lam.numpy(), R.numpy())
    return closing(posterior, trace, Phi, kt, codes, n_classes, tau, rivals, stopped)


def epochs_of(n: int, batch_size: int, epochs: int, seed: int) -> Iterator[tuple[int, list[Ints]]]:
    """(epoch, its batches of row numbers), shuffled anew each epoch unless one batch holds all."""
    rng = np.random.default_rng([seed, 0xBA7C])
    size = min(max(1, batch_size), n)
    for epoch in range(epochs):
        order = rng.permutation(n) if size < n else np.arange(n)
        yield epoch, [order[i : i + size] for i in range(0, n, size)]


def closing(
    posterior: Posterior, trace: list[float], Phi: Floats, kt: Floats, codes: Ints, n_classes: int,
    tau: float, rivals: int | None, stopped: bool,
) -> Fit:  # fmt: skip
    """A fit with margins at the given posterior: no sweep, one look at the data."""
    look = fit(Phi, kt, codes, n_classes, start=posterior, tau=tau, rivals=rivals, sweeps=0)
    return look._replace(posterior=posterior, trace=np.asarray(trace or look.trace), stopped=stopped)


def _tensors(*values: Any) -> tuple[Any, ...]:
    return tuple(_tensor(value) for value in values)


def _tensor(value: Any) -> Any:
    """A tensor; big arrays that TensorFlow can use where they lie are shared, not copied twice."""
    shareable = (
        isinstance(value, np.ndarray)
        and value.nbytes > _SHARED_FROM
        and value.flags.c_contiguous
        and value.flags.writeable
        and value.ctypes.data % ALIGNMENT == 0
    )
    if shareable:
        return tf.experimental.dlpack.from_dlpack(value.__dlpack__())
    return tf.convert_to_tensor(value)


def trace_count(n_classes: int, dtype: str = "float64") -> int:
    """How often the sweeps were traced in this process for C classes in one precision."""
    made = (make(n_classes, dtype, blocked) for make in (newton.solver, _solver) for blocked in (False, True))
    return sum(solver.experimental_get_tracing_count() for solver in made)


# --------------------------------------------------------------------------- the solver


_TRACING = Lock()


def _concrete(make: Callable[..., Any], *key: Any) -> Any:
    """The traced function itself: calling it skips TensorFlow's matching of signatures (5 ms a call)."""
    with _TRACING:  # two sessions that start at once must not both trace
        return _traced(make, *key)


@cache
def _traced(make: Callable[..., Any], *key: Any) -> Any:
    return make(*key).get_concrete_function()


class _Pieces(NamedTuple):
    """What the solvers are made of; see `_pieces`."""

    local: Any
    target: Any
    move: Any


@cache
def _pieces(C: int, dtype_name: str, blocked: bool) -> _Pieces:
    """The parts of a sweep for C classes in one precision, as functions to be traced."""
    dtype = tf.as_dtype(dtype_name)
    floor = 1e-12 if dtype == tf.float64 else 1e-6

    @tf.autograph.experimental.do_not_convert
    def moments(Phi, kt, y, M, R, tau, k):  # type: ignore[no-untyped-def]
        """Rivals, d and a of a chunk, its share of G, and dG/dF with the weights."""
        F = Phi @ M
        every = k == C - 1

        def largest():  # type: ignore[no-untyped-def]
            own = tf.one_hot(y, C, on_value=True, off_value=False)
            return tf.math.top_k(tf.where(own, tf.cast(-np.inf, dtype), F), k).indices

        def others():  # type: ignore[no-untyped-def]
            steps = tf.range(C - 1)[None, :]
            return steps + tf.cast(steps >= y[:, None], tf.int32)

        rivals = tf.cond(every, others, largest)
        listed = tf.concat([rivals, y[:, None]], 1)  # [n, k + 1]

        def variances_of_all():  # type: ignore[no-untyped-def]
            V = tf.stack([row_squares(Phi, R[c], blocked) for c in range(C)], 1)
            return tf.gather(V, listed, batch_dims=1)

        def variances_of_listed():  # type: ignore[no-untyped-def]
            flat = tf.reshape(listed, [-1])
            slots = tf.dynamic_partition(tf.range(tf.size(flat)), flat, C)
            values = [row_squares(tf.gather(Phi, slots[c] // (k + 1)), R[c], blocked) for c in range(C)]
            return tf.reshape(tf.dynamic_stitch(slots, values), tf.shape(listed))

        V = tf.cond(every, variances_of_all, variances_of_listed)
        d = 1.0 + tf.gather(F, rivals, batch_dims=1) - tf.gather(F, y[:, None], batch_dims=1)
        a = tf.maximum(d * d + 2.0 * kt[:, None] + V[:, :k] + V[:, k:], tf.cast(floor, dtype))
        g = (d + tf.sqrt(a)) / tau
        data = -tau * tf.reduce_sum(tf.reduce_logsumexp(g, 1))
        return rivals, d, a, data

    @tf.autograph.experimental.do_not_convert
    def targets(Phi, y, rivals, d, a, tau, k):  # type: ignore[no-untyped-def]
        """A' diag(W) A and A' u of a chunk, for every class."""
        w = tf.math.rsqrt(a)
        pi = tf.nn.softmax((d + tf.sqrt(a)) / tau)
        W, u = pi * w, -pi * (1.0 + w * d)
        W = tf.concat([W, tf.reduce_sum(W, 1, keepdims=True)], 1)
        u = tf.concat([u, -tf.reduce_sum(u, 1, keepdims=True)], 1)
        listed = tf.concat([rivals, y[:, None]], 1)
        n = tf.shape(Phi)[0]

        def over_all():  # type: ignore[no-untyped-def]
            entries = tf.stack([tf.broadcast_to(tf.range(n)[:, None], tf.shape(listed)), listed], 2)
            dense = tf.sqrt(tf.scatter_nd(entries, W, [n, C]))
            slopes = tf.matmul(Phi, tf.scatter_nd(entries, u, [n, C]), transpose_a=True)
            return tf.stack([gram(dense[:, c, None] * Phi, blocked) for c in range(C)]), slopes

        def over_listed():  # type: ignore[no-untyped-def]
            flat = tf.reshape(listed, [-1])
            flat_W, flat_u = tf.reshape(W, [-1]), tf.reshape(u, [-1])
            slots = tf.dynamic_partition(tf.range(tf.size(flat)), flat, C)
            grams, slopes = [], []
            for c in range(C):
                A = tf.gather(Phi, slots[c] // (k + 1))
                grams.append(gram(tf.sqrt(tf.gather(flat_W, slots[c]))[:, None] * A, blocked))
                slopes.append(tf.linalg.matvec(A, tf.gather(flat_u, slots[c]), transpose_a=True))
            return tf.stack(grams), tf.stack(slopes, 1)

        return tf.cond(k == C - 1, over_all, over_listed)

    def chunks(n):  # type: ignore[no-untyped-def]
        size = tf.where(n <= _ONE_CHUNK, tf.maximum(n, 1), _CHUNK)
        return size, (n + size - 1) // size

    def local(Phi, kt, y, M, R, tau, k):  # type: ignore[no-untyped-def]
        size, count = chunks(tf.shape(Phi)[0])
        rivals = tf.TensorArray(tf.int32, count, infer_shape=False, element_shape=[None, None])
        ds = tf.TensorArray(dtype, count, infer_shape=False, element_shape=[None, None])
        ay = tf.TensorArray(dtype, count, infer_shape=False, element_shape=[None, None])
        G = -kl(M, R)
        for i in tf.range(count):  # type: ignore[attr-defined]
            rows = slice(i * size, (i + 1) * size)
            r, d, a, data = moments(Phi[rows], kt[rows], y[rows], M, R, tau, k)
            rivals, ds, ay = rivals.write(i, r), ds.write(i, d), ay.write(i, a)
            G += data
        return rivals.concat(), ds.concat(), ay.concat(), G

    def target(Phi, y, M, rivals, d, a, tau, k):  # type: ignore[no-untyped-def]
        size, count = chunks(tf.shape(Phi)[0])
        P = tf.shape(Phi)[1]
        LamT = tf.eye(P, batch_shape=[C], dtype=dtype)
        gm = -M
        for i in tf.range(count):  # type: ignore[attr-defined]
            rows = slice(i * size, (i + 1) * size)
            gram, slope = targets(Phi[rows], y[rows], rivals[rows], d[rows], a[rows], tau, k)
            LamT += gram
            gm += slope
        return LamT, gm

    @tf.autograph.experimental.do_not_convert
    def move(M, Lam, LamT, gm, rho):  # type: ignore[no-untyped-def]
        """The damped natural-gradient step, then centring, which only the KL sees."""
        Lam2 = Lam + rho * (LamT - Lam)
        old = tf.einsum("cpq,qc->cp", Lam, M)
        new = tf.einsum("cpq,qc->cp", LamT, M) + tf.transpose(gm)
        h = old + rho * (new - old)
        eye = tf.eye(tf.shape(M)[0], batch_shape=[C], dtype=dtype)
        R2 = tf.linalg.triangular_solve(tf.linalg.cholesky(Lam2), eye)
        M2 = tf.transpose(tf.linalg.matvec(R2, tf.linalg.matvec(R2, h), transpose_a=True))
        return M2 - tf.reduce_mean(M2, 1, keepdims=True), Lam2, R2

    return _Pieces(local, target, move)


@cache
def _solver(C: int, dtype_name: str, blocked: bool) -> Any:
    """The compiled sweeps: one trace a process for C classes in one precision."""
    dtype = tf.as_dtype(dtype_name)
    local, target, move = _pieces(C, dtype_name, blocked)
    data, posterior, scalar, integer = specs(C, dtype)

    @tf.function(input_signature=[*data, *posterior, scalar, integer, scalar, integer, scalar, integer])
    def solve(Phi, kt, y, M, Lam, R, rho, small, tau, k, tolerance, sweeps):  # type: ignore[no-untyped-def]
        # one loop over proposals, so that each piece is traced once: the first proposal is the start
        n = tf.shape(Phi)[0]
        rivals = tf.zeros([n, k], tf.int32)
        d = tf.zeros([n, k], dtype)
        a = tf.ones([n, k], dtype)
        G = tf.cast(-np.inf, dtype)
        M2, Lam2, R2 = M, Lam, R
        LamT, gm = Lam, M
        trace = tf.TensorArray(dtype, sweeps + 1, element_shape=[])
        done, tries, ended = -1, 0, False
        while done < sweeps and not ended:
            rivals2, d2, a2, G2 = local(Phi, kt, y, M2, R2, tau, k)
            if G2 >= G:
                small = tf.where(
                    tf.less(G2 - G, tolerance * tf.abs(G)), small + 1, small * tf.cast(done < 0, tf.int32)
                )
                rho = tf.where(tries == 0 and done >= 0, tf.minimum(tf.cast(1.0, dtype), 1.5 * rho), rho)
                M, Lam, R, rivals, d, a, G = M2, Lam2, R2, rivals2, d2, a2, G2
                done += 1
                tries = 0
                trace = trace.write(done, G)
                ended = small >= 2
                if done < sweeps and not ended:
                    LamT, gm = target(Phi, y, M, rivals, d, a, tau, k)
            else:
                rho *= 0.5
                tries += 1
                ended = tries > _HALVINGS or done < 0
            if done < sweeps and not ended:
                M2, Lam2, R2 = move(M, Lam, LamT, gm, rho)
        return M, Lam, R, rho, small, ended, trace.stack()[: done + 1], rivals, d, a

    return solve


@cache
def _stochastic(C: int, dtype_name: str, blocked: bool) -> Any:
    """One compiled natural-gradient step on a minibatch."""
    dtype = tf.as_dtype(dtype_name)
    local, target, move = _pieces(C, dtype_name, blocked)
    data, posterior, scalar, integer = specs(C, dtype)

    @tf.function(input_signature=[*data, *posterior, scalar, scalar, scalar, integer])
    def step(Phi, kt, y, M, Lam, R, rho, scale, tau, k):  # type: ignore[no-untyped-def]
        rivals, d, a, G = local(Phi, kt, y, M, R, tau, k)
        LamT, gm = target(Phi, y, M, rivals, d, a, tau, k)
        eye = tf.eye(tf.shape(M)[0], batch_shape=[C], dtype=dtype)
        # both sums over the data are scaled by N / B; the prior's share is not
        LamT = eye + scale * (LamT - eye)
        gm = scale * (gm + M) - M
        divergence = kl(M, R)
        return *move(M, Lam, LamT, gm, rho), scale * (G + divergence) - divergence

    return step
