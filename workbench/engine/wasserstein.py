"""Generalised variational inference in function space with the Wasserstein distance (docs/math.md, 6).

The method of Wild et al. 2022.

Prior P_j = GP(m_P, k) and posterior Q_j = GP(network_j, r_j), independent over classes j, with

    r_j(x, x') = k(x, x') - phi(x)' phi(x') + (L_j' phi(x))' (L_j' phi(x')),

phi the whitened features of P inducing points: positive semi-definite whatever L_j is. Minimised:

    -sum_n [ log(1 - eps) S(x_n, y_n) + log(eps / (C - 1)) (1 - S(x_n, y_n)) ] + beta sum_j W2^2(P_j, Q_j)

S(x, j) = P(f_j is the largest at x) under Q. On a batch X of n rows, exactly,

    W2^2 = mean (m_P - m_Q)^2 + mean k + mean r - (2 / n) tr (K^1/2 R K^1/2)^1/2,

whose last trace is the nuclear norm of L_K' L_R for any factors of K and R. Its gradient is U V' of
that matrix; it is real, and bounded also where singular values vanish.
"""

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import tensorflow as _tensorflow

from workbench.arrays import Array, Floats, Ints
from workbench.engine.adam import AdamState, adam_step, in_shares
from workbench.engine.fitting import FitResult
from workbench.engine.kernels import stationary
from workbench.engine.likelihoods.softmax import robust_max_term, wins
from workbench.engine.networks import Shape, forward, layer_norm, n_features, template
from workbench.progress import FitCallback

# its type stubs do not know AutoGraph's loops
tf: Any = _tensorflow

DENSE = "mlp"  # the registered network of dense layers
LEAST_SHARE = 10  # steps a call: what a call costs besides is a millisecond or two
FLOOR = 1e-9  # least variance of Q
_SINGULAR = 1e-13  # relative to the largest squared singular value: below, rounding


class State(NamedTuple):
    """Everything training moves: the network mean of Q, and its covariances.

    Attributes:
        weights: float32 arrays of the network, in its order.
        kernel: [d, C] float64, the last layer.
        bias: [C] float64.
        root: [C, P, P] lower triangular L_j.
    """

    weights: tuple[Array, ...]
    kernel: Array
    bias: Array
    root: Array


class Rows(NamedTuple):
    """The training data.

    Attributes:
        scaled: [N, D] float32 scaled features, for the network.
        phi: [N, P] whitened features.
        residual: [N] prior variance that the inducing points do not explain.
        codes: [N] classes.
    """

    scaled: Array
    phi: Array
    residual: Array
    codes: Ints


class Prior(NamedTuple):
    """P_j, the same for all classes.

    Attributes:
        mean: m_P.
        length_scale: of the squared exponential k, in scaled units.
        variance: of k.
    """

    mean: float
    length_scale: float
    variance: float


# ---------------------------------------------------------------------------------- the distance


def trace_root(base: Any, factor: Any) -> Any:
    """The trace of (base + factor factor')^1/2: the nuclear norm of [base^1/2, factor].

    The gradient with respect to `factor` is U V' of that matrix, with singular values that are
    rounding errors left out: the least subgradient. None flows to `base`.

    Args:
        base: [..., n, n] positive semi-definite.
        factor: [..., n, p].

    Returns:
        [...].
    """

    @tf.custom_gradient
    def root(M: Any) -> Any:
        values, U = tf.linalg.eigh(base + tf.matmul(M, M, transpose_b=True))
        above = values > _SINGULAR * tf.maximum(values[..., -1:], 0.0)
        singular = tf.sqrt(tf.where(above, values, tf.zeros_like(values)))
        inverse = tf.where(
            above, 1.0 / tf.where(above, singular, tf.ones_like(values)), tf.zeros_like(values)
        )

        def gradient(up: Any) -> Any:
            right = tf.matmul(U, M, transpose_a=True)
            return up[..., None, None] * tf.matmul(U * inverse[..., None, :], right)

        return tf.reduce_sum(singular, axis=-1), gradient

    return root(factor)


@tf.custom_gradient
def printed_root_sum(A: Any) -> Any:
    """sum_s sqrt(lambda_s(A)) of a product that is not symmetric, as the notes on image data print it.

    Eigenvalues of such a product may come out complex or negative: real parts are taken and cut
    at zero inside the square root. The gradient is that of the eigenvalues kept.

    Args:
        A: [..., n, n].

    Returns:
        [...].
    """
    values, V = tf.linalg.eig(A)
    real = tf.math.real(values)
    above = real > 1e-10 * tf.reduce_max(tf.abs(real), axis=-1, keepdims=True)
    roots = tf.sqrt(tf.where(above, real, tf.zeros_like(real)))
    slopes = tf.where(above, 0.5 / tf.where(above, roots, tf.ones_like(roots)), tf.zeros_like(roots))

    def gradient(up: Any) -> Any:
        left = V * tf.cast(slopes, V.dtype)[..., None, :]
        # a ridge instead of an inverse: eigenvectors of a defective matrix are dependent
        gram = tf.matmul(V, V, adjoint_a=True)
        ridge = 1e-12 * tf.eye(tf.shape(V)[-1], dtype=V.dtype)
        slope = tf.math.real(tf.matmul(left, tf.linalg.solve(gram + ridge, tf.linalg.adjoint(V))))
        return up[..., None, None] * tf.linalg.matrix_transpose(slope)

    return tf.reduce_sum(roots, axis=-1), gradient


def _matrix_root(K: Any) -> Any:
    values, U = tf.linalg.eigh(K)
    return tf.matmul(U * tf.sqrt(tf.maximum(values, 0.0))[..., None, :], U, transpose_b=True)


def covariance_distance(K: Any, phi: Any, root: Any) -> Any:
    """The part of W2^2 between N(0, K) and N(0, R_j) per row: mean k + mean r - (2/n) tr(...)^1/2.

    Args:
        K: [n, n] prior covariance of the rows.
        phi: [n, P] their whitened features.
        root: [C, P, P] lower triangular L_j.

    Returns:
        [C], >= 0 up to rounding.
    """
    n = tf.cast(tf.shape(K)[0], K.dtype)
    residual = K - tf.matmul(phi, phi, transpose_b=True)
    half = _matrix_root(K)
    base = tf.matmul(half, tf.matmul(residual, half))
    spread = tf.matmul(phi[None], root)  # [C, n, P]
    trace = tf.linalg.trace(residual) + tf.reduce_sum(tf.square(spread), axis=(1, 2))
    cross = trace_root(0.5 * (base + tf.transpose(base)), tf.matmul(half[None], spread))
    return (tf.linalg.trace(K) + trace - 2.0 * cross) / n


def printed_covariance_distance(K: Any, phi: Any, root: Any, n_sub: Any) -> Any:
    """The same by the printed estimate: X all n rows, X_S the first `n_sub` of them.

    Args:
        K: [n, n] prior covariance of the rows.
        phi: [n, P] their whitened features.
        root: [C, P, P] lower triangular L_j.
        n_sub: N_S.

    Returns:
        [C]; not a distance, and it can be negative.
    """
    n, s = tf.cast(tf.shape(K)[0], K.dtype), tf.cast(n_sub, K.dtype)
    residual = K - tf.matmul(phi, phi, transpose_b=True)
    spread = tf.matmul(phi[None], root)
    R = residual[None, :n_sub] + tf.matmul(spread[:, :n_sub], spread, transpose_b=True)  # r(X_S, X)
    trace = tf.linalg.trace(residual) + tf.reduce_sum(tf.square(spread), axis=(1, 2))
    sums = printed_root_sum(tf.matmul(R, K[None, :, :n_sub]))
    return (tf.linalg.trace(K) + trace) / n - 2.0 * sums / tf.sqrt(n * s)


# ---------------------------------------------------------------------------------- the data term


def data_term(mean: Any, variance: Any, codes: Any, epsilon: Any) -> Any:
    """[n] expected log-likelihood of the robust-max, eps / (C - 1) for each other class.

    Args:
        mean: [n, C].
        variance: [n, C].
        codes: [n].
        epsilon: share of wrong labels.
    """
    targets = tf.one_hot(codes, tf.shape(mean)[1], dtype=mean.dtype)
    return robust_max_term(wins(mean, variance, targets), epsilon, tf.shape(mean)[1])


# ---------------------------------------------------------------------------------- training


def start(
    weights: Sequence[Array], n_features: int, n_classes: int, phi: Array, noise: float, seed: int
) -> State:
    """The start of training: S_j = (I + Phi' Phi / noise)^-1 and a small last layer.

    Args:
        weights: of the network.
        n_features: d, what the network ends in.
        n_classes: C.
        phi: [N, P] whitened features of the training rows.
        noise: variance of the regression whose posterior S_j is.
        seed: of the last layer.
    """
    P = phi.shape[1]
    precision = np.eye(P) + phi.T @ phi / noise
    inverse = np.linalg.inv(np.linalg.cholesky(precision))
    root = np.linalg.cholesky(inverse.T @ inverse)
    rng = np.random.default_rng([seed, 0x3A57])
    kernel = rng.normal(size=(n_features, n_classes)) / n_features
    return State(tuple(weights), kernel, np.zeros(n_classes), np.tile(root, (n_classes, 1, 1)))


def _dense_forward(weights: Sequence[Any], scaled: Any) -> Any:
    """The registered dense network: one function for every number of features, so one trace."""
    hidden = scaled
    for W, b in zip(weights[::2], weights[1::2], strict=True):
        hidden = tf.nn.relu(tf.matmul(hidden, W) + b)
    return layer_norm(hidden)


class Steps(NamedTuple):
    """Minibatches one call takes.

    Attributes:
        rows: [T, B] row numbers of each step.
        rates: [T, 2] learning rates of network and L_j.
        n_sub: rows of a batch on which covariances are compared.
    """

    rows: Any
    rates: Any
    n_sub: Any


class Terms(NamedTuple):
    """Constants of the terms of the objective.

    Attributes:
        prior: P_j.
        weight: beta / N, of the distance.
        epsilon: robust-max's share of wrong labels.
    """

    prior: Prior
    weight: Any
    epsilon: Any


def batch_loss(
    features: Any, variables: Sequence[Any], batch: Rows, n_sub: Any, terms: Terms, printed: bool
) -> Any:
    """The objective of a batch, as a mean over its rows: beta / N sum_j W2^2 minus the data term.

    Args:
        features: (weights, scaled [n, D]) -> [n, d], the network.
        variables: its weights, then kernel, bias and L_j as they stand in `State`.
        batch: n rows.
        n_sub: rows on which covariances are compared.
        terms: of the objective.
        printed: use the printed estimate of the distance.
    """
    *weights, kernel, bias, raw = variables
    prior = terms.prior
    root = tf.linalg.band_part(raw, -1, 0)
    mean = tf.matmul(tf.cast(features(weights, batch.scaled), tf.float64), kernel) + bias
    spread = tf.matmul(batch.phi[None], root)
    r = batch.residual[:, None] + tf.transpose(tf.reduce_sum(tf.square(spread), axis=2))
    fit = tf.reduce_mean(data_term(mean, tf.maximum(r, FLOOR), batch.codes, terms.epsilon))
    n = tf.shape(batch.scaled)[0]
    n_compared = n if printed else tf.minimum(n_sub, n)
    z = tf.cast(batch.scaled[:n_compared], tf.float64) / prior.length_scale
    K = stationary("squared-exponential", z, z, prior.variance, tf)
    K = tf.linalg.set_diag(K, tf.fill([n_compared], prior.variance))
    if printed:
        parts = printed_covariance_distance(K, batch.phi, root, tf.minimum(n_sub, n_compared))
    else:
        parts = covariance_distance(K, batch.phi[:n_compared], root)
    shift = tf.reduce_sum(tf.reduce_mean(tf.square(mean - prior.mean), axis=0))
    return terms.weight * (shift + tf.reduce_sum(parts)) - fit


def compiled(network: str, input_shape: Shape, printed: bool) -> Any:
    """Compile training steps; cached: one trace per process, whatever N, C, P and (dense) D are.

    Args:
        network: a name in `workbench.engine.networks.NETWORKS`, or "package.module:function".
        input_shape: (H, W, channels), or (D,).
        printed: use the printed estimate of the distance.

    Returns:
        (variables, Adam's state, Rows, Steps, Terms) -> (variables, Adam's state, sum of the losses).
    """
    return _compiled(network, () if network == DENSE else input_shape, printed)


@cache
def _compiled(network: str, input_shape: Shape, printed: bool) -> Any:
    f32, f64, i32 = tf.float32, tf.float64, tf.int32
    if network == DENSE:
        features: Any = _dense_forward
        layer = tf.TensorSpec((None, None), f32), tf.TensorSpec((None,), f32)
        weight_spec, width = layer + layer, None
    else:
        features = partial(forward, network, input_shape)
        model = template(network, input_shape)
        weight_spec = tuple(tf.TensorSpec(v.shape, f32) for v in model.trainable_variables)
        width = n_features(network, input_shape)
    spec = (
        *weight_spec,
        tf.TensorSpec((width, None), f64),
        tf.TensorSpec((None,), f64),
        tf.TensorSpec((None, None, None), f64),
    )
    data_spec = Rows(
        tf.TensorSpec((None, None), f32),
        tf.TensorSpec((None, None), f64),
        tf.TensorSpec((None,), f64),
        tf.TensorSpec((None,), i32),
    )
    steps_spec = Steps(
        tf.TensorSpec((None, None), i32), tf.TensorSpec((None, 2), f32), tf.TensorSpec((), i32)
    )
    number = tf.TensorSpec((), f64)
    terms_spec = Terms(Prior(number, number, number), number, number)

    @tf.function(input_signature=[spec, AdamState.spec(spec), data_spec, steps_spec, terms_spec])
    def run(variables, state, data, steps, terms):  # type: ignore[no-untyped-def]
        total = tf.zeros((), f64)
        for i in tf.range(tf.shape(steps.rows)[0]):
            batch = Rows(*(tf.gather(part, steps.rows[i]) for part in data))
            with tf.GradientTape() as tape:
                tape.watch(variables)
                loss = batch_loss(features, variables, batch, steps.n_sub, terms, printed)
            slopes = tape.gradient(loss, variables)
            step_rates = [steps.rates[i, 0]] * (len(slopes) - 1) + [steps.rates[i, 1]]
            variables, state = adam_step(variables, slopes, state, step_rates)
            total += loss
        return variables, state, total

    return run


def train(
    network: str,
    input_shape: Shape,
    state: State,
    data: Rows,
    prior: Prior,
    *,
    weight: float,
    epsilon: float,
    rows: Ints,
    rates: Floats,
    n_sub: int,
    printed: bool = False,
    callback: FitCallback | None = None,
) -> FitResult:
    """Minimise the objective by Adam over network and L_j.

    Args:
        network: as in `compiled`.
        input_shape: as in `compiled`.
        state: where to start.
        data: N rows.
        prior: P_j.
        weight: beta of the distance; the data term is a sum over N rows.
        epsilon: robust-max's share of wrong labels.
        rows: [T, B] the minibatches.
        rates: [T, 2] learning rates of network and L_j.
        n_sub: rows of a batch on which covariances are compared.
        printed: use the printed estimate of the distance.
        callback: (fraction, minus the loss of all rows) after each share of the steps (ten at least,
            about fifty shares when there are many); True stops.

    Returns:
        The fit: its posterior is the `State` at the end of the share of steps with the least mean
        loss, its objective and trace are minus the loss of all rows, as estimated from the shares.

    Raises:
        InputError: training diverged.
    """
    run = compiled(network, input_shape, printed)
    N = len(data.codes)
    tensors = Rows(*(tf.convert_to_tensor(v) for v in (*data[:3], data.codes.astype(np.int32))))
    # float64 as they are: a Python number would become a float32
    terms = Terms(Prior(*map(np.float64, prior)), np.float64(weight / N), np.float64(epsilon))
    share, count, stopped = max(LEAST_SHARE, -(-len(rows) // 50)), 0, False
    best, trace = np.inf, list[float]()
    keep: Any = ()

    def take(values: Any, adam: Any, part: slice) -> Any:
        steps = Steps(rows[part].astype(np.int32), rates[part].astype(np.float32), np.int32(n_sub))
        return run(values, adam, tensors, steps, terms)

    for values, loss, count in in_shares(take, (*state.weights, *state[1:]), len(rows), share):
        trace.append(loss)
        if loss <= best:
            best, keep = loss, values
        stopped = callback is not None and bool(callback(count / len(rows), -N * loss))
        if stopped:
            break
    *weights, kernel, bias, root = (v.numpy() for v in keep)
    after = State(tuple(weights), kernel, bias, np.tril(root))
    return FitResult(after, -N * best, -N * np.asarray(trace), count, stopped)
