"""The large-margin GP (multi-class Bayesian SVM, Wistuba & Rawat 2018 and 2019) with tempered rivals.

Notation of docs/math.md, 2. For a rival t of the true class y:
d = 1 + F_t - F_y,  a = d^2 + 2 r + V_t + V_y,  w = a^-1/2,  g = d + sqrt a,
and the objective is  G = -sum_n tau log sum_t exp(g_nt / tau) - sum_c KL(q(v_c) || N(0, I)).
G is concave while the rivals are fixed; a step in natural parameters that does not raise it is
halved, so it never falls. Where every rival of every row is listed, `large_margin_newton` climbs
the same G faster. The formulas are those of `workbench.engine.augmentation`.
"""

from collections.abc import Callable
from functools import cache, partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from workbench.arrays import Floats, Ints
from workbench.engine import large_margin_newton as newton
from workbench.engine.augmentation import (
    AugmentedHinge,
    augmented_hinge,
    rival_margins,
    rival_pull,
    rival_weight,
    tempered_shares,
)
from workbench.engine.fitting import minibatches
from workbench.engine.large_margin_state import (
    WORTH,
    Data,
    Posterior,
    RowTerms,
    SpannedPosterior,
    compiled,
    signature,
    spanned,
    within,
)
from workbench.engine.projection import ALIGNMENT
from workbench.engine.whitened import each_class, gram, grams, inverse_root, kl, row_squares, variances
from workbench.engine.wide_mean import others
from workbench.progress import FitCallback

TAU = 0.1
SWEEPS = 60
TOLERANCE = 1e-4
ALL_RIVALS = 500_000  # every rival is listed while N (C - 1) stays below this
MANY_CLASSES = 30  # with more a sweep against every rival is dear: 1 / 25 of that
FEW_RIVALS = 3
_CHUNK = 8192
_ONE_CHUNK = 16_384
_HALVINGS = 10
_FIRST = 4  # sweeps against every rival before the few
_SHARED_FROM = 1 << 20  # bytes
_BLOCKED = 128  # from here on 2 x 2 blocks pay
_DIGIT = 128  # of a class when rows are put in the order of classes: two digits hold 16,384 of them


class LargeMarginFit(NamedTuple):
    """Result of a fit.

    Attributes:
        posterior: where it ended.
        trace: [sweeps + 1] the objective G, from the start on.
        rivals: [N, k] the rivals listed for each row at the end.
        margin: [N, k] d.
        second: [N, k] a.
        stopped: whether a callback asked to stop.
    """

    posterior: Posterior | SpannedPosterior
    trace: Floats
    rivals: Ints
    margin: Floats
    second: Floats
    stopped: bool


def rival_count(n: int, n_classes: int, wanted: int | None = None) -> int:
    """Rivals listed for each row: those wanted, else all, or a few when the data are large."""
    if wanted is not None:
        return max(1, min(wanted, n_classes - 1))
    return n_classes - 1 if n * (n_classes - 1) <= _most(n_classes) else min(FEW_RIVALS, n_classes - 1)


def _most(n_classes: int) -> int:
    return ALL_RIVALS if n_classes <= MANY_CLASSES else ALL_RIVALS // 25


def fit(
    data: Data,
    *,
    start: Posterior | SpannedPosterior | RowTerms | None = None,
    tau: float = TAU,
    rivals: int | None = None,
    sweeps: int = SWEEPS,
    tolerance: float = TOLERANCE,
    callback: FitCallback | None = None,
) -> LargeMarginFit:
    """Maximise G.

    Args:
        data: N rows of C >= 2 classes; the precision of their features is the computation's.
        start: of a warm start, or what these rows said in a fit of other features; the prior otherwise.
        tau: temperature over rivals; 0.03 brings G within half a per cent of the hard objective.
        rivals: k rivals a row; None chooses by size, 1 is the papers' hard objective.
        sweeps: at most this many.
        tolerance: the fit ends when it expects to gain less than this share of |G|; with few rivals,
            after two sweeps in a row that gain less.
        callback: called with (fraction, G) after every sweep; True stops.

    Returns:
        The fit.
    """
    phi, n_classes = data.phi, data.offset.shape[1]
    dtype = phi.dtype
    k = rival_count(len(phi), n_classes, rivals)
    if start is None and rivals != 1 and k < n_classes - 1:
        start = _first_look(data, tau)
    every = k == n_classes - 1 and len(phi) * k <= _most(n_classes)
    axes = None
    # a look alone must say what the start is, whatever that is; and no rows have no span
    if every and sweeps > 0 and 0 < len(phi) <= WORTH * phi.shape[1]:
        phi, axes = spanned(phi)
        if start is not None and not isinstance(start, RowTerms):
            start = within(start, axes)
    if isinstance(start, RowTerms):
        start = start.posterior(phi)
    data = data._replace(phi=phi)
    prior = Posterior.prior(phi.shape[1], n_classes, dtype)
    q: Any = [np.asarray(part, dtype) for part in start or prior]
    state: tuple[Any, ...] = 1.0, 1.0, 0.0
    limits: tuple[Any, ...] = float(tau), tolerance
    run: Any = partial(newton.climb, data)
    if not every:
        solve = _concrete(_solver, dtype.name, phi.shape[1] >= _BLOCKED)
        run, q = partial(solve, *_tensors(*data)), _tensors(*q)
        state = _tensors(dtype.type(1.0), np.int32(0))
        limits = _tensors(dtype.type(tau), np.int32(k), dtype.type(tolerance))
    traces: list[Floats] = []
    count, stopped = 0, False
    while True:
        share = sweeps - count if callback is None else min(1, sweeps - count)
        q, state, ended, trace, *margins = run(
            *q, *state, *limits, share if every else _tensor(np.int32(share))
        )
        values = np.asarray(trace)
        traces.append(values if not traces else values[1:])
        count += share
        finished = bool(ended) or count >= sweeps
        if callback is not None and callback(1.0 if finished else count / sweeps, float(values[-1])):
            stopped = not finished
            break
        if finished:
            break
    if every:
        rival_classes = others(data.codes, n_classes)
        margins = [rival_classes, *(np.take_along_axis(part, rival_classes, axis=1) for part in margins)]
    posterior = Posterior(*map(np.asarray, q))
    full_posterior = posterior if axes is None else SpannedPosterior(posterior, axes)
    rival_classes, d, a = map(np.asarray, margins)
    return LargeMarginFit(full_posterior, np.concatenate(traces), rival_classes, d, a, stopped)


def _first_look(data: Data, tau: float) -> Posterior | SpannedPosterior:
    """A posterior from a part of the rows against every rival.

    At the prior all rivals tie, and a step against the few that happen to be listed only makes the
    others the largest: the objective cannot rise, and the fit would end where it began.
    """
    n_rivals = data.offset.shape[1] - 1
    n = min(max(ALL_RIVALS // 25 // n_rivals, 1), len(data.codes))
    rows = np.sort(np.random.default_rng(0).choice(len(data.codes), n, replace=False))
    return fit(data.rows(rows), tau=tau, rivals=n_rivals, sweeps=_FIRST).posterior


def fit_minibatch(
    data: Data,
    *,
    start: Posterior | None = None,
    tau: float = TAU,
    rivals: int | None = None,
    batch_size: int = 256,
    epochs: int = 20,
    rho_start: float = 0.3,
    rho_end: float = 0.02,
    seed: int = 0,
    callback: FitCallback | None = None,
) -> LargeMarginFit:
    """Stochastic natural-gradient ascent, for data that come in pieces.

    The step is max(rho_end, rho_start (1 + 0.2 t)^-0.7), as in docs/math.md, 4. With one batch that
    holds every row and rho_start = 1 the first step is a sweep of `fit`.

    Args:
        data, start, tau, rivals, callback: as in `fit`; the callback comes after every epoch.
        batch_size: B rows a step.
        epochs: passes over the rows.
        rho_start: first step size, in (0, 1].
        rho_end: steps do not get smaller than this.
        seed: of the batches.

    Returns:
        The fit; its trace holds the mean objective of each epoch.
    """
    (n, P), dtype, n_classes = data.phi.shape, data.phi.dtype, data.offset.shape[1]
    step = _concrete(_stochastic, dtype.name, P >= _BLOCKED)
    k = np.int32(rival_count(min(n, batch_size), n_classes, rivals))
    prior = Posterior.prior(P, n_classes, dtype)
    q: Any = _tensors(*(np.asarray(part, dtype) for part in start or prior))
    t = 0

    def epoch(batches: Ints) -> float:
        nonlocal q, t
        total = 0.0
        for rows in batches:
            rho = max(rho_end, rho_start * (1.0 + 0.2 * t) ** -0.7)
            scalars = (dtype.type(rho), dtype.type(n / len(rows)), dtype.type(tau), k)
            q, G = step(*data.rows(rows), *q, *_tensors(*scalars))
            total += float(G) / len(batches)
            t += 1
        return total

    trace, stopped = in_epochs(epoch, n, batch_size, epochs, seed, callback)
    posterior = Posterior(*(part.numpy() for part in q))
    return closing(posterior, trace, data, tau, rivals, stopped)


def in_epochs(
    epoch: Callable[[Ints], float],
    n: int,
    batch_size: int,
    epochs: int,
    seed: int,
    callback: FitCallback | None,
) -> tuple[Floats, bool]:
    """Call `epoch` with the batches [T, B] of each pass; its values, and whether it was stopped."""
    rng = np.random.default_rng([seed, 0xBA7C])
    count = -(-n // max(1, min(batch_size, n)))
    trace: list[float] = []
    for number in range(1, epochs + 1):
        trace.append(epoch(minibatches(n, batch_size, count, rng)))
        if callback is not None and callback(number / epochs, trace[-1]):
            return np.asarray(trace), number < epochs
    return np.asarray(trace), False


def closing(
    posterior: Posterior, trace: Floats, data: Data, tau: float, rivals: int | None, stopped: bool
) -> LargeMarginFit:
    """A fit with margins at the given posterior: no sweep, one look at the data."""
    look = fit(data, start=posterior, tau=tau, rivals=rivals, sweeps=0)
    return look._replace(posterior=posterior, trace=trace if len(trace) else look.trace, stopped=stopped)


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


def trace_count(dtype: str = "float64") -> int:
    """Number of traces of the sweeps in this process in one precision, for any number of classes."""
    return sum(_solver(dtype, blocked).experimental_get_tracing_count() for blocked in (False, True))


# --------------------------------------------------------------------------- sweeps over listed rivals


_TRACING = Lock()


def _concrete(make: Callable[..., Any], *key: Any) -> Any:
    """The traced function itself: calling it skips TensorFlow's matching of signatures (5 ms a call)."""
    with _TRACING:  # two sessions that start at once must not both trace
        return _traced(make, *key)


@cache
def _traced(make: Callable[..., Any], *key: Any) -> Any:
    return make(*key).get_concrete_function()


class _Look(NamedTuple):
    """Rivals, d and a [N, k] at some posterior, and its objective."""

    rivals: Any
    margin: Any
    second: Any
    objective: Any


_plain = tf.autograph.experimental.do_not_convert


def _chunks(n: Any) -> tuple[Any, Any]:
    size = tf.where(n <= _ONE_CHUNK, tf.maximum(n, 1), _CHUNK)
    return size, (n + size - 1) // size


def _part(data: Data, i: Any, size: Any) -> Data:
    return Data(*(part[i * size : (i + 1) * size] for part in data))


def _look(data: Data, q: Posterior, tau: Any, k: Any, blocked: bool) -> _Look:
    """Every row against its rivals, in chunks."""
    size, count = _chunks(tf.shape(data.phi)[0])
    kinds = (tf.int32, data.phi.dtype, data.phi.dtype)
    rivals, margins, seconds = (
        tf.TensorArray(kind, count, infer_shape=False, element_shape=[None, None]) for kind in kinds
    )
    G = -kl(q.mean, q.root)
    for i in tf.range(count):  # type: ignore[attr-defined]
        t, d, a, value = _moments(_part(data, i, size), q, tau, k, blocked)
        rivals, margins, seconds = rivals.write(i, t), margins.write(i, d), seconds.write(i, a)
        G += value
    return _Look(rivals.concat(), margins.concat(), seconds.concat(), G)


@_plain
def _moments(data: Data, q: Posterior, tau: Any, k: Any, blocked: bool) -> tuple[Any, Any, Any, Any]:
    """Rivals, d and a of a chunk, and its share of G."""
    C, dtype = tf.shape(q.root)[0], data.phi.dtype
    F, codes = data.phi @ q.mean + data.offset, data.codes[:, None]
    every = k == C - 1

    def largest() -> Any:
        is_own = tf.one_hot(data.codes, C, on_value=True, off_value=False)
        return tf.math.top_k(tf.where(is_own, tf.cast(-np.inf, dtype), F), k).indices

    def all_others() -> Any:
        steps = tf.range(C - 1)[None, :]
        return steps + tf.cast(steps >= codes, tf.int32)

    rivals = tf.cond(every, all_others, largest)
    classes = tf.concat([rivals, codes], 1)  # [n, k + 1]

    def variances_of_all() -> Any:
        return tf.gather(variances(data.phi, q.root, blocked), classes, batch_dims=1)

    def variances_of_listed() -> Any:
        order, ends = _by_class(classes, C)

        def more(c: Any, begin: Any, values: Any) -> tuple[Any, Any, Any]:
            A = tf.gather(data.phi, order[begin : ends[c]] // (k + 1))
            return c + 1, ends[c], values.write(c, row_squares(A, q.root[c], blocked))

        empty = tf.TensorArray(dtype, C, infer_shape=False, element_shape=[None])
        squares = tf.while_loop(lambda c, *_: c < C, more, (0, 0, empty), parallel_iterations=1)[2]
        return tf.reshape(tf.gather(squares.concat(), tf.math.invert_permutation(order)), tf.shape(classes))

    V = tf.cond(every, variances_of_all, variances_of_listed)
    d = rival_margins(tf.gather(F, rivals, batch_dims=1), tf.gather(F, codes, batch_dims=1))
    hinge = augmented_hinge(d, 2.0 * data.residual[:, None] + V[:, :k] + V[:, k:], tf)
    value = tf.reduce_sum(tempered_shares(hinge.bound, tau, tf).value)
    return rivals, d, hinge.root * hinge.root, value


def _by_class(classes: Any, C: Any) -> tuple[Any, Any]:
    """Places in the flattened list [n, k + 1] ordered by the class they name, and where each class ends."""
    flat: Any = tf.reshape(classes, [-1])
    order = tf.range(tf.size(flat))
    # by the lower digit, then by the upper one: a stable sort in linear time
    order = tf.concat(tf.dynamic_partition(order, flat % _DIGIT, _DIGIT), 0)
    order = tf.concat(tf.dynamic_partition(order, tf.gather(flat, order) // _DIGIT, _DIGIT), 0)
    return order, tf.cumsum(tf.math.bincount(flat, minlength=C, maxlength=C))


def _target(data: Data, q: Posterior, at: _Look, tau: Any, k: Any, blocked: bool) -> tuple[Any, Any]:
    """The precisions a full step lands on, and dG/dM, in chunks."""
    size, count = _chunks(tf.shape(data.phi)[0])
    C, dtype = tf.shape(q.root)[0], data.phi.dtype
    precision = tf.eye(tf.shape(data.phi)[1], batch_shape=tf.shape(q.root)[:1], dtype=dtype)
    gradient = -q.mean
    for i in tf.range(count):  # type: ignore[attr-defined]
        rows = slice(i * size, (i + 1) * size)
        part = _Look(at.rivals[rows], at.margin[rows], at.second[rows], at.objective)
        more, slope = _target_of_chunk(_part(data, i, size), part, C, tau, k, blocked)
        precision += more
        gradient += slope
    return precision, gradient


@_plain
def _target_of_chunk(data: Data, at: _Look, C: Any, tau: Any, k: Any, blocked: bool) -> tuple[Any, Any]:
    """A' diag(W) A and A' u of a chunk, for every class."""
    hinge = AugmentedHinge(at.margin, tf.sqrt(at.second))
    share = tempered_shares(hinge.bound, tau, tf).share
    W, u = rival_weight(hinge, share), -rival_pull(hinge, share)
    W = tf.concat([W, tf.reduce_sum(W, 1, keepdims=True)], 1)
    u = tf.concat([u, -tf.reduce_sum(u, 1, keepdims=True)], 1)
    classes = tf.concat([at.rivals, data.codes[:, None]], 1)
    n = tf.shape(data.phi)[0]

    def over_all() -> tuple[Any, Any]:
        places = tf.stack([tf.broadcast_to(tf.range(n)[:, None], tf.shape(classes)), classes], 2)
        slopes = tf.matmul(data.phi, tf.scatter_nd(places, u, [n, C]), transpose_a=True)
        return grams(data.phi, tf.scatter_nd(places, W, [n, C]), blocked), slopes

    def over_listed() -> tuple[Any, Any]:
        flat_W, flat_u = tf.reshape(W, [-1]), tf.reshape(u, [-1])
        order, ends = _by_class(classes, C)

        def one(begin: Any, end: Any) -> tuple[Any, Any]:
            slots = order[begin:end]
            A = tf.gather(data.phi, slots // (k + 1))
            weighted = tf.sqrt(tf.gather(flat_W, slots))[:, None] * A
            return gram(weighted, blocked), tf.linalg.matvec(A, tf.gather(flat_u, slots), transpose_a=True)

        begins = tf.concat([tf.zeros([1], ends.dtype), ends[:-1]], 0)
        precision, slopes = each_class(one, begins, ends, gives=(W.dtype, W.dtype))
        return precision, tf.transpose(slopes)

    return tf.cond(k == C - 1, over_all, over_listed)


@_plain
def _moved(q: Posterior, precision: Any, gradient: Any, rho: Any) -> Posterior:
    """The damped natural-gradient step, then centring, which only the KL sees."""
    Lam = q.precision + rho * (precision - q.precision)
    old = tf.einsum("cpq,qc->cp", q.precision, q.mean)
    new = tf.einsum("cpq,qc->cp", precision, q.mean) + tf.transpose(gradient)
    h = old + rho * (new - old)
    R = inverse_root(Lam)
    M = tf.transpose(tf.linalg.matvec(R, tf.linalg.matvec(R, h), transpose_a=True))
    return Posterior(M - tf.reduce_mean(M, 1, keepdims=True), Lam, R)


@cache
def _solver(dtype_name: str, blocked: bool) -> Any:
    """The compiled sweeps: one trace a process in one precision, whatever the number of classes."""
    dtype = tf.as_dtype(dtype_name)
    data_spec, posterior_spec, scalar, integer = signature(dtype)

    @compiled(data_spec, posterior_spec, (scalar, integer), scalar, integer, scalar, integer)
    def solve(data, q, sizes, tau, k, tolerance, sweeps):  # type: ignore[no-untyped-def]
        # one loop over proposals, so that each piece is traced once: the first proposal is the start
        n = tf.shape(data.phi)[0]
        empty = tf.zeros([n, k], dtype)
        at = _Look(tf.zeros([n, k], tf.int32), empty, empty, tf.cast(-np.inf, dtype))
        rho, small = sizes
        proposed, precision, gradient = q, q.precision, q.mean
        trace = tf.TensorArray(dtype, sweeps + 1, element_shape=[])
        ended: Any = False
        count, tries = -1, 0
        while count < sweeps and not ended:
            look = _look(data, proposed, tau, k, blocked)
            G, before = look.objective, at.objective
            if before <= G:
                small = tf.where(
                    tf.less(G - before, tolerance * tf.abs(G)),
                    small + 1,
                    small * tf.cast(count < 0, tf.int32),
                )
                rho = tf.where(tries == 0 and count >= 0, tf.minimum(tf.cast(1.0, dtype), 1.5 * rho), rho)
                q, at = proposed, look
                count += 1
                tries = 0
                trace = trace.write(count, G)
                ended = small >= 2
                if count < sweeps and not ended:
                    precision, gradient = _target(data, q, at, tau, k, blocked)
            else:
                rho *= 0.5
                tries += 1
                ended = tries > _HALVINGS or count < 0
            if count < sweeps and not ended:
                proposed = _moved(q, precision, gradient, rho)
        return (
            q,
            (rho, small),
            ended,
            trace.stack()[: count + 1],
            at.rivals,
            at.margin,
            at.second,
        )

    return solve


@cache
def _stochastic(dtype_name: str, blocked: bool) -> Any:
    """One compiled natural-gradient step on a minibatch."""
    dtype = tf.as_dtype(dtype_name)
    data_spec, posterior_spec, scalar, integer = signature(dtype)

    @compiled(data_spec, posterior_spec, scalar, scalar, scalar, integer)
    def step(data, q, rho, scale, tau, k):  # type: ignore[no-untyped-def]
        at = _look(data, q, tau, k, blocked)
        precision, gradient = _target(data, q, at, tau, k, blocked)
        eye = tf.eye(tf.shape(q.mean)[0], dtype=dtype)
        # both sums over the data are scaled by N / B; the prior's share is not
        precision = eye + scale * (precision - eye)
        gradient = scale * (gradient + q.mean) - q.mean
        divergence = kl(q.mean, q.root)
        return _moved(q, precision, gradient, rho), scale * (at.objective + divergence) - divergence

    return step
